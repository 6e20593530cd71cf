//! The shared heap under contention.

extern crate std;
use super::*;
use std::thread;
use std::vec::Vec;

#[test]
fn threads_allocate_and_free_each_others_blocks() {
    const ROUNDS: usize = if cfg!(miri) { 50 } else { 2_000 };
    // SAFETY: all blocks are freed below.
    let heap = unsafe { SharedHeap::new() };
    let layout = |index: usize| Layout::from_size_align(8 + index % 300, 16).unwrap();
    thread::scope(|scope| {
        let heap = &heap;
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            let (sender, receiver) = std::sync::mpsc::channel::<(usize, usize)>();
            senders.push(sender);
            receivers.push(receiver);
        }
        // Each thread allocates, and frees what its neighbour allocated.
        senders.rotate_left(1);
        for (sender, receiver) in senders.into_iter().zip(receivers) {
            scope.spawn(move || {
                for index in 0..ROUNDS {
                    // SAFETY: a valid layout; the block is filled within its size.
                    let block = unsafe { heap.alloc(layout(index)) };
                    assert!(!block.is_null());
                    // SAFETY: as above.
                    unsafe { block.write_bytes(index as u8, layout(index).size()) };
                    sender.send((block.expose_provenance(), index)).unwrap();
                    let (address, index) = receiver.recv().unwrap();
                    let block = core::ptr::with_exposed_provenance_mut::<u8>(address);
                    // SAFETY: the neighbour's live block of this layout, given to us.
                    unsafe {
                        assert_eq!(block.read(), index as u8);
                        heap.dealloc(block, layout(index));
                    }
                }
            });
        }
    });
    heap.trim();
    assert_eq!(heap.stats(), Stats::default());
}

#[test]
fn zeroed_blocks_are_zero_also_where_others_were() {
    // SAFETY: all blocks are freed below.
    let heap = unsafe { SharedHeap::new() };
    // Of a class, of a run of slabs, and mappings of their own.
    for size in [24, 5_000, 100_000, 256 << 10, 1 << 20, 3 << 20, 5 << 20] {
        let layout = Layout::from_size_align(size, 64).unwrap();
        for _ in 0..3 {
            // SAFETY: a valid layout; the block is used within its size, and freed once.
            unsafe {
                let block = heap.alloc_zeroed(layout);
                assert!(!block.is_null());
                let bytes = core::slice::from_raw_parts_mut(block, size);
                assert!(bytes.iter().all(|&byte| byte == 0), "{size} bytes");
                bytes.fill(7);
                heap.dealloc(block, layout);
            }
        }
    }
}
