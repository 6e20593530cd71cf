//! Seats: how a rank's task calls C code of the root's namespace.
//!
//! libfabric and the C library under it were loaded by the root; their thread-local data (`errno`, the allocator's
//! cache, lock owners) belong to threads of the root. A rank's task has none of that: its FS base points to the
//! thread-local data of its own C library. So the root parks a few threads, and a task that wants to
//! call borrows the FS base of one, its *seat*, for the length of the call:
//!
//! 1. block all signals of the calling thread: a handler of the application would run on the borrowed base;
//! 2. take a free seat, by one swap; spin and yield while there is none;
//! 3. remember the own FS base, set the seat's;
//! 4. call;
//! 5. restore the FS base, give back the seat, restore the signal mask.
//!
//! The parked thread sleeps in the kernel meanwhile, so its thread-local data has one user at a time. The kernel
//! saves and restores the FS base at every switch of tasks. Steps 1 to 3 and 5 use no thread-local data and no libc:
//! system calls are made by instruction.
//!
//! A process that is the one rank of its node calls with its own FS base: it has no seats, but a
//! mask of signals is not needed either.

use cohort_arch::{allows_thread_base, ask_for_thread_base, set_thread_base, thread_base, thread_block};
use cohort_base::signals::Signals;
use libc::c_long;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// More seats than that are hardly in use at a time.
pub const SEATS_MAX: usize = 64;

/// Stack of a parked thread, which does nothing.
const STACK: usize = 64 << 10;

/// Tries to find a free seat before the processor is yielded.
const SPINS: u32 = 100;

/// One parked thread's thread-local data. On a line of its own: neighbours are taken by others.
#[repr(align(128))]
#[derive(Debug)]
struct Seat {
    taken: AtomicBool,
    base: AtomicU64,
}

/// What the parked threads share with who parked them.
#[derive(Debug)]
struct Shared {
    seats: Vec<Seat>,
    /// How many have sat down.
    ready: AtomicU32,
    closing: AtomicBool,
}

/// A node's seats.
#[derive(Debug)]
pub struct Seats {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    instructions: bool,
}

impl Seats {
    /// Parks `count` threads; 0 for a process whose calls need none. `touch_thread_local` runs on each of them first.
    ///
    /// # Errors
    /// No thread can be made.
    pub fn park(count: usize, touch_thread_local: fn()) -> std::io::Result<Self> {
        let seat = |_| Seat { taken: AtomicBool::new(false), base: AtomicU64::new(0) };
        let shared = Arc::new(Shared {
            seats: (0..count).map(seat).collect(),
            ready: AtomicU32::new(0),
            closing: AtomicBool::new(false),
        });
        let mut this = Self {
            shared: Arc::clone(&shared),
            threads: Vec::with_capacity(count),
            instructions: instructions_allowed(),
        };
        // New threads inherit the mask: the root's signals are for its main thread.
        let mask = Signals::ALL.block();
        for index in 0..count {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new()
                .name("cohort-seat".into())
                .stack_size(STACK)
                .spawn(move || sit(&shared, index, touch_thread_local));
            match thread {
                Ok(thread) => this.threads.push(thread),
                Err(error) => {
                    mask.restore();
                    return Err(error);
                }
            }
        }
        mask.restore();
        while shared.ready.load(Ordering::Acquire) < count as u32 {
            std::thread::yield_now();
        }
        Ok(this)
    }

    /// Takes a seat, `preferred` or the next free one, until the returned value is dropped.
    #[must_use]
    pub fn borrow(&self, preferred: usize) -> Borrowed<'_> {
        let seats = &self.shared.seats;
        if seats.is_empty() {
            return Borrowed { seats: self, taken: None };
        }
        let mask = Signals::ALL.block();
        let index = find(seats, preferred);
        let own_base = self.base();
        // Relaxed: stored before the seats were handed out.
        self.set_base(seats[index].base.load(Ordering::Relaxed));
        Borrowed { seats: self, taken: Some(Taken { index, own_base, mask }) }
    }

    fn base(&self) -> u64 {
        if !self.instructions {
            return thread_block() as u64;
        }
        // SAFETY: the kernel allows the instruction.
        unsafe { thread_base() as u64 }
    }

    fn set_base(&self, base: u64) {
        if self.instructions {
            // SAFETY: the kernel allows the instruction; the base belongs to a parked thread of this
            // namespace or to the caller, so code that uses it finds thread-local data of its own kind.
            unsafe { set_thread_base(base as usize) };
        } else {
            // SAFETY: as above.
            unsafe { ask_for_thread_base(base as usize) };
        }
    }
}

impl Drop for Seats {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            // A parked thread does not panic.
            let _ = thread.join();
        }
    }
}

/// A parked thread's life.
fn sit(shared: &Shared, index: usize, touch_thread_local: fn()) {
    touch_thread_local();
    shared.seats[index].base.store(thread_block() as u64, Ordering::Relaxed);
    // Release pairs with the Acquire of `park`: the base is stored.
    shared.ready.fetch_add(1, Ordering::Release);
    while !shared.closing.load(Ordering::Acquire) {
        std::thread::park();
    }
}

/// Takes a free seat. Acquire pairs with the Release of its former user: its use of the
/// thread-local data is over.
fn find(seats: &[Seat], preferred: usize) -> usize {
    let mut spins = 0;
    loop {
        for step in 0..seats.len() {
            let index = (preferred + step) % seats.len();
            let taken = &seats[index].taken;
            if !taken.load(Ordering::Relaxed) && !taken.swap(true, Ordering::Acquire) {
                return index;
            }
        }
        spins += 1;
        if spins < SPINS {
            std::hint::spin_loop();
        } else {
            rustix::thread::sched_yield();
        }
    }
}

/// What must be undone.
#[derive(Debug)]
struct Taken {
    index: usize,
    own_base: u64,
    mask: Signals,
}

/// A seat in use: until it is dropped, the calling task may call C code of the root's namespace, and no
/// signal reaches it.
#[derive(Debug)]
pub struct Borrowed<'a> {
    seats: &'a Seats,
    taken: Option<Taken>,
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        if let Some(taken) = &self.taken {
            self.seats.set_base(taken.own_base);
            let seat = &self.seats.shared.seats[taken.index];
            // Release pairs with the Acquire of `find`.
            seat.taken.store(false, Ordering::Release);
            taken.mask.restore();
        }
    }
}

fn instructions_allowed() -> bool {
    // SAFETY: no condition.
    allows_thread_base(unsafe { libc::getauxval(libc::AT_HWCAP2) })
}

/// A system call that stores no `errno`, so that it needs no seat, of those that `rustix` has no function for. What the
/// kernel returns: a negative number is that of an error.
///
/// # Safety
/// As the call demands.
pub unsafe fn system_call(number: c_long, arguments: [u64; 4]) -> i64 {
    let [first, second, third, fourth] = arguments.map(|argument| argument as usize);
    // SAFETY: the caller's promise.
    unsafe { cohort_arch::system_call(number as u32, [first, second, third, fourth, 0, 0]) as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static USERS: Cell<u64> = const { Cell::new(0) };
    }

    // Not inlined: the compiler may keep the address of thread-local data within a function.
    #[inline(never)]
    fn users() -> u64 {
        USERS.get()
    }

    #[inline(never)]
    fn set_users(users: u64) {
        USERS.set(users);
    }

    #[test]
    fn a_call_sees_the_seats_thread_local_data() {
        let seats = Seats::park(1, || set_users(7)).unwrap();
        set_users(1);
        let seen = {
            let _seat = seats.borrow(0);
            let seen = users();
            set_users(8);
            seen
        };
        assert_eq!((seen, users()), (7, 1));
        let _seat = seats.borrow(5);
        assert_eq!(users(), 8);
    }

    #[test]
    fn many_tasks_share_few_seats_and_their_allocator() {
        let seats = Seats::park(2, || ()).unwrap();
        let total = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for task in 0..6 {
                let (seats, total) = (&seats, &total);
                scope.spawn(move || {
                    for round in 0..2000_usize {
                        let _seat = seats.borrow(task);
                        let before = users();
                        let block = vec![round as u8; 1 + round % 300];
                        assert_eq!(block[round % block.len()], round as u8);
                        assert_eq!(users(), before, "somebody sits here too");
                        set_users(before + 1);
                        total.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        let sum = |index| {
            let _seat = seats.borrow(index);
            users()
        };
        assert_eq!(total.into_inner(), 12000);
        assert_eq!(sum(0) + sum(1), 12000);
    }

    #[test]
    fn both_ways_of_setting_the_base_work() {
        let mut seats = Seats::park(1, || set_users(5)).unwrap();
        seats.instructions = false;
        let seen = {
            let _seat = seats.borrow(0);
            users()
        };
        assert_eq!(seen, 5);
    }
}
