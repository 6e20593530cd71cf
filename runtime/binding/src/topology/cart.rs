//! Grids (MPI-4.1 sections 8.5.1, 8.5.5, 8.5.6).

use super::{give, integers, member, not_a, room_for};
use crate::arguments::{Call, Comm, Outcome, length, on_comm};
use crate::comm::publish;
use crate::intercomm::only_intra;
use alloc::vec::Vec;
use cohort_abi::{Abi, neutral};
use cohort_object::topology::{Cart, Topology};
use core::ffi::{c_int, c_void};

/// The grid of a communicator.
fn cart<'a, A: Abi>(call: &Call<'_, A>, comm: &'a Comm) -> Outcome<&'a Cart> {
    match comm.topology() {
        Some(Topology::Cart(cart)) => Ok(cart),
        _ => Err(not_a(call, "Cartesian")),
    }
}

/// The grid that a program describes.
///
/// # Safety
/// The arrays have `dimensions` entries.
unsafe fn described<A: Abi>(
    call: &Call<'_, A>,
    comm: &Comm,
    dimensions: c_int,
    extents: *const c_int,
    periods: *const c_int,
) -> Outcome<Cart> {
    only_intra(comm)?;
    let count = length(dimensions).map_err(|_| {
        let what = format_args!("the number of dimensions is {dimensions}");
        call.blame(neutral::ERR_DIMS, what)
    })?;
    // SAFETY: the caller's contract.
    let (extents, periods) = unsafe { (integers(extents, count)?, integers(periods, count)?) };
    let periods = periods.into_iter().map(|ring| ring != 0).collect();
    Cart::new(extents, periods, comm.size()).map_err(|class| {
        let size = comm.size();
        let what = format_args!("extents must be positive, their product at most {size}");
        call.blame(class, what)
    })
}

/// `MPI_Cart_create`.
///
/// # Safety
/// MPI's: the arrays have `dimensions` entries, `target` is valid for writes; `caller` is the calling
/// rank.
pub unsafe extern "C" fn cart_create<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    dimensions: c_int,
    extents: *const c_int,
    periods: *const c_int,
    reorder: c_int,
    target: *mut A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Cart_create", comm, |call, comm| {
            call.output(target, "comm_cart")?;
            let cart = described(call, comm, dimensions, extents, periods)?;
            publish(call, comm.with_cart(cart, reorder != 0)?, target)
        })
    }
}

/// `MPI_Cart_map`.
///
/// # Safety
/// MPI's: the arrays have `dimensions` entries, `place` is valid for writes; `caller` is the calling
/// rank.
pub unsafe extern "C" fn cart_map<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    dimensions: c_int,
    extents: *const c_int,
    periods: *const c_int,
    place: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Cart_map", comm, |call, comm| {
            call.output(place, "newrank")?;
            let cart = described(call, comm, dimensions, extents, periods)?;
            let found = comm.place_in_cart(&cart);
            place.write(found.map_or(neutral::UNDEFINED, |found| found as c_int));
            Ok(())
        })
    }
}

/// `MPI_Cartdim_get`.
///
/// # Safety
/// MPI's: `dimensions` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn cartdim_get<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    dimensions: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Cartdim_get", comm, |call, comm| {
            call.output(dimensions, "ndims")?;
            dimensions.write(cart(call, comm)?.dims().len() as c_int);
            Ok(())
        })
    }
}

/// `MPI_Cart_get`.
///
/// # Safety
/// MPI's: the arrays have room for `room` entries; `caller` is the calling rank.
pub unsafe extern "C" fn cart_get<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    room: c_int,
    extents: *mut c_int,
    periods: *mut c_int,
    coords: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Cart_get", comm, |call, comm| {
            let cart = cart(call, comm)?;
            room_for(call, cart.dims().len(), room, "dimensions")?;
            let rings: Vec<i32> = cart.periods().iter().map(|&ring| ring.into()).collect();
            give(cart.dims(), extents, room)?;
            give(&rings, periods, room)?;
            give(&cart.coords(comm.me()), coords, room)
        })
    }
}

/// `MPI_Cart_rank`.
///
/// # Safety
/// MPI's: `coords` has an entry for each dimension, `rank` is valid for writes; `caller` is the calling
/// rank.
pub unsafe extern "C" fn cart_rank<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    coords: *const c_int,
    rank: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Cart_rank", comm, |call, comm| {
            call.output(rank, "rank")?;
            let cart = cart(call, comm)?;
            let coords = integers(coords, cart.dims().len())?;
            let found = cart.rank(&coords).map_err(|class| {
                let what = format_args!("coordinates {coords:?} are outside of the grid");
                call.blame(class, what)
            })?;
            rank.write(found as c_int);
            Ok(())
        })
    }
}

/// `MPI_Cart_coords`.
///
/// # Safety
/// MPI's: `coords` has room for `room` entries; `caller` is the calling rank.
pub unsafe extern "C" fn cart_coords<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    rank: c_int,
    room: c_int,
    coords: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Cart_coords", comm, |call, comm| {
            let cart = cart(call, comm)?;
            let rank = member(call, comm, rank)?;
            room_for(call, cart.dims().len(), room, "dimensions")?;
            give(&cart.coords(rank), coords, room)
        })
    }
}

/// `MPI_Cart_shift`.
///
/// # Safety
/// MPI's: the results are valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn cart_shift<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    dimension: c_int,
    displacement: c_int,
    source: *mut c_int,
    destination: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Cart_shift", comm, |call, comm| {
            call.output(source, "rank_source")?;
            call.output(destination, "rank_dest")?;
            let cart = cart(call, comm)?;
            let known = usize::try_from(dimension).ok();
            let known = known.filter(|&it| it < cart.dims().len());
            let along = known.ok_or_else(|| {
                let count = cart.dims().len();
                let what = format_args!("the direction is {dimension}, the grid has {count}");
                call.blame(neutral::ERR_ARG, what)
            })?;
            let beside = |step| match cart.beside(comm.me(), along, step) {
                Some(rank) => rank as c_int,
                None => A::rank_out(neutral::PROC_NULL),
            };
            let back = displacement.checked_neg().ok_or(neutral::ERR_ARG)?;
            source.write(beside(back));
            destination.write(beside(displacement));
            Ok(())
        })
    }
}

/// `MPI_Cart_sub`.
///
/// # Safety
/// MPI's: `remain` has an entry for each dimension, `target` is valid for writes; `caller` is the calling
/// rank.
pub unsafe extern "C" fn cart_sub<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    remain: *const c_int,
    target: *mut A::Comm,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Cart_sub", comm, |call, comm| {
            call.output(target, "newcomm")?;
            let cart = cart(call, comm)?;
            let remain = integers(remain, cart.dims().len())?;
            let remain: Vec<bool> = remain.into_iter().map(|keep| keep != 0).collect();
            publish(call, comm.cart_sub(cart, &remain)?, target)
        })
    }
}
