//! Prints what one allocation and its free cost, in nanoseconds: the best of several rounds.

use cohort_alloc::Heap;
use std::hint::black_box;
use std::ptr::NonNull;
use std::time::Instant;

const PAIRS: u32 = 2_000_000;
const ROUNDS: u32 = 5;
/// Blocks held at once in the patterns that do not free at once.
const BATCH: usize = 100;

fn alloc(heap: &Heap, size: usize) -> NonNull<u8> {
    // SAFETY: this thread is the heap's only user.
    unsafe { heap.alloc(black_box(size), 16) }.expect("memory")
}

fn free_local(heap: &Heap, block: NonNull<u8>) {
    // SAFETY: a live block of this heap, given up here by its only user.
    unsafe { heap.free_local(block) }
}

fn free_remote(_heap: &Heap, block: NonNull<u8>) {
    // SAFETY: a live block, given up here.
    unsafe { Heap::free(block) }
}

/// Allocates and frees in batches; nanoseconds per pair.
fn measure(batch: usize, size: usize, free: impl Fn(&Heap, NonNull<u8>)) -> f64 {
    let heap = Heap::new();
    let mut held = Vec::with_capacity(batch);
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..PAIRS as usize / batch {
            for _ in 0..batch {
                held.push(alloc(&heap, size));
            }
            for block in held.drain(..) {
                free(&heap, block);
            }
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(PAIRS));
    }
    best
}

fn main() {
    for size in [64, 1024, 16 << 10] {
        println!(
            "{size:6} bytes: {:5.1} ns at once, {:5.1} ns in batches of {BATCH}, {:5.1} ns freed remotely",
            measure(1, size, free_local),
            measure(BATCH, size, free_local),
            measure(BATCH, size, free_remote),
        );
    }
}
