//! Where the members of a communicator meet that live on one node and survive each other
//! ([`cohort_core::failures`]).
//!
//! Each member has a *seat*, which it alone writes. For its `n`-th meeting it puts there what it has to say, and then
//! `n`: so one who dies has come with all that it has to say, or has not come. Everybody waits until all have come, or
//! until one that has not has failed. A seat has room for what is said in two meetings: who comes to one has read what
//! all have said in the one before, so that nobody reads any more what was said in the one before that.
//!
//! The first member makes the seats, and tells the others in messages where they are. They are freed when all members
//! have left; those that one has left by dying stay.

use alloc::boxed::Box;
use cohort_base::sync::CacheLine;
use cohort_base::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
use core::cell::UnsafeCell;
use core::ptr::null_mut;

/// Bytes that a member may say.
pub(crate) const ROOM: usize = 128;

/// Members that meet so: each looks at the seats of all others. With 1 nobody does, as long as it is not known why
/// two of 36 jobs with a death between two instructions did not end; 64 is what it is meant to be.
pub(crate) const MOST: usize = 1;

/// Calls that go by messages before seats are made: many communicators see few collectives.
const BEFORE: u64 = 2;

/// What a member says. Any element is aligned in it.
type Said = [u128; ROOM / 16];
const _: () = assert!(align_of::<Said>() == 16);

/// One member's, which it alone writes.
struct Seat {
    /// Meetings that the member has come to.
    came: AtomicU64,
    /// Which call each of the last two was of.
    labels: [AtomicU64; 2],
    said: [UnsafeCell<Said>; 2],
}

/// See the module page.
pub(crate) struct Seats {
    seats: Box<[CacheLine<Seat>]>,
    left: AtomicU32,
}

// SAFETY: what is said is written by the seat's member before it has come, and read by others after that.
unsafe impl Sync for Seats {}

impl Seats {
    /// Seats of so many members.
    pub(crate) fn new(members: usize) -> Self {
        let seat = |_| {
            let said = [(); 2].map(|()| UnsafeCell::new([0; ROOM / 16]));
            CacheLine(Seat { came: AtomicU64::new(0), labels: [const { AtomicU64::new(0) }; 2], said })
        };
        Self { seats: (0..members).map(seat).collect(), left: AtomicU32::new(0) }
    }

    /// Where the member puts what it says in this meeting, to which it has not come yet.
    pub(crate) fn place(&self, me: usize, meeting: u64) -> *mut u8 {
        self.seats[me].said[meeting as usize & 1].get().cast()
    }

    /// The member has come, with what it says, for a call with this label. Says whether all have.
    pub(crate) fn come(&self, me: usize, meeting: u64, label: u64) -> bool {
        let seat = &self.seats[me];
        seat.labels[meeting as usize & 1].store(label, Ordering::Relaxed);
        // Release pairs with the Acquire of `has_come`.
        seat.came.store(meeting, Ordering::Release);
        // Of members that come at once the last one sees all others.
        fence(Ordering::SeqCst);
        self.all_have_come(meeting)
    }

    pub(crate) fn has_come(&self, member: usize, meeting: u64) -> bool {
        self.seats[member].came.load(Ordering::Acquire) >= meeting
    }

    pub(crate) fn all_have_come(&self, meeting: u64) -> bool {
        (0..self.seats.len()).all(|member| self.has_come(member, meeting))
    }

    /// Which call a member has come for.
    pub(crate) fn label(&self, member: usize, meeting: u64) -> u64 {
        self.seats[member].labels[meeting as usize & 1].load(Ordering::Relaxed)
    }

    /// What the members have said in this meeting, to which all have come, by rank.
    pub(crate) fn said(&self, meeting: u64) -> impl DoubleEndedIterator<Item = *const u8> {
        self.seats.iter().map(move |seat| seat.said[meeting as usize & 1].get().cast_const().cast())
    }
}

/// A member's way to the seats.
pub(crate) struct Chair {
    seats: AtomicPtr<Seats>,
    /// Calls that may go there, so far.
    calls: AtomicU64,
}

impl Chair {
    pub(crate) const fn new() -> Self {
        Self { seats: AtomicPtr::new(null_mut()), calls: AtomicU64::new(0) }
    }

    /// The number of the next meeting, the same at all members; `None`: this call goes by messages. Relaxed: one thread
    /// of the member at a time is here.
    pub(crate) fn next_meeting(&self) -> Option<u64> {
        let calls = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        calls.checked_sub(BEFORE).filter(|&meeting| meeting > 0)
    }

    /// The seats, if the member knows them.
    pub(crate) fn seats(&self) -> Option<&Seats> {
        // SAFETY: null, or seats that are there until the member has left.
        unsafe { self.seats.load(Ordering::Relaxed).as_ref() }
    }

    /// The member knows the seats from now on.
    ///
    /// # Safety
    /// The first member has made them, by `Box::into_raw`, and each member is told once.
    pub(crate) unsafe fn know(&self, seats: *mut Seats) {
        self.seats.store(seats, Ordering::Relaxed);
    }
}

impl Drop for Chair {
    fn drop(&mut self) {
        let seats = *self.seats.get_mut();
        let Some(known) = self.seats() else {
            return;
        };
        let members = known.seats.len() as u32;
        // AcqRel: the last one sees that the others are done.
        if known.left.fetch_add(1, Ordering::AcqRel) + 1 == members {
            // SAFETY: made so, and all members have left.
            drop(unsafe { Box::from_raw(seats) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;
    use std::vec::Vec;

    #[test]
    fn all_read_what_all_have_said() {
        const MEMBERS: usize = 4;
        let seats = Arc::new(Seats::new(MEMBERS));
        let threads: Vec<_> = (0..MEMBERS)
            .map(|me| {
                let seats = seats.clone();
                thread::spawn(move || {
                    for meeting in 1..2000_u64 {
                        let mine = meeting * 10 + me as u64;
                        // SAFETY: room for a word, which nobody reads before we have come.
                        unsafe { seats.place(me, meeting).cast::<u64>().write(mine) };
                        seats.come(me, meeting, meeting);
                        while !seats.all_have_come(meeting) {
                            thread::yield_now();
                        }
                        // SAFETY: all have come, and nobody writes there before we come to the next meeting.
                        let sum: u64 = seats.said(meeting).map(|said| unsafe { said.cast::<u64>().read() }).sum();
                        assert_eq!(sum, meeting * 40 + 6);
                        assert_eq!(seats.label(0, meeting), meeting);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
    }

    #[test]
    fn the_last_to_leave_frees_them() {
        let chairs = [Chair::new(), Chair::new()];
        assert_eq!([(); 3].map(|()| chairs[0].next_meeting()), [None, None, Some(1)]);
        let seats = Box::into_raw(Box::new(Seats::new(2)));
        // SAFETY: just made.
        chairs.iter().for_each(|chair| unsafe { chair.know(seats) });
        let [first, second] = chairs;
        drop(first);
        assert!(second.seats().is_some_and(|seats| !seats.has_come(1, 1)));
    }
}
