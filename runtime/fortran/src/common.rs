//! Common blocks that programs and the library both define.
//!
//! Objects made from `mpif.h` or `use mpi` define the blocks as common symbols, and the dynamic linker has all of a
//! program's objects use the first definition. So their addresses are read from the global offset table, never taken
//! for those of the definitions here.

use core::cell::UnsafeCell;
use core::ffi::c_int;

/// A common block of integers. Nobody reads or writes it: its address counts.
#[repr(transparent)]
pub struct Block<const LENGTH: usize>(UnsafeCell<[c_int; LENGTH]>);

impl<const LENGTH: usize> Block<LENGTH> {
    /// A block.
    pub const fn new() -> Self {
        Self(UnsafeCell::new([0; LENGTH]))
    }
}

// SAFETY: nothing is read or written.
unsafe impl<const LENGTH: usize> Sync for Block<LENGTH> {}

macro_rules! blocks {
    ($($(#[$about:meta])* $name:ident $length:expr;)*) => {$(
        $(#[$about])*
        #[unsafe(no_mangle)]
        pub static $name: Block<{ $length }> = Block::new();
    )*};
}
pub(crate) use blocks;
