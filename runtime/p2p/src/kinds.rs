//! What happens to the requests of point-to-point communication.

use crate::P2p;
use crate::lending::Lent;
use crate::operation::{CopyJob, Operation, OperationKind, SLOT};
use crate::pipeline::SHORTEST;
use crate::protocol::lent;
use crate::remote;
use crate::reuse::Reuse;
use crate::state::{leave_offers, unpost_receive};
use cohort_base::picture::Fact;
use cohort_core::claim::Claim;
use cohort_core::message::Status;
use cohort_core::record::RecordRef;
use cohort_core::request::{Request, RequestKind};
use core::ptr::NonNull;

impl RequestKind for OperationKind {
    fn subsystem(&self) -> Option<usize> {
        Some(SLOT)
    }

    unsafe fn leave(&self, request: NonNull<Request>, claim: &mut Claim<'_>) {
        // SAFETY: requests of this kind begin an operation.
        let this = unsafe { RecordRef::new(request.cast::<Operation>()) };
        // A send stays among those that are offered until it is over: the rank may wait for that yet.
        if *self == Self::Rts && !this.request.is_complete() {
            claim.of::<P2p>().sending.leave(&this.request);
        }
    }

    unsafe fn cancel(&self, request: NonNull<Request>, claim: &mut Claim<'_>) {
        // SAFETY: as above.
        let this = unsafe { RecordRef::new(request.cast::<Operation>()) };
        match self {
            Self::Receive if this.is_posted.get() => {
                unpost_receive(claim, this);
                let cancelled = Status { cancelled: true, ..Status::EMPTY };
                // SAFETY: what was posted is pending, and ours once it is out of the queue.
                unsafe { Operation::complete(this, cancelled) };
            }
            Self::Receive => {}
            // One that is in the owner's list no more is complete.
            Self::Rts => {
                if this.is_offered.get() && this.request.withdraw() && claim.rank().threads_multiple() {
                    // Another thread may sleep until it is complete.
                    claim.rank().wake();
                }
            }
            Self::Remote => remote::cancel(claim, this),
        }
    }

    unsafe fn tell(&self, request: NonNull<Request>, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        // SAFETY: as above.
        let this = unsafe { request.cast::<Operation>().as_ref() };
        tell(this.told(self, claim.rank().node(), true));
    }

    unsafe fn end(&self, request: NonNull<Request>, claim: &mut Claim<'_>) -> bool {
        let this = request.as_ptr().cast::<Operation>();
        // SAFETY: as above; nobody else uses it, unless its RTS is on its way.
        unsafe {
            if (*this).is_offered.get() {
                leave_offers(claim, RecordRef::new(request.cast()));
            }
            if *self == Self::Rts {
                let state = claim.of::<P2p>();
                state.sending.end(request.as_ref());
                if (*this).is_lent.get() {
                    let is_good = !request.as_ref().is_withdrawn() && lent::was_worth_it((*this).found());
                    state.lending.ended(Lent::of((*this).buffer().bytes()), is_good);
                }
                match (*this).found() {
                    found if found != Reuse::Nothing && (*this).buffer().bytes() >= SHORTEST => state.rewrites = found,
                    _ => {}
                }
            }
            if let Some(job) = NonNull::new(*(*this).job.get_mut()) {
                CopyJob::release(RecordRef::new(job));
            }
            let is_ours = !request.as_ref().leave_to_receiver();
            if is_ours {
                this.drop_in_place();
            }
            is_ours
        }
    }
}
