//! Requests that work on copies of the program's arrays.
//!
//! A Fortran library passes a copy where no datatype describes an array that is not contiguous. It says so of the
//! request that it has just made, with a function that moves data between array and copy: into the copy when the
//! operation starts or a partition is ready, back when it is complete or a partition has arrived.

use super::completion::{Live, live, publish_kind};
use crate::arguments::{Call, Outcome};
use crate::process::Process;
use crate::process::requests::{Parts, RequestKind, RequestState, Rest};
use alloc::boxed::Box;
use cohort_abi::parameters::Out;
use cohort_abi::{Abi, Status, neutral};
use cohort_engine::{Claim, Owner, Rank};
use cohort_object::blame;
use core::ffi::{c_int, c_void};

/// The library's function: its state, a [`Step`], and the first and the last partition, -1 for all.
type Move = unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int);

/// What the library's function is to do.
#[repr(i32)]
enum Step {
    /// From the arrays into the copies.
    Load = 0,
    /// What has changed in the copies, into the arrays.
    Store = 1,
    /// The copies are not needed any more.
    Free = 2,
}

/// The library's function, and its state.
#[derive(Debug)]
struct Copies {
    function: Move,
    state: *mut c_void,
}

impl Copies {
    fn all(&self, step: Step) {
        self.some(step, -1, -1);
    }

    fn some(&self, step: Step, low: c_int, high: c_int) {
        // SAFETY: the library's function, called as agreed: on a task of its rank, and no more after `Free`.
        unsafe { (self.function)(self.state, step as c_int, low, high) };
    }
}

/// An operation on copies.
#[derive(Debug)]
struct Copied {
    operation: RequestState,
    copies: Copies,
}

impl Copied {
    fn live(&self) -> Live<'_> {
        Live::over(&self.operation)
    }

    fn kind(&self) -> Option<&dyn RequestKind> {
        match &self.operation {
            RequestState::Other(kind) => Some(&**kind),
            _ => None,
        }
    }
}

impl RequestKind for Copied {
    fn comm(&self) -> u32 {
        self.live().comm()
    }

    fn is_active(&self) -> bool {
        self.live().is_active()
    }

    fn is_complete(&self) -> bool {
        self.live().is_complete()
    }

    /// Whoever learns it may look into the arrays (`MPI_Request_get_status`).
    fn status(&self) -> Status {
        if self.is_active() {
            self.copies.all(Step::Store);
        }
        self.live().outcome()
    }

    fn end(&self, rank: &Rank) -> Rest {
        let rest = match self.kind() {
            Some(kind) => kind.end(rank),
            None => Rest::Nothing(neutral::SUCCESS),
        };
        if rest != Rest::Inactive {
            self.copies.all(Step::Free);
        }
        rest
    }

    fn release(self: Box<Self>, claim: &mut Claim<'_>) {
        self.operation.release(claim);
    }

    /// What is under way needs the copies, and nobody would learn when it does not any more.
    fn abandon(&self, rank: &Rank) -> Outcome<i32> {
        if !self.is_complete() {
            let what = format_args!("it works on a copy of an array section and is not complete");
            return Err(blame(neutral::ERR_REQUEST, what));
        }
        if self.is_active() {
            self.copies.all(Step::Store);
        }
        let freed = match self.kind() {
            Some(kind) => kind.abandon(rank)?,
            None => neutral::SUCCESS,
        };
        self.copies.all(Step::Free);
        Ok(freed)
    }

    fn cancel(&self, rank: &Rank) -> Outcome<()> {
        self.live().cancel(rank)
    }

    fn start(&self, process: &Process) -> Outcome<()> {
        let kind = self.kind().ok_or(neutral::ERR_REQUEST)?;
        if !kind.is_active() {
            self.copies.all(Step::Load);
        }
        kind.start(process)
    }

    fn partitions(&self) -> Option<&dyn Parts> {
        self.kind()?.partitions().map(|_| self as &dyn Parts)
    }
}

impl Copied {
    fn parts(&self) -> Outcome<&dyn Parts> {
        let parts = self.kind().and_then(|kind| kind.partitions());
        parts.ok_or(neutral::ERR_REQUEST.into())
    }
}

impl Parts for Copied {
    fn count(&self) -> u32 {
        self.parts().map_or(0, |parts| parts.count())
    }

    fn ready(&self, low: c_int, high: c_int) -> Outcome<()> {
        let parts = self.parts()?;
        // Others are refused below.
        if low >= 0 && i64::from(high) < i64::from(parts.count()) && self.is_active() {
            self.copies.some(Step::Load, low, high);
        }
        parts.ready(low, high)
    }

    fn has_arrived(&self, owner: Owner<'_>, partition: c_int) -> Outcome<bool> {
        let arrived = self.parts()?.has_arrived(owner, partition)?;
        if arrived && self.is_active() {
            self.copies.some(Step::Store, partition, partition);
        }
        Ok(arrived)
    }
}

/// `MPII_Request_set_copies`: a Fortran library says of a request it has just made that it works on copies, which it
/// has loaded. `newrequest` takes the place of `request`.
pub fn set_copies<A: Abi>(
    call: &Call<'_, A>,
    request: A::Request,
    function: *mut c_void,
    state: *mut c_void,
    newrequest: Out<'_, A::Request>,
) -> Outcome<()> {
    let newrequest = call.output(newrequest, "newrequest")?;
    // SAFETY: 0, or the address of such a function; `Option` makes NULL of 0.
    let function = unsafe { core::mem::transmute::<usize, Option<Move>>(function as usize) };
    let copies = Copies { function: function.ok_or(neutral::ERR_ARG)?, state };
    let operation = live(call, request)?.ok_or(neutral::ERR_REQUEST)?;
    match operation.take(call) {
        Some(operation) => publish_kind(call, Copied { operation, copies }, newrequest),
        // It was complete when its call returned, and its handle is everybody's.
        None => {
            copies.all(Step::Store);
            copies.all(Step::Free);
            newrequest.write(request);
            Ok(())
        }
    }
}
