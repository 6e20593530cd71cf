//! Blocking collectives of intercommunicators that need steps within a group: the first member of each group, its
//! *leader*, exchanges messages with the other group, and the group's own collectives do the rest. Those that only move
//! blocks between members of different groups (gather, scatter, allgather, all-to-all) are one
//! [`Channel::exchange`](crate::exchange::Channel::exchange). The other forms are schedules of `write/two_groups.rs`.

use super::calls::{barrier, bcast, reduce, scatter};
use crate::args::{Blocks, Call, Reduction};
use crate::exchange::{Incoming, Outgoing, may_communicate, wait_for};
use crate::fold::Folder;
use crate::inter::{Intergroup, Root};
use crate::memory::{Scratch, reserve};
use crate::schedule::Message;
use alloc::vec;
use alloc::vec::Vec;
use cohort_core::EngineError;
use cohort_datatype::{Buffer, types};

/// What has become of a step.
type Outcome = Result<(), EngineError>;

/// A group's reduction, at its leader.
struct Sum(Scratch);

impl Sum {
    /// What the other group gets: nothing if it is not the whole group's, by which it hears of that.
    fn data<'a>(&'a self, call: &Reduction<'a>, outcome: Outcome) -> Buffer<'a> {
        match outcome {
            // SAFETY: the scratch has room for so many elements, and the call's type outlives it.
            Ok(()) => unsafe { Buffer::new(self.0.base, call.count(), call.datatype()) },
            Err(_) => Buffer::EMPTY,
        }
    }
}

/// Data that is too long for members that expect so many bytes: that there is no result they hear by truncation.
fn too_long(expected: u64) -> Result<Vec<u8>, EngineError> {
    let mut data = reserve(expected as usize + 1)?;
    data.resize(expected as usize + 1, 0);
    Ok(data)
}

impl Intergroup<'_> {
    /// Runs an operation and waits for its end. A root is named by its [place](Intergroup::place_of), and nobody is in
    /// place.
    ///
    /// # Errors
    /// Those of the operation; [`EngineError::Unsupported`] for one that is for one group only.
    pub fn run(&self, call: &Call<'_>) -> Result<(), EngineError> {
        // Also of those who exchange nothing with the other group.
        may_communicate(self.local.rank(), self.channel.context)?;
        match *call {
            Call::Barrier => self.barrier(),
            Call::Bcast { buffer, root } => self.bcast(buffer, self.root_at(root)),
            Call::Gather { send, receive, root, .. } => match self.root_at(root) {
                Root::Beside => Ok(()),
                Root::Here => self.channel.exchange([], self.incoming(receive)),
                Root::Remote(at) => self.channel.exchange(send.map(|send| self.to(at as usize, send)), []),
            },
            Call::Scatter { send, receive, root, .. } => match self.root_at(root) {
                Root::Beside => Ok(()),
                Root::Here => self.channel.exchange(self.outgoing(send), []),
                Root::Remote(at) => self.channel.exchange([], receive.map(|room| self.from(at as usize, room))),
            },
            Call::Allgather { send, receive } => {
                let outgoing = (0..self.remote.len()).filter_map(|member| Some(self.to(member, send?)));
                self.channel.exchange(outgoing, self.incoming(Some(receive)))
            }
            Call::Alltoall { send, receive } => {
                self.channel.exchange(self.outgoing(send), self.incoming(Some(receive)))
            }
            Call::Reduce { ref reduction, root } => self.reduce(reduction, self.root_at(root)),
            Call::Allreduce { ref reduction } => self.allreduce(reduction),
            Call::ReduceScatter { ref reduction, counts } => self.reduce_scatter(reduction, counts),
            Call::Scan { .. } | Call::Neighbours { .. } => Err(EngineError::Unsupported),
        }
    }

    /// A block to each member of the other group.
    fn outgoing<'d>(&self, blocks: Option<Blocks<'d>>) -> impl Iterator<Item = Outgoing<'d>> {
        let members = 0..self.remote.len();
        members.filter_map(move |member| Some(self.to(member, blocks?.block(member))))
    }

    /// A block from each member of the other group.
    fn incoming<'d>(&self, blocks: Option<Blocks<'d>>) -> impl Iterator<Item = Incoming<'d>> {
        let members = 0..self.remote.len();
        members.filter_map(move |member| Some(self.from(member, blocks?.block(member))))
    }

    fn leads(&self) -> bool {
        self.local.me == 0
    }

    /// The leaders send `out` to each other and receive into `into`; the other members do nothing.
    ///
    /// # Errors
    /// As [`Channel::exchange`].
    pub fn leaders_swap(&self, out: Buffer<'_>, into: Buffer<'_>) -> Result<(), EngineError> {
        if !self.leads() {
            return Ok(());
        }
        self.channel.exchange([self.to(0, out)], [self.from(0, into)])
    }

    /// `MPI_Barrier`: nobody leaves before all members of the other group have come.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`].
    pub fn barrier(&self) -> Result<(), EngineError> {
        let nothing = Buffer::EMPTY;
        barrier(&self.local)?;
        self.leaders_swap(nothing, nothing)?;
        barrier(&self.local)
    }

    /// `MPI_Bcast`.
    ///
    /// # Errors
    /// [`EngineError::Truncated`], [`EngineError::OutOfMemory`].
    fn bcast(&self, data: Buffer<'_>, root: Root) -> Result<(), EngineError> {
        match root {
            Root::Beside => Ok(()),
            Root::Here => self.channel.exchange([self.to(0, data)], []),
            Root::Remote(root) => {
                let mut received = Ok(());
                if self.leads() {
                    received = self.exchange_operands(None, Some(self.from(root as usize, data)));
                    if received.is_err_and(|error| error.as_failure().is_some()) {
                        // There is no data: the others hear of the failure, too.
                        return received;
                    }
                }
                received.and(bcast(&self.local, data, 0))
            }
        }
    }

    /// `MPI_Reduce`: the root gets the reduction of the other group's operands.
    ///
    /// # Errors
    /// [`EngineError::Truncated`]: operands differ in length. [`EngineError::Unsupported`] operation for the type; no
    /// memory.
    fn reduce(&self, call: &Reduction<'_>, root: Root) -> Result<(), EngineError> {
        match root {
            Root::Beside => Ok(()),
            Root::Here => self.exchange_operands(None, Some(self.from(0, call.result))),
            Root::Remote(root) => {
                let (sum, outcome) = self.reduce_here(call)?;
                let out = sum.as_ref().map(|sum| self.to(root as usize, sum.data(call, outcome)));
                match out {
                    None => outcome,
                    out => outcome.and(self.exchange_operands(out, None)),
                }
            }
        }
    }

    /// The reduction of the caller's group's operands, at its leader, and whether it is one: members whose operands
    /// differ in length go on, as the other group and the rest of their own wait for them.
    ///
    /// # Errors
    /// No memory, a failure, or an operation that does not take the type: then nobody waits.
    fn reduce_here(&self, call: &Reduction<'_>) -> Result<(Option<Sum>, Outcome), EngineError> {
        let folder = Folder::new(call.op, call.datatype())?;
        let sum = match self.leads() {
            true => Some(Sum(Scratch::new(&folder, call.count())?)),
            false => None,
        };
        let output = sum.as_ref().map_or(call.output(), |it| it.0.base);
        // SAFETY: the scratch has room for the result; elsewhere than at the leader there is none.
        let here = unsafe { call.to(output) };
        match reduce(&self.local, &here, 0) {
            Err(failure) if failure.as_failure().is_some() => Err(failure),
            outcome => Ok((sum, outcome)),
        }
    }

    /// Sends an operand and receives one, which is to have the length of its room.
    ///
    /// # Errors
    /// As [`Channel::exchange`]; [`EngineError::Truncated`] of a shorter one as well.
    fn exchange_operands(&self, out: Option<Outgoing<'_>>, into: Option<Incoming<'_>>) -> Result<(), EngineError> {
        let mut requests = Vec::new();
        let started = self.channel.start(out, into, &mut requests);
        // The receive comes first.
        let least = |at: usize| if at == 0 { into.map_or(0, |it| it.data.bytes()) } else { 0 };
        let messages = requests.into_iter().enumerate();
        let messages = messages.map(|(at, request)| Message::new(request, least(at), false));
        started.and(wait_for(self.channel.owner, messages, |_, _| {}))
    }

    /// `MPI_Allreduce`: everybody gets the reduction of the other group's operands.
    ///
    /// # Errors
    /// As [`Intergroup::reduce`].
    fn allreduce(&self, call: &Reduction<'_>) -> Result<(), EngineError> {
        let result = call.result;
        let (sum, mut outcome) = self.reduce_here(call)?;
        if let Some(sum) = sum {
            let out = self.to(0, sum.data(call, outcome));
            outcome = outcome.and(self.exchange_operands(Some(out), Some(self.from(0, result))));
            match outcome {
                Ok(()) => {}
                Err(failure) if failure.as_failure().is_some() => return outcome,
                Err(_) => {
                    let mut longer = too_long(result.bytes())?;
                    // SAFETY: bytes that live to the end of the call.
                    let data = unsafe { Buffer::of_bytes(longer.as_mut_ptr(), longer.len() as u64) };
                    return outcome.and(bcast(&self.local, data, 0));
                }
            }
        }
        let passed = bcast(&self.local, result, 0);
        outcome.and(passed)
    }

    /// `MPI_Reduce_scatter` (and `_block`): member *i* gets `counts[i]` elements of the reduction
    /// of the other group's operands. `call.count` is ignored.
    ///
    /// # Errors
    /// As [`Intergroup::reduce`].
    fn reduce_scatter(&self, call: &Reduction<'_>, counts: &[i64]) -> Result<(), EngineError> {
        let total: i64 = counts.iter().sum();
        let call = &call.of(total as u64);
        let mine = counts[self.local.me as usize] as u64;
        let result = call.of(mine).result;
        let (sum, outcome) = self.reduce_here(call)?;
        let Some(sum) = sum else {
            let passed = scatter(&self.local, None, Some(result), 0);
            return outcome.and(passed);
        };
        let folder = Folder::new(call.op, call.datatype())?;
        let theirs = Sum(Scratch::new(&folder, call.count())?);
        let out = self.to(0, sum.data(call, outcome));
        let outcome = outcome.and(self.exchange_operands(Some(out), Some(self.from(0, theirs.data(call, Ok(()))))));
        let starts: Vec<i64> =
            counts.iter().scan(0, |next, count| Some(core::mem::replace(next, *next + count))).collect();
        match outcome {
            Err(failure) if failure.as_failure().is_some() => outcome,
            Err(_) => {
                let longest = counts.iter().copied().max().unwrap_or(0) as u64;
                let mut block = too_long(call.of(longest).result.bytes())?;
                let (lengths, starts) = (vec![block.len() as i64; counts.len()], vec![0; counts.len()]);
                // SAFETY: everybody's block is this one, of bytes that live to the end of the call.
                let blocks = unsafe { Blocks::varying(block.as_mut_ptr(), (&lengths, &starts), &types::MPI_BYTE) };
                outcome.and(scatter(&self.local, Some(blocks), Some(result), 0))
            }
            Ok(()) => {
                // SAFETY: the scratch has room for all elements, and outlives the call.
                let blocks = unsafe { Blocks::varying(theirs.0.base, (counts, &starts), call.datatype()) };
                scatter(&self.local, Some(blocks), Some(result), 0)
            }
        }
    }
}
