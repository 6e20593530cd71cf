//! Heaps against a model, with threads, and over many allocations.

extern crate std;
use super::*;
use proptest::prelude::*;
use std::sync::Mutex;
use std::thread;
use std::vec::Vec;

const MIB: u64 = 1 << 20;

/// Sends block addresses to other threads.
#[derive(Clone, Copy, Debug)]
struct Held {
    block: NonNull<u8>,
    size: usize,
    mark: u8,
}
// SAFETY: a block may be used and freed by any thread.
unsafe impl Send for Held {}

impl Held {
    /// Allocates and marks the block's first and last bytes.
    fn new(heap: &Heap, size: usize, align: usize, mark: u8) -> Self {
        // SAFETY: in these tests one thread allocates from a heap.
        let block = unsafe { heap.alloc(size, align) }.expect("memory");
        assert_eq!(block.addr().get() % align, 0);
        // SAFETY: the block is a live one of ours.
        assert!(unsafe { Heap::usable_size(block) } >= size);
        let held = Self { block, size, mark };
        for byte in held.edges() {
            // SAFETY: within the block.
            unsafe { byte.write(mark) };
        }
        held
    }

    fn edges(&self) -> impl Iterator<Item = *mut u8> + use<> {
        let (start, size) = (self.block.as_ptr(), self.size);
        (0..size.min(16)).chain(size.saturating_sub(16)..size).map(move |i| start.wrapping_add(i))
    }

    /// Asserts that nobody else wrote to the block.
    fn check(&self) {
        // SAFETY: within the live block.
        assert!(self.edges().all(|byte| unsafe { byte.read() } == self.mark));
    }

    fn free(self) {
        self.check();
        // SAFETY: the block is live and given up here.
        unsafe { Heap::free(self.block) };
    }

    fn free_local(self, heap: &Heap) {
        self.check();
        // SAFETY: the block is live and given up here, by the thread that allocates.
        unsafe { heap.free_local(self.block) };
    }
}

/// Asserts the laws, then that a heap without blocks holds nothing after a trim.
fn assert_empty(heap: &Heap) {
    // SAFETY: one thread allocates.
    unsafe {
        heap.trim();
        heap.check();
    }
    assert_eq!(heap.stats(), Stats::default());
}

#[test]
fn a_new_heap_owns_no_memory() {
    let heap = Heap::new();
    assert_empty(&heap);
    assert!(size_of::<Heap>() <= 1024, "{}", size_of::<Heap>());
}

#[test]
fn every_size_and_alignment_is_served_and_returned() {
    let heap = Heap::new();
    let sizes = [0, 1, 16, 17, 100, 128, 129, 4096, 28672, 28673, 65536, 1 << 20, 5 << 20];
    let mut held = Vec::new();
    for size in sizes {
        for align in (0..=15).map(|bit| 1 << bit) {
            held.push(Held::new(&heap, size, align, held.len() as u8));
        }
    }
    // SAFETY: one thread allocates.
    unsafe { heap.check() };
    assert!(heap.stats().live_bytes >= sizes.iter().map(|&size| size as u64 * 16).sum());
    for (index, held) in held.into_iter().enumerate() {
        if index % 2 == 0 { held.free() } else { held.free_local(&heap) }
    }
    assert_empty(&heap);
}

#[test]
fn what_cannot_be_served_is_refused() {
    let heap = Heap::new();
    // SAFETY: one thread allocates.
    unsafe {
        assert_eq!(heap.alloc(1, 1 << 63), None);
        assert_eq!(heap.alloc(usize::MAX, 1), None);
        assert_eq!(heap.alloc(usize::MAX - (1 << 16), 1), None);
        assert_eq!(heap.alloc(1 << 60, 1), None);
    }
    assert_empty(&heap);
}

#[test]
fn blocks_are_reused_before_memory_grows() {
    let heap = Heap::new();
    let first = Held::new(&heap, 64, 16, 1);
    first.free_local(&heap);
    assert_eq!(Held::new(&heap, 64, 16, 2).block, first.block);
    let huge = Held::new(&heap, 4 << 20, 16, 3);
    assert!(heap.stats().mapped_bytes > 6 * MIB);
    thread::scope(|scope| scope.spawn(move || huge.free()).join().unwrap());
    assert_eq!(heap.stats().mapped_bytes, 2 * MIB, "a huge block goes back at once");
}

/// Miri is slow.
const PAIRS: u64 = if cfg!(miri) { 500 } else { 1_000_000 };

#[test]
fn a_million_pairs_in_many_patterns_stay_within_bounds() {
    let heap = Heap::new();
    let mut seed = 1_u64;
    let mut random = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let mut held: Vec<Held> = Vec::new();
    for step in 0..PAIRS {
        // The number of live blocks swells and shrinks, and so does their size.
        let target = 1 + (step / 1000 % 10) * 40;
        let limit = 1 << (4 + step / 10_000 % 12);
        if (held.len() as u64) < target {
            held.push(Held::new(&heap, 1 + random(limit) as usize, 16, step as u8));
        }
        if held.len() as u64 >= target {
            let victim = held.swap_remove(random(held.len() as u64) as usize);
            if step % 3 == 0 { victim.free() } else { victim.free_local(&heap) }
        }
        if step % 50_000 == 0 {
            // SAFETY: one thread allocates.
            unsafe { heap.check() };
        }
    }
    // At most 400 blocks of at most 32 KB lived at once: 12.5 MB, and one segment in reserve.
    assert!(heap.stats().mapped_bytes <= 32 * MIB, "{:?}", heap.stats());
    held.into_iter().for_each(Held::free);
    assert_empty(&heap);
}

/// Whoever took slabs without memory while as many as are kept have some would have to discard each that it frees.
#[test]
fn memory_that_is_kept_is_used_first() {
    let heap = Heap::new();
    let of_each = RUN_MAX as usize;
    let last_byte = |held: &Held| held.block.as_ptr().wrapping_add(held.size - 1);
    let new = |mark| Held::new(&heap, 40 << 10, 16, mark);
    // Full segments, in which all blocks but the first of each are freed: the memory of the last ones is not kept.
    let segments: Vec<Vec<Held>> = (0..5).map(|_| (0..of_each).map(|_| new(7)).collect()).collect();
    for segment in &segments {
        segment[1..].iter().for_each(|held| held.free_local(&heap));
    }
    for _ in 0..100 {
        // SAFETY: in this test one thread allocates from the heap; the byte is the block's.
        let before = unsafe {
            let block = heap.alloc(40 << 10, 16).expect("memory");
            let held = Held { block, size: 40 << 10, mark: 7 };
            let before = last_byte(&held).read();
            heap.free_local(block);
            before
        };
        assert_eq!(before, 7, "a block of memory that was kept");
    }
    segments.iter().for_each(|segment| segment[0].free_local(&heap));
    assert_empty(&heap);
}

#[test]
fn a_producer_and_its_consumers_stay_within_bounds() {
    const BLOCKS: usize = if cfg!(miri) { 200 } else { 200_000 };
    let heap = Heap::new();
    let queue = Mutex::new((Vec::new(), false));
    let mapped_max = thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let (blocks, done) = {
                        let mut queue = queue.lock().unwrap();
                        (core::mem::take(&mut queue.0), queue.1)
                    };
                    if blocks.is_empty() {
                        if done {
                            return;
                        }
                        thread::yield_now();
                    }
                    blocks.into_iter().for_each(Held::free);
                }
            });
        }
        let mut mapped_max = 0;
        for index in 0..BLOCKS {
            let held = Held::new(&heap, 16 + index % 500, 16, index as u8);
            while queue.lock().unwrap().0.len() >= 1000 {
                thread::yield_now();
            }
            queue.lock().unwrap().0.push(held);
            mapped_max = mapped_max.max(heap.stats().mapped_bytes);
        }
        queue.lock().unwrap().1 = true;
        mapped_max
    });
    assert!(mapped_max <= 16 * MIB, "{mapped_max} bytes for 2 MB of live blocks");
    assert_empty(&heap);
}

#[derive(Clone, Debug)]
enum Step {
    Alloc { size: usize, align_bits: u32 },
    FreeLocal(usize),
    FreeRemote { index: usize, thread: usize },
    Trim,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![6 => 0..2000_usize, 2 => 2000..40_000_usize, 1 => 40_000..3_000_000_usize];
    let step = prop_oneof![
        6 => (size, 0..14_u32).prop_map(|(size, align_bits)| Step::Alloc { size, align_bits }),
        2 => any::<usize>().prop_map(Step::FreeLocal),
        3 => (any::<usize>(), 0..2_usize)
            .prop_map(|(index, thread)| Step::FreeRemote { index, thread }),
        1 => Just(Step::Trim),
    ];
    proptest::collection::vec(step, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Live blocks never overlap and keep their content, while two other threads free
    /// blocks concurrently; the laws hold at the end.
    #[test]
    #[cfg_attr(miri, ignore = "takes Miri hours; the patterns above are of the same kind")]
    fn behaves_like_an_allocator(steps in steps()) {
        let heap = Heap::new();
        thread::scope(|scope| {
            let freers = [(); 2].map(|()| {
                let (sender, receiver) = std::sync::mpsc::channel::<Held>();
                scope.spawn(move || receiver.into_iter().for_each(Held::free));
                sender
            });
            let mut held: Vec<Held> = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Alloc { size, align_bits } => {
                        held.push(Held::new(&heap, size, 1 << align_bits, number as u8));
                    }
                    Step::FreeLocal(index) if !held.is_empty() => {
                        held.swap_remove(index % held.len()).free_local(&heap);
                    }
                    Step::FreeRemote { index, thread } if !held.is_empty() => {
                        freers[thread].send(held.swap_remove(index % held.len())).unwrap();
                    }
                    // SAFETY: only this thread allocates.
                    Step::Trim => unsafe { heap.trim() },
                    Step::FreeLocal(_) | Step::FreeRemote { .. } => {}
                }
            }
            // SAFETY: only this thread allocates.
            unsafe { heap.check() };
            held.into_iter().for_each(|held| held.free_local(&heap));
        });
        assert_empty(&heap);
    }
}

#[test]
fn blocks_have_any_alignment() {
    let heap = Heap::new();
    for shift in 4..=24 {
        let align = 1_usize << shift;
        for size in [1, 4096, 70_000, MAPPED_LEAST, 3 << 20] {
            // SAFETY: this thread alone allocates from the heap.
            let blocks = unsafe { [heap.alloc(size, align), heap.alloc_zeroed(size, align)] };
            for block in blocks {
                let block = block.expect("memory");
                assert!(block.addr().get().is_multiple_of(align), "{size} at {align}");
                // SAFETY: they are ours, and as long as was asked for.
                unsafe {
                    assert!(Heap::usable_size(block) >= size, "{size} at {align}");
                    block.write_bytes(0xff, size);
                    Heap::free(block);
                }
            }
        }
    }
}

/// The kernel is asked for huge pages for long blocks, and only for these: what a heap has otherwise stays small.
#[test]
#[cfg(not(miri))]
fn long_blocks_ask_for_huge_pages() {
    if std::fs::read("/sys/kernel/mm/transparent_hugepage/enabled").is_err() {
        return; // A kernel without them.
    }
    let heap = Heap::new();
    for (size, wants) in [(64 << 10, false), (1 << 20, false), (HUGE_LEAST, true), (9 << 20, true)] {
        // SAFETY: this thread alone allocates from the heap.
        let (dense, table) = unsafe { (heap.alloc_zeroed_dense(size, 64), heap.alloc_zeroed(size, 64)) };
        for (block, wants) in [(dense, wants), (table, false)] {
            let block = block.expect("memory");
            assert_eq!(asks_for_huge_pages(block.addr().get()), wants, "{size}");
            // SAFETY: it is ours.
            unsafe { Heap::free(block) };
        }
    }
}

/// Whether the flags of the mapping around an address say so.
#[cfg(not(miri))]
fn asks_for_huge_pages(address: usize) -> bool {
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("the kernel's list");
    let mut is_around = false;
    for line in maps.lines() {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        if let Some((from, to)) = range {
            let [from, to] = [from, to].map(|end| usize::from_str_radix(end, 16));
            is_around = matches!((from, to), (Ok(from), Ok(to)) if (from..to).contains(&address));
        }
        if let Some(flags) = line.strip_prefix("VmFlags:")
            && is_around
        {
            return flags.split(' ').any(|flag| flag == "hg");
        }
    }
    panic!("no mapping at {address:#x}");
}
