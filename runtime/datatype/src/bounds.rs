//! Lower and upper bounds of datatypes (MPI-4.1 sections 5.1.6 to 5.1.8).
//!
//! `MPI_Type_create_resized` and the constructors of arrays set the bounds of the type they make. What that means for
//! a type that is made of such ones, MPICH and the standard say differently: [`BoundsRule`].

use super::{Basic, TypeError};

/// How bounds follow from those of the members. Programs see the strides of arrays by it, so each gets the rule of the
/// MPI that it was built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundsRule {
    /// The standard's, and Open MPI's: bounds that were set prevail over those of other members, as markers of the type
    /// map, also when types are made of the type. Where no upper bound was set the extent of each type is padded to its
    /// alignment.
    Standard,
    /// MPICH's, which has no markers: bounds that were set count like all others, and of types with members of several
    /// kinds only structs are padded.
    Mpich,
}

/// Which bounds were set; none by [`BoundsRule::Mpich`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) lb: bool,
    pub(super) ub: bool,
}

impl Marks {
    /// Both were set.
    pub(super) fn of_set(rule: BoundsRule) -> Self {
        let is_marked = rule == BoundsRule::Standard;
        Self { lb: is_marked, ub: is_marked }
    }
}

/// Offsets, in bytes from the buffer's address, between which a datatype lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) lb: i64,
    pub(super) ub: i64,
    pub(super) true_lb: i64,
    pub(super) true_ub: i64,
    pub(super) marks: Marks,
}

impl Bounds {
    pub(super) const fn of_basic(basic: Basic) -> Self {
        let true_ub = match basic {
            // The index lies behind two bytes of padding.
            Basic::ShortInt => 8,
            _ => basic.size(),
        };
        Self { lb: 0, ub: basic.extent(), true_lb: 0, true_ub, marks: Marks { lb: false, ub: false } }
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
    /// The least lower bound and the greatest upper bound that were set.
    set: (Option<i128>, Option<i128>),
    data: Option<(i128, i128)>,
}

impl Collector {
    /// Adds copies of a member whose displacements have the extremes `low` and `high`.
    pub(super) fn add(&mut self, low: i128, high: i128, member: &Bounds, has_data: bool) {
        let Marks { lb, ub } = member.marks;
        if !has_data && member.lb == member.ub && !lb && !ub {
            // An empty type map has no bounds to contribute.
            return;
        }
        let shifted = |from: i64, to: i64| (low + i128::from(from), high + i128::from(to));
        let (lowest, highest) = shifted(member.lb, member.ub);
        widen(&mut self.outer, (lowest, highest));
        if lb {
            self.set.0 = Some(self.set.0.map_or(lowest, |old| old.min(lowest)));
        }
        if ub {
            self.set.1 = Some(self.set.1.map_or(highest, |old| old.max(highest)));
        }
        if has_data {
            widen(&mut self.data, shifted(member.true_lb, member.true_ub));
        }
    }

    /// The bounds of all members; `alignment` rounds the extent up as a C compiler pads a
    /// struct, unless the upper bound was set.
    pub(super) fn finish(self, alignment: i64) -> Result<Bounds, TypeError> {
        let (true_lb, true_ub) = self.data.unwrap_or((0, 0));
        let (lb, ub) = self.outer.unwrap_or((0, 0));
        let alignment = i128::from(alignment);
        let lb = self.set.0.unwrap_or(lb);
        let padded = lb + (ub - lb + alignment - 1).div_euclid(alignment) * alignment;
        let ub = self.set.1.unwrap_or(padded);
        let marks = Marks { lb: self.set.0.is_some(), ub: self.set.1.is_some() };
        // The differences must fit as well: they are the extents.
        narrow(ub - lb)?;
        narrow(true_ub - true_lb)?;
        Ok(Bounds { lb: narrow(lb)?, ub: narrow(ub)?, true_lb: narrow(true_lb)?, true_ub: narrow(true_ub)?, marks })
    }
}

fn widen(slot: &mut Option<(i128, i128)>, (low, high): (i128, i128)) {
    *slot = Some(match *slot {
        None => (low, high),
        Some((old_low, old_high)) => (old_low.min(low), old_high.max(high)),
    });
}
