//! Values that calls make and drop often, in the heap of their rank.

use crate::EngineError;
use crate::claim::Claim;
use cohort_alloc::Heap;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// An owned value in a rank's heap. Like a `Box`, whose memory would be the node's: all ranks share that behind
/// a lock. Any task may drop it.
pub struct Kept<T: ?Sized> {
    value: NonNull<T>,
    _owns: PhantomData<T>,
}

// SAFETY: it owns the value.
unsafe impl<T: ?Sized + Send> Send for Kept<T> {}

impl<T: ?Sized> Kept<T> {
    /// Keeps `value` in the claimed rank's heap. `view` is how it is seen from then on: `|it| it`, which may make
    /// a trait object of it.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`].
    pub fn new<V>(
        claim: &mut Claim<'_>,
        value: V,
        view: impl FnOnce(NonNull<V>) -> NonNull<T>,
    ) -> Result<Self, EngineError> {
        let room = claim.alloc_aligned(size_of::<V>(), align_of::<V>());
        let room = room.ok_or(EngineError::OutOfMemory)?.cast::<V>();
        // SAFETY: a fresh block of the right size and alignment.
        unsafe { room.write(value) };
        let value = view(room);
        debug_assert_eq!(value.cast(), room);
        Ok(Self {
            value,
            _owns: PhantomData,
        })
    }
}

impl<T: ?Sized> core::ops::Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: it is there as long as `self` is.
        unsafe { self.value.as_ref() }
    }
}

impl<T: ?Sized> Drop for Kept<T> {
    fn drop(&mut self) {
        // SAFETY: nobody else owns it; the block came from a rank's heap.
        unsafe {
            self.value.drop_in_place();
            Heap::free(self.value.cast());
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::Kept;
    use crate::node::Node;
    use alloc::sync::Arc;
    use core::ops::Deref;
    use core::ptr::NonNull;

    #[test]
    fn a_trait_object_is_used_and_dropped() {
        let rank = Node::for_test(1).rank(0);
        let seen = Arc::new(7);
        let as_object = |it: NonNull<Arc<i32>>| it as NonNull<dyn Deref<Target = i32>>;
        let kept = Kept::new(&mut rank.enter(), seen.clone(), as_object);
        let kept = kept.expect("there is memory");
        assert_eq!(**kept, 7);
        drop(kept);
        assert_eq!(Arc::strong_count(&seen), 1);
    }
}
