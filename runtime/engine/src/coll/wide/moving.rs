//! Collectives that move data.

use super::script::{Line, byte};
use super::{Group, Script};
use crate::EngineError;
use crate::coll::Blocks;
use crate::coll::fold::reserve;
use crate::datatype::Layout;
use alloc::vec::Vec;

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

/// Bytes of the pieces in which a long buffer goes from member to member.
const PIECE: u64 = 128 << 10;

/// The longest line along which a buffer of any length is passed on whole: members that disagree about the length then still do the
/// same.
const WHOLE_MOST: usize = 4;

/// Steps that bring the buffer of the member at place `root` to all of a line.
///
/// # Errors
/// [`EngineError::OutOfMemory`].
pub(super) fn pass_on<'a>(
    script: &mut Script<'a>,
    line: Line<'_>,
    buffer: Layout<'a>,
    root: usize,
) -> Result<(), EngineError> {
    let (members, pieces) = (line.size as u64, buffer.bytes().div_ceil(PIECE));
    // When the last member has it all: at the end of a chain, or of a tree that passes on whole buffers.
    let depth = u64::from(line.size.next_power_of_two().ilog2());
    if line.size > WHOLE_MOST && pieces + members < pieces * depth + 2 {
        return pass_pieces_on(script, line, buffer, root);
    }
    pass_whole_on(script, line, buffer, root);
    Ok(())
}

/// [`pass_on`] along a chain, piece by piece: each member sends one on while it receives the next.
fn pass_pieces_on<'a>(
    script: &mut Script<'a>,
    line: Line<'_>,
    buffer: Layout<'a>,
    root: usize,
) -> Result<(), EngineError> {
    let Line { me, size, .. } = line;
    let (place, bytes) = ((me + size - root) % size, buffer.bytes());
    let base = match buffer.contiguous() {
        Some(base) => base,
        None => {
            let mut packed: Vec<u8> = reserve(bytes as usize)?;
            let base = packed.as_mut_ptr();
            script.keep(packed);
            base
        }
    };
    let whole = Layout::new(base, bytes, byte());
    let is_packed = buffer.contiguous().is_none();
    if is_packed && place == 0 {
        script.copy(buffer, whole);
    }
    let neighbour = |place: usize| line.at((place + root) % size);
    let mut ready: Option<Layout<'a>> = None;
    for start in (0..bytes).step_by(PIECE as usize) {
        let at = base.wrapping_add(start as usize);
        let piece = Layout::new(at, PIECE.min(bytes - start), byte());
        if place > 0 {
            script.receive(neighbour(place - 1), piece);
        }
        if let Some(last) = ready.replace(piece).filter(|_| place + 1 < size) {
            script.send(neighbour(place + 1), last);
        }
        script.wait();
    }
    if let Some(last) = ready.filter(|_| place + 1 < size) {
        script.send(neighbour(place + 1), last);
        script.wait();
    }
    if is_packed && place > 0 {
        script.copy(whole, buffer);
    }
    Ok(())
}

/// [`pass_on`] along a binomial tree.
fn pass_whole_on<'a>(script: &mut Script<'a>, line: Line<'_>, buffer: Layout<'a>, root: usize) {
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
