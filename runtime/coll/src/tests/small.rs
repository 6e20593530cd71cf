//! Nonblocking collectives of a few bytes: many at once, ended in any order, beside larger ones, and by members that
//! disagree.

use super::data::{Random, double};
use super::on_node;
use crate::{Call, CommShared, Group, Reduction, Started, begin};
use cohort_base::settings::{Progress, Settings, WaitMode};
use cohort_core::node::Node;
use cohort_core::request::RequestRef;
use cohort_core::wait::{self, WaitKind};
use cohort_core::{EngineError, Status};
use cohort_datatype::op::{Op, PredefinedOp};
use cohort_datatype::{Buffer, TypeRef};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::thread;
use std::vec;
use std::vec::Vec;

pub(super) fn is_complete(started: &Started) -> bool {
    match started {
        Started::Request(request) => request.is_complete(),
        Started::Small(small) => small.is_complete(),
        Started::Again => unreachable!("no record was given"),
    }
}

/// Waits for the end; the error.
pub(super) fn end(group: &Group<'_>, started: Started) -> i32 {
    wait::until(group.owner, WaitKind::Request, || is_complete(&started));
    match started {
        Started::Request(request) => {
            let error = request.status().error;
            RequestRef::release(request, &mut group.rank().enter());
            error
        }
        Started::Small(small) => {
            let error = small.status().error;
            small.release();
            error
        }
        Started::Again => unreachable!("no record was given"),
    }
}

pub(super) fn begun(group: &Group<'_>, call: &Call<'_>) -> Result<Started, EngineError> {
    // SAFETY: the tests keep the buffers.
    unsafe { begin(group, call) }
}

/// One operation of a sequence.
struct One {
    kind: u64,
    root: usize,
    count: usize,
    given: Vec<f64>,
    taken: Vec<f64>,
    datatype: TypeRef,
}

fn given(member: usize, number: usize, count: usize) -> Vec<f64> {
    let value = |at: usize| (member * 100 + number * 7 + at) as f64;
    (0..count).map(value).collect()
}

impl One {
    fn new(random: &mut Random, number: usize, me: usize, size: usize) -> Self {
        let kind = random.below(4);
        let count = [1, 1, 2, 6, 7, 500, 2000][random.below(7) as usize];
        let root = random.below(size as u64) as usize;
        let given = given(me, number, count);
        let taken = if kind == 1 && me == root { given.clone() } else { vec![0.0; count] };
        Self { kind, root, count, given, taken, datatype: double() }
    }

    fn call(&mut self) -> Call<'_> {
        // SAFETY: the test's own memory, which stays until the operation is over.
        let result = unsafe { Buffer::new(self.taken.as_mut_ptr().cast(), self.count as u64, &self.datatype) };
        let reduction =
            Reduction { input: Some(self.given.as_ptr().cast()), result, op: Op::Predefined(PredefinedOp::Sum) };
        let root = self.root as u32;
        match self.kind {
            0 => Call::Barrier,
            1 => Call::Bcast { buffer: result, root },
            2 => Call::Reduce { reduction, root },
            _ => Call::Allreduce { reduction },
        }
    }

    fn check(&self, number: usize, me: usize, size: usize) {
        let all: Vec<_> = (0..size).map(|it| given(it, number, self.count)).collect();
        let sums = (0..self.count).map(|at| all.iter().map(|it| it[at]).sum::<f64>());
        match self.kind {
            1 => assert_eq!(self.taken, all[self.root]),
            2 if me == self.root => assert!(sums.eq(self.taken.iter().copied())),
            3 => assert!(sums.eq(self.taken.iter().copied())),
            _ => {}
        }
    }
}

/// Begins up to 40 operations, some of them large, before it ends them, in an order of its own.
fn take_part(group: &Group<'_>) {
    let (me, size) = (group.me as usize, group.world.len());
    let mut common = Random::new(size as u64);
    let mut own = Random::new(1000 + me as u64);
    for round in 0..60 {
        let many = 1 + common.below(40) as usize;
        let mut all: Vec<_> = (0..many).map(|it| One::new(&mut common, 50 * round + it, me, size)).collect();
        let mut started: Vec<_> = all.iter_mut().map(|it| Some(begun(group, &it.call()).expect("a start"))).collect();
        match own.below(30) {
            0 => thread::sleep(Duration::from_micros(300)),
            1..5 => thread::yield_now(),
            _ => {}
        }
        let first = own.below(many as u64) as usize;
        for at in 0..many {
            let it = started[(first + at) % many].take().expect("once");
            assert_eq!(end(group, it), Status::SUCCESS);
        }
        for (at, it) in all.iter().enumerate() {
            it.check(50 * round + at, me, size);
        }
    }
}

/// Runs `work` by the members of groups of several sizes, which wait in either way.
pub(super) fn in_any_group(work: impl Fn(&Group<'_>) + Sync) {
    for size in [1, 2, 3, 6] {
        for wait in [WaitMode::Auto, WaitMode::Park] {
            let settings = Settings { wait, ..Settings::DEFAULT };
            on_node(Node::for_test_with(size, settings), &work);
        }
    }
}

#[test]
fn many_small_ones_beside_larger_ones_end_in_any_order() {
    in_any_group(take_part);
}

/// One call of each member is enough: a member that makes no other call keeps nobody waiting.
#[test]
fn a_member_that_has_begun_is_not_waited_for() {
    let gone = AtomicU32::new(0);
    on_node(Node::for_test(3), |group| {
        let mut one = One::new(&mut Random::new(1), 0, group.me as usize, 3);
        (one.kind, one.count) = (3, 1);
        one.given.truncate(1);
        one.taken.truncate(1);
        let started = begun(group, &one.call()).expect("a start");
        if group.me == 0 {
            while gone.load(Ordering::SeqCst) < 2 {
                thread::yield_now();
            }
        }
        assert_eq!(end(group, started), Status::SUCCESS);
        gone.fetch_add(1, Ordering::SeqCst);
        one.check(0, group.me as usize, 3);
    });
}

/// The communicator may be freed before the operation is complete.
#[test]
fn an_operation_outlives_its_communicator() {
    on_node(Node::for_test(3), |everyone| {
        for number in 0..20 {
            let shared = CommShared::of(everyone.owner, 90, everyone.world);
            let group = Group { context: 90, shared, ..*everyone };
            let mut all: Vec<_> =
                (0..number % 11).map(|it| One::new(&mut Random::new(it as u64), it, group.me as usize, 3)).collect();
            let started: Vec<_> = all.iter_mut().map(|it| begun(&group, &it.call()).expect("a start")).collect();
            shared.leave(everyone.owner);
            for it in started {
                assert_eq!(end(everyone, it), Status::SUCCESS);
            }
            crate::barrier(everyone).expect("a barrier");
        }
    });
}

/// The root of a broadcast is small, and others expect more, or less, whoever comes first: they are told.
#[test]
fn members_of_a_broadcast_that_expect_another_length_are_told() {
    on_node(Node::for_test(3), |group| {
        for (count, late) in [(1, 0), (1, 1), (1, 2), (500, 0), (500, 1), (500, 2)] {
            let mut call = One::new(&mut Random::new(1), 0, group.me as usize, 3);
            (call.kind, call.root) = (1, 0);
            call.count = if group.me == 0 { 2 } else { count };
            call.taken = vec![f64::from(group.me); call.count];
            if group.me == late {
                thread::sleep(Duration::from_millis(2));
            }
            let started = begun(group, &call.call()).expect("a start");
            let error = end(group, started);
            assert_eq!(error, if group.me > 0 { Status::TRUNCATE } else { Status::SUCCESS }, "{count} {late}");
            assert!(call.taken[0].to_bits() == 0, "the first value is the root's");
        }
    });
}

/// One member alone expects much more of a root that is small: it is told, and nobody loses anything.
#[test]
fn a_member_of_a_broadcast_that_expects_more_than_all_others_is_told() {
    on_node(Node::for_test(3), |group| {
        for late in [0, 1, 2, 0, 1, 2] {
            let mut call = One::new(&mut Random::new(1), 0, group.me as usize, 3);
            (call.kind, call.root) = (1, 0);
            call.count = if group.me == 1 { 500 } else { 2 };
            call.taken = vec![f64::from(group.me); call.count];
            if group.me == late {
                thread::sleep(Duration::from_millis(2));
            }
            let started = begun(group, &call.call()).expect("a start");
            let error = end(group, started);
            assert_eq!(error, if group.me == 1 { Status::TRUNCATE } else { Status::SUCCESS }, "{late}");
            assert!(call.taken[1].to_bits() == 0, "the second value is the root's");
        }
    });
}

/// The last to begin wakes those that can copy for it: members with requests, not those that took the operation for a
/// small one and sleep at its meeting. Nobody else helps.
#[test]
fn who_can_help_is_woken_beside_members_that_disagree() {
    let settings = Settings { wait: WaitMode::Park, progress: Progress::None, ..Settings::DEFAULT };
    let gone = AtomicU32::new(0);
    let node = Node::for_test_with(5, settings);
    on_node(node, |group| {
        let is_long = group.me < 2;
        let mut call = One::new(&mut Random::new(1), 0, group.me as usize, 5);
        (call.kind, call.root, call.count) = (1, 0, if is_long { 20_000 } else { 1 });
        call.taken = vec![f64::from(group.me); call.count];
        let is_last = group.me == 1;
        while is_last && [0, 2, 3, 4].iter().any(|&it| !node.rank(it).park().is_parked()) {
            thread::yield_now();
        }
        let started = begun(group, &call.call()).expect("a start");
        // As if it computed.
        while is_last && gone.load(Ordering::SeqCst) < 4 {
            thread::yield_now();
        }
        let error = end(group, started);
        gone.fetch_add(1, Ordering::SeqCst);
        assert_eq!(error == Status::TRUNCATE, !is_long);
        assert!(call.taken[0].to_bits() == 0, "the first value is the root's");
    });
}

/// Members that begin different operations hear of it, all of them, however long the operations are.
#[test]
fn members_that_disagree_are_told() {
    let settings = Settings { wait: WaitMode::Park, ..Settings::DEFAULT };
    on_node(Node::for_test_with(3, settings), |group| {
        // What member 0 begins, and what the others do, who come late.
        for (one, other, count) in [(0, 3, 1), (3, 0, 1), (0, 2, 1), (2, 0, 1), (0, 3, 500), (3, 2, 500)] {
            let mut call = One::new(&mut Random::new(1), 0, group.me as usize, 3);
            call.kind = if group.me == 0 { one } else { other };
            (call.count, call.root) = (count, 1);
            call.given.resize(count, 1.0);
            call.taken.resize(count, 0.0);
            if group.me > 0 {
                thread::sleep(Duration::from_millis(2));
            }
            let started = begun(group, &call.call()).expect("a start");
            let error = end(group, started);
            // A sender of a small reduce does not wait for the others.
            let is_sender = group.me != 1 && 2 == if group.me == 0 { one } else { other };
            let has_left = is_sender && count == 1 && error == Status::SUCCESS;
            assert!(has_left || error == Status::NOT_SAME, "{one} and {other}: {error}");
        }
        // Members of a broadcast that ends well for them hear of nothing.
        for (one, other) in [(0, 1), (1, 0)] {
            let mut call = One::new(&mut Random::new(1), 0, group.me as usize, 3);
            call.kind = if group.me == 0 { one } else { other };
            (call.count, call.root) = (1, 1);
            call.given.truncate(1);
            call.taken.truncate(1);
            if group.me > 0 {
                thread::sleep(Duration::from_millis(2));
            }
            let started = begun(group, &call.call()).expect("a start");
            let error = end(group, started);
            assert!(error == Status::NOT_SAME || group.me > 0 && other == 1);
        }
        // Sums and maxima.
        let mut call = One::new(&mut Random::new(1), 0, group.me as usize, 3);
        (call.kind, call.count) = (3, 1);
        let mut call = call.call();
        if let (0, Some(reduction)) = (group.me, call.reduction_mut()) {
            reduction.op = Op::Predefined(PredefinedOp::Max);
        }
        let started = begun(group, &call).expect("a start");
        assert_eq!(end(group, started), Status::NOT_SAME);
    });
}

/// A reduce of which some members give a few bytes and others many, or nothing at all: senders that have left keep
/// nobody waiting, and who waits for anything hears of it.
#[test]
fn members_of_a_reduce_may_disagree() {
    for wait in [WaitMode::Auto, WaitMode::Park] {
        let settings = Settings { wait, ..Settings::DEFAULT };
        on_node(Node::for_test_with(3, settings), |group| {
            let me = group.me as usize;
            for number in 0..3 * 4 * 6 * 2 {
                let (root, late) = (number % 3, number / 3 % 4);
                // All but none or all of them are odd.
                let is_odd = |member: usize| (1 + number / 12 % 6) >> member & 1 == 1;
                let other_kind = [2, 3][number / 72];
                let mut call = One::new(&mut Random::new(1), 0, me, 3);
                (call.kind, call.root, call.count) = match is_odd(me) {
                    true => (other_kind, root, 2000),
                    false => (2, root, 1),
                };
                call.given.resize(call.count, 1.0);
                call.taken.resize(call.count, 0.0);
                if me == late {
                    thread::sleep(Duration::from_micros(300));
                }
                let started = begun(group, &call.call()).expect("a start");
                let error = end(group, started);
                let is_told = [Status::NOT_SAME, Status::TRUNCATE].contains(&error);
                let is_sender = !is_odd(me) && me != root;
                assert!(is_told || is_sender && error == Status::SUCCESS, "{number}: {error}");
            }
        });
    }
}

/// Senders of a reduce may be ahead of its root, which gets each result.
#[test]
fn senders_of_a_reduce_run_ahead() {
    on_node(Node::for_test(3), |group| {
        let me = group.me as usize;
        let mut all: Vec<_> = (0..100)
            .map(|number| {
                let mut one = One::new(&mut Random::new(1), number, me, 3);
                (one.kind, one.root, one.count) = (2, 1, 2);
                (one.given, one.taken) = (given(me, number, 2), vec![0.0; 2]);
                one
            })
            .collect();
        if me == 1 {
            thread::sleep(Duration::from_millis(2));
        }
        for (number, one) in all.iter_mut().enumerate() {
            let started = begun(group, &one.call()).expect("a start");
            if me != 1 {
                assert!(is_complete(&started), "a sender waits for nobody");
            }
            assert_eq!(end(group, started), Status::SUCCESS);
            one.check(number, me, 3);
        }
        crate::barrier(group).expect("a barrier");
    });
}
