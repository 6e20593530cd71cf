//! How much memory and how many copies schedules need, without the data.

use super::*;
use crate::schedule::{Endpoint, MemberList, Schedule, Step};
use crate::write::scan_before;
use cohort_core::node::Node;
use cohort_datatype::op::PredefinedOp;
use cohort_datatype::types;
use std::vec::Vec;

const COUNT: u64 = 100;

/// A buffer that is nowhere: schedules are written only.
fn buffer(number: usize) -> Buffer<'static> {
    // SAFETY: nobody looks at the data.
    unsafe { Buffer::new(core::ptr::without_provenance_mut(number << 20), COUNT, &types::MPI_UINT8_T) }
}

/// Copies and rooms of what `write` writes for the member at a place.
fn needs(
    (place, size): (usize, usize),
    write: impl FnOnce(&mut ScheduleBuilder<'static>, Subgroup<'_>, &Folder<'static>),
) -> (usize, usize) {
    let rank = Node::for_test(1).rank(0);
    let places: Vec<usize> = (0..size).collect();
    let members = MemberList::Borrowed(&[]);
    let endpoint = Endpoint { rank, context: 1, me: place as u32, tag: 0, members, theirs: 0..0 };
    let folder = Folder::new(Op::Predefined(PredefinedOp::BitOr), &types::MPI_UINT8_T).expect("an operation");
    let mut schedule = ScheduleBuilder::new(endpoint, Some(folder));
    write(&mut schedule, Subgroup::of(&places, place), &folder);
    let Schedule { steps, scratch, .. } = &schedule.done();
    (steps.iter().filter(|step| matches!(step, Step::Copy { .. })).count(), scratch.len())
}

#[test]
fn a_reduce_copies_its_result_only() {
    let call = Reduction {
        input: Some(buffer(1).base().cast_const()),
        result: buffer(2),
        op: Op::Predefined(PredefinedOp::BitOr),
    };
    for size in 2..=8 {
        for place in 0..size {
            let (copies, rooms) = needs((place, size), |schedule, group, folder| {
                reduce(schedule, group, folder, &call, 0).expect("memory");
            });
            assert_eq!(copies, usize::from(place == 0), "at {place} of {size}");
            let receives = place % 2 == 0 && place + 1 < size;
            assert!(rooms <= if receives { 2 } else { 0 }, "{rooms} at {place} of {size}");
        }
    }
}

#[test]
fn what_comes_before_a_node_is_received_where_it_is_wanted() {
    let op = Op::Predefined(PredefinedOp::BitOr);
    for size in 2..=8 {
        for place in 0..size {
            let needed = |may_change| {
                needs((place, size), |schedule, group, folder| {
                    let buffers = ([buffer(1), buffer(2)], may_change);
                    scan_before(schedule, group, folder, op, buffers).expect("memory");
                })
            };
            let (copies, rooms) = needed(true);
            assert_eq!((copies, rooms), (0, usize::from(place > 1)), "at {place} of {size}");
            let (copies, rooms) = needed(false);
            assert!(copies <= 1 && rooms <= 2, "{copies}, {rooms} at {place} of {size}");
        }
    }
}
