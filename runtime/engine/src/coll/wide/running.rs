//! Scripts that go on while their member does something else.
//!
//! A started script is in its rank's list. In any call of the rank that makes progress its owner looks for
//! one whose messages have arrived, takes the following steps up to the next wait, and completes the
//! request after the last one. Only the owner does that, since steps may call a user's operation; the
//! messages themselves move as all others do, also by thieves.

use super::Spread;
use super::between::{self, Sides};
use super::moving::{collect, deal_out, meet, pass_on, tell_each, tell_everyone};
use super::reducing::{allreduce, fold_and_deal_out, prefixes, reduce};
use super::script::{LANES, Script, Step, byte};
use crate::EngineError;
use crate::claim::Claim;
use crate::coll::fold::{Folder, reserve};
use crate::coll::{Blocks, Call, Group};
use crate::datatype::{Layout, pack};
use crate::list::{Linked, Links};
use crate::matching::Want;
use crate::message::Status;
use crate::rank::Rank;
use crate::request::{Request, RequestRef};
use alloc::boxed::Box;
use alloc::vec::Vec;
use cohort_base::Peer;
use core::fmt;

/// Tags of scripts that go on, which no other message in a collective context has; as many for each as it
/// may use.
const FIRST_TAG: i32 = -1000;
const NUMBERS: u32 = 1 << 24;

/// [`Links`] of a rank's list of scripts.
pub(crate) const IN_SCRIPTS: u8 = 0;

/// A script under way.
pub(crate) struct Running {
    script: Script<'static>,
    /// Steps that were taken.
    taken: usize,
    messages: Vec<RequestRef>,
    request: *mut Request,
    status: Status,
    /// Whether a thread of the owner is at it.
    is_taken: bool,
    links: Links<Self>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Running({} steps taken)", self.taken)
    }
}

impl Linked<IN_SCRIPTS> for Running {
    unsafe fn links(this: *mut Self) -> *mut Links<Self> {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).links }
    }
}

/// A script whose messages have arrived. Only a hint: another thread of the owner may be faster.
#[derive(Debug)]
pub(crate) struct ScriptRef {
    rank: &'static Rank,
    running: *mut Running,
}

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
}

impl Station {
    /// The place of the caller's next operation.
    pub(in crate::coll) fn next(group: &Group<'_>, spread: &Spread) -> Self {
        Self {
            rank: group.rank.node().rank(group.rank.id()),
            context: group.context,
            me: group.me,
            members: group.world.to_vec(),
            number: spread.begin(group),
            sides: None,
        }
    }

    /// Starts an operation; the one before at this place is complete.
    ///
    /// # Safety
    /// All that `call` refers to, and the buffers, live until the request is complete.
    ///
    /// # Errors
    /// No memory, or a predefined operation that does not take the type; then the member has not taken part.
    pub(in crate::coll) unsafe fn start(&self, call: &Call<'_>) -> Result<RequestRef, EngineError> {
        // SAFETY: the caller keeps what the arguments refer to until the request is complete, and the
        // script uses them until then.
        let call = unsafe { core::mem::transmute::<Call<'_>, Call<'static>>(*call) };
        let folder = match call.reduction() {
            Some(call) => Some(Folder::new(call.op, call.datatype)?),
            None => None,
        };
        let tag = FIRST_TAG - (self.number % NUMBERS * LANES) as i32;
        let mut script = Script::lasting(self, folder, tag);
        match &self.sides {
            Some(sides) => between::write(&mut script, &call, sides, folder)?,
            // SAFETY: the caller's promise.
            None => unsafe { write(&mut script, &call, folder)? },
        }
        let mut claim = self.rank.enter();
        let request =
            Request::make(&mut claim, None, Want::NOTHING).ok_or(EngineError::OutOfMemory)?;
        let running = Box::into_raw(Box::new(Running {
            script,
            taken: 0,
            messages: Vec::new(),
            request: request.as_ptr(),
            status: Status::EMPTY,
            is_taken: false,
            links: Links::NONE,
        }));
        // SAFETY: fresh, and in no list.
        unsafe { claim.state().scripts.push(running) };
        drop(claim);
        let rank = self.rank;
        ScriptRef { rank, running }.work();
        Ok(RequestRef(request))
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
            fold_and_deal_out(script, folder, reduction, counts)
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

/// A script of the claimed rank that can go on, for its owner.
pub(crate) fn next(claim: &mut Claim<'_>) -> Option<ScriptRef> {
    let scripts = &claim.state().scripts;
    // SAFETY: elements of the list are valid.
    let running = scripts.find(|running| unsafe { (*running).can_go_on() });
    let rank = claim.rank();
    (!running.is_null()).then(|| ScriptRef {
        rank: rank.node().rank(rank.id()),
        running,
    })
}

impl ScriptRef {
    /// Goes on up to the next wait for messages that are still on their way, or to the end. By the owner,
    /// without its claim.
    pub(crate) fn work(&self) {
        let mut claim = self.rank.enter();
        // SAFETY: what is in the list is valid; what is not may be gone, and is not looked at.
        unsafe {
            let scripts = &claim.state().scripts;
            let found = scripts.find(|running| running == self.running);
            if found.is_null() || !(*found).can_go_on() {
                return;
            }
            (*found).is_taken = true;
            drop(claim);
            // Nobody else touches it while it is taken.
            let is_over = (*found).go_on();
            let mut claim = self.rank.enter();
            if !is_over {
                (*found).is_taken = false;
                return;
            }
            claim.state().scripts.remove(found);
            let running = Box::from_raw(found);
            Request::complete(running.request, running.status);
        }
    }
}

impl Running {
    /// Whether the messages that it waits for have arrived, and no thread is at it.
    fn can_go_on(&self) -> bool {
        !self.is_taken && self.messages.iter().all(|message| message.is_complete())
    }

    /// Takes steps. Says whether the script is over.
    fn go_on(&mut self) -> bool {
        loop {
            if matches!(self.script.step(self.taken), Some(Step::Wait) | None) {
                let mut messages = self.messages.iter();
                if !messages.all(|message| message.is_complete()) {
                    return false;
                }
                let outcome = self.script.finish(&mut self.messages);
                self.note(outcome);
            }
            let Some(step) = self.script.step(self.taken) else {
                return true;
            };
            // SAFETY: the buffers are live until the request is complete.
            let outcome = unsafe { self.script.begin(step, &mut self.messages) };
            self.taken += 1;
            self.note(outcome);
        }
    }

    /// Remembers the first failure.
    fn note(&mut self, outcome: Result<(), EngineError>) {
        if self.status.error == Status::SUCCESS {
            self.status.error = match outcome {
                Ok(()) => Status::SUCCESS,
                Err(EngineError::Truncated { .. }) => Status::TRUNCATE,
                Err(_) => Status::NO_MEMORY,
            };
        }
    }
}
