//! Data representations of programs (MPI-5.0 section 14.5.3).

use crate::arguments::{Call, Outcome};
use crate::process::Process;
use alloc::boxed::Box;
use cohort_abi::parameters::Text;
use cohort_abi::{Abi, Constants, Count, Handle, callback, neutral};
use cohort_engine::Owner;
use cohort_engine::datatype::TypeRef;
use cohort_object::file::{Conversions, Way};
use core::ffi::{c_int, c_void};

/// The program's functions, with counts of type `C`.
struct Functions<A: Abi, C: Count> {
    /// Whose program it is; a process is never freed.
    process: &'static Process,
    read: Option<callback::DatarepConversionFunction<A, C>>,
    write: Option<callback::DatarepConversionFunction<A, C>>,
    extent: callback::DatarepExtentFunction<A>,
    extra_state: *mut c_void,
}

// SAFETY: functions of the rank's program are valid on all of the rank's tasks, and the standard wants them reentrant;
// what the extra state is to them is the program's business.
unsafe impl<A: Abi, C: Count> Send for Functions<A, C> {}
// SAFETY: the same.
unsafe impl<A: Abi, C: Count> Sync for Functions<A, C> {}

impl<A: Abi, C: Count> Functions<A, C> {
    /// Calls `function` with a handle of the type, which is the program's own for a predefined type, and otherwise one
    /// of an equivalent type, for the time of the call.
    fn with_handle(&self, datatype: &TypeRef, function: impl FnOnce(A::Datatype) -> c_int) -> Result<(), i32> {
        let (objects, context) = (&self.process.objects, A::context(&self.process.caller));
        let told = |code| match code {
            neutral::SUCCESS => Ok(()),
            code => Err(code),
        };
        if datatype.handle() != 0 {
            let handle = A::Datatype::from_neutral(context, datatype.handle());
            return told(function(handle));
        }
        let lasts = datatype.contents().combiner.is_parametrised();
        let handle = match lasts {
            true => objects.publish_parametrised(datatype.clone()),
            false => objects.add_datatype(cohort_object::Datatype::new(datatype.clone())),
        };
        let handle = handle.map_err(|error| error.code())?;
        if let Ok(made) = objects.datatype(handle) {
            made.commit();
        }
        let outcome = told(function(A::Datatype::from_neutral(context, handle)));
        if lasts {
            return outcome;
        }
        // What the function has kept with the type goes with it.
        let deleted = objects.datatype(handle).and_then(|made| made.attributes.delete_all(handle));
        drop(objects.remove_datatype(handle));
        outcome.and(deleted.map_err(|error| error.code()))
    }
}

impl<A: Abi, C: Count> Conversions for Functions<A, C> {
    fn extent(&self, _owner: Owner<'_>, datatype: &TypeRef) -> Result<i64, i32> {
        let mut extent = 0_isize;
        self.with_handle(datatype, |handle| {
            // SAFETY: the application's function, called as MPI promises.
            A::error_in(unsafe { (self.extent)(handle, &mut extent, self.extra_state) })
        })?;
        Ok(extent as i64)
    }

    fn converts(&self, way: Way) -> bool {
        match way {
            Way::Read => self.read.is_some(),
            Way::Write => self.write.is_some(),
        }
    }

    fn most(&self) -> u64 {
        match C::from_i64(i64::MAX) {
            Some(_) => i64::MAX as u64,
            None => c_int::MAX as u64,
        }
    }

    unsafe fn convert(
        &self,
        _owner: Owner<'_>,
        way: Way,
        (user, datatype): (*mut u8, &TypeRef),
        count: u64,
        file: *mut u8,
        position: u64,
    ) -> Result<(), i32> {
        let function = match way {
            Way::Read => self.read,
            Way::Write => self.write,
        };
        let (Some(function), Some(count)) = (function, C::from_i64(count.cast_signed())) else {
            return Err(neutral::ERR_INTERN);
        };
        let position = position.cast_signed();
        self.with_handle(datatype, |handle| {
            // SAFETY: the application's function, called as MPI promises, with buffers that the caller vouches for.
            A::error_in(unsafe { function(user.cast(), handle, count, file.cast(), position, self.extra_state) })
        })
    }
}

/// `MPI_Register_datarep`.
fn register<A: Abi, C: Count>(
    call: &Call<'_, A>,
    name: Text<'_>,
    [read, write]: [Option<callback::DatarepConversionFunction<A, C>>; 2],
    extent: Option<callback::DatarepExtentFunction<A>>,
    extra_state: *mut c_void,
) -> Outcome<()> {
    // The error handler of MPI_FILE_NULL hears of what goes wrong here.
    call.on_no_file();
    let name = call.text(name, "datarep")?.to_bytes();
    let extent = extent.ok_or_else(|| call.blame(neutral::ERR_ARG, format_args!("dtype_file_extent_fn is NULL")))?;
    // SAFETY: a process is leaked when it is made.
    let process = unsafe { Process::of(core::ptr::from_ref(call.process()).cast()) };
    let functions = Functions::<A, C> { process, read, write, extent, extra_state };
    call.objects().representations.add(name, <A as Constants>::MAX_DATAREP_STRING, Box::new(functions))
}

/// `MPI_Register_datarep`.
pub fn register_datarep<A: Abi>(
    call: &Call<'_, A>,
    name: Text<'_>,
    read: Option<callback::DatarepConversionFunction<A, c_int>>,
    write: Option<callback::DatarepConversionFunction<A, c_int>>,
    extent: Option<callback::DatarepExtentFunction<A>>,
    extra_state: *mut c_void,
) -> Outcome<()> {
    register::<A, c_int>(call, name, [read, write], extent, extra_state)
}

/// `MPI_Register_datarep_c`.
pub fn register_datarep_large<A: Abi>(
    call: &Call<'_, A>,
    name: Text<'_>,
    read: Option<callback::DatarepConversionFunction<A, i64>>,
    write: Option<callback::DatarepConversionFunction<A, i64>>,
    extent: Option<callback::DatarepExtentFunction<A>>,
    extra_state: *mut c_void,
) -> Outcome<()> {
    register::<A, i64>(call, name, [read, write], extent, extra_state)
}
