//! Threads, thread-local data with destructors, a caught panic, own standard output.
use std::cell::Cell;

thread_local!(static COUNT: Cell<u32> = const { Cell::new(0) });

fn main() {
    let threads: Vec<_> = (0..4)
        .map(|wanted| {
            std::thread::spawn(move || {
                (0..wanted).for_each(|_| COUNT.set(COUNT.get() + 1));
                COUNT.get() == wanted
            })
        })
        .collect();
    assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
    std::panic::set_hook(Box::new(|_| ()));
    assert!(std::panic::catch_unwind(|| panic!("caught")).is_err());
    println!("done");
}
