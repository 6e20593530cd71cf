//! A datatype as the program sees it: the engine's type, and what only MPI adds.

use crate::attribute::Attributes;
use alloc::string::String;
use cohort_engine::datatype::TypeRef;
use core::sync::atomic::{AtomicBool, Ordering};
use spin::Mutex;

/// One datatype handle.
pub struct Datatype {
    /// The engine's type.
    pub layout: TypeRef,
    /// Cached attributes.
    pub attributes: Attributes,
    name: Mutex<String>,
    committed: AtomicBool,
}

impl Datatype {
    /// A datatype that is not committed yet.
    #[must_use]
    pub fn new(layout: TypeRef) -> Self {
        Self {
            layout,
            attributes: Attributes::new(),
            name: Mutex::new(String::new()),
            committed: AtomicBool::new(false),
        }
    }

    /// A predefined datatype.
    #[must_use]
    pub fn predefined(layout: TypeRef) -> Self {
        let name = layout.name();
        let datatype = Self::new(layout);
        datatype.set_name(name);
        datatype.commit();
        datatype
    }

    /// `MPI_Type_commit`.
    pub fn commit(&self) {
        self.committed.store(true, Ordering::Relaxed);
    }

    /// Whether it may be used in communication.
    #[inline]
    #[must_use]
    pub fn is_committed(&self) -> bool {
        self.committed.load(Ordering::Relaxed)
    }

    /// `MPI_Type_set_name`.
    pub fn set_name(&self, name: &str) {
        *self.name.lock() = name.into();
    }

    /// `MPI_Type_get_name`.
    #[must_use]
    pub fn name(&self) -> String {
        self.name.lock().clone()
    }
}
