//! The choice of dimensions (MPI-4.1 section 8.5.2).

use crate::arguments::{Call, Outcome, length};
use alloc::vec::Vec;
use cohort_abi::parameters::InOutArray;
use cohort_abi::{Abi, neutral};
use core::cell::Cell;
use core::ffi::c_int;

/// The smallest number whose `power`-th power is at least `value`.
fn root(value: c_int, power: usize) -> c_int {
    let reaches = |base: c_int| {
        let product = (0..power).try_fold(1_i64, |product, _| {
            Some(product * i64::from(base)).filter(|&product| product < i64::from(value))
        });
        product.is_none()
    };
    let (mut small, mut large) = (0, value);
    while large - small > 1 {
        let middle = small + (large - small) / 2;
        match reaches(middle) {
            true => large = middle,
            false => small = middle,
        }
    }
    large
}

/// Splits `nodes`, which has these divisors, into `count` factors, each as small as the next larger divisor allows.
/// They need not be the most equal.
fn nearly_equal(nodes: c_int, count: usize, divisors: &[c_int]) -> Vec<c_int> {
    let mut rest = nodes;
    let mut factors: Vec<c_int> = (1..=count)
        .rev()
        .map(|left| {
            let least = root(rest, left);
            let large = divisors.partition_point(|&divisor| divisor < least);
            let mut fitting = divisors[large..].iter();
            let factor = fitting.find(|&&factor| rest % factor == 0);
            let factor = factor.copied().unwrap_or(rest);
            rest /= factor;
            factor
        })
        .collect();
    factors.sort_unstable_by(|a, b| b.cmp(a));
    factors
}

/// All divisors, in order.
fn divisors(value: c_int) -> Vec<c_int> {
    let (mut all, mut rest, mut prime) = (alloc::vec![1], value, 2);
    while prime <= rest / prime {
        rest = without(rest, prime, &mut all);
        prime += if prime == 2 { 1 } else { 2 };
    }
    // No smaller number has divided what is left.
    if rest > 1 {
        without(rest, rest, &mut all);
    }
    all.sort_unstable();
    all
}

/// Takes a prime out of a number, as often as it is there, and adds the divisors that have it.
fn without(number: c_int, prime: c_int, divisors: &mut Vec<c_int>) -> c_int {
    let (known, mut power, mut rest) = (divisors.len(), 1, number);
    while rest % prime == 0 {
        rest /= prime;
        power *= prime;
        for at in 0..known {
            divisors.push(divisors[at] * power);
        }
    }
    rest
}

/// The search for the factors whose largest and smallest differ least.
struct Search {
    /// Divisors of the number to split, the largest first.
    divisors: Vec<c_int>,
    /// Factors chosen so far, the largest first.
    chosen: Vec<c_int>,
    best: Vec<c_int>,
}

impl Search {
    fn difference(factors: &[c_int]) -> c_int {
        factors[0] - factors[factors.len() - 1]
    }

    /// Tries all ways to split `rest` into `left` factors that are divisors from `first` on.
    fn split(&mut self, rest: c_int, left: usize, first: usize) {
        if left == 0 {
            let is_better = Self::difference(&self.chosen) < Self::difference(&self.best);
            if rest == 1 && is_better {
                self.best.clone_from(&self.chosen);
            }
            return;
        }
        let least = root(rest, left);
        for index in first..self.divisors.len() {
            let factor = self.divisors[index];
            // The largest that are left are too small, or so much smaller than the first that the best is no worse.
            let apart = self.chosen.first().map_or(0, |largest| largest - factor);
            if factor < least || apart >= Self::difference(&self.best) && !self.chosen.is_empty() {
                return;
            }
            if rest % factor == 0 {
                self.chosen.push(factor);
                self.split(rest / factor, left - 1, index);
                self.chosen.pop();
            }
        }
    }
}

/// Splits `nodes` into `count` factors as equal as divisors allow, the largest first.
fn balance(nodes: c_int, count: usize) -> Vec<c_int> {
    let mut divisors = divisors(nodes);
    let best = nearly_equal(nodes, count, &divisors);
    if count < 2 || Search::difference(&best) == 0 {
        return best;
    }
    // One factor is the root or less, so none of a better choice is larger than the root and the difference.
    let most = root(nodes, count).saturating_add(Search::difference(&best));
    divisors.retain(|&divisor| divisor <= most);
    divisors.reverse();
    let mut search = Search { divisors, chosen: Vec::new(), best };
    search.split(nodes, count, 0);
    search.best
}

/// Fills the entries of `dims` that are 0.
fn fill(nodes: c_int, dims: &mut [c_int]) -> Outcome<()> {
    let fixed = dims
        .iter()
        .filter(|&&dim| dim != 0)
        .try_fold(1_i64, |product, &dim| if dim > 0 { product.checked_mul(dim.into()) } else { None });
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
        return if nodes == 1 { Ok(()) } else { Err(neutral::ERR_DIMS.into()) };
    }
    let dims = dims.entries(count)?;
    let mut filled: Vec<c_int> = dims.iter().map(Cell::get).collect();
    fill(nodes, &mut filled)?;
    dims.iter().zip(filled).for_each(|(dim, value)| dim.set(value));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors_and_roots_are_those_that_trying_all_finds() {
        for value in 1..3000 {
            let all: Vec<c_int> = (1..=value).filter(|it| value % it == 0).collect();
            assert_eq!(divisors(value), all, "{value}");
            for power in 1..5 {
                let least = (1..=value).find(|it| i64::from(*it).pow(power) >= value.into());
                assert_eq!(Some(root(value, power as usize)), least, "{value}, {power}");
            }
        }
        assert_eq!(divisors(c_int::MAX), [1, c_int::MAX]);
        // A product of two primes near the root of the largest number.
        assert_eq!(divisors(46_337 * 46_327), [1, 46_327, 46_337, 46_337 * 46_327]);
        assert_eq!(root(c_int::MAX, 2), 46_341);
    }

    #[test]
    fn factors_differ_as_little_as_they_can() {
        // By trying all.
        fn least(nodes: c_int, count: usize, largest: c_int, first: c_int) -> Option<c_int> {
            if count == 1 {
                return (nodes <= largest).then_some(first.max(nodes) - nodes);
            }
            (1..=largest.min(nodes))
                .filter(|factor| nodes % factor == 0)
                .filter_map(|factor| least(nodes / factor, count - 1, factor, first.max(factor)))
                .min()
        }
        for nodes in 1..700 {
            for count in 1..5 {
                let factors = balance(nodes, count);
                assert_eq!(factors.iter().product::<c_int>(), nodes);
                assert!(factors.is_sorted_by(|a, b| a >= b));
                let expected = least(nodes, count, nodes, 0);
                assert_eq!(Some(Search::difference(&factors)), expected, "{nodes} in {count}");
            }
        }
        assert_eq!(balance(936, 3), [13, 9, 8]);
        assert_eq!(balance(c_int::MAX, 2), [c_int::MAX, 1]);
        assert_eq!(balance(735_134_400, 9).iter().product::<c_int>(), 735_134_400);
        assert_eq!(balance(1 << 30, 20)[..11], [4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 2]);
    }

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
