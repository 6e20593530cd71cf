//! Names of a rank's operations, by which peers answer them.
//!
//! An operation that a peer is to answer (an RTS, a receive whose data comes in packets, an operation on a window)
//! gets a name that travels: the number of a slot and how often that was used. Whatever a peer says, it finds an
//! operation of this rank, of the right kind, which waits for that very peer; or nothing. An address would lead
//! anywhere.

use crate::Network;
use cohort_base::Peer;
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::record::RecordRef;
use core::mem::size_of;
use core::ptr::{NonNull, null_mut};

/// Slots of the smallest table.
const FEWEST: usize = 16;

/// No slot.
const NONE: u32 = u32::MAX;

/// What an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A send that was offered, or that waits for its match.
    Send,
    /// A receive whose data comes in packets.
    Receive,
    /// An operation on a window.
    Window,
}

/// A name as it travels; 0 is none.
pub type Name = u64;

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The operation; null while the slot is free.
    operation: *mut u8,
    /// How often the slot was used; never 0.
    generation: u32,
    /// The next free slot.
    next: u32,
    peer: Peer,
    what: What,
}

/// The names of one rank. Only the holder of its claim uses them.
#[derive(Debug)]
pub(crate) struct Names {
    slots: NonNull<Slot>,
    count: usize,
    free: u32,
}

impl Names {
    pub(crate) const EMPTY: Self = Self { slots: NonNull::dangling(), count: 0, free: NONE };

    /// Bytes of a table with twice the slots.
    fn growth(&self) -> usize {
        (self.count * 2).max(FEWEST) * size_of::<Slot>()
    }

    /// Moves the table to fresh room with twice the slots. Returns the old room, which nobody uses any more.
    ///
    /// # Safety
    /// The room has [`Names::growth`] bytes, is aligned for slots, and is nobody else's.
    unsafe fn move_to(&mut self, room: NonNull<u8>) -> Option<NonNull<u8>> {
        let old = (self.count > 0).then_some(self.slots.cast::<u8>());
        let (from, slots) = (self.count, room.cast::<Slot>());
        let count = (from * 2).max(FEWEST);
        // SAFETY: the caller's promise; the old table has `from` slots.
        unsafe {
            slots.copy_from_nonoverlapping(self.slots, from);
            for index in from..count {
                slots.add(index).write(Slot {
                    operation: null_mut(),
                    generation: 1,
                    next: self.free,
                    peer: Peer::of_index(0),
                    what: What::Send,
                });
                self.free = index as u32;
            }
        }
        self.slots = slots;
        self.count = count;
        old
    }

    /// All slots.
    fn slots(&mut self) -> &mut [Slot] {
        // SAFETY: the table has this many slots, which are the table's alone.
        unsafe { core::slice::from_raw_parts_mut(self.slots.as_ptr(), self.count) }
    }

    /// The slot of a name that is in use.
    fn slot(&mut self, name: Name) -> Option<&mut Slot> {
        let slot = self.slots().get_mut(name as u32 as usize)?;
        let is_it = u64::from(slot.generation) == name >> 32 && !slot.operation.is_null();
        is_it.then_some(slot)
    }

    /// Takes a free slot, of which there is one.
    fn add(&mut self, what: What, peer: Peer, operation: NonNull<u8>) -> Name {
        let index = self.free;
        let slot = &mut self.slots()[index as usize];
        slot.operation = operation.as_ptr();
        slot.peer = peer;
        slot.what = what;
        let (name, next) = (u64::from(index) | u64::from(slot.generation) << 32, slot.next);
        self.free = next;
        name
    }

    fn find(&mut self, what: What, peer: Peer, name: Name) -> Option<NonNull<u8>> {
        let slot = self.slot(name)?;
        let is_it = slot.what == what && slot.peer == peer;
        NonNull::new(slot.operation).filter(|_| is_it)
    }

    fn remove(&mut self, name: Name) {
        let free = self.free;
        if let Some(slot) = self.slot(name) {
            slot.operation = null_mut();
            slot.generation = slot.generation.wrapping_add(1).max(1);
            slot.next = free;
            self.free = name as u32;
        }
    }
}

/// What has names: the type of all operations of one kind.
///
/// # Safety
/// No other type has the same `WHAT`.
pub unsafe trait Named {
    /// Its kind.
    const WHAT: What;
}

/// Names an operation of the claimed rank that `peer` is to answer. The name is [forgotten](forget) before the
/// operation is freed.
///
/// # Errors
/// There is no memory for the name.
pub fn name<T: Named>(claim: &mut Claim<'_>, peer: Peer, operation: RecordRef<T>) -> Result<Name, EngineError> {
    if claim.of::<Network>().names.free == NONE {
        let bytes = claim.of::<Network>().names.growth();
        let room = claim.alloc(bytes).ok_or(EngineError::OutOfMemory)?;
        // SAFETY: fresh room of that size, aligned as the heap aligns; then the table's former room.
        unsafe {
            if let Some(old) = claim.of::<Network>().names.move_to(room) {
                claim.free_local(old);
            }
        }
    }
    Ok(claim.of::<Network>().names.add(T::WHAT, peer, operation.as_non_null().cast()))
}

/// The operation of the claimed rank of this type and name that `peer` is to answer.
#[must_use]
pub fn find<T: Named>(claim: &mut Claim<'_>, peer: Peer, name: Name) -> Option<RecordRef<T>> {
    let found = claim.of::<Network>().names.find(T::WHAT, peer, name)?;
    // SAFETY: only operations of this type have such names, and the operation is there as long as its name is.
    Some(unsafe { RecordRef::new(found.cast()) })
}

/// An operation of the claimed rank of this type that a peer is to answer of which `wanted` says so.
#[must_use]
pub fn find_where<T: Named>(claim: &mut Claim<'_>, wanted: impl Fn(Peer) -> bool) -> Option<RecordRef<T>> {
    let mut slots = claim.of::<Network>().names.slots().iter();
    let found = slots.find(|slot| slot.what == T::WHAT && !slot.operation.is_null() && wanted(slot.peer))?;
    // SAFETY: as in `find`.
    NonNull::new(found.operation).map(|found| unsafe { RecordRef::new(found.cast()) })
}

/// Ends a name; nothing happens for 0.
pub fn forget(claim: &mut Claim<'_>, name: Name) {
    claim.of::<Network>().names.remove(name);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn grow(names: &mut Names) {
        let words = names.growth() / 8;
        let room = Vec::<u64>::with_capacity(words).leak().as_mut_ptr();
        // SAFETY: fresh room of that size.
        unsafe { names.move_to(NonNull::new(room.cast()).unwrap()) };
    }

    fn operation(address: usize) -> NonNull<u8> {
        NonNull::new(core::ptr::without_provenance_mut(address)).unwrap()
    }

    #[test]
    fn a_name_finds_its_operation_for_its_peer_while_it_lasts() {
        let mut names = Names::EMPTY;
        let (one, other) = (Peer::of_index(70), Peer::of_index(71));
        assert_eq!(names.find(What::Send, one, 0), None);
        let mut all = Vec::new();
        for index in 0..1000 {
            if names.free == NONE {
                grow(&mut names);
            }
            all.push(names.add(What::Send, one, operation(8 + index * 8)));
        }
        for (index, &name) in all.iter().enumerate() {
            assert_ne!(name, 0);
            assert_eq!(names.find(What::Send, one, name), Some(operation(8 + index * 8)));
            assert_eq!(names.find(What::Send, other, name), None);
            assert_eq!(names.find(What::Receive, one, name), None);
        }
        names.remove(all[3]);
        names.remove(all[3]);
        names.remove(0);
        assert_eq!(names.find(What::Send, one, all[3]), None);
        let again = names.add(What::Window, other, operation(16));
        assert_eq!(again as u32, all[3] as u32);
        assert_eq!(names.find(What::Window, other, all[3]), None);
        assert_eq!(names.find(What::Window, other, again), Some(operation(16)));
        for guess in [0, 1, 5, u64::MAX, 1 << 32 | 5000, 7 << 32 | 1] {
            assert_eq!(names.find(What::Send, one, guess), None, "{guess}");
        }
    }

    /// A slot that was used 2^32 times begins anew, without the name 0, which is none.
    #[test]
    fn a_slot_begins_anew_with_names_that_are_some() {
        let mut names = Names::EMPTY;
        grow(&mut names);
        for index in 0..names.count {
            names.slots()[index].generation = u32::MAX - 1;
        }
        let peer = Peer::of_index(70);
        let mut former = Vec::new();
        for turn in 0..4 * names.count {
            let name = names.add(What::Send, peer, operation(8 + turn * 8));
            assert_ne!(name, 0);
            assert_eq!(names.find(What::Send, peer, name), Some(operation(8 + turn * 8)));
            for &old in &former {
                assert_eq!(names.find(What::Send, peer, old), None);
            }
            names.remove(name);
            former.push(name);
        }
    }
}
