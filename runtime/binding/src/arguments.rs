//! What every function of the binding does with its arguments.
//!
//! A function's body returns an error class; the wrappers here turn it into a call of the right
//! error handler, out of line. The body itself decides nothing about error handlers.

mod fault;
mod numbers;

use crate::context::{Listener, raise, tell};
use crate::foreign;
use crate::process::Process;
use crate::process::pending::Pending;
use alloc::vec::Vec;
use cohort_abi::parameters::{Array, Base, In, InOut, Out, ResultPlace, Text};
use cohort_abi::{Abi, Constants, Count, Handle, HandleKind, neutral};
use cohort_engine::datatype::fortran::{dense_told, told};
use cohort_engine::datatype::{Dense, TypeRef, dense, predefined};
use cohort_engine::{EngineError, Owner, Rank};
use cohort_object::{Datatype, Errhandler, File, Objects, Session, Win, blame};
use core::cell::Cell;
use core::ffi::{CStr, c_void};
use core::fmt;
use core::marker::PhantomData;

pub use cohort_object::{Comm, Error, Outcome};
pub use fault::{Failure, Fault};
pub use numbers::{Numbers, Types, counts, length, list};

/// One call of the program.
pub struct Call<'a, A: Abi> {
    process: &'a Process,
    /// Who hears when the call fails.
    listener: Cell<Listener>,
    abi: PhantomData<A>,
}

impl<'a, A: Abi> Call<'a, A> {
    /// A call by `caller`.
    ///
    /// # Safety
    /// `caller` is the calling rank, as the facade got it.
    #[inline]
    pub unsafe fn new(caller: *const c_void) -> Self {
        Self {
            // SAFETY: `caller` is what `attach` gave, by the condition of this function.
            process: unsafe { Process::of(caller) },
            listener: Cell::new(Listener::Process),
            abi: PhantomData,
        }
    }

    /// The communicator that the call is for; its error handler hears when the call fails.
    ///
    /// # Errors
    /// `MPI_ERR_COMM`.
    #[inline]
    pub fn on_comm(&self, comm: A::Comm) -> Outcome<&'a Comm> {
        let comm = comm.neutral();
        self.listener.set(Listener::Comm(comm));
        let found = self.process.objects.comm(comm);
        found.map_err(|class| bad_comm(self, comm, class))
    }

    /// The communicator, by its neutral handle, whose error handler hears when the call fails.
    #[inline]
    pub fn for_comm(&self, comm: u32) {
        self.listener.set(Listener::Comm(comm));
    }

    /// The session that the call is for; its error handler hears when the call fails.
    ///
    /// # Errors
    /// `MPI_ERR_SESSION`.
    pub fn on_session(&self, session: A::Session) -> Outcome<&'a Session> {
        let session = session.neutral();
        self.listener.set(Listener::Session(session));
        self.process.objects.session(session).map(|found| &**found)
    }

    /// The window that the call is for; its error handler hears when the call fails.
    ///
    /// # Errors
    /// `MPI_ERR_WIN`.
    #[inline]
    pub fn on_win(&self, win: A::Win) -> Outcome<&'a Win> {
        let win = win.neutral();
        self.listener.set(Listener::Win(win));
        let found = self.process.objects.win(win).map(|found| &**found);
        found.map_err(|class| bad_win(self, win, class))
    }

    /// The call is for `MPI_FILE_NULL`, whose error handler hears when it fails.
    pub fn on_no_file(&self) {
        self.listener.set(Listener::File(neutral::handle::FILE_NULL));
    }

    /// The file that the call is for; its error handler hears when the call fails.
    ///
    /// # Errors
    /// `MPI_ERR_FILE`.
    pub fn on_file(&self, file: A::File) -> Outcome<&'a File> {
        let file = file.neutral();
        self.listener.set(Listener::File(file));
        let found = self.process.objects.file(file).map(|found| &**found);
        found.map_err(|class| bad_file(self, file, class))
    }

    /// Has the error handler that the call was given, and no other, hear that it has failed: that of the object which
    /// it would have made.
    ///
    /// # Errors
    /// The error.
    pub fn heard_by(
        &self,
        function: &'static str,
        (listener, handler): (Listener, &Errhandler),
        outcome: Outcome<()>,
    ) -> Outcome<()> {
        if let Err(error) = &outcome {
            tell(self.process, function, (listener, handler), error);
            self.listener.set(Listener::Told);
        }
        outcome
    }

    /// The calling process.
    #[inline]
    pub fn process(&self) -> &'a Process {
        self.process
    }

    /// What makes a neutral handle the program's.
    #[inline]
    pub fn context(&self) -> A::Context {
        A::context(&self.process.caller)
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

    /// The datatype of a handle, committed or not: only communication wants it committed (MPI-4.1, 5.1.9).
    ///
    /// # Errors
    /// `MPI_ERR_TYPE`.
    #[inline]
    pub fn datatype(&self, handle: A::Datatype) -> Outcome<TypeRef> {
        match known::<A>(handle.neutral()) {
            Some(datatype) => Ok(datatype),
            None => self.no_predefined(handle.neutral()),
        }
    }

    /// [`Call::datatype`] of a type that the program made.
    fn no_predefined(&self, handle: u32) -> Outcome<TypeRef> {
        self.is_supported(handle)?;
        let found = self.objects().datatype(handle).map(|found| found.layout.clone());
        found.map_err(|class| bad_datatype(self, handle, class))
    }

    /// Refuses a predefined type that the program's Fortran lacks.
    fn is_supported(&self, handle: u32) -> Outcome<()> {
        match predefined(handle) {
            None => Ok(()),
            Some(_) => {
                let what = format_args!("the program's Fortran has no such type");
                Err(self.blame(neutral::ERR_TYPE, what))
            }
        }
    }

    /// The datatype of a handle, for communication.
    ///
    /// # Errors
    /// `MPI_ERR_TYPE`, also for one that is not committed.
    #[inline(always)]
    pub fn committed(&self, handle: A::Datatype) -> Outcome<TypeRef> {
        self.committed_of(handle, 0)
    }

    /// [`Call::committed`] of so many elements.
    ///
    /// # Errors
    /// As there; `MPI_ERR_COUNT` where they have more bytes than can be counted, which no program's data has.
    #[inline(always)]
    pub fn committed_of(&self, handle: A::Datatype, elements: i64) -> Outcome<TypeRef> {
        let handle = handle.neutral();
        match known::<A>(handle) {
            // Predefined types have at most 64 bytes.
            Some(datatype) if elements <= i64::MAX / 64 => Ok(datatype),
            Some(datatype) => self.counted(datatype, elements),
            None => self.derived(handle, elements),
        }
    }

    /// The type, of so many elements.
    #[inline(never)]
    fn counted(&self, datatype: TypeRef, elements: i64) -> Outcome<TypeRef> {
        let size = datatype.size();
        match elements.checked_mul(size) {
            Some(_) => Ok(datatype),
            None => {
                let what = format_args!("{elements} elements of {size} bytes are more bytes than can be counted");
                Err(self.blame(neutral::ERR_COUNT, what))
            }
        }
    }

    /// The type of so many elements: a committed one, or any of none ([`Call::without_type`]).
    ///
    /// # Errors
    /// As for [`Call::committed_of`].
    #[inline(always)]
    pub fn type_of(&self, handle: A::Datatype, elements: i64) -> Outcome<TypeRef> {
        match self.committed_of(handle, elements) {
            Ok(datatype) => Ok(datatype),
            Err(error) => self.without_type(handle, elements, error),
        }
    }

    /// The type of no elements for which the program has none, `MPI_DATATYPE_NULL`: other MPIs do not look at it
    /// then, and programs rely on that.
    ///
    /// # Errors
    /// `error` where this is not so.
    #[cold]
    fn without_type(&self, handle: A::Datatype, elements: i64, error: Error) -> Outcome<TypeRef> {
        let is_missing = handle.neutral() == neutral::handle::DATATYPE_NULL && elements == 0;
        let bytes = is_missing.then(|| predefined(neutral::handle::BYTE));
        bytes.flatten().ok_or(error)
    }

    /// [`Call::committed_of`] a type that the program made. Out of line: most are predefined.
    #[inline(never)]
    fn derived(&self, handle: u32, elements: i64) -> Outcome<TypeRef> {
        self.is_supported(handle)?;
        let datatype = self.objects().datatype(handle).map_err(|class| bad_datatype(self, handle, class))?;
        match datatype.is_committed() || !self.checks() {
            true => self.counted(datatype.layout.clone(), elements),
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
    pub fn check_buffer(&self, buffer: Base, elements: i64, datatype: &TypeRef) -> Outcome<()> {
        let address = buffer.addr();
        let nowhere = address == 0 && elements > 0 && datatype.size() > 0 && datatype.is_dense();
        let special = address == <A as Constants>::IN_PLACE;
        match (nowhere || special) && self.checks() {
            true => Err(self.bad_buffer(elements, special)),
            false => Ok(()),
        }
    }

    /// [`Call::check_buffer`] for blocks of a buffer: so many elements of a type at a displacement in bytes. These may
    /// be addresses, relative to `MPI_BOTTOM`, NULL; the first page of memory has none.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER`.
    #[inline]
    pub fn check_blocks<'t>(
        &self,
        buffer: Base,
        mut blocks: impl Iterator<Item = (i64, i64, &'t TypeRef)>,
    ) -> Outcome<()> {
        const FIRST_PAGE: i64 = 4096;
        match buffer.is_null() {
            true => blocks.try_for_each(|(start, elements, datatype)| match start < FIRST_PAGE {
                true => self.check_buffer(buffer, elements, datatype),
                false => Ok(()),
            }),
            false => {
                blocks.next().map_or(Ok(()), |(_, elements, datatype)| self.check_buffer(buffer, elements, datatype))
            }
        }
    }

    /// The error of a buffer that is NULL, or `MPI_IN_PLACE`.
    #[cold]
    fn bad_buffer(&self, elements: i64, in_place: bool) -> Error {
        let name = if in_place { "MPI_IN_PLACE" } else { "NULL" };
        let what = format_args!("the buffer of {elements} elements is {name}");
        self.blame(neutral::ERR_BUFFER, what)
    }

    /// The error of a call with a wrong argument ([`blame`]).
    #[cold]
    pub fn blame(&self, class: impl Into<Error>, what: fmt::Arguments<'_>) -> Error {
        blame(class, what)
    }
    /// The place for a result; `name` is the standard's name of the argument.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` for NULL.
    #[inline]
    pub fn output<'c, T>(&self, target: Out<'c, T>, name: &'static str) -> Outcome<ResultPlace<'c, T>> {
        target.place().ok_or_else(|| self.null(name))
    }

    /// The value of an argument that MPI changes; `name` is as in [`Call::output`].
    ///
    /// # Errors
    /// `MPI_ERR_ARG` for NULL.
    #[inline]
    pub fn inout<'c, T>(&self, value: InOut<'c, T>, name: &'static str) -> Outcome<&'c Cell<T>> {
        value.value().ok_or_else(|| self.null(name))
    }

    /// The value of an argument that is passed by address; `name` is as in [`Call::output`].
    ///
    /// # Errors
    /// `MPI_ERR_ARG` for NULL.
    #[inline]
    pub fn input<T: Copy>(&self, value: In<'_, T>, name: &'static str) -> Outcome<T> {
        value.get().ok_or_else(|| self.null(name))
    }

    /// A string of the program's; `name` is as in [`Call::output`].
    ///
    /// # Errors
    /// `MPI_ERR_ARG` for NULL.
    pub fn text<'c>(&self, text: Text<'c>, name: &'static str) -> Outcome<&'c CStr> {
        text.get().ok_or_else(|| self.null(name))
    }

    /// The error of NULL where the program must give something.
    #[cold]
    fn null(&self, name: &'static str) -> Error {
        self.blame(neutral::ERR_ARG, format_args!("{name} is NULL"))
    }

    /// The error of a negative count.
    #[cold]
    fn bad_count(&self, elements: i64) -> Error {
        self.blame(neutral::ERR_COUNT, format_args!("the count is {elements}"))
    }

    /// A count of elements.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT` for a negative one.
    #[inline]
    pub fn count<C: Count>(&self, elements: C) -> Outcome<i64> {
        match elements.to_i64() {
            elements if elements < 0 => Err(self.bad_count(elements)),
            elements => Ok(elements),
        }
    }

    /// The datatypes of an array of handles, committed or not.
    ///
    /// # Errors
    /// `MPI_ERR_TYPE`; `MPI_ERR_ARG` for NULL.
    pub fn datatypes(&self, handles: Array<'_, A::Datatype>, length: usize) -> Outcome<Vec<TypeRef>> {
        let handles = handles.entries(length)?;
        handles.iter().map(|&handle| self.datatype(handle)).collect()
    }

    /// [`Call::type_of`] for so many elements each.
    ///
    /// # Errors
    /// `MPI_ERR_TYPE`; `MPI_ERR_ARG` for NULL.
    #[inline]
    pub fn types_of(&self, handles: Array<'_, A::Datatype>, elements: &[i64]) -> Outcome<Types> {
        let handles = handles.entries(elements.len())?;
        let mut types = Types::with_capacity(elements.len());
        for (&handle, &elements) in handles.iter().zip(elements) {
            types.push(self.type_of(handle, elements)?);
        }
        Ok(types)
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
        Ok(A::Datatype::from_neutral(self.context(), handle))
    }
}

/// A handle that stands for nothing, and for what it should. The neutral handle of one that MPI never gave is 0.
struct Unknown(u32, &'static str);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(handle, what) = *self;
        match handle {
            0 => write!(f, "the handle is none that MPI has given, so it stands for no {what}: was it ever set?"),
            _ => write!(f, "the handle {handle:#x} stands for no {what}"),
        }
    }
}

/// Explains why there is no communicator with this handle.
#[cold]
fn bad_comm<A: Abi>(call: &Call<'_, A>, handle: u32, class: Error) -> Error {
    match (class.code(), handle) {
        (neutral::ERR_OTHER, _) => {
            let stage = call.process.lifetime.stage_text();
            call.blame(class, format_args!("{stage}"))
        }
        (_, neutral::handle::COMM_NULL) => call.blame(class, format_args!("it is MPI_COMM_NULL")),
        _ => {
            foreign::explain::<A>(call.rank(), HandleKind::Comm, handle);
            call.blame(class, format_args!("{}", Unknown(handle, "communicator")))
        }
    }
}

/// The predefined datatype of a handle, as a program of this ABI knows it.
#[inline(always)]
pub(crate) fn known<A: Abi>(handle: u32) -> Option<TypeRef> {
    match A::TELLS_FORTRAN {
        true => told(handle),
        false => predefined(handle),
    }
}

/// What a call on few elements has to know of a predefined datatype without holes. `None` also for one of which the
/// program has told something else than the library knows.
#[inline(always)]
pub(crate) fn known_dense<A: Abi>(handle: u32) -> Option<Dense> {
    match A::TELLS_FORTRAN {
        true => dense_told(handle),
        false => dense(handle),
    }
}

/// Explains why there is no datatype with this handle.
#[cold]
fn bad_datatype<A: Abi>(call: &Call<'_, A>, handle: u32, class: Error) -> Error {
    match handle {
        neutral::handle::DATATYPE_NULL => call.blame(class, format_args!("it is MPI_DATATYPE_NULL")),
        _ => {
            foreign::explain::<A>(call.rank(), HandleKind::Datatype, handle);
            call.blame(class, format_args!("{}", Unknown(handle, "datatype")))
        }
    }
}

/// Runs the body of a call of the MPI function `name`. Its error handler hears of a failure: that of the object
/// that the body says the call is for ([`Call::on_comm`] and its like), else that of no object
/// ([`Listener::Process`]).
///
/// # Safety
/// `caller` is the calling rank.
#[inline(always)]
pub unsafe fn enter<A: Abi, F: Fault>(
    caller: *const c_void,
    name: &'static &'static str,
    body: impl FnOnce(&Call<'_, A>) -> Result<(), F>,
) -> core::ffi::c_int {
    // SAFETY: the condition of this function is the same.
    let call = unsafe { Call::<A>::new(caller) };
    call.rank().waits().call(name);
    match body(&call) {
        Ok(()) => A::error_out(neutral::SUCCESS),
        Err(fault) => {
            let returned = fault.returned();
            let (error, listener) = fault.parts();
            let listener = listener.unwrap_or(call.listener.get());
            let code = raise::<A>(call.process, name, listener, &error);
            returned.map_or(code, A::error_out)
        }
    }
}

/// Explains why there is no window with this handle.
#[cold]
fn bad_win<A: Abi>(call: &Call<'_, A>, handle: u32, class: Error) -> Error {
    match handle {
        neutral::handle::WIN_NULL => call.blame(class, format_args!("it is MPI_WIN_NULL")),
        _ => call.blame(class, format_args!("{}", Unknown(handle, "window"))),
    }
}

/// Explains why there is no file with this handle.
#[cold]
fn bad_file<A: Abi>(call: &Call<'_, A>, handle: u32, class: Error) -> Error {
    match handle {
        neutral::handle::FILE_NULL => call.blame(class, format_args!("it is MPI_FILE_NULL")),
        _ => call.blame(class, format_args!("{}", Unknown(handle, "file"))),
    }
}

/// Refuses an intercommunicator, for calls that take none.
///
/// # Errors
/// `MPI_ERR_COMM`.
pub fn only_intra(comm: &Comm) -> Outcome<()> {
    if !comm.is_inter() {
        return Ok(());
    }
    let what = format_args!("it is an intercommunicator");
    Err(blame(neutral::ERR_COMM, what))
}

/// The error of a failure of the engine.
#[cold]
pub fn engine_error(error: EngineError) -> Error {
    error.into()
}

/// The place for a result of a helper that does not know the argument's name ([`Call::output`] does).
///
/// # Errors
/// `MPI_ERR_ARG` for NULL.
#[inline]
pub fn output<T>(target: Out<'_, T>) -> Outcome<ResultPlace<'_, T>> {
    target.place().ok_or_else(|| neutral::ERR_ARG.into())
}
