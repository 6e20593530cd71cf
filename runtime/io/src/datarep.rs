//! Data representations (MPI-5.0 section 14.5). `native` and `internal` are the bytes of memory. `external32` has other
//! bytes, and for some types fewer: so etypes and filetypes have a form of their own there ([`in_file`]), and data is
//! converted ([`Converted`]) before it is written, and after it is read. Representations of programs say by [`Lengths`]
//! how long items are there, and [`Items`] counts them.

mod items;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use cohort_datatype::external::{self, Unfit};
use cohort_datatype::{
    ArrayOrder, Buffer, Combiner, CountForm, Form, TypeError, TypeRef, contiguous, dup, hindexed, hindexed_block,
    hvector, indexed, indexed_block, pack, resized, struct_, subarray, types, unpack, vector,
};

pub use items::{Items, Prefix};

/// Why data has no form in a representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatarepError {
    /// A value does not fit into its type there.
    Unfit(Unfit),
    /// No memory for the converted data.
    NoMemory,
    /// The type there cannot be made.
    Type(TypeError),
    /// Types that this constructor made of elements that are shorter there are not supported.
    Constructor(Combiner),
    /// The program's function has said so of the type of this name, with this code.
    Refused(&'static str, i32),
    /// The program's function has given this extent of the type of this name.
    Extent(&'static str, i64),
}

/// How long items of predefined types are in a file.
pub trait Lengths {
    /// Bytes of an item.
    ///
    /// # Errors
    /// What the program's function says.
    fn of(&self, item: &TypeRef) -> Result<i64, DatarepError>;

    /// Whether all items of a type are as long as in memory.
    ///
    /// # Errors
    /// As [`Lengths::of`].
    fn keeps(&self, datatype: &TypeRef) -> Result<bool, DatarepError>;
}

/// Those of `external32`.
#[derive(Clone, Copy, Debug)]
pub struct External32;

impl Lengths for External32 {
    fn of(&self, item: &TypeRef) -> Result<i64, DatarepError> {
        Ok(external::size(item))
    }

    fn keeps(&self, datatype: &TypeRef) -> Result<bool, DatarepError> {
        Ok(external::is_as_long(datatype))
    }
}

/// The form of an etype or a filetype in a file of other lengths. Displacements in bytes are those of the file, as the
/// standard says (MPI-5.0 section 14.5.1); all others are scaled.
///
/// # Errors
/// [`DatarepError::Type`], [`DatarepError::Constructor`]; of the lengths.
pub fn in_file(datatype: &TypeRef, lengths: &dyn Lengths) -> Result<TypeRef, DatarepError> {
    if lengths.keeps(datatype)? {
        return Ok(datatype.clone());
    }
    let contents = datatype.contents();
    // The form of the counts does not matter: nobody asks for the contents.
    let form = Form { counts: CountForm::Large, bounds: contents.bounds };
    let old = || match contents.types.first() {
        Some(old) => in_file(old, lengths),
        None => Err(DatarepError::Constructor(contents.combiner)),
    };
    // Both forms of a constructor have the same arguments in the same order.
    let counts = contents.integers.iter().map(|&it| i64::from(it)).chain(contents.addresses.iter().copied());
    let numbers: Vec<i64> = counts.chain(contents.counts.iter().copied()).collect();
    let numbers = numbers.as_slice();
    let first = numbers.first().map_or(0, |it| *it as usize);
    let made = match contents.combiner {
        Combiner::Named | Combiner::F90Real | Combiner::F90Complex | Combiner::F90Integer | Combiner::ValueIndex => {
            contiguous(items::length(datatype, lengths)?, &types::MPI_BYTE.to_ref(), form)
        }
        Combiner::Dup => Ok(dup(&old()?)),
        Combiner::Contiguous => contiguous(numbers[0], &old()?, form),
        Combiner::Vector => vector(numbers[0], numbers[1], numbers[2], &old()?, form),
        Combiner::Hvector => hvector(numbers[0], numbers[1], numbers[2], &old()?, form),
        Combiner::Resized => resized(&old()?, numbers[0], numbers[1], form),
        Combiner::Indexed | Combiner::Hindexed => {
            let (blocks, displacements) = numbers[1..].split_at(first);
            let make = if contents.combiner == Combiner::Indexed { indexed } else { hindexed };
            make(blocks, displacements, &old()?, form)
        }
        Combiner::IndexedBlock => indexed_block(numbers[1], &numbers[2..], &old()?, form),
        Combiner::HindexedBlock => hindexed_block(numbers[1], &numbers[2..], &old()?, form),
        Combiner::Struct => {
            let (blocks, displacements) = numbers[1..].split_at(first);
            let members: Result<Vec<_>, _> = contents.types.iter().map(|it| in_file(it, lengths)).collect();
            struct_(blocks, displacements, &members?, form)
        }
        Combiner::Subarray => array(contents, &old()?, form),
        Combiner::Darray => return Err(DatarepError::Constructor(Combiner::Darray)),
    };
    made.map_err(DatarepError::Type)
}

/// `MPI_Type_create_subarray`'s type of other elements.
fn array(contents: &cohort_datatype::Contents, old: &TypeRef, form: Form) -> Result<TypeRef, TypeError> {
    let [dimensions, between @ .., order] = contents.integers.as_slice() else {
        return Err(TypeError::BadArray { what: "ndims" });
    };
    let dimensions = *dimensions as usize;
    let order = if *order == ArrayOrder::C as i32 { ArrayOrder::C } else { ArrayOrder::Fortran };
    let numbers: Vec<i64> = between.iter().map(|&it| i64::from(it)).chain(contents.counts.iter().copied()).collect();
    let (sizes, rest) = numbers.split_at(dimensions);
    let (lengths, starts) = rest.split_at(dimensions);
    subarray(sizes, lengths, starts, order, old, form)
}

/// The data of a buffer as it is in a file of `external32`.
#[derive(Debug)]
pub struct Converted {
    bytes: Vec<u8>,
}

impl Converted {
    /// Room for the data of `buffer`.
    ///
    /// # Errors
    /// [`DatarepError::NoMemory`].
    pub fn room(buffer: &Buffer<'_>) -> Result<Self, DatarepError> {
        let bytes = external::size(buffer.datatype()) as u64 * buffer.count();
        Ok(Self { bytes: zeroed(bytes)? })
    }

    /// The data of `buffer`.
    ///
    /// # Errors
    /// [`DatarepError::NoMemory`], [`DatarepError::Unfit`].
    pub fn of(buffer: &Buffer<'_>) -> Result<Self, DatarepError> {
        let mut converted = Self::room(buffer)?;
        let mut packed = zeroed(buffer.bytes())?;
        // SAFETY: it has as many bytes, and is no part of the buffer.
        unsafe { pack(*buffer, 0, packed.as_mut_ptr(), packed.len() as u64) };
        external::encode(buffer.datatype(), &packed, &mut converted.bytes).map_err(DatarepError::Unfit)?;
        Ok(converted)
    }

    /// What is read or written in place of the buffer.
    pub fn as_buffer(&mut self) -> Buffer<'_> {
        // SAFETY: the bytes are borrowed as long as the buffer lives.
        unsafe { Buffer::of_bytes(self.bytes.as_mut_ptr(), self.bytes.len() as u64) }
    }

    /// Stores the elements that are whole in the first `bytes` bytes in `buffer`, whose room this was. Returns their
    /// bytes in memory.
    ///
    /// # Errors
    /// [`DatarepError::NoMemory`].
    pub fn store(&self, bytes: u64, buffer: &Buffer<'_>) -> Result<u64, DatarepError> {
        let mut packed = zeroed(buffer.bytes())?;
        let bytes = self.bytes.len().min(bytes as usize);
        let length = external::decode(buffer.datatype(), &self.bytes[..bytes], &mut packed);
        // SAFETY: it has as many bytes, and is no part of the buffer.
        Ok(unsafe { unpack(*buffer, 0, packed.as_ptr(), length) })
    }
}

fn zeroed(bytes: u64) -> Result<Vec<u8>, DatarepError> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(bytes as usize).map_err(|_| DatarepError::NoMemory)?;
    memory.resize(bytes as usize, 0);
    Ok(memory)
}
