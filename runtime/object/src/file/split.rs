//! Split collectives (MPI-5.0 section 14.4.5): a begin and an end, between which the operation is under way.

use super::File;
use super::access::Form;
use super::under_way::Started;
use crate::failure::{Error, Outcome};
use cohort_abi::neutral;
use cohort_engine::datatype::OwnedBuffer;

/// A split collective that has begun.
pub(super) struct Begun {
    form: Form,
    started: Started,
}

impl File {
    /// Refuses a collective call while a split one is not ended.
    pub(super) fn no_split(&self) -> Result<(), Error> {
        match &*self.begun.lock() {
            None => Ok(()),
            Some(Begun { form, .. }) => {
                let what = format_args!("{form} has begun and not been ended");
                Err(Error::new(neutral::ERR_OTHER, what))
            }
        }
    }

    /// The begin of a split collective; `call` is its name.
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` when one has begun already.
    pub fn begin(&self, form: Form, data: Outcome<OwnedBuffer>, call: &'static &'static str) -> Outcome<()> {
        self.no_split()?;
        let started = match self.lines.is_plain || self.survives() {
            false => self.start(form, data, call),
            true => {
                let (bytes, outcome) =
                    self.access(form, data.as_ref().map(OwnedBuffer::as_buffer).map_err(Clone::clone));
                Started::Over(bytes, outcome)
            }
        };
        *self.begun.lock() = Some(Begun { form, started });
        Ok(())
    }

    /// The end of a split collective: as [`File::access`].
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` when none of this form has begun.
    pub fn end(&self, form: Form) -> Outcome<(u64, Outcome<()>)> {
        let begun = self.begun.lock().take_if(|begun| begun.form.is_like(form));
        match begun.map(|begun| begun.started) {
            Some(Started::Over(bytes, outcome)) => Ok((bytes, outcome)),
            Some(Started::UnderWay(operation)) => {
                operation.take_over();
                Ok(operation.settle())
            }
            None => {
                let what = match &*self.begun.lock() {
                    None => Error::new(neutral::ERR_OTHER, format_args!("{form} was not called")),
                    Some(Begun { form: other, .. }) => {
                        Error::new(neutral::ERR_OTHER, format_args!("{other} has begun, not {form}"))
                    }
                };
                Err(what)
            }
        }
    }
}
