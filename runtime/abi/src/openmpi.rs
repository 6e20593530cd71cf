//! Open MPI's ABI (`libmpi.so.40`): predefined handles are the addresses of variables of each rank's library.
//!
//! Each variable begins with its neutral handle and its number in Fortran, so that reading a handle is one load. A
//! handle of an object that the program made is its neutral handle, as in the MPI-5 ABI: no variable has such an
//! address, since the addresses of a program that is not position-independent are below 2 GiB and all others far above.

use crate::handle::{Handle, HandleKind};
use crate::status::{Status, StatusLayout};
use crate::{Abi, Caller, Constants, OpenMpi};
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering};

/// What every predefined object begins with.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Head {
    /// The neutral handle; 0 for an object that the runtime does not have.
    neutral: u32,
    /// The handle in Fortran; -1 for none.
    fortran: c_int,
}

/// A predefined object, as large as Open MPI's, and in memory that may be written as its are: Open MPI's C++ library
/// does so. What is read of it is written by nobody.
#[repr(C, align(32))]
#[derive(Debug)]
pub struct Object<const SIZE: usize> {
    bytes: UnsafeCell<[u8; SIZE]>,
}

// SAFETY: no reference to the bytes is ever made.
unsafe impl<const SIZE: usize> Sync for Object<SIZE> {}

impl<const SIZE: usize> Object<SIZE> {
    /// The object of a neutral handle and a handle of Fortran.
    #[must_use]
    pub const fn new(neutral: u32, fortran: c_int) -> Self {
        let (mut bytes, mut at) = ([0; SIZE], 0);
        let (neutral, fortran) = (neutral.to_ne_bytes(), fortran.to_ne_bytes());
        while at < 4 {
            bytes[at] = neutral[at];
            bytes[4 + at] = fortran[at];
            at += 1;
        }
        Self { bytes: UnsafeCell::new(bytes) }
    }
}

/// One more than the largest neutral handle of a predefined object.
const OBJECTS: usize = 0x300;

/// The addresses of a rank's predefined objects. The C library has it, and the Fortran library uses it.
#[repr(C)]
#[derive(Debug)]
pub struct Objects {
    by_neutral: [AtomicPtr<c_void>; OBJECTS],
    /// By their numbers in Fortran, those of each kind where its neutral handles begin.
    by_number: [AtomicPtr<c_void>; OBJECTS],
}

impl Objects {
    /// The table of these objects: neutral handles, numbers in Fortran (-1 for none), and addresses; and of datatypes
    /// that have no neutral handle.
    #[must_use]
    pub const fn new(objects: &[(u32, c_int, *const c_void)], datatypes: &[(c_int, *const c_void)]) -> Self {
        let mut by_neutral = [const { AtomicPtr::new(null_mut()) }; OBJECTS];
        let mut by_number = [const { AtomicPtr::new(null_mut()) }; OBJECTS];
        let mut at = 0;
        while at < objects.len() {
            let (handle, number, object) = objects[at];
            by_neutral[handle as usize] = AtomicPtr::new(object.cast_mut());
            if number >= 0 {
                let place = FIRST_OF_KINDS[kind_of(handle)] + number as usize;
                assert!(place < FIRST_OF_KINDS[kind_of(handle) + 1]);
                by_number[place] = AtomicPtr::new(object.cast_mut());
            }
            at += 1;
        }
        at = 0;
        while at < datatypes.len() {
            let (number, object) = datatypes[at];
            by_number[neutral_handles(HandleKind::Datatype).start + number as usize] =
                AtomicPtr::new(object.cast_mut());
            at += 1;
        }
        Self { by_neutral, by_number }
    }

    /// The object of a neutral handle, NULL if this ABI has none.
    #[inline]
    fn of(&self, handle: u32) -> *const c_void {
        let entry = self.by_neutral.get(handle as usize);
        entry.map_or(null(), |entry| entry.load(Ordering::Relaxed).cast_const())
    }

    /// The object of a kind that has this number in Fortran, NULL for none.
    #[inline]
    fn of_fortran(&self, kind: HandleKind, number: c_int) -> *const c_void {
        let entry = usize::try_from(number).ok().and_then(|number| self.by_number[neutral_handles(kind)].get(number));
        entry.map_or(null(), |entry| entry.load(Ordering::Relaxed).cast_const())
    }
}

/// Where the neutral handles of each kind's predefined objects begin, and where all end.
const FIRST_OF_KINDS: [usize; 12] =
    [0x20, 0x100, 0x108, 0x110, 0x118, 0x120, 0x128, 0x130, 0x140, 0x180, 0x200, OBJECTS];

/// The place in [`FIRST_OF_KINDS`] of the kind of a predefined object.
const fn kind_of(handle: u32) -> usize {
    let mut kind = 0;
    while FIRST_OF_KINDS[kind + 1] <= handle as usize {
        kind += 1;
    }
    kind
}

/// Where the neutral handles of a kind's predefined objects lie.
#[inline]
const fn neutral_handles(kind: HandleKind) -> core::ops::Range<usize> {
    let place = match kind {
        HandleKind::Op => 0,
        HandleKind::Comm => 1,
        HandleKind::Group => 2,
        HandleKind::Win => 3,
        HandleKind::File => 4,
        HandleKind::Session => 5,
        HandleKind::Message => 6,
        HandleKind::Info => 7,
        HandleKind::Errhandler => 8,
        HandleKind::Request => 9,
        HandleKind::Datatype => 10,
        HandleKind::Keyval => return 0..0,
    };
    FIRST_OF_KINDS[place]..FIRST_OF_KINDS[place + 1]
}

/// The lowest address of an object: those of the first page are none.
const LOWEST: usize = 4096;

/// Whether a handle is that of an object which the program made, its neutral handle.
#[inline]
fn is_dynamic(address: usize) -> bool {
    address >> 31 == 1
}

/// The neutral handle of a handle; 0 for NULL and its like.
#[inline]
fn neutral_of(handle: *const c_void) -> u32 {
    let address = handle.addr();
    if is_dynamic(address) {
        return address as u32;
    }
    if address < LOWEST {
        return 0;
    }
    // SAFETY: MPI demands that the program passes a handle, and all others of this ABI are addresses of such objects.
    unsafe { (*handle.cast::<Head>()).neutral }
}

/// The number of a handle in Fortran.
#[inline]
fn number_in_fortran(handle: *const c_void) -> c_int {
    let address = handle.addr();
    if is_dynamic(address) {
        return address as c_int;
    }
    if address < LOWEST {
        return -1;
    }
    // SAFETY: as in `neutral_of`.
    unsafe { (*handle.cast::<Head>()).fortran }
}

macro_rules! handles {
    ($($name:ident)*) => {$(
        #[doc = concat!("`MPI_", stringify!($name), "` of Open MPI's ABI.")]
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(*const c_void);

        impl Handle for $name {
            type Context = &'static Objects;
            const KIND: HandleKind = HandleKind::$name;

            #[inline]
            fn neutral(self) -> u32 {
                neutral_of(self.0)
            }

            #[inline]
            fn from_neutral(context: &'static Objects, handle: u32) -> Self {
                match is_dynamic(handle as usize) {
                    true => Self(core::ptr::without_provenance(handle as usize)),
                    false => Self(context.of(handle)),
                }
            }

            #[inline]
            fn to_int(self) -> c_int {
                number_in_fortran(self.0)
            }

            #[inline]
            fn of_int(context: &'static Objects, value: c_int) -> Self {
                match value {
                    ..-1 => Self(core::ptr::without_provenance(value as u32 as usize)),
                    -1 => Self(null()),
                    _ => Self(context.of_fortran(HandleKind::$name, value)),
                }
            }
        }
    )*};
}

handles!(Comm Datatype Errhandler File Group Info Message Op Request Session Win);

/// `MPI_Status` of Open MPI's ABI. In Fortran it is an array of integers, which need not lie at multiples of 8.
#[repr(C, packed(4))]
#[derive(Clone, Copy, Debug)]
pub struct OpenMpiStatus {
    source: c_int,
    tag: c_int,
    error: c_int,
    cancelled: c_int,
    count: usize,
}

impl StatusLayout for OpenMpiStatus {
    #[inline]
    fn read(&self) -> Status {
        Status {
            source: OpenMpi::rank_in(self.source),
            tag: OpenMpi::tag_in(self.tag),
            error: OpenMpi::error_in(self.error),
            beyond: 0,
            count_bytes: self.count as i64,
            cancelled: self.cancelled != 0,
        }
    }

    #[inline]
    fn write(&mut self, status: &Status) {
        self.source = OpenMpi::rank_out(status.source);
        self.tag = OpenMpi::tag_out(status.tag);
        self.cancelled = c_int::from(status.cancelled);
        self.count = status.count_bytes as usize;
    }

    #[inline]
    fn write_error(&mut self, error: i32) {
        self.error = OpenMpi::error_out(error);
    }

    #[inline]
    fn error_field(&mut self) -> &mut c_int {
        &mut self.error
    }
}

impl Abi for OpenMpi {
    type Context = &'static Objects;
    type Comm = Comm;
    type Datatype = Datatype;
    type Errhandler = Errhandler;
    type File = File;
    type Group = Group;
    type Info = Info;
    type Message = Message;
    type Op = Op;
    type Request = Request;
    type Session = Session;
    type Win = Win;
    type Status = OpenMpiStatus;

    const NAME: &'static str = "Open MPI";
    const ID: cohort_base::boot::AbiId = cohort_base::boot::AbiId::OpenMpi;
    const VERSION: (i32, i32) = (-1, -1);
    const DUP_FN: Option<usize> = None;
    const BOUNDS: Option<[c_int; 2]> = Some([4, 3]);

    #[inline]
    fn context(caller: &Caller) -> &'static Objects {
        // SAFETY: whoever calls through this ABI's table has attached with such a table, which stays loaded.
        unsafe { &*caller.objects.load(Ordering::Relaxed).cast() }
    }
}
