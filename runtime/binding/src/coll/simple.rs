//! `MPI_Barrier` and `MPI_Bcast`.

use super::inter;
use super::parts::{Part, failure, root};
use crate::arguments::on_comm;
use cohort_abi::{Abi, Count};
use cohort_engine::coll;
use cohort_engine::coll::inter::Root;
use core::ffi::{c_int, c_void};

/// `MPI_Barrier`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn barrier<A: Abi>(caller: *const c_void, comm: A::Comm) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Barrier", comm, |_, comm| {
            if let Some(inter) = comm.inter() {
                return inter.barrier().map_err(failure);
            }
            coll::barrier(&comm.collective()).map_err(failure)
        })
    }
}

/// `MPI_Bcast`.
///
/// # Safety
/// MPI's: the buffer holds or takes `elements` elements; `caller` is the calling rank.
pub unsafe extern "C" fn bcast<A: Abi, C: Count>(
    caller: *const c_void,
    buffer: *mut c_void,
    elements: C,
    datatype: A::Datatype,
    from: c_int,
    comm: A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Bcast", comm, |call, comm| {
            if let Some(inter) = comm.inter() {
                let from = inter::root::<A>(&inter, from)?;
                if from == Root::Beside {
                    return Ok(());
                }
                let part = Part::check(call, buffer, elements, datatype)?;
                return inter.bcast(part.elements(), from).map_err(failure);
            }
            let group = comm.collective();
            let from = root::<A>(&group, from)?;
            let part = Part::check(call, buffer, elements, datatype)?;
            coll::bcast(&group, part.layout(), from).map_err(failure)
        })
    }
}
