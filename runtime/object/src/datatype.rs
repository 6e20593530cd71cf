//! A datatype as the program sees it: the engine's type, and what only MPI adds.

use crate::attribute::Attributes;
use crate::name::Name;
use alloc::vec::Vec;
use cohort_engine::datatype::TypeRef;
use core::sync::atomic::{AtomicBool, Ordering};

/// One datatype handle.
pub struct Datatype {
    /// The engine's type.
    pub layout: TypeRef,
    /// Cached attributes.
    pub attributes: Attributes,
    name: Name,
    committed: AtomicBool,
}

impl Datatype {
    /// A datatype that is not committed yet.
    #[must_use]
    pub fn new(layout: TypeRef) -> Self {
        Self { layout, attributes: Attributes::new(), name: Name::default(), committed: AtomicBool::new(false) }
    }

    /// A predefined datatype.
    #[must_use]
    pub fn predefined(layout: TypeRef) -> Self {
        let name = layout.name();
        let datatype = Self::new(layout);
        datatype.set_name(name.as_bytes());
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
    pub fn set_name(&self, name: &[u8]) {
        self.name.set(name);
    }

    /// `MPI_Type_get_name`.
    #[must_use]
    pub fn given_name(&self) -> Vec<u8> {
        self.name.given()
    }
}
