//! Latency of blocking sends and receives between two pinned threads, as a ratio to the bare
//! transfer of a cache line. Both are measured in turns, so that noise meets both.
//!
//! `cargo run --release -p cohort-engine --features testing --example pingpong`

use cohort_base::Peer;
use cohort_base::settings::{Settings, WaitMode};
use cohort_engine::datatype::{Buffer, TypeRef, predefined};
use cohort_engine::{Envelope, Node, Owner, Rank, SendMode, Source, Tag, recv, send};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::hint::spin_loop;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// `MPI_BYTE`.
const BYTE: u32 = 0x247;
const TURNS: usize = 25;

#[repr(align(128))]
struct Line(AtomicU32);

/// Iterations for messages of this many bytes.
fn iterations(bytes: usize) -> u32 {
    match bytes {
        0..4097 => 10_000,
        4097..65_537 => 2_000,
        _ => 100,
    }
}

fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    if let Err(error) = sched_setaffinity(None, &set) {
        eprintln!("cannot bind to CPU {cpu}: {error}");
    }
}

/// Bounces the line's value; each side answers the other's number with the next one.
fn bare_half(line: &Line, side: u32, rounds: u32) {
    for round in 0..rounds {
        let awaited = 2 * round + side;
        while line.0.load(Ordering::Acquire) != awaited {
            spin_loop();
        }
        line.0.store(awaited + 1, Ordering::Release);
    }
}

fn message_half(rank: &Rank, bytes: &mut [u8], datatype: &TypeRef, rounds: u32) {
    let other = 1 - rank.id();
    let peer = Peer::local(other);
    let envelope = Envelope { context: 2, source: rank.id() as i32, tag: 1 };
    let source = Source::Rank { peer, comm_rank: other as i32 };
    // SAFETY: the test's own memory, which stays until the operation is over.
    let data = unsafe { Buffer::new(bytes.as_mut_ptr(), bytes.len() as u64, datatype) };
    for _ in 0..rounds {
        for sends in [rank.id() == 0, rank.id() == 1] {
            if sends {
                send(Owner::for_test(rank), data, peer, envelope, SendMode::Standard).expect("memory");
            } else {
                recv(Owner::for_test(rank), data, source, 2, Tag::Is(1)).expect("memory");
            }
        }
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// One side's part of all measurements; side 0 returns the medians of one-way times in ns.
fn side(node: &'static Node, side: u32, start: &Barrier, line: &Line, bytes: usize) -> (f64, f64) {
    pin(side as usize);
    let datatype = predefined(BYTE).expect("MPI_BYTE").clone();
    let mut buffer = vec![side as u8; bytes];
    let rounds = iterations(bytes);
    let (mut bare, mut messages) = (Vec::new(), Vec::new());
    for turn in 0..TURNS + 2 {
        start.wait();
        line.0.store(0, Ordering::Release);
        start.wait();
        let begun = Instant::now();
        bare_half(line, side, rounds);
        let middle = Instant::now();
        start.wait();
        message_half(node.rank(side), &mut buffer, &datatype, rounds / 10);
        let restart = Instant::now();
        message_half(node.rank(side), &mut buffer, &datatype, rounds);
        if turn >= 2 {
            let one_way = |time: std::time::Duration| time.as_nanos() as f64 / f64::from(2 * rounds);
            bare.push(one_way(middle - begun));
            messages.push(one_way(restart.elapsed()));
        }
    }
    (median(bare), median(messages))
}

fn main() {
    let node = Node::for_test_with(2, Settings { wait: WaitMode::Auto, ..Settings::DEFAULT });
    println!("{:>9} {:>12} {:>14} {:>7}", "bytes", "line ns", "message ns", "ratio");
    let lengths: Vec<usize> = match std::env::args().nth(1) {
        Some(length) => vec![length.parse().expect("a number of bytes")],
        None => vec![0, 8, 64, 256, 1000, 4096, 16_384, 65_536, 262_144, 1 << 20, 4 << 20],
    };
    for bytes in lengths {
        let (start, line) = (Barrier::new(2), Line(AtomicU32::new(0)));
        let (bare, message) = std::thread::scope(|scope| {
            scope.spawn(|| side(node, 1, &start, &line, bytes));
            side(node, 0, &start, &line, bytes)
        });
        println!("{bytes:>9} {bare:>12.1} {message:>14.1} {:>7.2}", message / bare);
    }
}
