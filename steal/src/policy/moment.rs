//! When a waiting rank helps others.
//!
//! A look at others costs cache lines, and a claim at each of them that expects messages. With a CPU
//! of its own a waiting rank has nothing better to do, so it looks in each turn, once its own
//! messages have rested for a moment.
//!
//! Where ranks outnumber CPUs, another rank could run meanwhile, and whoever has taken a claim may
//! lose its CPU for a time slice, in which the owner of the claim cannot go on. So a rank looks at
//! others once before it gives its CPU away, and once before it sleeps. It passes over those that
//! only have receives posted, unless its own wait may end sooner by that, as that of a sender does
//! whose long message lies at a rank that computes. Short messages are not worth it: to receive one
//! takes its owner as long as a thief. A long one between two ranks that compute asks for a worker
//! that sleeps, and that one looks at all.

/// Turns without any movement, of a rank with a CPU of its own, before it looks at others: about half a microsecond.
pub const OWN_TURNS: u32 = 24;

/// Turns between two looks at others where CPUs are scarce: as many as are taken before a CPU is given away.
pub const SCARCE_TURNS: u32 = 16;

/// Whether CPUs are worth more than help: ranks outnumber them, and there is no network that ranks which wait serve
/// for all.
#[inline]
#[must_use]
pub const fn is_scarce(is_crowded: bool, has_network: bool) -> bool {
    is_crowded && !has_network
}

/// Whether a rank that has waited for so many turns without movement looks at others between this turn and the next.
#[inline]
#[must_use]
pub const fn is_due(turns: u32, is_scarce: bool) -> bool {
    match is_scarce {
        false => turns >= OWN_TURNS,
        true => (turns + 1).is_multiple_of(SCARCE_TURNS),
    }
}

/// Whether it looks at ranks that only have receives posted. `awaits_help`: its wait may end sooner if others make
/// progress.
#[inline]
#[must_use]
pub fn is_worthwhile(is_scarce: bool, awaits_help: impl FnOnce() -> bool) -> bool {
    !is_scarce || awaits_help()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_rank_with_a_cpu_looks_in_each_turn_after_its_own() {
        assert!((0..OWN_TURNS).all(|turns| !is_due(turns, false)));
        assert!((OWN_TURNS..1000).all(|turns| is_due(turns, false)));
        assert!(is_worthwhile(false, || unreachable!()));
    }

    #[test]
    fn where_cpus_are_scarce_a_rank_looks_once_before_it_gives_its_own_away() {
        let looks = (0..3 * SCARCE_TURNS).filter(|&turns| is_due(turns, true));
        assert_eq!(looks.count(), 3);
        assert!(!is_due(0, true) && is_due(SCARCE_TURNS - 1, true));
    }

    #[test]
    fn where_cpus_are_scarce_only_who_gains_helps() {
        assert!(is_worthwhile(true, || true) && !is_worthwhile(true, || false));
        assert!(is_scarce(true, false));
        assert!(!is_scarce(true, true) && !is_scarce(false, false));
    }
}
