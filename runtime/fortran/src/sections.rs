//! Sections of arrays as choice buffers of `mpi_f08` (MPI 19.1.12): strided, reversed, of any rank.
//!
//! A section stands for the contiguous array that has its elements. Where a call takes a count and a datatype of one
//! block, the section becomes a derived datatype of these elements, so that nothing is copied and the call may be
//! nonblocking. The datatype is freed at once after the call: MPI keeps it as long as it needs it (MPI 4.1.11).
//! Elsewhere a blocking call gets a copy ([`Copied`]), and a request one that lives as long as it ([`Held`]).
//! What is left is refused: calls on windows that make no request.

use crate::A;
use crate::descriptor::{Axis, Choice, Copied, Kept, Section, contiguous};
use crate::extents::{checked, extent_of, true_extent_of};
use crate::held::Held;
use alloc::boxed::Box;
use alloc::vec::Vec;
use cohort_abi::{Abi, Constants, Handle, neutral};
use core::ffi::{c_int, c_void};

type Comm = <A as Abi>::Comm;
type Datatype = <A as Abi>::Datatype;

// By the names that no tool counts: the program has not called these.
unsafe extern "C" {
    fn PMPI_Comm_call_errhandler(comm: Comm, errorcode: c_int) -> c_int;
    fn PMPI_Type_commit(datatype: *mut Datatype) -> c_int;
    fn PMPI_Type_contiguous_c(count: i64, oldtype: Datatype, newtype: *mut Datatype) -> c_int;
    fn PMPI_Type_create_hvector_c(
        count: i64,
        blocklength: i64,
        stride: i64,
        oldtype: Datatype,
        newtype: *mut Datatype,
    ) -> c_int;
    fn PMPI_Type_create_struct_c(
        count: i64,
        array_of_blocklengths: *const i64,
        array_of_displacements: *const i64,
        array_of_types: *const Datatype,
        newtype: *mut Datatype,
    ) -> c_int;
    fn PMPI_Type_create_resized_c(oldtype: Datatype, lb: i64, extent: i64, newtype: *mut Datatype) -> c_int;
    fn PMPI_Type_free(datatype: *mut Datatype) -> c_int;
    fn PMPI_Type_get_contents_c(
        datatype: Datatype,
        max_integers: i64,
        max_addresses: i64,
        max_large_counts: i64,
        max_datatypes: i64,
        integers: *mut c_int,
        addresses: *mut isize,
        large_counts: *mut i64,
        datatypes: *mut Datatype,
    ) -> c_int;
    fn PMPI_Type_get_envelope_c(
        datatype: Datatype,
        num_integers: *mut i64,
        num_addresses: *mut i64,
        num_large_counts: *mut i64,
        num_datatypes: *mut i64,
        combiner: *mut c_int,
    ) -> c_int;
}

/// What a call does with a section that no datatype can describe.
pub enum Otherwise<'a> {
    /// It reads a copy.
    Read,
    /// It reads and writes a copy.
    Write,
    /// Its request has a copy, and may write it.
    Keep(&'a mut Held, bool),
    /// It cannot wait, and refuses.
    Refuse,
}

/// A buffer, a count and a datatype.
#[derive(Debug)]
pub struct Typed<C> {
    /// The buffer.
    pub start: *const c_void,
    /// The count.
    pub count: C,
    /// The datatype.
    pub datatype: c_int,
    made: bool,
    _kept: Option<Box<Kept>>,
}

impl<C: Copy + Into<i64> + From<bool>> Typed<C> {
    /// `count` elements of `datatype` in the array `choice`.
    ///
    /// # Errors
    /// MPI's error code, after the error handler.
    ///
    /// # Safety
    /// Arguments of a Fortran procedure. The array is valid for what `otherwise` says until this is dropped.
    #[inline]
    pub unsafe fn new(
        choice: Choice,
        count: *const C,
        datatype: *const c_int,
        otherwise: Otherwise<'_>,
    ) -> Result<Self, c_int> {
        // SAFETY: as the caller promises.
        unsafe {
            match contiguous(choice) {
                Some(start) => Ok(Self::plain(start, *count, *datatype)),
                None => Self::of(choice, *count, *datatype, otherwise),
            }
        }
    }

    fn plain(start: *const c_void, count: C, datatype: c_int) -> Self {
        Self { start, count, datatype, made: false, _kept: None }
    }

    #[cold]
    unsafe fn of(choice: Choice, count: C, datatype: c_int, otherwise: Otherwise<'_>) -> Result<Self, c_int> {
        // SAFETY: as the caller of `new` promises.
        let section = unsafe { Section::of(choice) };
        let base: *const c_void = section.base.cast();
        if count.into() <= 0 {
            return Ok(Self::plain(base, count, datatype));
        }
        if let Some(made) = of_elements(&section, count.into(), Datatype::from_int(datatype))? {
            let mut typed = Self::plain(base, C::from(true), made.to_int());
            typed.made = true;
            return Ok(typed);
        }
        let writes = match otherwise {
            Otherwise::Read => false,
            Otherwise::Write => true,
            Otherwise::Keep(held, writes) => {
                // SAFETY: as the caller of `new` promises; it stays valid as long as the operation, as MPI demands.
                let start = unsafe { held.array(choice, writes) };
                return Ok(Self::plain(start, count, datatype));
            }
            Otherwise::Refuse => return Err(refused()),
        };
        // SAFETY: as the caller of `new` promises.
        let copied = unsafe { Copied::new(choice, writes) };
        let mut typed = Self::plain(copied.start, count, datatype);
        typed._kept = copied.kept;
        Ok(typed)
    }
}

impl<C> Drop for Typed<C> {
    #[inline]
    fn drop(&mut self) {
        if self.made {
            free(Datatype::from_int(self.datatype));
        }
    }
}

/// A buffer and a datatype, of calls that place blocks by the datatype's extent.
#[derive(Debug)]
pub struct Strided {
    /// The buffer.
    pub start: *const c_void,
    /// The datatype.
    pub datatype: c_int,
    made: bool,
}

impl Strided {
    /// Blocks of `datatype` in the array `choice`, which MPI may write; a copy if its steps differ.
    ///
    /// # Errors
    /// MPI's error code, after the error handler.
    ///
    /// # Safety
    /// Arguments of a Fortran procedure; the array stays valid as long as the operation.
    #[inline]
    pub unsafe fn new(choice: Choice, datatype: *const c_int, held: &mut Held, writes: bool) -> Result<Self, c_int> {
        // SAFETY: as the caller promises.
        unsafe {
            match contiguous(choice) {
                Some(start) => Ok(Self::plain(start, *datatype)),
                None => Self::of(choice, *datatype, held, writes),
            }
        }
    }

    fn plain(start: *const c_void, datatype: c_int) -> Self {
        Self { start, datatype, made: false }
    }

    #[cold]
    unsafe fn of(choice: Choice, number: c_int, held: &mut Held, writes: bool) -> Result<Self, c_int> {
        // SAFETY: as the caller of `new` promises.
        let section = unsafe { Section::of(choice) };
        let datatype = Datatype::from_int(number);
        let nothing = Datatype::from_neutral((), neutral::handle::DATATYPE_NULL);
        let start = section.base.cast_const().cast();
        // The array does not count, as at a process that is not the root.
        if datatype == nothing {
            return Ok(Self::plain(start, number));
        }
        let extent = extent_of(datatype)?;
        // Data beyond an element lies in other elements of the array, not where the datatype has it.
        let is_an_element = extent == (0, section.element as i64) && is_within(datatype, extent)?;
        let mut made = nothing;
        let mut long = section.axes.iter().filter(|axis| axis.extent > 1);
        // SAFETY: a handle of the program's, and places for what MPI stores; as the caller of `new` promises.
        unsafe {
            let step = match (long.next(), long.next()) {
                (Some(axis), None) if is_an_element => axis.step,
                _ => return Ok(Self::plain(held.array(choice, writes), number)),
            };
            checked(PMPI_Type_create_resized_c(datatype, 0, step as i64, &mut made))?;
            checked(PMPI_Type_commit(&mut made))?;
        }
        Ok(Self { start, datatype: made.to_int(), made: true })
    }
}

impl Drop for Strided {
    #[inline]
    fn drop(&mut self) {
        if self.made {
            free(Datatype::from_int(self.datatype));
        }
    }
}

/// Tells the error handler of `MPI_COMM_SELF` that a section cannot be used here.
#[cold]
fn refused() -> c_int {
    let code = A::error_out(neutral::ERR_UNSUPPORTED_OPERATION);
    // SAFETY: a communicator that is always there.
    unsafe { PMPI_Comm_call_errhandler(Comm::from_neutral((), neutral::handle::COMM_SELF), code) };
    code
}

#[cold]
fn free(mut datatype: Datatype) {
    // SAFETY: a datatype of ours.
    unsafe { PMPI_Type_free(&mut datatype) };
}

/// Datatypes that are freed when the one that needs them is made.
struct Parts(Vec<Datatype>);

impl Parts {
    /// The datatype that `make` stores.
    fn add(&mut self, make: impl FnOnce(*mut Datatype) -> c_int) -> Result<Datatype, c_int> {
        let mut made = Datatype::from_neutral((), neutral::handle::DATATYPE_NULL);
        checked(make(&mut made))?;
        self.0.push(made);
        Ok(made)
    }

    fn vector(&mut self, count: i64, step: isize, of: Datatype) -> Result<Datatype, c_int> {
        // SAFETY: a datatype, and a place for one.
        self.add(|made| unsafe { PMPI_Type_create_hvector_c(count, 1, step as i64, of, made) })
    }

    fn contiguous(&mut self, count: i64, of: Datatype) -> Result<Datatype, c_int> {
        // SAFETY: a datatype, and a place for one.
        self.add(|made| unsafe { PMPI_Type_contiguous_c(count, of, made) })
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.0.drain(..).for_each(free);
    }
}

/// What was made, or the end of the procedure with an error code.
macro_rules! given {
    ($made:expr, $ierror:ident) => {
        match $made {
            Ok(made) => made,
            Err(code) => return $ierror.set(code),
        }
    };
}
pub(crate) use given;

/// What an element of the array is in MPI.
struct Elements {
    /// The whole element.
    whole: Datatype,
    /// How many elements are used.
    count: i64,
    /// What an element has several of.
    items: Datatype,
    /// How many items the last element, which is not whole, has.
    rest: i64,
}

/// What a datatype is made of.
enum Made {
    /// It is predefined.
    Named,
    /// Of so many of another one, without gaps.
    Contiguous(i64, Datatype),
    /// Otherwise.
    Otherwise,
}

/// How the program has made a datatype.
fn origin(parts: &mut Parts, datatype: Datatype) -> Result<Made, c_int> {
    let (mut combiner, mut numbers) = (0, [0; 4]);
    let [integers, addresses, counts, datatypes] = &mut numbers;
    // SAFETY: a datatype, and places for what MPI stores.
    checked(unsafe { PMPI_Type_get_envelope_c(datatype, integers, addresses, counts, datatypes, &mut combiner) })?;
    // Parametrised datatypes are predefined too (MPI 19.1.9).
    let predefined = [
        neutral::COMBINER_NAMED,
        neutral::COMBINER_F90_REAL,
        neutral::COMBINER_F90_COMPLEX,
        neutral::COMBINER_F90_INTEGER,
    ];
    if predefined.iter().any(|&it| combiner == A::combiner_out(it)) {
        return Ok(Made::Named);
    }
    if combiner != A::combiner_out(neutral::COMBINER_CONTIGUOUS) {
        return Ok(Made::Otherwise);
    }
    // One count, an INTEGER or a large one, and one datatype.
    let (mut integer, mut address, mut count) = (0, 0, 0);
    let mut of = datatype;
    // SAFETY: places for as much as the envelope says.
    checked(unsafe {
        PMPI_Type_get_contents_c(
            datatype,
            *integers,
            *addresses,
            *counts,
            *datatypes,
            &mut integer,
            &mut address,
            &mut count,
            &mut of,
        )
    })?;
    if *counts == 0 {
        count = i64::from(integer);
    }
    // The handle of a derived datatype is a new one, which is to be freed.
    match origin(parts, of)? {
        Made::Named => {}
        _ => parts.0.push(of),
    }
    Ok(Made::Contiguous(count, of))
}

/// Whether a datatype with this lower bound and extent begins at 0, and all of its data lies between its bounds.
fn is_within(datatype: Datatype, (low, extent): (i64, i64)) -> Result<bool, c_int> {
    let (true_low, true_extent) = true_extent_of(datatype)?;
    Ok(low == 0 && true_low >= 0 && true_low + true_extent <= extent)
}

/// Splits `count` items of `datatype` by elements of `size` bytes; `None` if they do not fit.
fn elements(parts: &mut Parts, size: i64, count: i64, datatype: Datatype) -> Result<Option<Elements>, c_int> {
    let (low, extent) = extent_of(datatype)?;
    if is_within(datatype, (low, extent))? && extent > 0 && size % extent == 0 {
        let items = size / extent;
        let whole = match items {
            1 => datatype,
            _ => parts.contiguous(items, datatype)?,
        };
        return Ok(Some(Elements { whole, count: count / items, items: datatype, rest: count % items }));
    }
    match origin(parts, datatype)? {
        Made::Contiguous(several, of) => elements(parts, size, count * several, of),
        // A predefined datatype of several elements: a complex number of two reals.
        Made::Named if low == 0 && size > 0 && extent % size == 0 => {
            let byte = Datatype::from_neutral((), neutral::handle::BYTE);
            Ok(Some(Elements {
                whole: parts.contiguous(size, byte)?,
                count: count * (extent / size),
                items: byte,
                rest: 0,
            }))
        }
        _ => Ok(None),
    }
}

/// A committed datatype of the first `count` items of `datatype` in a section; `None` if there is no such.
fn of_elements(section: &Section, count: i64, datatype: Datatype) -> Result<Option<Datatype>, c_int> {
    let mut parts = Parts(Vec::new());
    let Some(elements) = elements(&mut parts, section.element as i64, count, datatype)? else {
        return Ok(None);
    };
    // What one step along each axis repeats.
    let mut repeated = Vec::with_capacity(section.axes.len());
    let mut slab = elements.whole;
    for axis in &section.axes {
        repeated.push(slab);
        if repeated.len() < section.axes.len() {
            slab = parts.vector(axis.extent as i64, axis.step, slab)?;
        }
    }
    let mut pieces: Vec<(i64, Datatype)> = Vec::new();
    let (mut place, mut left) = (0, elements.count);
    for (level, axis) in section.axes.iter().enumerate().rev() {
        let below: i64 = section.axes[..level].iter().map(extent).product();
        let whole = left / below;
        left %= below;
        if whole > 0 {
            pieces.push((place, parts.vector(whole, axis.step, repeated[level])?));
            place += whole * axis.step as i64;
        }
    }
    if elements.rest > 0 {
        pieces.push((place, parts.contiguous(elements.rest, elements.items)?));
    }
    let places: Vec<i64> = pieces.iter().map(|piece| piece.0).collect();
    let types: Vec<Datatype> = pieces.iter().map(|piece| piece.1).collect();
    let ones: Vec<i64> = pieces.iter().map(|_| 1).collect();
    let mut made = Datatype::from_neutral((), neutral::handle::DATATYPE_NULL);
    // SAFETY: arrays of as many entries as their count says.
    unsafe {
        checked(PMPI_Type_create_struct_c(
            pieces.len() as i64,
            ones.as_ptr(),
            places.as_ptr(),
            types.as_ptr(),
            &mut made,
        ))?;
        checked(PMPI_Type_commit(&mut made))?;
    }
    Ok(Some(made))
}

fn extent(axis: &Axis) -> i64 {
    axis.extent as i64
}
