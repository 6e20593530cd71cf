//! One collective call at one member: post, wait for posts, read, complete.
//!
//! Who wakes whom, so that a parked member is woken once and by one:
//! * After a post, members that wait for this round's posts are woken. When everybody waits
//!   for everybody, only the last member to post wakes them ([`Round::exchange`]).
//!   A root that waits for all, and a member of a scan that waits for those before it, is woken by the last of these.
//!   In a scan of a few bytes of a crowded group it is woken as they complete the round (`prefix.rs`).
//! * A member that completes a round wakes those that wait for it, again only the last.
//!
//! A waiter looks for a while without a word, since announcements cost those who post a cache line each. Then it
//! announces itself in its slot, and [`wait::until`] looks again behind the heavy
//! barrier of its park slot before it sleeps. Who posts or completes passes the light barrier before it looks for
//! announcements, so it sees the announcement or the waiter sees the post: neither stalls for the other's cache line.
//!
//! "The last" is well defined because who sees an announcement passes a full fence before it looks at the others: of
//! several that do so at least one sees all of them. A post of somebody who saw no announcement came before the
//! waiter's heavy barrier, so whoever looks after that sees it; and whoever looked, in vain, before it had posted
//! before it too, and the waiter sees them both.

mod announce;
mod prefix;

use super::crossed;
use super::record::{ADDRESS, PARTS, PARTS_BESIDE};
pub(crate) use super::record::{Posted, Record};
use crate::args::{Label, parts};
use crate::members::{
    Awaits, BESIDE_ENTRY, Entry, INLINE, LocalGroup, LocalShared, RING, SCHEDULED, SIDE_BUFFERS, SIDE_BYTES, Slot,
    has_ring,
};
use crate::picture::{AwaitedRound, Deed};
use crate::spin::spin;
use cohort_base::sync::atomic::{AtomicU64, Ordering, fence};
use cohort_base::sync::{Barriers, pause};
use cohort_core::wait;
use core::slice;
pub(crate) use prefix::{Left, PREFIXED_MAX};

/// Looks for room before the caller waits as for anything else.
const ROOM_LOOKS: u32 = 20;

/// Whose completion a member awaits at the end of a round, because they read its memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// Nobody's: its entry carried the data itself.
    Nobody,
    /// One member's.
    Member(usize),
    /// All members'.
    Everyone,
}

impl Finish {
    /// What to await if the others read the caller's memory: `readers`; else nobody.
    #[inline]
    pub(crate) fn after(exposed: bool, readers: Self) -> Self {
        if exposed { readers } else { Self::Nobody }
    }
}

/// A collective call in progress. See the module page.
pub(crate) struct Round<'a> {
    group: &'a LocalGroup<'a>,
    slots: &'a [Slot],
    round: u64,
}

impl<'a> Round<'a> {
    /// The next round of the group.
    #[inline]
    pub(crate) fn begin(group: &'a LocalGroup<'a>) -> Self {
        let slots = group.shared.slots();
        let begun = &slots[group.me as usize].own.begun;
        let round = begun.load(Ordering::Relaxed) + 1;
        begun.store(round, Ordering::Relaxed);
        Self { group, slots, round }
    }

    /// Number of members.
    #[inline]
    pub(crate) fn members(&self) -> usize {
        self.slots.len()
    }

    /// The caller's place among them.
    #[inline]
    pub(crate) fn me(&self) -> usize {
        self.group.me()
    }

    /// What the caller's posts bear.
    pub(crate) fn label(&self) -> Label {
        self.group.label
    }

    /// The other members, beginning with the caller's right neighbour, so that members that read do not all begin with
    /// the same one.
    #[inline]
    pub(crate) fn others(&self) -> impl Iterator<Item = usize> + use<'a> {
        let (me, size) = (self.me(), self.slots.len());
        (1..size).map(move |ahead| match me + ahead {
            member if member < size => member,
            beyond => beyond - size,
        })
    }

    #[inline]
    fn mine(&self) -> &'a Slot {
        &self.slots[self.group.me as usize]
    }

    /// This round's entry of a member, if anything has ever been posted there.
    #[inline]
    fn entry(&self, member: usize) -> Option<&'a Entry> {
        self.slots[member].entry(self.round)
    }

    /// Whether ranks outnumber CPUs.
    pub(crate) fn is_crowded(&self) -> bool {
        self.group.is_crowded()
    }

    /// Waits for something that `member` does in this round, of which it tells the caller by [`Round::wake`].
    pub(crate) fn await_of(&self, member: usize, mut done: impl FnMut() -> bool) {
        if !self.spin(&mut done) {
            let what = self.awaited(Deed::Complete, Some(member));
            wait::until(self.group.owner, what, done);
        }
    }

    /// Wakes a member; what it waits for is published.
    pub(crate) fn wake(&self, member: usize) {
        wait::wake(self.group.rank().node().rank(self.group.members[member].index()));
    }

    /// Posts nothing but the fact that this member is here.
    #[inline]
    pub(crate) fn post_presence(&self) {
        self.publish(self.inline(0, |_| {}));
    }

    /// Posts the address of `record`, which stays valid until [`Round::finish`] with
    /// [`Finish::Everyone`] or [`Finish::Member`] returns.
    pub(crate) fn post_address<T: Record>(&self, record: &T) {
        self.publish(self.address(record));
    }

    /// The caller's entry with data in it, at most [`INLINE`] bytes that `fill` writes, to be published.
    #[inline]
    pub(crate) fn inline(&self, bytes: u64, fill: impl FnOnce(*mut u8)) -> &'a Entry {
        debug_assert!(bytes as usize <= INLINE);
        self.filled(bytes, fill)
    }

    /// The caller's entry with what `fill` writes in it, and what describes that.
    #[inline]
    fn filled(&self, description: u64, fill: impl FnOnce(*mut u8)) -> &'a Entry {
        let entry = self.free_entry();
        fill(entry.data.get().cast());
        // SAFETY: `free_entry` made sure that nobody reads the entry.
        unsafe { entry.form.get().write(self.group.label.with(description)) };
        entry
    }

    /// The caller's entry with [`parts`] for all members, in all so many bytes, which `fill` writes there or in a side
    /// buffer. `None` when memory is short.
    #[inline]
    pub(crate) fn parts(&self, bytes: usize, fill: impl FnOnce(*mut u8)) -> Option<&'a Entry> {
        debug_assert!(bytes <= SIDE_BYTES);
        match bytes {
            0..=INLINE => Some(self.filled(PARTS, fill)),
            _ => self.beside(bytes, PARTS_BESIDE, fill),
        }
    }

    /// The caller's entry with data beside it, at most [`SIDE_BYTES`] bytes, to be published. `None` when memory is
    /// short.
    pub(crate) fn side_buffer(&self, bytes: u64, fill: impl FnOnce(*mut u8)) -> Option<&'a Entry> {
        debug_assert!(bytes as usize > INLINE && bytes as usize <= SIDE_BYTES);
        self.beside(bytes as usize, bytes, fill)
    }

    /// The caller's entry with the address of so many bytes beside it, and what describes what is there.
    fn beside(&self, bytes: usize, description: u64, fill: impl FnOnce(*mut u8)) -> Option<&'a Entry> {
        let room = self.room_beside(bytes);
        if room.is_null() {
            return None;
        }
        fill(room);
        let entry = self.free_entry();
        // SAFETY: `free_entry` made sure that nobody reads the entry.
        unsafe {
            entry.data.get().cast::<*const u8>().write(room);
            entry.form.get().write(self.group.label.with(description));
        }
        Some(entry)
    }

    /// Room for so many bytes beside this round's entry, once nobody reads what it held before; null when memory is
    /// short. Where ranks outnumber CPUs each entry has some of its own, since who must wait there for readers waits
    /// for their CPU.
    fn room_beside(&self, bytes: usize) -> *mut u8 {
        let own = &self.mine().own;
        if bytes <= BESIDE_ENTRY && has_ring(self.round) && self.is_crowded() {
            self.free_entry();
            let first = own.side_ring.room_of_ring();
            let skipped = self.round as usize % RING * BESIDE_ENTRY;
            return if first.is_null() { first } else { first.wrapping_add(skipped) };
        }
        let beside = &own.side_buffers[self.round as usize % SIDE_BUFFERS];
        let room = beside.room();
        if !room.is_null() {
            self.await_readers(beside.round.load(Ordering::Relaxed));
            beside.round.store(self.round, Ordering::Relaxed);
        }
        room
    }

    /// The caller's entry with an address in it, to be published.
    pub(crate) fn address<T: Record>(&self, record: &T) -> &'a Entry {
        let entry = self.free_entry();
        // SAFETY: `free_entry` made sure that nobody reads the entry.
        unsafe {
            entry.data.get().cast::<*const T>().write(record);
            let form = self.group.label.with(ADDRESS | T::NUMBER);
            entry.form.get().write(form);
        }
        entry
    }

    /// Posts what [`Round::inline`] or [`Round::address`] made.
    #[inline]
    pub(crate) fn publish(&self, entry: &Entry) {
        entry.round.store(self.round, Ordering::Release);
        self.barriers().light();
    }

    #[inline]
    fn barriers(&self) -> Barriers {
        self.group.rank().node().barriers()
    }

    /// [`Round::publish`], unless another member has chosen a pool. Says whether it has been posted.
    pub(crate) fn publish_as_choice(&self, entry: &Entry) -> bool {
        !self.choose(&entry.round, self.round)
    }

    /// This round's entry of the caller, once nobody reads what it held before.
    #[inline]
    fn free_entry(&self) -> &'a Entry {
        let entry = self.mine().made_entry(self.round);
        let before = entry.round.load(Ordering::Relaxed) & !SCHEDULED;
        if self.mine().own.floor.load(Ordering::Relaxed) < before {
            self.await_room(before);
        }
        entry
    }

    /// Waits until every member has completed `round`.
    #[inline]
    fn await_readers(&self, round: u64) {
        if self.mine().own.floor.load(Ordering::Relaxed) < round {
            self.wait_completion(round, None);
        }
    }

    /// The same of a caller that is as many rounds ahead as there are entries. Each look takes the lines that its
    /// readers write as they complete a round, so it makes some pauses in between, in which they complete several.
    #[cold]
    fn await_room(&self, round: u64) {
        for _ in 0..if self.is_crowded() { 0 } else { ROOM_LOOKS } {
            if self.others().all(|it| has_completed(&self.slots[it], round)) {
                break;
            }
            (0..RING).for_each(|_| pause());
        }
        self.wait_completion(round, None);
    }

    /// Chooses `wanted` (this round, or this round [`SCHEDULED`]) in one of the words that `shared.rs` describes,
    /// unless another member has chosen. `true`: the round is to be a pool.
    fn choose(&self, word: &AtomicU64, wanted: u64) -> bool {
        let mut chosen = word.load(Ordering::SeqCst);
        if chosen & !SCHEDULED != self.round {
            self.await_readers(self.round.saturating_sub(RING as u64));
            let swap = word.compare_exchange(chosen, wanted, Ordering::SeqCst, Ordering::SeqCst);
            chosen = swap.map_or_else(|chosen| chosen, |_| wanted);
        }
        debug_assert!(chosen & !SCHEDULED == self.round, "members are in different rounds");
        chosen & SCHEDULED != 0
    }

    /// Whether the members go on with a pool. Nothing is posted in such a round. If they do not, they go on with this
    /// round: their next [`Round::begin`] begins it.
    pub(crate) fn agree_on_pool(self, wanted: bool) -> bool {
        let mark = if wanted { SCHEDULED } else { 0 };
        let word = &self.group.shared.choices.0[self.round as usize % RING];
        let chosen = self.choose(word, self.round | mark);
        if chosen {
            self.finish(Finish::Nobody);
        } else {
            self.mine().own.begun.store(self.round - 1, Ordering::Relaxed);
        }
        chosen
    }

    /// At a member that wants to go on with a pool instead of reading what `root` posts: whether all do.
    pub(crate) fn is_scheduled_instead_of(&self, root: usize) -> bool {
        let word = &self.slots[root].made_entry(self.round).round;
        let chosen = self.choose(word, self.round | SCHEDULED);
        if chosen {
            self.announce();
        }
        chosen
    }

    /// At a member that would read what `root` posts: waits for that, unless the members go on with a pool.
    /// `true`: they do.
    pub(crate) fn awaits_pool_instead_of(&self, root: usize) -> bool {
        let mut chosen = 0;
        self.await_posts(Some(root), || {
            let entry = self.entry(root);
            chosen = entry.map_or(0, |entry| entry.round.load(Ordering::SeqCst));
            chosen & !SCHEDULED == self.round
        });
        chosen & SCHEDULED != 0
    }

    #[inline]
    pub(crate) fn has_posted(&self, member: usize) -> bool {
        self.entry(member).is_some_and(|entry| entry.round.load(Ordering::SeqCst) == self.round)
    }

    #[inline]
    fn all_posted(&self) -> bool {
        self.others().all(|member| self.has_posted(member))
    }

    /// After a post that everyone makes: waits until all have posted.
    #[inline]
    pub(crate) fn exchange(&self) {
        if self.all_posted() {
            self.others().for_each(|member| self.wake(member));
        } else {
            let mut missing = self.others().peekable();
            let mut done = || {
                while missing.next_if(|&member| self.has_posted(member)).is_some() {}
                missing.peek().is_none()
            };
            // Members that disagree about the size may not wake each other at their posts, but as they finish.
            if !self.spin(&mut done) {
                let what = self.awaited(Deed::Begin, None);
                self.sleep_as_watcher(&self.mine().awaits.posts, what, done);
            }
        }
        // Whoever posted in this round has completed the one before.
        self.raise_floor(self.round - 1);
    }

    /// After [`Round::exchange`], where all post nothing but their presence: ends the job if the caller's right
    /// neighbour has posted in another call. Such a member may read nobody's post, and go on as if all were well. Where
    /// not all are in this call, one of those that are has such a neighbour.
    #[inline]
    pub(crate) fn expect_presence(&self) {
        let next = self.me() + 1;
        let next = if next < self.members() { next } else { 0 };
        let entry = self.slots[next].made_entry(self.round);
        // SAFETY: as in `posted`: the member has posted, and does not write it again before this one completes.
        let form = unsafe { *entry.form.get() };
        if form != self.group.label.with(0) {
            self.end_crossed(next, Label::borne_by(form));
        }
    }

    /// Instead of a post: arrives at a counter and waits until all members have. Costs each
    /// member one look at one line where [`Round::exchange`] costs one for each member.
    pub(crate) fn meet(&self) {
        let LocalShared { arrivals, barriers, .. } = self.group.shared;
        let size = self.slots.len() as u64;
        let before = arrivals.fetch_add(1, Ordering::SeqCst);
        let this = before / size + 1;
        if before + 1 == this * size {
            barriers.store(this, Ordering::SeqCst);
            self.others().for_each(|member| self.wake(member));
        } else {
            let mut done = || barriers.load(Ordering::Acquire) >= this;
            if !self.spin(&mut done) {
                wait::until(self.group.owner, self.awaited(Deed::Begin, None), done);
            }
        }
        // Whoever arrived has completed the round before.
        self.raise_floor(self.round - 1);
    }

    /// Waits for the posts of all other members.
    #[inline]
    pub(crate) fn await_all(&self) {
        let mut missing = self.others().peekable();
        self.await_posts(None, move || {
            while missing.next_if(|&member| self.has_posted(member)).is_some() {}
            missing.peek().is_none()
        });
    }

    /// Waits for the post of one member.
    #[inline]
    pub(crate) fn await_member(&self, member: usize) {
        self.await_posts(Some(member), || self.has_posted(member));
    }

    /// Waits for other members briefly, on the spot. Returns whether that was enough.
    #[inline]
    fn spin(&self, done: &mut impl FnMut() -> bool) -> bool {
        spin(self.group.rank().node(), done)
    }

    #[inline]
    fn await_posts(&self, member: Option<usize>, mut done: impl FnMut() -> bool) {
        if self.spin(&mut done) {
            return;
        }
        let awaits = &self.mine().awaits.posts;
        awaits.store(self.round, Ordering::SeqCst);
        wait::until(self.group.owner, self.awaited(Deed::Begin, member), done);
        awaits.store(0, Ordering::Relaxed);
    }

    fn awaited(&self, deed: Deed, member: Option<usize>) -> AwaitedRound<'a> {
        AwaitedRound { group: self.group, round: self.round, deed, member }
    }

    /// Waits as every blocking call does, while `awaits` tells members that finish a round what for.
    #[cold]
    fn sleep_as_watcher(&self, awaits: &AtomicU64, what: AwaitedRound<'_>, done: impl FnMut() -> bool) {
        let watchers = &self.group.shared.watchers;
        awaits.store(what.round, Ordering::SeqCst);
        watchers.fetch_add(1, Ordering::SeqCst);
        wait::until(self.group.owner, what, done);
        watchers.fetch_sub(1, Ordering::Relaxed);
        awaits.store(0, Ordering::Relaxed);
    }

    /// What `member`, which has posted, posted: data, or a `T`. If that is something else, members have called
    /// different collectives, and the job ends.
    #[inline]
    pub(crate) fn posted<T: Record>(&self, member: usize) -> Posted<'_, T> {
        self.posted_or_else(member).unwrap_or_else(|form| self.end_crossed(member, Label::borne_by(form)))
    }

    /// [`Round::posted`], or what is said of what it is in place of that.
    #[inline]
    pub(crate) fn posted_or_else<T: Record>(&self, member: usize) -> Result<Posted<'_, T>, u64> {
        const { assert!(ADDRESS | T::NUMBER < PARTS) };
        debug_assert!(self.has_posted(member));
        let entry = self.slots[member].made_entry(self.round);
        // SAFETY: the owner wrote both before `round`, and does not write them again before
        // this member completes the round, which takes `self`. What bears this label and this number was posted as a
        // `T` by a member in the same call, which waits for those that read it there.
        unsafe {
            let form = *entry.form.get();
            let data: *const u8 = entry.data.get().cast();
            Ok(match self.group.label.beside(form) {
                bytes if bytes as usize <= INLINE => Posted::Inline(slice::from_raw_parts(data, bytes as usize)),
                bytes if bytes as usize <= SIDE_BYTES => {
                    Posted::Inline(slice::from_raw_parts(*data.cast::<*const u8>(), bytes as usize))
                }
                address if address == ADDRESS | T::NUMBER => Posted::Address(&**data.cast::<*const T>()),
                _ => return Err(form),
            })
        }
    }

    /// The caller's part of what `member`, which has posted, posted for all in [parts](Round::parts).
    #[inline]
    pub(crate) fn part_of_me(&self, member: usize) -> &[u8] {
        let entry = self.slots[member].made_entry(self.round);
        // SAFETY: as above; what bears this label and this description are parts for all.
        unsafe {
            let (form, data) = (*entry.form.get(), entry.data.get().cast::<u8>().cast_const());
            let first = match self.group.label.beside(form) {
                PARTS => data,
                PARTS_BESIDE => *data.cast::<*const u8>(),
                _ => self.end_crossed(member, Label::borne_by(form)),
            };
            let (part, bytes) = parts::part(first, (self.me(), self.members()));
            slice::from_raw_parts(part, bytes)
        }
    }

    /// The record of this type, if `member`, which has posted, posted one in the caller's call.
    #[inline]
    pub(crate) fn record_if<T: Record>(&self, member: usize) -> Option<&T> {
        debug_assert!(self.has_posted(member));
        let entry = self.slots[member].made_entry(self.round);
        let wanted = self.group.label.with(ADDRESS | T::NUMBER);
        // SAFETY: as in `posted`.
        unsafe {
            let is_wanted = *entry.form.get() == wanted;
            is_wanted.then(|| &**entry.data.get().cast::<*const T>())
        }
    }

    /// The record whose address `member`, which has posted, posted.
    pub(crate) fn record<T: Record>(&self, member: usize) -> &T {
        match self.posted(member) {
            Posted::Address(record) => record,
            Posted::Inline(_) => self.end_crossed(member, self.label()),
        }
    }

    /// Ends the job: `member` has come to this round with another call than the caller.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_crossed(&self, member: usize, theirs: Label) -> ! {
        let rank = self.group.rank();
        let other = rank.node().world_rank(self.group.members[member]);
        crossed::end(rank, self.group.label, (other, theirs))
    }

    /// Ends the round: the caller reads no entry of it any more.
    #[inline]
    pub(crate) fn finish(self, wait_for: Finish) {
        self.mine().completed.store(self.round, Ordering::Release);
        self.barriers().light();
        if self.group.shared.watchers.load(Ordering::SeqCst) != 0 {
            self.wake_watchers();
        }
        match wait_for {
            Finish::Nobody => {}
            Finish::Everyone => self.wait_completion(self.round, None),
            Finish::Member(member) => self.wait_completion(self.round, Some(member)),
        }
    }

    /// Wakes every member whose wait for completions has just come to its end, and those that sleep until all have
    /// posted in this round.
    #[cold]
    fn wake_watchers(&self) {
        fence(Ordering::SeqCst);
        for member in self.others() {
            let Awaits { posts, completion } = &self.slots[member].awaits.0;
            let awaited = completion.load(Ordering::SeqCst);
            let has_come = awaited != 0 && self.all_but(member, |slot| has_completed(slot, awaited));
            if has_come || posts.load(Ordering::SeqCst) == self.round {
                self.wake(member);
            }
        }
    }

    fn all_but(&self, member: usize, test: impl Fn(&Slot) -> bool) -> bool {
        self.slots.iter().enumerate().all(|(index, slot)| index == member || test(slot))
    }

    /// Waits until all other members, or one, have completed `round`.
    fn wait_completion(&self, round: u64, member: Option<usize>) {
        let mut missing = self.others().filter(|&it| member.is_none_or(|m| m == it)).peekable();
        let mut done = move || {
            while missing.next_if(|&it| has_completed(&self.slots[it], round)).is_some() {}
            missing.peek().is_none()
        };
        if !self.spin(&mut done) {
            let what = AwaitedRound { round, ..self.awaited(Deed::Complete, member) };
            self.sleep_as_watcher(&self.mine().awaits.completion, what, done);
        }
        if member.is_none() {
            // Mostly the others have gone on meanwhile: then the next look can wait.
            let completed = |it: usize| self.slots[it].completed.load(Ordering::SeqCst);
            self.raise_floor(self.others().map(completed).min().unwrap_or(round));
        }
    }

    #[inline]
    fn raise_floor(&self, round: u64) {
        let floor: &AtomicU64 = &self.mine().own.floor;
        if floor.load(Ordering::Relaxed) < round {
            floor.store(round, Ordering::Relaxed);
        }
    }
}

fn has_completed(slot: &Slot, round: u64) -> bool {
    slot.completed.load(Ordering::SeqCst) >= round
}
