//! What packets from members on other nodes do here, under the claim of the rank they are for.

use crate::Rma;
use crate::element::{self, Combiner, Turns, class_of};
use crate::notes::{Message, Piece, REFUSED, Run, Verb, tell, tell_all, tell_locked};
use crate::shared::MemberHome;
use crate::window::Window;
use cohort_base::Peer;
use cohort_core::claim::Claim;
use cohort_datatype::op::PredefinedOp;
use cohort_net::names;
use cohort_net::{Note, post_note};
use core::mem::size_of;
use core::ptr::null_mut;

/// Handles a packet of a window; one for a window that is gone is of no interest to anybody.
/// Returns the bytes that came into user memory.
pub(crate) fn arrive(claim: &mut Claim<'_>, from: Peer, note: &Note, body: &[u8]) -> u64 {
    let windows = &claim.of::<Rma>().windows;
    let found = windows.find(|window| window.shared().number() == note.window);
    let (Some(window), Some(message)) = (found, Message::of(note.kind)) else {
        return 0;
    };
    let (shared, member) = (window.shared(), note.member);
    let Some(home) = shared.home(window.me()) else {
        return 0;
    };
    let is_late = match message {
        Message::Grant => home.from(member).granted.open(),
        Message::Done => home.from(member).ended.open(),
        Message::Locked => home.from(member).locked.open(),
        Message::Lock => {
            let me = window.me();
            let granted = |who| tell_locked(claim, shared, me, who);
            home.lock.request(member, note.value != 0, granted);
            return 0;
        }
        Message::Unlock => {
            let me = window.me();
            if home.lock.release(note.value != 0) {
                home.lock.advance(|who| tell_locked(claim, shared, me, who));
            }
            return 0;
        }
        Message::Arrived => {
            shared.nodes_arrived.arrive(note.value);
            tell_all(claim, shared);
            return 0;
        }
        Message::Piece => return piece(claim, &window, home, from, note, body),
        Message::Answer => {
            return match names::find(claim, from, note.id) {
                Some(operation) => window.sweep(claim).answered(operation, note.value, body),
                None => 0,
            };
        }
    };
    // The owner sleeps, or a thief may go on with the epoch.
    tell(claim, shared, window.me(), is_late);
    0
}

/// Does a piece of an operation, and answers it.
fn piece(claim: &mut Claim<'_>, window: &Window, home: &MemberHome, from: Peer, note: &Note, body: &[u8]) -> u64 {
    let parsed = Parsed::of(body).filter(|parsed| parsed.is_inside(window, home));
    let fetches = parsed.as_ref().is_some_and(Parsed::fetches);
    let length = parsed.as_ref().map_or(0, |parsed| parsed.piece.length);
    let answer = Note {
        kind: Message::Answer as u8,
        member: window.me(),
        value: if parsed.is_some() { note.value } else { REFUSED },
        ..*note
    };
    let room = if fetches { length as usize } else { 0 };
    let fetched = post_note(claim, from, answer, room);
    if let Some(parsed) = parsed {
        let fetched = if fetches { fetched } else { null_mut() };
        // SAFETY: the runs are memory that the program gave to the window; the answer has room.
        unsafe { parsed.run(&home.turns, fetched) };
    }
    length
}

/// A piece that has arrived.
struct Parsed<'a> {
    piece: Piece,
    verb: Verb,
    runs: &'a [u8],
    operands: &'a [u8],
}

impl<'a> Parsed<'a> {
    fn of(body: &'a [u8]) -> Option<Self> {
        let (head, rest) = body.split_at_checked(size_of::<Piece>())?;
        // SAFETY: as many bytes as it has, all of whose patterns are valid.
        let piece = unsafe { head.as_ptr().cast::<Piece>().read_unaligned() };
        let bytes = (piece.runs as usize).checked_mul(size_of::<Run>())?;
        let (runs, operands) = rest.split_at_checked(bytes)?;
        let verb = Verb::of(piece.verb)?;
        let parsed = Self { piece, verb, runs, operands };
        let total = parsed.each().map(|run| run.block.saturating_mul(run.count));
        (total.sum::<u64>() == piece.length).then_some(parsed)
    }

    fn each(&self) -> impl Iterator<Item = Run> + 'a {
        self.runs.chunks_exact(size_of::<Run>()).map(|bytes| {
            // SAFETY: as many bytes as it has, all of whose patterns are valid.
            unsafe { bytes.as_ptr().cast::<Run>().read_unaligned() }
        })
    }

    /// Whether all runs lie in the owner's part of the window.
    fn is_inside(&self, window: &Window, home: &MemberHome) -> bool {
        let shared = window.shared();
        let part = shared.part(window.me());
        let (start, end) = (part.base as u64, part.base as u64 + part.size);
        self.each().all(|run| {
            let last = run.stride.saturating_mul(run.count as i64 - 1);
            let last = run.address.saturating_add_signed(last);
            let (low, high) = (run.address.min(last), run.address.max(last));
            let high = high.saturating_add(run.block);
            match shared.is_dynamic() {
                true => home.has_attached(low, high) || run.are_attached(home),
                false => start <= low && high <= end,
            }
        })
    }

    fn fetches(&self) -> bool {
        !matches!(self.verb, Verb::Put | Verb::Accumulate)
    }

    /// Does what the piece asks for; what it fetches goes to `fetched`.
    ///
    /// # Safety
    /// The runs are memory of the window; `fetched` has room for the piece's bytes if it fetches.
    unsafe fn run(&self, turns: &Turns, mut fetched: *mut u8) {
        let each_run = |run: &mut dyn FnMut(*mut u8, usize)| {
            for Run { address, block, stride, count } in self.each() {
                for index in 0..count as i64 {
                    let address = address.wrapping_add_signed(stride * index) as usize;
                    run(core::ptr::with_exposed_provenance_mut(address), block as usize);
                }
            }
        };
        let mut input = self.operands.as_ptr();
        let length = self.piece.length as usize;
        // SAFETY: the caller's promise; operands are as long as the piece, as the origin wrote it.
        unsafe {
            match self.verb {
                Verb::Put if self.operands.len() >= length => each_run(&mut |memory, bytes| {
                    memory.copy_from_nonoverlapping(input, bytes);
                    input = input.add(bytes);
                }),
                Verb::Get => each_run(&mut |memory, bytes| {
                    fetched.copy_from_nonoverlapping(memory, bytes);
                    fetched = fetched.add(bytes);
                }),
                Verb::CompareAndSwap if self.operands.len() >= 2 * length => {
                    each_run(&mut |memory, size| {
                        let value = input.add(size);
                        element::compare_and_swap(memory, input, value, fetched, size, Some(turns));
                    });
                }
                Verb::Accumulate | Verb::FetchAccumulate => {
                    self.accumulate(turns, each_run, fetched);
                }
                Verb::Put | Verb::CompareAndSwap => {}
            }
        }
    }

    /// # Safety
    /// As [`Parsed::run`].
    unsafe fn accumulate(
        &self,
        turns: &Turns,
        each_run: impl FnOnce(&mut dyn FnMut(*mut u8, usize)),
        fetched: *mut u8,
    ) {
        let op = PredefinedOp::from_handle(self.piece.op);
        let (Some(op), Some(class)) = (op, class_of(self.piece.class)) else {
            return;
        };
        let Some(combiner) = Combiner::new(op, class) else {
            return;
        };
        let length = self.piece.length as usize;
        let input = match op {
            PredefinedOp::NoOp => fetched.cast_const(),
            _ if self.operands.len() >= length => self.operands.as_ptr(),
            _ => return,
        };
        // SAFETY: the caller's promise; what has no operands reads the room of its answer instead.
        unsafe { combiner.apply(Some(turns), each_run, input, fetched) };
    }
}

impl Run {
    /// Whether all blocks lie in memory that the owner of the window has attached: what lies between them need not.
    fn are_attached(&self, home: &MemberHome) -> bool {
        self.block == 0
            || (0..self.count as i64).all(|index| {
                let from = self.address.saturating_add_signed(self.stride.saturating_mul(index));
                home.has_attached(from, from.saturating_add(self.block))
            })
    }
}
