//! Performance variables: what the calling rank did for others, how often it slept, and what it read and wrote of
//! files, which are counted all the time and cannot be written, and what it does on one communicator
//! ([`super::communicators`]).

use super::communicators::{self, VARIABLES};
use super::variable::Variable;
use super::{Call, answer, give, given, open, result, wanted};
use crate::subject::Subject;
use crate::subject::followed::Follower;
use crate::subject::tools::Bound;
use cohort_abi::parameters::{Base, InOut, Out, Text, TextOut};
use cohort_abi::{Abi, Handle, neutral};
use cohort_object::Outcome;
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;

macro_rules! counters {
    ($($name:literal $help:literal $($field:ident).+;)*) => {
        /// Those that are counted all the time.
        static COUNTERS: &[Variable] = &[$(Variable {
            name: $name,
            help: $help,
            class: neutral::T_PVAR_CLASS_COUNTER,
            of_comm: None,
            read: |process| process.objects.rank().steal_counts().$($field).+,
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

macro_rules! files {
    ($($name:literal $help:literal $field:ident;)*) => {
        /// Those of files, which are counted all the time too.
        static FILES: &[Variable] = &[$(Variable {
            name: $name,
            help: $help,
            class: neutral::T_PVAR_CLASS_COUNTER,
            of_comm: None,
            read: |process| process.objects.under_way().moved.$field.load(Ordering::Relaxed),
        },)*];
    };
}

files! {
    "cohort_file_reads" "reads of files that have ended" reads;
    "cohort_file_read_bytes" "bytes that they have read" read_bytes;
    "cohort_file_writes" "writes of files that have ended" writes;
    "cohort_file_written_bytes" "bytes that they have written" written_bytes;
}

/// How many there are of each kind, in their order: of the rank, of its files, and of a communicator.
pub(super) fn counts() -> (usize, usize, usize) {
    (COUNTERS.len(), FILES.len(), VARIABLES.len())
}

/// All of them, by index.
fn all() -> impl Iterator<Item = &'static Variable> {
    COUNTERS.iter().chain(FILES).chain(VARIABLES)
}

/// The variable with the program's index.
fn variable(index: c_int) -> Outcome<&'static Variable> {
    let place = usize::try_from(index).ok();
    let found = place.and_then(|place| all().nth(place));
    found.ok_or_else(|| neutral::T_ERR_INVALID_INDEX.into())
}

/// `MPI_T_pvar_get_num`.
pub fn pvar_get_num<A: Abi>(call: &Call<'_, A>, count: Out<'_, c_int>) -> Outcome<()> {
    open::<A>(call, |_| result(count, all().count() as c_int))
}

/// `MPI_T_pvar_get_index`.
pub fn pvar_get_index<A: Abi>(call: &Call<'_, A>, name: Text<'_>, class: c_int, index: Out<'_, c_int>) -> Outcome<()> {
    open::<A>(call, |_| {
        let (class, name) = (A::tool_class_in(class), name.get());
        let name = name.ok_or(neutral::T_ERR_INVALID)?.to_bytes();
        let is_it = |known: &Variable| known.class == class && known.name.as_bytes() == name;
        let found = all().position(is_it).ok_or(neutral::T_ERR_INVALID_NAME)?;
        result(index, found as c_int)
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
        let known = variable(index)?;
        let kind = match known.of_comm {
            Some(quantity) if quantity.is_time() => neutral::handle::DOUBLE,
            _ => neutral::handle::UNSIGNED_LONG_LONG,
        };
        let (binds_to, is_always_there) = match known.of_comm {
            Some(_) => (neutral::T_BIND_MPI_COMM, 0),
            None => (neutral::T_BIND_NO_OBJECT, 1),
        };
        give(known.name, name, name_length);
        give(known.help, text, text_length);
        answer(verbosity, A::tool_verbosity_out(neutral::T_VERBOSITY_TUNER_BASIC));
        answer(class, A::tool_class_out(known.class));
        answer(datatype, A::Datatype::from_neutral(call.context(), kind));
        answer(words, core::ptr::null_mut());
        answer(bind, A::tool_bind_out(binds_to));
        answer(read_only, is_always_there);
        answer(continuous, is_always_there);
        answer(atomic, 1 - is_always_there);
        Ok(())
    })
}

/// `MPI_T_pvar_session_create`.
pub fn pvar_session_create<A: Abi>(call: &Call<'_, A>, session: Out<'_, *mut c_void>) -> Outcome<()> {
    open::<A>(call, |subject| {
        let session = wanted(session)?;
        session.write(subject.tool.sessions.add(()));
        Ok(())
    })
}

/// `MPI_T_pvar_session_free`; its handles are freed with it.
pub fn pvar_session_free<A: Abi>(call: &Call<'_, A>, session: InOut<'_, *mut c_void>) -> Outcome<()> {
    open::<A>(call, |subject| {
        let session = given(session)?;
        let ended = session.get();
        let removed = subject.tool.sessions.remove(ended);
        removed.ok_or(neutral::T_ERR_INVALID_SESSION)?;
        subject.tool.performances.remove_all(|bound| bound.session == ended.addr());
        communicators::unfollow(subject, |_, follower| follower.session == ended.addr());
        session.set(core::ptr::null_mut());
        Ok(())
    })
}

/// Refuses what is no session.
fn check_session(subject: &Subject, session: *mut c_void) -> Outcome<()> {
    let known = subject.tool.sessions.get(session);
    known.ok_or_else(|| neutral::T_ERR_INVALID_SESSION.into())
}

/// `MPI_T_pvar_handle_alloc`.
pub fn pvar_handle_alloc<A: Abi>(
    call: &Call<'_, A>,
    session: *mut c_void,
    index: c_int,
    object: Base,
    handle: Out<'_, *mut c_void>,
    count: Out<'_, c_int>,
) -> Outcome<()> {
    open::<A>(call, |subject| {
        check_session(subject, session)?;
        let known = variable(index)?;
        let handle = wanted(handle)?;
        let of_comm = match known.of_comm {
            Some(quantity) => Some((quantity, communicators::object::<A>(subject, object)?)),
            None => None,
        };
        result(count, 1)?;
        let made = subject.tool.performances.add(Bound { index: index as usize, session: session.addr() });
        if let Some((quantity, comm)) = of_comm {
            let follower =
                Follower { session: session.addr(), comm, leaving: 0, quantity, is_running: false, value: 0 };
            communicators::follow(subject, made.addr(), follower);
        }
        handle.write(made);
        Ok(())
    })
}

/// `MPI_T_pvar_handle_free`.
pub fn pvar_handle_free<A: Abi>(
    call: &Call<'_, A>,
    session: *mut c_void,
    handle: InOut<'_, *mut c_void>,
) -> Outcome<()> {
    open::<A>(call, |subject| {
        let handle = given(handle)?;
        let freed = handle.get();
        of_handle(subject, session, freed)?;
        // While nobody else can be given the same handle.
        communicators::unfollow(subject, |other, _| other == freed.addr());
        subject.tool.performances.remove(freed);
        handle.set(core::ptr::null_mut());
        Ok(())
    })
}

/// The variable of a session's handle.
fn of_handle(subject: &Subject, session: *mut c_void, handle: *mut c_void) -> Outcome<&'static Variable> {
    check_session(subject, session)?;
    let bound = subject.tool.performances.get(handle);
    let bound = bound.filter(|bound| bound.session == session.addr());
    variable(bound.ok_or(neutral::T_ERR_INVALID_HANDLE)?.index as c_int)
}

/// Has `then` look at what a handle counts of a communicator; `refusal` is for handles of other variables.
fn with_follower(
    subject: &Subject,
    (session, handle): (*mut c_void, *mut c_void),
    refusal: i32,
    then: impl FnOnce(&mut Follower),
) -> Outcome<()> {
    of_handle(subject, session, handle)?;
    let followed = &subject.tool.followed;
    followed.with(handle.addr(), then).ok_or_else(|| refusal.into())
}

/// The same for `MPI_T_PVAR_ALL_HANDLES` too, which passes over variables to which it does not apply.
fn with_followers<A: Abi>(
    call: &Call<'_, A>,
    (session, handle): (*mut c_void, *mut c_void),
    refusal: i32,
    mut then: impl FnMut(&mut Follower),
) -> Outcome<()> {
    open::<A>(call, |subject| {
        if handle.addr() != A::T_PVAR_ALL_HANDLES {
            return with_follower(subject, (session, handle), refusal, then);
        }
        check_session(subject, session)?;
        subject.tool.followed.each_of(session.addr(), &mut then);
        Ok(())
    })
}

/// Refuses NULL.
fn check_buffer(buffer: Base) -> Outcome<()> {
    match buffer.is_null() {
        true => Err(neutral::T_ERR_INVALID.into()),
        false => Ok(()),
    }
}

/// `MPI_T_pvar_read`.
pub fn pvar_read<A: Abi>(call: &Call<'_, A>, session: *mut c_void, handle: *mut c_void, buffer: Base) -> Outcome<()> {
    open::<A>(call, |subject| {
        let known = of_handle(subject, session, handle)?;
        check_buffer(buffer)?;
        if known.of_comm.is_some() {
            let read = |follower: &mut Follower| communicators::read(follower, buffer, false);
            let of = (session, handle);
            return with_follower(subject, of, neutral::T_ERR_INVALID_HANDLE, read);
        }
        buffer.write(&(known.read)(subject).to_ne_bytes());
        Ok(())
    })
}

/// `MPI_T_pvar_start`. What is counted all the time cannot be started.
pub fn pvar_start<A: Abi>(call: &Call<'_, A>, session: *mut c_void, handle: *mut c_void) -> Outcome<()> {
    let refusal = neutral::T_ERR_PVAR_NO_STARTSTOP;
    with_followers(call, (session, handle), refusal, |it| it.is_running = true)
}

/// `MPI_T_pvar_stop`. What is counted all the time cannot be stopped.
pub fn pvar_stop<A: Abi>(call: &Call<'_, A>, session: *mut c_void, handle: *mut c_void) -> Outcome<()> {
    let refusal = neutral::T_ERR_PVAR_NO_STARTSTOP;
    with_followers(call, (session, handle), refusal, |it| it.is_running = false)
}

/// `MPI_T_pvar_reset`. What is counted all the time is read-only.
pub fn pvar_reset<A: Abi>(call: &Call<'_, A>, session: *mut c_void, handle: *mut c_void) -> Outcome<()> {
    let refusal = neutral::T_ERR_PVAR_NO_WRITE;
    with_followers(call, (session, handle), refusal, |it| it.value = 0)
}

/// `MPI_T_pvar_write`. What is counted all the time is read-only.
pub fn pvar_write<A: Abi>(call: &Call<'_, A>, session: *mut c_void, handle: *mut c_void, buffer: Base) -> Outcome<()> {
    open::<A>(call, |subject| {
        let refusal = neutral::T_ERR_PVAR_NO_WRITE;
        check_buffer(buffer)?;
        with_follower(subject, (session, handle), refusal, |follower| {
            communicators::write(follower, buffer);
        })
    })
}

/// `MPI_T_pvar_readreset`. What is counted all the time is read-only.
pub fn pvar_readreset<A: Abi>(
    call: &Call<'_, A>,
    session: *mut c_void,
    handle: *mut c_void,
    buffer: Base,
) -> Outcome<()> {
    open::<A>(call, |subject| {
        let refusal = neutral::T_ERR_PVAR_NO_ATOMIC;
        check_buffer(buffer)?;
        with_follower(subject, (session, handle), refusal, |follower| {
            communicators::read(follower, buffer, true);
        })
    })
}
