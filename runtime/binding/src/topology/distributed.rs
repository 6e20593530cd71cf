//! Graphs of which every member knows its own edges (MPI-4.1 sections 8.5.4, 8.5.5).

use super::{give, integers, not_a};
use crate::arguments::{Call, Comm, Outcome, length, only_intra};
use crate::comm::{publish, room};
use crate::info;
use crate::progress::take_hints;
use alloc::vec::Vec;
use cohort_abi::parameters::{Array, Out, OutArray};
use cohort_abi::{Abi, neutral};
use cohort_object::comm::Edge;
use cohort_object::topology::{Distributed, Topology};
use core::ffi::c_int;

/// The graph of a communicator.
fn graph<'a, A: Abi>(call: &Call<'_, A>, comm: &'a Comm) -> Outcome<&'a Distributed> {
    match comm.topology() {
        Some(Topology::Distributed(graph)) => Ok(graph),
        _ => Err(not_a(call, "distributed graph")),
    }
}

/// The ranks in an array, all of them members.
fn members<A: Abi>(call: &Call<'_, A>, comm: &Comm, array: Array<'_, c_int>, count: c_int) -> Outcome<Vec<i32>> {
    let ranks = integers(array, edges(call, count)?)?;
    let outside = ranks.iter().find(|&&it| it < 0 || it as u32 >= comm.size());
    if let Some(outside) = outside {
        let last = comm.size() - 1;
        let what = format_args!("an edge has the rank {outside}, ranks here are 0 to {last}");
        return Err(call.blame(neutral::ERR_RANK, what));
    }
    Ok(ranks)
}

/// A number of edges.
fn edges<A: Abi>(call: &Call<'_, A>, count: c_int) -> Outcome<usize> {
    length(count).map_err(|_| {
        let what = format_args!("a number of edges is {count}");
        call.blame(neutral::ERR_ARG, what)
    })
}

/// The weights in an array; `None` for `MPI_UNWEIGHTED`.
fn weights<A: Abi>(array: Array<'_, c_int>, count: usize) -> Outcome<Option<Vec<i32>>> {
    if array.addr() == A::UNWEIGHTED {
        return Ok(None);
    }
    if array.addr() == A::WEIGHTS_EMPTY || count == 0 {
        return if count == 0 { Ok(Some(Vec::new())) } else { Err(neutral::ERR_ARG.into()) };
    }
    let weights = integers(array, count)?;
    if weights.iter().any(|&weight| weight < 0) {
        return Err(neutral::ERR_ARG.into());
    }
    Ok(Some(weights))
}

/// `MPI_Dist_graph_create_adjacent`.
pub fn dist_graph_create_adjacent<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    inward: c_int,
    sources: Array<'_, c_int>,
    source_weights: Array<'_, c_int>,
    outward: c_int,
    destinations: Array<'_, c_int>,
    destination_weights: Array<'_, c_int>,
    hints: A::Info,
    reorder: c_int,
    target: Out<'_, A::Comm>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let target = call.output(target, "comm_dist_graph")?;
    only_intra(comm)?;
    let hints = info::hints(call, hints)?;
    let sources = members(call, comm, sources, inward)?;
    let destinations = members(call, comm, destinations, outward)?;
    let source_weights = weights::<A>(source_weights, sources.len())?;
    let destination_weights = weights::<A>(destination_weights, destinations.len())?;
    if source_weights.is_none() != destination_weights.is_none() {
        let what = format_args!("MPI_UNWEIGHTED is given for one direction only");
        return Err(call.blame(neutral::ERR_ARG, what));
    }
    let graph = Distributed {
        weighted: source_weights.is_some(),
        sources,
        source_weights: source_weights.unwrap_or_default(),
        destinations,
        destination_weights: destination_weights.unwrap_or_default(),
    };
    let made = comm.with_adjacent(graph, reorder != 0, room(call))?;
    if let Some(made) = &made {
        take_hints(made, &hints)?;
    }
    publish(call, made, target)
}

/// `MPI_Dist_graph_create`.
pub fn dist_graph_create<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    nodes: c_int,
    sources: Array<'_, c_int>,
    degrees: Array<'_, c_int>,
    destinations: Array<'_, c_int>,
    edge_weights: Array<'_, c_int>,
    hints: A::Info,
    reorder: c_int,
    target: Out<'_, A::Comm>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let target = call.output(target, "comm_dist_graph")?;
    only_intra(comm)?;
    let hints = info::hints(call, hints)?;
    let sources = members(call, comm, sources, nodes)?;
    let degrees = integers(degrees, sources.len())?;
    let total = degrees.iter().try_fold(0_i32, |total, &degree| {
        let total = total.checked_add(degree);
        total.filter(|_| degree >= 0)
    });
    let total = total.ok_or_else(|| call.blame(neutral::ERR_ARG, format_args!("a degree is negative")))?;
    let destinations = members(call, comm, destinations, total)?;
    let weights = weights::<A>(edge_weights, destinations.len())?;
    let origins = sources.iter().zip(&degrees);
    let origins = origins.flat_map(|(&source, &degree)| core::iter::repeat_n(source, degree as usize));
    let edges: Vec<Edge> = origins
        .zip(&destinations)
        .enumerate()
        .map(|(index, (source, &destination))| Edge {
            source,
            destination,
            weight: weights.as_ref().map_or(0, |weights| weights[index]),
        })
        .collect();
    let made = comm.with_edges(&edges, weights.is_some(), reorder != 0, room(call))?;
    if let Some(made) = &made {
        take_hints(made, &hints)?;
    }
    publish(call, made, target)
}

/// `MPI_Dist_graph_neighbors_count`.
pub fn dist_graph_neighbors_count<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    inward: Out<'_, c_int>,
    outward: Out<'_, c_int>,
    weighted: Out<'_, c_int>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let inward = call.output(inward, "indegree")?;
    let outward = call.output(outward, "outdegree")?;
    let weighted = call.output(weighted, "weighted")?;
    let graph = graph(call, comm)?;
    inward.write(graph.sources.len() as c_int);
    outward.write(graph.destinations.len() as c_int);
    weighted.write(graph.weighted.into());
    Ok(())
}

/// `MPI_Dist_graph_neighbors`.
pub fn dist_graph_neighbors<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    inward_room: c_int,
    sources: OutArray<'_, c_int>,
    source_weights: OutArray<'_, c_int>,
    outward_room: c_int,
    destinations: OutArray<'_, c_int>,
    destination_weights: OutArray<'_, c_int>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let graph = graph(call, comm)?;
    let give_weights = |weights: &[i32], target: OutArray<'_, c_int>, room| {
        let wanted = target.addr() != A::UNWEIGHTED && target.addr() != A::WEIGHTS_EMPTY;
        if wanted { give(weights, target, room) } else { Ok(()) }
    };
    give(&graph.sources, sources, inward_room)?;
    give_weights(&graph.source_weights, source_weights, inward_room)?;
    give(&graph.destinations, destinations, outward_room)?;
    give_weights(&graph.destination_weights, destination_weights, outward_room)
}
