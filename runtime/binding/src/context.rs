//! The process of a call: who calls, what it has, and what happens when a call fails.

use crate::attribute::Predefined;
use crate::environment::Lifetime;
use crate::pending::Pending;
use alloc::boxed::Box;
use alloc::string::String;
use cohort_abi::{Abi, neutral};
use cohort_base::text::FixedText;
use cohort_engine::{Rank, lifecycle};
use cohort_object::Objects;
use cohort_object::errhandler::Errhandler;
use core::ffi::{c_int, c_void};

/// Everything that one rank has of MPI. The facade passes its address as first argument.
pub struct Process {
    /// By handle.
    pub objects: Objects,
    /// Under way.
    pub pending: Pending,
    /// Values of the predefined attributes.
    pub attributes: Predefined,
    /// Initialised, finalised, thread level.
    pub lifetime: Lifetime,
}

impl Process {
    /// The process of a call.
    ///
    /// # Safety
    /// `caller` is what [`attach`] returned.
    #[inline]
    pub unsafe fn of<'a>(caller: *const c_void) -> &'a Self {
        // SAFETY: a process is leaked when it is made.
        unsafe { &*caller.cast() }
    }
}

/// The first argument of all functions for a rank. Idempotent; called by the rank's own task.
#[must_use]
pub fn attach(rank: &'static Rank) -> *const c_void {
    if rank.local().is_null() {
        let process = Process {
            objects: Objects::new(rank),
            pending: Pending::default(),
            attributes: Predefined::default(),
            lifetime: Lifetime::new(),
        };
        rank.set_local(Box::into_raw(Box::new(process)).cast());
    }
    rank.local()
}

/// Reports an error of class `class` (or an added code) to the error handler of the
/// communicator with this handle, or of `MPI_COMM_SELF` if there is no such communicator
/// (MPI-4.1, 9.3), and returns it as the program's code if the handler returns.
#[cold]
pub fn raise<A: Abi>(process: &Process, comm: u32, class: i32) -> c_int {
    let own = neutral::handle::COMM_SELF;
    let found = process.objects.comm(comm).map(|object| (comm, object));
    let found = found.or_else(|_| process.objects.comm(own).map(|object| (own, object)));
    let (comm, handler) = match found {
        Ok((comm, object)) => (comm, object.errhandler.lock().clone()),
        Err(_) => (own, process.objects.initial_errhandler.lock().clone()),
    };
    handle_error(process, comm, &handler, class);
    A::error_out(class)
}

/// Runs an error handler; returns if it does.
pub fn handle_error(process: &Process, comm: u32, handler: &Errhandler, code: i32) {
    match handler {
        Errhandler::Return => {}
        Errhandler::User(user) => user.callback.call(comm, code),
        Errhandler::Fatal | Errhandler::Abort => die(process, comm, code),
    }
}

fn die(process: &Process, comm: u32, code: i32) -> ! {
    let objects = &process.objects;
    let text = objects.errors.text(code).unwrap_or_default();
    let place = comm_name(process, comm);
    let class = objects
        .errors
        .class_of(code)
        .unwrap_or(neutral::ERR_UNKNOWN);
    let line = FixedText::<512>::of(format_args!(
        "cohort: rank {}: fatal error on {place}: {text} (error handler MPI_ERRORS_ARE_FATAL)",
        objects.rank().world_rank(),
    ));
    // An exit status has eight bits, and 0 would mean success.
    lifecycle::abort(objects.rank(), class.clamp(1, 255), line.as_str())
}

/// The name of a communicator, for messages.
pub fn comm_name(process: &Process, comm: u32) -> String {
    let name = process
        .objects
        .comm(comm)
        .map(cohort_object::Comm::name)
        .unwrap_or_default();
    match name.is_empty() {
        false => name,
        true if comm == neutral::handle::COMM_SELF => "MPI_COMM_SELF".into(),
        true => "an unnamed communicator".into(),
    }
}

/// What a function that is not implemented does: it raises `MPI_ERR_UNSUPPORTED_OPERATION`. Fatal
/// handlers first name the function.
///
/// # Safety
/// `caller` is what [`attach`] returned.
#[cold]
pub unsafe fn unsupported<A: Abi>(caller: *const c_void, name: &'static str) -> c_int {
    // SAFETY: the caller's contract.
    let process = unsafe { Process::of(caller) };
    let rank = process.objects.rank();
    let own = process.objects.comm(neutral::handle::COMM_SELF);
    let returns = own.is_ok_and(|own| !matches!(*own.errhandler.lock(), Errhandler::Fatal));
    if !returns {
        let report = rank.node().boot().report_fd;
        let rank = rank.world_rank();
        cohort_base::text::say(
            report,
            format_args!("cohort: rank {rank}: {name} is not implemented\n"),
        );
    }
    let class = neutral::ERR_UNSUPPORTED_OPERATION;
    raise::<A>(process, neutral::handle::COMM_SELF, class)
}
