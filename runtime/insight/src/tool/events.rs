//! Events (MPI-4.1 section 15.3.8): what happens to the calling rank, as callbacks. [`crate::subject::events`] says
//! when these run.

use super::{Call, answer, give, look_up, nth, open, result, wanted};
use crate::observed::live::{self, TOLD};
use crate::subject::Subject;
use crate::subject::events::{Callback, Farewell, Registration, SOURCE};
use alloc::boxed::Box;
use cohort_abi::parameters::{Base, InOut, Out, OutArray, Text, TextOut};
use cohort_abi::{Abi, Handle, callback, neutral};
use cohort_base::clock::{ticks, ticks_per_us};
use cohort_base::trace::{Event, EventKind, NOBODY};
use cohort_engine::Rank;
use cohort_object::{Info, Outcome};
use core::ffi::{c_int, c_void};

/// Bytes of an element: all are `MPI_UNSIGNED_LONG_LONG`.
const ELEMENT: usize = 8;

/// One element of an event.
struct Element {
    /// What it says, for the event's description.
    read: fn(&Event, &Rank) -> u64,
}

/// One type of events.
pub(super) struct EventType {
    pub(super) name: &'static str,
    /// What it is of, and its elements in their order.
    pub(super) help: &'static str,
    kind: EventKind,
    elements: &'static [Element],
}

/// The rank of the job that an event names.
const PEER: Element = Element {
    read: |event, rank| match event.peer {
        NOBODY => u64::MAX,
        peer => rank.node().rank(peer).world_rank().into(),
    },
};
const TAG: Element = Element { read: |event, _| u64::from(event.tag.cast_unsigned()) };
const BYTES: Element = Element { read: |event, _| event.bytes };
const FLAG: Element = Element { read: |event, _| u64::from(event.flow != 0) };
const NANOSECONDS: Element =
    Element { read: |event, _| (event.end - event.begin).saturating_mul(1000) / ticks_per_us().max(1) };

/// All of them.
pub(super) static EVENTS: &[EventType] = &[
    EventType {
        name: "cohort_message_arrived",
        help: "a message of this node has met its receive, whoever saw to that: source in MPI_COMM_WORLD, tag, bytes",
        kind: EventKind::Matched,
        elements: &[PEER, TAG, BYTES],
    },
    EventType {
        name: "cohort_message_sent",
        help: "a message to a rank of this node leaves: destination in MPI_COMM_WORLD, tag, bytes",
        kind: EventKind::Sent,
        elements: &[PEER, TAG, BYTES],
    },
    EventType {
        name: "cohort_steal",
        help: "this rank has moved something for another one: its owner in MPI_COMM_WORLD, bytes, 1 for the network",
        kind: EventKind::Steal,
        elements: &[PEER, BYTES, FLAG],
    },
    EventType {
        name: "cohort_sleep",
        help: "this rank has slept while it waited: nanoseconds, 1 if another task woke it",
        kind: EventKind::Sleep,
        elements: &[NANOSECONDS, FLAG],
    },
    EventType {
        name: "cohort_wake",
        help: "this rank has woken another one: that one in MPI_COMM_WORLD",
        kind: EventKind::Wake,
        elements: &[PEER],
    },
    EventType {
        name: "cohort_policy",
        help: "the policy auto has changed what helps this rank: 1 if it turned its fallback on, 0 if off",
        kind: EventKind::Policy,
        elements: &[FLAG],
    },
];

/// `MPI_T_event_get_num`.
pub fn event_get_num<A: Abi>(call: &Call<'_, A>, count: Out<'_, c_int>) -> Outcome<()> {
    open::<A>(call, |_| result(count, EVENTS.len() as c_int))
}

/// `MPI_T_source_get_num`: one, the clock of the node.
pub fn source_get_num<A: Abi>(call: &Call<'_, A>, count: Out<'_, c_int>) -> Outcome<()> {
    open::<A>(call, |_| result(count, 1))
}

/// `MPI_T_event_get_index`.
pub fn event_get_index<A: Abi>(call: &Call<'_, A>, name: Text<'_>, index: Out<'_, c_int>) -> Outcome<()> {
    open::<A>(call, |_| look_up(EVENTS.iter().map(|event| event.name), name, index))
}

/// `MPI_T_event_get_info`.
pub fn event_get_info<A: Abi>(
    call: &Call<'_, A>,
    index: c_int,
    name: TextOut<'_>,
    name_length: InOut<'_, c_int>,
    verbosity: Out<'_, c_int>,
    datatypes: OutArray<'_, A::Datatype>,
    displacements: OutArray<'_, isize>,
    elements: InOut<'_, c_int>,
    words: Out<'_, *mut c_void>,
    hints: Out<'_, A::Info>,
    text: TextOut<'_>,
    text_length: InOut<'_, c_int>,
    bind: Out<'_, c_int>,
) -> Outcome<()> {
    open::<A>(call, |_| {
        let event = nth(EVENTS, index)?;
        give(event.name, name, name_length);
        give(event.help, text, text_length);
        answer(verbosity, A::tool_verbosity_out(neutral::T_VERBOSITY_TUNER_BASIC));
        let count = event.elements.len();
        if let Some(elements) = elements.value() {
            // As many as there is room for; the program learns how many there are.
            let room = usize::try_from(elements.get()).unwrap_or(0).min(count);
            let kind = neutral::handle::UNSIGNED_LONG_LONG;
            if room > 0 && datatypes.addr() != 0 {
                let kinds = (0..room).map(|_| A::Datatype::from_neutral(call.context(), kind));
                datatypes.places(room)?.write_all(kinds);
            }
            if room > 0 && displacements.addr() != 0 {
                let places = (0..room).map(|element| (element * ELEMENT) as isize);
                displacements.places(room)?.write_all(places);
            }
            elements.set(count as c_int);
        }
        answer(words, core::ptr::null_mut());
        if let Some(hints) = hints.place() {
            let none = neutral::handle::INFO_NULL;
            hints.write(A::Info::from_neutral(call.context(), none));
        }
        answer(bind, A::tool_bind_out(neutral::T_BIND_NO_OBJECT));
        Ok(())
    })
}

/// `MPI_T_event_handle_alloc`. No event is bound to an object.
pub fn event_handle_alloc<A: Abi>(
    call: &Call<'_, A>,
    index: c_int,
    _object: Base,
    _hints: A::Info,
    handle: Out<'_, *mut c_void>,
) -> Outcome<()> {
    open::<A>(call, |subject| {
        let event = nth(EVENTS, index)?;
        let handle = wanted(handle)?;
        let rank = subject.objects.rank();
        let events = &subject.tool.events;
        let ring = events.begin(rank);
        let registration = Registration {
            kind: event.kind,
            since: ring.noted(),
            lost: 0,
            callbacks: Default::default(),
            dropped: None,
            safety: A::tool_safety_out(neutral::T_CB_REQUIRE_NONE),
        };
        if is_of_message(event.kind) {
            rank.node().follow_messages(true);
        }
        handle.write(events.add(registration));
        live::want(rank, TOLD, true);
        Ok(())
    })
}

/// Whether messages have to leave in a way in which their ends are seen.
fn is_of_message(kind: EventKind) -> bool {
    matches!(kind, EventKind::Sent | EventKind::Matched)
}

/// The registration of a handle.
fn of_handle(subject: &Subject, handle: *mut c_void) -> Outcome<Registration> {
    let found = subject.tool.events.get(handle);
    found.ok_or_else(|| neutral::T_ERR_INVALID_HANDLE.into())
}

/// `MPI_T_event_handle_free`.
pub fn event_handle_free<A: Abi>(
    call: &Call<'_, A>,
    handle: *mut c_void,
    data: *mut c_void,
    function: Option<callback::TEventFreeCbFunction>,
) -> Outcome<()> {
    open::<A>(call, |subject| {
        let registration = of_handle(subject, handle)?;
        let farewell = function.map(|function| Farewell { handle, function, data, safety: registration.safety });
        let ended = end(subject, handle, farewell);
        ended.ok_or_else(|| neutral::T_ERR_INVALID_HANDLE.into())
    })
}

/// Ends a registration; with the last one, nothing is noted any more.
fn end(subject: &Subject, handle: *mut c_void, farewell: Option<Farewell>) -> Option<()> {
    let rank = subject.objects.rank();
    let events = &subject.tool.events;
    let ended = events.remove(handle, farewell)?;
    if is_of_message(ended.kind) {
        rank.node().follow_messages(false);
    }
    if events.handles().is_empty() {
        live::want(rank, TOLD, false);
        events.end(rank);
    }
    Some(())
}

/// Ends all registrations, as nobody uses the interface any more.
pub(super) fn end_all(subject: &Subject) {
    for handle in subject.tool.events.handles() {
        end(subject, handle, None);
    }
}

/// `MPI_T_event_register_callback`. All callbacks run where they may do everything, so that of the lowest level that
/// the program has registered is called; NULL takes it back.
pub fn event_register_callback<A: Abi>(
    call: &Call<'_, A>,
    handle: *mut c_void,
    safety: c_int,
    _hints: A::Info,
    data: *mut c_void,
    function: Option<callback::TEventCbFunction>,
) -> Outcome<()> {
    open::<A>(call, |subject| {
        let level = level::<A>(safety)?;
        let changed = subject.tool.events.change(handle, |registration| {
            registration.callbacks[level] = function.map(|function| Callback { function, data });
        });
        changed.ok_or_else(|| neutral::T_ERR_INVALID_HANDLE.into())
    })
}

/// The place of a level of safety.
fn level<A: Abi>(safety: c_int) -> Outcome<usize> {
    let levels = [
        neutral::T_CB_REQUIRE_NONE,
        neutral::T_CB_REQUIRE_MPI_RESTRICTED,
        neutral::T_CB_REQUIRE_THREAD_SAFE,
        neutral::T_CB_REQUIRE_ASYNC_SIGNAL_SAFE,
    ];
    let safety = A::tool_safety_in(safety);
    let found = levels.iter().position(|&level| level == safety);
    found.ok_or_else(|| neutral::T_ERR_INVALID.into())
}

/// `MPI_T_event_set_dropped_handler`.
pub fn event_set_dropped_handler<A: Abi>(
    call: &Call<'_, A>,
    handle: *mut c_void,
    function: Option<callback::TEventDroppedCbFunction>,
) -> Outcome<()> {
    open::<A>(call, |subject| {
        let events = &subject.tool.events;
        let changed = events.change(handle, |registration| registration.dropped = function);
        changed.ok_or_else(|| neutral::T_ERR_INVALID_HANDLE.into())
    })
}

/// Gives the program an info object without keys.
fn no_hints<A: Abi>(call: &Call<'_, A>, hints: Out<'_, A::Info>) -> Outcome<()> {
    let target = hints.place().ok_or(neutral::ERR_ARG)?;
    let handle = call.subject().objects.add_info(Box::new(Info::default()))?;
    target.write(A::Info::from_neutral(call.context(), handle));
    Ok(())
}

/// `MPI_T_event_handle_set_info`: there are no hints.
pub fn event_handle_set_info<A: Abi>(call: &Call<'_, A>, handle: *mut c_void, _hints: A::Info) -> Outcome<()> {
    open::<A>(call, |subject| of_handle(subject, handle).map(drop))
}

/// `MPI_T_event_handle_get_info`: there are no hints.
pub fn event_handle_get_info<A: Abi>(call: &Call<'_, A>, handle: *mut c_void, hints: Out<'_, A::Info>) -> Outcome<()> {
    open::<A>(call, |subject| {
        of_handle(subject, handle)?;
        no_hints(call, hints)
    })
}

/// `MPI_T_event_callback_set_info`: there are no hints.
pub fn event_callback_set_info<A: Abi>(
    call: &Call<'_, A>,
    handle: *mut c_void,
    safety: c_int,
    _hints: A::Info,
) -> Outcome<()> {
    open::<A>(call, |subject| {
        of_handle(subject, handle)?;
        level::<A>(safety).map(drop)
    })
}

/// `MPI_T_event_callback_get_info`: there are no hints.
pub fn event_callback_get_info<A: Abi>(
    call: &Call<'_, A>,
    handle: *mut c_void,
    safety: c_int,
    hints: Out<'_, A::Info>,
) -> Outcome<()> {
    open::<A>(call, |subject| {
        of_handle(subject, handle)?;
        level::<A>(safety)?;
        no_hints(call, hints)
    })
}

/// The event that a callback was given, and its type.
fn of_instance(subject: &Subject, instance: *mut c_void) -> Outcome<(Event, &'static EventType)> {
    let event = subject.tool.events.instance(instance);
    let event = event.ok_or(neutral::T_ERR_INVALID_HANDLE)?;
    let known = EVENTS.iter().find(|known| known.kind == event.kind);
    Ok((event, known.ok_or(neutral::T_ERR_INVALID_HANDLE)?))
}

/// `MPI_T_event_read`.
pub fn event_read<A: Abi>(call: &Call<'_, A>, instance: *mut c_void, element: c_int, buffer: Base) -> Outcome<()> {
    open::<A>(call, |subject| {
        let (event, known) = of_instance(subject, instance)?;
        let element = nth(known.elements, element)?;
        if buffer.is_null() {
            return Err(neutral::T_ERR_INVALID.into());
        }
        let value = (element.read)(&event, subject.objects.rank());
        buffer.write(&value.to_ne_bytes());
        Ok(())
    })
}

/// `MPI_T_event_copy`.
pub fn event_copy<A: Abi>(call: &Call<'_, A>, instance: *mut c_void, buffer: Base) -> Outcome<()> {
    open::<A>(call, |subject| {
        let (event, known) = of_instance(subject, instance)?;
        if buffer.is_null() {
            return Err(neutral::T_ERR_INVALID.into());
        }
        for (place, element) in known.elements.iter().enumerate() {
            let value = (element.read)(&event, subject.objects.rank());
            buffer.offset((place * ELEMENT) as isize).write(&value.to_ne_bytes());
        }
        Ok(())
    })
}

/// `MPI_T_event_get_timestamp`: when it was over.
pub fn event_get_timestamp<A: Abi>(call: &Call<'_, A>, instance: *mut c_void, time: Out<'_, i64>) -> Outcome<()> {
    open::<A>(call, |subject| {
        let (event, _) = of_instance(subject, instance)?;
        result(time, event.end.cast_signed())
    })
}

/// `MPI_T_event_get_source`.
pub fn event_get_source<A: Abi>(call: &Call<'_, A>, instance: *mut c_void, source: Out<'_, c_int>) -> Outcome<()> {
    open::<A>(call, |subject| {
        of_instance(subject, instance)?;
        result(source, SOURCE)
    })
}

/// `MPI_T_source_get_info`. Several tasks stamp a rank's events, so these may come in another order.
pub fn source_get_info<A: Abi>(
    call: &Call<'_, A>,
    index: c_int,
    name: TextOut<'_>,
    name_length: InOut<'_, c_int>,
    text: TextOut<'_>,
    text_length: InOut<'_, c_int>,
    ordering: Out<'_, c_int>,
    rate: Out<'_, i64>,
    greatest: Out<'_, i64>,
    hints: Out<'_, A::Info>,
) -> Outcome<()> {
    open::<A>(call, |_| {
        nth(&[SOURCE], index)?;
        give("cohort_clock", name, name_length);
        let help = "the time stamp counter of the processor, the same for all ranks of a node";
        give(help, text, text_length);
        answer(ordering, A::tool_order_out(neutral::T_SOURCE_UNORDERED));
        answer(rate, (ticks_per_us() * 1_000_000).cast_signed());
        answer(greatest, i64::MAX);
        if let Some(hints) = hints.place() {
            let none = neutral::handle::INFO_NULL;
            hints.write(A::Info::from_neutral(call.context(), none));
        }
        Ok(())
    })
}

/// `MPI_T_source_get_timestamp`.
pub fn source_get_timestamp<A: Abi>(call: &Call<'_, A>, index: c_int, time: Out<'_, i64>) -> Outcome<()> {
    open::<A>(call, |_| {
        nth(&[SOURCE], index)?;
        result(time, ticks().cast_signed())
    })
}
