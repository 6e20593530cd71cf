//! `libcohort_join.so`: a program that a process manager started without `pip-exec`
//! (`mpiexec -n 4 ./app`) is a node of one rank in the manager's job.
//!
//! The facade loads this library only if the environment tells of a manager, or the program spawns. Unlike the facade
//! it may use the standard library: it runs once, on the program's own task, with its C library.

mod asked;
mod found;
mod guardian;
mod last;

use asked::Asked;
use cohort_alloc::SharedHeap;
use cohort_base::boot::{DESCENDANT, Lifecycle, NodeBoot, RankBoot};
use cohort_base::settings::Settings;
use cohort_manager::network::{Network, NetworkSettings};
use cohort_manager::watch::{Limit, START_TIMEOUT, Watch};
use cohort_manager::wireup::{NodeInfo, Numbering, World, exchange};
use cohort_manager::{Failure, Manager, Place, door, is_managers};
use guardian::Guardian;
use std::ffi::{CStr, OsStr, OsString, c_int, c_void};
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Not the program's own allocator: tools that look for leaks would find what lives as long as the program.
#[global_allocator]
// SAFETY: a static is neither moved nor dropped.
static HEAP: SharedHeap = unsafe { SharedHeap::new() };

/// Exit status of a program that cannot join.
const REFUSED: c_int = 2;

/// What a manager gets to pass on a rank's last words before it is told to end the job.
const OUTPUT_TIME: Duration = Duration::from_millis(300);

/// What has to be done when the program ends.
struct AtExit {
    /// The process that has joined. One that it forks is none of the job's, though it has a copy of all this.
    process: u32,
    manager: Box<dyn Manager>,
    network: Network,
    rank: &'static RankBoot,
    guardian: Option<Guardian>,
    /// What the program has of the thread that is asked.
    asked: Option<Asked>,
    /// Whether the manager knows that this rank needs nobody any more.
    has_left: bool,
}

// SAFETY: only the program's last thread takes it, at the end; before, who finalizes MPI uses it.
unsafe impl Send for AtExit {}

static AT_EXIT: Mutex<Option<AtExit>> = Mutex::new(None);

/// Joins the job of the environment's process manager; see [`cohort_base::boot::NodeJoin`].
///
/// # Safety
/// Both records are complete for a job of one rank, nobody else uses them yet, and they are never moved or
/// freed. No other thread changes the environment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cohort_join(node: *mut NodeBoot, rank: *mut RankBoot) -> c_int {
    let mask = block_signals();
    let threads = last::threads();
    // SAFETY: the caller's contract.
    let mut result = join(unsafe { &mut *node }, unsafe { &mut *rank });
    let stream = result.as_mut().ok().and_then(|joined| joined.as_mut()?.manager.be_asked());
    // SAFETY: they are blocked. The record is never moved or freed, and who uses MPI has opened its node.
    let asked = stream.and_then(|stream| unsafe { asked::begin(stream, rank) });
    restore_signals(&mask);
    let Joined { manager, network, guardian } = match result {
        Ok(None) => return 0,
        Ok(Some(joined)) => joined,
        Err(failure) => {
            say(&failure);
            // The manager ends the job as soon as this process has ended.
            std::thread::sleep(OUTPUT_TIME);
            return REFUSED;
        }
    };
    // SAFETY: the record is never moved or freed, and from now on it changes in its atomics only.
    let rank = unsafe { &*rank };
    if let Ok(mut registered) = AT_EXIT.lock() {
        *registered =
            Some(AtExit { process: std::process::id(), manager, network, rank, guardian, asked, has_left: false });
    }
    // SAFETY: a plain function of a library that is never unloaded. Should it not be registered, the
    // manager takes the program's end for a failure.
    unsafe { libc::atexit(leave_at_exit) };
    last::begin(&threads);
    0
}

/// What a job of more than one rank has.
struct Joined {
    manager: Box<dyn Manager>,
    network: Network,
    guardian: Option<Guardian>,
}

/// Fills the records; gives the manager and the network if the job has more than one rank.
fn join(node: &mut NodeBoot, rank: &mut RankBoot) -> Result<Option<Joined>, Failure> {
    let variable = |name: &str| std::env::var(name).ok();
    let watch = begin_watch(Limit::of_start(variable(START_TIMEOUT).as_deref()))?;
    watch.waits_for("the process manager's first answer");
    let descendant = match cohort_manager::is_present(variable) {
        true => variable(DESCENDANT),
        false => variable(DESCENDANT).or_else(door::of_an_ancestor),
    };
    let is_descendant = descendant.is_some();
    let found = |name: &str| match name == DESCENDANT {
        true => descendant.clone(),
        false => variable(name),
    };
    let Some(manager) = cohort_manager::connect(found)? else {
        return Ok(None);
    };
    // To be left by this process's end only: a manager that loses it ends the job before a failure is told.
    let mut manager = ManuallyDrop::new(manager);
    watch.connected(manager.aborter(), manager.place());
    hide_manager();
    if manager.place().count == 1 {
        ManuallyDrop::into_inner(manager).finalize()?;
        return Ok(None);
    }
    let mut info = NodeInfo::of_this_machine(1, Numbering::Block)
        .map_err(|source| Failure::System { what: "cannot draw a random number", source })?;
    info.application = manager.application()?;
    info.alone = true;
    info.alike = settings().alike().to_vec();
    let Place { index, count } = manager.place();
    let waits_for = |what| watch.waits_for(format!("{what} (rank {index} of {count})"));
    waits_for("all other ranks to say what they are");
    let world: &'static World = Box::leak(Box::new(exchange(manager.as_mut(), &info)?));
    waits_for("all other ranks to open their networks");
    let settings = NetworkSettings::read(variable);
    let network = Network::open(&own_folder(), world, false, &settings, manager.as_mut())?;
    node.world_ranks = world.homes.len() as u32;
    node.node = world.place.index;
    node.nodes = world.place.count;
    node.job = world.number();
    node.cpus = world.cpus(node.cpus);
    node.shares_cpus = world.shares_cpus().into();
    node.homes = world.homes.as_ptr();
    node.network = network.record();
    if let Some(&own) = world.ranks_of(world.place.index).first() {
        rank.world_rank = own;
        rank.app_number = world.first_application();
    }
    // `pip-exec` looks after the ranks that it has started.
    let guardian = match is_descendant {
        true => None,
        false => Guardian::start(manager.as_ref(), rank),
    };
    if guardian.is_none() || manager.parting().is_none() {
        rank.on_finalized = Some(leave_early);
    }
    rank.on_aborted = Some(tell_abort);
    rank.on_begun = Some(tell_begun);
    Ok(Some(Joined { manager: ManuallyDrop::into_inner(manager), network, guardian }))
}

/// What the environment says; the facade has looked at it.
fn settings() -> Settings {
    let entry = |(name, value): (OsString, OsString)| [name.as_bytes(), b"=", value.as_bytes()].concat();
    let entries: Vec<_> = std::env::vars_os().map(entry).collect();
    Settings::from_env(entries.iter().map(Vec::as_slice)).unwrap_or(Settings::DEFAULT)
}

/// Ends the program when it is told to, or when others do not come: signals are blocked while it joins.
fn begin_watch(limit: Limit) -> Result<Watch, Failure> {
    Watch::begin("cohort", Some(limit))
        .map_err(|source| Failure::System { what: "cannot watch over the start", source })
}

/// Variables by which programs know their place, before `MPI_Init` too. They lead nobody to the manager.
const PLACE: [&str; 4] = ["PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"];

/// Removes the manager's variables: a program that this one starts is not this rank.
fn hide_manager() {
    let is_hidden = |name: &str| is_managers(name) && !PLACE.contains(&name);
    let names = std::env::vars_os().map(|(name, _)| name);
    let names: Vec<_> = names.filter(|name| is_hidden(&name.to_string_lossy())).collect();
    for name in names {
        // SAFETY: no other thread uses the environment now, by the caller's word.
        unsafe { std::env::remove_var(name) };
    }
}

/// Takes leave of the manager as soon as MPI is finalized, where nobody could do so for a program that ends by `_exit`.
extern "C" fn leave_early() {
    let Ok(mut registered) = AT_EXIT.try_lock() else {
        return;
    };
    if let Some(registered) = registered.as_mut()
        && registered.process == std::process::id()
        && !registered.has_left
    {
        registered.has_left = true;
        take_leave(registered.manager.as_mut(), registered.guardian.as_ref());
    }
}

/// Tells the manager that the program has called `MPI_Init`.
extern "C" fn tell_begun() {
    let Ok(mut registered) = AT_EXIT.try_lock() else {
        return;
    };
    if let Some(registered) = registered.as_mut()
        && registered.process == std::process::id()
    {
        registered.manager.begin();
        if let Some(asked) = registered.asked.take() {
            asked.close();
        }
    }
}

/// Tells whoever has to end the others: a status of 0 would look like a good end. The guardian does so where it can,
/// when the rank's last words have left.
extern "C" fn tell_abort(code: c_int) {
    let Ok(mut registered) = AT_EXIT.try_lock() else {
        return;
    };
    if let Some(registered) = registered.as_mut()
        && registered.process == std::process::id()
    {
        match &registered.guardian {
            Some(guardian) if registered.manager.parting().is_some() => guardian.aborts(code),
            Some(guardian) => {
                guardian.aborts(code);
                std::thread::sleep(OUTPUT_TIME);
                registered.manager.abort(code & 0xff, "MPI_Abort");
            }
            None => registered.manager.abort(code, "MPI_Abort"),
        }
    }
}

fn take_leave(manager: &mut dyn Manager, guardian: Option<&Guardian>) {
    if let Some(guardian) = guardian {
        guardian.leaves();
    }
    if let Err(failure) = manager.finalize() {
        say(&failure);
    }
}

/// Ends the network, which takes leave of the other nodes, and tells the manager that this program's end is none
/// of its business, unless it is: a rank that leaves between initialisation and finalisation strands its peers.
extern "C" fn leave_at_exit() {
    // Another thread of the process that forked this one may have had the lock.
    let Ok(mut registered) = AT_EXIT.try_lock() else {
        return;
    };
    // What is left there is never dropped.
    let taken = registered.take_if(|it| it.process == std::process::id());
    if let Some(mut registered) = taken
        && registered.rank.lifecycle.load(Ordering::Acquire) != Lifecycle::Initialized as u32
        && registered.rank.abort.load(Ordering::Acquire) == 0
    {
        // SAFETY: the one rank of this node uses MPI no more.
        unsafe { registered.network.close(false) };
        if !registered.has_left {
            take_leave(registered.manager.as_mut(), registered.guardian.as_ref());
        }
    }
}

/// Writes a failure to standard error, at once: the manager may end this process at any time.
fn say(failure: &Failure) {
    let line = format!("cohort: {failure}\n");
    // Nobody may be reading.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Folder of this library, where those of the network and the node lie too.
fn own_folder() -> PathBuf {
    // SAFETY: an all-zero `Dl_info` is a valid place for the result.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    let address = own_folder as *const c_void;
    // SAFETY: any address may be asked about.
    let found = unsafe { libc::dladdr(address, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return PathBuf::from(".");
    }
    // SAFETY: the path of a loaded library.
    let path = unsafe { CStr::from_ptr(info.dli_fname) };
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    path.parent().unwrap_or(Path::new(".")).to_owned()
}

/// Blocks all signals, so that threads which libraries start leave them to the program.
fn block_signals() -> libc::sigset_t {
    // SAFETY: both sets are valid places; the calls change this thread's mask only.
    unsafe {
        let (mut all, mut former) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &raw mut former);
        former
    }
}

fn restore_signals(mask: &libc::sigset_t) {
    // SAFETY: a mask that this thread had.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}
