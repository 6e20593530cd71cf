//! Members on several nodes: each node's members by themselves, and errors of all.

use super::*;
use cohort_base::settings::Settings;
use cohort_coll::{Call, run};
use cohort_core::lifecycle;
use cohort_fabric_fake::{Job, Options};
use std::boxed::Box;

std::thread_local! {
    static NO_MEMORY: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Whether this member finds no memory for the chunks of a lane.
pub(in super::super) fn has_no_memory() -> bool {
    NO_MEMORY.get()
}

/// Runs `work` at every member; `nodes[node][local_rank]` is a member. Returns the results by member.
fn on_nodes<R: Send>(nodes: &[&[u32]], work: impl Fn(&Group<'_>) -> R + Sync) -> Vec<R> {
    const CONTEXT: u32 = 1;
    let job = Job::new(nodes, Options::default());
    let made = (0..nodes.len()).map(|node| {
        let transport = Box::leak(Box::new(job.node(node)));
        Node::for_test_in_job(nodes, node, Settings::DEFAULT, transport)
    });
    let made: Vec<_> = made.collect();
    let mut results: Vec<_> = thread::scope(|scope| {
        let places = nodes.iter().zip(&made).flat_map(|(members, node)| (0..).zip(*members).map(move |it| (node, it)));
        let threads: Vec<_> = places
            .map(|(node, (local, member))| {
                let work = &work;
                scope.spawn(move || {
                    let owner = Owner::for_test(node.rank(local));
                    lifecycle::begin(owner);
                    let world: Vec<_> = (0..node.world_size()).map(|it| node.peer(it)).collect();
                    let shared = CommShared::of(owner, CONTEXT, &world);
                    let group = Group { owner, context: CONTEXT, me: *member, world: &world, shared };
                    let result = work(&group);
                    run(&group, &Call::Barrier).expect("barrier");
                    shared.leave(owner);
                    lifecycle::end(owner);
                    (*member, result)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a rank panicked")).collect()
    });
    results.sort_by_key(|(member, _)| *member);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Blocks in turn, whose members are on other nodes than their neighbours; then the file is full for one of them.
/// With so many nodes, nodes read for each other too.
#[test]
fn members_on_nodes_write_what_they_have_and_learn_of_errors() {
    const BYTES: u64 = 1200;
    let layouts: [&[&[u32]]; 3] =
        [&[&[0, 3], &[1, 4], &[2]], &[&[0], &[1], &[2], &[3], &[4], &[5]], &[&[0, 4, 5], &[1, 2, 3, 6]]];
    for nodes in layouts {
        let size = nodes.iter().map(|members| members.len() as u64).sum::<u64>();
        let file = Fake { room: Some(size * BYTES), ..Fake::default() };
        let told = on_nodes(nodes, |group| {
            let me = u64::from(group.me);
            let extent = size as i64 * 4;
            let filetype =
                cohort_datatype::resized(&types::MPI_INT.to_ref(), 0, extent, cohort_datatype::CountForm::Int);
            let view = View::new(me * 4, types::MPI_INT.to_ref(), filetype.expect("gaps"), true).expect("a view");
            let mut data: Vec<u8> = (0..BYTES).map(|byte| noise((byte + me * 7919) as usize)).collect();
            let access = |way, position, data: &mut [u8]| {
                // SAFETY: the test's own memory.
                let buffer = unsafe { Buffer::of_bytes(data.as_mut_ptr(), data.len() as u64) };
                all(group, &file, way, &Post::new(&view, position, buffer), Terms::default()).expect("memory").0
            };
            assert_eq!(access(Way::Write, 0, &mut data), Done { bytes: BYTES, error: None });
            let mut back = vec![0; BYTES as usize];
            assert_eq!(access(Way::Read, 0, &mut back), Done { bytes: BYTES, error: None });
            assert_eq!(back, data);
            // The second half, and what is behind the end of the file.
            back.fill(0);
            assert_eq!(access(Way::Read, BYTES / 2, &mut back), Done { bytes: BYTES / 2, error: None });
            assert_eq!(back[..back.len() / 2], data[data.len() / 2..]);
            assert!(back[back.len() / 2..].iter().all(|&byte| byte == 0));
            let more = if me == 4 { data.len() } else { 0 };
            access(Way::Write, BYTES, &mut data[..more])
        });
        let error = Some(Failure { errno: Errno::NOSPC, offset: size * BYTES + 16 });
        assert_eq!(told, vec![Done { bytes: 0, error }; size as usize]);
        let content = file.content.lock().expect("unpoisoned");
        assert!(content.bytes.len() as u64 == size * BYTES && content.written.iter().all(|written| *written));
    }
}

/// The file is full in the midst of what nodes write for each other: each member knows how much of its own is there.
#[test]
fn a_full_file_is_known_to_members_of_all_nodes() {
    const BYTES: u64 = 6000;
    let file = Fake { room: Some(2 * BYTES + 4), ..Fake::default() };
    let told = on_nodes(&[&[0, 2], &[1, 3]], |group| {
        let me = u64::from(group.me);
        let filetype = cohort_datatype::resized(&types::MPI_INT.to_ref(), 0, 16, cohort_datatype::CountForm::Int);
        let view = View::new(me * 4, types::MPI_INT.to_ref(), filetype.expect("gaps"), true).expect("a view");
        let mut data = vec![me as u8; BYTES as usize];
        // SAFETY: the test's own memory.
        let buffer = unsafe { Buffer::of_bytes(data.as_mut_ptr(), BYTES) };
        all(group, &file, Way::Write, &Post::new(&view, 0, buffer), Terms::default()).expect("memory").0
    });
    let error = Some(Failure { errno: Errno::NOSPC, offset: 2 * BYTES + 4 });
    let done = |bytes| Done { bytes, error };
    assert_eq!(told, [done(BYTES / 2 + 4), done(BYTES / 2), done(BYTES / 2), done(BYTES / 2)]);
}

/// Members of two nodes write the same bytes: in atomic mode those of the last node's highest rank stay, all of them.
#[test]
fn overlapping_writes_of_nodes_are_as_one_after_the_other() {
    const BYTES: u64 = 6000;
    let file = Fake::default();
    let terms = Terms { is_atomic: true, ..Terms::default() };
    on_nodes(&[&[0, 1], &[2, 3]], |group| {
        let mut data = vec![group.me as u8 + 1; BYTES as usize];
        // SAFETY: the test's own memory.
        let buffer = unsafe { Buffer::of_bytes(data.as_mut_ptr(), BYTES) };
        let view = View::bytes();
        all(group, &file, Way::Write, &Post::new(&view, 0, buffer), terms).expect("memory").0
    });
    let content = file.content.lock().expect("unpoisoned");
    assert!(content.bytes.len() as u64 == BYTES && content.bytes.iter().all(|&byte| byte == 4));
}

/// A member of a lane has no memory for it: nobody waits for it for ever, and all learn why nothing came of the call.
#[test]
fn who_has_no_memory_says_so() {
    const BYTES: u64 = 6000;
    let nodes: [&[u32]; 5] = [&[0], &[1], &[2], &[3], &[4]];
    for way in [Way::Write, Way::Read] {
        let content = Content { bytes: vec![7; 5 * BYTES as usize], written: vec![true; 5 * BYTES as usize] };
        let file = Fake { content: content.into(), ..Fake::default() };
        let told = on_nodes(&nodes, |group| {
            let me = u64::from(group.me);
            NO_MEMORY.set(me == 3);
            let filetype = cohort_datatype::resized(&types::MPI_INT.to_ref(), 0, 20, cohort_datatype::CountForm::Int);
            let view = View::new(me * 4, types::MPI_INT.to_ref(), filetype.expect("gaps"), true).expect("a view");
            let mut data = vec![7; BYTES as usize];
            // SAFETY: the test's own memory.
            let buffer = unsafe { Buffer::of_bytes(data.as_mut_ptr(), BYTES) };
            let done = all(group, &file, way, &Post::new(&view, 0, buffer), Terms::default()).expect("memory").0;
            assert!(data.iter().all(|&byte| byte == 7));
            done
        });
        let error = Some(Failure { errno: Errno::NOMEM, offset: 0 });
        assert_eq!(told, vec![Done { bytes: 0, error }; 5]);
        assert!(file.content.lock().expect("unpoisoned").bytes.iter().all(|&byte| byte == 7));
    }
}

/// Memory that one member's program has protected is that member's matter, whoever would write it for it.
#[test]
fn protected_memory_does_no_harm_on_other_nodes() {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    const BYTES: usize = 4096;
    let path = std::env::temp_dir().join(std::format!("cohort-io-nodes-{}", std::process::id()));
    let file = std::fs::File::options().read(true).write(true).create_new(true).open(&path).expect("a new file");
    std::fs::remove_file(&path).expect("it is there");
    // SAFETY: the file is open as long as it is used.
    let fd = unsafe { BorrowedFd::borrow_raw(std::os::fd::AsRawFd::as_raw_fd(&file)) };
    let told = on_nodes(&[&[0, 1], &[2, 3]], |group| {
        let access = if group.me == 1 { ProtFlags::empty() } else { ProtFlags::READ | ProtFlags::WRITE };
        // SAFETY: new memory.
        let memory = unsafe { mmap_anonymous(core::ptr::null_mut(), BYTES, access, MapFlags::PRIVATE) };
        let memory = memory.expect("a page").cast::<u8>();
        if group.me != 1 {
            // SAFETY: the test's own memory.
            unsafe { memory.write_bytes(group.me as u8 + 1, BYTES) };
        }
        let block = cohort_datatype::resized(&types::MPI_INT.to_ref(), 0, 16, cohort_datatype::CountForm::Int);
        let view = View::new(u64::from(group.me) * 4, types::MPI_INT.to_ref(), block.expect("gaps"), true);
        let view = view.expect("a view");
        // SAFETY: the test's own memory.
        let buffer = unsafe { Buffer::of_bytes(memory, BYTES as u64) };
        let done = through_all(group, &Plain(fd), Way::Write, &view, 0, &buffer, Terms::default()).expect("memory").0;
        // SAFETY: nobody uses it any more.
        unsafe { munmap(memory.cast(), BYTES) }.expect("it was mapped");
        done
    });
    let done = |bytes| Done { bytes, error: Some(Failure { errno: Errno::FAULT, offset: 4 }) };
    assert_eq!(told, [done(BYTES as u64), done(0), done(BYTES as u64), done(BYTES as u64)]);
    let mut content = vec![0; 4 * BYTES];
    std::os::unix::fs::FileExt::read_at(&file, &mut content, 0).expect("readable");
    for (place, byte) in content.iter().enumerate() {
        let member = place / 4 % 4;
        assert_eq!(*byte, if member == 1 { 0 } else { member as u8 + 1 });
    }
}
