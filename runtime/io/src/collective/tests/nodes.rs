//! Members on several nodes: each node's members by themselves, and errors of all.

use super::*;
use cohort_base::settings::Settings;
use cohort_coll::{Call, run};
use cohort_core::lifecycle;
use cohort_fabric_fake::{Job, Options};
use std::boxed::Box;

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
#[test]
fn members_on_nodes_write_their_own_and_learn_of_errors() {
    const BYTES: u64 = 1200;
    let file = Fake { room: Some(5 * BYTES), ..Fake::default() };
    let told = on_nodes(&[&[0, 3], &[1, 4], &[2]], |group| {
        let me = u64::from(group.me);
        let filetype = cohort_datatype::resized(&types::MPI_INT.to_ref(), 0, 20, cohort_datatype::CountForm::Int);
        let view = View::new(me * 4, types::MPI_INT.to_ref(), filetype.expect("gaps"), true).expect("a view");
        let fill = |byte: u64| noise((byte + me * 7919) as usize);
        let mut data: Vec<u8> = (0..BYTES).map(fill).collect();
        // SAFETY: the test's own memory.
        let buffer = unsafe { Buffer::of_bytes(data.as_mut_ptr(), BYTES) };
        let written = all(group, &file, Way::Write, &Post::new(&view, 0, buffer), Terms::default()).expect("memory");
        assert_eq!(written, Done { bytes: BYTES, error: None });
        let mut back = vec![0; BYTES as usize];
        // SAFETY: the test's own memory.
        let buffer = unsafe { Buffer::of_bytes(back.as_mut_ptr(), BYTES) };
        let read = all(group, &file, Way::Read, &Post::new(&view, 0, buffer), Terms::default()).expect("memory");
        assert_eq!((read, back), (Done { bytes: BYTES, error: None }, data.clone()));
        // SAFETY: the test's own memory.
        let buffer = unsafe { Buffer::of_bytes(data.as_mut_ptr(), if me == 4 { BYTES } else { 0 }) };
        all(group, &file, Way::Write, &Post::new(&view, BYTES, buffer), Terms::default()).expect("memory")
    });
    let error = Some(Failure { errno: Errno::NOSPC, offset: 5 * BYTES + 16 });
    assert_eq!(told, vec![Done { bytes: 0, error }; 5]);
    let content = file.content.lock().expect("unpoisoned");
    assert!(content.bytes.len() as u64 == 5 * BYTES && content.written.iter().all(|written| *written));
}
