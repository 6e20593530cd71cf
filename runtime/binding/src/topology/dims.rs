//! The choice of dimensions (MPI-4.1 section 8.5.2).

use crate::arguments::{Call, Outcome, length};
use crate::passed::InOutArray;
use alloc::vec::Vec;
use cohort_abi::{Abi, neutral};
use core::cell::Cell;
use core::ffi::c_int;

/// The smallest number whose `power`-th power is at least `value`.
fn root(value: c_int, power: usize) -> c_int {
    let reaches = |base: &c_int| {
        let product = (0..power).try_fold(1_i64, |product, _| {
            Some(product * i64::from(*base)).filter(|&product| product < i64::from(value))
        });
        product.is_none()
    };
    (1..=value).find(reaches).unwrap_or(value)
}

/// Splits `nodes` into `count` factors as equal as divisors allow, the largest first.
fn balance(nodes: c_int, count: usize) -> Vec<c_int> {
    let mut rest = nodes;
    let mut factors: Vec<c_int> = (1..=count)
        .rev()
        .map(|left| {
            let least = root(rest, left);
            let divisor = (least..rest).find(|factor| rest % factor == 0);
            let factor = divisor.unwrap_or(rest);
            rest /= factor;
            factor
        })
        .collect();
    factors.sort_unstable_by(|a, b| b.cmp(a));
    factors
}

/// Fills the entries of `dims` that are 0.
fn fill(nodes: c_int, dims: &mut [c_int]) -> Outcome<()> {
    let fixed = dims
        .iter()
        .filter(|&&dim| dim != 0)
        .try_fold(1_i64, |product, &dim| {
            if dim > 0 {
                product.checked_mul(dim.into())
            } else {
                None
            }
        });
    let fixed = fixed.ok_or(neutral::ERR_DIMS)?;
    if nodes < 1 || i64::from(nodes) % fixed != 0 {
        return Err(neutral::ERR_DIMS.into());
    }
    let rest = (i64::from(nodes) / fixed) as c_int;
    let free: Vec<&mut c_int> = dims.iter_mut().filter(|dim| **dim == 0).collect();
    if free.is_empty() && rest != 1 {
        return Err(neutral::ERR_DIMS.into());
    }
    let factors = balance(rest, free.len());
    for (dim, factor) in free.into_iter().zip(factors) {
        *dim = factor;
    }
    Ok(())
}

/// `MPI_Dims_create`.
pub fn dims_create<A: Abi>(
    _call: &Call<'_, A>,
    nodes: c_int,
    count: c_int,
    dims: InOutArray<'_, c_int>,
) -> Outcome<()> {
    let count = length(count).map_err(|_| neutral::ERR_DIMS)?;
    if count == 0 {
        return if nodes == 1 {
            Ok(())
        } else {
            Err(neutral::ERR_DIMS.into())
        };
    }
    let dims = dims.entries(count)?;
    let mut filled: Vec<c_int> = dims.iter().map(Cell::get).collect();
    fill(nodes, &mut filled)?;
    dims.iter()
        .zip(filled)
        .for_each(|(dim, value)| dim.set(value));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_balanced_and_descend() {
        for (nodes, given, expected) in [
            (12, [0, 0, 0], [3, 2, 2]),
            (24, [0, 0, 0], [4, 3, 2]),
            (7, [0, 0, 0], [7, 1, 1]),
            (16, [0, 2, 0], [4, 2, 2]),
            (1, [0, 0, 0], [1, 1, 1]),
        ] {
            let mut dims = given;
            assert_eq!(fill(nodes, &mut dims), Ok(()));
            assert_eq!(dims, expected, "{nodes}");
        }
        assert_eq!(fill(7, &mut [2, 0]), Err(neutral::ERR_DIMS.into()));
        assert_eq!(fill(8, &mut [2, 2]), Err(neutral::ERR_DIMS.into()));
        assert_eq!(fill(8, &mut [-2, 0]), Err(neutral::ERR_DIMS.into()));
    }
}
