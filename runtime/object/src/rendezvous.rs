//! How processes agree on a communicator's number without a parent that is one group.
//!
//! The node image is one for all ranks of the node, so its statics are shared: the first process
//! that makes a communicator draws the number from the node and leaves it here; each other
//! member takes it when it comes ([`number`]). Calls that have no parent communicator
//! (`MPI_Comm_create_from_group`) need none.
//!
//! Between nodes the first member draws the number. Constructors that block pass it on along a tree, in a context that
//! programs do not use. The number of a nonblocking duplicate is that of the parent's first member, and comes with
//! what all members say: whether one of them has failed or has no room ([`Agreement::by_vote`]). An intercommunicator
//! has no such member, so there the one that comes first in `MPI_COMM_WORLD` tells all others ([`begin`]).
//!
//! MPI demands that the members call in the same order where calls could be mistaken for each
//! other (MPI-4.1, 7.4.2: same communicator; same group and same string), so the n-th call of
//! every member meets the n-th of the others.

use crate::outside::{drawn_for, is_of_several_jobs, name_between_jobs};
use crate::owner_of;
use crate::{Error, Outcome};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::Peer;
use cohort_base::heir::HeirLock;
use cohort_engine::coll;
use cohort_engine::coll::Reduction;
use cohort_engine::coll::inter::Intergroup;
use cohort_engine::datatype::op::{Op, PredefinedOp};
use cohort_engine::datatype::{Buffer, predefined, types};
use cohort_engine::wait::{progress, until_claimed};
use cohort_engine::{Claim, EngineError, Envelope, Node, Owner, Rank, RequestRef, SendMode, Source, Status, Tag};
use cohort_engine::{irecv, isend, send};
use core::ptr::NonNull;

/// What the members of a new communicator have in common before they have a number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Occasion {
    /// A nonblocking duplicate of the communicator with this number.
    Duplicate {
        /// The parent's number.
        parent: u32,
    },
    /// A communicator made from a group.
    FromGroup {
        /// `MPI_Comm_create_from_group`'s string.
        tag: String,
        /// The group.
        members: Arc<[Peer]>,
    },
    /// An intercommunicator made from two groups, whose leaders meet.
    FromGroups {
        /// `MPI_Intercomm_create_from_groups`'s string.
        tag: String,
        /// The leaders, in the order of `MPI_COMM_WORLD`.
        leaders: Vec<Peer>,
    },
}

/// A number that some members have not taken yet.
#[derive(Clone)]
struct Meeting {
    number: u32,
    absent: Vec<Peer>,
}

/// Meetings by their occasion, the oldest first, and by the address of their node, because one image may hold
/// several (in tests).
type Meetings = BTreeMap<(usize, Occasion), Vec<Meeting>>;

static MEETINGS: HeirLock<Meetings> = HeirLock::new(BTreeMap::new());

/// Context of the messages that tell the number to other nodes.
const CONTEXT: u32 = 2;

/// The error of a call that would make a communicator or a window for which there is no number.
#[cold]
pub(crate) fn exhausted(node: &Node) -> Error {
    let each = node.contexts();
    let what = format_args!("no number is left for it: each node can make {each} communicators and windows in a job");
    Error::new(neutral::ERR_OTHER, what)
}

/// The number of the communicator that `members` make on this occasion, and whether those were told that hear of it
/// through `rank`, which is one of them. Waits for it.
///
/// # Errors
/// `MPI_ERR_OTHER` when no number is left; of [`Agreement::number`].
pub fn number(rank: &'static Rank, occasion: Occasion, members: &[Peer]) -> Outcome<(u32, Outcome<()>)> {
    if are_here(rank, members) {
        return Ok((number_within_node(rank, occasion, members)?, Ok(())));
    }
    let (telling, check) = telling(rank, &occasion, members)?;
    let drawn = if telling.me == 0 { drawn_for(rank, members) } else { None };
    let (words, passed) = telling.pass_on(Ok([drawn.unwrap_or(0), check]))?;
    Ok((checked(words, check, rank.node())?, passed))
}

/// The same, if all members say that they can go on; `rank` says whether it can.
///
/// # Errors
/// As there; that of a member which cannot.
pub fn number_if(can: Outcome<()>, rank: &'static Rank, occasion: &Occasion, members: &[Peer]) -> Outcome<u32> {
    let (telling, check) = telling(rank, occasion, members)?;
    let said = telling.largest(can.err().map_or(neutral::SUCCESS, |error| error.code()).cast_unsigned());
    let drawn = said.and_then(|said| match said.cast_signed() {
        neutral::SUCCESS if telling.me == 0 => Ok([drawn_for(rank, members).unwrap_or(0), check]),
        neutral::SUCCESS => Ok([0, check]),
        error => Err(error.into()),
    });
    let (words, passed) = telling.pass_on(drawn)?;
    passed.and_then(|()| checked(words, check, rank.node()))
}

/// How members of this occasion, of whom `rank` is one, hear words of the first of them, and what these are checked by.
fn telling<'a>(
    rank: &'static Rank,
    occasion: &Occasion,
    members: &'a [Peer],
) -> Outcome<(Telling<'a, impl Fn(Peer) -> i32 + use<>>, u32)> {
    let node = rank.node();
    let me = members.iter().position(|&member| member == rank.peer());
    let me = me.ok_or(neutral::ERR_GROUP)?;
    let (tag, check) = occasion.signs(node);
    let telling = Telling { owner: owner_of(rank), context: CONTEXT, tag, me, members, name: names(node, members) };
    Ok((telling, check))
}

/// What envelopes call these processes, the same at all of them: their numbers in the job if they are of one.
fn names(node: &'static Node, members: &[Peer]) -> impl Fn(Peer) -> i32 + use<> {
    let is_mixed = is_of_several_jobs(node, members);
    move |member| match is_mixed {
        false => node.world_rank(member) as i32,
        true => name_between_jobs(node, member),
    }
}

fn are_here(rank: &Rank, members: &[Peer]) -> bool {
    let is_here = |&member: &Peer| rank.node().local(member).is_some();
    members.iter().all(is_here)
}

/// The number that was told with a check.
fn checked([number, check]: [u32; 2], expected: u32, node: &Node) -> Outcome<u32> {
    match number {
        _ if check != expected => Err(neutral::ERR_INTERN.into()),
        0 => Err(exhausted(node)),
        number => Ok(number),
    }
}

/// Messages by which some processes hear words of the first of them, along a binomial tree, or that this cannot be: all
/// of them come to an end, also when some fail.
pub(crate) struct Telling<'a, F> {
    pub(crate) owner: Owner<'a>,
    pub(crate) context: u32,
    pub(crate) tag: i32,
    /// The caller's place among the processes.
    pub(crate) me: usize,
    pub(crate) members: &'a [Peer],
    /// What envelopes call a process.
    pub(crate) name: F,
}

/// Words of the first process.
type Words = [u32; 2];

impl<F: Fn(Peer) -> i32> Telling<'_, F> {
    /// The largest of what the processes say, for the first one; for the others of a part of them. Before
    /// [`Telling::pass_on`], by all.
    ///
    /// # Errors
    /// Of a process of that part, or of its messages.
    pub(crate) fn largest(&self, mine: u32) -> Outcome<u32> {
        let mut told = Ok(mine);
        for child in self.children().rev() {
            let theirs = self.hear(child);
            told = told.and_then(|most| theirs.map(|[theirs, _]| most.max(theirs)));
        }
        if let Some(parent) = self.parent() {
            // One that has failed is noticed when it is to answer.
            let _ = self.tell(parent, &told.clone().map(|most| [most, 0]));
        }
        told
    }

    /// What the first process gives, for all of them, and whether those were told that hear of it through this one:
    /// others have heard of it also when they were not.
    ///
    /// # Errors
    /// What it gives; else of the message that brings it.
    pub(crate) fn pass_on(&self, mine: Outcome<Words>) -> Outcome<(Words, Outcome<()>)> {
        let told = self.parent().map_or(mine, |parent| self.hear(parent));
        let mut passed = Ok(());
        for child in self.children() {
            let sent = self.tell(child, &told);
            passed = passed.and(sent);
        }
        told.map(|words| (words, passed))
    }

    /// Whom it hears from.
    fn parent(&self) -> Option<Peer> {
        (self.me != 0).then(|| self.members[self.me - lowest_bit(self.me)])
    }

    /// Whom it tells, the one with the most others behind it first.
    fn children(&self) -> impl DoubleEndedIterator<Item = Peer> {
        let end = if self.me == 0 { self.members.len().next_power_of_two() } else { lowest_bit(self.me) };
        (0..end.trailing_zeros()).rev().filter_map(|bit| self.members.get(self.me + (1 << bit)).copied())
    }

    fn tell(&self, to: Peer, told: &Outcome<Words>) -> Outcome<()> {
        let (failure, [first, second]) = match told {
            Ok(words) => (neutral::SUCCESS, *words),
            Err(error) => (error.code(), [0; 2]),
        };
        let mut words = [failure.cast_unsigned(), first, second];
        // SAFETY: the words outlive the call.
        let data = unsafe { Buffer::of_bytes(words.as_mut_ptr().cast(), size_of_val(&words) as u64) };
        let source = (self.name)(self.members[self.me]);
        let envelope = Envelope { context: self.context, source, tag: self.tag };
        Ok(send(self.owner, data, to, envelope, SendMode::Standard)?)
    }

    fn hear(&self, peer: Peer) -> Outcome<Words> {
        let mut words = Box::new([0_u32; 3]);
        // SAFETY: the box stays until the receive is over, or for ever.
        let room = unsafe { Buffer::of_bytes((&raw mut *words).cast(), size_of::<[u32; 3]>() as u64) };
        let rank = self.owner.rank();
        let from = Source::Rank { peer, comm_rank: (self.name)(peer) };
        let mut claim = rank.enter();
        let request = irecv(&mut claim, room, from, self.context, Tag::Is(self.tag))?;
        let is_over = |_: &mut Claim<'_>| request.is_complete() || rank.node().has_failed(peer);
        claim = until_claimed(self.owner, claim, &request, is_over);
        if !request.is_complete() {
            // Whatever it had sent before is taken.
            drop(claim);
            progress(self.owner);
            claim = rank.enter();
            request.cancel(&mut claim);
        }
        let status = request.is_complete().then(|| request.status());
        request.release(&mut claim);
        let Some(Status { error, cancelled, .. }) = status else {
            // The dead never end what they have begun to send.
            Box::leak(words);
            return Err(neutral::MPIX_ERR_PROC_FAILED.into());
        };
        let [said, first, second] = *words;
        match [error, said.cast_signed()] {
            _ if cancelled => Err(neutral::MPIX_ERR_PROC_FAILED.into()),
            [neutral::SUCCESS, neutral::SUCCESS] => Ok([first, second]),
            [neutral::SUCCESS, class] | [class, _] => Err(class.into()),
        }
    }
}

/// How many processes hear words through one at this place, with itself.
fn lowest_bit(place: usize) -> usize {
    place & place.wrapping_neg()
}

/// Begins to agree on that number.
///
/// # Errors
/// `MPI_ERR_NO_MEM`, and `MPI_ERR_OTHER` when no number is left.
pub fn begin(rank: &'static Rank, occasion: Occasion, members: &[Peer]) -> Outcome<Agreement> {
    if are_here(rank, members) {
        let number = number_within_node(rank, occasion, members)?;
        return Ok(Agreement::new(rank.node(), [number, 0], 0));
    }
    begin_across_nodes(rank, &occasion, members)
}

/// [`begin`] for members that live on several nodes.
fn begin_across_nodes(rank: &'static Rank, occasion: &Occasion, members: &[Peer]) -> Outcome<Agreement> {
    let node = rank.node();
    let first = members.iter().reduce(|first, next| if node.comes_first(*next, *first) { next } else { first });
    let (&first, me) = (first.ok_or(neutral::ERR_GROUP)?, rank.peer());
    let integer = predefined(neutral::handle::INT32_T).ok_or(neutral::ERR_INTERN)?;
    let (tag, check) = occasion.signs(node);
    let name = names(node, members);
    let claim = &mut rank.enter();
    if first != me {
        let mut agreement = Agreement::new(node, [0; 2], check);
        let from = Source::Rank { peer: first, comm_rank: name(first) };
        // SAFETY: the box of this agreement, which stays until its messages are complete.
        let room = unsafe { Buffer::new(agreement.told.as_ptr().cast(), 2, &integer) };
        let request = irecv(claim, room, from, CONTEXT, Tag::Is(tag));
        let request = request.map_err(|_| neutral::ERR_NO_MEM)?;
        agreement.messages.push(request);
        agreement.teller = Some(first);
        return Ok(agreement);
    }
    let number = drawn_for(rank, members).unwrap_or(0);
    let mut agreement = Agreement::new(node, [number, check], check);
    let envelope = Envelope { context: CONTEXT, source: name(me), tag };
    for &member in members.iter().filter(|&&member| member != me) {
        // SAFETY: the box of this agreement, which stays until its messages are complete.
        let data = unsafe { Buffer::new(agreement.told.as_ptr().cast(), 2, &integer) };
        let mode = SendMode::Standard;
        match isend(claim, data, member, envelope, mode) {
            Ok(request) => agreement.messages.push(request),
            Err(_) => {
                agreement.abandon(claim);
                return Err(neutral::ERR_NO_MEM.into());
            }
        }
    }
    Ok(agreement)
}

/// A number that the members are agreeing on. Its messages move like all others; whoever has it waits until
/// it [is complete](Agreement::is_complete) and then [releases](Agreement::release) it.
#[derive(Debug)]
pub struct Agreement {
    node: &'static Node,
    /// The number and what it is checked by, or what members say, and behind them what this one says: a box that
    /// messages read or write.
    told: NonNull<[u32; 4]>,
    check: u32,
    messages: Vec<RequestRef>,
    /// Who tells the number by a message: none comes when that one has failed.
    teller: Option<Peer>,
}

impl Agreement {
    fn new(node: &'static Node, told: [u32; 2], check: u32) -> Self {
        let [first, second] = told;
        let told = NonNull::from(Box::leak(Box::new([first, second, first, second])));
        Self { node, told, check, messages: Vec::new(), teller: None }
    }

    /// Begins to learn what this makes of all that the members of a group say, for each of two words, such as the
    /// largest. Collective.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub(crate) fn by_vote(group: &coll::Group<'_>, mine: [u32; 2], op: PredefinedOp) -> Outcome<Self> {
        let mut agreement = Self::new(group.rank().forever().node(), mine, 0);
        // SAFETY: the words live until the message is complete.
        let request = unsafe { coll::start(group, &agreement.vote(op)) }?;
        agreement.messages.push(request);
        Ok(agreement)
    }

    /// The same of what the members of the other group of an intercommunicator say. Collective.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub(crate) fn by_vote_of_others(inter: &Intergroup<'_>, mine: [u32; 2], op: PredefinedOp) -> Outcome<Self> {
        let mut agreement = Self::new(inter.local.rank().forever().node(), mine, 0);
        // SAFETY: as above.
        let request = unsafe { coll::start_between(inter, &agreement.vote(op)) }?;
        agreement.messages.push(request);
        Ok(agreement)
    }

    /// The reduction of a vote, from the last two words into the first.
    fn vote(&self, op: PredefinedOp) -> coll::Call<'static> {
        let words = self.told.as_ptr().cast::<u32>();
        let input = words.wrapping_add(2).cast_const().cast();
        // SAFETY: the box of this agreement, which stays until its messages are complete.
        let reduction = unsafe {
            let result = Buffer::new(words.cast(), 2, &types::MPI_INT32_T);
            Reduction::new(Some(input), result, Op::Predefined(op))
        };
        coll::Call::Allreduce { reduction }
    }

    /// What was told, once it is complete.
    pub(crate) fn words(&self) -> [u32; 2] {
        // SAFETY: the box of this agreement; its messages are complete.
        let [first, second, ..] = unsafe { self.told.read() };
        [first, second]
    }

    /// Whether the number is there and was told to everybody, or never comes.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.have_come() || self.teller.is_some_and(|teller| self.node.has_failed(teller))
    }

    fn have_come(&self) -> bool {
        self.messages.iter().all(|message| message.is_complete())
    }

    /// Whether its messages have come to a good end, once it is complete.
    ///
    /// # Errors
    /// What has ended one of them: a member has failed, or the communicator was revoked.
    pub(crate) fn came(&self) -> Outcome<()> {
        if !self.have_come() {
            return Err(neutral::MPIX_ERR_PROC_FAILED.into());
        }
        let mut errors = self.messages.iter().map(|message| message.status().error);
        match errors.find(|&error| error != neutral::SUCCESS) {
            Some(error) => Err(EngineError::of_failure(error).map_or_else(|| error.into(), Error::from)),
            None => Ok(()),
        }
    }

    /// The number, once it is complete.
    ///
    /// # Errors
    /// `MPI_ERR_INTERN` when two occasions of different members cannot be told apart, `MPI_ERR_OTHER` when no
    /// number was left; what has ended a message.
    pub fn number(&self) -> Outcome<u32> {
        self.came()?;
        checked(self.words(), self.check, self.node)
    }

    /// Frees an agreement that is complete.
    pub fn release(self, claim: &mut Claim<'_>) {
        let told = self.told;
        if !self.have_come() {
            // The dead may have begun to send.
            self.messages.iter().for_each(|message| message.cancel(claim));
            return self.abandon(claim);
        }
        self.abandon(claim);
        // SAFETY: made by `new`; no message uses it any more.
        drop(unsafe { Box::from_raw(told.as_ptr()) });
    }

    /// Lets go of the messages; those under way still use the box, which stays.
    pub(crate) fn abandon(self, claim: &mut Claim<'_>) {
        for message in self.messages {
            message.release(claim);
        }
    }
}

impl Occasion {
    /// The tag of messages on this occasion, and what they are checked by besides.
    fn signs(&self, node: &Node) -> (i32, u32) {
        let digest = self.digest(node);
        ((digest & 0x7fff_ffff) as i32, (digest >> 32) as u32)
    }

    /// A number that is the same at all members and hardly ever at others: FNV-1a of all there is to say.
    fn digest(&self, node: &Node) -> u64 {
        let mut digest = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |bytes: &[u8]| {
            for &byte in bytes {
                digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        let (kind, tag, members) = match self {
            Self::Duplicate { parent } => {
                add(&parent.to_ne_bytes());
                (0, "", &[][..])
            }
            Self::FromGroup { tag, members } => (1, tag.as_str(), &members[..]),
            Self::FromGroups { tag, leaders } => (2, tag.as_str(), &leaders[..]),
        };
        add(&[kind]);
        add(tag.as_bytes());
        for &member in members {
            match is_of_several_jobs(node, members) {
                false => add(&node.world_rank(member).to_ne_bytes()),
                true => add(&name_between_jobs(node, member).to_ne_bytes()),
            }
        }
        digest
    }
}

/// [`number`] of members that live on one node.
fn number_within_node(rank: &Rank, occasion: Occasion, members: &[Peer]) -> Outcome<u32> {
    let node = core::ptr::from_ref(rank.node()).addr();
    let key = (node, occasion);
    MEETINGS.with(|meetings| number_among(meetings, rank, key, members))
}

/// [`number_within_node`] with the meetings in hand.
fn number_among(meetings: &mut Meetings, rank: &Rank, key: (usize, Occasion), members: &[Peer]) -> Outcome<u32> {
    let me = rank.peer();
    let waiting = meetings.get_mut(&key).and_then(|all| {
        let index = all.iter().position(|it| it.absent.contains(&me))?;
        Some((all, index))
    });
    if let Some((all, index)) = waiting {
        all[index].absent.retain(|&member| member != me);
        let number = all[index].number;
        if all[index].absent.is_empty() {
            all.remove(index);
        }
        if all.is_empty() {
            meetings.remove(&key);
        }
        return Ok(number);
    }
    let number = rank.node().next_context();
    let number = number.ok_or_else(|| exhausted(rank.node()))?;
    let others = members.iter().copied().filter(|&member| member != me);
    let absent: Vec<Peer> = others.collect();
    if !absent.is_empty() {
        let all = meetings.entry(key).or_default();
        all.push(Meeting { number, absent });
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_calls_of_all_members_meet() {
        let node = Node::for_test(3);
        let meet = |rank, parent| {
            number_within_node(node.rank(rank), Occasion::Duplicate { parent }, &[0, 1, 2].map(Peer::local))
                .expect("a number")
        };
        let first: Vec<u32> = (0..2).map(|_| meet(0, 5)).collect();
        assert_ne!(first[0], first[1]);
        let other = meet(0, 6);
        for rank in [2, 1] {
            assert_eq!([meet(rank, 5), meet(rank, 5)], first[..]);
            assert_eq!(meet(rank, 6), other);
        }
        let next: Vec<u32> = (0..3).map(|rank| meet(rank, 5)).collect();
        assert!(next[0] > other && next[1] == next[0] && next[2] == next[0]);
    }

    #[test]
    fn groups_and_strings_are_told_apart() {
        let node = Node::for_test(3);
        let meet = |rank, tag: &str, members: &[u32]| {
            let members: Vec<Peer> = members.iter().copied().map(Peer::local).collect();
            let tag = tag.into();
            let occasion = Occasion::FromGroup { tag, members: members.clone().into() };
            number_within_node(node.rank(rank), occasion, &members).expect("a number")
        };
        let both = meet(0, "a", &[0, 1]);
        let numbers = [meet(0, "a", &[1, 0]), meet(0, "b", &[0, 1]), meet(0, "a", &[0]), meet(0, "a", &[0])];
        for (index, number) in numbers.iter().enumerate() {
            assert!(*number != both && !numbers[..index].contains(number));
        }
        assert_eq!(meet(1, "a", &[0, 1]), both);
    }
}
