//! Keyvals and cached attributes (MPI 7.7).

use crate::failure::{Outcome, has_memory};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_abi::neutral;
use core::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
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

/// An attribute's value, and whether C or Fortran has set it (MPI 19.3.7).
#[derive(Clone, Debug)]
pub enum Value {
    /// A pointer, set in C.
    Pointer(usize),
    /// An integer, set in Fortran. C gets the integer's address, which stays while the attribute does; it may take
    /// it for one of 32 bits or of 64, the machine being little-endian.
    Integer(Arc<AtomicIsize>),
}

impl Value {
    /// An integer of Fortran.
    #[must_use]
    pub fn integer(value: isize) -> Self {
        Self::Integer(Arc::new(AtomicIsize::new(value)))
    }

    /// What C takes it for.
    #[must_use]
    pub fn pointer(&self) -> usize {
        match self {
            Self::Pointer(pointer) => *pointer,
            Self::Integer(cell) => cell.as_ptr().expose_provenance(),
        }
    }

    /// What Fortran takes it for.
    #[must_use]
    pub fn number(&self) -> isize {
        match self {
            Self::Pointer(pointer) => *pointer as isize,
            // Only the rank's own threads use its attributes; MPI orders what they may expect.
            Self::Integer(cell) => cell.load(Ordering::Relaxed),
        }
    }

    /// The same value in an attribute of its own.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        match self {
            Self::Pointer(pointer) => Self::Pointer(*pointer),
            Self::Integer(_) => Self::integer(self.number()),
        }
    }

    /// Takes over `new`; an integer stays where it is, since C may know its address.
    fn replace(&mut self, new: Self) {
        match self {
            Self::Integer(cell) if matches!(new, Self::Integer(_)) => {
                cell.store(new.number(), Ordering::Relaxed);
            }
            _ => *self = new,
        }
    }
}

/// The application's callbacks of one keyval. Called on the owner's task, without any lock.
pub trait AttributeCallbacks: Send + Sync {
    /// The copy callback for the object with neutral handle `object`: the new object's value, or
    /// `None` when the attribute is not to be copied.
    ///
    /// # Errors
    /// The callback's own error code, neutral.
    fn copy(&self, object: u32, keyval: i32, value: &Value) -> Outcome<Option<Value>>;

    /// The delete callback.
    ///
    /// # Errors
    /// The callback's own error code, neutral.
    fn delete(&self, object: u32, keyval: i32, value: &Value) -> Outcome<()>;

    /// Has the functions called through these functions of a Fortran library, whose addresses they are.
    fn set_proxies(&self, copy: usize, delete: usize);
}

/// A keyval that the application made. It lives on, and so does its number, while attributes use it
/// (MPI 7.7.2).
pub struct Keyval {
    owner: Owner,
    callbacks: Box<dyn AttributeCallbacks>,
    is_freed: AtomicBool,
}

impl Keyval {
    /// A keyval for objects of this kind.
    #[must_use]
    pub fn new(owner: Owner, callbacks: Box<dyn AttributeCallbacks>) -> Self {
        Self { owner, callbacks, is_freed: AtomicBool::new(false) }
    }

    /// The kind of object it is for.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Has its functions called through those of a Fortran library.
    pub fn set_proxies(&self, copy: usize, delete: usize) {
        self.callbacks.set_proxies(copy, delete);
    }

    /// Whether the program has freed it.
    pub(crate) fn is_freed(&self) -> bool {
        self.is_freed.load(Ordering::Relaxed)
    }

    /// The program frees it. Whether it had done so before.
    pub(crate) fn free(&self) -> bool {
        self.is_freed.swap(true, Ordering::Relaxed)
    }
}

#[derive(Clone)]
struct Attribute {
    number: i32,
    keyval: Arc<Keyval>,
    value: Value,
}

impl Attribute {
    fn is_of(&self, keyval: &Arc<Keyval>) -> bool {
        Arc::ptr_eq(&self.keyval, keyval)
    }
}

/// The attributes of one object, in the order in which they were set.
///
/// An attribute belongs to its keyval, not to the keyval's number: after the keyval is freed, another
/// one may have the number while the attribute lives on.
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
    pub fn get(&self, keyval: &Arc<Keyval>) -> Option<Value> {
        let attributes = self.0.lock();
        attributes.iter().find(|attribute| attribute.is_of(keyval)).map(|found| found.value.clone())
    }

    /// Sets an attribute of `object`; a value that was there is deleted first.
    ///
    /// # Errors
    /// The delete callback's; the old value then stays. `MPI_ERR_NO_MEM`.
    pub fn set(&self, object: u32, number: i32, keyval: &Arc<Keyval>, value: Value) -> Outcome<()> {
        has_memory()?;
        if let Some(old) = self.get(keyval) {
            keyval.callbacks.delete(object, number, &old)?;
        }
        let mut attributes = self.0.lock();
        match attributes.iter().position(|attribute| attribute.is_of(keyval)) {
            Some(index) => {
                // It is the latest now.
                attributes[index..].rotate_left(1);
                if let Some(attribute) = attributes.last_mut() {
                    attribute.value.replace(value);
                }
            }
            None => attributes.push(Attribute { number, keyval: keyval.clone(), value }),
        }
        Ok(())
    }

    /// Deletes an attribute of `object`.
    ///
    /// # Errors
    /// The delete callback's (the attribute then stays); `MPI_ERR_KEYVAL` when there is none.
    pub fn delete(&self, object: u32, number: i32, keyval: &Arc<Keyval>) -> Outcome<()> {
        let value = self.get(keyval).ok_or(neutral::ERR_KEYVAL)?;
        keyval.callbacks.delete(object, number, &value)?;
        self.0.lock().retain(|attribute| !attribute.is_of(keyval));
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
            attribute.keyval.callbacks.delete(object, attribute.number, &attribute.value)?;
            let mut attributes = self.0.lock();
            if let Some(index) = attributes.iter().rposition(|other| other.is_of(&attribute.keyval)) {
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
            let copied = attribute.keyval.callbacks.copy(object, attribute.number, &attribute.value)?;
            if let Some(value) = copied {
                attribute.value = value;
                copies.push(attribute);
            }
        }
        Ok(Self(Mutex::new(copies)))
    }
}
