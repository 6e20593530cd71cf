//! The constructors of MPI-4.1 section 5.1, but for arrays.
//!
//! Arguments are 64-bit in both forms; [`Form`] says how
//! [`Contents`] report them. Slices of one call have equal lengths (the caller's duty;
//! surplus entries are ignored).

use super::bounds::{Bounds, Collector, Marks, narrow};
use super::description::Description;
use super::program::Placed;
use super::{BoundsRule, Combiner, Contents, Form, Signature, Type, TypeError, TypeRef};
use alloc::vec::Vec;

/// `MPI_Type_contiguous`.
///
/// # Errors
/// Negative count, or overflow.
pub fn contiguous(count: i64, old: &TypeRef, form: impl Into<Form>) -> Result<TypeRef, TypeError> {
    let form = form.into();
    let contents = Contents::by(Combiner::Contiguous, form.bounds).with_counts(form, &[count]).with_type(old);
    check_count(count)?;
    strided(Strided { count: 1, block_length: count, stride: 0 }, old, contents)
}

/// `MPI_Type_vector`; `stride` in extents of `old`.
///
/// # Errors
/// Negative count or block length, or overflow.
pub fn vector(
    count: i64,
    block_length: i64,
    stride: i64,
    old: &TypeRef,
    form: impl Into<Form>,
) -> Result<TypeRef, TypeError> {
    let form = form.into();
    let contents =
        Contents::by(Combiner::Vector, form.bounds).with_counts(form, &[count, block_length, stride]).with_type(old);
    let stride = match count {
        // A stride that separates nothing may have any value.
        0 | 1 => 0,
        _ => narrow(i128::from(stride) * i128::from(old.extent()))?,
    };
    strided(Strided { count, block_length, stride }, old, contents)
}

/// `MPI_Type_create_hvector`; `stride` in bytes.
///
/// # Errors
/// Negative count or block length, or overflow.
pub fn hvector(
    count: i64,
    block_length: i64,
    stride: i64,
    old: &TypeRef,
    form: impl Into<Form>,
) -> Result<TypeRef, TypeError> {
    let form = form.into();
    let contents = Contents::by(Combiner::Hvector, form.bounds)
        .with_counts(form, &[count, block_length])
        .with_addresses(form, &[stride])
        .with_type(old);
    strided(Strided { count, block_length, stride }, old, contents)
}

/// `MPI_Type_indexed`; displacements in extents of `old`.
///
/// # Errors
/// Negative block length, or overflow.
pub fn indexed(
    block_lengths: &[i64],
    displacements: &[i64],
    old: &TypeRef,
    form: impl Into<Form>,
) -> Result<TypeRef, TypeError> {
    let form = form.into();
    let contents = Contents::by(Combiner::Indexed, form.bounds)
        .with_counts(form, &[block_lengths.len() as i64])
        .with_counts(form, block_lengths)
        .with_counts(form, displacements)
        .with_type(old);
    let displacements = scaled(displacements, old)?;
    blocks(block_lengths.iter().copied().zip(displacements), old, contents)
}

/// `MPI_Type_create_hindexed`; displacements in bytes.
///
/// # Errors
/// Negative block length, or overflow.
pub fn hindexed(
    block_lengths: &[i64],
    displacements: &[i64],
    old: &TypeRef,
    form: impl Into<Form>,
) -> Result<TypeRef, TypeError> {
    let form = form.into();
    let contents = Contents::by(Combiner::Hindexed, form.bounds)
        .with_counts(form, &[block_lengths.len() as i64])
        .with_counts(form, block_lengths)
        .with_addresses(form, displacements)
        .with_type(old);
    let displacements = displacements.iter().copied();
    blocks(block_lengths.iter().copied().zip(displacements), old, contents)
}

/// `MPI_Type_create_indexed_block`; displacements in extents of `old`.
///
/// # Errors
/// Negative block length, or overflow.
pub fn indexed_block(
    block_length: i64,
    displacements: &[i64],
    old: &TypeRef,
    form: impl Into<Form>,
) -> Result<TypeRef, TypeError> {
    let form = form.into();
    let contents = Contents::by(Combiner::IndexedBlock, form.bounds)
        .with_counts(form, &[displacements.len() as i64, block_length])
        .with_counts(form, displacements)
        .with_type(old);
    let displacements = scaled(displacements, old)?;
    blocks(displacements.into_iter().map(|disp| (block_length, disp)), old, contents)
}

/// `MPI_Type_create_hindexed_block`; displacements in bytes.
///
/// # Errors
/// Negative block length, or overflow.
pub fn hindexed_block(
    block_length: i64,
    displacements: &[i64],
    old: &TypeRef,
    form: impl Into<Form>,
) -> Result<TypeRef, TypeError> {
    let form = form.into();
    let contents = Contents::by(Combiner::HindexedBlock, form.bounds)
        .with_counts(form, &[displacements.len() as i64, block_length])
        .with_addresses(form, displacements)
        .with_type(old);
    blocks(displacements.iter().map(|&disp| (block_length, disp)), old, contents)
}

/// `MPI_Type_create_struct`; displacements in bytes. The extent is padded as a C compiler
/// pads a struct.
///
/// # Errors
/// Negative block length, or overflow.
pub fn struct_(
    block_lengths: &[i64],
    displacements: &[i64],
    types: &[TypeRef],
    form: impl Into<Form>,
) -> Result<TypeRef, TypeError> {
    let form = form.into();
    let mut contents = Contents::by(Combiner::Struct, form.bounds)
        .with_counts(form, &[block_lengths.len() as i64])
        .with_counts(form, block_lengths)
        .with_addresses(form, displacements);
    contents.types.extend_from_slice(types);
    let mut collector = Collector::default();
    let (mut size, mut alignment) = (0_i128, 1);
    let mut placed = Vec::with_capacity(types.len());
    let members = block_lengths.iter().zip(displacements).zip(types);
    for ((&length, &disp), member) in members {
        size += add_block(&mut collector, length, disp, member)?;
        if length > 0 && member.size > 0 {
            alignment = alignment.max(member.alignment);
            placed.push((length, disp, member));
        }
    }
    let size = narrow(size)?;
    let bounds = collector.finish(alignment)?;
    let parts = placed.iter().map(|&(length, disp, member)| place_block(length, disp, member));
    let signatures = placed.iter().map(|(length, _, member)| member.signature.repeat(*length as u64));
    Ok(TypeRef::new(Description {
        size,
        bounds,
        alignment,
        placed: Placed::sequence(parts),
        signature: Signature::sequence(signatures),
        contents,
    }))
}

/// `MPI_Type_create_resized`.
///
/// # Errors
/// Overflow of the upper bound.
pub fn resized(old: &TypeRef, lb: i64, extent: i64, form: impl Into<Form>) -> Result<TypeRef, TypeError> {
    let form = form.into();
    let contents = Contents::by(Combiner::Resized, form.bounds).with_addresses(form, &[lb, extent]).with_type(old);
    let ub = lb.checked_add(extent).ok_or(TypeError::Overflow)?;
    let bounds = Bounds { lb, ub, marks: Marks::of_set(form.bounds), ..old.bounds };
    Ok(derived(old, bounds, old.placed.clone(), contents))
}

/// `MPI_Type_dup`.
#[must_use]
pub fn dup(old: &TypeRef) -> TypeRef {
    let contents = Contents::of(Combiner::Dup).with_type(old);
    derived(old, old.bounds, old.placed.clone(), contents)
}

/// The unnamed predefined types of `MPI_Type_create_f90_real`, `_complex` and `_integer`:
/// `old` is the type that holds the requested precision and range, `arguments` what was asked.
#[must_use]
pub fn f90(combiner: Combiner, arguments: &[i32], old: &TypeRef) -> TypeRef {
    let contents = Contents::of(combiner).with_integers(arguments);
    derived(old, old.bounds, old.placed.clone(), contents)
}

/// A type with the data of `old`.
fn derived(old: &TypeRef, bounds: Bounds, placed: Placed, contents: Contents) -> TypeRef {
    TypeRef::new(Description {
        size: old.size,
        bounds,
        alignment: old.alignment,
        placed,
        signature: old.signature.clone(),
        contents,
    })
}

pub(super) fn check_count(value: i64) -> Result<(), TypeError> {
    if value < 0 { Err(TypeError::NegativeCount { value }) } else { Ok(()) }
}

fn scaled(displacements: &[i64], old: &TypeRef) -> Result<Vec<i64>, TypeError> {
    let extent = i128::from(old.extent());
    displacements.iter().map(|&disp| narrow(i128::from(disp) * extent)).collect()
}

/// Adds `length` consecutive elements at `disp` to the bounds; returns their size.
fn add_block(collector: &mut Collector, length: i64, disp: i64, member: &Type) -> Result<i128, TypeError> {
    check_count(length)?;
    if length == 0 {
        return Ok(0);
    }
    let first = i128::from(disp);
    let last = first + i128::from(length - 1) * i128::from(member.extent());
    collector.add(first.min(last), first.max(last), &member.bounds, member.size > 0);
    Ok(i128::from(length) * i128::from(member.size))
}

/// What the extent of a type of one kind of members is padded to.
fn padding(old: &Type, rule: BoundsRule) -> i64 {
    match rule {
        BoundsRule::Standard if old.size > 0 => old.alignment,
        _ => 1,
    }
}

fn place_block(length: i64, disp: i64, member: &Type) -> Placed {
    let block = member.placed.repeat(length as u64, member.extent());
    Placed { disp: block.disp.wrapping_add(disp), node: block.node }
}

/// The geometry of a vector; `stride` in bytes.
struct Strided {
    count: i64,
    block_length: i64,
    stride: i64,
}

fn strided(shape: Strided, old: &TypeRef, contents: Contents) -> Result<TypeRef, TypeError> {
    let Strided { count, block_length, stride } = shape;
    check_count(count)?;
    check_count(block_length)?;
    let mut collector = Collector::default();
    let copies = i128::from(count) * i128::from(block_length);
    if copies > 0 {
        let blocks = i128::from(count - 1) * i128::from(stride);
        let elements = i128::from(block_length - 1) * i128::from(old.extent());
        let low = blocks.min(0) + elements.min(0);
        let high = blocks.max(0) + elements.max(0);
        collector.add(low, high, &old.bounds, old.size > 0);
    }
    let copies = narrow(copies)?;
    let size = narrow(i128::from(copies) * i128::from(old.size))?;
    Ok(TypeRef::new(Description {
        size,
        bounds: collector.finish(padding(old, contents.bounds))?,
        alignment: old.alignment,
        placed: old.placed.repeat(block_length as u64, old.extent()).repeat(count as u64, stride),
        signature: old.signature.repeat(copies as u64),
        contents,
    }))
}

fn blocks(
    list: impl Iterator<Item = (i64, i64)> + Clone,
    old: &TypeRef,
    contents: Contents,
) -> Result<TypeRef, TypeError> {
    let mut collector = Collector::default();
    let (mut size, mut copies) = (0_i128, 0_i128);
    for (length, disp) in list.clone() {
        size += add_block(&mut collector, length, disp, old)?;
        copies += i128::from(length);
    }
    let size = narrow(size)?;
    let copies = narrow(copies)?;
    let parts = list.filter(|(length, _)| *length > 0).map(|(length, disp)| place_block(length, disp, old));
    Ok(TypeRef::new(Description {
        size,
        bounds: collector.finish(padding(old, contents.bounds))?,
        alignment: old.alignment,
        placed: Placed::sequence(parts),
        signature: old.signature.repeat(copies as u64),
        contents,
    }))
}
