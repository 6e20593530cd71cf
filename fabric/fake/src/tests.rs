use crate::{Job, Node, Options};
use cohort_fabric::record::{self, Network};
use cohort_fabric::{Budget, Direction, Event, Packet, Refused, Region, Sent, Token, Transfer, Transport, WorldRank};
use std::time::{Duration, Instant};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Packet(u32, Vec<u8>),
    Completed(u64),
    Failed(u64, i32),
    Lost(u32, i32),
}

fn poll(network: &dyn Transport, endpoint: u32) -> Vec<Seen> {
    let mut seen = vec![];
    network.poll(endpoint, endpoint, Budget::events(1000), &mut |event| {
        seen.push(match event {
            // It comes again as a whole.
            Event::Begins { .. } => return,
            Event::Packet { from, bytes } => Seen::Packet(from, bytes.to_vec()),
            Event::Completed(token) => Seen::Completed(token),
            Event::Failed { token, code } => Seen::Failed(token, code),
            Event::Lost { rank, code } => Seen::Lost(rank, code),
        });
    });
    seen
}

fn send(network: &dyn Transport, from: u32, to: u32, body: &[u8], token: u64) -> Result<Sent, Refused> {
    let packet = Packet { header: b"head", body };
    // SAFETY: the tests keep bodies until the completion.
    unsafe { network.send(from, from, to, packet, token) }
}

/// Two nodes with two ranks each, numbered round robin.
fn two(options: Options) -> (Job, Node, Node) {
    let job = Job::new(&[&[0, 2], &[1, 3]], options);
    let nodes = (job.node(0), job.node(1));
    (job, nodes.0, nodes.1)
}

#[test]
fn packets_arrive_in_order_across_the_border() {
    let (_job, near, far) = two(Options::default());
    let across = |node: Node| {
        let record = Network::of(Box::leak(Box::new(node)));
        // SAFETY: a record of this build, whose transport is never unmade.
        unsafe { record::open((&raw const record).cast()) }.unwrap()
    };
    let (near, far) = (across(near), across(far));
    assert_eq!(near.limits().packet, 4096);
    assert_eq!(near.limits().transfer, 1 << 20);
    let long = vec![7; 4000];
    assert_eq!(send(near, 1, 1, b"first", 1), Ok(Sent::Done));
    assert_eq!(send(near, 1, 1, &long, 2), Ok(Sent::Pending));
    assert_eq!(poll(near, 1), []);
    let expected = [Seen::Packet(2, b"headfirst".to_vec()), Seen::Packet(2, [b"head", &long[..]].concat())];
    assert_eq!(poll(far, 0), expected);
    assert_eq!(poll(near, 1), [Seen::Completed(2)]);
}

#[test]
fn records_of_other_builds_are_not_taken() {
    // SAFETY: NULL, and a word that is no magic number.
    unsafe {
        assert!(record::open(std::ptr::null()).is_none());
        let other = [5_u64; 20];
        assert!(record::open(other.as_ptr().cast()).is_none());
    }
    let (_job, near, _far) = two(Options::default());
    let record = Network::of(Box::leak(Box::new(near)));
    // SAFETY: a record of this build, and one whose first two words differ from it by a bit.
    unsafe {
        assert!(record::open((&raw const record).cast()).is_some());
        for word in 0..2 {
            let mut other = record;
            *(&raw mut other).cast::<u64>().add(word) ^= 1;
            assert!(record::open((&raw const other).cast()).is_none());
        }
    }
}

#[test]
fn a_full_queue_refuses_and_says_so() {
    let options = Options { queue: 2, operations: 1, ..Options::default() };
    let (_job, near, far) = two(options);
    assert_eq!(send(&near, 0, 1, b"a", 1), Ok(Sent::Done));
    assert_eq!(send(&near, 0, 1, b"b", 1), Ok(Sent::Done));
    assert_eq!(send(&near, 0, 1, b"c", 1), Err(Refused::Busy));
    assert_eq!(poll(&far, 0).len(), 2);
    let long = vec![1; 1000];
    assert_eq!(send(&near, 0, 1, &long, 1), Ok(Sent::Pending));
    assert_eq!(send(&near, 0, 3, &long, 2), Err(Refused::Busy));
}

/// All of `memory`, and the beginning of a region.
fn transfer(direction: Direction, peer: WorldRank, region: Region, memory: &mut [u8], token: Token) -> Transfer {
    Transfer { direction, peer, region, offset: 0, memory: memory.as_mut_ptr(), length: memory.len(), token }
}

#[test]
fn regions_are_read_and_written_until_they_are_withdrawn() {
    for offsets in [false, true] {
        let options = Options { offsets, ..Options::default() };
        let (job, near, far) = two(options);
        let mut exposed = *b"0123456789";
        let mut local = *b"....";
        // SAFETY: the arrays outlive the operations.
        let region = unsafe { far.expose(1, 0, exposed.as_mut_ptr(), 10) }.unwrap();
        let both = |offset, token| unsafe {
            // SAFETY: as above.
            let transfer = Transfer { offset, ..transfer(Direction::Read, 3, region, &mut local, token) };
            near.transfer(0, 0, transfer).unwrap();
        };
        let mut both = both;
        both(3, 1);
        assert_eq!(poll(&near, 0), [Seen::Completed(1)]);
        both(7, 2);
        assert_eq!(poll(&near, 0), [Seen::Failed(2, crate::state::NO_SUCH_REGION)]);
        assert_eq!(&local, b"3456");
        // SAFETY: as above.
        unsafe { near.transfer(1, 0, transfer(Direction::Write, 3, region, &mut local, 9)) }.unwrap();
        assert_eq!(poll(&near, 1), [Seen::Completed(9)]);
        assert_eq!(&exposed, b"3456456789");
        assert_eq!(job.exposed(), 1);
        far.withdraw(1, 1, region);
        assert_eq!(job.exposed(), 0);
        // SAFETY: as above.
        unsafe { near.transfer(1, 0, transfer(Direction::Write, 3, region, &mut local, 10)) }.unwrap();
        assert_eq!(poll(&near, 1), [Seen::Failed(10, crate::state::NO_SUCH_REGION)]);
    }
}

#[test]
fn a_lost_rank_fails_what_is_under_way_and_refuses_the_rest() {
    let (job, near, far) = two(Options::default());
    let long = vec![1; 1000];
    assert_eq!(send(&near, 0, 1, &long, 5), Ok(Sent::Pending));
    assert_eq!(send(&far, 0, 0, b"last words", 6), Ok(Sent::Done));
    let mut byte = [0_u8];
    let region = Region { key: 1, address: 0 };
    // SAFETY: the byte outlives the operation.
    unsafe { near.transfer(0, 0, transfer(Direction::Read, 1, region, &mut byte, 7)) }.unwrap();
    job.lose(1, 104);
    let seen = poll(&near, 0);
    assert!(seen.contains(&Seen::Lost(1, 104)), "{seen:?}");
    assert!(seen.contains(&Seen::Failed(5, 104)), "{seen:?}");
    assert!(seen.contains(&Seen::Failed(7, 104)), "{seen:?}");
    assert!(seen.contains(&Seen::Packet(1, b"headlast words".to_vec())), "{seen:?}");
    assert_eq!(poll(&near, 1), [Seen::Lost(1, 104)]);
    assert_eq!(send(&near, 0, 1, b"", 8), Err(Refused::Lost(104)));
    assert_eq!(send(&near, 0, 3, b"", 8), Ok(Sent::Done));
}

#[test]
fn a_failure_hits_the_next_operation_only() {
    let (job, near, far) = two(Options::default());
    job.fail_next(0, 5);
    let long = vec![1; 1000];
    send(&near, 0, 1, &long, 1).unwrap();
    send(&near, 0, 1, &long, 2).unwrap();
    assert_eq!(poll(&far, 0).len(), 2);
    assert_eq!(poll(&near, 0), [Seen::Failed(1, 5), Seen::Completed(2)]);
}

#[test]
fn completions_come_in_any_order_and_packets_in_theirs() {
    let options = Options { reorder: true, ..Options::default() };
    let (_job, near, far) = two(options);
    let body = vec![0; 1000];
    for token in 0..32 {
        send(&near, 0, 1, &body, token).unwrap();
        send(&near, 0, 1, &[token as u8], 0).unwrap();
    }
    let arrived: Vec<u8> = poll(&far, 0)
        .into_iter()
        .filter_map(|seen| match seen {
            Seen::Packet(0, bytes) if bytes.len() == 5 => Some(bytes[4]),
            _ => None,
        })
        .collect();
    assert_eq!(arrived, (0..32).collect::<Vec<u8>>());
    let completed: Vec<u64> = poll(&near, 0)
        .into_iter()
        .map(|seen| match seen {
            Seen::Completed(token) => token,
            other => panic!("{other:?}"),
        })
        .collect();
    let mut sorted = completed.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..32).collect::<Vec<u64>>());
    assert_ne!(completed, sorted);
}

#[test]
fn a_watcher_wakes_for_packets_interrupts_and_time() {
    let (_job, near, far) = two(Options::default());
    near.watch(0, Some(Duration::from_millis(1)), &[]);
    near.interrupt(1);
    near.watch(0, None, &[]);
    std::thread::scope(|scope| {
        scope.spawn(|| near.watch(0, None, &[]));
        send(&far, 0, 2, b"wake up", 0).unwrap();
    });
    let start = Instant::now();
    near.watch(1, Some(Duration::from_secs(3600)), &[]);
    assert!(start.elapsed() < Duration::from_secs(3600));
    assert_eq!(poll(&near, 1).len(), 1);
}
