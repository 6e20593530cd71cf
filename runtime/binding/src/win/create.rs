//! Windows come and go (MPI-4.1 section 12.2).

use super::failed;
use crate::arguments::{Call, Comm, Error, Outcome, output};
use alloc::boxed::Box;
use cohort_abi::parameters::{Base, InOut, Out};
use cohort_abi::{Abi, Count, Handle, Integer, neutral};
use cohort_engine::rma::Part;
use cohort_object::Win;
use cohort_object::win::Flavor;
use core::ffi::c_void;

/// A size argument.
fn bytes<A: Abi>(call: &Call<'_, A>, size: isize) -> Outcome<u64> {
    u64::try_from(size).map_err(|_| {
        let what = format_args!("the size is {size} bytes");
        call.blame(neutral::ERR_SIZE, what)
    })
}

/// A displacement unit.
fn unit<A: Abi, I: Integer>(call: &Call<'_, A>, unit: I) -> Outcome<i64> {
    match unit.to_i64() {
        unit if unit > 0 => Ok(unit),
        unit => {
            let what = format_args!("the displacement unit is {unit}");
            Err(call.blame(neutral::ERR_DISP, what))
        }
    }
}

/// The caller's part of a window.
fn part<A: Abi, I: Integer>(call: &Call<'_, A>, base: usize, size: isize, disp_unit: I) -> Outcome<Part> {
    Ok(Part { base, size: bytes(call, size)?, unit: unit(call, disp_unit)? })
}

/// Makes a window and gives the program its handle. Who has given wrong arguments meets the other members, so that all
/// of them refuse.
fn publish<A: Abi>(
    call: &Call<'_, A>,
    comm: &Comm,
    flavor: Flavor,
    part: Outcome<Part>,
    hints: A::Info,
    target: Out<'_, A::Win>,
) -> Outcome<Part> {
    let target = output(target);
    let asked = part.and_then(|part| {
        let hints = crate::info::hints(call, hints)?;
        crate::info::alignment(call, &hints)?;
        Ok((part, hints))
    });
    let asked = target.as_ref().map_err(Error::clone).and(asked);
    let win = Box::new(Win::make(comm, flavor, asked, call.objects().room_for_win())?);
    let target = target?;
    let part = win.part();
    let handle = call.objects().add_win(win)?;
    target.write(A::Win::from_neutral(call.context(), handle));
    Ok(part)
}

/// `MPI_Win_create`.
pub fn create<A: Abi, C: Count>(
    call: &Call<'_, A>,
    base: Base,
    size: isize,
    disp_unit: C::Displacement,
    hints: A::Info,
    comm: A::Comm,
    target: Out<'_, A::Win>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let part = part(call, base.as_ptr().expose_provenance(), size, disp_unit);
    publish(call, comm, Flavor::Create, part, hints, target)?;
    Ok(())
}

macro_rules! allocations {
    ($($(#[$page:meta])* $name:ident $flavor:ident;)*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi, C: Count>(
            call: &Call<'_, A>,
            size: isize,
            disp_unit: C::Displacement,
            hints: A::Info,
            comm: A::Comm,
            base: Out<'_, *mut c_void>,
            target: Out<'_, A::Win>,
        ) -> Outcome<()> {
            let comm = call.on_comm(comm)?;
            let base = output(base);
            let part = base.as_ref().map_err(Error::clone).and_then(|_| part(call, 0, size, disp_unit));
            let part = publish(call, comm, Flavor::$flavor, part, hints, target)?;
            base?.write(core::ptr::with_exposed_provenance_mut(part.base));
            Ok(())
        }
    )*};
}

allocations! {
    /// `MPI_Win_allocate`.
    allocate Allocate;
    /// `MPI_Win_allocate_shared`.
    allocate_shared Shared;
}

/// `MPI_Win_create_dynamic`.
pub fn create_dynamic<A: Abi>(
    call: &Call<'_, A>,
    hints: A::Info,
    comm: A::Comm,
    target: Out<'_, A::Win>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let part = Part { unit: 1, ..Part::default() };
    publish(call, comm, Flavor::Dynamic, Ok(part), hints, target)?;
    Ok(())
}

/// Refuses windows whose memory is not attached later.
fn only_dynamic<A: Abi>(call: &Call<'_, A>, win: &Win) -> Outcome<()> {
    match win.flavor() {
        Flavor::Dynamic => Ok(()),
        _ => {
            let what = format_args!("memory is attached to dynamic windows only");
            Err(call.blame(neutral::ERR_RMA_FLAVOR, what))
        }
    }
}

/// `MPI_Win_attach`.
pub fn attach<A: Abi>(call: &Call<'_, A>, win: A::Win, base: Base, size: isize) -> Outcome<()> {
    let win = call.on_win(win)?;
    only_dynamic(call, win)?;
    let (from, size) = (base.as_ptr().expose_provenance() as u64, bytes(call, size)?);
    let attached = win.window.attach(call.owner(), from, size);
    attached.map_err(|error| failed(call, error))
}

/// `MPI_Win_detach`.
pub fn detach<A: Abi>(call: &Call<'_, A>, win: A::Win, base: Base) -> Outcome<()> {
    let win = call.on_win(win)?;
    only_dynamic(call, win)?;
    win.window.detach(base.addr() as u64).map_err(|_| {
        let what = format_args!("nothing that begins at {:?} is attached", base.as_ptr());
        call.blame(neutral::ERR_RMA_ATTACH, what)
    })
}

/// `MPI_Win_free`.
pub fn free<A: Abi>(call: &Call<'_, A>, win: InOut<'_, A::Win>) -> Outcome<()> {
    let win = win.value().ok_or(neutral::ERR_ARG)?;
    let handle = win.get();
    let object = call.on_win(handle)?;
    if !object.window.is_broken() {
        object.window.idle(call.owner()).map_err(|error| failed(call, error))?;
    }
    object.attributes.delete_all(handle.neutral())?;
    call.objects().remove_win(handle.neutral())?.release()?;
    win.set(A::Win::from_neutral(call.context(), neutral::handle::WIN_NULL));
    Ok(())
}
