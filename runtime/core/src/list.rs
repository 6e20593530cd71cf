//! Intrusive doubly linked lists of blocks that live in a rank's heap.
//!
//! A type may be in several lists at once, one per `PLACE`. Everything here happens under the
//! claim of the rank that owns the list.

use core::ptr::null_mut;

/// The links of one place.
#[derive(Debug)]
pub struct Links<T> {
    next: *mut T,
    previous: *mut T,
}

impl<T> Links<T> {
    /// Of an element in no list.
    pub const NONE: Self = Self { next: null_mut(), previous: null_mut() };

    /// Of an element in no list, which keeps an address there meanwhile.
    pub const fn keeping(address: *mut T) -> Self {
        Self { next: address, previous: null_mut() }
    }

    /// The element behind this one, or null; or what [`Links::keeping`] was given.
    pub fn next(&self) -> *mut T {
        self.next
    }
}

/// A type with links for `PLACE`.
pub trait Linked<const PLACE: u8>: Sized {
    /// The links of `this`.
    ///
    /// # Safety
    /// `this` is valid.
    unsafe fn links(this: *mut Self) -> *mut Links<Self>;
}

/// A list; all-zero memory is an empty one.
#[derive(Debug)]
pub struct List<T, const PLACE: u8> {
    first: *mut T,
    last: *mut T,
}

impl<T: Linked<PLACE>, const PLACE: u8> List<T, PLACE> {
    /// A list without elements.
    pub const EMPTY: Self = Self { first: null_mut(), last: null_mut() };

    /// The first element, or null.
    #[inline]
    pub fn first(&self) -> *mut T {
        self.first
    }

    /// The element behind `element`, or null.
    ///
    /// # Safety
    /// `element` is in this list.
    #[inline]
    pub unsafe fn next(&self, element: *mut T) -> *mut T {
        // SAFETY: elements of the list are valid.
        unsafe { (*T::links(element)).next }
    }

    /// The element before `element`, or null.
    ///
    /// # Safety
    /// `element` is in this list.
    #[inline]
    pub unsafe fn previous(&self, element: *mut T) -> *mut T {
        // SAFETY: elements of the list are valid.
        unsafe { (*T::links(element)).previous }
    }

    /// Appends `element`.
    ///
    /// # Safety
    /// `element` is valid, in no list of this place, and stays so until it is removed.
    pub unsafe fn push(&mut self, element: *mut T) {
        // SAFETY: the caller's promise for `element`; `last` is an element or null.
        unsafe {
            *T::links(element) = Links { next: null_mut(), previous: self.last };
            if self.last.is_null() {
                self.first = element;
            } else {
                (*T::links(self.last)).next = element;
            }
        }
        self.last = element;
    }

    /// Takes `element` out.
    ///
    /// # Safety
    /// `element` is in this list.
    pub unsafe fn remove(&mut self, element: *mut T) {
        // SAFETY: `element` and its neighbours are elements of this list.
        unsafe {
            let links = T::links(element);
            let (next, previous) = ((*links).next, (*links).previous);
            *links = Links::NONE;
            if previous.is_null() {
                self.first = next;
            } else {
                (*T::links(previous)).next = next;
            }
            if next.is_null() {
                self.last = previous;
            } else {
                (*T::links(next)).previous = previous;
            }
        }
    }

    /// The first element that `wanted` takes, or null.
    #[inline]
    pub fn find(&self, mut wanted: impl FnMut(*mut T) -> bool) -> *mut T {
        let mut element = self.first;
        while !element.is_null() && !wanted(element) {
            // SAFETY: it is in this list.
            element = unsafe { self.next(element) };
        }
        element
    }
}
