//! Collectives (MPI-4.1 chapter 6): the blocking ones in a file for each family, all others in `schedules`.

mod alltoall;
mod apart;
mod equal;
mod gather;
mod inter;
mod neighbour;
mod operands;
mod parts;
mod reduction;
mod run;
mod schedules;
mod simple;

pub use alltoall::{alltoall, alltoallv, alltoallw};
pub use gather::{allgather, allgatherv, gather, gatherv, scatter, scatterv};
pub use neighbour::*;
pub use reduction::{allreduce, exscan, reduce, reduce_local, reduce_scatter, reduce_scatter_block, scan};
pub use schedules::*;
pub use simple::{barrier, bcast};
