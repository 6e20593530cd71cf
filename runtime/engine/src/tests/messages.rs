//! One property per test; threads play the ranks.

use crate::datatype::{Buffer, CountForm, contiguous, predefined, vector};
use crate::wait::{WaitKind, progress, until};
use crate::{Envelope, Node, Owner, Peer, Rank, RequestRef, SendMode, Source, Status, Tag};
use crate::{improbe, imrecv, iprobe, irecv, isend, lifecycle, recv, send};
use cohort_base::settings::{Progress, Settings, WaitMode};
use std::vec::Vec;

const INT32: u32 = 0x250;

const CONTEXT: u32 = 2;

fn owner(rank: &Rank) -> Owner<'_> {
    Owner::for_test(rank)
}

fn envelope(source: u32, tag: i32) -> Envelope {
    Envelope { context: CONTEXT, source: source as i32, tag }
}

fn from(rank: u32) -> Source {
    Source::Rank { peer: Peer::local(rank), comm_rank: rank as i32 }
}

fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 13 + seed) as u8).collect()
}

fn send_bytes(rank: &Rank, to: u32, tag: i32, data: &[u8], mode: SendMode) {
    let (sender, to) = (envelope(rank.id(), tag), Peer::local(to));
    // SAFETY: the slice is readable.
    unsafe { send(owner(rank), Buffer::of_bytes(data.as_ptr().cast_mut(), data.len() as u64), to, sender, mode) }
        .expect("memory");
}

fn recv_bytes(rank: &Rank, source: Source, tag: Tag, data: &mut [u8]) -> Status {
    // SAFETY: the slice is writable.
    unsafe { recv(owner(rank), Buffer::of_bytes(data.as_mut_ptr(), data.len() as u64), source, CONTEXT, tag) }
        .expect("memory")
}

fn isend_bytes(rank: &Rank, to: u32, tag: i32, data: &[u8], mode: SendMode) -> RequestRef {
    let (sender, to) = (envelope(rank.id(), tag), Peer::local(to));
    let mut claim = rank.enter();
    // SAFETY: the tests keep the data until completion.
    unsafe { isend(&mut claim, Buffer::of_bytes(data.as_ptr().cast_mut(), data.len() as u64), to, sender, mode) }
        .expect("memory")
}

fn irecv_bytes(rank: &Rank, source: Source, tag: Tag, data: &mut [u8]) -> RequestRef {
    let mut claim = rank.enter();
    // SAFETY: the tests keep the data until completion.
    unsafe { irecv(&mut claim, Buffer::of_bytes(data.as_mut_ptr(), data.len() as u64), source, CONTEXT, tag) }
        .expect("memory")
}

fn wait(rank: &Rank, request: RequestRef) -> Status {
    until(owner(rank), WaitKind::Request, || request.is_complete());
    let status = request.status();
    request.release(&mut rank.enter());
    status
}

fn settings(progress: Progress, wait: WaitMode) -> Settings {
    Settings { progress, wait, ..Settings::DEFAULT }
}

const ALL_SETTINGS: [(Progress, WaitMode); 4] = [
    (Progress::Steal, WaitMode::Park),
    (Progress::Steal, WaitMode::Auto),
    (Progress::None, WaitMode::Park),
    (Progress::None, WaitMode::Auto),
];

#[test]
fn messages_of_every_protocol_arrive() {
    for (progress, mode) in ALL_SETTINGS {
        let node = Node::for_test_with(2, settings(progress, mode));
        let lengths = [0, 1, 4, 8, 44, 45, 224, 225, 2048, 2049, 16384, 16385, 65536, 65537, 3_000_001];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for (tag, &length) in (0..).zip(&lengths) {
                    for mode in [SendMode::Standard, SendMode::Synchronous] {
                        send_bytes(node.rank(0), 1, tag, &pattern(length, length), mode);
                    }
                }
            });
            for (tag, &length) in (0..).zip(&lengths) {
                for _ in 0..2 {
                    let mut data = std::vec![0; length + 3];
                    let status = recv_bytes(node.rank(1), from(0), Tag::Is(tag), &mut data);
                    assert_eq!(status, Status::of(envelope(0, tag), length as u64));
                    assert_eq!(data[..length], pattern(length, length));
                    assert_eq!(data[length..], [0; 3]);
                }
            }
        });
    }
}

#[test]
fn a_long_message_is_cut_at_the_buffer_and_says_so() {
    for length in [100, 2000, 20_000, 200_000] {
        let node = Node::for_test(2);
        let data = pattern(length, 1);
        let request = isend_bytes(node.rank(0), 1, 5, &data, SendMode::Standard);
        let mut buffer = std::vec![0; length - 10];
        let status = recv_bytes(node.rank(1), from(0), Tag::Any, &mut buffer);
        assert_eq!(status.error, Status::TRUNCATE);
        assert_eq!(status.bytes, length as i64 - 10);
        assert_eq!(buffer[..], data[..length - 10]);
        wait(node.rank(0), request);
    }
}

#[test]
fn messages_of_one_sender_do_not_overtake() {
    let node = Node::for_test(2);
    // More than the ring holds, so that most of them line up.
    for index in 0..500_u32 {
        let request = isend_bytes(node.rank(0), 1, (index % 3) as i32, &index.to_le_bytes(), SendMode::Standard);
        assert!(request.is_complete());
        request.release(&mut node.rank(0).enter());
    }
    for tag in 0..3 {
        for index in (tag..500).step_by(3) {
            let mut data = [0; 4];
            // One thread plays both ranks, so it moves the sender's waiting messages first.
            progress(owner(node.rank(0)));
            recv_bytes(node.rank(1), from(0), Tag::Is(tag as i32), &mut data);
            assert_eq!(u32::from_le_bytes(data), index);
            progress(owner(node.rank(0)));
        }
    }
}

#[test]
fn a_rank_sends_to_itself() {
    let node = Node::for_test(1);
    let rank = node.rank(0);
    for length in [8, 4000, 50_000, 500_000] {
        let data = pattern(length, 9);
        let mut early = std::vec![0; length];
        let receive = irecv_bytes(rank, from(0), Tag::Is(1), &mut early);
        send_bytes(rank, 0, 1, &data, SendMode::Synchronous);
        assert_eq!(wait(rank, receive).bytes, length as i64);
        assert_eq!(early, data);

        let send = isend_bytes(rank, 0, 2, &data, SendMode::Standard);
        let mut late = std::vec![0; length];
        recv_bytes(rank, Source::Any, Tag::Any, &mut late);
        wait(rank, send);
        assert_eq!(late, data);
    }
}

#[test]
fn strided_types_on_both_sides() {
    let element = predefined(INT32).expect("MPI_INT32_T").clone();
    let sparse = vector(20_000, 1, 2, &element, CountForm::Int).expect("a valid type");
    let pairs = contiguous(2, &element, CountForm::Int).expect("a valid type");
    let node = Node::for_test(2);
    let source: Vec<i32> = (0..40_000).collect();
    let mut target = std::vec![-1_i32; 20_000];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: the test's own memory, which stays until the operation is over.
            let data = unsafe { Buffer::new(source.as_ptr().cast_mut().cast(), 1, &sparse) };
            send(owner(node.rank(0)), data, Peer::local(1), envelope(0, 0), SendMode::Standard).expect("memory");
        });
        // SAFETY: the test's own memory, which stays until the operation is over.
        let data = unsafe { Buffer::new(target.as_mut_ptr().cast(), 10_000, &pairs) };
        let status = recv(owner(node.rank(1)), data, from(0), CONTEXT, Tag::Any);
        assert_eq!(status.expect("memory").bytes, 80_000);
    });
    assert!(target.iter().zip((0..).step_by(2)).all(|(&is, want)| is == want));
}

/// A receive from any source takes what lies at the front of the rings, but not what an older receive gets, and finds
/// what lies behind messages with other tags.
#[test]
fn a_receive_from_any_source_takes_what_is_its_own() {
    let node = Node::for_test(3);
    let rank = node.rank(2);
    let send_word = |sender: u32, tag, word: u8| {
        send_bytes(node.rank(sender), 2, tag, &[word], SendMode::Standard);
    };
    let receive = |source, tag| {
        let mut word = [0];
        let status = recv_bytes(rank, source, tag, &mut word);
        (status.source, status.tag, word[0])
    };
    send_word(0, 7, 1);
    assert_eq!(receive(Source::Any, Tag::Is(7)), (0, 7, 1));
    let mut older = [0];
    let request = irecv_bytes(rank, from(0), Tag::Is(7), &mut older);
    send_word(0, 7, 2);
    send_word(0, 7, 3);
    send_word(1, 8, 4);
    send_word(1, 7, 5);
    let mut taken = [(); 2].map(|()| receive(Source::Any, Tag::Is(7)));
    taken.sort_unstable();
    assert_eq!(taken, [(0, 7, 3), (1, 7, 5)]);
    assert_eq!(wait(rank, request).source, 0);
    assert_eq!(older, [2]);
    assert_eq!(receive(Source::Any, Tag::Any), (1, 8, 4));
    // Each sender's messages stay in order, and none is left out.
    for word in 0..20 {
        send_word(0, 9, word);
        send_word(1, 9, word);
    }
    let mut next = [0, 0];
    for _ in 0..40 {
        let (source, _, word) = receive(Source::Any, Tag::Is(9));
        assert_eq!(word, next[source as usize]);
        next[source as usize] += 1;
    }
    assert_eq!(next, [20, 20]);
}

#[test]
fn probes_see_messages_and_matched_probes_take_them() {
    let node = Node::for_test(2);
    let rank = node.rank(1);
    for length in [4, 5000, 100_000] {
        let (first, second) = (pattern(length, 1), pattern(length, 2));
        let sends =
            [(7, &first), (7, &second)].map(|(tag, data)| isend_bytes(node.rank(0), 1, tag, data, SendMode::Standard));
        let mut claim = rank.enter();
        assert_eq!(iprobe(&mut claim, from(0), CONTEXT, Tag::Is(8)), None);
        let expected = Status::of(envelope(0, 7), length as u64);
        let seen = iprobe(&mut claim, Source::Any, CONTEXT, Tag::Any);
        assert_eq!(seen, Some(expected));
        let (message, status) = improbe(&mut claim, from(0), CONTEXT, Tag::Is(7)).expect("a message");
        assert_eq!(status, expected);
        drop(claim);
        let (mut one, mut two) = (std::vec![0; length], std::vec![0; length]);
        recv_bytes(rank, from(0), Tag::Is(7), &mut two);
        let mut claim = rank.enter();
        // SAFETY: the buffer lives until the wait below.
        let receive =
            unsafe { imrecv(&mut claim, message, Buffer::of_bytes(one.as_mut_ptr(), length as u64)) }.expect("memory");
        drop(claim);
        wait(rank, receive);
        for request in sends {
            wait(node.rank(0), request);
        }
        assert_eq!((one, two), (first, second));
    }
}

#[test]
fn a_posted_receive_can_be_cancelled() {
    let node = Node::for_test(2);
    let rank = node.rank(1);
    let mut data = [0; 4];
    let receive = irecv_bytes(rank, from(0), Tag::Any, &mut data);
    receive.cancel(&mut rank.enter());
    assert!(wait(rank, receive).cancelled);
    send_bytes(node.rank(0), 1, 0, &[1, 2, 3, 4], SendMode::Standard);
    let status = recv_bytes(rank, Source::Any, Tag::Any, &mut data);
    assert!(!status.cancelled);
    assert_eq!(data, [1, 2, 3, 4]);
}

#[test]
fn a_cancelled_send_is_never_received() {
    let node = Node::for_test(2);
    for released_first in [false, true] {
        for stored in [false, true] {
            let data = pattern(100, 3);
            let send = isend_bytes(node.rank(0), 1, 1, &data, SendMode::Synchronous);
            if stored {
                let seen = iprobe(&mut node.rank(1).enter(), from(0), CONTEXT, Tag::Is(1));
                assert!(seen.is_some());
            }
            send.cancel(&mut node.rank(0).enter());
            assert!(send.status().cancelled);
            let mut kept = Some(send);
            if released_first && let Some(send) = kept.take() {
                send.release(&mut node.rank(0).enter());
            }
            let mut claim = node.rank(1).enter();
            if stored {
                assert_eq!(iprobe(&mut claim, from(0), CONTEXT, Tag::Is(1)), None);
            }
            drop(claim);
            send_bytes(node.rank(0), 1, 1, &[42], SendMode::Standard);
            let mut received = [0; 100];
            let status = recv_bytes(node.rank(1), from(0), Tag::Is(1), &mut received);
            assert_eq!((status.bytes, received[0]), (1, 42));
            if let Some(send) = kept {
                send.release(&mut node.rank(0).enter());
            }
        }
    }
    // SAFETY: nobody else uses this node.
    unsafe { node.rank(0).enter().heap().check() };
}

#[test]
fn a_probe_looks_behind_withdrawn_sends() {
    let node = Node::for_test(2);
    for _ in 0..5 {
        let send = isend_bytes(node.rank(0), 1, 1, &[1, 2], SendMode::Synchronous);
        send.cancel(&mut node.rank(0).enter());
        send.release(&mut node.rank(0).enter());
    }
    send_bytes(node.rank(0), 1, 1, &[3], SendMode::Standard);
    let seen = iprobe(&mut node.rank(1).enter(), from(0), CONTEXT, Tag::Is(1));
    assert_eq!(seen.map(|status| status.bytes), Some(1));
}

#[test]
fn cancelled_sends_leave_nothing_at_who_never_looks_for_them() {
    let node = Node::for_test(2);
    let live = || node.rank(0).heap().stats().live_bytes + node.rank(1).heap().stats().live_bytes;
    let (data, mut received) = (pattern(100, 3), [0; 1]);
    let mut before = 0;
    for round in 0..300 {
        if round == 100 {
            before = live();
        }
        let send = isend_bytes(node.rank(0), 1, 1, &data, SendMode::Synchronous);
        send.cancel(&mut node.rank(0).enter());
        send.release(&mut node.rank(0).enter());
        send_bytes(node.rank(0), 1, 2, &[7], SendMode::Standard);
        recv_bytes(node.rank(1), from(0), Tag::Is(2), &mut received);
    }
    assert!(live() < before + 4096, "{before} bytes grew to {}", live());
}

#[test]
fn released_requests_go_on_and_are_freed() {
    let node = Node::for_test(2);
    // RTS messages, and too short for a pipeline, which would stay too.
    let data = pattern(16_000, 5);
    let mut received = std::vec![0; 16_000];
    let live = node.rank(0).heap().stats().live_bytes;
    for _ in 0..3 {
        let send = isend_bytes(node.rank(0), 1, 0, &data, SendMode::Synchronous);
        send.release(&mut node.rank(0).enter());
        recv_bytes(node.rank(1), from(0), Tag::Any, &mut received);
        assert_eq!(received, data);
        progress(owner(node.rank(0)));
    }
    let after = node.rank(0).heap().stats().live_bytes;
    // Only the ring stays.
    assert!(after - live <= 6000, "{live} to {after} bytes");
}

#[test]
fn a_turn_looks_at_few_of_many_released_requests() {
    const MANY: i32 = 400;
    let node = Node::for_test(2);
    let live = || node.rank(0).heap().stats().live_bytes;
    let mut received = [0; 8];
    for tag in 0..MANY {
        let send = isend_bytes(node.rank(0), 1, tag, &[7; 8], SendMode::Synchronous);
        send.release(&mut node.rank(0).enter());
    }
    // The ring holds fewer, so the sender moves the others there when there is room.
    for _ in 0..MANY {
        progress(owner(node.rank(0)));
        iprobe(&mut node.rank(1).enter(), from(0), CONTEXT, Tag::Is(MANY));
    }
    // Those that were released last are complete first.
    for half in [MANY / 2..MANY, 0..MANY / 2] {
        for tag in half {
            recv_bytes(node.rank(1), from(0), Tag::Is(tag), &mut received);
        }
        let mut freed = std::vec![];
        for _ in 0..MANY / 4 {
            let before = live();
            progress(owner(node.rank(0)));
            freed.push(before - live());
        }
        let all: u64 = freed.iter().sum();
        let most = freed.iter().max().copied().unwrap_or(0);
        assert!(all > 0 && most * 5 < all, "{most} of {all} bytes in one turn");
    }
    assert_eq!(iprobe(&mut node.rank(1).enter(), from(0), CONTEXT, Tag::Any), None);
}

#[test]
fn a_thief_receives_for_a_rank_that_computes() {
    let node = Node::for_test(2);
    let owner = node.rank(1);
    let mut received = std::vec![0; 1_000_000];
    let receive = irecv_bytes(owner, from(0), Tag::Any, &mut received);
    // The owner makes no call from here on until its receive is complete.
    let data = pattern(1_000_000, 4);
    send_bytes(node.rank(0), 1, 0, &data, SendMode::Standard);
    assert!(receive.is_complete());
    let stolen = node.rank(0).counters().snapshot().shm;
    assert!(stolen.hits > 0 && stolen.bytes > 0, "{stolen:?}");
    wait(owner, receive);
    assert_eq!(received, data);
}

#[test]
fn without_stealing_a_rank_that_computes_receives_nothing() {
    let node = Node::for_test_with(2, settings(Progress::None, WaitMode::Auto));
    let mut received = std::vec![0; 100_000];
    let receive = irecv_bytes(node.rank(1), from(0), Tag::Any, &mut received);
    let data = pattern(100_000, 4);
    let send = isend_bytes(node.rank(0), 1, 0, &data, SendMode::Standard);
    for _ in 0..100 {
        progress(owner(node.rank(0)));
    }
    assert!(!send.is_complete() && !receive.is_complete());
    wait(node.rank(1), receive);
    wait(node.rank(0), send);
    assert_eq!(received, data);
}

#[test]
fn an_idle_rank_wakes_up_for_two_that_compute() {
    let node = Node::for_test_with(3, settings(Progress::Steal, WaitMode::Park));
    let mut received = std::vec![0; 300_000];
    let data = pattern(300_000, 8);
    let mut word = [0; 8];
    std::thread::scope(|scope| {
        let idle = scope.spawn(|| {
            recv_bytes(node.rank(2), from(0), Tag::Any, &mut word);
        });
        while !node.rank(2).park().is_parked() {
            std::thread::yield_now();
        }
        // Ranks 0 and 1 only start things; nobody but rank 2 can move them.
        let receive = irecv_bytes(node.rank(1), from(0), Tag::Any, &mut received);
        let send = isend_bytes(node.rank(0), 1, 0, &data, SendMode::Standard);
        while !(send.is_complete() && receive.is_complete()) {
            std::thread::yield_now();
        }
        wait(node.rank(0), send);
        wait(node.rank(1), receive);
        send_bytes(node.rank(0), 2, 0, &[1; 8], SendMode::Standard);
        idle.join().expect("the idle rank ends");
    });
    assert_eq!(received, data);
}

#[test]
fn where_cpus_are_scarce_short_messages_are_left_to_their_owners() {
    // Ranks that park at once count as more than there are CPUs.
    let node = Node::for_test_with(3, settings(Progress::Steal, WaitMode::Park));
    let (mut received, mut word) = ([0; 100], [0; 8]);
    let receive = irecv_bytes(node.rank(1), from(0), Tag::Any, &mut received);
    send_bytes(node.rank(0), 1, 0, &pattern(100, 5), SendMode::Standard);
    std::thread::scope(|scope| {
        let idle = scope.spawn(|| recv_bytes(node.rank(2), from(0), Tag::Any, &mut word));
        while !node.rank(2).park().is_parked() {
            std::thread::yield_now();
        }
        send_bytes(node.rank(0), 2, 0, &[1; 8], SendMode::Standard);
        idle.join().expect("the idle rank ends");
    });
    let looks = node.rank(2).counters().snapshot().shm;
    assert_eq!(looks.attempts, 0, "{looks:?}");
    assert!(!receive.is_complete());
    wait(node.rank(1), receive);
    assert_eq!(received[..], pattern(100, 5)[..]);
}

#[test]
fn a_polling_thread_receives_for_a_rank_that_computes() {
    for mode in [WaitMode::Auto, WaitMode::Park, WaitMode::Spin] {
        let node = Node::for_test_with(2, settings(Progress::Thread, mode));
        (0..2).for_each(|id| lifecycle::begin(owner(node.rank(id))));
        for length in [8, 30_000, 400_000] {
            let mut received = std::vec![0; length];
            let receive = irecv_bytes(node.rank(1), from(0), Tag::Any, &mut received);
            let data = pattern(length, 6);
            let send = isend_bytes(node.rank(0), 1, 0, &data, SendMode::Synchronous);
            while !(receive.is_complete() && send.is_complete()) {
                std::thread::yield_now();
            }
            wait(node.rank(0), send);
            wait(node.rank(1), receive);
            assert_eq!(received, data);
        }
        (0..2).for_each(|id| lifecycle::end(owner(node.rank(id))));
    }
}
