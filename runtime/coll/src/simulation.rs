//! Collectives of a job of any size without the job: the schedules of the leaders of all its nodes are written as
//! always, and played together without data. That counts messages and steps, and shows that every message is received.

use crate::args::{Call, Reduction};
use crate::memory::reserve;
use crate::schedule::{Endpoint, MemberList, Step};
use crate::write::{ScheduleBuilder, Subgroup, exchange, write_among};
use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use cohort_core::EngineError;
use cohort_core::rank::Rank;
use cohort_datatype::op::{Op, PredefinedOp};
use cohort_datatype::{Buffer, types};

/// A collective among the leaders of all nodes.
#[derive(Clone, Copy, Debug)]
pub enum SimulatedOperation {
    /// `MPI_Barrier`.
    Barrier,
    /// `MPI_Bcast` of so many bytes from the first node.
    Bcast(u64),
    /// `MPI_Allreduce` of so many bytes.
    Allreduce(u64),
    /// `MPI_Allgather` of so many bytes from each node.
    Allgather(u64),
}

/// What it costs.
#[derive(Clone, Debug, Default)]
pub struct Cost {
    /// Messages behind one another, on the longest way.
    pub steps: u32,
    /// Messages that a node sends, or receives if these are more, at most.
    pub messages: u32,
    /// Bytes that a node sends, at most.
    pub bytes: u64,
    /// Nodes that a node exchanges messages with, at most.
    pub partners: usize,
    /// Those of the first node.
    pub partners_of_first: Vec<usize>,
}

/// Plays an operation among so many nodes; `rank` is any rank, whose settings count.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
///
/// # Panics
/// When a message is not received, or is longer than its room.
pub fn play(rank: &Rank, nodes: usize, operation: SimulatedOperation) -> Result<Cost, EngineError> {
    let mut game = Game::default();
    let places: Vec<usize> = (0..nodes).collect();
    for node in 0..nodes {
        let steps = schedule(rank, Subgroup::of(&places, node), operation)?;
        game.players.push(Player::new(steps));
    }
    game.play();
    Ok(game.cost())
}

/// The steps of one node's leader.
fn schedule(rank: &Rank, group: Subgroup<'_>, operation: SimulatedOperation) -> Result<Vec<Move>, EngineError> {
    let endpoint =
        Endpoint { rank, context: 1, me: group.me as u32, tag: 0, members: MemberList::Borrowed(&[]), theirs: 0..0 };
    // SAFETY: a simulation looks at lengths only, never at the data.
    let buffer = |bytes| unsafe { Buffer::of_bytes(core::ptr::null_mut(), bytes) };
    let call = match operation {
        SimulatedOperation::Barrier => Call::Barrier,
        SimulatedOperation::Bcast(bytes) => Call::Bcast { buffer: buffer(bytes), root: 0 },
        SimulatedOperation::Allreduce(bytes) => Call::Allreduce {
            reduction: Reduction {
                input: None,
                // SAFETY: a simulation looks at lengths only, never at the data.
                result: unsafe { Buffer::new(core::ptr::null_mut(), bytes, &types::MPI_UINT8_T) },
                op: Op::Predefined(PredefinedOp::BitOr),
            },
        },
        SimulatedOperation::Allgather(bytes) => {
            let mut schedule = ScheduleBuilder::new(endpoint, None);
            let part = |nodes: core::ops::Range<usize>| buffer(nodes.len() as u64 * bytes);
            exchange(&mut schedule, group, part);
            return moves(schedule);
        }
    };
    let folder = call.folder()?;
    let mut schedule = ScheduleBuilder::new(endpoint, folder);
    write_among(&mut schedule, group, &call, folder.as_ref(), 0)?;
    moves(schedule)
}

/// A step as far as others see it.
#[derive(Clone, Copy)]
enum Move {
    Send { to: usize, bytes: u64 },
    Receive { from: usize, room: u64 },
    Wait,
}

fn moves(schedule: ScheduleBuilder<'_>) -> Result<Vec<Move>, EngineError> {
    let steps = schedule.done().steps;
    let mut moves = reserve(steps.len() + 1)?;
    moves.extend(steps.iter().filter_map(|step| match step {
        Step::Send { to, data, .. } | Step::SendUnlessUnlike { to, data } => {
            Some(Move::Send { to: *to, bytes: data.bytes() })
        }
        Step::Receive { from, into, .. } => Some(Move::Receive { from: *from, room: into.bytes() }),
        Step::Wait => Some(Move::Wait),
        // Operands here are equally long.
        Step::SendIfUnlike { .. } | Step::ReceiveIfUnlike { .. } => None,
        Step::Copy { .. } | Step::Fold { .. } => None,
        Step::ReceiveApart { .. } | Step::Deliver { .. } => unreachable!("no operation here has bundles"),
    }));
    moves.push(Move::Wait);
    Ok(moves)
}

/// A node's leader.
struct Player {
    moves: VecDeque<Move>,
    /// Receives that it has begun since its last wait.
    awaited: Vec<(usize, u64)>,
    /// Messages behind one another up to here.
    clock: u32,
    sent: u32,
    received: u32,
    bytes: u64,
    partners: BTreeSet<usize>,
}

impl Player {
    fn new(moves: Vec<Move>) -> Self {
        Self {
            moves: moves.into(),
            awaited: Vec::new(),
            clock: 0,
            sent: 0,
            received: 0,
            bytes: 0,
            partners: BTreeSet::new(),
        }
    }
}

/// A message on its way: the clock of its sender, and how long it is.
type Sent = (u32, u64);

#[derive(Default)]
struct Game {
    players: Vec<Player>,
    /// Messages by sender and receiver, in order.
    messages: BTreeMap<(usize, usize), VecDeque<Sent>>,
}

impl Game {
    fn play(&mut self) {
        let mut waiting: Vec<usize> = (0..self.players.len()).collect();
        while !waiting.is_empty() {
            let before = waiting.len();
            let mut moved = false;
            waiting.retain(|&player| {
                moved |= self.go_on(player);
                !self.players[player].moves.is_empty()
            });
            assert!(moved || waiting.len() < before, "leaders wait for each other");
        }
        let lost = self.messages.values().map(VecDeque::len).sum::<usize>();
        assert_eq!(lost, 0, "nobody receives some messages");
    }

    /// Takes a player to its next wait that is not over. Says whether it moved.
    fn go_on(&mut self, me: usize) -> bool {
        let mut moved = false;
        while let Some(&next) = self.players[me].moves.front() {
            match next {
                Move::Send { to, bytes } => {
                    let player = &mut self.players[me];
                    let sent = (player.clock, bytes);
                    self.messages.entry((me, to)).or_default().push_back(sent);
                    player.sent += 1;
                    player.bytes += bytes;
                    player.partners.insert(to);
                }
                Move::Receive { from, room } => {
                    self.players[me].awaited.push((from, room));
                    self.players[me].partners.insert(from);
                }
                Move::Wait if self.all_there(me) => self.take(me),
                Move::Wait => return moved,
            }
            self.players[me].moves.pop_front();
            moved = true;
        }
        moved
    }

    /// Whether what a player waits for has been sent.
    fn all_there(&self, me: usize) -> bool {
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for &(from, _) in &self.players[me].awaited {
            *counts.entry(from).or_default() += 1;
        }
        let mut counts = counts.into_iter();
        counts.all(|(from, count)| {
            let sent = self.messages.get(&(from, me));
            sent.is_some_and(|sent| sent.len() >= count)
        })
    }

    fn take(&mut self, me: usize) {
        let player = &mut self.players[me];
        for (from, room) in core::mem::take(&mut player.awaited) {
            let Entry::Occupied(mut sent) = self.messages.entry((from, me)) else {
                panic!("it has been sent");
            };
            let (clock, bytes) = sent.get_mut().pop_front().expect("it has been sent");
            if sent.get().is_empty() {
                sent.remove();
            }
            assert!(bytes <= room, "{bytes} bytes come where {room} fit");
            player.clock = player.clock.max(clock + 1);
            player.received += 1;
        }
    }

    fn cost(&self) -> Cost {
        let players = || self.players.iter();
        let first = self.players.first();
        Cost {
            steps: players().map(|it| it.clock).max().unwrap_or(0),
            messages: players().map(|it| it.sent.max(it.received)).max().unwrap_or(0),
            bytes: players().map(|it| it.bytes).max().unwrap_or(0),
            partners: players().map(|it| it.partners.len()).max().unwrap_or(0),
            partners_of_first: first.map_or(vec![], |it| it.partners.iter().copied().collect()),
        }
    }
}
