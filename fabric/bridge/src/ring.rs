//! A ring of frames in memory: many write, one reads.
//!
//! ```text
//! writer, with the turn                         reader
//! W1 reads `taken`: is there room?              R1 reads `pushed`: is there a frame?
//! W2 writes the frame                           R2 reads the frame
//! W3 pushed += its length (release)             R3 taken += its length (release)
//! W4 rings the bell, if the reader sleeps       R4 `is_awaited`: the reader tells writers that there is room
//! ```
//!
//! **Frames.** Each begins at a multiple of 16 and lies in one piece: where it would go beyond the end of the memory,
//! padding fills the rest. Both counters only grow; the place of one is its remainder.
//!
//! **Why no frame is read early or overwritten.** W3 is release and R1 acquire, so who sees the counter sees the bytes.
//! R3 is release and W1 acquire, so bytes are written again only after they were read. One writer at a time has the
//! turn.
//!
//! **Why no sleep is missed.** The reader reads the bell ([`Ring::heard`]), then looks whether there is anything for it
//! to do, says that it sleeps, fences, looks at `pushed`, and sleeps only if the bell has not rung since it was read
//! ([`Ring::wait`]). Whoever has something else for it does that first, and [rings](Ring::ring) then. A writer rings
//! after W3, fences, and looks whether the reader sleeps. So either the reader sees the frame, or the writer sees that
//! it sleeps, and wakes it. A writer without room marks `is_awaited` and looks once more, so either it sees the room,
//! or the reader, who looks at the mark after R3, sees the mark.

use cohort_base::lock::FutexLock;
use cohort_base::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use cohort_base::sync::futex;
use core::ptr;
use core::time::Duration;

/// Looks at the turn of a writer that does not wait.
const TRIES: u32 = if cfg!(loom) { 2 } else { 1000 };

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Fills the rest of the memory; only in rings.
    Padding = 0,
    /// A packet.
    Packet,
    /// Says that the rank `from` takes no packets any more, with or without reason: its length is the system's number
    /// for that, or 0.
    Gone,
    /// Says so of all ranks of the line whose first one is `from`.
    Over,
    /// The rank `from` has failed, and its job goes on. Between launchers.
    Dead,
    /// Nobody is to communicate any more in the context that is the length. Between launchers.
    Closed,
}

/// The beginning of a frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Bytes behind a packet or padding; of others a number.
    pub length: u32,
    /// A [`Kind`].
    pub kind: u32,
    /// Who sends it.
    pub from: u32,
    /// Who gets it.
    pub to: u32,
}

impl Frame {
    /// Bytes of it.
    pub const BYTES: usize = size_of::<Self>();

    /// Bytes behind it in the ring, and between jobs: to the next multiple of 16.
    #[must_use]
    pub const fn body(&self) -> usize {
        match self.kind == Kind::Packet as u32 || self.kind == Kind::Padding as u32 {
            true => (self.length as usize).next_multiple_of(Self::BYTES),
            false => 0,
        }
    }

    /// One that was read as bytes.
    #[must_use]
    pub fn of_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self { length: word(0), kind: word(4), from: word(8), to: word(12) }
    }

    /// As bytes.
    #[must_use]
    pub fn bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let words = [self.length, self.kind, self.from, self.to];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

/// See the module.
#[derive(Debug)]
pub struct Ring {
    memory: *mut u8,
    size: u64,
    turn: FutexLock<()>,
    pushed: AtomicU64,
    taken: AtomicU64,
    /// Rings when there is something to read.
    bell: AtomicU32,
    /// The reader may sleep.
    sleeps: AtomicU32,
    /// Somebody has found no room.
    is_awaited: AtomicU32,
}

// SAFETY: the memory is written by who has the turn, and read by the one reader, as the protocol says.
unsafe impl Sync for Ring {}
// SAFETY: as above.
unsafe impl Send for Ring {}

impl Ring {
    /// A ring over memory of so many bytes, a power of two.
    ///
    /// # Safety
    /// The memory is nobody else's, aligned to 16, and stays.
    #[must_use]
    pub unsafe fn over(memory: *mut u8, size: usize) -> Self {
        assert!(size.is_power_of_two() && size >= 4096, "a power of two");
        Self {
            memory,
            size: size as u64,
            turn: FutexLock::new(()),
            pushed: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            bell: AtomicU32::new(0),
            sleeps: AtomicU32::new(0),
            is_awaited: AtomicU32::new(0),
        }
    }

    /// Whether there is something to read.
    #[must_use]
    pub fn has_frames(&self) -> bool {
        self.pushed.load(Ordering::Acquire) != self.taken.load(Ordering::Relaxed)
    }

    /// Writes a frame, at most half as long as the ring, with a body in two pieces, or none if there is no room. With
    /// `waits` for the turn; else that is no room either, if another one does not end soon: handlers of signals and
    /// thieves may have interrupted it.
    pub fn push(&self, frame: Frame, pieces: [&[u8]; 2], waits: bool) -> bool {
        let guard = match waits {
            true => Some(self.turn.lock()),
            false => (0..TRIES).find_map(|_| self.turn.try_lock()),
        };
        let Some(_turn) = guard else {
            return false;
        };
        if !self.has_room(frame.body() as u64 + Frame::BYTES as u64) {
            // The module says why there are two looks.
            self.is_awaited.store(1, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            if !self.has_room(frame.body() as u64 + Frame::BYTES as u64) {
                return false;
            }
        }
        // SAFETY: there is room for the frame, and for padding before it.
        unsafe { self.write(frame, pieces) };
        self.bell.fetch_add(1, Ordering::Release);
        // Pairs with the fence in `wait`.
        fence(Ordering::SeqCst);
        if self.sleeps.load(Ordering::Relaxed) != 0 {
            futex::wake(&self.bell, 1);
        }
        true
    }

    /// Whether a frame of so many bytes fits, with what pads the end of the memory.
    fn has_room(&self, bytes: u64) -> bool {
        let pushed = self.pushed.load(Ordering::Relaxed);
        let left = self.size - (pushed & (self.size - 1));
        let padding = if left < bytes { left } else { 0 };
        self.size - (pushed - self.taken.load(Ordering::Acquire)) >= padding + bytes
    }

    /// # Safety
    /// The caller has the turn, and there is room.
    unsafe fn write(&self, frame: Frame, pieces: [&[u8]; 2]) {
        let mut pushed = self.pushed.load(Ordering::Relaxed);
        let bytes = (Frame::BYTES + frame.body()) as u64;
        let left = self.size - (pushed & (self.size - 1));
        // SAFETY: places are below the size; frames begin at multiples of 16, and the rest of the memory holds at least
        // a frame's beginning.
        unsafe {
            if left < bytes {
                let length = (left as usize - Frame::BYTES) as u32;
                let padding = Frame { length, kind: Kind::Padding as u32, from: 0, to: 0 };
                self.at(pushed).cast::<Frame>().write(padding);
                pushed += left;
            }
            self.at(pushed).cast::<Frame>().write(frame);
            let mut place = self.at(pushed).add(Frame::BYTES);
            for piece in pieces {
                ptr::copy_nonoverlapping(piece.as_ptr(), place, piece.len());
                place = place.add(piece.len());
            }
        }
        self.pushed.store(pushed + bytes, Ordering::Release);
    }

    fn at(&self, position: u64) -> *mut u8 {
        self.memory.wrapping_add((position & (self.size - 1)) as usize)
    }

    /// The next frames as they lie in memory, at most about so many bytes of them; empty if there are none. By the
    /// reader.
    pub fn front(&self, most: usize) -> &[u8] {
        let pushed = self.pushed.load(Ordering::Acquire);
        let mut taken = self.taken.load(Ordering::Relaxed);
        let mut length = 0;
        while taken + (length as u64) < pushed {
            // SAFETY: a frame that was written, by the protocol.
            let frame = unsafe { self.at(taken + length as u64).cast::<Frame>().read() };
            if frame.kind == Kind::Padding as u32 {
                if length > 0 {
                    break;
                }
                taken += (Frame::BYTES + frame.body()) as u64;
                self.taken.store(taken, Ordering::Release);
                continue;
            }
            length += Frame::BYTES + frame.body();
            if length >= most {
                break;
            }
        }
        // SAFETY: frames up to padding lie in one piece, and are not written before they are taken.
        unsafe { core::slice::from_raw_parts(self.at(taken), length) }
    }

    /// So many bytes of [`Ring::front`] are read. True if somebody waits for room. By the reader.
    pub fn take(&self, length: usize) -> bool {
        let taken = self.taken.load(Ordering::Relaxed);
        self.taken.store(taken + length as u64, Ordering::Release);
        fence(Ordering::SeqCst);
        self.is_awaited.load(Ordering::Relaxed) != 0 && self.is_awaited.swap(0, Ordering::Relaxed) != 0
    }

    /// How often the bell has rung: read before one looks for what it may ring for, and then [waits](Ring::wait).
    #[must_use]
    pub fn heard(&self) -> u32 {
        self.bell.load(Ordering::Acquire)
    }

    /// Sleeps until there is something to read, the bell has [rung](Ring::ring) since [`Ring::heard`] gave this, or the
    /// limit is over. By the reader.
    pub fn wait(&self, heard: u32, limit: Option<Duration>) {
        self.sleeps.store(1, Ordering::Relaxed);
        // Pairs with the fence in `push`.
        fence(Ordering::SeqCst);
        if !self.has_frames() {
            futex::wait(&self.bell, heard, limit);
        }
        self.sleeps.store(0, Ordering::Relaxed);
    }

    /// Its memory and how long that is, for who gives its pages back when nobody reads it any more. What somebody still
    /// writes is lost then.
    #[must_use]
    pub fn memory(&self) -> (*mut u8, usize) {
        (self.memory, self.size as usize)
    }

    /// Wakes the reader, and writers that [wait for room](Ring::wait_for_room).
    pub fn ring(&self) {
        self.bell.fetch_add(1, Ordering::SeqCst);
        futex::wake(&self.bell, u32::MAX);
    }

    /// Sleeps after a [`Ring::push`] that has found no room, until its reader [rings](Ring::ring) or the limit is over.
    pub fn wait_for_room(&self, limit: Duration) {
        let heard = self.bell.load(Ordering::SeqCst);
        if self.is_awaited.load(Ordering::SeqCst) != 0 {
            futex::wait(&self.bell, heard, Some(limit));
        }
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    pub(super) fn ring(size: usize) -> &'static Ring {
        let memory = std::vec![0_u128; size / 16].leak().as_mut_ptr().cast();
        // SAFETY: fresh memory that is never freed.
        std::boxed::Box::leak(std::boxed::Box::new(unsafe { Ring::over(memory, size) }))
    }

    pub(super) fn packet(length: usize, from: u32) -> Frame {
        Frame { length: length as u32, kind: Kind::Packet as u32, from, to: 7 }
    }

    pub(super) fn pop(ring: &Ring) -> Option<(Frame, Vec<u8>)> {
        let front = ring.front(1);
        let frame = Frame::of_bytes(front.first_chunk()?);
        let body = front[Frame::BYTES..][..frame.length as usize].to_vec();
        ring.take(Frame::BYTES + frame.body());
        Some((frame, body))
    }

    #[cfg(not(loom))]
    #[test]
    fn frames_of_all_lengths_come_out_as_they_went_in() {
        let ring = ring(4096);
        for length in 0..2000 {
            let body: Vec<u8> = (0..length).map(|it| (it * 7 + length) as u8).collect();
            let (first, rest) = body.split_at(length / 3);
            assert!(ring.push(packet(length, length as u32), [first, rest], true));
            assert_eq!(pop(ring), Some((packet(length, length as u32), body)));
            assert!(!ring.has_frames() && pop(ring).is_none());
        }
    }

    #[cfg(not(loom))]
    #[test]
    fn who_finds_no_room_is_told_of_it() {
        let ring = ring(4096);
        let body = [5; 1000];
        let pushed = (0..).take_while(|&it| ring.push(packet(1000, it), [&body, &[]], false)).count();
        assert_eq!(pushed, 4);
        let frame = Frame::of_bytes(ring.front(1).first_chunk().unwrap());
        assert!(ring.take(Frame::BYTES + frame.body()), "somebody waits");
        assert!(ring.push(packet(1000, 9), [&body, &[]], false));
        assert_eq!((1..4).chain([9]).map(|_| pop(ring).unwrap().0.from).collect::<Vec<_>>(), [1, 2, 3, 9]);
        assert!(!ring.push(packet(5000, 0), [&[0; 5000], &[]], true), "longer than the ring");
    }

    #[cfg(not(loom))]
    #[test]
    fn several_frames_are_read_as_one_piece() {
        let ring = ring(4096);
        for from in 0..3 {
            assert!(ring.push(packet(20, from), [&[1; 20], &[]], true));
        }
        assert_eq!(ring.front(4096).len(), 3 * 48);
        assert_eq!(ring.front(50).len(), 2 * 48);
        ring.take(48);
        assert_eq!(ring.front(4096).len(), 2 * 48);
    }

    #[cfg(not(loom))]
    #[test]
    fn many_writers_and_a_sleeping_reader_lose_nothing() {
        let ring = ring(1 << 14);
        std::thread::scope(|scope| {
            for writer in 0..3_u32 {
                scope.spawn(move || {
                    for number in 0..2000_u32 {
                        let text = number.to_ne_bytes();
                        while !ring.push(packet(4, writer), [&text, &[]], true) {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let mut next = [0; 3];
            while next != [2000; 3] {
                match pop(ring) {
                    None => ring.wait(ring.heard(), None),
                    Some((frame, body)) => {
                        let expected = &mut next[frame.from as usize];
                        assert_eq!(body, u32::to_ne_bytes(*expected));
                        *expected += 1;
                    }
                }
            }
        });
    }
}
