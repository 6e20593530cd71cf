//! `MPI_Barrier` and `MPI_Bcast`.

use super::parts::{Members, root};
use super::{inter, run};
use crate::arguments::{Call, Outcome};
use crate::data::Data;
use crate::passed::Buffer;
use cohort_abi::{Abi, Count};
use cohort_engine::coll;
use cohort_engine::coll::inter::Root;
use core::ffi::c_int;

/// `MPI_Barrier`.
#[inline(always)]
pub fn barrier<A: Abi>(call: &Call<'_, A>, comm: A::Comm) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    if let Some(inter) = comm.inter() {
        return inter.barrier().map_err(|error| inter.failure(error));
    }
    let group = comm.collective();
    coll::barrier(&group).map_err(|error| group.failure(error))
}

/// `MPI_Bcast`.
#[inline(always)]
pub fn bcast<A: Abi, C: Count>(call: &Call<'_, A>, buffer: Buffer<A, C>, from: c_int, comm: A::Comm) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    if let Some(inter) = comm.inter() {
        let from = inter::root::<A>(&inter, from)?;
        if from == Root::Beside {
            return Ok(());
        }
        let part = Data::check(call, buffer)?;
        return run::bcast_between(&inter, &part, from);
    }
    let group = comm.collective();
    let from = root::<A>(&group, from)?;
    let part = Data::check(call, buffer)?;
    run::bcast(&group, &part, from)
}
