//! What the ranks of a node have done up to a moment: what a launcher tells, and `--top` takes differences of.

use super::wire::Record;

/// A node at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSample {
    /// Its number in the job.
    pub node: u64,
    /// When, in microseconds of a clock of this node that never goes back.
    pub time_us: u64,
    /// How often the launcher has looked at its ranks.
    pub looks: u64,
    /// Memory of the address space in KiB; 0 where ranks have one each.
    pub memory_kib: u64,
    /// The host of a node that has not answered, of which nothing else is known; else empty.
    pub silent: String,
    /// Its ranks.
    pub ranks: Vec<RankRow>,
}

/// A rank at that moment. All numbers but `memory_kib` only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankRow {
    /// Number in the job.
    pub rank: u64,
    /// Its process.
    pub pid: u64,
    /// How far it has come in its use of MPI.
    pub stage: Stage,
    /// The kernel's letter of what it does; empty if it has ended.
    pub state: String,
    /// The call of MPI that it is in; empty if it is in none, or if that is not known.
    pub call: String,
    /// Time on CPUs in milliseconds.
    pub cpu_ms: u64,
    /// Looks that found it in MPI, as far as looks tell.
    pub in_mpi: u64,
    /// Looks that found it asleep in MPI.
    pub asleep: u64,
    /// Calls of MPI, since somebody has watched; so are those below.
    pub calls: u64,
    /// Time in them, in microseconds.
    pub mpi_us: u64,
    /// Messages that it sent, or had a part in.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Times that it went to sleep.
    pub parks: u64,
    /// Times that it woke another rank.
    pub wakes: u64,
    /// Times that it moved something for another rank.
    pub hits: u64,
    /// Bytes that it moved so.
    pub stolen_bytes: u64,
    /// For whom, and how often: rank of the job, times.
    pub helped: Vec<(u64, u64)>,
    /// KiB of its heap of MPI, or of the whole rank where it has an address space of its own.
    pub memory_kib: u64,
}

/// How far a rank has come in its use of MPI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// Its task has ended.
    #[default]
    Ended,
    /// Before `MPI_Init`.
    Fresh,
    /// Between.
    Initialized,
    /// After `MPI_Finalize`.
    Finalized,
    /// Its address space is its own, into which the launcher does not look.
    Alone,
}

impl Stage {
    const ALL: [(Self, &str); 5] = [
        (Self::Ended, "ended"),
        (Self::Fresh, "fresh"),
        (Self::Initialized, "initialized"),
        (Self::Finalized, "finalized"),
        (Self::Alone, "alone"),
    ];

    fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    fn of(name: &str) -> Self {
        let mut all = Self::ALL.iter();
        all.find(|(_, own)| *own == name).map_or(Self::Ended, |(stage, _)| *stage)
    }
}

impl NodeSample {
    /// It as text: records between empty lines, the node's first.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut record = Record::default();
        record
            .add("node", self.node)
            .add("time_us", self.time_us)
            .add("looks", self.looks)
            .add("memory_kib", self.memory_kib)
            .add("silent", &self.silent);
        let mut text = record.encode();
        for rank in &self.ranks {
            text.push('\n');
            text.push_str(&rank.record().encode());
        }
        text
    }

    /// What a text says.
    #[must_use]
    pub fn decode(text: &str) -> Self {
        let mut parts = text.split("\n\n");
        let node = Record::decode(parts.next().unwrap_or_default());
        Self {
            node: node.number("node"),
            time_us: node.number("time_us"),
            looks: node.number("looks"),
            memory_kib: node.number("memory_kib"),
            silent: node.get("silent").to_owned(),
            ranks: parts.map(|part| RankRow::of(&Record::decode(part))).collect(),
        }
    }
}

impl RankRow {
    fn record(&self) -> Record {
        let mut record = Record::default();
        let helped: Vec<String> = self.helped.iter().map(|(rank, times)| format!("{rank}:{times}")).collect();
        record
            .add("rank", self.rank)
            .add("pid", self.pid)
            .add("stage", self.stage.name())
            .add("state", &self.state)
            .add("call", &self.call)
            .add("cpu_ms", self.cpu_ms)
            .add("in_mpi", self.in_mpi)
            .add("asleep", self.asleep)
            .add("calls", self.calls)
            .add("mpi_us", self.mpi_us)
            .add("messages", self.messages)
            .add("bytes", self.bytes)
            .add("parks", self.parks)
            .add("wakes", self.wakes)
            .add("hits", self.hits)
            .add("stolen_bytes", self.stolen_bytes)
            .add("helped", helped.join(" "))
            .add("memory_kib", self.memory_kib);
        record
    }

    fn of(record: &Record) -> Self {
        let pair = |word: &str| {
            let (rank, times) = word.split_once(':')?;
            Some((rank.parse().ok()?, times.parse().ok()?))
        };
        Self {
            rank: record.number("rank"),
            pid: record.number("pid"),
            stage: Stage::of(record.get("stage")),
            state: record.get("state").to_owned(),
            call: record.get("call").to_owned(),
            cpu_ms: record.number("cpu_ms"),
            in_mpi: record.number("in_mpi"),
            asleep: record.number("asleep"),
            calls: record.number("calls"),
            mpi_us: record.number("mpi_us"),
            messages: record.number("messages"),
            bytes: record.number("bytes"),
            parks: record.number("parks"),
            wakes: record.number("wakes"),
            hits: record.number("hits"),
            stolen_bytes: record.number("stolen_bytes"),
            helped: record.get("helped").split(' ').filter_map(pair).collect(),
            memory_kib: record.number("memory_kib"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_keep_what_they_hold() {
        let rank = |rank| RankRow {
            rank,
            pid: 17 + rank,
            stage: Stage::Initialized,
            state: "S".into(),
            call: "MPI_Recv".into(),
            helped: vec![(3, 4), (1, 9)],
            calls: 5,
            ..RankRow::default()
        };
        let sample = NodeSample {
            node: 1,
            looks: 9,
            ranks: vec![rank(0), RankRow::default(), rank(2)],
            ..NodeSample::default()
        };
        assert_eq!(NodeSample::decode(&sample.encode()), sample);
    }
}
