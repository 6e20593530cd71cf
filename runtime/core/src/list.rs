//! Intrusive doubly linked lists of records that live in a rank's heap.
//!
//! A type may be in several lists at once, one per `PLACE`. Everything here happens under the
//! claim of the rank that owns the list. Elements are there by the promise of [`RecordRef::new`], so a list can be
//! used in any way; but what is put into a second list of the same place, or taken out of one that it is not in, makes
//! nonsense of both.

use crate::record::RecordRef;
use core::cell::Cell;
use core::ptr::{NonNull, null_mut};

/// The links of one place.
#[derive(Debug)]
pub struct Links<T> {
    next: Cell<*mut T>,
    previous: Cell<*mut T>,
}

impl<T> Links<T> {
    /// Of an element in no list.
    #[must_use]
    pub const fn none() -> Self {
        Self { next: Cell::new(null_mut()), previous: Cell::new(null_mut()) }
    }

    /// In an element that is never in a list from now on: keeps an address there.
    pub(crate) fn keep(&self, address: *mut T) {
        self.next.set(address);
    }

    /// What [`Links::keep`] was given.
    pub(crate) fn kept(&self) -> *mut T {
        self.next.get()
    }
}

/// A type with links for `PLACE`.
pub trait Linked<const PLACE: u8>: Sized {
    /// Its links.
    fn links(&self) -> &Links<Self>;
}

/// A list; all-zero memory is an empty one.
#[derive(Debug)]
pub struct List<T, const PLACE: u8> {
    first: Cell<*mut T>,
    last: Cell<*mut T>,
}

/// The record at an address of a list or of links, or none for null.
#[inline]
fn record<T>(address: *mut T) -> Option<RecordRef<T>> {
    // SAFETY: only addresses of records are put there, each of which leaves the list before it is freed.
    NonNull::new(address).map(|record| unsafe { RecordRef::new(record) })
}

impl<T: Linked<PLACE>, const PLACE: u8> List<T, PLACE> {
    /// A list without elements.
    #[must_use]
    pub const fn empty() -> Self {
        Self { first: Cell::new(null_mut()), last: Cell::new(null_mut()) }
    }

    /// The first element.
    #[inline]
    pub fn first(&self) -> Option<RecordRef<T>> {
        record(self.first.get())
    }

    /// Whether there is no element.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.get().is_null()
    }

    /// The element behind `element`, which is in this list.
    #[inline]
    pub fn next(&self, element: RecordRef<T>) -> Option<RecordRef<T>> {
        record(T::links(&element).next.get())
    }

    /// The element before `element`, which is in this list.
    #[inline]
    pub fn previous(&self, element: RecordRef<T>) -> Option<RecordRef<T>> {
        record(T::links(&element).previous.get())
    }

    /// Appends `element`, which is in no list of this place.
    pub fn push(&self, element: RecordRef<T>) {
        let links = T::links(&element);
        links.next.set(null_mut());
        links.previous.set(self.last.get());
        match record(self.last.get()) {
            None => self.first.set(element.as_ptr()),
            Some(last) => T::links(&last).next.set(element.as_ptr()),
        }
        self.last.set(element.as_ptr());
    }

    /// Takes `element` out, which is in this list.
    pub fn remove(&self, element: RecordRef<T>) {
        let links = T::links(&element);
        let (next, previous) = (links.next.replace(null_mut()), links.previous.replace(null_mut()));
        match record(previous) {
            None => self.first.set(next),
            Some(previous) => T::links(&previous).next.set(next),
        }
        match record(next) {
            None => self.last.set(previous),
            Some(next) => T::links(&next).previous.set(previous),
        }
    }

    /// The first element that `wanted` takes.
    #[inline]
    pub fn find(&self, mut wanted: impl FnMut(RecordRef<T>) -> bool) -> Option<RecordRef<T>> {
        let mut element = self.first();
        while let Some(this) = element
            && !wanted(this)
        {
            element = self.next(this);
        }
        element
    }
}
