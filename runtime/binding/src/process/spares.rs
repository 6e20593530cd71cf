//! Receives and collectives that are over, kept with their slot for the next ones.
//!
//! A receive of a predefined type leaves nothing to be let go of, and neither does a collective of such types and a
//! predefined operation. So the call that tells the program its outcome marks its request spent and keeps the slot
//! here, which needs no claim, and the next one takes both as they are: neither allocates or frees anything. A handle
//! that a program has kept beyond its end leads to a spent request, which [`live`](crate::request::live) refuses like a
//! vacant slot.
//!
//! A collective of a few bytes has no request, and its state goes when it is over. Its slot is kept here, vacant.
//!
//! Threads of the rank alone come here: under the rank's claim, or without it if one thread is in calls at a time.

use super::requests::{EngineRequest, RequestState};
use cohort_engine::RequestRef;
use cohort_object::Slots;
use core::cell::Cell;
use core::ptr::NonNull;

/// Receives of a rank at most. What ends beyond them is freed.
const MOST: usize = 64;

/// Collectives of a rank at most. Each keeps the place where its members met until it serves again.
const MOST_COLLECTIVES: usize = 8;

/// Vacant slots of collectives of a few bytes.
const MOST_SLOTS: usize = 32;

/// The last few of what was kept.
struct Kept<T, const MOST: usize> {
    places: [Cell<Option<T>>; MOST],
    count: Cell<usize>,
}

impl<T: Copy, const MOST: usize> Kept<T, MOST> {
    const fn empty() -> Self {
        Self { places: [const { Cell::new(None) }; MOST], count: Cell::new(0) }
    }

    /// The place for one more, if there is room.
    #[inline(always)]
    fn room(&self) -> Option<&Cell<Option<T>>> {
        self.places.get(self.count.get())
    }

    #[inline(always)]
    fn last(&self) -> Option<T> {
        self.places.get(self.count.get().wrapping_sub(1))?.get()
    }
}

/// A request that is spent, and its slot.
#[derive(Clone, Copy)]
pub struct Spare {
    /// Of the slot.
    pub index: u32,
    /// What is in the slot.
    operation: NonNull<EngineRequest>,
}

impl Spare {
    /// What is in the slot.
    #[inline(always)]
    #[must_use]
    pub fn operation(&self) -> &EngineRequest {
        // SAFETY: slots stay where they are, and one that is kept here goes to nobody else.
        unsafe { self.operation.as_ref() }
    }
}

/// The spares of a rank.
pub struct Spares {
    receives: Kept<Spare, MOST>,
    collectives: Kept<Spare, MOST_COLLECTIVES>,
    slots: Kept<u32, MOST_SLOTS>,
    /// Records that were made to be kept.
    made: Cell<usize>,
}

impl Default for Spares {
    fn default() -> Self {
        Self { receives: Kept::empty(), collectives: Kept::empty(), slots: Kept::empty(), made: Cell::new(0) }
    }
}

/// Keeps one more.
#[inline(always)]
fn keep<T: Copy, const MOST: usize>(kept: &Kept<T, MOST>, request: &RequestRef, spare: T) -> bool {
    let Some(place) = kept.room() else {
        return false;
    };
    debug_assert!(request.plain_success().is_some());
    request.spend();
    place.set(Some(spare));
    kept.count.set(kept.count.get() + 1);
    true
}

impl Spares {
    /// Keeps the plain request of slot `index`, whose outcome the program is told, and ends its handle. `false`: it is
    /// another kind of request, or there is no room; nothing was done.
    #[inline(always)]
    #[must_use]
    pub fn keep(&self, index: u32, state: &RequestState) -> bool {
        match state {
            RequestState::Once(it) => {
                let operation = NonNull::from(it);
                keep(&self.receives, &it.request, Spare { index, operation })
            }
            // Its arguments stay there too, and are not looked at again: they are plain, as are the next ones.
            RequestState::Collective(it, _) => {
                let operation = NonNull::from(it);
                keep(&self.collectives, &it.request, Spare { index, operation })
            }
            _ => false,
        }
    }

    /// Ends the collective of a few bytes in slot `index`, which has succeeded, and keeps the slot. `false`: there is
    /// no room for that, or more is to be let go of; nothing was done.
    #[inline(always)]
    #[must_use]
    pub fn keep_slot(&self, requests: &Slots<RequestState>, index: u32, state: &RequestState) -> bool {
        let (RequestState::Small(small, None, _), Some(place)) = (state, self.slots.room()) else {
            return false;
        };
        // SAFETY: the program ends the operation, so that its handle goes, and no other thread uses the slot. Nothing
        // else is in there that is to be let go of.
        unsafe {
            small.release_in_place();
            requests.vacate(index);
        }
        place.set(Some(index));
        self.slots.count.set(self.slots.count.get() + 1);
        true
    }

    /// Whether [`Spares::take_slot`] would give one.
    #[inline(always)]
    #[must_use]
    pub fn has_slot(&self) -> bool {
        self.slots.last().is_some()
    }

    /// Takes a slot that was kept, to be filled.
    #[inline(always)]
    pub fn take_slot(&self) -> Option<u32> {
        let index = self.slots.last()?;
        self.slots.count.set(self.slots.count.get() - 1);
        Some(index)
    }

    /// Whether a record is to be made where one would do without, so that there is one to keep; counts it.
    pub fn wants_one(&self) -> bool {
        let made = self.made.get();
        self.made.set((made + 1).min(MOST));
        made < MOST
    }

    /// One of the receives, which stays here until it is [taken](Spares::take).
    #[inline(always)]
    #[must_use]
    pub fn last(&self) -> Option<Spare> {
        self.receives.last()
    }

    /// Takes the one that [`Spares::last`] gave.
    #[inline(always)]
    pub fn take(&self) {
        let count = &self.receives.count;
        count.set(count.get() - 1);
    }

    /// One of the collectives, which stays here until it is [taken](Spares::take_collective).
    #[inline]
    #[must_use]
    pub fn last_collective(&self) -> Option<Spare> {
        self.collectives.last()
    }

    /// Takes the one that [`Spares::last_collective`] gave.
    #[inline]
    pub fn take_collective(&self) {
        let count = &self.collectives.count;
        count.set(count.get() - 1);
    }
}
