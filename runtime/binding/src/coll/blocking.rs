//! The blocking form.

use super::apart;
use super::described::{Arguments, Beside};
use super::forms::Form;
use super::parts::Members;
use crate::arguments::{Comm, Error, Outcome};
use cohort_engine::coll::{self, Call, Group, Scan};

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
        if let Err(why) = apart::known(&group, &call) {
            return take_part(&group, &call, why);
        }
        coll::run_known(&group, &call).map_err(|error| group.failure(error))
    }

    fn beside(self) -> Outcome<()> {
        // The communicator may have been revoked.
        self.with(Beside {})
    }

    fn refused(self, why: Error, instead: impl FnOnce(Error) -> Outcome<()>) -> Outcome<()> {
        instead(why)
    }
}

/// What a member does whose buffers overlap, which is an error. The first member of an exclusive scan may give the same
/// buffers: it has no result, and so no error, but would wait for the others.
#[cold]
fn take_part(group: &Group<'_>, call: &Call<'_>, why: Error) -> Outcome<()> {
    if let Call::Scan { kind: Scan::Exclusive, reduction } = call {
        let in_place = Call::Scan { kind: Scan::Exclusive, reduction: reduction.in_place() };
        // This member's own error is the one to tell.
        let _ = coll::run(group, &in_place);
    }
    Err(why)
}
