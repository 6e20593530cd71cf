use super::*;

/// Entries of one row; all-zero memory is what [`Entry`] needs, but loom's atomics are made.
fn entry() -> Entry {
    Entry {
        word: AtomicU64::new(0),
        long: UnsafeCell::new(core::ptr::null_mut()),
        data: UnsafeCell::new([0; ROOM / 8]),
    }
}

/// Under loom, which reports every unordered access.
#[cfg(loom)]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    struct Row {
        entries: [Entry; 3],
        /// What stands for the data of the root.
        data: UnsafeCell<u64>,
    }

    impl Row {
        fn new() -> Arc<Self> {
            Arc::new(Self { entries: [entry(), entry(), entry()], data: UnsafeCell::new(0) })
        }

        /// The root posts; `true`: what it posted counts.
        fn post(&self) -> bool {
            // SAFETY: loom checks that nobody reads the data meanwhile; the root posts once.
            unsafe {
                self.entries[0].post_unless_large(SMALL, None, |_| {
                    self.data.with_mut(|data| *data = 7);
                })
            }
        }

        /// What a member finds that expects a small operation; `true`: the root's data.
        fn await_root(&self) -> bool {
            while self.entries[0].word() == 0 {
                thread::yield_now();
            }
            let is_small = self.entries[0].word() == SMALL;
            if is_small {
                // SAFETY: loom checks that nobody writes the data meanwhile.
                assert_eq!(self.data.with(|data| unsafe { *data }), 7);
            }
            is_small
        }
    }

    /// A root and members that disagree all go the same way.
    #[test]
    fn a_root_and_its_members_choose_one_way() {
        loom::model(|| {
            let row = Row::new();
            let large = {
                let row = Arc::clone(&row);
                thread::spawn(move || match row.entries[0].choose_large(LARGE) {
                    true => false,
                    false => row.await_root(),
                })
            };
            let small = {
                let row = Arc::clone(&row);
                thread::spawn(move || row.await_root())
            };
            let root = row.post();
            assert_eq!(large.join().expect("a member ends"), root);
            assert_eq!(small.join().expect("a member ends"), root);
        });
    }

    /// A sender that leaves and members that are large: one of them stands in for it.
    #[test]
    fn somebody_stands_in_for_a_sender_that_leaves() {
        loom::model(|| {
            let row = Row::new();
            let large = [1, 2].map(|me| {
                let row = Arc::clone(&row);
                thread::spawn(move || {
                    row.entries[me].mark(LARGE);
                    fence(Ordering::SeqCst);
                    row.entries[0].stand_in()
                })
            });
            row.entries[0].mark(SMALL);
            fence(Ordering::SeqCst);
            let sees = row.entries.iter().any(|it| it.word() & LARGE != 0);
            let mine = sees && row.entries[0].stand_in();
            let theirs = large.map(|it| it.join().expect("a member ends"));
            let all = theirs.into_iter().chain([mine]);
            assert_eq!(all.filter(|&it| it).count(), 1);
            assert_eq!(row.entries[0].word(), SMALL | STOOD_IN);
        });
    }

    /// Of members that post at the same time at least one sees all posts, and so wakes a sleeper.
    #[test]
    fn somebody_posts_last() {
        loom::model(|| {
            let row = Row::new();
            let others = [1, 2].map(|me| {
                let row = Arc::clone(&row);
                thread::spawn(move || {
                    row.entries[me].mark(SMALL);
                    is_last(row.entries.iter())
                })
            });
            row.entries[0].mark(SMALL);
            let mine = is_last(row.entries.iter());
            let all = others.map(|it| it.join().expect("a member ends"));
            assert!(mine || all.contains(&true));
        });
    }
}

#[cfg(not(loom))]
mod units {
    use super::*;

    #[test]
    fn a_root_posts_unless_somebody_has_chosen_otherwise() {
        let (free, taken) = (entry(), entry());
        // SAFETY: each is posted once.
        unsafe {
            assert!(free.post_unless_large(SMALL, None, |out| out.write(9)));
            assert!(taken.choose_large(LARGE | 16) && taken.choose_large(LARGE));
            assert!(!taken.post_unless_large(SMALL, None, |_| {}));
            assert_eq!(*free.data(1), 9);
        }
        assert!(!free.choose_large(LARGE));
        assert_eq!((free.word(), taken.word()), (SMALL, LARGE | 16));
        assert!(is_last([&free, &taken].into_iter()) && !is_last([&free, &entry()].into_iter()));
    }
}
