//! The predefined datatypes, by the MPI-5 ABI's handle values.

use super::bounds::Bounds;
use super::program::{Block, Node, NodeKind, Placed, Table};
use super::reference::Own;
use super::{Basic, Contents, Signature, Type, TypeRef};
use cohort_abi::neutral::handle;

pub(super) const fn entry(own: &'static Type, handle: u32, basic: Basic, name: &'static str) -> Type {
    let node = match basic {
        // The only predefined type with a hole between its members.
        Basic::ShortInt => Node {
            size: 6,
            kind: NodeKind::Blocks(Table::Static(&[
                Block { packed: 0, disp: 0, bytes: 2 },
                Block { packed: 2, disp: 4, bytes: 4 },
            ])),
        },
        _ => Node::run(basic.size() as u64),
    };
    Type {
        size: basic.size(),
        bounds: Bounds::of_basic(basic),
        alignment: basic.alignment(),
        placed: Placed { disp: 0, node },
        signature: Signature::basic(basic, 1),
        element: Some(basic.plain()),
        contents: Contents::named(),
        handle,
        name,
        own: Own::Predefined(own),
    }
}

/// The name that a type has by default: where it has several, the one that the others are synonyms of (MPI-4.1, 3.2.2).
macro_rules! default_name {
    ($name:expr) => {
        $name
    };
    ($name:expr, $default:literal) => {
        $default
    };
}

/// A static per predefined type, and the list of all.
macro_rules! types {
    ($($name:ident = $handle:ident, $basic:ident $(, $default:literal)?;)*) => {
        /// The predefined types, each under its MPI name.
        pub mod types {
            use super::{Basic, Type, entry, handle};
            $(
                #[doc = concat!("`", stringify!($name), "`.")]
                pub static $name: Type = entry(
                    &$name,
                    handle::$handle,
                    Basic::$basic,
                    default_name!(stringify!($name) $(, $default)?),
                );
            )*
        }

        static PREDEFINED: &[&Type] = &[$(&types::$name),*];

        /// The class of each handle.
        const CLASSES: &[(u32, Basic)] = &[$((handle::$handle, Basic::$basic)),*];
    };
}

types! {
    MPI_AINT = AINT, Aint;
    MPI_COUNT = COUNT, Count;
    MPI_OFFSET = OFFSET, Offset;
    MPI_PACKED = PACKED, Packed;
    MPI_SHORT = SHORT, I16;
    MPI_INT = INT, I32;
    MPI_LONG = LONG, Long;
    MPI_LONG_LONG = LONG_LONG, I64, "MPI_LONG_LONG_INT";
    MPI_UNSIGNED_SHORT = UNSIGNED_SHORT, U16;
    MPI_UNSIGNED = UNSIGNED, U32;
    MPI_UNSIGNED_LONG = UNSIGNED_LONG, UnsignedLong;
    MPI_UNSIGNED_LONG_LONG = UNSIGNED_LONG_LONG, U64;
    MPI_FLOAT = FLOAT, F32;
    MPI_C_FLOAT_COMPLEX = C_FLOAT_COMPLEX, C32, "MPI_C_COMPLEX";
    MPI_CXX_FLOAT_COMPLEX = CXX_FLOAT_COMPLEX, C32;
    MPI_DOUBLE = DOUBLE, F64;
    MPI_C_DOUBLE_COMPLEX = C_DOUBLE_COMPLEX, C64;
    MPI_CXX_DOUBLE_COMPLEX = CXX_DOUBLE_COMPLEX, C64;
    MPI_LOGICAL = LOGICAL, Logical4;
    MPI_INTEGER = INTEGER, I32;
    MPI_REAL = REAL, F32;
    MPI_COMPLEX = COMPLEX, C32;
    MPI_DOUBLE_PRECISION = DOUBLE_PRECISION, F64;
    MPI_DOUBLE_COMPLEX = DOUBLE_COMPLEX, C64;
    MPI_CHARACTER = CHARACTER, Char;
    MPI_LONG_DOUBLE = LONG_DOUBLE, F80;
    MPI_C_LONG_DOUBLE_COMPLEX = C_LONG_DOUBLE_COMPLEX, C80;
    MPI_CXX_LONG_DOUBLE_COMPLEX = CXX_LONG_DOUBLE_COMPLEX, C80;
    MPI_FLOAT_INT = FLOAT_INT, FloatInt;
    MPI_DOUBLE_INT = DOUBLE_INT, DoubleInt;
    MPI_LONG_INT = LONG_INT, LongInt;
    MPI_2INT = TWO_INT, TwoInt;
    MPI_SHORT_INT = SHORT_INT, ShortInt;
    MPI_LONG_DOUBLE_INT = LONG_DOUBLE_INT, LongDoubleInt;
    MPI_2REAL = TWO_REAL, TwoReal;
    MPI_2DOUBLE_PRECISION = TWO_DOUBLE_PRECISION, TwoDouble;
    MPI_2INTEGER = TWO_INTEGER, TwoInt;
    MPI_C_BOOL = C_BOOL, Bool;
    MPI_CXX_BOOL = CXX_BOOL, Bool;
    MPI_WCHAR = WCHAR, Wchar;
    MPI_INT8_T = INT8_T, I8;
    MPI_UINT8_T = UINT8_T, U8;
    MPI_CHAR = CHAR, Char;
    MPI_SIGNED_CHAR = SIGNED_CHAR, I8;
    MPI_UNSIGNED_CHAR = UNSIGNED_CHAR, U8;
    MPI_BYTE = BYTE, Byte;
    MPI_INT16_T = INT16_T, I16;
    MPI_UINT16_T = UINT16_T, U16;
    MPIX_C_FLOAT16 = MPIX_C_FLOAT16, F16;
    MPI_INT32_T = INT32_T, I32;
    MPI_UINT32_T = UINT32_T, U32;
    MPI_INT64_T = INT64_T, I64;
    MPI_UINT64_T = UINT64_T, U64;
    MPI_LOGICAL1 = LOGICAL1, Logical1;
    MPI_INTEGER1 = INTEGER1, I8;
    MPI_LOGICAL2 = LOGICAL2, Logical2;
    MPI_INTEGER2 = INTEGER2, I16;
    MPI_REAL2 = REAL2, F16;
    MPI_LOGICAL4 = LOGICAL4, Logical4;
    MPI_INTEGER4 = INTEGER4, I32;
    MPI_REAL4 = REAL4, F32;
    MPI_COMPLEX4 = COMPLEX4, C16;
    MPI_LOGICAL8 = LOGICAL8, Logical8;
    MPI_INTEGER8 = INTEGER8, I64;
    MPI_REAL8 = REAL8, F64;
    MPI_COMPLEX8 = COMPLEX8, C32;
    MPI_LOGICAL16 = LOGICAL16, Logical16;
    MPI_INTEGER16 = INTEGER16, I128;
    MPI_REAL16 = REAL16, F128;
    MPI_COMPLEX16 = COMPLEX16, C64;
    MPI_COMPLEX32 = COMPLEX32, C128;
}

/// The predefined type that all elements of a type are of, for words about it; `None` for elements of several types.
#[must_use]
pub fn named_like(datatype: &Type) -> Option<&'static Type> {
    let basic = datatype.signature.uniform()?;
    match (predefined_type(datatype.handle), basic) {
        (Some(named), _) => Some(named),
        (None, Basic::Char) => Some(&types::MPI_CHAR),
        _ => {
            let mut named = PREDEFINED.iter().copied();
            named.find(|it| it.signature.uniform() == Some(basic))
        }
    }
}

/// Handle values of predefined datatypes lie in one page, which begins with `MPI_DATATYPE_NULL`.
pub(super) const HANDLE_PAGE: u32 = handle::DATATYPE_NULL;

/// The type of each handle of the page.
pub(super) static BY_HANDLE: [Option<&Type>; 256] = {
    let mut types: [Option<&Type>; 256] = [None; 256];
    let mut at = 0;
    while at < PREDEFINED.len() {
        types[(PREDEFINED[at].handle - HANDLE_PAGE) as usize] = Some(PREDEFINED[at]);
        at += 1;
    }
    types
};

/// What a call on few elements has to know of a predefined type without holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dense {
    /// Bytes of an element; they follow each other.
    pub size: u8,
    /// What it is.
    pub basic: Basic,
}

/// What is known of each handle of the page; no size for what has holes or is no type.
pub(super) static DENSE: [Dense; 256] = {
    let nothing = Dense { size: 0, basic: Basic::Byte };
    let mut types = [nothing; 256];
    let mut at = 0;
    while at < CLASSES.len() {
        let (handle, basic) = CLASSES[at];
        if basic.size() == basic.extent() {
            let size = basic.size() as u8;
            let basic = basic.plain();
            types[(handle - HANDLE_PAGE) as usize] = Dense { size, basic };
        }
        at += 1;
    }
    types
};

/// A predefined datatype whose elements have no holes, by its handle value; `None` for all others.
#[inline]
#[must_use]
pub fn dense(handle: u32) -> Option<Dense> {
    let found = DENSE.get(handle.wrapping_sub(HANDLE_PAGE) as usize)?;
    (found.size != 0).then_some(*found)
}

/// The predefined datatype of an MPI-5 ABI handle value; `None` for `MPI_DATATYPE_NULL` and
/// for values that name no datatype.
#[must_use]
#[inline]
pub fn predefined(handle: u32) -> Option<TypeRef> {
    predefined_type(handle).map(TypeRef::of_static)
}

/// The predefined datatype of a handle itself.
#[inline]
#[must_use]
pub fn predefined_type(handle: u32) -> Option<&'static Type> {
    *BY_HANDLE.get(handle.checked_sub(HANDLE_PAGE)? as usize)?
}

/// All predefined datatypes, in the order of their handles.
pub fn predefined_all() -> impl Iterator<Item = TypeRef> {
    PREDEFINED.iter().copied().map(TypeRef::of_static)
}

/// Handles of value, index and pair types.
const PAIRS: [(u32, u32, u32); 9] = [
    (handle::SHORT, handle::INT, handle::SHORT_INT),
    (handle::INT, handle::INT, handle::TWO_INT),
    (handle::LONG, handle::INT, handle::LONG_INT),
    (handle::FLOAT, handle::INT, handle::FLOAT_INT),
    (handle::DOUBLE, handle::INT, handle::DOUBLE_INT),
    (handle::LONG_DOUBLE, handle::INT, handle::LONG_DOUBLE_INT),
    (handle::INTEGER, handle::INTEGER, handle::TWO_INTEGER),
    (handle::REAL, handle::REAL, handle::TWO_REAL),
    (handle::DOUBLE_PRECISION, handle::DOUBLE_PRECISION, handle::TWO_DOUBLE_PRECISION),
];

/// The predefined pair type of a value and an index type (`MPI_Type_get_value_index`). Types
/// of equal layout are not interchangeable here: `MPI_FLOAT` is not `MPI_REAL`.
#[must_use]
pub fn value_index(value: &Type, index: &Type) -> Option<TypeRef> {
    let members = (value.handle, index.handle);
    let found = PAIRS.iter().find(|pair| (pair.0, pair.1) == members)?;
    predefined(found.2)
}

/// The value type and the index type of a predefined pair type.
#[must_use]
pub fn pair_members(pair: &Type) -> Option<[TypeRef; 2]> {
    let &(value, index, _) = PAIRS.iter().find(|(.., handle)| *handle == pair.handle)?;
    Some([predefined(value)?, predefined(index)?])
}
