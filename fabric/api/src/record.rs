//! A transport behind C functions, so that a library built separately can be the network.
//!
//! [`Network::of`] wraps any [`Transport`]; [`Linked`] is a [`Transport`] again, on the other side of
//! the border. Both sides must be built from the same [`VERSION`] of this file.

use crate::{
    Budget, Event, LocalRank, Packet, Polled, Refused, Region, Sent, TOGETHER_MAX, Token, Transfer,
    Transport, WorldRank,
};
use core::ffi::c_void;
use core::time::Duration;

mod linked;

pub use linked::Linked;

/// First word of a [`Network`]; anything else is not ours.
pub const MAGIC: u64 = 0x3154_454e_4843_4f43;

/// Raised whenever the layout of the records changes.
pub const VERSION: u32 = 4;

/// A limit of time that never ends.
const FOREVER: u64 = u64::MAX;

/// How a call ended.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Done,
    Pending,
    Busy,
    Lost,
    OutOfMemory,
}

/// [`Kind`] with the reason of a loss.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcome {
    kind: Kind,
    code: i32,
}

impl Outcome {
    const fn new(kind: Kind) -> Self {
        Self { kind, code: 0 }
    }

    fn refused(reason: Refused) -> Self {
        match reason {
            Refused::Busy => Self::new(Kind::Busy),
            Refused::OutOfMemory => Self::new(Kind::OutOfMemory),
            Refused::Lost(code) => Self {
                kind: Kind::Lost,
                code,
            },
        }
    }

    fn of(result: Result<Sent, Refused>) -> Self {
        match result {
            Ok(Sent::Done) => Self::new(Kind::Done),
            Ok(Sent::Pending) => Self::new(Kind::Pending),
            Err(reason) => Self::refused(reason),
        }
    }

    fn get(self) -> Result<Sent, Refused> {
        match self.kind {
            Kind::Done => Ok(Sent::Done),
            Kind::Pending => Ok(Sent::Pending),
            Kind::Busy => Err(Refused::Busy),
            Kind::Lost => Err(Refused::Lost(self.code)),
            Kind::OutOfMemory => Err(Refused::OutOfMemory),
        }
    }
}

/// What an event is.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
enum EventKind {
    Packet,
    Completed,
    Failed,
    Lost,
}

/// An [`Event`]; which fields count depends on `kind`.
#[repr(C)]
#[derive(Debug)]
struct EventRecord {
    kind: EventKind,
    rank: WorldRank,
    token: Token,
    bytes: *const u8,
    length: usize,
    code: i32,
}

impl EventRecord {
    fn of(event: Event<'_>) -> Self {
        let none = Self {
            kind: EventKind::Completed,
            rank: 0,
            token: 0,
            bytes: core::ptr::null(),
            length: 0,
            code: 0,
        };
        match event {
            Event::Packet { from, bytes } => Self {
                kind: EventKind::Packet,
                rank: from,
                bytes: bytes.as_ptr(),
                length: bytes.len(),
                ..none
            },
            Event::Completed(token) => Self { token, ..none },
            Event::Failed { token, code } => Self {
                kind: EventKind::Failed,
                token,
                code,
                ..none
            },
            Event::Lost { rank, code } => Self {
                kind: EventKind::Lost,
                rank,
                code,
                ..none
            },
        }
    }

    /// # Safety
    /// A record made by [`EventRecord::of`] whose event still lives.
    unsafe fn get(&self) -> Event<'_> {
        match self.kind {
            EventKind::Packet => Event::Packet {
                from: self.rank,
                // SAFETY: both come from a slice that still lives.
                bytes: unsafe { core::slice::from_raw_parts(self.bytes, self.length) },
            },
            EventKind::Completed => Event::Completed(self.token),
            EventKind::Failed => Event::Failed {
                token: self.token,
                code: self.code,
            },
            EventKind::Lost => Event::Lost {
                rank: self.rank,
                code: self.code,
            },
        }
    }
}

/// What [`Network::poll`] calls for each event.
type SinkFunction = unsafe extern "C" fn(context: *mut c_void, event: *const EventRecord);

/// The pieces of a packet.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Pieces {
    header: *const u8,
    header_length: usize,
    body: *const u8,
    body_length: usize,
}

impl Pieces {
    const fn of(packet: Packet<'_>) -> Self {
        Self {
            header: packet.header.as_ptr(),
            header_length: packet.header.len(),
            body: packet.body.as_ptr(),
            body_length: packet.body.len(),
        }
    }

    /// # Safety
    /// They are of a packet that still lives.
    unsafe fn packet(&self) -> Packet<'_> {
        // SAFETY: the caller's promise.
        unsafe {
            Packet {
                header: core::slice::from_raw_parts(self.header, self.header_length),
                body: core::slice::from_raw_parts(self.body, self.body_length),
            }
        }
    }
}

/// A node's network as a record of functions. `NodeBoot::network` points to one.
#[repr(C)]
#[derive(Debug)]
pub struct Network {
    magic: u64,
    version: u32,
    data: *const c_void,
    limits: unsafe extern "C" fn(data: *const c_void, packet: *mut usize, transfer: *mut usize),
    send: unsafe extern "C" fn(
        data: *const c_void,
        endpoint: LocalRank,
        caller: LocalRank,
        to: WorldRank,
        pieces: *const Pieces,
        token: Token,
    ) -> Outcome,
    send_now: unsafe extern "C" fn(
        data: *const c_void,
        endpoint: LocalRank,
        caller: LocalRank,
        to: WorldRank,
        pieces: *const Pieces,
        count: usize,
    ) -> bool,
    expose: unsafe extern "C" fn(
        data: *const c_void,
        endpoint: LocalRank,
        caller: LocalRank,
        start: *mut u8,
        length: usize,
        region: *mut Region,
    ) -> Outcome,
    withdraw: unsafe extern "C" fn(
        data: *const c_void,
        endpoint: LocalRank,
        caller: LocalRank,
        region: Region,
    ),
    transfer: unsafe extern "C" fn(
        data: *const c_void,
        endpoint: LocalRank,
        caller: LocalRank,
        transfer: *const Transfer,
    ) -> Outcome,
    poll: unsafe extern "C" fn(
        data: *const c_void,
        endpoint: LocalRank,
        caller: LocalRank,
        budget: Budget,
        sink: SinkFunction,
        context: *mut c_void,
    ) -> Polled,
    owes: unsafe extern "C" fn(data: *const c_void, endpoint: LocalRank) -> bool,
    is_in_call: unsafe extern "C" fn(data: *const c_void, caller: LocalRank) -> bool,
    watch: unsafe extern "C" fn(data: *const c_void, caller: LocalRank, limit_nanoseconds: u64),
    interrupt: unsafe extern "C" fn(data: *const c_void, caller: LocalRank),
}

// SAFETY: made of a `&'static` to a transport, which is `Sync`, and of function pointers.
unsafe impl Sync for Network {}
// SAFETY: as above.
unsafe impl Send for Network {}

impl Network {
    /// The record of a transport.
    #[must_use]
    pub fn of<T: Transport + 'static>(transport: &'static T) -> Self {
        Self {
            magic: MAGIC,
            version: VERSION,
            data: core::ptr::from_ref(transport).cast(),
            limits: thunk::limits::<T>,
            send: thunk::send::<T>,
            send_now: thunk::send_now::<T>,
            expose: thunk::expose::<T>,
            withdraw: thunk::withdraw::<T>,
            transfer: thunk::transfer::<T>,
            poll: thunk::poll::<T>,
            owes: thunk::owes::<T>,
            is_in_call: thunk::is_in_call::<T>,
            watch: thunk::watch::<T>,
            interrupt: thunk::interrupt::<T>,
        }
    }
}

/// The functions of a record, for each kind of transport. All take the `data` of the record.
mod thunk {
    use super::{
        Budget, Duration, Event, EventRecord, FOREVER, Kind, LocalRank, Outcome, Packet, Pieces,
        Polled, Region, Sent, SinkFunction, TOGETHER_MAX, Token, Transfer, Transport, WorldRank,
        c_void,
    };

    /// # Safety
    /// `data` was made of a `&'static T`.
    unsafe fn transport<T: 'static>(data: *const c_void) -> &'static T {
        // SAFETY: the caller's promise.
        unsafe { &*data.cast() }
    }

    pub unsafe extern "C" fn limits<T: Transport + 'static>(
        data: *const c_void,
        packet: *mut usize,
        transfer: *mut usize,
    ) {
        // SAFETY: the record's own data, and places for the two results.
        unsafe {
            let limits = transport::<T>(data).limits();
            *packet = limits.packet;
            *transfer = limits.transfer;
        }
    }

    pub unsafe extern "C" fn send<T: Transport + 'static>(
        data: *const c_void,
        endpoint: LocalRank,
        caller: LocalRank,
        to: WorldRank,
        pieces: *const Pieces,
        token: Token,
    ) -> Outcome {
        // SAFETY: `Linked::send` made the pieces of two slices that live during the call and, by its
        // own contract, until the completion.
        unsafe {
            let packet = (*pieces).packet();
            Outcome::of(transport::<T>(data).send(endpoint, caller, to, packet, token))
        }
    }

    pub unsafe extern "C" fn send_now<T: Transport + 'static>(
        data: *const c_void,
        endpoint: LocalRank,
        caller: LocalRank,
        to: WorldRank,
        pieces: *const Pieces,
        count: usize,
    ) -> bool {
        let mut packets = [Packet::EMPTY; TOGETHER_MAX];
        let packets = &mut packets[..count];
        // SAFETY: `Linked::send_now` made so many pieces of slices that live during the call.
        unsafe {
            for (index, packet) in packets.iter_mut().enumerate() {
                *packet = (*pieces.add(index)).packet();
            }
            transport::<T>(data).send_now(endpoint, caller, to, packets)
        }
    }

    pub unsafe extern "C" fn expose<T: Transport + 'static>(
        data: *const c_void,
        endpoint: LocalRank,
        caller: LocalRank,
        start: *mut u8,
        length: usize,
        region: *mut Region,
    ) -> Outcome {
        // SAFETY: the conditions of `Transport::expose` are those of `Linked::expose`, whose caller
        // keeps them; `region` is a place for the result.
        match unsafe { transport::<T>(data).expose(endpoint, caller, start, length) } {
            Ok(made) => {
                // SAFETY: as above.
                unsafe { *region = made };
                Outcome::new(Kind::Done)
            }
            Err(reason) => Outcome::refused(reason),
        }
    }

    pub unsafe extern "C" fn withdraw<T: Transport + 'static>(
        data: *const c_void,
        endpoint: LocalRank,
        caller: LocalRank,
        region: Region,
    ) {
        // SAFETY: the record's own data.
        unsafe { transport::<T>(data) }.withdraw(endpoint, caller, region);
    }

    pub unsafe extern "C" fn transfer<T: Transport + 'static>(
        data: *const c_void,
        endpoint: LocalRank,
        caller: LocalRank,
        transfer: *const Transfer,
    ) -> Outcome {
        // SAFETY: a complete record; the conditions of `Transport::transfer` are those of `Linked::transfer`, whose
        // caller keeps them.
        let started = unsafe { transport::<T>(data).transfer(endpoint, caller, *transfer) };
        Outcome::of(started.map(|()| Sent::Pending))
    }

    pub unsafe extern "C" fn poll<T: Transport + 'static>(
        data: *const c_void,
        endpoint: LocalRank,
        caller: LocalRank,
        budget: Budget,
        sink: SinkFunction,
        context: *mut c_void,
    ) -> Polled {
        let mut forward = |event: Event<'_>| {
            let record = EventRecord::of(event);
            // SAFETY: the sink and its context belong together; the event lives during the call.
            unsafe { sink(context, &raw const record) };
        };
        // SAFETY: the record's own data.
        unsafe { transport::<T>(data) }.poll(endpoint, caller, budget, &mut forward)
    }

    pub unsafe extern "C" fn owes<T: Transport + 'static>(
        data: *const c_void,
        endpoint: LocalRank,
    ) -> bool {
        // SAFETY: the record's own data.
        unsafe { transport::<T>(data) }.owes(endpoint)
    }

    pub unsafe extern "C" fn is_in_call<T: Transport + 'static>(
        data: *const c_void,
        caller: LocalRank,
    ) -> bool {
        // SAFETY: the record's own data.
        unsafe { transport::<T>(data) }.is_in_call(caller)
    }

    pub unsafe extern "C" fn watch<T: Transport + 'static>(
        data: *const c_void,
        caller: LocalRank,
        limit_nanoseconds: u64,
    ) {
        let limit = (limit_nanoseconds != FOREVER).then(|| Duration::from_nanos(limit_nanoseconds));
        // SAFETY: the record's own data.
        unsafe { transport::<T>(data) }.watch(caller, limit);
    }

    pub unsafe extern "C" fn interrupt<T: Transport + 'static>(
        data: *const c_void,
        caller: LocalRank,
    ) {
        // SAFETY: the record's own data.
        unsafe { transport::<T>(data) }.interrupt(caller);
    }
}
