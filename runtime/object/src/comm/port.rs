//! The calls by which two groups of processes that have no communicator in common get one (MPI-5.0, 11.9).

mod contacts;

use super::Comm;
use super::create::Reserved;
use crate::group::Group;
use crate::outside::{self, drawn_between_jobs, group_of, token, words_of};
use crate::ports::remote::{self, is_knocked};
use crate::ports::{self, Side as Told};
use crate::rendezvous::exhausted;
use crate::room::Room;
use crate::{Outcome, blame};
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::spawn::Errand;
use cohort_base::{Peer, WorldRank};
use cohort_engine::Claim;
use cohort_engine::coll::Table;
use cohort_engine::lifecycle::await_port;
use contacts::{CONTACT_MAX, Words};
use core::fmt::{self, Display};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// What both ends of a socket say first (`MPI_Comm_join`).
const GREETING: u64 = 0x006e_696f_6a2d_636f;

/// How long the rest of it may take, once it has begun.
const REST_TIME: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };

impl Comm {
    /// `MPI_Comm_accept`; collective. The member `root` names the port.
    ///
    /// # Errors
    /// `MPI_ERR_PORT`
    pub fn accept(&self, root: u32, port: &str, room: Room) -> Outcome<Self> {
        let side = Side::Accepts(port.contains('@'));
        self.meet_others((root, side), room, |own| {
            let node = self.rank.node();
            // Before a call is taken, whose caller would wait for an answer.
            let mut fresh = self.fresh()?;
            loop {
                let seen = ports::calls();
                if let Some(call) = ports::take(self.rank, port)? {
                    let Drawn { number, occasion, .. } = fresh;
                    let told = Told { members: own.clone(), number, occasion };
                    match call.reply(self.rank, port, told)? {
                        Some(members) => return Ok((members, fresh)),
                        // The lost one may have heard of the number.
                        None => fresh = self.fresh()?,
                    }
                    continue;
                }
                let (opener, at) = ports::own(self.rank, port)?;
                let is_called = |claim: &mut Claim<'_>| {
                    let is_open = !node.has_failed(Peer::local(opener));
                    !is_open || ports::calls() != seen || node.has_network() && is_knocked(claim, opener, at)
                };
                await_port(self.owner(), port, true, is_called);
            }
        })
    }

    /// A number for a communicator with a group that may be of another job.
    fn fresh(&self) -> Outcome<Drawn> {
        let node = self.rank.node();
        if node.bridge().is_none() {
            let number = self.draw().ok_or_else(|| exhausted(node))?;
            return Ok(Drawn::told(number, 0));
        }
        loop {
            let (number, occasion) = (drawn_between_jobs(self.rank), outside::occasion(self.rank));
            if let Some(held) = Reserved::new(node, [number, 0], occasion) {
                return Ok(Drawn { number, occasion, held: Some(held) });
            }
        }
    }

    /// `MPI_Comm_connect`; collective. The member `root` names the port.
    ///
    /// # Errors
    /// `MPI_ERR_PORT`
    pub fn call_at(&self, root: u32, port: &str, room: Room) -> Outcome<Self> {
        let side = Side::Calls(ports::is_far(self.rank, port));
        self.meet_others((root, side), room, |own| {
            if let Some(there) = ports::elsewhere(self.rank, port)? {
                let side = remote::connect(self.rank, there, port, &own)?;
                return Ok((side.members, Drawn::told(side.number, side.occasion)));
            }
            let call = ports::knock(self.rank, port, Told { members: own, number: 0, occasion: 0 })?;
            await_port(self.owner(), port, false, |_| call.answer().is_some() || call.is_over(self.rank.node()));
            match call.answer() {
                Some(side) => Ok((side.members.clone(), Drawn::told(side.number, side.occasion))),
                None => {
                    let what = match call.is_taken() {
                        true => "the process that has accepted the connection has ended",
                        false => "the port was closed before anybody accepted the connection",
                    };
                    Err(blame(neutral::ERR_PORT, format_args!("{what}")))
                }
            }
        })
    }

    /// `MPI_Comm_join` of a communicator of the caller alone, by a socket whose other end another process has.
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` if the socket fails, the other end is something else, or a process that cannot be reached.
    pub fn join(&self, socket: i32, room: Room) -> Outcome<Self> {
        self.meet_others((0, Side::Calls(false)), room, |_| {
            let node = self.rank.node();
            let number = self.draw().ok_or_else(|| exhausted(node))?;
            let me = node.world_rank(self.rank.peer());
            let own = [GREETING, token(node), me.into(), number.into()];
            let theirs = joined(socket, swap(socket, words(own), None))?;
            let theirs = numbers_of(&theirs);
            if theirs[1] != own[1] {
                return self.join_other_job(socket, theirs[1]);
            }
            // Whether another node has spawned a process of that number, is not known here.
            let is_there = |&other: &WorldRank| {
                other < node.world_size() || node.has_number(other) && node.local(node.peer(other)).is_some()
            };
            let other = WorldRank::try_from(theirs[2]).ok().filter(is_there);
            let Some(other) = other.filter(|_| theirs[3] < u64::from(u32::MAX)) else {
                let what = "its other end says that it is a process which this job does not have";
                return Err(blame(neutral::ERR_OTHER, format_args!("{}", wrong(socket, &what))));
            };
            let other = Group::new(alloc::vec![node.peer(other)], node.peer(other));
            Ok((Words::of(&[], &words_of(self.rank, &other)), Drawn::told(number.max(theirs[3] as u32), 0)))
        })
    }

    /// The same where the other process is of another job: both tell where their nodes are reached, and the one whose
    /// job has the smaller number connects them.
    fn join_other_job(&self, socket: i32, other_job: u64) -> Outcome<(Vec<i32>, Drawn)> {
        let node = self.rank.node();
        let cannot =
            |why: &str| blame(neutral::ERR_OTHER, format_args!("{}", wrong(socket, &outside::reason(why).as_str())));
        // The other end hears of it if this one cannot.
        let contact = outside::run(self.rank, Errand::Listen, "");
        let mut drawn = self.fresh()?;
        let head = [GREETING, self.rank.id().into(), drawn.number.into(), drawn.occasion.into()];
        let mut own = [0; 32 + CONTACT_MAX];
        own[..32].copy_from_slice(&words(head));
        if let Ok((_, text)) = &contact {
            own[32..32 + text.len()].copy_from_slice(text.as_bytes());
        }
        let theirs = joined(socket, swap(socket, own, Some(&REST_TIME)))?;
        contact.map_err(|why| cannot(&why))?;
        let [_, index, number, occasion] = numbers_of(&theirs);
        let text = theirs[32..].split(|&byte| byte == 0).next().and_then(|text| core::str::from_utf8(text).ok());
        let text = text
            .filter(|text| !text.is_empty())
            .ok_or_else(|| cannot("its other end is a process of another job, which no other job can reach"))?;
        let place: Vec<&str> = text.splitn(4, '/').collect();
        let reached = match token(node) < other_job {
            true => outside::run(self.rank, Errand::Reach, text),
            false => outside::run(self.rank, Errand::Await, &place[..place.len().min(3)].join("/")),
        };
        let (first, _) = reached.map_err(|why| cannot(&why))?;
        let other = node.has_number(first.saturating_add(index as u32)).then(|| node.peer(first + index as u32));
        let other =
            other.ok_or_else(|| cannot("its other end says that it is a process which its job does not have"))?;
        if number as u32 > drawn.number {
            drawn = Drawn::told(number as u32, occasion as u32);
        }
        let members = words_of(self.rank, &Group::new(alloc::vec![other], other));
        Ok((Words::of(&[], &members), drawn))
    }

    /// The intercommunicator with the group that the member `root` meets: `meet` gets the own members, as words, and
    /// gives the other ones and the number of the intercommunicator. Collective.
    fn meet_others(
        &self,
        (root, side): (u32, Side),
        room: Room,
        meet: impl FnOnce(Vec<i32>) -> Outcome<(Vec<i32>, Drawn)>,
    ) -> Outcome<Self> {
        let ours = self.numbers(Table::Port, false, room)?.number;
        let own = self.words_of_side(root, matches!(side, Side::Accepts(true) | Side::Calls(true)))?;
        let node = self.rank.node();
        let (mut failure, mut members, mut drawn) = (None, Vec::new(), None);
        let mut told = [neutral::SUCCESS, 0, 0, 0];
        if root == self.me {
            match own.and_then(meet) {
                Ok((theirs, fresh)) => {
                    let words = [theirs.len() as u32, fresh.number, fresh.occasion];
                    told[1..].copy_from_slice(&words.map(u32::cast_signed));
                    members = theirs;
                    drawn = Some(fresh);
                }
                Err(error) => {
                    told[0] = error.code();
                    failure = Some(error);
                }
            }
        }
        self.tell(&mut told, root)?;
        let [code, length, number, occasion] = told;
        if code != neutral::SUCCESS {
            return Err(self.tell_why(code, failure, root));
        }
        members.resize(length as usize, 0);
        self.tell(&mut members, root)?;
        let theirs = Words::read(&members);
        self.reach_all(&theirs, matches!(side, Side::Calls(_)))?;
        let remote = group_of(self.rank, theirs.members())?;
        let number = number.cast_unsigned();
        let held = match drawn.and_then(|drawn| drawn.held) {
            Some(held) => Some(held),
            None => Reserved::new(node, [number, 0], occasion.cast_unsigned()),
        };
        if held.is_none() {
            let what = format_args!("the number drawn for the communicator is in use here; the call can be made again");
            return Err(blame(neutral::ERR_OTHER, what));
        }
        if self.group.intersection(self.rank.peer(), &remote).size() > 0 {
            let what = format_args!("both sides have a process in common");
            return Err(blame(neutral::ERR_COMM, what));
        }
        let local = Self::new(self.rank, ours, self.group.clone(), self.inherited());
        Ok(Self::between(local, number, remote))
    }
}

/// Which side of a connection, and whether the other one may be of another job.
#[derive(Clone, Copy)]
enum Side {
    Accepts(bool),
    Calls(bool),
}

/// The number of a communicator that two groups get.
struct Drawn {
    number: u32,
    /// What tells it from others that might have that number.
    occasion: u32,
    held: Option<Reserved>,
}

impl Drawn {
    /// What the other side has drawn.
    const fn told(number: u32, occasion: u32) -> Self {
        Self { number, occasion, held: None }
    }
}

/// What both ends say, as bytes.
fn words(words: [u64; 4]) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// The words that bytes begin with.
fn numbers_of(bytes: &[u8]) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, place) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(place.try_into().unwrap_or_default());
    }
    words
}

/// What is wrong with a socket.
fn wrong<'a>(socket: i32, why: &'a dyn Display) -> impl Display + 'a {
    struct Wrong<'a>(i32, &'a dyn Display);
    impl Display for Wrong<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "the socket {}: {}", self.0, self.1)
        }
    }
    Wrong(socket, why)
}

/// What the other end of a socket has said.
fn joined<const N: usize>(socket: i32, said: Result<Option<[u8; N]>, Errno>) -> Outcome<[u8; N]> {
    let cannot = |why: &dyn Display| blame(neutral::ERR_OTHER, format_args!("{}", wrong(socket, why)));
    match said {
        Ok(theirs) => theirs.ok_or_else(|| cannot(&"its other end does not call MPI_Comm_join of this MPI")),
        Err(Errno::CONNRESET | Errno::PIPE) => Err(cannot(&"its other end was closed")),
        Err(Errno::TIMEDOUT) => Err(cannot(&"its other end has stopped in the middle of MPI_Comm_join")),
        Err(error) => Err(cannot(&error)),
    }
}

/// Sends bytes by a socket, and takes as many from its other end; `None` if they do not begin with [`GREETING`].
///
/// It waits for the first of them so long, or as long as that takes. Those that do not greet are not waited for.
fn swap<const N: usize>(socket: i32, bytes: [u8; N], first: Option<&Timespec>) -> Result<Option<[u8; N]>, Errno> {
    if socket < 0 {
        return Err(Errno::BADF);
    }
    // SAFETY: the program's own descriptor, which it says is open; one that is not gives an error.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    let mut came = [0; N];
    let (mut sent, mut got) = (0, 0);
    while sent < bytes.len() || got < came.len() {
        let wanted = [(sent, PollFlags::OUT), (got, PollFlags::IN)];
        let wanted = wanted.into_iter().filter(|&(done, _)| done < bytes.len());
        let mut look = [PollFd::new(&socket, wanted.map(|(_, flag)| flag).collect())];
        match poll(&mut look, if got > 0 { Some(&REST_TIME) } else { first }) {
            Ok(0) => return Err(Errno::TIMEDOUT),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        // Not by `write`, whose signal would end the process if the other end is closed.
        sent += moved(send(socket, &bytes[sent..], SendFlags::DONTWAIT | SendFlags::NOSIGNAL))?;
        if got < came.len() {
            match recv(socket, &mut came[got..], RecvFlags::DONTWAIT).map(|(_, length)| length) {
                Ok(0) => return Err(Errno::CONNRESET),
                length => got += moved(length)?,
            }
        }
        let greeted = got.min(8);
        if came[..greeted] != bytes[..greeted] {
            return Ok(None);
        }
    }
    Ok(Some(came))
}

/// How much of it a call has moved that does not wait.
fn moved(length: Result<usize, Errno>) -> Result<usize, Errno> {
    match length {
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        length => length,
    }
}
