//! Collectives that move data: bcast, gather, scatter, allgather, alltoall.

use super::data::{Ints, Random, int_layouts};
use super::{on_node, on_ranks};
use crate::barrier;
use crate::{Blocks, allgather, alltoall, bcast, gather, scatter};
use cohort_core::EngineError;
use cohort_core::node::Node;
use cohort_datatype::{Buffer, TypeRef};
use std::vec;
use std::vec::Vec;

/// Ints that say who sent them to whom.
pub(super) fn message(from: usize, to: usize, length: usize, round: usize) -> Vec<i32> {
    (0..length).map(|at| ((from * 64 + to) * 1000 + at) as i32 ^ (round << 24) as i32).collect()
}

/// Numbers of elements that make entries, side buffers, and what fits in neither.
pub(super) fn some_count(random: &mut Random) -> u64 {
    [0, 1, 3, 40, 500, 3000][random.below(6) as usize]
}

const ROUNDS: usize = 60;

#[test]
fn broadcasts() {
    for size in 1..=8 {
        on_ranks(size, |group| {
            let mut random = Random::new(3);
            // Long data at the end, which goes from node to node in pieces.
            for round in 0..ROUNDS + 2 {
                let root = random.below(size.into()) as u32;
                let count = match round < ROUNDS {
                    true => some_count(&mut random),
                    false => 70_000,
                };
                let kinds = [(); 8].map(|()| random.below(3) as usize);
                let datatype = &int_layouts(2)[kinds[group.me as usize]];
                let sent = message(root as usize, 0, 2 * count as usize, round);
                let mut buffer = match group.me == root {
                    true => Ints::filled(datatype, count, &sent),
                    false => Ints::empty(datatype, count),
                };
                bcast(group, buffer.buffer(), root).expect("bcast");
                assert_eq!(buffer.ints(), sent, "round {round}");
            }
        });
    }
}

#[test]
fn whoever_posts_a_copy_leaves_before_others_come() {
    use core::sync::atomic::{AtomicU32, Ordering};
    const COUNT: u64 = 1000;
    let left = AtomicU32::new(0);
    on_node(Node::for_test(2), |group| {
        let datatype = &int_layouts(2)[0];
        let sent = message(0, 0, 2 * COUNT as usize, 1);
        let mut buffer = match group.me {
            0 => Ints::filled(datatype, COUNT, &sent),
            _ => Ints::empty(datatype, COUNT),
        };
        for round in 1..=3 {
            while group.me == 1 && left.load(Ordering::SeqCst) < round {
                std::thread::yield_now();
            }
            bcast(group, buffer.buffer(), 0).expect("bcast");
            left.fetch_max(round, Ordering::SeqCst);
        }
        assert_eq!(buffer.ints(), sent);
        let shape = Varying::of(vec![5, COUNT as i64]);
        let mut all = Ints::filled(datatype, shape.total, &message(1, 1, 2 * shape.total as usize, 4));
        while group.me == 1 && left.load(Ordering::SeqCst) < 4 {
            std::thread::yield_now();
        }
        let mut back = Ints::empty(datatype, shape.counts[group.me as usize] as u64);
        let blocks = (group.me == 0).then(|| shape.blocks(all.base(), datatype));
        scatter(group, blocks, Some(back.buffer()), 0).expect("scatter");
        left.fetch_max(4, Ordering::SeqCst);
        assert_eq!(back.ints(), block_of(&mut all, &shape, datatype, group.me as usize));
    });
}

/// Blocks of varying length with gaps between them.
pub(super) struct Varying {
    pub(super) counts: Vec<i64>,
    displacements: Vec<i64>,
    pub(super) total: u64,
}

impl Varying {
    pub(super) fn of(counts: Vec<i64>) -> Self {
        let mut total = 0;
        let displacements = counts.iter().map(|&count| {
            total += 1 + count as u64;
            total as i64 - count
        });
        Self { displacements: displacements.collect(), total: total + 1, counts }
    }

    pub(super) fn blocks<'a>(&'a self, base: *mut u8, datatype: &'a TypeRef) -> Blocks<'a> {
        let Self { counts, displacements, .. } = self;
        // SAFETY: the test's own memory, which stays until the operation is over.
        unsafe { Blocks::varying(base, (counts, displacements), datatype) }
    }
}

/// What block `member` of a varying buffer holds.
pub(super) fn block_of(buffer: &mut Ints, shape: &Varying, datatype: &TypeRef, member: usize) -> Vec<i32> {
    let ints = buffer.ints();
    let per_element = (datatype.size() / 4) as usize;
    let start = shape.displacements[member] as usize * per_element;
    ints[start..start + shape.counts[member] as usize * per_element].to_vec()
}

#[test]
fn gathers_and_scatters_of_varying_blocks() {
    for size in 1..=7 {
        on_ranks(size, |group| {
            let mut random = Random::new(5);
            let me = group.me as usize;
            for round in 0..ROUNDS {
                let root = random.below(size.into()) as u32;
                let counts = (0..size).map(|_| some_count(&mut random) as i64).collect();
                let shape = Varying::of(counts);
                let layouts = int_layouts(3);
                let (here, there) = (&layouts[round % 3], &layouts[(round / 3) % 3]);
                let count = shape.counts[me] as u64;
                let mut own = Ints::filled(here, count, &message(me, 0, 3 * count as usize, round));
                let mut all = Ints::empty(there, shape.total);
                let base = all.base();
                let blocks = (group.me == root).then(|| shape.blocks(base, there));
                gather(group, Some(own.buffer()), blocks, root).expect("gather");
                if group.me == root {
                    for member in 0..size as usize {
                        let length = 3 * shape.counts[member] as usize;
                        let block = block_of(&mut all, &shape, there, member);
                        assert_eq!(block, message(member, 0, length, round));
                    }
                }
                let mut back = Ints::empty(here, count);
                scatter(group, blocks, Some(back.buffer()), root).expect("scatter");
                assert_eq!(back.ints(), own.ints());
            }
        });
    }
}

#[test]
fn equal_blocks_in_place() {
    for (size, count) in [(1, 3), (3, 1), (4, 5), (4, 700), (6, 100)] {
        on_ranks(size, |group| {
            let (me, size) = (group.me as usize, size as usize);
            let datatype = &int_layouts(1)[0];
            let total = count * size as u64;
            let expected: Vec<_> = (0..size).flat_map(|member| message(member, 0, count as usize, 0)).collect();
            // SAFETY: the test's own memory, which stays until the operation is over.
            let blocks = |base| unsafe { Blocks::equal(Buffer::new(base, count, datatype)) };
            for root in 0..size {
                // A gather to the root's own place, and back.
                let mut all = Ints::empty(datatype, total);
                let mut own = Ints::filled(datatype, count, &message(me, 0, count as usize, 0));
                let base = all.base();
                let mine = own.base();
                // SAFETY: live buffers.
                unsafe {
                    if me == root {
                        let bytes = count as usize * 4;
                        core::ptr::copy_nonoverlapping(mine, base.add(me * bytes), bytes);
                        gather(group, None, Some(blocks(base)), root as u32).expect("gather");
                        assert_eq!(all.ints(), expected);
                        scatter(group, Some(blocks(base)), None, root as u32).expect("scatter");
                    } else {
                        gather(group, Some(own.buffer()), None, root as u32).expect("gather");
                        scatter(group, None, Some(own.buffer()), root as u32).expect("scatter");
                        assert_eq!(own.ints(), message(me, 0, count as usize, 0));
                    }
                }
            }
            let mut all = vec![-1; total as usize];
            let own = message(me, 0, count as usize, 0);
            all[me * count as usize..][..count as usize].copy_from_slice(&own);
            let mut all = Ints::filled(datatype, total, &all);
            let base = all.base();
            allgather(group, None, blocks(base)).expect("allgather");
            assert_eq!(all.ints(), expected);
        });
    }
}

#[test]
fn allgathers_of_varying_blocks() {
    for size in 1..=8 {
        on_ranks(size, |group| {
            let mut random = Random::new(9);
            let me = group.me as usize;
            for round in 0..ROUNDS {
                let counts = (0..size).map(|_| some_count(&mut random) as i64).collect();
                let shape = Varying::of(counts);
                let layouts = int_layouts(2);
                let (here, there) = (&layouts[round % 3], &layouts[(me + round) % 3]);
                let count = shape.counts[me] as u64;
                let mut own = Ints::filled(here, count, &message(me, 0, 2 * count as usize, round));
                let mut all = Ints::empty(there, shape.total);
                let base = all.base();
                allgather(group, Some(own.buffer()), shape.blocks(base, there)).expect("allgather");
                for member in 0..size as usize {
                    let length = 2 * shape.counts[member] as usize;
                    let block = block_of(&mut all, &shape, there, member);
                    assert_eq!(block, message(member, 0, length, round));
                }
            }
        });
    }
}

#[test]
fn alltoalls_equal_varying_and_in_place() {
    for size in 1..=6 {
        on_ranks(size, |group| {
            let mut random = Random::new(11);
            let me = group.me as usize;
            let members = 0..size as usize;
            for round in 0..ROUNDS {
                let equal = round % 3 == 0;
                // lengths[i][j]: elements from i to j, the same both ways, so that in place works.
                let mut lengths = vec![vec![some_count(&mut random) as i64; size as usize]; size as usize];
                if !equal {
                    for (i, j) in members.clone().flat_map(|i| (0..=i).map(move |j| (i, j))) {
                        lengths[i][j] = some_count(&mut random) as i64;
                        lengths[j][i] = lengths[i][j];
                    }
                }
                let datatype = &int_layouts(1)[round % 3];
                let shape = Varying::of(lengths[me].clone());
                let mut content = vec![-1; shape.total as usize];
                for member in members.clone() {
                    let sent = message(me, member, lengths[me][member] as usize, round);
                    content[shape.displacements[member] as usize..][..sent.len()].copy_from_slice(&sent);
                }
                let mut send = Ints::filled(datatype, shape.total, &content);
                let mut receive = Ints::empty(datatype, shape.total);
                let (from, to) = (send.base(), receive.base());
                let blocks = Some(shape.blocks(from, datatype));
                alltoall(group, blocks, shape.blocks(to, datatype)).expect("alltoall");
                alltoall(group, None, shape.blocks(from, datatype)).expect("in place");
                for member in members.clone() {
                    let expected = message(member, me, lengths[me][member] as usize, round);
                    assert_eq!(block_of(&mut receive, &shape, datatype, member), expected);
                    assert_eq!(block_of(&mut send, &shape, datatype, member), expected);
                }
                if equal {
                    equal_alltoall(group, lengths[0][0] as u64, datatype, round);
                }
            }
        });
    }
}

fn equal_alltoall(group: &crate::Group<'_>, count: u64, datatype: &TypeRef, round: usize) {
    let (me, size) = (group.me as usize, group.world.len());
    let sent: Vec<_> = (0..size).flat_map(|to| message(me, to, count as usize, round)).collect();
    let expected: Vec<_> = (0..size).flat_map(|from| message(from, me, count as usize, round)).collect();
    let mut send = Ints::filled(datatype, count * size as u64, &sent);
    let mut receive = Ints::empty(datatype, count * size as u64);
    // SAFETY: the test's own memory, which stays until the operation is over.
    let blocks = |base| unsafe { Blocks::equal(Buffer::new(base, count, datatype)) };
    alltoall(group, Some(blocks(send.base())), blocks(receive.base())).expect("alltoall");
    assert_eq!(receive.ints(), expected);
}

#[test]
fn typed_blocks() {
    on_ranks(3, |group| {
        let me = group.me as usize;
        let layouts = int_layouts(2);
        let sent: Vec<_> = (0..3).flat_map(|to| message(me, to, 2, 0)).collect();
        let mut send = Ints::filled(&layouts[0], 3, &sent);
        // Strided pieces of 2 ints, 12 bytes apart inside, 40 bytes from each other.
        let mut receive = vec![0_i32; 30];
        let (datatypes, strided) = (vec![layouts[0].clone(); 3], vec![layouts[1].clone(); 3]);
        // SAFETY: the test's own memory, which stays until the operation is over.
        let send = unsafe { Blocks::typed(send.base(), (&[1; 3], &[0, 8, 16]), &datatypes) };
        // SAFETY: the test's own memory, which stays until the operation is over.
        let blocks = unsafe { Blocks::typed(receive.as_mut_ptr().cast(), (&[1; 3], &[0, 40, 80]), &strided) };
        alltoall(group, Some(send), blocks).expect("alltoallw");
        for from in 0..3 {
            let expected = message(from, me, 2, 0);
            assert_eq!([receive[from * 10], receive[from * 10 + 3]], expected[..]);
        }
    });
}

#[test]
fn a_longer_message_is_cut_and_reported() {
    on_node(Node::for_test(3), |group| {
        for count in [4, 400] {
            let datatype = &int_layouts(1)[0];
            let sent = message(0, 0, count as usize, 0);
            let mine = if group.me == 0 { count } else { count - 1 };
            let mut buffer = Ints::filled(datatype, mine, &sent[..mine as usize]);
            let result = bcast(group, buffer.buffer(), 0);
            let expected = match group.me {
                0 => Ok(()),
                _ => Err(EngineError::Truncated { message: 4 * count, buffer: 4 * mine }),
            };
            assert_eq!(result, expected);
            barrier(group).expect("the group still works");
        }
    });
}
