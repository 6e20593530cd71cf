//! Graphs that every member knows (MPI-4.1 sections 8.5.3, 8.5.5).

use super::{give, integers, member, not_a, room_for};
use crate::arguments::{Call, Comm, Outcome, length, on_comm};
use crate::comm::publish;
use crate::intercomm::only_intra;
use cohort_abi::{Abi, Handle, neutral};
use cohort_object::topology::{Graph, Topology};
use core::ffi::{c_int, c_void};

/// The graph of a communicator.
fn graph<'a, A: Abi>(call: &Call<'_, A>, comm: &'a Comm) -> Outcome<&'a Graph> {
    match comm.topology() {
        Some(Topology::Graph(graph)) => Ok(graph),
        _ => Err(not_a(call, "graph")),
    }
}

/// The graph that a program describes.
///
/// # Safety
/// `index` has `nodes` entries, `edges` as many as the last of them says.
unsafe fn described<A: Abi>(
    call: &Call<'_, A>,
    comm: &Comm,
    nodes: c_int,
    index: *const c_int,
    edges: *const c_int,
) -> Outcome<Graph> {
    only_intra(comm)?;
    let nodes = length(nodes).map_err(|_| {
        let what = format_args!("the number of nodes is {nodes}");
        call.blame(neutral::ERR_ARG, what)
    })?;
    // SAFETY: the caller's contract.
    let index = unsafe { integers(index, nodes)? };
    let count = length(index.last().copied().unwrap_or(0)).map_err(|_| neutral::ERR_ARG)?;
    // SAFETY: the caller's contract.
    let edges = unsafe { integers(edges, count)? };
    Graph::new(index, edges, comm.size()).map_err(|class| {
        let size = comm.size();
        let what = format_args!(
            "{nodes} nodes for {size} processes, an index that descends, or an edge to no node"
        );
        call.blame(class, what)
    })
}

/// `MPI_Graph_create`.
///
/// # Safety
/// MPI's: the arrays have their entries, `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn graph_create<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    nodes: c_int,
    index: *const c_int,
    edges: *const c_int,
    reorder: c_int,
    target: *mut A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Graph_create", comm, |call, comm| {
            call.output(target, "comm_graph")?;
            let graph = described(call, comm, nodes, index, edges)?;
            if nodes == 0 {
                // No node, no communicator; the members need not meet (MPI 8.5.3).
                target.write(A::Comm::from_neutral(neutral::handle::COMM_NULL));
                return Ok(());
            }
            publish(call, comm.with_graph(graph, reorder != 0)?, target)
        })
    }
}

/// `MPI_Graph_map`.
///
/// # Safety
/// MPI's: the arrays have their entries, `place` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn graph_map<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    nodes: c_int,
    index: *const c_int,
    edges: *const c_int,
    place: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Graph_map", comm, |call, comm| {
            call.output(place, "newrank")?;
            let graph = described(call, comm, nodes, index, edges)?;
            let found = comm.place_in_graph(&graph);
            place.write(found.map_or(neutral::UNDEFINED, |found| found as c_int));
            Ok(())
        })
    }
}

/// `MPI_Graphdims_get`.
///
/// # Safety
/// MPI's: the results are valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn graphdims_get<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    nodes: *mut c_int,
    edges: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Graphdims_get", comm, |call, comm| {
            call.output(nodes, "nnodes")?;
            call.output(edges, "nedges")?;
            let graph = graph(call, comm)?;
            nodes.write(graph.index().len() as c_int);
            edges.write(graph.edges().len() as c_int);
            Ok(())
        })
    }
}

/// `MPI_Graph_get`.
///
/// # Safety
/// MPI's: the arrays have room for so many entries; `caller` is the calling rank.
pub unsafe extern "C" fn graph_get<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    index_room: c_int,
    edges_room: c_int,
    index: *mut c_int,
    edges: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Graph_get", comm, |call, comm| {
            let graph = graph(call, comm)?;
            room_for(call, graph.index().len(), index_room, "nodes")?;
            room_for(call, graph.edges().len(), edges_room, "edges")?;
            give(graph.index(), index, index_room)?;
            give(graph.edges(), edges, edges_room)
        })
    }
}

/// `MPI_Graph_neighbors_count`.
///
/// # Safety
/// MPI's: `count` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn graph_neighbors_count<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    rank: c_int,
    count: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Graph_neighbors_count", comm, |call, comm| {
            call.output(count, "nneighbors")?;
            let graph = graph(call, comm)?;
            let rank = member(call, comm, rank)?;
            count.write(graph.neighbours(rank as usize).len() as c_int);
            Ok(())
        })
    }
}

/// `MPI_Graph_neighbors`.
///
/// # Safety
/// MPI's: `neighbours` has room for so many entries; `caller` is the calling rank.
pub unsafe extern "C" fn graph_neighbors<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    rank: c_int,
    room: c_int,
    neighbours: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Graph_neighbors", comm, |call, comm| {
            let graph = graph(call, comm)?;
            let rank = member(call, comm, rank)?;
            give(graph.neighbours(rank as usize), neighbours, room)
        })
    }
}
