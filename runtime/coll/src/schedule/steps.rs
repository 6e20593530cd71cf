//! A collective as a list of steps, for those who take them. Nothing here allocates, waits or calls the network but
//! through a claim.

use super::message::{Message, Told};
use crate::bundle::{Content, Incoming};
use crate::data::Lines;
use crate::fold::{Folder, Runner};
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_base::Peer;
use cohort_core::EngineError;
use cohort_core::claim::Claim;
use cohort_core::message::{Envelope, SendMode, Source, Tag};
use cohort_core::rank::Rank;
use cohort_datatype::Buffer;
use cohort_p2p::{irecv, isend};
use core::cell::Cell;
use core::ops::{Deref, Range};

/// Bytes that a fold or a copy takes at a time, where others wait for its end.
pub(crate) const PIECE: u64 = 128 << 10;

/// Tags that one schedule may use: its own and those below. Twice the dimensions of the largest grid.
pub(crate) const LANES: u32 = 64;

/// One step. Messages start when their step is reached and go on behind it.
pub(crate) enum Step<'a> {
    /// A message to a member.
    Send { to: usize, lane: u32, data: Buffer<'a> },
    /// The same, but empty once a member has sent one of another length than its own ([`Told::Unlike`]).
    SendUnlessUnlike { to: usize, data: Buffer<'a> },
    /// A message from a member.
    Receive {
        from: usize,
        lane: u32,
        into: Buffer<'a>,
        /// Fewer bytes are an error.
        least: u64,
        /// Who is told when it is longer.
        reports_to: Told,
    },
    /// An empty message to a member, if one of this mark has sent another length than its own ([`Told::Unlike`]).
    SendIfUnlike { to: usize, mark: u8 },
    /// The other end, with whatever that member sends beside its first message.
    ReceiveIfUnlike { from: usize, mark: u8 },
    /// A message from a member with a block of a bundle that has come, unless the block is in the bundle.
    ReceiveApart { block: Bundled, from: u32, into: Buffer<'a>, reports_to: Told },
    /// Waits for all messages so far.
    Wait,
    /// Copies data.
    Copy {
        from: Buffer<'a>,
        to: Buffer<'a>,
        /// Who is told when it does not fit.
        reports_to: Told,
        /// Less than fits is told as well.
        is_exact: bool,
    },
    /// Takes the next block out of a bundle that has come, unless the block is not in it.
    Deliver { block: Bundled, into: Buffer<'a>, reports_to: Told },
    /// `right = left op right`, which are equally long.
    Fold { left: Buffer<'a>, right: Buffer<'a> },
}

/// A block of one of the bundles that a schedule receives: how many come before it.
#[derive(Clone, Copy)]
pub(crate) struct Bundled {
    pub(crate) bundle: u32,
    pub(crate) number: u32,
}

impl Step<'_> {
    /// Whether it starts a message.
    pub(crate) fn is_message(&self) -> bool {
        let is_sent = matches!(self, Self::Send { .. } | Self::SendUnlessUnlike { .. });
        is_sent || matches!(self, Self::Receive { .. } | Self::ReceiveApart { .. }) || self.is_if_unlike()
    }

    /// Whether it starts a message only if a member has sent another length.
    pub(crate) fn is_if_unlike(&self) -> bool {
        matches!(self, Self::SendIfUnlike { .. } | Self::ReceiveIfUnlike { .. })
    }

    /// Whether it copies or folds.
    pub(crate) fn has_data(&self) -> bool {
        matches!(self, Self::Copy { .. } | Self::Deliver { .. } | Self::Fold { .. })
    }
}

/// Who sends and receives the messages of a schedule, and how others tell them from those of other schedules.
#[derive(Clone)]
pub(crate) struct Endpoint<'a> {
    pub(crate) rank: &'a Rank,
    pub(crate) context: u32,
    /// The member that the rank is.
    pub(crate) me: u32,
    /// The first of the tags, of which there are [`LANES`].
    pub(crate) tag: i32,
    pub(crate) members: MemberList<'a>,
    /// The other group's, of an intercommunicator. Of one group: none.
    pub(crate) theirs: Range<usize>,
}

impl Endpoint<'_> {
    /// What envelopes of its messages to `other` call a member. Between groups that is its rank in its group, as in all
    /// messages there, and within one group a number that is no rank: so each source stands for one process.
    fn source(&self, member: usize, other: usize) -> i32 {
        let theirs = &self.theirs;
        let ours = if theirs.start == 0 { theirs.end } else { 0 };
        let is_theirs = theirs.contains(&member);
        let rank = (member - if is_theirs { theirs.start } else { ours }) as i32;
        let is_across = is_theirs != theirs.contains(&other);
        if theirs.is_empty() || is_across { rank } else { OF_OWN_GROUP + rank }
    }
}

/// What envelopes call the first member of the own group in messages within a group of an intercommunicator; the others
/// have the numbers behind. No rank, and nothing that stands for any.
const OF_OWN_GROUP: i32 = i32::MIN / 2;

/// The rank in the own group of who sends messages with this source there, if it is one of those.
pub(crate) fn rank_in_own_group(source: i32) -> Option<i32> {
    (source < 0).then(|| source - OF_OWN_GROUP)
}

/// The members of a communicator, for as long as a schedule needs them.
#[derive(Clone)]
pub(crate) enum MemberList<'a> {
    Borrowed(&'a [Peer]),
    Shared(Arc<[Peer]>),
}

impl Deref for MemberList<'_> {
    type Target = [Peer];

    #[inline]
    fn deref(&self) -> &[Peer] {
        match self {
            Self::Borrowed(members) => members,
            Self::Shared(members) => members,
        }
    }
}

/// See the module page. Buffers that steps name are live until the schedule has ended.
pub(crate) struct Schedule<'a> {
    pub(crate) endpoint: Endpoint<'a>,
    pub(crate) folder: Option<Folder<'a>>,
    pub(crate) steps: Vec<Step<'a>>,
    /// Memory that steps use.
    pub(crate) scratch: Vec<Lines>,
    pub(crate) packed: Vec<Vec<u8>>,
    /// What it receives of several members in one message.
    pub(crate) bundles: Vec<Incoming>,
    /// Bits of the marks ([`Told::Unlike`]) of members that have sent another length.
    pub(crate) unlike: Cell<u64>,
}

impl<'a> Schedule<'a> {
    /// The step at a place.
    pub(crate) fn step(&self, at: usize) -> Option<&Step<'a>> {
        self.steps.get(at)
    }

    /// Starts the message of a step, if it has come to that.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`]; nothing was started then.
    pub(crate) fn begin(&self, claim: &mut Claim<'_>, step: &Step<'_>) -> Result<Option<Message>, EngineError> {
        let Endpoint { context, me, tag, ref members, .. } = self.endpoint;
        let me = me as usize;
        let receive = |claim: &mut Claim<'_>, from: usize, lane: u32, into| {
            let source = Source::Rank { peer: members[from], comm_rank: self.endpoint.source(from, me) };
            irecv(claim, into, source, context, Tag::Is(tag - (lane % LANES) as i32))
        };
        let send = |claim: &mut Claim<'_>, to: usize, lane: u32, data| {
            let source = self.endpoint.source(me, to);
            let envelope = Envelope { context, source, tag: tag - (lane % LANES) as i32 };
            isend(claim, data, members[to], envelope, SendMode::Standard)
        };
        let (member, least, reports_to, request) = match *step {
            Step::Send { to, lane, data } => (to, 0, Told::Everyone, send(claim, to, lane, data)),
            Step::SendUnlessUnlike { to, data } => {
                let data = if self.unlike.get() == 0 { data } else { Buffer::EMPTY };
                (to, 0, Told::Everyone, send(claim, to, 0, data))
            }
            Step::Receive { from, lane, into, least, reports_to } => {
                (from, least, reports_to, receive(claim, from, lane, into))
            }
            Step::ReceiveApart { block, from, into, reports_to } => {
                if !self.bundles[block.bundle as usize].is_apart(block.number as usize) {
                    return Ok(None);
                }
                (from as usize, 0, reports_to, receive(claim, from as usize, 0, into))
            }
            Step::SendIfUnlike { mark, .. } | Step::ReceiveIfUnlike { mark, .. } if !self.is_unlike(mark) => {
                return Ok(None);
            }
            Step::SendIfUnlike { to, .. } => (to, 0, Told::Nobody, send(claim, to, 0, Buffer::EMPTY)),
            Step::ReceiveIfUnlike { from, .. } => (from, 0, Told::Nobody, receive(claim, from, 0, Buffer::EMPTY)),
            Step::Wait | Step::Copy { .. } | Step::Deliver { .. } | Step::Fold { .. } => {
                unreachable!("a step that is no message")
            }
        };
        let is_remote = claim.rank().node().local(members[member]).is_none();
        request.map(|request| Some(Message::new(request, least, is_remote).reporting_to(reports_to)))
    }

    /// What became of a message that has come.
    pub(crate) fn hear(&self, from: Told, outcome: Result<(), EngineError>) {
        if let (Told::Unlike(mark), Err(EngineError::Truncated { .. })) = (from, outcome) {
            self.unlike.set(self.unlike.get() | 1 << mark);
        }
    }

    fn is_unlike(&self, mark: u8) -> bool {
        self.unlike.get() >> mark & 1 != 0
    }

    /// Delivers the next block of a bundle. Returns its bytes.
    pub(crate) fn deliver(&self, block: Bundled, into: Buffer<'_>) -> (u64, Result<(), EngineError>) {
        match self.bundles[block.bundle as usize].next(block.number as usize) {
            content @ Content::Inside { there, .. } => (there.length(), content.deliver(into)),
            Content::Apart { .. } => (0, Ok(())),
        }
    }

    /// `right = left op right`, two buffers of a step that folds; the runner tells the truth.
    pub(crate) fn combine(&self, left: Buffer<'_>, right: Buffer<'_>, runner: Runner) {
        if let Some(folder) = &self.folder {
            folder.combine_buffers(left, right, runner);
        }
    }

    /// Folds, as far as they go, elements from `done` on, at most so many that a fold takes a bounded time, where the
    /// operation may be called piece by piece. Returns how many elements are done then.
    pub(crate) fn combine_piece(&self, left: Buffer<'_>, right: Buffer<'_>, done: u64, runner: Runner) -> u64 {
        let Some(folder) = &self.folder else {
            return right.count();
        };
        let end = folder.piece(PIECE).saturating_add(done).min(right.count());
        folder.combine_buffers(left.within(done..end), right.within(done..end), runner);
        end
    }

    /// The bytes of so many elements that are folded.
    pub(crate) fn bytes_of(&self, count: u64) -> u64 {
        self.folder.map_or(0, |folder| folder.bytes_of(count))
    }

    /// Whether steps call a user's operation, which only the owner may.
    pub(crate) fn calls_user(&self) -> bool {
        self.folder.is_some_and(|folder| folder.calls_user())
    }

    /// The members that this one sends to.
    pub(crate) fn receivers(&self) -> impl Iterator<Item = Peer> {
        self.steps.iter().filter_map(|step| match *step {
            Step::Send { to, .. } | Step::SendUnlessUnlike { to, .. } => Some(self.endpoint.members[to]),
            _ => None,
        })
    }

    /// The most messages that are under way at a time.
    pub(crate) fn most_messages(&self) -> usize {
        let stages = self.steps.split(|step| matches!(step, Step::Wait));
        let counts = stages.map(|stage| stage.iter().filter(|step| step.is_message()).count());
        counts.max().unwrap_or(0)
    }
}
