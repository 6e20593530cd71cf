//! The ranges of ranks, tried one after the other and modelled by loom.

use super::*;

#[cfg(not(loom))]
mod in_order {
    extern crate std;
    use super::*;
    use std::boxed::Box;

    fn note(claims: &Claims, rank: u32, start: usize, end: usize) {
        let verdict = claims.map(rank, (start, end), || Answer::Mapped);
        assert_eq!(verdict, Verdict::Answered);
    }

    fn give_up(claims: &Claims, rank: u32, start: usize, end: usize) {
        claims.unmap(rank, (start, end), || true);
    }

    #[test]
    fn ranges_belong_to_whoever_mapped_them() {
        static CLAIMS: Claims = Claims::new();
        note(&CLAIMS, 0, 100, 200);
        let refused = CLAIMS.map(1, (150, 160), || Answer::Taken);
        assert_eq!(refused, Verdict::Of(0));
        assert!(CLAIMS.covers(0, 120, 130) && !CLAIMS.covers(1, 150, 160));
        assert_eq!(CLAIMS.other(1, 190, 300), Some(0));
        assert_eq!(CLAIMS.other(1, 200, 300), None);
        assert_eq!(CLAIMS.other(0, 0, 1000), None);
        give_up(&CLAIMS, 1, 100, 200);
        assert_eq!(CLAIMS.other(1, 190, 300), Some(0));
        give_up(&CLAIMS, 0, 180, 400);
        assert_eq!(CLAIMS.other(1, 180, 300), None);
        give_up(&CLAIMS, 0, 0, 110);
        assert_eq!((CLAIMS.other(2, 0, 110), CLAIMS.other(2, 0, 111)), (None, Some(0)));
        give_up(&CLAIMS, 0, 110, 180);
        assert_eq!(CLAIMS.other(1, 0, 1000), None);
    }

    #[test]
    fn a_hole_is_nobodys_and_what_is_around_it_stays() {
        let claims = Box::leak(Box::new(Claims::new()));
        note(claims, 4, 100, 200);
        give_up(claims, 4, 140, 160);
        assert!(claims.covers(4, 100, 140) && claims.covers(4, 160, 200));
        assert!(!claims.covers(4, 140, 160));
        assert_eq!(claims.other(1, 140, 160), None);
        note(claims, 1, 140, 160);
        assert_eq!(claims.other(4, 100, 200), Some(1));
    }

    #[test]
    fn what_was_not_unmapped_stays() {
        let claims = Box::leak(Box::new(Claims::new()));
        note(claims, 2, 100, 200);
        claims.unmap(2, (100, 200), || false);
        assert!(claims.covers(2, 100, 200));
    }

    #[test]
    fn what_some_was_unmapped_of_is_shorter() {
        let claims = Box::leak(Box::new(Claims::new()));
        note(claims, 2, 100, 200);
        note(claims, 2, 200, 220);
        claims.unmap_some(2, (100, 210), || Some((150, 210)));
        assert!(claims.covers(2, 100, 150) && claims.covers(2, 210, 220));
        assert_eq!((claims.other(1, 150, 210), claims.other(1, 149, 150)), (None, Some(2)));
        claims.unmap_some(2, (100, 220), || Some((210, 220)));
        assert!(claims.covers(2, 100, 150) && claims.other(1, 150, 220).is_none());
    }

    #[test]
    fn own_memory_is_told_from_that_of_others() {
        let claims = Box::leak(Box::new(Claims::new()));
        let verdict = claims.map(1, (10, 20), || Answer::Taken);
        assert_eq!(verdict, Verdict::Unnoted);
        assert_eq!(claims.map(1, (10, 20), || Answer::Failed), Verdict::Answered);
        assert!(!claims.covers(1, 10, 20));
    }

    #[test]
    fn a_row_that_is_never_settled_is_somebodys_and_one_that_is_written_nobodys() {
        let claims = Box::leak(Box::new(Claims::new()));
        let open = claims.begin(3, 10, 20);
        assert_eq!(claims.other(1, 0, 15), Some(3));
        let row = &claims.rows[open.expect("room").0];
        // Its task was interrupted before it had asked the kernel.
        row.owner.fetch_or(WRITING, Ordering::Relaxed);
        assert_eq!(claims.other(1, 0, 15), None);
    }
}

/// The kernel has two pages, and a lock, as `mmap` and `munmap` have.
#[cfg(loom)]
mod models {
    extern crate std;
    use super::*;
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    struct Model {
        claims: Claims,
        /// The rank that has each page.
        pages: Mutex<[Option<u32>; 2]>,
    }

    fn explore(model: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    }

    impl Model {
        fn new() -> Arc<Self> {
            Arc::new(Self { claims: Claims::new(), pages: Mutex::new([None; 2]) })
        }

        fn map(&self, rank: u32, pages: (usize, usize)) -> Verdict {
            self.claims.map(rank, pages, || {
                let mut all = self.pages.lock().unwrap();
                let wanted = &mut all[pages.0..pages.1];
                if wanted.iter().any(Option::is_some) {
                    return Answer::Taken;
                }
                wanted.fill(Some(rank));
                Answer::Mapped
            })
        }

        fn unmap(&self, rank: u32, pages: (usize, usize)) {
            self.claims.unmap(rank, pages, || {
                let mut all = self.pages.lock().unwrap();
                for page in &mut all[pages.0..pages.1] {
                    assert_eq!(page.take(), Some(rank), "unmaps what is another's");
                }
                true
            });
        }
    }

    /// Both map the first page: one has it, and the other one is told by whom it is refused.
    #[test]
    fn of_two_one_has_it_and_the_other_knows_who() {
        explore(|| {
            let model = Model::new();
            let other = {
                let model = Arc::clone(&model);
                thread::spawn(move || model.map(1, (0, 1)))
            };
            let verdicts = [model.map(0, (0, 2)), other.join().unwrap()];
            let first = model.pages.lock().unwrap()[0];
            match first {
                Some(0) => assert_eq!(verdicts, [Verdict::Answered, Verdict::Of(0)]),
                Some(1) => assert_eq!(verdicts, [Verdict::Of(1), Verdict::Answered]),
                _ => panic!("nobody has it: {verdicts:?}"),
            }
            assert!(model.claims.covers(first.unwrap(), 0, 1));
        });
    }

    /// One unmaps what another wants: it gets the page, or is refused by name, but never takes it for its own memory,
    /// which it would map over.
    #[test]
    fn memory_that_is_being_unmapped_is_not_taken() {
        explore(|| {
            let model = Model::new();
            assert_eq!(model.map(0, (0, 2)), Verdict::Answered);
            let other = {
                let model = Arc::clone(&model);
                thread::spawn(move || model.map(1, (0, 1)))
            };
            model.unmap(0, (0, 1));
            let verdict = other.join().unwrap();
            let pages = *model.pages.lock().unwrap();
            match verdict {
                Verdict::Answered => assert_eq!(pages, [Some(1), Some(0)]),
                Verdict::Of(0) => assert_eq!(pages, [None, Some(0)]),
                other => panic!("{other:?}"),
            }
            assert!(model.claims.covers(0, 1, 2) && !model.claims.covers(0, 0, 1));
        });
    }

    /// Two threads of a rank unmap a part each of one range.
    #[test]
    fn parts_that_threads_unmap_are_left() {
        explore(|| {
            let model = Model::new();
            assert_eq!(model.map(0, (0, 2)), Verdict::Answered);
            let other = {
                let model = Arc::clone(&model);
                thread::spawn(move || model.unmap(0, (1, 2)))
            };
            model.unmap(0, (0, 1));
            other.join().unwrap();
            assert_eq!(model.claims.other(1, 0, 2), None);
            assert!(!model.claims.covers(0, 0, 1) && !model.claims.covers(0, 1, 2));
        });
    }
}
