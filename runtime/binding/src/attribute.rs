//! Keyvals and attributes (MPI-4.1 section 7.7).

use crate::arguments::{Call, Outcome, on_comm, on_process, on_win, output};
use crate::context::Process;
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
        error => Err(error),
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
///
/// # Safety
/// `keyval` is valid for writes or NULL; `caller` is the calling rank.
unsafe fn create<A: Abi, H: Handle>(
    caller: *const c_void,
    name: &'static str,
    owner: Owner,
    copy: Option<Copy<H>>,
    delete: Option<Delete<H>>,
    keyval: *mut c_int,
    extra: *mut c_void,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, name, |call| {
            output(keyval)?;
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
        })
    }
}

/// The keyval of a number, if it is for objects of this kind.
fn keyval<'a, A: Abi>(call: &Call<'a, A>, number: c_int, owner: Owner) -> Outcome<&'a Arc<Keyval>> {
    let keyval = call.objects().keyval(number as u32)?;
    if keyval.owner() == owner {
        Ok(keyval)
    } else {
        Err(neutral::ERR_KEYVAL)
    }
}

/// Frees a keyval; attributes that have it keep it alive.
///
/// # Safety
/// `number` is valid for reads and writes or NULL; `caller` is the calling rank.
unsafe fn free<A: Abi>(
    caller: *const c_void,
    name: &'static str,
    number: *mut c_int,
    owner: Owner,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, name, |call| {
            output(number)?;
            keyval(call, *number, owner)?;
            call.objects().remove_keyval(*number as u32)?;
            number.write(A::keyval_out(neutral::KEYVAL_INVALID));
            Ok(())
        })
    }
}

/// Writes what `MPI_*_get_attr` answers.
///
/// # Safety
/// `value` points to a pointer, `flag` is valid for writes; both may be NULL.
unsafe fn answer(found: Option<usize>, value: *mut c_void, flag: *mut c_int) -> Outcome<()> {
    output(flag)?;
    output(value)?;
    // SAFETY: not NULL, and the caller's contract.
    unsafe {
        flag.write(c_int::from(found.is_some()));
        if let Some(found) = found {
            value.cast::<usize>().write(found);
        }
    }
    Ok(())
}

/// Values of the predefined attributes of `MPI_COMM_WORLD`, whose addresses programs get.
#[derive(Default)]
pub struct Predefined {
    values: [AtomicI32; 7],
}

impl Predefined {
    /// The address of a predefined attribute's value; `None` for other keyvals.
    fn get<A: Abi>(&self, process: &Process, keyval: i32) -> Option<usize> {
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
        self.values[index].store(value, Ordering::Relaxed);
        Some(self.values[index].as_ptr().addr())
    }
}

macro_rules! comm_keyvals {
    ($($name:ident $free:ident $copy:ident $delete:ident, $create_name:literal $free_name:literal;)*) => {$(
        #[doc = concat!("`", $create_name, "`.")]
        ///
        /// # Safety
        /// MPI's: `keyval` is valid for writes; `caller` is the calling rank.
        pub unsafe extern "C" fn $name<A: Abi>(
            caller: *const c_void,
            copy: Option<callback::$copy<A>>,
            delete: Option<callback::$delete<A>>,
            keyval: *mut c_int,
            extra: *mut c_void,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe { create::<A, A::Comm>(caller, $create_name, Owner::Comm, copy, delete, keyval, extra) }
        }

        #[doc = concat!("`", $free_name, "`.")]
        ///
        /// # Safety
        /// MPI's: `keyval` is valid for reads and writes; `caller` is the calling rank.
        pub unsafe extern "C" fn $free<A: Abi>(
            caller: *const c_void,
            keyval: *mut c_int,
        ) -> c_int {
            // SAFETY: the caller's contract.
            unsafe { free::<A>(caller, $free_name, keyval, Owner::Comm) }
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
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn comm_set_attr<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    number: c_int,
    value: *mut c_void,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_set_attr", comm, |call, object| {
            let keyval = keyval(call, number, Owner::Comm)?;
            object
                .attributes
                .set(comm.neutral(), number, keyval, value.expose_provenance())
        })
    }
}

/// `MPI_Comm_get_attr`, and the deprecated `MPI_Attr_get`.
///
/// # Safety
/// MPI's: `value` points to a pointer, `flag` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn comm_get_attr<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    number: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        let process = Process::of(caller);
        on_comm::<A>(caller, "MPI_Comm_get_attr", comm, |call, object| {
            let predefined = process.attributes.get::<A>(process, A::keyval_in(number));
            if predefined.is_some() {
                return answer(predefined, value, flag);
            }
            let keyval = keyval(call, number, Owner::Comm)?;
            answer(object.attributes.get(keyval), value, flag)
        })
    }
}

/// `MPI_Comm_delete_attr`, and the deprecated `MPI_Attr_delete`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn comm_delete_attr<A: Abi>(
    caller: *const c_void,
    comm: A::Comm,
    number: c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_comm::<A>(caller, "MPI_Comm_delete_attr", comm, |call, object| {
            let keyval = keyval(call, number, Owner::Comm)?;
            object.attributes.delete(comm.neutral(), number, keyval)
        })
    }
}

/// `MPI_Type_create_keyval`.
///
/// # Safety
/// MPI's: `keyval` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn type_create_keyval<A: Abi>(
    caller: *const c_void,
    copy: Option<callback::TypeCopyAttrFunction<A>>,
    delete: Option<callback::TypeDeleteAttrFunction<A>>,
    keyval: *mut c_int,
    extra: *mut c_void,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        create::<A, A::Datatype>(
            caller,
            "MPI_Type_create_keyval",
            Owner::Datatype,
            copy,
            delete,
            keyval,
            extra,
        )
    }
}

/// `MPI_Type_free_keyval`.
///
/// # Safety
/// MPI's: `keyval` is valid for reads and writes; `caller` is the calling rank.
pub unsafe extern "C" fn type_free_keyval<A: Abi>(
    caller: *const c_void,
    keyval: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { free::<A>(caller, "MPI_Type_free_keyval", keyval, Owner::Datatype) }
}

/// The attributes of a datatype.
fn of_type<'a, A: Abi>(call: &Call<'a, A>, datatype: A::Datatype) -> Outcome<&'a Attributes> {
    Ok(&call.objects().datatype(datatype.neutral())?.attributes)
}

/// `MPI_Type_set_attr`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn type_set_attr<A: Abi>(
    caller: *const c_void,
    datatype: A::Datatype,
    number: c_int,
    value: *mut c_void,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Type_set_attr", |call| {
            let keyval = keyval(call, number, Owner::Datatype)?;
            let attributes = of_type(call, datatype)?;
            attributes.set(
                datatype.neutral(),
                number,
                keyval,
                value.expose_provenance(),
            )
        })
    }
}

/// `MPI_Type_get_attr`.
///
/// # Safety
/// MPI's: `value` points to a pointer, `flag` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn type_get_attr<A: Abi>(
    caller: *const c_void,
    datatype: A::Datatype,
    number: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Type_get_attr", |call| {
            let keyval = keyval(call, number, Owner::Datatype)?;
            answer(of_type(call, datatype)?.get(keyval), value, flag)
        })
    }
}

/// `MPI_Type_delete_attr`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn type_delete_attr<A: Abi>(
    caller: *const c_void,
    datatype: A::Datatype,
    number: c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_process::<A>(caller, "MPI_Type_delete_attr", |call| {
            let keyval = keyval(call, number, Owner::Datatype)?;
            of_type(call, datatype)?.delete(datatype.neutral(), number, keyval)
        })
    }
}

/// `MPI_Win_create_keyval`.
///
/// # Safety
/// MPI's: `keyval` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn win_create_keyval<A: Abi>(
    caller: *const c_void,
    copy: Option<callback::WinCopyAttrFunction<A>>,
    delete: Option<callback::WinDeleteAttrFunction<A>>,
    keyval: *mut c_int,
    extra: *mut c_void,
) -> c_int {
    let name = "MPI_Win_create_keyval";
    // SAFETY: the caller's contract.
    unsafe { create::<A, A::Win>(caller, name, Owner::Win, copy, delete, keyval, extra) }
}

/// `MPI_Win_free_keyval`.
///
/// # Safety
/// MPI's: `keyval` is valid for reads and writes; `caller` is the calling rank.
pub unsafe extern "C" fn win_free_keyval<A: Abi>(
    caller: *const c_void,
    keyval: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { free::<A>(caller, "MPI_Win_free_keyval", keyval, Owner::Win) }
}

/// `MPI_Win_set_attr`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn win_set_attr<A: Abi>(
    caller: *const c_void,
    win: A::Win,
    number: c_int,
    value: *mut c_void,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_win::<A>(caller, "MPI_Win_set_attr", win, |call, object| {
            let keyval = keyval(call, number, Owner::Win)?;
            let attributes = &object.attributes;
            attributes.set(win.neutral(), number, keyval, value.expose_provenance())
        })
    }
}

/// `MPI_Win_get_attr`. The predefined attributes of a window are the address of its memory, and addresses of their
/// values.
///
/// # Safety
/// MPI's: `value` points to a pointer, `flag` is valid for writes; `caller` is the calling rank.
pub unsafe extern "C" fn win_get_attr<A: Abi>(
    caller: *const c_void,
    win: A::Win,
    number: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_win::<A>(caller, "MPI_Win_get_attr", win, |call, object| {
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
            answer(object.attributes.get(keyval), value, flag)
        })
    }
}

/// `MPI_Win_delete_attr`.
///
/// # Safety
/// `caller` is the calling rank.
pub unsafe extern "C" fn win_delete_attr<A: Abi>(
    caller: *const c_void,
    win: A::Win,
    number: c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        on_win::<A>(caller, "MPI_Win_delete_attr", win, |call, object| {
            let keyval = keyval(call, number, Owner::Win)?;
            object.attributes.delete(win.neutral(), number, keyval)
        })
    }
}
