//! Reduction operations (MPI-4.1 section 6.9).

use crate::arguments::{Call, Outcome, known, output};
use crate::process::Process;
use crate::process::pending::UserFunction;
use cohort_abi::parameters::{InOut, Out};
use cohort_abi::{Abi, Count, Handle, HandleKind, INDEX_MAX, callback, dynamic, neutral};
use cohort_engine::datatype::{Type, TypeRef};
use cohort_engine::op::{Op, PredefinedOp, UserOp, supports};
use cohort_object::Datatype;
use core::cell::Cell;
use core::ffi::c_int;

/// An operation as one collective call uses it. It lives on when its handle is freed.
pub struct BoundOp<A: Abi>(Bound<A>);

enum Bound<A: Abi> {
    Predefined(PredefinedOp),
    User(UserCall<A>),
}

/// A user function, and the datatype handle that it is to be told.
struct UserCall<A: Abi> {
    function: UserFunction,
    datatype: A::Datatype,
    /// What that handle stands for, perhaps beyond its end, if the program made the type.
    layout: Option<TypeRef>,
    process: &'static Process,
}

impl<A: Abi> BoundOp<A> {
    /// Decodes the operation argument of a call on elements of `datatype`.
    ///
    /// # Errors
    /// `MPI_ERR_OP`.
    #[inline]
    pub fn new(call: &Call<'_, A>, op: A::Op, datatype: A::Datatype) -> Outcome<Self> {
        let handle = op.neutral();
        if let Some(op) = PredefinedOp::from_handle(handle) {
            return Ok(Self(Bound::Predefined(op)));
        }
        let function = user(call, handle)?.clone();
        let is_made = known::<A>(datatype.neutral()).is_none();
        let made = is_made.then(|| call.objects().datatype(datatype.neutral()).ok()).flatten();
        let layout = made.map(|datatype| datatype.layout.clone());
        // SAFETY: a process is never given back.
        let process = unsafe { Process::of(core::ptr::from_ref(call.process()).cast()) };
        Ok(Self(Bound::User(UserCall { function, datatype, layout, process })))
    }

    /// One of MPI's own.
    pub fn predefined(op: PredefinedOp) -> Self {
        Self(Bound::Predefined(op))
    }

    /// Whether it is one of MPI's own.
    #[inline]
    pub fn is_predefined(&self) -> bool {
        matches!(self.0, Bound::Predefined(_))
    }

    /// Refuses a predefined operation that does not take `datatype`, or is for windows only.
    ///
    /// # Errors
    /// `MPI_ERR_OP`.
    #[inline]
    pub fn check(&self, datatype: &Type) -> Outcome<()> {
        match self.0 {
            Bound::User(_) => Ok(()),
            Bound::Predefined(PredefinedOp::Replace | PredefinedOp::NoOp) => Err(neutral::ERR_OP.into()),
            Bound::Predefined(op) => match datatype.element() {
                Some(class) if supports(op, class) => Ok(()),
                _ => Err(neutral::ERR_OP.into()),
            },
        }
    }

    /// For the engine.
    #[inline]
    pub fn as_op(&self) -> Op<'_> {
        match &self.0 {
            Bound::Predefined(op) => Op::Predefined(*op),
            Bound::User(call) => Op::User(call),
        }
    }
}

impl<A: Abi> UserOp for UserCall<A> {
    fn commutative(&self) -> bool {
        self.function.commutes
    }

    unsafe fn call(&self, input: *const u8, inout: *mut u8, count: u64, datatype: &Type) {
        let lent = self.lend();
        let context = A::context(&self.process.caller);
        let handle = lent.map_or(self.datatype, |lent| A::Datatype::from_neutral(context, lent));
        let extent = datatype.extent();
        // SAFETY: the engine's promise; `create` stored a function of this type.
        unsafe {
            if self.function.large {
                self.pieces::<i64>(input, inout, count, i64::MAX as u64, (handle, extent));
            } else {
                self.pieces::<c_int>(input, inout, count, c_int::MAX as u64, (handle, extent));
            }
        }
        if let Some(lent) = lent {
            // It is gone already if the function has freed it.
            drop(self.process.objects.remove_datatype(lent));
        }
    }
}

impl<A: Abi> UserCall<A> {
    /// A handle for the time of a call, if the program has freed its own since (MPI-4.1, 5.1.9), whose number may stand
    /// for another type now; `None` also when no handle is left.
    fn lend(&self) -> Option<u32> {
        let (objects, layout) = (&self.process.objects, self.layout.as_ref()?);
        // Another thread may free it now, or make another type with this handle, but not under the claim.
        let claim = objects.rank().enter();
        let is_there = objects.datatype(self.datatype.neutral()).is_ok_and(|it| it.layout.same(layout));
        drop(claim);
        if is_there {
            return None;
        }
        let lent = Datatype::new(layout.clone());
        lent.commit();
        objects.add_datatype(lent).ok()
    }

    /// Calls the function on at most `limit` elements at a time.
    ///
    /// # Safety
    /// Both buffers have `count` elements; the function's address is one of a function with counts of type `C`.
    unsafe fn pieces<C: Count>(
        &self,
        input: *const u8,
        inout: *mut u8,
        count: u64,
        limit: u64,
        (handle, extent): (A::Datatype, i64),
    ) {
        // SAFETY: `create` stored a function of this type, by the caller's contract.
        let function: callback::UserFunction<A, C> = unsafe { core::mem::transmute(self.function.address) };
        let mut done = 0;
        while done < count {
            let piece = limit.min(count - done);
            let offset = (done as i64).wrapping_mul(extent) as isize;
            let Some(mut length) = C::from_i64(piece as i64) else {
                return;
            };
            let mut handle = handle;
            let mut number = handle.to_int();
            let told = match self.function.fortran.get() {
                true => (&raw mut number).cast(),
                false => &raw mut handle,
            };
            // SAFETY: the application's function, called as MPI promises. One of Fortran takes an integer.
            unsafe {
                function(
                    input.wrapping_offset(offset).cast_mut().cast(),
                    inout.wrapping_offset(offset).cast(),
                    &mut length,
                    told,
                );
            }
            done += piece;
        }
    }
}

/// The application's operation of a handle.
fn user<'a, A: Abi>(call: &Call<'a, A>, handle: u32) -> Outcome<&'a UserFunction> {
    let index = handle & INDEX_MAX;
    if handle != dynamic(HandleKind::Op, index) {
        return Err(neutral::ERR_OP.into());
    }
    // SAFETY: MPI forbids to free an operation that another thread is using.
    unsafe { call.pending().ops.get(index) }.ok_or_else(|| neutral::ERR_OP.into())
}

/// Stores a user function and gives the program its handle.
fn publish<A: Abi>(
    call: &Call<'_, A>,
    function: Option<*const ()>,
    large: bool,
    commutes: c_int,
    op: Out<'_, A::Op>,
) -> Outcome<()> {
    let op = output(op)?;
    let function = UserFunction {
        address: function.ok_or(neutral::ERR_ARG)?,
        large,
        fortran: Cell::new(false),
        commutes: commutes != 0,
    };
    let claim = &mut call.rank().enter();
    let index = call.pending().ops.insert(claim, function).ok_or(neutral::ERR_NO_MEM)?;
    op.write(A::Op::from_neutral(call.context(), dynamic(HandleKind::Op, index)));
    Ok(())
}

/// `MPI_Op_create`.
pub fn create<A: Abi>(
    call: &Call<'_, A>,
    function: Option<callback::UserFunction<A, c_int>>,
    commutes: c_int,
    op: Out<'_, A::Op>,
) -> Outcome<()> {
    let address = function.map(|function| function as *const ());
    publish::<A>(call, address, false, commutes, op)
}

/// `MPI_Op_create_c`.
pub fn create_large<A: Abi>(
    call: &Call<'_, A>,
    function: Option<callback::UserFunction<A, i64>>,
    commutes: c_int,
    op: Out<'_, A::Op>,
) -> Outcome<()> {
    let address = function.map(|function| function as *const ());
    publish::<A>(call, address, true, commutes, op)
}

/// `MPII_Op_set_lang_f77`: a Fortran library says of an operation it has just made that its function is Fortran's.
pub fn set_fortran<A: Abi>(call: &Call<'_, A>, op: A::Op) -> Outcome<()> {
    user(call, op.neutral())?.fortran.set(true);
    Ok(())
}

/// `MPI_Op_free`. Predefined operations cannot be freed.
pub fn free<A: Abi>(call: &Call<'_, A>, op: InOut<'_, A::Op>) -> Outcome<()> {
    let op = call.inout(op, "op")?;
    let handle = op.get().neutral();
    user(call, handle)?;
    let claim = &mut call.rank().enter();
    call.pending().ops.remove(claim, handle & INDEX_MAX);
    op.set(A::Op::from_neutral(call.context(), neutral::handle::OP_NULL));
    Ok(())
}

/// `MPI_Op_commutative`.
pub fn commutative<A: Abi>(call: &Call<'_, A>, op: A::Op, commutes: Out<'_, c_int>) -> Outcome<()> {
    let commutes = call.output(commutes, "commute")?;
    let answer = match PredefinedOp::from_handle(op.neutral()) {
        Some(op) => op.commutative(),
        None if op.neutral() == neutral::handle::MPIX_EQUAL => true,
        None => user(call, op.neutral())?.commutes,
    };
    commutes.write(c_int::from(answer));
    Ok(())
}
