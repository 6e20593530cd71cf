//! The types that messages carry, and their comparison with those of receives (`COHORT_CHECK=members`).
//!
//! A receive may be of more elements than come: the first ones count (MPI-4.1, 3.3.1). A message of other types is
//! delivered, and the receive fails with [`Status::TYPE`].

use crate::protocol::Block;
use cohort_core::message::{Envelope, Status};
use cohort_datatype::{self as datatype, Basic, Buffer, Type, named_like, predefined_type};

/// A message in a block, and its types.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compared {
    pub(crate) block: Block,
    types: Types,
}

/// Of which elements data is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Types {
    elements: u64,
    hash: u64,
    /// Handle of the type that all of them have, 0 for several.
    handle: u32,
}

impl Types {
    fn of(buffer: Buffer<'_>) -> Self {
        let digest = buffer.datatype().signature().digest().repeat(buffer.count());
        Self { elements: digest.elements, hash: digest.hash, handle: handle_of(buffer.datatype()) }
    }
}

fn handle_of(datatype: &Type) -> u32 {
    named_like(datatype).map_or(0, Type::handle)
}

/// Whether a message carries its types: those inside collectives are packed at one end now and then.
pub(crate) fn is_compared(envelope: Envelope) -> bool {
    envelope.context.is_multiple_of(2)
}

impl Compared {
    /// The data of `buffer` in a block, with its types.
    pub(crate) fn new(block: Block, buffer: Buffer<'_>) -> Self {
        Self { block, types: Types::of(buffer) }
    }

    /// The outcome of its delivery to `buffer`, with what the types say.
    #[cold]
    pub(crate) fn judge(&self, status: Status, buffer: Buffer<'_>) -> Status {
        judge(status, self.types, buffer)
    }
}

/// The outcome of a delivery from a sender's buffer, with what the types say.
#[cold]
pub(crate) fn judge_buffers(envelope: Envelope, status: Status, sent: Buffer<'_>, buffer: Buffer<'_>) -> Status {
    match is_compared(envelope) {
        true => judge(status, Types::of(sent), buffer),
        false => status,
    }
}

fn judge(status: Status, sent: Types, buffer: Buffer<'_>) -> Status {
    if status.error != Status::SUCCESS || fits(sent, buffer) {
        return status;
    }
    let page = |handle: u32| handle & 0xff;
    Status { error: Status::TYPE, beyond: page(sent.handle) | page(handle_of(buffer.datatype())) << 8, ..status }
}

/// Whether elements may come into a buffer: they are its first ones, or one side is packed.
fn fits(sent: Types, buffer: Buffer<'_>) -> bool {
    let signature = buffer.datatype().signature();
    let is_packed = |basic| basic == Some(Basic::Packed);
    let of_sender = predefined_type(sent.handle).and_then(|it| it.signature().uniform());
    if is_packed(signature.uniform()) || is_packed(of_sender) {
        return true;
    }
    let each = signature.elements().max(1);
    let whole = signature.digest().repeat(sent.elements / each);
    let expected = whole.and(signature.digest_of_first(sent.elements % each));
    (expected.elements, expected.hash) == (sent.elements, sent.hash)
}

/// The types of the message and of the receive that a status with [`Status::TYPE`] names in `beyond`; `None` where they
/// are several.
#[must_use]
pub fn types_of(beyond: u32) -> [Option<&'static Type>; 2] {
    let page = datatype::types::MPI_BYTE.handle() & !0xff;
    [beyond & 0xff, beyond >> 8 & 0xff].map(|it| predefined_type(page | it))
}
