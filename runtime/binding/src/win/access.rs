//! Operations on windows (MPI-4.1 sections 12.3 and 12.4).

use super::failed;
use super::fast_path::{ONE_COPY, Plain};
use crate::arguments::{Call, Outcome, output};
use crate::data::Data;
use crate::request::{has_room, publish_complete, publish_pending};
use cohort_abi::parameters::{Base, Buffer, Out};
use cohort_abi::{Abi, Count, Handle, neutral};
use cohort_engine::datatype::{Basic, TypeRef};
use cohort_engine::op::PredefinedOp;
use cohort_engine::rma::{Action, ONE_TURN, Operation};
use cohort_object::Win;
use core::ffi::c_int;
use core::ptr::null;

/// Where an operation goes.
struct Target {
    member: u32,
    displacement: i64,
    count: u64,
    datatype: TypeRef,
}

impl Target {
    /// `None` is `MPI_PROC_NULL`. Inlined by force, so that the parts stay in registers; see [`Data::elements`].
    #[inline(always)]
    fn check<A: Abi, C: Count>(
        call: &Call<'_, A>,
        win: &Win,
        (rank, displacement): (c_int, isize),
        (elements, datatype): (C, A::Datatype),
    ) -> Outcome<Option<Self>> {
        let Some(member) = super::target(call, win, rank)? else {
            return call.committed(datatype).map(|_| None);
        };
        let elements = call.count(elements)?;
        let (count, datatype) = (elements.cast_unsigned(), call.committed_of(datatype, elements)?);
        Ok(Some(Self { member, displacement: displacement as i64, count, datatype }))
    }
}

/// An operation of the standard, with its arguments checked.
struct Checked {
    action: Action,
    origin: Data,
    result: Option<Data>,
    compare: Option<Base>,
    target: Target,
}

impl Checked {
    /// A put, a get, an accumulate; `None` for `MPI_PROC_NULL`. Inlined by force, as [`Checked::access`].
    #[inline(always)]
    fn moving<A: Abi, C: Count>(
        call: &Call<'_, A>,
        win: &Win,
        action: Action,
        origin: Buffer<A, C>,
        (place, there): ((c_int, isize), (C, A::Datatype)),
    ) -> Outcome<Option<Self>> {
        let Some(target) = Target::check(call, win, place, there)? else {
            return Ok(None);
        };
        let origin = Data::check(call, origin)?;
        Ok(Some(Self { action, origin, result: None, compare: None, target }))
    }

    /// An accumulate that fetches; `None` for `MPI_PROC_NULL`.
    fn fetching<A: Abi, C: Count>(
        call: &Call<'_, A>,
        win: &Win,
        op: A::Op,
        (origin, result): (Buffer<A, C>, Buffer<A, C>),
        (place, there): ((c_int, isize), (C, A::Datatype)),
    ) -> Outcome<Option<Self>> {
        let op = predefined_op(call, op)?;
        let Some(target) = Target::check(call, win, place, there)? else {
            return Ok(None);
        };
        // What the origin is does not matter when nothing is changed.
        let origin = match op {
            PredefinedOp::NoOp => Data::unused(call.committed(there.1)?),
            _ => Data::check(call, origin)?,
        };
        let result = Some(Data::check(call, result)?);
        Ok(Some(Self { action: Action::Accumulate(op), origin, result, compare: None, target }))
    }

    /// A compare and swap; `None` for `MPI_PROC_NULL`.
    fn swapping<A: Abi>(
        call: &Call<'_, A>,
        win: &Win,
        (origin, compare, result): (Base, Base, Base),
        datatype: A::Datatype,
        place: (c_int, isize),
    ) -> Outcome<Option<Self>> {
        if !one_element(call, datatype)?.can_be_compared() {
            let what = format_args!("only integers, logicals and bytes are compared");
            return Err(call.blame(neutral::ERR_TYPE, what));
        }
        let Some(target) = Target::check::<A, c_int>(call, win, place, (1, datatype))? else {
            return Ok(None);
        };
        let [origin, result, _] = [origin, result, compare].map(|base| Data::check(call, one::<A>(base, datatype)));
        let (origin, result, compare) = (origin?, Some(result?), Some(compare));
        Ok(Some(Self { action: Action::CompareAndSwap, origin, result, compare, target }))
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
        let operation = Operation {
            action: self.action,
            origin: self.origin.buffer(),
            result: self.result.as_ref().map(Data::buffer),
            compare: self.compare.map_or(null(), |compare| compare.as_ptr().cast()),
            target: self.target.member,
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
}

/// Begins what `check` gives.
#[inline(always)]
fn begin<A: Abi>(call: &Call<'_, A>, win: A::Win, check: impl FnOnce(&Win) -> Outcome<Option<Checked>>) -> Outcome<()> {
    let win = call.on_win(win)?;
    match check(win)? {
        Some(checked) => checked.access(call, win, false).map(drop),
        None => Ok(()),
    }
}

/// Begins what `check` gives, with a request for it.
#[inline(always)]
fn publish<A: Abi>(
    call: &Call<'_, A>,
    handle: A::Win,
    request: Out<'_, A::Request>,
    check: impl FnOnce(&Win) -> Outcome<Option<Checked>>,
) -> Outcome<()> {
    let win = call.on_win(handle)?;
    let request = output(request)?;
    let pending = match check(win)? {
        Some(checked) => {
            has_room(call)?;
            checked.access(call, win, true)?
        }
        None => None,
    };
    match pending {
        Some(pending) => publish_pending(call, pending, handle.neutral(), request),
        None => publish_complete(call, request),
    }
}

/// The operation argument of an accumulate: one of MPI's own.
fn predefined_op<A: Abi>(call: &Call<'_, A>, op: A::Op) -> Outcome<PredefinedOp> {
    PredefinedOp::from_handle(op.neutral()).ok_or_else(|| {
        let what = format_args!("accumulates take predefined operations only");
        call.blame(neutral::ERR_OP, what)
    })
}

/// What an accumulate that fetches nothing does. `MPI_NO_OP` is for those that do (MPI-4.1, 12.3.4).
fn accumulating<A: Abi>(call: &Call<'_, A>, op: A::Op) -> Outcome<Action> {
    match predefined_op(call, op)? {
        PredefinedOp::NoOp => {
            let what = format_args!("MPI_NO_OP is for MPI_Get_accumulate and MPI_Fetch_and_op");
            Err(call.blame(neutral::ERR_OP, what))
        }
        op => Ok(Action::Accumulate(op)),
    }
}

macro_rules! moves {
    ($($(#[$page:meta])* $name:ident $long:ident $action:ident,
       $(#[$with_page:meta])* $with:ident $long_with:ident;)*) => {$(
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
            let (place, there) = ((rank, displacement), (count, datatype));
            if let Some(plain) = Plain::from::<A, C, ONE_COPY>(call, win, &origin, place, there) {
                plain.$name(origin.base);
                return Ok(());
            }
            $long(call, origin, (place, there), win)
        }

        #[inline(never)]
        fn $long<A: Abi, C: Count>(
            call: &Call<'_, A>,
            origin: Buffer<A, C>,
            target: ((c_int, isize), (C, A::Datatype)),
            win: A::Win,
        ) -> Outcome<()> {
            begin(call, win, |win| Checked::moving(call, win, Action::$action, origin, target))
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
            let (place, there) = ((rank, displacement), (count, datatype));
            if let Some(plain) = Plain::from::<A, C, ONE_COPY>(call, win, &origin, place, there) {
                let request = output(request).inspect_err(|_| drop(call.on_win(win)))?;
                plain.$name(origin.base);
                return publish_complete(call, request);
            }
            $long_with(call, origin, (place, there), win, request)
        }

        #[inline(never)]
        fn $long_with<A: Abi, C: Count>(
            call: &Call<'_, A>,
            origin: Buffer<A, C>,
            target: ((c_int, isize), (C, A::Datatype)),
            win: A::Win,
            request: Out<'_, A::Request>,
        ) -> Outcome<()> {
            publish(call, win, request, |win| Checked::moving(call, win, Action::$action, origin, target))
        }
    )*};
}

moves! {
    /// `MPI_Put`.
    put long_put Put,
    /// `MPI_Rput`.
    rput long_rput;
    /// `MPI_Get`.
    get long_get Get,
    /// `MPI_Rget`.
    rget long_rget;
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
    let (place, there) = ((rank, displacement), (count, datatype));
    if let Some(plain) = Plain::from::<A, C, ONE_TURN>(call, win, &origin, place, there)
        && plain.accumulate::<A>(op, origin.base)
    {
        return Ok(());
    }
    long_accumulate(call, origin, (place, there), op, win)
}

#[inline(never)]
fn long_accumulate<A: Abi, C: Count>(
    call: &Call<'_, A>,
    origin: Buffer<A, C>,
    target: ((c_int, isize), (C, A::Datatype)),
    op: A::Op,
    win: A::Win,
) -> Outcome<()> {
    begin(call, win, |win| Checked::moving(call, win, accumulating(call, op)?, origin, target))
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
    let target = ((rank, displacement), (count, datatype));
    publish(call, win, request, |win| Checked::moving(call, win, accumulating(call, op)?, origin, target))
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
    let (place, there) = ((rank, displacement), (count, datatype));
    let result_is_same = result.datatype == datatype && result.count.to_i64() == count.to_i64();
    if result_is_same
        && let Some(plain) = Plain::from::<A, C, ONE_TURN>(call, win, &origin, place, there)
        && plain.fetch::<A>(op, origin.base, result.base)
    {
        return Ok(());
    }
    long_get_accumulate(call, (origin, result), (place, there), op, win)
}

#[inline(never)]
fn long_get_accumulate<A: Abi, C: Count>(
    call: &Call<'_, A>,
    buffers: (Buffer<A, C>, Buffer<A, C>),
    target: ((c_int, isize), (C, A::Datatype)),
    op: A::Op,
    win: A::Win,
) -> Outcome<()> {
    begin(call, win, |win| Checked::fetching(call, win, op, buffers, target))
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
    let target = ((rank, displacement), (count, datatype));
    publish(call, win, request, |win| Checked::fetching(call, win, op, (origin, result), target))
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
    if let Some(plain) = Plain::one(call, win, place, datatype)
        && plain.fetch::<A>(op, origin, result)
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
    let check = |win: &Win| {
        one_element(call, datatype)?;
        let buffers = (one(origin, datatype), one(result, datatype));
        Checked::fetching(call, win, op, buffers, (place, (1, datatype)))
    };
    begin(call, win, check)
}

/// One element of a type at an address.
fn one<A: Abi>(base: Base, datatype: A::Datatype) -> Buffer<A, c_int> {
    Buffer { base, count: 1, datatype }
}

/// Refuses types that are not one predefined element; gives its class.
fn one_element<A: Abi>(call: &Call<'_, A>, datatype: A::Datatype) -> Outcome<Basic> {
    let datatype = call.committed(datatype)?;
    datatype.element().ok_or_else(|| {
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
    if let Some(plain) = Plain::one(call, win, place, datatype)
        && plain.exchange::<A>(compare, origin, result)
    {
        return Ok(());
    }
    long_compare_and_swap(call, (origin, compare, result), datatype, place, win)
}

#[inline(never)]
fn long_compare_and_swap<A: Abi>(
    call: &Call<'_, A>,
    buffers: (Base, Base, Base),
    datatype: A::Datatype,
    place: (c_int, isize),
    win: A::Win,
) -> Outcome<()> {
    begin(call, win, |win| Checked::swapping(call, win, buffers, datatype, place))
}
