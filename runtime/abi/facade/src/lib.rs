//! What every facade shares: one [`Attachment`], made when the library is loaded.
//!
//! A facade is loaded once per rank, has no thread-local data, and holds no MPI logic: its C
//! functions call the table that the node image returned. Under `pip-exec` the auxiliary
//! vector leads to the rank's boot record; otherwise the program is a job of one rank and the
//! facade loads the node image itself.
#![no_std]

mod descent;
mod heap;
pub mod itself;
mod later;
mod leave;
mod libc;
pub mod limit;
pub mod memory;
mod names;
mod refusal;
pub mod remap;
pub mod segment;
mod singleton;
pub mod space;
pub mod stack;
mod streams;
pub mod user;

use cohort_abi::openmpi::Objects;
use cohort_abi::{Abi, Table};
use cohort_base::boot::{AT_COHORT, MAGIC, RankBoot, VERSION};
use cohort_base::text::complain;
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The rank that this library serves, and the functions of the node image.
///
/// Written when the library is loaded and in the child of a fork, while no other thread
/// of the process exists or uses MPI; hence the relaxed order.
#[derive(Debug)]
pub struct Attachment<A: Abi> {
    rank: AtomicPtr<c_void>,
    table: AtomicPtr<Table<A>>,
}

impl<A: Abi> Attachment<A> {
    /// Not attached: every MPI function ends the process with a message.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            rank: AtomicPtr::new(core::ptr::null_mut()),
            table: AtomicPtr::new((&raw const *refusal::early::<A>()).cast_mut()),
        }
    }

    /// First argument for every entry of the table, and the table.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> (*const c_void, &'static Table<A>) {
        let table = self.table.load(Ordering::Relaxed);
        // SAFETY: always one of the refusal tables or the node image's, which stay mapped.
        (self.rank.load(Ordering::Relaxed), unsafe { &*table })
    }

    /// Attaches; called by the library's constructor. Ends the process with a message if that
    /// is impossible. `after_fork` must call [`Attachment::refuse_after_fork`] of this attachment; `objects` is
    /// what `Abi::context` finds, `None` for an ABI whose context is nothing.
    pub fn attach(&self, after_fork: extern "C" fn(), objects: Option<&'static Objects>) {
        let (boot, is_started) = match rank_boot() {
            Some(boot) if boot.magic != MAGIC || boot.version != VERSION => fail(
                1,
                format_args!(
                    "this MPI library and the pip-exec that started the program are of different \
                     versions (boot record {}, expected {VERSION}); use those of one installation",
                    boot.version
                ),
            ),
            Some(boot) if !is_own(boot) => return self.refuse_after_fork(),
            Some(boot) if boot.api.is_null() => fail(
                1,
                format_args!(
                    "this program uses MPI but was started with pip-exec --no-mpi; leave that \
                     option out"
                ),
            ),
            Some(boot) => (boot, true),
            None => singleton::open(),
        };
        // SAFETY: the loader, or `singleton::open`, stored the node image's API before now.
        let api = unsafe { &*boot.api };
        let objects = objects.map_or(core::ptr::null(), |objects| (&raw const *objects).cast());
        let table = (&raw const self.table).cast();
        // SAFETY: `boot` is the calling task's own record and stays mapped, and so do the objects and this library.
        let attached = unsafe { (api.attach)(boot, A::ID as u32, objects, table) };
        if attached.table.is_null() {
            fail(1, format_args!("the node image has no support for the {} ABI", A::NAME));
        }
        self.rank.store(attached.rank.cast_mut(), Ordering::Relaxed);
        self.table.store(attached.table.cast_mut().cast(), Ordering::Relaxed);
        // SAFETY: registers a plain function; the library is linked never to be unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(after_fork)) };
        leave::prepare(boot);
        if is_started {
            streams::prepare(boot);
            heap::prepare(boot);
            later::settle();
        }
    }

    /// Makes every MPI function end the process with a message: this is the child of a fork,
    /// which shares none of its parent's MPI. `MPI_Initialized` and `MPI_Finalized` answer
    /// "yes", so that exit handlers leave MPI alone.
    pub fn refuse_after_fork(&self) {
        let table = &raw const *refusal::after_fork::<A>();
        self.table.store(table.cast_mut(), Ordering::Relaxed);
    }
}

impl<A: Abi> Default for Attachment<A> {
    fn default() -> Self {
        Self::new()
    }
}

/// The record that `pip-exec` made for this rank, if it started the program.
fn rank_boot() -> Option<&'static RankBoot> {
    // SAFETY: no condition; 0 says that there is no such entry.
    let address = unsafe { libc::getauxval(AT_COHORT) };
    // SAFETY: the loader put the address of a record there that stays mapped.
    unsafe { core::ptr::without_provenance::<RankBoot>(address as usize).as_ref() }
}

/// Whether the record belongs to this process: a forked child inherits its parent's.
fn is_own(boot: &RankBoot) -> bool {
    let pid = boot.pid.load(Ordering::Relaxed);
    pid == 0 || pid == rustix::process::getpid().as_raw_nonzero().get()
}

/// Says why MPI cannot be used and ends the process.
pub fn fail(status: i32, reason: core::fmt::Arguments<'_>) -> ! {
    complain(format_args!("cohort: {reason}\n"));
    // SAFETY: no condition.
    unsafe { libc::_exit(status) }
}

#[panic_handler]
fn panic(information: &core::panic::PanicInfo<'_>) -> ! {
    fail(134, format_args!("{information}"))
}

cohort_arch::no_unwinder!();
