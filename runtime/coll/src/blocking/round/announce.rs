//! Who is woken at a post, and who sleeps until all before it have posted.

use super::Round;
use cohort_base::sync::atomic::{Ordering, fence};
use core::ops::Range;

impl Round<'_> {
    /// After the only post of the round: wakes the members that wait for it.
    pub(crate) fn announce(&self) {
        self.others().for_each(|member| self.announce_at(member));
    }

    /// After a post: wakes those of these members that wait for it.
    pub(crate) fn announce_among(&self, members: impl Iterator<Item = u32>) {
        members.for_each(|member| self.announce_at(member as usize));
    }

    #[inline]
    fn announce_at(&self, member: usize) {
        let awaits = &self.slots[member].awaits.posts;
        if awaits.load(Ordering::SeqCst) == self.round {
            self.wake(member);
        }
    }

    /// After a post that only `root` reads: wakes it when everyone has posted.
    pub(crate) fn announce_to(&self, root: usize) {
        self.announce_to_reader(root, 0..self.members());
    }

    /// After a post that only later members read: wakes those before whom everyone has posted.
    #[inline]
    pub(crate) fn announce_to_later(&self) {
        (self.me() + 1..self.members()).for_each(|later| self.announce_to_reader(later, 0..later));
    }

    /// After a post in a form whose readers are woken otherwise: a member that takes operands for longer, or has longer
    /// ones, may sleep until it is told ([`Round::await_earlier`]).
    #[inline]
    pub(crate) fn announce_to_sleepers(&self) {
        if self.group.shared.sleepers.load(Ordering::SeqCst) != 0 {
            self.announce_to_later();
        }
    }

    /// Wakes a member that waits for the posts of several, the caller's among them, when all are there.
    #[inline]
    fn announce_to_reader(&self, reader: usize, mut posters: Range<usize>) {
        let awaits = &self.slots[reader].awaits.posts;
        if awaits.load(Ordering::SeqCst) != self.round {
            return;
        }
        fence(Ordering::SeqCst);
        if posters.all(|it| it == reader || it == self.me() || self.has_posted(it)) {
            self.wake(reader);
        }
    }

    /// Waits for the posts of the members before the caller. Where ranks outnumber CPUs, whoever posts without a word
    /// looks whether somebody sleeps here ([`Round::announce_to_sleepers`]).
    #[inline]
    pub(crate) fn await_earlier(&self) {
        let mut missing = (0..self.me()).peekable();
        let mut done = || {
            while missing.next_if(|&member| self.has_posted(member)).is_some() {}
            missing.peek().is_none()
        };
        if !self.is_crowded() {
            return self.await_posts(None, done);
        }
        if !self.spin(&mut done) {
            let sleepers = &self.group.shared.sleepers;
            sleepers.fetch_add(1, Ordering::SeqCst);
            self.await_posts(None, done);
            sleepers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
