//! Process topologies (MPI-4.1 chapter 8).

mod cart;
mod dims;
mod distributed;
mod graph;

pub use cart::{cart_coords, cart_create, cart_get, cart_map, cart_rank, cart_shift, cart_sub, cartdim_get};
pub use dims::dims_create;
pub use distributed::{
    dist_graph_create, dist_graph_create_adjacent, dist_graph_neighbors, dist_graph_neighbors_count,
};
pub use graph::{graph_create, graph_get, graph_map, graph_neighbors, graph_neighbors_count, graphdims_get};

use crate::arguments::{Call, Comm, Error, Outcome, list};
use alloc::vec::Vec;
use cohort_abi::parameters::{Array, OutArray};
use cohort_abi::{Abi, neutral};
use core::ffi::c_int;

/// The error of a communicator whose topology is not the one that the call is for.
#[cold]
fn not_a<A: Abi>(call: &Call<'_, A>, kind: &str) -> Error {
    let what = format_args!("the communicator has no {kind} topology");
    call.blame(neutral::ERR_TOPOLOGY, what)
}

/// The integers of an array.
fn integers(array: Array<'_, c_int>, length: usize) -> Outcome<Vec<i32>> {
    let entries = list(array, length)?;
    Ok(entries.into_iter().map(|entry| entry as i32).collect())
}

/// Gives the program as many entries as it has room for.
fn give(entries: &[i32], target: OutArray<'_, c_int>, room: c_int) -> Outcome<()> {
    let room = usize::try_from(room).map_err(|_| neutral::ERR_ARG)?;
    let given = &entries[..entries.len().min(room)];
    let places = target.places(given.len())?;
    places.write_all(given.iter().copied());
    Ok(())
}

/// Refuses an array that is too short for all entries.
fn room_for<A: Abi>(call: &Call<'_, A>, needed: usize, room: c_int, what: &str) -> Outcome<()> {
    if usize::try_from(room).is_ok_and(|room| room >= needed) {
        return Ok(());
    }
    let text = format_args!("there are {needed} {what}, and room for {room}");
    Err(call.blame(neutral::ERR_ARG, text))
}

/// The rank argument of a question about any member.
fn member<A: Abi>(call: &Call<'_, A>, comm: &Comm, rank: c_int) -> Outcome<u32> {
    let inside = u32::try_from(rank).ok().filter(|&rank| rank < comm.size());
    inside.ok_or_else(|| {
        let last = comm.size() - 1;
        let what = format_args!("the rank is {rank}, ranks here are 0 to {last}");
        call.blame(neutral::ERR_RANK, what)
    })
}
