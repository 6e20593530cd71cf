//! The records through which the loader and the node image meet.
//!
//! `pip-exec` fills one [`NodeBoot`], calls the node image's exported
//! `cohort_node_open` with it, and gives every rank the address of its own
//! [`RankBoot`] in the auxiliary vector under [`AT_COHORT`]. A facade that finds
//! no such entry is a singleton and fills both records itself.
//!
//! All of it stays mapped, at the same address, until the last rank has ended.

use crate::blocks::Blocks;
use crate::claims::Claims;
use crate::live::LiveApi;
use crate::picture::Hear;
use crate::spawn::{Desk, WorldBoot};
use crate::trace::Ring;
use core::ffi::{c_char, c_void};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use rustix::fd::BorrowedFd;

/// Auxiliary-vector type under which a rank finds the address of its [`RankBoot`].
///
/// An auxiliary vector is not inherited across `execve`, so a program that a rank
/// executes never sees a stale address.
pub const AT_COHORT: u64 = 0x434f_484f_5254; // "COHORT"

/// The same for a launcher that a [`Founder`] has started: the address of that record.
pub const AT_FOUNDER: u64 = 0x464f_554e_4445; // "FOUNDE"

/// First word of both records; anything else is not ours.
pub const MAGIC: u64 = 0x3154_524f_484f_4350;

/// Raised whenever the layout of a record changes.
pub const VERSION: u32 = 22;

/// File name of the node image, which lies beside the facades.
pub const NODE_IMAGE: &str = "libcohort_node.so";

/// File name of the library that joins a program to a process manager's job; it lies beside the
/// facades, which load it when one of [`MANAGER_VARIABLES`] is set, or when a process without a launcher spawns.
pub const JOIN_LIBRARY: &str = "libcohort_join.so";

/// Name of the function of this library that joins: a [`NodeJoin`].
pub const NODE_JOIN: &str = "cohort_join";

/// Name of the one that starts a launcher: a [`NodeFound`].
pub const NODE_FOUND: &str = "cohort_found";

/// Variables of which a process manager sets at least one for the programs that it starts.
pub const MANAGER_VARIABLES: [&str; 3] = ["PMI_FD", "PMI_PORT", "PMIX_NAMESPACE"];

/// File name of the library that leads a process to our MPI libraries, which lie beside it, by whatever path it asks
/// for one (`rtld-audit(7)`). The kernel can execute it too: it ends ([`RankBoot::leaver`]).
pub const AUDIT_LIBRARY: &str = "libcohort_audit.so";

/// File name of the library with jemalloc, in the folder of the node image.
pub const MALLOC_LIBRARY: &str = "libcohort_malloc.so";

/// File name of the library that notes the C library's blocks for the checker, in the folder of the node image.
pub const BLOCKS_LIBRARY: &str = "libcohort_blocks.so";

/// Variable that tells a program which a rank starts, in an address space of its own, from which rank of which job
/// it descends: `ADDRESS/RANK`, where `ADDRESS` is the abstract name of a socket of `pip-exec`.
pub const DESCENDANT: &str = "PIP_EXEC_RANK";

/// How the names of variables begin that are in a rank's environment under the rest of their names once the rank's
/// linker is through: they are for what the rank executes.
pub const LATER: &str = "PIP_EXEC_LATER_";

/// How the socket's name begins in [`DESCENDANT`] if programs that wrappers execute are to offer themselves to the job
/// before their code runs.
pub const GATHERING: &str = "cohort-gathers-";

/// Name of the only function that the node image exports: a [`NodeOpen`].
pub const NODE_OPEN: &str = "cohort_node_open";

/// Where one CPU lies in the machine. Ids are equal exactly when two CPUs share
/// the core, the last-level cache or the NUMA node.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuLocation {
    /// The operating system's number of this CPU.
    pub cpu: u32,
    /// Physical core.
    pub core: u32,
    /// Last-level cache.
    pub l3: u32,
    /// NUMA node.
    pub numa: u32,
}

/// Where one rank of the job lives.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankLocation {
    /// Index of its node in the job.
    pub node: u32,
    /// Its index on that node.
    pub local_rank: u32,
}

/// What the node image is told about its node, once, before any rank starts.
#[repr(C)]
pub struct NodeBoot {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// Ranks on this node when the job begins.
    pub node_ranks: u32,
    /// Ranks in the job.
    pub world_ranks: u32,
    /// CPUs that this node's ranks may use (after affinity masks and cgroup limits) and have for
    /// themselves; 0 where they get less than one.
    pub cpus: u32,
    /// NULL-terminated `KEY=VALUE` list to read the `COHORT_*` settings from.
    /// The caller has validated it with [`crate::settings::Settings::from_env`].
    pub environment: *const *const c_char,
    /// `node_ranks` records, in rank order, and room for `capacity`: a record is complete before its rank is
    /// [added](NodeApi::add).
    pub ranks: *const RankBoot,
    /// `places_len` places, one per usable CPU; may be NULL with `places_len` 0.
    pub places: *const CpuLocation,
    /// Length of `places`.
    pub places_len: u32,
    /// File descriptor that the node image writes reports to (2): an open one, as long as the record is mapped.
    pub report_fd: i32,
    /// Index of this node in the job.
    pub node: u32,
    /// Nodes of the job.
    pub nodes: u32,
    /// Where each rank of the job lives, `world_ranks` records in the order of `MPI_COMM_WORLD`;
    /// NULL when the job has one node, whose ranks then are numbered alike here and there.
    pub homes: *const RankLocation,
    /// The network, a record of the crate `cohort-fabric`; NULL when the job has one node.
    pub network: *const c_void,
    /// NULL, or where ranks ask for more of them.
    pub desk: *const Desk,
    /// Ranks that the node may have in all: those beyond `node_ranks` are spawned while the job runs.
    pub capacity: u32,
    /// Starts who serves the desk, if nobody has: see [`Summon`].
    pub summon: Option<Summon>,
    /// A number that all nodes of the job have and no other job; 0 when the job has one node.
    pub job: u64,
    /// CPUs of all nodes of the job, for its ranks and those that it spawns; 0 if they are this node's.
    pub universe: u32,
    /// Where among the CPUs that this node's ranks may use those begin that it has for itself, where the ranks of
    /// several nodes outnumber the CPUs that they share; else [`NO_SHARE`].
    pub first_cpu: u32,
    /// Not 0: somewhere in the job ranks of several nodes outnumber the CPUs that they share. The same at all nodes.
    pub shares_cpus: u32,
}

/// [`NodeBoot::first_cpu`] of a node that shares its CPUs with no other one, or has enough of them.
pub const NO_SHARE: u32 = u32::MAX;

impl NodeBoot {
    /// That of a node of so many ranks that is alone in its job and has one CPU, and whose ranks spawn none.
    #[must_use]
    pub const fn new(ranks: *const RankBoot, count: u32) -> Self {
        Self {
            magic: MAGIC,
            version: VERSION,
            node_ranks: count,
            world_ranks: count,
            cpus: 1,
            environment: null(),
            ranks,
            places: null(),
            places_len: 0,
            report_fd: 2,
            node: 0,
            nodes: 1,
            homes: null(),
            network: null(),
            desk: null(),
            capacity: count,
            summon: None,
            job: 0,
            universe: 0,
            first_cpu: NO_SHARE,
            shares_cpus: 0,
        }
    }

    /// Where reports go.
    #[must_use]
    pub fn report_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: whoever makes a record keeps its descriptor open.
        unsafe { BorrowedFd::borrow_raw(self.report_fd) }
    }
}

/// One rank, as the loader made it.
#[repr(C)]
pub struct RankBoot {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// Index on this node.
    pub local_rank: u32,
    /// Rank in `MPI_COMM_WORLD`.
    pub world_rank: u32,
    /// Number of the program of the command line (`prog0 : prog1`), `MPI_APPNUM`.
    pub app_number: u32,
    /// CPU this rank is bound to, or -1.
    pub cpu: i32,
    /// A [`Lifecycle`] value, written by the node image, read by the loader when
    /// the rank's task ends: a task that ends `Initialized` has left its peers waiting.
    pub lifecycle: AtomicU32,
    /// Set (the code in the low half of the word, 1 in the upper) before the rank ends
    /// itself in `MPI_Abort`; 0 otherwise. The loader then ends the job with that code. With
    /// 2 in the upper half only this rank ends, and the job goes on ([`RankBoot::encode_departure`]).
    pub abort: AtomicU64,
    /// Process id of the rank's task, written by the loader; 0 before it runs.
    pub pid: AtomicI32,
    /// A [`Touched`] value while the rank's own task accesses memory that its program has protected, for a message; 0
    /// otherwise. Written by the node image, read by the loader when that has killed the rank.
    pub touched: AtomicU32,
    /// The node image's functions; written by the loader before the rank starts. NULL when the
    /// job was started without a node image (`--no-mpi`).
    pub api: *const NodeApi,
    /// The node, as [`NodeOpen`] returned it.
    pub node: *mut c_void,
    /// NULL, or a copy of `lifecycle` that another process sees; valid for as long as this record.
    pub witness: *const AtomicU32,
    /// Called when the rank has come to [`Lifecycle::Finalized`], by its own task in a call of its program.
    pub on_finalized: Option<extern "C" fn()>,
    /// Called before the rank ends itself in `MPI_Abort`, with the code, by its own task in a call of its program. For
    /// those whom `abort` does not reach.
    pub on_aborted: Option<extern "C" fn(i32)>,
    /// NULL, or the path of what the rank's task executes when its program, which is linked to an MPI library, has
    /// ended: [`AUDIT_LIBRARY`], which then ends with the status that its first argument tells in two letters.
    pub leaver: *const c_char,
    /// An MPI library of the rank sees to that.
    pub leaves: AtomicBool,
    /// NULL, or what ranks of this address space have mapped at addresses of their choice.
    pub claims: *const Claims,
    /// Writes what the rank's C library holds back of its standard output; set by an MPI library of the rank.
    pub last_words: Hook,
    /// NULL for a rank that the job began with, or the world that it was spawned into.
    pub world: *const WorldBoot,
    /// NULL, or a ring for the rank's events.
    pub trace: *const Ring,
    /// An [`InitialErrhandler`](crate::settings::InitialErrhandler); 0: that of the settings.
    pub initial_errhandler: u32,
    /// NULL, or the blocks of the rank's C library: stored by a library that notes them for the checker.
    pub blocks: AtomicPtr<Blocks>,
    /// Gives back to the kernel what the rank's C library holds free beyond its allowance; set by an MPI library of the
    /// rank. Called from time to time by a thread of the program's that is about to sleep in MPI.
    pub spare: Hook,
    /// The program has called `MPI_Init`; written by the node image. One that uses sessions only never does.
    pub has_begun: AtomicBool,
    /// Called when it has, by its own task.
    pub on_begun: Option<extern "C" fn()>,
}

/// A function that a library of a rank leaves for those who end the rank, or for the engine, or none. It runs with the
/// rank's C library, on a task of the rank, and waits for no other rank.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Hook(AtomicPtr<c_void>);

impl Hook {
    /// None yet.
    #[must_use]
    pub const fn none() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    /// Leaves this function.
    pub fn leave(&self, function: extern "C" fn()) {
        // Release pairs with the Acquire in `call`: what the function uses is older.
        self.0.store(function as *mut c_void, Ordering::Release);
    }

    /// There is none any more.
    pub fn forget(&self) {
        self.0.store(null_mut(), Ordering::Release);
    }

    /// Whether there is one.
    #[must_use]
    pub fn is_there(&self) -> bool {
        !self.0.load(Ordering::Acquire).is_null()
    }

    /// Calls it, if there is one.
    pub fn call(&self) {
        let function = self.0.load(Ordering::Acquire);
        if !function.is_null() {
            // SAFETY: only `leave` stores here, and the libraries of ranks are never unloaded.
            let function: extern "C" fn() = unsafe { core::mem::transmute(function) };
            function();
        }
    }
}

impl RankBoot {
    /// That of a rank that is not bound, before the node image is opened: the only one of its job, or else its numbers
    /// are to be changed.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            magic: MAGIC,
            version: VERSION,
            local_rank: 0,
            world_rank: 0,
            app_number: 0,
            cpu: -1,
            lifecycle: AtomicU32::new(Lifecycle::Fresh as u32),
            abort: AtomicU64::new(0),
            pid: AtomicI32::new(0),
            touched: AtomicU32::new(0),
            api: null(),
            node: null_mut(),
            witness: null(),
            on_finalized: None,
            on_aborted: None,
            leaver: null(),
            leaves: AtomicBool::new(false),
            claims: null(),
            last_words: Hook::none(),
            world: null(),
            trace: null(),
            initial_errhandler: 0,
            blocks: AtomicPtr::new(null_mut()),
            spare: Hook::none(),
            has_begun: AtomicBool::new(false),
            on_begun: None,
        }
    }

    /// Notes that the program has called `MPI_Init`.
    pub fn begin(&self) {
        self.has_begun.store(true, Ordering::Release);
        if let Some(tell) = self.on_begun {
            tell();
        }
    }

    /// Notes how far the rank has come.
    pub fn reach(&self, stage: Lifecycle) {
        self.lifecycle.store(stage as u32, Ordering::Release);
        // SAFETY: NULL, or valid for as long as this record.
        if let Some(witness) = unsafe { self.witness.as_ref() } {
            witness.store(stage as u32, Ordering::Release);
        }
        if let Some(tell) = self.on_finalized
            && stage == Lifecycle::Finalized
        {
            tell();
        }
    }

    /// Encodes an abort code for [`RankBoot::abort`].
    #[must_use]
    pub const fn encode_abort(code: i32) -> u64 {
        (1 << 32) | code as u32 as u64
    }

    /// The code a rank aborted the job with, if it did.
    #[must_use]
    pub const fn decode_abort(word: u64) -> Option<i32> {
        Self::decode(word, 1)
    }

    /// Encodes, for [`RankBoot::abort`], that this rank ends with its communicator and others go on.
    #[must_use]
    pub const fn encode_departure(code: i32) -> u64 {
        (2 << 32) | code as u32 as u64
    }

    /// The code a rank ends with while others go on, if it does.
    #[must_use]
    pub const fn decode_departure(word: u64) -> Option<i32> {
        Self::decode(word, 2)
    }

    const fn decode(word: u64, kind: u64) -> Option<i32> {
        if word >> 32 == kind { Some(word as u32 as i32) } else { None }
    }
}

impl Default for RankBoot {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: the pointers are set before any rank starts and never change; what they
// point to is either immutable or atomic.
unsafe impl Sync for RankBoot {}

/// How far a rank has come in its use of MPI.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    /// Neither `MPI_Init` nor a session yet; such a rank may end at will.
    Fresh = 0,
    /// Between initialisation and finalisation: its end would strand its peers.
    Initialized = 1,
    /// After `MPI_Finalize`.
    Finalized = 2,
}

/// The buffer that a rank's own task accesses: see [`RankBoot::touched`].
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touched {
    /// Of a send.
    Send = 1,
    /// Of a receive.
    Receive = 2,
}

/// Which facade attaches.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbiId {
    /// `libmpi.so.12`.
    Mpich = 12,
    /// `libmpi_abi.so.1`.
    Mpi5 = 5,
    /// `libmpi.so.40`.
    OpenMpi = 40,
}

/// What [`NodeApi::attach`] gives to a facade.
#[repr(C)]
pub struct Attached {
    /// The engine's rank, first argument of every function of `table`.
    pub rank: *const c_void,
    /// The function table of the facade's ABI (`binding::Table<A>`).
    pub table: *const c_void,
}

/// Functions of the node image that are not MPI functions.
#[repr(C)]
pub struct NodeApi {
    /// [`VERSION`].
    pub version: u32,
    /// Connects the calling task, a rank, with the engine. Idempotent; `abi` is an
    /// [`AbiId`]; `objects` is what `Abi::context` finds, NULL for most; `table` is where the facade will keep the
    /// table, so that the node image can give it another one, or NULL. Returns NULLs for an ABI that the image does
    /// not hold.
    pub attach: unsafe extern "C" fn(
        boot: *const RankBoot,
        abi: u32,
        objects: *const c_void,
        table: *const AtomicPtr<c_void>,
    ) -> Attached,
    /// Writes the policies' counters to `NodeBoot::report_fd` when `COHORT_STATS` asks
    /// for them. Called once, by the root task after all ranks ended. A singleton has nobody to
    /// help and makes no report.
    pub report: unsafe extern "C" fn(node: *mut c_void),
    /// Gives the statistics of the node's ranks as JSON, in pieces; `docs/insight.md` describes it. Called as `report`
    /// is, when `COHORT_STATS` asks for a report.
    pub statistics: unsafe extern "C" fn(node: *mut c_void, context: *mut c_void, take: TakeText),
    /// For a launcher that is asked what its ranks do.
    pub live: LiveApi,
    /// Tells what a rank of the node waits for and has in its queues. By any task, at any time, also when the rank
    /// has stopped or ended. Takes little time, and says that the rank is busy if it cannot look.
    pub look: unsafe extern "C" fn(node: *mut c_void, rank: u32, hear: Hear, data: *mut c_void),
    /// A number that stands for the sleep of a rank, all of whose threads that are in MPI sleep until another rank of
    /// the job wakes them, and how many these are (`docs/insight.md`). `threads` 0: that is not so.
    pub rest: unsafe extern "C" fn(node: *mut c_void, rank: u32) -> Rest,
    /// Adds `count` ranks of the node from index `first` on, whose records are complete: the next ones, or ones whose
    /// places were made [ready](NodeApi::renew). By the launcher, one call at a time, before it starts them.
    pub add: unsafe extern "C" fn(node: *mut c_void, first: u32, count: u32),
    /// Makes the places of `count` ranks from index `first` on ready for others. All their tasks have ended, and no
    /// communicator joins them with anybody. `false` if something of one of them is left, or somebody is busy with it.
    /// By the launcher, one call at a time.
    pub renew: unsafe extern "C" fn(node: *mut c_void, first: u32, count: u32) -> bool,
    /// Wakes a rank that waits for an answer of the launcher ([`Desk`]).
    pub wake: unsafe extern "C" fn(node: *mut c_void, rank: u32),
    /// Joins the node with other jobs: `bridge` is a `cohort_bridge::Bridge` that stays. Once, by the launcher.
    pub open_bridge: unsafe extern "C" fn(node: *mut c_void, bridge: *const c_void),
    /// Something has come for a rank over the bridge; false if there is no such rank. By any thread of the launcher.
    pub arrived: unsafe extern "C" fn(node: *mut c_void, rank: u32) -> bool,
    /// The first number of ranks of other jobs.
    pub first_foreign: unsafe extern "C" fn(node: *mut c_void) -> u32,
    /// The rank with this number in the job has failed, all of whose tasks have ended, and the others go on. Once for
    /// each, by the launcher; in the same order at all nodes.
    pub died: unsafe extern "C" fn(node: *mut c_void, number: u32),
    /// Gives what the checker has found in the ranks of the node, in pieces of text as [`crate::check`] has it. Called
    /// as `report` is, when `COHORT_CHECK` asks for the checker.
    pub findings: unsafe extern "C" fn(node: *mut c_void, context: *mut c_void, take: TakeText),
    /// For a launcher of one of several nodes whose ranks survive each other.
    pub survival: SurvivalApi,
    /// The launcher is about to end ranks: none of them is to die while it notes what the checker has found. By the
    /// launcher, once or more.
    pub hold_findings: unsafe extern "C" fn(node: *mut c_void),
}

/// What ranks that survive each other want other nodes to know, and what these say. By the launcher alone.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SurvivalApi {
    /// A rank of the node, by its index here, has died. Frees what it had of the network; `false` if it may have had a
    /// part of that half changed: then the node cannot go on.
    pub free: unsafe extern "C" fn(node: *mut c_void, rank: u32) -> bool,
    /// Grows whenever there may be something to tell.
    pub words: unsafe extern "C" fn(node: *mut c_void) -> u32,
    /// The first closed context from this place on in the table of them, and the place behind it in the upper half;
    /// `u64::MAX` if there is none.
    pub next_closed: unsafe extern "C" fn(node: *mut c_void, place: u32) -> u64,
    /// Nobody communicates in a context any more.
    pub close: unsafe extern "C" fn(node: *mut c_void, context: u32),
    /// Whether a rank has found that it cannot reach another node.
    pub is_suspected: unsafe extern "C" fn(node: *mut c_void, other: u32) -> bool,
    /// Gives each agreement with members of other nodes for which all members here have said what they say, once.
    pub agreements: unsafe extern "C" fn(node: *mut c_void, context: *mut c_void, take: TakeAgreement),
    /// What members of several nodes have agreed on.
    pub agreed: unsafe extern "C" fn(node: *mut c_void, what: *const Agreement),
    /// Ranks of another job have failed, and this one goes on: `line` is the `cohort_bridge::Line` to their node, and
    /// `index` the rank's there, or `u32::MAX` for all. By any thread of the launcher.
    pub failed_outside: unsafe extern "C" fn(node: *mut c_void, line: *const c_void, index: u32),
}

/// Takes what a node's members of a communicator say.
pub type TakeAgreement = unsafe extern "C" fn(context: *mut c_void, what: *const Agreement);

/// An agreement of members of several nodes: what those of one node say, or what all have come to.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Agreement {
    /// Context of the communicator.
    pub context: u32,
    /// Which of its agreements.
    pub number: u32,
    /// All bits that everybody has said.
    pub word: u32,
    /// So many failures everybody has acknowledged.
    pub acknowledged: u32,
    /// Who has failed: the first so many. Of what all have come to.
    pub failures: u32,
    /// Fresh numbers of communicators; 0 if none is left.
    pub numbers: [u32; 3],
    /// All members, by their numbers in the job. Of what one node says.
    pub members: *const u32,
    /// How many they are.
    pub members_len: u32,
}

/// What [`NodeApi::rest`] says.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Threads that sleep; 0: not all do that are in MPI, or others than ranks may wake them.
    pub threads: u64,
    /// Grows with each sleep and each wake-up of the rank.
    pub number: u64,
}

/// A process that nobody started for MPI, and that spawns: it starts a launcher in its own address space, which finds
/// this record, takes the process for rank 0 of a job, and starts the others. The record stays.
///
/// The launcher is a child of the process, not the reverse. So it learns of the process's end by a descriptor, and the
/// process waits for the launcher's end before its own.
#[repr(C)]
#[derive(Debug)]
pub struct Founder {
    /// Its node's record.
    pub boot: *const NodeBoot,
    /// Its process.
    pub process: i32,
    /// The path of the launcher's file.
    pub launcher: *const c_char,
    /// 1 when the process uses MPI no more, and is about to end.
    pub has_finished: AtomicU32,
}

// SAFETY: what the pointers lead to is complete before the launcher starts, and stays.
unsafe impl Sync for Founder {}

/// Starts a launcher for the only rank of a node, which nobody started for MPI: by a call of the rank's own, once.
/// Returns NULL when there is one, whose number the desk has then, or why there is none, as a C string that stays.
pub type Summon = unsafe extern "C" fn() -> *const c_char;

/// Takes a piece of text for the context that it is called with.
pub type TakeText = unsafe extern "C" fn(context: *mut c_void, text: *const u8, length: usize);

/// Type of the join library's exported function: makes the only rank of a node a rank of the manager's
/// job, by filling in what is the job's in both records. Returns 0, or the status to exit with after it
/// has said why. Both records are complete for a job of one rank and stay where they are.
pub type NodeJoin = unsafe extern "C" fn(node: *mut NodeBoot, rank: *mut RankBoot) -> core::ffi::c_int;

/// Type of the join library's other function: starts a launcher for the node of one rank whose record it gets, in the
/// address space of the calling process. As [`Summon`].
pub type NodeFound = unsafe extern "C" fn(node: *const NodeBoot) -> *const c_char;

/// Type of the node image's exported function: makes the node, stores it in `*node`
/// and returns the API, or NULL when a record's magic or version differ or memory is short.
/// The node image keeps the pointer to `boot`.
pub type NodeOpen = unsafe extern "C" fn(boot: *const NodeBoot, node: *mut *mut c_void) -> *const NodeApi;
