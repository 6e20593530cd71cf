use super::*;
use std::alloc::{Layout, alloc, dealloc};

fn layout(size: u32) -> Layout {
    Layout::from_size_align(Board::bytes(size), Board::ALIGN).expect("small")
}

fn made(size: u32) -> RecordRef<Board> {
    // SAFETY: the layout is not empty; a fresh block.
    unsafe {
        let block = NonNull::new(alloc(layout(size))).expect("memory");
        Board::make(block, size)
    }
}

/// Gives a reference back; 1 if it was the last.
fn leave(board: RecordRef<Board>, size: u32) -> u32 {
    // SAFETY: the callers have a reference; the memory came from `made`.
    unsafe {
        let Some(block) = Board::release(board) else {
            return 0;
        };
        dealloc(block.as_ptr(), layout(size));
        1
    }
}

/// Under loom, which reports every unordered access.
#[cfg(loom)]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;
    use std::vec::Vec;

    /// A board, and what stands for the data of its entries.
    struct Shared {
        board: RecordRef<Board>,
        data: [[UnsafeCell<u64>; ROUNDS]; 3],
    }

    // SAFETY: a board is made to be shared; loom checks the cells.
    unsafe impl Send for Shared {}
    // SAFETY: as above.
    unsafe impl Sync for Shared {}

    impl Shared {
        fn new(size: u32) -> Arc<Self> {
            Arc::new(Self {
                board: made(size),
                data: core::array::from_fn(|_| core::array::from_fn(|_| UnsafeCell::new(0))),
            })
        }

        fn board(&self) -> &Board {
            &self.board
        }

        fn cell(&self, member: u32, start: u64) -> &UnsafeCell<u64> {
            &self.data[member as usize][start as usize % ROUNDS]
        }

        fn post(&self, member: u32, start: u64) {
            let cell = self.cell(member, start);
            // SAFETY: loom checks that nobody reads the cell meanwhile.
            let fill = |_| cell.with_mut(|data| unsafe { *data = start });
            // SAFETY: the models' members keep to the protocol.
            unsafe { self.board().post(member, start, fill) };
        }

        fn read(&self, member: u32, start: u64) {
            while !self.board().has_posted(member, start) {
                thread::yield_now();
            }
            // SAFETY: loom checks that nobody writes the cell meanwhile.
            let data = self.cell(member, start).with(|data| unsafe { *data });
            assert_eq!(data, start);
        }
    }

    /// A root runs ahead of its reader as far as it may, and no entry is written while it is read.
    #[test]
    fn a_root_waits_for_room_and_its_reader_for_posts() {
        loom::model(|| {
            let shared = Shared::new(2);
            const STARTS: u64 = ROUNDS as u64 + 1;
            let reader = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    for start in 1..=STARTS {
                        shared.read(0, start);
                        shared.board().complete(1, start);
                    }
                    leave(shared.board, 2)
                })
            };
            for start in 1..=STARTS {
                while !Board::is_room(shared.board().latest(1..2), start) {
                    thread::yield_now();
                }
                shared.post(0, start);
            }
            let mine = leave(shared.board, 2);
            assert_eq!(mine + reader.join().expect("the reader ends"), 1);
        });
    }

    /// Where each awaits all, posts alone keep entries from being written too early.
    #[test]
    fn members_that_await_each_other_need_no_look_for_room() {
        loom::model(|| {
            let shared = Shared::new(2);
            let take_part = |shared: Arc<Shared>, me: u32| {
                for start in 1..=3 {
                    shared.post(me, start);
                    shared.read(1 - me, start);
                }
                leave(shared.board, 2)
            };
            let other = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || take_part(shared, 1))
            };
            let mine = take_part(shared, 0);
            assert_eq!(mine + other.join().expect("the other member ends"), 1);
        });
    }

    /// Of members that post at the same time at least one sees all posts, and so wakes a sleeper.
    #[test]
    fn somebody_is_the_last() {
        loom::model(|| {
            let shared = Shared::new(3);
            let others: Vec<_> = [1, 2]
                .map(|me| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || {
                        shared.post(me, 1);
                        let is_last = shared.board().is_last(1);
                        (is_last, leave(shared.board, 3))
                    })
                })
                .into();
            shared.post(0, 1);
            let mut is_last = shared.board().is_last(1);
            let mut freed = leave(shared.board, 3);
            for other in others {
                let (other_is_last, other_freed) = other.join().expect("a member ends");
                is_last |= other_is_last;
                freed += other_freed;
            }
            assert!(is_last);
            assert_eq!(freed, 1);
        });
    }

    /// Of readers that complete a start at the same time at least one sees that all have, and so wakes a root.
    #[test]
    fn some_reader_is_the_last() {
        loom::model(|| {
            let shared = Shared::new(3);
            let read = |shared: &Shared, me: u32| {
                shared.board().complete(me, 1);
                let is_last = shared.board().is_last_reader(1, 1);
                (is_last, leave(shared.board, 3))
            };
            let other = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || read(&shared, 2))
            };
            let mine = read(&shared, 0);
            let theirs = other.join().expect("the other reader ends");
            let roots = leave(shared.board, 3);
            assert!(mine.0 || theirs.0);
            assert_eq!(mine.1 + theirs.1 + roots, 1);
        });
    }
}

#[cfg(not(loom))]
mod units {
    use super::*;

    #[test]
    fn posts_are_found_by_their_start_and_room_by_the_readers_progress() {
        let made = made(2);
        // SAFETY: our references; one thread plays both members.
        unsafe {
            let board = made;
            let rounds = ROUNDS as u64;
            let has_room = |start| Board::is_room(board.latest(1..2), start);
            for start in 1..=rounds {
                assert!(has_room(start) && !board.has_posted(0, start));
                board.post(0, start, |room| room.cast::<u64>().write(7 * start));
                assert!(board.has_posted(0, start) && !board.is_last(start));
            }
            assert!(!has_room(rounds + 1));
            assert_eq!(*board.data_of(0, 3).cast::<u64>(), 21);
            board.complete(1, 1);
            assert!(has_room(rounds + 1) && !has_room(rounds + 2));
            assert!(board.is_last_reader(0, 1) && !board.is_last_reader(0, 2));
            board.post(1, 2, |_| {});
            assert!(board.is_last(2));
        }
        assert_eq!((leave(made, 2), leave(made, 2)), (0, 1));
    }
}
