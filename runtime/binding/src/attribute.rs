//! Keyvals and attributes (MPI-4.1 section 7.7).

use crate::arguments::{Call, Outcome, output};
use crate::passed::{InOut, Out};
use crate::process::Process;
use alloc::boxed::Box;
use alloc::sync::Arc;
use cohort_abi::{Abi, Handle, callback, neutral};
use cohort_object::attribute::{AttributeCallbacks, Attributes, Keyval, Owner};
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicI32, Ordering};

type Copy<H> =
    unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
type Delete<H> = unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_void) -> c_int;

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
struct Functions<A, H> {
    copying: Copying<H>,
    delete: Option<Delete<H>>,
    extra: usize,
    abi: PhantomData<A>,
}

// SAFETY: functions of the program, and a value that only they interpret.
unsafe impl<A, H> Send for Functions<A, H> {}
// SAFETY: as above; nothing is changed.
unsafe impl<A, H> Sync for Functions<A, H> {}

fn outcome<A: Abi>(code: c_int) -> Outcome<()> {
    match A::error_in(code) {
        neutral::SUCCESS => Ok(()),
        error => Err(error.into()),
    }
}

impl<A: Abi, H: Handle> AttributeCallbacks for Functions<A, H> {
    fn copy(&self, object: u32, keyval: i32, value: usize) -> Outcome<Option<usize>> {
        let function = match self.copying {
            Copying::Never => return Ok(None),
            Copying::Value => return Ok(Some(value)),
            Copying::Function(function) => function,
        };
        let (mut copied, mut flag) = (0_usize, 0);
        // SAFETY: the program's function, called as MPI promises.
        let code = unsafe {
            function(
                H::from_neutral(object),
                keyval,
                core::ptr::with_exposed_provenance_mut(self.extra),
                core::ptr::with_exposed_provenance_mut(value),
                (&raw mut copied).cast(),
                &mut flag,
            )
        };
        outcome::<A>(code)?;
        Ok((flag != 0).then_some(copied))
    }

    fn delete(&self, object: u32, keyval: i32, value: usize) -> Outcome<()> {
        let Some(function) = self.delete else {
            return Ok(());
        };
        // SAFETY: the program's function, called as MPI promises.
        let code = unsafe {
            function(
                H::from_neutral(object),
                keyval,
                core::ptr::with_exposed_provenance_mut(value),
                core::ptr::with_exposed_provenance_mut(self.extra),
            )
        };
        outcome::<A>(code)
    }
}

/// Makes a keyval.
fn create<A: Abi, H: Handle>(
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
        abi: PhantomData,
    };
    let object = Arc::new(Keyval::new(owner, Box::new(functions)));
    keyval.write(call.objects().add_keyval(object)? as c_int);
    Ok(())
}

/// The keyval of a number, if it is for objects of this kind.
fn keyval<A: Abi>(call: &Call<'_, A>, number: c_int, owner: Owner) -> Outcome<Arc<Keyval>> {
    let keyval = call.objects().keyval(number as u32)?;
    if keyval.owner() == owner {
        Ok(keyval)
    } else {
        Err(neutral::ERR_KEYVAL.into())
    }
}

/// Frees a keyval; attributes that have it keep it alive.
fn free<A: Abi>(call: &Call<'_, A>, number: InOut<'_, c_int>, owner: Owner) -> Outcome<()> {
    let number = call.inout(number, "keyval")?;
    keyval(call, number.get(), owner)?;
    call.objects().free_keyval(number.get() as u32)?;
    number.set(A::keyval_out(neutral::KEYVAL_INVALID));
    Ok(())
}

/// Writes what `MPI_*_get_attr` answers.
fn answer(found: Option<usize>, value: Out<'_, *mut c_void>, flag: Out<'_, c_int>) -> Outcome<()> {
    let flag = output(flag)?;
    let value = output(value)?;
    flag.write(c_int::from(found.is_some()));
    if let Some(found) = found {
        value.write(core::ptr::with_exposed_provenance_mut(found));
    }
    Ok(())
}

/// The address of the value of a predefined attribute of `MPI_COMM_WORLD`; `None` for other keyvals.
fn predefined<A: Abi>(process: &Process, keyval: i32) -> Option<usize> {
    let rank = process.objects.rank();
    let (index, value) = match keyval {
        neutral::TAG_UB => (0, i32::MAX),
        neutral::HOST => (1, A::rank_out(neutral::PROC_NULL)),
        neutral::IO => (2, A::rank_out(neutral::ANY_SOURCE)),
        neutral::WTIME_IS_GLOBAL => (3, 1),
        neutral::UNIVERSE_SIZE => (4, rank.node().boot().world_ranks as i32),
        neutral::APPNUM => (5, rank.boot().app_number as i32),
        neutral::LASTUSEDCODE => (6, A::error_out(process.objects.errors.last_used())),
        _ => return None,
    };
    let slot = &process.attributes[index];
    slot.store(value, Ordering::Relaxed);
    Some(slot.as_ptr().addr())
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

/// `MPI_Comm_set_attr`, and the deprecated `MPI_Attr_put`.
pub fn comm_set_attr<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    number: c_int,
    value: *mut c_void,
) -> Outcome<()> {
    let object = call.on_comm(comm)?;
    let keyval = keyval(call, number, Owner::Comm)?;
    object
        .attributes
        .set(comm.neutral(), number, &keyval, value.expose_provenance())
}

/// `MPI_Comm_get_attr`, and the deprecated `MPI_Attr_get`.
pub fn comm_get_attr<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    number: c_int,
    value: Out<'_, *mut c_void>,
    flag: Out<'_, c_int>,
) -> Outcome<()> {
    let process = call.process();
    let object = call.on_comm(comm)?;
    let predefined = predefined::<A>(process, A::keyval_in(number));
    if predefined.is_some() {
        return answer(predefined, value, flag);
    }
    let keyval = keyval(call, number, Owner::Comm)?;
    answer(object.attributes.get(&keyval), value, flag)
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

/// `MPI_Type_set_attr`.
pub fn type_set_attr<A: Abi>(
    call: &Call<'_, A>,
    datatype: A::Datatype,
    number: c_int,
    value: *mut c_void,
) -> Outcome<()> {
    let keyval = keyval(call, number, Owner::Datatype)?;
    let attributes = of_type(call, datatype)?;
    attributes.set(
        datatype.neutral(),
        number,
        &keyval,
        value.expose_provenance(),
    )
}

/// `MPI_Type_get_attr`.
pub fn type_get_attr<A: Abi>(
    call: &Call<'_, A>,
    datatype: A::Datatype,
    number: c_int,
    value: Out<'_, *mut c_void>,
    flag: Out<'_, c_int>,
) -> Outcome<()> {
    let keyval = keyval(call, number, Owner::Datatype)?;
    answer(of_type(call, datatype)?.get(&keyval), value, flag)
}

/// `MPI_Type_delete_attr`.
pub fn type_delete_attr<A: Abi>(
    call: &Call<'_, A>,
    datatype: A::Datatype,
    number: c_int,
) -> Outcome<()> {
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

/// `MPI_Win_set_attr`.
pub fn win_set_attr<A: Abi>(
    call: &Call<'_, A>,
    win: A::Win,
    number: c_int,
    value: *mut c_void,
) -> Outcome<()> {
    let object = call.on_win(win)?;
    let keyval = keyval(call, number, Owner::Win)?;
    let attributes = &object.attributes;
    attributes.set(win.neutral(), number, &keyval, value.expose_provenance())
}

/// `MPI_Win_get_attr`. The predefined attributes of a window are the address of its memory, and addresses of their
/// values.
pub fn win_get_attr<A: Abi>(
    call: &Call<'_, A>,
    win: A::Win,
    number: c_int,
    value: Out<'_, *mut c_void>,
    flag: Out<'_, c_int>,
) -> Outcome<()> {
    let object = call.on_win(win)?;
    let facts = object.facts();
    let fact = |slot: &AtomicI32, value| {
        slot.store(value, Ordering::Relaxed);
        slot.as_ptr().addr()
    };
    let predefined = match A::keyval_in(number) {
        neutral::WIN_BASE => Some(object.part().base),
        neutral::WIN_SIZE => Some((&raw const facts.size).addr()),
        neutral::WIN_DISP_UNIT => Some((&raw const facts.unit).addr()),
        neutral::WIN_CREATE_FLAVOR => {
            let flavor = A::win_flavor_out(object.flavor().neutral());
            Some(fact(&facts.flavor, flavor))
        }
        neutral::WIN_MODEL => {
            let model = A::win_model_out(neutral::WIN_UNIFIED);
            Some(fact(&facts.model, model))
        }
        _ => None,
    };
    if predefined.is_some() {
        return answer(predefined, value, flag);
    }
    let keyval = keyval(call, number, Owner::Win)?;
    answer(object.attributes.get(&keyval), value, flag)
}

/// `MPI_Win_delete_attr`.
pub fn win_delete_attr<A: Abi>(call: &Call<'_, A>, win: A::Win, number: c_int) -> Outcome<()> {
    let object = call.on_win(win)?;
    let keyval = keyval(call, number, Owner::Win)?;
    object.attributes.delete(win.neutral(), number, &keyval)
}
