//! The numbers of the fabric's descriptors, and how one comes to lie at its number.
//!
//! Programs raise their limit and open thousands of files, and close whatever they find. So a number is never taken
//! for granted: in every process of the node, numbers that the fabric may need soon are held by a *placeholder*, a
//! file that is nothing else, so that the system gives them to nobody; whatever lies at a number is looked at before
//! it is replaced; and the first number, which always holds the placeholder, tells whether a process has closed what
//! it does not know.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, memfd_create};
use rustix::io::{DupFlags, Errno, dup3, fcntl_dupfd_cloexec};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Descriptors that the fabric may have at a time on this node.
const COUNT: usize = 32 << 10;

/// Numbers that are used while they are enough; a multiple of 64.
const FIRST: u32 = 64;

/// Numbers below are left to programs, whatever their limit is.
const BASE_MIN: u64 = 1024;

/// Higher numbers cost memory in each process that holds one: the kernel's table has 8 bytes for each number.
const BASE_MAX: u64 = 16384;

/// The placeholder is empty for ever.
const SEALS: SealFlags = SealFlags::SEAL.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::WRITE);

/// The numbers of the fabric's descriptors, unique on the node.
#[derive(Debug)]
pub struct Numbers {
    base: i32,
    /// A bit for each number in use.
    words: Vec<AtomicU64>,
    /// How many of them may be used until there are too few.
    bound: AtomicU32,
    /// Where to look next: numbers are used again as late as possible.
    next: AtomicU32,
}

impl Numbers {
    /// Numbers above the soft limit of open files, so that the system hands none of them out, if the hard
    /// limit has room for them; else the highest that it allows.
    #[must_use]
    pub fn new(soft: u64, hard: u64) -> Self {
        let wanted = soft.clamp(BASE_MIN, BASE_MAX);
        let room = hard.saturating_sub(wanted).max(hard / 4);
        let count = room.min(COUNT as u64) as usize & !63;
        let base = wanted.min(hard.saturating_sub(count as u64));
        Self {
            base: base as i32,
            words: (0..count / 64).map(|_| AtomicU64::new(0)).collect(),
            bound: AtomicU32::new(FIRST.min(count as u32)),
            next: AtomicU32::new(0),
        }
    }

    fn count(&self) -> u32 {
        self.words.len() as u32 * 64
    }

    /// First and last number that may be in use.
    #[must_use]
    pub fn range(&self) -> (i32, i32) {
        let bound = self.bound.load(Ordering::Relaxed) as i32;
        (self.base, self.base + bound - 1)
    }

    /// Whether a number is one of these.
    #[must_use]
    pub fn holds(&self, number: i32) -> bool {
        (self.base..self.base + self.count() as i32).contains(&number)
    }

    /// Lets at least so many be in use, as far as there are.
    pub fn expect(&self, count: u32) {
        let bound = count.next_multiple_of(64).min(self.count());
        self.bound.fetch_max(bound, Ordering::Relaxed);
    }

    /// Takes a number; none if all are in use.
    pub fn take(&self) -> Option<i32> {
        loop {
            let bound = self.bound.load(Ordering::Relaxed);
            for _ in 0..bound {
                let index = self.next.fetch_add(1, Ordering::Relaxed) % bound;
                if self.set(index) {
                    return Some(self.base + index as i32);
                }
            }
            if bound == self.count() {
                return None;
            }
            self.expect(bound * 2);
        }
    }

    /// Leaves a number alone for good.
    pub fn avoid(&self, number: i32) {
        self.set((number - self.base) as u32);
    }

    fn set(&self, index: u32) -> bool {
        let bit = 1 << (index % 64);
        let before = self.words[index as usize / 64].fetch_or(bit, Ordering::Relaxed);
        before & bit == 0
    }

    /// Gives a number back.
    pub fn give(&self, number: i32) {
        let index = (number - self.base) as usize;
        self.words[index / 64].fetch_and(!(1 << (index % 64)), Ordering::Relaxed);
    }
}

/// What tells files apart. Those without a name on any disk (epoll sets, event counters) share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    file: u64,
}

impl Identity {
    /// Of what lies at a number in the calling process; none if nothing does.
    #[must_use]
    pub fn of(number: i32) -> Option<Self> {
        // SAFETY: reads what lies there, or finds that nothing does.
        let status = fstat(unsafe { BorrowedFd::borrow_raw(number) }).ok()?;
        Some(Self { device: status.st_dev, file: status.st_ino })
    }
}

/// The file that lies at numbers which are not in use.
#[derive(Clone, Copy, Debug)]
pub struct Placeholder {
    /// Where it always lies.
    number: i32,
    identity: Identity,
}

impl Placeholder {
    /// Makes it, in the root, at the first of some numbers; none if the system has no such files.
    #[must_use]
    pub fn make(numbers: &Numbers) -> Option<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("cohort", flags).ok()?;
        fcntl_add_seals(&file, SEALS).ok()?;
        let (first, last) = numbers.range();
        let number = (first..=last).find(|&number| Identity::of(number).is_none())?;
        (first..=number).for_each(|number| numbers.avoid(number));
        lifted(|| move_to_free(&file, number)).ok()?;
        Some(Self { number, identity: Identity::of(number)? })
    }

    /// Where it always lies.
    #[must_use]
    pub fn number(&self) -> i32 {
        self.number
    }

    /// Whether it lies at a number in the calling process.
    #[must_use]
    pub fn is_at(&self, number: i32) -> bool {
        Identity::of(number) == Some(self.identity)
    }

    /// Whether the calling process still has what it does not know of. Asked before each call of the network, so in the
    /// way that takes half the time: another file that lies there has no seals, or not all of them.
    #[must_use]
    pub fn is_home(&self) -> bool {
        // SAFETY: reads what lies there, or finds that nothing does.
        let there = unsafe { BorrowedFd::borrow_raw(self.number) };
        fcntl_get_seals(there).is_ok_and(|seals| seals == SEALS)
    }

    /// Lays it, which lies at its own number, at each of some numbers where nothing lies in the calling process; names
    /// those where something else lies.
    pub fn spread(&self, (first, last): (i32, i32)) -> Vec<i32> {
        let mut taken = Vec::new();
        let _ = lifted(|| {
            taken.clear();
            for number in first..=last {
                if Identity::of(number).is_none() {
                    // SAFETY: it lies there.
                    move_to_free(unsafe { BorrowedFd::borrow_raw(self.number) }, number)?;
                } else if !self.is_at(number) {
                    taken.push(number);
                }
            }
            Ok(())
        });
        taken
    }

    /// Lays it where a descriptor of the fabric lies in the calling process, which closes that.
    pub fn replace(&self, number: i32) {
        // SAFETY: it lies there.
        let own = unsafe { BorrowedFd::borrow_raw(self.number) };
        if !self.is_home() || lifted(|| replace(own, number)).is_err() {
            crate::close(number);
        }
    }
}

/// Copies a descriptor to a number in the calling process, and never lets an executed program inherit it. The soft
/// limit of open files is lifted for that moment, if it is in the way: it bounds new numbers only.
///
/// # Errors
/// [`Errno::EXIST`] if a file of the program lies there; what the system refuses.
pub fn place(descriptor: impl AsFd, number: i32, placeholder: Option<&Placeholder>) -> Result<(), Errno> {
    match Identity::of(number) {
        None => lifted(|| move_to_free(&descriptor, number)),
        Some(_) if placeholder.is_some_and(|placeholder| placeholder.is_at(number)) => {
            lifted(|| replace(&descriptor, number))
        }
        Some(_) => Err(Errno::EXIST),
    }
}

/// Copies a descriptor to a number where nothing lies.
fn move_to_free(descriptor: impl AsFd, number: i32) -> Result<(), Errno> {
    let copy = fcntl_dupfd_cloexec(descriptor, number)?;
    if copy.as_raw_fd() != number {
        // Somebody was faster.
        return Err(Errno::EXIST);
    }
    let _ = copy.into_raw_fd();
    Ok(())
}

/// Copies a descriptor to a number where something lies that nobody needs.
fn replace(descriptor: impl AsFd, number: i32) -> Result<(), Errno> {
    // SAFETY: what lies there is the fabric's, and nobody closes it here.
    let mut target = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(number) });
    dup3(&descriptor, &mut target, DupFlags::CLOEXEC)
}

/// Does something that the soft limit of open files may be in the way of: then once more without it.
///
/// # Errors
/// Those of the last try.
pub fn lifted<R>(mut act: impl FnMut() -> Result<R, Errno>) -> Result<R, Errno> {
    match act() {
        Err(Errno::BADF | Errno::INVAL | Errno::MFILE) => {
            // One after the other: who came second would take the lifted limit for the former one.
            static ONE: Mutex<()> = Mutex::new(());
            let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
            let limit = getrlimit(Resource::Nofile);
            let high = Rlimit { current: limit.maximum, maximum: limit.maximum };
            // If it cannot be lifted it fails again.
            let _ = setrlimit(Resource::Nofile, high);
            let result = act();
            let _ = setrlimit(Resource::Nofile, limit);
            result
        }
        result => result,
    }
}

/// Soft and hard limit of open files.
#[must_use]
pub fn open_files() -> (u64, u64) {
    let limit = getrlimit(Resource::Nofile);
    (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn numbers_are_above_what_the_system_hands_out() {
        assert_eq!(Numbers::new(1024, 1 << 20).range(), (1024, 1024 + 63));
        assert_eq!(Numbers::new(256, 1 << 20).range().0, 1024);
        assert_eq!(Numbers::new(1 << 20, 1 << 20).range().0, 16384);
        assert_eq!(Numbers::new(1024, 20000).count(), (20000 - 1024) & !63);
        let (first, last) = Numbers::new(1024, 1024).range();
        assert_eq!((first, last), (768, 768 + 63));
    }

    #[test]
    fn numbers_are_used_again_late_and_once_at_a_time() {
        let numbers = Numbers::new(512, 512);
        numbers.expect(100);
        let (first, last) = numbers.range();
        assert_eq!(last - first, 127);
        let all: Vec<i32> = std::iter::from_fn(|| numbers.take()).collect();
        assert_eq!(all, (first..=last).collect::<Vec<i32>>());
        numbers.give(first + 5);
        numbers.give(first + 2);
        assert_eq!(numbers.take(), Some(first + 2));
        assert_eq!(numbers.take(), Some(first + 5));
        assert_eq!(numbers.take(), None);
        assert!(numbers.holds(last) && !numbers.holds(last + 1));
    }

    #[test]
    fn more_numbers_are_used_when_the_first_are_too_few() {
        let numbers = Numbers::new(1024, 1024);
        let mut all: Vec<i32> = std::iter::from_fn(|| numbers.take()).collect();
        assert_eq!(all.len(), 256);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 256);
        assert!(all.iter().all(|&number| numbers.holds(number)));
    }

    /// Numbers of this process that no other test uses.
    fn some() -> (Numbers, Placeholder) {
        static NEXT: AtomicU32 = AtomicU32::new(2000);
        let soft = NEXT.fetch_add(200, Ordering::Relaxed);
        let numbers = Numbers::new(soft.into(), 1 << 20);
        let placeholder = Placeholder::make(&numbers).unwrap();
        placeholder.spread(numbers.range());
        (numbers, placeholder)
    }

    #[test]
    fn a_file_of_the_program_is_never_replaced() {
        let (numbers, placeholder) = some();
        let ours = File::open("/dev/null").unwrap();
        // SAFETY: open as long as the file.
        let ours = unsafe { BorrowedFd::borrow_raw(ours.as_raw_fd()) };
        let number = numbers.take().unwrap();
        assert!(placeholder.is_at(number));
        place(ours, number, Some(&placeholder)).unwrap();
        assert!(!placeholder.is_at(number) && Identity::of(number).is_some());
        placeholder.replace(number);
        assert!(placeholder.is_at(number));
        let programs = File::open("/dev/zero").unwrap();
        // SAFETY: open as long as the file.
        let programs = unsafe { BorrowedFd::borrow_raw(programs.as_raw_fd()) };
        place(programs, number, Some(&placeholder)).unwrap();
        assert_eq!(place(ours, number, Some(&placeholder)), Err(Errno::EXIST));
        assert_eq!(Identity::of(number), Identity::of(programs.as_raw_fd()));
        crate::close(number);
        place(ours, number, Some(&placeholder)).unwrap();
        assert_eq!(Identity::of(number), Identity::of(ours.as_raw_fd()));
    }

    #[test]
    fn what_was_closed_by_chance_is_noticed() {
        let (numbers, placeholder) = some();
        assert!(placeholder.is_home());
        let (first, last) = numbers.range();
        (first..=last).for_each(crate::close);
        assert!(!placeholder.is_home());
        let other = File::open("/dev/zero").unwrap();
        // SAFETY: open as long as the file.
        let other = unsafe { BorrowedFd::borrow_raw(other.as_raw_fd()) };
        place(other, placeholder.number(), None).unwrap();
        assert!(!placeholder.is_home());
    }
}
