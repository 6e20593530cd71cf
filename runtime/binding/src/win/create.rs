//! Windows come and go (MPI-4.1 section 12.2).

use super::failed;
use crate::arguments::{Call, Comm, Outcome, on_comm, on_process, on_win, output};
use alloc::boxed::Box;
use cohort_abi::{Abi, Count, Handle, Integer, neutral};
use cohort_engine::rma::Part;
use cohort_object::Win;
use cohort_object::win::Flavor;
use core::ffi::{c_int, c_void};

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

/// Makes a window and gives the program its handle.
///
/// # Safety
/// `target` is valid for writes, or NULL.
unsafe fn publish<A: Abi>(
    call: &Call<'_, A>,
    comm: &Comm,
    flavor: Flavor,
    part: Part,
    hints: A::Info,
    target: *mut A::Win,
) -> Outcome<Part> {
    output(target)?;
    let hints = crate::info::hints(call, hints)?;
    let win = Box::new(Win::make(comm, flavor, part, hints)?);
    let part = win.part();
    let handle = call.objects().add_win(win)?;
    // SAFETY: not NULL, and the caller's contract.
    unsafe { target.write(A::Win::from_neutral(handle)) };
    Ok(part)
}

/// `MPI_Win_create`.
///
/// # Safety
/// MPI's: `base` has `size` bytes as long as the window lasts, `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn create<A: Abi, C: Count>(
    caller: *const c_void,
    base: *mut c_void,
    size: isize,
    disp_unit: C::Displacement,
    hints: A::Info,
    comm: A::Comm,
    target: *mut A::Win,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Win_create", comm, |call, comm| {
            let part = Part {
                base: base.expose_provenance(),
                size: bytes(call, size)?,
                unit: unit(call, disp_unit)?,
            };
            publish(call, comm, Flavor::Create, part, hints, target)?;
            Ok(())
        })
    }
}

macro_rules! allocations {
    ($($(#[$page:meta])* $name:ident $mpi:literal $flavor:ident;)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// MPI's: `base` points to a pointer, `target` is valid for writes; `caller` is the calling rank.
        pub unsafe extern "C" fn $name<A: Abi, C: Count>(
            caller: *const c_void,
            size: isize,
            disp_unit: C::Displacement,
            hints: A::Info,
            comm: A::Comm,
            base: *mut c_void,
            target: *mut A::Win,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                on_comm::<A>(caller, $mpi, comm, |call, comm| {
                    output(base)?;
                    let part = Part {
                        base: 0,
                        size: bytes(call, size)?,
                        unit: unit(call, disp_unit)?,
                    };
                    let part = publish(call, comm, Flavor::$flavor, part, hints, target)?;
                    base.cast::<usize>().write(part.base);
                    Ok(())
                })
            }
        }
    )*};
}

allocations! {
    /// `MPI_Win_allocate`.
    allocate "MPI_Win_allocate" Allocate;
    /// `MPI_Win_allocate_shared`.
    allocate_shared "MPI_Win_allocate_shared" Shared;
}

/// `MPI_Win_create_dynamic`.
///
/// # Safety
/// MPI's: `target` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn create_dynamic<A: Abi>(
    caller: *const c_void,
    hints: A::Info,
    comm: A::Comm,
    target: *mut A::Win,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Win_create_dynamic", comm, |call, comm| {
            let part = Part {
                unit: 1,
                ..Part::default()
            };
            publish(call, comm, Flavor::Dynamic, part, hints, target)?;
            Ok(())
        })
    }
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
///
/// # Safety
/// MPI's: `base` has `size` bytes until it is detached; `caller` is the calling rank.
pub unsafe extern "C" fn attach<A: Abi>(
    caller: *const c_void,
    win: A::Win,
    base: *mut c_void,
    size: isize,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_win::<A>(caller, "MPI_Win_attach", win, |call, win| {
            only_dynamic(call, win)?;
            let (from, size) = (base.expose_provenance() as u64, bytes(call, size)?);
            let attached = win.window.attach(call.owner(), from, size);
            attached.map_err(|error| failed(call, error))
        })
    }
}

/// `MPI_Win_detach`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn detach<A: Abi>(
    caller: *const c_void,
    win: A::Win,
    base: *const c_void,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_win::<A>(caller, "MPI_Win_detach", win, |call, win| {
            only_dynamic(call, win)?;
            win.window.detach(base.addr() as u64).map_err(|_| {
                let what = format_args!("nothing that begins at {base:?} is attached");
                call.blame(neutral::ERR_RMA_ATTACH, what)
            })
        })
    }
}

/// `MPI_Win_free`.
///
/// # Safety
/// MPI's: `win` is valid for reads and writes; `caller` is the calling rank.
pub unsafe extern "C" fn free<A: Abi>(caller: *const c_void, win: *mut A::Win) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        if win.is_null() {
            return on_process::<A>(caller, "MPI_Win_free", |_| Err(neutral::ERR_ARG));
        }
        let handle = *win;
        on_win::<A>(caller, "MPI_Win_free", handle, |call, object| {
            object
                .window
                .idle(call.owner())
                .map_err(|error| failed(call, error))?;
            object.attributes.delete_all(handle.neutral())?;
            call.objects().remove_win(handle.neutral())?.release()?;
            win.write(A::Win::from_neutral(neutral::handle::WIN_NULL));
            Ok(())
        })
    }
}
