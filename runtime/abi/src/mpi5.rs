//! The MPI-5 ABI (`libmpi_abi.so.1`): handles are pointers whose value is the neutral handle.

use crate::handle::{Handle, HandleKind};
use crate::status::{Status, StatusLayout};
use crate::{Abi, Caller, neutral};
use core::ffi::{c_int, c_void};

/// The MPI-5 ABI.
#[derive(Clone, Copy, Debug)]
pub struct Mpi5;

macro_rules! handles {
    ($($name:ident)*) => {$(
        #[doc = concat!("`MPI_", stringify!($name), "` of the MPI-5 ABI.")]
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(*mut c_void);

        impl Handle for $name {
            type Context = ();
            const KIND: HandleKind = HandleKind::$name;
            #[inline]
            fn neutral(self) -> u32 {
                u32::try_from(self.0.addr()).unwrap_or(0)
            }
            #[inline(always)]
            fn word(self) -> usize {
                self.0.addr()
            }
            #[inline]
            fn from_neutral(_context: (), handle: u32) -> Self {
                Self(core::ptr::without_provenance_mut(handle as usize))
            }

            #[inline]
            fn to_int(self) -> c_int {
                self.0.addr() as c_int
            }
            #[inline]
            fn of_int(_context: (), value: c_int) -> Self {
                Self(core::ptr::without_provenance_mut(value as u32 as usize))
            }
        }
    )*};
}

handles!(Comm Datatype Errhandler File Group Info Message Op Request Session Win);

/// `MPI_Status` of the MPI-5 ABI. The byte count is in `internal[0..2]`, low half first,
/// the cancellation flag in `internal[2]`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Mpi5Status {
    source: c_int,
    tag: c_int,
    error: c_int,
    internal: [c_int; 5],
}

impl StatusLayout for Mpi5Status {
    #[inline]
    fn read(&self) -> Status {
        let [low, high, cancelled, ..] = self.internal;
        Status {
            source: self.source,
            tag: self.tag,
            error: self.error,
            beyond: 0,
            count_bytes: i64::from(high) << 32 | i64::from(low as u32),
            cancelled: cancelled != 0,
        }
    }

    #[inline]
    fn write(&mut self, status: &Status) {
        self.source = status.source;
        self.tag = status.tag;
        self.internal[0] = status.count_bytes as i32;
        self.internal[1] = (status.count_bytes >> 32) as i32;
        self.internal[2] = i32::from(status.cancelled);
    }

    #[inline]
    fn write_error(&mut self, error: i32) {
        self.error = error;
    }

    #[inline]
    fn error_field(&mut self) -> &mut c_int {
        &mut self.error
    }
}

impl Abi for Mpi5 {
    type Context = ();
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
    type Status = Mpi5Status;

    const NAME: &'static str = "MPI-5";
    const ID: cohort_base::boot::AbiId = cohort_base::boot::AbiId::Mpi5;
    const VERSION: (i32, i32) = (neutral::ABI_VERSION, neutral::ABI_SUBVERSION);
    const DUP_FN: Option<usize> = Some(1);
    const TELLS_FORTRAN: bool = true;

    #[inline]
    fn context(_caller: &Caller) {}
}
