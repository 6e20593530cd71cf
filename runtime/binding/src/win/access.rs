//! Operations on windows (MPI-4.1 sections 12.3 and 12.4).

use super::failed;
use crate::arguments::{Call, Outcome, on_win, output};
use crate::request::{publish_complete, publish_pending};
use cohort_abi::{Abi, Count, Handle, neutral};
use cohort_engine::coll::exchange::Elements;
use cohort_engine::datatype::{Basic, TypeRef};
use cohort_engine::op::{PredefinedOp, element_class};
use cohort_engine::rma::{Action, Operation};
use cohort_object::Win;
use core::ffi::{c_int, c_void};
use core::ptr::null;

/// A buffer argument of an operation.
struct Buffer {
    base: *mut u8,
    count: u64,
    datatype: TypeRef,
}

impl Buffer {
    /// Checks count, type and address.
    fn check<A: Abi, C: Count>(
        call: &Call<'_, A>,
        base: *const c_void,
        elements: C,
        datatype: A::Datatype,
    ) -> Outcome<Self> {
        let count = call.count(elements)?;
        let datatype = call.committed(datatype)?;
        call.check_buffer(base, count, &datatype)?;
        Ok(Self {
            base: base.cast_mut().cast(),
            count: count.cast_unsigned(),
            datatype,
        })
    }

    /// One that the operation does not look at.
    fn unused<A: Abi>(call: &Call<'_, A>, datatype: A::Datatype) -> Outcome<Self> {
        Ok(Self {
            base: core::ptr::null_mut(),
            count: 0,
            datatype: call.committed(datatype)?,
        })
    }

    fn elements(&self) -> Elements<'_> {
        Elements {
            base: self.base,
            count: self.count,
            datatype: &self.datatype,
        }
    }
}

/// Where an operation goes.
struct Target {
    /// `None` is `MPI_PROC_NULL`.
    member: Option<u32>,
    displacement: i64,
    count: u64,
    datatype: TypeRef,
}

impl Target {
    fn check<A: Abi, C: Count>(
        call: &Call<'_, A>,
        win: &Win,
        (rank, displacement): (c_int, isize),
        elements: C,
        datatype: A::Datatype,
    ) -> Outcome<Self> {
        let member = super::target(call, win, rank)?;
        let (count, datatype) = match member {
            Some(_) => (
                call.count(elements)?.cast_unsigned(),
                call.committed(datatype)?,
            ),
            None => (0, call.committed(datatype)?),
        };
        Ok(Self {
            member,
            displacement: displacement as i64,
            count,
            datatype,
        })
    }
}

/// An operation of the standard, with its buffers checked.
struct Request<'a> {
    action: Action,
    origin: &'a Buffer,
    result: Option<&'a Buffer>,
    compare: *const c_void,
    target: &'a Target,
}

impl Request<'_> {
    /// Begins the operation.
    ///
    /// # Safety
    /// The buffers are valid, and the runtime's until the operation is complete.
    unsafe fn begin<A: Abi>(&self, call: &Call<'_, A>, win: &Win) -> Outcome<()> {
        // SAFETY: the caller's contract.
        unsafe { self.access(call, win, false) }.map(|_| ())
    }

    /// # Safety
    /// As [`Request::begin`].
    unsafe fn access<A: Abi>(
        &self,
        call: &Call<'_, A>,
        win: &Win,
        wants_request: bool,
    ) -> Outcome<Option<cohort_engine::RequestRef>> {
        let Some(member) = self.target.member else {
            return Ok(None);
        };
        let operation = Operation {
            action: self.action,
            origin: self.origin.elements(),
            result: self.result.map(Buffer::elements),
            compare: self.compare.cast(),
            target: member,
            displacement: self.target.displacement,
            count: self.target.count,
            datatype: &self.target.datatype,
        };
        // SAFETY: the caller's contract.
        let begun = unsafe { win.window.access(call.owner(), &operation, wants_request) };
        let closing = begun.map_err(|error| failed(call, error))?;
        Ok(closing.request())
    }

    /// Begins the operation and gives the program a request for it.
    ///
    /// # Safety
    /// As [`Request::begin`]; `target` is valid for writes.
    unsafe fn publish<A: Abi>(
        &self,
        call: &Call<'_, A>,
        win: &Win,
        handle: A::Win,
        target: *mut A::Request,
    ) -> Outcome<()> {
        // SAFETY: the caller's contract.
        unsafe {
            match self.access(call, win, true)? {
                Some(pending) => publish_pending(call, pending, handle.neutral(), target),
                None => publish_complete::<A>(target),
            }
        }
    }
}

/// The operation argument of an accumulate: one of MPI's own.
fn predefined_op<A: Abi>(call: &Call<'_, A>, op: A::Op) -> Outcome<PredefinedOp> {
    PredefinedOp::from_handle(op.neutral()).ok_or_else(|| {
        let what = format_args!("accumulates take predefined operations only");
        call.blame(neutral::ERR_OP, what)
    })
}

macro_rules! moves {
    ($($(#[$page:meta])* $name:ident $mpi:literal $action:ident $pointer:ty,
       $(#[$with_page:meta])* $with:ident $with_mpi:literal;)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// MPI's: the buffer holds or takes its elements until the operation is complete; `caller` is the calling rank.
        pub unsafe extern "C" fn $name<A: Abi, C: Count>(
            caller: *const c_void,
            origin: $pointer,
            origin_count: C,
            origin_type: A::Datatype,
            rank: c_int,
            displacement: isize,
            count: C,
            datatype: A::Datatype,
            win: A::Win,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                on_win::<A>(caller, $mpi, win, |call, win| {
                    let target = Target::check(call, win, (rank, displacement), count, datatype)?;
                    let origin = match target.member {
                        Some(_) => Buffer::check(call, origin, origin_count, origin_type)?,
                        None => return Ok(()),
                    };
                    let (action, result, compare) = (Action::$action, None, null());
                    Request { action, origin: &origin, result, compare, target: &target }
                        .begin(call, win)
                })
            }
        }

        $(#[$with_page])*
        ///
        /// # Safety
        #[doc = concat!("As [`", stringify!($name), "`]; `request` is valid for writes.")]
        pub unsafe extern "C" fn $with<A: Abi, C: Count>(
            caller: *const c_void,
            origin: $pointer,
            origin_count: C,
            origin_type: A::Datatype,
            rank: c_int,
            displacement: isize,
            count: C,
            datatype: A::Datatype,
            win: A::Win,
            request: *mut A::Request,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                on_win::<A>(caller, $with_mpi, win, |call, object| {
                    output(request)?;
                    let target =
                        Target::check(call, object, (rank, displacement), count, datatype)?;
                    let origin = match target.member {
                        Some(_) => Buffer::check(call, origin, origin_count, origin_type)?,
                        None => Buffer::unused(call, origin_type)?,
                    };
                    let (action, result, compare) = (Action::$action, None, null());
                    Request { action, origin: &origin, result, compare, target: &target }
                        .publish(call, object, win, request)
                })
            }
        }
    )*};
}

moves! {
    /// `MPI_Put`.
    put "MPI_Put" Put *const c_void,
    /// `MPI_Rput`.
    rput "MPI_Rput";
    /// `MPI_Get`.
    get "MPI_Get" Get *mut c_void,
    /// `MPI_Rget`.
    rget "MPI_Rget";
}

/// `MPI_Accumulate`.
///
/// # Safety
/// MPI's: the buffer holds its elements until the operation is complete; `caller` is the calling rank.
pub unsafe extern "C" fn accumulate<A: Abi, C: Count>(
    caller: *const c_void,
    origin: *const c_void,
    origin_count: C,
    origin_type: A::Datatype,
    rank: c_int,
    displacement: isize,
    count: C,
    datatype: A::Datatype,
    op: A::Op,
    win: A::Win,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_win::<A>(caller, "MPI_Accumulate", win, |call, win| {
            let action = Action::Accumulate(predefined_op(call, op)?);
            let target = Target::check(call, win, (rank, displacement), count, datatype)?;
            let origin = match target.member {
                Some(_) => Buffer::check(call, origin, origin_count, origin_type)?,
                None => return Ok(()),
            };
            let (result, compare) = (None, null());
            let request = Request {
                action,
                origin: &origin,
                result,
                compare,
                target: &target,
            };
            request.begin(call, win)
        })
    }
}

/// `MPI_Raccumulate`.
///
/// # Safety
/// As [`accumulate`]; `request` is valid for writes.
pub unsafe extern "C" fn raccumulate<A: Abi, C: Count>(
    caller: *const c_void,
    origin: *const c_void,
    origin_count: C,
    origin_type: A::Datatype,
    rank: c_int,
    displacement: isize,
    count: C,
    datatype: A::Datatype,
    op: A::Op,
    win: A::Win,
    request: *mut A::Request,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_win::<A>(caller, "MPI_Raccumulate", win, |call, object| {
            output(request)?;
            let action = Action::Accumulate(predefined_op(call, op)?);
            let target = Target::check(call, object, (rank, displacement), count, datatype)?;
            let origin = match target.member {
                Some(_) => Buffer::check(call, origin, origin_count, origin_type)?,
                None => Buffer::unused(call, origin_type)?,
            };
            let (result, compare) = (None, null());
            let operation = Request {
                action,
                origin: &origin,
                result,
                compare,
                target: &target,
            };
            operation.publish(call, object, win, request)
        })
    }
}

/// The buffers of an accumulate that fetches.
struct Fetching {
    action: Action,
    origin: Buffer,
    result: Buffer,
    target: Target,
}

impl Fetching {
    /// Checks the arguments; `None` for `MPI_PROC_NULL`.
    #[allow(clippy::too_many_arguments, reason = "the standard's")]
    fn check<A: Abi, C: Count>(
        call: &Call<'_, A>,
        win: &Win,
        (origin, origin_count, origin_type): (*const c_void, C, A::Datatype),
        (result, result_count, result_type): (*mut c_void, C, A::Datatype),
        place: (c_int, isize),
        (count, datatype): (C, A::Datatype),
        op: A::Op,
    ) -> Outcome<Option<Self>> {
        let op = predefined_op(call, op)?;
        let target = Target::check(call, win, place, count, datatype)?;
        if target.member.is_none() {
            return Ok(None);
        }
        // What the origin is does not matter when nothing is changed.
        let origin = match op {
            PredefinedOp::NoOp => Buffer::unused(call, datatype)?,
            _ => Buffer::check(call, origin, origin_count, origin_type)?,
        };
        Ok(Some(Self {
            action: Action::Accumulate(op),
            origin,
            result: Buffer::check(call, result, result_count, result_type)?,
            target,
        }))
    }

    fn request(&self) -> Request<'_> {
        Request {
            action: self.action,
            origin: &self.origin,
            result: Some(&self.result),
            compare: null(),
            target: &self.target,
        }
    }
}

/// `MPI_Get_accumulate`.
///
/// # Safety
/// MPI's: the buffers hold and take their elements until the operation is complete; `caller` is the calling rank.
pub unsafe extern "C" fn get_accumulate<A: Abi, C: Count>(
    caller: *const c_void,
    origin: *const c_void,
    origin_count: C,
    origin_type: A::Datatype,
    result: *mut c_void,
    result_count: C,
    result_type: A::Datatype,
    rank: c_int,
    displacement: isize,
    count: C,
    datatype: A::Datatype,
    op: A::Op,
    win: A::Win,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_win::<A>(caller, "MPI_Get_accumulate", win, |call, win| {
            let origin = (origin, origin_count, origin_type);
            let result = (result, result_count, result_type);
            let (place, there) = ((rank, displacement), (count, datatype));
            match Fetching::check(call, win, origin, result, place, there, op)? {
                Some(fetching) => fetching.request().begin(call, win),
                None => Ok(()),
            }
        })
    }
}

/// `MPI_Rget_accumulate`.
///
/// # Safety
/// As [`get_accumulate`]; `request` is valid for writes.
pub unsafe extern "C" fn rget_accumulate<A: Abi, C: Count>(
    caller: *const c_void,
    origin: *const c_void,
    origin_count: C,
    origin_type: A::Datatype,
    result: *mut c_void,
    result_count: C,
    result_type: A::Datatype,
    rank: c_int,
    displacement: isize,
    count: C,
    datatype: A::Datatype,
    op: A::Op,
    win: A::Win,
    request: *mut A::Request,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_win::<A>(caller, "MPI_Rget_accumulate", win, |call, object| {
            output(request)?;
            let origin = (origin, origin_count, origin_type);
            let result = (result, result_count, result_type);
            let (place, there) = ((rank, displacement), (count, datatype));
            match Fetching::check(call, object, origin, result, place, there, op)? {
                Some(fetching) => fetching.request().publish(call, object, win, request),
                None => publish_complete::<A>(request),
            }
        })
    }
}

/// `MPI_Fetch_and_op`.
///
/// # Safety
/// MPI's: the buffers hold and take one element until the operation is complete; `caller` is the calling rank.
pub unsafe extern "C" fn fetch_and_op<A: Abi>(
    caller: *const c_void,
    origin: *const c_void,
    result: *mut c_void,
    datatype: A::Datatype,
    rank: c_int,
    displacement: isize,
    op: A::Op,
    win: A::Win,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_win::<A>(caller, "MPI_Fetch_and_op", win, |call, win| {
            one_element(call, datatype)?;
            let (origin, result) = ((origin, 1, datatype), (result, 1, datatype));
            let (place, there) = ((rank, displacement), (1, datatype));
            match Fetching::check(call, win, origin, result, place, there, op)? {
                Some(fetching) => fetching.request().begin(call, win),
                None => Ok(()),
            }
        })
    }
}

/// Refuses types that are not one predefined element; gives its class.
fn one_element<A: Abi>(call: &Call<'_, A>, datatype: A::Datatype) -> Outcome<Basic> {
    let datatype = call.committed(datatype)?;
    element_class(&datatype).ok_or_else(|| {
        let what = format_args!("the type is not one predefined element");
        call.blame(neutral::ERR_TYPE, what)
    })
}

/// `MPI_Compare_and_swap`.
///
/// # Safety
/// As [`fetch_and_op`].
pub unsafe extern "C" fn compare_and_swap<A: Abi>(
    caller: *const c_void,
    origin: *const c_void,
    compare: *const c_void,
    result: *mut c_void,
    datatype: A::Datatype,
    rank: c_int,
    displacement: isize,
    win: A::Win,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_win::<A>(caller, "MPI_Compare_and_swap", win, |call, win| {
            if !one_element(call, datatype)?.can_be_compared() {
                let what = format_args!("only integers, logicals and bytes are compared");
                return Err(call.blame(neutral::ERR_TYPE, what));
            }
            let target = Target::check(call, win, (rank, displacement), 1, datatype)?;
            if target.member.is_none() {
                return Ok(());
            }
            let origin = Buffer::check(call, origin, 1, datatype)?;
            let result = Buffer::check(call, result, 1, datatype)?;
            Buffer::check(call, compare, 1, datatype)?;
            let request = Request {
                action: Action::CompareAndSwap,
                origin: &origin,
                result: Some(&result),
                compare,
                target: &target,
            };
            request.begin(call, win)
        })
    }
}
