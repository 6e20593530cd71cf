//! The blocking form.

use super::described::Arguments;
use super::forms::Form;
use super::parts::Members;
use super::{apart, messages};
use crate::arguments::{Comm, Error, Outcome};
use cohort_engine::coll::{self, Call};

/// Runs the operation on this communicator, and waits for its end.
pub struct Blocking<'a>(pub &'a Comm);

impl Form for Blocking<'_> {
    #[inline(always)]
    fn with(self, arguments: impl Arguments) -> Outcome<()> {
        let Self(comm) = self;
        if let Some(inter) = comm.inter() {
            return inter.run(&arguments.call()).map_err(|error| inter.failure(error));
        }
        let (group, call) = (comm.collective(), arguments.call());
        apart::known(&group, &call)?;
        match call {
            Call::Neighbours { .. } => messages::run(comm, &call),
            _ => coll::run_known(&group, &call).map_err(|error| group.failure(error)),
        }
    }

    fn beside(self) -> Outcome<()> {
        Ok(())
    }

    fn refused(self, why: Error, instead: impl FnOnce(Error) -> Outcome<()>) -> Outcome<()> {
        instead(why)
    }
}
