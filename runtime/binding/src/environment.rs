//! Initialisation, finalisation, versions, time, memory (MPI-4.1 chapters 9 and 11).

use crate::arguments::{Call, Outcome};
use crate::context::{Listener, Site, comm_name, handle_error};
use crate::p2p::Whose;
use crate::process::Process;
use cohort_abi::parameters::{InOut, Out, Text};
use cohort_abi::{Abi, Handle, neutral};
use cohort_base::boot::Lifecycle;
use cohort_base::text::FixedText;
use cohort_engine::{Untaken, coll, lifecycle};
use cohort_object::{blame, ports};
use core::ffi::{c_char, c_int};
use core::sync::atomic::Ordering;

mod fortran;
mod memory;
mod time;
mod version;

pub use fortran::{abi_get_fortran_booleans, abi_get_fortran_info, abi_set_fortran_booleans, abi_set_fortran_info};
pub use memory::{alloc_mem, free_mem};
pub use time::{wtick, wtime};
pub use version::{abi_get_version, error_class, error_string, get_library_version, get_processor_name, get_version};

fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// The level that is provided for one. Where ranks survive each other a rank's threads call one at a time, so that none
/// copies a message that another one gives up.
pub(crate) fn provided_level(process: &Process, level: i32) -> i32 {
    match process.objects.rank().node().survives() {
        true if level == neutral::THREAD_MULTIPLE => neutral::THREAD_SERIALIZED,
        _ => level,
    }
}

fn initialize(process: &Process, level: i32) -> Outcome<()> {
    let lifetime = &process.lifetime;
    if !lifetime.is(Lifecycle::Fresh) {
        let what = format_args!("MPI has been initialised before");
        return Err(blame(neutral::ERR_OTHER, what));
    }
    let level = provided_level(process, level);
    lifetime.thread_level.store(level, Ordering::Relaxed);
    lifetime.main_thread.store(thread_id(), Ordering::Relaxed);
    if level == neutral::THREAD_MULTIPLE {
        process.objects.rank().set_threads_multiple();
    }
    process.objects.initialize();
    lifetime.enter(process.objects.owner());
    lifecycle::will_meet_at_end(process.objects.owner());
    process.objects.rank().boot().begin();
    lifetime.reach(Lifecycle::Initialized);
    Ok(())
}

/// `MPI_Init`.
pub fn init<A: Abi>(call: &Call<'_, A>, _argc: InOut<'_, c_int>, _argv: *mut *mut *mut c_char) -> Outcome<()> {
    let process = call.process();
    initialize(process, neutral::THREAD_SINGLE)
}

/// `MPI_Init_thread`. Every level is provided, unless ranks survive each other.
pub fn init_thread<A: Abi>(
    call: &Call<'_, A>,
    _argc: InOut<'_, c_int>,
    _argv: *mut *mut *mut c_char,
    required: c_int,
    provided: Out<'_, c_int>,
) -> Outcome<()> {
    let process = call.process();
    let provided = call.output(provided, "provided")?;
    let level = A::thread_level_in(required);
    if !(neutral::THREAD_SINGLE..=neutral::THREAD_MULTIPLE).contains(&level) {
        return Err(neutral::ERR_ARG.into());
    }
    initialize(process, level)?;
    provided.write(A::thread_level_out(provided_level(process, level)));
    Ok(())
}

macro_rules! answers {
    ($($(#[$page:meta])* $name:ident $process:ident $value:expr;)*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi>(call: &Call<'_, A>, answer: Out<'_, c_int>) -> Outcome<()> {
            let $process = call.process();
            let answer = call.output(answer, "the place for the answer")?;
            answer.write($value);
            Ok(())
        }
    )*};
}

answers! {
    /// `MPI_Initialized`: also true after finalisation.
    initialized process c_int::from(!process.lifetime.is(Lifecycle::Fresh));
    /// `MPI_Finalized`.
    finalized process c_int::from(process.lifetime.is(Lifecycle::Finalized));
    /// `MPI_Query_thread`.
    query_thread process A::thread_level_out(process.lifetime.thread_level.load(Ordering::Relaxed));
    /// `MPI_Is_thread_main`.
    is_thread_main process c_int::from(
        process.lifetime.main_thread.load(Ordering::Relaxed) == thread_id()
    );
}

/// `MPI_Finalize`: deletes the attributes of `MPI_COMM_SELF`, then waits for all ranks, so that
/// nobody's memory goes away while another still reads it, and until processes of other worlds have taken what this one
/// has sent them.
pub fn finalize<A: Abi>(call: &Call<'_, A>) -> Outcome<()> {
    let process = call.process();
    if !process.lifetime.is(Lifecycle::Initialized) {
        let what = process.lifetime.stage_text();
        return Err(call.blame(neutral::ERR_OTHER, format_args!("{what}")));
    }
    let own = neutral::handle::COMM_SELF;
    call.objects().comm(own)?.attributes.delete_all(own)?;
    let world = neutral::handle::COMM_WORLD;
    call.objects().comm(world)?.attributes.delete_all(world)?;
    let leaving = process.lifetime.begin_to_leave();
    crate::p2p::flush_buffers(call, if leaving.is_last { Whose::Everybody } else { Whose::NO_SESSION });
    // Files of sessions go on, as their ports do.
    if leaving.is_last {
        call.objects().end_operations();
        // Who waits at a port of this process would wait for ever, and perhaps this process for that one.
        ports::end(call.rank());
    }
    if call.rank().node().boot().nodes > 1 {
        let comm = call.objects().comm(world)?;
        match call.rank().node().survives() {
            // The living meet, whoever has failed and whether the communicator was revoked.
            true => drop(comm.agreed(0)?),
            false => {
                coll::barrier_within(&comm.collective(), coll::Table::Object).map_err(crate::arguments::engine_error)?
            }
        }
    }
    lifecycle::meet_at_end(call.owner());
    cohort_engine::await_receivers(call.owner(), Untaken::ToOtherWorlds);
    call.objects().end();
    leaving.end(call.owner());
    process.lifetime.reach(Lifecycle::Finalized);
    Ok(())
}

/// `MPI_Abort`: the job ends with `code` as its exit status.
pub fn abort<A: Abi>(call: &Call<'_, A>, comm: A::Comm, code: c_int) -> Outcome<()> {
    let process = call.process();
    let rank = process.objects.rank();
    let line = FixedText::<256>::of(format_args!(
        "cohort: {} called MPI_Abort on {} with code {code}",
        rank.name(),
        comm_name(process, comm.neutral()),
    ));
    lifecycle::abort_with(rank, code, line.as_str(), ports::end)
}

/// `MPIX_Section_begin` and `MPIX_Section_end`: those who observe the calls hear of a stage of the program. Local; the
/// communicator says whose stage it is.
pub fn section<A: Abi>(call: &Call<'_, A>, comm: A::Comm, label: Text<'_>) -> Outcome<()> {
    call.on_comm(comm)?;
    call.text(label, "label").map(drop)
}

/// `MPI_Pcontrol`: every level is accepted. Those who observe the calls hear of it.
pub fn pcontrol<A: Abi>(_call: &Call<'_, A>, _level: c_int) -> Outcome<()> {
    Ok(())
}

/// `MPI_Comm_call_errhandler`.
pub fn comm_call_errhandler<A: Abi>(call: &Call<'_, A>, comm: A::Comm, code: c_int) -> Outcome<()> {
    let object = call.on_comm(comm)?;
    let handler = object.errhandler.lock().clone();
    let site = Site { function: "MPI_Comm_call_errhandler", listener: Listener::Comm(comm.neutral()), detail: "" };
    handle_error(call.process(), &site, &handler, A::error_in(code));
    Ok(())
}
