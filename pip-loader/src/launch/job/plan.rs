//! Where the ranks of a world that is to be spawned are.

use cohort_base::spawn::Part;

/// Where a world that is asked for is to be.
pub(super) enum Where {
    /// On this node.
    Here,
    /// On this other one.
    There(u32),
    /// On several; the program has named them.
    On(Plan),
    /// On others too, since this one has too few CPUs: here if they cannot.
    Around(Plan),
}

/// One command of those that are to be spawned.
pub(super) struct Share {
    /// How many ranks run it.
    pub ranks: u32,
    /// The nodes that are named for it, and how many each is to have, if that is said.
    pub nodes: Vec<(u32, Option<u32>)>,
}

/// Which node has how many ranks of each command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// By commands: the nodes, in the order of the ranks there.
    commands: Vec<Vec<(u32, u32)>>,
}

impl Plan {
    /// Deals the ranks of each command: as many to each node as is said there, in equal blocks where nothing is.
    /// Those of a command that names none are on the own node.
    pub fn of(shares: &[Share], own: u32) -> Self {
        let dealt = |share: &Share| match &*share.nodes {
            [] => vec![(own, share.ranks)],
            nodes => deal(share.ranks, nodes),
        };
        Self { commands: shares.iter().map(dealt).collect() }
    }

    /// The same where no node is named, if the own one has too few free CPUs for all and others have some: as many on
    /// each as it has, the own one first. What is left over is dealt evenly.
    pub fn by_cpus(ranks: &[u32], own: (u32, u32), others: &[(u32, u32)]) -> Option<Self> {
        let total = ranks.iter().copied().fold(0, u32::saturating_add);
        if total <= own.1 || others.iter().all(|(_, free)| *free == 0) {
            return None;
        }
        let others = others.iter().copied().filter(|(_, free)| *free > 0);
        let nodes: Vec<_> = [own].into_iter().chain(others).collect();
        let mut left: Vec<u32> = nodes.iter().map(|(_, free)| *free).collect();
        let dealt = |&ranks: &u32| {
            let mut rest = ranks;
            let mut here: Vec<(u32, u32)> = Vec::new();
            for (&(node, _), left) in nodes.iter().zip(&mut left) {
                let taken = rest.min(*left);
                (rest, *left) = (rest - taken, *left - taken);
                here.push((node, taken));
            }
            let over: Vec<_> = nodes.iter().map(|(node, _)| (*node, None)).collect();
            here.iter_mut().zip(deal(rest, &over)).for_each(|(here, (_, more))| here.1 += more);
            here
        };
        Some(Self { commands: ranks.iter().map(dealt).collect() })
    }

    /// The one node, if there is one only.
    pub fn only_node(&self) -> Option<u32> {
        match *self.nodes() {
            [node] => Some(node),
            _ => None,
        }
    }

    /// Those that have ranks, or are named at least, in ascending order.
    pub fn nodes(&self) -> Vec<u32> {
        let all = || self.commands.iter().flatten();
        let mut nodes: Vec<u32> = all().filter(|(_, count)| *count > 0).map(|(node, _)| *node).collect();
        if nodes.is_empty() {
            nodes.extend(all().next().map(|(node, _)| *node));
        }
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// How many ranks of each command a node has.
    pub fn counts(&self, node: u32) -> Vec<u32> {
        let of = |dealt: &Vec<(u32, u32)>| dealt.iter().find(|(it, _)| *it == node).map_or(0, |(_, count)| *count);
        self.commands.iter().map(of).collect()
    }

    /// Where all ranks are, in the order of the world, when these are the first ones of the nodes; and of each node the
    /// ranks that it has.
    pub fn lay_out(&self, firsts: &[(u32, u32)]) -> (Vec<Part>, Vec<(u32, Vec<u32>)>) {
        let (mut parts, mut rank) = (Vec::new(), 0);
        let mut places: Vec<_> = firsts.iter().map(|&(node, first)| (node, first, Vec::new())).collect();
        for &(node, count) in self.commands.iter().flatten().filter(|(_, count)| *count > 0) {
            if let Some((_, next, ranks)) = places.iter_mut().find(|(it, ..)| *it == node) {
                parts.push(Part { first: *next, count });
                ranks.extend(rank..rank + count);
                *next += count;
            }
            rank += count;
        }
        (parts, places.into_iter().map(|(node, _, ranks)| (node, ranks)).collect())
    }
}

/// So many ranks over these nodes.
fn deal(ranks: u32, nodes: &[(u32, Option<u32>)]) -> Vec<(u32, u32)> {
    let count = nodes.len() as u32;
    let mut left = ranks;
    // In equal blocks, of which the first ones are larger by one if it has to be.
    let even = |at: u32| ranks / count + u32::from(at < ranks % count);
    let mut dealt = Vec::new();
    for (at, &(node, said)) in (0..).zip(nodes) {
        let here = said.unwrap_or_else(|| even(at)).min(left);
        left -= here;
        dealt.push((node, here));
    }
    // More than was said: as if each had one more in turn.
    for (at, (_, here)) in (0..).zip(&mut dealt) {
        *here += left / count + u32::from(at < left % count);
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(ranks: u32, nodes: &[(u32, Option<u32>)]) -> Share {
        Share { ranks, nodes: nodes.to_vec() }
    }

    #[test]
    fn ranks_are_dealt_over_the_named_nodes() {
        assert_eq!(deal(5, &[(0, None), (2, None)]), [(0, 3), (2, 2)]);
        assert_eq!(deal(4, &[(1, Some(1)), (0, Some(4))]), [(1, 1), (0, 3)]);
        assert_eq!(deal(7, &[(1, Some(1)), (0, Some(2))]), [(1, 3), (0, 4)]);
        assert_eq!(deal(u32::MAX, &[(1, Some(1)), (0, Some(2))]), [(1, (1 << 31) - 1), (0, 1 << 31)]);
        assert_eq!(deal(1, &[(1, None), (0, None)]), [(1, 1), (0, 0)]);
    }

    #[test]
    fn without_names_free_cpus_are_taken() {
        let by_cpus = |ranks: &[u32], own, others: &[_]| Plan::by_cpus(ranks, (1, own), others).map(|it| it.commands);
        assert_eq!(by_cpus(&[4], 4, &[(0, 8)]), None, "there is room");
        assert_eq!(by_cpus(&[9], 4, &[(0, 0)]), None, "there is none elsewhere");
        assert_eq!(by_cpus(&[6], 4, &[(0, 3), (2, 8)]), Some(vec![vec![(1, 4), (0, 2), (2, 0)]]));
        assert_eq!(by_cpus(&[3, 4], 4, &[(0, 3)]), Some(vec![vec![(1, 3), (0, 0)], vec![(1, 1), (0, 3)]]));
        assert_eq!(by_cpus(&[10], 2, &[(0, 3)]), Some(vec![vec![(1, 5), (0, 5)]]));
        assert_eq!(by_cpus(&[2], 0, &[(0, 3)]), Some(vec![vec![(1, 0), (0, 2)]]));
    }

    #[test]
    fn one_node_is_known_as_such() {
        assert_eq!(Plan::of(&[share(2, &[]), share(3, &[(1, None)])], 1).only_node(), Some(1));
        assert_eq!(Plan::of(&[share(2, &[]), share(3, &[(1, None)])], 0).only_node(), None);
        assert_eq!(Plan::of(&[share(1, &[(3, None), (1, None)])], 0).only_node(), Some(3));
        assert_eq!(Plan::of(&[share(0, &[(3, None)])], 0).only_node(), Some(3));
    }

    #[test]
    fn ranks_of_a_world_follow_its_commands() {
        let both = [(0, None), (1, None)];
        let plan = Plan::of(&[share(3, &both), share(1, &[(1, None)]), share(2, &both)], 0);
        assert_eq!((plan.nodes(), plan.counts(0), plan.counts(1)), (vec![0, 1], vec![2, 0, 1], vec![1, 1, 1]));
        let (parts, places) = plan.lay_out(&[(0, 10), (1, 1034)]);
        let part = |first, count| Part { first, count };
        assert_eq!(parts, [part(10, 2), part(1034, 1), part(1035, 1), part(12, 1), part(1036, 1)]);
        assert_eq!(places, [(0, vec![0, 1, 4]), (1, vec![2, 3, 5])]);
    }
}
