//! Collectives of intercommunicators (MPI-4.1 section 6.2.2): who sends what to whom.

use super::parts::{Members, Parts};
use crate::arguments::{Error, Outcome};
use crate::data::Data;
use cohort_abi::{Abi, neutral};
use cohort_engine::EngineError;
use cohort_engine::coll::exchange::{Incoming, Outgoing};
use cohort_engine::coll::inter::{Intergroup, Root};
use cohort_object::blame;
use core::ffi::c_int;

/// The root argument.
///
/// # Errors
/// `MPI_ERR_ROOT`.
pub fn root<A: Abi>(inter: &Intergroup<'_>, root: c_int) -> Outcome<Root> {
    match A::rank_in(root) {
        neutral::ROOT => Ok(Root::Here),
        neutral::PROC_NULL => Ok(Root::Beside),
        rank => match u32::try_from(rank) {
            Ok(rank) if (rank as usize) < inter.remote.len() => Ok(Root::Remote(rank)),
            _ => {
                let last = inter.remote.len() - 1;
                let what = format_args!("the root is {root}, it can be MPI_ROOT, MPI_PROC_NULL or 0 to {last}");
                Err(blame(neutral::ERR_ROOT, what))
            }
        },
    }
}

/// `MPI_Gather` and `MPI_Gatherv`; each argument is checked where it matters.
///
/// # Errors
/// What the checks say, `MPI_ERR_TRUNCATE`, `MPI_ERR_NO_MEM`.
pub fn gather<R: Parts>(
    inter: &Intergroup<'_>,
    at: Root,
    send: impl FnOnce() -> Outcome<Data>,
    receive: impl FnOnce() -> Outcome<R>,
) -> Outcome<()> {
    let done = match at {
        Root::Beside => Ok(()),
        Root::Here => {
            let receive = receive()?;
            let members = 0..inter.remote.len();
            let messages = members.map(|member| inter.from(member, receive.part(member)));
            exchange(inter, [], messages)
        }
        Root::Remote(at) => {
            let send = send()?;
            let message = inter.to(at as usize, send.buffer());
            exchange(inter, [message], [])
        }
    };
    done.map_err(|error| inter.failure(error))
}

/// `MPI_Scatter` and `MPI_Scatterv`; each argument is checked where it matters.
///
/// # Errors
/// As [`gather`].
pub fn scatter<S: Parts>(
    inter: &Intergroup<'_>,
    at: Root,
    send: impl FnOnce() -> Outcome<S>,
    receive: impl FnOnce() -> Outcome<Data>,
) -> Outcome<()> {
    let done = match at {
        Root::Beside => Ok(()),
        Root::Here => {
            let send = send()?;
            let members = 0..inter.remote.len();
            let messages = members.map(|member| inter.to(member, send.part(member)));
            exchange(inter, messages, [])
        }
        Root::Remote(at) => {
            let receive = receive()?;
            let message = inter.from(at as usize, receive.buffer());
            exchange(inter, [], [message])
        }
    };
    done.map_err(|error| inter.failure(error))
}

/// `MPI_Allgather(v)`: the whole of `send` to everyone in the other group.
///
/// # Errors
/// `MPI_ERR_BUFFER` for in-place, `MPI_ERR_TRUNCATE`, `MPI_ERR_NO_MEM`.
pub fn allgather(inter: &Intergroup<'_>, send: Option<Data>, receive: &impl Parts) -> Outcome<()> {
    let send = send.ok_or_else(in_place_refused)?;
    let members = 0..inter.remote.len();
    let outgoing = members.clone().map(|member| inter.to(member, send.buffer()));
    let incoming = members.map(|member| inter.from(member, receive.part(member)));
    exchange(inter, outgoing, incoming).map_err(|error| inter.failure(error))
}

/// `MPI_Alltoall(v,w)`: a block to everyone in the other group.
///
/// # Errors
/// As [`allgather`].
pub fn alltoall<P: Parts>(inter: &Intergroup<'_>, send: Option<P>, receive: &P) -> Outcome<()> {
    let send = send.ok_or_else(in_place_refused)?;
    let members = 0..inter.remote.len();
    let outgoing = members.clone().map(|member| inter.to(member, send.part(member)));
    let incoming = members.map(|member| inter.from(member, receive.part(member)));
    exchange(inter, outgoing, incoming).map_err(|error| inter.failure(error))
}

/// Exchanges messages with the other group.
fn exchange<'d>(
    inter: &Intergroup<'_>,
    outgoing: impl IntoIterator<Item = Outgoing<'d>>,
    incoming: impl IntoIterator<Item = Incoming<'d>>,
) -> Result<(), EngineError> {
    inter.channel.exchange(outgoing, incoming)
}

/// Intercommunicators have no in-place form (MPI 6.2.2).
pub fn in_place_refused() -> Error {
    let what = format_args!("it is MPI_IN_PLACE on an intercommunicator");
    blame(neutral::ERR_BUFFER, what)
}
