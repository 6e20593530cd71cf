//! The entries of observed tables, in assembly: they must take any arguments and pass them on as they came.
//!
//! All of MPI's arguments are integers and addresses, and its observed functions return `int`. So the registers of the
//! calling convention for those and the words above the frame are all there is to keep.

use super::Entry;
use crate::calls::CALLS;
use core::ffi::c_void;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as machine;
#[cfg(target_arch = "x86_64")]
use x86_64 as machine;

use machine::{ENTRY_BYTES, IN_REGISTERS, entries};

/// Tables: one for each ABI.
const TABLES: usize = 3;

/// What an entry keeps of its call, on the stack.
#[repr(C)]
pub struct Frame {
    /// How many words of arguments lie on the stack; [`begin`] says it.
    stacked: u64,
    /// Number of the entry, through all tables.
    entry: u64,
    /// The calling thread's pointer, in which threads differ.
    thread: u64,
    /// What the plain entry returned.
    result: u64,
    /// For [`begin`] and [`end`]: the thread's slot.
    pub slot: u64,
    _aligned: u64,
    /// The arguments in registers.
    registers: [u64; IN_REGISTERS],
    /// The caller's frame pointer and where it goes on. The other arguments lie above.
    _saved: [u64; 2],
}

impl Frame {
    /// [`Frame::slot`] of a call of which nobody is told.
    pub const UNTOLD: u64 = u64::MAX;

    /// The function's place in its table.
    pub fn number(&self) -> usize {
        self.entry as usize % CALLS
    }

    /// Which table.
    pub fn table(&self) -> usize {
        self.entry as usize / CALLS
    }

    /// The first argument.
    pub fn caller(&self) -> *const c_void {
        core::ptr::with_exposed_provenance(self.registers[0] as usize)
    }

    /// The calling thread's pointer.
    pub fn thread_pointer(&self) -> u64 {
        self.thread
    }

    /// Where the frame lies on the stack.
    pub fn place(&self) -> usize {
        (&raw const *self).addr()
    }

    /// What the plain entry returned.
    pub fn result(&self) -> u64 {
        self.result
    }

    /// The function has so many arguments after the caller.
    pub fn has_arguments(&mut self, count: usize) {
        self.stacked = (count + 1).saturating_sub(IN_REGISTERS) as u64;
    }

    /// Has the plain entry get another word for an argument after the caller.
    pub fn substitute(&mut self, index: usize, word: u64) {
        if let Some(register) = self.registers.get_mut(index + 1) {
            *register = word;
        } else if (index + 1 - IN_REGISTERS) < self.stacked as usize {
            let above = core::ptr::with_exposed_provenance_mut::<u64>(self.place() + size_of::<Self>());
            // SAFETY: arguments on the stack are the callee's, by the calling convention.
            unsafe { above.add(index + 1 - IN_REGISTERS).write(word) };
        }
    }

    /// The arguments after the caller: in registers, and on the stack.
    pub fn arguments(&self) -> (&[u64], &[u64]) {
        let above = core::ptr::with_exposed_provenance(self.place() + size_of::<Self>());
        // SAFETY: the caller of an entry has put the arguments there that the function has, by the calling convention,
        // and does not touch them before it returns.
        let stack = unsafe { core::slice::from_raw_parts(above, self.stacked as usize) };
        (&self.registers[1..], stack)
    }
}

/// The code of an entry of the observed tables, by its number through all tables.
pub fn of(number: usize) -> Entry {
    debug_assert!(number < TABLES * CALLS);
    let first = entries as unsafe extern "C" fn();
    (first as *const u8).wrapping_add(number * ENTRY_BYTES).cast()
}
