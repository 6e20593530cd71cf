//! What a subsystem waits for besides messages ends the sleep of its rank.

use super::ranks::Ranks;
use cohort_base::LocalRank;
use cohort_base::settings::{Progress, Settings, WaitMode};
use cohort_core::memory::{Cursor, Plan};
use cohort_core::subsystem::Sleep;
use cohort_core::wait::{self, WaitKind};
use cohort_core::{Node, Owner, Rank, Subsystem};
use cohort_fabric_fake::Options;
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use core::time::Duration;
use std::io::{PipeReader, Read, Write, pipe};
use std::os::fd::AsRawFd;
use std::thread;

/// A subsystem that waits for input at a descriptor, and for a time.
#[derive(Debug)]
pub(crate) struct Probe;

/// What it keeps for a rank: the descriptor, or -1, and milliseconds, or 0.
#[derive(Debug)]
pub(crate) struct Awaited {
    descriptor: AtomicI32,
    limit_ms: AtomicU32,
}

// SAFETY: no other subsystem of this engine has this place.
unsafe impl Subsystem for Probe {
    const SLOT: usize = 3;
    type Node = ();
    type Shared = Awaited;
    type State = ();
    type Tables = ();

    fn tables(_cursor: &mut Cursor, _plan: &Plan) {}

    fn node(_node: &'static Node, _tables: &mut ()) {}

    fn rank(_node: &'static Node, _id: LocalRank, _tables: &mut ()) -> (Awaited, ()) {
        (Awaited { descriptor: AtomicI32::new(-1), limit_ms: AtomicU32::new(0) }, ())
    }

    fn sleep_begins(rank: &Rank, sleep: &mut Sleep) {
        let awaited = rank.shared::<Self>();
        let descriptor = awaited.descriptor.load(Ordering::SeqCst);
        if descriptor >= 0 {
            sleep.on(descriptor);
        }
        match awaited.limit_ms.load(Ordering::SeqCst) {
            0 => {}
            limit => sleep.at_most(Duration::from_millis(limit.into())),
        }
    }
}

/// A rank that sleeps as soon as it waits.
fn settings() -> Settings {
    Settings { wait: WaitMode::Park, progress: Progress::None, ..Settings::DEFAULT }
}

/// Waits, asleep, until a byte comes that nobody wakes the rank for.
fn await_byte(rank: &'static Rank) {
    let (input, mut output) = pipe().expect("descriptors");
    let shared = rank.shared::<Probe>();
    shared.descriptor.store(input.as_raw_fd(), Ordering::SeqCst);
    thread::scope(|scope| {
        scope.spawn(move || {
            while !rank.park().is_parked() {
                thread::yield_now();
            }
            output.write_all(b"x").expect("room");
        });
        wait::until(Owner::for_test(rank), WaitKind::Collective, || has_input(&input));
    });
    shared.descriptor.store(-1, Ordering::SeqCst);
    take(input);
}

fn has_input(input: &PipeReader) -> bool {
    let mut sleep = Sleep::new(None);
    sleep.on(input.as_raw_fd());
    sleep.is_ready()
}

fn take(mut input: PipeReader) {
    let mut byte = [0];
    assert_eq!(input.read(&mut byte).expect("a byte"), 1);
}

#[test]
fn a_descriptor_ends_a_sleep_without_a_network() {
    await_byte(Node::for_test_with(1, settings()).rank(0));
}

#[test]
fn a_descriptor_ends_the_watch_of_the_network() {
    let ranks = Ranks::new(&[&[0], &[1]], Options::default(), settings());
    ranks.run(|rank| {
        if rank.world_rank() == 0 {
            await_byte(rank);
        }
    });
}

#[test]
fn a_time_ends_a_sleep_again_and_again() {
    let ranks = Ranks::new(&[&[0], &[1]], Options::default(), settings());
    let looks = AtomicU32::new(0);
    ranks.run(|rank| {
        if rank.world_rank() == 0 {
            let shared = rank.shared::<Probe>();
            shared.limit_ms.store(1, Ordering::SeqCst);
            // A look behind an announcement: a sleep follows.
            let is_over = || match rank.park().is_parked() {
                true => looks.fetch_add(1, Ordering::SeqCst) >= 20,
                false => looks.load(Ordering::SeqCst) > 20,
            };
            wait::until(Owner::for_test(rank), WaitKind::Collective, is_over);
            shared.limit_ms.store(0, Ordering::SeqCst);
        }
    });
}
