//! The node image: the one copy of engine, objects and binding that all ranks of a node run.
//!
//! The composition root. It owns what a `no_std` program must have once (the allocator, the
//! panic handler) and exports one function, [`cohort_node_open`]. The loader, or the facade of
//! a singleton, opens it; everything else is reached through the [`NodeApi`] that it returns.
//!
//! Its code runs on tasks with different C libraries, so it has no thread-local storage and
//! calls no libc function but the mem family. `tests/` reads the built file to make sure.
#![no_std]

mod live;
mod survival;
mod symbols;

use cohort_abi::{Mpi5, Mpich, OpenMpi, Table};
use cohort_alloc::{SharedHeap, reserve};
use cohort_base::boot::{AbiId, Attached, MAGIC, NodeApi, NodeBoot, RankBoot, Rest, TakeText, VERSION};
use cohort_base::lock::stuck;
use cohort_base::picture::Hear;
use cohort_base::settings::{Settings, Stats};
use cohort_base::text::{FixedText, complain, say};
use cohort_binding::table;
use cohort_bridge::Bridge;
use cohort_engine::{Node, outside};
use cohort_fabric::Transport;
use cohort_fabric::record;
use cohort_insight::{observed, picture};
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};
use rustix::process::{Signal, getpid, kill_process};

/// For what the owner-only layers allocate; stealable code uses the heaps of the ranks.
#[global_allocator]
// SAFETY: a static is neither moved nor dropped.
static HEAP: SharedHeap = unsafe { SharedHeap::new() };

static MPICH: Table<Mpich> = table();
static MPI5: Table<Mpi5> = table();
static OPEN_MPI: Table<OpenMpi> = table();

static API: NodeApi = NodeApi {
    version: VERSION,
    attach,
    report,
    statistics,
    live: live::API,
    look,
    rest,
    add,
    renew,
    wake,
    open_bridge,
    arrived,
    first_foreign,
    died,
    findings,
    survival: survival::API,
    hold_findings,
};

/// Makes the node that `boot` describes; see [`cohort_base::boot::NodeOpen`].
///
/// # Safety
/// `boot` and all it points to are complete and stay where they are; `node` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cohort_node_open(boot: *const NodeBoot, node: *mut *mut c_void) -> *const NodeApi {
    // SAFETY: the caller's contract.
    let boot: &'static NodeBoot = unsafe { &*boot };
    // SAFETY: the caller's contract.
    if boot.magic != MAGIC || boot.version != VERSION || !unsafe { ranks_are_ours(boot) } {
        return core::ptr::null();
    }
    // SAFETY: a NULL-terminated list of strings, by the record's contract.
    let settings = match Settings::from_env(unsafe { entries(boot.environment) }) {
        Ok(settings) => settings,
        Err(invalid) => {
            say(boot.report_fd(), format_args!("cohort: {invalid}\n"));
            return core::ptr::null();
        }
    };
    if settings.survives && boot.nodes > 1 && boot.desk.is_null() {
        let what = "COHORT_ON_FAILURE=continue is for jobs whose ranks pip-exec has started, and that share memory";
        say(boot.report_fd(), format_args!("cohort: {what}\n"));
        return core::ptr::null();
    }
    // SAFETY: the record, by its contract.
    let network = match unsafe { network(boot) } {
        Ok(network) => network,
        Err(NoNetwork) => {
            let what = "the job has several nodes and no network library of this build: libcohort_network.so and \
                        libcohort_node.so are to come from one installation";
            say(boot.report_fd(), format_args!("cohort: {what}\n"));
            return core::ptr::null();
        }
    };
    reserve::keep();
    let Some(created) = Node::create(boot, settings, network) else {
        return core::ptr::null();
    };
    observed::prepare(created.settings());
    if created.survives() {
        HEAP.guard();
        SURVIVORS.store((&raw const *created).cast_mut(), Ordering::Release);
        stuck::call(end_if_stuck);
    }
    // SAFETY: the caller's contract.
    unsafe { node.write((&raw const *created).cast_mut().cast()) };
    &API
}

/// The node, if its ranks survive each other.
static SURVIVORS: AtomicPtr<Node> = AtomicPtr::new(core::ptr::null_mut());

/// Somebody waits long for a lock: if a rank has died, with it, there is no way on.
fn end_if_stuck() {
    // SAFETY: null, or a node that is never unmade.
    let node = unsafe { SURVIVORS.load(Ordering::Acquire).as_ref() };
    let Some((node, dead)) = node.and_then(|node| Some((node, node.failed().next()?))) else {
        return;
    };
    let number = node.world_rank(dead);
    complain(format_args!(
        "cohort: a lock of the node is held by a rank that has died, so the others cannot go on (the first one that \
         failed was rank {number})\n"
    ));
    // Any rank's word ends the job.
    node.rank(0).boot().abort.store(RankBoot::encode_abort(1), Ordering::Release);
    let _ = kill_process(getpid(), Signal::KILL);
}

/// The job has several nodes, and the loader has found no network of this build.
struct NoNetwork;

/// The network of a job of several nodes.
///
/// # Safety
/// `boot.network` is NULL or a record of the network library that is never unmade.
unsafe fn network(boot: &NodeBoot) -> Result<Option<&'static dyn Transport>, NoNetwork> {
    if boot.nodes <= 1 {
        return Ok(None);
    }
    // SAFETY: the caller's contract.
    unsafe { record::open(boot.network) }.map(Some).ok_or(NoNetwork)
}

/// Whether the node has ranks, and all their records are of this version.
///
/// # Safety
/// `boot` is of this version and complete.
unsafe fn ranks_are_ours(boot: &NodeBoot) -> bool {
    if boot.ranks.is_null() {
        return false;
    }
    // SAFETY: there are `node_ranks` records. The loader has not yet written all of their fields
    // that change, so each is read through a pointer to what it has written.
    let is_ours = |index: u32| unsafe {
        let rank = boot.ranks.add(index as usize);
        (*rank).magic == MAGIC && (*rank).version == VERSION && (*rank).local_rank == index
    };
    boot.node_ranks > 0 && (0..boot.node_ranks).all(is_ours)
}

/// The entries of an environment block.
///
/// # Safety
/// `block` is a NULL-terminated list of strings that outlives `'a`, or NULL.
unsafe fn entries<'a>(block: *const *const c_char) -> impl Iterator<Item = &'a [u8]> {
    let count = if block.is_null() { 0 } else { usize::MAX };
    (0..count)
        // SAFETY: `map_while` ends at the NULL, so every index is inside the list.
        .map(move |index| unsafe { *block.add(index) })
        .map_while(|entry| (!entry.is_null()).then_some(entry))
        // SAFETY: entries of the list are strings.
        .map(|entry| unsafe { CStr::from_ptr(entry) }.to_bytes())
}

/// See [`NodeApi::attach`].
///
/// # Safety
/// `boot` is the record of the calling task, of a node that was opened. `objects` belongs to the ABI and stays, and so
/// does `table`, which is the ABI's or NULL.
unsafe extern "C" fn attach(
    boot: *const RankBoot,
    abi: u32,
    objects: *const c_void,
    table: *const AtomicPtr<c_void>,
) -> Attached {
    // SAFETY: the caller's contract.
    let boot = unsafe { &*boot };
    // SAFETY: `boot.node` is what `cohort_node_open` gave, a node that is never unmade.
    let node: &'static Node = unsafe { &*boot.node.cast_const().cast() };
    let attached = || cohort_binding::attach(node.rank(boot.local_rank), objects);
    // SAFETY: the rank's first argument, just made; `table` by the caller's contract.
    let (rank, table) = unsafe {
        match abi {
            abi if abi == AbiId::Mpich as u32 => {
                let rank = attached();
                (rank, observed::attached(rank, &MPICH, table))
            }
            abi if abi == AbiId::Mpi5 as u32 => {
                let rank = attached();
                (rank, observed::attached(rank, &MPI5, table))
            }
            abi if abi == AbiId::OpenMpi as u32 && !objects.is_null() => {
                let rank = attached();
                (rank, observed::attached(rank, &OPEN_MPI, table))
            }
            _ => (core::ptr::null(), core::ptr::null()),
        }
    };
    Attached { rank, table }
}

/// See [`NodeApi::report`].
///
/// # Safety
/// `node` is what `cohort_node_open` gave.
unsafe extern "C" fn report(node: *mut c_void) {
    // Here and in `statistics` and `findings`: ranks may have been killed in the middle of an allocation.
    HEAP.guard();
    // SAFETY: the caller's contract.
    let node: &'static Node = unsafe { &*node.cast_const().cast() };
    if node.settings().stats == Stats::Counters {
        node.report();
    }
}

/// See [`NodeApi::look`].
///
/// # Safety
/// `node` is what `cohort_node_open` gave and has this rank; `hear` may be called with `data`.
unsafe extern "C" fn look(node: *mut c_void, rank: u32, hear: Hear, data: *mut c_void) {
    // SAFETY: the caller's contract.
    let node: &'static Node = unsafe { &*node.cast_const().cast() };
    // SAFETY: the caller's contract.
    picture::look(node.rank(rank), &mut |fact| unsafe { hear(data, &fact) });
}

/// See [`NodeApi::rest`].
///
/// # Safety
/// `node` is what `cohort_node_open` gave and has this rank.
unsafe extern "C" fn rest(node: *mut c_void, rank: u32) -> Rest {
    // SAFETY: the caller's contract.
    let node: &'static Node = unsafe { &*node.cast_const().cast() };
    node.rank(rank).rest()
}

/// See [`NodeApi::add`].
///
/// # Safety
/// `node` is what `cohort_node_open` gave; the contract of the field.
unsafe extern "C" fn add(node: *mut c_void, first: u32, count: u32) {
    // SAFETY: the caller's contract; nodes are never unmade.
    unsafe { (*node.cast_const().cast::<Node>()).add(first, count) };
}

/// See [`NodeApi::renew`].
///
/// # Safety
/// `node` is what `cohort_node_open` gave; the contract of the field.
unsafe extern "C" fn renew(node: *mut c_void, first: u32, count: u32) -> bool {
    // SAFETY: the caller's contract; nodes are never unmade.
    unsafe { (*node.cast_const().cast::<Node>()).renew(first, count) }
}

/// See [`NodeApi::wake`].
///
/// # Safety
/// `node` is what `cohort_node_open` gave and has this rank.
unsafe extern "C" fn wake(node: *mut c_void, rank: u32) {
    // SAFETY: the caller's contract.
    let node: &'static Node = unsafe { &*node.cast_const().cast() };
    node.rank(rank).wake();
}

/// See [`NodeApi::open_bridge`].
///
/// # Safety
/// `node` is what `cohort_node_open` gave; `bridge` is one of this build.
unsafe extern "C" fn open_bridge(node: *mut c_void, bridge: *const c_void) {
    // SAFETY: the caller's contract.
    let (node, bridge): (&'static Node, &'static Bridge) =
        unsafe { (&*node.cast_const().cast(), &*bridge.cast::<Bridge>()) };
    outside::open(node, bridge);
}

/// See [`NodeApi::arrived`].
///
/// # Safety
/// `node` is what `cohort_node_open` gave.
unsafe extern "C" fn arrived(node: *mut c_void, rank: u32) -> bool {
    // SAFETY: the caller's contract.
    let node: &'static Node = unsafe { &*node.cast_const().cast() };
    outside::arrived(node, rank)
}

/// See [`NodeApi::first_foreign`].
///
/// # Safety
/// `node` is what `cohort_node_open` gave.
unsafe extern "C" fn first_foreign(node: *mut c_void) -> u32 {
    // SAFETY: the caller's contract.
    unsafe { (*node.cast_const().cast::<Node>()).first_foreign() }
}

/// See [`NodeApi::died`].
///
/// # Safety
/// `node` is what `cohort_node_open` gave and has this rank; the contract of the field.
unsafe extern "C" fn died(node: *mut c_void, number: u32) {
    // SAFETY: the caller's contract.
    let node: &'static Node = unsafe { &*node.cast_const().cast() };
    node.note_failure(number);
}

/// Text that goes to a [`TakeText`].
struct Receiver(*mut c_void, TakeText);

impl core::fmt::Write for Receiver {
    fn write_str(&mut self, piece: &str) -> core::fmt::Result {
        // SAFETY: the contract of `NodeApi::statistics`; the piece is valid during the call.
        unsafe { (self.1)(self.0, piece.as_ptr(), piece.len()) };
        Ok(())
    }
}

/// See [`NodeApi::statistics`].
///
/// # Safety
/// `node` is what `cohort_node_open` gave; `take` may be called with `context`.
unsafe extern "C" fn statistics(node: *mut c_void, context: *mut c_void, take: TakeText) {
    HEAP.guard();
    // SAFETY: the caller's contract.
    let node: &'static Node = unsafe { &*node.cast_const().cast() };
    // A receiver takes everything.
    let _ = observed::write_statistics(node, &mut Receiver(context, take));
}

/// See [`NodeApi::findings`]. An image has one node.
///
/// # Safety
/// `take` may be called with `context`.
unsafe extern "C" fn findings(_node: *mut c_void, context: *mut c_void, take: TakeText) {
    HEAP.guard();
    // A receiver takes everything.
    let _ = observed::write_findings(&mut Receiver(context, take));
}

/// See [`NodeApi::hold_findings`]. An image has one node.
unsafe extern "C" fn hold_findings(_node: *mut c_void) {
    observed::hold_findings();
}

#[panic_handler]
fn panic(information: &core::panic::PanicInfo<'_>) -> ! {
    let pid = getpid().as_raw_nonzero();
    // A failed allocation of Rust's collections panics, in the words of Rust's library.
    let text = FixedText::<40>::of(format_args!("{}", information.message()));
    match text.as_str().starts_with("memory allocation of") || reserve::is_short() {
        true => complain(format_args!(
            "cohort: process {pid} is out of memory (MPI_ERR_NO_MEM) where MPI cannot go on: {}\n",
            reserve::why()
        )),
        false => complain(format_args!("cohort: internal error in process {pid}, please report it: {information}\n")),
    }
    // As an abort would: a signal, which the loader reports with the rank's number. The second
    // is for programs that handle the first.
    for signal in [Signal::ABORT, Signal::KILL] {
        let _ = kill_process(getpid(), signal);
    }
    unreachable!("SIGKILL ends the process")
}
