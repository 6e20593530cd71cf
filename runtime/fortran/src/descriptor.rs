//! Descriptors of `TYPE(*), DIMENSION(..)` arguments, as gfortran and LLVM's flang make them: where an array's elements
//! are.
//!
//! gfortran passes a descriptor of its own (`GFC_ARRAY_DESCRIPTOR` of libgfortran, since GCC 9), flang that of the
//! standard (`CFI_cdesc_t` of its `ISO_Fortran_binding.h`). Where flang's says its version, rank and type, gfortran's
//! has the bytes of an element: no element is as large as that would be.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ffi::{c_int, c_void};

/// What both begin with.
#[repr(C)]
#[derive(Debug)]
pub struct Descriptor {
    /// The first element.
    base: *mut c_void,
    /// gfortran: an offset; flang: bytes of an element.
    second: usize,
    /// gfortran: bytes of an element; flang: version, rank, type and two more, in bytes from 0, 4, 5, 6 and 7 on.
    third: u64,
}

/// gfortran's head. The axes follow it: stride, lower and upper bound.
#[repr(C)]
struct Gfortran {
    head: Descriptor,
    _version: c_int,
    rank: i8,
    class: i8,
    _attribute: i16,
    /// Bytes that one step of a stride of 1 takes; 0 where a descriptor does not say.
    span: isize,
}

/// `CFI_VERSION` of flang: up to 19, and later.
const VERSIONS: [u32; 2] = [20_180_515, 20_240_719];

/// One axis of a section.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// How many elements; below 0 for the last axis of an assumed-size array.
    pub extent: isize,
    /// Bytes from an element to the next; below 0 if it runs backwards.
    pub step: isize,
}

/// An argument `TYPE(*), DIMENSION(..)`.
pub type Choice = *const Descriptor;

impl Descriptor {
    /// Whether flang has made it.
    #[inline]
    fn is_flangs(&self) -> bool {
        self.third >> 32 != 0 && VERSIONS.contains(&(self.third as u32))
    }

    /// Bytes of an element.
    #[inline]
    fn element(&self) -> usize {
        match self.is_flangs() {
            true => self.second,
            false => self.third as usize,
        }
    }

    /// The axes, the one that varies fastest first.
    ///
    /// # Safety
    /// The compiler has made the descriptor.
    #[inline]
    unsafe fn axes(choice: Choice) -> impl Iterator<Item = Axis> {
        // SAFETY: as the caller promises: it is flang's or gfortran's, and as many axes follow as it says, of three
        // numbers each.
        let (axes, rank, span) = unsafe {
            let head = &*choice;
            if head.is_flangs() {
                (choice.add(1).cast(), (head.third >> 32) as i8, None)
            } else {
                let gfortran = choice.cast::<Gfortran>();
                let span = match (*gfortran).span {
                    0 => head.third as isize,
                    span => span,
                };
                (gfortran.add(1).cast(), (*gfortran).rank, Some(span))
            }
        };
        let rank = usize::try_from(rank).unwrap_or(0);
        // SAFETY: as above.
        let axes: &[[isize; 3]] = unsafe { core::slice::from_raw_parts(axes, rank) };
        axes.iter().map(move |axis| match span {
            None => Axis { extent: axis[1], step: axis[2] },
            Some(span) => {
                Axis { extent: axis[2].wrapping_sub(axis[1]).wrapping_add(1), step: axis[0].wrapping_mul(span) }
            }
        })
    }
}

/// The first element, if all of them are contiguous in memory, or if there are none.
///
/// # Safety
/// The compiler has made the descriptor.
#[inline]
pub unsafe fn contiguous(choice: Choice) -> Option<*const c_void> {
    // SAFETY: as the caller promises.
    let (head, axes) = unsafe { (&*choice, Descriptor::axes(choice)) };
    // Not allocated: the bounds are anything.
    if head.base.is_null() {
        return Some(head.base);
    }
    let (mut next, mut is_contiguous) = (head.element() as isize, true);
    for axis in axes {
        // An empty section, or an assumed-size array.
        if axis.extent <= 0 {
            return Some(head.base);
        }
        is_contiguous &= axis.extent == 1 || axis.step == next;
        next = next.wrapping_mul(axis.extent);
    }
    is_contiguous.then_some(head.base.cast_const())
}

/// The first element, wherever the others are.
///
/// # Safety
/// The compiler has made the descriptor.
#[inline]
pub unsafe fn start(choice: Choice) -> *const c_void {
    // SAFETY: as the caller promises.
    unsafe { (*choice).base }
}

/// Bytes of an element.
///
/// # Safety
/// The compiler has made the descriptor.
pub unsafe fn element(choice: Choice) -> usize {
    // SAFETY: as the caller promises.
    unsafe { (*choice).element() }
}

/// Whether it is a CHARACTER.
///
/// # Safety
/// The compiler has made the descriptor.
pub unsafe fn is_character(choice: Choice) -> bool {
    // `BT_CHARACTER` of libgfortran, and `CFI_type_char` of flang.
    const CHARACTERS: [i8; 2] = [6, 40];
    // SAFETY: as the caller promises.
    unsafe {
        match (*choice).is_flangs() {
            true => ((*choice).third >> 40) as i8 == CHARACTERS[1],
            false => (*choice.cast::<Gfortran>()).class == CHARACTERS[0],
        }
    }
}

/// A section whose elements are not contiguous.
#[derive(Debug)]
pub struct Section {
    /// The first element.
    pub base: *mut u8,
    /// Bytes of an element.
    pub element: usize,
    /// The axes, the one that varies fastest first.
    pub axes: Vec<Axis>,
}

impl Section {
    /// The section that a descriptor says.
    ///
    /// # Safety
    /// The compiler has made the descriptor, of an array that is not contiguous.
    pub unsafe fn of(choice: Choice) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            Self { base: (*choice).base.cast(), element: (*choice).element(), axes: Descriptor::axes(choice).collect() }
        }
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.axes.iter().map(|axis| axis.extent as usize).product()
    }

    /// An element by its number in array element order.
    pub fn at(&self, number: usize) -> *mut u8 {
        let (mut place, mut rest) = (self.base, number);
        for axis in &self.axes {
            let extent = axis.extent as usize;
            place = place.wrapping_offset((rest % extent) as isize * axis.step);
            rest /= extent;
        }
        place
    }

    /// Calls `f` with each element in array element order.
    fn each(&self, mut f: impl FnMut(*mut u8)) {
        let mut index = vec![0; self.axes.len()];
        let mut place = self.base;
        for _ in 0..self.len() {
            f(place);
            for (index, axis) in index.iter_mut().zip(&self.axes) {
                *index += 1;
                place = place.wrapping_offset(axis.step);
                if *index < axis.extent {
                    break;
                }
                place = place.wrapping_offset(-axis.step * axis.extent);
                *index = 0;
            }
        }
    }
}

/// A contiguous copy of a section for the time of one call; the array itself if that is contiguous.
#[derive(Debug)]
pub struct Copied {
    /// What C gets.
    pub start: *const c_void,
    /// The copy.
    pub kept: Option<Box<Kept>>,
}

/// A section, and the copy of it. When it is dropped, what MPI has written goes back into the section, and nothing
/// else: elements that the call does not cover may have changed meanwhile, by others that have access to them.
#[derive(Debug)]
pub struct Kept {
    section: Section,
    copy: Box<[u128]>,
    /// The copy as it was made; empty if MPI only reads.
    before: Box<[u128]>,
}

impl Copied {
    /// `writes` says whether MPI writes into the array.
    ///
    /// # Safety
    /// The compiler has made the descriptor, and its elements may be read and, if MPI writes, written until the copy
    /// is dropped.
    #[inline]
    pub unsafe fn new(choice: Choice, writes: bool) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            match contiguous(choice) {
                Some(start) => Self { start, kept: None },
                None => Self::of(Section::of(choice), writes),
            }
        }
    }

    /// # Safety
    /// The elements may be read and, if MPI writes, written until the copy is dropped.
    #[cold]
    unsafe fn of(section: Section, writes: bool) -> Self {
        let bytes = section.len() * section.element;
        let mut copy = vec![0_u128; bytes.div_ceil(size_of::<u128>())].into_boxed_slice();
        let mut place = copy.as_mut_ptr().cast::<u8>();
        section.each(|element| {
            // SAFETY: an element of the section, and room for it in the copy, which has room for all.
            unsafe {
                place.copy_from_nonoverlapping(element, section.element);
                place = place.add(section.element);
            }
        });
        let before = if writes { copy.clone() } else { Box::default() };
        Self { start: copy.as_ptr().cast(), kept: Some(Box::new(Kept { section, copy, before })) }
    }
}

impl Drop for Kept {
    #[cold]
    fn drop(&mut self) {
        if self.before.is_empty() {
            return;
        }
        let size = self.section.element;
        let (mut now, mut before) = (self.copy.as_ptr().cast::<u8>(), self.before.as_ptr().cast::<u8>());
        self.section.each(|element| {
            for byte in 0..size {
                // SAFETY: bytes of elements that MPI may write, as `Copied::new` was promised, and of both copies,
                // which have them all. Only those that MPI has written differ.
                unsafe {
                    if *now.add(byte) != *before.add(byte) {
                        *element.add(byte) = *now.add(byte);
                    }
                }
            }
            (now, before) = (now.wrapping_add(size), before.wrapping_add(size));
        });
    }
}
