//! Performance variables: what the calling rank did for others and how often it slept. They count all the time
//! and cannot be written.

use super::{answer, give, given, look_up, nth, open, result, wanted};
use crate::arguments::{Call, Outcome};
use crate::passed::{Base, InOut, Out, Text, TextOut};
use crate::process::Process;
use crate::process::tools::Bound;
use cohort_abi::{Abi, Handle, neutral};
use cohort_engine::rank::StealCounts;
use core::ffi::{c_int, c_void};

/// One counter.
pub(super) struct Counter {
    name: &'static str,
    help: &'static str,
    read: fn(&StealCounts) -> u64,
}

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
    "cohort_auto_helper_chosen" "auto: times the fallback was a helper, as no signal reaches the program" helper_chosen;
}

/// `MPI_T_pvar_get_num`.
pub fn pvar_get_num<A: Abi>(call: &Call<'_, A>, count: Out<'_, c_int>) -> Outcome<()> {
    open::<A>(call, |_| result(count, COUNTERS.len() as c_int))
}

/// `MPI_T_pvar_get_index`.
pub fn pvar_get_index<A: Abi>(
    call: &Call<'_, A>,
    name: Text<'_>,
    class: c_int,
    index: Out<'_, c_int>,
) -> Outcome<()> {
    open::<A>(call, |_| {
        if A::tool_class_in(class) != neutral::T_PVAR_CLASS_COUNTER {
            return Err(neutral::T_ERR_INVALID_NAME.into());
        }
        look_up(COUNTERS.iter().map(|counter| counter.name), name, index)
    })
}

/// `MPI_T_pvar_get_info`.
pub fn pvar_get_info<A: Abi>(
    call: &Call<'_, A>,
    index: c_int,
    name: TextOut<'_>,
    name_length: InOut<'_, c_int>,
    verbosity: Out<'_, c_int>,
    class: Out<'_, c_int>,
    datatype: Out<'_, A::Datatype>,
    words: Out<'_, *mut c_void>,
    text: TextOut<'_>,
    text_length: InOut<'_, c_int>,
    bind: Out<'_, c_int>,
    read_only: Out<'_, c_int>,
    continuous: Out<'_, c_int>,
    atomic: Out<'_, c_int>,
) -> Outcome<()> {
    open::<A>(call, |_| {
        let counter = nth(COUNTERS, index)?;
        let kind = neutral::handle::UNSIGNED_LONG_LONG;
        give(counter.name, name, name_length);
        give(counter.help, text, text_length);
        answer(
            verbosity,
            A::tool_verbosity_out(neutral::T_VERBOSITY_TUNER_BASIC),
        );
        answer(class, A::tool_class_out(neutral::T_PVAR_CLASS_COUNTER));
        answer(datatype, A::Datatype::from_neutral(call.context(), kind));
        answer(words, core::ptr::null_mut());
        answer(bind, A::tool_bind_out(neutral::T_BIND_NO_OBJECT));
        answer(read_only, 1);
        answer(continuous, 1);
        answer(atomic, 0);
        Ok(())
    })
}

/// `MPI_T_pvar_session_create`.
pub fn pvar_session_create<A: Abi>(
    call: &Call<'_, A>,
    session: Out<'_, *mut c_void>,
) -> Outcome<()> {
    open::<A>(call, |process| {
        let session = wanted(session)?;
        session.write(process.tool.sessions.add(()));
        Ok(())
    })
}

/// `MPI_T_pvar_session_free`; its handles are freed with it.
pub fn pvar_session_free<A: Abi>(
    call: &Call<'_, A>,
    session: InOut<'_, *mut c_void>,
) -> Outcome<()> {
    open::<A>(call, |process| {
        let session = given(session)?;
        let ended = session.get();
        let removed = process.tool.sessions.remove(ended);
        removed.ok_or(neutral::T_ERR_INVALID_SESSION)?;
        process
            .tool
            .performances
            .remove_all(|bound| bound.session == ended.addr());
        session.set(core::ptr::null_mut());
        Ok(())
    })
}

/// Refuses what is no session.
fn check_session(process: &Process, session: *mut c_void) -> Outcome<()> {
    let known = process.tool.sessions.get(session);
    known.ok_or_else(|| neutral::T_ERR_INVALID_SESSION.into())
}

/// `MPI_T_pvar_handle_alloc`.
pub fn pvar_handle_alloc<A: Abi>(
    call: &Call<'_, A>,
    session: *mut c_void,
    index: c_int,
    _object: *mut c_void,
    handle: Out<'_, *mut c_void>,
    count: Out<'_, c_int>,
) -> Outcome<()> {
    open::<A>(call, |process| {
        check_session(process, session)?;
        nth(COUNTERS, index)?;
        let handle = wanted(handle)?;
        result(count, 1)?;
        let index = index as usize;
        handle.write(process.tool.performances.add(Bound {
            index,
            session: session.addr(),
        }));
        Ok(())
    })
}

/// `MPI_T_pvar_handle_free`.
pub fn pvar_handle_free<A: Abi>(
    call: &Call<'_, A>,
    session: *mut c_void,
    handle: InOut<'_, *mut c_void>,
) -> Outcome<()> {
    open::<A>(call, |process| {
        let handle = given(handle)?;
        of_handle(process, session, handle.get())?;
        process.tool.performances.remove(handle.get());
        handle.set(core::ptr::null_mut());
        Ok(())
    })
}

/// The counter of a session's handle.
fn of_handle(
    process: &Process,
    session: *mut c_void,
    handle: *mut c_void,
) -> Outcome<&'static Counter> {
    check_session(process, session)?;
    let bound = process.tool.performances.get(handle);
    let bound = bound.filter(|bound| bound.session == session.addr());
    Ok(&COUNTERS[bound.ok_or(neutral::T_ERR_INVALID_HANDLE)?.index])
}

/// `MPI_T_pvar_read`.
pub fn pvar_read<A: Abi>(
    call: &Call<'_, A>,
    session: *mut c_void,
    handle: *mut c_void,
    buffer: Base,
) -> Outcome<()> {
    open::<A>(call, |process| {
        let counter = of_handle(process, session, handle)?;
        let counts = process.objects.rank().steal_counts();
        if buffer.is_null() {
            return Err(neutral::T_ERR_INVALID.into());
        }
        buffer.write(&(counter.read)(&counts).to_ne_bytes());
        Ok(())
    })
}

macro_rules! impossible {
    ($($(#[$page:meta])* $name:ident($($argument:ident: $type:ty)?) $all:ident $error:ident;)*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi>(
            call: &Call<'_, A>,
            session: *mut c_void,
            handle: *mut c_void,
            $($argument: $type,)?
        ) -> Outcome<()> {
            open::<A>(call, |process| {
                if $all && handle.addr() == A::T_PVAR_ALL_HANDLES {
                    // Variables to which it does not apply are passed over.
                    return check_session(process, session);
                }
                of_handle(process, session, handle)?;
                Err(neutral::$error.into())
            })
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
    pvar_write(_buffer: Base) TAKES_ONE T_ERR_PVAR_NO_WRITE;
    /// `MPI_T_pvar_readreset`: the counters are read-only.
    pvar_readreset(_buffer: Base) TAKES_ONE T_ERR_PVAR_NO_ATOMIC;
}
