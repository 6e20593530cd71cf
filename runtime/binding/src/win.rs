//! One-sided communication (MPI-4.1, chapter 12).

mod access;
mod create;
mod describe;
mod epoch;
mod fast_path;
mod nonblocking;
mod survive;

pub use access::{
    accumulate, compare_and_swap, fetch_and_op, get, get_accumulate, put, raccumulate, rget, rget_accumulate, rput,
};
pub use create::{allocate, allocate_shared, attach, create, create_dynamic, detach, free};
pub use describe::{
    call_errhandler, create_errhandler, get_errhandler, get_group, get_info, get_name, set_errhandler, set_info,
    set_name, shared_query,
};
pub use epoch::{
    complete, fence, flush, flush_all, flush_local, flush_local_all, lock, lock_all, post, start, sync, test, unlock,
    unlock_all, wait,
};
pub use nonblocking::{
    icomplete, ifence, iflush, iflush_all, iflush_local, iflush_local_all, ilock, ilock_all, ipost, istart, iunlock,
    iunlock_all, iwait,
};
pub use survive::{get_failed, is_revoked, revoke};

use crate::arguments::{Call, Error, Outcome};
use cohort_abi::{Abi, neutral};
use cohort_engine::rma::RmaError;
use cohort_object::Win;
use core::ffi::c_int;

/// The error of a failure on a window.
#[cold]
fn failed<A: Abi>(call: &Call<'_, A>, error: RmaError) -> Error {
    let class = match error {
        RmaError::OutOfMemory => neutral::ERR_NO_MEM,
        RmaError::Failed => neutral::MPIX_ERR_PROC_FAILED,
        RmaError::Revoked => neutral::MPIX_ERR_REVOKED,
        RmaError::OutOfRange { .. } | RmaError::NotAttached { .. } | RmaError::LostTarget => neutral::ERR_RMA_RANGE,
        RmaError::Overlaps { .. } => neutral::ERR_RMA_ATTACH,
        RmaError::Truncated { .. } => neutral::ERR_TRUNCATE,
        RmaError::BadType => neutral::ERR_TYPE,
        RmaError::BadOp => neutral::ERR_OP,
        RmaError::NoAccess { .. } | RmaError::Misplaced(_) | RmaError::MisplacedAt { .. } => neutral::ERR_RMA_SYNC,
        _ => neutral::ERR_UNSUPPORTED_OPERATION,
    };
    call.blame(class, format_args!("{error}"))
}

/// The target of a call; `None` is `MPI_PROC_NULL`.
#[inline]
fn target<A: Abi>(call: &Call<'_, A>, win: &Win, rank: c_int) -> Outcome<Option<u32>> {
    match A::rank_in(rank) {
        neutral::PROC_NULL => Ok(None),
        rank if rank >= 0 && rank.cast_unsigned() < win.group().size() => Ok(Some(rank.cast_unsigned())),
        _ => {
            let what = format_args!("the target is {rank}, ranks of the window are 0 to {}", win.group().size() - 1);
            Err(call.blame(neutral::ERR_RANK, what))
        }
    }
}
