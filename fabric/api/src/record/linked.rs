//! The other side of the border: a record that is a transport again.

use super::{EventRecord, FOREVER, MAGIC, Network, Pieces, VERSION};
use crate::{
    Budget, Event, Limits, LocalRank, Packet, Polled, Refused, Region, Sent, TOGETHER_MAX, Token,
    Transfer, Transport, WorldRank,
};
use core::ffi::c_void;
use core::time::Duration;

/// A network that another library provides.
#[derive(Clone, Copy, Debug)]
pub struct Linked<'a> {
    network: &'a Network,
    limits: Limits,
}

impl<'a> Linked<'a> {
    /// Takes the record that `NodeBoot::network` points to; none if it is NULL or of another version.
    ///
    /// # Safety
    /// NULL, or the address of a record whose first two fields are a magic number and a version, and
    /// which, if both are ours, is a [`Network`] that stays valid and unchanged for `'a`.
    #[must_use]
    pub unsafe fn open(network: *const c_void) -> Option<Self> {
        let network: *const Network = network.cast();
        if network.is_null() {
            return None;
        }
        // SAFETY: the caller's promise about the first two fields.
        let (magic, version) = unsafe { ((*network).magic, (*network).version) };
        if magic != MAGIC || version != VERSION {
            return None;
        }
        // SAFETY: the caller's promise about records of this version.
        Some(Self::new(unsafe { &*network }))
    }

    /// The transport that a record stands for.
    #[must_use]
    pub fn new(network: &'a Network) -> Self {
        let (mut packet, mut transfer) = (0, 0);
        // SAFETY: a record made by `Network::of`, which has no other constructor.
        unsafe { (network.limits)(network.data, &raw mut packet, &raw mut transfer) };
        Self {
            network,
            limits: Limits { packet, transfer },
        }
    }
}

/// Hands one event to the closure that `context` points to.
unsafe extern "C" fn give(context: *mut c_void, event: *const EventRecord) {
    // SAFETY: `Linked::poll` passes the address of its sink, which nobody else uses meanwhile, and the
    // record lives during the call.
    unsafe {
        let sink = &mut *context.cast::<&mut dyn FnMut(Event<'_>)>();
        sink((*event).get());
    }
}

// SAFETY: the record was made of a transport, whose promises are passed on.
unsafe impl Transport for Linked<'_> {
    fn limits(&self) -> Limits {
        self.limits
    }

    unsafe fn send(
        &self,
        endpoint: LocalRank,
        caller: LocalRank,
        to: WorldRank,
        packet: Packet<'_>,
        token: Token,
    ) -> Result<Sent, Refused> {
        let pieces = Pieces::of(packet);
        let network = self.network;
        // SAFETY: the record's function with its data; the caller keeps the contract.
        let outcome =
            unsafe { (network.send)(network.data, endpoint, caller, to, &raw const pieces, token) };
        outcome.get()
    }

    fn send_now(
        &self,
        endpoint: LocalRank,
        caller: LocalRank,
        to: WorldRank,
        packets: &[Packet<'_>],
    ) -> bool {
        let mut pieces = [Pieces::of(Packet::EMPTY); TOGETHER_MAX];
        let count = packets.len();
        if count > TOGETHER_MAX {
            return false;
        }
        for (place, packet) in pieces.iter_mut().zip(packets) {
            *place = Pieces::of(*packet);
        }
        let network = self.network;
        // SAFETY: the record's function with its data; the packets live during the call.
        unsafe { (network.send_now)(network.data, endpoint, caller, to, pieces.as_ptr(), count) }
    }

    unsafe fn expose(
        &self,
        endpoint: LocalRank,
        caller: LocalRank,
        start: *mut u8,
        length: usize,
    ) -> Result<Region, Refused> {
        let mut region = Region { key: 0, address: 0 };
        let network = self.network;
        // SAFETY: the record's function with its data; the caller keeps the contract.
        let outcome = unsafe {
            (network.expose)(
                network.data,
                endpoint,
                caller,
                start,
                length,
                &raw mut region,
            )
        };
        outcome.get().map(|_done| region)
    }

    fn withdraw(&self, endpoint: LocalRank, caller: LocalRank, region: Region) {
        // SAFETY: the record's function with its data.
        unsafe { (self.network.withdraw)(self.network.data, endpoint, caller, region) };
    }

    unsafe fn transfer(
        &self,
        endpoint: LocalRank,
        caller: LocalRank,
        transfer: Transfer,
    ) -> Result<(), Refused> {
        let network = self.network;
        // SAFETY: the record's function with its data; the caller keeps the contract.
        let outcome =
            unsafe { (network.transfer)(network.data, endpoint, caller, &raw const transfer) };
        outcome.get().map(|_pending| ())
    }

    fn poll(
        &self,
        endpoint: LocalRank,
        caller: LocalRank,
        budget: Budget,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Polled {
        let mut sink = sink;
        let context = (&raw mut sink).cast::<c_void>();
        let network = self.network;
        // SAFETY: the record's function with its data; `give` fits `context`.
        unsafe { (network.poll)(network.data, endpoint, caller, budget, give, context) }
    }

    fn owes(&self, endpoint: LocalRank) -> bool {
        // SAFETY: the record's function with its data.
        unsafe { (self.network.owes)(self.network.data, endpoint) }
    }

    fn is_in_call(&self, caller: LocalRank) -> bool {
        // SAFETY: the record's function with its data.
        unsafe { (self.network.is_in_call)(self.network.data, caller) }
    }

    fn watch(&self, caller: LocalRank, limit: Option<Duration>) {
        let nanoseconds = limit.map_or(FOREVER, |limit| {
            u64::try_from(limit.as_nanos()).unwrap_or(FOREVER)
        });
        // SAFETY: the record's function with its data.
        unsafe { (self.network.watch)(self.network.data, caller, nanoseconds) };
    }

    fn interrupt(&self, caller: LocalRank) {
        // SAFETY: the record's function with its data.
        unsafe { (self.network.interrupt)(self.network.data, caller) };
    }
}
