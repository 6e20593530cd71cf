//! Collective calls against a map of all bytes, as if the members had come one after the other.

pub(super) mod nodes;

use super::*;
use crate::layout::tests::{Recipe, build, recipes};
use crate::medium::Plain;
use crate::medium::fake::{Content, Fake};
use crate::transfer::tests::{Layout, noise, places, turns};
use cohort_base::Peer;
use cohort_coll::CommShared;
use cohort_core::Owner;
use cohort_core::node::Node;
use cohort_datatype::types;
use cover::Cover;
use proptest::prelude::*;
use rustix::fd::BorrowedFd;
use std::boxed::Box;
use std::thread;
use std::vec;
use std::vec::Vec;

/// A member: its view and its buffer.
#[derive(Clone, Debug)]
struct Arguments {
    filetype: Recipe,
    displacement: u64,
    position: u64,
    memory: Recipe,
    count: u64,
}

/// A member with its memory.
struct Member {
    view: View,
    position: u64,
    layout: Layout,
    count: u64,
    memory: Vec<u8>,
    /// Where each byte of its data lies in the file.
    places: Vec<usize>,
}

impl Member {
    fn new(arguments: &Arguments, fill: impl Fn(usize) -> u8) -> Self {
        let Arguments { filetype, displacement, position, memory, count } = arguments;
        let (filetype, bytes) = build(filetype);
        let count = if bytes.is_empty() { 0 } else { *count };
        let view = View::new(*displacement, types::MPI_INT.to_ref(), filetype, true).expect("ascending");
        let layout = Layout::new(memory, count);
        let places = if count == 0 { vec![] } else { places(&view, &bytes, *position, layout.places.len()) };
        let memory = (0..layout.bytes).map(fill).collect();
        Self { view, position: *position, layout, count, memory, places }
    }
}

/// A filetype whose second copy begins before the first one's data ends.
fn goes_back() -> Recipe {
    let behind_its_end = Recipe::Subarray(vec![(1, 0, 0)], Box::new(Recipe::Struct(vec![(9, Recipe::Int)])));
    Recipe::Struct(vec![(0, Recipe::Int), (4, behind_its_end)])
}

fn members() -> impl Strategy<Value = Vec<Arguments>> {
    // A few go back in the file.
    let filetype = prop_oneof![20 => recipes(), 1 => Just(goes_back())];
    let member = (filetype, 0..600_u64, 0..200_u64, recipes(), 0..5_u64).prop_map(
        |(filetype, displacement, position, memory, count)| Arguments {
            filetype,
            displacement,
            position,
            memory,
            count,
        },
    );
    prop::collection::vec(member, 1..5)
}

/// Has each member do its part, at the same time, and tells what each is told.
fn play(medium: &Fake, way: Way, members: &mut [Member], terms: Terms) -> Vec<Done> {
    struct Table<'a>(Vec<Post<'a>>);
    // SAFETY: members do with each other's posts what they do in a call.
    unsafe impl Sync for Table<'_> {}
    let posts = members.iter_mut().map(|member| {
        // SAFETY: the test's own memory.
        let buffer = unsafe { Buffer::new(member.memory.as_mut_ptr(), member.count, &member.layout.datatype) };
        Post::new(&member.view, member.position, buffer)
    });
    let table = Table(posts.collect());
    let parts: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..table.0.len())
            .map(|me| {
                let table = &table;
                scope.spawn(move || {
                    let posts: Vec<&Post<'_>> = table.0.iter().collect();
                    let (done, found) = part(medium, way, posts[me], &posts, terms);
                    (done, Found::of_words(found.words()), Plan::of(&posts, terms).is_own(posts[me]))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a member panicked")).collect()
    });
    let mut all = Found::NOTHING;
    parts.iter().for_each(|(_, found, _)| all.add(*found));
    let told = parts.iter().zip(&table.0).map(|((done, _, is_own), post)| {
        let bytes = if *is_own { done.bytes } else { post.bytes_before(all.end) };
        Done { bytes, error: all.error }
    });
    told.collect()
}

fn terms() -> impl Strategy<Value = Terms> {
    (any::<bool>(), prop::sample::select(vec![0, 600, 16 << 20])).prop_map(|(is_atomic, memory)| Terms {
        is_atomic,
        memory,
        ..Terms::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_members_data_is_written_and_nothing_else(
        members in members(), turns in turns(), room in prop::option::of(0..3000_u64), terms in terms(),
    ) {
        let fill = |member: usize| move |byte: usize| noise(byte + member * 7919);
        let mut members: Vec<Member> =
            members.iter().enumerate().map(|(rank, member)| Member::new(member, fill(rank))).collect();
        let fake = Fake { turns: turns.into(), room, ..Fake::default() };
        let told = play(&fake, Way::Write, &mut members, terms);

        let is_room = |place: &&usize| room.is_none_or(|room| (**place as u64) < room);
        let fits = |member: &Member| member.places.iter().take_while(is_room).count();
        // The data of each byte's writers, by rank.
        let mut writers: Vec<Vec<(&Member, u8)>> = vec![];
        for (rank, member) in members.iter().enumerate() {
            for (place, source) in member.places.iter().zip(&member.layout.places).take(fits(member)) {
                writers.resize(writers.len().max(place + 1), vec![]);
                writers[*place].push((member, fill(rank)(*source)));
            }
        }
        let content = fake.content.lock().expect("unpoisoned");
        prop_assert_eq!(content.bytes.len(), writers.len());
        for (place, writers) in writers.iter().enumerate() {
            prop_assert_eq!(content.written[place], !writers.is_empty());
            let found = content.bytes[place];
            let last = writers.last().map_or(0, |writer| writer.1);
            // A member whose view goes back writes on its own, before or after the others.
            let is_free = writers.iter().any(|writer| !writer.0.view.is_ordered());
            let is_right = found == last || is_free && writers.iter().any(|writer| writer.1 == found);
            prop_assert!(is_right, "byte {place} is {found}, not {last}");
        }
        let first = members.iter().filter_map(|member| member.places.get(fits(member))).min();
        let error = first.map(|place| Failure { errno: Errno::NOSPC, offset: *place as u64 });
        for (member, done) in members.iter().zip(told) {
            prop_assert_eq!(done, Done { bytes: fits(member) as u64, error });
        }
    }

    #[test]
    fn all_members_read_what_is_there(
        members in members(), turns in turns(), size in 0..4000_usize, terms in terms(),
    ) {
        let mut members: Vec<Member> = members.iter().map(|member| Member::new(member, |_| 0)).collect();
        let content = Content { bytes: (0..size).map(noise).collect(), written: vec![true; size] };
        let fake = Fake { turns: turns.into(), content: content.into(), ..Fake::default() };
        let told = play(&fake, Way::Read, &mut members, terms);
        for (member, done) in members.iter().zip(told) {
            let there = member.places.iter().take_while(|place| **place < size).count();
            let mut wanted = vec![0; member.layout.bytes];
            for (place, room) in member.places[..there].iter().zip(&member.layout.places) {
                wanted[*room] = noise(*place);
            }
            prop_assert_eq!(done, Done { bytes: there as u64, error: None });
            prop_assert!(member.memory == wanted);
        }
    }

    #[test]
    fn covers_are_the_bytes_that_were_marked(ranges in prop::collection::vec((0..256_u64, 1..256_u64), 0..9)) {
        let mut cover = Cover::default();
        cover.clear(256).expect("memory");
        let mut wanted = [false; 256];
        for (from, length) in ranges {
            let to = (from + length).min(256);
            cover.mark(from, to);
            wanted[from as usize..to as usize].fill(true);
        }
        let (mut told, mut from) = ([false; 256], 0);
        while let Some(run) = cover.run(from) {
            from = run.end;
            told[run.start as usize..run.end as usize].fill(true);
        }
        prop_assert_eq!(told, wanted);
    }
}

/// Runs `work` at every member of a communicator of `size` ranks.
fn on_ranks<R: Send>(size: u32, work: impl Fn(&Group<'_>) -> R + Sync) -> Vec<R> {
    const CONTEXT: u32 = 1;
    let node = Node::for_test(size);
    let world: Vec<_> = (0..size).map(Peer::local).collect();
    thread::scope(|scope| {
        let start = |me| {
            let (world, work) = (&world, &work);
            scope.spawn(move || {
                let owner = Owner::for_test(node.rank(me));
                let shared = CommShared::of(owner, CONTEXT, world);
                let result = work(&Group { owner, context: CONTEXT, me, world, shared });
                shared.leave(owner);
                result
            })
        };
        let threads: Vec<_> = (0..size).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("a rank panicked")).collect()
    })
}

/// Members with blocks of 12 bytes in turn, in calls one after the other, and then one where the file is full.
#[test]
fn members_meet_again_and_again() {
    const CALLS: u64 = 40;
    for size in [1, 2, 5] {
        let full = Fake { room: Some(CALLS * 1200 * u64::from(size)), ..Fake::default() };
        let told = on_ranks(size, |group| {
            let me = group.me;
            let block = cohort_datatype::contiguous(3, &types::MPI_INT.to_ref(), cohort_datatype::CountForm::Int);
            let extent = i64::from(size) * 12;
            let filetype = cohort_datatype::resized(&block.expect("3"), 0, extent, cohort_datatype::CountForm::Int);
            let view = View::new(u64::from(me) * 12, types::MPI_INT.to_ref(), filetype.expect("gaps"), true);
            let view = view.expect("a view");
            let mut data = [me as u8 + 1; 1200];
            for call in 0..CALLS {
                // SAFETY: the test's own memory.
                let buffer = unsafe { Buffer::of_bytes(data.as_mut_ptr(), 1200) };
                let post = Post::new(&view, call * 1200, buffer);
                let done = all(group, &full, Way::Write, &post, Terms::default()).expect("memory").0;
                assert_eq!(done, Done { bytes: 1200, error: None });
                let mut back = [0; 1200];
                // SAFETY: the test's own memory.
                let buffer = unsafe { Buffer::of_bytes(back.as_mut_ptr(), 1200) };
                let post = Post::new(&view, call * 1200, buffer);
                let done = all(group, &full, Way::Read, &post, Terms::default()).expect("memory").0;
                assert_eq!((done, back), (Done { bytes: 1200, error: None }, data));
            }
            // SAFETY: the test's own memory.
            let buffer = unsafe { Buffer::of_bytes(data.as_mut_ptr(), if me + 1 == size { 1200 } else { 0 }) };
            let post = Post::new(&view, CALLS * 1200, buffer);
            all(group, &full, Way::Write, &post, Terms::default()).expect("memory").0
        });
        let offset = CALLS * 1200 * u64::from(size) + u64::from(size - 1) * 12;
        let error = Some(Failure { errno: Errno::NOSPC, offset });
        assert_eq!(told, vec![Done { bytes: 0, error }; size as usize], "all members know");
    }
}

/// Memory that one member's program has protected is that member's matter: it alone has the kernel read it.
#[test]
fn protected_memory_of_another_kills_nobody() {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    const BYTES: usize = 4096;
    let path = std::env::temp_dir().join(std::format!("cohort-io-protected-{}", std::process::id()));
    let file = std::fs::File::options().write(true).create_new(true).open(&path).expect("a new file");
    std::fs::remove_file(&path).expect("it is there");
    // SAFETY: the file is open as long as it is used.
    let fd = unsafe { BorrowedFd::borrow_raw(std::os::fd::AsRawFd::as_raw_fd(&file)) };
    let told = on_ranks(3, |group| {
        let access = if group.me == 1 { ProtFlags::empty() } else { ProtFlags::READ | ProtFlags::WRITE };
        // SAFETY: new memory.
        let memory = unsafe { mmap_anonymous(core::ptr::null_mut(), BYTES, access, MapFlags::PRIVATE) };
        let memory = memory.expect("a page");
        let block = cohort_datatype::resized(&types::MPI_INT.to_ref(), 0, 12, cohort_datatype::CountForm::Int);
        let view = View::new(u64::from(group.me) * 4, types::MPI_INT.to_ref(), block.expect("gaps"), true);
        let view = view.expect("a view");
        // SAFETY: the test's own memory.
        let buffer = unsafe { Buffer::of_bytes(memory.cast(), BYTES as u64) };
        let done = through_all(group, &Plain(fd), Way::Write, &view, 0, &buffer, Terms::default()).expect("memory").0;
        // SAFETY: nobody uses it any more.
        unsafe { munmap(memory, BYTES) }.expect("it was mapped");
        done
    });
    let done = |bytes| Done { bytes, error: Some(Failure { errno: Errno::FAULT, offset: 4 }) };
    assert_eq!(told, [done(BYTES as u64), done(0), done(BYTES as u64)]);
}
