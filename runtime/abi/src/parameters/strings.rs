//! Lists of strings.

use super::{NullArray, Text, no_null};
use core::ffi::{CStr, c_char};
use core::marker::PhantomData;

/// A list of strings; it may be NULL.
#[derive(Clone, Copy, Debug)]
pub struct Strings<'c>(*const *const c_char, PhantomData<&'c [Text<'c>]>);

impl<'c> Strings<'c> {
    /// An argument of a call.
    ///
    /// # Safety
    /// `list` is NULL, or a list of strings with a final NUL each, of the length that the standard says or with a final
    /// NULL, for reads during the call.
    #[inline]
    pub unsafe fn new(list: *mut *mut c_char) -> Self {
        Self(list.cast_const().cast(), PhantomData)
    }

    /// Where it is, for somebody who reads it as C does.
    #[must_use]
    pub fn as_ptr(self) -> *const *const c_char {
        self.0
    }

    /// The strings, of a list with a final NULL.
    pub fn until_null(self) -> impl Iterator<Item = &'c CStr> {
        let count = if self.0.is_null() { 0 } else { usize::MAX };
        // SAFETY: the promise of `new`; `map_while` ends at the NULL.
        (0..count).map_while(move |index| unsafe { Text::new(*self.0.add(index)) }.get())
    }

    /// The first `length` strings, of a list that has so many.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` for NULL, unless there are no strings.
    pub fn entries(self, length: usize) -> Result<impl Iterator<Item = Text<'c>>, NullArray> {
        no_null(self.0.addr(), length)?;
        // SAFETY: not NULL, and the promise of `new`.
        Ok((0..length).map(move |index| unsafe { Text::new(*self.0.add(index)) }))
    }
}

/// A list of lists of strings, of which each has a final NULL; it may be NULL.
#[derive(Clone, Copy, Debug)]
pub struct StringLists<'c>(*mut *mut *mut c_char, PhantomData<&'c [Strings<'c>]>);

impl<'c> StringLists<'c> {
    /// An argument of a call.
    ///
    /// # Safety
    /// `lists` is NULL, or has as many lists as the standard says, for reads during the call.
    #[inline]
    pub unsafe fn new(lists: *mut *mut *mut c_char) -> Self {
        Self(lists, PhantomData)
    }

    /// The list at `index`, of as many as the standard says that there are; that of no strings if there are no lists.
    #[must_use]
    pub fn list(self, index: usize) -> Strings<'c> {
        match self.0.is_null() {
            true => Strings(core::ptr::null(), PhantomData),
            // SAFETY: not NULL, and the promise of `new`.
            false => unsafe { Strings::new(*self.0.add(index)) },
        }
    }
}
