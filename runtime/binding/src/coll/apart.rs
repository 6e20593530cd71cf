//! Send and receive buffers have no bytes in common (MPI-4.1, 6.5 and what follows): `MPI_IN_PLACE` is for those who
//! want that. Data with holes is not looked at, as two such buffers may be interleaved.

use crate::arguments::Outcome;
use cohort_abi::neutral;
use cohort_engine::coll::{Blocks, Call, Group, Reduction, Scan};
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
        return Ok(());
    };
    let (from, to) = (from.addr() as u64, to.addr() as u64);
    let is_before = |first: u64, length: u64, second| first.saturating_add(length) <= second;
    match bytes == 0 || room == 0 || is_before(from, bytes, to) || is_before(to, room, from) {
        true => Ok(()),
        false => Err(overlap(from, bytes, to, room)),
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
    match *blocks {
        Blocks::Equal(block) => buffers(own, all_of(block, members)),
        _ => (0..members).try_for_each(|member| buffers(own, blocks.block(member))),
    }
}

/// Equal blocks, of which this is the first, as one buffer.
#[inline]
fn all_of(block: Buffer<'_>, members: usize) -> Buffer<'_> {
    let count = block.count.saturating_mul(members as u64);
    Buffer::new(block.base, count, block.datatype)
}

/// Refuses blocks to send that overlap blocks to receive. Only blocks of equal length are looked at.
///
/// # Errors
/// `MPI_ERR_BUFFER`.
#[inline]
pub fn blocks(group: &Group<'_>, sent: &Blocks<'_>, received: &Blocks<'_>) -> Outcome<()> {
    match *sent {
        Blocks::Equal(block) => from_blocks(group, all_of(block, group.world.len()), received),
        _ => Ok(()),
    }
}

/// Refuses an operand that overlaps the `received` elements of the result.
///
/// # Errors
/// `MPI_ERR_BUFFER`.
#[inline]
pub fn operands(group: &Group<'_>, reduction: &Reduction<'_>, received: u64) -> Outcome<()> {
    let result = reduction.result;
    match reduction.input {
        Some(input) if checks(group) => {
            let operand = Buffer::new(input.cast_mut(), result.count, result.datatype);
            buffers(operand, Buffer::new(result.base, received, result.datatype))
        }
        _ => Ok(()),
    }
}

/// The same for the result of a scan, which the first member of an exclusive one does not get.
///
/// # Errors
/// `MPI_ERR_BUFFER`.
pub fn scanned(group: &Group<'_>, reduction: &Reduction<'_>, kind: Scan) -> Outcome<()> {
    match (kind, group.me) {
        (Scan::Exclusive, 0) => Ok(()),
        _ => operands(group, reduction, reduction.result.count),
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
pub fn described(group: &Group<'_>, call: &Call<'_>) -> Outcome<()> {
    match call {
        Call::Gather {
            send: Some(send),
            receive: Some(receive),
            ..
        } => from_blocks(group, *send, receive),
        Call::Scatter {
            send: Some(send),
            receive: Some(receive),
            ..
        } => from_blocks(group, *receive, send),
        Call::Allgather {
            send: Some(send),
            receive,
        } => from_blocks(group, *send, receive),
        Call::Alltoall {
            send: Some(send),
            receive,
        } => blocks(group, send, receive),
        Call::Reduce { reduction, root } if *root == group.me => {
            operands(group, reduction, reduction.result.count)
        }
        Call::Allreduce { reduction } => operands(group, reduction, reduction.result.count),
        Call::ReduceScatter { reduction, counts } => scattered(group, reduction, counts),
        Call::Scan { reduction, kind } => scanned(group, reduction, *kind),
        _ => Ok(()),
    }
}
