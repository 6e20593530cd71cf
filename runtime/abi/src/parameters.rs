//! What a C program passes with a call, as types.
//!
//! The functions that C sees are generated (in the binding). They turn each raw argument into one of these
//! types, by the direction and length that the standard gives the parameter. Their constructors are `unsafe`:
//! they take over MPI's promise about the argument (MPI-4.1, 2.3), and only the generated functions call them.
//! What comes after is safe: NULL and the ABI's sentinels are looked for before a pointer is followed, and a
//! result is written where the program said that it has a place for it.
//!
//! Two things are not seen from the pointer. The number of entries of an array stands in the standard, beside
//! the parameter: [`Array::entries`] and its like take it. How long a buffer lives depends on the operation:
//! [`Buffer`] and [`Base`] follow no pointer themselves.
//!
//! **Owner only.** None of these types outlives its call, but for buffers.

mod strings;

pub use strings::{StringLists, Strings};

use crate::{Abi, Constants, Count, Status, StatusLayout, neutral};
use core::cell::Cell;
use core::ffi::{CStr, c_char, c_void};
use core::marker::PhantomData;
use core::mem::MaybeUninit;

/// A place whose value MPI reads; it may be NULL.
#[derive(Debug)]
pub struct In<'c, T>(*const T, PhantomData<&'c T>);

impl<T: Copy> In<'_, T> {
    /// An argument of a call.
    ///
    /// # Safety
    /// `place` is NULL or valid for reads during the call.
    #[inline]
    pub unsafe fn new(place: *const T) -> Self {
        Self(place, PhantomData)
    }

    /// The value; `None` for NULL.
    #[inline]
    #[must_use]
    pub fn get(&self) -> Option<T> {
        // SAFETY: the promise of `new`.
        (!self.0.is_null()).then(|| unsafe { self.0.read() })
    }
}

/// A place for one result; it may be NULL.
#[derive(Debug)]
pub struct Out<'c, T>(*mut T, PhantomData<&'c mut T>);

impl<'c, T> Out<'c, T> {
    /// An argument of a call.
    ///
    /// # Safety
    /// `place` is NULL or valid for writes during the call.
    #[inline]
    pub unsafe fn new(place: *mut T) -> Self {
        Self(place, PhantomData)
    }

    /// Whether it is NULL.
    #[inline]
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Gives the program its result, if it has a place for it.
    #[inline]
    pub fn write(&self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not NULL, so valid for writes by the promise of `new`.
            unsafe { self.0.write(value) };
        }
    }

    /// The place; `None` for NULL.
    #[inline]
    #[must_use]
    pub fn place(self) -> Option<ResultPlace<'c, T>> {
        (!self.0.is_null()).then_some(ResultPlace(self.0, PhantomData))
    }
}

/// A place for one result, which is there.
#[derive(Debug)]
pub struct ResultPlace<'c, T>(*mut T, PhantomData<&'c mut T>);

impl<T> ResultPlace<'_, T> {
    /// Gives the program its result.
    #[inline]
    pub fn write(self, value: T) {
        // SAFETY: not NULL, so valid for writes by the promise of `Out::new`.
        unsafe { self.0.write(value) };
    }

    /// Gives the program what it gets if the call fails from here on.
    #[inline]
    pub fn preset(&self, value: T) {
        // SAFETY: as in `write`.
        unsafe { self.0.write(value) };
    }

    /// Where it is, for a request that gives the result when it completes: the program keeps the place until then.
    #[inline]
    #[must_use]
    pub fn address(&self) -> *mut T {
        self.0
    }

    /// For a part of the call that may leave the result to another.
    #[inline]
    pub fn reborrow(&mut self) -> ResultPlace<'_, T> {
        ResultPlace(self.0, PhantomData)
    }
}

/// A value that MPI reads and changes; it may be NULL.
#[derive(Debug)]
pub struct InOut<'c, T>(*mut T, PhantomData<&'c Cell<T>>);

impl<'c, T> InOut<'c, T> {
    /// An argument of a call.
    ///
    /// # Safety
    /// `place` is NULL or valid for reads and writes during the call.
    #[inline]
    pub unsafe fn new(place: *mut T) -> Self {
        Self(place, PhantomData)
    }

    /// The value; `None` for NULL.
    #[inline]
    #[must_use]
    pub fn value(self) -> Option<&'c Cell<T>> {
        // SAFETY: the promise of `new`.
        unsafe { self.0.cast::<Cell<T>>().as_ref() }
    }
}

/// A program passes NULL for an array that has entries, which is `MPI_ERR_ARG`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NullArray;

#[inline]
fn no_null(address: usize, length: usize) -> Result<(), NullArray> {
    match address == 0 && length > 0 {
        true => Err(NullArray),
        false => Ok(()),
    }
}

/// An array that MPI reads; it may be NULL or a sentinel.
#[derive(Debug)]
pub struct Array<'c, T>(*const T, PhantomData<&'c [T]>);

impl<T> Clone for Array<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Array<'_, T> {}

impl<'c, T> Array<'c, T> {
    /// An argument of a call.
    ///
    /// # Safety
    /// `entries` is NULL, a sentinel of the ABI, or an array of the length that the standard says, for reads
    /// during the call.
    #[inline]
    pub unsafe fn new(entries: *const T) -> Self {
        Self(entries, PhantomData)
    }

    /// Where it is, for comparison with sentinels.
    #[inline]
    #[must_use]
    pub fn addr(&self) -> usize {
        self.0.addr()
    }

    /// The entries, as many as the standard says that the array has; the array is no sentinel.
    ///
    /// # Errors
    /// For NULL, unless there are no entries.
    #[inline]
    pub fn entries(self, length: usize) -> Result<&'c [T], NullArray> {
        no_null(self.addr(), length)?;
        if length == 0 {
            return Ok(&[]);
        }
        // SAFETY: not NULL, and the promise of `new`.
        Ok(unsafe { core::slice::from_raw_parts(self.0, length) })
    }
}

/// An array that MPI writes; it may be NULL or a sentinel.
#[derive(Debug)]
pub struct OutArray<'c, T>(*mut T, PhantomData<&'c mut [T]>);

impl<'c, T> OutArray<'c, T> {
    /// An argument of a call.
    ///
    /// # Safety
    /// `entries` is NULL, a sentinel of the ABI, or an array of the length that the standard says, for writes
    /// during the call.
    #[inline]
    pub unsafe fn new(entries: *mut T) -> Self {
        Self(entries, PhantomData)
    }

    /// Where it is, for comparison with sentinels.
    #[inline]
    #[must_use]
    pub fn addr(&self) -> usize {
        self.0.addr()
    }

    /// Places for the entries, as many as the standard says that the array has; the array is no sentinel.
    ///
    /// # Errors
    /// For NULL, unless there are no entries.
    #[inline]
    pub fn places(self, length: usize) -> Result<Places<'c, T>, NullArray> {
        no_null(self.addr(), length)?;
        if length == 0 {
            return Ok(Places(&[]));
        }
        // SAFETY: not NULL, and the promise of `new`; a cell of memory that nobody has to have written.
        Ok(Places(unsafe { core::slice::from_raw_parts(self.0.cast(), length) }))
    }
}

/// Places for the entries of an array.
pub struct Places<'c, T>(&'c [Cell<MaybeUninit<T>>]);

impl<T> Places<'_, T> {
    /// Gives the program the entry at `index`.
    ///
    /// # Panics
    /// There is no such entry.
    #[inline]
    pub fn write(&self, index: usize, value: T) {
        self.0[index].set(MaybeUninit::new(value));
    }

    /// Gives the program the first entries.
    ///
    /// # Panics
    /// There are more values than entries.
    pub fn write_all(&self, values: impl IntoIterator<Item = T>) {
        for (index, value) in values.into_iter().enumerate() {
            self.write(index, value);
        }
    }
}

/// An array that MPI reads and changes; it may be NULL.
#[derive(Debug)]
pub struct InOutArray<'c, T>(*mut T, PhantomData<&'c [Cell<T>]>);

impl<'c, T> InOutArray<'c, T> {
    /// An argument of a call.
    ///
    /// # Safety
    /// `entries` is NULL or an array of the length that the standard says, for reads and writes during the call.
    #[inline]
    pub unsafe fn new(entries: *mut T) -> Self {
        Self(entries, PhantomData)
    }

    /// The entries, as many as the standard says that the array has.
    ///
    /// # Errors
    /// For NULL, unless there are no entries.
    #[inline]
    pub fn entries(self, length: usize) -> Result<&'c [Cell<T>], NullArray> {
        no_null(self.0.addr(), length)?;
        if length == 0 {
            return Ok(&[]);
        }
        // SAFETY: not NULL, and the promise of `new`.
        Ok(unsafe { core::slice::from_raw_parts(self.0.cast(), length) })
    }
}

/// A place for a status, or `MPI_STATUS_IGNORE`.
pub struct StatusOut<'c, A: Abi>(*mut A::Status, PhantomData<&'c mut A::Status>);

impl<A: Abi> Clone for StatusOut<'_, A> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Abi> Copy for StatusOut<'_, A> {}

impl<A: Abi> StatusOut<'_, A> {
    /// An argument of a call.
    ///
    /// # Safety
    /// `status` is `MPI_STATUS_IGNORE` or valid for reads and writes during the call.
    #[inline]
    pub unsafe fn new(status: *mut A::Status) -> Self {
        Self(status, PhantomData)
    }

    /// Whether the program wants no status.
    #[inline]
    #[must_use]
    pub fn is_ignored(self) -> bool {
        self.0.addr() == <A as Constants>::STATUS_IGNORE
    }

    /// Writes a status and leaves `MPI_ERROR` alone, as single completions must (MPI-4.1, 3.2.5).
    #[inline]
    pub fn write(self, status: &Status) {
        if !self.is_ignored() {
            // SAFETY: not the sentinel, so valid by the promise of `new`.
            unsafe { (*self.0).write(status) };
        }
    }

    /// Writes the empty status (MPI-4.1, 3.7.3), which has an error code, unlike others.
    pub fn write_empty(self) {
        if !self.is_ignored() {
            // SAFETY: as in `write`.
            unsafe {
                (*self.0).write(&Status::EMPTY);
                (*self.0).write_error(neutral::SUCCESS);
            }
        }
    }
}

/// An array of statuses, or `MPI_STATUSES_IGNORE`. The standard gives it an entry for each request of the call.
pub struct StatusArray<'c, A: Abi>(*mut A::Status, PhantomData<&'c mut [A::Status]>);

impl<A: Abi> StatusArray<'_, A> {
    /// An argument of a call.
    ///
    /// # Safety
    /// `statuses` is `MPI_STATUSES_IGNORE` or an array of the length that the standard says, for reads and writes
    /// during the call.
    #[inline]
    pub unsafe fn new(statuses: *mut A::Status) -> Self {
        Self(statuses, PhantomData)
    }

    /// Changes the status of an entry that the call has, unless the program wants no statuses.
    #[inline]
    fn change(&self, index: usize, change: impl FnOnce(&mut A::Status)) {
        if self.0.addr() != <A as Constants>::STATUSES_IGNORE {
            // SAFETY: not the sentinel, and the promise of `new`; the reference ends here.
            change(unsafe { &mut *self.0.add(index) });
        }
    }

    /// Writes a status but for its error code.
    #[inline]
    pub fn write(&self, index: usize, status: &Status) {
        self.change(index, |entry| entry.write(status));
    }

    /// Writes the empty status.
    pub fn write_empty(&self, index: usize) {
        self.change(index, |entry| {
            entry.write(&Status::EMPTY);
            entry.write_error(neutral::SUCCESS);
        });
    }

    /// Writes an error code.
    pub fn write_error(&self, index: usize, error: i32) {
        self.change(index, |entry| entry.write_error(error));
    }
}

/// A string of the program's; it may be NULL.
#[derive(Clone, Copy, Debug)]
pub struct Text<'c>(*const c_char, PhantomData<&'c CStr>);

impl<'c> Text<'c> {
    /// An argument of a call.
    ///
    /// # Safety
    /// `text` is NULL or a string with a final NUL, for reads during the call.
    #[inline]
    pub unsafe fn new(text: *const c_char) -> Self {
        Self(text, PhantomData)
    }

    /// The string; `None` for NULL.
    #[inline]
    #[must_use]
    pub fn get(self) -> Option<&'c CStr> {
        // SAFETY: not NULL, and the promise of `new`.
        (!self.0.is_null()).then(|| unsafe { CStr::from_ptr(self.0) })
    }
}

/// Room for a string; it may be NULL.
#[derive(Debug)]
pub struct TextOut<'c>(*mut c_char, PhantomData<&'c mut [c_char]>);

impl TextOut<'_> {
    /// An argument of a call.
    ///
    /// # Safety
    /// `room` is NULL, or there are as many bytes as the standard says, for writes during the call.
    #[inline]
    pub unsafe fn new(room: *mut c_char) -> Self {
        Self(room, PhantomData)
    }

    /// Whether the program passed NULL.
    #[inline]
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Writes as much of `text` as fits into the `room` bytes that the standard says that there are, and a NUL;
    /// returns how many bytes that is without the NUL. For NULL and for no room it writes nothing.
    pub fn write(self, text: &[u8], room: usize) -> usize {
        if self.0.is_null() || room == 0 {
            return 0;
        }
        let end = text.len().min(room - 1);
        // SAFETY: not NULL; `end` bytes and the NUL fit, by the promise of `new`.
        unsafe {
            let target = self.0.cast::<u8>();
            target.copy_from_nonoverlapping(text.as_ptr(), end);
            target.add(end).write(0);
        }
        end
    }
}

/// Where the program's data begins, or a sentinel of the ABI. MPI's promise is that there is as much data as the
/// other arguments say, and that the operation may use it until it is complete.
#[derive(Clone, Copy, Debug)]
pub struct Base(*mut c_void);

impl Base {
    /// An argument of a call.
    ///
    /// # Safety
    /// MPI's promise about the buffer of the call.
    #[inline]
    pub unsafe fn new(base: *const c_void) -> Self {
        Self(base.cast_mut())
    }

    /// Where it is.
    #[inline]
    #[must_use]
    pub fn addr(self) -> usize {
        self.0.addr()
    }

    /// The same buffer from another place on, as a displacement says.
    #[inline]
    #[must_use]
    pub fn offset(self, bytes: isize) -> Self {
        Self(self.0.wrapping_byte_offset(bytes))
    }

    /// Writes the bytes that the standard says that there is room for; nothing for NULL.
    pub fn write(self, bytes: &[u8]) {
        if !self.0.is_null() {
            // SAFETY: not NULL, and MPI's promise.
            unsafe { self.0.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
    }

    /// Reads the bytes that the standard says that are there; nothing from NULL.
    pub fn read(self, bytes: &mut [u8]) {
        if !self.0.is_null() {
            // SAFETY: not NULL, and MPI's promise.
            unsafe { self.0.cast::<u8>().copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
        }
    }

    /// Whether the program passed NULL.
    #[inline]
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The address, to be followed by the operation only.
    #[inline]
    #[must_use]
    pub fn as_ptr(self) -> *mut c_void {
        self.0
    }

    /// Whether it is `MPI_IN_PLACE`.
    #[inline]
    #[must_use]
    pub fn is_in_place<A: Abi>(self) -> bool {
        self.addr() == <A as Constants>::IN_PLACE
    }
}

/// Buffer, count and datatype of a call, as the program passed them.
pub struct Buffer<A: Abi, C: Count> {
    /// Where the data begins.
    pub base: Base,
    /// Number of elements; it may be negative.
    pub count: C,
    /// A handle, which may be wrong.
    pub datatype: A::Datatype,
}

impl<A: Abi, C: Count> Clone for Buffer<A, C> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Abi, C: Count> Copy for Buffer<A, C> {}

impl<A: Abi, C: Count> Buffer<A, C> {
    /// Three arguments of a call.
    ///
    /// # Safety
    /// MPI's promise about the buffer of the call.
    #[inline]
    pub unsafe fn new(base: *const c_void, count: C, datatype: A::Datatype) -> Self {
        // SAFETY: MPI's promise about the buffer, as this function asks for it.
        let base = unsafe { Base::new(base) };
        Self { base, count, datatype }
    }

    /// Whether the buffer is `MPI_IN_PLACE`.
    #[inline]
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.base.is_in_place::<A>()
    }

    /// The same buffer with another number of elements, as the operation defines it.
    #[inline]
    #[must_use]
    pub fn with_count(self, count: i64) -> Buffer<A, i64> {
        let Self { base, datatype, .. } = self;
        Buffer { base, count, datatype }
    }

    /// Another buffer of the same call with as many elements of the same type.
    #[inline]
    #[must_use]
    pub fn at(self, base: Base) -> Self {
        Self { base, ..self }
    }
}

impl<A: Abi, C: Count> From<Buffer<A, C>> for Base {
    #[inline]
    fn from(buffer: Buffer<A, C>) -> Self {
        buffer.base
    }
}
