//! Nonblocking collectives in which one member of each node, the first one, its *leader*, has a schedule for all of
//! them.
//!
//! All members of a node live in one address space. So the leader's schedule reads their operands and writes their
//! results itself, and only leaders send messages. Other members have no schedule: their requests are completed at the
//! end of it.
//!
//! # How the members of a node meet
//! ```text
//! each member                                  the leader besides
//! J1 joins the next meeting, under its claim   L1 under the same claim: puts a schedule without steps among its own,
//! and
//!                                                 becomes a user of events; it has taken that schedule
//! J2 posts its arguments
//! J3 the last one writes the steps, and opens  L2 looks: if the meeting is open it goes on with the steps,
//!    the meeting                                  else it puts the schedule down, under its claim
//! J4 and counts an event of the leader's
//! ```
//! The steps are written in a call of a member, which may allocate. Whoever goes on with the schedule, a thief or the
//! handler of a signal too, only takes them over ([`NodeMeetingRef::take`]). A member needs no claim but its own for
//! all of that.
//!
//! # Nobody forgets it
//! Opening the meeting is a publication in the sense of [`cohort_core::event_count`] that makes
//! work ready: J3 is P1, J4 the rest. There is a user then, since L1 comes before the leader's J2,
//! which by the meeting's Acquire and Release comes before J3 of the last one. If the leader is the
//! last itself, it goes on in the same call.
//!
//! # Which ones
//! Kind, operation and places decide (`root_of` in `nonblocking/start.rs`), which all members of a communicator know
//! alike; no length does. A user's operation is called by each member for itself, and so is what
//! `COHORT_REDUCE_ORDER=ranks` asks for: then each member has a schedule of its own.

use super::calls::Call as ScheduleCall;
use super::message::Message;
use super::steps::Schedule;
use crate::args::Call;
use crate::meeting::{self, End, Meeting, release};
use alloc::vec::Vec;
use cohort_base::sync::atomic::{AtomicBool, Ordering};
use cohort_core::EngineError;
use cohort_core::message::Status;
use cohort_core::rank::Rank;
use cohort_core::record::RecordRef;
use cohort_core::request::Request;
use core::cell::UnsafeCell;

/// What one member posts.
pub(crate) struct Part {
    pub(crate) posted: Posted,
    is_truncated: AtomicBool,
}

impl Part {
    /// Of this member.
    pub(crate) fn new(posted: Posted) -> Self {
        Self { posted, is_truncated: AtomicBool::new(false) }
    }
}

/// The arguments of one member.
#[derive(Clone, Copy)]
pub(crate) struct Posted {
    /// What it refers to lives until the request is complete.
    pub(crate) call: Call<'static>,
    pub(crate) request: *mut Request,
    pub(crate) rank: &'static Rank,
    /// By what the leader's schedule is called when all have come; null of the others.
    pub(crate) schedule: *mut ScheduleCall,
}

// SAFETY: the addresses in a part lead to buffers that their owners leave to the runtime until the operation is
// complete.
unsafe impl Send for Part {}

/// What the last one adds: taken out once, by whoever goes on with the schedule first.
pub(crate) struct Plan(UnsafeCell<Option<Prepared>>);

impl Plan {
    /// With what the last member has written.
    pub(crate) fn new(prepared: Prepared) -> Self {
        Self(UnsafeCell::new(Some(prepared)))
    }
}

// SAFETY: the meeting gives its only step, with which the cell may be touched, to one task.
unsafe impl Send for Plan {}

/// The leader's schedule, with room for the messages of any stage.
pub(crate) struct Prepared {
    pub(crate) schedule: Schedule<'static>,
    pub(crate) messages: Vec<Message>,
    /// Failures of all members.
    pub(crate) outcome: Result<(), EngineError>,
}

/// An operation of which the members of a node meet.
pub(crate) type NodeMeeting = Meeting<Part, Plan>;

/// A member's place in a chain of them.
pub(crate) type Place<'a> = meeting::Place<'a, Part, Plan>;

/// The starts of a persistent one.
pub(crate) type Chain = meeting::Chain<Part, Plan>;

/// A leader's reference.
pub(crate) struct NodeMeetingRef {
    meeting: RecordRef<NodeMeeting>,
}

impl NodeMeetingRef {
    /// Another reference.
    pub(crate) fn new(meeting: RecordRef<NodeMeeting>) -> Self {
        meeting.retain();
        Self { meeting }
    }

    /// What the members have posted; nothing before all have.
    fn parts(&self) -> &[Part] {
        self.meeting.parts().unwrap_or(&[])
    }

    /// Whether the steps are written, and nobody has taken them.
    pub(crate) fn is_written(&self) -> bool {
        self.meeting.pending().is_some()
    }

    /// What was written, for the one that has the leader's schedule.
    pub(crate) fn take(&self) -> Option<Prepared> {
        let (_, plan) = self.meeting.take(End::Front)?;
        // SAFETY: there is one step, and it is ours.
        unsafe { (*plan.0.get()).take() }
    }

    /// What became of the data of the member at this place.
    pub(crate) fn report(&self, place: u32, outcome: Result<(), EngineError>) {
        if outcome.is_err() {
            // Relaxed: the task at the schedule writes and reads it, one after the other.
            self.parts()[place as usize].is_truncated.store(true, Ordering::Relaxed);
        }
    }

    /// Completes the requests of all members.
    ///
    /// # Safety
    /// The schedule is over, and only the caller knows it.
    pub(crate) unsafe fn complete(self, status: Status) {
        for part in self.parts() {
            let mut status = status;
            if part.is_truncated.load(Ordering::Relaxed) {
                note(&mut status, truncated());
            }
            // SAFETY: a request and what the part refers to are not touched after the request is complete.
            unsafe { Request::complete(part.posted.request, status) };
        }
    }
}

impl Drop for NodeMeetingRef {
    fn drop(&mut self) {
        // SAFETY: our reference.
        unsafe { release(self.meeting) };
    }
}

/// Remembers the first failure.
pub(crate) fn note(status: &mut Status, outcome: Result<(), EngineError>) {
    if status.error == Status::SUCCESS {
        status.error = match outcome {
            Ok(()) => Status::SUCCESS,
            Err(EngineError::Truncated { .. }) => Status::TRUNCATE,
            Err(error) => error.as_failure().unwrap_or(Status::NO_MEMORY),
        };
    }
}

/// Somebody's data did not fit; its length is not known here.
pub(crate) fn truncated() -> Result<(), EngineError> {
    Err(EngineError::Truncated { message: 0, buffer: 0 })
}
