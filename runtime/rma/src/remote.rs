//! Members on other nodes: what epochs and operations say to them.
//!
//! Everything is an active message: a packet that is acted upon when it arrives, under the claim of
//! the rank it is for, by its owner or by a thief ([`crate::arrival`]). A window with members on
//! several nodes is a reason for thieves to look at the network of its members as long as it
//! exists.
//!
//! An operation is cut into pieces of a packet each. A piece names the target's memory by [`Run`]s,
//! so the target needs not know the datatype. Each piece is answered; an operation is complete when
//! it was sent as a whole and all pieces are answered. Packets of one pair of ranks keep their
//! order, and so do accumulates.

use crate::epoch::{Epoch, EpochKind, Recorded};
use crate::notes::{Message, Piece, REFUSED, RUNS_MAX, Run, Verb, say};
use crate::operation::{Action, Resolved};
use crate::sweep::Sweep;
use cohort_core::record::RecordRef;
use cohort_datatype as datatype;
use cohort_datatype::op::PredefinedOp;
use cohort_net::names;
use cohort_net::{Note, fail, post_note, room_of_notes};
use core::mem::size_of;

/// Packets of one window end that may be unanswered.
const UNANSWERED_MAX: u32 = 64;

impl Sweep<'_, '_> {
    /// Asks a member of another node for access, or grants it.
    pub(super) fn ask_remote(&mut self, kind: EpochKind, member: u32) {
        let (shared, me) = (self.window.shared(), self.window.me());
        match kind {
            EpochKind::Exposure => say(self.claim, shared, member, Message::Grant, me, 0),
            EpochKind::Lock { .. } | EpochKind::LockAll => {
                let exclusive = u64::from(kind == EpochKind::Lock { exclusive: true });
                say(self.claim, shared, member, Message::Lock, me, exclusive);
            }
            EpochKind::Access | EpochKind::Fence => {}
        }
    }

    /// Tells a member of another node that an epoch is over.
    pub(super) fn end_remote(&mut self, kind: EpochKind, member: u32) {
        let (shared, me) = (self.window.shared(), self.window.me());
        match kind {
            EpochKind::Lock { .. } | EpochKind::LockAll => {
                let exclusive = u64::from(kind == EpochKind::Lock { exclusive: true });
                say(self.claim, shared, member, Message::Unlock, me, exclusive);
            }
            _ => say(self.claim, shared, member, Message::Done, me, 0),
        }
    }

    /// Sends pieces of an operation on a member of another node; says whether all of it has left.
    pub(super) fn send_pieces(&mut self, epoch: RecordRef<Epoch>, operation: RecordRef<Recorded>) -> bool {
        operation.epoch.set(Some(epoch));
        let peer = self.window.shared().members()[operation.member as usize];
        if operation.name.get() == 0 {
            let named = names::name(self.claim, peer, operation);
            operation.name.set(named.unwrap_or_else(|_| fail::no_memory(self.claim.rank(), peer)));
        }
        let bytes = operation.resolved().bytes();
        while operation.progress.get() < bytes || operation.progress.get() == 0 && operation.unanswered.get() == 0 {
            if self.state.unanswered >= UNANSWERED_MAX {
                return false;
            }
            let plan = PiecePlan::new(&operation.resolved(), operation.progress.get(), self.room());
            let note = Note {
                window: self.window.shared().number(),
                kind: Message::Piece as u8,
                member: self.window.me(),
                id: operation.name.get(),
                value: operation.progress.get(),
            };
            let room = post_note(self.claim, peer, note, plan.bytes());
            // SAFETY: the packet has room for the plan; the operation's buffers are readable until it is complete.
            unsafe { plan.write(&operation, room) };
            operation.progress.set(operation.progress.get() + plan.piece.length);
            operation.unanswered.set(operation.unanswered.get() + 1);
            self.state.unanswered += 1;
            self.moved = true;
            if plan.piece.length == 0 {
                break;
            }
        }
        true
    }

    fn room(&self) -> usize {
        room_of_notes(self.claim.rank().node())
    }

    /// A piece of one of this window's operations was answered. Returns the bytes that it brought.
    pub(super) fn answered(&mut self, operation: RecordRef<Recorded>, place: u64, body: &[u8]) -> u64 {
        let Some(epoch) = operation.epoch.get().filter(|_| operation.unanswered.get() > 0) else {
            return 0;
        };
        if place == REFUSED {
            operation.error.set(cohort_core::Status::RMA_RANGE);
        } else if !body.is_empty() {
            let resolved = operation.resolved();
            let into = match resolved.action {
                Action::Get => Some(resolved.origin),
                _ => resolved.result,
            };
            if let Some(into) = into {
                datatype::unpack_bytes(into, place, body);
            }
        }
        self.state.unanswered -= 1;
        operation.unanswered.set(operation.unanswered.get() - 1);
        if operation.unanswered.get() == 0 && operation.progress.get() >= operation.resolved().bytes() {
            // What was sent as a whole is in this list.
            epoch.running.remove(operation);
            self.retire(epoch, operation);
        }
        body.len() as u64
    }
}

/// One piece before it is written.
struct PiecePlan {
    piece: Piece,
    runs: [Run; RUNS_MAX],
    from: u64,
    operands: usize,
}

impl PiecePlan {
    /// The piece from byte `from` of the stream on that fits into a packet with `room` bytes.
    fn new(resolved: &Resolved<'_>, from: u64, room: usize) -> Self {
        let (verb, op) = match (resolved.action, resolved.result) {
            (Action::Put, _) => (Verb::Put, 0),
            (Action::Get, _) => (Verb::Get, 0),
            (Action::Accumulate(op), None) => (Verb::Accumulate, op as u32),
            (Action::Accumulate(op), Some(_)) => (Verb::FetchAccumulate, op as u32),
            (Action::CompareAndSwap, _) => (Verb::CompareAndSwap, 0),
        };
        let class = resolved.class();
        let most = room - size_of::<Piece>() - RUNS_MAX * size_of::<Run>();
        // An element with a hole is two runs, and goes to the target as a whole.
        let most = match class.size() == class.extent() || !resolved.action.accumulates() {
            true => most as u64,
            false => (RUNS_MAX / 2) as u64 * class.size() as u64,
        };
        let to = resolved.cut(from, most);
        let mut runs = Runs::default();
        datatype::visit(resolved.target, from, to, |memory, bytes| {
            runs.add(memory.addr() as u64, bytes as u64);
        });
        let length = runs.bytes;
        let operands = match (verb, resolved.action) {
            (Verb::Get, _) | (_, Action::Accumulate(PredefinedOp::NoOp)) => 0,
            (Verb::CompareAndSwap, _) => 2 * length as usize,
            _ => length as usize,
        };
        Self {
            piece: Piece {
                verb: verb as u32,
                op,
                class: crate::element::handle_of(class),
                runs: runs.count as u32,
                length,
            },
            runs: runs.list,
            from,
            operands,
        }
    }

    /// Bytes of the packet's data.
    fn bytes(&self) -> usize {
        size_of::<Piece>() + self.piece.runs as usize * size_of::<Run>() + self.operands
    }

    /// # Safety
    /// `room` has [`PiecePlan::bytes`] bytes, and what is compared with is readable.
    unsafe fn write(&self, operation: &Recorded, room: *mut u8) {
        let resolved = operation.resolved();
        // SAFETY: the caller's promise.
        unsafe {
            room.cast::<Piece>().write_unaligned(self.piece);
            let runs = room.add(size_of::<Piece>());
            let bytes = self.piece.runs as usize * size_of::<Run>();
            runs.copy_from_nonoverlapping(self.runs.as_ptr().cast(), bytes);
            let operands = runs.add(bytes);
            if resolved.action == Action::CompareAndSwap {
                let size = self.piece.length as usize;
                operands.copy_from_nonoverlapping(resolved.compare, size);
                let value = resolved.origin.base();
                operands.add(size).copy_from_nonoverlapping(value, size);
            } else if self.operands > 0 {
                datatype::pack(resolved.origin, self.from, operands, self.piece.length);
            }
        }
    }
}

/// Runs as they are found; those that do not fit are left for the next piece.
#[derive(Default)]
struct Runs {
    list: [Run; RUNS_MAX],
    count: usize,
    bytes: u64,
    is_full: bool,
}

impl Runs {
    fn add(&mut self, address: u64, block: u64) {
        if self.is_full {
            return;
        }
        if let Some(last) = self.count.checked_sub(1).map(|last| &mut self.list[last])
            && last.block == block
        {
            let next = last.address as i64 + last.stride * last.count as i64;
            if last.count == 1 || next == address as i64 {
                if last.count == 1 {
                    last.stride = address.wrapping_sub(last.address).cast_signed();
                }
                last.count += 1;
                self.bytes += block;
                return;
            }
        }
        if self.count == RUNS_MAX {
            self.is_full = true;
            return;
        }
        self.list[self.count] = Run { address, block, stride: 0, count: 1 };
        self.count += 1;
        self.bytes += block;
    }
}
