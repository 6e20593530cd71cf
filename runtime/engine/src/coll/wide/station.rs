//! One member's place in a sequence of collectives that do not block, and the scripts of these.

use super::between::{self, Sides};
use super::joint;
use super::moving::{collect, deal_out, meet, pass_on, tell_each, tell_everyone};
use super::reducing::{allreduce, prefixes, reduce, reduce_scatter};
use super::running::start;
use super::script::{LANES, Script, byte};
use super::spread::{Homes, Spread};
use crate::EngineError;
use crate::coll::fold::{Folder, reserve};
use crate::coll::{Blocks, Call, Group};
use crate::datatype::{Layout, pack};
use crate::rank::Rank;
use crate::request::RequestRef;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_base::Peer;

/// Tags of scripts that go on, which no other message in a collective context has; as many for each as it
/// may use.
const FIRST_TAG: i32 = -1000;
const NUMBERS: u32 = 1 << 24;

/// One member's place in the operations of one tag: a nonblocking collective, or all starts of a
/// persistent one.
#[derive(Debug)]
pub(in crate::coll) struct Station {
    pub(super) rank: &'static Rank,
    pub(super) context: u32,
    pub(super) me: u32,
    pub(super) members: Vec<Peer>,
    pub(super) number: u32,
    /// The two groups, of an intercommunicator.
    pub(super) sides: Option<Sides>,
    /// Of a persistent operation among nodes with several members: where these live and their starts meet.
    pub(super) neighbours: Option<(Arc<Homes>, joint::Chain)>,
}

/// Starts the caller's next operation among nodes, which is not persistent.
///
/// # Safety
/// As [`Station::start`].
///
/// # Errors
/// As [`Station::start`].
pub(in crate::coll) unsafe fn start_once(
    group: &Group<'_>,
    spread: &Spread,
    call: &Call<'_>,
) -> Result<RequestRef, EngineError> {
    let station = Station::next(group, spread);
    // SAFETY: the caller's promise.
    unsafe {
        match joint::root_of(station.rank, call, spread) {
            Some(root) => joint::start(&station, &spread.place(group), spread, call, root),
            None => station.start(call),
        }
    }
}

impl Station {
    /// The place of the caller's next operation.
    fn next(group: &Group<'_>, spread: &Spread) -> Self {
        Self {
            rank: group.rank.node().rank(group.rank.id()),
            context: group.context,
            me: group.me,
            members: group.world.to_vec(),
            number: spread.begin(group),
            sides: None,
            neighbours: None,
        }
    }

    /// The same for all starts of a persistent one.
    ///
    /// # Errors
    /// No memory.
    pub(in crate::coll) fn repeated(
        group: &Group<'_>,
        spread: &Spread,
    ) -> Result<Self, EngineError> {
        let mut station = Self::next(group, spread);
        if spread.has_neighbours() {
            let place = spread.place(group);
            let chain = joint::Chain::open(&place, &mut group.rank.enter());
            let chain = chain.ok_or(EngineError::OutOfMemory)?;
            station.neighbours = Some((spread.homes(), chain));
        }
        Ok(station)
    }

    /// The first of the tags of its messages.
    pub(super) fn tag(&self) -> i32 {
        FIRST_TAG - (self.number % NUMBERS * LANES) as i32
    }

    /// Starts an operation; the one before at this place is complete.
    ///
    /// # Safety
    /// All that `call` refers to, and the buffers, live until the request is complete.
    ///
    /// # Errors
    /// No memory, or a predefined operation that does not take the type; then the member has not taken part.
    pub(in crate::coll) unsafe fn start(&self, call: &Call<'_>) -> Result<RequestRef, EngineError> {
        if let Some((homes, chain)) = &self.neighbours
            && let Some(root) = joint::root_of(self.rank, call, homes)
        {
            // SAFETY: the caller's promise.
            return unsafe { joint::start(self, &chain.place(), homes, call, root) };
        }
        // SAFETY: the caller keeps what the arguments refer to until the request is complete, and the
        // script uses them until then.
        let call = unsafe { core::mem::transmute::<Call<'_>, Call<'static>>(*call) };
        let folder = match call.reduction() {
            Some(call) => Some(Folder::new(call.op, call.datatype)?),
            None => None,
        };
        let mut script = Script::lasting(self, self.rank, self.me, folder);
        match &self.sides {
            Some(sides) => between::write(&mut script, &call, sides, folder)?,
            // SAFETY: the caller's promise.
            None => unsafe { write(&mut script, &call, folder)? },
        }
        start(script)
    }
}

/// Writes the steps of an operation.
///
/// # Safety
/// As [`Station::start`].
unsafe fn write(
    script: &mut Script<'static>,
    call: &Call<'static>,
    folder: Option<Folder<'static>>,
) -> Result<(), EngineError> {
    match folder {
        Some(folder) => write_fold(script, call, &folder),
        // SAFETY: the caller's promise.
        None => unsafe { write_moves(script, call) },
    }
}

/// [`write`] for operations that fold.
fn write_fold(
    script: &mut Script<'static>,
    call: &Call<'static>,
    folder: &Folder<'static>,
) -> Result<(), EngineError> {
    let everyone = script.everyone();
    match call {
        Call::Reduce { reduction, root } => {
            reduce(script, everyone, folder, reduction, *root as usize)
        }
        Call::Allreduce { reduction } => allreduce(script, everyone, folder, reduction),
        Call::ReduceScatter { reduction, counts } => {
            reduce_scatter(script, folder, reduction, counts)
        }
        Call::Scan { reduction, kind } => prefixes(script, folder, reduction, *kind),
        _ => Err(EngineError::Unsupported),
    }
}

/// [`write`] for operations that only move data.
///
/// # Safety
/// As [`write`].
unsafe fn write_moves(
    script: &mut Script<'static>,
    call: &Call<'static>,
) -> Result<(), EngineError> {
    let (me, _) = script.place();
    let everyone = script.everyone();
    match *call {
        Call::Barrier => meet(script, everyone),
        Call::Bcast { buffer, root } => pass_on(script, everyone, buffer, root as usize)?,
        Call::Gather {
            send,
            receive,
            root,
        } => collect(script, send, receive, root as usize),
        Call::Scatter {
            send,
            receive,
            root,
        } => deal_out(script, send, receive, root as usize),
        Call::Allgather { send, receive } => {
            let own = receive.block(me);
            if let Some(send) = send {
                script.copy(send, own);
            }
            tell_everyone(script, send.unwrap_or(own), receive);
        }
        Call::Alltoall { send, receive } => match send {
            Some(send) => {
                script.copy(send.block(me), receive.block(me));
                tell_each(script, send, receive);
            }
            // SAFETY: the receive blocks hold what this member sends.
            None => unsafe { swap_in_place(script, &receive)? },
        },
        Call::Neighbours {
            sources,
            destinations,
            send,
            to_all,
            receive,
        } => {
            for (number, source) in sources.iter().enumerate() {
                if let Some(rank) = source.rank {
                    script.receive_along(rank as usize, source.lane, receive.block(number));
                }
            }
            for (number, destination) in destinations.iter().enumerate() {
                if let Some(rank) = destination.rank {
                    let block = send.block(if to_all { 0 } else { number });
                    script.send_along(rank as usize, destination.lane, block);
                }
            }
        }
        _ => return Err(EngineError::Unsupported),
    }
    Ok(())
}

/// Steps of an all-to-all in place: what is sent is packed first.
///
/// # Safety
/// The blocks are live.
unsafe fn swap_in_place(
    script: &mut Script<'static>,
    blocks: &Blocks<'static>,
) -> Result<(), EngineError> {
    let (me, size) = script.place();
    let others = || (1..size).map(|distance| (me + distance) % size);
    let total: u64 = others().map(|member| blocks.block(member).bytes()).sum();
    let mut packed: Vec<u8> = reserve(total as usize)?;
    let mut room = packed.as_mut_ptr();
    for member in others() {
        script.receive(member, blocks.block(member));
    }
    for member in others() {
        let block = blocks.block(member);
        let bytes = block.bytes();
        // SAFETY: the caller's promise; the sum is reserved, and kept with the script.
        unsafe { pack(block, 0, room, bytes) };
        script.send(member, Layout::new(room, bytes, byte()));
        room = room.wrapping_add(bytes as usize);
    }
    script.keep(packed);
    Ok(())
}
