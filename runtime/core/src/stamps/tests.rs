//! The stamps of one rank.

use super::{ASLEEP, AWAKE, Stamps, VACANT};

#[test]
fn a_rank_sleeps_when_all_of_its_waits_do() {
    let stamps = Stamps::new();
    assert_eq!(stamps.sleeps(), None, "nobody waits");
    stamps.slots[0].change(AWAKE);
    assert_eq!(stamps.sleeps(), None);
    stamps.slots[0].change(ASLEEP);
    let first = stamps.sleeps();
    assert!(matches!(first, Some((1, _))));
    stamps.slots[3].change(AWAKE);
    assert_eq!(stamps.sleeps(), None, "another thread is awake");
    stamps.slots[3].change(ASLEEP);
    assert!(matches!(stamps.sleeps(), Some((2, _))));
    stamps.slots[3].change(VACANT);
    stamps.slots[0].change(AWAKE);
    stamps.slots[0].change(ASLEEP);
    assert!(stamps.sleeps() > first, "it was awake meanwhile");
}
