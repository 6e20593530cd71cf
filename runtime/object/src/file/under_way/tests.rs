//! Operations that are under way, of a file of one member and of one of two.

use super::*;
use crate::comm::Comm;
use crate::errhandler::Errhandler;
use crate::file::{Place, Way};
use crate::info::Info;
use crate::room::Room;
use crate::tests::on_nodes;
use cohort_abi::neutral;
use cohort_engine::datatype::types;
use std::boxed::Box;
use std::ffi::CString;
use std::string::String;
use std::vec::Vec;

const BYTES: usize = 200_000;

/// The name of a file that no other test has.
fn name(test: &str) -> CString {
    let path = std::env::temp_dir().join(std::format!("cohort-under-way-{test}-{}", std::process::id()));
    CString::new(path.to_str().expect("a name")).expect("no zero in it")
}

/// Opens a file; what is under way has no threads if `has_none`.
fn open(comm: &Comm, name: &CString, has_none: bool) -> (Box<File>, &'static UnderWay) {
    let under_way: &'static UnderWay = Box::leak(Box::new(UnderWay::new(comm.rank())));
    under_way.crew.has_none.store(has_none, Ordering::Relaxed);
    let mode = neutral::MODE_CREATE | neutral::MODE_RDWR | neutral::MODE_DELETE_ON_CLOSE;
    let room = (Room::There, under_way);
    let file = File::open(comm, Ok(name.as_c_str()), mode, &Info::default(), room, Errhandler::Return);
    (Box::new(file.expect("it opens")), under_way)
}

fn owned(data: &mut [u8]) -> Outcome<OwnedBuffer> {
    // SAFETY: the data stays until the operation is over.
    Ok(unsafe { Buffer::new(data.as_mut_ptr(), data.len() as u64, &types::MPI_BYTE) }.to_owned())
}

const CALL: &&str = &"MPI_File_iwrite_at";

fn start(file: &File, way: Way, at: i64, is_collective: bool, data: &mut [u8]) -> Started {
    file.start(Form { way, place: Place::At(at), is_collective }, owned(data), CALL)
}

fn under_way_of(started: Started) -> Arc<Operation> {
    match started {
        Started::UnderWay(operation) => operation,
        Started::Over(bytes, outcome) => panic!("over after {bytes} bytes: {outcome:?}"),
    }
}

fn pattern(seed: u32) -> Vec<u8> {
    (0..BYTES as u32).map(|at| (at * 7 + seed) as u8).collect()
}

#[test]
fn operations_of_one_member_are_done_by_a_thread_or_by_who_waits() {
    for has_none in [false, true] {
        let name = name(if has_none { "none" } else { "one" });
        on_nodes(
            &[&[0]],
            |_| {},
            |world| {
                let (file, under_way) = open(world, &name, has_none);
                let (mut data, mut back) = (pattern(1), std::vec![0; BYTES]);
                let written = under_way_of(start(&file, Way::Write, 0, false, &mut data));
                let more = under_way_of(start(&file, Way::Write, BYTES as i64, true, &mut data));
                // Whether a thread has it or not.
                let taken = more.take_over();
                assert!(!taken || more.is_done());
                assert_eq!(more.settle(), (BYTES as u64, Ok(())));
                assert_eq!(written.settle(), (BYTES as u64, Ok(())));
                assert_eq!(written.settle(), (BYTES as u64, Ok(())), "asked again");
                let read = under_way_of(start(&file, Way::Read, BYTES as i64, false, &mut back));
                file.may_close().expect("it waits for what is under way");
                assert!(read.is_done() && under_way.operations.lock().is_empty());
                assert_eq!(back, data);
                // Little is over at once, and so is what is wrong.
                let little = start(&file, Way::Read, 2 * BYTES as i64 - 10, false, &mut back[..100]);
                assert!(matches!(little, Started::Over(10, Ok(()))));
                let wrong = start(&file, Way::Read, -1, false, &mut back);
                assert!(matches!(wrong, Started::Over(0, Err(error)) if error.code() == neutral::ERR_ARG));
                file.close().expect("it closes");
                under_way.end();
            },
        );
    }
}

#[test]
fn members_meet_whatever_each_does_it_by_and_hear_of_each_other() {
    // Nobody, one or both members have no threads.
    for none in [0, 1, 2] {
        let name = name(&std::format!("both-{none}"));
        on_nodes(
            &[&[0, 1]],
            |_| {},
            |world| {
                let me = world.me();
                let (file, under_way) = open(world, &name, me < none);
                let (mut data, mut back) = (pattern(me), std::vec![0; BYTES]);
                let at = i64::from(me as i32) * BYTES as i64;
                let writes: Vec<_> =
                    (0..3).map(|_| under_way_of(start(&file, Way::Write, at, true, &mut data))).collect();
                let read = under_way_of(start(&file, Way::Read, at, true, &mut back));
                assert_eq!(read.settle(), (BYTES as u64, Ok(())));
                // They were done in their order.
                assert!(writes.iter().all(|write| write.is_done()));
                assert!(writes.iter().all(|write| write.settle() == (BYTES as u64, Ok(()))));
                assert_eq!(back, data);
                assert_eq!(under_way.meeting.load(Ordering::Acquire), 0);
                // Wrong arguments of one member are everybody's.
                let wrong = start(&file, Way::Write, if me == 1 { -3 } else { at }, true, &mut data);
                let (_, outcome) = under_way_of(wrong).settle();
                let error = outcome.expect_err("of member 1");
                assert_eq!(error.code(), neutral::ERR_ARG);
                let said = String::from(error.detail());
                assert!(said.contains(if me == 1 { "offset is -3" } else { "rank 1 of the file's group" }), "{said}");
                file.may_close().expect("nothing is under way");
                file.close().expect("it closes");
                under_way.end();
            },
        );
    }
}
