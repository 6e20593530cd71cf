//! A collective as a list of steps, for those who take them. Nothing here allocates, waits or calls the network but
//! through a claim.

use super::message::Message;
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
use core::ops::Deref;

/// Bytes that a fold or a copy takes at a time, where others wait for its end.
pub(crate) const PIECE: u64 = 128 << 10;

/// Tags that one schedule may use: its own and those below. Twice the dimensions of the largest grid.
pub(crate) const LANES: u32 = 64;

/// One step. Messages start when their step is reached and go on behind it.
pub(crate) enum Step<'a> {
    /// A message to a member.
    Send { to: usize, lane: u32, data: Buffer<'a> },
    /// A message from a member.
    Receive {
        from: usize,
        lane: u32,
        into: Buffer<'a>,
        /// Fewer bytes are an error.
        least: u64,
    },
    /// Waits for all messages so far.
    Wait,
    /// Copies data.
    Copy {
        from: Buffer<'a>,
        to: Buffer<'a>,
        /// The member of the node that is told when it does not fit; without one the schedule's own is.
        reports_to: Option<u32>,
    },
    /// `right = left op right`, which are equally long.
    Fold { left: Buffer<'a>, right: Buffer<'a> },
}

impl Step<'_> {
    /// Whether it starts a message.
    pub(crate) fn is_message(&self) -> bool {
        matches!(self, Self::Send { .. } | Self::Receive { .. })
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
    pub(crate) scratch: Vec<Vec<u128>>,
    pub(crate) packed: Vec<Vec<u8>>,
}

impl<'a> Schedule<'a> {
    /// The step at a place.
    pub(crate) fn step(&self, at: usize) -> Option<&Step<'a>> {
        self.steps.get(at)
    }

    /// Starts the message of a step.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`]; nothing was started then.
    pub(crate) fn begin(&self, claim: &mut Claim<'_>, step: &Step<'_>) -> Result<Message, EngineError> {
        let Endpoint { context, me, tag, ref members, .. } = self.endpoint;
        let (member, least, request) = match *step {
            Step::Send { to, lane, data } => {
                let envelope = Envelope { context, source: me as i32, tag: tag - (lane % LANES) as i32 };
                (to, 0, isend(claim, data, members[to], envelope, SendMode::Standard))
            }
            Step::Receive { from, lane, into, least } => {
                let source = Source::Rank { peer: members[from], comm_rank: from as i32 };
                let tag = Tag::Is(tag - (lane % LANES) as i32);
                (from, least, irecv(claim, into, source, context, tag))
            }
            Step::Wait | Step::Copy { .. } | Step::Fold { .. } => {
                unreachable!("a step that is no message")
            }
        };
        let is_remote = claim.rank().node().local(members[member]).is_none();
        request.map(|request| Message::new(request, least, is_remote))
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
            Step::Send { to, .. } => Some(self.endpoint.members[to]),
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
