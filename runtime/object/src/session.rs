//! Sessions (MPI-4.1 section 11.3).

use crate::Outcome;
use crate::errhandler::Errhandler;
use crate::group::Group;
use crate::info::Info;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::heir::HeirLock;
use cohort_base::text::FixedText;
use cohort_engine::Rank;
use cohort_engine::coll::Roster;
use spin::Mutex;

/// The process sets that every session has, in the order of `MPI_Session_get_nth_pset`.
pub const PROCESS_SETS: [&str; 2] = ["mpi://WORLD", "mpi://SELF"];

/// One session of a rank.
pub struct Session {
    /// Its error handler.
    pub errhandler: Mutex<Errhandler>,
    /// What `MPI_Session_get_info` gives.
    pub info: Info,
}

/// The ranks of the caller's world, in the order of `MPI_COMM_WORLD`.
pub(crate) fn everyone(rank: &Rank) -> Roster {
    let node = rank.node();
    if let Some(world) = rank.world() {
        let numbers = world.parts.iter().flat_map(|part| part.numbers());
        return Roster::new(numbers.map(|number| node.peer(number)).collect());
    }
    let address = core::ptr::from_ref(node).addr();
    EVERYONE.with(|known| {
        if let Some((_, everyone)) = known.iter().find(|(of, _)| *of == address) {
            return everyone.clone();
        }
        let members = (0..node.world_size()).map(|world| node.peer(world));
        let everyone = Roster::new(members.collect());
        known.push((address, everyone.clone()));
        everyone
    })
}

/// The list of each node (several in tests), by its address: one for all of its ranks.
static EVERYONE: HeirLock<Vec<(usize, Roster)>> = HeirLock::new(Vec::new());

/// Which of [`PROCESS_SETS`] a name names. Scheme and authority of a URI, of which both consist, are the same in upper
/// and lower case.
#[must_use]
pub fn set_named(name: &str) -> Option<usize> {
    PROCESS_SETS.iter().position(|known| known.eq_ignore_ascii_case(name))
}

/// The group of a process set, for this rank.
///
/// # Errors
/// `MPI_ERR_ARG` when there is no process set of this name.
pub fn process_set(rank: &Rank, name: &str) -> Outcome<Group> {
    let group = match set_named(name) {
        Some(0) => Group::shared(everyone(rank), rank.world_rank()),
        Some(_) => Group::new(alloc::vec![rank.peer()], rank.peer()),
        None => return Err(neutral::ERR_ARG.into()),
    };
    Ok(group)
}

/// What `MPI_Session_get_pset_info` gives.
///
/// # Errors
/// `MPI_ERR_ARG` when there is no process set of this name.
pub fn process_set_info(rank: &Rank, name: &str) -> Outcome<Info> {
    let info = Info::default();
    let size = FixedText::<16>::of(format_args!("{}", process_set(rank, name)?.size()));
    info.set("mpi_size", size.as_str())?;
    Ok(info)
}
