//! The calls by which two groups of processes that have no communicator in common get one (MPI-5.0, 11.9).

use super::Comm;
use crate::group::Group;
use crate::ports::remote::{self, is_knocked};
use crate::ports::{self, Side};
use crate::rendezvous::exhausted;
use crate::room::Room;
use crate::{Error, Outcome, blame};
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::WorldRank;
use cohort_engine::Claim;
use cohort_engine::lifecycle::await_port;
use core::fmt::Display;
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
        self.meet_others(root, room, |own| {
            let node = self.rank.node();
            let number = self.draw().ok_or_else(|| exhausted(node))?;
            let call = loop {
                let seen = ports::calls();
                if let Some(call) = ports::take(self.rank, port)? {
                    break call;
                }
                let (opener, at) = ports::own(self.rank, port)?;
                let is_called = |claim: &mut Claim<'_>| {
                    ports::calls() != seen || node.has_network() && is_knocked(claim, opener, at)
                };
                await_port(self.owner(), port, is_called);
            };
            Ok((call.reply(self.rank, Side { members: own, number })?, number))
        })
    }

    /// `MPI_Comm_connect`; collective. The member `root` names the port.
    ///
    /// # Errors
    /// `MPI_ERR_PORT`
    pub fn call_at(&self, root: u32, port: &str, room: Room) -> Outcome<Self> {
        self.meet_others(root, room, |own| {
            if let Some(there) = ports::elsewhere(self.rank, port)? {
                let side = remote::connect(self.rank, there, port, &own)?;
                return Ok((side.members, side.number));
            }
            let call = ports::knock(self.rank, port, Side { members: own, number: 0 })?;
            await_port(self.owner(), port, |_| call.answer().is_some() || call.is_over());
            match call.answer() {
                Some(side) => Ok((side.members.clone(), side.number)),
                None => {
                    let what = format_args!("the port was closed before anybody accepted the connection");
                    Err(blame(neutral::ERR_PORT, what))
                }
            }
        })
    }

    /// `MPI_Comm_join` of a communicator of the caller alone, by a socket whose other end another process of the job
    /// has; `None` if it is one of another job.
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` if the socket fails, or the other end is something else.
    pub fn join(&self, socket: i32, room: Room) -> Outcome<Option<Self>> {
        let mut other_job = false;
        let made = self.meet_others(0, room, |_| {
            let number = self.draw().ok_or_else(|| exhausted(self.rank.node()))?;
            let node = self.rank.node();
            let me = node.world_rank(self.rank.peer());
            let own = [GREETING, ports::token(node), me.into(), number.into()];
            let wrong = |why: &dyn Display| blame(neutral::ERR_OTHER, format_args!("the socket {socket}: {why}"));
            let theirs = match swap(socket, own) {
                Ok(theirs) => theirs.ok_or_else(|| wrong(&"its other end does not call MPI_Comm_join of this MPI"))?,
                Err(Errno::CONNRESET | Errno::PIPE) => return Err(wrong(&"its other end was closed")),
                Err(Errno::TIMEDOUT) => return Err(wrong(&"its other end has stopped in the middle of MPI_Comm_join")),
                Err(error) => return Err(wrong(&error)),
            };
            if theirs[1] != own[1] {
                other_job = true;
                return Err(neutral::ERR_OTHER.into());
            }
            // Whether another node has spawned a process of that number, is not known here.
            let is_there = |&other: &WorldRank| {
                other < node.world_size() || node.has_number(other) && node.local(node.peer(other)).is_some()
            };
            let other = WorldRank::try_from(theirs[2]).ok().filter(is_there);
            let Some(other) = other.filter(|_| theirs[3] < u64::from(u32::MAX)) else {
                return Err(wrong(&"its other end says that it is a process which this job does not have"));
            };
            Ok((alloc::vec![other], number.max(theirs[3] as u32)))
        });
        match made {
            Err(_) if other_job => Ok(None),
            made => made.map(Some),
        }
    }

    /// The intercommunicator with the group that the member `root` meets: `meet` gets the own members, by their numbers
    /// in the job, and gives the other ones and the number of the intercommunicator. Collective.
    fn meet_others(
        &self,
        root: u32,
        room: Room,
        meet: impl FnOnce(Vec<WorldRank>) -> Outcome<(Vec<WorldRank>, u32)>,
    ) -> Outcome<Self> {
        let ours = self.numbers(false, room)?.number;
        let node = self.rank.node();
        let (mut failure, mut members) = (None, Vec::new());
        let mut told = [neutral::SUCCESS, 0, 0];
        if root == self.me {
            let own = self.group.members().iter().map(|&member| node.world_rank(member));
            match meet(own.collect()) {
                Ok((theirs, number)) => {
                    told[1..].copy_from_slice(&[theirs.len() as i32, number.cast_signed()]);
                    members.extend(theirs.into_iter().map(WorldRank::cast_signed));
                }
                Err(error) => {
                    told[0] = error.code();
                    failure = Some(error);
                }
            }
        }
        self.tell(&mut told, root)?;
        let [code, length, number] = told;
        if code != neutral::SUCCESS {
            return Err(failure.unwrap_or_else(|| Error::from(code)));
        }
        members.resize(length as usize, 0);
        self.tell(&mut members, root)?;
        let theirs = members.into_iter().map(|member| node.peer(member.cast_unsigned()));
        let remote = Group::new(theirs.collect(), self.rank.peer());
        if self.group.intersection(self.rank.peer(), &remote).size() > 0 {
            let what = format_args!("both sides have a process in common");
            return Err(blame(neutral::ERR_COMM, what));
        }
        let local = Self::new(self.rank, ours, self.group.clone(), self.inherited());
        Ok(Self::between(local, number.cast_unsigned(), remote))
    }
}

/// Sends words by a socket, and takes as many from its other end; `None` if they do not begin with [`GREETING`].
///
/// It waits for the first of them as long as that takes. Those that do not greet are not waited for.
fn swap(socket: i32, own: [u64; 4]) -> Result<Option<[u64; 4]>, Errno> {
    if socket < 0 {
        return Err(Errno::BADF);
    }
    // SAFETY: the program's own descriptor, which it says is open; one that is not gives an error.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    let mut bytes = [0; 32];
    for (place, word) in bytes.chunks_exact_mut(8).zip(own) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    let mut came = [0; 32];
    let (mut sent, mut got) = (0, 0);
    while sent < bytes.len() || got < came.len() {
        let wanted = [(sent, PollFlags::OUT), (got, PollFlags::IN)];
        let wanted = wanted.into_iter().filter(|&(done, _)| done < bytes.len());
        let mut look = [PollFd::new(&socket, wanted.map(|(_, flag)| flag).collect())];
        match poll(&mut look, (got > 0).then_some(&REST_TIME)) {
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
    let mut theirs = [0; 4];
    for (word, place) in theirs.iter_mut().zip(came.chunks_exact(8)) {
        *word = u64::from_le_bytes(place.try_into().unwrap_or_default());
    }
    Ok(Some(theirs))
}

/// How much of it a call has moved that does not wait.
fn moved(length: Result<usize, Errno>) -> Result<usize, Errno> {
    match length {
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        length => length,
    }
}
