//! Threads that break the level which the program has asked for (MPI-4.1, 11.6.2).

use super::findings::Site;
use super::{shapes, with};
use crate::subject::observers::Observed;
use cohort_base::check::Mistake;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The levels, lowest first.
const LEVELS: [&str; 4] = ["MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"];

/// What is known of a rank's threads. All accesses are Relaxed: what matters is what one thread finds of its own, or
/// what it finds of another that is in a call at the same time.
#[derive(Default)]
pub struct Threads {
    /// The thread that has begun MPI, plus 1.
    first: AtomicU32,
    /// The place of the level in [`LEVELS`], plus 1; 0 while MPI has not begun.
    level: AtomicU32,
    /// One that is in a call, plus 1.
    inside: AtomicU64,
}

/// A level as any of the ABIs has it.
fn level(value: i32) -> u32 {
    match value {
        0 => 0,
        1 | 1024 => 1,
        2 | 2048 => 2,
        _ => 3,
    }
}

/// Functions that any thread may call at any time (MPI-4.1, 11.4.1).
fn is_free(name: &str) -> bool {
    let free = [
        "MPI_Initialized",
        "MPI_Finalized",
        "MPI_Query_thread",
        "MPI_Is_thread_main",
        "MPI_Get_version",
        "MPI_Get_library_version",
        "MPI_Abort",
        "MPI_Error_string",
        "MPI_Error_class",
        "MPI_Session_create_errhandler",
        "MPI_Session_call_errhandler",
        "MPI_Errhandler_free",
        "MPI_Errhandler_f2c",
        "MPI_Errhandler_c2f",
        "MPI_Remove_error_class",
        "MPI_Remove_error_code",
        "MPI_Remove_error_string",
    ];
    let starts = ["MPI_T_", "MPI_Info_", "MPI_Add_error_"];
    free.contains(&name) || starts.iter().any(|start| name.starts_with(start))
}

impl Threads {
    /// A call begins.
    pub fn begin(&self, observed: &Observed<'_>) {
        let level = self.level.load(Ordering::Relaxed);
        if level == 0 || level == 4 || observed.depth > 0 || is_free(observed.call.said()) {
            return;
        }
        let own = observed.thread as u32 + 1;
        if level < 3 {
            if self.first.load(Ordering::Relaxed) != own {
                tell(observed, level, "on a thread that has not begun MPI", None);
            }
            return;
        }
        let number = observed.call.number;
        let entered = u64::from(number) << 32 | u64::from(own);
        match self.inside.compare_exchange(0, entered, Ordering::Relaxed, Ordering::Relaxed) {
            Err(other) if other as u32 != own => {
                let name = crate::calls::all()[(other >> 32) as usize].said();
                tell(observed, level, "while another thread of the rank is in", Some(name));
            }
            _ => {}
        }
    }

    /// A call has returned.
    pub fn end(&self, observed: &Observed<'_>) {
        if observed.depth > 0 {
            return;
        }
        let own = observed.thread as u32 + 1;
        match shapes::role(observed.call) {
            shapes::Role::Init if self.level.load(Ordering::Relaxed) == 0 => {
                self.first.store(own, Ordering::Relaxed);
                self.level.store(provided(observed) + 1, Ordering::Relaxed);
            }
            shapes::Role::Finalize => self.level.store(0, Ordering::Relaxed),
            _ => {}
        }
        let inside = self.inside.load(Ordering::Relaxed);
        if inside as u32 == own {
            let _ = self.inside.compare_exchange(inside, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// The level that a call which begins MPI has provided.
fn provided(observed: &Observed<'_>) -> u32 {
    let address = observed.call.named("provided").map_or(0, |place| observed.word(place));
    let address = core::ptr::with_exposed_provenance::<i32>(address as usize);
    // SAFETY: NULL, or where the call has written the level to.
    unsafe { address.as_ref() }.map_or(0, |&value| level(value))
}

fn tell(observed: &Observed<'_>, level: u32, why: &str, other: Option<&str>) {
    let rank = observed.subject.objects.rank().world_rank();
    with(|shared| {
        if !shared.kinds.has(Mistake::Threads) {
            return;
        }
        let site = Site { rank, name: observed.call.said(), address: shared.sites.of(observed.frame) };
        let level = LEVELS[level as usize - 1];
        let values = format_args!(
            "{why}{}{}; the level is {level}",
            if other.is_some() { " " } else { "" },
            other.unwrap_or("")
        );
        shared.findings.add(Mistake::Threads, &[site.did("called")], values);
    });
}
