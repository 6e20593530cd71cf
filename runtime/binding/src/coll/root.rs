//! The root argument of collectives.

use crate::arguments::{Comm, Outcome};
use cohort_abi::{Abi, neutral};
use cohort_engine::coll::Group;
use cohort_engine::coll::inter::{Intergroup, Root};
use cohort_object::blame;
use core::ffi::c_int;

/// The root of those that take no part: members of the root's group, of an intercommunicator.
pub const NOBODY: u32 = u32::MAX;

/// The root argument as the engine wants it: a rank, or a place among the members of both groups, or [`NOBODY`].
///
/// # Errors
/// `MPI_ERR_ROOT`.
#[inline(always)]
pub fn root<A: Abi>(comm: &Comm, at: c_int) -> Outcome<u32> {
    match comm.inter() {
        None => root_in::<A>(&comm.collective(), at),
        Some(inter) => Ok(inter.place_of(root_between::<A>(&inter, at)?)),
    }
}

/// Whether the caller is the root of an operation: one that in one group also does what the others do.
#[inline(always)]
pub fn is_root(comm: &Comm, root: u32) -> bool {
    match comm.inter() {
        None => comm.me() == root,
        Some(inter) => inter.place_of(Root::Here) == root,
    }
}

/// The root argument in one group.
#[inline(always)]
fn root_in<A: Abi>(group: &Group<'_>, root: c_int) -> Outcome<u32> {
    match u32::try_from(A::rank_in(root)) {
        Ok(root) if (root as usize) < group.world.len() => Ok(root),
        _ => {
            let last = group.world.len() - 1;
            let what = format_args!("the root is {root}, ranks here are 0 to {last}");
            Err(blame(neutral::ERR_ROOT, what))
        }
    }
}

/// The root argument of an intercommunicator.
#[cold]
fn root_between<A: Abi>(inter: &Intergroup<'_>, root: c_int) -> Outcome<Root> {
    match A::rank_in(root) {
        neutral::ROOT => Ok(Root::Here),
        neutral::PROC_NULL => Ok(Root::Beside),
        rank => match u32::try_from(rank) {
            Ok(rank) if (rank as usize) < inter.remote.len() => Ok(Root::Remote(rank)),
            _ => {
                let last = inter.remote.len() - 1;
                let what = format_args!("the root is {root}, it can be MPI_ROOT, MPI_PROC_NULL or 0 to {last}");
                Err(blame(neutral::ERR_ROOT, what))
            }
        },
    }
}
