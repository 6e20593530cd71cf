//! How two ends of a connection prove to each other that they are of the same job.
//!
//! All nodes of a job know its [`Secret`], which its process manager carried; nobody else does, and
//! it never travels on a connection. Whoever connects is the *initiator*, whoever listens the
//! *acceptor*:
//!
//! ```text
//! initiator                                     acceptor
//!     challenge: who calls whom, fresh nonce      ─►         HELLO bytes
//!     ◄─      fresh nonce, answer to the challenge           REPLY bytes
//!     answer to the acceptor's nonce              ─►         ANSWER bytes
//! ```
//!
//! An [`Answer`] is a keyed hash (BLAKE3) over everything that was said and the side that says it.
//! So it fits this connection alone: nonces are fresh, an answer of one side is none of the other,
//! and a connection meant for one node or service proves nothing to another. Both ends then derive
//! [`Keys`] that belong to this connection.
//!
//! Nothing here does input or output, or allocates. [`Handshake`] says which bytes to write and how
//! many more it takes, so an acceptor holds one small record for a stranger, and reads no more than
//! [`HELLO`] bytes before it refuses.
//!
//! **What it does not do.** Whoever can change packets on the way can take a proven connection over,
//! unless each message carries a [`Key::tag`], or is encrypted with the key ([`Key::as_bytes`]). Nothing is encrypted
//! here.

#![no_std]

#[cfg(test)]
extern crate std;

mod handshake;
mod secret;
#[cfg(test)]
mod tests;

pub use handshake::{Handshake, Proven, Refused};
pub use secret::{Answer, Challenge, Key, Keys, Nonce, Purpose, Secret, Side, Tag};

/// Bytes of a challenge: all that an acceptor reads from a stranger before it knows more.
pub const HELLO: usize = 56;

/// Bytes of the acceptor's reply.
pub const REPLY: usize = 64;

/// Bytes of the initiator's answer.
pub const ANSWER: usize = 32;
