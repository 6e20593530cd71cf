//! New types.

use super::bounds::Bounds;
use super::program::Placed;
use super::{Basic, Contents, Signature, Type, TypeRef};

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
        let element = description.element();
        let Description { size, bounds, alignment, placed, signature, contents } = description;
        Self::new_cyclic(|own| Type {
            size,
            bounds,
            alignment,
            placed,
            signature,
            element,
            contents,
            handle: 0,
            name: "",
            own,
        })
    }
}

impl Description {
    /// See [`Type::element`].
    fn element(&self) -> Option<Basic> {
        // A pair counts two.
        let basic = (1..=2).contains(&self.signature.elements()).then(|| self.signature.uniform())??;
        let Bounds { lb, ub, true_lb, .. } = self.bounds;
        let is_single = self.size == basic.size() && lb == 0 && true_lb == 0 && ub == basic.extent();
        is_single.then_some(basic)
    }
}
