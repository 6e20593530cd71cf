//! Size classes: multiples of 16 up to 128 bytes, then four per doubling, up to 28 KB.
//!
//! So at most a fifth of a block beyond 128 bytes is lost to rounding. Blocks of a class
//! are aligned to the largest power of two that divides its size, at most a page.

/// Size of a slab and alignment of its header: masking a block's address finds it.
pub const SLAB_SIZE: usize = 64 << 10;

/// The largest size that has a class.
pub const SMALL_MAX: usize = 28 << 10;

/// The largest alignment that a class can give.
pub const ALIGN_MAX: usize = 4096;

/// The number of classes.
pub const CLASSES: usize = 39;

/// Classes that are multiples of 16.
const LINEAR: usize = 8;

/// Sizes of the classes in bytes, growing.
pub static SIZES: [u32; CLASSES] = sizes();

const fn sizes() -> [u32; CLASSES] {
    let mut sizes = [0; CLASSES];
    let mut index = 0;
    while index < CLASSES {
        sizes[index] = if index < LINEAR {
            16 * (index as u32 + 1)
        } else {
            let step = (index - LINEAR) as u32;
            (5 + step % 4) << (5 + step / 4)
        };
        index += 1;
    }
    sizes
}

/// The class that serves `size` bytes at the least alignment (16).
///
/// `size` is at most [`SMALL_MAX`].
#[inline]
#[must_use]
pub fn of_size(size: usize) -> usize {
    if size <= 16 * LINEAR {
        return size.saturating_sub(1) / 16;
    }
    let last = size - 1;
    let doubling = last.ilog2() as usize;
    LINEAR + (doubling - 7) * 4 + ((last >> (doubling - 2)) & 3)
}

/// The smallest class that serves `size` bytes aligned to `align`, a power of two.
/// `None`: no class does.
#[inline]
#[must_use]
pub fn of_layout(size: usize, align: usize) -> Option<usize> {
    if size > SMALL_MAX {
        return None;
    }
    let class = of_size(size);
    if align <= 16 {
        return Some(class);
    }
    (class..CLASSES).find(|&class| block_align(class) >= align)
}

/// Alignment of the blocks of a class.
#[inline]
#[must_use]
pub fn block_align(class: usize) -> usize {
    (1 << SIZES[class].trailing_zeros()).min(ALIGN_MAX)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_largest_class_is_the_limit() {
        assert_eq!(SIZES[CLASSES - 1] as usize, SMALL_MAX);
        assert!(SIZES.is_sorted());
    }

    #[test]
    fn every_size_gets_the_smallest_class_that_holds_it() {
        for size in (0..=SMALL_MAX).step_by(if cfg!(miri) { 61 } else { 1 }) {
            let class = of_size(size);
            assert!(SIZES[class] as usize >= size, "{size}");
            assert!(class == 0 || (SIZES[class - 1] as usize) < size, "{size}");
        }
    }

    #[test]
    fn every_alignment_up_to_a_page_is_served() {
        for align in (0..=12).map(|bit| 1 << bit) {
            for size in [0, 1, 17, 129, 1000, 4097, 16384] {
                let class = of_layout(size, align).unwrap();
                assert!(block_align(class) >= align && SIZES[class] as usize >= size);
            }
        }
        assert_eq!(of_layout(16, 8192), None);
        assert_eq!(of_layout(SMALL_MAX + 1, 1), None);
    }
}
