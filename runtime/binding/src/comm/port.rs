//! Processes that meet while the job runs (MPI-5.0, 11.9 and 11.10.5).

use super::intercomm::leader;
use super::{publish, room};
use crate::arguments::{Call, Outcome, only_intra};
use crate::text::give_text;
use cohort_abi::parameters::{Out, ResultPlace, Text, TextOut};
use cohort_abi::{Abi, Constants, Handle, neutral};
use cohort_object::{Comm, ports};
use core::ffi::c_int;
use neutral::handle::{COMM_NULL, COMM_SELF};

/// `MPI_Open_port`. No key of the info argument is known.
pub fn open_port<A: Abi>(call: &Call<'_, A>, _info: A::Info, name: TextOut<'_>) -> Outcome<()> {
    let opened = ports::open(call.rank())?;
    give_text(&opened, name, <A as Constants>::MAX_PORT_NAME).map(drop)
}

/// `MPI_Close_port`.
pub fn close_port<A: Abi>(call: &Call<'_, A>, name: Text<'_>) -> Outcome<()> {
    ports::close(call.rank(), word(call, name, "port_name")?)
}

/// A text of the program's.
fn word<'c, A: Abi>(call: &Call<'_, A>, text: Text<'c>, name: &'static str) -> Outcome<&'c str> {
    call.text(text, name)?.to_str().map_err(|_| neutral::ERR_ARG.into())
}

/// `MPI_Comm_accept` and `MPI_Comm_connect`: the port matters at the root only.
fn meet<A: Abi>(
    call: &Call<'_, A>,
    (root, comm): (c_int, A::Comm),
    port: Text<'_>,
    target: Out<'_, A::Comm>,
    how: impl FnOnce(&Comm, u32, &str) -> Outcome<Comm>,
) -> Outcome<()> {
    let comm = call.on_comm(comm)?;
    let target = call.output(target, "newcomm")?;
    only_intra(comm)?;
    let root = leader(root, "root", comm.size())?;
    let target = preset(call, target);
    // A name that is none is refused where it is looked up, so that all members hear of it.
    let port = match root == comm.me() {
        true => word(call, port, "port_name").unwrap_or_default(),
        false => "",
    };
    publish(call, Some(how(comm, root, port)?), target)
}

fn preset<'c, A: Abi>(call: &Call<'_, A>, target: ResultPlace<'c, A::Comm>) -> ResultPlace<'c, A::Comm> {
    target.preset(A::Comm::from_neutral(call.context(), COMM_NULL));
    target
}

/// `MPI_Comm_accept`.
pub fn accept<A: Abi>(
    call: &Call<'_, A>,
    port: Text<'_>,
    _info: A::Info,
    root: c_int,
    comm: A::Comm,
    target: Out<'_, A::Comm>,
) -> Outcome<()> {
    meet(call, (root, comm), port, target, |comm, root, port| comm.accept(root, port, room(call)))
}

/// `MPI_Comm_connect`.
pub fn connect<A: Abi>(
    call: &Call<'_, A>,
    port: Text<'_>,
    _info: A::Info,
    root: c_int,
    comm: A::Comm,
    target: Out<'_, A::Comm>,
) -> Outcome<()> {
    meet(call, (root, comm), port, target, |comm, root, port| comm.call_at(root, port, room(call)))
}

/// `MPI_Comm_join`.
pub fn join<A: Abi>(call: &Call<'_, A>, socket: c_int, target: Out<'_, A::Comm>) -> Outcome<()> {
    let target = preset(call, call.output(target, "intercomm")?);
    let alone = call.objects().comm(COMM_SELF)?;
    publish(call, Some(alone.join(socket, room(call))?), target)
}

/// `MPI_Publish_name`.
pub fn publish_name<A: Abi>(call: &Call<'_, A>, service: Text<'_>, _info: A::Info, port: Text<'_>) -> Outcome<()> {
    ports::publish(call.rank(), word(call, service, "service_name")?, word(call, port, "port_name")?)
}

/// `MPI_Lookup_name`.
pub fn lookup_name<A: Abi>(call: &Call<'_, A>, service: Text<'_>, _info: A::Info, port: TextOut<'_>) -> Outcome<()> {
    let found = ports::lookup(call.rank(), word(call, service, "service_name")?)?;
    give_text(&found, port, <A as Constants>::MAX_PORT_NAME).map(drop)
}

/// `MPI_Unpublish_name`.
pub fn unpublish_name<A: Abi>(call: &Call<'_, A>, service: Text<'_>, _info: A::Info, port: Text<'_>) -> Outcome<()> {
    ports::unpublish(call.rank(), word(call, service, "service_name")?, word(call, port, "port_name")?)
}
