//! Lower and upper bounds of datatypes (MPI-4.1 sections 5.1.6 to 5.1.8).
//!
//! `MPI_Type_create_resized` sets the bounds of the type it makes. In a struct the bounds of
//! such a member count like those of any other, and the extent is padded as usual. (The
//! standard's conceptual markers would let them prevail over the other members' bounds;
//! MPICH dropped that together with `MPI_LB` and `MPI_UB`, and we do as programs see it there.)

use super::{Basic, TypeError};

/// Offsets, in bytes from the buffer's address, between which a datatype lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) lb: i64,
    pub(super) ub: i64,
    pub(super) true_lb: i64,
    pub(super) true_ub: i64,
}

impl Bounds {
    pub(super) const fn of_basic(basic: Basic) -> Self {
        let true_ub = match basic {
            // The index lies behind two bytes of padding.
            Basic::ShortInt => 8,
            _ => basic.size(),
        };
        Self { lb: 0, ub: basic.extent(), true_lb: 0, true_ub }
    }
}

/// Narrows to 64 bits.
pub(super) fn narrow(value: i128) -> Result<i64, TypeError> {
    i64::try_from(value).map_err(|_| TypeError::Overflow)
}

/// Collects the bounds of members; sums are exact in 128 bits until [`Collector::finish`].
#[derive(Default)]
pub(super) struct Collector {
    outer: Option<(i128, i128)>,
    data: Option<(i128, i128)>,
}

impl Collector {
    /// Adds copies of a member whose displacements have the extremes `low` and `high`.
    pub(super) fn add(&mut self, low: i128, high: i128, member: &Bounds, has_data: bool) {
        if !has_data && member.lb == member.ub {
            // An empty type map has no bounds to contribute.
            return;
        }
        let shifted = |from: i64, to: i64| (low + i128::from(from), high + i128::from(to));
        widen(&mut self.outer, shifted(member.lb, member.ub));
        if has_data {
            widen(&mut self.data, shifted(member.true_lb, member.true_ub));
        }
    }

    /// The bounds of all members; `alignment` rounds the extent up as a C compiler pads a
    /// struct.
    pub(super) fn finish(self, alignment: i64) -> Result<Bounds, TypeError> {
        let (true_lb, true_ub) = self.data.unwrap_or((0, 0));
        let (lb, ub) = self.outer.unwrap_or((0, 0));
        let alignment = i128::from(alignment);
        let ub = lb + (ub - lb + alignment - 1).div_euclid(alignment) * alignment;
        // The differences must fit as well: they are the extents.
        narrow(ub - lb)?;
        narrow(true_ub - true_lb)?;
        Ok(Bounds { lb: narrow(lb)?, ub: narrow(ub)?, true_lb: narrow(true_lb)?, true_ub: narrow(true_ub)? })
    }
}

fn widen(slot: &mut Option<(i128, i128)>, (low, high): (i128, i128)) {
    *slot = Some(match *slot {
        None => (low, high),
        Some((old_low, old_high)) => (old_low.min(low), old_high.max(high)),
    });
}
