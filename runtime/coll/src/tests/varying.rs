//! Nonblocking collectives whose blocks have any length: many at once, of members that give little and members that
//! give much, in place or not, of elements with gaps, and by members that disagree.

use super::data::{Random, double};
use super::on_node;
use super::small::{begun, end, in_any_group, is_complete};
use crate::{Blocks, Call, Group};
use cohort_base::settings::{Settings, WaitMode};
use cohort_core::Status;
use cohort_core::node::Node;
use cohort_datatype::{Buffer, CountForm, Type, TypeRef, resized};
use core::time::Duration;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::vec;
use std::vec::Vec;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gather,
    Scatter,
    Allgather,
    Alltoall,
}

const KINDS: [Kind; 4] = [Kind::Gather, Kind::Scatter, Kind::Allgather, Kind::Alltoall];

/// Elements of blocks on both sides of what an entry and a row take; the last ones are long.
const COUNTS: [usize; 12] = [0, 1, 2, 5, 6, 7, 40, 300, 512, 513, 4200, 20_000];

fn value(from: usize, number: usize, at: usize) -> f64 {
    (from * 100_000 + number * 7 + at) as f64
}

/// One member's side of its blocks: counts, places and memory.
struct Side {
    counts: Vec<i64>,
    places: Vec<i64>,
    data: Vec<f64>,
    types: Vec<TypeRef>,
    is_typed: bool,
    /// Elements of `data` for one of the type.
    stride: usize,
}

impl Side {
    /// Blocks of these counts with an element between each two, in the reverse order of members if told so.
    fn new(counts: &[usize], (is_typed, has_gaps, is_reverse): (bool, bool, bool)) -> Self {
        let (stride, datatype) = match has_gaps {
            false => (1, double()),
            true => (2, resized(&double(), 0, 16, CountForm::Int).expect("a type")),
        };
        let mut places = vec![0; counts.len()];
        let mut next = 1;
        let mut place = |member: usize| {
            places[member] = next as i64;
            next += counts[member] + 1;
        };
        match is_reverse {
            true => (0..counts.len()).rev().for_each(&mut place),
            false => (0..counts.len()).for_each(&mut place),
        }
        let data = vec![-1.0; (next + 1) * stride];
        let counts: Vec<_> = counts.iter().map(|&it| it as i64).collect();
        let bytes = (stride * 8) as i64;
        if is_typed {
            places.iter_mut().for_each(|it| *it *= bytes);
        }
        let types = counts.iter().map(|_| datatype.clone()).collect();
        Self { counts, places, data, types, is_typed, stride }
    }

    fn first(&self, member: usize) -> usize {
        let place = self.places[member] as usize;
        if self.is_typed { place / 8 } else { place * self.stride }
    }

    /// The elements of a member's block.
    fn block(&self, member: usize) -> impl Iterator<Item = usize> + use<> {
        let (first, stride) = (self.first(member), self.stride);
        (0..self.counts[member] as usize).map(move |at| first + at * stride)
    }

    fn blocks(&mut self) -> Blocks<'static> {
        // SAFETY: the test's own memory, which stays until the operation is over.
        unsafe {
            let lists: (&'static [i64], &'static [i64]) = (
                core::slice::from_raw_parts(self.counts.as_ptr(), self.counts.len()),
                core::slice::from_raw_parts(self.places.as_ptr(), self.places.len()),
            );
            let types: &'static [TypeRef] = core::slice::from_raw_parts(self.types.as_ptr(), self.types.len());
            let base = self.data.as_mut_ptr().cast();
            match self.is_typed {
                true => Blocks::typed(base, lists, types),
                false => Blocks::varying(base, lists, &types[0]),
            }
        }
    }
}

/// One member's operation of a sequence.
struct One {
    kind: Kind,
    root: usize,
    number: usize,
    in_place: bool,
    /// From whom to whom.
    table: Vec<Vec<usize>>,
    given: Side,
    taken: Side,
}

impl One {
    /// `much`: one in so many blocks is long.
    fn new(random: &mut Random, number: usize, (me, size): (usize, usize), much: u64) -> Self {
        let kind = KINDS[random.below(4) as usize];
        let root = random.below(size as u64) as usize;
        let mut count = || {
            let longest = if random.below(much) == 0 { 12 } else { 10 };
            COUNTS[random.below(longest) as usize]
        };
        let table: Vec<Vec<usize>> = match kind {
            Kind::Alltoall => (0..size).map(|_| (0..size).map(|_| count()).collect()).collect(),
            _ => (0..size).map(|_| vec![count(); size]).collect(),
        };
        let in_place = random.below(4) == 0 && kind != Kind::Alltoall;
        let shape = random.below(6);
        Self::of(kind, root, number, in_place, table, (me, size), shape)
    }

    fn of(
        kind: Kind,
        root: usize,
        number: usize,
        in_place: bool,
        table: Vec<Vec<usize>>,
        (me, size): (usize, usize),
        shape: u64,
    ) -> Self {
        // What a member gives to each, and what it gets of each; of a scatter the table is one of the root's blocks.
        let gives: Vec<usize> = match kind {
            Kind::Scatter => table.iter().map(|it| it[0]).collect(),
            _ => table[me].clone(),
        };
        let takes: Vec<usize> = match kind {
            Kind::Scatter => vec![table[me][0]],
            _ => (0..size).map(|from| table[from][me]).collect(),
        };
        // Members describe the same data in ways of their own.
        let is_typed = (me + number).is_multiple_of(3) && kind == Kind::Alltoall;
        let given = Side::new(&gives, (is_typed, shape == 1, me % 2 == 1));
        let taken = Side::new(&takes, (is_typed, (me + number).is_multiple_of(7), number % 2 == 1));
        let mut one = Self { kind, root, number, in_place, table, given, taken };
        for to in 0..gives.len() {
            let skipped = match kind {
                Kind::Alltoall => 1000 * to,
                Kind::Scatter => 1000 * to,
                _ => 0,
            };
            let places: Vec<_> = one.given.block(to).collect();
            places.iter().enumerate().for_each(|(at, &place)| one.given.data[place] = value(me, number, skipped + at));
        }
        if in_place && kind != Kind::Scatter {
            let places: Vec<_> = one.taken.block(me).collect();
            places.iter().enumerate().for_each(|(at, &place)| one.taken.data[place] = value(me, number, at));
        }
        one
    }

    fn call(&mut self, (me, size): (usize, usize), plain: &Type) -> Call<'static> {
        let (root, at_root) = (self.root as u32, self.root == me);
        let given = self.given.blocks();
        let taken = self.taken.blocks();
        let _ = size;
        // SAFETY: as above.
        let block = unsafe {
            let data = self.given.data.as_mut_ptr().add(self.given.first(0)).cast();
            let datatype: &'static Type = match self.given.stride {
                1 => &*core::ptr::from_ref(plain),
                _ => &*core::ptr::from_ref::<Type>(&self.given.types[0]),
            };
            Buffer::new(data, self.given.counts[0] as u64, datatype)
        };
        let send = (!self.in_place).then_some(block);
        match self.kind {
            Kind::Gather => Call::Gather {
                send: if at_root { send } else { Some(block) },
                receive: at_root.then_some(taken),
                root,
                is_even: false,
            },
            Kind::Scatter => Call::Scatter {
                send: at_root.then_some(given),
                receive: (!at_root || !self.in_place).then(|| taken.block(0)),
                root,
                is_even: false,
            },
            Kind::Allgather => Call::Allgather { send, receive: taken },
            Kind::Alltoall => Call::Alltoall { send: Some(given), receive: taken },
        }
    }

    fn check(&self, (me, size): (usize, usize)) {
        let mut expected = vec![-1.0; self.taken.data.len()];
        let mut put = |slot: usize, from: usize, skipped: usize| {
            let places = self.taken.block(slot).enumerate();
            places.for_each(|(at, place)| expected[place] = value(from, self.number, skipped + at));
        };
        match self.kind {
            Kind::Gather if me != self.root => {
                if self.in_place {
                    put(me, me, 0);
                }
            }
            Kind::Gather | Kind::Allgather => (0..size).for_each(|from| put(from, from, 0)),
            Kind::Scatter if me == self.root && self.in_place => {}
            Kind::Scatter => put(0, self.root, 1000 * me),
            Kind::Alltoall => (0..size).for_each(|from| put(from, from, 1000 * me)),
        }
        let wrong = (0..expected.len()).find(|&at| expected[at] != self.taken.data[at]);
        let (kind, number, table) = (self.kind, self.number, &self.table);
        assert_eq!(wrong, None, "{kind:?} {number} at {me}: {table:?}");
    }
}

/// Begins up to 20 operations before it ends them, in an order of its own. `much`: one in so many blocks is long.
fn take_part(group: &Group<'_>, much: u64) {
    let whom = (group.me as usize, group.world.len());
    let plain = double();
    let mut common = Random::new(whom.1 as u64 + much);
    let mut own = Random::new(1000 + whom.0 as u64);
    for round in 0..60 {
        let many = 1 + common.below(20) as usize;
        let mut all: Vec<_> = (0..many).map(|it| One::new(&mut common, 50 * round + it, whom, much)).collect();
        let mut started: Vec<_> = all
            .iter_mut()
            .map(|it| {
                if own.below(10) == 0 {
                    thread::sleep(Duration::from_micros(own.below(100)));
                }
                Some(begun(group, &it.call(whom, &plain)).expect("a start"))
            })
            .collect();
        let first = own.below(many as u64) as usize;
        for at in 0..many {
            let it = started[(first + at) % many].take().expect("once");
            assert_eq!(end(group, it), Status::SUCCESS);
        }
        all.iter().for_each(|it| it.check(whom));
    }
}

#[test]
fn short_blocks_of_any_length_get_to_their_members() {
    in_any_group(|group| take_part(group, 1_000_000));
}

#[test]
fn members_may_give_little_and_others_much() {
    in_any_group(|group| take_part(group, 30));
    in_any_group(|group| take_part(group, 3));
}

/// Members that give little begin the operation and then compute: those that give much get all the same what they wait
/// for, and so do the others without a call of anybody else.
#[test]
fn an_operation_goes_on_without_calls_of_those_that_give_little() {
    for wait in [WaitMode::Auto, WaitMode::Park] {
        let settings = Settings { wait, ..Settings::DEFAULT };
        let ended = AtomicUsize::new(0);
        on_node(Node::for_test_with(3, settings), |group| {
            let (whom, plain) = ((group.me as usize, 3), double());
            for number in 0..200 {
                let (large, kind) = (number % 3, KINDS[number / 3 % 4]);
                // Long at one member alone, which gets little of all others.
                let table = match kind {
                    Kind::Scatter => vec![vec![3; 3], vec![40_000; 3], vec![7; 3]],
                    _ => (0..3).map(|from| vec![if from == large { 20_000 } else { 2 }; 3]).collect(),
                };
                let waits = match kind {
                    Kind::Gather => (large + 1) % 3,
                    _ => large,
                };
                let mut one = One::of(kind, waits, number, false, table, whom, 0);
                if number / 12 % 2 == 0 && whom.0 == number % 2 {
                    thread::sleep(Duration::from_micros(200));
                }
                let started = begun(group, &one.call(whom, &plain)).expect("a start");
                if whom.0 == waits {
                    assert_eq!(end(group, started), Status::SUCCESS);
                    ended.fetch_add(1, Ordering::SeqCst);
                } else {
                    let since = std::time::Instant::now();
                    while ended.load(Ordering::SeqCst) <= number && since.elapsed() < Duration::from_secs(20) {
                        thread::yield_now();
                    }
                    assert!(ended.load(Ordering::SeqCst) > number, "{kind:?} {number} waits for a call");
                    assert_eq!(end(group, started), Status::SUCCESS);
                }
                one.check(whom);
                crate::barrier(group).expect("a barrier");
            }
        });
    }
}

/// Senders of a gather may be ahead of its root.
#[test]
fn senders_of_any_length_run_ahead() {
    on_node(Node::for_test(3), |group| {
        let (whom, plain) = ((group.me as usize, 3), double());
        let table = |number: usize| (0..3).map(|from| vec![(from + number) % 60; 3]).collect();
        let mut all: Vec<_> = (0..100).map(|it| One::of(Kind::Gather, 1, it, false, table(it), whom, 0)).collect();
        if whom.0 == 1 {
            thread::sleep(Duration::from_millis(2));
        }
        for one in &mut all {
            let started = begun(group, &one.call(whom, &plain)).expect("a start");
            assert!(whom.0 == 1 || is_complete(&started), "a sender waits for nobody");
            assert_eq!(end(group, started), Status::SUCCESS);
            one.check(whom);
        }
        crate::barrier(group).expect("a barrier");
    });
}

/// Who sends more than there is room for, or takes part in something else, is told, or those that wait for it are; and
/// nobody waits for ever.
#[test]
fn members_that_disagree_are_told() {
    for wait in [WaitMode::Auto, WaitMode::Park] {
        let settings = Settings { wait, ..Settings::DEFAULT };
        on_node(Node::for_test_with(3, settings), |group| {
            let (whom, plain) = ((group.me as usize, 3), double());
            for number in 0..4 * 4 * 3 * 6 * 2 {
                let (kind, other) = (KINDS[number % 4], KINDS[number / 4 % 4]);
                let (late, odd) = (number / 16 % 3, 1 + number / 48 % 6);
                let is_odd = odd >> whom.0 & 1 == 1;
                let leaves = |it: Kind| matches!(it, Kind::Scatter);
                if kind == other || leaves(kind) || leaves(other) {
                    continue;
                }
                let count = [2, 20_000][number / 288 % 2];
                let (kind, count) = if is_odd { (other, count) } else { (kind, 1) };
                let mut one = One::of(kind, 0, number, false, vec![vec![count; 3]; 3], whom, 0);
                if whom.0 == late {
                    thread::sleep(Duration::from_micros(200));
                }
                let started = begun(group, &one.call(whom, &plain)).expect("a start");
                let error = end(group, started);
                let is_sender = kind == Kind::Gather && whom.0 != 0;
                let is_told = [Status::NOT_SAME, Status::TRUNCATE].contains(&error);
                assert!(is_told || is_sender && error == Status::SUCCESS, "{kind:?} {number} at {whom:?}: {error}");
            }
        });
    }
}

/// The root of a scatter has chosen that it is long before there is a meeting, and others look meanwhile.
#[test]
fn a_root_chooses_while_others_look() {
    for wait in [WaitMode::Auto, WaitMode::Park] {
        let settings = Settings { wait, ..Settings::DEFAULT };
        on_node(Node::for_test_with(8, settings), |group| {
            let (whom, plain) = ((group.me as usize, 8), double());
            let table: Vec<Vec<usize>> = (0..8).map(|to| vec![if to == 7 { 5000 } else { to }; 8]).collect();
            for number in 0..4000 {
                let mut one = One::of(Kind::Scatter, number % 7, number, false, table.clone(), whom, 0);
                let started = begun(group, &one.call(whom, &plain)).expect("a start");
                assert_eq!(end(group, started), Status::SUCCESS, "{number} at {whom:?}");
                one.check(whom);
            }
        });
    }
}
