//! Hints of communicators (MPI-4.1, 7.4.4), and kinds of memory (11.4.3).
//!
//! A communicator keeps the hints that this runtime knows and no others, as the standard asks:
//! `MPI_Comm_get_info` tells which of the program's hints were taken.

pub(crate) mod file;

use crate::Outcome;
use crate::errhandler::initial;
use crate::info::Info;
use alloc::string::String;
use alloc::vec::Vec;
use cohort_base::spawn::WorldBoot;
use cohort_base::text::FixedText;
use cohort_engine::Rank;
use core::sync::atomic::{AtomicU8, Ordering};
use spin::Mutex;

/// Key of the kinds of memory that MPI supports for an object.
pub const MEMORY_KINDS: &str = "mpi_memory_alloc_kinds";

/// Key of the kinds of memory that the program promises to use.
const ASSERTED_KINDS: &str = "mpi_assert_memory_alloc_kinds";

/// What a program can promise about a communicator. All are off by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assertion {
    /// No receive or probe with `MPI_ANY_TAG`.
    NoAnyTag,
    /// No receive or probe with `MPI_ANY_SOURCE`.
    NoAnySource,
    /// Each message is as long as its receive.
    ExactLength,
    /// Messages need not be matched in their order.
    AllowOvertaking,
    /// Persistent collectives are started in the same order everywhere.
    StrictPersistentOrder,
}

/// Every assertion with its key.
const ASSERTIONS: [(Assertion, &str); 5] = [
    (Assertion::NoAnyTag, "mpi_assert_no_any_tag"),
    (Assertion::NoAnySource, "mpi_assert_no_any_source"),
    (Assertion::ExactLength, "mpi_assert_exact_length"),
    (Assertion::AllowOvertaking, "mpi_assert_allow_overtaking"),
    (Assertion::StrictPersistentOrder, "mpi_assert_strict_persistent_collective_ordering"),
];

/// The hints of one communicator.
#[derive(Debug, Default)]
pub struct Hints {
    asserted: AtomicU8,
    memory: Mutex<Option<String>>,
}

impl Hints {
    /// Takes what the program hints. Keys that are not named, unknown keys and values without a meaning
    /// change nothing.
    pub fn take(&self, given: &Info) {
        for (assertion, key) in ASSERTIONS {
            let bit = 1 << assertion as u8;
            // Relaxed: the hints of a communicator are set by all members before they rely on them.
            match given.get(key).as_deref() {
                Some("true") => _ = self.asserted.fetch_or(bit, Ordering::Relaxed),
                Some("false") => _ = self.asserted.fetch_and(!bit, Ordering::Relaxed),
                _ => {}
            }
        }
        let kinds = given.get(ASSERTED_KINDS);
        if let Some(kinds) = kinds.filter(|kinds| kinds.split(',').all(is_supported)) {
            *self.memory.lock() = Some(kinds);
        }
    }

    /// Whether the program has promised this.
    #[inline]
    #[must_use]
    pub fn promise(&self, assertion: Assertion) -> bool {
        self.asserted.load(Ordering::Relaxed) & (1 << assertion as u8) != 0
    }

    /// The hints in force, with their values.
    ///
    /// # Errors
    /// None in practice: keys and values are short.
    pub fn report(&self) -> Outcome<Info> {
        let info = Info::default();
        for (assertion, key) in ASSERTIONS {
            let promised = self.promise(assertion);
            info.set(key, if promised { "true" } else { "false" })?;
        }
        if let Some(kinds) = &*self.memory.lock() {
            info.set(ASSERTED_KINDS, kinds)?;
        }
        Ok(info)
    }
}

/// Whether memory of this kind (with its restrictors, `mpi:alloc_mem`) may be passed to MPI.
fn is_supported(entry: &str) -> bool {
    let mut parts = entry.split(':');
    match parts.next() {
        Some("system") => parts.next().is_none(),
        Some("mpi") => parts.all(|one| matches!(one, "alloc_mem" | "win_allocate" | "win_allocate_shared")),
        _ => false,
    }
}

/// The kinds of memory that a program gets which asks for `wanted`: those that exist, in its order,
/// and always `mpi` and `system`.
#[must_use]
pub fn memory_kinds(wanted: &str) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    let wanted = wanted.split(',').map(str::trim);
    for entry in wanted.filter(|entry| is_supported(entry)).chain(["mpi", "system"]) {
        if !kinds.contains(&entry) {
            kinds.push(entry);
        }
    }
    kinds.join(",")
}

/// What `MPI_INFO_ENV` refers to, but the keys that are not known; with these kinds of memory.
pub(crate) fn of_environment(rank: &Rank, memory_kinds: &str) -> Info {
    let boot = rank.node().boot();
    let ranks = rank.world().map_or(boot.world_ranks, WorldBoot::total);
    let info = Info::default();
    let known = [
        ("maxprocs", FixedText::<16>::of(format_args!("{ranks}")).as_str()),
        ("num_nodes", FixedText::<16>::of(format_args!("{}", boot.nodes)).as_str()),
        ("mpi_initial_errhandler", initial(rank).name()),
        (MEMORY_KINDS, memory_kinds),
    ]
    .iter()
    .try_for_each(|(key, value)| info.set(key, value));
    debug_assert!(known.is_ok(), "short keys and values fit");
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_exist_are_given_and_two_always() {
        assert_eq!(memory_kinds(""), "mpi,system");
        assert_eq!(memory_kinds("system"), "system,mpi");
        assert_eq!(
            memory_kinds("cuda:device, mpi:alloc_mem:win_allocate,system,system:page,mpi:gpu"),
            "mpi:alloc_mem:win_allocate,system,mpi"
        );
    }

    #[test]
    fn only_known_hints_with_a_meaning_are_taken() {
        let (hints, given) = (Hints::default(), Info::default());
        for (key, value) in [
            ("mpi_assert_no_any_tag", "true"),
            ("mpi_assert_exact_length", "maybe"),
            ("unheard_of", "true"),
            (ASSERTED_KINDS, "cuda"),
        ] {
            given.set(key, value).unwrap();
        }
        hints.take(&given);
        let report = hints.report().unwrap();
        assert_eq!(report.len(), ASSERTIONS.len());
        assert_eq!(report.get("mpi_assert_no_any_tag").as_deref(), Some("true"));
        assert_eq!(report.get("mpi_assert_exact_length").as_deref(), Some("false"));
        assert!(hints.promise(Assertion::NoAnyTag) && !hints.promise(Assertion::NoAnySource));

        let later = Info::default();
        later.set("mpi_assert_exact_length", "true").unwrap();
        later.set(ASSERTED_KINDS, "system,mpi:alloc_mem").unwrap();
        hints.take(&later);
        assert!(hints.promise(Assertion::NoAnyTag) && hints.promise(Assertion::ExactLength));
        let report = hints.report().unwrap();
        assert_eq!(report.get(ASSERTED_KINDS).as_deref(), Some("system,mpi:alloc_mem"));
    }
}
