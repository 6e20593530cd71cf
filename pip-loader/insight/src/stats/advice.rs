//! What the numbers of a job say that one should do: two sentences at most, each only when they carry it.
//!
//! An advice must be worth to follow: what it would save at best is a good part of the job's time.

use super::data::NodeStatistics;
use super::units::{bytes, counted, time};

/// Shorter jobs say nothing, in microseconds: starting takes a good part of them.
const SHORTEST: u64 = 20_000;

/// Messages that are longer on average are not called short.
const SHORT_MESSAGE: u64 = 1024;

/// The sentences.
pub fn advice(job: &NodeStatistics) -> Vec<String> {
    if job.wall() < SHORTEST || job.ranks.len() < 2 {
        return Vec::new();
    }
    // While ranks wait for one that has more to do, no policy has anything to move for them.
    let first = unequal(job).or_else(|| policy(job)).or_else(|| talkative(job));
    first.into_iter().chain(crowded(job)).collect()
}

/// One rank computes much longer than the others, and these wait for it.
fn unequal(job: &NodeStatistics) -> Option<String> {
    let awaited = job.awaited();
    let first = awaited.first()?;
    let slow = job.ranks.iter().find(|rank| rank.rank == first.rank)?;
    let others = job.ranks.len() as u64 - 1;
    let rest = (job.sum(|rank| rank.computing()) - slow.computing()) / others;
    let is_slower = slow.computing() > rest + rest / 4;
    // Of all the time of the others a tenth, and no more could be saved than what the rank computes longer.
    let longer = slow.computing().saturating_sub(rest);
    let matters = first.waited.min(longer * others) * 10 > job.wall() * others;
    let times = slow.computing() as f64 / rest.max(1) as f64;
    let times = match times > 10.0 {
        true => "more than ten".to_owned(),
        false => format!("{times:.1}"),
    };
    (is_slower && matters).then(|| {
        format!(
            "Give rank {} less work: it computes {times} times as long as the others do on average, and they waited {} \
             for it.",
            first.rank,
            time(first.waited),
        )
    })
}

/// Another policy may help.
fn policy(job: &NodeStatistics) -> Option<String> {
    let of = |name: &str| job.calls.get(name).copied().unwrap_or_default();
    let begun = of("MPI_Isend").count + of("MPI_Irecv").count;
    let names = ["MPI_Wait", "MPI_Waitall", "MPI_Waitany", "MPI_Waitsome"];
    let waits: u64 = names.iter().map(|name| of(name).waiting).sum();
    let all = job.sum(|rank| rank.wall);
    // A tenth of the time is spent in waits for what was begun before, and something could have moved meanwhile.
    if begun == 0 || waits * 10 < all || job.sum(|rank| rank.computing()) * 10 < all {
        return None;
    }
    let hits: u64 = job.ranks.iter().flat_map(|rank| &rank.helped).map(|(_, hits)| hits).sum();
    let share = 100 * waits / all;
    match job.policy.as_str() {
        "none" => Some(format!(
            "Try COHORT_PROGRESS=steal: {share}% of the time goes into waits for messages that were begun before, and \
             nobody moves them while ranks compute."
        )),
        "steal" if hits == 0 => Some(format!(
            "Try COHORT_PROGRESS=auto: {share}% of the time goes into waits for messages that were begun before, and \
             no rank that waited found any to move."
        )),
        _ => None,
    }
}

/// The ranks do little else than to exchange short messages.
fn talkative(job: &NodeStatistics) -> Option<String> {
    let (all, mpi) = (job.sum(|rank| rank.wall), job.sum(|rank| rank.mpi));
    let messages = job.sum(|rank| rank.messages);
    let mean = job.sum(|rank| rank.bytes) / messages.max(1);
    // A rank that sends less often than each millisecond waits for something else.
    let is_often = messages * 1000 > all;
    (mpi * 2 > all && is_often && mean < SHORT_MESSAGE).then(|| {
        format!(
            "Send fewer, longer messages, or give each rank more to compute: {}% of the time is in MPI, for {} of {} \
             on average.",
            100 * mpi / all,
            counted(messages, "message"),
            bytes(mean),
        )
    })
}

/// The ranks took turns on their CPUs.
fn crowded(job: &NodeStatistics) -> Option<String> {
    let ranks = job.ranks.len() as u64;
    let used = job.sum(|rank| rank.cpu);
    let is_crowded = job.cpus > 0 && ranks > job.cpus;
    // Nine tenths of what the CPUs could give was taken.
    (is_crowded && used * 10 > job.cpus * job.wall() * 9).then(|| {
        format!(
            "{ranks} ranks shared {} CPUs, which were busy all the time: as many ranks as CPUs may be as fast.",
            job.cpus
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::data::{Peer, Rank, Tally};
    use super::*;

    fn rank(rank: u64, mpi: u64, waited: &[(u64, u64)]) -> Rank {
        Rank {
            rank,
            wall: 1_000_000,
            mpi,
            waiting: mpi,
            peers: waited.iter().map(|&(rank, waited)| Peer { rank, waited }).collect(),
            ..Rank::default()
        }
    }

    fn job(ranks: Vec<Rank>) -> NodeStatistics {
        NodeStatistics { nodes: 1, cpus: 8, policy: "steal".into(), ranks, ..NodeStatistics::default() }
    }

    #[test]
    fn equal_ranks_hear_nothing() {
        let equal = job((0..4).map(|n| rank(n, 100_000, &[((n + 1) % 4, 25_000)])).collect());
        assert_eq!(advice(&equal), Vec::<String>::new());
    }

    #[test]
    fn a_rank_that_others_wait_for_gets_less_work() {
        let waits = |n| rank(n, 600_000, &[(2, 590_000)]);
        let slow = job(vec![waits(0), waits(1), rank(2, 10_000, &[]), waits(3)]);
        let said = advice(&slow);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("Give rank 2 less work: it computes 2.5 times"), "{said:?}");
        // The same waits, but all compute little: they are of something else.
        let mut busy = slow.clone();
        busy.ranks.iter_mut().for_each(|rank| rank.mpi = 985_000);
        busy.ranks[2].mpi = 980_000;
        assert!(advice(&busy).is_empty());
        // The same in a job that is over at once.
        let mut short = slow;
        short.ranks.iter_mut().for_each(|rank| rank.wall /= 100);
        assert!(advice(&short).is_empty());
    }

    #[test]
    fn a_policy_is_named_when_what_was_begun_is_waited_for() {
        let mut slow = job(vec![rank(0, 500_000, &[]), rank(1, 500_000, &[])]);
        let tally = |count, waiting| Tally { count, waiting, ..Tally::default() };
        slow.calls.insert("MPI_Waitall".into(), tally(10, 700_000));
        assert!(advice(&slow).is_empty(), "nothing was begun");
        slow.calls.insert("MPI_Irecv".into(), tally(10, 0));
        assert!(advice(&slow)[0].starts_with("Try COHORT_PROGRESS=auto: 35%"));
        slow.policy = "none".into();
        assert!(advice(&slow)[0].starts_with("Try COHORT_PROGRESS=steal: 35%"));
        slow.policy = "steal".into();
        slow.ranks[0].helped.push((1, 7));
        assert!(advice(&slow).is_empty(), "stealing moves something");
    }

    #[test]
    fn many_short_messages_are_told_if_they_take_the_time() {
        let mut chat = job((0..4).map(|n| rank(n, 900_000, &[])).collect());
        let send = |chat: &mut NodeStatistics, messages, bytes| {
            for rank in &mut chat.ranks {
                (rank.messages, rank.bytes) = (messages, messages * bytes);
            }
        };
        send(&mut chat, 20_000, 8);
        let said = advice(&chat);
        assert!(said[0].contains("90% of the time is in MPI, for 80000 messages of 8 B"), "{said:?}");
        send(&mut chat, 20_000, 4096);
        assert!(advice(&chat).is_empty(), "they are long");
        send(&mut chat, 100, 8);
        assert!(advice(&chat).is_empty(), "they are few");
    }

    #[test]
    fn too_many_ranks_are_told_only_if_the_cpus_were_busy() {
        let mut crowd = job((0..4).map(|n| rank(n, 100_000, &[])).collect());
        crowd.cpus = 2;
        crowd.ranks.iter_mut().for_each(|rank| rank.cpu = 300_000);
        assert!(advice(&crowd).is_empty());
        crowd.ranks.iter_mut().for_each(|rank| rank.cpu = 490_000);
        assert!(advice(&crowd)[0].starts_with("4 ranks shared 2 CPUs"));
    }
}
