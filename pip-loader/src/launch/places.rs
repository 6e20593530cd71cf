//! The variables by which scripts know a rank: ours, and those of MPICH, Intel MPI and Open MPI.
//!
//! None of them tells of a process manager that listens: libraries that a rank loads, and launchers that it starts,
//! look for a descriptor, a port or a namespace first (`PMI_FD`, `PMI_PORT`, `PMIX_NAMESPACE`), which is not there.

use std::ffi::CString;

/// A rank's place in a job.
#[derive(Clone, Copy, Debug)]
pub struct PlaceOfRank {
    /// In `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Ranks of the job.
    pub size: usize,
    /// Among the ranks of its node.
    pub local_rank: usize,
    /// Ranks of its node.
    pub local_size: usize,
}

/// A variable's name and the number that it has.
type Variable = (&'static str, fn(&PlaceOfRank) -> usize);

/// What has which of these numbers.
const NAMES: [Variable; 13] = [
    ("COHORT_WORLD_RANK", |place| place.rank as usize),
    ("COHORT_WORLD_SIZE", |place| place.size),
    ("COHORT_LOCAL_RANK", |place| place.local_rank),
    ("COHORT_LOCAL_SIZE", |place| place.local_size),
    ("PMI_RANK", |place| place.rank as usize),
    ("PMI_SIZE", |place| place.size),
    ("MPI_LOCALRANKID", |place| place.local_rank),
    ("MPI_LOCALNRANKS", |place| place.local_size),
    ("OMPI_COMM_WORLD_RANK", |place| place.rank as usize),
    ("OMPI_COMM_WORLD_SIZE", |place| place.size),
    ("OMPI_COMM_WORLD_LOCAL_RANK", |place| place.local_rank),
    ("OMPI_COMM_WORLD_LOCAL_SIZE", |place| place.local_size),
    ("OMPI_COMM_WORLD_NODE_RANK", |place| place.local_rank),
];

/// Whether a variable is one of them: that of a job around this one is not for its ranks.
#[must_use]
pub fn is_place(variable: &str) -> bool {
    NAMES.iter().any(|(name, _)| *name == variable)
}

/// The entries for an environment that has others already. Those that it has, by `-env` or from the manager with
/// `--keep-pmi`, stay.
#[must_use]
pub fn entries(place: &PlaceOfRank, others: &[CString]) -> Vec<CString> {
    let has = |name: &str| {
        let name = name.as_bytes();
        let is_it = |entry: &CString| {
            let rest = entry.as_bytes().strip_prefix(name);
            rest.is_some_and(|rest| rest.first() == Some(&b'='))
        };
        others.iter().any(is_it)
    };
    let missing = NAMES.iter().filter(|(name, _)| !has(name));
    let entry = |(name, number): &Variable| CString::new(format!("{name}={}", number(place)));
    missing.map(entry).filter_map(Result::ok).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohort_base::settings::Settings;

    const PLACE: PlaceOfRank = PlaceOfRank { rank: 5, size: 8, local_rank: 1, local_size: 4 };

    #[test]
    fn each_launcher_has_its_names() {
        let entries = entries(&PLACE, &[c"PMI_RANK=7".into(), c"PMI_SIZEX=1".into()]);
        let texts: Vec<&str> = entries.iter().filter_map(|entry| entry.to_str().ok()).collect();
        for entry in ["PMI_SIZE=8", "OMPI_COMM_WORLD_RANK=5", "MPI_LOCALRANKID=1", "COHORT_LOCAL_SIZE=4"] {
            assert!(texts.contains(&entry), "{entry}: {texts:?}");
        }
        assert!(!texts.iter().any(|text| text.starts_with("PMI_RANK=")));
        assert!(is_place("OMPI_COMM_WORLD_NODE_RANK") && !is_place("PATH"));
    }

    #[test]
    fn none_is_taken_for_a_setting() {
        let all = entries(&PLACE, &[]);
        let settings = Settings::from_env(all.iter().map(|entry| entry.as_bytes()));
        assert_eq!(settings.expect("no setting"), Settings::DEFAULT);
    }
}
