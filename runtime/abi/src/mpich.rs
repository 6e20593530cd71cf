//! The MPICH ABI (`libmpi.so.12`): handles are `int`, except files, which are pointers.
//!
//! Predefined handles and constants are translated by tables; dynamic handles pass unchanged,
//! for they cannot be mistaken for predefined ones: those have bit 31 clear or are pair types,
//! which the layout of dynamic datatypes leaves free
//! ([`crate::FIRST_DYNAMIC_DATATYPE_INDEX`]).

use crate::handle::{FIRST_DYNAMIC, Handle, HandleKind};
use crate::status::{Status, StatusLayout};
use crate::{Abi, Caller, Constants, Mpich};
use core::ffi::{c_int, c_void};
use handles as predefined;

/// Predefined handles, to and from neutral ones.
pub(crate) mod handles {
    include!(concat!(env!("OUT_DIR"), "/mpich_handles.rs"));
}

macro_rules! handles {
    ($($name:ident $input:ident $output:ident;)*) => {$(
        #[doc = concat!("`MPI_", stringify!($name), "` of the MPICH ABI.")]
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(c_int);

        impl Handle for $name {
            type Context = ();
            const KIND: HandleKind = HandleKind::$name;
            #[inline]
            fn neutral(self) -> u32 {
                let value = self.0 as u32;
                if value >= FIRST_DYNAMIC {
                    return value;
                }
                predefined::$input(value).unwrap_or(0)
            }
            #[inline(always)]
            fn word(self) -> usize {
                // Those of predefined objects are below all dynamic ones.
                self.0 as u32 as usize
            }
            #[inline]
            fn from_neutral(_context: (), handle: u32) -> Self {
                Self(predefined::$output(handle).unwrap_or(handle) as c_int)
            }

            #[inline]
            fn to_int(self) -> c_int {
                self.0
            }
            #[inline]
            fn of_int(_context: (), value: c_int) -> Self {
                Self(value)
            }
        }
    )*};
}

handles! {
    Comm comm_in comm_out;
    Errhandler errhandler_in errhandler_out;
    Group group_in group_out;
    Info info_in info_out;
    Message message_in message_out;
    Op op_in op_out;
    Request request_in request_out;
    Session session_in session_out;
    Win win_in win_out;
}

/// `MPI_Datatype` of the MPICH ABI.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datatype(c_int);

/// The numbers of the predefined pair types, `MPI_FLOAT_INT` first.
const PAIRS: core::ops::RangeInclusive<u32> = 0x8c00_0000..=0x8c00_0007;

impl Handle for Datatype {
    type Context = ();
    const KIND: HandleKind = HandleKind::Datatype;

    #[inline]
    fn neutral(self) -> u32 {
        let value = self.0 as u32;
        if value >= FIRST_DYNAMIC {
            if PAIRS.contains(&value) {
                return predefined::PAIR_IN[(value & 7) as usize];
            }
            return value;
        }
        match predefined::DATATYPE_IN.get((value & 0xff) as usize) {
            Some(&(handle, neutral)) if handle == value => neutral,
            _ => 0,
        }
    }

    #[inline]
    fn from_neutral(_context: (), handle: u32) -> Self {
        if handle >= FIRST_DYNAMIC {
            return Self(handle as c_int);
        }
        Self(predefined::DATATYPE_OUT[(handle & 0xff) as usize] as c_int)
    }

    #[inline]
    fn to_int(self) -> c_int {
        self.0
    }
    #[inline]
    fn of_int(_context: (), value: c_int) -> Self {
        Self(value)
    }
}

/// `MPI_File` of the MPICH ABI: a pointer, NULL for `MPI_FILE_NULL`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File(*mut c_void);

impl Handle for File {
    type Context = ();
    const KIND: HandleKind = HandleKind::File;

    #[inline]
    fn neutral(self) -> u32 {
        match u32::try_from(self.0.addr()) {
            Ok(value) if value >= FIRST_DYNAMIC => value,
            Ok(value) => predefined::file_in(value).unwrap_or(0),
            Err(_) => 0,
        }
    }

    #[inline]
    fn from_neutral(_context: (), handle: u32) -> Self {
        let address = predefined::file_out(handle).unwrap_or(handle);
        Self(core::ptr::without_provenance_mut(address as usize))
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

/// `MPI_Status` of the MPICH ABI.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MpichStatus {
    count_low: c_int,
    /// Bit 0 is the cancellation flag, the others are the count's upper half.
    count_high_and_cancelled: c_int,
    source: c_int,
    tag: c_int,
    error: c_int,
}

impl StatusLayout for MpichStatus {
    #[inline]
    fn read(&self) -> Status {
        // 31 bits: a count is not negative.
        let high = i64::from(self.count_high_and_cancelled.cast_unsigned() >> 1);
        Status {
            source: Mpich::rank_in(self.source),
            tag: Mpich::tag_in(self.tag),
            error: Mpich::error_in(self.error),
            beyond: 0,
            count_bytes: high << 32 | i64::from(self.count_low as u32),
            cancelled: self.count_high_and_cancelled & 1 != 0,
        }
    }

    #[inline]
    fn write(&mut self, status: &Status) {
        let high = (status.count_bytes >> 32) as i32;
        self.count_low = status.count_bytes as i32;
        self.count_high_and_cancelled = high << 1 | i32::from(status.cancelled);
        self.source = Mpich::rank_out(status.source);
        self.tag = Mpich::tag_out(status.tag);
    }

    #[inline]
    fn write_error(&mut self, error: i32) {
        self.error = Mpich::error_out(error);
    }

    #[inline]
    fn error_field(&mut self) -> &mut c_int {
        &mut self.error
    }
}

impl Abi for Mpich {
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
    type Status = MpichStatus;

    const HAS_MARKERS: bool = false;
    const NAME: &'static str = "MPICH";
    const ID: cohort_base::boot::AbiId = cohort_base::boot::AbiId::Mpich;
    const VERSION: (i32, i32) = (-1, -1);
    const DUP_FN: Option<usize> = None;
    const BOUNDS: Option<[c_int; 2]> = Some([0x4c00_0010, 0x4c00_0011]);
    const NEIGHBORHOOD: Option<c_int> = Some(5);

    /// The predefined keyvals are odd in C, and one more in Fortran.
    fn fortran_keyval(number: c_int) -> c_int {
        let is_predefined = number as u32 >> 30 == 1;
        number - c_int::from(is_predefined && number % 2 == 0)
    }

    #[inline]
    fn context(_caller: &Caller) {}
}
