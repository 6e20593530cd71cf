//! `MPIX_EQUAL` of MPICH: whether all members have the same data.
//!
//! As there, it is for `MPI_Reduce` and `MPI_Allreduce` in one group, of any datatype, and the result is one `int`: 1
//! if the data of all is the same bit for bit, else 0. It is no operation on elements, so no other call takes it.

use super::operands::Operands;
use super::parts::{Members, in_place};
use crate::arguments::{Call, Comm, Outcome};
use crate::data::Data;
use crate::op::BoundOp;
use alloc::vec;
use cohort_abi::parameters::{Base, Buffer};
use cohort_abi::{Abi, Count, Handle, neutral};
use cohort_engine::coll;
use cohort_engine::datatype::{self, OwnedBuffer, predefined};
use cohort_engine::op::PredefinedOp;
use cohort_object::Error;
use core::ffi::c_int;

/// The reduction whose operation is [`neutral::handle::MPIX_EQUAL`], which the usual way refused with `refusal`; with
/// any other operation that is the answer. The result goes to the root, if there is one, else to all.
#[cold]
pub fn instead<A: Abi, C: Count>(
    call: &Call<'_, A>,
    (send_buffer, buffer): (Base, Buffer<A, C>),
    op: A::Op,
    comm: &Comm,
    at: Option<u32>,
    refusal: Error,
) -> Outcome<()> {
    if op.neutral() != neutral::handle::MPIX_EQUAL || comm.inter().is_some() {
        return Err(refusal);
    }
    let group = comm.collective();
    let from = match in_place::<A>(send_buffer) {
        true => buffer.base,
        false => send_buffer,
    };
    let data = Data::check(call, buffer.at(from))?;
    let bytes = data.bytes() as usize;
    let mut bits = vec![0_u8; bytes.checked_mul(2).ok_or(neutral::ERR_COUNT)?];
    let (plain, inverted) = bits.split_at_mut(bytes);
    datatype::pack_bytes(data.buffer(), 0, plain);
    for (to, from) in inverted.iter_mut().zip(&*plain) {
        *to = !from;
    }
    let hears = at.is_none_or(|root| root == group.me);
    let result = buffer.base.as_ptr().cast::<c_int>();
    if hears && (result.is_null() || in_place::<A>(buffer.base)) {
        return Err(neutral::ERR_BUFFER.into());
    }
    // All have the same bit where all have it set, or all have it clear.
    let mut all = vec![0_u8; bits.len()];
    let datatype = predefined(neutral::handle::BYTE).ok_or(neutral::ERR_INTERN)?;
    let op = BoundOp::predefined(PredefinedOp::BitAnd);
    // SAFETY: both vectors are as long, and outlive the operands.
    let operands = unsafe {
        let target = OwnedBuffer::new(all.as_mut_ptr(), bits.len() as u64, datatype);
        Operands::<A>::made(bits.as_ptr(), target, op)
    };
    let reduction = operands.reduction();
    let done = match at {
        None => coll::run(&group, &coll::Call::Allreduce { reduction }),
        Some(root) => coll::run(&group, &coll::Call::Reduce { reduction, root }),
    };
    done.map_err(|error| group.failure(error))?;
    drop(operands);
    if hears {
        let (set, clear) = all.split_at(bytes);
        let same = set.iter().zip(clear).all(|(set, clear)| set | clear == 0xff);
        // SAFETY: the receive buffer of this call, not NULL, which the program gives for one `int`.
        unsafe { result.write_unaligned(c_int::from(same)) };
    }
    Ok(())
}
