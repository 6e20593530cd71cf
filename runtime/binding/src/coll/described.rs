//! The arguments of a collective operation at one member, checked. In place is `None`.

use super::operands::Operands;
use super::parts::Parts;
use super::root::NOBODY;
use crate::arguments::Numbers;
use crate::data::Data;
use crate::process::requests::Describe;
use alloc::sync::Arc;
use cohort_abi::Abi;
use cohort_engine::coll::{Call, Scan};
use cohort_object::topology;

/// The arguments of one operation.
pub trait Arguments: Describe {
    /// Whether nothing is to be let go of with them: types and operation are predefined, and there are no lists.
    fn is_plain(&self) -> bool;
}

macro_rules! arguments {
    ($($(#[$page:meta])* $name:ident <$($generic:ident: $bound:path),*> {$($field:ident: $type:ty),*}
       |$it:ident| $call:expr, is_plain |$seen:ident| $plain:expr;)*) => {$(
        $(#[$page])*
        pub struct $name<$($generic: $bound),*> {
            $(pub $field: $type,)*
        }

        impl<$($generic: $bound),*> Describe for $name<$($generic),*> {
            #[inline(always)]
            fn call(&self) -> Call<'_> {
                let $it = self;
                $call
            }
        }

        impl<$($generic: $bound),*> Arguments for $name<$($generic),*> {
            #[inline(always)]
            fn is_plain(&self) -> bool {
                let $seen = self;
                $plain
            }
        }
    )*};
}

arguments! {
    /// `MPI_Barrier`.
    Barrier<> {}
    |_it| Call::Barrier, is_plain |_it| true;

    /// `MPI_Bcast`.
    Bcast<> { buffer: Data, root: u32 }
    |it| Call::Bcast { buffer: it.buffer.buffer(), root: it.root },
    is_plain |it| it.buffer.is_plain();

    /// `MPI_Gather` and `MPI_Gatherv`; `receive` at the root.
    Gather<R: Parts> { send: Option<Data>, receive: Option<R>, root: u32 }
    |it| Call::Gather {
        send: it.send.as_ref().map(Data::buffer),
        receive: it.receive.as_ref().map(Parts::blocks),
        root: it.root,
        is_even: R::ARE_EVEN,
    },
    is_plain |it| it.send.as_ref().is_none_or(Parts::is_plain) && it.receive.as_ref().is_none_or(Parts::is_plain);

    /// `MPI_Scatter` and `MPI_Scatterv`; `send` at the root.
    Scatter<S: Parts> { send: Option<S>, receive: Option<Data>, root: u32 }
    |it| Call::Scatter {
        send: it.send.as_ref().map(Parts::blocks),
        receive: it.receive.as_ref().map(Data::buffer),
        root: it.root,
        is_even: S::ARE_EVEN,
    },
    is_plain |it| it.send.as_ref().is_none_or(Parts::is_plain) && it.receive.as_ref().is_none_or(Parts::is_plain);

    /// `MPI_Allgather` and `MPI_Allgatherv`.
    Allgather<R: Parts> { send: Option<Data>, receive: R }
    |it| Call::Allgather { send: it.send.as_ref().map(Data::buffer), receive: it.receive.blocks() },
    is_plain |it| it.send.as_ref().is_none_or(Parts::is_plain) && it.receive.is_plain();

    /// `MPI_Alltoall`, `MPI_Alltoallv` and `MPI_Alltoallw`.
    Alltoall<P: Parts> { send: Option<P>, receive: P }
    |it| Call::Alltoall { send: it.send.as_ref().map(Parts::blocks), receive: it.receive.blocks() },
    is_plain |it| it.send.as_ref().is_none_or(Parts::is_plain) && it.receive.is_plain();

    /// `MPI_Reduce`.
    Reduce<A: Abi> { operands: Operands<A>, root: u32 }
    |it| Call::Reduce { reduction: it.operands.reduction(), root: it.root },
    is_plain |it| it.operands.is_plain();

    /// `MPI_Allreduce`.
    Allreduce<A: Abi> { operands: Operands<A> }
    |it| Call::Allreduce { reduction: it.operands.reduction() },
    is_plain |it| it.operands.is_plain();

    /// `MPI_Reduce_scatter` and `MPI_Reduce_scatter_block`.
    ReduceScatter<A: Abi> { operands: Operands<A>, counts: Numbers }
    |it| Call::ReduceScatter { reduction: it.operands.reduction(), counts: &it.counts },
    is_plain |_it| false;

    /// `MPI_Scan` and `MPI_Exscan`.
    Scanned<A: Abi> { operands: Operands<A>, kind: Scan }
    |it| Call::Scan { reduction: it.operands.reduction(), kind: it.kind },
    is_plain |it| it.operands.is_plain();

    /// Neighbourhoods; with `to_all` every destination gets the one block of `send`.
    Neighbours<S: Parts, R: Parts> { all: Arc<topology::Neighbours>, send: S, to_all: bool, receive: R }
    |it| Call::Neighbours {
        sources: &it.all.sources,
        destinations: &it.all.destinations,
        send: it.send.blocks(),
        to_all: it.to_all,
        receive: it.receive.blocks(),
    },
    is_plain |_it| false;

    /// Of a member of an intercommunicator's group that takes no part, as the root does that is beside it.
    Beside<> {}
    |_it| Call::Gather { send: None, receive: None, root: NOBODY, is_even: false }, is_plain |_it| true;
}
