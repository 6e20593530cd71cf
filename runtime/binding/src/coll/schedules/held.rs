//! Where the arguments of an operation lie that has not begun: with a record of its own, or with one that is kept.

use super::Arguments;
use crate::arguments::{Call, Outcome};
use crate::coll::parts::Members;
use crate::process::pending::Pending;
use crate::process::requests::{Describe, Operation, State};
use crate::process::spares::SpareCollective;
use cohort_abi::Abi;
use cohort_engine::Claim;
use cohort_engine::coll::{Group, Record};
use cohort_engine::rank_box::RankBox;

/// Arguments that stay where they are, and the record that is to go with them.
pub(super) enum Held {
    /// A new record.
    Fresh(RankBox<dyn Describe>, Record<'static>),
    /// One that is kept, in its slot.
    Spare(SpareCollective),
}

impl Held {
    /// Keeps the arguments, which are moved once only: inlined by force. By the holder of the rank's claim.
    ///
    /// # Errors
    /// No memory.
    #[inline(always)]
    pub(super) fn new<A: Abi>(
        call: &Call<'_, A>,
        claim: &mut Claim<'_>,
        group: &Group<'_>,
        arguments: Arguments<A>,
    ) -> Outcome<Self> {
        let is_plain = arguments.is_plain();
        let spare = call.pending().spares.last_collective();
        if let Some(spare) = spare.filter(|it| is_plain && it.takes::<Arguments<A>>()) {
            spare.describe(arguments);
            return Ok(Self::Spare(spare));
        }
        let record = match is_plain {
            true => Record::Plain,
            false => Record::Fresh,
        };
        let fresh = RankBox::<dyn Describe>::new(claim, arguments, |it| it);
        let fresh = fresh.map_err(|error| group.failure(error))?;
        Ok(Self::Fresh(fresh, record))
    }

    /// The arguments.
    #[inline]
    pub(super) fn arguments(&self) -> &dyn Describe {
        match self {
            Self::Fresh(arguments, _) => &**arguments,
            Self::Spare(spare) => spare.arguments(),
        }
    }

    /// The record.
    #[inline]
    pub(super) fn record(&self) -> Record<'_> {
        match self {
            Self::Fresh(_, record) => *record,
            Self::Spare(spare) => Record::Spent(&spare.operation().request),
        }
    }

    /// The arguments alone, for an operation that does not use the record.
    pub(super) fn into_arguments(
        self,
        pending: &Pending,
        claim: &mut Claim<'_>,
    ) -> RankBox<dyn Describe> {
        let spare = match self {
            Self::Fresh(arguments, _) => return arguments,
            Self::Spare(spare) => spare,
        };
        pending.spares.take_collective();
        match pending.requests.remove(claim, spare.index) {
            Some(State::Collective(Operation { request, .. }, arguments)) => {
                request.release(claim);
                arguments
            }
            _ => unreachable!("a spare is a collective"),
        }
    }
}
