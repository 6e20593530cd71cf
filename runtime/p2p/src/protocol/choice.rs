//! Which protocol carries a message: chosen once, when it is sent.
//!
//! Within a node ([`Protocol`]):
//!
//! | protocol | which messages | copies | module |
//! |---|---|---|---|
//! | inline | up to [`INLINE_MAX`] bytes | into the ring, out of it | [`eager`] |
//! | inline, marked | the same with a [`Mark`](super::Mark), while somebody follows messages (`COHORT_TRACE`) | one more at either end | [`marked`] |
//! | eager | up to `COHORT_EAGER_MAX` | into a block, out of it: one of those that the sender keeps (`eager_buffers.rs`), or of its heap | [`eager`] |
//! | eager with its types | the same, with `COHORT_CHECK=members` | the same | [`compared`] |
//! | lent | those of [`lent::SHORTEST`] and more, where every rank has a CPU, while their receivers are there in time | one, from user buffer to user buffer; two if the receiver is late | [`lent`] |
//! | rendezvous | longer ones, and synchronous sends | one, from user buffer to user buffer; of more than [`rendezvous::AT_ONCE_MAX`] bytes by several ranks (`operation/job.rs`) | [`rendezvous`] |
//! | rendezvous by a pipelined copy | those of 16 to 512 K whose sender waits, or writes its data anew, where every rank has a CPU | two, piece by piece through a pipeline of the sender's, if one is free and the receiver wants it | [`pipelined`] |
//!
//! Between nodes `remote/send.rs` chooses. Sends of one cell that need nothing else have left before anything is chosen
//! (`fast_path.rs`), as inline ones.

use super::{compared, eager, lent, marked, pipelined, rendezvous};
use crate::failing;
use crate::operation::Operation;
use crate::packed::PackedBlock;
use crate::ring::{BODY, HEAD_PAYLOAD};
use cohort_base::{LocalRank, Peer};
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::message::{Envelope, SendMode};
use cohort_core::node::Node;
use cohort_core::rank::Rank;
use cohort_core::record::RecordRef;
use cohort_core::request::RequestRef;
use cohort_datatype::Buffer;

/// The longest data that travels in cells of the ring: those of four. What is longer takes less time in a block, whose
/// copy is one run of bytes.
pub(crate) const INLINE_MAX: u64 = (HEAD_PAYLOAD + 3 * BODY) as u64;

/// How a message travels within a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// With its envelope: the send is over when it returns.
    Eager(Eager),
    /// Its receiver copies from the sender's buffer.
    Rendezvous,
    /// The same, or what the sender copies piece by piece into a pipeline of its own.
    Pipelined,
    /// Its receiver copies from the sender's buffer if it does so soon, else from a block.
    Lent,
}

/// How the data of an eager message travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eager {
    /// In the cells of the ring.
    Inline,
    /// The same, behind a mark.
    Marked,
    /// In a block of the sender's.
    Block,
    /// The same, with its types.
    Typed,
    /// Something has failed: the first of these that fits, unless its receiver is dead or its context closed.
    Asking,
}

/// What became of a send that has started.
#[derive(Debug)]
#[must_use]
pub(crate) enum Sent {
    /// It is over.
    Now,
    /// It has a request.
    Later(RequestRef),
}

impl Protocol {
    /// That of a message which anybody may send for its rank.
    #[inline(always)]
    pub fn of(rank: &Rank, bytes: u64, envelope: &Envelope, mode: SendMode) -> Self {
        match mode != SendMode::Synchronous && rank.node().is_eager(bytes) {
            true => Self::Eager(Eager::by_length(bytes)),
            false => Self::of_other(rank.node(), bytes, envelope, mode),
        }
    }

    /// That of a message which the claimed rank's own task sends, which `waits` for its end in the call or not.
    #[inline(always)]
    pub(crate) fn of_own(claim: &mut Claim<'_>, bytes: u64, envelope: &Envelope, mode: SendMode, waits: bool) -> Self {
        match Self::of(claim.rank(), bytes, envelope, mode) {
            Self::Rendezvous if pipelined::suits(claim, bytes, waits) => Self::Pipelined,
            Self::Eager(Eager::Block) if bytes >= lent::SHORTEST && lent::suits(claim, bytes) => Self::Lent,
            protocol => protocol,
        }
    }

    /// That of a message that does not leave in the shortest way: it is long, or its sender wants to know that it was
    /// received, or all messages carry something more, so that the shortest way is closed.
    #[cold]
    fn of_other(node: &Node, bytes: u64, envelope: &Envelope, mode: SendMode) -> Self {
        let settings = node.settings();
        let eager_max = settings.compared_eager_max.max(settings.eager_max) as u64;
        if mode == SendMode::Synchronous || bytes > eager_max {
            return Self::Rendezvous;
        }
        if settings.check_types && compared::is_compared(*envelope) && bytes > 0 {
            return Self::Eager(Eager::Typed);
        }
        if node.failure_epoch() != 0 {
            return Self::Eager(Eager::Asking);
        }
        Self::Eager(match node.follows_messages() {
            true if bytes <= marked::DATA_MAX as u64 => Eager::Marked,
            true => Eager::Block,
            false => Eager::by_length(bytes),
        })
    }

    /// Starts a send by the rank's own task. What describes it is read where it is: copied in wide words, it would wait
    /// until the narrow stores of its parts have left the core.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`]; nothing was sent then.
    #[inline(always)]
    pub(crate) fn start(
        self,
        claim: &mut Claim<'_>,
        buffer: &Buffer<'_>,
        to: LocalRank,
        envelope: &Envelope,
    ) -> Result<Sent, EngineError> {
        match self {
            Self::Eager(eager) => eager.send(claim, buffer, to, envelope).map(|()| Sent::Now),
            Self::Rendezvous => rendezvous::send(claim, *buffer, to, *envelope).map(Sent::Later),
            Self::Pipelined => rendezvous::send_pipelined(claim, *buffer, to, *envelope).map(Sent::Later),
            Self::Lent => rendezvous::send_lent(claim, *buffer, to, *envelope).map(Sent::Later),
        }
    }

    /// Starts the send of a request that was made before. Says whether it is over; the request is not complete.
    ///
    /// # Errors
    /// As for [`Protocol::start`].
    ///
    /// # Safety
    /// `request` is a pending send of the claimed rank, in no list.
    pub(crate) unsafe fn start_request(
        self,
        claim: &mut Claim<'_>,
        request: RecordRef<Operation>,
        to: LocalRank,
        envelope: Envelope,
    ) -> Result<bool, EngineError> {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Eager(eager) => eager.send(claim, &request.buffer(), to, &envelope).map(|()| true),
                // Pipelines and lent messages are for the rank's own task, which is not here.
                Self::Rendezvous | Self::Pipelined | Self::Lent => {
                    rendezvous::rts(claim, request, to, envelope).map(|()| false)
                }
            }
        }
    }
}

impl Eager {
    /// That of a message to which nothing is added.
    #[inline(always)]
    fn by_length(bytes: u64) -> Self {
        match bytes > INLINE_MAX {
            true => Self::Block,
            false => Self::Inline,
        }
    }

    /// Sends a message; the buffer is free when this returns.
    #[inline(always)]
    fn send(
        self,
        claim: &mut Claim<'_>,
        buffer: &Buffer<'_>,
        to: LocalRank,
        envelope: &Envelope,
    ) -> Result<(), EngineError> {
        match self {
            Self::Inline => eager::send_inline(claim, *buffer, to, *envelope),
            Self::Block => eager::send_block(claim, *buffer, to, *envelope),
            Self::Marked => marked::send(claim, *buffer, to, *envelope),
            Self::Typed => compared::send(claim, *buffer, to, *envelope),
            Self::Asking => {
                failing::may_send(claim, Peer::local(to), envelope)?;
                match buffer.bytes() <= marked::DATA_MAX as u64 {
                    true => marked::send(claim, *buffer, to, *envelope),
                    false => eager::send_block(claim, *buffer, to, *envelope),
                }
            }
        }
    }
}

/// Sends a message that is eager. `false`: nothing was done.
#[inline(always)]
pub(crate) fn send_eager(claim: &mut Claim<'_>, buffer: &Buffer<'_>, to: LocalRank, envelope: &Envelope) -> bool {
    Eager::by_length(buffer.bytes()).send(claim, buffer, to, envelope).is_ok()
}

/// Sends packed bytes in a block of the claimed rank's heap. Their types are not known any more.
pub(crate) fn send_owned(
    claim: &mut Claim<'_>,
    block: PackedBlock,
    to: LocalRank,
    envelope: Envelope,
) -> Result<(), EngineError> {
    let is_inline = Eager::by_length(block.bytes()) == Eager::Inline && !claim.rank().node().follows_messages();
    match is_inline {
        true => eager::send_owned_inline(claim, block, to, envelope),
        false => eager::post_block(claim, block, to, envelope),
    }
}

#[cfg(test)]
mod tests;
