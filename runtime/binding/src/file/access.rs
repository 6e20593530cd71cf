//! Reading and writing (MPI-5.0 section 14.4): each procedure is described once, and what its forms do with the
//! description is here once for all of them.

use super::survive::in_use;
use super::under_way::{Failed, UnderWay, status};
use crate::arguments::{Call, Outcome};
use crate::data::Data;
use crate::process::requests::RequestState;
use crate::request::{has_room, publish, publish_kind};
use cohort_abi::parameters::{Base, Buffer, Out, StatusOut};
use cohort_abi::{Abi, Count, Handle};
use cohort_object::file::{Form, Place, Started, Way};

/// The name of an MPI function.
type Name = &'static &'static str;

/// Reads or writes, and waits for it.
#[inline(never)]
fn waits<A: Abi, C: Count>(
    call: &Call<'_, A>,
    file: A::File,
    (form, _): (Form, Name),
    buffer: Buffer<A, C>,
    target: StatusOut<'_, A>,
) -> Outcome<()> {
    let file = in_use(call, file)?;
    let data = Data::check(call, buffer);
    let (bytes, outcome) = file.access(form, data.as_ref().map(Data::buffer).map_err(Clone::clone));
    target.write(&status(bytes));
    outcome
}

/// Has it go on, and leaves the outcome to a request.
#[inline(never)]
fn starts<A: Abi, C: Count>(
    call: &Call<'_, A>,
    handle: A::File,
    (form, name): (Form, Name),
    buffer: Buffer<A, C>,
    request: Out<'_, A::Request>,
) -> Outcome<()> {
    let file = in_use(call, handle)?;
    let request = call.output(request, "request")?;
    // A member without a handle takes part in what is collective, and moves nothing.
    let data = match has_room(call).and_then(|()| Data::check(call, buffer)) {
        Err(error) if !form.is_collective => return Err(error),
        data => data,
    };
    match file.start(form, data.map(Data::into_owned), name) {
        Started::Over(bytes, Ok(())) => {
            publish(call, RequestState::Received { status: status(bytes), comm: handle.neutral() }, request)
        }
        Started::Over(bytes, Err(error)) => {
            let failed = Failed::new(bytes, error, handle.neutral(), file.unheard().clone());
            publish_kind(call, failed, request)
        }
        Started::UnderWay(operation) => publish_kind(call, UnderWay::new(operation, handle.neutral()), request),
    }
}

/// The begin of a split collective.
#[inline(never)]
fn begins<A: Abi, C: Count>(
    call: &Call<'_, A>,
    file: A::File,
    (form, name): (Form, Name),
    buffer: Buffer<A, C>,
) -> Outcome<()> {
    let file = in_use(call, file)?;
    file.begin(form, Data::check(call, buffer).map(Data::into_owned), name)
}

/// The end of a split collective.
#[inline(never)]
fn ends<A: Abi>(call: &Call<'_, A>, file: A::File, form: Form, target: StatusOut<'_, A>) -> Outcome<()> {
    let (bytes, outcome) = in_use(call, file)?.end(form)?;
    target.write(&status(bytes));
    outcome
}

/// Makes the functions of each procedure from its description: which way data goes, where in the file, who calls it,
/// and the names of its forms.
macro_rules! procedures {
    ($($way:ident $place:ident $who:ident: $($form:ident $name:ident),+;)*) => {$($(
        procedures!(@ $form $name $way $place $who);
    )+)*};

    // The parameters of a form.
    (@ waits $name:ident $($what:ident)+) => {
        procedures!(! waits $name ($($what)+) (status: StatusOut<'_, A>));
    };
    (@ starts $name:ident $($what:ident)+) => {
        procedures!(! starts $name ($($what)+) (request: Out<'_, A::Request>));
    };
    (@ begins $name:ident $($what:ident)+) => {
        procedures!(! begins $name ($($what)+) ());
    };
    (@ ends $name:ident $way:ident $place:ident $who:ident) => {
        #[doc = concat!("`MPI_File_", stringify!($name), "`.")]
        pub fn $name<A: Abi>(
            call: &Call<'_, A>,
            file: A::File,
            _buffer: Base,
            status: StatusOut<'_, A>,
        ) -> Outcome<()> {
            ends(call, file, procedures!(% $way, $place 0, $who), status)
        }
    };

    // The parameters of a place.
    (! $form:ident $name:ident ($way:ident At $who:ident) $last:tt) => {
        procedures!(= $form $name ($way, At offset, $who) (offset: i64) $last);
    };
    (! $form:ident $name:ident ($way:ident $place:ident $who:ident) $last:tt) => {
        procedures!(= $form $name ($way, $place 0, $who) () $last);
    };

    (= $form:ident $name:ident ($($what:tt)+) ($($offset:ident: $number:ty)?) ($($last:ident: $last_type:ty)?)) => {
        #[doc = concat!("`MPI_File_", stringify!($name), "`.")]
        pub fn $name<A: Abi, C: Count>(
            call: &Call<'_, A>,
            file: A::File,
            $($offset: $number,)?
            buffer: Buffer<A, C>,
            $($last: $last_type,)?
        ) -> Outcome<()> {
            let name: Name = &concat!("MPI_File_", stringify!($name));
            $form(call, file, (procedures!(% $($what)+), name), buffer $(, $last)?)
        }
    };

    // What a form is told of its procedure.
    (% $way:ident, At $offset:expr, $who:ident) => {
        Form { way: Way::$way, place: Place::At($offset), is_collective: procedures!(? $who) }
    };
    (% $way:ident, $place:ident $offset:expr, $who:ident) => {
        Form { way: Way::$way, place: Place::$place, is_collective: procedures!(? $who) }
    };
    (? one) => { false };
    (? all) => { true };
}

procedures! {
    Read At one: waits read_at, starts iread_at;
    Read At all: waits read_at_all, starts iread_at_all, begins read_at_all_begin, ends read_at_all_end;
    Read Own one: waits read, starts iread;
    Read Own all: waits read_all, starts iread_all, begins read_all_begin, ends read_all_end;
    Read Shared one: waits read_shared, starts iread_shared;
    Read Shared all: waits read_ordered, begins read_ordered_begin, ends read_ordered_end;
    Write At one: waits write_at, starts iwrite_at;
    Write At all: waits write_at_all, starts iwrite_at_all, begins write_at_all_begin, ends write_at_all_end;
    Write Own one: waits write, starts iwrite;
    Write Own all: waits write_all, starts iwrite_all, begins write_all_begin, ends write_all_end;
    Write Shared one: waits write_shared, starts iwrite_shared;
    Write Shared all: waits write_ordered, begins write_ordered_begin, ends write_ordered_end;
}
