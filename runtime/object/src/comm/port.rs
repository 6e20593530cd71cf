//! The calls by which two groups of processes that have no communicator in common get one (MPI-5.0, 11.9).

use super::Comm;
use crate::group::Group;
use crate::ports::{self, Side};
use crate::rendezvous::exhausted;
use crate::room::Room;
use crate::{Error, Outcome, blame};
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::{LocalRank, Peer};
use cohort_engine::lifecycle::await_others;
use rustix::fd::BorrowedFd;
use rustix::io::{Errno, read, write};

/// What both ends of a socket say first (`MPI_Comm_join`).
const GREETING: u64 = 0x006e_696f_6a2d_636f;

impl Comm {
    /// `MPI_Comm_accept`; collective. The member `root` names the port.
    ///
    /// # Errors
    /// `MPI_ERR_PORT`
    pub fn accept(&self, root: u32, port: &str, room: Room) -> Outcome<Self> {
        self.meet_others(root, room, |own| {
            let number = self.draw().ok_or_else(|| exhausted(self.rank.node()))?;
            let call = loop {
                let seen = ports::calls();
                if let Some(call) = ports::take(self.rank, port)? {
                    break call;
                }
                await_others(self.owner(), || ports::calls() != seen);
            };
            call.reply(self.rank.node(), Side { members: own, number });
            Ok((call.side().members.clone(), number))
        })
    }

    /// `MPI_Comm_connect`; collective. The member `root` names the port.
    ///
    /// # Errors
    /// `MPI_ERR_PORT`
    pub fn call_at(&self, root: u32, port: &str, room: Room) -> Outcome<Self> {
        self.meet_others(root, room, |own| {
            let call = ports::knock(self.rank, port, Side { members: own, number: 0 })?;
            await_others(self.owner(), || call.answer().is_some() || call.is_over());
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
            let own = [GREETING, ports::token(self.rank.node()), self.rank.id().into(), number.into()];
            let theirs = swap(socket, own).map_err(|error| {
                let what = format_args!("the socket {socket}: {error}");
                blame(neutral::ERR_OTHER, what)
            })?;
            if theirs[0] != GREETING {
                let what = format_args!("the other end of socket {socket} does not call MPI_Comm_join of this MPI");
                return Err(blame(neutral::ERR_OTHER, what));
            }
            if theirs[1] != own[1] || self.rank.node().has_network() {
                other_job = true;
                return Err(neutral::ERR_OTHER.into());
            }
            let members = alloc::vec![theirs[2] as LocalRank];
            Ok((members, number.max(theirs[3] as u32)))
        });
        match made {
            Err(_) if other_job => Ok(None),
            made => made.map(Some),
        }
    }

    /// The intercommunicator with the group that the member `root` meets: `meet` gets the own members, and gives the
    /// other ones and the number of the intercommunicator. Collective.
    fn meet_others(
        &self,
        root: u32,
        room: Room,
        meet: impl FnOnce(Vec<LocalRank>) -> Outcome<(Vec<LocalRank>, u32)>,
    ) -> Outcome<Self> {
        let ours = self.numbers(false, room)?.number;
        let (mut failure, mut members) = (None, Vec::new());
        let mut told = [neutral::SUCCESS, 0, 0];
        if root == self.me {
            let own = self.group.members().iter().map(|member| member.index());
            match meet(own.collect()) {
                Ok((theirs, number)) => {
                    told[1..].copy_from_slice(&[theirs.len() as i32, number.cast_signed()]);
                    members.extend(theirs.into_iter().map(LocalRank::cast_signed));
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
        let theirs = members.into_iter().map(|member| Peer::local(member.cast_unsigned()));
        let remote = Group::new(theirs.collect(), self.rank.peer());
        if self.group.intersection(self.rank.peer(), &remote).size() > 0 {
            let what = format_args!("both sides have a process in common");
            return Err(blame(neutral::ERR_COMM, what));
        }
        let local = Self::new(self.rank, ours, self.group.clone(), self.inherited());
        Ok(Self::between(local, number.cast_unsigned(), remote))
    }
}

/// Sends words by a socket, and takes as many from its other end.
fn swap(socket: i32, own: [u64; 4]) -> Result<[u64; 4], Errno> {
    // SAFETY: the program's own descriptor, which it says is open; one that is not gives an error.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    let mut bytes = [0; 32];
    for (place, word) in bytes.chunks_exact_mut(8).zip(own) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    let mut sent = 0;
    while sent < bytes.len() {
        match write(socket, &bytes[sent..]) {
            Ok(length) => sent += length,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    let mut got = 0;
    while got < bytes.len() {
        match read(socket, &mut bytes[got..]) {
            Ok(0) => return Err(Errno::CONNRESET),
            Ok(length) => got += length,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    let mut theirs = [0; 4];
    for (word, place) in theirs.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(place.try_into().unwrap_or_default());
    }
    Ok(theirs)
}
