//! `libmpi.so.40`: the C functions of Open MPI's ABI, one rank's way into the node image.
#![no_std]

mod data;
mod generated {
    pub mod exports;
    pub mod objects;
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
