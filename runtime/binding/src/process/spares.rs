//! Receives that are over, kept with their slot for the next ones.
//!
//! A receive of a predefined type leaves nothing to be let go of. So the call that tells the program its outcome
//! marks its request spent and keeps the slot here, which needs no claim, and the next receive takes both as they
//! are: neither allocates or frees anything. A handle that a program has kept beyond its end leads to a spent request,
//! which [`live`](crate::request::live) refuses like a vacant slot.
//!
//! Threads of the rank alone come here: under the rank's claim, or without it if one thread is in calls at a time.

use super::requests::{Operation, State};
use core::cell::Cell;
use core::ptr::NonNull;

/// Spares of a rank at most. What ends beyond them is freed.
const MOST: usize = 64;

/// A request that is spent, and its slot.
#[derive(Clone, Copy)]
pub struct Spare {
    /// Of the slot.
    pub index: u32,
    /// What is in the slot.
    operation: NonNull<Operation>,
}

impl Spare {
    /// What is in the slot.
    #[inline(always)]
    #[must_use]
    pub fn operation(&self) -> &Operation {
        // SAFETY: slots stay where they are, and one that is kept here goes to nobody else.
        unsafe { self.operation.as_ref() }
    }
}

/// The spares of a rank.
pub struct Spares {
    kept: [Cell<Option<Spare>>; MOST],
    count: Cell<usize>,
    /// Records that were made to be kept.
    made: Cell<usize>,
}

impl Default for Spares {
    fn default() -> Self {
        Self {
            kept: [const { Cell::new(None) }; MOST],
            count: Cell::new(0),
            made: Cell::new(0),
        }
    }
}

impl Spares {
    /// Keeps the plain request of slot `index`, whose outcome the program is told, and ends its handle. `false`: it is
    /// another kind of request, or there is no room; nothing was done.
    #[inline(always)]
    #[must_use]
    pub fn keep(&self, index: u32, state: &State) -> bool {
        let State::Once(operation) = state else {
            return false;
        };
        let count = self.count.get();
        let Some(place) = self.kept.get(count) else {
            return false;
        };
        debug_assert!(operation.request.plain_success().is_some());
        operation.request.spend();
        let operation = NonNull::from(operation);
        place.set(Some(Spare { index, operation }));
        self.count.set(count + 1);
        true
    }

    /// Whether a record is to be made where one would do without, so that there is one to keep; counts it.
    pub fn wants_one(&self) -> bool {
        let made = self.made.get();
        self.made.set((made + 1).min(MOST));
        made < MOST
    }

    /// One of them, which stays here until it is [taken](Spares::take).
    #[inline(always)]
    #[must_use]
    pub fn last(&self) -> Option<Spare> {
        self.kept.get(self.count.get().wrapping_sub(1))?.get()
    }

    /// Takes the one that [`Spares::last`] gave.
    #[inline(always)]
    pub fn take(&self) {
        self.count.set(self.count.get() - 1);
    }
}
