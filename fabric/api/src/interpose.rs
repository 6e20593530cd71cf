//! How the network library hears of descriptors that its C libraries make, use and close, and says
//! which process they run in.
//!
//! The executable that loads it defines `socket`, `accept`, `epoll_create` and the like (crate
//! `cohort-interpose`), so that C libraries in its namespace call these. They do what the C library's functions do, and
//! ask the [`Hooks`] that the network library has registered through the executable's [`REGISTER`]. A
//! thread that is not in a call of the network finds that the hooks leave its descriptors alone.

use core::ffi::{c_int, c_void};

/// Raised whenever the layout of the record changes.
pub const VERSION: u32 = 3;

/// Name of the function that the executable exports, a [`Register`].
pub const REGISTER: &str = "cohort_interpose";

/// What a descriptor is of.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorKind {
    /// A socket that may lead to another node.
    Socket = 0,
    /// An epoll instance.
    Epoll = 1,
    /// What threads of this node wake each other with: an event counter, a pipe, a pair of sockets.
    Signal = 2,
    /// A device or any other file.
    File = 3,
}

/// What a call does with a descriptor.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Hands data to the system: `write`, `writev`, `send`, `sendto`, `sendmsg`.
    Data = 0,
    /// Tells a driver something: `ioctl`.
    Control = 1,
}

/// What the functions of the executable ask.
#[repr(C)]
#[derive(Debug)]
pub struct Hooks {
    /// [`VERSION`].
    pub version: u32,
    /// Whether there is room for a new descriptor: 1, or 0. Asked before a call that would lose a connection if it
    /// had to be closed again.
    pub has_room: extern "C" fn() -> c_int,
    /// An opening call has found that the program has as many files as it may. Does `again` with `data` while that is
    /// no limit, if it belongs to a call of the network, and returns 1; else 0.
    pub without_limit: extern "C" fn(again: extern "C" fn(*mut c_void), data: *mut c_void) -> c_int,
    /// A descriptor has been made. Returns the number that it is to be known by: the same, or one that
    /// it has been moved to; or -1, and `errno` says why, if there is none: then it is closed.
    pub opened: extern "C" fn(descriptor: c_int, kind: DescriptorKind) -> c_int,
    /// A descriptor is about to be closed. 1 if the hook has done so.
    pub closing: extern "C" fn(descriptor: c_int) -> c_int,
    /// A call is about to be made. 0 to let it; else the `errno` to fail with, which asks for another
    /// try later.
    pub withhold: extern "C" fn(descriptor: c_int, action: Action) -> c_int,
    /// The process that the caller passes for; 0 if it is itself.
    pub process: extern "C" fn() -> c_int,
}

/// Type of the executable's function: takes hooks that are never freed, or NULL for none. Returns 0, or -1 if they
/// are of another version.
pub type Register = unsafe extern "C" fn(hooks: *const Hooks) -> c_int;
