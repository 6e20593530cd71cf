//! `MPI_Comm_split_type` (MPI-4.1 section 7.4.2): communicators of processes that share hardware.

use super::publish;
use crate::arguments::{Call, Comm, Outcome};
use crate::info;
use crate::progress::take_hints;
use cohort_abi::parameters::Out;
use cohort_abi::{Abi, neutral};
use cohort_object::comm::SplitLevel;
use cohort_object::session::{PROCESS_SETS, process_set, set_named};
use cohort_object::{Info, number_among};
use core::ffi::c_int;
use rustix::fs::{Mode, OFlags};

/// Info key that names a kind of hardware.
const RESOURCE_KEY: &str = "mpi_hw_resource_type";

/// Info key that names a process set, for `MPI_COMM_TYPE_RESOURCE_GUIDED`.
const SET_KEY: &str = "mpi_pset_name";

/// Info key that names a directory, for MPICH's `MPIX_COMM_TYPE_NEIGHBORHOOD`.
const DIRECTORY_KEY: &str = "nbhd_common_dirname";

/// Kinds of hardware, from the widest to the narrowest, with all their names; the first is the one
/// that unguided splits report.
const RESOURCES: [&[&str]; 4] = [
    &["mpi_shared_memory", "hwloc://Machine", "hwloc://System"],
    &["hwloc://NUMANode"],
    &["hwloc://L3Cache", "hwloc://Cache"],
    &["hwloc://Core"],
];

/// How a split is asked for.
enum Split {
    /// By hardware.
    Site(SplitLevel),
    /// By the process set with this number.
    Set(usize),
}

/// The split that hints guide to; hardware and sets that are not known give no communicator.
fn guided(hints: &Info, sets: bool) -> Split {
    let set = hints.get(SET_KEY).filter(|_| sets);
    let set = set.and_then(|name| set_named(&name));
    if let Some(set) = set {
        return Split::Set(set);
    }
    let name = hints.get(RESOURCE_KEY);
    let level = name.and_then(|name| {
        let knows = |names: &&[&str]| names.iter().any(|&known| known == name);
        RESOURCES.iter().position(knows)
    });
    Split::Site(level.map_or(SplitLevel::Nothing, |level| SplitLevel::Level(level + 1)))
}

/// MPICH's split by neighbourhood. Members that see one directory are those of a node, and nobody else: whether others
/// have it over a network is not looked at. Of other neighbourhoods nothing is known, which gives no communicator.
fn neighborhood(hints: &Info) -> Split {
    let sees = hints.get(DIRECTORY_KEY).is_some_and(|name| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(&*name, flags, Mode::empty()).is_ok()
    });
    Split::Site(match sees {
        true => SplitLevel::Level(1),
        false => SplitLevel::Nothing,
    })
}

/// What the caller asks for.
fn asked<A: Abi>(call: &Call<'_, A>, split_type: c_int, hints: &Info) -> Outcome<Split> {
    match A::split_type_in(split_type) {
        _ if split_type == neutral::UNDEFINED => Ok(Split::Site(SplitLevel::Nothing)),
        neutral::COMM_TYPE_SHARED => Ok(Split::Site(SplitLevel::Level(1))),
        neutral::COMM_TYPE_HW_GUIDED => Ok(guided(hints, false)),
        neutral::COMM_TYPE_RESOURCE_GUIDED => Ok(guided(hints, true)),
        neutral::COMM_TYPE_HW_UNGUIDED => Ok(Split::Site(SplitLevel::Narrower)),
        _ if A::NEIGHBORHOOD == Some(split_type) => Ok(neighborhood(hints)),
        _ => {
            let what = format_args!("the split type is {split_type}");
            Err(call.blame(neutral::ERR_ARG, what))
        }
    }
}

fn split<A: Abi>(call: &Call<'_, A>, comm: &Comm, split: &Split, key: c_int, hints: A::Info) -> Outcome<Option<Comm>> {
    let room = super::room(call);
    let level_wanted = match *split {
        Split::Set(set) => {
            // Members of several worlds have a set of this name each.
            let set = process_set(call.rank(), PROCESS_SETS[set])?;
            let first = set.members().first().copied().unwrap_or(call.rank().peer());
            SplitLevel::Same(number_among(call.rank().node(), &comm.everybody(), first))
        }
        Split::Site(level_wanted) => level_wanted,
    };
    let Some((made, level)) = comm.split_by_site(level_wanted, key, room)? else {
        return Ok(None);
    };
    if level_wanted == SplitLevel::Narrower {
        info::tell(call, hints, RESOURCE_KEY, RESOURCES[level - 1][0])?;
    }
    Ok(Some(made))
}

/// `MPI_Comm_split_type`.
pub fn split_type<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    split_type: c_int,
    key: c_int,
    hints: A::Info,
    target: Out<'_, A::Comm>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let target = call.output(target, "newcomm")?;
    let given = info::hints(call, hints)?;
    let wanted = asked(call, split_type, &given)?;
    let made = split(call, comm, &wanted, key, hints)?;
    if let Some(made) = &made {
        take_hints(made, &given)?;
    }
    publish(call, made, target)
}
