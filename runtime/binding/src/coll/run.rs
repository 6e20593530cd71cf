//! The engine's collectives over checked arguments: [`Data`], [`Parts`] and [`Operands`], which make the engine's
//! buffers of the arguments of a call. Each function here is blocking.

use super::operands::Operands;
use super::parts::{Members, Parts};
use crate::arguments::Outcome;
use crate::data::Data;
use cohort_abi::Abi;
use cohort_engine::coll::inter::{Intergroup, Root};
use cohort_engine::coll::{self, Group, Scan};

macro_rules! runs {
    ($($(#[$page:meta])* $name:ident <$($generic:ident: $bound:path),*>($on:ident: &$object:ty
       $(, $argument:ident: $type:ty)*) = $run:expr;)*) => {$(
        $(#[$page])*
        ///
        /// # Errors
        /// What the engine says: `MPI_ERR_TRUNCATE`, `MPI_ERR_OP`, `MPI_ERR_NO_MEM`.
        #[inline]
        pub fn $name<$($generic: $bound),*>($on: &$object $(, $argument: $type)*) -> Outcome<()> {
            $run.map_err(|error| $on.failure(error))
        }
    )*};
}

runs! {
    /// `MPI_Bcast` in one group.
    bcast<>(group: &Group<'_>, buffer: &Data, root: u32)
        = coll::bcast(group, buffer.buffer(), root);
    /// `MPI_Gather` and `MPI_Gatherv` in one group; in place is `None`.
    gather<R: Parts>(group: &Group<'_>, send: Option<&Data>, receive: Option<&R>, root: u32)
        = coll::gather(group, send.map(Data::buffer), receive.map(Parts::blocks), root);
    /// `MPI_Scatter` and `MPI_Scatterv` in one group; in place is `None`.
    scatter<S: Parts>(group: &Group<'_>, send: Option<&S>, receive: Option<&Data>, root: u32)
        = coll::scatter(group, send.map(Parts::blocks), receive.map(Data::buffer), root);
    /// `MPI_Allgather` and `MPI_Allgatherv` in one group; in place is `None`.
    allgather<R: Parts>(group: &Group<'_>, send: Option<&Data>, receive: &R)
        = coll::allgather(group, send.map(Data::buffer), receive.blocks());
    /// `MPI_Alltoall`, `MPI_Alltoallv` and `MPI_Alltoallw` in one group; in place is `None`.
    alltoall<P: Parts>(group: &Group<'_>, send: Option<&P>, receive: &P)
        = coll::alltoall(group, send.map(Parts::blocks), receive.blocks());
    /// `MPI_Reduce` in one group.
    reduce<A: Abi>(group: &Group<'_>, operands: &Operands<A>, root: u32)
        = coll::reduce(group, &operands.reduction(), root);
    /// `MPI_Allreduce` in one group.
    allreduce<A: Abi>(group: &Group<'_>, operands: &Operands<A>)
        = coll::allreduce(group, &operands.reduction());
    /// `MPI_Reduce_scatter` and `MPI_Reduce_scatter_block` in one group.
    reduce_scatter<A: Abi>(group: &Group<'_>, operands: &Operands<A>, counts: &[i64])
        = coll::reduce_scatter(group, &operands.reduction(), counts);
    /// `MPI_Scan` and `MPI_Exscan`.
    scan<A: Abi>(group: &Group<'_>, operands: &Operands<A>, kind: Scan)
        = coll::scan(group, &operands.reduction(), kind);
    /// `MPI_Bcast` between groups.
    bcast_between<>(inter: &Intergroup<'_>, buffer: &Data, root: Root)
        = inter.bcast(buffer.buffer(), root);
    /// `MPI_Reduce` between groups.
    reduce_between<A: Abi>(inter: &Intergroup<'_>, operands: &Operands<A>, root: Root)
        = inter.reduce(&operands.reduction(), root);
    /// `MPI_Allreduce` between groups.
    allreduce_between<A: Abi>(inter: &Intergroup<'_>, operands: &Operands<A>)
        = inter.allreduce(&operands.reduction());
    /// `MPI_Reduce_scatter` and `MPI_Reduce_scatter_block` between groups.
    reduce_scatter_between<A: Abi>(inter: &Intergroup<'_>, operands: &Operands<A>, counts: &[i64])
        = inter.reduce_scatter(&operands.reduction(), counts);
}
