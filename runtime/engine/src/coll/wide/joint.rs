//! Nonblocking collectives in which one member of each node, the first one, its *leader*, has a script for all of them.
//!
//! All members of a node live in one address space. So the leader's script reads their operands and writes their results itself, and
//! only leaders send messages. Other members have no script: their requests are completed at the end of it.
//!
//! # How the members of a node meet
//! ```text
//! each member                                  the leader besides
//! J1 joins the next meeting, under its claim   L1 under the same claim: puts a script without steps among its own, and
//!                                                 hangs the bell; it has taken that script
//! J2 posts its arguments
//! J3 the last one writes the steps, and opens  L2 looks: if the meeting is open it goes on with the steps,
//!    the meeting                                  else it puts the script down, under its claim
//! J4 and rings the leader's bell
//! ```
//! The steps are written in a call of a member, which may allocate; whoever goes on with the script, a thief or a signal's handler too, only
//! takes them over ([`JointRef::take`]). A member needs no claim but its own for all of that.
//!
//! # Nobody forgets it
//! Opening the meeting is a publication in the sense of [`crate::bell`] that makes work ready: J3 is P1, J4 the rest. The bell hangs then,
//! since L1 comes before the leader's J2, which by the meeting's Acquire and Release comes before J3 of the last one. If the leader is the last
//! itself, it goes on in the same call.
//!
//! # Which ones
//! Kind, operation and places decide ([`root_of`]), which all members of a communicator know alike; no length does. A user's operation
//! is called by each member for itself, and so is what `COHORT_REDUCE_ORDER=ranks` asks for: then each member has a script of its own.

mod steps;

use super::leaders::folds_by_node;
use super::running::{note, start_joint};
use super::script::Message;
use super::spread::Homes;
use super::{Script, Station, free_ended};
use crate::EngineError;
use crate::coll::Call;
use crate::coll::fold::Folder;
use crate::meeting::{self, End, Meeting, release};
use crate::message::Status;
use crate::op::Op;
use crate::rank::Rank;
use crate::request::{Request, RequestRef};
use alloc::vec::Vec;
use cohort_base::sync::atomic::{AtomicBool, Ordering};
use core::cell::UnsafeCell;
use core::ptr::NonNull;
use steps::Members;

/// What one member posts.
pub(in crate::coll) struct Part {
    posted: Posted,
    is_truncated: AtomicBool,
}

#[derive(Clone, Copy)]
struct Posted {
    /// The arguments; what they refer to lives until the request is complete.
    call: Call<'static>,
    request: *mut Request,
    rank: &'static Rank,
}

// SAFETY: the addresses in a part lead to buffers that their owners leave to the runtime until the operation is complete.
unsafe impl Send for Part {}

/// What the last one adds: taken out once, by whoever goes on with the script first.
pub(in crate::coll) struct Plan(UnsafeCell<Option<Written>>);

// SAFETY: the meeting gives its only step, with which the cell may be touched, to one task.
unsafe impl Send for Plan {}

/// The leader's script, with room for the messages of any stage.
pub(super) struct Written {
    pub(super) script: Script<'static>,
    pub(super) messages: Vec<Message>,
    /// Failures of all members.
    pub(super) outcome: Result<(), EngineError>,
}

/// An operation of which the members of a node meet.
pub(in crate::coll) type Joint = Meeting<Part, Plan>;

/// A member's place in a chain of them.
pub(super) type Place<'a> = meeting::Place<'a, Part, Plan>;

/// The starts of a persistent one.
pub(super) type Chain = meeting::Chain<Part, Plan>;

/// A leader's reference.
pub(super) struct JointRef {
    joint: NonNull<Joint>,
    size: u32,
}

impl JointRef {
    fn get(&self) -> &Joint {
        // SAFETY: our reference.
        unsafe { self.joint.as_ref() }
    }

    /// Whether the steps are written, and nobody has taken them.
    pub(super) fn is_written(&self) -> bool {
        self.get().pending().is_some()
    }

    /// What was written, for the one that has the leader's script.
    pub(super) fn take(&self) -> Option<Written> {
        let (_, plan) = self.get().take(End::Front)?;
        // SAFETY: there is one step, and it is ours.
        unsafe { (*plan.0.get()).take() }
    }

    /// What became of the data of the member at this place.
    pub(super) fn tell(&self, place: u32, outcome: Result<(), EngineError>) {
        if outcome.is_err() {
            // SAFETY: the meeting is open, or its data would not have come.
            let part = unsafe { self.get().part_of(place) };
            // Relaxed: the task at the script writes and reads it, one after the other.
            part.is_truncated.store(true, Ordering::Relaxed);
        }
    }

    /// Completes the requests of all members.
    ///
    /// # Safety
    /// The script is over, and only the caller knows it.
    pub(super) unsafe fn complete(self, status: Status) {
        for place in 0..self.size {
            // SAFETY: the meeting is open; a request and what the part refers to are not touched after the request is complete.
            unsafe {
                let part = self.get().part_of(place);
                let mut status = status;
                if part.is_truncated.load(Ordering::Relaxed) {
                    note(&mut status, truncated());
                }
                Request::complete(part.posted.request, status);
            }
        }
    }
}

impl Drop for JointRef {
    fn drop(&mut self) {
        // SAFETY: our reference.
        unsafe { release(self.joint) };
    }
}

/// Somebody's data did not fit; its length is not known here.
fn truncated() -> Result<(), EngineError> {
    Err(EngineError::Truncated {
        message: 1,
        buffer: 0,
    })
}

/// The operation's root, or member 0 if it has none, if leaders speak for their nodes in it.
pub(super) fn root_of(rank: &Rank, call: &Call<'_>, homes: &Homes) -> Option<u32> {
    let folds = |op| matches!(op, Op::Predefined(_)) && folds_by_node(rank, op, homes);
    let root = match *call {
        Call::Barrier | Call::Allgather { .. } => Some(0),
        Call::Bcast { root, .. } => Some(root),
        Call::Allreduce { reduction } | Call::ReduceScatter { reduction, .. } => {
            folds(reduction.op).then_some(0)
        }
        Call::Reduce { reduction, root } => folds(reduction.op).then_some(root),
        _ => None,
    };
    root.filter(|_| homes.has_neighbours())
}

/// Starts an operation of which [`root_of`] has told the root.
///
/// # Safety
/// As [`Station::start`].
///
/// # Errors
/// As [`Station::start`].
pub(super) unsafe fn start(
    station: &Station,
    place: &Place<'_>,
    homes: &Homes,
    call: &Call<'_>,
    root: u32,
) -> Result<RequestRef, EngineError> {
    // SAFETY: the caller keeps what the arguments refer to until the request is complete, and the script uses them until then.
    let call = unsafe { core::mem::transmute::<Call<'_>, Call<'static>>(*call) };
    if let Some(reduction) = call.reduction() {
        Folder::new(reduction.op, reduction.datatype)?;
    }
    let (rank, leaders) = (station.rank, homes.leaders(0));
    let mut claim = rank.enter();
    free_ended(&mut claim);
    let request = Request::bare(&mut claim).ok_or(EngineError::OutOfMemory)?;
    let Some(meeting) = place.advance(&mut claim) else {
        // SAFETY: the fresh request is ours.
        unsafe { Request::complete_quietly(request.as_ptr(), Status::EMPTY) };
        // SAFETY: as above.
        unsafe { RequestRef::new(request) }.release(&mut claim);
        return Err(EngineError::OutOfMemory);
    };
    // SAFETY: our cursor keeps it while we are in this call.
    let joint = unsafe { meeting.as_ref() };
    let script = (place.me == 0).then(|| {
        joint.retain();
        let joint = JointRef {
            joint: meeting,
            size: place.size,
        };
        let peers = leaders.iter().map(|&leader| station.members[leader]);
        start_joint(&mut claim, joint, request, peers)
    });
    drop(claim);
    let part = Part {
        posted: Posted {
            call,
            request: request.as_ptr(),
            rank,
        },
        is_truncated: AtomicBool::new(false),
    };
    // SAFETY: each member comes to a meeting once; the last one opens it.
    unsafe {
        if joint.post(place.me, part) {
            let node = Members::of(joint, homes, root);
            let leader = node.leader();
            let written = node.write(station);
            joint.open(Plan(UnsafeCell::new(Some(written))), 1);
            if script.is_none() {
                leader.ring();
            }
        }
    }
    if let Some(script) = script {
        script.work(u32::MAX);
    }
    // SAFETY: fresh; it lives until it is released.
    Ok(unsafe { RequestRef::new(request) })
}
