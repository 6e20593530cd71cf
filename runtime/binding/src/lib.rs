//! One generic Rust function per MPI function.
//!
//! A function decodes its handles and constants by the [`Abi`](cohort_abi::Abi) it is generic
//! over, checks its arguments, and calls the object layer or the engine with neutral values.
//! It is safe: C calls a generated function (`generated::shims`), which turns the raw arguments
//! into the types of [`cohort_abi::parameters`], by the direction and the length that the standard gives each
//! parameter. `functions.table` says which function implements which procedure, and the compiler
//! checks the signatures. Procedures without a line get [`unsupported`].
//!
//! From the bottom up: `process` (what a rank has of MPI), `context` (who hears
//! of an error), `arguments` (a call and its checks), and the chapters of the standard. No two modules
//! use each other.
//!
//! **Owner only**: these functions run on the task of the rank that calls MPI.
//!
//! A new MPI function is one function in the module of its chapter and one line in the table.
#![no_std]
#![allow(clippy::too_many_arguments, reason = "they are the standard's")]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod arguments;
pub mod attribute;
pub mod coll;
pub mod comm;
mod context;
mod data;
pub mod datatype;
pub mod environment;
pub mod errhandler;
pub mod file;
mod foreign;
/// What the build script writes.
mod generated {
    /// The functions that C sees: they take over MPI's promises about the arguments and enter the functions of this
    /// crate.
    #[allow(non_snake_case, missing_docs, clippy::missing_safety_doc)]
    pub mod shims {
        include!(concat!(env!("OUT_DIR"), "/shims.rs"));
    }

    /// The function table of an ABI.
    pub mod wiring {
        include!(concat!(env!("OUT_DIR"), "/wiring.rs"));
    }
}
pub mod group;
pub mod info;
pub mod op;
pub mod p2p;
pub mod pack;
pub mod probe;
pub mod process;
pub mod progress;
pub mod request;
pub mod session;
pub mod status;
#[cfg(test)]
mod tests;
mod text;
pub mod topology;
pub mod win;

// `functions.table` and the functions that C sees name it as they do the other chapters.
use cohort_insight::tool;
/// Agreements of members on several nodes, for their launcher.
pub mod agreements {
    pub use cohort_object::comm::{decided, told};
}

pub use context::{unsupported, unsupported_value};
pub use generated::wiring::*;
pub use process::attach;
