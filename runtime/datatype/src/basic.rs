//! The classes of predefined elements.

/// The class of one predefined element: what its bytes mean, whatever language named it.
///
/// `MPI_INT`, `MPI_INTEGER` and `MPI_INT32_T` are all [`Basic::I32`]; handles that differ in
/// what MPI lets them do (`MPI_BYTE`, `MPI_CHAR`, `MPI_AINT`) have classes of their own.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Basic {
    /// 8-bit signed integer.
    I8,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit signed integer.
    I16,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit signed integer.
    I32,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit signed integer.
    I64,
    /// 64-bit unsigned integer.
    U64,
    /// C `long`: a 64-bit integer but in `external32` ([`Basic::plain`]).
    Long,
    /// C `unsigned long`.
    UnsignedLong,
    /// 128-bit signed integer (Fortran `INTEGER*16`).
    I128,
    /// IEEE half precision (Fortran `REAL*2`).
    F16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// x87 extended precision in 16 bytes (C `long double`).
    F80,
    /// IEEE quadruple precision (Fortran `REAL*16`).
    F128,
    /// Complex of two [`Basic::F16`].
    C16,
    /// Complex of two [`Basic::F32`].
    C32,
    /// Complex of two [`Basic::F64`].
    C64,
    /// Complex of two [`Basic::F80`].
    C80,
    /// Complex of two [`Basic::F128`].
    C128,
    /// C and C++ `bool`.
    Bool,
    /// Fortran `LOGICAL*1`.
    Logical1,
    /// Fortran `LOGICAL*2`.
    Logical2,
    /// Fortran `LOGICAL*4`, the default `LOGICAL`.
    Logical4,
    /// Fortran `LOGICAL*8`.
    Logical8,
    /// Fortran `LOGICAL*16`.
    Logical16,
    /// A printable character: `MPI_CHAR`, `MPI_CHARACTER`.
    Char,
    /// `wchar_t`.
    Wchar,
    /// Uninterpreted byte.
    Byte,
    /// Byte of a packed message.
    Packed,
    /// `MPI_Aint`.
    Aint,
    /// `MPI_Offset`.
    Offset,
    /// `MPI_Count`.
    Count,
    /// `struct { float; int; }`.
    FloatInt,
    /// `struct { double; int; }`.
    DoubleInt,
    /// `struct { long; int; }`.
    LongInt,
    /// `struct { int; int; }`, also Fortran's pair of `INTEGER`.
    TwoInt,
    /// Pair of `INTEGER` of 64 bits.
    TwoLong,
    /// `struct { short; int; }`.
    ShortInt,
    /// `struct { long double; int; }`.
    LongDoubleInt,
    /// Pair of `REAL`.
    TwoReal,
    /// Pair of `DOUBLE PRECISION`.
    TwoDouble,
}

impl Basic {
    /// What it is in memory, and for matching and reductions: other representations alone tell the two apart.
    #[must_use]
    #[inline]
    pub const fn plain(self) -> Self {
        match self {
            Self::Long => Self::I64,
            Self::UnsignedLong => Self::U64,
            other => other,
        }
    }

    /// Bytes of data in one element, without padding (`MPI_Type_size`).
    #[must_use]
    pub const fn size(self) -> i64 {
        match self {
            Self::I8 | Self::U8 | Self::Bool | Self::Logical1 | Self::Char | Self::Byte | Self::Packed => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::Logical2 => 2,
            Self::I32 | Self::U32 | Self::F32 | Self::C16 | Self::Logical4 | Self::Wchar => 4,
            Self::ShortInt => 6,
            Self::I64 | Self::U64 | Self::F64 | Self::C32 | Self::Logical8 => 8,
            Self::Long | Self::UnsignedLong => 8,
            Self::Aint | Self::Offset | Self::Count => 8,
            Self::FloatInt | Self::TwoInt | Self::TwoReal => 8,
            Self::DoubleInt | Self::LongInt => 12,
            Self::I128 | Self::F80 | Self::F128 | Self::C64 | Self::Logical16 => 16,
            Self::TwoDouble | Self::TwoLong => 16,
            Self::LongDoubleInt => 20,
            Self::C80 | Self::C128 => 32,
        }
    }

    /// Distance in bytes between two elements of an array.
    #[must_use]
    pub const fn extent(self) -> i64 {
        match self {
            Self::ShortInt => 8,
            Self::DoubleInt | Self::LongInt => 16,
            Self::LongDoubleInt => 32,
            _ => self.size(),
        }
    }

    /// The C compiler's alignment of one element, in bytes.
    #[must_use]
    pub const fn alignment(self) -> i64 {
        match self {
            Self::C16 => 2,
            Self::C32 | Self::FloatInt | Self::TwoInt | Self::ShortInt | Self::TwoReal => 4,
            Self::C64 | Self::DoubleInt | Self::LongInt | Self::TwoDouble | Self::TwoLong => 8,
            Self::C80 | Self::C128 | Self::LongDoubleInt => 16,
            _ => self.size(),
        }
    }

    /// Whether this is an integer of one machine word or less, of whatever sign.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        matches!(
            self,
            Self::I8
                | Self::U8
                | Self::Char
                | Self::I16
                | Self::U16
                | Self::I32
                | Self::U32
                | Self::I64
                | Self::U64
                | Self::Long
                | Self::UnsignedLong
                | Self::Aint
                | Self::Offset
                | Self::Count
        )
    }

    /// Whether `MPI_Compare_and_swap` takes it: integers, logicals, multi-language types, bytes.
    #[must_use]
    pub const fn can_be_compared(self) -> bool {
        let is_logical = matches!(
            self,
            Self::Bool | Self::Logical1 | Self::Logical2 | Self::Logical4 | Self::Logical8 | Self::Logical16
        );
        self.is_integer() || is_logical || matches!(self, Self::I128 | Self::Byte | Self::Wchar)
    }

    /// The two members of a pair type (value, index), which `MPI_Get_elements` counts one by one.
    #[must_use]
    pub const fn pair(self) -> Option<(Self, Self)> {
        match self {
            Self::FloatInt => Some((Self::F32, Self::I32)),
            Self::DoubleInt => Some((Self::F64, Self::I32)),
            Self::LongInt => Some((Self::I64, Self::I32)),
            Self::TwoInt => Some((Self::I32, Self::I32)),
            Self::TwoLong => Some((Self::I64, Self::I64)),
            Self::ShortInt => Some((Self::I16, Self::I32)),
            Self::LongDoubleInt => Some((Self::F80, Self::I32)),
            Self::TwoReal => Some((Self::F32, Self::F32)),
            Self::TwoDouble => Some((Self::F64, Self::F64)),
            _ => None,
        }
    }
}
