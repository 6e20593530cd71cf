//! Counts the calls on communicators that a tool follows ([`crate::subject::followed`]).

use super::statistics::classes::{Class, Shape, shapes};
use crate::calls::{Parameter, ParameterKind};
use crate::subject::RequestFacts;
use crate::subject::followed::Amounts;
use crate::subject::observers::{Consumer, Observed};
use alloc::vec::Vec;
use cohort_abi::neutral;

/// The consumer that counts.
pub struct Counting;

impl Consumer for Counting {
    fn begin(&self, call: &Observed<'_>) {
        let followed = &call.subject.tool.followed;
        if call.depth > 0 || followed.is_empty() {
            return;
        }
        match shape(call).class {
            Class::Wait => {
                let mut comms: Vec<u32> = requests(call).map(|request| request.comm).collect();
                comms.sort_unstable();
                comms.dedup();
                followed.awaits(call.thread, comms);
            }
            // Before they begin, since persistent ones may be complete at once.
            Class::Start => {
                for request in requests(call) {
                    if let Some(bytes) = request.sends {
                        let amounts = Amounts { messages: 1, bytes, ..Amounts::default() };
                        followed.count(request.comm, &amounts);
                    }
                }
            }
            Class::CommFree => {
                // SAFETY: the program passes the address of a handle, as the standard demands.
                followed.leaves(call.thread, unsafe { call.words.comm_at(call.word(0)) });
            }
            _ => {}
        }
    }

    fn end(&self, call: &Observed<'_>, code: i32, ended: u64) {
        let followed = &call.subject.tool.followed;
        if call.depth > 0 || followed.is_empty() {
            return;
        }
        let time = ended.saturating_sub(call.begun);
        let shape = shape(call);
        if shape.class == Class::Wait {
            let amounts = Amounts { time, waiting: time, ..Amounts::default() };
            for comm in followed.awaited(call.thread) {
                followed.count(comm, &amounts);
            }
        } else if shape.class == Class::CommFree {
            followed.has_left(call.thread, code == 0);
        } else if let Some(word) = call.find(ParameterKind::Comm) {
            let amounts = amounts(call, shape, code == 0, time);
            followed.count(call.words.comm(word), &amounts);
        }
    }
}

fn shape(call: &Observed<'_>) -> &'static Shape {
    &shapes()[call.call.number as usize]
}

/// What a call on a communicator comes to.
fn amounts(call: &Observed<'_>, shape: &Shape, is_well: bool, time: u64) -> Amounts {
    let peer = shape.peer.map(|place| call.words.rank(call.word(place)));
    let sends = matches!(shape.class, Class::Send { .. } | Class::Exchange | Class::ExchangeBegin);
    let is_message = sends && peer != Some(neutral::PROC_NULL);
    let gives = match shape.class {
        Class::Receive | Class::ReceiveBegin | Class::SendInit => false,
        _ => !sends || is_message,
    };
    let waits = matches!(
        shape.class,
        Class::Receive | Class::Exchange | Class::Collective(_) | Class::Waits | Class::Send { waits: true }
    );
    Amounts {
        calls: 1,
        messages: u64::from(is_well && is_message),
        bytes: if is_well && gives { shape.bytes(call) } else { 0 },
        time,
        waiting: if is_well && waits { time } else { 0 },
    }
}

/// What the requests of a call stand for that have a communicator of their own.
fn requests(call: &Observed<'_>) -> impl Iterator<Item = RequestFacts> {
    let is_request = |p: &Parameter| p.kind == ParameterKind::Request;
    let place = call.call.parameters.iter().position(is_request);
    let count = match call.call.named("count").or(call.call.named("incount")) {
        Some(count) => usize::try_from(call.number(count)).unwrap_or(0),
        None => 1,
    };
    let address = place.map(|place| call.word(place));
    let (subject, words) = (call.subject, call.words);
    (0..count).filter_map(move |index| {
        // SAFETY: the program passes so many handles, as the standard demands.
        let handle = unsafe { words.request_at(address?, index) };
        // SAFETY: the call is about to complete or start the request, and no other thread does meanwhile, as MPI
        // demands.
        unsafe { (subject.request)(subject.objects.rank(), handle) }
    })
}
