//! Keyvals and attributes (MPI-4.1 section 7.7).

use crate::arguments::{Call, Outcome, output};
use crate::process::Process;
use alloc::boxed::Box;
use alloc::sync::Arc;
use cohort_abi::parameters::{InOut, Out};
use cohort_abi::{Abi, Handle, callback, neutral};
use cohort_engine::Rank;
use cohort_object::attribute::{AttributeCallbacks, Attributes, Keyval, Owner, Value};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

type Copy<H> = unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
type Delete<H> = unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_void) -> c_int;

/// What a Fortran library registers for the copy functions of Fortran: it gets the function, and then what C's function
/// gets, with who has set the value (0 for C) before the value.
type CopyProxy =
    unsafe extern "C" fn(*mut c_void, c_int, c_int, *mut c_void, c_int, *mut c_void, *mut c_void, *mut c_int) -> c_int;
/// The same for delete functions.
type DeleteProxy = unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int, *mut c_void, *mut c_void) -> c_int;

/// How an attribute is copied.
enum Copying<H> {
    /// `MPI_*_NULL_COPY_FN`: not at all.
    Never,
    /// `MPI_*_DUP_FN`: its value.
    Value,
    /// By the program's function.
    Function(Copy<H>),
}

/// The functions of one keyval, for objects with handles of type `H`.
struct Functions<A: Abi, H> {
    copying: Copying<H>,
    delete: Option<Delete<H>>,
    extra: usize,
    /// Addresses of a [`CopyProxy`] and a [`DeleteProxy`]; 0 for functions of C.
    proxies: [AtomicUsize; 2],
    context: A::Context,
}

// SAFETY: functions of the program, and a value that only they interpret.
unsafe impl<A: Abi, H> Send for Functions<A, H> {}
// SAFETY: as above; nothing is changed but the proxies, which are atomic.
unsafe impl<A: Abi, H> Sync for Functions<A, H> {}

impl<A: Abi, H> Functions<A, H> {
    fn extra(&self) -> *mut c_void {
        core::ptr::with_exposed_provenance_mut(self.extra)
    }

    /// The proxy for copying, if the functions are Fortran's.
    fn copy_proxy(&self) -> Option<CopyProxy> {
        let address = self.proxies[0].load(Ordering::Relaxed);
        // SAFETY: 0, or the address of such a function; `Option` makes NULL of 0.
        unsafe { core::mem::transmute(address) }
    }

    /// The proxy for deleting, if the functions are Fortran's.
    fn delete_proxy(&self) -> Option<DeleteProxy> {
        let address = self.proxies[1].load(Ordering::Relaxed);
        // SAFETY: 0, or the address of such a function; `Option` makes NULL of 0.
        unsafe { core::mem::transmute(address) }
    }
}

/// What a proxy takes a value for: the kind, and the number itself.
fn for_proxy(value: &Value) -> (c_int, *mut c_void) {
    let kind = c_int::from(matches!(value, Value::Integer(_)));
    (kind, core::ptr::with_exposed_provenance_mut(value.number() as usize))
}

fn outcome<A: Abi>(code: c_int) -> Outcome<()> {
    match A::error_in(code) {
        neutral::SUCCESS => Ok(()),
        error => Err(error.into()),
    }
}

impl<A: Abi, H: Handle<Context = A::Context>> AttributeCallbacks for Functions<A, H> {
    fn copy(&self, object: u32, keyval: i32, value: &Value) -> Outcome<Option<Value>> {
        let function = match self.copying {
            Copying::Never => return Ok(None),
            Copying::Value => return Ok(Some(value.duplicate())),
            Copying::Function(function) => function,
        };
        let (mut copied, mut flag) = (0_usize, 0);
        let object = H::from_neutral(self.context, object);
        let place = (&raw mut copied).cast();
        if let Some(proxy) = self.copy_proxy() {
            let (kind, number) = for_proxy(value);
            let (function, object) = (function as *mut c_void, object.to_int());
            // SAFETY: the library's function for the functions of this keyval.
            let code = unsafe { proxy(function, object, keyval, self.extra(), kind, number, place, &mut flag) };
            outcome::<A>(code)?;
            return Ok((flag != 0).then(|| Value::integer(copied as isize)));
        }
        let pointer = core::ptr::with_exposed_provenance_mut(value.pointer());
        // SAFETY: the program's function, called as MPI promises.
        let code = unsafe { function(object, keyval, self.extra(), pointer, place, &mut flag) };
        outcome::<A>(code)?;
        // A function that copies the pointer to an integer of Fortran copies the integer.
        Ok((flag != 0).then(|| match copied == value.pointer() {
            true => value.duplicate(),
            false => Value::Pointer(copied),
        }))
    }

    fn delete(&self, object: u32, keyval: i32, value: &Value) -> Outcome<()> {
        let Some(function) = self.delete else {
            return Ok(());
        };
        let object = H::from_neutral(self.context, object);
        if let Some(proxy) = self.delete_proxy() {
            let (kind, number) = for_proxy(value);
            let (function, object) = (function as *mut c_void, object.to_int());
            // SAFETY: the library's function for the functions of this keyval.
            let code = unsafe { proxy(function, object, keyval, kind, number, self.extra()) };
            return outcome::<A>(code);
        }
        let pointer = core::ptr::with_exposed_provenance_mut(value.pointer());
        // SAFETY: the program's function, called as MPI promises.
        outcome::<A>(unsafe { function(object, keyval, pointer, self.extra()) })
    }

    fn set_proxies(&self, copy: usize, delete: usize) {
        self.proxies[0].store(copy, Ordering::Relaxed);
        self.proxies[1].store(delete, Ordering::Relaxed);
    }
}

/// Makes a keyval.
fn create<A: Abi, H: Handle<Context = A::Context>>(
    call: &Call<'_, A>,
    owner: Owner,
    copy: Option<Copy<H>>,
    delete: Option<Delete<H>>,
    keyval: Out<'_, c_int>,
    extra: *mut c_void,
) -> Outcome<()> {
    let keyval = output(keyval)?;
    let copying = match copy {
        None => Copying::Never,
        Some(copy) if Some(copy as usize) == A::DUP_FN => Copying::Value,
        Some(copy) => Copying::Function(copy),
    };
    let extra = extra.expose_provenance();
    let functions = Functions::<A, H> {
        copying,
        delete,
        extra,
        proxies: [const { AtomicUsize::new(0) }; 2],
        context: call.context(),
    };
    let object = Arc::new(Keyval::new(owner, Box::new(functions)));
    keyval.write(call.objects().add_keyval(object)? as c_int);
    Ok(())
}

/// The keyval of a number, if it is for objects of this kind.
fn keyval<A: Abi>(call: &Call<'_, A>, number: c_int, owner: Owner) -> Outcome<Arc<Keyval>> {
    let keyval = call.objects().keyval(number as u32)?;
    if keyval.owner() == owner { Ok(keyval) } else { Err(neutral::ERR_KEYVAL.into()) }
}

/// Frees a keyval; attributes that have it keep it alive.
fn free<A: Abi>(call: &Call<'_, A>, number: InOut<'_, c_int>, owner: Owner) -> Outcome<()> {
    let number = call.inout(number, "keyval")?;
    keyval(call, number.get(), owner)?;
    call.objects().free_keyval(number.get() as u32)?;
    number.set(A::keyval_out(neutral::KEYVAL_INVALID));
    Ok(())
}

/// `MPII_Keyval_set_proxy`: the functions of this keyval are Fortran's.
pub fn keyval_set_proxy<A: Abi>(
    call: &Call<'_, A>,
    number: c_int,
    copy: *mut c_void,
    delete: *mut c_void,
) -> Outcome<()> {
    let keyval = call.objects().keyval(number as u32)?;
    keyval.set_proxies(copy.expose_provenance(), delete.expose_provenance());
    Ok(())
}

/// Who asks for an attribute, or sets one.
#[derive(Clone, core::marker::Copy, PartialEq, Eq)]
enum Language {
    C,
    Fortran,
}

impl Language {
    /// By what a Fortran library says that the value is: 0 a pointer, 1 or 3 an integer.
    fn of(kind: c_int) -> Self {
        if kind == 0 { Self::C } else { Self::Fortran }
    }

    fn keyval<A: Abi>(self, number: c_int) -> c_int {
        match self {
            Self::C => number,
            Self::Fortran => A::fortran_keyval(number),
        }
    }

    fn value(self, value: *mut c_void) -> Value {
        match self {
            Self::C => Value::Pointer(value.expose_provenance()),
            Self::Fortran => Value::integer(value.expose_provenance() as isize),
        }
    }
}

/// Writes what `MPI_*_get_attr` answers.
fn answer(language: Language, found: Option<Value>, value: Out<'_, *mut c_void>, flag: Out<'_, c_int>) -> Outcome<()> {
    let flag = output(flag)?;
    let value = output(value)?;
    flag.write(c_int::from(found.is_some()));
    if let Some(found) = found {
        let bits = match language {
            Language::C => found.pointer(),
            Language::Fortran => found.number() as usize,
        };
        value.write(core::ptr::with_exposed_provenance_mut(bits));
    }
    Ok(())
}

/// A predefined attribute of `MPI_COMM_WORLD`, of which C gets the address; `None` for other keyvals.
fn predefined<A: Abi>(process: &Process, keyval: i32, language: Language) -> Option<Value> {
    let rank = process.objects.rank();
    let (index, value) = match keyval {
        neutral::TAG_UB => (0, i32::MAX),
        neutral::HOST => (1, A::rank_out(neutral::PROC_NULL)),
        neutral::IO => (2, A::rank_out(neutral::ANY_SOURCE)),
        // Each node has a clock of its own.
        neutral::WTIME_IS_GLOBAL => (3, (rank.node().boot().nodes <= 1).into()),
        neutral::UNIVERSE_SIZE => (4, universe_size(rank)),
        neutral::APPNUM => (5, rank.boot().app_number as i32),
        neutral::LASTUSEDCODE => (6, A::error_out(process.objects.errors.last_used())),
        neutral::MPIX_FT => (7, rank.node().survives().into()),
        _ => return None,
    };
    if language == Language::Fortran {
        return Some(Value::Pointer(value as usize));
    }
    let slot = &process.attributes[index];
    slot.store(value, Ordering::Relaxed);
    Some(Value::Pointer(slot.as_ptr().addr()))
}

/// How many processes may usefully run: those that the job began with, and one on each CPU of its nodes where more can
/// be spawned.
/// It never changes (MPI-5.0, 11.10.1), so that who spawns what it leaves room for does not spawn more each time.
fn universe_size(rank: &Rank) -> i32 {
    let boot = rank.node().boot();
    let can_spawn = !boot.desk.is_null();
    boot.world_ranks.max(if can_spawn { boot.cpus.max(boot.universe) } else { 0 }) as i32
}

macro_rules! comm_keyvals {
    ($($name:ident $free:ident $copy:ident $delete:ident, $create_name:literal $free_name:literal;)*) => {$(
        #[doc = concat!("`", $create_name, "`.")]
        pub fn $name<A: Abi>(
            call: &Call<'_, A>,
            copy: Option<callback::$copy<A>>,
            delete: Option<callback::$delete<A>>,
            keyval: Out<'_, c_int>,
            extra: *mut c_void,
        ) -> Outcome<()> {
            create::<A, A::Comm>(call, Owner::Comm, copy, delete, keyval, extra)
        }

        #[doc = concat!("`", $free_name, "`.")]
        pub fn $free<A: Abi>(call: &Call<'_, A>, keyval: InOut<'_, c_int>) -> Outcome<()> {
            free::<A>(call, keyval, Owner::Comm)
        }
    )*};
}

comm_keyvals! {
    comm_create_keyval comm_free_keyval CommCopyAttrFunction CommDeleteAttrFunction,
        "MPI_Comm_create_keyval" "MPI_Comm_free_keyval";
    keyval_create keyval_free CopyFunction DeleteFunction,
        "MPI_Keyval_create" "MPI_Keyval_free";
}

fn set_comm<A: Abi>(call: &Call<'_, A>, comm: A::Comm, number: c_int, value: Value) -> Outcome<()> {
    let object = call.on_comm(comm)?;
    let keyval = keyval(call, number, Owner::Comm)?;
    object.attributes.set(comm.neutral(), number, &keyval, value)
}

fn get_comm<A: Abi>(call: &Call<'_, A>, comm: A::Comm, number: c_int, language: Language) -> Outcome<Option<Value>> {
    let process = call.process();
    let object = call.on_comm(comm)?;
    let number = language.keyval::<A>(number);
    let predefined = predefined::<A>(process, A::keyval_in(number), language);
    if predefined.is_some() {
        return Ok(predefined);
    }
    let keyval = keyval(call, number, Owner::Comm)?;
    Ok(object.attributes.get(&keyval))
}

/// `MPI_Comm_delete_attr`, and the deprecated `MPI_Attr_delete`.
pub fn comm_delete_attr<A: Abi>(call: &Call<'_, A>, comm: A::Comm, number: c_int) -> Outcome<()> {
    let object = call.on_comm(comm)?;
    let keyval = keyval(call, number, Owner::Comm)?;
    object.attributes.delete(comm.neutral(), number, &keyval)
}

/// `MPI_Type_create_keyval`.
pub fn type_create_keyval<A: Abi>(
    call: &Call<'_, A>,
    copy: Option<callback::TypeCopyAttrFunction<A>>,
    delete: Option<callback::TypeDeleteAttrFunction<A>>,
    keyval: Out<'_, c_int>,
    extra: *mut c_void,
) -> Outcome<()> {
    create::<A, A::Datatype>(call, Owner::Datatype, copy, delete, keyval, extra)
}

/// `MPI_Type_free_keyval`.
pub fn type_free_keyval<A: Abi>(call: &Call<'_, A>, keyval: InOut<'_, c_int>) -> Outcome<()> {
    free::<A>(call, keyval, Owner::Datatype)
}

/// The attributes of a datatype.
fn of_type<'a, A: Abi>(call: &Call<'a, A>, datatype: A::Datatype) -> Outcome<&'a Attributes> {
    Ok(&call.objects().datatype(datatype.neutral())?.attributes)
}

fn set_type<A: Abi>(call: &Call<'_, A>, datatype: A::Datatype, number: c_int, value: Value) -> Outcome<()> {
    let keyval = keyval(call, number, Owner::Datatype)?;
    let attributes = of_type(call, datatype)?;
    attributes.set(datatype.neutral(), number, &keyval, value)
}

fn get_type<A: Abi>(
    call: &Call<'_, A>,
    datatype: A::Datatype,
    number: c_int,
    _language: Language,
) -> Outcome<Option<Value>> {
    let keyval = keyval(call, number, Owner::Datatype)?;
    Ok(of_type(call, datatype)?.get(&keyval))
}

/// `MPI_Type_delete_attr`.
pub fn type_delete_attr<A: Abi>(call: &Call<'_, A>, datatype: A::Datatype, number: c_int) -> Outcome<()> {
    let keyval = keyval(call, number, Owner::Datatype)?;
    of_type(call, datatype)?.delete(datatype.neutral(), number, &keyval)
}

/// `MPI_Win_create_keyval`.
pub fn win_create_keyval<A: Abi>(
    call: &Call<'_, A>,
    copy: Option<callback::WinCopyAttrFunction<A>>,
    delete: Option<callback::WinDeleteAttrFunction<A>>,
    keyval: Out<'_, c_int>,
    extra: *mut c_void,
) -> Outcome<()> {
    create::<A, A::Win>(call, Owner::Win, copy, delete, keyval, extra)
}

/// `MPI_Win_free_keyval`.
pub fn win_free_keyval<A: Abi>(call: &Call<'_, A>, keyval: InOut<'_, c_int>) -> Outcome<()> {
    free::<A>(call, keyval, Owner::Win)
}

fn set_win<A: Abi>(call: &Call<'_, A>, win: A::Win, number: c_int, value: Value) -> Outcome<()> {
    let object = call.on_win(win)?;
    let keyval = keyval(call, number, Owner::Win)?;
    object.attributes.set(win.neutral(), number, &keyval, value)
}

/// The predefined attributes of a window are the address of its memory, and numbers; C gets these numbers' addresses.
fn get_win<A: Abi>(call: &Call<'_, A>, win: A::Win, number: c_int, language: Language) -> Outcome<Option<Value>> {
    let object = call.on_win(win)?;
    let facts = object.facts();
    let number = language.keyval::<A>(number);
    let fact = |slot: &AtomicI32, value| {
        slot.store(value, Ordering::Relaxed);
        (slot.as_ptr().addr(), value as isize)
    };
    let (address, value) = match A::keyval_in(number) {
        neutral::WIN_BASE => (object.part().base, object.part().base as isize),
        neutral::WIN_SIZE => ((&raw const facts.size).addr(), facts.size),
        neutral::WIN_DISP_UNIT => ((&raw const facts.unit).addr(), facts.unit as isize),
        neutral::WIN_CREATE_FLAVOR => {
            let flavor = A::win_flavor_out(object.flavor().neutral());
            fact(&facts.flavor, flavor)
        }
        neutral::WIN_MODEL => fact(&facts.model, A::win_model_out(neutral::WIN_UNIFIED)),
        _ => {
            let keyval = keyval(call, number, Owner::Win)?;
            return Ok(object.attributes.get(&keyval));
        }
    };
    Ok(Some(Value::Pointer(match language {
        Language::C => address,
        Language::Fortran => value as usize,
    })))
}

/// For each kind of object what C calls, and what Fortran libraries call, who say what the value is.
macro_rules! values {
    ($($object:ident $get:ident $set:ident: $get_attr:ident $set_attr:ident $get_as:ident $set_as:ident,
        $about:literal;)*) => {$(
        #[doc = concat!("`MPI_", $about, "_get_attr`.")]
        pub fn $get_attr<A: Abi>(
            call: &Call<'_, A>,
            object: A::$object,
            number: c_int,
            value: Out<'_, *mut c_void>,
            flag: Out<'_, c_int>,
        ) -> Outcome<()> {
            let found = $get(call, object, number, Language::C)?;
            answer(Language::C, found, value, flag)
        }

        #[doc = concat!("`MPI_", $about, "_set_attr`.")]
        pub fn $set_attr<A: Abi>(
            call: &Call<'_, A>,
            object: A::$object,
            number: c_int,
            value: *mut c_void,
        ) -> Outcome<()> {
            $set(call, object, number, Language::C.value(value))
        }

        #[doc = concat!("`MPII_", $about, "_get_attr`.")]
        pub fn $get_as<A: Abi>(
            call: &Call<'_, A>,
            object: A::$object,
            number: c_int,
            value: Out<'_, *mut c_void>,
            flag: Out<'_, c_int>,
            kind: c_int,
        ) -> Outcome<()> {
            let language = Language::of(kind);
            let found = $get(call, object, number, language)?;
            answer(language, found, value, flag)
        }

        #[doc = concat!("`MPII_", $about, "_set_attr`.")]
        pub fn $set_as<A: Abi>(
            call: &Call<'_, A>,
            object: A::$object,
            number: c_int,
            value: *mut c_void,
            kind: c_int,
        ) -> Outcome<()> {
            $set(call, object, number, Language::of(kind).value(value))
        }
    )*};
}

values! {
    Comm get_comm set_comm: comm_get_attr comm_set_attr comm_get_attr_as comm_set_attr_as, "Comm";
    Datatype get_type set_type: type_get_attr type_set_attr type_get_attr_as type_set_attr_as, "Type";
    Win get_win set_win: win_get_attr win_set_attr win_get_attr_as win_set_attr_as, "Win";
}

/// `MPI_Win_delete_attr`.
pub fn win_delete_attr<A: Abi>(call: &Call<'_, A>, win: A::Win, number: c_int) -> Outcome<()> {
    let object = call.on_win(win)?;
    let keyval = keyval(call, number, Owner::Win)?;
    object.attributes.delete(win.neutral(), number, &keyval)
}
