//! Ranks that the kernel has put on one CPU, although there is one for each.
//!
//! Two ranks that send to each other in turn on one CPU never sleep: each gives the CPU to the other. The kernel takes
//! them for tasks whose data is in the caches, and leaves them there for 10 to 50 ms, in which a message takes 26 us in
//! place of 0.1, or 118 where nobody yields for a while. Nearly half of all jobs of two ranks on two CPUs began so. To
//! sleep did not part them either (tried, in a virtual machine).
//!
//! So a rank that waits and twice in a row finds that somebody has taken the CPU which it gave away, or cannot give it
//! away, moves itself, if another rank of the node was seen last on that CPU: for a moment it allows itself only one on
//! which none was, of those that it may use. It says first which one, so that the other rank, which runs meanwhile,
//! does not come along. Where a move does not help, because somebody else computes there, the next ones become rare.
//! Others who take CPUs are the kernel's matter: threads of its own come with each packet of a network.
//!
//! # Nodes that share CPUs
//! Where the ranks of several nodes outnumber the CPUs of their machine, those of a node gather on its share of them
//! while they do hardly anything but wait for each other: who waits then gives its CPU to the one it waits for. Spread
//! over all CPUs, barriers and other short collectives took 1.1 to 2 times as long, in some jobs and not in others.
//! Ranks that compute between waits stay where the kernel has put them: gathered, a node that has more to do than
//! others would have fewer CPUs for it (1.1 of the time, tried).

use crate::arch::this_cpu;
use cohort_base::clock::{ticks, ticks_of_us};
use cohort_base::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A thread that gave its CPU away and had it back sooner, in nanoseconds, has found nobody who is ready to run: two
/// switches of threads take longer. On a slow machine that takes 340 to 460 ns, one time in ten 550, and two switches
/// 3400; on a fast one two switches take hardly a microsecond.
const TAKEN_NS: u64 = 600;

/// Times in a row that somebody takes the CPU before a rank moves. Once is nothing: a thread of the kernel's.
const TIMES_TAKEN: u32 = 2;

/// Microseconds between two moves; doubled for each that follows the one before within [`CALM`] times as long.
const REST_US: u64 = 1000;

/// The most times that is doubled: a second.
const DOUBLED_MAX: u32 = 10;

const CALM: u64 = 4;

/// A thread that has been busy for so many microseconds between two waits does more than wait.
const BUSY_US: u64 = 500;

/// Waits in turn by which a thread is known to do hardly anything else.
const WAITS: u32 = 16;

/// Where the thread of one rank runs, as it has seen it last. All accesses are Relaxed: others take the number for a
/// hint, and only the thread itself uses the rest.
#[derive(Debug, Default)]
pub(crate) struct Cpu {
    /// The CPU's number and one; 0 before it is known.
    number: AtomicU32,
    times_taken: AtomicU32,
    /// When the rank has moved last, in ticks, and how often in a row.
    moved_at: AtomicU64,
    moves: AtomicU32,
    /// The number and one of the CPU where it gathers with others of its node; 0 if there is none.
    home: AtomicU32,
    /// When it has given its CPU away in a wait, in ticks, and waits in turn that came soon after the one before.
    waited_at: AtomicU64,
    waits: AtomicU32,
}

/// Whether somebody has run on a CPU that was given away for so many ticks.
pub(crate) fn is_taken(ticks: u64) -> bool {
    ticks.saturating_mul(1000) > ticks_of_us(TAKEN_NS)
}

impl Cpu {
    /// The thread has given its CPU away for so many ticks, or kept it as nobody yields now. Says which CPU it should
    /// leave, unless no other rank is there: somebody takes that again and again, or would. By the thread itself.
    pub(crate) fn gave_way(&self, took: Option<u64>) -> Option<usize> {
        let here = this_cpu()?;
        self.note(here);
        self.is_due(took.is_none_or(is_taken)).then_some(here)
    }

    /// Moves the thread from this CPU, if one of the other ranks was seen there, to one of those that it may use on
    /// which none was, if there is one. What it may use is afterwards as before. By the thread itself.
    #[cold]
    pub(crate) fn leave(&self, here: usize, others: impl Iterator<Item = usize> + Clone) {
        if !others.clone().any(|number| number == here) {
            return;
        }
        let Ok(allowed) = sched_getaffinity(None) else {
            return;
        };
        let mut free = allowed;
        for number in others.filter(|&number| number < CpuSet::MAX_CPU) {
            free.unset(number);
        }
        // Another one each time, and not the same for all.
        let Some(to) = nth(&free, here + self.moves.load(Ordering::Relaxed) as usize) else {
            return;
        };
        if !self.may_move(ticks()) {
            return;
        }
        self.go(to, &allowed);
    }

    /// The thread gathers with others at the CPU in this place of those that it may use, counted round and round. By
    /// the thread itself.
    pub(crate) fn settle(&self, place: usize) {
        let allowed = sched_getaffinity(None).ok();
        let home = allowed.and_then(|allowed| nth(&allowed, place)).map_or(0, |number| number as u32 + 1);
        self.home.store(home, Ordering::Relaxed);
    }

    /// Whether the thread has somewhere to gather.
    #[inline]
    pub(crate) fn has_home(&self) -> bool {
        self.home.load(Ordering::Relaxed) != 0
    }

    /// The thread has given its CPU away in a wait, for the first time there or not: if it hardly does anything else,
    /// it goes where it gathers with others. By the thread itself.
    pub(crate) fn gather(&self, is_first: bool) {
        let home = self.home.load(Ordering::Relaxed);
        if self.hardly_computes(ticks(), is_first) && this_cpu().is_some_and(|here| here as u32 + 1 != home) {
            self.return_to(home as usize - 1);
        }
    }

    /// The thread has given its CPU away at this time, in a wait: whether it has hardly done anything else lately.
    fn hardly_computes(&self, now: u64, is_first: bool) -> bool {
        let since = now.wrapping_sub(self.waited_at.load(Ordering::Relaxed));
        self.waited_at.store(now, Ordering::Relaxed);
        if is_first {
            let waits = self.waits.load(Ordering::Relaxed);
            let waits = if since < ticks_of_us(BUSY_US) { waits + 1 } else { waits / 2 };
            self.waits.store(waits.min(WAITS), Ordering::Relaxed);
        }
        self.waits.load(Ordering::Relaxed) == WAITS
    }

    /// Moves the thread there, if it may be there and the last move is long enough ago.
    #[cold]
    fn return_to(&self, home: usize) {
        if self.may_move(ticks())
            && let Ok(allowed) = sched_getaffinity(None)
            && allowed.is_set(home)
        {
            self.go(home, &allowed);
        }
    }

    /// Moves the thread to a CPU of those that are `allowed`, which are the same afterwards.
    fn go(&self, to: usize, allowed: &CpuSet) {
        let mut only = CpuSet::new();
        only.set(to);
        // First, so that others that run meanwhile stay.
        self.note(to);
        if sched_setaffinity(None, &only).is_ok() {
            // What was allowed still is, but for CPUs that have gone since.
            let _ = sched_setaffinity(None, allowed);
        }
    }

    /// The CPU was given away, and taken or not: whether that is so often enough.
    fn is_due(&self, is_taken: bool) -> bool {
        let times = if is_taken { self.times_taken.load(Ordering::Relaxed) + 1 } else { 0 };
        self.times_taken.store(times % TIMES_TAKEN, Ordering::Relaxed);
        times >= TIMES_TAKEN
    }

    /// Whether the last move is long enough ago; then this is the next one.
    fn may_move(&self, now: u64) -> bool {
        let (moved_at, moves) = (self.moved_at.load(Ordering::Relaxed), self.moves.load(Ordering::Relaxed));
        let rest = ticks_of_us(REST_US) << moves.saturating_sub(1).min(DOUBLED_MAX);
        let since = now.wrapping_sub(moved_at);
        if moves > 0 && since < rest {
            return false;
        }
        let is_calm = moves > 0 && since >= rest.saturating_mul(CALM);
        self.moves.store(if is_calm { 1 } else { moves.saturating_add(1) }, Ordering::Relaxed);
        self.moved_at.store(now, Ordering::Relaxed);
        true
    }

    fn note(&self, number: usize) {
        self.number.store(number as u32 + 1, Ordering::Relaxed);
    }

    /// Of another program, whose thread has not been seen yet.
    pub(crate) fn renew(&self) {
        self.number.store(0, Ordering::Relaxed);
    }

    /// Where it was seen last.
    pub(crate) fn number(&self) -> Option<usize> {
        Some(self.number.load(Ordering::Relaxed).checked_sub(1)? as usize)
    }
}

/// The CPU in this place of a set, counted round and round.
fn nth(set: &CpuSet, place: usize) -> Option<usize> {
    let place = place.checked_rem(set.count() as usize)?;
    (0..CpuSet::MAX_CPU).filter(|&number| set.is_set(number)).nth(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    fn moves(cpu: &Cpu, at_us: impl Iterator<Item = u64>) -> usize {
        at_us.filter(|&at| cpu.may_move(ticks_of_us(at))).count()
    }

    #[test]
    fn a_rank_moves_when_its_cpu_is_taken_twice_in_a_row() {
        let cpu = Cpu::default();
        let due = |is_taken| cpu.is_due(is_taken);
        assert!(!due(true) && !due(false) && !due(true));
        assert!(due(true));
        assert_eq!(moves(&cpu, 5000..5900), 1, "it has moved just now");
    }

    #[test]
    fn a_thread_leaves_a_cpu_that_another_rank_is_on() {
        let allowed = sched_getaffinity(None).expect("fewer CPUs than that");
        let all = || (0..CpuSet::MAX_CPU).filter(|&number| allowed.is_set(number));
        let is_same = || sched_getaffinity(None).expect("as before") == allowed;
        let here = this_cpu().expect("a number");
        let cpu = Cpu::default();
        cpu.note(here);
        for others in [vec![], all().filter(|&number| number != here).collect(), all().collect()] {
            cpu.leave(here, others.into_iter());
            assert_eq!(cpu.number(), Some(here), "nobody else is there, or none is free");
        }
        cpu.leave(here, [here].into_iter());
        assert_eq!(cpu.number() == Some(here), allowed.count() == 1);
        assert!(is_same(), "it may run where it might before");
    }

    #[test]
    fn waits_in_a_row_tell_that_a_thread_hardly_computes() {
        let cpu = Cpu::default();
        let mut now = ticks_of_us(1_000_000);
        let mut waits = |times: u32, busy_us: u64, is_first: bool| {
            (0..times).fold(false, |_, _| {
                now += ticks_of_us(busy_us);
                cpu.hardly_computes(now, is_first)
            })
        };
        assert!(!waits(2 * WAITS, 1, false), "one long wait says nothing");
        assert!(!waits(2 * WAITS, 2 * BUSY_US, true), "it computes between waits");
        assert!(!waits(WAITS - 1, 1, true));
        assert!(waits(1, 1, true));
        assert!(!waits(1, 2 * BUSY_US, true) && waits(WAITS / 2, 1, true), "one interruption is soon forgotten");
    }

    #[test]
    fn a_thread_returns_to_where_it_gathers_and_may_leave() {
        let allowed = sched_getaffinity(None).expect("fewer CPUs than that");
        let all = || (0..CpuSet::MAX_CPU).filter(|&number| allowed.is_set(number));
        for (place, number) in all().enumerate() {
            let cpu = Cpu::default();
            assert!(!cpu.has_home());
            cpu.settle(place);
            assert!(cpu.has_home());
            cpu.return_to(number);
            assert_eq!((cpu.number(), cpu.home.load(Ordering::Relaxed) as usize), (Some(number), number + 1));
            assert!(sched_getaffinity(None).expect("as before") == allowed, "it may run where it might before");
        }
    }

    #[test]
    fn places_go_round_a_set() {
        let mut set = CpuSet::new();
        assert_eq!(nth(&set, 3), None);
        for number in [2, 5, 64] {
            set.set(number);
        }
        assert_eq!([0, 1, 2, 3].map(|place| nth(&set, place)), [2, 5, 64, 2].map(Some));
    }

    #[test]
    fn moves_that_do_not_help_become_rare() {
        let cpu = Cpu::default();
        let each_ms = |from: u64, to: u64| (from * 100..to * 100).map(|at| at * 10);
        let seldom = moves(&cpu, each_ms(1, 4000));
        assert!((5..=16).contains(&seldom), "{seldom}");
        assert!(cpu.may_move(ticks_of_us(60_000_000)));
        assert_eq!(cpu.moves.load(Ordering::Relaxed), 1, "after a long time it begins anew");
    }
}
