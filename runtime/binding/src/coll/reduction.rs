//! Collectives that reduce (MPI-4.1 sections 6.9 to 6.11).

use super::inter;
use super::parts::{Part, failure, in_place, root};
use crate::arguments::{Call, Outcome, counts, on_comm, on_process};
use crate::intercomm::only_intra;
use crate::op::BoundOp;
use cohort_abi::{Abi, Count, neutral};
use cohort_engine::coll::inter::{Intergroup, Root};
use cohort_engine::coll::{self, Reduction, Scan};
use cohort_engine::datatype::TypeRef;
use cohort_engine::op;
use core::ffi::{c_int, c_void};

/// Operand, elements and operation, checked.
pub struct Operands<A: Abi> {
    input: Option<*const u8>,
    output: *mut u8,
    count: u64,
    datatype: TypeRef,
    op: BoundOp<A>,
}

/// Which buffers a member passes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Operand and result.
    Both,
    /// An operand only; the result argument is not read.
    Contributor,
    /// A result only; the operand argument is not read.
    Receiver,
}

impl<A: Abi> Operands<A> {
    /// Checks buffers, count, type and operation.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT`, `MPI_ERR_TYPE`, `MPI_ERR_OP`, `MPI_ERR_BUFFER`.
    #[inline]
    pub fn check(
        call: &Call<'_, A>,
        send_buffer: *const c_void,
        buffer: *mut c_void,
        elements: i64,
        datatype: A::Datatype,
        op: A::Op,
        role: Role,
    ) -> Outcome<Self> {
        let op = BoundOp::new(call, op, datatype)?;
        let datatype = call.committed(datatype)?;
        op.check(&datatype)?;
        let input = match role {
            Role::Receiver => None,
            Role::Both if in_place::<A>(send_buffer) => None,
            _ => {
                call.check_buffer(send_buffer, elements, &datatype)?;
                Some(send_buffer.cast())
            }
        };
        if role != Role::Contributor {
            call.check_buffer(buffer, elements, &datatype)?;
        }
        Ok(Self {
            input,
            output: buffer.cast(),
            count: elements as u64,
            datatype,
            op,
        })
    }

    /// Refuses in-place, which intercommunicators do not have.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER`.
    pub fn out_of_place(&self, inter: &Intergroup<'_>) -> Outcome<()> {
        match self.input {
            Some(_) => Ok(()),
            None => Err(inter::in_place_refused(inter)),
        }
    }

    /// For the engine.
    #[inline]
    pub fn reduction(&self) -> Reduction<'_> {
        Reduction {
            input: self.input,
            output: self.output,
            count: self.count,
            datatype: &self.datatype,
            op: self.op.as_op(),
        }
    }
}

/// `MPI_Allreduce`.
///
/// # Safety
/// MPI's: the buffers hold and take their elements; `caller` is the
/// calling rank.
pub unsafe extern "C" fn allreduce<A: Abi, C: Count>(
    caller: *const c_void,
    send_buffer: *const c_void,
    buffer: *mut c_void,
    elements: C,
    datatype: A::Datatype,
    op: A::Op,
    comm: A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Allreduce", comm, |call, comm| {
            let operands = Operands::check(
                call,
                send_buffer,
                buffer,
                call.count(elements)?,
                datatype,
                op,
                Role::Both,
            )?;
            if let Some(inter) = comm.inter() {
                operands.out_of_place(&inter)?;
                return inter.allreduce(&operands.reduction()).map_err(failure);
            }
            coll::allreduce(&comm.collective(), &operands.reduction()).map_err(failure)
        })
    }
}

/// `MPI_Reduce`.
///
/// # Safety
/// MPI's: the buffers hold and take their elements; `caller` is the
/// calling rank.
pub unsafe extern "C" fn reduce<A: Abi, C: Count>(
    caller: *const c_void,
    send_buffer: *const c_void,
    buffer: *mut c_void,
    elements: C,
    datatype: A::Datatype,
    op: A::Op,
    at: c_int,
    comm: A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Reduce", comm, |call, comm| {
            if let Some(inter) = comm.inter() {
                let at = inter::root::<A>(&inter, at)?;
                let role = match at {
                    Root::Beside => return Ok(()),
                    Root::Here => Role::Receiver,
                    Root::Remote(_) => Role::Contributor,
                };
                let elements = call.count(elements)?;
                let operands =
                    Operands::check(call, send_buffer, buffer, elements, datatype, op, role)?;
                return inter.reduce(&operands.reduction(), at).map_err(failure);
            }
            let group = comm.collective();
            let at = root::<A>(&group, at)?;
            let role = if group.me == at {
                Role::Both
            } else {
                Role::Contributor
            };
            let operands = Operands::check(
                call,
                send_buffer,
                buffer,
                call.count(elements)?,
                datatype,
                op,
                role,
            )?;
            coll::reduce(&group, &operands.reduction(), at).map_err(failure)
        })
    }
}

/// `MPI_Scan`.
///
/// # Safety
/// MPI's: the buffers hold and take their elements; `caller` is the
/// calling rank.
pub unsafe extern "C" fn scan<A: Abi, C: Count>(
    caller: *const c_void,
    send_buffer: *const c_void,
    buffer: *mut c_void,
    elements: C,
    datatype: A::Datatype,
    op: A::Op,
    comm: A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Scan", comm, |call, comm| {
            only_intra(comm)?;
            let group = comm.collective();
            let operands = Operands::check(
                call,
                send_buffer,
                buffer,
                call.count(elements)?,
                datatype,
                op,
                Role::Both,
            )?;
            coll::scan(&group, &operands.reduction(), Scan::Inclusive).map_err(failure)
        })
    }
}

/// `MPI_Exscan`.
///
/// # Safety
/// MPI's: the buffers hold and take their elements; `caller` is the
/// calling rank.
pub unsafe extern "C" fn exscan<A: Abi, C: Count>(
    caller: *const c_void,
    send_buffer: *const c_void,
    buffer: *mut c_void,
    elements: C,
    datatype: A::Datatype,
    op: A::Op,
    comm: A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Exscan", comm, |call, comm| {
            only_intra(comm)?;
            let group = comm.collective();
            let operands = Operands::check(
                call,
                send_buffer,
                buffer,
                call.count(elements)?,
                datatype,
                op,
                Role::Both,
            )?;
            coll::scan(&group, &operands.reduction(), Scan::Exclusive).map_err(failure)
        })
    }
}

/// `MPI_Reduce_scatter`.
///
/// # Safety
/// MPI's: the buffers hold and take their blocks, the arrays have an entry for each member; `caller` is the
/// calling rank.
pub unsafe extern "C" fn reduce_scatter<A: Abi, C: Count>(
    caller: *const c_void,
    send_buffer: *const c_void,
    buffer: *mut c_void,
    lengths: *const C,
    datatype: A::Datatype,
    op: A::Op,
    comm: A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Reduce_scatter", comm, |call, comm| {
            let group = comm.collective();
            let lengths = counts(lengths, group.world.len())?;
            let total = lengths
                .iter()
                .try_fold(0_i64, |sum, &count| sum.checked_add(count));
            let total = total.ok_or(neutral::ERR_COUNT)?;
            let operands =
                Operands::check(call, send_buffer, buffer, total, datatype, op, Role::Both)?;
            if let Some(inter) = comm.inter() {
                operands.out_of_place(&inter)?;
                let scattered = inter.reduce_scatter(&operands.reduction(), &lengths);
                return scattered.map_err(failure);
            }
            coll::reduce_scatter(&group, &operands.reduction(), &lengths).map_err(failure)
        })
    }
}

/// `MPI_Reduce_scatter_block`.
///
/// # Safety
/// MPI's: the buffers hold and take their elements; `caller` is the
/// calling rank.
pub unsafe extern "C" fn reduce_scatter_block<A: Abi, C: Count>(
    caller: *const c_void,
    send_buffer: *const c_void,
    buffer: *mut c_void,
    elements: C,
    datatype: A::Datatype,
    op: A::Op,
    comm: A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Reduce_scatter_block", comm, |call, comm| {
            let group = comm.collective();
            let elements = call.count(elements)?;
            let lengths = alloc::vec![elements; group.world.len()];
            let total = elements
                .checked_mul(lengths.len() as i64)
                .ok_or(neutral::ERR_COUNT)?;
            let operands =
                Operands::check(call, send_buffer, buffer, total, datatype, op, Role::Both)?;
            if let Some(inter) = comm.inter() {
                operands.out_of_place(&inter)?;
                let scattered = inter.reduce_scatter(&operands.reduction(), &lengths);
                return scattered.map_err(failure);
            }
            coll::reduce_scatter(&group, &operands.reduction(), &lengths).map_err(failure)
        })
    }
}

/// `MPI_Reduce_local`.
///
/// # Safety
/// MPI's: both buffers hold `elements` elements; `caller` is the calling rank.
pub unsafe extern "C" fn reduce_local<A: Abi, C: Count>(
    caller: *const c_void,
    input: *const c_void,
    inout: *mut c_void,
    elements: C,
    datatype: A::Datatype,
    op: A::Op,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Reduce_local", |call| {
            let op = BoundOp::new(call, op, datatype)?;
            let input = Part::check(call, input, elements, datatype)?;
            let inout = Part::check(call, inout, elements, datatype)?;
            op.check(&input.datatype)?;
            let (from, to) = (input.layout(), inout.layout());
            let known = op::reduce(op.as_op(), from.base, to.base, to.count, &input.datatype);
            if known { Ok(()) } else { Err(neutral::ERR_OP) }
        })
    }
}
