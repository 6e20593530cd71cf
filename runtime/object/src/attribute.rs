//! Keyvals and cached attributes (MPI 7.7).

use crate::Outcome;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_abi::neutral;
use core::sync::atomic::{AtomicBool, Ordering};
use spin::Mutex;

/// What kind of object a keyval is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Communicators.
    Comm,
    /// Datatypes.
    Datatype,
    /// Windows.
    Win,
}

/// The application's callbacks of one keyval. Called on the owner's task, without any lock.
pub trait AttributeCallbacks: Send + Sync {
    /// The copy callback for the object with neutral handle `object`: the new object's value, or
    /// `None` when the attribute is not to be copied.
    ///
    /// # Errors
    /// The callback's own error code, neutral.
    fn copy(&self, object: u32, keyval: i32, value: usize) -> Outcome<Option<usize>>;

    /// The delete callback.
    ///
    /// # Errors
    /// The callback's own error code, neutral.
    fn delete(&self, object: u32, keyval: i32, value: usize) -> Outcome<()>;
}

/// A keyval that the application made. It lives on while attributes use it (MPI 7.7.2).
pub struct Keyval {
    owner: Owner,
    callbacks: Box<dyn AttributeCallbacks>,
    freed: AtomicBool,
}

impl Keyval {
    /// A keyval for objects of this kind.
    #[must_use]
    pub fn new(owner: Owner, callbacks: Box<dyn AttributeCallbacks>) -> Self {
        Self {
            owner,
            callbacks,
            freed: AtomicBool::new(false),
        }
    }

    /// The kind of object it is for.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Marks it as freed by the application.
    pub fn mark_freed(&self) {
        self.freed.store(true, Ordering::Relaxed);
    }
}

#[derive(Clone)]
struct Attribute {
    number: i32,
    keyval: Arc<Keyval>,
    value: usize,
}

/// The attributes of one object, in the order in which they were set.
#[derive(Default)]
pub struct Attributes(Mutex<Vec<Attribute>>);

impl Attributes {
    /// No attributes.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// The value of an attribute.
    #[must_use]
    pub fn get(&self, number: i32) -> Option<usize> {
        let attributes = self.0.lock();
        attributes
            .iter()
            .find(|attribute| attribute.number == number)
            .map(|found| found.value)
    }

    /// Sets an attribute of `object`; a value that was there is deleted first.
    ///
    /// # Errors
    /// The delete callback's; the old value then stays.
    pub fn set(&self, object: u32, number: i32, keyval: &Arc<Keyval>, value: usize) -> Outcome<()> {
        if let Some(old) = self.get(number) {
            keyval.callbacks.delete(object, number, old)?;
        }
        let mut attributes = self.0.lock();
        match attributes
            .iter_mut()
            .find(|attribute| attribute.number == number)
        {
            Some(attribute) => attribute.value = value,
            None => attributes.push(Attribute {
                number,
                keyval: keyval.clone(),
                value,
            }),
        }
        Ok(())
    }

    /// Deletes an attribute of `object`.
    ///
    /// # Errors
    /// The delete callback's (the attribute then stays); `MPI_ERR_KEYVAL` when there is none.
    pub fn delete(&self, object: u32, number: i32) -> Outcome<()> {
        let found = self
            .0
            .lock()
            .iter()
            .find(|attribute| attribute.number == number)
            .cloned();
        let attribute = found.ok_or(neutral::ERR_KEYVAL)?;
        attribute
            .keyval
            .callbacks
            .delete(object, number, attribute.value)?;
        self.0.lock().retain(|attribute| attribute.number != number);
        Ok(())
    }

    /// Deletes all attributes, the latest first (MPI 11.2.4 asks it of `MPI_COMM_SELF`).
    ///
    /// # Errors
    /// The first delete callback's; the attributes from that one on stay.
    pub fn delete_all(&self, object: u32) -> Outcome<()> {
        loop {
            let Some(attribute) = self.0.lock().last().cloned() else {
                return Ok(());
            };
            attribute
                .keyval
                .callbacks
                .delete(object, attribute.number, attribute.value)?;
            let mut attributes = self.0.lock();
            if let Some(index) = attributes
                .iter()
                .rposition(|other| other.number == attribute.number)
            {
                attributes.remove(index);
            }
        }
    }

    /// The attributes of a duplicate of `object`, by the copy callbacks.
    ///
    /// # Errors
    /// The first copy callback's; what had been copied is dropped.
    pub fn copied(&self, object: u32) -> Outcome<Self> {
        let attributes = self.0.lock().clone();
        let mut copies = Vec::new();
        for mut attribute in attributes {
            let copied =
                attribute
                    .keyval
                    .callbacks
                    .copy(object, attribute.number, attribute.value)?;
            if let Some(value) = copied {
                attribute.value = value;
                copies.push(attribute);
            }
        }
        Ok(Self(Mutex::new(copies)))
    }
}
