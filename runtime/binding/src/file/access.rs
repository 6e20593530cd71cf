//! Reading and writing (MPI-5.0 section 14.4).
//!
//! Nonblocking forms read and write in the call that starts them, and their requests are complete from the start. The
//! collective ones among them meet nobody, since they may not wait for other members.

use crate::arguments::{Call, Outcome};
use crate::data::Data;
use crate::passed::{Base, Buffer, Out, StatusOut};
use crate::process::requests::State;
use crate::request::publish;
use cohort_abi::{Abi, Count, Handle, Status, neutral};
use cohort_object::file::{Form, Place, Way};

/// What a transfer of so many bytes says.
fn status(bytes: u64) -> Status {
    Status { count_bytes: bytes.cast_signed(), ..Status::EMPTY }
}

/// Reads or writes, and waits for it.
#[inline(never)]
fn blocking<A: Abi, C: Count>(
    call: &Call<'_, A>,
    file: A::File,
    form: Form,
    buffer: Buffer<A, C>,
    target: StatusOut<'_, A>,
) -> Outcome<()> {
    let file = call.on_file(file)?;
    let data = Data::check(call, buffer);
    let (bytes, outcome) = file.access(form, data.as_ref().map(Data::buffer).map_err(Clone::clone));
    target.write(&status(bytes));
    outcome
}

/// Reads or writes, and leaves the outcome to a request.
#[inline(never)]
fn started<A: Abi, C: Count>(
    call: &Call<'_, A>,
    handle: A::File,
    form: Form,
    buffer: Buffer<A, C>,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let file = call.on_file(handle)?;
    let request = call.output(request, "request")?;
    let data = Data::check(call, buffer)?;
    let (bytes, outcome) = file.access(form, Ok(data.buffer()));
    let error = outcome.map_or_else(|error| error.code(), |()| neutral::SUCCESS);
    let status = Status { error, ..status(bytes) };
    publish(call, State::Received { status, comm: handle.neutral() }, request)
}

/// The begin of a split collective.
#[inline(never)]
fn begun<A: Abi, C: Count>(call: &Call<'_, A>, file: A::File, form: Form, buffer: Buffer<A, C>) -> Outcome<()> {
    let file = call.on_file(file)?;
    let data = Data::check(call, buffer);
    file.begin(form, data.as_ref().map(Data::buffer).map_err(Clone::clone))
}

/// The end of a split collective.
#[inline(never)]
fn ended<A: Abi>(call: &Call<'_, A>, file: A::File, form: Form, target: StatusOut<'_, A>) -> Outcome<()> {
    let (bytes, outcome) = call.on_file(file)?.end(form)?;
    target.write(&status(bytes));
    outcome
}

macro_rules! forms {
    ($($(#[$page:meta])* $name:ident $way:ident $place:ident $($collective:ident)?;)*) => {$(
        forms!(@ $(#[$page])* $name $way $place is_all!($($collective)?));
    )*};
    (@ $(#[$page:meta])* $name:ident $way:ident At $all:expr) => {
        $(#[$page])*
        pub fn $name<A: Abi, C: Count>(
            call: &Call<'_, A>,
            file: A::File,
            offset: i64,
            buffer: Buffer<A, C>,
            status: StatusOut<'_, A>,
        ) -> Outcome<()> {
            let form = Form { way: Way::$way, place: Place::At(offset), is_collective: $all };
            blocking(call, file, form, buffer, status)
        }
    };
    (@ $(#[$page:meta])* $name:ident $way:ident $place:ident $all:expr) => {
        $(#[$page])*
        pub fn $name<A: Abi, C: Count>(
            call: &Call<'_, A>,
            file: A::File,
            buffer: Buffer<A, C>,
            status: StatusOut<'_, A>,
        ) -> Outcome<()> {
            let form = Form { way: Way::$way, place: Place::$place, is_collective: $all };
            blocking(call, file, form, buffer, status)
        }
    };
}

macro_rules! is_all {
    () => {
        false
    };
    (all) => {
        true
    };
}

forms! {
    /// `MPI_File_read_at`.
    read_at Read At;
    /// `MPI_File_read_at_all`.
    read_at_all Read At all;
    /// `MPI_File_write_at`.
    write_at Write At;
    /// `MPI_File_write_at_all`.
    write_at_all Write At all;
    /// `MPI_File_read`.
    read Read Own;
    /// `MPI_File_read_all`.
    read_all Read Own all;
    /// `MPI_File_write`.
    write Write Own;
    /// `MPI_File_write_all`.
    write_all Write Own all;
    /// `MPI_File_read_shared`.
    read_shared Read Shared;
    /// `MPI_File_read_ordered`.
    read_ordered Read Shared all;
    /// `MPI_File_write_shared`.
    write_shared Write Shared;
    /// `MPI_File_write_ordered`.
    write_ordered Write Shared all;
}

macro_rules! starts {
    ($($(#[$page:meta])* $name:ident $way:ident $place:ident;)*) => {$(
        starts!(@ $(#[$page])* $name $way $place);
    )*};
    (@ $(#[$page:meta])* $name:ident $way:ident At) => {
        $(#[$page])*
        pub fn $name<A: Abi, C: Count>(
            call: &Call<'_, A>,
            file: A::File,
            offset: i64,
            buffer: Buffer<A, C>,
            request: Out<'_, A::Request>,
        ) -> Outcome<()> {
            let form = Form { way: Way::$way, place: Place::At(offset), is_collective: false };
            started(call, file, form, buffer, request)
        }
    };
    (@ $(#[$page:meta])* $name:ident $way:ident $place:ident) => {
        $(#[$page])*
        pub fn $name<A: Abi, C: Count>(
            call: &Call<'_, A>,
            file: A::File,
            buffer: Buffer<A, C>,
            request: Out<'_, A::Request>,
        ) -> Outcome<()> {
            let form = Form { way: Way::$way, place: Place::$place, is_collective: false };
            started(call, file, form, buffer, request)
        }
    };
}

starts! {
    /// `MPI_File_iread_at`.
    iread_at Read At;
    /// `MPI_File_iread_at_all`.
    iread_at_all Read At;
    /// `MPI_File_iwrite_at`.
    iwrite_at Write At;
    /// `MPI_File_iwrite_at_all`.
    iwrite_at_all Write At;
    /// `MPI_File_iread`.
    iread Read Own;
    /// `MPI_File_iread_all`.
    iread_all Read Own;
    /// `MPI_File_iwrite`.
    iwrite Write Own;
    /// `MPI_File_iwrite_all`.
    iwrite_all Write Own;
    /// `MPI_File_iread_shared`.
    iread_shared Read Shared;
    /// `MPI_File_iwrite_shared`.
    iwrite_shared Write Shared;
}

macro_rules! splits {
    ($($(#[$page:meta])* $begin:ident $(#[$end_page:meta])* $end:ident $way:ident $place:ident;)*) => {$(
        splits!(@ $(#[$page])* $begin $way $place);

        $(#[$end_page])*
        pub fn $end<A: Abi>(
            call: &Call<'_, A>,
            file: A::File,
            _buffer: Base,
            status: StatusOut<'_, A>,
        ) -> Outcome<()> {
            ended(call, file, splits!(% $way $place), status)
        }
    )*};
    (% $way:ident At) => { Form { way: Way::$way, place: Place::At(0), is_collective: true } };
    (% $way:ident $place:ident) => { Form { way: Way::$way, place: Place::$place, is_collective: true } };
    (@ $(#[$page:meta])* $name:ident $way:ident At) => {
        $(#[$page])*
        pub fn $name<A: Abi, C: Count>(
            call: &Call<'_, A>,
            file: A::File,
            offset: i64,
            buffer: Buffer<A, C>,
        ) -> Outcome<()> {
            let form = Form { way: Way::$way, place: Place::At(offset), is_collective: true };
            begun(call, file, form, buffer)
        }
    };
    (@ $(#[$page:meta])* $name:ident $way:ident $place:ident) => {
        $(#[$page])*
        pub fn $name<A: Abi, C: Count>(call: &Call<'_, A>, file: A::File, buffer: Buffer<A, C>) -> Outcome<()> {
            begun(call, file, splits!(% $way $place), buffer)
        }
    };
}

splits! {
    /// `MPI_File_read_at_all_begin`.
    read_at_all_begin
    /// `MPI_File_read_at_all_end`.
    read_at_all_end Read At;
    /// `MPI_File_write_at_all_begin`.
    write_at_all_begin
    /// `MPI_File_write_at_all_end`.
    write_at_all_end Write At;
    /// `MPI_File_read_all_begin`.
    read_all_begin
    /// `MPI_File_read_all_end`.
    read_all_end Read Own;
    /// `MPI_File_write_all_begin`.
    write_all_begin
    /// `MPI_File_write_all_end`.
    write_all_end Write Own;
    /// `MPI_File_read_ordered_begin`.
    read_ordered_begin
    /// `MPI_File_read_ordered_end`.
    read_ordered_end Read Shared;
    /// `MPI_File_write_ordered_begin`.
    write_ordered_begin
    /// `MPI_File_write_ordered_end`.
    write_ordered_end Write Shared;
}
