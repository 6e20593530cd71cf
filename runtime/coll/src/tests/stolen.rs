//! Collectives among nodes whose members start them and never call again: ranks that wait for something else go on with
//! them.

use super::ranks::{Ranks, networks};
use crate::{self as coll};
use crate::{Blocks, Call, CommShared, Group, Reduction, start};
use cohort_base::settings::{Progress, ReduceOrder, Settings, WaitMode};
use cohort_core::Owner;
use cohort_core::Rank;
use cohort_core::wait::{self, WaitKind};
use cohort_datatype::op::{Op, PredefinedOp};
use cohort_datatype::{Buffer, TypeRef};
use cohort_net::is_acquainted;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::thread;
use std::time::Instant;
use std::vec;
use std::vec::Vec;

/// Two nodes of two members, and one more rank each.
const NODES: [&[u32]; 2] = [&[0, 2, 4], &[1, 3, 5]];

/// Two nodes of three members, one after the other, and one more rank each.
const LARGER: [&[u32]; 2] = [&[0, 1, 2, 6], &[3, 4, 5, 7]];

/// Nodes of two and of three members that are mixed, and one more rank each; and one with a single member.
const UNEVEN: [&[u32]; 3] = [&[0, 3, 6], &[1, 4, 5, 7], &[2, 8]];

/// Members of a job: all ranks but the last one of each node.
fn members_of(nodes: &[&[u32]]) -> u32 {
    nodes.iter().map(|ranks| ranks.len() as u32 - 1).sum()
}

/// Longest time that members compute: far more than the operations take.
const LIMIT: Duration = Duration::from_secs(60);

/// What counts of the time between two looks: a machine that stands still, as a virtual one may, has nobody go on.
const LOOK: Duration = Duration::from_millis(100);

/// One operation of every kind with several stages, and the result.
struct Trial {
    kind: u32,
    count: usize,
    members: usize,
    send: Vec<i32>,
    receive: Vec<i32>,
    /// Of the result of a reduce-scatter, each member's: nothing, some, or nearly twice as much.
    counts: Vec<i64>,
    datatype: TypeRef,
}

const KINDS: u32 = 8;

/// Those in which leaders speak for their nodes.
const OF_LEADERS: [u32; 6] = [0, 1, 2, 3, 6, 7];

impl Trial {
    fn new(kind: u32, count: usize, group: &Group<'_>) -> Self {
        let (me, members) = (group.me, group.world.len());
        let value = |at: usize| (me as usize * 1000 + at) as i32;
        let mut receive = vec![-1; count * members];
        if kind == 1 && me == 0 {
            receive = (0..count * members).map(value).collect();
        }
        Self {
            kind,
            count,
            members,
            send: (0..count * members).map(value).collect(),
            receive,
            counts: (0..members).map(|member| (member % 3 * count) as i64 / 2).collect(),
            datatype: super::data::int(),
        }
    }

    fn call(&mut self) -> Call<'_> {
        let (send, receive) = (self.send.as_mut_ptr(), self.receive.as_mut_ptr());
        let (datatype, count) = (&self.datatype, self.count as u64);
        // SAFETY: the test's own memory, which stays until the operation is over.
        let blocks = |base: *mut i32| unsafe { Blocks::equal(Buffer::new(base.cast(), count, datatype)) };
        let reduction = Reduction {
            input: Some(send.cast_const().cast()),
            // SAFETY: the test's own memory, which stays until the operation is over.
            result: unsafe { Buffer::new(receive.cast(), count, datatype) },
            op: Op::Predefined(PredefinedOp::Sum),
        };
        // SAFETY: the test's own memory, which stays until the operation is over.
        let own = Some(unsafe { Buffer::new(send.cast(), count, datatype) });
        match self.kind {
            0 => Call::Barrier,
            1 => Call::Bcast {
                // SAFETY: the test's own memory, which stays until the operation is over.
                buffer: unsafe { Buffer::new(receive.cast(), count, datatype) },
                root: 0,
            },
            2 => Call::Allreduce { reduction },
            3 => Call::Allgather { send: own, receive: blocks(receive) },
            4 => Call::Alltoall { send: Some(blocks(send)), receive: blocks(receive) },
            5 => Call::Scan { reduction, kind: coll::Scan::Inclusive },
            6 => Call::Reduce { reduction, root: 1 },
            _ => Call::ReduceScatter {
                reduction: reduction.of(self.counts.iter().sum::<i64>() as u64),
                counts: &self.counts,
            },
        }
    }

    fn check(&self, me: u32) {
        let (count, me) = (self.count, me as usize);
        let sum = |members: usize, at: usize| (0..members).map(|member| (member * 1000 + at) as i32).sum::<i32>();
        let expected: Vec<i32> = match self.kind {
            0 => return,
            1 => (0..count).map(|at| at as i32).collect(),
            2 => (0..count).map(|at| sum(self.members, at)).collect(),
            6 if me == 1 => (0..count).map(|at| sum(self.members, at)).collect(),
            6 => return,
            3 => (0..count * self.members).map(|at| (at / count * 1000 + at % count) as i32).collect(),
            4 => (0..count * self.members).map(|at| (at / count * 1000 + me * count + at % count) as i32).collect(),
            5 => (0..count).map(|at| sum(me + 1, at)).collect(),
            _ => {
                let start: i64 = self.counts[..me].iter().sum();
                let share = start..start + self.counts[me];
                share.map(|at| sum(self.members, at as usize)).collect()
            }
        };
        assert_eq!(self.receive[..expected.len()], expected, "kind {}", self.kind);
    }
}

/// Computes until an operation is complete: nothing here makes progress.
fn compute_until(is_complete: impl Fn() -> bool) {
    let (mut last, mut computed) = (Instant::now(), Duration::ZERO);
    while !is_complete() {
        let now = Instant::now();
        computed += (now - last).min(LOOK);
        last = now;
        assert!(computed < LIMIT, "nobody goes on");
        thread::yield_now();
    }
}

fn one(group: &Group<'_>, kind: u32, count: usize) {
    let mut trial = Trial::new(kind, count, group);
    // SAFETY: the trial lives until the request is complete.
    let request = unsafe { start(group, &trial.call()) }.expect("memory");
    compute_until(|| request.is_complete());
    assert_eq!(request.status().error, 0);
    request.release(&mut group.rank().enter());
    trial.check(group.me);
}

/// Counts a member that is through, or that has failed, and wakes all ranks.
struct Over<'a> {
    ranks: &'a Ranks,
    all: u32,
    count: &'a AtomicU32,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        for world in 0..self.all {
            wait::wake(self.ranks.rank(world));
        }
    }
}

/// Has members start one operation after the other, while the other ranks wait for all to be over. Nobody leaves
/// earlier: a dedicated worker ends with the rank whose task has it.
fn run(nodes: &[&[u32]], ranks: &Ranks, work: impl Fn(&Group<'_>) + Sync) {
    const CONTEXT: u32 = 1;
    let members = members_of(nodes);
    let all = members + nodes.len() as u32;
    let over = AtomicU32::new(0);
    ranks.run(|rank: &'static Rank| {
        if rank.world_rank() >= members {
            let all_over = || over.load(Ordering::Acquire) == members;
            return wait::until(Owner::for_test(rank), WaitKind::Request, all_over);
        }
        let count = &over;
        let is_over = Over { ranks, all, count };
        let node = rank.node();
        let world: Vec<_> = (0..members).map(|it| node.peer(it)).collect();
        let owner = Owner::for_test(rank);
        let shared = CommShared::of(owner, CONTEXT, &world);
        work(&Group { owner, context: CONTEXT, me: rank.world_rank(), world: &world, shared });
        shared.leave(owner);
        drop(is_over);
        while over.load(Ordering::Acquire) < members {
            thread::yield_now();
        }
    });
}

fn settings(progress: Progress) -> Settings {
    Settings { progress, ..Settings::DEFAULT }
}

/// Short and long messages: with their data and offered, and several pieces of data.
const COUNTS: [usize; 3] = [3, 5000, 150_000];

fn every_kind(group: &Group<'_>) {
    for kind in 0..KINDS {
        for count in COUNTS {
            one(group, kind, count);
        }
    }
}

#[test]
fn waiting_ranks_go_on_with_them() {
    for wait in [WaitMode::Auto, WaitMode::Park, WaitMode::Spin] {
        for network in networks() {
            let settings = Settings { wait, ..settings(Progress::Steal) };
            run(&NODES, &Ranks::new(&NODES, network, settings), every_kind);
        }
    }
}

#[test]
fn threads_and_dedicated_workers_go_on_with_them() {
    for progress in
        [Progress::Thread, Progress::ThreadRendezvous, Progress::Ghost, Progress::Helper, Progress::StealHelper]
    {
        let ranks = Ranks::new(&NODES, networks()[0], settings(progress));
        run(&NODES, &ranks, every_kind);
    }
}

#[test]
fn the_grouping_of_ranks_is_stolen_too() {
    let settings = Settings { reduce_order: ReduceOrder::Ranks, ..settings(Progress::Steal) };
    run(&NODES, &Ranks::new(&NODES, networks()[0], settings), every_kind);
}

#[test]
fn several_are_under_way_at_a_time_while_their_owner_calls_now_and_then() {
    let ranks = Ranks::new(&NODES, networks()[0], settings(Progress::Steal));
    run(&NODES, &ranks, |group| {
        for round in 0..40 {
            let mut trials: Vec<_> =
                (0..KINDS).map(|kind| Trial::new(kind, COUNTS[(round + kind as usize) % 3], group)).collect();
            let requests: Vec<_> = trials
                .iter_mut()
                // SAFETY: the trials live until the requests are complete.
                .map(|trial| unsafe { start(group, &trial.call()) }.expect("memory"))
                .collect();
            for request in requests {
                if (round + group.me as usize).is_multiple_of(3) {
                    wait::until(group.owner, WaitKind::Request, || request.is_complete());
                }
                for _ in 0..round % 4 {
                    wait::progress(group.owner);
                }
                compute_until(|| request.is_complete());
                request.release(&mut group.rank().enter());
            }
            trials.iter().for_each(|trial| trial.check(group.me));
        }
    });
}

#[test]
fn a_member_with_too_little_room_is_told() {
    let ranks = Ranks::new(&NODES, networks()[0], settings(Progress::Steal));
    run(&NODES, &ranks, |group| {
        let mut trial = Trial::new(1, 10, group);
        trial.count = if group.me == 3 { 5 } else { 10 };
        // SAFETY: the trial lives until the request is complete.
        let request = unsafe { start(group, &trial.call()) }.expect("memory");
        compute_until(|| request.is_complete());
        let error = request.status().error;
        assert_eq!(error == cohort_core::Status::TRUNCATE, group.me == 3);
        request.release(&mut group.rank().enter());
    });
}

#[test]
fn leaders_that_compute_have_others_go_on_for_their_nodes() {
    let [usual, _, _, piecemeal] = networks();
    for nodes in [&LARGER[..], &UNEVEN[..]] {
        for network in [usual, piecemeal] {
            let ranks = Ranks::new(nodes, network, settings(Progress::Steal));
            run(nodes, &ranks, every_kind);
        }
    }
}

#[test]
fn only_leaders_have_connections() {
    let ranks = Ranks::new(&LARGER, networks()[0], settings(Progress::Steal));
    run(&LARGER, &ranks, |group| {
        for kind in OF_LEADERS {
            for count in COUNTS {
                one(group, kind, count);
            }
        }
        let node = group.rank().node();
        let mut remote = group.world.iter().filter(|&&peer| node.local(peer).is_none());
        let sends = remote.any(|&peer| is_acquainted(&mut group.rank().enter(), peer));
        let is_leader = [0, 3].contains(&group.me);
        assert_eq!(sends, is_leader);
    });
}

#[test]
fn starts_of_a_persistent_operation_meet_in_a_chain_of_their_own() {
    let ranks = Ranks::new(&UNEVEN, networks()[0], settings(Progress::Steal));
    run(&UNEVEN, &ranks, |group| {
        let operations: Vec<_> = (0..KINDS).map(|_| coll::Repeated::open(group).expect("memory")).collect();
        for round in 0..12 {
            // Each member starts them in an order of its own (their number is even, the factor odd), and others between
            // them.
            let order = |it: u32| (it * (1 + 2 * (group.me % 4)) + round) % KINDS;
            let mut trials: Vec<_> =
                (0..KINDS).map(|it| Trial::new(order(it), COUNTS[round as usize % 3], group)).collect();
            for trial in &mut trials {
                // SAFETY: the trials live until the operations are complete.
                unsafe { operations[trial.kind as usize].start(group.owner, || trial.call()) }.expect("memory");
            }
            one(group, OF_LEADERS[round as usize % OF_LEADERS.len()], 100);
            for operation in &operations {
                compute_until(|| operation.is_complete());
                operation.end(|request| request.release(&mut group.rank().enter()));
            }
            trials.iter().for_each(|trial| trial.check(group.me));
        }
    });
}
