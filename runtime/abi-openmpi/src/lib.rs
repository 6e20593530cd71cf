//! `libmpi.so.40`: the C functions of Open MPI's ABI, one rank's way into the node image.
#![no_std]

mod data;
/// What the build script writes.
mod generated {
    /// The C functions of this facade: each calls its entry of the table.
    #[allow(non_snake_case, missing_docs, clippy::missing_safety_doc)]
    pub mod exports {
        include!(concat!(env!("OUT_DIR"), "/exports.rs"));
    }

    /// The predefined objects of Open MPI's ABI.
    #[allow(non_upper_case_globals)]
    pub mod objects {
        include!(concat!(env!("OUT_DIR"), "/objects.rs"));
    }
}

use cohort_abi::OpenMpi;
use cohort_facade::Attachment;

/// The rank this copy of the library serves.
static ATTACHMENT: Attachment<OpenMpi> = Attachment::new();

cohort_facade::own_names!();

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = attach;

extern "C" fn attach() {
    ATTACHMENT.attach(after_fork, Some(&generated::objects::OBJECTS));
}

extern "C" fn after_fork() {
    ATTACHMENT.refuse_after_fork();
}
