//! `libmpi.so.12`: the C functions of the MPICH ABI, one rank's way into the node image.
#![no_std]

mod data;
/// What the build script writes.
mod generated {
    /// The C functions of this facade: each calls its entry of the table.
    #[allow(non_snake_case, missing_docs, clippy::missing_safety_doc)]
    pub mod exports {
        include!(concat!(env!("OUT_DIR"), "/exports.rs"));
    }
}

use cohort_abi::Mpich;
use cohort_facade::Attachment;

/// The rank this copy of the library serves.
static ATTACHMENT: Attachment<Mpich> = Attachment::new();

cohort_facade::own_names!();

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = attach;

extern "C" fn attach() {
    ATTACHMENT.attach(after_fork, None);
}

extern "C" fn after_fork() {
    ATTACHMENT.refuse_after_fork();
}
