//! Nonblocking and persistent collectives: they agree with the blocking ones bit for bit,
//! finish in any order, and need no second call of their members.

use super::data::{Random, double};
use super::{on_node, on_nodes, on_nodes_with, placements};
use crate::{Blocks, Call, CommShared, Group, Reduction, Repeated, Scan, run, start};
use cohort_base::settings::{Algorithm, Algorithms, Progress, ReduceOrder, Settings};
use cohort_core::node::Node;
use cohort_core::request::RequestRef;
use cohort_core::wait::{self, WaitKind};
use cohort_datatype::op::{Op, PredefinedOp, UserOp};
use cohort_datatype::{Buffer, Type, TypeRef};
use core::sync::atomic::{AtomicU32, Ordering};
use std::boxed::Box;
use std::vec;
use std::vec::Vec;

/// Kinds of operations below.
const KINDS: u64 = 11;

/// An operation, the same at all members, and one member's buffers for it.
struct Trial {
    kind: u64,
    root: u32,
    in_place: bool,
    by_user: bool,
    counts: Vec<i64>,
    displacements: Vec<i64>,
    send: Vec<f64>,
    receive: Vec<f64>,
    datatype: TypeRef,
}

/// `a op b = a - b / 2`: neither associative nor commutative.
struct Crooked;

impl UserOp for Crooked {
    fn commutative(&self) -> bool {
        false
    }

    unsafe fn call(&self, input: *const u8, inout: *mut u8, count: u64, _: &Type) {
        for index in 0..count as usize {
            // SAFETY: the caller's buffers of doubles.
            unsafe {
                let (a, b) = (input.cast::<f64>().add(index), inout.cast::<f64>().add(index));
                *b = *a - *b / 2.0;
            }
        }
    }
}

impl Trial {
    /// The operation of `seed`, at member `me` of `size`.
    fn new(seed: u64, me: u32, size: u32) -> Self {
        let mut random = Random::new(seed);
        let kind = random.below(KINDS);
        let root = random.below(u64::from(size)) as u32;
        let in_place = random.below(2) == 0 && kind != 0;
        let by_user = random.below(4) == 0;
        let longest = [1, 4, 30, 700, 9000][random.below(5) as usize];
        let varying = random.below(2) == 0;
        let counts: Vec<i64> =
            (0..size).map(|_| if varying { random.below(longest + 1) } else { longest } as i64).collect();
        let displacements = counts
            .iter()
            .scan(0, |sum, count| {
                *sum += count + 1;
                Some(*sum - count - 1)
            })
            .collect();
        let room = counts.iter().sum::<i64>() as usize + counts.len();
        let value = |at: usize| ((me as usize * 7919 + at * 31 + seed as usize) % 1009) as f64 / 7.0;
        Self {
            kind,
            root,
            in_place,
            by_user,
            counts,
            displacements,
            send: (0..room).map(value).collect(),
            receive: (0..room).map(|at| value(at) + 0.1).collect(),
            datatype: double(),
        }
    }

    /// The same with operands whose sum does not depend on the order: among nodes the blocking forms
    /// may fold in another one.
    fn exact(mut self) -> Self {
        self.by_user = false;
        for value in self.send.iter_mut().chain(&mut self.receive) {
            *value = value.floor();
        }
        self
    }

    /// The same operation anew, in the same buffers.
    fn renew(&mut self, other: &Self) {
        self.send.copy_from_slice(&other.send);
        self.receive.copy_from_slice(&other.receive);
    }

    fn buffer(&self, base: *const f64, member: usize) -> Buffer<'_> {
        // SAFETY: the test's own memory, which stays until the operation is over.
        unsafe { Buffer::new(base.cast_mut().cast(), self.counts[member] as u64, &self.datatype) }
    }

    fn are_even(&self) -> bool {
        self.counts.iter().all(|it| *it == self.counts[0])
    }

    fn blocks(&self, base: *const f64) -> Blocks<'_> {
        if self.are_even() {
            // SAFETY: as below; there is room for some elements more.
            return unsafe { Blocks::equal(self.buffer(base, 0)) };
        }
        // SAFETY: the test's own memory, which stays until the operation is over.
        unsafe { Blocks::varying(base.cast_mut().cast(), (&self.counts, &self.displacements), &self.datatype) }
    }

    /// The arguments of member `me`. `receive` is written through its address only.
    fn call(&self, me: u32) -> Call<'_> {
        let (send, receive, root) = (self.send.as_ptr(), self.receive.as_ptr(), self.root);
        let (at_root, own) = (me == root, me as usize);
        let first = self.counts[0] as u64;
        let (outside, is_even) = (!self.in_place, self.are_even());
        let reduction = |may_be_in_place: bool, count: u64| Reduction {
            input: (outside || !may_be_in_place).then_some(send.cast()),
            // SAFETY: the test's own memory, which stays until the operation is over.
            result: unsafe { Buffer::new(receive.cast_mut().cast(), count, &self.datatype) },
            op: match self.by_user {
                true => Op::User(&Crooked),
                false => Op::Predefined(PredefinedOp::Sum),
            },
        };
        match self.kind {
            0 => Call::Barrier,
            1 => Call::Bcast {
                // SAFETY: the test's own memory, which stays until the operation is over.
                buffer: unsafe { Buffer::new(receive.cast_mut().cast(), first, &self.datatype) },
                root,
            },
            2 => Call::Gather {
                send: (outside || !at_root).then(|| self.buffer(send, own)),
                receive: at_root.then(|| self.blocks(receive)),
                root,
                is_even,
            },
            3 => Call::Scatter {
                send: at_root.then(|| self.blocks(send)),
                receive: (outside || !at_root).then(|| self.buffer(receive, own)),
                root,
                is_even,
            },
            4 => Call::Allgather { send: outside.then(|| self.buffer(send, own)), receive: self.blocks(receive) },
            5 => {
                let equal = |base: *const f64| {
                    // SAFETY: the test's own memory, which stays until the operation is over.
                    unsafe {
                        Blocks::equal(Buffer::new(
                            base.cast_mut().cast(),
                            self.counts.iter().copied().min().unwrap_or(0) as u64,
                            &self.datatype,
                        ))
                    }
                };
                Call::Alltoall { send: outside.then(|| equal(send)), receive: equal(receive) }
            }
            6 => Call::Reduce { reduction: reduction(at_root, first), root },
            7 => Call::Allreduce { reduction: reduction(true, first) },
            8 => Call::ReduceScatter {
                reduction: reduction(true, self.counts.iter().sum::<i64>() as u64),
                counts: &self.counts,
            },
            9 => Call::Scan { reduction: reduction(true, first), kind: Scan::Inclusive },
            _ => Call::Scan { reduction: reduction(true, first), kind: Scan::Exclusive },
        }
    }

    /// Bits of the result; in-place reduce-scatter leaves the rest of its buffer undefined.
    fn result(&self, me: u32) -> Vec<u64> {
        let end = match self.kind {
            8 => self.counts[me as usize] as usize,
            _ => self.receive.len(),
        };
        self.receive[..end].iter().map(|value| value.to_bits()).collect()
    }
}

fn finish(group: &Group<'_>, request: RequestRef) {
    wait::until(group.owner, WaitKind::Request, || request.is_complete());
    assert_eq!(request.status().error, cohort_core::Status::SUCCESS);
    request.release(&mut group.rank().enter());
}

/// Waits for a start of a persistent operation and ends it.
fn end(group: &Group<'_>, operation: &Repeated) {
    wait::until(group.owner, WaitKind::Request, || operation.is_complete());
    assert_eq!(operation.status().error, cohort_core::Status::SUCCESS);
    operation.end(|request| request.release(&mut group.rank().enter()));
}

/// What the blocking form gives for the operation of `seed`.
fn reference(group: &Group<'_>, seed: u64) -> Vec<u64> {
    let trial = Trial::new(seed, group.me, group.world.len() as u32);
    run(group, &trial.call(group.me)).expect("blocking");
    trial.result(group.me)
}

fn nodes(rounds: u64) -> impl Iterator<Item = (&'static Node, u64)> {
    let progress = [Progress::Steal, Progress::None, Progress::Thread];
    [1_u32, 2, 3, 5, 8].into_iter().flat_map(move |size| {
        progress.into_iter().map(move |progress| {
            let settings = Settings { progress, collectives: Algorithms::all(Algorithm::Rounds), ..Settings::DEFAULT };
            (Node::for_test_with(size, settings), rounds)
        })
    })
}

#[test]
fn several_at_once_agree_with_the_blocking_form_bit_for_bit() {
    for (node, rounds) in nodes(20) {
        on_node(node, |group| {
            let size = group.world.len() as u32;
            for round in 0..rounds {
                let seeds = 4 * round + 1..4 * round + 5;
                let trials: Vec<_> = seeds.clone().map(|seed| Trial::new(seed, group.me, size)).collect();
                // SAFETY: live buffers, here and below; all requests are complete before they go.
                let begin = |trial: &Trial| unsafe { start(group, &trial.call(group.me)) };
                let mut requests: Vec<_> =
                    trials.iter().map(|trial| Some(begin(trial).expect("nonblocking"))).collect();
                let expected: Vec<_> = seeds.map(|seed| reference(group, seed)).collect();
                for step in 0..4 {
                    // Each member finishes them in an order of its own.
                    let at = (step + group.me as usize + round as usize) % 4;
                    finish(group, requests[at].take().expect("each once"));
                }
                for (trial, expected) in trials.iter().zip(&expected) {
                    assert!(&trial.result(group.me) == expected, "kind {}", trial.kind);
                }
            }
        });
    }
}

#[test]
fn among_nodes_too_several_at_once_and_persistent_ones_in_any_order() {
    for placement in [2, 3, 5, 8].into_iter().flat_map(placements) {
        on_nodes(&placement, |group| {
            let (me, size) = (group.me, group.world.len() as u32);
            for round in 0..15 {
                let new = |seed| Trial::new(seed, me, size).exact();
                let seeds = 4 * round + 1..4 * round + 5;
                let trials: Vec<_> = seeds.clone().map(new).collect();
                let operations: Vec<_> = (0..2).map(|_| Repeated::open(group).expect("an operation")).collect();
                let begin = |at: usize| {
                    let call = || trials[at].call(me);
                    // SAFETY: live buffers, here and below, until the requests are complete.
                    unsafe {
                        match operations.get(at) {
                            Some(it) => it.start(group.owner, call).map(|()| None),
                            None => start(group, &call()).map(Some),
                        }
                    }
                };
                let first = me as usize % 2;
                let order = [first, 1 - first, 2, 3];
                let mut requests: Vec<_> = order.iter().map(|&at| begin(at).expect("nonblocking")).collect();
                let expected: Vec<_> = seeds
                    .map(|seed| {
                        let trial = new(seed);
                        run(group, &trial.call(me)).expect("blocking");
                        trial.result(me)
                    })
                    .collect();
                for step in 0..4 {
                    let at = (step + me as usize + round as usize) % 4;
                    match operations.get(order[at]) {
                        Some(operation) => end(group, operation),
                        None => finish(group, requests[at].take().expect("each once")),
                    }
                }
                for (trial, expected) in trials.iter().zip(&expected) {
                    assert!(&trial.result(me) == expected, "kind {}", trial.kind);
                }
            }
        });
    }
}

/// With an operation that neither commutes nor associates, and sums of fractions.
#[test]
fn in_the_order_of_ranks_results_do_not_depend_on_placement() {
    let settings = Settings { reduce_order: ReduceOrder::Ranks, ..Settings::DEFAULT };
    let seeds = |size| (0..150).filter(move |&seed| Trial::new(seed, 0, size).kind > 5);
    for size in [2, 3, 5, 8] {
        let together = on_node(Node::for_test(size), |group| {
            let results = seeds(size).map(|seed| reference(group, seed));
            results.collect::<Vec<_>>()
        });
        for placement in placements(size) {
            on_nodes_with(&placement, settings, |group| {
                let expected = &together[group.me as usize];
                for (seed, expected) in seeds(size).zip(expected) {
                    let trial = Trial::new(seed, group.me, size);
                    // SAFETY: live buffers until the request is complete.
                    let request = unsafe { start(group, &trial.call(group.me)) };
                    finish(group, request.expect("nonblocking"));
                    assert!(&trial.result(group.me) == expected, "kind {}", trial.kind);
                    let blocking = reference(group, seed);
                    assert!(&blocking == expected, "blocking kind {}", trial.kind);
                }
            });
        }
    }
}

#[test]
fn persistent_ones_start_again_and_in_any_order() {
    for (node, rounds) in nodes(8) {
        on_node(node, |group| {
            let (me, size) = (group.me, group.world.len() as u32);
            for round in 0..rounds {
                let pair: [_; 2] = [2 * round + 1000, 2 * round + 1001].map(|seed| {
                    let operation = Repeated::open(group).expect("an operation");
                    (operation, Box::new(Trial::new(seed, me, size)), reference(group, seed))
                });
                let mut pair = pair;
                for again in 0..3 {
                    let first = (me as usize + again) % 2;
                    let begin = |at: usize, pair: &[(Repeated, Box<Trial>, Vec<u64>); 2]| {
                        // SAFETY: live buffers.
                        unsafe { pair[at].0.start(group.owner, || pair[at].1.call(me)) }.expect("a start")
                    };
                    begin(first, &pair);
                    begin(1 - first, &pair);
                    for (at, (operation, trial, expected)) in pair.iter_mut().enumerate() {
                        end(group, operation);
                        assert!(&trial.result(me) == expected, "kind {}", trial.kind);
                        trial.renew(&Trial::new(2 * round + 1000 + at as u64, me, size));
                    }
                }
            }
        });
    }
}

/// Both members but one post a large reduction and make no further call; the third one, which
/// waits for something else, does their work.
#[test]
fn a_waiting_rank_finishes_what_others_posted() {
    let node = Node::for_test(3);
    let done = AtomicU32::new(0);
    on_node(node, |everyone| {
        let shared = (everyone.me < 2).then(|| CommShared::of(everyone.owner, 77, &everyone.world[..2]));
        if let Some(shared) = shared {
            let pair = Group { context: 77, world: &everyone.world[..2], shared, ..*everyone };
            let datatype = double();
            let input = vec![1.5_f64; 200_000];
            let mut output = vec![0.0_f64; 200_000];
            let call = Call::Allreduce {
                reduction: Reduction {
                    input: Some(input.as_ptr().cast()),
                    // SAFETY: the test's own memory, which stays until the operation is over.
                    result: unsafe { Buffer::new(output.as_mut_ptr().cast(), 200_000, &datatype) },
                    op: Op::Predefined(PredefinedOp::Sum),
                },
            };
            // SAFETY: live buffers until the request is complete.
            let request = unsafe { start(&pair, &call) }.expect("nonblocking");
            while !request.is_complete() {
                std::thread::yield_now();
            }
            request.release(&mut pair.rank().enter());
            assert!(output.iter().all(|&sum| sum.to_bits() == 3.0_f64.to_bits()));
            shared.leave(everyone.owner);
            done.fetch_add(1, Ordering::SeqCst);
            wait::wake(node.rank(2));
        } else {
            wait::until(everyone.owner, WaitKind::Request, || done.load(Ordering::SeqCst) == 2);
        }
    });
}

/// A user's operation is left to the members: a thief would call it on the wrong task.
#[test]
fn a_users_operation_runs_on_members_only() {
    struct Guarded<'a>(&'a [std::thread::ThreadId]);
    impl UserOp for Guarded<'_> {
        fn commutative(&self) -> bool {
            true
        }

        unsafe fn call(&self, input: *const u8, inout: *mut u8, count: u64, datatype: &Type) {
            assert!(self.0.contains(&std::thread::current().id()));
            // SAFETY: the caller's buffers.
            unsafe { Crooked.call(input, inout, count, datatype) };
        }
    }
    let node = Node::for_test(3);
    let done = AtomicU32::new(0);
    on_node(node, |everyone| {
        if everyone.me == 2 {
            let over = || done.load(Ordering::SeqCst) == 2;
            return wait::until(everyone.owner, WaitKind::Request, over);
        }
        let shared = CommShared::of(everyone.owner, 78, &everyone.world[..2]);
        let pair = Group { context: 78, world: &everyone.world[..2], shared, ..*everyone };
        let own = [std::thread::current().id()];
        let (datatype, op) = (double(), Guarded(&own));
        let mut data = vec![2.0_f64; 100_000];
        let call = Call::Allreduce {
            reduction: Reduction {
                input: None,
                // SAFETY: the test's own memory, which stays until the operation is over.
                result: unsafe { Buffer::new(data.as_mut_ptr().cast(), 100_000, &datatype) },
                op: Op::User(&op),
            },
        };
        // SAFETY: live buffers until the request is complete.
        let request = unsafe { start(&pair, &call) }.expect("nonblocking");
        finish(&pair, request);
        assert!(data.iter().all(|&value| value.to_bits() == 1.0_f64.to_bits()));
        shared.leave(everyone.owner);
        done.fetch_add(1, Ordering::SeqCst);
        wait::wake(node.rank(2));
    });
}
