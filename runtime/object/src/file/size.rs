//! Sizes of files, and what the device keeps.

use super::File;
use super::error::Trouble;
use crate::failure::Outcome;
use cohort_abi::neutral;
use cohort_io::open;

impl File {
    /// Bytes of the file.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn size(&self) -> Outcome<u64> {
        self.bytes().map_err(|trouble| trouble.error)
    }

    pub(super) fn bytes(&self) -> Result<u64, Trouble> {
        open::size(self.descriptor()?).map_err(|errno| self.kernel(errno))
    }

    /// A size argument of a call that changes the file's.
    fn wanted(&self, size: i64) -> Result<u64, Trouble> {
        if self.is(neutral::MODE_SEQUENTIAL) {
            let what = format_args!("the file is open with MPI_MODE_SEQUENTIAL");
            return Err(Trouble::new(neutral::ERR_UNSUPPORTED_OPERATION, what));
        }
        self.may_write()?;
        u64::try_from(size).map_err(|_| Trouble::new(neutral::ERR_ARG, format_args!("the size is {size}")))
    }

    /// `MPI_File_set_size`; collective.
    ///
    /// # Errors
    /// `MPI_ERR_ARG`, `MPI_ERR_NOT_SAME`, `MPI_ERR_READ_ONLY`, what the kernel says.
    pub fn set_size(&self, size: i64) -> Outcome<()> {
        let size = self.all_say(self.wanted(size), "the size")?;
        self.agree(match self.comm.me() {
            0 => self.descriptor().and_then(|file| open::set_size(file, size).map_err(|errno| self.kernel(errno))),
            _ => Ok(()),
        })
    }

    /// `MPI_File_preallocate`; collective.
    ///
    /// # Errors
    /// As [`File::set_size`].
    pub fn preallocate(&self, size: i64) -> Outcome<()> {
        let size = self.all_say(self.wanted(size), "the size")?;
        self.agree(match self.comm.me() {
            0 => self.descriptor().and_then(|file| open::preallocate(file, size).map_err(|errno| self.kernel(errno))),
            _ => Ok(()),
        })
    }

    /// `MPI_File_sync`; collective. One member of each node asks the kernel, when all have come: what they wrote is the
    /// kernel's by then.
    ///
    /// # Errors
    /// What the kernel says to one of them, also about what it could not write earlier; the failure of an operation
    /// whose request was freed.
    pub fn sync(&self) -> Outcome<()> {
        self.no_split()?;
        self.agree(Ok(()))?;
        let unheard = self.unheard().told();
        self.agree(unheard.and(match self.leads {
            true => self.descriptor().and_then(|file| {
                let kept = open::sync(file).map_err(|errno| self.kernel(errno));
                if self.away.is_some() {
                    open::look_again(file);
                }
                kept
            }),
            false => Ok(()),
        }))
    }
}
