//! Sixteen ranks, random destinations, sizes, tags, wildcards, modes and datatypes; all data
//! is verified. Every rank knows the whole schedule, since it follows from the seed.

use crate::datatype::{Buffer, CountForm, TypeRef, predefined, vector};
use crate::offload::Poster;
use crate::wait::{WaitKind, until};
use crate::{Envelope, Node, Owner, Peer, Rank, RequestRef, SendMode, Source, Status, Tag};
use crate::{irecv, isend, lifecycle};
use cohort_base::settings::{Progress, Settings, WaitMode};
use std::collections::HashMap;
use std::vec::Vec;

/// `MPI_BYTE` and `MPI_INT16_T`.
const BYTE: u32 = 0x247;
const INT16: u32 = 0x248;

const RANKS: u32 = 16;
const MESSAGES: u32 = 24;
const LENGTH_MAX: usize = 160_000;

/// A small generator (splitmix64): the same numbers on every run.
struct Random(u64);

impl Random {
    fn of(parts: &[u32]) -> Self {
        let mut random = Self(7);
        for &part in parts {
            random.0 ^= u64::from(part);
            random.next();
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// How the receivers of a phase name what they want.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wildcards {
    None,
    Tag,
    Source,
    Both,
}

const PHASES: [Wildcards; 8] = [
    Wildcards::None,
    Wildcards::Both,
    Wildcards::Tag,
    Wildcards::Source,
    Wildcards::None,
    Wildcards::Source,
    Wildcards::Both,
    Wildcards::Tag,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Message {
    source: u32,
    number: u32,
    to: u32,
    length: usize,
    tag: i32,
    strided: bool,
    synchronous: bool,
}

/// Message `number` of `source` in a phase.
fn message(phase: u32, source: u32, number: u32) -> Message {
    let mut random = Random::of(&[phase, source, number]);
    let limit = [64, 1200, 20_000, LENGTH_MAX][random.below(4)];
    Message {
        source,
        number,
        to: random.below(RANKS as usize) as u32,
        length: random.below(limit) & !1,
        // Few tags where order matters, distinct ones where the tag tells the message.
        tag: if PHASES[phase as usize] == Wildcards::None { random.below(3) as i32 } else { number as i32 },
        strided: random.below(3) == 0,
        synchronous: random.below(4) == 0,
    }
}

fn content(message: &Message) -> Vec<u8> {
    let seed = message.source * 31 + message.number;
    (0..message.length).map(|index| (index as u32 * 11 + seed) as u8).collect()
}

/// The same bytes with gaps: every other pair.
fn spread(dense: &[u8]) -> Vec<u8> {
    dense.chunks(2).flat_map(|pair| [pair[0], pair[1], 0xee, 0xee]).collect()
}

fn byte() -> TypeRef {
    predefined(BYTE).expect("MPI_BYTE").clone()
}

/// `length` bytes in pairs with gaps of the same size.
fn gapped(length: usize) -> TypeRef {
    let pair = predefined(INT16).expect("MPI_INT16_T").clone();
    vector(length as i64 / 2, 1, 2, &pair, CountForm::Int).expect("a valid type")
}

/// A receive in progress and the memory that it writes.
struct Receive {
    request: RequestRef,
    wanted: Message,
    gaps: bool,
    memory: Vec<u8>,
}

struct Player {
    rank: &'static Rank,
    phase: u32,
    random: Random,
    sends: Vec<(RequestRef, Vec<u8>)>,
    receives: Vec<Receive>,
}

impl Player {
    fn context(&self) -> u32 {
        2 * self.phase + 2
    }

    fn start_send(&mut self, message: &Message) {
        let envelope = Envelope { context: self.context(), source: message.source as i32, tag: message.tag };
        let mode = match message.synchronous {
            true => SendMode::Synchronous,
            false => SendMode::Standard,
        };
        let dense = content(message);
        let (data, count, datatype) = if message.strided {
            (spread(&dense), 1, gapped(message.length))
        } else {
            (dense, message.length as u64, byte())
        };
        let to = Peer::local(message.to);
        // SAFETY: the test's own memory, which stays until the operation is over.
        let buffer = unsafe { Buffer::new(data.as_ptr().cast_mut(), count, &datatype) };
        let poster = Poster::of(self.rank, message.length as u64, || self.rank.progress());
        let request = poster.and_then(|mut it| it.isend(buffer, to, envelope, mode)).unwrap_or_else(|| {
            let claim = &mut self.rank.enter();
            isend(claim, buffer, to, envelope, mode).expect("memory")
        });
        self.sends.push((request, data));
    }

    fn start_receive(&mut self, wanted: Message) {
        let kind = PHASES[self.phase as usize];
        let source = Source::Rank { peer: Peer::local(wanted.source), comm_rank: wanted.source as i32 };
        let (source, tag) = match kind {
            Wildcards::None => (source, Tag::Is(wanted.tag)),
            Wildcards::Tag => (source, Tag::Any),
            Wildcards::Source => (Source::Any, Tag::Is(wanted.tag)),
            Wildcards::Both => (Source::Any, Tag::Any),
        };
        let gaps = self.random.below(3) == 0;
        let (mut memory, count, datatype) = if gaps {
            (std::vec![0; 2 * LENGTH_MAX], 1, gapped(LENGTH_MAX))
        } else {
            (std::vec![0; LENGTH_MAX], LENGTH_MAX as u64, byte())
        };
        let context = self.context();
        // SAFETY: the test's own memory, which stays until the operation is over.
        let buffer = unsafe { Buffer::new(memory.as_mut_ptr(), count, &datatype) };
        let poster = Poster::of(self.rank, LENGTH_MAX as u64, || self.rank.progress());
        let request = poster.and_then(|mut it| it.irecv(buffer, source, context, tag)).unwrap_or_else(|| {
            let claim = &mut self.rank.enter();
            irecv(claim, buffer, source, context, tag).expect("memory")
        });
        self.receives.push(Receive { request, wanted, gaps, memory });
    }

    /// Starts everything of the phase in random order, sometimes computing in between.
    fn start(&mut self) {
        let me = self.rank.id();
        let all = |source| (0..MESSAGES).map(move |number| (source, number));
        let messages: Vec<Message> =
            (0..RANKS).flat_map(all).map(|(source, number)| message(self.phase, source, number)).collect();
        let mut sends: Vec<_> = messages.iter().filter(|it| it.source == me).rev().collect();
        let mut receives: Vec<_> = messages.iter().filter(|it| it.to == me).rev().collect();
        while !(sends.is_empty() && receives.is_empty()) {
            if self.random.below(2) == 0 {
                sends.pop().into_iter().for_each(|it| self.start_send(it));
            } else {
                receives.pop().into_iter().for_each(|it| self.start_receive(*it));
            }
            if self.random.below(8) == 0 {
                std::hint::black_box((0..self.random.below(20_000)).sum::<usize>());
            }
        }
    }

    fn finish(&mut self) {
        let (receives, sends) = (&self.receives, &self.sends);
        until(Owner::for_test(self.rank), WaitKind::Request, || {
            receives.iter().all(|it| it.request.is_complete()) && sends.iter().all(|(request, _)| request.is_complete())
        });
        self.verify();
        let receives = self.receives.drain(..).map(|it| it.request);
        let sends = self.sends.drain(..).map(|(request, _)| request);
        for request in receives.chain(sends) {
            request.release(&mut self.rank.enter());
        }
    }

    /// Each receive got a message that it wanted, complete, once, and in order of its source.
    fn verify(&self) {
        let exact = PHASES[self.phase as usize] == Wildcards::None;
        let mut last_numbers = HashMap::new();
        for receive in &self.receives {
            let status = receive.request.status();
            assert_eq!(status.error, Status::SUCCESS);
            // In exact phases the receives were started in the order of the messages.
            let got = match exact {
                true => receive.wanted,
                false => message(self.phase, status.source as u32, status.tag as u32),
            };
            assert_eq!(got.to, self.rank.id());
            assert_eq!((got.source as i32, got.tag), (status.source, status.tag));
            assert_eq!(got.length as i64, status.bytes);
            let expected = content(&got);
            if receive.gaps {
                let untouched = |pair: &[u8]| pair.iter().all(|&byte| byte == 0);
                for (want, have) in expected.chunks(2).zip(receive.memory.chunks(4)) {
                    assert!(have[..2] == *want && untouched(&have[2..]));
                }
            } else {
                assert!(receive.memory[..got.length] == expected, "{got:?}");
            }
            if PHASES[self.phase as usize] != Wildcards::Source {
                let last = last_numbers.insert((got.source, exact.then_some(got.tag)), got.number);
                assert!(last.is_none_or(|last| last < got.number), "{got:?} overtook");
            }
        }
    }
}

fn play(node: &'static Node, id: u32) {
    let mut player =
        Player { rank: node.rank(id), phase: 0, random: Random::of(&[id]), sends: Vec::new(), receives: Vec::new() };
    for phase in 0..PHASES.len() as u32 {
        player.phase = phase;
        player.start();
        player.finish();
    }
}

fn run(progress: Progress, wait: WaitMode, eager_max: usize) {
    let settings = Settings { progress, wait, eager_max, ..Settings::DEFAULT };
    let node = Node::for_test_with(RANKS, settings);
    (0..RANKS).for_each(|id| lifecycle::begin(Owner::for_test(node.rank(id))));
    std::thread::scope(|scope| {
        for id in 0..RANKS {
            scope.spawn(move || play(node, id));
        }
    });
    for id in 0..RANKS {
        lifecycle::end(Owner::for_test(node.rank(id)));
        let claim = node.rank(id).enter();
        // SAFETY: we hold the claim, and all players have left.
        unsafe { claim.heap().check() };
        assert!(!node.rank(id).expected().is_raised(cohort_steal::TaskKind::Net));
    }
}

#[test]
fn stealing_and_parking() {
    run(Progress::Steal, WaitMode::Park, 16 << 10);
}

#[test]
fn stealing_and_waiting_as_the_node_needs_it() {
    run(Progress::Steal, WaitMode::Auto, 16 << 10);
}

#[test]
fn stealing_and_spinning() {
    run(Progress::Steal, WaitMode::Spin, 16 << 10);
}

#[test]
fn parking_alone() {
    run(Progress::None, WaitMode::Park, 16 << 10);
}

#[test]
fn spinning_alone() {
    run(Progress::None, WaitMode::Spin, 16 << 10);
}

#[test]
fn polling_threads() {
    run(Progress::Thread, WaitMode::Auto, 16 << 10);
}

#[test]
fn ghosts_post_long_messages() {
    run(Progress::Ghost, WaitMode::Auto, 16 << 10);
}

#[test]
fn ghosts_post_while_all_poll() {
    run(Progress::Ghost, WaitMode::Spin, 16 << 10);
}

#[test]
fn every_message_by_rendezvous() {
    run(Progress::Steal, WaitMode::Auto, 0);
}
