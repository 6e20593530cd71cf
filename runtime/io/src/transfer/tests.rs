//! Transfers against a map of all bytes.

use super::*;
use crate::layout::tests::{Recipe, build, recipes};
use crate::medium::Plain;
use crate::medium::fake::{Content, Fake, Turn};
use cohort_datatype::{CountForm, contiguous, hvector, types};
use core::sync::atomic::{AtomicU32, Ordering};
use proptest::prelude::*;
use rustix::fd::BorrowedFd;
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::vec;
use std::vec::Vec;

pub(crate) fn noise(index: usize) -> u8 {
    (index.wrapping_mul(2_654_435_761) >> 11) as u8 | 1
}

/// A buffer's memory: how many bytes it has, and where each byte of its data lies.
pub(crate) struct Layout {
    pub(crate) datatype: cohort_datatype::TypeRef,
    pub(crate) places: Vec<usize>,
    pub(crate) bytes: usize,
}

impl Layout {
    pub(crate) fn new(recipe: &Recipe, count: u64) -> Self {
        let (datatype, bytes) = build(recipe);
        let extent = datatype.extent();
        let copies = 0..count as i64;
        let places: Vec<usize> =
            copies.flat_map(|copy| bytes.iter().map(move |byte| (copy * extent + byte) as usize)).collect();
        let bytes = places.iter().max().map_or(0, |last| last + 1);
        Self { datatype, places, bytes }
    }
}

/// The places in the file of `length` bytes of data from `position` on.
pub(crate) fn places(view: &View, bytes: &[i64], position: u64, length: usize) -> Vec<usize> {
    let extent = view.filetype().extent();
    let place = |position: usize| {
        let (copy, inside) = (position / bytes.len(), position % bytes.len());
        (view.displacement() as i64 + copy as i64 * extent + bytes[inside]) as usize
    };
    (position as usize..position as usize + length).map(place).collect()
}

pub(crate) fn turns() -> impl Strategy<Value = VecDeque<Turn>> {
    let turn = prop_oneof![
        (1..200_usize).prop_map(Turn::Short),
        Just(Turn::Error(Errno::INTR)),
        Just(Turn::Error(Errno::AGAIN)),
    ];
    prop::collection::vec(turn, 0..6).prop_map(Into::into)
}

/// A file that has no name any more, where files can be mapped.
fn new_file(test: &str) -> File {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let folder = Path::new("/dev/shm");
    let folder = if folder.is_dir() { folder } else { &std::env::temp_dir() };
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(std::format!("cohort-{test}-{}-{number}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path).expect("a new file");
    std::fs::remove_file(&path).expect("it is there");
    file
}

fn plain(file: &File) -> Plain<'_> {
    // SAFETY: the file is open as long as it is borrowed.
    Plain(unsafe { BorrowedFd::borrow_raw(file.as_raw_fd()) })
}

/// Writers of each other's gaps, at the same time, and one who cuts the file now and then: no byte of any of them is
/// lost but to the cuts, and all go on.
#[test]
fn gaps_belong_to_others_who_write_them_meanwhile() {
    const PIECES: u64 = 3000;
    const PIECE: u64 = 7;
    for cuts in [false, true] {
        let (file, writers) = (new_file("gaps"), 4_u64);
        let (go_on, shrunk) = (AtomicU32::new(1), AtomicU32::new(0));
        let types = {
            let piece = contiguous(PIECE as i64, &types::MPI_BYTE.to_ref(), CountForm::Int).expect("a piece");
            cohort_datatype::resized(&piece, 0, (PIECE * writers) as i64, CountForm::Int).expect("with gaps")
        };
        let write = |writer: u64, round: u8| {
            let view = View::new(writer * PIECE, types::MPI_BYTE.to_ref(), types.clone(), true).expect("a view");
            let mut memory = vec![writer as u8 * 50 + round; (PIECES * PIECE) as usize];
            let bytes = types::MPI_BYTE.to_ref();
            // SAFETY: the test's own memory.
            let buffer = unsafe { Buffer::new(memory.as_mut_ptr(), PIECES * PIECE, &bytes) };
            let done = through(&plain(&file), Way::Write, &view, 0, buffer);
            assert_eq!(done, Done { bytes: PIECES * PIECE, error: None });
        };
        std::thread::scope(|scope| {
            let write = &write;
            let begin = |writer| scope.spawn(move || (1..40).for_each(|round| write(writer, round)));
            let all: Vec<_> = (0..writers).map(begin).collect();
            let cutter = scope.spawn(|| {
                while cuts && go_on.load(Ordering::Relaxed) != 0 {
                    file.set_len(u64::from(shrunk.fetch_add(1, Ordering::Relaxed) % 3) * 9000).expect("cut");
                }
            });
            all.into_iter().for_each(|writer| writer.join().expect("it goes on"));
            go_on.store(0, Ordering::Relaxed);
            cutter.join().expect("it ends");
        });
        let mut found = vec![0; (PIECES * PIECE * writers) as usize];
        let there = file.read_at(&mut found, 0).expect("read");
        assert!(cuts || there == found.len());
        for (at, &byte) in found[..there].iter().enumerate() {
            let writer = (at as u64 / PIECE % writers) as u8;
            let is_last = byte == writer * 50 + 39;
            let is_old = cuts && (byte == 0 || (1..40).contains(&byte.wrapping_sub(writer * 50)));
            assert!(is_last || is_old, "byte {at} of writer {writer} is {byte}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_the_data_and_nothing_else(
        filetype in recipes(), memory in recipes(), count in 0..6_u64, position in 0..200_u64,
        displacement in 0..100_u64, turns in turns(), room in prop::option::of(0..3000_u64),
    ) {
        let (filetype, bytes) = build(&filetype);
        prop_assume!(!bytes.is_empty());
        let view = View::new(displacement, types::MPI_INT.to_ref(), filetype, true).expect("ascending");
        let layout = Layout::new(&memory, count);
        let mut memory: Vec<u8> = (0..layout.bytes).map(noise).collect();
        // SAFETY: the test's own memory.
        let buffer = unsafe { Buffer::new(memory.as_mut_ptr(), count, &layout.datatype) };
        let fake = Fake { turns: turns.into(), room, ..Fake::default() };
        let done = through(&fake, Way::Write, &view, position, buffer);

        let places = places(&view, &bytes, position, layout.places.len());
        let fit = places.iter().take_while(|place| room.is_none_or(|room| (**place as u64) < room)).count();
        let mut wanted = Content::default();
        for (place, source) in places[..fit].iter().zip(&layout.places) {
            let size = wanted.bytes.len().max(place + 1);
            wanted.bytes.resize(size, 0);
            wanted.written.resize(size, false);
            (wanted.bytes[*place], wanted.written[*place]) = (noise(*source), true);
        }
        prop_assert_eq!(&*fake.content.lock().expect("unpoisoned"), &wanted);
        prop_assert_eq!(done.bytes, fit as u64);
        let failure = places.get(fit).map(|place| Failure { errno: Errno::NOSPC, offset: *place as u64 });
        prop_assert_eq!(done.error, failure);
    }

    #[test]
    fn what_is_written_through_a_mapping_is_the_data_and_nothing_else(
        filetype in recipes(), memory in recipes(), count in 0..6_u64, position in 0..200_u64,
        displacement in 0..9000_u64, before in 0..12_000_usize,
    ) {
        let (filetype, bytes) = build(&filetype);
        prop_assume!(!bytes.is_empty());
        let view = View::new(displacement, types::MPI_INT.to_ref(), filetype, true).expect("ascending");
        let layout = Layout::new(&memory, count);
        let mut memory: Vec<u8> = (0..layout.bytes).map(noise).collect();
        // SAFETY: the test's own memory.
        let buffer = unsafe { Buffer::new(memory.as_mut_ptr(), count, &layout.datatype) };
        let file = new_file("mapped");
        let mut wanted: Vec<u8> = (0..before).map(|at| !noise(at)).collect();
        file.write_all_at(&wanted, 0).expect("written");
        let done = through(&plain(&file), Way::Write, &view, position, buffer);

        let places = places(&view, &bytes, position, layout.places.len());
        for (place, source) in places.iter().zip(&layout.places) {
            let size = wanted.len().max(place + 1);
            wanted.resize(size, 0);
            wanted[*place] = noise(*source);
        }
        prop_assert_eq!(done, Done { bytes: places.len() as u64, error: None });
        let mut found = vec![0; wanted.len() + 1];
        prop_assert_eq!(file.read_at(&mut found, 0).expect("read"), wanted.len());
        prop_assert_eq!(&found[..wanted.len()], wanted);
    }

    #[test]
    fn what_is_read_is_what_is_there(
        filetype in recipes(), memory in recipes(), count in 0..6_u64, position in 0..200_u64,
        displacement in 0..100_u64, turns in turns(), size in 0..4000_usize, broken in any::<bool>(),
    ) {
        let (filetype, bytes) = build(&filetype);
        prop_assume!(!bytes.is_empty());
        let view = View::new(displacement, types::MPI_INT.to_ref(), filetype, false).expect("ascending");
        let layout = Layout::new(&memory, count);
        let mut memory: Vec<u8> = vec![0; layout.bytes];
        // SAFETY: the test's own memory.
        let buffer = unsafe { Buffer::new(memory.as_mut_ptr(), count, &layout.datatype) };
        let content = Content { bytes: (0..size).map(noise).collect(), written: vec![true; size] };
        let mut turns = turns;
        if broken {
            turns.push_front(Turn::Error(Errno::IO));
        }
        let fake = Fake { turns: turns.into(), content: content.into(), ..Fake::default() };
        let done = through(&fake, Way::Read, &view, position, buffer);

        let places = places(&view, &bytes, position, layout.places.len());
        let there = places.iter().take_while(|place| **place < size).count();
        // The first attempt failed: either it was one for several pieces, and then each for itself did not.
        let is_told = done.error.is_some();
        prop_assert!(!is_told || broken);
        let there = if is_told { 0 } else { there };
        let mut wanted: Vec<u8> = vec![0; layout.bytes];
        for (place, room) in places[..there].iter().zip(&layout.places) {
            wanted[*room] = noise(*place);
        }
        prop_assert_eq!(done.bytes, there as u64);
        prop_assert_eq!(memory, wanted);
    }
}

/// Long runs go to the kernel as they are, and gaps between them stay as they are.
#[test]
fn long_runs_with_gaps() {
    const FORM: CountForm = CountForm::Int;
    let run = contiguous(20_000, &types::MPI_BYTE.to_ref(), FORM).expect("a run");
    let datatype = hvector(150, 1, 20_011, &run, FORM).expect("with gaps");
    assert!(datatype.typical_run() >= STRAIGHT);
    let bytes = 150 * 20_011;
    let data: Vec<u8> = (0..bytes).map(noise).collect();
    let mut memory = data.clone();
    // SAFETY: the test's own memory.
    let buffer = unsafe { Buffer::new(memory.as_mut_ptr(), 1, &datatype) };
    let turns: VecDeque<_> = [Turn::Short(30_000), Turn::Error(Errno::INTR), Turn::Short(1)].into();
    let fake = Fake { turns: turns.into(), ..Fake::default() };
    let done = through(&fake, Way::Write, &View::bytes(), 3, buffer);
    assert_eq!(done, Done { bytes: 3_000_000, error: None });
    let is_data = |at: usize| at % 20_011 < 20_000;
    let packed: Vec<u8> = (0..bytes).filter(|at| is_data(*at)).map(noise).collect();
    assert!(fake.content.lock().expect("unpoisoned").bytes[3..] == packed);
    memory.fill(0);
    // SAFETY: as above.
    let buffer = unsafe { Buffer::new(memory.as_mut_ptr(), 1, &datatype) };
    let done = through(&fake, Way::Read, &View::bytes(), 3 + 100, buffer);
    assert_eq!(done, Done { bytes: 3_000_000 - 100, error: None }, "the file ends");
    let places = (0..bytes).filter(|at| is_data(*at));
    for (at, byte) in places.clone().zip(packed[100..].iter().copied().chain(std::iter::repeat(0))) {
        assert_eq!(memory[at], byte);
    }
    assert!((0..bytes).filter(|at| !is_data(*at)).all(|at| memory[at] == 0), "gaps of memory");
    let full = Fake { room: Some(1_000_000), ..Fake::default() };
    let done = through(&full, Way::Write, &View::bytes(), 0, buffer);
    assert_eq!(done, Done { bytes: 1_000_000, error: Some(Failure { errno: Errno::NOSPC, offset: 1_000_000 }) });
}

/// Room begins in a line where the bytes of the file do, and long reads are right wherever memory begins.
#[test]
fn reads_into_lines() {
    let mut bounce = Bounce::default();
    for offset in [0, 1, 63, 4096, 5000, 1 << 40] {
        let room = bounce.room(100_000, offset).expect("memory");
        assert_eq!(room.addr() as u64 % 64, offset % 64);
    }
    let content = Content { bytes: (0..300_000).map(noise).collect(), written: vec![true; 300_000] };
    let fake = Fake { content: content.into(), ..Fake::default() };
    let byte = types::MPI_BYTE.to_ref();
    for (shift, offset) in [(0, 0), (16, 0), (3, 70), (64, 128), (8, 4095)] {
        let mut memory: Vec<u8> = vec![0; 270_100];
        // SAFETY: the test's own memory.
        let buffer = unsafe { Buffer::new(memory[shift..].as_mut_ptr(), 270_000, &byte) };
        let done = through(&fake, Way::Read, &View::bytes(), offset, buffer);
        assert_eq!(done, Done { bytes: 270_000, error: None });
        assert!((0..270_000).all(|at| memory[shift + at] == noise(at + offset as usize)), "{shift} {offset}");
    }
}
