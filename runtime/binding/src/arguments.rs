//! What every function of the binding does with its arguments.
//!
//! A function's body returns an error class; the wrappers here turn it into a call of the right
//! error handler, out of line. The body itself decides nothing about error handlers.

use crate::context::{Listener, Process, blame, raise};
use crate::pending::Pending;
use crate::request::Failure;
use alloc::vec::Vec;
use cohort_abi::{Abi, Constants, Count, Handle, Integer, neutral};
use cohort_engine::datatype::{TypeRef, predefined};
use cohort_engine::{EngineError, Owner, Rank};
use cohort_object::{Datatype, Objects, Session, Win};
use core::ffi::c_void;
use core::fmt;
use core::marker::PhantomData;

pub use cohort_object::{Comm, Outcome};

/// One call of the program.
pub struct Call<'a, A: Abi> {
    process: &'a Process,
    abi: PhantomData<A>,
}

impl<'a, A: Abi> Call<'a, A> {
    /// A call by `caller`.
    ///
    /// # Safety
    /// `caller` is the calling rank, as the facade got it.
    #[inline]
    unsafe fn new(caller: *const c_void) -> Self {
        Self {
            // SAFETY: the caller's contract.
            process: unsafe { Process::of(caller) },
            abi: PhantomData,
        }
    }

    /// The calling process.
    #[inline]
    pub fn process(&self) -> &'a Process {
        self.process
    }

    /// The calling rank.
    #[inline]
    pub fn rank(&self) -> &'static Rank {
        self.process.objects.rank()
    }

    /// The witness that this is a call of the program.
    #[inline]
    pub fn owner(&self) -> Owner<'static> {
        // SAFETY: a call is made by `Call::new`, on a task of the rank, in a call of the program.
        unsafe { Owner::new(self.rank()) }
    }

    /// Its objects.
    #[inline]
    pub fn objects(&self) -> &'a Objects {
        &self.process.objects
    }

    /// What it has under way.
    #[inline]
    pub fn pending(&self) -> &'a Pending {
        &self.process.pending
    }

    /// The datatype of a handle, committed or not.
    ///
    /// # Errors
    /// `MPI_ERR_TYPE`.
    #[inline]
    pub fn datatype(&self, handle: A::Datatype) -> Outcome<TypeRef> {
        match predefined(handle.neutral()) {
            Some(datatype) => Ok(datatype),
            None => Ok(self.objects().datatype(handle.neutral())?.layout.clone()),
        }
    }

    /// The datatype of a handle, for communication.
    ///
    /// # Errors
    /// `MPI_ERR_TYPE`, also for one that is not committed.
    #[inline]
    pub fn committed(&self, handle: A::Datatype) -> Outcome<TypeRef> {
        if let Some(datatype) = predefined(handle.neutral()) {
            return Ok(datatype);
        }
        let handle = handle.neutral();
        let datatype = self
            .objects()
            .datatype(handle)
            .map_err(|class| bad_datatype(self, handle, class))?;
        match datatype.is_committed() || !self.checks() {
            true => Ok(datatype.layout.clone()),
            false => Err(self.blame(neutral::ERR_TYPE, format_args!("it is not committed"))),
        }
    }

    /// Whether arguments are checked that only a wrong program gets wrong (`COHORT_CHECK`).
    #[inline]
    pub fn checks(&self) -> bool {
        self.rank().node().settings().check
    }

    /// Refuses a buffer that cannot hold data: `MPI_IN_PLACE`, or NULL for a type whose data
    /// begins at the buffer's own address. (Other types may be relative to `MPI_BOTTOM`, NULL.)
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER`.
    #[inline]
    pub fn check_buffer(
        &self,
        buffer: *const c_void,
        elements: i64,
        datatype: &TypeRef,
    ) -> Outcome<()> {
        let address = buffer.addr();
        let nowhere = address == 0 && elements > 0 && datatype.size() > 0 && datatype.is_dense();
        let special = address == <A as Constants>::IN_PLACE;
        if (nowhere || special) && self.checks() {
            let name = if special { "MPI_IN_PLACE" } else { "NULL" };
            let what = format_args!("the buffer of {elements} elements is {name}");
            return Err(self.blame(neutral::ERR_BUFFER, what));
        }
        Ok(())
    }

    /// Remembers what is wrong with an argument, and returns `class`.
    #[cold]
    pub fn blame(&self, class: i32, what: fmt::Arguments<'_>) -> i32 {
        blame(self.rank(), class, what)
    }

    /// Refuses NULL for an argument that the program must give a place for; `name` is the
    /// standard's name of the argument.
    ///
    /// # Errors
    /// `MPI_ERR_ARG`.
    #[inline]
    pub fn output<T>(&self, target: *mut T, name: &'static str) -> Outcome<()> {
        output(target).map_err(|class| self.blame(class, format_args!("{name} is NULL")))
    }

    /// A count of elements.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT` for a negative one.
    #[inline]
    pub fn count<C: Count>(&self, elements: C) -> Outcome<i64> {
        match elements.to_i64() {
            elements if elements < 0 => {
                Err(self.blame(neutral::ERR_COUNT, format_args!("the count is {elements}")))
            }
            elements => Ok(elements),
        }
    }

    /// The datatypes of an array of handles, committed or not.
    ///
    /// # Safety
    /// The array has `length` entries.
    ///
    /// # Errors
    /// `MPI_ERR_TYPE`; `MPI_ERR_ARG` for NULL.
    pub unsafe fn datatypes(
        &self,
        handles: *const A::Datatype,
        length: usize,
    ) -> Outcome<Vec<TypeRef>> {
        // SAFETY: the caller's contract.
        unsafe { each(handles, length, |handle| self.datatype(handle)) }
    }

    /// The datatypes of an array of handles, for communication.
    ///
    /// # Safety
    /// The array has `length` entries.
    ///
    /// # Errors
    /// `MPI_ERR_TYPE`; `MPI_ERR_ARG` for NULL.
    pub unsafe fn all_committed(
        &self,
        handles: *const A::Datatype,
        length: usize,
    ) -> Outcome<Vec<TypeRef>> {
        // SAFETY: the caller's contract.
        unsafe { each(handles, length, |handle| self.committed(handle)) }
    }

    /// Keeps a new datatype and returns its handle; for a type of Fortran's kinds the one
    /// that it has already.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub fn add_datatype(&self, datatype: TypeRef) -> Outcome<A::Datatype> {
        let handle = match datatype.contents().combiner.is_parametrised() {
            true => self.objects().publish_parametrised(datatype)?,
            false => self.objects().add_datatype(Datatype::new(datatype))?,
        };
        Ok(A::Datatype::from_neutral(handle))
    }
}

/// Explains why there is no communicator with this handle.
#[cold]
fn bad_comm<A: Abi>(call: &Call<'_, A>, handle: u32, class: i32) -> i32 {
    match (class, handle) {
        (neutral::ERR_OTHER, _) => {
            let stage = call.process.lifetime.stage_text();
            call.blame(class, format_args!("{stage}"))
        }
        (_, neutral::handle::COMM_NULL) => call.blame(class, format_args!("it is MPI_COMM_NULL")),
        _ => call.blame(
            class,
            format_args!("the handle {handle:#x} stands for no communicator"),
        ),
    }
}

/// Explains why there is no datatype with this handle.
#[cold]
fn bad_datatype<A: Abi>(call: &Call<'_, A>, handle: u32, class: i32) -> i32 {
    match handle {
        neutral::handle::DATATYPE_NULL => {
            call.blame(class, format_args!("it is MPI_DATATYPE_NULL"))
        }
        _ => call.blame(
            class,
            format_args!("the handle {handle:#x} stands for no datatype"),
        ),
    }
}

/// Runs the body of a call of the MPI function `name` on a communicator, whose error handler hears of a failure.
///
/// # Safety
/// `caller` is the calling rank.
#[inline]
pub unsafe fn on_comm<A: Abi>(
    caller: *const c_void,
    name: &'static str,
    comm: A::Comm,
    body: impl FnOnce(&Call<'_, A>, &Comm) -> Outcome<()>,
) -> core::ffi::c_int {
    // SAFETY: the caller's contract.
    let call = unsafe { Call::<A>::new(caller) };
    let comm = comm.neutral();
    match call
        .objects()
        .comm(comm)
        .map_err(|class| bad_comm(&call, comm, class))
        .and_then(|object| body(&call, object))
    {
        Ok(()) => A::error_out(neutral::SUCCESS),
        Err(class) => raise::<A>(call.process, name, Listener::Comm(comm), class),
    }
}

/// Runs the body of a call of `name` on a session, whose error handler hears of a failure.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe fn on_session<A: Abi>(
    caller: *const c_void,
    name: &'static str,
    session: A::Session,
    body: impl FnOnce(&Call<'_, A>, &Session) -> Outcome<()>,
) -> core::ffi::c_int {
    // SAFETY: the caller's contract.
    let call = unsafe { Call::<A>::new(caller) };
    let session = session.neutral();
    match call
        .objects()
        .session(session)
        .and_then(|object| body(&call, object))
    {
        Ok(()) => A::error_out(neutral::SUCCESS),
        Err(class) => raise::<A>(call.process, name, Listener::Session(session), class),
    }
}

/// Explains why there is no window with this handle.
#[cold]
fn bad_win<A: Abi>(call: &Call<'_, A>, handle: u32, class: i32) -> i32 {
    match handle {
        neutral::handle::WIN_NULL => call.blame(class, format_args!("it is MPI_WIN_NULL")),
        _ => call.blame(
            class,
            format_args!("the handle {handle:#x} stands for no window"),
        ),
    }
}

/// Runs the body of a call of `name` on a window, whose error handler hears of a failure.
///
/// # Safety
/// `caller` is the calling rank.
#[inline]
pub unsafe fn on_win<A: Abi>(
    caller: *const c_void,
    name: &'static str,
    win: A::Win,
    body: impl FnOnce(&Call<'_, A>, &Win) -> Outcome<()>,
) -> core::ffi::c_int {
    // SAFETY: the caller's contract.
    let call = unsafe { Call::<A>::new(caller) };
    let win = win.neutral();
    match call
        .objects()
        .win(win)
        .map_err(|class| bad_win(&call, win, class))
        .and_then(|object| body(&call, object))
    {
        Ok(()) => A::error_out(neutral::SUCCESS),
        Err(class) => raise::<A>(call.process, name, Listener::Win(win), class),
    }
}

/// Runs the body of a call of `name` that has no communicator: `MPI_COMM_SELF`'s error handler
/// hears of a failure (MPI-4.1, 9.3).
///
/// # Safety
/// `caller` is the calling rank.
#[inline]
pub unsafe fn on_process<A: Abi>(
    caller: *const c_void,
    name: &'static str,
    body: impl FnOnce(&Call<'_, A>) -> Outcome<()>,
) -> core::ffi::c_int {
    // SAFETY: the caller's contract.
    let call = unsafe { Call::<A>::new(caller) };
    match body(&call) {
        Ok(()) => A::error_out(neutral::SUCCESS),
        Err(class) => raise::<A>(call.process, name, Listener::Process, class),
    }
}

/// Runs the body of a call of `name` for `MPI_FILE_NULL`, whose error handler hears of a failure.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe fn on_file<A: Abi>(
    caller: *const c_void,
    name: &'static str,
    body: impl FnOnce(&Call<'_, A>) -> Outcome<()>,
) -> core::ffi::c_int {
    // SAFETY: the caller's contract.
    let call = unsafe { Call::<A>::new(caller) };
    match body(&call) {
        Ok(()) => A::error_out(neutral::SUCCESS),
        Err(class) => raise::<A>(call.process, name, Listener::File, class),
    }
}

/// Runs the body of a call of `name` that completes requests: the error handler of the communicator or window of
/// the operation that failed hears of it.
///
/// # Safety
/// `caller` is the calling rank.
#[inline]
pub unsafe fn on_request<A: Abi>(
    caller: *const c_void,
    name: &'static str,
    body: impl FnOnce(&Call<'_, A>) -> Result<(), Failure>,
) -> core::ffi::c_int {
    // SAFETY: the caller's contract.
    let call = unsafe { Call::<A>::new(caller) };
    match body(&call) {
        Ok(()) => A::error_out(neutral::SUCCESS),
        Err(failure) => raise::<A>(
            call.process,
            name,
            Listener::of(failure.comm),
            failure.class,
        ),
    }
}

/// The error class of a failure of the engine.
#[cold]
pub fn engine_error(error: EngineError) -> i32 {
    match error {
        EngineError::OutOfMemory => neutral::ERR_NO_MEM,
        EngineError::Truncated { .. } => neutral::ERR_TRUNCATE,
        EngineError::Unsupported => neutral::ERR_UNSUPPORTED_OPERATION,
        _ => neutral::ERR_INTERN,
    }
}

/// Refuses NULL for a result of a helper that does not know the argument's name ([`Call::output`] does).
///
/// # Errors
/// `MPI_ERR_ARG`.
#[inline]
pub fn output<T>(target: *mut T) -> Outcome<()> {
    if target.is_null() {
        Err(neutral::ERR_ARG)
    } else {
        Ok(())
    }
}

/// Whether a status argument is `MPI_STATUS_IGNORE`.
#[inline]
pub fn ignored<A: Abi>(status: *mut A::Status) -> bool {
    status.addr() == <A as Constants>::STATUS_IGNORE
}

/// A count of elements.
///
/// # Errors
/// `MPI_ERR_COUNT` for a negative one.
#[inline]
pub fn count<C: Count>(elements: C) -> Outcome<i64> {
    match elements.to_i64() {
        elements if elements < 0 => Err(neutral::ERR_COUNT),
        elements => Ok(elements),
    }
}

/// The length of an array.
///
/// # Errors
/// `MPI_ERR_COUNT` for a negative one.
#[inline]
pub fn length<I: Integer>(entries: I) -> Outcome<usize> {
    usize::try_from(entries.to_i64()).map_err(|_| neutral::ERR_COUNT)
}

/// The integers of an array.
///
/// # Safety
/// The array has `length` entries.
///
/// # Errors
/// `MPI_ERR_ARG` for NULL.
pub unsafe fn list<I: Integer>(array: *const I, length: usize) -> Outcome<Vec<i64>> {
    // SAFETY: the caller's contract.
    unsafe { each(array, length, |entry| Ok(entry.to_i64())) }
}

/// The counts of an array.
///
/// # Safety
/// The array has `length` entries.
///
/// # Errors
/// `MPI_ERR_ARG` for NULL, `MPI_ERR_COUNT` for a negative count.
pub unsafe fn counts<C: Count>(array: *const C, length: usize) -> Outcome<Vec<i64>> {
    // SAFETY: the caller's contract.
    unsafe { each(array, length, count) }
}

/// What `convert` makes of each entry of an array.
///
/// # Safety
/// The array has `length` entries.
unsafe fn each<T: Copy, U>(
    array: *const T,
    length: usize,
    convert: impl FnMut(T) -> Outcome<U>,
) -> Outcome<Vec<U>> {
    if length == 0 {
        return Ok(Vec::new());
    }
    output(array.cast_mut())?;
    // SAFETY: not NULL, and the caller's contract.
    let entries = unsafe { core::slice::from_raw_parts(array, length) };
    entries.iter().copied().map(convert).collect()
}
