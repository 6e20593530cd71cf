//! Performance variables: what the calling rank did for others and how often it slept. They count all the time
//! and cannot be written.

use super::{answer, give, look_up, nth, open, result};
use crate::arguments::{Outcome, output};
use crate::context::Process;
use cohort_abi::{Abi, Handle, neutral};
use cohort_engine::rank::StealCounts;
use core::ffi::{c_char, c_int, c_void};

/// One counter.
pub(super) struct Counter {
    name: &'static str,
    help: &'static str,
    read: fn(&StealCounts) -> u64,
}

/// A counter that a handle stands for, and its session.
#[derive(Clone, Copy)]
pub(super) struct Bound {
    index: usize,
    session: *mut c_void,
}

// SAFETY: the session is a number that nobody follows.
unsafe impl Send for Bound {}

macro_rules! counters {
    ($($name:literal $help:literal $($field:ident).+;)*) => {
        /// All of them.
        pub(super) static COUNTERS: &[Counter] = &[$(Counter {
            name: $name,
            help: $help,
            read: |counts| counts.$($field).+,
        },)*];
    };
}

counters! {
    "cohort_steal_shm_attempts" "tries to progress another rank's messages within the node" shm.attempts;
    "cohort_steal_shm_hits" "tries that moved something" shm.hits;
    "cohort_steal_shm_empty" "tries that found nothing to do" shm.empty;
    "cohort_steal_shm_busy" "tries that found another rank at work" shm.busy;
    "cohort_steal_shm_bytes" "bytes of messages moved for other ranks" shm.bytes;
    "cohort_steal_net_attempts" "tries to progress another rank's network messages" net.attempts;
    "cohort_steal_net_hits" "tries on the network that moved something" net.hits;
    "cohort_steal_net_empty" "tries on the network that found nothing to do" net.empty;
    "cohort_steal_net_busy" "tries on the network that found another rank at work" net.busy;
    "cohort_steal_net_bytes" "bytes of network messages moved for other ranks" net.bytes;
    "cohort_parks" "times this rank went to sleep while it waited" parks;
    "cohort_wakes" "times this rank woke another one" wakes;
    "cohort_own_turns" "turns that a signal or a thread of this rank took while it computed" own_turns;
    "cohort_own_hits" "those of them that moved something" own_hits;
    "cohort_offloaded" "sends and receives that this rank left to a dedicated worker to post" offloaded;
    "cohort_auto_helped" "auto: receives left behind whose messages were met while this rank computed" helped;
    "cohort_auto_late" "auto: receives left behind whose messages this rank found when it came to wait" late;
    "cohort_auto_in_time" "auto: receives left behind whose messages came while this rank waited" in_time;
    "cohort_auto_turned_on" "auto: times the fallback was turned on" turned_on;
    "cohort_auto_turned_off" "auto: times the fallback was turned off" turned_off;
    "cohort_auto_helper_chosen" "auto: times the fallback was a helper, because no signal could reach the program" helper_chosen;
}

/// `MPI_T_pvar_get_num`.
///
/// # Safety
/// MPI's: `count` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn pvar_get_num<A: Abi>(caller: *const c_void, count: *mut c_int) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { open::<A>(caller, |_| result(count, COUNTERS.len() as c_int)) }
}

/// `MPI_T_pvar_get_index`.
///
/// # Safety
/// MPI's: `name` is a string, `index` valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn pvar_get_index<A: Abi>(
    caller: *const c_void,
    name: *const c_char,
    class: c_int,
    index: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        open::<A>(caller, |_| {
            if A::tool_class_in(class) != neutral::T_PVAR_CLASS_COUNTER {
                return Err(neutral::T_ERR_INVALID_NAME);
            }
            look_up(COUNTERS.iter().map(|counter| counter.name), name, index)
        })
    }
}

/// `MPI_T_pvar_get_info`.
///
/// # Safety
/// MPI's: the results are NULL or valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn pvar_get_info<A: Abi>(
    caller: *const c_void,
    index: c_int,
    name: *mut c_char,
    name_length: *mut c_int,
    verbosity: *mut c_int,
    class: *mut c_int,
    datatype: *mut A::Datatype,
    words: *mut *mut c_void,
    text: *mut c_char,
    text_length: *mut c_int,
    bind: *mut c_int,
    read_only: *mut c_int,
    continuous: *mut c_int,
    atomic: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        open::<A>(caller, |_| {
            let counter = nth(COUNTERS, index)?;
            let kind = neutral::handle::UNSIGNED_LONG_LONG;
            give(counter.name, name, name_length);
            give(counter.help, text, text_length);
            answer(
                verbosity,
                A::tool_verbosity_out(neutral::T_VERBOSITY_TUNER_BASIC),
            );
            answer(class, A::tool_class_out(neutral::T_PVAR_CLASS_COUNTER));
            answer(datatype, A::Datatype::from_neutral(kind));
            answer(words, core::ptr::null_mut());
            answer(bind, A::tool_bind_out(neutral::T_BIND_NO_OBJECT));
            answer(read_only, 1);
            answer(continuous, 1);
            answer(atomic, 0);
            Ok(())
        })
    }
}

/// `MPI_T_pvar_session_create`.
///
/// # Safety
/// MPI's: `session` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn pvar_session_create<A: Abi>(
    caller: *const c_void,
    session: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        open::<A>(caller, |process| {
            output(session).map_err(|_| neutral::T_ERR_INVALID)?;
            session.write(process.tool.sessions.add(()));
            Ok(())
        })
    }
}

/// `MPI_T_pvar_session_free`; its handles are freed with it.
///
/// # Safety
/// MPI's: `session` is valid for reads and writes; `caller` is the calling rank.
pub unsafe extern "C" fn pvar_session_free<A: Abi>(
    caller: *const c_void,
    session: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        open::<A>(caller, |process| {
            output(session).map_err(|_| neutral::T_ERR_INVALID)?;
            let ended = *session;
            let removed = process.tool.sessions.remove(ended);
            removed.ok_or(neutral::T_ERR_INVALID_SESSION)?;
            process
                .tool
                .performances
                .remove_all(|bound| bound.session == ended);
            session.write(core::ptr::null_mut());
            Ok(())
        })
    }
}

/// Refuses what is no session.
fn check_session(process: &Process, session: *mut c_void) -> Outcome<()> {
    let known = process.tool.sessions.get(session);
    known.ok_or(neutral::T_ERR_INVALID_SESSION)
}

/// `MPI_T_pvar_handle_alloc`.
///
/// # Safety
/// MPI's: the results are valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn pvar_handle_alloc<A: Abi>(
    caller: *const c_void,
    session: *mut c_void,
    index: c_int,
    _object: *mut c_void,
    handle: *mut *mut c_void,
    count: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        open::<A>(caller, |process| {
            check_session(process, session)?;
            nth(COUNTERS, index)?;
            output(handle).map_err(|_| neutral::T_ERR_INVALID)?;
            result(count, 1)?;
            let index = index as usize;
            handle.write(process.tool.performances.add(Bound { index, session }));
            Ok(())
        })
    }
}

/// `MPI_T_pvar_handle_free`.
///
/// # Safety
/// MPI's: `handle` is valid for reads and writes; `caller` is the calling rank.
pub unsafe extern "C" fn pvar_handle_free<A: Abi>(
    caller: *const c_void,
    session: *mut c_void,
    handle: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        open::<A>(caller, |process| {
            output(handle).map_err(|_| neutral::T_ERR_INVALID)?;
            of_handle(process, session, *handle)?;
            process.tool.performances.remove(*handle);
            handle.write(core::ptr::null_mut());
            Ok(())
        })
    }
}

/// The counter of a session's handle.
fn of_handle(
    process: &Process,
    session: *mut c_void,
    handle: *mut c_void,
) -> Outcome<&'static Counter> {
    check_session(process, session)?;
    let bound = process.tool.performances.get(handle);
    let bound = bound.filter(|bound| bound.session == session);
    Ok(&COUNTERS[bound.ok_or(neutral::T_ERR_INVALID_HANDLE)?.index])
}

/// `MPI_T_pvar_read`.
///
/// # Safety
/// MPI's: `buffer` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn pvar_read<A: Abi>(
    caller: *const c_void,
    session: *mut c_void,
    handle: *mut c_void,
    buffer: *mut c_void,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        open::<A>(caller, |process| {
            let counter = of_handle(process, session, handle)?;
            let counts = process.objects.rank().steal_counts();
            result(buffer.cast(), (counter.read)(&counts))
        })
    }
}

macro_rules! impossible {
    ($($(#[$page:meta])* $name:ident($($argument:ident: $type:ty)?) $all:ident $error:ident;)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// `caller` is the calling rank.
        pub unsafe extern "C" fn $name<A: Abi>(
            caller: *const c_void,
            session: *mut c_void,
            handle: *mut c_void,
            $($argument: $type,)?
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                open::<A>(caller, |process| {
                    if $all && handle.addr() == A::T_PVAR_ALL_HANDLES {
                        // Variables to which it does not apply are passed over.
                        return check_session(process, session);
                    }
                    of_handle(process, session, handle)?;
                    Err(neutral::$error)
                })
            }
        }
    )*};
}

/// Whether a call takes `MPI_T_PVAR_ALL_HANDLES`.
const TAKES_ALL: bool = true;
/// The same, for those that do not.
const TAKES_ONE: bool = false;

impossible! {
    /// `MPI_T_pvar_start`: the counters count all the time.
    pvar_start() TAKES_ALL T_ERR_PVAR_NO_STARTSTOP;
    /// `MPI_T_pvar_stop`: the counters count all the time.
    pvar_stop() TAKES_ALL T_ERR_PVAR_NO_STARTSTOP;
    /// `MPI_T_pvar_reset`: the counters are read-only.
    pvar_reset() TAKES_ALL T_ERR_PVAR_NO_WRITE;
    /// `MPI_T_pvar_write`: the counters are read-only.
    pvar_write(_buffer: *const c_void) TAKES_ONE T_ERR_PVAR_NO_WRITE;
    /// `MPI_T_pvar_readreset`: the counters are read-only.
    pvar_readreset(_buffer: *mut c_void) TAKES_ONE T_ERR_PVAR_NO_ATOMIC;
}
