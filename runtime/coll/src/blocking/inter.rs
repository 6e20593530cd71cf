//! Blocking collectives of intercommunicators that need steps within a group: the first member of each group, its
//! *leader*, exchanges messages with the other group, and the group's own collectives do the rest. Those that only move
//! blocks between members of different groups (gather, scatter, allgather, all-to-all) are one
//! [`Channel::exchange`](crate::exchange::Channel::exchange). The other forms are schedules of `write/two_groups.rs`.

use super::calls::{barrier, bcast, reduce, scatter};
use crate::args::{Blocks, Call, Reduction};
use crate::exchange::{Incoming, Outgoing, may_communicate};
use crate::fold::Folder;
use crate::inter::{Intergroup, Root};
use crate::memory::Scratch;
use alloc::vec::Vec;
use cohort_core::EngineError;
use cohort_datatype::Buffer;

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
                    let message = self.from(root as usize, data);
                    received = self.channel.exchange([], [message]);
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
    /// [`EngineError::Unsupported`] operation for the type, or no memory.
    fn reduce(&self, call: &Reduction<'_>, root: Root) -> Result<(), EngineError> {
        // SAFETY: the scratch holds the sum, and outlives the call.
        unsafe {
            match root {
                Root::Beside => Ok(()),
                Root::Here => {
                    let result = call.result;
                    self.channel.exchange([], [self.from(0, result)])
                }
                Root::Remote(root) => {
                    let sum = self.reduce_here(call)?;
                    let Some(sum) = sum else { return Ok(()) };
                    let sum = Buffer::new(sum.base, call.count(), call.datatype());
                    self.channel.exchange([self.to(root as usize, sum)], [])
                }
            }
        }
    }

    /// The reduction of the caller's group's operands, at its leader.
    fn reduce_here(&self, call: &Reduction<'_>) -> Result<Option<Scratch>, EngineError> {
        let folder = Folder::new(call.op, call.datatype())?;
        let scratch = match self.leads() {
            true => Some(Scratch::new(&folder, call.count())?),
            false => None,
        };
        let output = scratch.as_ref().map_or(call.output(), |it| it.base);
        // SAFETY: the scratch has room for the result; elsewhere than at the leader there is none.
        let here = unsafe { call.to(output) };
        reduce(&self.local, &here, 0)?;
        Ok(scratch)
    }

    /// `MPI_Allreduce`: everybody gets the reduction of the other group's operands.
    ///
    /// # Errors
    /// As [`Intergroup::reduce`].
    fn allreduce(&self, call: &Reduction<'_>) -> Result<(), EngineError> {
        let result = call.result;
        // SAFETY: the scratch has room for the sum, and outlives the call.
        unsafe {
            let sum = self.reduce_here(call)?;
            let out = sum.as_ref().map_or(result, |sum| Buffer::new(sum.base, result.count(), result.datatype()));
            self.leaders_swap(out, result)?;
            bcast(&self.local, result, 0)
        }
    }

    /// `MPI_Reduce_scatter` (and `_block`): member *i* gets `counts[i]` elements of the reduction
    /// of the other group's operands. `call.count` is ignored.
    ///
    /// # Errors
    /// As [`Intergroup::reduce`].
    fn reduce_scatter(&self, call: &Reduction<'_>, counts: &[i64]) -> Result<(), EngineError> {
        let total: i64 = counts.iter().sum();
        let call = &call.of(total as u64);
        let starts: Vec<i64> =
            counts.iter().scan(0, |next, count| Some(core::mem::replace(next, *next + count))).collect();
        let mine = counts[self.local.me as usize] as u64;
        let result = call.of(mine).result;
        // SAFETY: both scratches have room for all elements, and outlive the call.
        unsafe {
            let sum = self.reduce_here(call)?;
            let Some(sum) = sum else {
                return scatter(&self.local, None, Some(result), 0);
            };
            let folder = Folder::new(call.op, call.datatype())?;
            let theirs = Scratch::new(&folder, call.count())?;
            let whole = |base| Buffer::new(base, call.count(), call.datatype());
            self.leaders_swap(whole(sum.base), whole(theirs.base))?;
            let blocks = Blocks::varying(theirs.base, (counts, &starts), call.datatype());
            scatter(&self.local, Some(blocks), Some(result), 0)
        }
    }
}
