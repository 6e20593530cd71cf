//! Graphs that every member knows (MPI-4.1 sections 8.5.3, 8.5.5).

use super::{give, integers, member, not_a, room_for};
use crate::arguments::{Call, Comm, Outcome, length, only_intra};
use crate::comm::{publish, room};
use cohort_abi::parameters::{Array, Out, OutArray};
use cohort_abi::{Abi, Handle, neutral};
use cohort_object::topology::{Graph, Topology};
use core::ffi::c_int;

/// The graph of a communicator.
fn graph<'a, A: Abi>(call: &Call<'_, A>, comm: &'a Comm) -> Outcome<&'a Graph> {
    match comm.topology() {
        Some(Topology::Graph(graph)) => Ok(graph),
        _ => Err(not_a(call, "graph")),
    }
}

/// The graph that a program describes.
fn described<A: Abi>(
    call: &Call<'_, A>,
    comm: &Comm,
    nodes: c_int,
    index: Array<'_, c_int>,
    edges: Array<'_, c_int>,
) -> Outcome<Graph> {
    only_intra(comm)?;
    let nodes = length(nodes).map_err(|_| {
        let what = format_args!("the number of nodes is {nodes}");
        call.blame(neutral::ERR_ARG, what)
    })?;
    let index = integers(index, nodes)?;
    let count = length(index.last().copied().unwrap_or(0)).map_err(|_| neutral::ERR_ARG)?;
    let edges = integers(edges, count)?;
    Graph::new(index, edges, comm.size()).map_err(|class| {
        let size = comm.size();
        let what = format_args!("{nodes} nodes for {size} processes, an index that descends, or an edge to no node");
        call.blame(class, what)
    })
}

/// `MPI_Graph_create`.
pub fn graph_create<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    nodes: c_int,
    index: Array<'_, c_int>,
    edges: Array<'_, c_int>,
    reorder: c_int,
    target: Out<'_, A::Comm>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let target = call.output(target, "comm_graph")?;
    let graph = described(call, comm, nodes, index, edges)?;
    if nodes == 0 {
        // No node, no communicator; the members need not meet (MPI 8.5.3).
        target.write(A::Comm::from_neutral(call.context(), neutral::handle::COMM_NULL));
        return Ok(());
    }
    publish(call, comm.with_graph(graph, reorder != 0, room(call))?, target)
}

/// `MPI_Graph_map`.
pub fn graph_map<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    nodes: c_int,
    index: Array<'_, c_int>,
    edges: Array<'_, c_int>,
    place: Out<'_, c_int>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let place = call.output(place, "newrank")?;
    let graph = described(call, comm, nodes, index, edges)?;
    let found = comm.place_in_graph(&graph);
    place.write(found.map_or(neutral::UNDEFINED, |found| found as c_int));
    Ok(())
}

/// `MPI_Graphdims_get`.
pub fn graphdims_get<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    nodes: Out<'_, c_int>,
    edges: Out<'_, c_int>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let nodes = call.output(nodes, "nnodes")?;
    let edges = call.output(edges, "nedges")?;
    let graph = graph(call, comm)?;
    nodes.write(graph.index().len() as c_int);
    edges.write(graph.edges().len() as c_int);
    Ok(())
}

/// `MPI_Graph_get`.
pub fn graph_get<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    index_room: c_int,
    edges_room: c_int,
    index: OutArray<'_, c_int>,
    edges: OutArray<'_, c_int>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let graph = graph(call, comm)?;
    room_for(call, graph.index().len(), index_room, "nodes")?;
    room_for(call, graph.edges().len(), edges_room, "edges")?;
    give(graph.index(), index, index_room)?;
    give(graph.edges(), edges, edges_room)
}

/// `MPI_Graph_neighbors_count`.
pub fn graph_neighbors_count<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    rank: c_int,
    count: Out<'_, c_int>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let count = call.output(count, "nneighbors")?;
    let graph = graph(call, comm)?;
    let rank = member(call, comm, rank)?;
    count.write(graph.neighbours(rank as usize).len() as c_int);
    Ok(())
}

/// `MPI_Graph_neighbors`.
pub fn graph_neighbors<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    rank: c_int,
    room: c_int,
    neighbours: OutArray<'_, c_int>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let graph = graph(call, comm)?;
    let rank = member(call, comm, rank)?;
    give(graph.neighbours(rank as usize), neighbours, room)
}
