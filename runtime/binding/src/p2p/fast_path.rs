//! The fast path of messages to and from ranks of the node: a few elements of a predefined type, a tag and a rank,
//! no wildcard. What the arguments are is found by a few comparisons. Whatever does not fit, and all errors, take the
//! slow path (`blocking.rs`, `nonblocking.rs`), where nothing has happened yet.

use crate::arguments::{Call, Error, known_dense};
use cohort_abi::parameters::{Buffer, Out};
use cohort_abi::{Abi, Constants, Count, Handle, HandleKind, SENT_REQUEST, dynamic};
use cohort_engine::datatype::{self, TypeRef, predefined};
use cohort_engine::matching::Want;
use cohort_engine::{Envelope, LocalRank, Status, fast_path, offload};
use cohort_object::Comm;
use core::ffi::c_int;

/// Elements of the longest message of this kind: no product of them with a size is too large.
const MANY: u64 = 1 << 32;

/// A message of this kind.
struct Near<'a> {
    comm: &'a Comm,
    base: *mut u8,
    count: u64,
    bytes: u64,
    /// The other rank.
    peer: LocalRank,
}

impl<'a> Near<'a> {
    #[inline(always)]
    fn of<A: Abi, C: Count>(
        call: &Call<'a, A>,
        buffer: &Buffer<A, C>,
        (rank, tag): (c_int, c_int),
        comm: A::Comm,
    ) -> Option<Self> {
        // Wildcards of all ABIs are negative.
        if rank | tag < 0 {
            return None;
        }
        let size = known_dense::<A>(buffer.datatype.neutral())?.size;
        // Negative ones are very large.
        let count = buffer.count.to_i64().cast_unsigned();
        let address = buffer.base.addr();
        let is_somewhere = address != 0 && address != <A as Constants>::IN_PLACE;
        if count >= MANY || !is_somewhere {
            return None;
        }
        let comm = call.objects().comm(comm.neutral()).ok()?;
        let node = call.rank().node();
        let peer = node.local(comm.peer(rank)?)?;
        let bytes = count * u64::from(size);
        let base = buffer.base.as_ptr().cast();
        node.is_eager(bytes).then_some(Self { comm, base, count, bytes, peer })
    }

    /// What a receive asks for.
    #[inline(always)]
    fn want(&self, (rank, tag): (c_int, c_int)) -> Want {
        Want::exact(self.comm.context(), rank, tag)
    }
}

/// A standard send; says whether it was done.
#[inline(always)]
pub(super) fn send<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: &Buffer<A, C>,
    (to, tag): (c_int, c_int),
    comm: A::Comm,
    then: fast_path::Then,
) -> bool {
    let Some(near) = Near::of(call, buffer, (to, tag), comm) else {
        return false;
    };
    let bytes = near.bytes as usize;
    let envelope = Envelope { context: near.comm.context(), source: near.comm.me() as i32, tag };
    if bytes > fast_path::LONGEST {
        return match bytes <= fast_path::LONGEST_IN_CELLS {
            true => send_in_cells(call, &near, &envelope),
            false => send_longer(call, &near, buffer.datatype.neutral(), &envelope),
        };
    }
    let claim = &mut call.rank().enter();
    // SAFETY: the arguments of a call, for which MPI promises that the buffer is readable.
    unsafe { fast_path::send(claim, near.base, bytes, near.peer, envelope, then) }
}

/// [`send`] of a message that takes several cells of a ring.
#[inline(never)]
fn send_in_cells<A: Abi>(call: &Call<'_, A>, near: &Near<'_>, envelope: &Envelope) -> bool {
    let claim = &mut call.rank().enter();
    // SAFETY: the arguments of a call, for which MPI promises that the buffer is readable.
    unsafe { fast_path::send_in_cells(claim, near.base, near.bytes as usize, near.peer, envelope) }
}

/// [`send`] of a message that does not fit in the cells of a ring.
#[inline(never)]
fn send_longer<A: Abi>(call: &Call<'_, A>, near: &Near<'_>, datatype: u32, envelope: &Envelope) -> bool {
    if near.bytes >= fast_path::LENT_FROM {
        return false;
    }
    let Some(datatype) = predefined(datatype) else {
        return false;
    };
    // SAFETY: the arguments of a call, for which MPI promises that the buffer is readable.
    let buffer = unsafe { datatype::Buffer::new(near.base, near.count, &datatype) };
    let claim = &mut call.rank().enter();
    fast_path::send_longer(claim, &buffer, near.peer, envelope)
}

/// `MPI_Isend`; says whether it was done.
#[inline(always)]
pub(super) fn isend<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: &Buffer<A, C>,
    place: (c_int, c_int),
    comm: A::Comm,
    request: &Out<'_, A::Request>,
) -> bool {
    let is_direct = !request.is_null() && !offload::may_leave(call.rank());
    if !is_direct || !send(call, buffer, place, comm, fast_path::Then::More) {
        return false;
    }
    request.write(A::Request::from_neutral(call.context(), SENT_REQUEST));
    true
}

/// `MPI_Recv`, but for what follows from its status.
#[inline(always)]
pub(super) fn recv<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: &Buffer<A, C>,
    place: (c_int, c_int),
    comm: A::Comm,
) -> Option<Result<Status, Error>> {
    let near = Near::of(call, buffer, place, comm)?;
    let datatype = predefined(buffer.datatype.neutral())?;
    // SAFETY: the buffer of a call, of which MPI promises what a buffer needs.
    let buffer = unsafe { datatype::Buffer::new(near.base, near.count, &datatype) };
    let want = near.want(place);
    let received = fast_path::recv(call.owner(), buffer, near.peer, want);
    Some(received.map_err(crate::arguments::engine_error))
}

/// `MPI_Irecv`; says whether it was done.
#[inline(always)]
pub(super) fn irecv<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: &Buffer<A, C>,
    place: (c_int, c_int),
    comm: A::Comm,
    request: &Out<'_, A::Request>,
) -> bool {
    start(call, buffer, place, comm, request).is_some()
}

#[inline(always)]
fn start<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffer: &Buffer<A, C>,
    place: (c_int, c_int),
    comm: A::Comm,
    request: &Out<'_, A::Request>,
) -> Option<()> {
    let (spares, rank) = (&call.pending().spares, call.rank());
    if request.is_null() || offload::may_leave(rank) {
        return None;
    }
    let near = Near::of(call, buffer, place, comm)?;
    let datatype: TypeRef = predefined(buffer.datatype.neutral())?;
    let claim = &mut rank.enter();
    let spare = spares.last()?;
    let want = near.want(place);
    let (base, count) = (near.base, near.count);
    // SAFETY: the buffer of a call, of which MPI promises what a buffer needs; a spare is the record of a receive that
    // nobody uses.
    let is_begun = unsafe {
        let request = &spare.operation().request;
        let buffer = datatype::OwnedBuffer::new(base, count, datatype);
        fast_path::receive(claim, request, buffer, near.peer, want)
    };
    if !is_begun {
        return None;
    }
    spares.take();
    spare.operation().comm.set(comm.neutral());
    let handle = dynamic(HandleKind::Request, spare.index);
    request.write(A::Request::from_neutral(call.context(), handle));
    Some(())
}
