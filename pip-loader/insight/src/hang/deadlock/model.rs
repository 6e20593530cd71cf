//! All orders of the steps of a few nodes whose ranks send each other packets, and of one that asks whether they can go
//! on: whoever is accused cannot.
//!
//! A node has one rank. Awake, it may send a packet, as long as it has some left, or fall asleep. A packet arrives at
//! any time later; then it is handled, which wakes the rank. A node answers a question in steps of its own.

use super::proof::{Said, is_silent, together};
use cohort_base::boot::Rest;
use std::collections::HashSet;

/// What the asker leaves out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    /// The counts of packets.
    Counts,
    /// Step 3.
    SecondLook,
    /// The comparison of the rests of step 3 with those of step 2.
    Numbers,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Node {
    is_awake: bool,
    /// Sleeps and wake-ups.
    number: u64,
    left: u8,
    packets: [u64; 2],
}

/// How far a node has come with its answer.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Answer {
    Open,
    /// It has read its rests.
    Rests(Option<u64>),
    /// It has looked at its rank too.
    Looked(Option<u64>, [u64; 2]),
    Given(Option<u64>, Option<[u64; 2]>),
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    nodes: Vec<Node>,
    /// Packets on their way, by receiver.
    on_the_way: Vec<u8>,
    /// Answers to step 2, and to step 3 once all of those are given.
    second: Vec<Answer>,
    third: Vec<Answer>,
}

impl Node {
    fn rest(&self) -> Option<u64> {
        (!self.is_awake).then_some(self.number)
    }
}

fn said(answers: &[Answer]) -> Option<Vec<Said>> {
    let said = answers.iter().map(|answer| match answer {
        Answer::Given(rest, packets) => {
            Some(Said { rests: rest.map(|number| vec![Some(Rest { threads: 1, number })]), packets: *packets })
        }
        _ => None,
    });
    said.collect()
}

impl State {
    /// Nodes that may send so many packets each.
    fn new(left: &[u8]) -> Self {
        let count = left.len();
        let node = |&left| Node { is_awake: true, number: 1, left, packets: [0; 2] };
        Self {
            nodes: left.iter().map(node).collect(),
            on_the_way: vec![0; count],
            second: vec![Answer::Open; count],
            third: vec![Answer::Open; count],
        }
    }

    /// Whether nothing can happen to the ranks any more.
    fn is_stuck(&self) -> bool {
        self.nodes.iter().all(|node| !node.is_awake) && self.on_the_way.iter().all(|&it| it == 0)
    }

    /// Whether the asker, who has all answers, accuses.
    fn accuses(&self, without: Without) -> bool {
        let Some(second) = said(&self.second) else {
            return false;
        };
        let is_silent =
            is_silent(&second) || without == Without::Counts && second.iter().all(|it| it.packets.is_some());
        if !is_silent || together(&second).is_none() {
            return false;
        }
        match (without, said(&self.third)) {
            (Without::SecondLook, _) => true,
            (_, None) => false,
            (Without::Numbers, Some(third)) => together(&third).is_some(),
            (_, Some(third)) => together(&third) == together(&second),
        }
    }

    /// All states that one step leads to.
    fn next(&self) -> Vec<Self> {
        let mut all = Vec::new();
        for at in 0..self.nodes.len() {
            let mut step = |change: &dyn Fn(&mut Self)| {
                let mut next = self.clone();
                change(&mut next);
                all.push(next);
            };
            if self.nodes[at].is_awake {
                step(&|next| {
                    next.nodes[at].is_awake = false;
                    next.nodes[at].number += 1;
                });
                let others = (0..self.nodes.len()).filter(|&to| to != at);
                for to in others.filter(|_| self.nodes[at].left > 0) {
                    step(&|next| {
                        next.nodes[at].left -= 1;
                        next.nodes[at].packets[0] += 1;
                        next.on_the_way[to] += 1;
                    });
                }
            }
            if self.on_the_way[at] > 0 {
                step(&|next| {
                    next.on_the_way[at] -= 1;
                    let node = &mut next.nodes[at];
                    node.packets[1] += 1;
                    if !node.is_awake {
                        node.is_awake = true;
                        node.number += 1;
                    }
                });
            }
            self.answer_second(at, &mut step);
            if said(&self.second).is_some() && self.third[at] == Answer::Open {
                let rest = self.nodes[at].rest();
                step(&|next| next.third[at] = Answer::Given(rest, None));
            }
        }
        all
    }

    fn answer_second(&self, at: usize, step: &mut impl FnMut(&dyn Fn(&mut Self))) {
        let node = &self.nodes[at];
        match self.second[at].clone() {
            Answer::Open => step(&|next| next.second[at] = Answer::Rests(node.rest())),
            Answer::Rests(rest) => {
                step(&|next| next.second[at] = Answer::Looked(rest, node.packets));
            }
            Answer::Looked(rest, packets) => {
                let packets = (rest.is_some() && rest == node.rest()).then_some(packets);
                step(&|next| next.second[at] = Answer::Given(rest, packets));
            }
            Answer::Given(..) => {}
        }
    }
}

/// Looks at all states that can be reached: how many, and whether somebody is accused rightly, and wrongly.
fn explore(start: State, without: Without) -> (usize, bool, bool) {
    let mut seen = HashSet::from([start.clone()]);
    let mut open = vec![start];
    let (mut rightly, mut wrongly) = (false, false);
    while let Some(state) = open.pop() {
        if state.accuses(without) {
            let is_stuck = state.is_stuck();
            rightly |= is_stuck;
            wrongly |= !is_stuck;
            if wrongly {
                break;
            }
            continue;
        }
        for next in state.next() {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    (seen.len(), rightly, wrongly)
}

#[test]
fn whoever_is_accused_cannot_go_on() {
    for left in [&[2, 1][..], &[1, 1], &[1, 0, 0]] {
        let (states, rightly, wrongly) = explore(State::new(left), Without::Nothing);
        assert!(rightly && !wrongly, "{states} states");
        assert!(states > 1000);
    }
}

#[test]
fn each_part_of_the_proof_is_needed() {
    for without in [Without::Counts, Without::SecondLook, Without::Numbers] {
        let (_, _, wrongly) = explore(State::new(&[2, 1]), without);
        assert!(wrongly);
    }
}
