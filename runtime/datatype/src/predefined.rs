//! The predefined datatypes, by the MPI-5 ABI's handle values.

use super::program::{Block, Kind, Node, Placed, Table};
use super::{Basic, Type, TypeRef};

const fn entry(handle: u32, basic: Basic, name: &'static str) -> Type {
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
    Type::of_basic(basic, Placed { disp: 0, node }, handle, name)
}

static PREDEFINED: [Type; 71] = [
    entry(0x00000201, Basic::Aint, "MPI_AINT"),
    entry(0x00000202, Basic::Count, "MPI_COUNT"),
    entry(0x00000203, Basic::Offset, "MPI_OFFSET"),
    entry(0x00000207, Basic::Packed, "MPI_PACKED"),
    entry(0x00000208, Basic::I16, "MPI_SHORT"),
    entry(0x00000209, Basic::I32, "MPI_INT"),
    entry(0x0000020a, Basic::I64, "MPI_LONG"),
    entry(0x0000020b, Basic::I64, "MPI_LONG_LONG"),
    entry(0x0000020c, Basic::U16, "MPI_UNSIGNED_SHORT"),
    entry(0x0000020d, Basic::U32, "MPI_UNSIGNED"),
    entry(0x0000020e, Basic::U64, "MPI_UNSIGNED_LONG"),
    entry(0x0000020f, Basic::U64, "MPI_UNSIGNED_LONG_LONG"),
    entry(0x00000210, Basic::F32, "MPI_FLOAT"),
    entry(0x00000212, Basic::C32, "MPI_C_FLOAT_COMPLEX"),
    entry(0x00000213, Basic::C32, "MPI_CXX_FLOAT_COMPLEX"),
    entry(0x00000214, Basic::F64, "MPI_DOUBLE"),
    entry(0x00000216, Basic::C64, "MPI_C_DOUBLE_COMPLEX"),
    entry(0x00000217, Basic::C64, "MPI_CXX_DOUBLE_COMPLEX"),
    entry(0x00000218, Basic::Logical4, "MPI_LOGICAL"),
    entry(0x00000219, Basic::I32, "MPI_INTEGER"),
    entry(0x0000021a, Basic::F32, "MPI_REAL"),
    entry(0x0000021b, Basic::C32, "MPI_COMPLEX"),
    entry(0x0000021c, Basic::F64, "MPI_DOUBLE_PRECISION"),
    entry(0x0000021d, Basic::C64, "MPI_DOUBLE_COMPLEX"),
    entry(0x0000021e, Basic::Char, "MPI_CHARACTER"),
    entry(0x00000220, Basic::F80, "MPI_LONG_DOUBLE"),
    entry(0x00000224, Basic::C80, "MPI_C_LONG_DOUBLE_COMPLEX"),
    entry(0x00000225, Basic::C80, "MPI_CXX_LONG_DOUBLE_COMPLEX"),
    entry(0x00000228, Basic::FloatInt, "MPI_FLOAT_INT"),
    entry(0x00000229, Basic::DoubleInt, "MPI_DOUBLE_INT"),
    entry(0x0000022a, Basic::LongInt, "MPI_LONG_INT"),
    entry(0x0000022b, Basic::TwoInt, "MPI_2INT"),
    entry(0x0000022c, Basic::ShortInt, "MPI_SHORT_INT"),
    entry(0x0000022d, Basic::LongDoubleInt, "MPI_LONG_DOUBLE_INT"),
    entry(0x00000230, Basic::TwoReal, "MPI_2REAL"),
    entry(0x00000231, Basic::TwoDouble, "MPI_2DOUBLE_PRECISION"),
    entry(0x00000232, Basic::TwoInt, "MPI_2INTEGER"),
    entry(0x00000238, Basic::Bool, "MPI_C_BOOL"),
    entry(0x00000239, Basic::Bool, "MPI_CXX_BOOL"),
    entry(0x0000023c, Basic::Wchar, "MPI_WCHAR"),
    entry(0x00000240, Basic::I8, "MPI_INT8_T"),
    entry(0x00000241, Basic::U8, "MPI_UINT8_T"),
    entry(0x00000243, Basic::Char, "MPI_CHAR"),
    entry(0x00000244, Basic::I8, "MPI_SIGNED_CHAR"),
    entry(0x00000245, Basic::U8, "MPI_UNSIGNED_CHAR"),
    entry(0x00000247, Basic::Byte, "MPI_BYTE"),
    entry(0x00000248, Basic::I16, "MPI_INT16_T"),
    entry(0x00000249, Basic::U16, "MPI_UINT16_T"),
    entry(0x0000024a, Basic::F16, "MPIX_C_FLOAT16"),
    entry(0x00000250, Basic::I32, "MPI_INT32_T"),
    entry(0x00000251, Basic::U32, "MPI_UINT32_T"),
    entry(0x00000258, Basic::I64, "MPI_INT64_T"),
    entry(0x00000259, Basic::U64, "MPI_UINT64_T"),
    entry(0x000002c0, Basic::Logical1, "MPI_LOGICAL1"),
    entry(0x000002c1, Basic::I8, "MPI_INTEGER1"),
    entry(0x000002c8, Basic::Logical2, "MPI_LOGICAL2"),
    entry(0x000002c9, Basic::I16, "MPI_INTEGER2"),
    entry(0x000002ca, Basic::F16, "MPI_REAL2"),
    entry(0x000002d0, Basic::Logical4, "MPI_LOGICAL4"),
    entry(0x000002d1, Basic::I32, "MPI_INTEGER4"),
    entry(0x000002d2, Basic::F32, "MPI_REAL4"),
    entry(0x000002d3, Basic::C16, "MPI_COMPLEX4"),
    entry(0x000002d8, Basic::Logical8, "MPI_LOGICAL8"),
    entry(0x000002d9, Basic::I64, "MPI_INTEGER8"),
    entry(0x000002da, Basic::F64, "MPI_REAL8"),
    entry(0x000002db, Basic::C32, "MPI_COMPLEX8"),
    entry(0x000002e0, Basic::Logical16, "MPI_LOGICAL16"),
    entry(0x000002e1, Basic::I128, "MPI_INTEGER16"),
    entry(0x000002e2, Basic::F128, "MPI_REAL16"),
    entry(0x000002e3, Basic::C64, "MPI_COMPLEX16"),
    entry(0x000002eb, Basic::C128, "MPI_COMPLEX32"),
];

/// Handle values of predefined datatypes lie in one page of this many values.
const HANDLE_PAGE: u32 = 0x200;

/// For each handle of the page, its index in [`PREDEFINED`] plus one.
static INDEX: [u8; 256] = {
    let mut index = [0; 256];
    let mut at = 0;
    while at < PREDEFINED.len() {
        index[(PREDEFINED[at].handle - HANDLE_PAGE) as usize] = at as u8 + 1;
        at += 1;
    }
    index
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
    let slot = *INDEX.get(handle.checked_sub(HANDLE_PAGE)? as usize)?;
    PREDEFINED.get(usize::from(slot).checked_sub(1)?)
}

/// All predefined datatypes, in the order of their handles.
pub fn predefined_all() -> impl Iterator<Item = TypeRef> {
    PREDEFINED.iter().map(TypeRef::of_static)
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
