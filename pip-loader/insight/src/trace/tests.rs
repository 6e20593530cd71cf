use super::*;
use cohort_base::trace::{Event, EventKind, NOBODY};
use timeline::{Piece, RankLine};

const NUMBERS: [u32; 2] = [4, 7];

fn rings() -> &'static [Ring] {
    let slots = map_slots(32).expect("memory");
    let rings: Vec<Ring> = slots.chunks(16).map(Ring::new).collect();
    rings.leak()
}

fn event(kind: EventKind, peer: u32, begin: u64, end: u64) -> Event {
    Event { kind, peer, thread: 1 << 20, begin, end, flow: 0, bytes: 64, tag: 5, name: 0 }
}

fn call(begin: u64, end: u64) -> Event {
    static NAME: &str = "MPI_Recv";
    Event { flow: NAME.as_ptr().addr() as u64, name: NAME.len() as u8, ..event(EventKind::Call, NOBODY, begin, end) }
}

/// A tick is two nanoseconds.
fn timeline(rings: &'static [Ring]) -> Timeline {
    Timeline::of(vec![record(rings)])
}

fn record(rings: &'static [Ring]) -> Record {
    let clocks = |ticks, steady| Clocks { ticks, steady, real: 500 + steady, error: 3 };
    let noted = rings.iter().zip(NUMBERS).enumerate();
    let noted: Vec<_> = noted.map(|(place, (ring, number))| Noted::first(ring, place, number)).collect();
    Record::of(&noted, [clocks(1000, 7000), clocks(2000, 9000)])
}

fn pieces<'a>(rank: &'a RankLine, track: usize) -> Vec<(&'a str, u64, u64)> {
    let of = |piece: &'a Piece| (&*piece.name, piece.begin, piece.end);
    rank.tracks[track].pieces.iter().map(of).collect()
}

#[test]
fn calls_have_their_names_and_times_and_last_until_the_end_if_they_do_not_end() {
    let rings = rings();
    rings[1].note(&call(1100, 1200));
    rings[1].note(&call(1900, 0));
    let timeline = timeline(rings);
    let rank = &timeline.ranks[1];
    assert_eq!((rank.number, rank.noted, rank.lost), (7, 2, 0));
    assert_eq!(rank.tracks[0].name, "rank 7");
    let expected = [("MPI_Recv", 200, 400), ("MPI_Recv", 1800, 2000)];
    assert_eq!(pieces(rank, 0), expected);
}

#[test]
fn a_name_that_was_overwritten_does_no_harm() {
    let rings = rings();
    let wrong = Event { flow: 8, ..call(1100, 1110) };
    rings[0].note(&wrong);
    assert_eq!(pieces(&timeline(rings).ranks[0], 0)[0].0, "a call of MPI");
}

#[test]
fn stolen_work_is_on_both_tracks_with_an_arrow_from_the_thief() {
    let rings = rings();
    rings[0].note(&event(EventKind::Steal, 1, 1010, 1020));
    let timeline = timeline(rings);
    let [thief, owner] = &timeline.ranks[..] else {
        panic!("two ranks");
    };
    assert_eq!(pieces(thief, 0), [("works for rank 7", 20, 40)]);
    assert_eq!(owner.tracks[1].name, "rank 7: done by others");
    assert_eq!(pieces(owner, 1), [("done by rank 4", 20, 40)]);
    let arrow = thief.tracks[0].pieces[0].leaves;
    assert!(arrow.is_some() && owner.tracks[1].pieces[0].comes == arrow);
}

/// Addresses tell messages apart while they are under way, and are used again.
#[test]
fn messages_meet_their_receives_and_those_that_do_not_have_no_arrow() {
    let rings = rings();
    for at in [1000, 1100, 1200] {
        rings[0].note(&event(EventKind::Sent, 1, at, at));
        if at < 1200 {
            rings[1].note(&event(EventKind::Matched, 0, at + 50, at + 50));
        }
    }
    let timeline = timeline(rings);
    let [sent, came] = [0, 1].map(|rank| &timeline.ranks[rank].tracks[0].pieces);
    let left: Vec<_> = sent.iter().map(|piece| piece.leaves).collect();
    let [Some(first), Some(second), None] = left[..] else {
        panic!("{left:?}");
    };
    assert_ne!(first, second);
    let ends: Vec<_> = came.iter().map(|piece| piece.comes).collect();
    assert_eq!(ends, [Some(first), Some(second)]);
}

#[test]
fn who_wakes_a_sleeper_has_an_arrow_to_the_moment_of_waking() {
    let rings = rings();
    rings[0].note(&event(EventKind::Wake, 1, 1050, 1050));
    rings[1].note(&Event { flow: 1, ..event(EventKind::Sleep, NOBODY, 1000, 1060) });
    let timeline = timeline(rings);
    let wake = &timeline.ranks[0].tracks[0].pieces[0];
    assert_eq!(wake.name, "wakes rank 7");
    let [sleep, awake] = &timeline.ranks[1].tracks[0].pieces[..] else {
        panic!("two pieces");
    };
    assert_eq!((sleep.begin, sleep.end, awake.begin), (0, 120, 120));
    assert!(wake.leaves.is_some() && awake.comes == wake.leaves);
}

#[test]
fn what_anybody_may_have_done_is_shown_with_the_thread_that_is_in_a_call() {
    let rings = rings();
    let thread = |number, event| Event { thread: number, ..event };
    rings[0].note(&thread(100, call(1000, 1010)));
    rings[0].note(&thread(200, call(1100, 1120)));
    rings[0].note(&thread(0, event(EventKind::Sent, 1, 1110, 1110)));
    let timeline = timeline(rings);
    let names: Vec<&str> = timeline.ranks[0].tracks.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["rank 4", "rank 4: thread 1"]);
    assert_eq!(pieces(&timeline.ranks[0], 1)[1].0, "message to rank 7");
}

#[test]
fn pieces_lie_within_each_other_or_apart() {
    let rings = rings();
    rings[0].note(&event(EventKind::Copy, NOBODY, 1000, 1100));
    rings[0].note(&event(EventKind::Sleep, NOBODY, 1050, 1150));
    assert_eq!(pieces(&timeline(rings).ranks[0], 0), [("copies", 0, 200), ("sleeps", 100, 200)]);
}

#[test]
fn losses_are_counted() {
    let rings = rings();
    for at in 1000..1020 {
        rings[0].note(&event(EventKind::Wake, 1, at, at));
    }
    let timeline = timeline(rings);
    assert_eq!((timeline.ranks[0].noted, timeline.ranks[0].lost), (20, 4));
    assert_eq!(timeline.ranks[0].tracks[0].pieces[0].begin, 8);
}

#[test]
fn each_node_has_a_file_of_its_own() {
    let path = |name, index| {
        let path = path_of(name, Place { index, count: 3 });
        path.to_string_lossy().into_owned()
    };
    assert_eq!(path("t.json", 0), "t.json");
    assert_eq!(path("t.json", 2), "t.json.2");
    assert_eq!(path("t-%n.json", 0), "t-0.json");
    assert_eq!(path("t-%n.json", 2), "t-2.json");
}

#[test]
fn a_record_travels_unchanged_and_what_is_damaged_is_none() {
    let rings = rings();
    rings[0].note(&call(1100, 1200));
    rings[1].note(&event(EventKind::SentFar, 9, 1300, 1300));
    let mut record = record(rings);
    (record.node, record.host) = (3, "host".into());
    let spawned = &mut record.sources[1];
    (spawned.name, spawned.place, spawned.since) = (Some("2.0".into()), 7, 1250);
    let bytes = record.encode();
    assert_eq!(Record::decode(&bytes).as_ref(), Some(&record));
    for length in 0..bytes.len() {
        assert_eq!(Record::decode(&bytes[..length]), None, "cut at {length}");
    }
    assert_eq!(Record::decode(&[&bytes[..], &[0]].concat()), None);
}

/// The second node's ticks are four times as long, and its clock is ahead by 100 ns.
#[test]
fn nodes_have_the_first_ones_clock_and_messages_between_them_arrows() {
    let (here, there) = (rings(), rings());
    here[0].note(&event(EventKind::SentFar, 8, 1500, 1500));
    there[0].note(&event(EventKind::MatchedFar, 4, 50_130, 50_130));
    let first = record(here);
    let mut second = record(there);
    second.node = 1;
    second.numbers = vec![8, 9];
    let point = |own, first| line::Point { own, first, error: 5 };
    second.points = [point(50_000, 1000), point(50_250, 2000)];
    second.clocks[0].ticks = 50_000;
    second.clocks[1].ticks = 50_250;
    second.clocks[0].real += 100;
    let timeline = Timeline::of(vec![first, second]);
    let [sent, came] = [0, 2].map(|rank| &timeline.ranks[rank].tracks[0].pieces[0]);
    assert_eq!((&*sent.name, sent.begin), ("message to rank 8", 1000));
    assert_eq!((&*came.name, came.begin), ("message from rank 4", 1040));
    assert!(sent.leaves.is_some() && sent.leaves == came.comes);
    let facts = &timeline.nodes[1];
    // Half of a round trip of 10 ticks, and the readings of both nodes' clocks.
    assert_eq!((facts.offset, facts.drift, facts.error), (100, 0, 46));
    assert_eq!(timeline.start, 7500);
    assert_eq!(timeline.nodes[0].error, 6);
}

/// A clock of which nothing is known but that its answers take time, as asked over a connection.
#[test]
fn the_time_is_asked_for_within_its_error() {
    let point = line::tests::asked();
    // Both ends have the same counter here.
    assert!(point.own.abs_diff(point.first) <= point.error, "{point:?}");
    assert!(point.error > 0);
}
