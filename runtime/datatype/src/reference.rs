//! Who keeps a type alive.
//!
//! Every [`Type`] is either a static (the predefined ones) or lies in an [`Arc`] that
//! [`TypeRef::new_cyclic`] made: nothing else in this crate makes one. Each knows which, so a plain `&Type`
//! suffices to get a reference that outlives it.

use super::Type;
use alloc::sync::{Arc, Weak};
use core::ops::Deref;

/// A shared reference to a [`Type`]: predefined ones live for ever, others are counted.
#[derive(Clone, Debug)]
pub struct TypeRef(Reference);

#[derive(Clone, Debug)]
enum Reference {
    Static(&'static Type),
    Counted(Arc<Type>),
}

/// What keeps a type alive, as the type itself knows it.
#[derive(Debug)]
pub(super) enum Own {
    /// Nothing: it is this static.
    Predefined(&'static Type),
    /// The references to it.
    Counted(Weak<Type>),
}

impl TypeRef {
    #[inline]
    pub(super) const fn of_static(datatype: &'static Type) -> Self {
        Self(Reference::Static(datatype))
    }

    /// A reference to a new type, which learns how it is kept alive.
    pub(super) fn new_cyclic(make: impl FnOnce(Own) -> Type) -> Self {
        Self(Reference::Counted(Arc::new_cyclic(|own| make(Own::Counted(own.clone())))))
    }

    /// A reference to a type that is alive.
    #[inline]
    pub(super) fn of(own: &Own) -> Self {
        Self(match own {
            Own::Predefined(datatype) => Reference::Static(datatype),
            Own::Counted(own) => match own.upgrade() {
                Some(datatype) => Reference::Counted(datatype),
                None => unreachable!("whoever looks at a type keeps it alive"),
            },
        })
    }

    /// Whether it refers to a predefined type, which lives for ever.
    #[must_use]
    #[inline]
    pub fn is_static(&self) -> bool {
        matches!(self.0, Reference::Static(_))
    }

    /// Whether both refer to the same type object.
    #[must_use]
    #[inline]
    pub fn same(&self, other: &Self) -> bool {
        core::ptr::eq::<Type>(&**self, &**other)
    }
}

impl Deref for TypeRef {
    type Target = Type;

    #[inline]
    fn deref(&self) -> &Type {
        match &self.0 {
            Reference::Static(datatype) => datatype,
            Reference::Counted(datatype) => datatype,
        }
    }
}
