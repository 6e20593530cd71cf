//! Grids (MPI-4.1 sections 8.5.1, 8.5.5, 8.5.6).

use super::{give, integers, member, not_a, room_for};
use crate::arguments::{Call, Comm, Outcome, length, only_intra};
use crate::comm::{publish, room};
use alloc::vec::Vec;
use cohort_abi::parameters::{Array, Out, OutArray};
use cohort_abi::{Abi, Handle, neutral};
use cohort_object::topology::{Cart, Topology};
use core::ffi::c_int;

/// The grid of a communicator.
fn cart<'a, A: Abi>(call: &Call<'_, A>, comm: &'a Comm) -> Outcome<&'a Cart> {
    match comm.topology() {
        Some(Topology::Cart(cart)) => Ok(cart),
        _ => Err(not_a(call, "Cartesian")),
    }
}

/// The grid that a program describes.
fn described<A: Abi>(
    call: &Call<'_, A>,
    comm: &Comm,
    dimensions: c_int,
    extents: Array<'_, c_int>,
    periods: Array<'_, c_int>,
) -> Outcome<Cart> {
    only_intra(comm)?;
    let count = length(dimensions).map_err(|_| {
        let what = format_args!("the number of dimensions is {dimensions}");
        call.blame(neutral::ERR_DIMS, what)
    })?;
    let (extents, periods) = (integers(extents, count)?, integers(periods, count)?);
    let periods = periods.into_iter().map(|ring| ring != 0).collect();
    Cart::new(extents, periods, comm.size()).map_err(|class| {
        let size = comm.size();
        let what = format_args!("extents must be positive, their product at most {size}");
        call.blame(class, what)
    })
}

/// `MPI_Cart_create`.
pub fn cart_create<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    dimensions: c_int,
    extents: Array<'_, c_int>,
    periods: Array<'_, c_int>,
    reorder: c_int,
    target: Out<'_, A::Comm>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let target = call.output(target, "comm_cart")?;
    target.preset(A::Comm::from_neutral(call.context(), neutral::handle::COMM_NULL));
    let cart = described(call, comm, dimensions, extents, periods)?;
    publish(call, comm.with_cart(cart, reorder != 0, room(call))?, target)
}

/// Whether a grid has an extent of 0, and no negative one: there is no place in it for anybody.
fn holds_nobody(dimensions: c_int, extents: Array<'_, c_int>) -> Outcome<bool> {
    let Ok(count) = length(dimensions) else {
        return Ok(false);
    };
    let extents = extents.entries(count)?;
    Ok(extents.contains(&0) && extents.iter().all(|&extent| extent >= 0))
}

/// `MPI_Cart_map`.
pub fn cart_map<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    dimensions: c_int,
    extents: Array<'_, c_int>,
    periods: Array<'_, c_int>,
    place: Out<'_, c_int>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let place = call.output(place, "newrank")?;
    if holds_nobody(dimensions, extents)? {
        place.write(neutral::UNDEFINED);
        return Ok(());
    }
    let cart = described(call, comm, dimensions, extents, periods)?;
    let found = comm.place_in_cart(&cart);
    place.write(found.map_or(neutral::UNDEFINED, |found| found as c_int));
    Ok(())
}

/// `MPI_Cartdim_get`.
pub fn cartdim_get<A: Abi>(call: &Call<'_, A>, comm: A::Comm, dimensions: Out<'_, c_int>) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let dimensions = call.output(dimensions, "ndims")?;
    dimensions.write(cart(call, comm)?.dims().len() as c_int);
    Ok(())
}

/// `MPI_Cart_get`.
pub fn cart_get<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    room: c_int,
    extents: OutArray<'_, c_int>,
    periods: OutArray<'_, c_int>,
    coords: OutArray<'_, c_int>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let cart = cart(call, comm)?;
    room_for(call, cart.dims().len(), room, "dimensions")?;
    let rings: Vec<i32> = cart.periods().iter().map(|&ring| ring.into()).collect();
    give(cart.dims(), extents, room)?;
    give(&rings, periods, room)?;
    give(&cart.coords(comm.me()), coords, room)
}

/// `MPI_Cart_rank`.
pub fn cart_rank<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    coords: Array<'_, c_int>,
    rank: Out<'_, c_int>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let rank = call.output(rank, "rank")?;
    let cart = cart(call, comm)?;
    let coords = integers(coords, cart.dims().len())?;
    let found = cart.rank(&coords).map_err(|class| {
        let what = format_args!("coordinates {coords:?} are outside of the grid");
        call.blame(class, what)
    })?;
    rank.write(found as c_int);
    Ok(())
}

/// `MPI_Cart_coords`.
pub fn cart_coords<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    rank: c_int,
    room: c_int,
    coords: OutArray<'_, c_int>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let cart = cart(call, comm)?;
    let rank = member(call, comm, rank)?;
    room_for(call, cart.dims().len(), room, "dimensions")?;
    give(&cart.coords(rank), coords, room)
}

/// `MPI_Cart_shift`.
pub fn cart_shift<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    dimension: c_int,
    displacement: c_int,
    source: Out<'_, c_int>,
    destination: Out<'_, c_int>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let source = call.output(source, "rank_source")?;
    let destination = call.output(destination, "rank_dest")?;
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
    let displacement = i64::from(displacement);
    source.write(beside(-displacement));
    destination.write(beside(displacement));
    Ok(())
}

/// `MPI_Cart_sub`.
pub fn cart_sub<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    remain: Array<'_, c_int>,
    target: Out<'_, A::Comm>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let target = call.output(target, "newcomm")?;
    let cart = cart(call, comm)?;
    let remain = integers(remain, cart.dims().len())?;
    let remain: Vec<bool> = remain.into_iter().map(|keep| keep != 0).collect();
    publish(call, comm.cart_sub(cart, &remain, room(call))?, target)
}
