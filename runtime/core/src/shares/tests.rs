use super::*;

/// Under loom, which reports every unordered access.
#[cfg(loom)]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    struct Work {
        shares: Shares,
        /// What each chunk's taker writes and the last finisher reads.
        chunks: [UnsafeCell<u32>; 2],
        /// What is done to the memory: used by holders of a reference, freed by the last.
        memory: UnsafeCell<u32>,
    }

    impl Work {
        /// Takes chunks until none is left; the number of times it was the last finisher.
        fn help(&self) -> u32 {
            let mut last = 0;
            while let Some(chunk) = self.shares.take() {
                let index = chunk.start as usize;
                // SAFETY: loom checks that nobody else accesses the chunk.
                self.chunks[index].with_mut(|chunk| unsafe { *chunk += 1 });
                if self.shares.finish(1) {
                    last += 1;
                    for chunk in &self.chunks {
                        // SAFETY: loom checks that all writes come before.
                        assert_eq!(chunk.with(|chunk| unsafe { *chunk }), 1);
                    }
                }
            }
            last
        }

        /// Gives a reference back, and frees like a job does.
        fn leave(&self) -> u32 {
            // SAFETY: a shared access by a holder; loom checks it against the exclusive one.
            self.memory.with(|memory| unsafe { assert_eq!(*memory, 0) });
            let last = self.shares.release();
            if last {
                // SAFETY: loom checks that nobody else accesses the memory.
                self.memory.with_mut(|memory| unsafe { *memory = 1 });
            }
            u32::from(last)
        }
    }

    /// Two ranks copy, a third lets go of the list's reference: everything is copied
    /// once, one of them completes the message, and one frees the job, after all uses.
    #[test]
    fn a_job_is_completed_once_and_freed_last() {
        loom::model(|| {
            let work = Arc::new(Work {
                shares: Shares::new(2, 1, 3),
                chunks: [UnsafeCell::new(0), UnsafeCell::new(0)],
                memory: UnsafeCell::new(0),
            });
            let helper = {
                let work = Arc::clone(&work);
                thread::spawn(move || (work.help(), work.leave()))
            };
            let list = {
                let work = Arc::clone(&work);
                thread::spawn(move || work.leave())
            };
            let (last, freed) = (work.help(), work.leave());
            let (helper_last, helper_freed) = helper.join().expect("the helper ends");
            let list_freed = list.join().expect("the list ends");
            assert_eq!(last + helper_last, 1);
            assert_eq!(freed + helper_freed + list_freed, 1);
        });
    }
}

#[cfg(not(loom))]
mod units {
    use super::*;

    #[test]
    fn chunks_cover_the_work_once_and_the_last_finisher_is_one() {
        let shares = Shares::new(1000, 300, 1);
        let mut covered = 0;
        let mut last = 0;
        while let Some(chunk) = shares.take() {
            assert_eq!(chunk.start, covered);
            covered = chunk.end;
            last += u32::from(shares.finish(chunk.end - chunk.start));
        }
        assert_eq!((covered, last), (1000, 1));
        assert!(shares.is_exhausted());
    }

    #[test]
    fn the_last_reference_is_told() {
        let shares = Shares::new(1, 1, 2);
        shares.retain();
        assert!(!shares.release());
        assert!(!shares.release());
        assert!(shares.release());
    }
}
