//! The calls that make communicators with a topology (MPI 8.5).

use super::exchange::Lists;
use super::{Comm, Members};
use crate::Outcome;
use crate::outside::{home_between_jobs, is_of_several_jobs};
use crate::room::Room;
use crate::topology::placement::{Site, assign_nearer, graph_order, grid_order, shares};
use crate::topology::{Cart, Distributed, Graph, Place, Topology};
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_engine::Rank;
use cohort_engine::coll::{self, Roster, Table};
use core::ops::Range;

/// Edges that one member names of a distributed graph (`MPI_Dist_graph_create`).
pub struct Edge {
    /// Where it begins.
    pub source: i32,
    /// Where it ends.
    pub destination: i32,
    /// Its weight; without meaning in a graph without weights.
    pub weight: i32,
}

/// What hardware a caller of [`Comm::split_by_site`] wants to share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitLevel {
    /// It wants no communicator.
    Nothing,
    /// A part of the machine of this level.
    Level(usize),
    /// The widest part that is narrower than the communicator.
    Narrower,
    /// No hardware: to be with those that say the same, which is not negative.
    Same(i32),
}

impl Edge {
    /// Integers that tell another member of an edge.
    const WORDS: usize = 3;
}

impl Comm {
    /// `MPI_Cart_create`; collective. `None` for members without a cell.
    ///
    /// # Errors
    /// Of the collectives inside.
    pub fn with_cart(&self, cart: Cart, reorder: bool, room: Room) -> Outcome<Option<Self>> {
        let sites = self.sites(Table::Cart, reorder)?;
        let assigned = cart_places(&cart, sites.as_deref());
        self.placed(Table::Cart, &assigned, Topology::Cart(cart), room)
    }

    /// `MPI_Graph_create`; collective. `None` for members without a node.
    ///
    /// # Errors
    /// Of the collectives inside.
    pub fn with_graph(&self, graph: Graph, reorder: bool, room: Room) -> Outcome<Option<Self>> {
        let sites = self.sites(Table::Graph, reorder)?;
        let assigned = graph_places(&graph, sites.as_deref());
        self.placed(Table::Graph, &assigned, Topology::Graph(graph), room)
    }

    /// `MPI_Cart_map`: the caller's place, if the processes were reordered.
    #[must_use]
    pub fn place_in_cart(&self, cart: &Cart) -> Option<u32> {
        self.place(&cart_places(cart, self.known_sites().as_deref()))
    }

    /// `MPI_Graph_map`: the caller's place, if the processes were reordered.
    #[must_use]
    pub fn place_in_graph(&self, graph: &Graph) -> Option<u32> {
        self.place(&graph_places(graph, self.known_sites().as_deref()))
    }

    /// `MPI_Cart_sub`; collective. `remain` has an entry for each dimension of `cart`, which is
    /// this communicator's topology.
    ///
    /// # Errors
    /// Of the collectives inside.
    pub fn cart_sub(&self, cart: &Cart, remain: &[bool], room: Room) -> Outcome<Option<Self>> {
        let (part, color, key) = cart.sub(remain, self.me);
        let made = self.split_by(Table::CartSub, (color as i32, key as i32), room)?;
        Ok(made.map(|made| made.shaped(Topology::Cart(part))))
    }

    /// `MPI_Dist_graph_create_adjacent`; collective. Every member gives its own edges.
    ///
    /// # Errors
    /// Of the collectives inside.
    pub fn with_adjacent(&self, mine: Distributed, reorder: bool, room: Room) -> Outcome<Option<Self>> {
        let Some(sites) = self.sites(Table::Adjacent, reorder)? else {
            return self.in_place(Table::Adjacent, mine, room).map(Some);
        };
        // With other ranks members get each other's edges.
        let lists = self.allgather_lists(Table::Adjacent, &packed(&mine))?;
        let mut graphs: Vec<Distributed> = Vec::with_capacity(self.size() as usize);
        graphs.extend(lists.iter().map(|list| unpacked(list, mine.weighted)));
        let assigned = nodes_placed(&graphs, &sites);
        let place = self.place(&assigned).ok_or(neutral::ERR_INTERN)?;
        let graph = graphs.swap_remove(place as usize);
        self.placed(Table::Adjacent, &assigned, Topology::Distributed(graph), room)
    }

    /// `MPI_Dist_graph_create`; collective. Any member may name any edge.
    ///
    /// # Errors
    /// Of the collectives inside.
    pub fn with_edges(&self, edges: &[Edge], weighted: bool, reorder: bool, room: Room) -> Outcome<Option<Self>> {
        let words = |edge: &Edge| [edge.source, edge.destination, edge.weight];
        let list: Vec<i32> = edges.iter().flat_map(words).collect();
        let lists = self.allgather_lists(Table::Edges, &list)?;
        let Some(sites) = self.sites(Table::Edges, reorder)? else {
            let me = self.me as usize;
            let mut mine = graphs_of(named(&lists), me..me + 1).swap_remove(0);
            mine.set_weighted(weighted);
            return self.in_place(Table::Edges, mine, room).map(Some);
        };
        let mut graphs = graphs_of(named(&lists), 0..self.size() as usize);
        let assigned = nodes_placed(&graphs, &sites);
        let place = self.place(&assigned).ok_or(neutral::ERR_INTERN)?;
        let mut graph = graphs.swap_remove(place as usize);
        graph.set_weighted(weighted);
        self.placed(Table::Edges, &assigned, Topology::Distributed(graph), room)
    }

    /// The part of the communicator that shares hardware with the caller; collective. `level` counts the
    /// parts of a [`Site`] that must be equal: 1 for a node, 2 for a NUMA node, 3 for a last-level cache, 4
    /// for a core; `None` takes the widest that cuts the communicator. `None` for callers that ask for
    /// nothing, or do not know where they run in such detail. Also says which level it was.
    ///
    /// # Errors
    /// Of the collectives inside.
    pub fn split_by_site(&self, level_wanted: SplitLevel, key: i32, room: Room) -> Outcome<Option<(Self, usize)>> {
        let mut words = site(self.rank).map(|part| part as i32);
        if is_of_several_jobs(self.rank.node(), &self.everybody()) {
            words[0] = home_between_jobs(self.rank);
        }
        let mut detail = self.rank.place().map_or(1, |_| words.len());
        let wished = match level_wanted {
            SplitLevel::Nothing => 0,
            SplitLevel::Level(level) => level as i32,
            SplitLevel::Narrower => -1,
            SplitLevel::Same(said) => {
                (words[0], detail) = (said, 1);
                -2
            }
        };
        let said = [wished, detail as i32, words[0], words[1], words[2], words[3]];
        if self.is_inter() {
            let (mut all, theirs) = self.meet(Table::SplitType, said)?;
            all.extend(theirs);
            let level = level_of(level_wanted, &all);
            // Both groups know the same words, in another order.
            all.sort_unstable();
            return self.of_color(level, color_of(level, &said, &all), key, room);
        }
        // The level, and the first member that shares it.
        let find = |all: &[[i32; 6]]| {
            let level = level_of(level_wanted, all);
            (level, color_of(level, &said, all))
        };
        let (level, color) = coll::view(&self.collective(), Table::SplitType, said, find)?;
        self.of_color(level, color, key, room)
    }

    /// The part of this color, and its level.
    fn of_color(
        &self,
        level: Option<usize>,
        color: Option<usize>,
        key: i32,
        room: Room,
    ) -> Outcome<Option<(Self, usize)>> {
        let color = color.map_or(neutral::UNDEFINED, |it| it as i32);
        let made = self.split_by(Table::SplitType, (color, key), room)?;
        Ok(made.zip(level))
    }

    /// Where all members run, if all want to be reordered and there is a difference. Collective.
    fn sites(&self, of: Table, reorder: bool) -> Outcome<Option<Vec<Site>>> {
        let ([unwanted], _) = self.largest(of, [i32::from(!reorder)])?;
        if unwanted != 0 {
            return Ok(None);
        }
        let words = site(self.rank).map(|part| part as i32);
        let known = |all: &[[i32; 4]]| {
            let differ = all.iter().any(|words| words != &all[0]);
            let sites = all.iter().map(|words| words.map(|part| part as u32));
            differ.then(|| sites.collect())
        };
        Ok(coll::view(&self.collective(), Table::Sites, words, known)?)
    }

    /// The same without asking: only if all members are on this node.
    fn known_sites(&self) -> Option<Vec<Site>> {
        let node = self.rank.node();
        let members = self.group.members().iter();
        let sites: Option<Vec<Site>> = members.map(|&member| Some(site(node.rank(node.local(member)?)))).collect();
        differing(sites?)
    }

    /// The communicator of the same members with the same ranks, of which the caller has these edges. Collective.
    fn in_place(&self, of: Table, mine: Distributed, room: Room) -> Outcome<Self> {
        let numbers = self.numbers(of, false, room)?;
        let group = self.group.clone();
        let made = Self::new(self.rank, numbers.number, group, self.inherited());
        Ok(made.shaped(Topology::Distributed(mine)))
    }

    /// The caller's place.
    fn place(&self, assigned: &[usize]) -> Option<u32> {
        let place = assigned.iter().position(|&member| member == self.me as usize);
        place.map(|place| place as u32)
    }

    /// The communicator of the members that have a place, ranked by it. Collective.
    fn placed(&self, of: Table, assigned: &[usize], topology: Topology, room: Room) -> Outcome<Option<Self>> {
        let place = self.place(assigned);
        let numbers = self.numbers(of, false, room.if_needed(place.is_some()))?;
        let members = self.group.members();
        let made = place.map(|me| {
            let members = Members {
                me,
                first: members[assigned[0]],
                list: || Roster::new(assigned.iter().map(|&member| members[member]).collect()),
            };
            let made = Self::of_members(self.rank, numbers.number, members, self.inherited());
            made.derived_from(self.group.session())
        });
        Ok(made.map(|made| made.shaped(topology)))
    }

    fn shaped(self, topology: Topology) -> Self {
        let place = Place::new(topology, self.me);
        Self { topology: Some(Arc::new(place)), ..self }
    }
}

/// The edges that members have named.
fn named(lists: &Lists) -> impl Iterator<Item = Edge> {
    let lists = lists.iter();
    let edges = lists.flat_map(|list| list.chunks_exact(Edge::WORDS));
    edges.map(|edge| Edge { source: edge[0], destination: edge[1], weight: edge[2] })
}

/// Who sends to whom, for the processes in a range.
fn graphs_of(edges: impl Iterator<Item = Edge>, wanted: Range<usize>) -> Vec<Distributed> {
    let mut graphs: Vec<Distributed> = Vec::new();
    graphs.resize_with(wanted.len(), Distributed::default);
    for edge in edges {
        let (source, destination) = (edge.source as usize, edge.destination as usize);
        if wanted.contains(&source) {
            let from = &mut graphs[source - wanted.start];
            from.destinations.push(edge.destination);
            from.destination_weights.push(edge.weight);
        }
        if wanted.contains(&destination) {
            let to = &mut graphs[destination - wanted.start];
            to.sources.push(edge.source);
            to.source_weights.push(edge.weight);
        }
    }
    graphs
}

/// How many parts of a site must be equal, when all members have said what they want, in how much detail they know
/// their sites, and these.
fn level_of(wanted: SplitLevel, all: &[[i32; 6]]) -> Option<usize> {
    match wanted {
        SplitLevel::Nothing => None,
        SplitLevel::Same(_) => Some(1),
        SplitLevel::Level(level) => Some(level),
        SplitLevel::Narrower => (1..=all[0].len() - 2).find(|&level| {
            let differs = |words: &[i32; 6]| words[2..2 + level] != all[0][2..2 + level];
            all.iter().all(|words| words[1] >= level as i32) && all.iter().any(differs)
        }),
    }
}

/// The first of all words that wants, and is, the same as a member that says `said`.
fn color_of(level: Option<usize>, said: &[i32; 6], all: &[[i32; 6]]) -> Option<usize> {
    let level = level.filter(|&level| level as i32 <= said[1])?;
    all.iter()
        .position(|words| words[0] == said[0] && words[1] >= level as i32 && words[2..2 + level] == said[2..2 + level])
}

fn site(rank: &Rank) -> Site {
    let node = rank.node().boot().node;
    rank.place().map_or([node, 0, 0, 0], |place| [node, place.numa, place.l3, place.core])
}

/// Sites among which it makes a difference who is where.
fn differing(sites: Vec<Site>) -> Option<Vec<Site>> {
    let differ = sites.iter().any(|site| site != &sites[0]);
    differ.then_some(sites)
}

fn cart_places(cart: &Cart, sites: Option<&[Site]>) -> Vec<usize> {
    match sites {
        Some(sites) => {
            let order = grid_order(cart, &shares(sites));
            assign_nearer(&order, sites, edges_of_grid(cart))
        }
        None => (0..cart.cells() as usize).collect(),
    }
}

fn graph_places(graph: &Graph, sites: Option<&[Site]>) -> Vec<usize> {
    match sites {
        Some(sites) => assign_nearer(&graph_order(graph), sites, edges_of(graph)),
        None => (0..graph.index().len()).collect(),
    }
}

/// The edges of a graph, by places.
fn edges_of(graph: &Graph) -> impl Iterator<Item = (usize, usize)> + Clone + '_ {
    (0..graph.index().len()).flat_map(|node| {
        let neighbours = graph.neighbours(node).iter();
        neighbours.map(move |&other| (node, other as usize))
    })
}

/// The edges of a grid: from each cell to the next one in each direction.
fn edges_of_grid(cart: &Cart) -> impl Iterator<Item = (usize, usize)> + Clone + '_ {
    (0..cart.cells()).flat_map(move |cell| {
        let directions = 0..cart.dims().len();
        let next = directions.filter_map(move |direction| cart.beside(cell, direction, 1));
        next.map(move |other| (cell as usize, other as usize))
    })
}

/// Places for the nodes of a distributed graph that is known as a whole.
fn nodes_placed(graphs: &[Distributed], sites: &[Site]) -> Vec<usize> {
    let (mut index, mut edges) = (Vec::new(), Vec::new());
    for node in graphs {
        edges.extend(node.sources.iter().chain(&node.destinations));
        index.push(edges.len() as i32);
    }
    match Graph::new(index, edges, graphs.len() as u32) {
        Ok(graph) => assign_nearer(&graph_order(&graph), sites, edges_of(&graph)),
        Err(_) => (0..graphs.len()).collect(),
    }
}

/// A member's edges as integers: how many come in and go out, then them and their weights.
fn packed(graph: &Distributed) -> Vec<i32> {
    let lists = [&graph.sources, &graph.destinations, &graph.source_weights, &graph.destination_weights];
    let mut list: Vec<i32> = lists[..2].iter().map(|list| list.len() as i32).collect();
    list.extend(lists.into_iter().flatten());
    list
}

fn unpacked(list: &[i32], weighted: bool) -> Distributed {
    let (lengths, mut rest) = list.split_at(2);
    let [inward, outward] = [lengths[0] as usize, lengths[1] as usize];
    let mut take = |length: usize| {
        let (taken, others) = rest.split_at(length.min(rest.len()));
        rest = others;
        taken.to_vec()
    };
    Distributed {
        sources: take(inward),
        destinations: take(outward),
        source_weights: take(inward),
        destination_weights: take(outward),
        weighted,
    }
}
