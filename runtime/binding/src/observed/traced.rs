//! Calls as events of a timeline (`COHORT_TRACE`).

use crate::calls::Kind as Parameter;
use crate::process::observers::{Consumer, Observed};
use cohort_base::trace::{self, Event, Kind, NO_TAG, NOBODY, Ring};

/// Notes a rank's calls in its ring.
pub(super) struct Traced(pub(super) &'static Ring);

impl Consumer for Traced {
    fn begin(&self, call: &Observed<'_>) {
        let name = call.call.said();
        let peer = call.find(Parameter::Rank);
        let tag = call.find(Parameter::Tag);
        let peer = peer.map_or(NOBODY, |word| call.words.rank(word).cast_unsigned());
        self.0.note(&Event {
            flow: name.as_ptr().addr() as u64,
            bytes: bytes(call),
            tag: tag.map_or(NO_TAG, |word| call.words.tag(word)),
            name: u8::try_from(name.len()).unwrap_or(u8::MAX),
            ..Event::at(Kind::Begin, peer, trace::thread(), call.begun)
        });
    }

    fn end(&self, _call: &Observed<'_>, _code: i32, ended: u64) {
        let event = Event::at(Kind::End, NOBODY, trace::thread(), ended);
        self.0.note(&event);
    }
}

/// Bytes that a call sends or receives, as far as one count of one datatype says.
fn bytes(call: &Observed<'_>) -> u64 {
    let places = [Parameter::Count, Parameter::Datatype].map(|kind| call.call.find(kind));
    match places {
        [Some(count), Some(datatype)] => call.bytes(count, datatype),
        _ => 0,
    }
}
