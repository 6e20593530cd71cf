//! What a rank sleeps for besides being woken: descriptors and a time, to which any subsystem may add.
//!
//! A rank whose node has a network sleeps in its watch, if nobody else does: there descriptors end the sleep at once.
//! Elsewhere it sleeps on its own word, which no descriptor changes, so it looks again soon. (Whoever wakes it has
//! another table of descriptors, so it could not end a `poll` of this one.)

use core::time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;

/// Longest sleep while something may come of which nobody tells.
pub const UNSURE_SLEEP: Duration = Duration::from_millis(1);

/// Descriptors that end a sleep at once; with more, it is short.
const DESCRIPTORS: usize = 16;

/// A sleep that is about to begin.
#[derive(Debug)]
pub struct Sleep {
    limit: Option<Duration>,
    descriptors: [i32; DESCRIPTORS],
    count: usize,
}

impl Sleep {
    /// Until somebody wakes the rank, for so long at most.
    #[must_use]
    pub const fn new(limit: Option<Duration>) -> Self {
        Self { limit, descriptors: [0; DESCRIPTORS], count: 0 }
    }

    /// For so long at most.
    pub fn at_most(&mut self, limit: Duration) {
        self.limit = Some(self.limit.map_or(limit, |own| own.min(limit)));
    }

    /// Also until there is input at this descriptor of the rank's process. It must be so long as its subsystem does not
    /// take that: a sleep begins only if a turn has found nothing, and input that comes between ends it.
    pub fn on(&mut self, descriptor: i32) {
        match self.descriptors.get_mut(self.count) {
            Some(place) => {
                *place = descriptor;
                self.count += 1;
            }
            None => self.at_most(UNSURE_SLEEP),
        }
    }

    /// How long at most, where descriptors end it.
    #[must_use]
    pub fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// The descriptors.
    #[must_use]
    pub fn descriptors(&self) -> &[i32] {
        &self.descriptors[..self.count]
    }

    /// How long at most, where no descriptor ends it.
    #[must_use]
    pub fn limit_without_descriptors(&self) -> Option<Duration> {
        match self.count {
            0 => self.limit,
            _ => Some(self.limit.map_or(UNSURE_SLEEP, |limit| limit.min(UNSURE_SLEEP))),
        }
    }

    /// Whether there is input at one of the descriptors, or one is not open any more.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.descriptors().iter().any(|&descriptor| is_ready(descriptor))
    }
}

fn is_ready(descriptor: i32) -> bool {
    // SAFETY: the number is used for this call; if it is not open, the system says so.
    let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let mut entry = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut entry, Some(&now)), Ok(1..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_time_counts() {
        let [short, long] = [1, 2].map(Duration::from_secs);
        let mut sleep = Sleep::new(None);
        assert_eq!((sleep.limit(), sleep.limit_without_descriptors()), (None, None));
        for limit in [long, short, long] {
            sleep.at_most(limit);
        }
        assert_eq!((sleep.limit(), sleep.limit_without_descriptors()), (Some(short), Some(short)));
    }

    #[test]
    fn who_has_descriptors_sleeps_shortly_where_they_do_not_count() {
        let mut sleep = Sleep::new(None);
        (0..DESCRIPTORS as i32).for_each(|number| sleep.on(number));
        assert_eq!((sleep.limit(), sleep.descriptors().len()), (None, DESCRIPTORS));
        assert_eq!(sleep.limit_without_descriptors(), Some(UNSURE_SLEEP));
        sleep.on(99);
        assert_eq!((sleep.limit(), sleep.descriptors().len()), (Some(UNSURE_SLEEP), DESCRIPTORS));
    }

    #[test]
    fn what_is_not_open_is_ready() {
        let mut sleep = Sleep::new(None);
        assert!(!sleep.is_ready());
        sleep.on(i32::MAX);
        assert!(sleep.is_ready());
    }
}
