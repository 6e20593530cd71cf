//! What `COHORT_STATS=counters` asks for, as a table of plain text.

use crate::ranks::Node;
use crate::ranks::Rank;
use cohort_base::text::{FixedText, say};
use cohort_steal::stats::KindSnapshot;
use core::fmt::Write;
use rustix::fd::BorrowedFd;

/// Victims named in one line.
const VICTIMS_SHOWN: usize = 6;

impl Node {
    /// Writes every rank's counters to the report descriptor, those that have counted, and the memory of its heap.
    pub fn report(&self) {
        let fd = self.boot().report_fd();
        let waits = match self.is_crowded() {
            true => "waits end in sleep soon, ranks outnumber CPUs",
            false => "waits poll, every rank has a CPU",
        };
        say(
            fd,
            format_args!(
                "cohort: {} ranks on {} CPUs, progress {}, {waits}\n\
                 {:>5} {:>4} {:>12} {:>10} {:>12} {:>10} {:>14} {:>9} {:>9}  helped (rank:times)\n",
                self.size(),
                self.boot().cpus,
                self.settings().progress.name(),
                "rank",
                "kind",
                "attempts",
                "hits",
                "empty",
                "busy",
                "bytes moved",
                "sleeps",
                "wakes",
            ),
        );
        for id in 0..self.size() {
            report_rank(self.rank(id), fd);
            report_memory(self.rank(id), fd);
        }
    }
}

fn report_rank(rank: &Rank, fd: BorrowedFd<'_>) {
    let counts = rank.counters().snapshot();
    if counts.net.attempts > 0 {
        report_kind(rank, fd, "net", &counts.net, 0, 0);
    }
    if counts.own_turns > 0 {
        say(
            fd,
            format_args!(
                "{:>5}  own {:>12} {:>10} {:>12}\n",
                rank.id(),
                counts.own_turns,
                counts.own_hits,
                counts.own_turns - counts.own_hits,
            ),
        );
    }
    if counts.late + counts.helped + counts.in_time > 0 {
        say(
            fd,
            format_args!(
                "{:>5}  receives left behind: {} met by others, {} found late, {} came during a wait; \
                 fallback turned on {} times (a helper {} times), off {} times\n",
                rank.id(),
                counts.helped,
                counts.late,
                counts.in_time,
                counts.turned_on,
                counts.helper_chosen,
                counts.turned_off,
            ),
        );
    }
    if counts.offloaded > 0 {
        say(fd, format_args!("{:>5}  {} posts left to a dedicated worker\n", rank.id(), counts.offloaded));
    }
    if counts.shm.attempts + counts.parks + counts.wakes > 0 {
        report_kind(rank, fd, "shm", &counts.shm, counts.parks, counts.wakes);
    }
}

/// What the rank's heap of MPI has: its ends of rings, messages, requests.
fn report_memory(rank: &Rank, fd: BorrowedFd<'_>) {
    let memory = rank.heap().stats();
    if memory.mapped_bytes > 0 {
        say(
            fd,
            format_args!(
                "{:>5}  memory of MPI: {} KiB in use, {} KiB mapped\n",
                rank.id(),
                memory.live_bytes >> 10,
                memory.mapped_bytes >> 10,
            ),
        );
    }
}

fn report_kind(rank: &Rank, fd: BorrowedFd<'_>, kind: &str, counts: &KindSnapshot, parks: u64, wakes: u64) {
    let mut helped = FixedText::<256>::new();
    let victims =
        (0..rank.node().size()).map(|victim| (victim, rank.counters().hits_on(victim))).filter(|&(_, hits)| hits > 0);
    for (shown, (victim, hits)) in victims.enumerate() {
        // A text that is full is cut, which is its documented behaviour.
        let _ = if shown == VICTIMS_SHOWN {
            helped.write_str(" ...")
        } else if shown < VICTIMS_SHOWN {
            write!(helped, " {victim}:{hits}")
        } else {
            Ok(())
        };
    }
    say(
        fd,
        format_args!(
            "{:>5} {kind:>4} {:>12} {:>10} {:>12} {:>10} {:>14} {parks:>9} {wakes:>9} {helped}\n",
            rank.id(),
            counts.attempts,
            counts.hits,
            counts.empty,
            counts.busy,
            counts.bytes,
        ),
    );
}
