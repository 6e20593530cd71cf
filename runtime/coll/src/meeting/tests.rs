use super::*;
use std::alloc::{Layout, alloc, dealloc};

fn layout<P, W>(size: u32) -> Layout {
    Layout::from_size_align(Meeting::<P, W>::bytes(size), Meeting::<P, W>::ALIGN).expect("small")
}

fn join<P, W>(link: &Link<P, W>, size: u32) -> RecordRef<Meeting<P, W>> {
    // SAFETY: the layout is not empty; a block that is given back came from here.
    let made = link.join(
        size,
        |_| NonNull::new(unsafe { alloc(layout::<P, W>(size)) }),
        |block| unsafe { dealloc(block.as_ptr(), layout::<P, W>(size)) },
    );
    made.expect("memory")
}

/// Gives a reference back; 1 if it was the last.
fn leave<P, W>(meeting: RecordRef<Meeting<P, W>>, size: u32) -> u32 {
    // SAFETY: the callers have a reference; the memory came from `join`.
    unsafe {
        let Some(block) = Meeting::release(meeting) else {
            return 0;
        };
        dealloc(block.as_ptr(), layout::<P, W>(size));
        1
    }
}

/// Under loom, which reports every unordered access.
#[cfg(loom)]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    /// Two members' buffers, and the place where they meet.
    struct Comm {
        first: Link<usize, ()>,
        buffers: [UnsafeCell<u32>; 2],
        results: [UnsafeCell<u32>; 2],
    }

    struct Made(RecordRef<Meeting<usize, ()>>);
    // SAFETY: a meeting is made to be shared.
    unsafe impl Send for Made {}

    impl Comm {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                first: Link::new(),
                buffers: [UnsafeCell::new(0), UnsafeCell::new(0)],
                results: [UnsafeCell::new(0), UnsafeCell::new(0)],
            })
        }

        /// Posts a buffer, works as far as there is work, and leaves.
        /// Returns how often it saw the end, and how often it freed.
        fn take_part(&self, me: u32) -> (u32, u32) {
            let meeting = join(&self.first, 2);
            // SAFETY: our cursor's reference; loom checks the accesses to the buffers.
            unsafe {
                self.buffers[me as usize].with_mut(|buffer| *buffer = me + 1);
                if meeting.post(me, me as usize) {
                    meeting.open((), 2);
                }
                let end = if me == 0 { End::Front } else { End::Back };
                let ended = self.work(meeting, end);
                (ended, leave(meeting, 2))
            }
        }

        /// Step `s` writes to the result of member `s` the sum of both buffers.
        fn work(&self, meeting: RecordRef<Meeting<usize, ()>>, end: End) -> u32 {
            let mut ended = 0;
            while let Some((step, ())) = meeting.take(end) {
                // SAFETY: we have a step; loom checks the accesses.
                unsafe {
                    let sum: u32 = (0..2)
                        .map(|member| *meeting.part_of(member))
                        .map(|buffer| self.buffers[buffer].with(|value| *value))
                        .sum();
                    self.results[step as usize].with_mut(|result| *result += sum);
                }
                if meeting.finish() {
                    ended += 1;
                    for result in &self.results {
                        // SAFETY: loom checks that all writes come before.
                        assert_eq!(result.with(|result| unsafe { *result }), 3);
                    }
                }
            }
            ended
        }
    }

    /// Whoever comes first makes the meeting; every step runs once with both
    /// buffers visible; one sees the end; one frees, after all uses.
    #[test]
    fn two_members_meet_once_and_one_sees_the_end() {
        loom::model(|| {
            let comm = Comm::new();
            let other = {
                let comm = Arc::clone(&comm);
                thread::spawn(move || comm.take_part(1))
            };
            let mine = comm.take_part(0);
            let theirs = other.join().expect("the other member ends");
            assert_eq!((mine.0 + theirs.0, mine.1 + theirs.1), (1, 1));
        });
    }

    /// A thief with a reference of its own helps while the members come and go.
    #[test]
    fn a_thief_takes_steps_only_of_an_open_meeting() {
        loom::model(|| {
            let comm = Comm::new();
            let meeting = join(&comm.first, 2);
            meeting.retain();
            let (made, shared) = (Made(meeting), Arc::clone(&comm));
            let thief = thread::spawn(move || {
                let Made(meeting) = { made };
                (shared.work(meeting, End::Back), leave(meeting, 2))
            });
            let first = comm.take_part(0);
            let second = comm.take_part(1);
            let stolen = thief.join().expect("the thief ends");
            assert_eq!(first.0 + second.0 + stolen.0, 1);
            assert_eq!(first.1 + second.1 + stolen.1, 1);
        });
    }

    /// A member's request, as `pool/work.rs` has it: its reference to the meeting under the rank's claim.
    struct Record {
        state: AtomicU32,
        membership: Mutex<Option<Made>>,
    }

    const PENDING: u32 = 0;
    const COMPLETE: u32 = 1;
    const SPENT: u32 = 2;

    impl Record {
        /// By the holder of the claim: gives the reference back, if nobody has; 1 if that frees the meeting.
        fn give_back(membership: &mut Option<Made>) -> u32 {
            membership.take().map_or(0, |Made(meeting)| leave(meeting, 1))
        }
    }

    /// The owner ends an operation without the claim and starts the next one with it, while a thief completes the
    /// first, uses the part once more, and forgets it under the claim: the reference is given back once, after all
    /// uses.
    #[test]
    fn a_record_that_is_spent_gives_its_reference_back_once() {
        loom::model(|| {
            let comm = Comm::new();
            let meeting = join(&comm.first, 1);
            // SAFETY: the record's reference, and the thief's; the only member comes once.
            unsafe {
                meeting.retain();
                assert!(meeting.post(0, 0));
                meeting.open((), 1);
            }
            let record =
                Arc::new(Record { state: AtomicU32::new(PENDING), membership: Mutex::new(Some(Made(meeting))) });
            let (working, shared) = (Made(meeting), Arc::clone(&record));
            let thief = thread::spawn(move || {
                let Made(meeting) = { working };
                // SAFETY: its own reference, until it leaves.
                unsafe {
                    assert!(meeting.take(End::Back).is_some());
                    assert!(meeting.finish());
                    shared.state.store(COMPLETE, Ordering::Release);
                    assert_eq!(*meeting.part_of(0), 0);
                }
                let freed = leave(meeting, 1);
                let mut membership = shared.membership.lock().expect("the claim");
                match shared.state.load(Ordering::Acquire) {
                    PENDING => freed,
                    _ => freed + Record::give_back(&mut membership),
                }
            });
            while record.state.load(Ordering::Acquire) != COMPLETE {
                thread::yield_now();
            }
            record.state.store(SPENT, Ordering::Relaxed);
            let mut membership = record.membership.lock().expect("the claim");
            let freed = Record::give_back(&mut membership);
            record.state.store(PENDING, Ordering::Relaxed);
            drop(membership);
            let stolen = thief.join().expect("the thief ends");
            assert_eq!(freed + stolen, 1);
        });
    }

    /// One who opens a meeting of nobody, and one who waits for that, share its work.
    #[test]
    fn two_share_the_work_of_a_meeting_of_nobody() {
        loom::model(|| {
            let comm = Comm::new();
            let work = Arc::new(Meeting::<usize, ()>::of_nobody());
            let copy = |comm: &Comm, work: &Meeting<usize, ()>, end| {
                while let Some((step, ())) = work.take(end) {
                    // SAFETY: we have the step; loom checks the accesses.
                    unsafe { comm.results[step as usize].with_mut(|result| *result += 1) };
                    let _ = work.finish();
                }
            };
            let lender = {
                let (comm, work) = (Arc::clone(&comm), Arc::clone(&work));
                thread::spawn(move || {
                    while work.plan().is_none() {
                        thread::yield_now();
                    }
                    copy(&comm, &work, End::Back);
                })
            };
            // SAFETY: this thread alone opens, once.
            unsafe { work.open((), 2) };
            copy(&comm, &work, End::Front);
            while !work.is_finished() {
                thread::yield_now();
            }
            for result in &comm.results {
                // SAFETY: loom checks that all writes come before.
                assert_eq!(result.with(|result| unsafe { *result }), 1);
            }
            lender.join().expect("the lender ends");
        });
    }
}

#[cfg(not(loom))]
mod units {
    use super::*;

    #[test]
    fn members_find_the_same_meetings_in_the_same_order() {
        let first: Link<u32, ()> = Link::new();
        let (one, again) = (join(&first, 2), join(&first, 2));
        assert_eq!(one, again);
        let two = join(one.next(), 2);
        assert_ne!(one, two);
        let branch = join(one.branch(), 2);
        assert_ne!(two, branch);
        for meeting in [branch, two, one] {
            assert_eq!((leave(meeting, 2), leave(meeting, 2)), (0, 1));
        }
    }

    #[test]
    fn steps_exist_after_the_last_has_come() {
        let first: Link<u32, &str> = Link::new();
        let meeting = join(&first, 2);
        // SAFETY: two members, each once; two references.
        unsafe {
            let open = meeting;
            assert!(!open.post(1, 11));
            assert!(open.take(End::Front).is_none() && !open.is_exhausted());
            assert!(open.post(0, 10));
            assert_eq!((*open.part_of(0), *open.part_of(1)), (10, 11));
            open.open("plan", 3);
            assert_eq!(open.take(End::Front), Some((0, &"plan")));
            assert_eq!(open.take(End::Back), Some((2, &"plan")));
            assert_eq!(open.take(End::Back), Some((1, &"plan")));
            assert!(open.is_exhausted());
            assert!(open.take(End::Front).is_none() && open.take(End::Back).is_none());
            assert!(!open.finish() && !open.finish());
            assert!(open.finish());
        }
        assert_eq!((leave(meeting, 2), leave(meeting, 2)), (0, 1));
    }

    #[test]
    fn a_meeting_without_steps_is_exhausted_at_once() {
        let first: Link<u32, ()> = Link::new();
        let meeting = join(&first, 1);
        // SAFETY: one member, once; one reference.
        unsafe {
            assert!(meeting.post(0, 0));
            meeting.open((), 0);
            assert!(meeting.is_exhausted());
        }
        assert_eq!(leave(meeting, 1), 1);
    }
}
