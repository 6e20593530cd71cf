//! Blocking collectives of intercommunicators that need steps within a group: the first member of each group, its
//! *leader*, exchanges messages with the other group, and the group's own collectives do the rest. Those that only move
//! blocks between members of different groups (gather, scatter, allgather, all-to-all) are one
//! [`Channel::exchange`](crate::exchange::Channel::exchange). The other forms are scripts of `write/two_groups.rs`.

use super::calls::{barrier, bcast, reduce, scatter};
use crate::args::{Blocks, Reduction};
use crate::fold::Folder;
use crate::inter::{Intergroup, Root};
use crate::memory::Scratch;
use alloc::vec::Vec;
use cohort_core::EngineError;
use cohort_datatype::Buffer;

impl Intergroup<'_> {
    fn leads(&self) -> bool {
        self.local.me == 0
    }

    /// The leaders send `out` to each other and receive into `into`; the other members do nothing.
    ///
    /// # Safety
    /// Live buffers.
    ///
    /// # Errors
    /// As [`Channel::exchange`].
    pub unsafe fn leaders_swap(
        &self,
        out: Buffer<'_>,
        into: Buffer<'_>,
    ) -> Result<(), EngineError> {
        if !self.leads() {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe {
            self.channel
                .exchange([self.to(0, out)], [self.from(0, into)])
        }
    }

    /// `MPI_Barrier`: nobody leaves before all members of the other group have come.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`].
    pub fn barrier(&self) -> Result<(), EngineError> {
        let nothing = Buffer::EMPTY;
        barrier(&self.local)?;
        // SAFETY: messages without data.
        unsafe { self.leaders_swap(nothing, nothing)? };
        barrier(&self.local)
    }

    /// `MPI_Bcast`.
    ///
    /// # Safety
    /// `data` is a live buffer; it is not touched where the root is [`Root::Beside`].
    ///
    /// # Errors
    /// [`EngineError::Truncated`], [`EngineError::OutOfMemory`].
    pub unsafe fn bcast(&self, data: Buffer<'_>, root: Root) -> Result<(), EngineError> {
        // SAFETY: the caller's promise.
        unsafe {
            match root {
                Root::Beside => Ok(()),
                Root::Here => self.channel.exchange([self.to(0, data)], []),
                Root::Remote(root) => {
                    let mut received = Ok(());
                    if self.leads() {
                        let message = self.from(root as usize, data);
                        received = self.channel.exchange([], [message]);
                    }
                    received.and(bcast(&self.local, data, 0))
                }
            }
        }
    }

    /// `MPI_Reduce`: the root gets the reduction of the other group's operands.
    ///
    /// # Safety
    /// As [`reduce`](crate::reduce): the operand of members whose root is remote and the output of
    /// the root are live.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] operation for the type, or no memory.
    pub unsafe fn reduce(&self, call: &Reduction<'_>, root: Root) -> Result<(), EngineError> {
        // SAFETY: the caller's promise.
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
    ///
    /// # Safety
    /// As [`Intergroup::reduce`].
    unsafe fn reduce_here(&self, call: &Reduction<'_>) -> Result<Option<Scratch>, EngineError> {
        let folder = Folder::new(call.op, call.datatype())?;
        let scratch = match self.leads() {
            true => Some(Scratch::new(&folder, call.count())?),
            false => None,
        };
        let output = scratch.as_ref().map_or(call.output(), |it| it.base);
        let here = call.to(output);
        // SAFETY: the operand is the caller's; the output is read at the leader only.
        unsafe { reduce(&self.local, &here, 0)? };
        Ok(scratch)
    }

    /// `MPI_Allreduce`: everybody gets the reduction of the other group's operands.
    ///
    /// # Safety
    /// As [`allreduce`](crate::allreduce).
    ///
    /// # Errors
    /// As [`Intergroup::reduce`].
    pub unsafe fn allreduce(&self, call: &Reduction<'_>) -> Result<(), EngineError> {
        let result = call.result;
        // SAFETY: the caller's promise.
        unsafe {
            let sum = self.reduce_here(call)?;
            let out = sum.as_ref().map_or(result, |sum| Buffer {
                base: sum.base,
                ..result
            });
            self.leaders_swap(out, result)?;
            bcast(&self.local, result, 0)
        }
    }

    /// `MPI_Reduce_scatter` (and `_block`): member *i* gets `counts[i]` elements of the reduction
    /// of the other group's operands. `call.count` is ignored.
    ///
    /// # Safety
    /// The operand holds the sum of `counts`, which is the other group's sum, and the output this
    /// member's count of elements.
    ///
    /// # Errors
    /// As [`Intergroup::reduce`].
    pub unsafe fn reduce_scatter(
        &self,
        call: &Reduction<'_>,
        counts: &[i64],
    ) -> Result<(), EngineError> {
        let total: i64 = counts.iter().sum();
        let call = &call.of(total as u64);
        let starts: Vec<i64> = counts
            .iter()
            .scan(0, |next, count| {
                Some(core::mem::replace(next, *next + count))
            })
            .collect();
        let mine = counts[self.local.me as usize] as u64;
        let result = Buffer::new(call.output(), mine, call.datatype());
        // SAFETY: the caller's promise.
        unsafe {
            let sum = self.reduce_here(call)?;
            let Some(sum) = sum else {
                return scatter(&self.local, None, Some(result), 0);
            };
            let folder = Folder::new(call.op, call.datatype())?;
            let theirs = Scratch::new(&folder, call.count())?;
            let whole = |base| Buffer::new(base, call.count(), call.datatype());
            self.leaders_swap(whole(sum.base), whole(theirs.base))?;
            let blocks = Blocks::Varying {
                base: theirs.base,
                counts,
                displacements: &starts,
                datatype: call.datatype(),
            };
            scatter(&self.local, Some(blocks), Some(result), 0)
        }
    }
}
