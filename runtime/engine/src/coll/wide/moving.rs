//! Collectives that move data.

use super::script::{Line, byte};
use super::{Group, Script};
use crate::EngineError;
use crate::coll::Blocks;
use crate::datatype::Layout;

/// Steps of a barrier by dissemination: after step *k* a member of the line knows of 2^*k* others.
pub(super) fn meet(script: &mut Script<'_>, line: Line<'_>) {
    let nothing = Layout::new(core::ptr::null_mut(), 0, byte());
    let Line { me, size, .. } = line;
    let mut distance = 1;
    while distance < size {
        script.receive(line.at((me + size - distance) % size), nothing);
        script.send(line.at((me + distance) % size), nothing);
        script.wait();
        distance *= 2;
    }
}

/// Steps that bring the buffer of the member at place `root` to all of a line, along a binomial tree.
pub(super) fn pass_on<'a>(
    script: &mut Script<'a>,
    line: Line<'_>,
    buffer: Layout<'a>,
    root: usize,
) {
    let Line { me, size, .. } = line;
    // Seen from the root, a member gets the data from the one without its lowest bit.
    let place = (me + size - root) % size;
    let mut bit = if place == 0 {
        size.next_power_of_two()
    } else {
        let lowest = place & place.wrapping_neg();
        script.receive(line.at((place - lowest + root) % size), buffer);
        script.wait();
        lowest
    };
    while bit > 1 {
        bit /= 2;
        if place + bit < size {
            script.send(line.at((place + bit + root) % size), buffer);
        }
    }
    script.wait();
}

/// Gather: everybody sends to the root.
///
/// # Safety
/// As [`gather`](crate::coll::gather).
pub(in crate::coll) unsafe fn gather(
    group: &Group<'_>,
    send: Option<Layout<'_>>,
    receive: Option<Blocks<'_>>,
    root: usize,
) -> Result<(), EngineError> {
    let mut script = Script::new(group, None);
    collect(&mut script, send, receive, root);
    // SAFETY: the caller's promise.
    unsafe { script.run() }
}

/// Steps that bring each member's block to the root.
pub(super) fn collect<'a>(
    script: &mut Script<'a>,
    send: Option<Layout<'a>>,
    receive: Option<Blocks<'a>>,
    root: usize,
) {
    let (me, size) = script.place();
    match (receive.filter(|_| me == root), send) {
        (Some(receive), send) => {
            for member in (0..size).filter(|&member| member != me) {
                script.receive(member, receive.block(member));
            }
            if let Some(send) = send {
                script.copy(send, receive.block(me));
            }
        }
        (None, Some(send)) => script.send(root, send),
        (None, None) => {}
    }
}

/// Scatter: the root sends to everybody.
///
/// # Safety
/// As [`scatter`](crate::coll::scatter).
pub(in crate::coll) unsafe fn scatter(
    group: &Group<'_>,
    send: Option<Blocks<'_>>,
    receive: Option<Layout<'_>>,
    root: usize,
) -> Result<(), EngineError> {
    let mut script = Script::new(group, None);
    deal_out(&mut script, send, receive, root);
    // SAFETY: the caller's promise.
    unsafe { script.run() }
}

/// Steps that bring each member its block of the root's.
pub(super) fn deal_out<'a>(
    script: &mut Script<'a>,
    send: Option<Blocks<'a>>,
    receive: Option<Layout<'a>>,
    root: usize,
) {
    let (me, size) = script.place();
    match (send.filter(|_| me == root), receive) {
        (Some(send), receive) => {
            for member in (0..size).filter(|&member| member != me) {
                script.send(member, send.block(member));
            }
            if let Some(receive) = receive {
                script.copy(send.block(me), receive);
            }
        }
        (None, Some(receive)) => script.receive(root, receive),
        (None, None) => {}
    }
}

/// Allgather: everybody sends to everybody.
///
/// # Safety
/// As [`allgather`](crate::coll::allgather), whose own block is in place.
pub(in crate::coll) unsafe fn allgather(
    group: &Group<'_>,
    send: Layout<'_>,
    receive: Blocks<'_>,
) -> Result<(), EngineError> {
    let mut script = Script::new(group, None);
    tell_everyone(&mut script, send, receive);
    // SAFETY: the caller's promise.
    unsafe { script.run() }
}

/// Steps that bring each member's block to all others.
pub(super) fn tell_everyone<'a>(script: &mut Script<'a>, send: Layout<'a>, receive: Blocks<'a>) {
    let (me, size) = script.place();
    for distance in 1..size {
        let from = (me + size - distance) % size;
        script.receive(from, receive.block(from));
    }
    for distance in 1..size {
        script.send((me + distance) % size, send);
    }
}

/// All-to-all: everybody sends to everybody.
///
/// # Safety
/// As [`alltoall`](crate::coll::alltoall), whose own block is in place.
pub(in crate::coll) unsafe fn alltoall(
    group: &Group<'_>,
    send: Blocks<'_>,
    receive: Blocks<'_>,
) -> Result<(), EngineError> {
    let mut script = Script::new(group, None);
    tell_each(&mut script, send, receive);
    // SAFETY: the caller's promise.
    unsafe { script.run() }
}

/// Steps that bring each member a block of its own from all others.
pub(super) fn tell_each<'a>(script: &mut Script<'a>, send: Blocks<'a>, receive: Blocks<'a>) {
    let (me, size) = script.place();
    for distance in 1..size {
        let from = (me + size - distance) % size;
        script.receive(from, receive.block(from));
    }
    for distance in 1..size {
        let to = (me + distance) % size;
        script.send(to, send.block(to));
    }
}
