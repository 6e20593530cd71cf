//! Reading and writing (MPI-5.0 section 14.4): one way for all forms of the standard.

use super::File;
use super::error::{Trouble, first, told};
use super::heard;
use super::pointer::{position, rounded_up};
use crate::failure::{Error, Outcome};
use cohort_abi::neutral;
use cohort_engine::coll;
use cohort_engine::datatype::Buffer;
use cohort_io::{Done, Terms, View};
use core::fmt;
use rustix::fd::AsFd;

/// Which way data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the file.
    Read,
    /// To the file.
    Write,
}

/// Where in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At an offset, in etypes.
    At(i64),
    /// At the individual pointer.
    Own,
    /// At the shared pointer; in a collective call in the order of ranks.
    Shared,
}

/// A form of reading or writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Which way.
    pub way: Way,
    /// Where.
    pub place: Place,
    /// All members call it.
    pub is_collective: bool,
}

impl Form {
    /// Whether one split call of this form is ended by one of the other.
    fn is_like(self, other: Self) -> bool {
        let kind = |form: Self| (form.way, core::mem::discriminant(&form.place));
        kind(self) == kind(other)
    }
}

impl fmt::Display for Form {
    /// The name of the split collective.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self.way {
            Way::Read => "read",
            Way::Write => "write",
        };
        let place = match self.place {
            Place::At(_) => "at_all",
            Place::Own => "all",
            Place::Shared => "ordered",
        };
        write!(f, "MPI_File_{way}_{place}_begin")
    }
}

impl File {
    /// Reads or writes what `data` is, and gives how many bytes that were, whether it went well or not. A collective
    /// call with wrong arguments meets the other members all the same.
    pub fn access(&self, form: Form, data: Outcome<Buffer<'_>>) -> (u64, Outcome<()>) {
        let seen = self.seen();
        let data = match data {
            Ok(data) if seen.is_converted(form.way) => data,
            data => return self.access_bytes(form, data),
        };
        let mut changed = match self.change(&seen, form.way, &data) {
            Ok(changed) => changed,
            Err(trouble) => return self.access_bytes(form, Err(trouble.error)),
        };
        let (bytes, outcome) = self.access_bytes(form, Ok(changed.as_buffer()));
        match self.change_back(&changed, form.way, bytes, &data) {
            Ok(bytes) => (bytes, outcome),
            Err(trouble) => (0, outcome.and(Err(trouble.error))),
        }
    }

    /// [`File::access`] of the bytes that are in the file.
    fn access_bytes(&self, form: Form, data: Outcome<Buffer<'_>>) -> (u64, Outcome<()>) {
        let checked = data.map_err(Trouble::from).and_then(|data| self.check_access(form, data));
        match form.is_collective {
            false => {
                let (bytes, error) = checked.map_or_else(|trouble| (0, Some(trouble)), |data| self.alone(form, data));
                (bytes, error.map_or(Ok(()), |trouble| Err(trouble.error)))
            }
            true => {
                let split = self.no_split().map_err(Trouble::from);
                self.together(form, split.and(checked))
            }
        }
    }

    /// Refuses writes to a file that is open for reading only.
    pub(super) fn may_write(&self) -> Result<(), Trouble> {
        match self.is(neutral::MODE_RDONLY) {
            false => Ok(()),
            true => Err(Trouble::new(neutral::ERR_READ_ONLY, format_args!("the file is open with MPI_MODE_RDONLY"))),
        }
    }

    fn check_access<'b>(&self, form: Form, data: Buffer<'b>) -> Result<Buffer<'b>, Trouble> {
        self.descriptor()?;
        match form.way {
            Way::Write => self.may_write()?,
            Way::Read if self.is(neutral::MODE_WRONLY) => {
                return Err(Trouble::new(neutral::ERR_ACCESS, format_args!("the file is open with MPI_MODE_WRONLY")));
            }
            Way::Read => {}
        }
        if form.place != Place::Shared {
            self.has_random_access()?;
        }
        let (bytes, unit) = (data.bytes(), self.view().etype_size());
        match bytes % unit {
            0 => Ok(data),
            _ => {
                let what = format_args!("the {bytes} bytes are no whole number of etypes of {unit} bytes");
                Err(Trouble::new(neutral::ERR_TYPE, what))
            }
        }
    }

    /// The caller's part of an access.
    fn alone(&self, form: Form, data: Buffer<'_>) -> (u64, Option<Trouble>) {
        let view = self.view();
        match form.place {
            Place::At(offset) => match position(&view, offset) {
                Ok(position) => self.transfer(form.way, &view, position, data),
                Err(trouble) => (0, Some(trouble)),
            },
            Place::Own => {
                // Held all the time: of two threads the second goes on where the first has ended.
                let mut at = self.position.lock();
                let (bytes, trouble) = self.transfer(form.way, &view, *at, data);
                *at = rounded_up(&view, at.saturating_add(bytes));
                (bytes, trouble)
            }
            Place::Shared => match self.take_shared(data.bytes()) {
                Ok(position) => self.transfer(form.way, &view, position, data),
                Err(trouble) => (0, Some(trouble)),
            },
        }
    }

    /// Moves the bytes.
    fn transfer(&self, way: Way, view: &View, position: u64, data: Buffer<'_>) -> (u64, Option<Trouble>) {
        let file = self.descriptor.as_fd();
        let moves = || match way {
            Way::Read => cohort_io::read(file, view, position, &data),
            Way::Write => cohort_io::write(file, view, position, &data),
        };
        let Done { bytes, error } = match (self.is_atomic(), self.exclusion.get()) {
            (false, _) => moves(),
            (true, Some(exclusion)) => match exclusion.alone(&self.comm, moves) {
                Ok(done) => done,
                Err(error) => return (0, Some(error.into())),
            },
            (true, None) => {
                let _turn = self.shared.turn();
                moves()
            }
        };
        (bytes, error.map(|failure| Trouble::at(failure, &self.name)))
    }

    /// All members' access.
    fn together(&self, form: Form, data: Result<Buffer<'_>, Trouble>) -> (u64, Outcome<()>) {
        let view = self.view();
        let start = data.and_then(|data| Ok((data, self.start(form, &view)?)));
        match form.place {
            Place::Shared => {
                let ordered = self.ordered(start.map(|(data, _)| data));
                let moved = ordered.and_then(|(data, position)| self.all_move(form.way, &view, (data, position), None));
                moved.unwrap_or_else(|error| (0, Err(error)))
            }
            place => {
                let (trouble, (data, position)) = match start {
                    Ok(start) => (None, start),
                    Err(trouble) => (Some(trouble), (Buffer::EMPTY, 0)),
                };
                let moved = self.all_move(form.way, &view, (data, position), trouble);
                let (bytes, outcome) = moved.unwrap_or_else(|error| (0, Err(error)));
                if place == Place::Own {
                    self.position.with(|at| *at = rounded_up(&view, at.saturating_add(bytes)));
                }
                (bytes, outcome)
            }
        }
    }

    /// Where the caller's part of a collective access begins.
    fn start(&self, form: Form, view: &View) -> Result<u64, Trouble> {
        match form.place {
            Place::At(offset) => position(view, offset),
            Place::Own => Ok(*self.position.lock()),
            Place::Shared => Ok(0),
        }
    }

    /// Moves all members' bytes. A member with trouble takes part all the same, and has no data then.
    ///
    /// # Errors
    /// Of the meetings; what the kernel says comes with the number of bytes.
    fn all_move(
        &self,
        way: Way,
        view: &View,
        (data, position): (Buffer<'_>, u64),
        trouble: Option<Trouble>,
    ) -> Outcome<(u64, Outcome<()>)> {
        if self.comm.size() == 1 {
            let (bytes, met) = match trouble {
                None => self.transfer(way, view, position, data),
                trouble => (0, trouble),
            };
            return Ok((bytes, met.map_or(Ok(()), |met| Err(met.error))));
        }
        let (group, file) = (self.comm.collective(), self.descriptor.as_fd());
        // Data without an order is moved by its member. In atomic mode that waits for the others.
        let is_apart = self.is_atomic() && way == Way::Write && !view.is_ordered();
        let is_troubled = trouble.is_some() || is_apart;
        let terms = Terms { is_atomic: self.is_atomic(), is_troubled, ..Terms::default() };
        let common = if is_apart { Buffer::EMPTY } else { data };
        let (Done { mut bytes, error }, is_troubled) = match way {
            Way::Read => cohort_io::read_all(&group, file, view, position, &common, terms)?,
            Way::Write => cohort_io::write_all(&group, file, view, position, &common, terms)?,
        };
        let mut trouble = trouble;
        if is_apart && trouble.is_none() {
            (bytes, trouble) = self.transfer(way, view, position, data);
        }
        // What the kernel has said is known to all; what a member's arguments are is not.
        let agreed = if is_troubled { self.agree(trouble.map_or(Ok(()), Err)) } else { Ok(()) };
        let told = error.map_or(Ok(()), |failure| Err(Trouble::at(failure, &self.name).error));
        Ok((bytes, agreed.and(told)))
    }

    /// The caller's part of an access in the order of ranks: its data, and where it goes, behind those of lower ranks.
    /// Who comes first on a node takes the room for all from the shared pointer, which others may be using meanwhile;
    /// of several nodes the first member does.
    fn ordered<'b>(&self, data: Result<Buffer<'b>, Trouble>) -> Outcome<(Buffer<'b>, u64)> {
        let bytes = data.as_ref().map_or(0, Buffer::bytes);
        let ([class, errno, low, high], me) = (told(&data), self.comm.me() as usize);
        let words = [class, errno, low, high, bytes as i32, (bytes >> 32) as i32];
        let whole = |words: &[i32; 6]| u64::from(words[4].cast_unsigned()) | u64::from(words[5].cast_unsigned()) << 32;
        let sum = |all: &[[i32; 6]]| all.iter().map(whole).try_fold(0_u64, u64::checked_add);
        let (found, before, total) = coll::view(&self.comm.collective(), words, |all| {
            let troubles = all.iter().map(|&[class, errno, low, high, ..]| [class, errno, low, high]);
            (first(troubles), sum(&all[..me]), sum(all))
        })?;
        let data = data.map_err(|trouble| trouble.error)?;
        heard(found, &self.name)?;
        let Some((before, total)) = before.zip(total) else {
            return Err(Error::new(neutral::ERR_ARG, format_args!("all members' data is too much")));
        };
        let start = match self.away {
            None => self.take_together(total).map_err(|trouble| trouble.error)?,
            Some(_) => self.taken_by_first(total)?,
        };
        Ok((data, start + before))
    }

    /// The first member takes bytes from the shared pointer for all, of several nodes. Collective.
    fn taken_by_first(&self, bytes: u64) -> Outcome<u64> {
        let taken = if self.comm.me() == 0 { self.take_shared(bytes) } else { Ok(0) };
        let [class, errno, low, high] = told(&taken);
        let start = taken.as_ref().map_or(0, |start| *start);
        let words = [class, errno, low, high, start as i32, (start >> 32) as i32];
        let (found, start) = coll::view(&self.comm.collective(), words, |all| {
            let troubles = all.iter().map(|&[class, errno, low, high, ..]| [class, errno, low, high]);
            let [.., low, high] = all[0];
            (first(troubles), u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32)
        })?;
        taken.map_err(|trouble| trouble.error)?;
        heard(found, &self.name)?;
        Ok(start)
    }

    /// The begin of a split collective. The access is done here; its end tells how it went.
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` when one has begun already.
    pub fn begin(&self, form: Form, data: Outcome<Buffer<'_>>) -> Outcome<()> {
        self.no_split()?;
        let (bytes, outcome) = self.access(form, data);
        *self.begun.lock() = Some((form, bytes, outcome));
        Ok(())
    }

    /// The end of a split collective: as [`File::access`].
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` when none of this form has begun.
    pub fn end(&self, form: Form) -> Outcome<(u64, Outcome<()>)> {
        let mut begun = self.begun.lock();
        match begun.take_if(|(begun, ..)| begun.is_like(form)) {
            Some((_, bytes, outcome)) => Ok((bytes, outcome)),
            None => {
                let what = match &*begun {
                    None => Error::new(neutral::ERR_OTHER, format_args!("{form} was not called")),
                    Some((other, ..)) => Error::new(neutral::ERR_OTHER, format_args!("{other} has begun, not {form}")),
                };
                Err(what)
            }
        }
    }
}
