//! The calls that make communicators from others or from groups (MPI 7.4.2).

use super::{Comm, Members};
use crate::errhandler::Errhandler;
use crate::group::Group;
use crate::outside;
use crate::rendezvous::{self, Agreement, Occasion, Telling, exhausted};
use crate::room::Room;
use crate::{Error, Outcome};
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::Peer;
use cohort_engine::coll::inter::Intergroup;
use cohort_engine::coll::{self, Roster, Table};
use cohort_engine::datatype::op::PredefinedOp;
use cohort_engine::{Claim, Node, Rank};
use core::sync::atomic::Ordering;

impl Comm {
    /// `MPI_Comm_dup` of the communicator with this handle; collective.
    ///
    /// # Errors
    /// A copy callback's. The members then agree that there is no duplicate.
    pub fn duplicate(&self, handle: u32, room: Room) -> Outcome<Self> {
        let attributes = self.attributes.copied(handle);
        let numbers = self.numbers(Table::Duplicate, attributes.is_err(), room);
        // The callback's error before that of those who only hear of it.
        let (attributes, numbers) = (attributes?, numbers?);
        Ok(Self { attributes, ..self.alike(numbers.number, numbers.local) })
    }

    /// `MPI_Comm_idup` of the communicator with this handle: the same without waiting for the other
    /// members. The duplicate may be used once its numbering is over.
    ///
    /// # Errors
    /// A copy callback's, or what `room` lacks. The other members hear of it when the numbering is over.
    pub fn duplicate_at_once(&self, handle: u32, room: Room) -> Outcome<(Self, Numbering)> {
        let attributes = self.attributes.copied(handle);
        let said = said(attributes.is_err(), room);
        let numbering = self.numbering(said)?;
        let failure = match attributes {
            Ok(attributes) if said == 0 => {
                let mut copy = self.alike(self.number(), self.local_number());
                copy.attributes = attributes;
                return Ok((copy, numbering));
            }
            Ok(_) => self.refused(said),
            Err(error) => error,
        };
        numbering.abandon(&mut self.rank.enter());
        Err(failure)
    }

    /// The same without attributes and topology, as [`Comm::shrink`] makes it where no member can have failed.
    pub(super) fn begin_again(&self) -> Outcome<(Self, Numbering)> {
        let numbering = self.numbering(said(false, Room::There))?;
        Ok((Self { topology: None, ..self.alike(self.number(), self.local_number()) }, numbering))
    }

    /// Begins to agree on the numbers of a nonblocking duplicate.
    fn numbering(&self, said: i32) -> Outcome<Numbering> {
        if let Some(inter) = self.inter() {
            return self.number_between(&inter, said);
        }
        let number = if self.me == 0 { self.draw() } else { Some(0) };
        let said = number.map_or(SHORT, |_| said);
        let vote = [number.unwrap_or(0), said.cast_unsigned()];
        Ok(Numbering::Within(Agreement::by_vote(&self.collective(), vote, PredefinedOp::Max)?))
    }

    /// Begins to agree on the numbers of a nonblocking duplicate of an intercommunicator.
    fn number_between(&self, inter: &Intergroup<'_>, said: i32) -> Outcome<Numbering> {
        let begin =
            |parent, members: &Group| rendezvous::begin(self.rank, Occasion::Duplicate { parent }, members.members());
        let everyone = self.group.union(self.rank.peer(), &self.peers);
        let (vote, op) = ([0, said.cast_unsigned()], PredefinedOp::Max);
        Ok(Numbering::Between {
            number: begin(self.number(), &everyone)?,
            local: begin(self.local_number(), &self.group)?,
            votes: [Agreement::by_vote(&inter.local, vote, op)?, Agreement::by_vote_of_others(inter, vote, op)?],
        })
    }

    /// A communicator with the same groups and topology; `local` is used for intercommunicators only.
    fn alike(&self, number: u32, local: u32) -> Self {
        let own = if self.is_inter { local } else { number };
        let copy = Self::new(self.rank, own, self.group.clone(), self.inherited());
        match self.is_inter {
            true => Self::between(copy, number, self.peers.clone()),
            false => Self { topology: self.topology.clone(), ..copy },
        }
    }

    /// `MPI_Comm_create_from_group`: no parent, only a group, of which `rank` is a member, and
    /// a string that tells concurrent calls apart.
    ///
    /// # Errors
    /// Of [`rendezvous::number`].
    pub fn from_group(
        rank: &'static Rank,
        group: &Group,
        tag: &str,
        errhandler: Errhandler,
        room: Room,
    ) -> Outcome<Self> {
        let occasion = Occasion::FromGroup { tag: tag.into(), members: group.roster().list() };
        let (number, passed) = rendezvous::number(rank, occasion, group.members())?;
        // Who could not tell a dead member the number meets the others all the same: they hear of the failure then.
        Self::new(rank, number, group.clone(), errhandler).if_all_have(room)?.if_passed(passed)
    }

    /// `MPI_Comm_create`; collective. `None` for callers that are not in their `group`, and when one side of
    /// an intercommunicator has no members in the groups given.
    ///
    /// # Errors
    /// `MPI_ERR_GROUP` unless the group is a part of this communicator's (own) group; within one group of members
    /// nobody gets a communicator then.
    pub fn create(&self, group: &Group, room: Room) -> Outcome<Option<Self>> {
        let inside = group.is_part_of(&self.group);
        let made = match self.is_inter {
            true => {
                let me = group.me().filter(|_| inside);
                let color = me.map_or(neutral::UNDEFINED, |_| 0);
                self.split_by(Table::Create, (color, me.unwrap_or(0) as i32), room)?
            }
            // Members may give groups that are disjoint.
            false => {
                let first = group.me().filter(|_| inside).and_then(|_| self.group.rank_of(group.members()[0]));
                let said = said(!inside, room.if_needed(group.me().is_some()));
                let numbers = self.numbers_of_part(Table::Create, [first, None], said);
                if !inside {
                    return Err(neutral::ERR_GROUP.into());
                }
                let numbers = numbers?;
                let make = |_| {
                    let group = group.clone().with_session(self.group.session());
                    Self::new(self.rank, numbers.number, group, self.inherited())
                };
                group.me().map(make)
            }
        };
        if inside { Ok(made) } else { Err(neutral::ERR_GROUP.into()) }
    }

    /// `MPI_Comm_create_group`; collective over `group`, of which the caller is a member. Its messages travel in the
    /// collective context with tags that collectives do not have, and which a collective that fails leaves open: this
    /// is a way to go on without the dead.
    ///
    /// # Errors
    /// `MPI_ERR_GROUP` unless the group is a part of this communicator's; what a member lacks; of messages.
    pub fn create_group(&self, group: &Group, tag: i32, room: Room) -> Outcome<Self> {
        if !group.is_part_of(&self.group) {
            return Err(neutral::ERR_GROUP.into());
        }
        if self.is_revoked() {
            return Err(neutral::MPIX_ERR_REVOKED.into());
        }
        let me = group.me().ok_or(neutral::ERR_GROUP)? as usize;
        // As in messages of the communicator: sources by their rank in it.
        let name = |member| self.group.rank_of(member).map_or(0, |rank| rank as i32);
        let (owner, context, members) = (self.owner(), self.number() * 2 + 1, group.members());
        let telling = Telling { owner, context, tag, me, members, name };
        let said = telling.largest(room.word().cast_unsigned());
        let drawn = said.map(|said| match said {
            0 if me == 0 => self.draw().map_or([0, SHORT.cast_unsigned()], |number| [number, 0]),
            said => [0, said],
        });
        match telling.pass_on(drawn)? {
            ([number, 0], passed) => Self::new(self.rank, number, group.clone(), self.inherited()).if_passed(passed),
            ([_, said], _) => Err(self.refused(said.cast_signed())),
        }
    }

    /// `MPI_Comm_split`; collective. `color` is `MPI_UNDEFINED` or not negative. `None` for callers without a
    /// color, and when the other group of an intercommunicator has nobody with the caller's color.
    ///
    /// # Errors
    /// Of the collectives inside.
    pub fn split(&self, color: i32, key: i32, room: Room) -> Outcome<Option<Self>> {
        self.split_by(Table::Split, (color, key), room)
    }

    /// [`Comm::split`] as a part of another call.
    pub(super) fn split_by(&self, of: Table, (color, key): (i32, i32), room: Room) -> Outcome<Option<Self>> {
        let room = room.if_needed(color != neutral::UNDEFINED);
        if self.rank.node().survives() {
            let (ours, theirs) = self.meet(of, [color, key])?;
            let first = |wishes| with_color(wishes, color).first().map(|&member| member as u32);
            let firsts = if color == neutral::UNDEFINED { [None; 2] } else { [first(&ours), first(&theirs)] };
            let numbers = self.numbers_of_part(of, firsts, room.word())?;
            return Ok(self.part(&ours, &theirs, &numbers));
        }
        let numbers = self.numbers(of, false, room)?;
        if self.is_inter {
            let (ours, theirs) = self.meet(of, [color, key])?;
            return Ok(self.part(&ours, &theirs, &numbers));
        }
        let part = |wishes: &[[i32; 2]]| self.part(wishes, &[], &numbers);
        Ok(coll::view(&self.collective(), Table::Split, [color, key], part)?)
    }

    /// The communicator that the caller gets in a split, when everybody's wishes are known: of the own group's members
    /// and of the other group's.
    fn part(&self, ours: &[[i32; 2]], theirs: &[[i32; 2]], numbers: &Numbers) -> Option<Self> {
        let [color, _] = ours[self.me as usize];
        if color == neutral::UNDEFINED {
            return None;
        }
        let (first, me) = place_among(ours, self.me as usize);
        let members = self.group.members();
        let members = Members { me, first: members[first], list: || chosen(members, with_color(ours, color)) };
        let own = match self.is_inter {
            true => numbers.local,
            false => numbers.number,
        };
        let session = self.group.session();
        let made = || Self::of_members(self.rank, own, members, self.inherited());
        if !self.is_inter {
            return Some(made().derived_from(session));
        }
        let remote = chosen(self.peers.members(), with_color(theirs, color));
        if remote.peers().is_empty() {
            return None;
        }
        let remote = Group::of_others(remote).with_session(session);
        let local = made().derived_from(session);
        Some(Self::between(local, numbers.number, remote))
    }

    /// What [`Comm::split`] makes of everybody's wishes and a number, for tests without the others.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn part_of(&self, wishes: &[[i32; 2]], number: u32) -> Option<Self> {
        let numbers = Numbers { number, local: 0, held: None };
        self.part(wishes, &[], &numbers)
    }

    /// Fresh numbers for a communicator that is made from this one, the same for all members. `failed` says that the
    /// caller cannot make it, `room` what it has. Collective.
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` when somebody failed or has no handle left, or a leader's node no number; `MPI_ERR_NO_MEM`.
    pub(super) fn numbers(&self, of: Table, failed: bool, room: Room) -> Outcome<Numbers> {
        self.agreed_numbers(of, said(failed, room), None)
    }

    /// Fresh numbers for one of several disjoint parts of this communicator, of which the caller knows the first member
    /// of each group. Collective over all. Parts have no common member, and may all use the same numbers; but what
    /// members that survive each other revoke, give up and agree on is known by the number alone.
    fn numbers_of_part(&self, of: Table, firsts: Firsts, said: i32) -> Outcome<Numbers> {
        self.agreed_numbers(of, said, Some(firsts).filter(|_| self.rank.node().survives()))
    }

    /// Numbers for a part with these first members, or the same for all.
    fn agreed_numbers(&self, of: Table, said: i32, firsts: Option<Firsts>) -> Outcome<Numbers> {
        if !self.is_of_several_jobs() {
            return self.drawn_numbers(of, said, firsts).map(|(numbers, _)| numbers);
        }
        loop {
            let (mut numbers, occasion) = self.drawn_numbers(of, said, firsts)?;
            let held = Reserved::new(self.rank.node(), [numbers.number, numbers.local], occasion);
            let ([lacks], theirs) = self.largest(of, [i32::from(held.is_none())])?;
            if lacks == 0 && theirs.is_none_or(|[lacks]| lacks == 0) {
                numbers.held = held;
                return Ok(numbers);
            }
        }
    }

    /// Numbers that may be in use, if members are of several jobs, and what tells those who get them from others.
    fn drawn_numbers(&self, of: Table, said: i32, firsts: Option<Firsts>) -> Outcome<(Numbers, u32)> {
        let mut mine = [said, 0, 0, 0];
        if firsts.map_or(Some(0), |[first, _]| first) == Some(self.me) {
            mine[3] = outside::occasion(self.rank).cast_signed();
            let local = if self.is_inter { self.draw_for_own() } else { Some(0) };
            match self.draw().zip(local) {
                Some((number, local)) => mine[1..3].copy_from_slice(&[number as i32, local as i32]),
                None => mine[0] = SHORT,
            }
        }
        let (ours, theirs) = match firsts {
            None => self.largest(of, mine).map(|(ours, theirs)| (ours, theirs.unwrap_or_default()))?,
            Some(firsts) => {
                let (ours, theirs) = self.meet(of, mine)?;
                (told_by(firsts[0], &ours), told_by(firsts[1], &theirs))
            }
        };
        let is_part = firsts.is_none_or(|[first, _]| first.is_some());
        match ours[0].max(theirs[0]) {
            // Its first member takes another group for the part, in which it is not the first, or not at all.
            0 if is_part && ours[1].max(theirs[1]) == 0 => Err(self.refused(FAILED)),
            0 => {
                let numbers = Numbers { number: ours[1].max(theirs[1]) as u32, local: ours[2] as u32, held: None };
                Ok((numbers, ours[3].max(theirs[3]).cast_unsigned()))
            }
            said => Err(self.refused(said)),
        }
    }

    /// This new communicator, if those have heard of it that were to hear of it from the caller. Otherwise the caller
    /// gives it up: others that know the number would wait for it.
    fn if_passed(self, passed: Outcome<()>) -> Outcome<Self> {
        match passed {
            Ok(()) => Ok(self),
            Err(error) => {
                self.give_up(&error);
                Err(error)
            }
        }
    }

    /// This new communicator, if all its members have room for it; collective over them. Otherwise it ends.
    ///
    /// # Errors
    /// Of [`Room::of_all`], at all members.
    pub(super) fn if_all_have(self, room: Room) -> Outcome<Self> {
        let told = self.largest(Table::Object, [room.word()]);
        let lacks = told.and_then(|([ours], theirs)| {
            let [theirs] = theirs.unwrap_or_default();
            Room::of_word(ours.max(theirs)).of_all(self.rank(), "communicator")
        });
        match lacks {
            Ok(()) => Ok(self),
            Err(error) => {
                if self.is_inter {
                    Self::give_up_between(self.rank, self.number(), &error);
                }
                self.release();
                Err(error)
            }
        }
    }

    /// The error when this is the largest of what the members have [said].
    fn refused(&self, said: i32) -> Error {
        match said {
            SHORT => exhausted(self.rank.node()),
            FAILED => neutral::ERR_OTHER.into(),
            word => {
                let lacks = Room::of_word(word).of_all(self.rank, "communicator");
                lacks.err().unwrap_or_else(|| neutral::ERR_INTERN.into())
            }
        }
    }

    /// A fresh number for a communicator, while this node has any.
    pub(super) fn draw(&self) -> Option<u32> {
        match self.is_of_several_jobs() {
            true => Some(outside::drawn_between_jobs(self.rank)),
            false => self.rank.node().next_context(),
        }
    }

    /// One for the own group of an intercommunicator.
    pub(super) fn draw_for_own(&self) -> Option<u32> {
        outside::drawn_for(self.rank, self.group.members())
    }

    /// Whether it has members of several jobs.
    pub(super) fn is_of_several_jobs(&self) -> bool {
        let node = self.rank.node();
        let is = |group: &Group| outside::is_of_several_jobs(node, group.members());
        is(&self.group) || self.is_inter && is(&self.peers)
    }
}

/// What a member says that cannot take part: a callback has failed.
const FAILED: i32 = 8;

/// The same: its node has no number left.
const SHORT: i32 = 9;

/// What a member says: that it has failed, what it lacks, or 0.
fn said(failed: bool, room: Room) -> i32 {
    if failed { FAILED } else { room.word() }
}

/// The first member of a part of a communicator in the own group, and in the other group of an intercommunicator, if it
/// has any.
type Firsts = [Option<u32>; 2];

/// The words of the first member of a part, with the largest of what all members of the group have [said] in front.
fn told_by(first: Option<u32>, all: &[[i32; 4]]) -> [i32; 4] {
    let [_, drawn @ ..] = first.map_or([0; 4], |first| all[first as usize]);
    let said = all.iter().map(|words| words[0]).max().unwrap_or(0);
    [said, drawn[0], drawn[1], drawn[2]]
}

/// Numbers of communicators of several jobs, which nobody else at this node gets as long as it is there.
pub(super) struct Reserved {
    node: &'static Node,
    numbers: [u32; 2],
}

impl Reserved {
    /// `None` if another communicator has one of them.
    pub(super) fn new(node: &'static Node, numbers: [u32; 2], occasion: u32) -> Option<Self> {
        let mut held = Self { node, numbers: [0; 2] };
        for (place, number) in held.numbers.iter_mut().zip(numbers) {
            if outside::is_shared_number(number) {
                if !outside::reserve(node, number, occasion) {
                    return None;
                }
                *place = number;
            }
        }
        Some(held)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let numbers = self.numbers.into_iter().filter(|&number| number != 0);
        numbers.for_each(|number| outside::give_back(self.node, number));
    }
}

/// The numbers of a new communicator.
pub(super) struct Numbers {
    pub(super) number: u32,
    /// That of the own group of an intercommunicator.
    pub(super) local: u32,
    /// Until the communicator has them.
    held: Option<Reserved>,
}

/// The numbers of a nonblocking duplicate, which are on their way.
#[derive(Debug)]
pub enum Numbering {
    /// Of one group: its number, and what its members say.
    Within(Agreement),
    /// Of an intercommunicator.
    Between {
        /// That of messages between the groups.
        number: Agreement,
        /// That of the own group.
        local: Agreement,
        /// What the members of the own group and of the other one say.
        votes: [Agreement; 2],
    },
}

impl Numbering {
    /// Whether the numbers are there.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        match self {
            Self::Within(vote) => vote.is_complete(),
            Self::Between { number, local, votes } => {
                let votes_are = votes.iter().all(Agreement::is_complete);
                number.is_complete() && local.is_complete() && votes_are
            }
        }
    }

    /// Gives the duplicate its numbers, which are there. Without them it is good for being freed.
    ///
    /// # Errors
    /// What another member lacks; of [`Agreement::number`].
    pub fn settle(&self, duplicate: &Comm) -> Outcome<()> {
        let settled = self.try_to_settle(duplicate);
        if settled.is_err() {
            duplicate.is_void.store(true, Ordering::Relaxed);
        }
        settled
    }

    fn try_to_settle(&self, duplicate: &Comm) -> Outcome<()> {
        let agreed = |said: u32| match said {
            0 => Ok(()),
            said => Err(duplicate.refused(said.cast_signed())),
        };
        match self {
            Self::Within(vote) => {
                vote.came()?;
                let [number, said] = vote.words();
                agreed(said)?;
                duplicate.renumber(number, number);
            }
            Self::Between { number, local, votes } => {
                for vote in votes {
                    vote.came()?;
                    agreed(vote.words()[1])?;
                }
                duplicate.renumber(number.number()?, local.number()?);
            }
        }
        Ok(())
    }

    /// Frees numbers that are there.
    pub fn release(self, claim: &mut Claim<'_>) {
        self.each(|agreement| agreement.release(claim));
    }

    /// Lets go of numbers that may be on their way.
    pub fn abandon(self, claim: &mut Claim<'_>) {
        self.each(|agreement| agreement.abandon(claim));
    }

    fn each(self, mut end: impl FnMut(Agreement)) {
        match self {
            Self::Within(vote) => end(vote),
            Self::Between { number, local, votes } => [number, local].into_iter().chain(votes).for_each(end),
        }
    }
}

/// The members whose wish is this color, by key and then by rank.
fn with_color(wishes: &[[i32; 2]], color: i32) -> Vec<usize> {
    let mut mates: Vec<usize> = (0..wishes.len()).filter(|&member| wishes[member][0] == color).collect();
    // Stable: equal keys keep the order of the parent.
    mates.sort_by_key(|&member| wishes[member][1]);
    mates
}

/// The first of the members with the color of member `me`, and that one's place among them.
fn place_among(wishes: &[[i32; 2]], me: usize) -> (usize, u32) {
    let [color, key] = wishes[me];
    let (mut first, mut before) = (me, 0);
    for (member, wish) in wishes.iter().enumerate() {
        if wish[0] == color && (wish[1], member) < (key, me) {
            before += 1;
            if (wish[1], member) < (wishes[first][1], first) {
                first = member;
            }
        }
    }
    (first, before)
}

fn chosen(members: &[Peer], these: Vec<usize>) -> Roster {
    Roster::new(these.into_iter().map(|index| members[index]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_a_color_know_their_place_in_groups_of_any_size() {
        // Seven colors, keys that go down by steps of several members, and some without a color.
        let wish = |member: i32| match member % 11 {
            0 => [neutral::UNDEFINED, 0],
            _ => [member % 7, -(member / 1000)],
        };
        let wishes: Vec<[i32; 2]> = (0..300_000).map(wish).collect();
        for color in [0, 3, 6] {
            let mates = with_color(&wishes, color);
            for place in [0, 1, 2, mates.len() / 2, mates.len() - 1] {
                let told = place_among(&wishes, mates[place]);
                assert_eq!(told, (mates[0], place as u32));
            }
        }
    }
}
