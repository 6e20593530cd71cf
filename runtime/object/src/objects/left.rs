//! Communicators that the program frees, also while operations on them are under way.
//!
//! The operations go on, and the communicator's error handler hears of their failures (MPI-4.1, 7.4.3). So the handle
//! of such a communicator, which stands for nothing from then on, goes to no other one until they are over. Whether
//! they are is asked when the next communicator is freed.

use super::Objects;
use crate::Outcome;
use crate::comm::Comm;
use crate::errhandler::Errhandler;
use alloc::boxed::Box;
use alloc::vec::Vec;
use cohort_abi::{INDEX_MAX, neutral};
use cohort_base::Peer;
use core::sync::atomic::Ordering;

/// What is left of a communicator.
pub(super) struct LeftComm {
    handle: u32,
    errhandler: Errhandler,
    members: Vec<Peer>,
    is_used: bool,
}

impl Objects {
    /// Takes the communicator of a dynamic handle out. `tell_used` calls what it is given with the communicator's
    /// handle of each operation that the program may still complete.
    ///
    /// # Errors
    /// `MPI_ERR_COMM`.
    pub fn remove_comm(&self, handle: u32, tell_used: impl FnOnce(&mut dyn FnMut(u32))) -> Outcome<Box<Comm>> {
        self.dynamic_comm(handle)?;
        let mut left = self.left_comms.lock();
        let comm = self.comms.withdraw(&mut self.rank.enter(), handle & INDEX_MAX).ok_or(neutral::ERR_COMM)?;
        let errhandler = comm.errhandler.lock().clone();
        left.iter_mut().for_each(|it| it.is_used = false);
        left.push(LeftComm { handle, errhandler, members: Vec::new(), is_used: false });
        tell_used(&mut |used| {
            if let Some(it) = left.iter_mut().find(|it| it.handle == used) {
                it.is_used = true;
            }
        });
        if let Some(own) = left.last_mut().filter(|own| own.is_used) {
            own.members = comm.everybody();
        }
        self.forget_unused(&mut left);
        drop(left);
        self.comm_count.fetch_sub(1, Ordering::Relaxed);
        let null = neutral::handle::COMM_NULL;
        let _ = self.parent.compare_exchange(handle, null, Ordering::Relaxed, Ordering::Relaxed);
        comm.link(false);
        Ok(comm)
    }

    /// Gives back the handles of communicators whose operations are over.
    fn forget_unused(&self, left: &mut Vec<LeftComm>) {
        let claim = &mut self.rank.enter();
        left.retain(|it| {
            if !it.is_used {
                self.comms.give_back(claim, it.handle & INDEX_MAX);
            }
            it.is_used
        });
    }

    /// The error handler, and the members, of a communicator that was freed and has operations under way.
    pub fn left_comm(&self, handle: u32) -> Option<(Errhandler, Vec<Peer>)> {
        let left = self.left_comms.lock();
        let it = left.iter().find(|it| it.handle == handle)?;
        Some((it.errhandler.clone(), it.members.clone()))
    }
}
