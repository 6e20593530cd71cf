//! Collectives of intercommunicators that need steps within a group: the first member of
//! each group, its *leader*, speaks with the other group, and the group's own collectives do
//! the rest. Those that only move blocks between members of different groups (gather,
//! scatter, allgather, all-to-all) are one [`Channel::exchange`]. These are the blocking forms; the others are
//! scripts of `wide/between.rs`.

use super::exchange::{Channel, Elements, Incoming, Outgoing};
use super::fold::{Folder, Scratch};
use super::{Blocks, Group, Reduction};
use crate::EngineError;
use crate::datatype::{TypeRef, predefined};
use alloc::vec::Vec;
use cohort_base::Peer;
use cohort_base::sync::atomic::{AtomicU32, Ordering};
use core::ops::Range;

/// Tag of messages between the groups.
pub const TAG: i32 = -1;

/// MPI-5 ABI handle of `MPI_BYTE`.
const MPI_BYTE: u32 = 0x247;

/// One member's view of an intercommunicator.
#[derive(Clone, Copy)]
pub struct Intergroup<'a> {
    /// The caller's own group.
    pub local: Group<'a>,
    /// Messages between the groups.
    pub channel: Channel<'a>,
    /// The other group.
    pub remote: &'a [Peer],
    /// Nonblocking and persistent operations that the caller has begun.
    pub begun: &'a AtomicU32,
}

/// No member: the root of those beside it.
const NOBODY: u32 = u32::MAX;

/// Whose data a rooted collective moves (MPI 6.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// The caller's (`MPI_ROOT`).
    Here,
    /// That of another member of the caller's group (`MPI_PROC_NULL`).
    Beside,
    /// That of this member of the other group.
    Remote(u32),
}

impl Intergroup<'_> {
    /// A message to member `member` of the other group.
    #[must_use]
    pub fn to<'d>(&self, member: usize, data: Elements<'d>) -> Outgoing<'d> {
        Outgoing {
            to: self.remote[member],
            tag: TAG,
            data,
        }
    }

    /// A message from member `member` of the other group.
    #[must_use]
    pub fn from<'d>(&self, member: usize, data: Elements<'d>) -> Incoming<'d> {
        Incoming {
            from: self.remote[member],
            member: member as u32,
            tag: TAG,
            data,
        }
    }

    /// The places of the own group's members and of the other's among those of both: first comes
    /// the group whose first member does in `MPI_COMM_WORLD`.
    pub(super) fn places(&self) -> (Range<usize>, Range<usize>) {
        let (ours, theirs) = (self.local.world.len(), self.remote.len());
        let node = self.local.rank.node();
        let we_come_first = node.world_rank(self.local.world[0]) < node.world_rank(self.remote[0]);
        match we_come_first {
            true => (0..ours, ours..ours + theirs),
            false => (theirs..theirs + ours, 0..theirs),
        }
    }

    /// A root as a nonblocking or persistent [`Call`](super::Call) names it: its place among the members of both groups.
    #[must_use]
    pub fn place_of(&self, root: Root) -> u32 {
        let (ours, theirs) = self.places();
        match root {
            Root::Here => ours.start as u32 + self.local.me,
            Root::Beside => NOBODY,
            Root::Remote(root) => theirs.start as u32 + root,
        }
    }

    /// The number of the caller's next nonblocking or persistent operation, the same at all members.
    pub(super) fn begin(&self) -> u32 {
        // Relaxed: one thread of the member at a time is here, as MPI demands.
        self.begun.fetch_add(1, Ordering::Relaxed)
    }

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
        out: Elements<'_>,
        into: Elements<'_>,
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
        let byte = byte();
        let nothing = Elements {
            base: core::ptr::null_mut(),
            count: 0,
            datatype: &byte,
        };
        super::barrier(&self.local)?;
        // SAFETY: messages without data.
        unsafe { self.leaders_swap(nothing, nothing)? };
        super::barrier(&self.local)
    }

    /// `MPI_Bcast`.
    ///
    /// # Safety
    /// `data` is a live buffer; it is not touched where the root is [`Root::Beside`].
    ///
    /// # Errors
    /// [`EngineError::Truncated`], [`EngineError::OutOfMemory`].
    pub unsafe fn bcast(&self, data: Elements<'_>, root: Root) -> Result<(), EngineError> {
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
                    received.and(super::bcast(&self.local, data.layout(), 0))
                }
            }
        }
    }

    /// `MPI_Reduce`: the root gets the reduction of the other group's operands.
    ///
    /// # Safety
    /// As [`reduce`](super::reduce): the operand of members whose root is remote and the output of
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
                    let result = elements(call.output, call.count, call.datatype);
                    self.channel.exchange([], [self.from(0, result)])
                }
                Root::Remote(root) => {
                    let sum = self.reduce_here(call)?;
                    let Some(sum) = sum else { return Ok(()) };
                    let sum = elements(sum.base, call.count, call.datatype);
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
        let folder = Folder::new(call.op, call.datatype)?;
        let scratch = match self.leads() {
            true => Some(Scratch::new(&folder, call.count)?),
            false => None,
        };
        let output = scratch.as_ref().map_or(call.output, |it| it.base);
        let here = Reduction { output, ..*call };
        // SAFETY: the operand is the caller's; the output is read at the leader only.
        unsafe { super::reduce(&self.local, &here, 0)? };
        Ok(scratch)
    }

    /// `MPI_Allreduce`: everybody gets the reduction of the other group's operands.
    ///
    /// # Safety
    /// As [`allreduce`](super::allreduce).
    ///
    /// # Errors
    /// As [`Intergroup::reduce`].
    pub unsafe fn allreduce(&self, call: &Reduction<'_>) -> Result<(), EngineError> {
        let result = elements(call.output, call.count, call.datatype);
        // SAFETY: the caller's promise.
        unsafe {
            let sum = self.reduce_here(call)?;
            let out = sum.as_ref().map_or(result, |sum| Elements {
                base: sum.base,
                ..result
            });
            self.leaders_swap(out, result)?;
            super::bcast(&self.local, result.layout(), 0)
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
        let call = &Reduction {
            count: total as u64,
            ..*call
        };
        let starts: Vec<i64> = counts
            .iter()
            .scan(0, |next, count| {
                Some(core::mem::replace(next, *next + count))
            })
            .collect();
        let mine = counts[self.local.me as usize] as u64;
        let result = elements(call.output, mine, call.datatype);
        // SAFETY: the caller's promise.
        unsafe {
            let sum = self.reduce_here(call)?;
            let Some(sum) = sum else {
                return super::scatter(&self.local, None, Some(result.layout()), 0);
            };
            let folder = Folder::new(call.op, call.datatype)?;
            let theirs = Scratch::new(&folder, call.count)?;
            let whole = |base| elements(base, call.count, call.datatype);
            self.leaders_swap(whole(sum.base), whole(theirs.base))?;
            let blocks = Blocks::Varying {
                base: theirs.base,
                counts,
                displacements: &starts,
                datatype: call.datatype,
            };
            super::scatter(&self.local, Some(blocks), Some(result.layout()), 0)
        }
    }
}

fn elements(base: *mut u8, count: u64, datatype: &TypeRef) -> Elements<'_> {
    Elements {
        base,
        count,
        datatype,
    }
}

fn byte() -> TypeRef {
    predefined(MPI_BYTE).expect("a predefined handle")
}
