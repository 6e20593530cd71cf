//! Process topologies (MPI chapter 8): who is whose neighbour.

pub use cohort_engine::coll::Neighbour;

use crate::Outcome;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use cohort_abi::neutral;

pub mod placement;

/// The topology of a communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// A grid.
    Cart(Cart),
    /// A graph that every member knows.
    Graph(Graph),
    /// A graph of which every member knows its own edges.
    Distributed(Distributed),
}

/// A member's place in a topology.
#[derive(Clone, Debug)]
pub struct Place {
    /// The topology.
    pub topology: Topology,
    /// Its neighbours, which each neighbourhood collective asks for.
    pub neighbours: Arc<Neighbours>,
}

impl Place {
    /// That of member `me`.
    #[must_use]
    pub fn new(topology: Topology, me: u32) -> Self {
        let neighbours = Arc::new(topology.neighbours(me));
        Self { topology, neighbours }
    }
}

/// A member's neighbours, in the order of the blocks in its buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// From whom it receives.
    pub sources: Vec<Neighbour>,
    /// To whom it sends.
    pub destinations: Vec<Neighbour>,
}

impl Topology {
    /// `MPI_Topo_test`.
    #[must_use]
    pub fn kind(&self) -> i32 {
        match self {
            Self::Cart(_) => neutral::CART,
            Self::Graph(_) => neutral::GRAPH,
            Self::Distributed(_) => neutral::DIST_GRAPH,
        }
    }

    /// The neighbours of member `me` in neighbourhood collectives (MPI 8.6).
    #[must_use]
    pub fn neighbours(&self, me: u32) -> Neighbours {
        match self {
            Self::Cart(cart) => cart.neighbours(me),
            Self::Graph(graph) => {
                let all = graph.neighbours(me as usize);
                Neighbours { sources: along_one_lane(all), destinations: along_one_lane(all) }
            }
            Self::Distributed(graph) => Neighbours {
                sources: along_one_lane(&graph.sources),
                destinations: along_one_lane(&graph.destinations),
            },
        }
    }
}

/// Edges of graphs: those between the same two members meet in the order in which the members
/// list them, so they need no lanes of their own.
fn along_one_lane(ranks: &[i32]) -> Vec<Neighbour> {
    let neighbour = |&rank: &i32| Neighbour { rank: u32::try_from(rank).ok(), lane: 0 };
    ranks.iter().map(neighbour).collect()
}

/// A grid. Ranks are numbered row by row, the last dimension fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cart {
    dims: Vec<i32>,
    periods: Vec<bool>,
}

impl Cart {
    /// A grid of these extents; `periods` tells which dimensions are rings.
    ///
    /// # Errors
    /// `MPI_ERR_DIMS` for an extent below 1, or more cells than `cells_max`.
    pub fn new(dims: Vec<i32>, periods: Vec<bool>, cells_max: u32) -> Outcome<Self> {
        let cells = dims.iter().try_fold(1_i64, |cells, &extent| {
            let cells = cells.checked_mul(extent.into());
            cells.filter(|_| extent > 0)
        });
        match cells {
            Some(cells) if cells <= cells_max.into() => Ok(Self { dims, periods }),
            _ => Err(neutral::ERR_DIMS.into()),
        }
    }

    /// Extent of each dimension.
    #[must_use]
    pub fn dims(&self) -> &[i32] {
        &self.dims
    }

    /// Which dimensions are rings.
    #[must_use]
    pub fn periods(&self) -> &[bool] {
        &self.periods
    }

    /// Number of cells; at most the size of the communicator that the grid was made from.
    #[must_use]
    pub fn cells(&self) -> u32 {
        self.dims.iter().product::<i32>() as u32
    }

    /// `MPI_Cart_rank`.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` for a coordinate outside of a dimension that is no ring.
    pub fn rank(&self, coords: &[i32]) -> Outcome<u32> {
        let mut rank = 0;
        for ((&extent, &ring), &at) in self.dims.iter().zip(&self.periods).zip(coords) {
            let inside = (0..extent).contains(&at);
            if !inside && !ring {
                return Err(neutral::ERR_ARG.into());
            }
            rank = rank * extent + at.rem_euclid(extent);
        }
        Ok(rank as u32)
    }

    /// `MPI_Cart_coords`.
    #[must_use]
    pub fn coords(&self, rank: u32) -> Vec<i32> {
        let mut rest = rank as i32;
        let mut coords = vec![0; self.dims.len()];
        for (at, &extent) in coords.iter_mut().zip(&self.dims).rev() {
            *at = rest % extent;
            rest /= extent;
        }
        coords
    }

    /// The member `displacement` cells from `rank` along a dimension; `None` beyond the edge.
    #[must_use]
    pub fn beside(&self, rank: u32, dimension: usize, displacement: i64) -> Option<u32> {
        let mut coords = self.coords(rank);
        let extent = i64::from(self.dims[dimension]);
        let mut at = i64::from(coords[dimension]) + displacement;
        if self.periods[dimension] {
            at = at.rem_euclid(extent);
        } else if !(0..extent).contains(&at) {
            return None;
        }
        coords[dimension] = at as i32;
        self.rank(&coords).ok()
    }

    /// The grid of the dimensions that remain (`MPI_Cart_sub`), and for a rank its part and
    /// its rank there.
    #[must_use]
    pub fn sub(&self, remain: &[bool], rank: u32) -> (Self, u32, u32) {
        let kept = |keep: bool| {
            let all = 0..self.dims.len();
            all.filter(move |&dimension| remain[dimension] == keep)
        };
        let coords = self.coords(rank);
        let number = |keep: bool| kept(keep).fold(0, |number, it| number * self.dims[it] + coords[it]) as u32;
        let grid = Self {
            dims: kept(true).map(|it| self.dims[it]).collect(),
            periods: kept(true).map(|it| self.periods[it]).collect(),
        };
        (grid, number(false), number(true))
    }

    /// Both neighbours of each dimension, first the one with the lower coordinate. What is sent
    /// down arrives from above also where both neighbours are the same process, so each direction
    /// has a lane.
    fn neighbours(&self, me: u32) -> Neighbours {
        let mut all = Neighbours::default();
        for dimension in 0..self.dims.len() {
            let down = 2 * dimension as u32;
            let up = down + 1;
            let [below, above] = [-1, 1].map(|step| self.beside(me, dimension, step));
            let neighbour = |rank, lane| Neighbour { rank, lane };
            all.sources.push(neighbour(below, up));
            all.sources.push(neighbour(above, down));
            all.destinations.push(neighbour(below, down));
            all.destinations.push(neighbour(above, up));
        }
        all
    }
}

/// A graph that every member knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    index: Vec<i32>,
    edges: Vec<i32>,
}

impl Graph {
    /// A graph of at most `nodes_max` nodes; `index[i]` is the number of edges of nodes 0 to `i`, and
    /// `edges` has them one after the other.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` for an index that descends or edges to no node.
    pub fn new(index: Vec<i32>, edges: Vec<i32>, nodes_max: u32) -> Outcome<Self> {
        let ascends = index.iter().scan(0, |last, &next| Some(core::mem::replace(last, next) <= next));
        let nodes = 0..index.len() as i32;
        let known = edges.iter().all(|edge| nodes.contains(edge));
        let fits = index.len() <= nodes_max as usize;
        let complete = index.last().is_none_or(|&last| last as usize == edges.len());
        if ascends.into_iter().all(|fine| fine) && known && fits && complete {
            Ok(Self { index, edges })
        } else {
            Err(neutral::ERR_ARG.into())
        }
    }

    /// Edges of nodes 0 to each.
    #[must_use]
    pub fn index(&self) -> &[i32] {
        &self.index
    }

    /// All edges.
    #[must_use]
    pub fn edges(&self) -> &[i32] {
        &self.edges
    }

    /// The neighbours of a node.
    ///
    /// # Panics
    /// When there is no such node.
    #[must_use]
    pub fn neighbours(&self, node: usize) -> &[i32] {
        let start = match node {
            0 => 0,
            node => self.index[node - 1],
        };
        &self.edges[start as usize..self.index[node] as usize]
    }
}

/// One member's edges of a distributed graph. Without weights the weights are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distributed {
    /// Whom edges come from.
    pub sources: Vec<i32>,
    /// Weights of these edges.
    pub source_weights: Vec<i32>,
    /// Whom edges lead to.
    pub destinations: Vec<i32>,
    /// Weights of these edges.
    pub destination_weights: Vec<i32>,
    /// Whether the graph has weights.
    pub weighted: bool,
}

impl Distributed {
    /// Keeps the weights of the edges, or drops them.
    pub fn set_weighted(&mut self, weighted: bool) {
        self.weighted = weighted;
        if !weighted {
            self.source_weights.clear();
            self.destination_weights.clear();
        }
    }
}

#[cfg(test)]
mod tests;
