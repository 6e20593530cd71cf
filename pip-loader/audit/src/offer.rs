//! A program that a wrapper has executed offers itself to its job: one that is linked to our MPI, or a Python or an R.
//!
//! `pip-exec -n 2 env A=1 ./a`: the kernel executes `env` in a process of its own, and `env` executes `a` there. Before
//! any code of `a` runs, this library asks at the job's door whether the ranks of the job can share an address space
//! nevertheless: then `pip-exec` ends this process, and starts `a` there with all that the wrapper has set up. Else the
//! program goes on where it is. What a wrapper has started as its child is not ended, since the wrapper waits for it:
//! the process stands in for the rank, whose end becomes its own.

use crate::names::{self, Once};
use crate::{kernel, linker};
use cohort_base::boot::{DESCENDANT, GATHERING};
use cohort_base::offer::{EXITED, KILLED};

/// The address of the door.
static ADDRESS: Once = Once::new();

/// What is said there.
static REQUEST: Once = Once::new();

/// `SIGKILL`
const KILL: u8 = 9;

/// The last of the standard descriptors.
const STANDARD_LAST: u32 = 2;

/// Offers this process to its job, if that gathers its ranks, and comes back if it is to go on. Its program is `linked`
/// to our MPI, or a Python or an R that may open it.
///
/// # Safety
/// Called once.
pub unsafe fn make(linked: bool) {
    let mut places = linker::environment().filter_map(|entry| names::after(entry, DESCENDANT.as_bytes()));
    let Some(place) = places.next() else {
        return;
    };
    let Some(rank) = names::last_number(place) else {
        return;
    };
    // With its last slash.
    let door = names::folder(place);
    let door = door.get(..door.len().saturating_sub(1)).unwrap_or_default();
    if !names::begins(door, GATHERING.as_bytes()) || linker::rank_boot().is_some() || kernel::has_timer() {
        return;
    }
    let Some((mode, nodes)) = kernel::memory_policy() else {
        return;
    };
    // SAFETY: the caller's promise.
    let (address, request) = unsafe { (ADDRESS.make(), REQUEST.make()) };
    // `AF_UNIX`, and the zero byte of an abstract name.
    address.push(&[1, 0, 0]);
    address.push(door);
    let Some(connection) = kernel::connect(address.get()) else {
        return;
    };
    if connection.descriptor() <= STANDARD_LAST {
        // It has taken the place of a standard descriptor that is closed.
        return;
    }
    request.push(b"cmd=executed");
    for (name, number) in [
        (" rank=", rank),
        (" linked=", u32::from(linked)),
        (" socket=", connection.descriptor()),
        (" personality=", kernel::personality()),
        (" slack=", kernel::timer_slack()),
        (" policy=", mode),
        (" nodes=", nodes),
    ] {
        request.push(name.as_bytes());
        request.push_number(number);
    }
    request.push(b"\n");
    if connection.send_with_standard(request.get()) {
        // Without a word it goes on.
        if connection.hear().is_some() {
            stand_in(&connection);
        }
    }
}

/// Ends as the rank has ended that runs this process's program.
fn stand_in(connection: &kernel::Connection) -> ! {
    match (connection.hear(), connection.hear()) {
        (Some(EXITED), Some(status)) => kernel::exit(status.into()),
        (Some(KILLED), Some(signal)) => kernel::die(signal),
        _ => kernel::die(KILL),
    }
}
