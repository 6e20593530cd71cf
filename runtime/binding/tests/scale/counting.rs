//! What is counted: memory of this process, and packets of the node.

use cohort_alloc::SharedHeap;
use cohort_fabric::{
    Budget, Event, Limits, LocalRank, Packet, Polled, Refused, Region, Sent, Token, Transfer, Transport, WorldRank,
};
use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes that are allocated.
static ALLOCATED: AtomicU64 = AtomicU64::new(0);

struct Counting;

/// The allocator of the node image.
// SAFETY: a static.
static HEAP: SharedHeap = unsafe { SharedHeap::new() };

// SAFETY: everything is the heap's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { HEAP.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { HEAP.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { HEAP.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that are allocated now.
pub(crate) fn allocated() -> u64 {
    ALLOCATED.load(Ordering::Relaxed)
}

/// A network that takes every packet and brings none.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    pub(crate) packets: AtomicU64,
}

// SAFETY: it keeps nothing that it is given.
unsafe impl Transport for Sink {
    fn limits(&self) -> Limits {
        Limits { packet: 16 << 10, transfer: 0 }
    }

    unsafe fn send(
        &self,
        _endpoint: LocalRank,
        _caller: LocalRank,
        _to: WorldRank,
        _packet: Packet<'_>,
        _token: Token,
    ) -> Result<Sent, Refused> {
        self.packets.fetch_add(1, Ordering::Relaxed);
        Ok(Sent::Done)
    }

    unsafe fn expose(
        &self,
        _endpoint: LocalRank,
        _caller: LocalRank,
        _start: *mut u8,
        _length: usize,
    ) -> Result<Region, Refused> {
        Err(Refused::Busy)
    }

    fn withdraw(&self, _endpoint: LocalRank, _caller: LocalRank, _region: Region) {}

    unsafe fn transfer(&self, _endpoint: LocalRank, _caller: LocalRank, _transfer: Transfer) -> Result<(), Refused> {
        Err(Refused::Busy)
    }

    fn poll(
        &self,
        _endpoint: LocalRank,
        _caller: LocalRank,
        _budget: Budget,
        _sink: &mut dyn FnMut(Event<'_>),
    ) -> Polled {
        Polled::default()
    }

    fn owes(&self, _endpoint: LocalRank) -> bool {
        false
    }

    fn watch(&self, _caller: LocalRank, _limit: Option<Duration>, _others: &[i32]) {}

    fn interrupt(&self, _caller: LocalRank) {}
}
