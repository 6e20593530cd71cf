//! What travels encrypted under `COHORT_NET_ENCRYPT=1`: records ([`Cipher`]), and the keys on which both ends of a
//! connection agree when they have proven themselves to each other ([`Agreement`], [`cohort_proof`]).
//!
//! Nothing here reads or writes: the network over TCP and the launchers, which carry what goes between jobs, do.

mod agreement;
mod records;

pub use agreement::{Agreement, PUBLIC};
pub use records::{Cipher, Forged, Opener, RECORD_MAX, Sealer, record_length};
