//! Files come and go, and say how they were opened (MPI-5.0 section 14.2).

use crate::arguments::{Call, Outcome};
use crate::context::Listener;
use crate::{group, info};
use alloc::boxed::Box;
use cohort_abi::parameters::{InOut, Out, Text};
use cohort_abi::{Abi, Handle, neutral};
use cohort_object::File;
use core::ffi::c_int;

/// `MPI_File_open`.
pub fn open<A: Abi>(
    call: &Call<'_, A>,
    comm: A::Comm,
    name: Text<'_>,
    mode: c_int,
    hints: A::Info,
    target: Out<'_, A::File>,
) -> Outcome<()> {
    let comm = call.objects().comm(comm.neutral());
    // The error handler of MPI_FILE_NULL hears of what goes wrong here, and new files inherit it.
    call.on_no_file();
    let comm = comm.map_err(|class| call.blame(class, format_args!("comm is no communicator")))?;
    // What is wrong with the arguments of one member is told to all.
    let target = call.output(target, "fh");
    let hints = info::given(call, hints);
    let name = call.text(name, "filename");
    let name = target.as_ref().map_err(Clone::clone).and(name);
    let name = hints.as_ref().map_err(Clone::clone).and(name);
    let hints = hints.unwrap_or_default();
    let handler = call.objects().file_errhandler.lock().clone();
    let room = (call.objects().room_for_file(), call.objects().under_way());
    let shown = name.as_ref().map_or("?", |name| name.to_str().unwrap_or("?"));
    let passing = call.objects().passing.meets_about(comm, shown);
    let file = File::open(comm, name, A::access_mode_in(mode), &hints, room, handler)?;
    drop(passing);
    let target = target?;
    let handle = call.objects().add_file(Box::new(file))?;
    target.write(A::File::from_neutral(call.context(), handle));
    Ok(())
}

/// `MPI_File_close`.
pub fn close<A: Abi>(call: &Call<'_, A>, file: InOut<'_, A::File>) -> Outcome<()> {
    call.on_no_file();
    let place = call.inout(file, "fh")?;
    let handle = place.get();
    call.on_file(handle)?.may_close()?;
    let file = call.objects().remove_file(handle.neutral())?;
    place.set(A::File::from_neutral(call.context(), neutral::handle::FILE_NULL));
    let handler = file.errhandler.lock().clone();
    let _passing = call.objects().passing.meets_about(file.comm(), &file.name());
    let listener = Listener::File(neutral::handle::FILE_NULL);
    call.heard_by("MPI_File_close", (listener, &handler), file.close())
}

/// `MPI_File_delete`.
pub fn delete<A: Abi>(call: &Call<'_, A>, name: Text<'_>, hints: A::Info) -> Outcome<()> {
    call.on_no_file();
    let name = call.text(name, "filename")?;
    info::given(call, hints)?;
    cohort_object::file::delete(name)
}

/// `MPI_File_get_group`.
pub fn get_group<A: Abi>(call: &Call<'_, A>, file: A::File, target: Out<'_, A::Group>) -> Outcome<()> {
    let file = call.on_file(file)?;
    group::publish(call, file.group().clone(), target)
}

/// `MPI_File_get_amode`.
pub fn get_amode<A: Abi>(call: &Call<'_, A>, file: A::File, mode: Out<'_, c_int>) -> Outcome<()> {
    let file = call.on_file(file)?;
    call.output(mode, "amode")?.write(A::access_mode_out(file.mode()));
    Ok(())
}

/// `MPI_File_set_info`.
pub fn set_info<A: Abi>(call: &Call<'_, A>, file: A::File, hints: A::Info) -> Outcome<()> {
    let file = call.on_file(file)?;
    file.set_info(info::given(call, hints))
}

/// `MPI_File_get_info`.
pub fn get_info<A: Abi>(call: &Call<'_, A>, file: A::File, target: Out<'_, A::Info>) -> Outcome<()> {
    let file = call.on_file(file)?;
    info::publish(call, file.info(), target)
}
