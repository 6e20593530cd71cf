//! Hints of files (MPI-5.0 section 14.2.8, and those of ROMIO).
//!
//! Reads and writes need no hint to be fast, so that none changes anything so far. As the standard asks,
//! `MPI_File_get_info` tells what is in force, whatever the program hints: there is no data sieving.

use crate::Outcome;
use crate::info::Info;

/// Hints in force.
const IN_FORCE: [(&str, &str); 3] =
    [("romio_ds_read", "disable"), ("romio_ds_write", "disable"), ("romio_no_indep_rw", "false")];

/// The hints of a file that has just been opened.
pub(crate) fn defaults() -> Info {
    let info = Info::default();
    for (key, value) in IN_FORCE {
        let known = info.set(key, value);
        debug_assert!(known.is_ok(), "short keys and values fit");
    }
    info
}

/// Takes what the program hints.
pub(crate) fn take(_info: &Info, _given: &Info) -> Outcome<()> {
    Ok(())
}
