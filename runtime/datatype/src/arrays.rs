//! `MPI_Type_create_subarray` and `MPI_Type_create_darray`.
//!
//! Both describe a part of an n-dimensional array: per dimension blocks of indices at one distance, the last of which
//! may be shorter, from the fastest dimension outwards. Their lower bound is 0 and their extent the whole
//! array's, so that consecutive elements are consecutive arrays.

use super::bounds::{Bounds, Marks, narrow};
use super::description::Description;
use super::program::Placed;
use super::{Combiner, Contents, Form, TypeError, TypeRef};
use alloc::vec::Vec;

/// Which index of an array varies fastest; the discriminants are the MPI-5 ABI's.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayOrder {
    /// The last one.
    C = 12,
    /// The first one.
    Fortran = 15,
}

/// How one dimension of a distributed array is dealt to processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// `MPI_DISTRIBUTE_NONE`: not distributed. Its argument only comes back in the type's contents.
    None(Option<i64>),
    /// `MPI_DISTRIBUTE_BLOCK`; `None` is `MPI_DISTRIBUTE_DFLT_DARG`.
    Block(Option<i64>),
    /// `MPI_DISTRIBUTE_CYCLIC`; `None` is `MPI_DISTRIBUTE_DFLT_DARG`, that is 1.
    Cyclic(Option<i64>),
}

impl Distribution {
    /// What stands for `MPI_DISTRIBUTE_DFLT_DARG` in the contents of a type.
    pub const DEFAULT_ARGUMENT: i32 = i32::MIN;

    /// The distribution of the MPI-5 ABI, and its argument.
    fn neutral(self) -> (i32, i32) {
        let argument = |value: Option<i64>| value.map_or(Self::DEFAULT_ARGUMENT, |value| value as i32);
        match self {
            Self::None(value) => (16, argument(value)),
            Self::Block(value) => (17, argument(value)),
            Self::Cyclic(value) => (18, argument(value)),
        }
    }
}

/// Indices of one dimension: `length` from `start` on, and so again every `round`, `count` times in all; then perhaps
/// fewer.
#[derive(Clone, Copy)]
struct Share {
    start: i64,
    length: i64,
    round: i64,
    count: i64,
    /// Where the shorter last block begins, and its length, which may be 0.
    rest: (i64, i64),
}

impl Share {
    /// One block.
    fn block(start: i64, length: i64) -> Self {
        Self { start, length, round: 0, count: 1, rest: (0, 0) }
    }

    /// Blocks from `start` on, one in each `round`, as far as there are indices. `start + length` is at most `round`.
    fn dealt(start: i64, length: i64, round: i64, size: i64) -> Self {
        let count = match size - length {
            last if last < start => 0,
            last => (last - start) / round + 1,
        };
        // What does not fit in 63 bits is beyond the last index.
        let next = count.checked_mul(round).and_then(|rounds| rounds.checked_add(start));
        let rest = next.filter(|&next| next < size).map_or((0, 0), |next| (next, size - next));
        Self { start, length, round, count, rest }
    }

    /// How many indices.
    fn indices(&self) -> i64 {
        self.count * self.length + self.rest.1
    }

    /// The first and the last index, if there is one.
    fn ends(&self) -> Option<(i64, i64)> {
        let last = || self.start + (self.count - 1) * self.round + self.length - 1;
        let blocks = (self.count > 0).then(|| (self.start, last()));
        let rest = (self.rest.1 > 0).then(|| (self.rest.0, self.rest.0 + self.rest.1 - 1));
        match (blocks, rest) {
            (Some((first, _)), Some((_, last))) => Some((first, last)),
            (blocks, rest) => blocks.or(rest),
        }
    }

    /// Elements that are `stride` bytes apart, at these indices.
    fn placed(&self, element: &Placed, stride: i64) -> Placed {
        let moved = |part: Placed, start: i64| {
            let disp = part.disp.wrapping_add(start.wrapping_mul(stride));
            Placed { disp, ..part }
        };
        let block = element.repeat(self.length as u64, stride);
        let blocks = block.repeat(self.count as u64, self.round.wrapping_mul(stride));
        let rest = element.repeat(self.rest.1 as u64, stride);
        Placed::sequence([moved(blocks, self.start), moved(rest, self.rest.0)].into_iter())
    }
}

/// `MPI_Type_create_subarray`.
///
/// # Errors
/// [`TypeError::BadArray`] for a subarray that is empty or not inside its array, or overflow.
pub fn subarray(
    sizes: &[i64],
    subsizes: &[i64],
    starts: &[i64],
    order: ArrayOrder,
    old: &TypeRef,
    form: impl Into<Form>,
) -> Result<TypeRef, TypeError> {
    let dimensions = sizes.len();
    if dimensions == 0 {
        return Err(TypeError::BadArray { what: "ndims" });
    }
    let mut shares = Vec::with_capacity(dimensions);
    for ((&size, &length), &start) in sizes.iter().zip(subsizes).zip(starts) {
        if size < 1 {
            return Err(TypeError::BadArray { what: "array_of_sizes" });
        }
        if length < 1 || length > size {
            return Err(TypeError::BadArray { what: "array_of_subsizes" });
        }
        if start < 0 || start > size - length {
            return Err(TypeError::BadArray { what: "array_of_starts" });
        }
        shares.push(Share::block(start, length));
    }
    let form = form.into();
    let contents = Contents::by(Combiner::Subarray, form.bounds)
        .with_integers(&[dimensions as i32])
        .with_counts(form, sizes)
        .with_counts(form, subsizes)
        .with_counts(form, starts)
        .with_integers(&[order as i32])
        .with_type(old);
    array(sizes, &shares, order, old, contents)
}

/// `MPI_Type_create_darray` for process `rank` of `processes`.
///
/// # Errors
/// [`TypeError::BadArray`] for arguments that contradict each other, or overflow.
#[expect(clippy::too_many_arguments, reason = "the MPI procedure's own list")]
pub fn darray(
    processes: i64,
    rank: i64,
    sizes: &[i64],
    distributions: &[Distribution],
    grid: &[i64],
    order: ArrayOrder,
    old: &TypeRef,
    form: impl Into<Form>,
) -> Result<TypeRef, TypeError> {
    let dimensions = sizes.len();
    if dimensions == 0 {
        return Err(TypeError::BadArray { what: "ndims" });
    }
    let grid_size =
        grid.iter().try_fold(1_i64, |product, &extent| if extent < 1 { None } else { product.checked_mul(extent) });
    if grid_size != Some(processes) {
        return Err(TypeError::BadArray { what: "array_of_psizes" });
    }
    if !(0..processes).contains(&rank) {
        return Err(TypeError::BadArray { what: "rank" });
    }
    let mut shares = Vec::with_capacity(dimensions);
    // Processes are numbered in row-major order, whatever the array's order.
    let (mut rest, mut block) = (rank, processes);
    for ((&size, &distribution), &extent) in sizes.iter().zip(distributions).zip(grid) {
        block /= extent;
        let coordinate = rest / block;
        rest %= block;
        shares.push(owned(size, distribution, extent, coordinate)?);
    }
    let neutral = || distributions.iter().map(|distribution| distribution.neutral());
    let form = form.into();
    let mut contents = Contents::by(Combiner::Darray, form.bounds)
        .with_integers(&[processes as i32, rank as i32, dimensions as i32])
        .with_counts(form, sizes);
    contents.integers.extend(neutral().map(|(kind, _)| kind));
    contents.integers.extend(neutral().map(|(_, argument)| argument));
    contents.integers.extend(grid.iter().map(|&extent| extent as i32));
    let contents = contents.with_integers(&[order as i32]).with_type(old);
    array(sizes, &shares, order, old, contents)
}

/// The indices of one dimension that the process at `coordinate` of `extent` owns.
fn owned(size: i64, distribution: Distribution, extent: i64, coordinate: i64) -> Result<Share, TypeError> {
    let bad_argument = TypeError::BadArray { what: "array_of_dargs" };
    if size < 1 {
        return Err(TypeError::BadArray { what: "array_of_gsizes" });
    }
    let (length, cyclic) = match distribution {
        Distribution::None(_) if extent == 1 => (size, false),
        Distribution::None(_) => {
            return Err(TypeError::BadArray { what: "array_of_psizes" });
        }
        Distribution::Block(None) => ((size + extent - 1) / extent, false),
        Distribution::Block(Some(length)) => (length, false),
        Distribution::Cyclic(length) => (length.unwrap_or(1), true),
    };
    if length < 1 {
        return Err(bad_argument);
    }
    let round = length.checked_mul(extent).ok_or(TypeError::Overflow)?;
    if !cyclic && round < size {
        return Err(bad_argument);
    }
    Ok(Share::dealt(coordinate * length, length, round, size))
}

/// The elements of an array whose index in every dimension belongs to its share.
fn array(
    sizes: &[i64],
    shares: &[Share],
    order: ArrayOrder,
    old: &TypeRef,
    contents: Contents,
) -> Result<TypeRef, TypeError> {
    let extent = sizes
        .iter()
        .try_fold(i128::from(old.extent()), |product, &size| product.checked_mul(i128::from(size)))
        .ok_or(TypeError::Overflow)?;
    let extent = narrow(extent)?;
    let mut placed = old.placed.clone();
    let (mut copies, mut stride) = (1_i64, old.extent());
    let (mut low, mut high) = (0_i128, 0_i128);
    let dimensions = sizes.len();
    for step in 0..dimensions {
        let dimension = match order {
            ArrayOrder::Fortran => step,
            ArrayOrder::C => dimensions - 1 - step,
        };
        let share = &shares[dimension];
        placed = share.placed(&placed, stride);
        copies = copies.checked_mul(share.indices()).ok_or(TypeError::Overflow)?;
        if let Some((first, last)) = share.ends() {
            let shifts = [i128::from(first), i128::from(last)].map(|at| at * i128::from(stride));
            low += shifts[0].min(shifts[1]);
            high += shifts[0].max(shifts[1]);
        }
        stride = stride.checked_mul(sizes[dimension]).ok_or(TypeError::Overflow)?;
    }
    let size = narrow(i128::from(copies) * i128::from(old.size))?;
    let (true_lb, true_ub) = match size {
        0 => (0, 0),
        _ => (low + i128::from(old.true_lb()), high + i128::from(old.bounds.true_ub)),
    };
    let marks = Marks::of_set(contents.bounds);
    let bounds = Bounds { lb: 0, ub: extent, true_lb: narrow(true_lb)?, true_ub: narrow(true_ub)?, marks };
    Ok(TypeRef::new(Description {
        size,
        bounds,
        alignment: old.alignment,
        placed,
        signature: old.signature.repeat(copies as u64),
        contents,
    }))
}
