//! Collectives (MPI-4.1 chapter 6 and section 8.6).
//!
//! Each operation is described once, in `moving`, `reducing` or `neighbour`: its parameters, how they are checked, and
//! what they are then ([`described`]). [`forms`] makes the blocking, the nonblocking and the persistent function of
//! that.

#[macro_use]
mod forms;
mod apart;
mod blocking;
mod described;
mod equal;
mod messages;
mod moving;
mod neighbour;
mod nonblocking;
mod operands;
mod parts;
mod persistent;
mod reducing;
mod root;

pub use moving::*;
pub use neighbour::*;
pub use reducing::*;
