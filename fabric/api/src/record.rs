//! A transport across the border between two libraries of one build: the network library and the node image.
//!
//! Both are made by one compiler from one source of this crate, so a `&dyn Transport` means the same on both sides. A
//! [`Network`] has it behind the number of the build; [`open`] takes none of another build.

use crate::Transport;
use core::ffi::c_void;

/// First word of a [`Network`]; anything else is not ours.
const MAGIC: u64 = 0x3154_454e_4843_4f43;

/// A number for the compiler, this crate's source and the way in which it is built (`build.rs`).
const BUILD: u64 = {
    let digits = env!("FABRIC_BUILD").as_bytes();
    let (mut number, mut index) = (0, 0);
    while index < digits.len() {
        number = number * 10 + (digits[index] - b'0') as u64;
        index += 1;
    }
    number
};

/// A node's network, for another library of the same build. `NodeBoot::network` points to one.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Network {
    magic: u64,
    build: u64,
    transport: &'static dyn Transport,
}

/// A number for this build, the same in all of its libraries.
#[must_use]
pub const fn build() -> u64 {
    BUILD
}

impl core::fmt::Debug for Network {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Network").field("build", &self.build).finish_non_exhaustive()
    }
}

impl Network {
    /// The record of a transport.
    #[must_use]
    pub const fn of(transport: &'static dyn Transport) -> Self {
        Self { magic: MAGIC, build: BUILD, transport }
    }
}

/// The transport of the record that `NodeBoot::network` points to; none if that is NULL or of another build.
///
/// # Safety
/// NULL, or the address of a record whose first two fields are a magic number and the number of a build, and which, if
/// both are ours, is a [`Network`] whose transport is never unmade.
#[must_use]
pub unsafe fn open(network: *const c_void) -> Option<&'static dyn Transport> {
    let network: *const Network = network.cast();
    if network.is_null() {
        return None;
    }
    // SAFETY: the caller's promise about the first two fields, and about records of this build.
    unsafe {
        let is_ours = (*network).magic == MAGIC && (*network).build == BUILD;
        is_ours.then(|| (*network).transport)
    }
}
