//! Which data goes from which member to which.

use crate::args::{Call, Neighbour};
use cohort_datatype::Buffer;

/// What member `from` gives to member `to`, and what that one expects of it, if they exchange data of a known size.
pub(super) fn between<'a>(giver: &Call<'a>, from: u32, taker: &Call<'a>, to: u32) -> Option<(Buffer<'a>, Buffer<'a>)> {
    if let (Call::Neighbours { destinations, .. }, Call::Neighbours { sources, .. }) = (giver, taker) {
        return edge(giver, destinations, from, taker, sources, to);
    }
    Some((given(giver, from, to)?, taken(taker, from, to)?))
}

/// The same for the first edge between two neighbours.
fn edge<'a>(
    giver: &Call<'a>,
    destinations: &[Neighbour],
    from: u32,
    taker: &Call<'a>,
    sources: &[Neighbour],
    to: u32,
) -> Option<(Buffer<'a>, Buffer<'a>)> {
    let out = destinations.iter().position(|it| it.rank == Some(to))?;
    let lane = destinations[out].lane;
    let into = (sources.iter()).position(|it| it.rank == Some(from) && it.lane == lane)?;
    match (giver, taker) {
        (Call::Neighbours { send, to_all, .. }, Call::Neighbours { receive, .. }) => {
            let block = if *to_all { 0 } else { out };
            Some((send.block(block), receive.block(into)))
        }
        _ => None,
    }
}

/// What member `me` gives to member `to`.
pub(super) fn given<'a>(call: &Call<'a>, me: u32, to: u32) -> Option<Buffer<'a>> {
    match call {
        Call::Bcast { buffer, root } if *root == me => Some(*buffer),
        Call::Gather { send, root, .. } if *root == to => *send,
        Call::Scatter { send, root, .. } if *root == me => send.map(|it| it.block(to as usize)),
        Call::Allgather { send, receive } => Some(send.unwrap_or_else(|| receive.block(me as usize))),
        Call::Alltoall { send, receive } => Some(send.as_ref().unwrap_or(receive).block(to as usize)),
        _ => call.reduction().map(|it| it.result),
    }
}

/// What member `me` expects of member `from`.
pub(super) fn taken<'a>(call: &Call<'a>, from: u32, me: u32) -> Option<Buffer<'a>> {
    match call {
        Call::Bcast { buffer, root } if *root == from => Some(*buffer),
        Call::Gather { receive, root, .. } if *root == me => receive.map(|it| it.block(from as usize)),
        Call::Scatter { receive, root, .. } if *root == from => *receive,
        Call::Allgather { receive, .. } | Call::Alltoall { receive, .. } => Some(receive.block(from as usize)),
        _ => call.reduction().map(|it| it.result),
    }
}
