use super::*;
use cohort_arch::page;
use core::ptr::null_mut;
use core::sync::atomic::AtomicPtr;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec;

const PAGES: usize = 4;

/// What a signal does is the whole process's.
static SIGNAL: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    SIGNAL.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pages() -> *mut u8 {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let pages = unsafe { mmap_anonymous(null_mut(), PAGES * page(), protection, MapFlags::PRIVATE).expect("memory") };
    pages.cast()
}

fn protect(pages: *mut u8, flags: MprotectFlags) {
    // SAFETY: the pages are the test's own.
    unsafe { mprotect(pages.cast(), PAGES * page(), flags).expect("protection") };
}

fn copy(from: *const u8, to: *mut u8, bytes: usize) -> Result<(), Fault> {
    // SAFETY: both have so many bytes, and the closure only copies.
    unsafe { guarded(move || from.copy_to_nonoverlapping(to, bytes)) }
}

#[test]
fn a_copy_ends_at_protected_memory_and_says_how_it_met_it() {
    let _alone = alone();
    for bytes in [1, 8, 60, 100, 1000, PAGES * page()] {
        let (pages, mut other) = (pages(), vec![7_u8; PAGES * page()]);
        assert_eq!(copy(other.as_ptr(), pages, bytes), Ok(()));
        protect(pages, MprotectFlags::READ);
        assert_eq!(copy(pages, other.as_mut_ptr(), bytes), Ok(()));
        assert_eq!(copy(other.as_ptr(), pages, bytes), Err(Fault::Write));
        protect(pages, MprotectFlags::empty());
        assert_eq!(copy(pages, other.as_mut_ptr(), bytes), Err(Fault::Read));
        protect(pages, MprotectFlags::READ | MprotectFlags::WRITE);
        assert_eq!(copy(other.as_ptr(), pages, bytes), Ok(()));
        assert!(other.iter().all(|&byte| byte == 7));
    }
}

#[test]
fn an_address_that_no_pointer_can_have_ends_a_copy() {
    let _alone = alone();
    let mut byte = [0_u8; 64];
    let nowhere = core::ptr::with_exposed_provenance(1 << 63);
    let ended = copy(nowhere, byte.as_mut_ptr(), 64);
    // Not every machine says what it was that such an address was used for.
    assert!(matches!(ended, Err(Fault::Unknown | Fault::Read)), "{ended:?}");
}

static OPENED: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// A program's handler, as programs have it: it opens what is its own.
unsafe extern "C" fn open(_signal: u32, information: *const u64, _context: *mut c_void) {
    let opened = OPENED.load(Ordering::Relaxed);
    // SAFETY: `si_addr` is the third of the record's words.
    let address = unsafe { *information.add(2) } as usize;
    assert!((opened.addr()..opened.addr() + PAGES * page()).contains(&address));
    protect(opened, MprotectFlags::READ | MprotectFlags::WRITE);
}

/// The handler was set behind the last look of a thread whose stack was here, or will be: tests follow each other in
/// less time than a look is trusted.
fn forget_looks() {
    for slot in &TAKEN {
        slot.place.store(0, Ordering::Relaxed);
    }
}

#[test]
fn a_handler_of_the_program_gets_what_no_guard_waits_for() {
    let _alone = alone();
    let (own, foreign) = (pages(), pages());
    OPENED.store(own, Ordering::Relaxed);
    let action = SignalAction::new(open as *const c_void);
    let before = machine::signal_action(linux::SIGSEGV, Some(&action)).expect("set");
    forget_looks();
    protect(foreign, MprotectFlags::empty());
    protect(own, MprotectFlags::empty());
    let mut to = vec![0_u8; page()];
    assert_eq!(copy(foreign, to.as_mut_ptr(), page()), Err(Fault::Read));
    // SAFETY: the handler makes it accessible.
    assert_eq!(unsafe { own.read_volatile() }, 0);
    assert_eq!(copy(own, to.as_mut_ptr(), page()), Ok(()));
    protect(own, MprotectFlags::READ);
    // SAFETY: the handler makes it writable.
    unsafe { machine::write_nothing(own) };
    assert_eq!(copy(to.as_ptr(), own, page()), Ok(()));
    machine::signal_action(linux::SIGSEGV, Some(&before));
    forget_looks();
}

/// A thread of the program's may block what a fault needs: the kernel would kill it.
#[test]
fn a_copy_ends_in_a_thread_that_blocks_the_signal() {
    let _alone = alone();
    let (target, other) = (AtomicPtr::new(pages()), vec![7_u8; PAGES * page()]);
    protect(target.load(Ordering::Relaxed), MprotectFlags::READ);
    forget_looks();
    // Other threads of this process may go on with what they do.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            Signals::ALL.block();
            let blocked = Signals::blocked();
            assert!(blocked.has_faults());
            let pages = target.load(Ordering::Relaxed);
            for _ in 0..2 {
                assert_eq!(copy(other.as_ptr(), pages, PAGES * page()), Err(Fault::Write));
                assert_eq!(Signals::blocked(), blocked);
            }
            let mut to = 0;
            assert_eq!(copy(pages, &raw mut to, 1), Ok(()));
            assert_eq!(Signals::blocked(), blocked);
        });
    });
}

#[test]
fn a_copy_into_a_file_ends_where_the_file_does() {
    let _alone = alone();
    let path = std::env::temp_dir().join(std::format!("cohort-guard-{}", std::process::id()));
    let file = std::fs::File::options().read(true).write(true).create_new(true).open(&path).expect("a new file");
    std::fs::remove_file(&path).expect("it is there");
    file.set_len(page() as u64).expect("a page");
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: the file is open, and the mapping is new.
    let mapped = unsafe {
        let file = rustix::fd::BorrowedFd::borrow_raw(std::os::fd::AsRawFd::as_raw_fd(&file));
        rustix::mm::mmap(null_mut(), PAGES * page(), protection, flags, file, 0).expect("a mapping").cast::<u8>()
    };
    let other = vec![7_u8; PAGES * page()];
    // SAFETY: both have so many bytes, and the closure only copies.
    let copy = |bytes| unsafe { guarded_mapping(|| other.as_ptr().copy_to_nonoverlapping(mapped, bytes)) };
    assert_eq!(copy(page()), Ok(()));
    assert!(copy(page() + 1).is_err() && copy(PAGES * page()).is_err());
    file.set_len(0).expect("no page");
    assert!(copy(1).is_err());
    file.set_len((PAGES * page()) as u64).expect("all pages");
    assert_eq!(copy(PAGES * page()), Ok(()));
}
