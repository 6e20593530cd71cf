extern crate std;
use super::*;
use std::boxed::Box;
use std::vec::Vec;

fn ring(slots: usize) -> &'static Ring {
    let slots: Vec<Slot> = (0..slots).map(|_| Slot::new()).collect();
    Box::leak(Box::new(Ring::new(slots.leak())))
}

/// An event all of whose words say the same number.
fn event(number: u64) -> Event {
    Event {
        kind: EventKind::Sent,
        peer: number as u32,
        thread: number,
        begin: number,
        end: number,
        flow: number,
        bytes: number,
        tag: number as i32,
        name: number as u8,
    }
}

fn is_whole(event: &Event) -> bool {
    *event == self::event(event.begin)
}

#[cfg(not(loom))]
mod plain {
    use super::*;
    use std::thread;

    #[test]
    fn the_newest_events_are_kept_and_the_others_counted() {
        let ring = ring(8);
        (0..21).for_each(|number| assert_eq!(ring.note(&event(number)), number));
        let mut kept: Vec<u64> = ring.events().map(|(number, _)| number).collect();
        kept.sort_unstable();
        assert_eq!(kept, [13, 14, 15, 16, 17, 18, 19, 20]);
        assert!(ring.events().all(|(number, it)| it == event(number)));
        assert_eq!(ring.noted(), 21);
    }

    #[test]
    fn every_kind_and_value_comes_back() {
        let ring = ring(16);
        let strange = |kind| Event {
            kind,
            peer: NOBODY,
            thread: u64::MAX,
            begin: 1 << 63,
            end: u64::MAX,
            flow: u64::MAX - 1,
            bytes: u64::MAX - 2,
            tag: i32::MIN,
            name: 255,
        };
        for kind in EventKind::ALL {
            ring.note(&strange(kind));
        }
        let back: Vec<Event> = ring.events().map(|(_, event)| event).collect();
        assert_eq!(back, EventKind::ALL.map(strange));
    }

    /// A writer that was killed in the middle leaves no event, and costs the ring that slot only.
    #[test]
    fn a_torn_event_is_told_apart() {
        let ring = ring(4);
        for number in 0..4 {
            ring.note(&event(number));
        }
        let torn = &ring.slots()[1];
        torn.stamp.store(2 * (1 + 1) + 1, Ordering::Relaxed);
        torn.words[0].store(99, Ordering::Relaxed);
        for number in 4..8 {
            ring.note(&event(number));
        }
        let kept: Vec<u64> = ring.events().map(|(number, _)| number).collect();
        assert_eq!((kept, ring.noted()), (std::vec![4, 6, 7], 8));
    }

    /// A call gets its end in its own event, and in no other one that has come to its slot.
    #[test]
    fn a_call_ends_where_it_began_if_it_is_still_there() {
        let ring = ring(2);
        let call = |number| Event { end: 0, ..event(number) };
        let first = ring.note(&call(7));
        let second = ring.note(&call(8));
        assert!(ring.end(second, 80));
        let ends = || ring.events().map(|(number, it)| (number, it.end));
        assert_eq!(ends().collect::<Vec<_>>(), [(0, 0), (1, 80)]);
        ring.note(&call(9));
        assert!(!ring.end(first, 70));
        assert_eq!(ends().collect::<Vec<_>>(), [(2, 0), (1, 80)]);
    }

    #[test]
    fn threads_and_a_reader_see_whole_events() {
        let ring = ring(4);
        let rounds = if cfg!(miri) { 50 } else { 20_000 };
        thread::scope(|scope| {
            for first in 0..3 {
                scope.spawn(move || {
                    for round in 0..rounds {
                        ring.note(&event(3 * round + first));
                    }
                });
            }
            for _ in 0..rounds {
                assert!(ring.events().all(|(_, event)| is_whole(&event)));
            }
        });
        assert_eq!(ring.noted(), 3 * rounds);
        assert!(ring.events().all(|(_, event)| is_whole(&event)));
    }
}

#[cfg(loom)]
mod models {
    use super::*;
    use loom::thread;

    /// Two writers meet in one slot while a reader looks.
    #[test]
    fn no_event_is_mixed_of_two() {
        loom::model(|| {
            let ring = ring(1);
            let writers = [1, 2].map(|number| thread::spawn(move || ring.note(&event(number))));
            assert!(ring.events().all(|(_, event)| is_whole(&event)));
            for writer in writers {
                writer.join().unwrap();
            }
            let (held, events) = (ring.events().count(), ring.noted());
            assert!(held <= 1 && events == 2);
            assert!(ring.events().all(|(_, event)| is_whole(&event)));
        });
    }

    /// Whether an event is whole, or the first one with its call's end.
    fn is_right(event: &Event) -> bool {
        is_whole(event) || event.begin == 1 && event.end == 90
    }

    /// A call ends while another event takes its slot.
    #[test]
    fn an_end_is_that_of_its_own_event() {
        loom::model(|| {
            let ring = ring(1);
            let first = ring.note(&event(1));
            let other = thread::spawn(move || ring.note(&event(2)));
            ring.end(first, 90);
            other.join().unwrap();
            assert!(ring.events().all(|(_, event)| is_right(&event)));
            assert_eq!(ring.events().count(), 1);
        });
    }

    /// A call ends while a reader looks.
    #[test]
    fn an_end_is_seen_whole() {
        loom::model(|| {
            let ring = ring(1);
            let first = ring.note(&event(1));
            let reader = thread::spawn(move || ring.events().all(|(_, event)| is_right(&event)));
            ring.end(first, 90);
            assert!(reader.join().unwrap());
            assert!(ring.events().all(|(_, event)| event.end == 90));
        });
    }

    /// The newer of two events stays, or the other one if it was in the way.
    #[test]
    fn a_slower_writer_does_not_overwrite_a_newer_event() {
        loom::model(|| {
            let ring = ring(1);
            let other = thread::spawn(move || ring.note(&event(1)));
            ring.note(&event(2));
            other.join().unwrap();
            assert_eq!(ring.events().count(), 1);
        });
    }
}
