//! The calls that start processes (MPI-5.0, 11.8).
//!
//! The root asks the launcher, which is in the same address space ([`cohort_base::spawn`]), and tells the others what
//! came of it. The children find the numbers of their communicators and their parents in the record of their world, so
//! nobody waits for them here: whoever has called may send to children that have not begun yet.

use super::Comm;
use crate::errhandler::Errhandler;
use crate::group::Group;
use crate::outside;
use crate::rendezvous::exhausted;
use crate::room::Room;
use crate::{Error, Outcome, blame};
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::Peer;
use cohort_base::spawn::{Command, Numbers, Part, REASON_MAX, Request, State};
use cohort_engine::coll::Table;
use cohort_engine::{Rank, lifecycle};
use core::sync::atomic::Ordering::Relaxed;

/// Of the processes of one command.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// How many were asked for.
    pub wanted: u32,
    /// How many were started: fewer only if that is enough.
    pub started: u32,
}

/// What became of a call that starts processes.
pub struct Children {
    /// Joins them with those who have called.
    pub comm: Comm,
    /// How many there are: of each command, or of all together if none is missing.
    pub shares: Vec<Share>,
}

/// What the root learns.
struct Begun {
    /// Where they are, in the order of their world.
    places: &'static [Part],
    between: u32,
    shares: Vec<Share>,
}

impl Comm {
    /// `MPI_Comm_spawn` and `MPI_Comm_spawn_multiple`; collective. The member `root` says what to start, or why not.
    ///
    /// # Errors
    /// `MPI_ERR_SPAWN`, with the launcher's reason; the root's own; of [`Comm::numbers`].
    ///
    /// # Safety
    /// What the commands lead to stays during the call.
    pub unsafe fn spawn(&self, root: u32, commands: Option<Outcome<Vec<Command>>>, room: Room) -> Outcome<Children> {
        if self.is_of_several_jobs() {
            let what =
                format_args!("the communicator has members of several jobs: processes are spawned by those of one");
            return Err(blame(neutral::ERR_SPAWN, what));
        }
        let ours = self.numbers(Table::Spawn, false, room)?.number;
        let mut failure = None;
        let mut told = [neutral::SUCCESS, 0, 0, 0];
        let (mut shares, mut places) = (Vec::new(), Vec::new());
        if let Some(commands) = commands {
            // SAFETY: the caller's promise.
            match commands.and_then(|commands| unsafe { self.ask(&commands) }) {
                Ok(begun) => {
                    let is_whole = begun.shares.iter().all(|share| share.started == share.wanted);
                    let parts = if is_whole { 0 } else { begun.shares.len() as u32 };
                    let words = [begun.between, begun.places.len() as u32, parts];
                    told[1..].copy_from_slice(&words.map(u32::cast_signed));
                    places = begun.places.iter().flat_map(|part| [part.first, part.count]).collect();
                    shares = begun.shares;
                }
                Err(error) => {
                    told[0] = error.code();
                    failure = Some(error);
                }
            }
        }
        self.tell(&mut told, root)?;
        let [code, between, nodes, parts] = told;
        if code != neutral::SUCCESS {
            return Err(self.tell_why(code, failure, root));
        }
        let places = self.tell_words(places, 2 * nodes as usize, root)?;
        let node = self.rank.node();
        let ranges = places.chunks(2).map(|part| Part { first: part[0], count: part[1] }.numbers());
        let children: Vec<Peer> = ranges.flatten().map(|number| node.peer(number)).collect();
        let count = children.len() as u32;
        let remote = Group::new(children, self.rank.peer());
        let local = Self::new(self.rank, ours, self.group.clone(), self.inherited());
        let shares = match parts {
            0 => alloc::vec![Share { wanted: count, started: count }],
            parts => self.tell_shares(shares, parts as usize, root)?,
        };
        Ok(Children { comm: Self::between(local, between.cast_unsigned(), remote), shares })
    }

    /// Tells all members how many processes of each command there are.
    #[cold]
    fn tell_shares(&self, shares: Vec<Share>, length: usize, root: u32) -> Outcome<Vec<Share>> {
        let words = shares.iter().flat_map(|share| [share.wanted, share.started]).collect();
        let words = self.tell_words(words, 2 * length, root)?;
        Ok(words.chunks(2).map(|words| Share { wanted: words[0], started: words[1] }).collect())
    }

    /// Tells all members so many numbers, which `root` gives.
    fn tell_words(&self, words: Vec<u32>, length: usize, root: u32) -> Outcome<Vec<u32>> {
        let mut told: Vec<i32> = words.into_iter().map(u32::cast_signed).collect();
        told.resize(length, 0);
        self.tell(&mut told, root)?;
        Ok(told.into_iter().map(i32::cast_unsigned).collect())
    }

    /// Tells all members why there are no processes, or no connection: whoever ends the job says it.
    #[cold]
    pub(super) fn tell_why(&self, code: i32, failure: Option<Error>, root: u32) -> Error {
        let mut words = [0; REASON_MAX.div_ceil(4)];
        if let Some(failure) = &failure {
            let text = failure.detail().as_bytes();
            for (word, bytes) in words.iter_mut().zip(text.chunks(4)) {
                let mut whole = [0; 4];
                whole[..bytes.len()].copy_from_slice(bytes);
                *word = i32::from_le_bytes(whole);
            }
        }
        let told = self.tell(&mut words, root);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take_while(|&byte| byte != 0).collect();
        let text = match core::str::from_utf8(&bytes) {
            Ok(text) => text,
            // The end of a long one was cut within a letter.
            Err(error) => core::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        };
        match (failure, told) {
            (Some(failure), _) => failure,
            (None, Ok(())) if !text.is_empty() => blame(code, format_args!("{text}")),
            _ => code.into(),
        }
    }

    /// Has the launcher start processes.
    ///
    /// # Safety
    /// As for [`Comm::spawn`].
    unsafe fn ask(&self, commands: &[Command]) -> Outcome<Begun> {
        let drawn = || self.draw().ok_or_else(|| exhausted(self.rank.node()));
        let numbers = Numbers { world: drawn()?, between: drawn()?, children: drawn()? };
        let node = self.rank.node();
        let parents: Vec<u32> = self.group.members().iter().map(|&member| node.world_rank(member)).collect();
        let request = Request::new(self.rank.id(), commands, &parents, numbers);
        // SAFETY: the lists stay until the call returns, and what they lead to by the caller's promise.
        unsafe { lifecycle::ask(self.owner(), &request) }.map_err(refused)?;
        match request.state() {
            State::Granted => Ok(Begun {
                places: request.parts(),
                between: numbers.between,
                // Relaxed: older than the state, which was acquired.
                shares: commands
                    .iter()
                    .map(|it| Share { wanted: it.ranks, started: it.started.load(Relaxed) })
                    .collect(),
            }),
            _ => Err(refused(request.reason())),
        }
    }

    /// The intercommunicator with the processes that have spawned the caller's world (`MPI_Comm_get_parent`).
    pub(crate) fn with_parents(rank: &'static Rank, errhandler: Errhandler) -> Option<Self> {
        let world = rank.world()?;
        let node = rank.node();
        let parents = Group::new(world.parents().iter().map(|&parent| node.peer(parent)).collect(), rank.peer());
        let children = Group::shared(crate::session::everyone(rank), rank.world_rank());
        let local = Self::new(rank, world.numbers.children, children, errhandler);
        let made = Self::between(local, world.numbers.between, parents);
        made.set_name(b"MPI_COMM_PARENT");
        Some(made)
    }

    /// Counts it, or the window or the file whose members meet on it, among what joins its caller's world with others
    /// and needs the connections with other jobs, or no more.
    pub(crate) fn link(&self, more: bool) {
        if self.beyond().next().is_some() {
            self.rank.node().link(self.rank, self.beyond(), more);
            self.use_lines(more);
        }
    }

    fn use_lines(&self, more: bool) {
        let node = self.rank.node();
        if node.bridge().is_some() {
            let mut members: Vec<Peer> = self.group.members().to_vec();
            members.extend_from_slice(self.peers.members());
            outside::use_lines(self.rank, &members, more);
        }
    }

    /// Its members of other worlds than the caller's.
    fn beyond(&self) -> impl Iterator<Item = Peer> {
        let node = self.rank.node();
        let world = self.rank.world();
        // No other world is there.
        let is_alone = world.is_none() && !node.has_network() && node.size() == node.boot().node_ranks;
        let members = self.group.members().iter().chain(self.peers.members());
        let members = members.copied().take_while(move |_| !is_alone);
        members.filter(move |&member| match world {
            Some(world) => !world.contains(node.world_rank(member)),
            None => node.world_rank(member) >= node.world_size(),
        })
    }
}

#[cold]
fn refused(reason: &str) -> Error {
    blame(neutral::ERR_SPAWN, format_args!("{reason}"))
}
