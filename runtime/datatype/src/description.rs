//! New types.

use super::bounds::Bounds;
use super::program::Placed;
use super::{Contents, Signature, Type, TypeRef};

/// What a constructor says about the type it makes.
pub(super) struct Description {
    pub(super) size: i64,
    pub(super) bounds: Bounds,
    pub(super) alignment: i64,
    pub(super) placed: Placed,
    pub(super) signature: Signature,
    pub(super) contents: Contents,
}

impl TypeRef {
    /// A new type without a handle and a name.
    pub(super) fn new(description: Description) -> Self {
        let Description { size, bounds, alignment, placed, signature, contents } = description;
        Self::new_cyclic(|own| Type { size, bounds, alignment, placed, signature, contents, handle: 0, name: "", own })
    }
}
