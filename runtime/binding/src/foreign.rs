//! Handles of MPICH's ABI that come to functions of the MPI-5 ABI.
//!
//! What `mpicc` compiles calls the MPI-5 ABI. If it is an extension module of Python beside an mpi4py from its wheel,
//! which uses MPICH's, it is given mpi4py's handles. Those of objects that the program has made are the same in both;
//! `MPI_COMM_WORLD` and other predefined ones are not. Such modules often show the class of the error only.

use cohort_abi::{Abi, Handle, HandleKind, Mpich};
use cohort_base::boot::AbiId;
use cohort_base::text::complain;
use cohort_engine::Rank;
use core::sync::atomic::{AtomicBool, Ordering};

/// Whether a rank of the node has said it.
static IS_SAID: AtomicBool = AtomicBool::new(false);

/// Says, once on a node, that a call of this ABI was given the number of another one's predefined object, if it was.
#[cold]
pub(crate) fn explain<A: Abi>(rank: &Rank, kind: HandleKind, number: u32) {
    if A::ID != AbiId::Mpi5 || !is_predefined_in_mpich(kind, number) {
        return;
    }
    // Relaxed: nothing else is told by it.
    if !IS_SAID.swap(true, Ordering::Relaxed) {
        complain(format_args!(
            "cohort: rank {}: {number:#x} is a handle of MPICH's ABI, and the call that was given it was compiled for \
             the MPI-5 ABI, as mpicc does; an extension module beside mpi4py needs an mpi4py of the same ABI: \
             MPICC=mpicc pip install --force-reinstall --no-binary=mpi4py mpi4py\n",
            rank.world_rank(),
        ));
    }
}

/// Whether the number is that of a predefined object of MPICH's ABI, and of none of the MPI-5 ABI.
fn is_predefined_in_mpich(kind: HandleKind, number: u32) -> bool {
    let code = number as i32;
    let neutral = match kind {
        HandleKind::Comm => <Mpich as Abi>::Comm::from_int(code).neutral(),
        HandleKind::Datatype => <Mpich as Abi>::Datatype::from_int(code).neutral(),
        _ => 0,
    };
    neutral != 0 && neutral != number
}

#[cfg(test)]
mod tests {
    use super::is_predefined_in_mpich;
    use cohort_abi::{HandleKind, dynamic, neutral};

    #[test]
    fn predefined_handles_of_mpich_are_told_from_all_others() {
        for world in [0x4400_0000, 0x4400_0001] {
            assert!(is_predefined_in_mpich(HandleKind::Comm, world));
        }
        for int in [0x4c00_0405, 0x8c00_0001] {
            assert!(is_predefined_in_mpich(HandleKind::Datatype, int));
        }
        for kind in [HandleKind::Comm, HandleKind::Datatype] {
            let own = [0, 77, dynamic(kind, 20), neutral::handle::COMM_WORLD, neutral::handle::INT];
            for number in own {
                assert!(!is_predefined_in_mpich(kind, number), "{number:#x}");
            }
        }
    }
}
