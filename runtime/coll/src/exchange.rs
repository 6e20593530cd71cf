//! Messages among members: what collectives use whose members do not all take part
//! in each step (neighbourhoods, the two groups of an intercommunicator).
//!
//! The messages travel in the communicator's collective context. Members call collectives in the
//! same order and messages between two processes do not overtake each other, so messages of
//! different calls need no different tags. Tags are negative here; nonnegative ones in this
//! context belong to the construction of communicators (`MPI_Comm_create_group`, the leaders of
//! `MPI_Intercomm_create`), which goes on when a collective has failed.

use super::schedule::{Message, Told};
use crate::args::{Blocks, Call, Neighbour};
use alloc::vec::Vec;
use cohort_base::Peer;
use cohort_core::EngineError;
use cohort_core::Owner;
use cohort_core::message::{Envelope, SendMode, Source, Tag};
use cohort_core::rank::Rank;
use cohort_core::request::RequestRef;
use cohort_core::wait::until_claimed;
use cohort_datatype::Buffer;
use cohort_p2p::{irecv, isend};

/// What a member sends to another.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The receiver.
    pub to: Peer,
    /// Tells messages of one call between the same processes apart; negative in a collective.
    pub tag: i32,
    /// The data.
    pub data: Buffer<'a>,
}

/// What a member receives from another.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// The sender.
    pub from: Peer,
    /// The sender's rank in its group of the communicator.
    pub member: u32,
    /// As the sender's.
    pub tag: i32,
    /// Room for the data.
    pub data: Buffer<'a>,
}

/// The edges between a member and its neighbours, and what goes along them: the arguments of [`Call::Neighbours`].
#[derive(Clone, Copy)]
pub struct Edges<'a> {
    pub(crate) sources: &'a [Neighbour],
    pub(crate) destinations: &'a [Neighbour],
    pub(crate) send: Blocks<'a>,
    pub(crate) to_all: bool,
    pub(crate) receive: Blocks<'a>,
}

/// Tag of the messages of a lane; collectives have negative tags.
fn tag(lane: u32) -> i32 {
    -1 - lane as i32
}

impl<'a> Edges<'a> {
    /// Those of this call, if it is one to neighbours.
    #[inline]
    #[must_use]
    pub fn of(call: &Call<'a>) -> Option<Self> {
        match *call {
            Call::Neighbours { sources, destinations, send, to_all, receive } => {
                Some(Self { sources, destinations, send, to_all, receive })
            }
            _ => None,
        }
    }

    /// What goes along the edge to destination `number`.
    #[inline]
    pub(crate) fn block(&self, number: usize) -> Buffer<'a> {
        self.send.block(if self.to_all { 0 } else { number })
    }

    /// The messages to all destinations, of members of `peers`.
    pub fn outgoing(&self, peers: &'a [Peer]) -> impl Iterator<Item = Outgoing<'a>> {
        self.destinations.iter().enumerate().filter_map(move |(number, neighbour)| {
            let to = *peers.get(neighbour.rank? as usize)?;
            Some(Outgoing { to, tag: tag(neighbour.lane), data: self.block(number) })
        })
    }

    /// Those from all sources.
    pub fn incoming(&self, peers: &'a [Peer]) -> impl Iterator<Item = Incoming<'a>> {
        (0..self.sources.len()).filter_map(move |number| self.incoming_along(peers, number))
    }

    /// The one from source `number`.
    pub(crate) fn incoming_along(&self, peers: &'a [Peer], number: usize) -> Option<Incoming<'a>> {
        let neighbour = self.sources[number];
        let member = neighbour.rank?;
        let (from, tag) = (*peers.get(member as usize)?, tag(neighbour.lane));
        Some(Incoming { from, member, tag, data: self.receive.block(number) })
    }
}

/// A member's access to the messages of one communicator's collectives.
#[derive(Clone, Copy)]
pub struct Channel<'a> {
    /// The witness of the call, and so the calling rank.
    pub owner: Owner<'a>,
    /// The communicator's collective context.
    pub context: u32,
    /// The caller's rank in its group of the communicator.
    pub me: u32,
}

impl Channel<'_> {
    /// Sends and receives all of these, and waits until that is done.
    ///
    /// # Errors
    /// [`EngineError::Truncated`] when a message is longer than its room, after everything else
    /// was done; [`EngineError::OutOfMemory`], when some messages may be missing.
    pub fn exchange<'d>(
        &self,
        outgoing: impl IntoIterator<Item = Outgoing<'d>>,
        incoming: impl IntoIterator<Item = Incoming<'d>>,
    ) -> Result<(), EngineError> {
        let mut requests = Vec::new();
        let started = self.start(outgoing, incoming, &mut requests);
        started.and(finish(self.owner, requests))
    }

    /// Starts all of these, receives first, and adds their requests to `requests`.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`]; what was started before goes on.
    pub fn start<'d>(
        &self,
        outgoing: impl IntoIterator<Item = Outgoing<'d>>,
        incoming: impl IntoIterator<Item = Incoming<'d>>,
        requests: &mut Vec<RequestRef>,
    ) -> Result<(), EngineError> {
        let state = may_communicate(self.owner.rank(), self.context);
        if state == Err(EngineError::Revoked) {
            return state;
        }
        let may = |tag: i32| if tag < 0 { state } else { Ok(()) };
        let mut keep = |request| {
            requests.try_reserve(1).map_err(|_| EngineError::OutOfMemory)?;
            requests.push(request);
            Ok(())
        };
        for message in incoming {
            may(message.tag)?;
            let claim = &mut self.owner.rank().enter();
            let from = Source::Rank { peer: message.from, comm_rank: message.member as i32 };
            let tag = Tag::Is(message.tag);
            keep(irecv(claim, message.data, from, self.context, tag)?)?;
        }
        for message in outgoing {
            may(message.tag)?;
            let claim = &mut self.owner.rank().enter();
            let envelope = Envelope { context: self.context, source: self.me as i32, tag: message.tag };
            let (to, mode) = (message.to, SendMode::Standard);
            keep(isend(claim, message.data, to, envelope, mode)?)?;
        }
        Ok(())
    }
}

/// Whether collectives in this context may still come to their end.
///
/// # Errors
/// Why not: a member has failed, or the communicator was revoked.
pub(crate) fn may_communicate(rank: &Rank, context: u32) -> Result<(), EngineError> {
    let node = rank.node();
    // Who revokes closes the context of messages first, and who has heard of that is refused collectives, too.
    match (node.is_closed(context & !1), node.is_closed(context)) {
        (true, _) => Err(EngineError::Revoked),
        (false, true) => Err(EngineError::Failed),
        (false, false) => Ok(()),
    }
}

/// The end of every exchange.
pub(crate) fn finish(owner: Owner<'_>, requests: Vec<RequestRef>) -> Result<(), EngineError> {
    let messages = requests.into_iter();
    wait_for(owner, messages.map(|request| Message::new(request, 0, false)), |_, _| {})
}

/// Waits for messages under way, and releases them. `hear` is told what became of each.
///
/// # Errors
/// As [`Message::end`].
#[inline]
pub(crate) fn wait_for(
    owner: Owner<'_>,
    messages: impl IntoIterator<Item = Message>,
    hear: impl Fn(Told, Result<(), EngineError>),
) -> Result<(), EngineError> {
    let mut outcome = Ok(());
    let mut claim = owner.rank().enter();
    for message in messages {
        claim = until_claimed(owner, claim, message.request(), |_| message.is_complete());
        let (reports_to, ended) = (message.reports_to(), message.end(&mut claim));
        hear(reports_to, ended);
        outcome = outcome.and(ended);
    }
    outcome
}
