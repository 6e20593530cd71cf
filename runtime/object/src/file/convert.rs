//! Data that has other bytes in the file: `external32`, and representations of the program.
//!
//! The program's functions run on the caller's own task, in the call that reads or writes, and nothing is locked then:
//! they may call MPI. A collective call converts before its members meet, and again behind that.

use super::error::Trouble;
use super::representation::{Datarep, Representation};
use super::view::{Seen, unfit};
use super::{File, Way};
use crate::owner_of;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_engine::datatype::Buffer;
use cohort_engine::datatype::external::bytes_in_memory;
use cohort_io::datarep::{Converted, Items};

/// The data of a call as it is in the file.
pub(super) enum Changed {
    External32(Converted),
    Program { bytes: Vec<u8>, items: Items, own: Arc<Representation> },
}

impl Changed {
    /// What is read or written in place of the program's buffer.
    pub(super) fn as_buffer(&mut self) -> Buffer<'_> {
        match self {
            Self::External32(converted) => converted.as_buffer(),
            // SAFETY: the bytes are borrowed as long as the buffer lives.
            Self::Program { bytes, .. } => unsafe { Buffer::of_bytes(bytes.as_mut_ptr(), bytes.len() as u64) },
        }
    }
}

impl Seen {
    /// Whether data that goes this way has other bytes in the file.
    pub(super) fn is_converted(&self, way: Way) -> bool {
        match (self.datarep, &self.own) {
            (Datarep::External32, _) => true,
            (Datarep::Program, Some(own)) => own.functions.converts(way),
            _ => false,
        }
    }
}

impl File {
    /// The data that is written, or room for what is read, in a view that [is converted](Seen::is_converted).
    pub(super) fn change(&self, seen: &Seen, way: Way, data: &Buffer<'_>) -> Result<Changed, Trouble> {
        let Some(own) = &seen.own else {
            let converted = match way {
                Way::Read => Converted::room(data),
                Way::Write => Converted::of(data),
            };
            return converted.map(Changed::External32).map_err(unfit);
        };
        let owner = owner_of(self.comm.rank());
        let items = Items::of(&data.datatype().to_ref(), &own.lengths(owner)).map_err(unfit)?.again(data.count());
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(items.all().file as usize).map_err(|_| neutral::ERR_NO_MEM)?;
        bytes.resize(items.all().file as usize, 0);
        if way == Way::Write {
            self.convert(own, way, data, &items, bytes.as_mut_ptr(), items.all().items)?;
        }
        Ok(Changed::Program { bytes, items, own: own.clone() })
    }

    /// Stores what has been read. Gives how many bytes of memory the first `bytes` bytes of the file are.
    pub(super) fn change_back(
        &self,
        changed: &Changed,
        way: Way,
        bytes: u64,
        data: &Buffer<'_>,
    ) -> Result<u64, Trouble> {
        match (changed, way) {
            (Changed::External32(_), Way::Write) => Ok(bytes_in_memory(data.datatype(), bytes)),
            (Changed::External32(converted), Way::Read) => converted.store(bytes, data).map_err(unfit),
            (Changed::Program { items, .. }, Way::Write) => Ok(items.within(bytes).memory),
            (Changed::Program { bytes: there, items, own }, Way::Read) => {
                let whole = items.within(bytes);
                // The function only reads them.
                self.convert(own, way, data, items, there.as_ptr().cast_mut(), whole.items)?;
                Ok(whole.memory)
            }
        }
    }

    /// Has the program's function convert the first items.
    fn convert(
        &self,
        own: &Representation,
        way: Way,
        data: &Buffer<'_>,
        items: &Items,
        file: *mut u8,
        count: u64,
    ) -> Result<(), Trouble> {
        let owner = owner_of(self.comm.rank());
        let datatype = data.datatype().to_ref();
        let mut done = 0;
        while done < count {
            let piece = (count - done).min(own.functions.most());
            let start = items.of_count(done).file as usize;
            let user = (data.base(), &datatype);
            // SAFETY: the buffer has the items by the promise of its maker; `file` has room for all of them.
            let outcome = unsafe { own.functions.convert(owner, way, user, piece, file.add(start), done) };
            outcome.map_err(|code| failed(own, way, code))?;
            done += piece;
        }
        Ok(())
    }
}

/// The trouble of a function that has failed.
#[cold]
fn failed(own: &Representation, way: Way, code: i32) -> Trouble {
    let function = match way {
        Way::Read => "read",
        Way::Write => "write",
    };
    let what = format_args!("the {function} function of the data representation \"{}\" gives error {code}", own.name());
    Trouble::new(neutral::ERR_CONVERSION, what)
}
