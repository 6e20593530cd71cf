//! How work that becomes ready without its rank's claim finds somebody to do it.
//!
//! A collective among nodes goes on when the messages of its stage are complete ([`crate::coll`],
//! `schedule/running.rs`). Whoever completes the last of them may be anybody: another rank that has
//! copied a message, a thief that gives the collective back. Or a message comes that nobody has
//! taken yet. The rank itself computes, and thieves may sleep.
//!
//! # Protocol
//! ```text
//! whoever publishes                        whoever leaves the claim
//! P1 publish (a message is complete)       H1 listen: remember the count
//! P2 count += 1                            H2 look for ready work
//! P3 fence                                 H3 give the claim back
//! P4 nobody holds the claim: call          H4 fence
//!                                          H5 work found, or count changed: call, if nobody holds the claim
//! ```
//! *Call* wakes the rank if it waits, else whoever its policy has for it. Events are counted only
//! while the rank has work that others may do (a *user*); elsewhere this costs a load for each
//! completion.
//!
//! # Why somebody is called, or looks
//! Let the publication make work ready. By the fences P3 and H4 one of two holds for each holder
//! that gives the claim back around that time: P4 sees the claim free, and calls; or H5 sees the
//! count. In the second case either H1 had seen it too, and then (Acquire, pairs with P2) H2 finds
//! the work, or the count has changed and H5 calls. A holder that comes later, because of whom
//! somebody does not call, sees the publication: by P2 and H1, if it reads the count late enough,
//! else again by H4 and H5. The last holder in a row so calls, unless the work was taken. Whoever
//! is called and sleeps is woken; a rank or a worker that is about to sleep has announced it and
//! looks once more.

use cohort_base::sync::atomic::{AtomicU32, Ordering, fence};

/// The event count of one rank. See the module page.
#[derive(Debug)]
pub struct EventCount {
    count: AtomicU32,
    /// Pieces of work that others may do.
    users: AtomicU32,
}

impl Default for EventCount {
    /// One without users.
    fn default() -> Self {
        Self { count: AtomicU32::new(0), users: AtomicU32::new(0) }
    }
}

impl EventCount {
    /// The rank has work that others may do. Under its claim, before anybody can publish something about it.
    pub fn add_user(&self) {
        // Relaxed: whoever publishes heard of the work from us.
        self.users.fetch_add(1, Ordering::Relaxed);
    }

    /// Undoes one [`EventCount::add_user`]. Under the claim.
    pub fn remove_user(&self) {
        self.users.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether the rank has work that others may do.
    #[inline]
    pub fn has_users(&self) -> bool {
        self.users.load(Ordering::Relaxed) != 0
    }

    /// After a publication (P2 to P4). Says whether the caller is to call for help.
    pub fn count_event(&self, is_claimed: impl FnOnce() -> bool) -> bool {
        // Release: whoever listens afterwards sees the publication.
        self.count.fetch_add(1, Ordering::Release);
        fence(Ordering::SeqCst);
        !is_claimed()
    }

    /// By the holder of the claim, before it looks for work the last time (H1).
    pub fn listen(&self) -> u32 {
        // Acquire pairs with the Release in `ring`.
        self.count.load(Ordering::Acquire)
    }

    /// After the claim was given back (H4, H5): whether it rang since the caller listened.
    pub fn has_changed_since(&self, heard: u32) -> bool {
        fence(Ordering::SeqCst);
        self.count.load(Ordering::Relaxed) != heard
    }
}

#[cfg(all(test, loom))]
mod models;
