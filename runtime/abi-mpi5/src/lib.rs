//! `libmpi_abi.so.1`: the C functions of the MPI-5 ABI, one rank's way into the node image.
#![no_std]

/// What the build script writes.
mod generated {
    /// The C functions of this facade: each calls its entry of the table.
    #[allow(non_snake_case, missing_docs, clippy::missing_safety_doc)]
    pub mod exports {
        include!(concat!(env!("OUT_DIR"), "/exports.rs"));
    }
}

use cohort_abi::Mpi5;
use cohort_facade::Attachment;

/// The rank this copy of the library serves.
static ATTACHMENT: Attachment<Mpi5> = Attachment::new();

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
