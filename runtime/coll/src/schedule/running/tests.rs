use super::*;
use crate::schedule::{Endpoint, MemberList};
use cohort_core::Node;
use cohort_datatype::Buffer;

const FOUR: u64 = 4 * PIECE;

/// So many copies of so many bytes each, of which none is done.
fn copies(count: usize, bytes: usize) -> Progress {
    let memory = Vec::leak(alloc::vec![0_u8; 2 * bytes]);
    // SAFETY: memory that is never freed, and that only this schedule uses.
    let at = |offset: usize| unsafe { Buffer::of_bytes(memory.as_ptr().cast_mut().add(offset), bytes as u64) };
    let copy = || Step::Copy { from: at(0), to: at(bytes), reports_to: Told::Everyone, is_exact: false };
    let rank = Node::for_test(1).rank(0);
    let endpoint = Endpoint { rank, context: 0, me: 0, tag: 0, members: MemberList::Borrowed(&[]), theirs: 0..0 };
    let schedule = Schedule {
        endpoint,
        folder: None,
        steps: (0..count).map(|_| copy()).collect(),
        scratch: Vec::new(),
        packed: Vec::new(),
        bundles: Vec::new(),
        unlike: Cell::new(0),
    };
    Progress {
        schedule: Some(schedule),
        meeting: None,
        at: 0,
        done: 0,
        messages: Vec::new(),
        request: null_mut(),
        status: Status::EMPTY,
    }
}

#[test]
fn a_visit_does_many_short_copies_and_few_long_ones() {
    for (bytes, each_visit) in [(8, 256), (2048, 256), (8192, 64), (PIECE as usize, 4)] {
        let mut progress = copies(2 * each_visit, bytes);
        for visit in 1..=2 {
            let mut left = FOUR;
            assert_eq!(progress.move_data(&mut left, Runner::Anybody), (each_visit * bytes) as u64);
            assert_eq!((progress.at, left), (visit * each_visit, 0), "{bytes} bytes");
        }
    }
}

#[test]
fn a_long_copy_takes_several_visits() {
    let mut progress = copies(2, 6 * PIECE as usize);
    let mut left = FOUR;
    assert_eq!(progress.move_data(&mut left, Runner::Anybody), FOUR);
    assert_eq!((progress.at, progress.done, left), (0, FOUR, 0));
    left = FOUR;
    assert_eq!(progress.move_data(&mut left, Runner::Anybody), FOUR);
    assert_eq!((progress.at, progress.done, left), (1, 2 * PIECE, 0));
}
