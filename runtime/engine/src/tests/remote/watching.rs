//! Who watches the network.

use super::*;
use cohort_net::Net;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Far longer than what is waited for takes.
const LIMIT: Duration = Duration::from_secs(60);

/// Waits, without the runtime, until something is so. False if it takes too long: other threads
/// would wait for one that panics.
fn eventually(is_so: impl Fn() -> bool) -> bool {
    let since = Instant::now();
    while !is_so() && since.elapsed() < LIMIT {
        thread::yield_now();
    }
    is_so()
}

/// Whether this rank is its node's watcher.
fn watches(rank: &Rank) -> bool {
    let net = Net::of(rank.node()).expect("there are two nodes");
    net.watcher() == Some(rank.id())
}

/// The first rank announces a sleep and finds, in its last look, that its wait is over. At that
/// moment the second one stops watching, and takes the first for a sleeper that will watch.
#[test]
fn who_leaves_instead_of_watching_finds_another() {
    let settings = settings(Progress::None, WaitMode::Park);
    let ranks = Ranks::new(&[&[0, 1, 2], &[3]], networks()[0], settings);
    let [stops_watching, has_left, all_over, is_watched] = [false; 4].map(AtomicBool::new);
    let [first, second, third] = [0, 1, 2].map(|world| ranks.rank(world));
    let leaves = || {
        let has_announced = first.park().is_parked();
        if has_announced {
            stops_watching.store(true, Ordering::SeqCst);
            wait::wake(second);
            eventually(|| has_left.load(Ordering::SeqCst));
        }
        has_announced || has_left.load(Ordering::SeqCst)
    };
    ranks.run(|rank| match rank.world_rank() {
        0 => {
            let both_sleep = eventually(|| watches(second) && third.park().is_parked());
            wait::until(owner(rank), WaitKind::Collective, leaves);
            let succeeds = eventually(|| watches(third));
            is_watched.store(both_sleep && succeeds, Ordering::SeqCst);
            all_over.store(true, Ordering::SeqCst);
            wait::wake(third);
        }
        1 => {
            let is_over = || stops_watching.load(Ordering::SeqCst);
            wait::until(owner(rank), WaitKind::Collective, is_over);
            has_left.store(true, Ordering::SeqCst);
        }
        2 => {
            eventually(|| watches(second));
            let is_over = || all_over.load(Ordering::SeqCst);
            wait::until(owner(rank), WaitKind::Collective, is_over);
        }
        _ => {}
    });
    assert!(is_watched.into_inner());
}

/// A dedicated worker without work watches while no rank does, and leaves the watch to a rank that sleeps.
#[test]
fn a_worker_watches_until_a_rank_sleeps() {
    let settings = settings(Progress::Ghost, WaitMode::Park);
    let ranks = Ranks::new(&[&[0], &[1]], networks()[0], settings);
    let [worker_watched, rank_watched, is_over] = [false; 3].map(AtomicBool::new);
    let first = ranks.rank(0);
    let watcher = || Net::of(first.node()).expect("there are two nodes").watcher();
    ranks.run(|rank| match rank.world_rank() {
        0 => {
            // The numbers of workers follow those of ranks.
            let is_worker = || watcher().is_some_and(|number| number >= first.node().size());
            worker_watched.store(eventually(is_worker), Ordering::SeqCst);
            let is_over = || is_over.load(Ordering::SeqCst);
            wait::until(owner(rank), WaitKind::Collective, is_over);
        }
        _ => {
            rank_watched.store(eventually(|| watches(first)), Ordering::SeqCst);
            is_over.store(true, Ordering::SeqCst);
            wait::wake(first);
        }
    });
    assert!(worker_watched.into_inner() && rank_watched.into_inner());
}

/// No event tells when the network has room for what it has refused. A rank that computes then does not depend on its
/// next call: whoever watches comes back to it.
#[test]
fn what_was_refused_leaves_while_its_rank_computes() {
    const MESSAGES: i32 = 6;
    let crowded = Options { queue: 2, operations: 1, ..Options::default() };
    let ranks = Ranks::new(&[&[0, 1], &[2]], crowded, settings(Progress::Steal, WaitMode::Park));
    let [has_sent, is_over, was_moved] = [false; 3].map(AtomicBool::new);
    let watcher = ranks.rank(1);
    ranks.run(|rank| match rank.world_rank() {
        0 => {
            let sleeps = eventually(|| watches(watcher) && watcher.park().is_parked());
            let data: Vec<_> = (0..MESSAGES).map(|tag| pattern(8, tag as usize)).collect();
            let send = |tag| start_send(rank, 2, tag, &data[tag as usize], SendMode::Standard);
            let sends: Vec<_> = (0..MESSAGES).map(send).collect();
            has_sent.store(true, Ordering::SeqCst);
            let have_left = eventually(|| is_over.load(Ordering::SeqCst));
            was_moved.store(sleeps && have_left, Ordering::SeqCst);
            for send in sends {
                finish(rank, send);
            }
        }
        1 => wait::until(owner(rank), WaitKind::Collective, || is_over.load(Ordering::SeqCst)),
        _ => {
            eventually(|| has_sent.load(Ordering::SeqCst));
            for tag in 0..MESSAGES {
                let mut data = [0; 8];
                recv_bytes(rank, from(rank, 0), Tag::Is(tag), &mut data);
                assert_eq!(data[..], pattern(8, tag as usize));
            }
            is_over.store(true, Ordering::SeqCst);
            wait::wake(watcher);
        }
    });
    assert!(was_moved.into_inner());
}
