//! One clock for all nodes.

use super::record::Record;

/// How a node's ticks become nanoseconds since the job's start: a straight line through two points.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    own: [u64; 2],
    ns: [i128; 2],
}

impl Scale {
    /// At one time, in ticks, no nanoseconds have passed, and at another one so many.
    #[must_use]
    pub fn new(own: [u64; 2], ns: u64) -> Self {
        Self { own, ns: [0, ns.into()] }
    }

    /// That of a node, by the scale of the first one.
    fn through(self, record: &Record) -> Self {
        Self { own: record.points.map(|point| point.own), ns: record.points.map(|point| self.signed(point.first)) }
    }

    fn signed(&self, ticks: u64) -> i128 {
        let passed = i128::from(ticks) - i128::from(self.own[0]);
        let all = (i128::from(self.own[1]) - i128::from(self.own[0])).max(1);
        self.ns[0] + passed * (self.ns[1] - self.ns[0]) / all
    }

    /// Nanoseconds since the beginning, at least 0.
    #[must_use]
    pub fn ns(&self, ticks: u64) -> u64 {
        self.signed(ticks).max(0) as u64
    }

    /// How long so many ticks take.
    fn ns_of(&self, ticks: u64) -> i128 {
        let all = (i128::from(self.own[1]) - i128::from(self.own[0])).max(1);
        i128::from(ticks) * (self.ns[1] - self.ns[0]) / all
    }
}

/// What is known of a node's clock.
#[derive(Clone, Debug)]
pub struct NodeFacts {
    /// Its number.
    pub node: u32,
    /// Its name.
    pub host: String,
    /// By how many nanoseconds its system's clock was ahead of that of the first node when its ranks started.
    pub offset: i64,
    /// By how many parts of a thousand million its system's clock was faster.
    pub drift: i64,
    /// Its times are right to so many nanoseconds.
    pub error: u64,
}

/// The scales of nodes, the first one first, and when the job started: nanoseconds since 1970.
#[must_use]
pub fn scales(records: &[Record]) -> (Vec<(Scale, NodeFacts)>, u64) {
    let Some(first) = records.first() else {
        return (Vec::new(), 0);
    };
    let [begin, end] = first.clocks;
    let common = Scale::new([begin.ticks, end.ticks], end.steady - begin.steady);
    let mut all: Vec<_> = records
        .iter()
        .map(|record| {
            let scale = common.through(record);
            (scale, facts(record, first, &scale))
        })
        .collect();
    // Ranks of other nodes may start before those of the first one.
    let starts = records.iter().zip(&all);
    let earliest = starts.map(|(record, (scale, _))| scale.signed(record.clocks[0].ticks));
    let earliest = earliest.min().unwrap_or(0);
    for (scale, _) in &mut all {
        scale.ns = scale.ns.map(|ns| ns - earliest);
    }
    let start = i128::from(begin.real) + earliest;
    (all, start.max(0) as u64)
}

fn facts(record: &Record, first: &Record, scale: &Scale) -> NodeFacts {
    let [begin, end] = record.clocks;
    let common = scale.signed(begin.ticks);
    let read = [begin, first.clocks[0]].map(|clocks| clocks.error);
    let pinged = record.points.map(|point| scale.ns_of(point.error));
    let offset = i128::from(begin.real) - i128::from(first.clocks[0].real) - common;
    let took = (scale.signed(end.ticks) - common).max(1);
    let drift = (i128::from(end.steady - begin.steady) - took) * 1_000_000_000 / took;
    NodeFacts {
        node: record.node,
        host: record.host.clone(),
        offset: offset as i64,
        drift: drift as i64,
        error: pinged.into_iter().max().unwrap_or(0) as u64 + read.into_iter().sum::<u64>(),
    }
}
