//! What an endpoint has under way: records that libfabric gives back with each completion.

use crate::sys;
use cohort_fabric_host::event_queue::Ticket;
use libc::c_void;

/// Bytes that are sent from a record's own buffer, where long packets are sent from the user's memory.
const COPIED_MAX: usize = 512;

/// What a record stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// Nothing: it is free.
    Free,
    /// A buffer that waits for a packet.
    Receive,
    /// A packet that was copied: nobody waits for its completion.
    Copied,
    /// A packet in the user's memory, a read or a write.
    Ticket(Ticket),
}

/// One operation. Its address is what libfabric knows it by.
#[repr(C)]
#[derive(Debug)]
pub struct Operation {
    /// Belongs to the provider while the operation is under way.
    context: sys::Context2,
    /// What it is.
    pub kind: OperationKind,
    /// The other endpoint; of a receive, nobody.
    pub peer: u32,
    /// Its buffer.
    pub buffer: *mut u8,
    /// Key of the registration of local memory that ends with it.
    pub local: Option<u64>,
}

impl Operation {
    /// What is passed to libfabric.
    pub fn pointer(&mut self) -> *mut c_void {
        std::ptr::from_mut(self).cast()
    }
}

/// A fixed number of operations with a buffer each, in one piece of memory.
#[derive(Debug)]
pub struct Pool {
    operations: Box<[Operation]>,
    free: Vec<u32>,
    memory: Box<[u8]>,
    room: usize,
}

impl Pool {
    /// `count` operations with buffers of `room` bytes.
    #[must_use]
    pub fn new(count: usize, room: usize) -> Self {
        let mut memory = vec![0_u8; count * room].into_boxed_slice();
        let start = memory.as_mut_ptr();
        let operation = |index: usize| Operation {
            context: sys::Context2 { internal: [std::ptr::null_mut(); 8] },
            kind: OperationKind::Free,
            peer: 0,
            // SAFETY: within the memory, which has room for all buffers.
            buffer: unsafe { start.add(index * room) },
            local: None,
        };
        Self { operations: (0..count).map(operation).collect(), free: (0..count as u32).rev().collect(), memory, room }
    }

    /// Bytes of each buffer, where packets may be sent from the user's memory or, if not, `packet`.
    #[must_use]
    pub fn room_for(packet: usize, always_copied: bool) -> usize {
        if always_copied { packet } else { packet.min(COPIED_MAX) }
    }

    /// Bytes of each buffer.
    #[must_use]
    pub fn room(&self) -> usize {
        self.room
    }

    /// All buffers, to register them.
    pub fn memory(&mut self) -> (*mut u8, usize) {
        (self.memory.as_mut_ptr(), self.memory.len())
    }

    /// Takes a free operation.
    pub fn take(&mut self, kind: OperationKind, peer: u32) -> Option<&mut Operation> {
        let index = self.free.pop()?;
        let operation = &mut self.operations[index as usize];
        operation.kind = kind;
        operation.peer = peer;
        operation.local = None;
        Some(operation)
    }

    /// Gives an operation back.
    pub fn give(&mut self, operation: *mut Operation) {
        let first = self.operations.as_mut_ptr();
        // SAFETY: both point into the same slice, since `operation` came from `take`.
        let index = unsafe { operation.offset_from(first) } as usize;
        self.operations[index].kind = OperationKind::Free;
        self.free.push(index as u32);
    }

    /// The operation that libfabric names; none if it is not of this pool.
    pub fn find(&mut self, context: *mut c_void) -> Option<*mut Operation> {
        let operation: *mut Operation = context.cast();
        let range = self.operations.as_mut_ptr_range();
        range.contains(&operation).then_some(operation)
    }

    /// The bytes of a received packet.
    #[must_use]
    pub fn bytes(&self, operation: *mut Operation, length: usize) -> &[u8] {
        // SAFETY: an operation of this pool, whose buffer has `room` bytes and is written by nobody until
        // it is posted again, for which the caller needs `&mut self`.
        unsafe { std::slice::from_raw_parts((*operation).buffer, length.min(self.room)) }
    }
}

/// Where a packet's pieces lie, as libfabric takes them.
#[derive(Debug)]
pub struct Pieces {
    list: [libc::iovec; 3],
    count: usize,
}

impl Pieces {
    /// No piece.
    #[must_use]
    pub fn new() -> Self {
        let none = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Self { list: [none; 3], count: 0 }
    }

    /// Adds one; an empty one is left out.
    pub fn push(&mut self, start: *const u8, length: usize) {
        if length > 0 {
            self.list[self.count] = libc::iovec { iov_base: start.cast_mut().cast(), iov_len: length };
            self.count += 1;
        }
    }

    /// Sends them.
    ///
    /// # Safety
    /// `endpoint` is open, the pieces stay valid until the completion of `operation`, and `descriptors`
    /// belong to their memory if the provider wants it registered.
    pub unsafe fn send(
        &self,
        endpoint: *mut sys::Ep,
        descriptor: *mut c_void,
        to: u64,
        operation: *mut c_void,
    ) -> isize {
        let mut descriptors = [descriptor; 3];
        // SAFETY: the caller's promise.
        unsafe {
            ((*(*endpoint).msg).sendv)(
                endpoint,
                self.list.as_ptr(),
                descriptors.as_mut_ptr(),
                self.count,
                to,
                operation,
            )
        }
    }
}
