//! Collectives among nodes whose members start them and never call again: ranks that wait for something else go on with them.

use crate::coll::{Blocks, Call, Group, Reduction, start};
use crate::datatype::{Layout, TypeRef};
use crate::net::tests::{Ranks, networks};
use crate::op::{Op, PredefinedOp};
use crate::request::RequestRef;
use crate::wait::{self, WaitKind};
use crate::{Rank, coll};
use cohort_base::settings::{Progress, ReduceOrder, Settings, WaitMode};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::thread;
use std::time::Instant;
use std::vec;
use std::vec::Vec;

/// Two nodes of two members, and one more rank each.
const NODES: [&[u32]; 2] = [&[0, 2, 4], &[1, 3, 5]];
const MEMBERS: u32 = 4;

/// Longest time that members compute: far more than the operations take.
const LIMIT: Duration = Duration::from_secs(60);

/// One operation of every kind with several stages, and the result.
struct Trial {
    kind: u32,
    count: usize,
    send: Vec<i32>,
    receive: Vec<i32>,
    datatype: TypeRef,
}

const KINDS: u32 = 6;

impl Trial {
    fn new(kind: u32, count: usize, me: u32) -> Self {
        let members = MEMBERS as usize;
        let value = |at: usize| (me as usize * 1000 + at) as i32;
        let mut receive = vec![-1; count * members];
        if kind == 1 && me == 0 {
            receive = (0..count * members).map(value).collect();
        }
        Self {
            kind,
            count,
            send: (0..count * members).map(value).collect(),
            receive,
            datatype: super::data::int(),
        }
    }

    fn call(&mut self) -> Call<'_> {
        let (send, receive) = (self.send.as_mut_ptr(), self.receive.as_mut_ptr());
        let (datatype, count) = (&self.datatype, self.count as u64);
        let blocks = |base: *mut i32| Blocks::Equal {
            base: base.cast(),
            count,
            datatype,
        };
        let reduction = Reduction {
            input: Some(send.cast_const().cast()),
            output: receive.cast(),
            count,
            datatype,
            op: Op::Predefined(PredefinedOp::Sum),
        };
        let own = Some(Layout::new(send.cast(), count, datatype));
        match self.kind {
            0 => Call::Barrier,
            1 => Call::Bcast {
                buffer: Layout::new(receive.cast(), count, datatype),
                root: 0,
            },
            2 => Call::Allreduce { reduction },
            3 => Call::Allgather {
                send: own,
                receive: blocks(receive),
            },
            4 => Call::Alltoall {
                send: Some(blocks(send)),
                receive: blocks(receive),
            },
            _ => Call::Scan {
                reduction,
                kind: coll::Scan::Inclusive,
            },
        }
    }

    fn check(&self, me: u32) {
        let (count, me) = (self.count, me as usize);
        let sum = |members: usize, at: usize| {
            (0..members)
                .map(|member| (member * 1000 + at) as i32)
                .sum::<i32>()
        };
        let expected: Vec<i32> = match self.kind {
            0 => return,
            1 => (0..count).map(|at| at as i32).collect(),
            2 => (0..count).map(|at| sum(MEMBERS as usize, at)).collect(),
            3 => (0..count * 4)
                .map(|at| (at / count * 1000 + at % count) as i32)
                .collect(),
            4 => (0..count * 4)
                .map(|at| (at / count * 1000 + me * count + at % count) as i32)
                .collect(),
            _ => (0..count).map(|at| sum(me + 1, at)).collect(),
        };
        assert_eq!(
            self.receive[..expected.len()],
            expected,
            "kind {}",
            self.kind
        );
    }
}

/// Computes until the request is complete: nothing here makes progress.
fn compute_until(request: RequestRef) {
    let since = Instant::now();
    while !request.is_complete() {
        assert!(since.elapsed() < LIMIT, "nobody goes on");
        thread::yield_now();
    }
}

fn one(group: &Group<'_>, kind: u32, count: usize) {
    let mut trial = Trial::new(kind, count, group.me);
    // SAFETY: the trial lives until the request is complete.
    let request = unsafe { start(group, &trial.call()) }.expect("memory");
    compute_until(request);
    assert_eq!(request.status().error, 0);
    request.release(&mut group.rank.enter());
    trial.check(group.me);
}

/// Counts a member that is through, or that has failed, and wakes all ranks.
struct Over<'a> {
    ranks: &'a Ranks,
    count: &'a AtomicU32,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        for world in 0..MEMBERS + 2 {
            wait::wake(self.ranks.rank(world));
        }
    }
}

/// Has members start one operation after the other, while the other ranks wait for all to be over. Nobody leaves earlier: a
/// dedicated worker ends with the rank whose task has it.
fn run(ranks: &Ranks, work: impl Fn(&Group<'_>) + Sync) {
    const CONTEXT: u32 = 1;
    let over = AtomicU32::new(0);
    ranks.run(|rank: &'static Rank| {
        if rank.world_rank() >= MEMBERS {
            let all_over = || over.load(Ordering::Acquire) == MEMBERS;
            return wait::until(rank, WaitKind::Request, all_over);
        }
        let count = &over;
        let is_over = Over { ranks, count };
        let node = rank.node();
        let world: Vec<_> = (0..MEMBERS).map(|it| node.peer(it)).collect();
        let shared = node.comm_shared(CONTEXT, &world);
        work(&Group {
            rank,
            context: CONTEXT,
            me: rank.world_rank(),
            world: &world,
            shared,
        });
        shared.leave();
        drop(is_over);
        while over.load(Ordering::Acquire) < MEMBERS {
            thread::yield_now();
        }
    });
}

fn settings(progress: Progress) -> Settings {
    Settings {
        progress,
        ..Settings::DEFAULT
    }
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
            let settings = Settings {
                wait,
                ..settings(Progress::Steal)
            };
            run(&Ranks::new(&NODES, network, settings), every_kind);
        }
    }
}

#[test]
fn threads_and_dedicated_workers_go_on_with_them() {
    for progress in [
        Progress::Thread,
        Progress::ThreadRendezvous,
        Progress::Ghost,
        Progress::Helper,
        Progress::StealHelper,
    ] {
        let ranks = Ranks::new(&NODES, networks()[0], settings(progress));
        run(&ranks, every_kind);
    }
}

#[test]
fn the_grouping_of_ranks_is_stolen_too() {
    let settings = Settings {
        reduce_order: ReduceOrder::Ranks,
        ..settings(Progress::Steal)
    };
    run(&Ranks::new(&NODES, networks()[0], settings), every_kind);
}

#[test]
fn several_are_under_way_at_a_time_while_their_owner_calls_now_and_then() {
    let ranks = Ranks::new(&NODES, networks()[0], settings(Progress::Steal));
    run(&ranks, |group| {
        for round in 0..40 {
            let mut trials: Vec<_> = (0..KINDS)
                .map(|kind| Trial::new(kind, COUNTS[(round + kind as usize) % 3], group.me))
                .collect();
            let requests: Vec<_> = trials
                .iter_mut()
                // SAFETY: the trials live until the requests are complete.
                .map(|trial| unsafe { start(group, &trial.call()) }.expect("memory"))
                .collect();
            for request in requests {
                if (round + group.me as usize).is_multiple_of(3) {
                    wait::until(group.rank, WaitKind::Request, || request.is_complete());
                }
                for _ in 0..round % 4 {
                    wait::progress(group.rank);
                }
                compute_until(request);
                request.release(&mut group.rank.enter());
            }
            trials.iter().for_each(|trial| trial.check(group.me));
        }
    });
}

#[test]
fn a_member_with_too_little_room_is_told() {
    let ranks = Ranks::new(&NODES, networks()[0], settings(Progress::Steal));
    run(&ranks, |group| {
        let mut trial = Trial::new(1, 10, group.me);
        trial.count = if group.me == 3 { 5 } else { 10 };
        // SAFETY: the trial lives until the request is complete.
        let request = unsafe { start(group, &trial.call()) }.expect("memory");
        compute_until(request);
        let error = request.status().error;
        assert_eq!(error == crate::Status::TRUNCATE, group.me == 3);
        request.release(&mut group.rank.enter());
    });
}
