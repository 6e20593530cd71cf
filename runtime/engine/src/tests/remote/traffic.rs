//! Random traffic, verified byte by byte, under every policy and on every network.

use super::*;
use std::vec;

const RANKS: u32 = 6;
const ROUNDS: i32 = 4;
const MESSAGES: usize = 24;

/// A generator that all ranks run alike.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn length(&mut self) -> usize {
        let most = [0, 16, 1200, 5000, 20_000, 150_000][self.below(6) as usize];
        self.below(most + 1) as usize
    }
}

#[derive(Clone, Copy)]
struct Message {
    from: u32,
    to: u32,
    tag: i32,
    length: usize,
    is_synchronous: bool,
}

fn messages(random: &mut Random, round: i32) -> Vec<Message> {
    (0..MESSAGES * RANKS as usize)
        .map(|_| Message {
            from: random.below(RANKS.into()) as u32,
            to: random.below(RANKS.into()) as u32,
            tag: round * 3 + random.below(3) as i32,
            length: random.length(),
            is_synchronous: random.below(4) == 0,
        })
        .collect()
}

fn round(rank: &'static Rank, random: &mut Random, number: i32) {
    let wildcards = number % 2 == 1;
    let me = rank.world_rank();
    let all = messages(random, number);
    let seed = |index: usize| index * 7 + 1;
    let mut receives = Vec::new();
    let mut sends = Vec::new();
    for (index, message) in all.iter().enumerate() {
        if message.from == me {
            let data = pattern(message.length, seed(index));
            let mode = if message.is_synchronous { SendMode::Synchronous } else { SendMode::Standard };
            sends.push((start_send(rank, message.to, message.tag, &data, mode), data));
        }
        if message.to == me {
            let mut data = vec![0; 150_000];
            let source = if wildcards { Source::Any } else { from(rank, message.from) };
            let request = start_recv(rank, source, Tag::Is(message.tag), &mut data);
            receives.push((request, data));
        }
    }
    let mut received: Vec<(Status, Vec<u8>)> =
        receives.into_iter().map(|(request, data)| (finish(rank, request), data)).collect();
    for (request, _data) in sends {
        finish(rank, request);
    }
    // Messages of one sender with one tag come in the order of their sends.
    for (index, message) in all.iter().enumerate().filter(|(_, it)| it.to == me) {
        let fits = |(status, _): &(Status, Vec<u8>)| status.source == message.from as i32 && status.tag == message.tag;
        let place = received.iter().position(fits).expect("one for each message");
        let (status, data) = received.remove(place);
        assert_eq!(status.bytes, message.length as i64, "message {index}");
        assert!(data[..message.length] == pattern(message.length, seed(index)));
    }
}

#[test]
fn random_traffic_arrives_whole_and_in_order() {
    let homes: [&[WorldRank]; 3] = [&[4, 0, 3], &[5], &[1, 2]];
    let ways = [
        (Progress::Steal, WaitMode::Auto),
        (Progress::Steal, WaitMode::Park),
        (Progress::None, WaitMode::Park),
        (Progress::Thread, WaitMode::Auto),
    ];
    for (network, options) in networks().into_iter().enumerate() {
        let (progress, wait) = ways[network];
        for (progress, wait) in [(progress, wait), ways[(network + 1) % 4]] {
            let ranks = Ranks::new(&homes, options, settings(progress, wait));
            ranks.run(|rank| {
                let mut random = Random(0x9e37_79b9_7f4a_7c15 + network as u64);
                for number in 0..ROUNDS {
                    round(rank, &mut random, number);
                }
            });
        }
    }
}
