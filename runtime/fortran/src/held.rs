//! Copies of array sections that nonblocking and persistent operations work on, where no datatype describes a section.
//!
//! They live until the request is freed. The C library calls [`work`] when the operation starts or a partition is
//! ready, and when it is complete or a partition has arrived, whoever completes it and in whatever language
//! (`MPII_Request_set_copies`).
//!
//! Elements of a section that the operation does not cover belong to the program meanwhile. So only what has changed
//! in a copy goes back: [`Array::seen`] is what the copy would be if MPI had written nothing.

use crate::A;
use crate::arguments::Ierror;
use crate::descriptor::{Choice, Section, contiguous};
use crate::extents::{checked, span};
use crate::generated::c;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use cohort_abi::{Abi, Handle};
use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

type Request = <A as Abi>::Request;

/// Where partitions lie in an array.
#[derive(Debug)]
struct Parts {
    /// Bytes from one to the next.
    each: i64,
    /// The first byte of the first, and the one behind its last.
    first: Range<i64>,
}

/// A section and its copy.
#[derive(Debug)]
struct Array {
    section: Section,
    copy: Box<[u128]>,
    /// Empty if MPI only reads.
    seen: Box<[u128]>,
    parts: Option<Parts>,
}

impl Array {
    /// # Safety
    /// The compiler has made the descriptor, of an array that is not contiguous and stays valid.
    unsafe fn new(choice: Choice, writes: bool, parts: Option<Parts>) -> Self {
        // SAFETY: as the caller promises.
        let section = unsafe { Section::of(choice) };
        let words = (section.len() * section.element).div_ceil(size_of::<u128>());
        let mut array = Self {
            section,
            copy: vec![0; words].into_boxed_slice(),
            seen: vec![0; if writes { words } else { 0 }].into_boxed_slice(),
            parts,
        };
        array.load(0..array.section.len());
        array
    }

    /// The elements of some partitions; of all if they are below 0.
    fn elements(&self, low: c_int, high: c_int) -> Range<usize> {
        let all = 0..self.section.len();
        let Some(parts) = self.parts.as_ref().filter(|_| low >= 0) else {
            return all;
        };
        let size = self.section.element;
        let byte = |part: c_int, edge: i64| {
            let byte = i64::from(part).saturating_mul(parts.each);
            usize::try_from(byte.saturating_add(edge)).unwrap_or(0)
        };
        let start = byte(low, parts.first.start) / size;
        let end = byte(high, parts.first.end).div_ceil(size);
        start.min(all.end)..end.min(all.end)
    }

    /// From the array into the copy.
    fn load(&mut self, elements: Range<usize>) {
        let size = self.section.element;
        let copy = self.copy.as_mut_ptr().cast::<u8>();
        let seen = self.seen.as_mut_ptr().cast::<u8>();
        for index in elements {
            let element = self.section.at(index);
            // SAFETY: an element of the section, and its places, as both have room for all.
            unsafe {
                copy.add(index * size).copy_from_nonoverlapping(element, size);
                if !self.seen.is_empty() {
                    seen.add(index * size).copy_from_nonoverlapping(element, size);
                }
            }
        }
    }

    /// What MPI has changed in the copy, into the array.
    fn store(&mut self, elements: Range<usize>) {
        if self.seen.is_empty() {
            return;
        }
        let size = self.section.element;
        let copy = self.copy.as_ptr().cast::<u8>();
        let seen = self.seen.as_mut_ptr().cast::<u8>();
        for index in elements {
            let element = self.section.at(index);
            for byte in 0..size {
                // SAFETY: bytes of the section and of their places. Only those that MPI has written differ, which the
                // program does not touch; others of the copy may be written by MPI now, so each is read once.
                unsafe {
                    let now = copy.add(index * size + byte).read_volatile();
                    let seen = seen.add(index * size + byte);
                    if now != *seen {
                        *seen = now;
                        *element.add(byte) = now;
                    }
                }
            }
        }
    }
}

/// The copies of a request.
struct Copies {
    /// Several threads may make partitions ready at once.
    busy: AtomicBool,
    arrays: Vec<Array>,
}

/// What C calls: 0 fills the copies, 1 brings back what has changed, 2 frees them.
unsafe extern "C" fn work(state: *mut c_void, step: c_int, low: c_int, high: c_int) {
    let state = state.cast::<Copies>();
    if step == 2 {
        // SAFETY: the record of `follow`; C says this once, last.
        drop(unsafe { Box::from_raw(state) });
        return;
    }
    // SAFETY: the record of `follow`, not freed yet.
    let busy = unsafe { &(*state).busy };
    // Acquire pairs with the release below: what the last holder did is visible.
    while busy.swap(true, Ordering::Acquire) {
        core::hint::spin_loop();
    }
    // SAFETY: `busy` is held, so nobody else has them.
    for array in unsafe { &mut (*state).arrays } {
        let elements = array.elements(low, high);
        match step {
            0 => array.load(elements),
            _ => array.store(elements),
        }
    }
    busy.store(false, Ordering::Release);
}

/// The copies of a call that makes a request.
pub struct Held(Vec<Array>);

impl Held {
    /// None so far.
    #[inline]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The array's address, or that of its copy.
    ///
    /// # Safety
    /// The compiler has made the descriptor, and the array stays valid as long as the operation.
    #[inline]
    pub unsafe fn array(&mut self, choice: Choice, writes: bool) -> *const c_void {
        // SAFETY: as the caller promises.
        unsafe {
            match contiguous(choice) {
                Some(start) => start,
                None => self.copy(choice, writes, None),
            }
        }
    }

    /// The same for an array of `partitions` times `count` elements of `datatype`.
    ///
    /// # Errors
    /// MPI's error code, after the error handler.
    ///
    /// # Safety
    /// As for [`Held::array`]; arguments of a Fortran procedure.
    #[inline]
    pub unsafe fn parts(
        &mut self,
        choice: Choice,
        writes: bool,
        count: *const i64,
        datatype: *const c_int,
    ) -> Result<*const c_void, c_int> {
        // SAFETY: as the caller promises.
        unsafe {
            match contiguous(choice) {
                Some(start) => Ok(start),
                None => {
                    let (extent, bytes) = span(*count, Handle::from_int(*datatype))?;
                    let each = extent.saturating_mul(*count);
                    let parts = (each > 0).then_some(Parts { each, first: bytes });
                    Ok(self.copy(choice, writes, parts))
                }
            }
        }
    }

    /// # Safety
    /// As for [`Held::array`], of an array that is not contiguous.
    #[cold]
    unsafe fn copy(&mut self, choice: Choice, writes: bool, parts: Option<Parts>) -> *const c_void {
        // SAFETY: as the caller promises.
        let array = unsafe { Array::new(choice, writes, parts) };
        let start = array.copy.as_ptr().cast();
        self.0.push(array);
        start
    }

    /// Calls the procedure, which makes `request`, and has the copies follow that.
    ///
    /// # Safety
    /// `request` is a Fortran handle that the procedure stores.
    #[inline]
    pub unsafe fn call(self, request: *mut c_int, ierror: Ierror, procedure: impl FnOnce(Ierror)) {
        if self.0.is_empty() {
            return procedure(ierror);
        }
        let mut code = 0;
        procedure((&mut code).into());
        // SAFETY: as the caller promises.
        let followed = checked(code).and_then(|()| unsafe { self.follow(request) });
        ierror.set(followed.err().unwrap_or(0));
    }

    /// # Safety
    /// A request that was just made.
    #[cold]
    unsafe fn follow(self, request: *mut c_int) -> Result<(), c_int> {
        let copies = Box::into_raw(Box::new(Copies { busy: AtomicBool::new(false), arrays: self.0 }));
        let work = work as unsafe extern "C" fn(_, _, _, _) as *mut c_void;
        // SAFETY: as the caller promises; C frees the record when it calls `work` last.
        unsafe {
            let mut copied = Request::from_int(*request);
            let code = c::MPII_Request_set_copies(copied, work, copies.cast(), &mut copied);
            *request = copied.to_int();
            checked(code)
        }
    }
}
