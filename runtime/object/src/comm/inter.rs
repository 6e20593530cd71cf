//! The calls that make intercommunicators, and intracommunicators from them (MPI 7.6.2).

use super::Comm;
use super::exchange::integer;
use crate::errhandler::Errhandler;
use crate::group::Group;
use crate::outside::{drawn_between_jobs, group_of, words_of};
use crate::rendezvous::{self, Occasion, exhausted};
use crate::room::Room;
use crate::{Error, Outcome};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_engine::Rank;
use cohort_engine::coll::exchange::{Incoming, Outgoing};
use cohort_engine::coll::{self, Call, Table};
use cohort_engine::datatype::Buffer;

/// What a leader tells of its group before the members: their number, and a number it drew.
const HEADER: usize = 2;

/// How the two leaders of a new intercommunicator reach each other.
#[derive(Clone, Copy)]
pub struct Bridge<'a> {
    /// A communicator that holds both.
    pub comm: &'a Comm,
    /// The other leader's rank there.
    pub remote_leader: i32,
    /// Tells concurrent calls apart; not negative.
    pub tag: i32,
}

impl Comm {
    /// `MPI_Intercomm_create`; collective over this communicator, the own group, whose member `leader` has a
    /// bridge to the other group's leader, or says why not.
    ///
    /// # Errors
    /// `MPI_ERR_RANK` for a remote leader that the bridge does not have, `MPI_ERR_COMM` when the
    /// groups have a member in common.
    pub fn connect(&self, leader: u32, bridge: Option<Outcome<Bridge<'_>>>, room: Room) -> Outcome<Self> {
        let mut agreed = None;
        let (local, number, remote) = self.heard(leader, bridge, &mut agreed).inspect_err(|error| {
            // The other leader has heard of the number.
            agreed.inspect(|&number| Self::give_up_between(self.rank, number, error));
        })?;
        let local = Self::new(self.rank, local, self.group.clone(), self.inherited());
        Self::between(local, number, remote).if_all_have(room)
    }

    /// The own number and that between the groups of a new intercommunicator, and its other group. `agreed` is what a
    /// leader knows of the number as soon as the other one does.
    fn heard(
        &self,
        leader: u32,
        bridge: Option<Outcome<Bridge<'_>>>,
        agreed: &mut Option<u32>,
    ) -> Outcome<(u32, u32, Group)> {
        let (bridge, mut theirs) = match bridge {
            Some(Err(error)) => (None, Err(error)),
            given => (given.and_then(Result::ok), Ok(Vec::new())),
        };
        let mut numbers = [0; 2];
        if let Some(bridge) = bridge {
            let is_far = bridge.is_far() || self.is_of_several_jobs();
            let between = if is_far { Some(drawn_between_jobs(self.rank)) } else { self.draw() };
            numbers = [between, self.draw_for_own()].map(|drawn| drawn.map_or(0, |number| number as i32));
            let number = if numbers.contains(&0) { 0 } else { numbers[0] };
            let mut ours = vec![self.size() as i32, number];
            ours.extend(words_of(self.rank, &self.group));
            theirs = bridge.swap(&mut ours).and_then(|theirs| {
                // Both leaders see when one of them is short of numbers.
                let is_short = |list: &[i32]| list[1] == 0;
                match is_short(&ours) || is_short(&theirs) {
                    true => Err(exhausted(self.rank.node())),
                    false => Ok(theirs),
                }
            });
            *agreed = theirs.as_ref().ok().map(|theirs| numbers[0].max(theirs[1]).cast_unsigned());
        }
        // The others learn of the leader's failure as of everything else.
        let mut outcome = match &theirs {
            Ok(theirs) => [neutral::SUCCESS, theirs.len() as i32, numbers[0], numbers[1]],
            Err(error) => [error.code(), 0, 0, 0],
        };
        self.tell(&mut outcome, leader)?;
        let [failure, length, our_number, local] = outcome;
        if failure != neutral::SUCCESS {
            return Err(failure.into());
        }
        let mut theirs = theirs?;
        theirs.resize(length as usize, 0);
        self.tell(&mut theirs, leader)?;
        let remote = group_of(self.rank, &theirs[HEADER..])?;
        let me = self.rank.peer();
        if self.group.intersection(me, &remote).size() > 0 {
            return Err(neutral::ERR_COMM.into());
        }
        Ok((local.cast_unsigned(), our_number.max(theirs[1]).cast_unsigned(), remote))
    }

    /// Broadcasts integers of member `from`.
    pub(super) fn tell(&self, list: &mut [i32], from: u32) -> Outcome<()> {
        let integer = integer()?;
        // SAFETY: the list is borrowed until the call returns.
        let list = unsafe { Buffer::new(list.as_mut_ptr().cast(), list.len() as u64, &integer) };
        coll::run_within(&self.collective(), Table::Object, &Call::Bcast { buffer: list, root: from })?;
        Ok(())
    }

    /// `MPI_Intercomm_create_from_groups` for `rank`, a member of `group`; collective over both groups.
    /// `remote` is given by the member `leader`: the other group, and its leader's rank in it, or why it has none.
    ///
    /// # Errors
    /// `MPI_ERR_GROUP` when the groups have a member in common.
    pub fn connect_groups(
        rank: &'static Rank,
        (group, leader): (&Group, u32),
        remote: Option<Outcome<(Group, u32)>>,
        tag: &str,
        errhandler: Errhandler,
        room: Room,
    ) -> Outcome<Self> {
        let local = Self::from_group(rank, group, tag, errhandler, Room::There);
        let mut theirs = Vec::new();
        let (remote, mut number) = match remote {
            Some(Err(error)) => (None, Err(error)),
            given => (given.and_then(Result::ok), Ok(0)),
        };
        if let Some((remote, remote_leader)) = remote {
            let mut leaders = vec![group.members()[leader as usize], remote.members()[remote_leader as usize]];
            if rank.node().comes_first(leaders[1], leaders[0]) {
                leaders.swap(0, 1);
            }
            let occasion = Occasion::FromGroups { tag: String::from(tag), leaders: leaders.clone() };
            number = match leaders[0] == leaders[1] {
                // It is told below that the groups have it in common.
                true => {
                    rendezvous::number(rank, occasion, &leaders).and_then(|(number, passed)| passed.map(|()| number))
                }
                // The other group hears of it if this one has no communicator.
                false => {
                    rendezvous::number_if(local.as_ref().map(drop).map_err(Clone::clone), rank, &occasion, &leaders)
                }
            };
            theirs.extend(words_of(rank, &remote));
        }
        let local = local?;
        // The others learn of the leader's failure as of everything else.
        let (known, why) = match &number {
            Ok(number) => (number.cast_signed(), neutral::SUCCESS),
            Err(error) => (0, error.code()),
        };
        let mut told = [known, theirs.len() as i32, why];
        let heard = local.tell(&mut told, leader);
        let [told, length, why] = told;
        // The other leader has heard of the number.
        let give_up = |error: &Error| {
            if let Ok(number @ 1..) = &number {
                Self::give_up_between(rank, *number, error);
            }
        };
        heard.inspect_err(give_up)?;
        if told == 0 {
            local.release();
            return Err(number.err().unwrap_or_else(|| match why {
                neutral::ERR_OTHER => exhausted(rank.node()),
                why => why.into(),
            }));
        }
        theirs.resize(length as usize, 0);
        local.tell(&mut theirs, leader).inspect_err(give_up)?;
        let remote = group_of(rank, &theirs)?;
        if group.intersection(rank.peer(), &remote).size() > 0 {
            local.release();
            return Err(neutral::ERR_GROUP.into());
        }
        // The local communicator becomes the intercommunicator's own group.
        let made = Self::between(local, told as u32, remote);
        made.if_all_have(room)
    }

    /// `MPI_Intercomm_merge`; collective over both groups, each of which says whether it wants to come last.
    ///
    /// # Errors
    /// `MPI_ERR_COMM` if this is no intercommunicator.
    pub fn merge(&self, high: bool, room: Room) -> Outcome<Self> {
        if !self.is_inter {
            return Err(neutral::ERR_COMM.into());
        }
        let numbers = self.numbers(Table::Merge, false, room)?;
        // As the first member of each group wishes.
        let wish = i32::from(high && self.me == 0);
        let ([our_wish], their_wish) = self.largest(Table::Merge, [wish])?;
        let [their_wish] = their_wish.unwrap_or_default();
        // Any order will do when both wish the same, if only both sides choose the same.
        let (ours, theirs) = (self.group.members()[0], self.peers.members()[0]);
        let we_come_first = match our_wish == their_wish {
            true => self.rank.node().comes_first(ours, theirs),
            false => our_wish < their_wish,
        };
        let me = self.rank.peer();
        let group = match we_come_first {
            true => self.group.union(me, &self.peers),
            false => self.peers.union(me, &self.group),
        };
        let handler = self.inherited();
        Ok(Self::new(self.rank, numbers.number, group, handler))
    }
}

impl Bridge<'_> {
    /// Whether the other leader is of another job.
    fn is_far(&self) -> bool {
        let peer = self.comm.peer(self.remote_leader);
        peer.is_some_and(|peer| self.comm.rank.node().is_foreign(peer))
    }

    /// Sends the list to the other leader and returns the other's.
    fn swap(&self, ours: &mut [i32]) -> Outcome<Vec<i32>> {
        let peer = self.comm.peer(self.remote_leader).ok_or(neutral::ERR_RANK)?;
        let integer = integer()?;
        let elements =
            // SAFETY: such a list, all of which outlive the exchange.
            |list: &mut [i32]| unsafe { Buffer::new(list.as_mut_ptr().cast(), list.len() as u64, &integer) };
        let (channel, tag) = (self.comm.channel(), self.tag);
        let outgoing = |list: &mut [i32]| Outgoing { to: peer, tag, data: elements(list) };
        let incoming =
            |list: &mut [i32]| Incoming { from: peer, member: self.remote_leader as u32, tag, data: elements(list) };
        let mut length = [0];
        let mut our_length = [ours.len() as i32];
        channel.exchange([outgoing(&mut our_length)], [incoming(&mut length)])?;
        let mut theirs = vec![0; length[0] as usize];
        channel.exchange([outgoing(ours)], [incoming(&mut theirs)])?;
        Ok(theirs)
    }
}
