//! `include/mpi.h`.

use crate::api::Api;
use crate::constants::Constant;

/// The C header of the MPI-5 ABI.
#[must_use]
pub fn header(_api: &Api, _constants: &[Constant]) -> String {
    String::new()
}
