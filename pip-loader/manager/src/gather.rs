//! Values that clients tell each other through their manager.
//!
//! A manager keeps texts under keys and has fences; reading a text takes a question and an answer.
//! Were everyone to read everyone's, a job of N nodes would ask N^2 times. So from [`DIRECT_MAX`]
//! clients on, the first of every √N joins what its neighbours have published into one run of bytes,
//! publishes that in pieces as long as the manager takes, and all read the joined runs: one question
//! for about a thousand bytes instead of one for each client. That costs a second fence. A manager
//! whose fence brings all values to every node ([`Manager::fence_collects`]) needs neither.
//!
//! Texts are base 64 with their length before it.

use crate::node_info::{Reader, write_number};
use crate::{Failure, Manager};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;

/// Most clients that read each other's values one by one.
const DIRECT_MAX: u32 = 16;

/// Longest piece of a value, whatever the manager takes.
const PIECE_MAX: usize = 1 << 16;

/// Publishes `bytes` under a label that is used once, and gives everyone's, in order of the
/// clients. Values longer than the manager takes are cut into pieces.
///
/// # Errors
/// The manager fails, or another client's value is damaged.
pub fn all_gather(manager: &mut dyn Manager, label: &str, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
    let gather = Gather::new(manager, label);
    gather.publish_own(manager, bytes)?;
    manager.fence()?;
    if gather.group > 1 {
        gather.join(manager, bytes)?;
        manager.fence()?;
    }
    gather.read(manager, bytes)
}

/// Publishes a value that others may [`fetch`] after the next fence.
///
/// # Errors
/// The manager fails.
pub fn publish(manager: &mut dyn Manager, label: &str, bytes: &[u8]) -> Result<(), Failure> {
    let index = manager.place().index;
    let text = format!("{}.{}", bytes.len(), BASE64.encode(bytes));
    let piece = manager.limits().value.clamp(64, PIECE_MAX) - 1;
    for (number, piece) in text.as_bytes().chunks(piece).enumerate() {
        let piece = String::from_utf8_lossy(piece);
        manager.put(&key(label, index, number), &piece)?;
    }
    Ok(())
}

/// What client `from` published under this label before the last fence.
///
/// # Errors
/// The manager fails, or the value is damaged.
pub fn fetch(manager: &mut dyn Manager, from: u32, label: &str) -> Result<Vec<u8>, Failure> {
    let mut text = manager.get(from, &key(label, from, 0))?;
    let whole = whole_length(&text).ok_or_else(|| damaged(from, &text))?;
    let mut number = 1;
    while text.len() < whole {
        let piece = manager.get(from, &key(label, from, number))?;
        if piece.is_empty() {
            return Err(damaged(from, &text));
        }
        text.push_str(&piece);
        number += 1;
    }
    decode(&text).ok_or_else(|| damaged(from, &text))
}

/// One exchange of everyone with everyone, as its steps.
struct Gather {
    label: String,
    /// Label of the joined values.
    joined: String,
    index: u32,
    count: u32,
    /// How many consecutive clients have their values joined by the first of them; 1 if none have.
    group: u32,
}

impl Gather {
    fn new(manager: &dyn Manager, label: &str) -> Self {
        let place = manager.place();
        let group = match place.count {
            count if count <= DIRECT_MAX || manager.fence_collects() => 1,
            count => count.isqrt(),
        };
        Self { label: label.to_owned(), joined: format!("{label}s"), index: place.index, count: place.count, group }
    }

    fn publish_own(&self, manager: &mut dyn Manager, bytes: &[u8]) -> Result<(), Failure> {
        // The first of a group has nobody to tell but all.
        match self.group > 1 && self.index.is_multiple_of(self.group) {
            true => Ok(()),
            false => publish(manager, &self.label, bytes),
        }
    }

    /// The clients of the group that begins with `first`.
    fn members(&self, first: u32) -> std::ops::Range<u32> {
        first..self.count.min(first + self.group)
    }

    /// The first of a group publishes what its members have.
    fn join(&self, manager: &mut dyn Manager, own: &[u8]) -> Result<(), Failure> {
        if !self.index.is_multiple_of(self.group) {
            return Ok(());
        }
        let mut joined = Vec::new();
        for member in self.members(self.index) {
            let value = match member == self.index {
                true => own.to_vec(),
                false => fetch(manager, member, &self.label)?,
            };
            write_number(&mut joined, value.len() as u32);
            joined.extend(value);
        }
        publish(manager, &self.joined, &joined)
    }

    fn read(&self, manager: &mut dyn Manager, own: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
        if self.group == 1 {
            return (0..self.count)
                .map(|from| match from == self.index {
                    true => Ok(own.to_vec()),
                    false => fetch(manager, from, &self.label),
                })
                .collect();
        }
        let mut values = Vec::with_capacity(self.count as usize);
        for first in (0..self.count).step_by(self.group as usize) {
            let joined = fetch(manager, first, &self.joined)?;
            let mut reader = Reader(&joined);
            for _ in self.members(first) {
                let value = reader.part();
                values.push(value.ok_or_else(|| damaged(first, "joined values"))?);
            }
        }
        Ok(values)
    }
}

fn key(label: &str, client: u32, piece: usize) -> String {
    format!("cohort-{label}-{client}-{piece}")
}

/// Length of a text of which the beginning is known.
fn whole_length(beginning: &str) -> Option<usize> {
    let (digits, _) = beginning.split_once('.')?;
    let bytes: usize = digits.parse().ok().filter(|&bytes| bytes < 1 << 30)?;
    Some(digits.len() + 1 + base64::encoded_len(bytes, false)?)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let (digits, encoded) = text.split_once('.')?;
    let bytes = BASE64.decode(encoded).ok()?;
    (digits.parse() == Ok(bytes.len())).then_some(bytes)
}

fn damaged(node: u32, text: &str) -> Failure {
    let beginning: String = text.chars().take(40).collect();
    Failure::Peer { node, problem: format!("what it published is damaged: \"{beginning}...\"") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wireup::{NodeInfo, Numbering};
    use crate::{Limits, Place};
    use std::collections::HashMap;

    /// A manager that counts questions. One value speaks for all clients in turn.
    struct Counter {
        place: Place,
        collects: bool,
        values: HashMap<String, String>,
        puts: u64,
        gets: u64,
    }

    impl Counter {
        fn of(count: u32) -> Self {
            Self { place: Place { index: 0, count }, collects: false, values: HashMap::new(), puts: 0, gets: 0 }
        }
    }

    impl Manager for Counter {
        fn name(&self) -> &'static str {
            "a counter"
        }

        fn place(&self) -> Place {
            self.place
        }

        /// Those of PMI-1 and PMI-2.
        fn limits(&self) -> Limits {
            Limits { key: 64, value: 1024 }
        }

        fn fence_collects(&self) -> bool {
            self.collects
        }

        fn application(&mut self) -> Result<u32, Failure> {
            Ok(0)
        }

        fn put(&mut self, key: &str, value: &str) -> Result<(), Failure> {
            let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
            assert!(key.len() < 64 && value.len() < 1024 && plain(key) && plain(value));
            self.puts += 1;
            let former = self.values.insert(key.to_owned(), value.to_owned());
            assert_eq!(former, None, "{key} is published twice");
            Ok(())
        }

        fn fence(&mut self) -> Result<(), Failure> {
            Ok(())
        }

        fn get(&mut self, from: u32, key: &str) -> Result<String, Failure> {
            self.gets += 1;
            let value = self.values.get(key).cloned();
            value.ok_or_else(|| damaged(from, "nothing"))
        }

        fn line(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
            None
        }

        fn aborter(&self) -> Option<crate::watch::Aborter> {
            None
        }

        fn finalize(&mut self) -> Result<(), Failure> {
            Ok(())
        }
    }

    /// What a node of a real job says of itself.
    fn record(index: u32) -> Vec<u8> {
        let info = NodeInfo {
            ranks: 64,
            numbering: Numbering::Block,
            host: format!("node{index:05}.cluster"),
            machine: format!("{index:032x}"),
            cpus: vec![0xff; 16],
            interfaces: format!("4026531840 10.0.{}.{}/16", index >> 8, index & 255).into(),
            ..NodeInfo::default()
        };
        info.encode()
    }

    /// What an exchange costs: the most questions of one client, and what all publish.
    struct Cost {
        gets: u64,
        puts: u64,
    }

    fn cost(count: u32) -> Cost {
        let mut manager = Counter::of(count);
        let gather = |manager: &mut Counter, index| {
            manager.place.index = index;
            Gather::new(manager, "info")
        };
        for index in 0..count {
            let gather = gather(&mut manager, index);
            gather.publish_own(&mut manager, &record(index)).expect("room");
        }
        let (mut joining, mut most) = (0, 0);
        for index in 0..count {
            let gather = gather(&mut manager, index);
            manager.gets = 0;
            if gather.group > 1 {
                gather.join(&mut manager, &record(index)).expect("joined");
            }
            joining = joining.max(manager.gets);
        }
        for index in [0, 1, count / 2, count - 1] {
            let gather = gather(&mut manager, index);
            manager.gets = 0;
            let all = gather.read(&mut manager, &record(index)).expect("read");
            assert!(all.len() == count as usize);
            assert!((0..).zip(&all).all(|(from, value)| *value == record(from)));
            most = most.max(manager.gets);
        }
        Cost { gets: joining + most, puts: manager.puts }
    }

    /// Run with --nocapture to see the table of RESULTS.
    #[test]
    fn questions_grow_with_the_bytes_and_not_with_the_clients() {
        let [small, hundred, thousand, more] = [16, 100, 1000, 10_000].map(|count| {
            let cost = cost(count);
            println!("{count} clients: {} gets each, {} puts", cost.gets, cost.puts);
            cost
        });
        assert_eq!((small.gets, small.puts), (15, 16), "one by one");
        assert!(hundred.gets <= 100 / 2, "{}", hundred.gets);
        assert!(thousand.gets <= 1000 / 4, "{}", thousand.gets);
        assert!(more.gets <= 10_000 / 6, "{}", more.gets);
        assert!(more.gets <= 11 * thousand.gets, "no worse than linear");
        assert!(more.puts <= 3 * 10_000 && thousand.puts <= 3 * 1000);
    }

    #[test]
    fn a_fence_that_collects_needs_no_second_one() {
        let mut manager = Counter::of(1000);
        manager.collects = true;
        assert_eq!(Gather::new(&manager, "x").group, 1);
    }

    #[test]
    fn damaged_values_are_named() {
        for text in ["", "x", "3.", "3.AAA", "4.AAAA", "3.AA!A", "99999999999.AA"] {
            let mut manager = Counter::of(2);
            let value = text.to_owned();
            manager.values.insert(key("x", 1, 0), value);
            let failure = fetch(&mut manager, 1, "x").unwrap_err().to_string();
            assert!(failure.contains("node 1"), "{text}: {failure}");
        }
        let mut manager = Counter::of(2);
        manager.values.insert(key("x", 1, 0), "3.AAAA".to_owned());
        assert_eq!(fetch(&mut manager, 1, "x").expect("whole"), [0; 3]);
    }
}
