//! The predefined datatypes, by the MPI-5 ABI's handle values.

use super::bounds::Bounds;
use super::program::{Block, Kind, Node, Placed, Table};
use super::reference::Own;
use super::{Basic, Contents, Signature, Type, TypeRef};

const fn entry(own: &'static Type, handle: u32, basic: Basic, name: &'static str) -> Type {
    let node = match basic {
        // The only predefined type with a hole between its members.
        Basic::ShortInt => Node {
            size: 6,
            kind: Kind::Blocks(Table::Static(&[
                Block {
                    packed: 0,
                    disp: 0,
                    bytes: 2,
                },
                Block {
                    packed: 2,
                    disp: 4,
                    bytes: 4,
                },
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
        contents: Contents::named(),
        handle,
        name,
        own: Own::Predefined(own),
    }
}

/// A static per predefined type, and the list of all.
macro_rules! types {
    ($($name:ident = $handle:literal, $basic:ident;)*) => {
        /// The predefined types, each under its MPI name.
        pub mod types {
            use super::{Basic, Type, entry};
            $(
                #[doc = concat!("`", stringify!($name), "`.")]
                pub static $name: Type = entry(&$name, $handle, Basic::$basic, stringify!($name));
            )*
        }

        static PREDEFINED: &[&Type] = &[$(&types::$name),*];
    };
}

types! {
    MPI_AINT = 0x00000201, Aint;
    MPI_COUNT = 0x00000202, Count;
    MPI_OFFSET = 0x00000203, Offset;
    MPI_PACKED = 0x00000207, Packed;
    MPI_SHORT = 0x00000208, I16;
    MPI_INT = 0x00000209, I32;
    MPI_LONG = 0x0000020a, I64;
    MPI_LONG_LONG = 0x0000020b, I64;
    MPI_UNSIGNED_SHORT = 0x0000020c, U16;
    MPI_UNSIGNED = 0x0000020d, U32;
    MPI_UNSIGNED_LONG = 0x0000020e, U64;
    MPI_UNSIGNED_LONG_LONG = 0x0000020f, U64;
    MPI_FLOAT = 0x00000210, F32;
    MPI_C_FLOAT_COMPLEX = 0x00000212, C32;
    MPI_CXX_FLOAT_COMPLEX = 0x00000213, C32;
    MPI_DOUBLE = 0x00000214, F64;
    MPI_C_DOUBLE_COMPLEX = 0x00000216, C64;
    MPI_CXX_DOUBLE_COMPLEX = 0x00000217, C64;
    MPI_LOGICAL = 0x00000218, Logical4;
    MPI_INTEGER = 0x00000219, I32;
    MPI_REAL = 0x0000021a, F32;
    MPI_COMPLEX = 0x0000021b, C32;
    MPI_DOUBLE_PRECISION = 0x0000021c, F64;
    MPI_DOUBLE_COMPLEX = 0x0000021d, C64;
    MPI_CHARACTER = 0x0000021e, Char;
    MPI_LONG_DOUBLE = 0x00000220, F80;
    MPI_C_LONG_DOUBLE_COMPLEX = 0x00000224, C80;
    MPI_CXX_LONG_DOUBLE_COMPLEX = 0x00000225, C80;
    MPI_FLOAT_INT = 0x00000228, FloatInt;
    MPI_DOUBLE_INT = 0x00000229, DoubleInt;
    MPI_LONG_INT = 0x0000022a, LongInt;
    MPI_2INT = 0x0000022b, TwoInt;
    MPI_SHORT_INT = 0x0000022c, ShortInt;
    MPI_LONG_DOUBLE_INT = 0x0000022d, LongDoubleInt;
    MPI_2REAL = 0x00000230, TwoReal;
    MPI_2DOUBLE_PRECISION = 0x00000231, TwoDouble;
    MPI_2INTEGER = 0x00000232, TwoInt;
    MPI_C_BOOL = 0x00000238, Bool;
    MPI_CXX_BOOL = 0x00000239, Bool;
    MPI_WCHAR = 0x0000023c, Wchar;
    MPI_INT8_T = 0x00000240, I8;
    MPI_UINT8_T = 0x00000241, U8;
    MPI_CHAR = 0x00000243, Char;
    MPI_SIGNED_CHAR = 0x00000244, I8;
    MPI_UNSIGNED_CHAR = 0x00000245, U8;
    MPI_BYTE = 0x00000247, Byte;
    MPI_INT16_T = 0x00000248, I16;
    MPI_UINT16_T = 0x00000249, U16;
    MPIX_C_FLOAT16 = 0x0000024a, F16;
    MPI_INT32_T = 0x00000250, I32;
    MPI_UINT32_T = 0x00000251, U32;
    MPI_INT64_T = 0x00000258, I64;
    MPI_UINT64_T = 0x00000259, U64;
    MPI_LOGICAL1 = 0x000002c0, Logical1;
    MPI_INTEGER1 = 0x000002c1, I8;
    MPI_LOGICAL2 = 0x000002c8, Logical2;
    MPI_INTEGER2 = 0x000002c9, I16;
    MPI_REAL2 = 0x000002ca, F16;
    MPI_LOGICAL4 = 0x000002d0, Logical4;
    MPI_INTEGER4 = 0x000002d1, I32;
    MPI_REAL4 = 0x000002d2, F32;
    MPI_COMPLEX4 = 0x000002d3, C16;
    MPI_LOGICAL8 = 0x000002d8, Logical8;
    MPI_INTEGER8 = 0x000002d9, I64;
    MPI_REAL8 = 0x000002da, F64;
    MPI_COMPLEX8 = 0x000002db, C32;
    MPI_LOGICAL16 = 0x000002e0, Logical16;
    MPI_INTEGER16 = 0x000002e1, I128;
    MPI_REAL16 = 0x000002e2, F128;
    MPI_COMPLEX16 = 0x000002e3, C64;
    MPI_COMPLEX32 = 0x000002eb, C128;
}

/// Handle values of predefined datatypes lie in one page of this many values.
const HANDLE_PAGE: u32 = 0x200;

/// The type of each handle of the page.
static BY_HANDLE: [Option<&Type>; 256] = {
    let mut types: [Option<&Type>; 256] = [None; 256];
    let mut at = 0;
    while at < PREDEFINED.len() {
        types[(PREDEFINED[at].handle - HANDLE_PAGE) as usize] = Some(PREDEFINED[at]);
        at += 1;
    }
    types
};

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
    (0x208, 0x209, 0x22c), // SHORT, INT, SHORT_INT
    (0x209, 0x209, 0x22b), // INT, INT, 2INT
    (0x20a, 0x209, 0x22a), // LONG, INT, LONG_INT
    (0x210, 0x209, 0x228), // FLOAT, INT, FLOAT_INT
    (0x214, 0x209, 0x229), // DOUBLE, INT, DOUBLE_INT
    (0x220, 0x209, 0x22d), // LONG_DOUBLE, INT, LONG_DOUBLE_INT
    (0x219, 0x219, 0x232), // INTEGER, INTEGER, 2INTEGER
    (0x21a, 0x21a, 0x230), // REAL, REAL, 2REAL
    (0x21c, 0x21c, 0x231), // DOUBLE_PRECISION, DOUBLE_PRECISION, 2DOUBLE_PRECISION
];

/// The predefined pair type of a value and an index type (`MPI_Type_get_value_index`). Types
/// of equal layout are not interchangeable here: `MPI_FLOAT` is not `MPI_REAL`.
#[must_use]
pub fn value_index(value: &Type, index: &Type) -> Option<TypeRef> {
    let members = (value.handle, index.handle);
    let found = PAIRS.iter().find(|pair| (pair.0, pair.1) == members)?;
    predefined(found.2)
}
