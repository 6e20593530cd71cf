//! Values that calls make and drop often, in the heap of their rank.

use crate::EngineError;
use crate::ranks::Claim;
use cohort_alloc::Heap;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// An owned value in a rank's heap. Like a `Box`, whose memory would be the node's: all ranks share that behind
/// a lock. Any task may drop it.
pub struct RankBox<T: ?Sized> {
    value: NonNull<T>,
    _owns: PhantomData<T>,
}

// SAFETY: it owns the value.
unsafe impl<T: ?Sized + Send> Send for RankBox<T> {}

impl<T: ?Sized> RankBox<T> {
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
        Ok(Self { value, _owns: PhantomData })
    }
}

impl<T> RankBox<[T]> {
    /// `length` values, made one after the other.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`], or the first error of `make`; what was made before is dropped.
    pub fn slice(
        claim: &mut Claim<'_>,
        length: usize,
        mut make: impl FnMut(&mut Claim<'_>, usize) -> Result<T, EngineError>,
    ) -> Result<Self, EngineError> {
        let bytes = size_of::<T>().checked_mul(length);
        let room = bytes.and_then(|bytes| claim.alloc_aligned(bytes.max(1), align_of::<T>().max(16)));
        let room = room.ok_or(EngineError::OutOfMemory)?.cast::<T>();
        // A prefix of the room: what is made is dropped, and the block freed, with it.
        let mut made = Self { value: NonNull::slice_from_raw_parts(room, 0), _owns: PhantomData };
        for index in 0..length {
            let value = make(claim, index)?;
            // SAFETY: the room has `length` elements, of which `index` are in use.
            unsafe { room.add(index).write(value) };
            made.value = NonNull::slice_from_raw_parts(room, index + 1);
        }
        Ok(made)
    }
}

impl<T: ?Sized> core::ops::Deref for RankBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: it is there as long as `self` is.
        unsafe { self.value.as_ref() }
    }
}

impl<T: ?Sized> Drop for RankBox<T> {
    fn drop(&mut self) {
        // SAFETY: nobody else owns it; the block came from a rank's heap.
        unsafe {
            self.value.drop_in_place();
            Heap::free(self.value.cast());
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RankBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::RankBox;
    use crate::ranks::Node;
    use core::ops::Deref;
    use core::ptr::NonNull;
    use std::sync::Arc;

    #[test]
    fn a_slice_drops_what_was_made_before_an_error() {
        let rank = Node::for_test(1).rank(0);
        let seen = Arc::new(7);
        let mut claim = rank.enter();
        let full = RankBox::slice(&mut claim, 3, |_, _| Ok(seen.clone())).expect("memory");
        assert_eq!((full.len(), Arc::strong_count(&seen)), (3, 4));
        drop(full);
        let cut = RankBox::slice(&mut claim, 3, |_, index| match index {
            2 => Err(crate::EngineError::OutOfMemory),
            _ => Ok(seen.clone()),
        });
        assert!(cut.is_err() && Arc::strong_count(&seen) == 1);
        let none = RankBox::slice(&mut claim, 0, |_, _| Ok(seen.clone()));
        assert!(none.expect("memory").is_empty());
    }

    #[test]
    fn a_trait_object_is_used_and_dropped() {
        let rank = Node::for_test(1).rank(0);
        let seen = Arc::new(7);
        let as_object = |it: NonNull<Arc<i32>>| it as NonNull<dyn Deref<Target = i32>>;
        let kept = RankBox::new(&mut rank.enter(), seen.clone(), as_object);
        let kept = kept.expect("there is memory");
        assert_eq!((**kept, Arc::strong_count(&seen)), (7, 2));
        drop(kept);
        assert_eq!(Arc::strong_count(&seen), 1);
    }
}
