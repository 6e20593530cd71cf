//! Send and receive buffers have no bytes in common (MPI-4.1, 6.5 and what follows): `MPI_IN_PLACE` is for those who
//! want that. Of data with holes only the same address with the same type is refused, as two such buffers may be
//! interleaved.

use crate::arguments::Outcome;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_engine::coll::{Blocks, Call, Group, Neighbour, Reduction, Scan};
use cohort_engine::datatype::Buffer;
use cohort_object::{Error, blame};

/// Refuses two buffers that have bytes in common.
///
/// # Errors
/// `MPI_ERR_BUFFER`.
#[inline]
pub fn buffers(sent: Buffer<'_>, received: Buffer<'_>) -> Outcome<()> {
    let (bytes, room) = (sent.bytes(), received.bytes());
    let (Some(from), Some(to)) = (sent.contiguous(), received.contiguous()) else {
        return with_holes(sent, received);
    };
    let (from, to) = (from.addr() as u64, to.addr() as u64);
    let is_before = |first: u64, length: u64, second| first.saturating_add(length) <= second;
    match bytes == 0 || room == 0 || is_before(from, bytes, to) || is_before(to, room, from) {
        true => Ok(()),
        false => Err(overlap(from, bytes, to, room)),
    }
}

/// [`buffers`] for data that is not one run of bytes.
#[cold]
fn with_holes(sent: Buffer<'_>, received: Buffer<'_>) -> Outcome<()> {
    let (bytes, room) = (sent.bytes(), received.bytes());
    let is_same = sent.base() == received.base() && core::ptr::eq(sent.datatype(), received.datatype());
    match bytes > 0 && room > 0 && is_same {
        true => Err(overlap(sent.base().addr() as u64, bytes, received.base().addr() as u64, room)),
        false => Ok(()),
    }
}

#[cold]
fn overlap(from: u64, bytes: u64, to: u64, room: u64) -> Error {
    let what = format_args!(
        "the {bytes} bytes to send at {from:#x} overlap the {room} bytes to receive at {to:#x}; \
         MPI_IN_PLACE is for that"
    );
    blame(neutral::ERR_BUFFER, what)
}

/// Whether arguments are checked at all (`COHORT_CHECK`).
#[inline]
fn checks(group: &Group<'_>) -> bool {
    group.owner.rank().node().settings().check
}

/// Refuses a buffer that overlaps the blocks of the members of `group`.
///
/// # Errors
/// `MPI_ERR_BUFFER`.
#[inline]
pub fn from_blocks(group: &Group<'_>, own: Buffer<'_>, blocks: &Blocks<'_>) -> Outcome<()> {
    if !checks(group) {
        return Ok(());
    }
    let members = group.world.len();
    match blocks.several(0..members) {
        Some(all) => buffers(own, all),
        None => (0..members).try_for_each(|member| buffers(own, blocks.block(member))),
    }
}

/// Refuses blocks to send that overlap blocks to receive.
///
/// # Errors
/// `MPI_ERR_BUFFER`.
#[inline]
pub fn blocks(group: &Group<'_>, sent: &Blocks<'_>, received: &Blocks<'_>) -> Outcome<()> {
    let members = group.world.len();
    match sent.several(0..members) {
        Some(all) => from_blocks(group, all, received),
        _ if checks(group) && !are_hulls_apart(sent, received, members) => {
            lists(&Side(sent, members, |_| true), &Side(received, members, |_| true))
        }
        _ => Ok(()),
    }
}

/// Whether it is known without a look at each block that none of `sent` overlaps one of `received`.
#[inline]
fn are_hulls_apart(sent: &Blocks<'_>, received: &Blocks<'_>, members: usize) -> bool {
    match (sent.hull(members), received.hull(members)) {
        (Some(from), Some(to)) => from.end <= to.start || to.end <= from.start,
        _ => false,
    }
}

/// The same for the blocks to and from neighbours; with `to_all` each destination gets the one block of `sent`.
///
/// # Errors
/// `MPI_ERR_BUFFER`.
pub fn neighbours(
    group: &Group<'_>,
    (sent, destinations, to_all): (&Blocks<'_>, &[Neighbour], bool),
    (received, sources): (&Blocks<'_>, &[Neighbour]),
) -> Outcome<()> {
    if !checks(group) {
        return Ok(());
    }
    let of = |side: &[Neighbour], at: usize| side.get(at).is_some_and(|it| it.rank.is_some());
    let sends = if to_all { 1 } else { destinations.len() };
    let sent = Side(sent, sends, |at| to_all || of(destinations, at));
    lists(&sent, &Side(received, sources.len(), |at| of(sources, at)))
}

/// So many blocks, and which of them count.
struct Side<'a, F: Fn(usize) -> bool>(&'a Blocks<'a>, usize, F);

/// A run of bytes: its first byte, and the one behind its last.
type Run = (u64, u64);

impl<'a, F: Fn(usize) -> bool> Side<'a, F> {
    fn blocks(&self) -> impl Iterator<Item = Buffer<'a>> {
        let numbers = (0..self.1).filter(|&at| self.2(at));
        numbers.map(|at| self.0.block(at))
    }

    /// The run of bytes of each block that has any. Those with holes have none.
    fn runs(&self) -> impl Iterator<Item = Run> {
        self.blocks().filter_map(|block| {
            let (start, bytes) = (block.contiguous()?.addr() as u64, block.bytes());
            (bytes > 0).then(|| (start, start.saturating_add(bytes)))
        })
    }

    /// From the first byte of any run to the last of any.
    fn hull(&self) -> Option<Run> {
        let join = |all: Run, run: Run| (all.0.min(run.0), all.1.max(run.1));
        self.runs().reduce(join)
    }
}

/// Refuses blocks to send that overlap blocks to receive. Most programs have a buffer for each, which is seen at once;
/// blocks of one buffer are sorted.
fn lists<F, G>(sent: &Side<'_, F>, received: &Side<'_, G>) -> Outcome<()>
where
    F: Fn(usize) -> bool,
    G: Fn(usize) -> bool,
{
    if !sent.0.are_dense() {
        for (from, to) in sent.blocks().zip(received.blocks()) {
            if from.contiguous().is_none() {
                buffers(from, to)?;
            }
        }
    }
    match (sent.hull(), received.hull()) {
        (Some(from), Some(to)) if from.0 < to.1 && to.0 < from.1 => {
            let sent = sent.runs().map(|run| (run, true));
            let received = received.runs().map(|run| (run, false));
            sorted(sent.chain(received).collect())
        }
        _ => Ok(()),
    }
}

/// [`lists`] for runs, with whether they are sent: in the order of their addresses, one overlaps one of the other kind
/// if it begins before the furthest end of these.
#[cold]
fn sorted(mut all: Vec<(Run, bool)>) -> Outcome<()> {
    all.sort_unstable();
    let mut furthest: [Run; 2] = [(0, 0); 2];
    for (run, is_sent) in all {
        let other = furthest[usize::from(!is_sent)];
        if run.0 < other.1 {
            let (from, to) = if is_sent { (run, other) } else { (other, run) };
            return Err(overlap(from.0, from.1 - from.0, to.0, to.1 - to.0));
        }
        let own = &mut furthest[usize::from(is_sent)];
        if run.1 > own.1 {
            *own = run;
        }
    }
    Ok(())
}

/// Refuses an operand that overlaps the `received` elements of the result.
///
/// # Errors
/// `MPI_ERR_BUFFER`.
#[inline]
pub fn operands(group: &Group<'_>, reduction: &Reduction<'_>, received: u64) -> Outcome<()> {
    match reduction.input() {
        Some(operand) if checks(group) => {
            let result = reduction.result();
            // SAFETY: nobody reads or writes it here; only addresses are compared.
            buffers(operand, unsafe { result.part(0, received) })
        }
        _ => Ok(()),
    }
}

/// The same for a result of which each member gets as many elements as `counts` says.
///
/// # Errors
/// `MPI_ERR_BUFFER`.
pub fn scattered(group: &Group<'_>, reduction: &Reduction<'_>, counts: &[i64]) -> Outcome<()> {
    let received = counts.get(group.me as usize).copied().unwrap_or(0);
    operands(group, reduction, received.cast_unsigned())
}

/// Refuses buffers of any collective that overlap.
///
/// # Errors
/// `MPI_ERR_BUFFER`.
#[inline(never)]
pub fn described(group: &Group<'_>, call: &Call<'_>) -> Outcome<()> {
    known(group, call)
}

/// [`described`] for a call whose operation is known at compile time: that operation alone is left of this.
///
/// # Errors
/// `MPI_ERR_BUFFER`.
#[inline(always)]
pub fn known(group: &Group<'_>, call: &Call<'_>) -> Outcome<()> {
    match call {
        Call::Gather { send: Some(send), receive: Some(receive), .. } => from_blocks(group, *send, receive),
        Call::Scatter { send: Some(send), receive: Some(receive), .. } => from_blocks(group, *receive, send),
        Call::Allgather { send: Some(send), receive } => from_blocks(group, *send, receive),
        Call::Alltoall { send: Some(send), receive } => blocks(group, send, receive),
        Call::Reduce { reduction, root } if *root == group.me => operands(group, reduction, reduction.result().count()),
        // It gets no result, so there is no place that could overlap (MPI 4.1, 6.11.2).
        Call::Scan { kind: Scan::Exclusive, .. } if group.me == 0 => Ok(()),
        Call::Allreduce { reduction } | Call::Scan { reduction, .. } => {
            operands(group, reduction, reduction.result().count())
        }
        Call::ReduceScatter { reduction, counts } => scattered(group, reduction, counts),
        Call::Neighbours { sources, destinations, send, to_all, receive } => {
            neighbours(group, (send, destinations, *to_all), (receive, sources))
        }
        _ => Ok(()),
    }
}
