//! `MPI_Comm_spawn`, which is not implemented.

use crate::process::Process;
use cohort_abi::Abi;
use cohort_base::text::FixedText;
use cohort_engine::lifecycle;
use core::ffi::{CStr, c_char, c_int, c_void};

/// What mpi4py's pool of processes has new processes run.
const POOL: &[u8] = b"mpi4py.futures.server";

/// `MPI_Comm_spawn`: reports `MPI_ERR_UNSUPPORTED_OPERATION`.
///
/// mpi4py's pool would not hear of it: it calls this function on a thread of its own, and waits for ever if that
/// thread ends with an exception. So this caller's job is ended, with the way out.
///
/// # Safety
/// `caller` is what `attach` returned, and `argv` is NULL or a list of C strings that NULL ends.
pub unsafe extern "C" fn comm_spawn<A: Abi>(
    caller: *const c_void,
    _command: *const c_char,
    argv: *mut *mut c_char,
    _maxprocs: c_int,
    _info: A::Info,
    _root: c_int,
    _comm: A::Comm,
    _intercomm: *mut A::Comm,
    _errcodes: *mut c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    if unsafe { names_pool(argv) } {
        // SAFETY: the caller's promise.
        let rank = unsafe { Process::of(caller) }.objects.rank();
        let line = FixedText::<256>::of(format_args!(
            "cohort: rank {}: an MPIPoolExecutor of mpi4py needs MPI_Comm_spawn, which is not implemented; with \
             pip-exec -n N python -m mpi4py.futures PROGRAM, N - 1 ranks are its workers",
            rank.world_rank(),
        ));
        lifecycle::abort(rank, 1, line.as_str());
    }
    // SAFETY: the caller's promise.
    unsafe { crate::unsupported::<A>(caller, "MPI_Comm_spawn") }
}

/// Whether one of the arguments is the module of the pool.
///
/// # Safety
/// NULL, or a list of C strings that NULL ends.
unsafe fn names_pool(argv: *mut *mut c_char) -> bool {
    let mut at = argv;
    // SAFETY: the caller's promise; the loop ends at the NULL.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            if CStr::from_ptr(*at).to_bytes() == POOL {
                return true;
            }
            at = at.add(1);
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::names_pool;
    use core::ptr::null_mut;

    #[test]
    fn the_module_of_the_pool_is_recognised() {
        let [option, pool, other] = [c"-m", c"mpi4py.futures.server", c"mpi4py.futures"];
        let named = |words: &[&core::ffi::CStr]| {
            let words = words.iter().map(|word| word.as_ptr().cast_mut());
            let mut list: std::vec::Vec<_> = words.chain([null_mut()]).collect();
            // SAFETY: a list of C strings that NULL ends.
            unsafe { names_pool(list.as_mut_ptr()) }
        };
        assert!(named(&[option, pool]));
        assert!(!named(&[option, other]) && !named(&[]));
        // SAFETY: NULL.
        assert!(!unsafe { names_pool(null_mut()) });
    }
}
