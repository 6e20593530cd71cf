use super::*;
use cohort_base::sync::atomic::AtomicU32;

/// Something of so many bytes that notes how often it has ended.
struct Thing {
    length: u64,
    ended: AtomicU32,
}

impl Thing {
    fn new(length: u64) -> Self {
        Self { length, ended: AtomicU32::new(0) }
    }

    fn item(&self) -> NonNull<Self> {
        NonNull::from(self)
    }

    fn has_ended(&self) -> bool {
        let ended = self.ended.load(Ordering::Relaxed);
        assert!(ended < 2, "ended twice");
        ended == 1
    }
}

impl Item for Thing {
    unsafe fn length(this: NonNull<Self>) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { this.as_ref() }.length
    }

    unsafe fn release(this: NonNull<Self>) {
        // SAFETY: the caller's promise.
        unsafe { this.as_ref() }.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// With real threads, and without loom's.
#[cfg(not(loom))]
mod laws {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    fn things(lengths: &[u64]) -> Vec<Thing> {
        lengths.iter().map(|&length| Thing::new(length)).collect()
    }

    #[test]
    fn what_fits_is_given_once() {
        let (kept, things) = (Kept::new(100), things(&[30, 50]));
        for thing in &things {
            // SAFETY: valid, and put once.
            unsafe { kept.put(thing.item()) };
        }
        assert_eq!(kept.bytes(), 80);
        assert_eq!(kept.take(60..=100), None);
        assert_eq!(kept.take(31..=60), Some(things[1].item()));
        assert_eq!(kept.take(31..=60), None);
        assert_eq!(kept.bytes(), 30);
        assert_eq!(kept.clear(), 30);
        assert!(things[0].has_ended() && !things[1].has_ended());
        assert_eq!(kept.bytes(), 0);
    }

    #[test]
    fn new_ones_take_the_place_of_old_ones() {
        let (kept, things) = (Kept::new(100), things(&[60, 60, 101, 40]));
        for thing in &things {
            // SAFETY: as above.
            unsafe { kept.put(thing.item()) };
        }
        assert_eq!(things.iter().map(Thing::has_ended).collect::<Vec<_>>(), [true, false, true, false]);
        assert_eq!(kept.bytes(), 100);
        kept.clear();
    }

    #[test]
    fn no_more_are_kept_than_there_are_slots() {
        let (kept, things) = (Kept::new(100), things(&[1; SLOTS + 3]));
        for thing in &things {
            // SAFETY: as above.
            unsafe { kept.put(thing.item()) };
        }
        assert_eq!(things.iter().filter(|thing| thing.has_ended()).count(), 3);
        assert_eq!(kept.clear(), SLOTS as u64);
    }

    #[test]
    fn nothing_is_kept_where_there_is_no_room() {
        let (kept, things) = (Kept::new(0), things(&[1]));
        // SAFETY: as above.
        unsafe { kept.put(things[0].item()) };
        assert!(things[0].has_ended());
    }
}

/// Under loom, which has two slots.
#[cfg(loom)]
mod models {
    use super::*;
    extern crate std;
    use loom::sync::Arc;
    use loom::thread;
    use std::vec::Vec;

    struct Shared {
        kept: Kept<Thing>,
        things: [Thing; 3],
        owned: [AtomicU32; 3],
    }

    // SAFETY: items are atomic; who may touch them is what is tested.
    unsafe impl Sync for Shared {}
    // SAFETY: as above.
    unsafe impl Send for Shared {}

    impl Shared {
        /// Puts what the caller owns.
        fn put(&self, index: usize) {
            assert_eq!(self.owned[index].swap(0, Ordering::Relaxed), 1, "put by its owner");
            // SAFETY: valid, and the caller's.
            unsafe { self.kept.put(self.things[index].item()) };
        }

        /// Takes what is of a length, and owns it.
        fn take(&self, lengths: RangeInclusive<u64>) -> Option<usize> {
            let taken = self.kept.take(lengths)?;
            let index = self.things.iter().position(|thing| thing.item() == taken).expect("one of them");
            // SAFETY: it was taken.
            assert!(!unsafe { taken.as_ref() }.has_ended());
            assert_eq!(self.owned[index].swap(1, Ordering::Relaxed), 0, "taken once");
            Some(index)
        }
    }

    /// Two that free, and one that looks for a length: each item is owned by one, kept, or ended, and counted.
    fn each_item_is_in_one_place(most: u64) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.check(move || {
            let shared = Arc::new(Shared {
                kept: Kept::new(most),
                things: [2, 3, 3].map(Thing::new),
                owned: [1, 1, 1].map(AtomicU32::new),
            });
            shared.put(2);
            let others = [0, 1].map(|index| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.put(index))
            });
            let taken = shared.take(2..=2);
            assert!(taken.is_none_or(|index| index == 0));
            for other in others {
                other.join().expect("it ends");
            }
            let bytes = shared.kept.bytes();
            let ended: Vec<_> = shared.things.iter().map(Thing::has_ended).collect();
            assert_eq!(shared.kept.clear(), bytes);
            for (index, was_ended) in ended.into_iter().enumerate() {
                let is_owned = shared.owned[index].load(Ordering::Relaxed) == 1;
                let is_ended = shared.things[index].has_ended();
                assert!(is_owned != is_ended && !(is_owned && was_ended), "{index} is lost");
            }
            assert_eq!(shared.kept.bytes(), 0);
        });
    }

    #[test]
    fn items_that_all_have_room() {
        each_item_is_in_one_place(8);
    }

    #[test]
    fn items_that_take_the_place_of_others() {
        each_item_is_in_one_place(5);
    }
}
