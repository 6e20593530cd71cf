//! What a member keeps in its row of an operation whose blocks have any length.
//!
//! No member knows whether all give little. So one that does posts its data, and keeps its arguments beside it: if
//! another one gives much, all meet as for larger operations, and whoever sees that first comes to the meeting in the
//! place of those that have posted ([`crate::batch`]).

use crate::args::{Blocks, Call, parts};
use crate::batch::SIDE_ALIGN;
use cohort_datatype::Buffer;
use core::ptr::NonNull;
use core::slice;

/// Most tables of one operation: the lengths and places of what is sent, and of what is received.
const TABLES_MAX: usize = 4;

/// The arguments of a member, as bytes: they refer to its buffers, to what it has posted, and to tables behind them.
pub(crate) struct Kept(Call<'static>);

// SAFETY: the addresses lead to buffers that their owner leaves to the runtime until the operation is complete.
unsafe impl Sync for Kept {}

impl Kept {
    /// Bytes that [`Kept::write`] needs in a group of `size` members.
    pub(crate) fn bytes(size: u32) -> usize {
        size_of::<Self>() + TABLES_MAX * size as usize * size_of::<i64>()
    }

    /// Keeps arguments whose blocks to be received are runs of bytes. What the member gives, of so many bytes, is at
    /// `posted` before anybody else reads what is kept.
    ///
    /// # Safety
    /// `room` has [`Kept::bytes`], aligned as [`SIDE_ALIGN`], and stays, as the buffers do, until the operation is
    /// complete. `call` has blocks of any length.
    pub(crate) unsafe fn write(
        room: NonNull<u8>,
        call: &Call<'_>,
        size: u32,
        (posted, given): (*mut u8, u64),
    ) -> NonNull<Self> {
        const { assert!(align_of::<Self>() <= SIDE_ALIGN && size_of::<Self>().is_multiple_of(align_of::<i64>())) };
        let kept = room.cast::<Self>();
        // SAFETY: the caller's promise: tables are written behind the arguments, and the buffers are the member's.
        unsafe {
            let mut tables = Tables { next: kept.add(1).cast(), size: size as usize };
            let all = Buffer::of_bytes(posted, given);
            let call = match *call {
                Call::Gather { send, receive, root, .. } => Call::Gather {
                    send: send.map(|_| all),
                    receive: receive.map(|it| tables.blocks(&it)),
                    root,
                    is_even: false,
                },
                Call::Scatter { receive, root, .. } => Call::Scatter {
                    send: None,
                    receive: receive.map(|it| Buffer::of_bytes(it.base(), it.bytes())),
                    root,
                    is_even: false,
                },
                Call::Allgather { receive, .. } => {
                    Call::Allgather { send: Some(all), receive: tables.blocks(&receive) }
                }
                Call::Alltoall { send, receive } => Call::Alltoall {
                    send: Some(tables.parts(send.as_ref().unwrap_or(&receive), posted)),
                    receive: tables.blocks(&receive),
                },
                _ => unreachable!("an operation without blocks"),
            };
            kept.write(Self(call));
        }
        kept
    }

    /// The arguments.
    pub(crate) fn call(&self) -> &Call<'static> {
        &self.0
    }

    /// The room for a member's block.
    pub(crate) fn room(&self, member: u32) -> Buffer<'static> {
        match self.0 {
            Call::Gather { receive: Some(receive), .. }
            | Call::Allgather { receive, .. }
            | Call::Alltoall { receive, .. } => receive.block(member as usize),
            Call::Scatter { receive: Some(receive), .. } => receive,
            _ => Buffer::EMPTY,
        }
    }
}

/// Memory for tables of numbers, one for each member.
struct Tables {
    next: NonNull<i64>,
    size: usize,
}

impl Tables {
    /// The next table.
    ///
    /// # Safety
    /// There is room for it, which stays as long as it is used.
    unsafe fn table(&mut self, value: impl FnMut(usize) -> i64) -> &'static [i64] {
        // SAFETY: the caller's promise.
        unsafe {
            let table = self.next;
            self.next = table.add(self.size);
            (0..self.size).map(value).enumerate().for_each(|(at, value)| table.add(at).write(value));
            slice::from_raw_parts(table.as_ptr(), self.size)
        }
    }

    /// Blocks that are runs of bytes, as such.
    ///
    /// # Safety
    /// As for [`Tables::table`], of two.
    unsafe fn blocks(&mut self, blocks: &Blocks<'_>) -> Blocks<'static> {
        let base = blocks.block(0).base();
        let ahead = |of: &Buffer<'_>| of.base().addr().wrapping_sub(base.addr()) as i64;
        // SAFETY: the caller's promise; the bytes of these blocks are theirs.
        unsafe {
            let counts = self.table(|member| blocks.block(member).bytes() as i64);
            let displacements = self.table(|member| ahead(&blocks.block(member)));
            Blocks::varying(base, (counts, displacements), Buffer::EMPTY.datatype())
        }
    }

    /// The copies of these blocks that are posted as [`parts`].
    ///
    /// # Safety
    /// As for [`Tables::table`], of two; they are posted there before anybody uses them.
    unsafe fn parts(&mut self, blocks: &Blocks<'_>, posted: *mut u8) -> Blocks<'static> {
        let mut end = parts::head(self.size) as i64;
        // SAFETY: the caller's promise.
        unsafe {
            let counts = self.table(|member| blocks.block(member).bytes() as i64);
            let displacements = self.table(|member| {
                let start = end;
                end += counts[member];
                start
            });
            Blocks::varying(posted, (counts, displacements), Buffer::EMPTY.datatype())
        }
    }
}
