//! Going on after a failure: revoked communicators, who has failed, and communicators of the survivors.

use super::council::{Agreed, Agreeing, has_failed};
use super::{Comm, Numbering};
use crate::errhandler::Errhandler;
use crate::group::Group;
use crate::rendezvous::exhausted;
use crate::{Error, Outcome};
use alloc::boxed::Box;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::Peer;
use cohort_base::picture::{Fact, Told};
use cohort_base::sync::atomic::{AtomicU32, Ordering};
use cohort_engine::coll::{self, Roster};
use cohort_engine::waits::Awaited;
use cohort_engine::{Claim, Rank};
use core::cell::RefCell;

impl Comm {
    /// Everybody, in an order that is the same at all members.
    pub(super) fn everyone(&self) -> Vec<Peer> {
        let mut members = self.group.members().to_vec();
        if self.is_inter {
            members.extend(self.peers.members());
            members.sort_unstable();
        }
        members
    }

    /// The failures that this member has acknowledged.
    pub(super) fn acknowledged(&self) -> &AtomicU32 {
        self.shared().acknowledged()
    }

    /// Which failure a member has had.
    fn failure_of(&self, peer: Peer) -> Option<u32> {
        self.rank.node().failure_of(peer)
    }

    /// The members for which `wanted` says so of their failure's number, in the order of failures.
    fn failed_where(&self, wanted: impl Fn(u32) -> bool) -> Vec<Peer> {
        let mut failed: Vec<(u32, Peer)> = (self.everyone().into_iter())
            .filter_map(|peer| Some((self.failure_of(peer)?, peer)))
            .filter(|&(number, _)| wanted(number))
            .collect();
        failed.sort_unstable();
        failed.into_iter().map(|(_, peer)| peer).collect()
    }

    /// `MPIX_Comm_revoke`: nobody communicates in it any more.
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` where ranks do not survive each other, or when no room is left to note it.
    pub fn revoke(&self) -> Outcome<()> {
        self.survives()?;
        let node = self.rank.node();
        let mut contexts = [self.context(), self.context() + 1, self.collective_context()].into_iter();
        match contexts.all(|context| node.close(context)) {
            true => Ok(()),
            false => Err(Error::new(neutral::ERR_OTHER, format_args!("too many communicators have been revoked"))),
        }
    }

    /// The other group of an intercommunicator with this number, which a failure has kept from being made here, is not
    /// to wait for this one.
    pub(super) fn give_up_between(rank: &Rank, number: u32, error: &Error) {
        if is_failure(error) {
            // Without room to note it: see `give_up`.
            let _ = [number * 2, number * 2 + 1].into_iter().all(|context| rank.node().close(context));
        }
    }

    /// Gives up a communicator that a failure kept from being known to all of its members: those that have it are not
    /// to wait for the others.
    pub(crate) fn give_up(self, error: &Error) {
        if is_failure(error) {
            // Without room to note it they wait for as long as the job lives, as in any other they would.
            let _ = self.revoke();
        }
        self.release();
    }

    /// Refuses what is there for ranks that survive others.
    fn survives(&self) -> Outcome<()> {
        match self.rank.node().survives() {
            true => Ok(()),
            false => Err(Error::new(
                neutral::ERR_UNSUPPORTED_OPERATION,
                format_args!("a job ends when a rank fails, unless it is started with pip-exec --on-failure continue"),
            )),
        }
    }

    /// `MPIX_Comm_is_revoked`: who hears of it is refused messages and collectives.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.rank.node().is_closed(self.context())
    }

    /// `MPIX_Comm_get_failed`: members that have failed.
    #[must_use]
    pub fn failed(&self) -> Group {
        Group::new(self.failed_where(|_| true), self.rank.peer())
    }

    /// `MPIX_Comm_failure_get_acked`: those of them whose failure was acknowledged.
    #[must_use]
    pub fn failed_and_acknowledged(&self) -> Group {
        let first = self.acknowledged().load(Ordering::Relaxed);
        Group::new(self.failed_where(|number| number < first), self.rank.peer())
    }

    /// `MPIX_Comm_ack_failed`: acknowledges the first `count` failures of members, or those that there are. Returns how
    /// many are acknowledged.
    pub fn acknowledge(&self, count: usize) -> usize {
        let failed = self.failed_where(|_| true);
        let number = |peer: &Peer| self.failure_of(*peer).map_or(0, |number| number + 1);
        let first = failed.iter().take(count).map(number).max().unwrap_or(0);
        let before = self.acknowledged().fetch_max(first, Ordering::Relaxed);
        let first = before.max(first);
        failed.iter().filter(|peer| number(peer) <= first).count()
    }

    /// Begins to make the communicator of those who have not failed (`MPIX_Comm_shrink`). Collective over them.
    ///
    /// # Errors
    /// As [`Comm::agree`].
    pub fn shrink(&self) -> Outcome<Shrinking> {
        let way = match self.can_vote()? {
            true => Way::Copy(RefCell::new(Some(Box::new(self.begin_again()?)))),
            false => Way::Council(self.agree(-1)?),
        };
        Ok(Shrinking {
            way,
            rank: self.rank,
            group: self.group.clone(),
            peers: self.is_inter.then(|| self.peers.clone()),
            errhandler: self.inherited(),
        })
    }

    /// For the judge of messages: whom they come from.
    pub(super) fn know_remote(&self) {
        if self.is_inter {
            coll::know_remote(self.owner(), self.context() + 1, self.peers.roster(), self.shared());
        }
    }

    /// The end of that.
    pub(super) fn forget_remote(&self) {
        if self.is_inter {
            coll::forget_remote(self.owner(), self.context() + 1);
        }
    }
}

/// Whether a member that has failed is behind an error.
fn is_failure(error: &Error) -> bool {
    matches!(error.code(), neutral::MPIX_ERR_PROC_FAILED | neutral::MPIX_ERR_REVOKED)
}

/// A communicator of survivors that is being made. It needs that of all no more.
pub struct Shrinking {
    way: Way,
    rank: &'static Rank,
    group: Group,
    /// The other group of an intercommunicator.
    peers: Option<Group>,
    errhandler: Errhandler,
}

/// How it is made.
enum Way {
    /// The members agree on who is left.
    Council(Agreeing),
    /// Nobody can be dead: it has all members, once it has its numbers.
    Copy(RefCell<Option<Box<(Comm, Numbering)>>>),
}

impl core::fmt::Debug for Shrinking {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Shrinking").finish_non_exhaustive()
    }
}

impl Awaited for &Shrinking {
    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        match &self.way {
            Way::Council(agreeing) => agreeing.tell(claim, tell),
            Way::Copy(_) => tell(Fact::new(Told::Outside)),
        }
    }
}

impl Shrinking {
    /// Whether the members have agreed, or can.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        match &self.way {
            Way::Council(agreeing) => agreeing.is_complete(),
            Way::Copy(copy) => copy.borrow().as_ref().is_none_or(|copy| copy.1.is_complete()),
        }
    }

    /// The communicator of those who have not failed, as the members have agreed. Once, when it is complete.
    ///
    /// # Errors
    /// As [`Agreeing::end`]; `MPI_ERR_OTHER` when no number is left, `MPIX_ERR_PROC_FAILED` when a group has nobody
    /// left.
    pub fn end(&self) -> Outcome<Comm> {
        let Agreed(decision) = match &self.way {
            Way::Council(agreeing) => agreeing.end()?,
            Way::Copy(copy) => {
                let (copy, numbering) = *copy.take().ok_or(neutral::ERR_INTERN)?;
                return self.numbered(copy, numbering);
            }
        };
        let node = self.rank.node();
        if decision.numbers.contains(&0) {
            return Err(exhausted(node));
        }
        let goes_on = |peer: &Peer| node.failure_of(*peer).is_none_or(|number| number >= decision.failures);
        let left = |group: &Group| group.members().iter().copied().filter(goes_on).collect::<Vec<Peer>>();
        let session = self.group.session();
        let own = Group::new(left(&self.group), self.rank.peer()).with_session(session);
        let [number, first, second] = decision.numbers;
        let errhandler = self.errhandler.clone();
        let Some(peers) = &self.peers else {
            return Ok(Comm::new(self.rank, number, own, errhandler));
        };
        let remote = left(peers);
        if remote.is_empty() {
            return Err(has_failed(node, peers.members()[0]));
        }
        // The same at all nodes, whatever these call the members.
        let is_first = node.comes_first(self.group.members()[0], peers.members()[0]);
        let local = if is_first { first } else { second };
        let remote = Group::of_others(Roster::new(remote)).with_session(session);
        Ok(Comm::between(Comm::new(self.rank, local, own, errhandler), number, remote))
    }

    /// This copy of the communicator with its numbers, which are there.
    fn numbered(&self, copy: Comm, numbering: Numbering) -> Outcome<Comm> {
        let settled = numbering.settle(&copy);
        numbering.release(&mut self.rank.enter());
        match settled {
            Ok(()) => Ok(copy),
            Err(error) => {
                copy.release();
                Err(error)
            }
        }
    }
}
