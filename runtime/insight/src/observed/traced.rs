//! Calls as events of a timeline (`COHORT_TRACE`).

use crate::calls::ParameterKind;
use crate::subject::observers::{Consumer, DEPTH, Observed, THREADS};
use cohort_base::trace::{self, Event, EventKind, NO_TAG, NOBODY, Ring};
use core::sync::atomic::{AtomicU64, Ordering};

/// Notes a rank's calls in its ring.
pub(super) struct Traced {
    ring: &'static Ring,
    /// Numbers of the events of the calls that each thread is in; the thread's own, so all accesses are Relaxed.
    open: [[AtomicU64; DEPTH]; THREADS],
}

impl Traced {
    /// For the ring of a rank.
    pub(super) fn new(ring: &'static Ring) -> Self {
        let threads = [const { [const { AtomicU64::new(0) }; DEPTH] }; THREADS];
        Self { ring, open: threads }
    }
}

impl Consumer for Traced {
    fn begin(&self, call: &Observed<'_>) {
        let number = self.ring.note(&event(call, 0));
        self.open[call.thread][call.depth].store(number, Ordering::Relaxed);
    }

    fn end(&self, call: &Observed<'_>, _code: i32, ended: u64) {
        let number = self.open[call.thread][call.depth].load(Ordering::Relaxed);
        if !self.ring.end(number, ended) {
            // It took so long that newer events have its place.
            self.ring.note(&event(call, ended));
        }
    }
}

/// A call that has ended at this time, or not yet.
#[inline]
fn event(call: &Observed<'_>, end: u64) -> Event {
    let name = call.call.said();
    let peer = call.find(ParameterKind::Rank);
    let tag = call.find(ParameterKind::Tag);
    let peer = peer.map_or(NOBODY, |word| call.words.rank(word).cast_unsigned());
    Event {
        end,
        flow: name.as_ptr().addr() as u64,
        bytes: bytes(call),
        tag: tag.map_or(NO_TAG, |word| call.words.tag(word)),
        name: u8::try_from(name.len()).unwrap_or(u8::MAX),
        ..Event::at(EventKind::Call, peer, trace::thread(), call.begun)
    }
}

/// Bytes that a call sends or receives, as far as one count of one datatype says.
fn bytes(call: &Observed<'_>) -> u64 {
    let places = [ParameterKind::Count, ParameterKind::Datatype].map(|kind| call.call.find(kind));
    match places {
        [Some(count), Some(datatype)] => call.bytes(count, datatype),
        _ => 0,
    }
}
