//! Nonblocking collectives of some bytes that move blocks or fold parts: many at once, beside longer ones, in place or
//! not, of elements with gaps, and by members that disagree.

use super::data::{Random, double};
use super::on_node;
use super::small::{begun, end, in_any_group};
use crate::{Blocks, Call, Group, Reduction, Scan};
use cohort_base::settings::{Settings, WaitMode};
use cohort_core::Status;
use cohort_core::node::Node;
use cohort_datatype::op::{Op, PredefinedOp};
use cohort_datatype::{Buffer, CountForm, Type, TypeRef, resized};
use core::time::Duration;
use std::thread;
use std::vec;
use std::vec::Vec;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    ReduceScatter,
    Scan,
    Exscan,
}

const KINDS: [Kind; 7] =
    [Kind::Gather, Kind::Scatter, Kind::Allgather, Kind::Alltoall, Kind::ReduceScatter, Kind::Scan, Kind::Exscan];

/// Elements of a block on both sides of what an entry, a side and a row take.
const COUNTS: [usize; 12] = [0, 1, 6, 7, 40, 256, 257, 512, 513, 1024, 1025, 5000];

/// One member's operation of a sequence.
struct One {
    kind: Kind,
    root: usize,
    number: usize,
    count: usize,
    in_place: bool,
    given: Vec<f64>,
    taken: Vec<f64>,
    counts: Vec<i64>,
    datatype: TypeRef,
    /// Elements of `taken` from one element of the datatype to the next.
    stride: usize,
}

fn value(member: usize, number: usize, at: usize) -> f64 {
    (member * 1000 + number * 7 + at) as f64
}

impl One {
    fn new(random: &mut Random, number: usize, (me, size): (usize, usize)) -> Self {
        let kind = KINDS[random.below(7) as usize];
        let count = COUNTS[random.below(12) as usize];
        let (root, in_place) = (random.below(size as u64) as usize, random.below(3) == 0);
        Self::of((kind, count, root), number, in_place, (me, size))
    }

    fn of(
        (kind, count, root): (Kind, usize, usize),
        number: usize,
        in_place: bool,
        (me, size): (usize, usize),
    ) -> Self {
        let is_reduction = matches!(kind, Kind::ReduceScatter | Kind::Scan | Kind::Exscan);
        // Members describe the same data in ways of their own.
        let stride = if is_reduction || (me + number).is_multiple_of(3) { 1 } else { 2 };
        let datatype = match stride {
            1 => double(),
            _ => resized(&double(), 0, 16, CountForm::Int).expect("a type"),
        };
        let given: Vec<_> = (0..size * count).map(|at| value(me, number, at)).collect();
        let mut taken = vec![-1.0; (size * count + 1) * stride];
        if in_place {
            let first = if kind == Kind::Gather || kind == Kind::Allgather { me * count } else { 0 };
            let operands = given.iter().take(match kind {
                Kind::Gather | Kind::Allgather | Kind::Scan | Kind::Exscan => count,
                Kind::Scatter => 0,
                _ => size * count,
            });
            operands.enumerate().for_each(|(at, it)| taken[(first + at) * stride] = *it);
        }
        let counts = vec![count as i64; size];
        Self { kind, root, number, count, in_place, given, taken, counts, datatype, stride }
    }

    fn call(&mut self, me: usize, plain: &Type) -> Call<'static> {
        let (root, count, at_root) = (self.root as u32, self.count as u64, self.root == me);
        // SAFETY: the test's own memory, which stays until the operation is over, as does the type.
        unsafe {
            let given = Buffer::new(self.given.as_mut_ptr().cast(), count, &*core::ptr::from_ref(plain));
            let datatype: &Type = &*core::ptr::from_ref::<Type>(&self.datatype);
            let taken = Buffer::new(self.taken.as_mut_ptr().cast(), count, datatype);
            let send = (!self.in_place).then_some(given);
            let total = match self.kind {
                Kind::ReduceScatter => count * self.counts.len() as u64,
                _ => count,
            };
            let result = Buffer::new(self.taken.as_mut_ptr().cast(), total, datatype);
            let input = (!self.in_place).then_some(self.given.as_ptr().cast());
            let reduction = Reduction { input, result, op: Op::Predefined(PredefinedOp::Sum) };
            match self.kind {
                Kind::Gather => Call::Gather {
                    send: if at_root { send } else { Some(given) },
                    receive: at_root.then(|| Blocks::equal(taken)),
                    root,
                    is_even: true,
                },
                Kind::Scatter => Call::Scatter {
                    send: at_root.then(|| Blocks::equal(given)),
                    receive: (!at_root || !self.in_place).then_some(taken),
                    root,
                    is_even: true,
                },
                Kind::Allgather => Call::Allgather { send, receive: Blocks::equal(taken) },
                Kind::Alltoall => {
                    Call::Alltoall { send: send.map(|it| Blocks::equal(it)), receive: Blocks::equal(taken) }
                }
                Kind::ReduceScatter => {
                    let counts = core::slice::from_raw_parts(self.counts.as_ptr(), self.counts.len());
                    Call::ReduceScatter { reduction, counts }
                }
                Kind::Scan => Call::Scan { reduction, kind: Scan::Inclusive },
                Kind::Exscan => Call::Scan { reduction, kind: Scan::Exclusive },
            }
        }
    }

    /// What the member is to have at a place of its room; `None`: what was there.
    fn expected(&self, at: usize, (me, size): (usize, usize)) -> Option<f64> {
        let (count, number) = (self.count, self.number);
        let sum = |members: core::ops::Range<usize>, at| members.map(|it| value(it, number, at)).sum::<f64>();
        let within = at < count;
        match self.kind {
            Kind::Gather if me != self.root => None,
            Kind::Gather | Kind::Allgather if at < size * count => Some(value(at / count, number, at % count)),
            Kind::Scatter if within && (me != self.root || !self.in_place) => {
                Some(value(self.root, number, me * count + at))
            }
            Kind::Alltoall if at < size * count => Some(value(at / count, number, me * count + at % count)),
            Kind::ReduceScatter if within => Some(sum(0..size, me * count + at)),
            Kind::Scan if within => Some(sum(0..me + 1, at)),
            Kind::Exscan if within && me > 0 => Some(sum(0..me, at)),
            _ => None,
        }
    }

    fn check(&self, whom: (usize, usize)) {
        for at in 0..=whom.1 * self.count {
            if let Some(expected) = self.expected(at, whom) {
                let found = self.taken[at * self.stride];
                assert_eq!(found, expected, "{:?} of {} at {at} of {whom:?}", self.kind, self.count);
            }
        }
        let is_touched = self.taken.iter().skip(1).step_by(self.stride.max(2)).any(|it| *it != -1.0);
        assert!(self.stride == 1 || !is_touched, "gaps stay as they are");
        assert_eq!(self.taken[whom.1 * self.count * self.stride], -1.0, "what lies behind stays too");
    }
}

/// Begins up to 40 operations before it ends them, in an order of its own.
fn take_part(group: &Group<'_>) {
    let whom = (group.me as usize, group.world.len());
    let plain = double();
    let mut common = Random::new(whom.1 as u64);
    let mut own = Random::new(1000 + whom.0 as u64);
    for round in 0..80 {
        let many = 1 + common.below(40) as usize;
        let mut all: Vec<_> = (0..many).map(|it| One::new(&mut common, 50 * round + it, whom)).collect();
        let begin = |it: &mut One| Some(begun(group, &it.call(whom.0, &plain)).expect("a start"));
        let mut started: Vec<_> = all.iter_mut().map(begin).collect();
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
        all.iter().for_each(|it| it.check(whom));
    }
}

#[test]
fn blocks_and_parts_of_many_operations_end_in_any_order() {
    in_any_group(take_part);
}

/// Some members have a few bytes and others many, of one operation or of two: nobody waits for ever, and who waits for
/// anything in vain hears of it. Each block of a scatter gets to where there is room for it.
#[test]
fn members_of_any_operation_may_disagree() {
    for wait in [WaitMode::Auto, WaitMode::Park] {
        let settings = Settings { wait, ..Settings::DEFAULT };
        on_node(Node::for_test_with(3, settings), |group| {
            let (me, plain) = (group.me as usize, double());
            for number in 0..7 * 7 * 3 * 3 * 6 {
                let (kind, other) = (KINDS[number % 7], KINDS[number / 7 % 7]);
                let (root, late, odd) = (number / 49 % 3, number / 147 % 3, 1 + number / 441);
                // The root of a short scatter and who has its block have left by then, as those of a broadcast.
                if (kind == Kind::Scatter) != (other == Kind::Scatter) {
                    continue;
                }
                let is_odd = odd >> me & 1 == 1;
                let (kind, count) = if is_odd { (other, 5000) } else { (kind, 1) };
                let mut one = One::of((kind, count, root), 0, false, (me, 3));
                // Others may send more than the member has room for, which is not written to.
                let behind = one.taken.len() - 1;
                if me == late && number.is_multiple_of(5) {
                    thread::sleep(Duration::from_micros(300));
                }
                let started = begun(group, &one.call(me, &plain)).expect("a start");
                let error = end(group, started);
                let is_known = [Status::SUCCESS, Status::NOT_SAME, Status::TRUNCATE].contains(&error);
                assert!(is_known, "{kind:?} {number}: {error}");
                // Who is small may leave before others come.
                let (gathers, scatters) = (kind == Kind::Gather, kind == Kind::Scatter);
                let leaves = scatters || !is_odd && gathers && me != root;
                assert!(leaves || error != Status::SUCCESS, "{kind:?} {number}: {me} is told");
                assert_eq!(one.taken[behind], -1.0);
            }
        });
    }
}

/// Who gives may be far ahead of those that take, with blocks that are longer than an entry.
#[test]
fn givers_run_ahead() {
    on_node(Node::for_test(3), |group| {
        let (me, plain) = (group.me as usize, double());
        for kind in [Kind::Gather, Kind::Scatter] {
            let one = |number| One::of((kind, 20 + number % 3 * 40, 1), number, false, (me, 3));
            let mut all: Vec<_> = (0..100).map(one).collect();
            let takes = (me == 1) == (kind == Kind::Gather);
            if takes {
                thread::sleep(Duration::from_millis(2));
            }
            for one in &mut all {
                let started = begun(group, &one.call(me, &plain)).expect("a start");
                if !takes {
                    assert!(super::small::is_complete(&started), "a giver waits for nobody");
                }
                assert_eq!(end(group, started), Status::SUCCESS);
                one.check((me, 3));
            }
            crate::barrier(group).expect("a barrier");
        }
    });
}

/// What a root gives does not pile up without bound: once it is far ahead with data that is longer than an entry, it
/// waits for the others.
#[test]
fn a_root_far_ahead_waits_for_the_others() {
    const MANY: usize = 400;
    on_node(Node::for_test(3), |group| {
        let (me, plain) = (group.me as usize, double());
        if me != 1 {
            thread::sleep(Duration::from_millis(5));
        }
        let mut waits = 0;
        for number in 0..MANY {
            let mut one = One::of((Kind::Scatter, 20, 1), number, false, (me, 3));
            let started = begun(group, &one.call(me, &plain)).expect("a start");
            waits += usize::from(!super::small::is_complete(&started));
            assert_eq!(end(group, started), Status::SUCCESS);
            one.check((me, 3));
        }
        assert!(me != 1 || (1..=3).contains(&waits), "{waits} waits");
        crate::barrier(group).expect("a barrier");
    });
}
