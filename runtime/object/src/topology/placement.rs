//! Which process takes which place of a topology (`reorder`): neighbours of the topology come
//! to lie near each other in the machine.
//!
//! Processes are sorted by where they run (node, NUMA node, last-level cache, core). The places
//! of the topology are put in an order in which neighbours follow each other closely; the
//! first process takes the first place, and so on. A grid is cut into blocks of as many cells as
//! processes share a cache (or else a NUMA node, or else a node), so compact that few
//! edges leave a block.

use super::{Cart, Graph};
use alloc::vec;
use alloc::vec::Vec;

/// Where a process runs, from the widest part of the machine to the narrowest; processes that
/// share a part have the same number there.
pub type Site = [u32; 4];

/// The places of the topology in the order in which processes sorted by site take them.
type Order = Vec<usize>;

/// The process, as index in `sites`, for each of `order.len()` places.
///
/// # Panics
/// With fewer processes than places.
#[must_use]
pub fn assign(order: &Order, sites: &[Site]) -> Vec<usize> {
    let mut processes: Vec<usize> = (0..sites.len()).collect();
    // Stable: processes that share everything keep their order.
    processes.sort_by_key(|&process| sites[process]);
    // Those that get no place are the last in rank, wherever they run.
    processes.retain(|&process| process < order.len());
    let mut assigned = vec![0; order.len()];
    for (&place, process) in order.iter().zip(processes) {
        assigned[place] = process;
    }
    assigned
}

/// How far the processes of neighbouring places are from each other, all edges together: each narrower part of the
/// machine that two do not share counts a fraction of a wider one.
fn distance(edges: impl Iterator<Item = (usize, usize)>, sites: &[Site], at: &[usize]) -> u64 {
    let far = |(one, other): (usize, usize)| {
        let (one, other) = (&sites[at[one]], &sites[at[other]]);
        let differs = one.iter().zip(other).position(|(one, other)| one != other);
        differs.map_or(0, |part| 1 << (4 * (one.len() - part)))
    };
    edges.map(far).sum()
}

/// [`assign`] for a topology with these edges between places, unless that brings no neighbours nearer to each other:
/// then the processes stay as they are.
pub fn assign_nearer(order: &Order, sites: &[Site], edges: impl Iterator<Item = (usize, usize)> + Clone) -> Vec<usize> {
    let assigned = assign(order, sites);
    let as_they_are: Vec<usize> = (0..order.len()).collect();
    match distance(edges.clone(), sites, &assigned) < distance(edges, sites, &as_they_are) {
        true => assigned,
        false => as_they_are,
    }
}

/// How many processes share each part of the machine, from the narrowest part with more than
/// one process to wider ones; a part counts only if all such parts hold equally many.
#[must_use]
pub fn shares(sites: &[Site]) -> Vec<usize> {
    let mut shares = Vec::new();
    for width in (1..=size_of::<Site>() / size_of::<u32>()).rev() {
        let mut parts: Vec<&[u32]> = sites.iter().map(|site| &site[..width]).collect();
        parts.sort_unstable();
        let mut sizes = parts.chunk_by(|a, b| a == b).map(<[_]>::len);
        let first = sizes.next().unwrap_or(0);
        let new = first > 1 && first < sites.len() && shares.last() != Some(&first);
        if new && sizes.all(|size| size == first) {
            shares.push(first);
        }
    }
    shares
}

/// The cells of a grid, block by block, where blocks have `shares` cells, the narrowest first.
/// A share that no block of the grid has is passed over.
#[must_use]
pub fn grid_order(cart: &Cart, shares: &[usize]) -> Order {
    let dims: Vec<usize> = cart.dims().iter().map(|&extent| extent as usize).collect();
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    let mut inner = vec![1; dims.len()];
    for &share in shares {
        let cells: usize = inner.iter().product();
        if !share.is_multiple_of(cells) {
            continue;
        }
        let room: Vec<usize> = dims.iter().zip(&inner).map(|(all, cut)| all / cut).collect();
        if let Some(factors) = compact(&room, share / cells, &inner) {
            for (extent, factor) in inner.iter_mut().zip(&factors) {
                *extent *= factor;
            }
            blocks.push(inner.clone());
        }
    }
    let mut cells: Order = (0..dims.iter().product()).collect();
    cells.sort_by_cached_key(|&cell| {
        let coords = cart.coords(cell as u32);
        // The number of the widest block first, then of the next one, then the cell itself.
        let mut key: Vec<usize> = Vec::new();
        for block in blocks.iter().rev() {
            key.extend(coords.iter().zip(block).map(|(&at, extent)| at as usize / extent));
        }
        key.push(cell);
        key
    });
    cells
}

/// The extents of a block of `cells` cells (each of which is `unit` large) that divides `room`, with the
/// least surface.
fn compact(room: &[usize], cells: usize, unit: &[usize]) -> Option<Vec<usize>> {
    let Some((&first, rest)) = room.split_first() else {
        return (cells == 1).then(Vec::new);
    };
    let surface = |extents: &[usize]| -> usize {
        let sides: Vec<usize> = extents.iter().zip(unit).map(|(a, b)| a * b).collect();
        let volume: usize = sides.iter().product();
        let split = sides.iter().zip(room).filter(|&(_, &room)| room > 1);
        split.map(|(side, _)| volume / side).sum()
    };
    (1..=first.min(cells))
        .filter(|extent| first.is_multiple_of(*extent) && cells.is_multiple_of(*extent))
        .filter_map(|extent| {
            let mut extents = vec![extent];
            extents.extend(compact(rest, cells / extent, &unit[1..])?);
            Some(extents)
        })
        .min_by_key(|extents| surface(extents))
}

/// The nodes of a graph, each followed by its neighbours, breadth first.
#[must_use]
pub fn graph_order(graph: &Graph) -> Order {
    let nodes = graph.index().len();
    let mut seen = vec![false; nodes];
    let mut order: Order = Vec::with_capacity(nodes);
    let mut next = 0;
    for start in 0..nodes {
        if !core::mem::replace(&mut seen[start], true) {
            order.push(start);
        }
        while next < order.len() {
            for &neighbour in graph.neighbours(order[next]) {
                if !core::mem::replace(&mut seen[neighbour as usize], true) {
                    order.push(neighbour as usize);
                }
            }
            next += 1;
        }
    }
    order
}
