//! Handles between Fortran and C: INTEGERs there, whatever the ABI has here.

use crate::generated::c;
use crate::{A, of_int};
use alloc::vec::Vec;
use cohort_abi::{Abi, Constants, Handle, neutral};
use core::ffi::c_int;

type Context = <A as Abi>::Context;
type Comm = <A as Abi>::Comm;

/// C's handle of Fortran's.
#[inline]
pub fn handle<H: Handle<Context = Context>>(number: c_int) -> H {
    of_int(number)
}

/// Whether C's handles are Fortran's.
const fn are_same<H>() -> bool {
    size_of::<H>() == size_of::<c_int>()
}

/// A handle that C reads and stores: Fortran's own variable where C's handles are INTEGERs, by which the checker knows
/// it; a copy elsewhere.
#[derive(Debug)]
pub struct One<H> {
    number: *mut c_int,
    copy: H,
}

impl<H: Handle<Context = Context>> One<H> {
    /// That of a variable of Fortran's.
    ///
    /// # Safety
    /// It may be read and written until this is stored.
    #[inline]
    pub unsafe fn of(number: *mut c_int) -> Self {
        // SAFETY: as the caller promises.
        Self { number, copy: handle(unsafe { *number }) }
    }

    /// What C gets.
    #[inline]
    pub fn pointer(&mut self) -> *mut H {
        match are_same::<H>() {
            true => self.number.cast(),
            false => &raw mut self.copy,
        }
    }

    /// Gives Fortran what C has stored.
    ///
    /// # Safety
    /// As for [`One::of`].
    #[inline]
    pub unsafe fn store(&self) {
        if !are_same::<H>() {
            // SAFETY: as the caller promises.
            unsafe { *self.number = self.copy.to_int() };
        }
    }
}

/// An array of handles for C: Fortran's own where C's handles are INTEGERs, a copy elsewhere.
#[derive(Debug)]
pub struct Handles<H> {
    numbers: *mut c_int,
    copy: Vec<H>,
}

impl<H: Handle<Context = Context>> Handles<H> {
    /// The handles of an array of Fortran's, whose length is asked for where that matters.
    ///
    /// # Safety
    /// `numbers` is valid for so many reads.
    #[inline]
    pub unsafe fn of(numbers: *const c_int, length: impl FnOnce() -> usize) -> Self {
        let mut copy = Vec::new();
        if !are_same::<H>() {
            // SAFETY: as the caller promises.
            copy.extend((0..length()).map(|at| handle::<H>(unsafe { *numbers.add(at) })));
        }
        let numbers = numbers.cast_mut();
        Self { numbers, copy }
    }

    /// Room for handles that C stores.
    #[inline]
    pub fn room(numbers: *mut c_int, length: impl FnOnce() -> usize) -> Self {
        let mut copy = Vec::new();
        if !are_same::<H>() {
            copy.resize(length(), Self::none());
        }
        Self { numbers, copy }
    }

    /// What stands for no handle at all.
    fn none() -> H {
        handle(-1)
    }

    /// What C gets.
    #[inline]
    pub fn pointer(&mut self) -> *mut H {
        match are_same::<H>() {
            true => self.numbers.cast(),
            false => self.copy.as_mut_ptr(),
        }
    }

    /// Gives Fortran what C has stored.
    ///
    /// # Safety
    /// Fortran's array is valid for as many writes as it has handles.
    #[inline]
    pub unsafe fn store(&self) {
        for (at, handle) in self.copy.iter().enumerate() {
            if *handle != Self::none() {
                // SAFETY: as the caller promises.
                unsafe { self.numbers.add(at).write(handle.to_int()) };
            }
        }
    }
}

/// The number of entries of an array.
#[inline]
pub fn length(count: impl TryInto<usize>) -> usize {
    count.try_into().unwrap_or(0)
}

/// The caller's rank in a communicator; -1 in what is none, as the procedure itself reports, and nobody else is to.
///
/// # Safety
/// A call of MPI, so the program has initialised it.
unsafe fn own_rank(comm: c_int) -> c_int {
    let mut own = -1;
    // SAFETY: as the caller promises.
    unsafe { c::MPII_Comm_own_rank(handle(comm), &mut own) };
    own
}

/// Whether the calling process is the one with this number.
///
/// # Safety
/// A call of MPI, so the program has initialised it.
pub unsafe fn is_rank(comm: c_int, rank: c_int) -> bool {
    // SAFETY: as the caller promises.
    let own = unsafe { own_rank(comm) };
    own >= 0 && own == rank
}

/// The processes that each process of a communicator exchanges blocks with in `MPI_Alltoallw`; none for blocks that
/// are not looked at, because the buffer is `MPI_IN_PLACE`.
///
/// # Safety
/// A call of MPI, so the program has initialised it.
pub unsafe fn processes(comm: c_int, is_in_place: bool) -> usize {
    // SAFETY: as the caller promises.
    if is_in_place || unsafe { own_rank(comm) } < 0 {
        return 0;
    }
    let (comm, mut inter, mut size): (Comm, _, _) = (handle(comm), 0, 0);
    // SAFETY: as the caller promises.
    unsafe {
        PMPI_Comm_test_inter(comm, &mut inter);
        match inter {
            0 => PMPI_Comm_size(comm, &mut size),
            _ => PMPI_Comm_remote_size(comm, &mut size),
        };
    }
    length(size)
}

/// From how many neighbours and to how many a process with a topology receives and sends.
///
/// # Safety
/// A call of MPI, so the program has initialised it.
pub unsafe fn neighbours(comm: c_int) -> [usize; 2] {
    // SAFETY: as the caller promises.
    let rank = unsafe { own_rank(comm) };
    if rank < 0 {
        return [0, 0];
    }
    let (comm, mut topology): (Comm, _) = (handle(comm), 0);
    let [mut from, mut to, mut weighted] = [0; 3];
    // SAFETY: as the caller promises.
    unsafe {
        PMPI_Topo_test(comm, &mut topology);
        match A::topology_in(topology) {
            neutral::CART => {
                PMPI_Cartdim_get(comm, &mut from);
                (from, to) = (2 * from, 2 * from);
            }
            neutral::GRAPH => {
                PMPI_Graph_neighbors_count(comm, rank, &mut from);
                to = from;
            }
            neutral::DIST_GRAPH => {
                PMPI_Dist_graph_neighbors_count(comm, &mut from, &mut to, &mut weighted);
            }
            _ => {}
        }
    }
    [from, to].map(length)
}

// By the names that no tool counts: the program has not called these.
unsafe extern "C" {
    fn PMPI_Cartdim_get(comm: Comm, ndims: *mut c_int) -> c_int;
    fn PMPI_Comm_remote_size(comm: Comm, size: *mut c_int) -> c_int;
    fn PMPI_Comm_size(comm: Comm, size: *mut c_int) -> c_int;
    fn PMPI_Comm_test_inter(comm: Comm, flag: *mut c_int) -> c_int;
    fn PMPI_Dist_graph_neighbors_count(
        comm: Comm,
        indegree: *mut c_int,
        outdegree: *mut c_int,
        weighted: *mut c_int,
    ) -> c_int;
    fn PMPI_Graph_neighbors_count(comm: Comm, rank: c_int, nneighbors: *mut c_int) -> c_int;
    fn PMPI_Topo_test(comm: Comm, status: *mut c_int) -> c_int;
}
