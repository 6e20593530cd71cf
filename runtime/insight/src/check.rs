//! The checker: what `COHORT_CHECK=all` finds in the calls of a program (`docs/checking.md`).
//!
//! It looks at calls as they are observed, before and after the plain entry, and knows nothing of how the engine does
//! them. All ranks of a node tell the same [`Shared`], so that both ends of a message are known. What is found stays
//! there, and the loader asks for it when all ranks have ended.
//!
//! **Owner only**: it runs in the calls of the ranks' own threads, and takes a lock of the node for a short time. A
//! rank that dies with the lock ends the checker, not the others ([`with`]).

mod buffers;
mod completions;
mod far;
mod findings;
mod globals;
mod ignored;
mod layouts;
mod memory;
mod messages;
mod misuse;
mod objects;
mod orders;
mod partitions;
mod requests;
mod shapes;
mod sites;
mod threads;
mod traffic;
mod types;
mod waits;
mod windows;

use crate::calls::ParameterKind;
use crate::subject::Subject;
use crate::subject::observers::{Consumer, Observed};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use cohort_base::LocalRank;
use cohort_base::check::{Kinds, Mistake};
use cohort_base::clock::{ticks, ticks_per_us};
use cohort_base::text::complain;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use findings::{Findings, Site};
use requests::Requests;
use shapes::Role;
use sites::Sites;
use spin::{Mutex, MutexGuard};
use threads::Threads;
use traffic::Traffic;
use waits::Waits;

/// What is known of a node's ranks.
struct Shared {
    kinds: Kinds,
    findings: Findings,
    sites: Sites,
    ranks: BTreeMap<LocalRank, Known>,
    traffic: Traffic,
    waits: Waits,
    windows: BTreeMap<u32, windows::Known>,
    memory: memory::Memory,
    globals: globals::Globals,
    channels: partitions::Channels,
    far: far::Far,
}

// SAFETY: the addresses in it are those of the ranks' buffers, in the address space of all of them; types are counted
// atomically.
unsafe impl Send for Shared {}

/// What is known of a rank.
#[derive(Default)]
struct Known {
    requests: Requests,
    objects: BTreeMap<u32, objects::Made>,
    active: buffers::Active,
    /// What calls that have begun keep until they end, by thread and depth.
    open: BTreeMap<usize, completions::Open>,
    has_finalized: bool,
    /// Messages that were taken out of the queue, by their handles.
    matched: BTreeMap<u32, messages::Matched>,
    far_matched: BTreeMap<u32, far::Begun>,
    /// The last call of each thread, if it has failed.
    failed: BTreeMap<usize, ignored::Failed>,
}

static SHARED: Mutex<Shared> = Mutex::new(Shared {
    kinds: Kinds::NONE,
    findings: Findings::new(),
    sites: Sites::new(),
    ranks: BTreeMap::new(),
    traffic: Traffic::new(),
    waits: Waits::new(),
    windows: BTreeMap::new(),
    memory: memory::Memory::new(),
    globals: globals::Globals::new(),
    channels: partitions::Channels::new(),
    far: far::Far::new(),
});

/// Somebody has died with the lock, or kept it for very long.
static IS_LOST: AtomicBool = AtomicBool::new(false);

/// The launcher wants the lock, and ends the ranks: they leave it alone from now on.
static IS_WANTED: AtomicBool = AtomicBool::new(false);

/// The launcher has the lock.
static IS_HELD: AtomicBool = AtomicBool::new(false);

/// Microseconds for which the launcher tries to get the lock.
const HOLD_TIME: u64 = 500_000;

/// Microseconds for which a rank tries before it gives the checker up. Who has the lock may wait for a CPU.
const LOCK_TIME: u64 = 10_000_000;

/// Microseconds that count of one try at most: a job may be stopped for as long as its user likes (Ctrl-Z).
const TRY_TIME: u64 = 100_000;

/// Tries until it is done, or for so many microseconds; others get the CPU in between, for as long as the system says.
fn within(time: u64, mut is_done: impl FnMut() -> bool) {
    let (limit, most) = (time * ticks_per_us(), TRY_TIME * ticks_per_us());
    let (mut spent, mut last) = (0, ticks());
    while !is_done() && spent < limit {
        rustix::thread::sched_yield();
        let now = ticks();
        spent += now.wrapping_sub(last).min(most);
        last = now;
    }
}

/// The lock, unless it is lost. Who has missed a call cannot tell what the next ones mean.
fn lock() -> Option<MutexGuard<'static, Shared>> {
    if IS_LOST.load(Ordering::Relaxed) || IS_WANTED.load(Ordering::Relaxed) {
        return None;
    }
    let mut found = SHARED.try_lock();
    if found.is_none() {
        let mut is_out = false;
        within(LOCK_TIME, || {
            found = SHARED.try_lock();
            is_out = IS_LOST.load(Ordering::Relaxed) || IS_WANTED.load(Ordering::Relaxed);
            is_out || found.is_some()
        });
        if found.is_none() && !is_out {
            IS_LOST.store(true, Ordering::Relaxed);
        }
    }
    found
}

/// Does something with what is known, unless the checker is lost.
fn with<R>(act: impl FnOnce(&mut Shared) -> R) -> Option<R> {
    lock().map(|mut shared| act(&mut shared))
}

/// The checker of one rank's calls.
pub(crate) struct Checker {
    threads: Threads,
    failures: ignored::Failures,
    /// Calls were not seen. Relaxed: nothing else is told by it.
    has_missed: AtomicBool,
}

impl Checker {
    /// For a rank.
    pub(crate) fn new(subject: &Subject) -> Self {
        let rank = subject.objects.rank();
        let kinds = rank.node().settings().check_kinds;
        // Whoever starts ranks notes their processes before.
        if rank.boot().pid.load(Ordering::Relaxed) == 0 {
            complain(format_args!(
                "cohort: COHORT_CHECK=all finds nothing here: start the program by pip-exec --check\n"
            ));
        }
        with(|shared| {
            shared.kinds = kinds;
            // A rank that was spawned may have the place of one that has ended.
            shared.ranks.insert(rank.id(), Known::default());
            shared.memory.forget(rank.id());
            shared.globals.look_again();
        });
        Self { threads: Threads::default(), failures: ignored::Failures::default(), has_missed: AtomicBool::new(false) }
    }
}

impl Shared {
    fn known(&mut self, rank: LocalRank) -> &mut Known {
        self.ranks.entry(rank).or_default()
    }
}

/// A call that is looked at.
struct Call<'a> {
    observed: &'a Observed<'a>,
    role: Role,
    rank: LocalRank,
    site: Site,
}

impl Call<'_> {
    /// The word of the parameter with this name, 0 if there is none.
    fn word(&self, name: &str) -> u64 {
        self.observed.call.named(name).map_or(0, |place| self.observed.word(place))
    }

    /// The number that the parameter with this name is.
    fn number(&self, name: &str) -> Option<i64> {
        self.observed.call.named(name).map(|place| self.observed.number(place))
    }

    /// The `int` at the address that the parameter with this name is; 0 if it is NULL.
    ///
    /// # Safety
    /// The call has ended without an error, and the parameter is an output.
    unsafe fn output(&self, name: &str) -> i32 {
        let address = core::ptr::with_exposed_provenance::<i32>(self.word(name) as usize);
        // SAFETY: NULL, or what the call has written to.
        unsafe { address.as_ref() }.copied().unwrap_or(0)
    }

    /// The key of what the call keeps until it ends.
    fn key(&self) -> usize {
        self.observed.thread
    }
}

impl Checker {
    /// Looks at a call of the program; callbacks are passed by.
    fn look(&self, observed: &Observed<'_>, act: impl FnOnce(&mut Shared, &Call<'_>)) {
        let role = shapes::role(observed.call);
        if observed.depth > 0 || role == Role::Other {
            return;
        }
        let rank = observed.subject.objects.rank();
        with(|shared| {
            let address = shared.sites.of(observed.frame);
            let site = Site { rank: rank.world_rank(), name: observed.call.said(), address };
            act(shared, &Call { observed, role, rank: rank.id(), site });
        });
    }
}

impl Consumer for Checker {
    fn begin(&self, observed: &Observed<'_>) {
        self.threads.begin(observed);
        self.failures.begin(observed);
        self.look(observed, |shared, call| match call.role {
            Role::Finalize => shared.finalizes(call),
            Role::Free => {
                if call.site.name == "MPI_Win_free" {
                    memory::window_freed(shared, call);
                }
                objects::frees(shared, call);
            }
            Role::Release => memory::released(shared, call),
            Role::Detach => memory::detached(shared, call),
            Role::Allocate | Role::Attach => {}
            Role::Local => memory::begins(shared, call, &buffers::spans(call)),
            Role::Access => windows::begins(shared, call),
            Role::Synchronise => windows::synchronises(shared, call),
            Role::Mark => partitions::marks(shared, call),
            _ => {
                if call.role == Role::BeginOther {
                    windows::leaves(shared, call);
                }
                memory::begins(shared, call, &buffers::spans(call));
                completions::begins(shared, call);
            }
        });
    }

    fn end(&self, observed: &Observed<'_>, code: i32, _ended: u64) {
        self.threads.end(observed);
        self.failures.end(observed, code);
        let is_well = code == 0;
        self.look(observed, |shared, call| match call.role {
            Role::Makes if is_well => {
                if call.site.name == "MPI_Win_create" {
                    memory::window_made(shared, call);
                }
                objects::makes(shared, call);
            }
            Role::Allocate if is_well => memory::allocated(shared, call),
            Role::Attach if is_well => memory::attached(shared, call),
            Role::Access if is_well => windows::accessed(shared, call),
            Role::Finalize
            | Role::Free
            | Role::Local
            | Role::Makes
            | Role::Access
            | Role::Synchronise
            | Role::Allocate
            | Role::Attach
            | Role::Detach
            | Role::Mark
            | Role::Release => {}
            _ => {
                completions::ends(shared, call, is_well);
                if is_well && call.role == Role::BeginsObject {
                    objects::makes(shared, call);
                }
            }
        });
    }

    fn miss(&self) {
        if !self.has_missed.swap(true, Ordering::Relaxed) {
            with(|shared| {
                shared.findings.close("a rank has more than 64 threads that call MPI, and no more is told of the node");
                shared.far.give_up();
            });
        }
    }

    fn substitute(&self, observed: &Observed<'_>) -> Option<(usize, u64)> {
        let key = observed.thread;
        let rank = observed.subject.objects.rank().id();
        if observed.depth > 0 {
            return None;
        }
        with(|shared| shared.known(rank).open.get(&key).and_then(|open| open.substitute(observed)))?
    }
}

impl Shared {
    /// A rank begins to end its use of MPI: what it has left?
    fn finalizes(&mut self, call: &Call<'_>) {
        requests::finalizes(self, call);
        messages::finalizes(self, call);
        objects::finalizes(self, call);
        let known = self.known(call.rank);
        known.has_finalized = true;
    }
}

/// Ranks are about to be ended: takes the lock for good, so that none of them dies with it. A rank that has it is given
/// some time, as it runs on.
pub fn hold_findings() {
    // Ranks that come and go would have the lock whenever this one looks.
    IS_WANTED.store(true, Ordering::Relaxed);
    within(HOLD_TIME, || {
        if IS_HELD.load(Ordering::Relaxed) || IS_LOST.load(Ordering::Relaxed) {
            return true;
        }
        let Some(guard) = SHARED.try_lock() else {
            return false;
        };
        core::mem::forget(guard);
        IS_HELD.store(true, Ordering::Relaxed);
        true
    });
}

/// Writes what was found, as `cohort_base::check` has it. All ranks of the node have ended.
///
/// # Errors
/// Those of `out`.
pub fn write_findings(out: &mut dyn fmt::Write) -> fmt::Result {
    if IS_HELD.load(Ordering::Relaxed) {
        // SAFETY: the calling thread, the launcher's, has the lock and no guard of it (`hold_findings`).
        unsafe { SHARED.force_unlock() };
    }
    let Some(mut shared) = SHARED.try_lock() else {
        return findings::note(out, "a rank has ended inside the checker, and what was found is lost");
    };
    let Shared { kinds, findings, ranks, traffic, waits, .. } = &mut *shared;
    let is_lost = IS_LOST.load(Ordering::Relaxed);
    if is_lost {
        findings.note("a rank was in the checker for 10 s and more: nothing is told of what came after that");
    }
    if kinds.has(Mistake::Unreceived) && !is_lost {
        traffic.tell_unreceived(|rank| ranks.get(&rank).is_some_and(|known| known.has_finalized), findings);
    }
    if kinds.has(Mistake::Wildcards) && !is_lost {
        traffic.tell_orders(|rank| ranks.get(&rank).is_some_and(|known| known.has_finalized), findings);
    }
    if kinds.has(Mistake::Deadlocks) && !is_lost {
        waits.tell(findings);
    }
    shared.findings.write(out)?;
    shared.far.write(out)
}

/// The neutral handles of an array argument.
fn handles(call: &Call<'_>, place: usize, count: usize) -> Vec<u32> {
    let address = call.observed.word(place);
    // SAFETY: the program passes so many handles, as the standard demands.
    (0..count).map(|index| unsafe { call.observed.words.request_at(address, index) }).collect()
}

/// The place of a call's first parameter of a kind, whatever its form.
fn place_of(call: &Call<'_>, kind: ParameterKind) -> Option<usize> {
    call.observed.call.parameters.iter().position(|parameter| parameter.kind == kind)
}
