//! Process topologies (MPI-4.1 chapter 8): so far only the choice of dimensions.

use crate::arguments::{Outcome, length, on_process, output};
use cohort_abi::{Abi, neutral};
use core::ffi::{c_int, c_void};

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

/// Splits `nodes` into factors as equal as divisors allow, the largest first.
fn balance(nodes: c_int, factors: &mut [&mut c_int]) {
    let (mut rest, count) = (nodes, factors.len());
    for index in 0..count {
        let least = root(rest, count - index);
        let factor = (least..rest)
            .find(|factor| rest % factor == 0)
            .unwrap_or(rest);
        *factors[index] = factor;
        rest /= factor;
    }
    // A factor may be larger than the one before it.
    for end in (1..count).rev() {
        for index in 0..end {
            if *factors[index] < *factors[index + 1] {
                let smaller = *factors[index];
                *factors[index] = *factors[index + 1];
                *factors[index + 1] = smaller;
            }
        }
    }
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
        return Err(neutral::ERR_DIMS);
    }
    let rest = (i64::from(nodes) / fixed) as c_int;
    let mut free: alloc::vec::Vec<&mut c_int> = dims.iter_mut().filter(|dim| **dim == 0).collect();
    if free.is_empty() && rest != 1 {
        return Err(neutral::ERR_DIMS);
    }
    balance(rest, &mut free);
    Ok(())
}

/// `MPI_Dims_create`.
///
/// # Safety
/// MPI's: `dims` has `count` entries; `caller` is the calling rank.
pub unsafe extern "C" fn dims_create<A: Abi>(
    caller: *const c_void,
    nodes: c_int,
    count: c_int,
    dims: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, |_| {
            let count = length(count).map_err(|_| neutral::ERR_DIMS)?;
            if count == 0 {
                return if nodes == 1 {
                    Ok(())
                } else {
                    Err(neutral::ERR_DIMS)
                };
            }
            output(dims)?;
            fill(nodes, core::slice::from_raw_parts_mut(dims, count))
        })
    }
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
        assert_eq!(fill(7, &mut [2, 0]), Err(neutral::ERR_DIMS));
        assert_eq!(fill(8, &mut [2, 2]), Err(neutral::ERR_DIMS));
        assert_eq!(fill(8, &mut [-2, 0]), Err(neutral::ERR_DIMS));
    }
}
