//! Where in a file reads and writes go: offsets, individual and shared pointers (MPI-5.0 sections 14.4.2 to 14.4.4).
//!
//! Programs count in etypes of the view, pointers here in bytes of its data.

use super::File;
use super::error::Trouble;
use crate::failure::Outcome;
use cohort_abi::neutral;
use cohort_engine::datatype::op::PredefinedOp;
use cohort_io::View;

/// The next whole etype.
pub(super) fn rounded_up(view: &View, position: u64) -> u64 {
    // A position fits in 63 bits, and so an etype more in 64.
    position.next_multiple_of(view.etype_size())
}

/// An offset of a program as a position.
pub(super) fn position(view: &View, offset: i64) -> Result<u64, Trouble> {
    let bytes = u64::try_from(offset).ok().and_then(|offset| offset.checked_mul(view.etype_size()));
    let position = bytes.filter(|&bytes| i64::try_from(bytes).is_ok());
    position.ok_or_else(|| {
        let size = view.etype_size();
        Trouble::new(neutral::ERR_ARG, format_args!("the offset is {offset} etypes of {size} bytes"))
    })
}

/// A position as an offset of a program.
fn offset(view: &View, position: u64) -> i64 {
    (position / view.etype_size()).cast_signed()
}

/// What was taken from the shared pointer, if all of it can be said by offsets.
fn taken_within(taken: Option<u64>, bytes: u64) -> Result<u64, Trouble> {
    taken.filter(|&at| is_within(at, bytes)).ok_or_else(beyond_all)
}

/// What is said of data that would end beyond all offsets.
#[cold]
pub(super) fn beyond_all() -> Trouble {
    Trouble::new(neutral::ERR_ARG, format_args!("the shared pointer is beyond all offsets"))
}

/// Whether offsets can say where so many bytes end.
fn is_within(at: u64, bytes: u64) -> bool {
    at.checked_add(bytes).is_some_and(|end| i64::try_from(end).is_ok())
}

impl File {
    /// Refuses calls that a file without random access does not have.
    pub(super) fn has_random_access(&self) -> Result<(), Trouble> {
        match self.is(neutral::MODE_SEQUENTIAL) {
            false => Ok(()),
            true => {
                let what = format_args!("the file is open with MPI_MODE_SEQUENTIAL");
                Err(Trouble::new(neutral::ERR_UNSUPPORTED_OPERATION, what))
            }
        }
    }

    /// Where a seek goes from a position.
    fn sought(&self, from: u64, by: i64, whence: i32) -> Result<u64, Trouble> {
        let view = self.view();
        let start = match whence {
            neutral::SEEK_SET => 0,
            neutral::SEEK_CUR => offset(&view, from),
            neutral::SEEK_END => offset(&view, rounded_up(&view, view.position_from(self.bytes()?))),
            _ => {
                return Err(Trouble::new(neutral::ERR_ARG, format_args!("whence is none of MPI_SEEK_SET, _CUR, _END")));
            }
        };
        match start.checked_add(by) {
            Some(target) => position(&view, target),
            None => Err(Trouble::new(neutral::ERR_ARG, format_args!("the offset is {by}"))),
        }
    }

    /// `MPI_File_seek`.
    ///
    /// # Errors
    /// `MPI_ERR_ARG`, what the kernel says of the file's size, `MPI_ERR_UNSUPPORTED_OPERATION`.
    pub fn seek(&self, by: i64, whence: i32) -> Outcome<()> {
        let mut at = self.position.lock();
        let sought = self.has_random_access().and_then(|()| self.sought(*at, by, whence));
        *at = sought.map_err(|trouble| trouble.error)?;
        Ok(())
    }

    /// `MPI_File_get_position`.
    ///
    /// # Errors
    /// `MPI_ERR_UNSUPPORTED_OPERATION`.
    pub fn position(&self) -> Outcome<i64> {
        self.has_random_access().map_err(|trouble| trouble.error)?;
        Ok(offset(&self.view(), *self.position.lock()))
    }

    /// `MPI_File_get_byte_offset`, also of a file without random access.
    ///
    /// # Errors
    /// `MPI_ERR_ARG`.
    pub fn byte_offset(&self, offset: i64) -> Outcome<i64> {
        let view = self.view();
        let found = view.offset(position(&view, offset).map_err(|trouble| trouble.error)?);
        found.map(u64::cast_signed).map_err(|_| neutral::ERR_ARG.into())
    }

    /// Where the shared pointer is.
    pub(super) fn shared_position(&self) -> Result<u64, Trouble> {
        match &self.away {
            None => Ok(self.shared.pointer()),
            Some(away) => Ok(away.fetch(&self.comm, PredefinedOp::NoOp, 0)?),
        }
    }

    /// Moves the shared pointer on by some bytes, and gives where it was.
    pub(super) fn take_shared(&self, bytes: u64) -> Result<u64, Trouble> {
        let taken = match &self.away {
            None => self.shared.take(bytes),
            Some(away) => {
                let at = away.fetch(&self.comm, PredefinedOp::Sum, bytes)?;
                if !is_within(at, bytes) {
                    // Nothing is taken.
                    away.fetch(&self.comm, PredefinedOp::Sum, bytes.wrapping_neg())?;
                }
                Some(at)
            }
        };
        taken_within(taken, bytes)
    }

    /// Sets the shared pointer. All members call it, who have met and meet again before they use it.
    pub(super) fn set_shared(&self, position: u64) -> Result<(), Trouble> {
        match &self.away {
            None if self.leads => self.shared.set_pointer(position),
            Some(away) if self.comm.me() == 0 => away.set(&self.comm, position)?,
            _ => {}
        }
        Ok(())
    }

    /// [`File::set_shared`] by the first member for all.
    fn move_shared(&self, position: u64) -> Result<(), Trouble> {
        match &self.away {
            None => self.shared.set_pointer(position),
            Some(away) => away.set(&self.comm, position)?,
        }
        Ok(())
    }

    /// `MPI_File_get_position_shared`.
    ///
    /// # Errors
    /// `MPI_ERR_UNSUPPORTED_OPERATION`, and those of the way to another node.
    pub fn position_shared(&self) -> Outcome<i64> {
        let at = self.has_random_access().and_then(|()| self.shared_position());
        let at = at.map_err(|trouble| trouble.error)?;
        Ok(offset(&self.view(), at))
    }

    /// `MPI_File_seek_shared`; collective.
    ///
    /// # Errors
    /// As [`File::seek`]; `MPI_ERR_NOT_SAME`.
    pub fn seek_shared(&self, by: i64, whence: i32) -> Outcome<()> {
        self.no_split()?;
        self.has_random_access().map_err(|trouble| trouble.error)?;
        let said = by.cast_unsigned().rotate_left(16) ^ u64::from(whence.cast_unsigned());
        self.all_say(Ok(said), "the offset or whence")?;
        // All have come, so that the pointer rests.
        self.agree(match self.comm.me() {
            0 => self.shared_position().and_then(|at| self.sought(at, by, whence)).and_then(|to| self.move_shared(to)),
            _ => Ok(()),
        })
    }
}
