//! Initialisation, finalisation, versions, time, memory (MPI-4.1 chapters 9 and 11).

use crate::arguments::{Outcome, on_process, output};
use crate::context::{Listener, Process, Site, blame, comm_name, handle_error, raise};
use cohort_abi::{Abi, Handle, neutral};
use cohort_base::boot::Lifecycle;
use cohort_base::text::FixedText;
use cohort_engine::{coll, lifecycle};
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use spin::Mutex;

mod fortran;
mod memory;
mod time;
mod version;

pub use fortran::{
    abi_get_fortran_booleans, abi_get_fortran_info, abi_set_fortran_booleans, abi_set_fortran_info,
};
pub use memory::{alloc_mem, free_mem};
pub use time::{wtick, wtime};
pub use version::{
    abi_get_version, error_class, error_string, get_library_version, get_processor_name,
    get_version,
};

/// How far a process has come, and its thread level.
pub struct Lifetime {
    stage: AtomicU32,
    thread_level: AtomicI32,
    /// Thread id of the thread that initialised MPI.
    main_thread: AtomicI32,
    /// Uses of MPI that have begun and not ended: sessions, and the time from `MPI_Init` to
    /// `MPI_Finalize`.
    uses: Mutex<u32>,
}

impl Lifetime {
    /// Before initialisation.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            stage: AtomicU32::new(Lifecycle::Fresh as u32),
            thread_level: AtomicI32::new(neutral::THREAD_SINGLE),
            main_thread: AtomicI32::new(0),
            uses: Mutex::new(0),
        }
    }

    fn is(&self, stage: Lifecycle) -> bool {
        self.stage.load(Ordering::Acquire) == stage as u32
    }

    /// How far the process has come, for messages.
    pub(crate) fn stage_text(&self) -> &'static str {
        match self.stage.load(Ordering::Acquire) {
            stage if stage == Lifecycle::Fresh as u32 => "MPI has not been initialised",
            stage if stage == Lifecycle::Finalized as u32 => "MPI has been finalised",
            _ => "MPI is initialised",
        }
    }

    fn reach(&self, stage: Lifecycle) {
        self.stage.store(stage as u32, Ordering::Release);
    }

    /// Begins a use of MPI. The loader then takes the end of the rank for a failure.
    pub(crate) fn enter(&self, process: &Process) {
        let mut uses = self.uses.lock();
        *uses += 1;
        if *uses == 1 {
            let rank = process.objects.rank();
            lifecycle::begin(process.objects.owner());
            let stage = Lifecycle::Initialized as u32;
            rank.boot().lifecycle.store(stage, Ordering::Release);
        }
    }

    /// Ends a use of MPI.
    pub(crate) fn leave(&self, process: &Process) {
        let mut uses = self.uses.lock();
        *uses -= 1;
        if *uses == 0 {
            let rank = process.objects.rank();
            lifecycle::end(process.objects.owner());
            let stage = Lifecycle::Finalized as u32;
            rank.boot().lifecycle.store(stage, Ordering::Release);
        }
    }
}

impl Default for Lifetime {
    fn default() -> Self {
        Self::new()
    }
}

fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

fn initialize(process: &Process, level: i32) -> Outcome<()> {
    let lifetime = &process.lifetime;
    if !lifetime.is(Lifecycle::Fresh) {
        let what = format_args!("MPI has been initialised before");
        return Err(blame(process.objects.rank(), neutral::ERR_OTHER, what));
    }
    lifetime.thread_level.store(level, Ordering::Relaxed);
    lifetime.main_thread.store(thread_id(), Ordering::Relaxed);
    if level == neutral::THREAD_MULTIPLE {
        process.objects.rank().set_threads_multiple(true);
    }
    process.objects.initialize();
    lifetime.enter(process);
    lifetime.reach(Lifecycle::Initialized);
    Ok(())
}

/// `MPI_Init`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn init<A: Abi>(
    caller: *const c_void,
    _argc: *mut c_int,
    _argv: *mut *mut *mut c_char,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        let process = Process::of(caller);
        on_process::<A>(caller, "MPI_Init", |_| {
            initialize(process, neutral::THREAD_SINGLE)
        })
    }
}

/// `MPI_Init_thread`. Every level is provided.
///
/// # Safety
/// MPI's: `provided` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn init_thread<A: Abi>(
    caller: *const c_void,
    _argc: *mut c_int,
    _argv: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        let process = Process::of(caller);
        on_process::<A>(caller, "MPI_Init_thread", |call| {
            call.output(provided, "provided")?;
            let level = A::thread_level_in(required);
            if !(neutral::THREAD_SINGLE..=neutral::THREAD_MULTIPLE).contains(&level) {
                return Err(neutral::ERR_ARG);
            }
            initialize(process, level)?;
            provided.write(A::thread_level_out(level));
            Ok(())
        })
    }
}

macro_rules! answers {
    ($($(#[$page:meta])* $name:ident $mpi:literal $process:ident $value:expr;)*) => {$(
        $(#[$page])*
        ///
        /// # Safety
        /// MPI's: `answer` is valid for writes; `caller` is the calling rank.
        pub unsafe extern "C" fn $name<A: Abi>(
            caller: *const c_void,
            answer: *mut c_int,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                let $process = Process::of(caller);
                on_process::<A>(caller, $mpi, |call| {
                    call.output(answer, "the place for the answer")?;
                    answer.write($value);
                    Ok(())
                })
            }
        }
    )*};
}

answers! {
    /// `MPI_Initialized`: also true after finalisation.
    initialized "MPI_Initialized" process c_int::from(!process.lifetime.is(Lifecycle::Fresh));
    /// `MPI_Finalized`.
    finalized "MPI_Finalized" process c_int::from(process.lifetime.is(Lifecycle::Finalized));
    /// `MPI_Query_thread`.
    query_thread "MPI_Query_thread" process A::thread_level_out(process.lifetime.thread_level.load(Ordering::Relaxed));
    /// `MPI_Is_thread_main`.
    is_thread_main "MPI_Is_thread_main" process c_int::from(
        process.lifetime.main_thread.load(Ordering::Relaxed) == thread_id()
    );
}

/// `MPI_Finalize`: deletes the attributes of `MPI_COMM_SELF`, then waits for all ranks, so that
/// nobody's memory goes away while another still reads it.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn finalize<A: Abi>(caller: *const c_void) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        let process = Process::of(caller);
        on_process::<A>(caller, "MPI_Finalize", |call| {
            if !process.lifetime.is(Lifecycle::Initialized) {
                let what = process.lifetime.stage_text();
                return Err(call.blame(neutral::ERR_OTHER, format_args!("{what}")));
            }
            let own = neutral::handle::COMM_SELF;
            call.objects().comm(own)?.attributes.delete_all(own)?;
            let world = neutral::handle::COMM_WORLD;
            call.objects().comm(world)?.attributes.delete_all(world)?;
            crate::p2p::flush_buffers(call)?;
            if call.rank().node().boot().nodes > 1 {
                coll::barrier(&call.objects().comm(world)?.collective())
                    .map_err(crate::arguments::engine_error)?;
            } else {
                lifecycle::meet_at_end(call.owner());
            }
            call.objects().end();
            process.lifetime.leave(process);
            process.lifetime.reach(Lifecycle::Finalized);
            Ok(())
        })
    }
}

/// `MPI_Abort`: the job ends with `code` as its exit status.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn abort<A: Abi>(caller: *const c_void, comm: A::Comm, code: c_int) -> c_int {
    // SAFETY: the caller's contract.
    let process = unsafe { Process::of(caller) };
    let rank = process.objects.rank();
    let line = FixedText::<256>::of(format_args!(
        "cohort: rank {} called MPI_Abort on {} with code {code}",
        rank.world_rank(),
        comm_name(process, comm.neutral()),
    ));
    lifecycle::abort(rank, code, line.as_str())
}

/// `MPI_Pcontrol`: there is no profiling to control, so every level is accepted.
///
/// # Safety
/// None beyond the types.
pub unsafe extern "C" fn pcontrol<A: Abi>(_caller: *const c_void, _level: c_int) -> c_int {
    A::error_out(neutral::SUCCESS)
}

/// The longest beginning of `text` of at most `bytes` bytes that does not cut a character.
pub(crate) fn shortened(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Copies `text` and a NUL to a program's buffer of `room` bytes, and its length.
///
/// # Safety
/// `target` has `room` bytes, at least one; `length` is valid for writes.
///
/// # Errors
/// `MPI_ERR_ARG` for NULL.
pub(crate) unsafe fn give_text(
    text: &str,
    target: *mut c_char,
    room: usize,
    length: *mut c_int,
) -> Outcome<()> {
    output(target)?;
    output(length)?;
    let end = shortened(text, room - 1).len();
    // SAFETY: `end` bytes and the NUL fit, by the caller's contract.
    unsafe {
        text.as_ptr().copy_to_nonoverlapping(target.cast(), end);
        target.add(end).write(0);
        length.write(end as c_int);
    }
    Ok(())
}

/// `MPI_Comm_call_errhandler`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn comm_call_errhandler<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    code: c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    let process = unsafe { Process::of(caller) };
    let (name, listener) = ("MPI_Comm_call_errhandler", Listener::Comm(comm.neutral()));
    match process.objects.comm(comm.neutral()) {
        Ok(object) => {
            let handler = object.errhandler.lock().clone();
            let site = Site {
                function: name,
                listener,
                detail: "",
            };
            handle_error(process, &site, &handler, A::error_in(code));
            A::error_out(neutral::SUCCESS)
        }
        Err(class) => raise::<A>(process, name, listener, class),
    }
}
