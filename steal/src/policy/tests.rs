//! The steal step against a made-up node that records what was tried.

extern crate std;
use super::steal::steal_step;
use super::*;
use crate::stats::Counters;
use crate::victim::{self, VictimOrder};
use cohort_base::boot::CpuLocation;
use cohort_base::settings::{Locality, Priority, Settings};
use core::cell::RefCell;
use core::sync::atomic::AtomicU64;
use std::vec::Vec;

/// Ranks whose tasks have fixed outcomes; `None` is not available.
struct Node {
    tasks: Vec<[Option<Outcome>; TaskKind::COUNT]>,
    tried: RefCell<Vec<(LocalRank, TaskKind)>>,
}

const HIT: Outcome = Outcome::Progressed { bytes: 100 };

impl Node {
    fn quiet(ranks: usize) -> Self {
        Self { tasks: std::vec![[None; 2]; ranks], tried: RefCell::default() }
    }

    fn with(mut self, rank: usize, kind: TaskKind, outcome: Outcome) -> Self {
        self.tasks[rank][kind.index()] = Some(outcome);
        self
    }

    fn tried(&self) -> Vec<(LocalRank, TaskKind)> {
        self.tried.take()
    }
}

impl Victims for Node {
    fn count(&self) -> u32 {
        self.tasks.len() as u32
    }

    fn is_available(&self, rank: LocalRank, kind: TaskKind) -> bool {
        self.tasks[rank as usize][kind.index()].is_some()
    }

    fn try_progress(&self, rank: LocalRank, kind: TaskKind) -> Outcome {
        self.tried.borrow_mut().push((rank, kind));
        self.tasks[rank as usize][kind.index()].expect("only announced tasks are tried")
    }
}

/// One rank per CPU, `per_numa` of them on each NUMA node; the order of rank 0.
fn order(ranks: u32, per_numa: u32, storage: &mut Vec<LocalRank>) -> VictimOrder<'_> {
    let places: Vec<CpuLocation> =
        (0..ranks).map(|cpu| CpuLocation { cpu, core: cpu, l3: cpu, numa: cpu / per_numa }).collect();
    storage.resize(ranks as usize - 1, 0);
    victim::build(0, ranks, &places, |rank| rank as i32, Locality::Machine, storage)
}

fn settings(priority: Priority, remote_after: u32) -> Settings {
    Settings { steal_priority: priority, steal_remote_after: remote_after, ..Settings::DEFAULT }
}

#[test]
fn only_announced_tasks_are_tried() {
    let (mut storage, counters) = (Vec::new(), Counters::default());
    let worker = Worker::new(order(4, 4, &mut storage), &counters, &Settings::DEFAULT);
    let node = Node::quiet(4).with(2, TaskKind::Shm, Outcome::Idle);
    assert_eq!(steal_step(&worker, &node), Outcome::Idle);
    assert_eq!(node.tried(), [(2, TaskKind::Shm)]);
}

#[test]
fn the_second_kind_is_tried_only_if_the_first_had_nothing() {
    let kinds = [TaskKind::Net, TaskKind::Shm];
    for (priority, [first, second]) in [(Priority::NetShm, kinds), (Priority::ShmNet, [kinds[1], kinds[0]])] {
        for (outcome, both) in [(Outcome::Idle, true), (Outcome::Busy, false), (HIT, false)] {
            let (mut storage, counters) = (Vec::new(), Counters::default());
            let settings = settings(priority, 64);
            let worker = Worker::new(order(2, 2, &mut storage), &counters, &settings);
            let node = Node::quiet(2).with(1, first, outcome).with(1, second, HIT);
            assert_eq!(steal_step(&worker, &node), if both { HIT } else { outcome });
            assert_eq!(node.tried().contains(&(1, second)), both, "{outcome:?}");
        }
    }
}

#[test]
fn a_step_ends_with_its_first_success_and_the_next_goes_on_behind_it() {
    let (mut storage, counters) = (Vec::new(), Counters::default());
    let worker = Worker::new(order(4, 4, &mut storage), &counters, &Settings::DEFAULT);
    let node = Node::quiet(4).with(1, TaskKind::Shm, HIT).with(3, TaskKind::Shm, HIT);
    assert_eq!(steal_step(&worker, &node), HIT);
    assert_eq!(steal_step(&worker, &node), HIT);
    assert_eq!(node.tried(), [(1, TaskKind::Shm), (3, TaskKind::Shm)]);
}

#[test]
fn remote_victims_wait_for_failures_near_by() {
    let (mut storage, counters) = (Vec::new(), Counters::default());
    let settings = settings(Priority::NetShm, 3);
    let worker = Worker::new(order(4, 2, &mut storage), &counters, &settings);
    let node = Node::quiet(4).with(2, TaskKind::Shm, HIT);
    for _ in 0..3 {
        assert_eq!(steal_step(&worker, &node), Outcome::Idle);
    }
    assert_eq!(node.tried(), []);
    assert_eq!(steal_step(&worker, &node), HIT);
    let near = Node::quiet(4).with(1, TaskKind::Shm, HIT);
    while steal_step(&worker, &near) != HIT {}
    assert_eq!(steal_step(&worker, &node), Outcome::Idle, "a near success resets the count");
    assert_eq!(node.tried(), [(2, TaskKind::Shm)]);
}

#[test]
fn a_busy_victim_does_not_hide_the_next_one() {
    let (mut storage, counters) = (Vec::new(), Counters::default());
    let worker = Worker::new(order(3, 3, &mut storage), &counters, &Settings::DEFAULT);
    let busy = Node::quiet(3).with(1, TaskKind::Shm, Outcome::Busy);
    assert_eq!(steal_step(&worker, &busy), Outcome::Busy);
    let both = busy.with(2, TaskKind::Shm, HIT);
    assert_eq!(steal_step(&worker, &both), HIT);
}

#[test]
fn a_step_is_bounded_and_steps_cover_everybody() {
    let (mut storage, counters) = (Vec::new(), Counters::default());
    let worker = Worker::new(order(100, 100, &mut storage), &counters, &Settings::DEFAULT);
    let mut node = Node::quiet(100);
    for rank in 0..100 {
        node = node.with(rank, TaskKind::Shm, Outcome::Idle);
    }
    steal_step(&worker, &node);
    assert!(node.tried.borrow().len() < 99);
    for _ in 0..3 {
        steal_step(&worker, &node);
    }
    let mut tried: Vec<_> = node.tried().into_iter().map(|(rank, _)| rank).collect();
    tried.sort_unstable();
    assert_eq!(tried, (1..100).collect::<Vec<_>>());
}

#[test]
fn the_last_look_includes_remote_victims() {
    let (mut storage, counters) = (Vec::new(), Counters::default());
    let worker = Worker::new(order(4, 1, &mut storage), &counters, &Settings::DEFAULT);
    let node = Node::quiet(4).with(3, TaskKind::Shm, HIT);
    assert_eq!(policy(Progress::Steal).last_look(&worker, &node), HIT);
    assert_eq!(policy(Progress::None).last_look(&worker, &node), Outcome::Idle);
}

#[test]
fn counters_add_up() {
    let hits: Vec<AtomicU64> = (0..3).map(|_| AtomicU64::new(0)).collect();
    let (mut storage, counters) = (Vec::new(), Counters::new(&hits));
    let worker = Worker::new(order(3, 3, &mut storage), &counters, &Settings::DEFAULT);
    let node = Node::quiet(3).with(1, TaskKind::Net, Outcome::Busy).with(2, TaskKind::Net, Outcome::Idle).with(
        2,
        TaskKind::Shm,
        HIT,
    );
    assert_eq!(steal_step(&worker, &node), HIT);
    worker.counters().count_park();
    let seen = counters.snapshot();
    assert_eq!((seen.net.attempts, seen.net.busy, seen.net.empty), (2, 1, 1));
    assert_eq!((seen.shm.attempts, seen.shm.hits, seen.shm.bytes), (1, 1, 100));
    assert_eq!((seen.parks, seen.wakes), (1, 0));
    assert_eq!([0, 1, 2, 3].map(|rank| counters.hits_on(rank)), [0, 0, 1, 0]);
}

/// What each policy of the literature needs: its thread, its dedicated workers, and whether it
/// steals, interrupts, and rests.
#[test]
fn each_setting_has_its_policy() {
    use DedicatedWorkers::{Ghosts, Helpers, None as Nobody};
    use RankThread::{None as Nothing, Polls, PollsForRendezvous, Sleeps};
    let rows = [
        (Progress::Steal, Nothing, Nobody, [true, false, false]),
        (Progress::None, Nothing, Nobody, [false; 3]),
        (Progress::Thread, Polls, Nobody, [false; 3]),
        (Progress::ThreadRendezvous, PollsForRendezvous, Nobody, [false; 3]),
        (Progress::Signal, Nothing, Nobody, [false, true, false]),
        (Progress::Ghost, Nothing, Ghosts, [false; 3]),
        (Progress::Helper, Sleeps, Helpers, [false; 3]),
        (Progress::StealSignal, Nothing, Nobody, [true; 3]),
        (Progress::StealHelper, Sleeps, Helpers, [true, false, true]),
        (Progress::Auto, Nothing, Nobody, [true; 3]),
    ];
    for (progress, thread, workers, answers) in rows {
        let (found, name) = (policy(progress).capabilities(), progress.name());
        assert_eq!((found.thread(), found.dedicated_workers()), (thread, workers), "{name}");
        let does = [found.steals(), found.may_interrupt(), found.rests()];
        assert_eq!(does, answers, "{name}");
        assert_eq!(found.adapts(), progress == Progress::Auto, "{name}");
        let is_ghost = progress == Progress::Ghost;
        assert_eq!(found.offloads_posts(), is_ghost, "{name}");
        assert_eq!(found.wakes_worker(), found.steals() || is_ghost, "{name}");
        let acts = workers != Nobody || thread == PollsForRendezvous || found.may_interrupt();
        assert_eq!(found.watches_receives(), acts, "{name}");
    }
}

/// Whatever a row says, the policy steals if and only if its looks find work.
#[test]
fn policies_steal_as_their_capabilities_say() {
    for &(name, progress) in Progress::NAMES {
        let (mut storage, counters) = (Vec::new(), Counters::default());
        let worker = Worker::new(order(2, 2, &mut storage), &counters, &Settings::DEFAULT);
        let node = Node::quiet(2).with(1, TaskKind::Shm, HIT);
        let policy = policy(progress);
        let found = match policy.capabilities().steals() {
            true => HIT,
            false => Outcome::Idle,
        };
        assert_eq!(policy.step(&worker, &node), found, "{name}");
        assert_eq!(policy.last_look(&worker, &node), found, "{name}");
    }
}
