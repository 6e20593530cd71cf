//! Operations on windows (MPI-4.1 sections 12.3 and 12.4).

use super::failed;
use super::short::Few;
use crate::arguments::{Call, Outcome, output};
use crate::data::Data;
use crate::passed::{Base, Buffer, Out, Place};
use crate::request::{publish_complete, publish_pending};
use cohort_abi::{Abi, Count, Handle, neutral};
use cohort_engine::datatype::{Basic, TypeRef};
use cohort_engine::op::{PredefinedOp, element_class};
use cohort_engine::rma::{Action, Operation};
use cohort_object::Win;
use core::ffi::c_int;
use core::ptr::null;

/// Where an operation goes.
struct Target {
    /// `None` is `MPI_PROC_NULL`.
    member: Option<u32>,
    displacement: i64,
    count: u64,
    datatype: TypeRef,
}

impl Target {
    /// Inlined by force, so that the parts stay in registers; see [`Data::elements`].
    #[inline(always)]
    fn check<A: Abi, C: Count>(
        call: &Call<'_, A>,
        win: &Win,
        (rank, displacement): (c_int, isize),
        elements: C,
        datatype: A::Datatype,
    ) -> Outcome<Self> {
        let member = super::target(call, win, rank)?;
        let (count, datatype) = match member {
            Some(_) => (call.count(elements)?.cast_unsigned(), call.committed(datatype)?),
            None => (0, call.committed(datatype)?),
        };
        Ok(Self { member, displacement: displacement as i64, count, datatype })
    }
}

/// An operation of the standard, with its buffers checked.
struct Request<'a> {
    action: Action,
    origin: &'a Data,
    result: Option<&'a Data>,
    compare: Option<Base>,
    target: &'a Target,
}

impl Request<'_> {
    /// Begins the operation.
    fn begin<A: Abi>(&self, call: &Call<'_, A>, win: &Win) -> Outcome<()> {
        self.access(call, win, false).map(|_| ())
    }

    /// Begins the operation, with a request for it if one is wanted and needed. Inlined by force, so that the engine's
    /// description is written once, from registers.
    #[inline(always)]
    fn access<A: Abi>(
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
            origin: self.origin.buffer(),
            result: self.result.map(Data::buffer),
            compare: self.compare.map_or(null(), |compare| compare.as_ptr().cast()),
            target: member,
            displacement: self.target.displacement,
            count: self.target.count,
            datatype: &self.target.datatype,
        };
        // SAFETY: what is compared with is an argument of the call, for which MPI promises that it stays until the
        // operation is complete; the target's elements are in its part of the window, by MPI's promise.
        let begun = unsafe { win.window.access(call.owner(), &operation, wants_request) };
        let closing = begun.map_err(|error| failed(call, error))?;
        Ok(closing.request())
    }

    /// Begins the operation and gives the program a request for it.
    fn publish<A: Abi>(
        &self,
        call: &Call<'_, A>,
        win: &Win,
        handle: A::Win,
        target: Place<'_, A::Request>,
    ) -> Outcome<()> {
        match self.access(call, win, true)? {
            Some(pending) => publish_pending(call, pending, handle.neutral(), target),
            None => publish_complete(call, target),
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
    ($($(#[$page:meta])* $name:ident $long:ident $action:ident,
       $(#[$with_page:meta])* $with:ident;)*) => {$(
        $(#[$page])*
        #[inline(always)]
        pub fn $name<A: Abi, C: Count>(
            call: &Call<'_, A>,
            origin: Buffer<A, C>,
            rank: c_int,
            displacement: isize,
            count: C,
            datatype: A::Datatype,
            win: A::Win,
        ) -> Outcome<()> {
            let place = (rank, displacement);
            if let Some(few) = Few::from(call, win, &origin, place, (count, datatype)) {
                few.$name(origin.base);
                return Ok(());
            }
            $long(call, origin, rank, displacement, count, datatype, win)
        }

        #[inline(never)]
        fn $long<A: Abi, C: Count>(
            call: &Call<'_, A>,
            origin: Buffer<A, C>,
            rank: c_int,
            displacement: isize,
            count: C,
            datatype: A::Datatype,
            win: A::Win,
        ) -> Outcome<()> {
            let win = call.on_win(win)?;
            let target = Target::check(call, win, (rank, displacement), count, datatype)?;
            let origin = match target.member {
                Some(_) => Data::check(call, origin)?,
                None => return Ok(()),
            };
            let (action, result, compare) = (Action::$action, None, None);
            Request { action, origin: &origin, result, compare, target: &target }
                .begin(call, win)
        }

        $(#[$with_page])*
        #[inline(always)]
        pub fn $with<A: Abi, C: Count>(
            call: &Call<'_, A>,
            origin: Buffer<A, C>,
            rank: c_int,
            displacement: isize,
            count: C,
            datatype: A::Datatype,
            win: A::Win,
            request: Out<'_, A::Request>,
        ) -> Outcome<()> {
            let object = call.on_win(win)?;
            let request = output(request)?;
            let target =
                Target::check(call, object, (rank, displacement), count, datatype)?;
            let origin = match target.member {
                Some(_) => Data::check(call, origin)?,
                None => Data::unused(call, origin.datatype)?,
            };
            let (action, result, compare) = (Action::$action, None, None);
            Request { action, origin: &origin, result, compare, target: &target }
                .publish(call, object, win, request)
        }
    )*};
}

moves! {
    /// `MPI_Put`.
    put long_put Put,
    /// `MPI_Rput`.
    rput;
    /// `MPI_Get`.
    get long_get Get,
    /// `MPI_Rget`.
    rget;
}

/// `MPI_Accumulate`.
#[inline(always)]
pub fn accumulate<A: Abi, C: Count>(
    call: &Call<'_, A>,
    origin: Buffer<A, C>,
    rank: c_int,
    displacement: isize,
    count: C,
    datatype: A::Datatype,
    op: A::Op,
    win: A::Win,
) -> Outcome<()> {
    let place = (rank, displacement);
    if let Some(few) = Few::from(call, win, &origin, place, (count, datatype))
        && few.accumulate::<A>(op, origin.base)
    {
        return Ok(());
    }
    long_accumulate(call, origin, place, (count, datatype), op, win)
}

#[inline(never)]
fn long_accumulate<A: Abi, C: Count>(
    call: &Call<'_, A>,
    origin: Buffer<A, C>,
    (rank, displacement): (c_int, isize),
    (count, datatype): (C, A::Datatype),
    op: A::Op,
    win: A::Win,
) -> Outcome<()> {
    let win = call.on_win(win)?;
    let action = Action::Accumulate(predefined_op(call, op)?);
    let target = Target::check(call, win, (rank, displacement), count, datatype)?;
    let origin = match target.member {
        Some(_) => Data::check(call, origin)?,
        None => return Ok(()),
    };
    let (result, compare) = (None, None);
    let request = Request { action, origin: &origin, result, compare, target: &target };
    request.begin(call, win)
}

/// `MPI_Raccumulate`.
pub fn raccumulate<A: Abi, C: Count>(
    call: &Call<'_, A>,
    origin: Buffer<A, C>,
    rank: c_int,
    displacement: isize,
    count: C,
    datatype: A::Datatype,
    op: A::Op,
    win: A::Win,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let object = call.on_win(win)?;
    let request = output(request)?;
    let action = Action::Accumulate(predefined_op(call, op)?);
    let target = Target::check(call, object, (rank, displacement), count, datatype)?;
    let origin = match target.member {
        Some(_) => Data::check(call, origin)?,
        None => Data::unused(call, origin.datatype)?,
    };
    let (result, compare) = (None, None);
    let operation = Request { action, origin: &origin, result, compare, target: &target };
    operation.publish(call, object, win, request)
}

/// The buffers of an accumulate that fetches.
struct Fetching {
    action: Action,
    origin: Data,
    result: Data,
    target: Target,
}

impl Fetching {
    /// Checks the arguments; `None` for `MPI_PROC_NULL`.
    fn check<A: Abi, C: Count>(
        call: &Call<'_, A>,
        win: &Win,
        origin: Buffer<A, C>,
        result: Buffer<A, C>,
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
            PredefinedOp::NoOp => Data::unused(call, datatype)?,
            _ => Data::check(call, origin)?,
        };
        Ok(Some(Self { action: Action::Accumulate(op), origin, result: Data::check(call, result)?, target }))
    }

    fn request(&self) -> Request<'_> {
        Request {
            action: self.action,
            origin: &self.origin,
            result: Some(&self.result),
            compare: None,
            target: &self.target,
        }
    }
}

/// `MPI_Get_accumulate`.
#[inline(always)]
pub fn get_accumulate<A: Abi, C: Count>(
    call: &Call<'_, A>,
    origin: Buffer<A, C>,
    result: Buffer<A, C>,
    rank: c_int,
    displacement: isize,
    count: C,
    datatype: A::Datatype,
    op: A::Op,
    win: A::Win,
) -> Outcome<()> {
    let win = call.on_win(win)?;
    let (place, there) = ((rank, displacement), (count, datatype));
    match Fetching::check(call, win, origin, result, place, there, op)? {
        Some(fetching) => fetching.request().begin(call, win),
        None => Ok(()),
    }
}

/// `MPI_Rget_accumulate`.
pub fn rget_accumulate<A: Abi, C: Count>(
    call: &Call<'_, A>,
    origin: Buffer<A, C>,
    result: Buffer<A, C>,
    rank: c_int,
    displacement: isize,
    count: C,
    datatype: A::Datatype,
    op: A::Op,
    win: A::Win,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let object = call.on_win(win)?;
    let request = output(request)?;
    let (place, there) = ((rank, displacement), (count, datatype));
    match Fetching::check(call, object, origin, result, place, there, op)? {
        Some(fetching) => fetching.request().publish(call, object, win, request),
        None => publish_complete(call, request),
    }
}

/// `MPI_Fetch_and_op`.
#[inline(always)]
pub fn fetch_and_op<A: Abi>(
    call: &Call<'_, A>,
    origin: Base,
    result: Base,
    datatype: A::Datatype,
    rank: c_int,
    displacement: isize,
    op: A::Op,
    win: A::Win,
) -> Outcome<()> {
    let place = (rank, displacement);
    if let Some(few) = Few::at(call, win, place, (1, datatype))
        && few.fetch::<A>(op, origin, result)
    {
        return Ok(());
    }
    long_fetch_and_op(call, (origin, result), datatype, place, op, win)
}

#[inline(never)]
fn long_fetch_and_op<A: Abi>(
    call: &Call<'_, A>,
    (origin, result): (Base, Base),
    datatype: A::Datatype,
    place: (c_int, isize),
    op: A::Op,
    win: A::Win,
) -> Outcome<()> {
    let win = call.on_win(win)?;
    one_element(call, datatype)?;
    let (origin, result) = (one(origin, datatype), one(result, datatype));
    let there = (1, datatype);
    match Fetching::check(call, win, origin, result, place, there, op)? {
        Some(fetching) => fetching.request().begin(call, win),
        None => Ok(()),
    }
}

/// One element of a type at an address.
fn one<A: Abi>(base: Base, datatype: A::Datatype) -> Buffer<A, c_int> {
    Buffer { base, count: 1, datatype }
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
#[inline(always)]
pub fn compare_and_swap<A: Abi>(
    call: &Call<'_, A>,
    origin: Base,
    compare: Base,
    result: Base,
    datatype: A::Datatype,
    rank: c_int,
    displacement: isize,
    win: A::Win,
) -> Outcome<()> {
    let place = (rank, displacement);
    if let Some(few) = Few::at(call, win, place, (1, datatype))
        && few.exchange::<A>(compare, origin, result)
    {
        return Ok(());
    }
    long_compare_and_swap(call, (origin, compare, result), datatype, place, win)
}

#[inline(never)]
fn long_compare_and_swap<A: Abi>(
    call: &Call<'_, A>,
    (origin, compare, result): (Base, Base, Base),
    datatype: A::Datatype,
    place: (c_int, isize),
    win: A::Win,
) -> Outcome<()> {
    let win = call.on_win(win)?;
    if !one_element(call, datatype)?.can_be_compared() {
        let what = format_args!("only integers, logicals and bytes are compared");
        return Err(call.blame(neutral::ERR_TYPE, what));
    }
    let target = Target::check(call, win, place, 1, datatype)?;
    if target.member.is_none() {
        return Ok(());
    }
    let origin = Data::check(call, one::<A>(origin, datatype))?;
    let result = Data::check(call, one::<A>(result, datatype))?;
    Data::check(call, one::<A>(compare, datatype))?;
    let request = Request {
        action: Action::CompareAndSwap,
        origin: &origin,
        result: Some(&result),
        compare: Some(compare),
        target: &target,
    };
    request.begin(call, win)
}
