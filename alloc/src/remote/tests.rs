//! Remote frees, modelled by loom: every block comes back once, and no source is touched after
//! its last block came back.

#[cfg(loom)]
mod models {
    use crate::remote::{Link, RemoteFreeList, RemoteFreeQueue};
    use core::ptr::NonNull;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    extern crate std;
    use std::boxed::Box;

    /// A block: its link, and content that loom watches for unordered accesses.
    #[repr(C)]
    struct Block {
        link: Link,
        content: UnsafeCell<u32>,
    }

    /// A slab of three blocks that is freed with its last one.
    #[repr(C)]
    struct Slab {
        source: RemoteFreeList,
        out: UnsafeCell<u32>,
    }

    struct Shared(RemoteFreeQueue);

    #[derive(Clone, Copy)]
    struct Gift(NonNull<RemoteFreeList>, NonNull<Block>);
    // SAFETY: a gift is given by one thread only.
    unsafe impl Send for Gift {}

    fn give(shared: &Shared, gift: Gift) {
        // SAFETY: the block is ours until it is given.
        unsafe {
            gift.1.as_ref().content.with_mut(|content| *content += 1);
            shared.0.give(gift.0, gift.1.cast());
        }
    }

    /// Drains, frees blocks and empty slabs; returns how many blocks came back.
    fn drain(shared: &Shared) -> u32 {
        let mut count = 0;
        // SAFETY: one thread drains; blocks and slabs came from boxes.
        unsafe {
            shared.0.drain(|source, blocks| {
                let slab = source.cast::<Slab>();
                for link in blocks {
                    let block = Box::from_raw(link.cast::<Block>().as_ptr());
                    block.content.with(|content| assert_eq!(*content, 1, "given once"));
                    slab.as_ref().out.with_mut(|out| *out -= 1);
                    count += 1;
                }
                if slab.as_ref().out.with(|out| *out) == 0 {
                    drop(Box::from_raw(slab.as_ptr()));
                }
            });
        }
        count
    }

    fn gift_from(slab: NonNull<Slab>) -> Gift {
        let block = Box::new(Block { link: Link::new(), content: UnsafeCell::new(0) });
        Gift(slab.cast(), NonNull::from(Box::leak(block)))
    }

    fn new_slab(out: u32) -> NonNull<Slab> {
        let slab = Slab { source: RemoteFreeList::new(), out: UnsafeCell::new(out) };
        NonNull::from(Box::leak(Box::new(slab)))
    }

    /// The allocator drains while two tasks give blocks of one slab, and a third was there before:
    /// the slab gets queued, drained and queued again.
    #[test]
    fn blocks_of_one_slab_come_back_once_each() {
        loom::model(|| {
            let shared = Arc::new(Shared(RemoteFreeQueue::new()));
            let slab = new_slab(3);
            let givers = [0; 2].map(|_| {
                let (shared, gift) = (Arc::clone(&shared), gift_from(slab));
                thread::spawn(move || {
                    let gift = gift;
                    give(&shared, gift);
                })
            });
            give(&shared, gift_from(slab));
            let early = drain(&shared);
            for giver in givers {
                giver.join().unwrap();
            }
            assert_eq!(early + drain(&shared), 3);
            assert!(shared.0.is_empty());
        });
    }

    /// Two tasks give blocks of two slabs: the queue's links stay intact.
    #[test]
    fn two_slabs_share_the_queue() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let shared = Arc::new(Shared(RemoteFreeQueue::new()));
            let slabs = [new_slab(2), new_slab(2)];
            let givers = [0; 2].map(|_| {
                let shared = Arc::clone(&shared);
                let gifts = slabs.map(gift_from);
                thread::spawn(move || {
                    for gift in gifts {
                        give(&shared, gift);
                    }
                })
            });
            let early = drain(&shared);
            for giver in givers {
                giver.join().unwrap();
            }
            assert_eq!(early + drain(&shared), 4);
            assert!(shared.0.is_empty());
        });
    }
}

#[cfg(not(loom))]
mod plain {
    use crate::remote::{Link, RemoteFreeList, RemoteFreeQueue};
    use core::ptr::NonNull;

    #[test]
    fn a_source_is_queued_again_after_a_drain() {
        let returns = RemoteFreeQueue::new();
        let source = RemoteFreeList::new();
        for _ in 0..3 {
            let (first, second) = (Link::new(), Link::new());
            assert!(returns.is_empty());
            let mut seen = 0;
            // SAFETY: source and blocks outlive the drain; one thread.
            unsafe {
                returns.give(NonNull::from(&source), NonNull::from(&first));
                returns.give(NonNull::from(&source), NonNull::from(&second));
                returns.drain(|from, blocks| {
                    assert_eq!(from, NonNull::from(&source));
                    assert!(blocks.eq([NonNull::from(&second), NonNull::from(&first)]));
                    seen += 1;
                });
            }
            assert_eq!(seen, 1, "queued once");
        }
    }
}
