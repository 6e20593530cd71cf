//! Messages between nodes: what each node has noted of them, brought together at the first one.

use super::{Finding, Place};
use crate::backtrace::CallPlace;
use cohort_base::check::{ANY_BYTES, ENDED, FIELD, Kinds, Mistake, RECORD, SHAPE, STREAM, UNSURE};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// Most bytes that a node tells the first one.
const MOST: usize = 16 << 20;

/// Which messages: the context, the receiver and the sender in the job, the sender and the receiver in the
/// communicator, the tag, and whether they are partitioned.
type Key = [i64; 7];

/// What calls at a place send or receive.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shape {
    rank: u32,
    function: String,
    code: CallPlace,
    /// Bytes of an element; 0 if there is no type to compare.
    each: u64,
    is_bytes: bool,
    text: String,
}

/// Equal messages: the number of the shape, bytes, a digest of the types, and how many.
type Run = [u64; 4];

/// What a node has noted.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Part {
    shapes: HashMap<u64, Shape>,
    sent: Vec<(Key, Vec<Run>)>,
    received: Vec<(Key, Vec<Run>)>,
    /// Of these, or of all of a context to a receiver, nothing is known.
    unsure: HashSet<Vec<i64>>,
    /// Ranks that have ended their use of MPI.
    ended: HashSet<i64>,
}

/// Numbers between spaces.
fn numbers<T: std::str::FromStr, const N: usize>(text: &str) -> Option<[T; N]> {
    let all: Vec<T> = text.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
    all.try_into().ok()
}

impl Part {
    /// Reads what a node image or another launcher tells; `name` names the code before an address.
    pub fn read(told: &str, name: &mut dyn FnMut(u64) -> CallPlace) -> Self {
        let mut this = Self::default();
        for record in told.split_terminator(RECORD) {
            let fields: Vec<&str> = record.split_terminator(FIELD).collect();
            // What is none of this part is the findings'.
            let _ = this.take(&fields, name);
        }
        this
    }

    fn take(&mut self, fields: &[&str], name: &mut dyn FnMut(u64) -> CallPlace) -> Option<()> {
        match *fields {
            [SHAPE, number, rank, function, each, is_bytes, text, ref place @ ..] => {
                let code = match *place {
                    [address] => name(u64::from_str_radix(address, 16).ok()?),
                    [text, path, line] => CallPlace { text: text.into(), path: path.into(), line: line.parse().ok()? },
                    _ => return None,
                };
                let (rank, each, is_bytes) = (rank.parse().ok()?, each.parse().ok()?, is_bytes == "1");
                let shape = Shape { rank, function: function.into(), code, each, is_bytes, text: text.into() };
                self.shapes.insert(number.parse().ok()?, shape);
            }
            [STREAM, is_sent, key, ref runs @ ..] => {
                let runs = runs.iter().map(|run| numbers(run)).collect::<Option<Vec<Run>>>()?;
                let all = if is_sent == "1" { &mut self.sent } else { &mut self.received };
                all.push((numbers(key)?, runs));
            }
            [UNSURE, key] => {
                self.unsure.insert(key.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?);
            }
            [ENDED, rank] => {
                self.ended.insert(rank.parse().ok()?);
            }
            _ => return None,
        }
        Some(())
    }

    /// As it travels to the first node.
    pub fn encode(&self) -> String {
        let mut out = String::new();
        // A string takes everything.
        let _ = self.write(&mut out);
        if out.len() > MOST { String::new() } else { out }
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        for (number, Shape { rank, function, code, each, is_bytes, text }) in &self.shapes {
            let CallPlace { text: place, path, line } = code;
            write!(out, "{SHAPE}{FIELD}{number}{FIELD}{rank}{FIELD}{function}{FIELD}{each}{FIELD}")?;
            write!(out, "{}{FIELD}{text}{FIELD}{place}{FIELD}{path}{FIELD}{line}{FIELD}{RECORD}", u8::from(*is_bytes))?;
        }
        for (is_sent, all) in [(1, &self.sent), (0, &self.received)] {
            for (key, runs) in all {
                write!(out, "{STREAM}{FIELD}{is_sent}{FIELD}{}", words(key))?;
                runs.iter().try_for_each(|run| write!(out, "{FIELD}{}", words(run)))?;
                write!(out, "{FIELD}{RECORD}")?;
            }
        }
        self.unsure.iter().try_for_each(|key| write!(out, "{UNSURE}{FIELD}{}{FIELD}{RECORD}", words(key)))?;
        self.ended.iter().try_for_each(|rank| write!(out, "{ENDED}{FIELD}{rank}{FIELD}{RECORD}"))
    }
}

fn words<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}

/// A run of messages, and what they are.
type Seen<'a> = (Run, &'a Shape);

/// What is wrong with messages between nodes.
pub fn compare(parts: &[Part], kinds: Kinds) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut received: HashMap<Key, (&Part, &[Run])> = HashMap::new();
    for part in parts {
        received.extend(part.received.iter().map(|(key, runs)| (*key, (part, &runs[..]))));
    }
    let is_unsure = |key: &Key| parts.iter().any(|it| it.unsure.contains(&key[..]) || it.unsure.contains(&key[..2]));
    for part in parts {
        for (key, sent) in part.sent.iter().filter(|(key, _)| !is_unsure(key)) {
            let taken = received.get(key).copied().unwrap_or((part, &[]));
            let Some(rest) = pair((part, sent), taken, kinds, &mut findings) else {
                continue;
            };
            let has_ended = parts.iter().any(|it| it.ended.contains(&key[1]));
            if has_ended && key[6] == 0 && kinds.has(Mistake::Unreceived) {
                findings.extend(rest.iter().filter_map(|run| Some(unreceived(key, (*run, part.shapes.get(&run[0])?)))));
            }
        }
    }
    findings
}

/// Compares what was sent with what was received; gives what is left of the former, unless the two do not fit.
fn pair(
    (sender, sent): (&Part, &[Run]),
    (receiver, taken): (&Part, &[Run]),
    kinds: Kinds,
    findings: &mut Vec<Finding>,
) -> Option<Vec<Run>> {
    let (mut sent, mut taken) = (sent.to_vec(), taken.to_vec());
    let (mut place, mut other) = (0, 0);
    while let (Some(one), Some(two)) = (sent.get_mut(place), taken.get_mut(other)) {
        let times = one[3].min(two[3]);
        if one[1] != two[1] && two[1] != ANY_BYTES || times == 0 {
            return None;
        }
        if let (Some(from), Some(into)) = (sender.shapes.get(&one[0]), receiver.shapes.get(&two[0])) {
            let ([mut one, mut two], is_same) = ([*one, *two], one[2] == two[2]);
            (one[3], two[3]) = (times, times);
            findings.extend(if is_same { None } else { differ((one, from), (two, into), kinds) });
        }
        one[3] -= times;
        two[3] -= times;
        place += usize::from(one[3] == 0);
        other += usize::from(two[3] == 0);
    }
    // More was received than was sent: something has escaped us.
    taken.get(other).is_none().then(|| sent.split_off(place))
}

fn differ((sent, from): Seen<'_>, (taken, into): Seen<'_>, kinds: Kinds) -> Option<Finding> {
    let mistake = if from.is_bytes || into.is_bytes { Mistake::Bytes } else { Mistake::Types };
    if from.each == 0 || into.each == 0 || !kinds.has(mistake) {
        return None;
    }
    let [theirs, ours] = [(sent, from), (taken, into)].map(|(run, it)| format!("{} {}", run[1] / it.each, it.text));
    let places = vec![from.place("sends"), into.place("receives")];
    let values = format!("sent: {theirs}; received: {ours}");
    Some(Finding { about: mistake.about(), count: sent[3], values, places })
}

fn unreceived(key: &Key, (run, shape): Seen<'_>) -> Finding {
    let [_, _, _, source, to, tag, _] = key;
    let values = format!("{} bytes from rank {source} to rank {to} of the communicator, tag {tag}", run[1]);
    let (about, places) = (Mistake::Unreceived.about(), vec![shape.place("sent")]);
    Finding { about, count: run[3], values, places }
}

impl Shape {
    fn place(&self, did: &str) -> Place {
        let (function, code) = (self.function.clone(), self.code.clone());
        Place { ranks: vec![self.rank], did: did.to_owned(), function, code }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(records: &[&str]) -> Part {
        let text: String =
            records.iter().map(|record| format!("{}{FIELD}{RECORD}", record.replace('|', "\u{1f}"))).collect();
        Part::read(&text, &mut |address| CallPlace { text: format!("f at a.c:{address}"), ..CallPlace::default() })
    }

    #[test]
    fn messages_are_paired_in_their_order() {
        let shapes = ["shape|0|1|MPI_Send|4|0|MPI_INT|10", "shape|1|1|MPI_Send|4|0|MPI_FLOAT|11"];
        let key = "4 2 1 1 2 7 0";
        let one = told(&[shapes[0], shapes[1], &format!("stream|1|{key}|0 8 5 3|1 8 6 1|0 4 9 2"), "ended|1"]);
        let theirs = ["shape|0|2|MPI_Recv|4|0|MPI_INT|20", &format!("stream|0|{key}|0 8 5 4|0 4 9 1"), "ended|2"];
        let two = told(&theirs);
        // It travels.
        let again = Part::read(&two.encode(), &mut |_| CallPlace::default());
        assert_eq!(again, two);
        let found = compare(&[one, again], Kinds::ALL);
        let values: Vec<_> = found.iter().map(|it| (it.about.name, it.count, it.values.as_str())).collect();
        let text = "4 bytes from rank 1 to rank 2 of the communicator, tag 7";
        assert_eq!(values, [("types", 1, "sent: 2 MPI_FLOAT; received: 2 MPI_INT"), ("unreceived", 1, text)]);
        assert_eq!(found[0].places[1].code.text, "f at a.c:32");
    }

    #[test]
    fn what_does_not_fit_is_left_alone() {
        let key = "4 2 1 1 2 7 0";
        let shape = "shape|0|1|MPI_Send|4|0|MPI_INT|10";
        let sent = |runs: &str| told(&[shape, &format!("stream|1|{key}|{runs}")]);
        let taken = |runs: &str, more: &str| told(&[shape, &format!("stream|0|{key}|{runs}"), more, "ended|2"]);
        for (runs, others, more) in [
            ("0 8 5 1", "0 4 6 1", "ended|1"),
            ("0 8 5 1", "0 8 6 2", "unsure|4 2"),
            ("0 8 5 2", "0 8 5 1", &format!("unsure|{key}")),
        ] {
            assert!(compare(&[sent(runs), taken(others, more)], Kinds::ALL).is_empty(), "{runs} {others} {more}");
        }
        // Whoever has not ended may still receive it.
        assert!(compare(&[sent("0 8 5 1")], Kinds::ALL).is_empty());
    }
}
