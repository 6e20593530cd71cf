//! Which nodes a node looks at.
//!
//! Everybody looking at everybody would be N^2 questions. So a node looks at
//! * the next [`RING`] nodes by number. Of any nodes that stop, or are cut off, together, one follows a node that
//!   runs, so somebody notices in time, whoever talks with whom; the one just before it reports it, and the other a
//!   little later, if nobody has ended the job by then;
//! * and up to [`WINDOW`] of the nodes that it talks with, which finds a way between two nodes that is broken while
//!   both reach others. If there are more, they take turns.
//!
//! So a node of 10,000 asks at most 18 others, and two keep connections with it.

/// Nodes that follow this one and are always looked at.
pub const RING: u32 = 2;

/// Nodes that this one talks with and looks at, at a time.
pub const WINDOW: usize = 16;

/// The nodes of a job, as one of them sees it.
#[derive(Debug)]
pub struct Roster {
    own: u32,
    /// Whether there is still a reason to look at each.
    counts: Vec<bool>,
    /// Where to go on with those that take turns.
    cursor: u32,
}

impl Roster {
    /// For node `own` of so many.
    pub fn new(own: u32, nodes: u32) -> Self {
        let counts = (0..nodes).map(|node| node != own).collect();
        Self { own, counts, cursor: 0 }
    }

    /// A node is dead, or has left.
    pub fn remove(&mut self, node: u32) {
        self.counts[node as usize] = false;
    }

    fn count(&self) -> u32 {
        self.counts.len() as u32
    }

    /// The nodes that follow this one, of those that are left.
    pub fn ring(&self) -> Vec<u32> {
        let others = (1..self.count()).map(|step| (self.own + step) % self.count());
        let left = others.filter(|&node| self.counts[node as usize]);
        left.take(RING as usize).collect()
    }

    /// Up to `room` nodes of those that this one talks with and does not look at.
    pub fn next(
        &mut self,
        room: usize,
        talks_with: impl Fn(u32) -> bool,
        is_watched: impl Fn(u32) -> bool,
    ) -> Vec<u32> {
        let mut found = Vec::new();
        for _ in 0..self.count() {
            if found.len() == room {
                break;
            }
            let node = self.cursor;
            self.cursor = (node + 1) % self.count();
            if self.counts[node as usize] && talks_with(node) && !is_watched(node) {
                found.push(node);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_passes_over_those_that_are_gone() {
        let mut roster = Roster::new(8, 10);
        assert_eq!(roster.ring(), [9, 0]);
        roster.remove(9);
        assert_eq!(roster.ring(), [0, 1]);
        assert_eq!(Roster::new(1, 2).ring(), [0]);
        assert!(Roster::new(0, 1).ring().is_empty());
    }

    #[test]
    fn of_any_set_that_stops_one_is_looked_at_from_outside() {
        for stopped in 1_u32..(1 << 6) - 1 {
            let runs = |node: u32| stopped & (1 << node) == 0;
            let mut running = (0..6).filter(|&node| runs(node));
            let sees = |node: u32| Roster::new(node, 6).ring().into_iter().any(|next| !runs(next));
            assert!(running.any(sees), "{stopped:b}");
        }
    }

    #[test]
    fn those_that_do_not_fit_take_turns() {
        let mut roster = Roster::new(0, 100);
        roster.remove(50);
        let mut seen: Vec<u32> = Vec::new();
        for _ in 0..7 {
            seen.extend(roster.next(WINDOW, |_| true, |_| false));
        }
        seen.truncate(98);
        seen.sort_unstable();
        let expected: Vec<u32> = (1..100).filter(|&node| node != 50).collect();
        assert_eq!(seen, expected);
        let few = roster.next(WINDOW, |node| node == 7 || node == 9, |node| node == 9);
        assert_eq!(few, [7]);
    }
}
