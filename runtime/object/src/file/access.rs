//! Reading and writing (MPI-5.0 section 14.4): one way for all forms of the standard.

use super::error::{Trouble, first, of_member, told};
use super::pointer::{beyond_all, position, rounded_up};
use super::{File, Seen, agree, heard};
use crate::failure::Outcome;
use crate::hints::file::FileHints;
use alloc::sync::Arc;
use cohort_abi::neutral;
use cohort_base::heir::HeirGuard;
use cohort_engine::datatype::Buffer;
use cohort_engine::threads::Block;
use cohort_engine::wait::WaitKind;
use cohort_engine::{coll, wait};
use cohort_io::{Done, Fate, Medium, Part, Plain, Terms, View};
use core::cell::Cell;
use core::fmt;
use rustix::fd::AsFd;

pub use cohort_io::Way;

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

/// What is to be moved, when its arguments are checked and its place is known: any thread of the rank may do it.
pub(super) struct Task {
    pub manner: Manner,
    pub is_collective: bool,
    /// Why nothing is moved.
    pub trouble: Option<Trouble>,
    view: Arc<View>,
    position: u64,
}

/// How bytes are moved: what was in force when the operation started. The program may change that while the operation
/// is under way, and members do so at other times.
#[derive(Clone, Copy)]
pub(super) struct Manner {
    pub way: Way,
    pub is_atomic: bool,
    hints: FileHints,
}

/// What became of a member's data in an access in the order of ranks.
enum Ordered<'b> {
    /// So many bytes were moved, and those of all others.
    Moved(u64),
    /// It goes to this position.
    Place(Buffer<'b>, u64),
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
    pub(super) fn is_like(self, other: Self) -> bool {
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
        let (view, converting) = self.seen_on(form.way);
        let (data, seen) = match (data, converting) {
            (Ok(data), Some(seen)) => (data, seen),
            (data, _) => return self.access_bytes(form, &view, data),
        };
        let mut changed = match self.change(&seen, form.way, &data) {
            Ok(changed) => changed,
            Err(trouble) => return self.access_bytes(form, &view, Err(trouble.error)),
        };
        let (bytes, outcome) = self.access_bytes(form, &view, Ok(changed.as_buffer()));
        match self.change_back(&changed, form.way, bytes, &data) {
            Ok(bytes) => (bytes, outcome),
            Err(trouble) => (0, outcome.and(Err(trouble.error))),
        }
    }

    /// Which bytes the caller sees of the file; and all that it sees, if its data is converted on this way.
    fn seen_on(&self, way: Way) -> (Arc<View>, Option<Seen>) {
        let seen = self.seen.lock();
        (seen.view.clone(), seen.is_converted(way).then(|| seen.clone()))
    }

    /// [`File::access`] of the bytes that are in the file.
    fn access_bytes(&self, form: Form, view: &View, data: Outcome<Buffer<'_>>) -> (u64, Outcome<()>) {
        let checked = data.map_err(Trouble::from).and_then(|data| self.check_access(form, view, data));
        let (bytes, outcome) = match form.is_collective {
            false => {
                let done = checked.map_or_else(|trouble| (0, Some(trouble)), |data| self.alone(form, view, data));
                (done.0, done.1.map_or(Ok(()), |trouble| Err(trouble.error)))
            }
            true => {
                let split = self.no_split().map_err(Trouble::from);
                self.together(form, view, split.and(checked))
            }
        };
        self.lines.under_way.moved.count(form.way, bytes);
        (bytes, outcome)
    }

    /// Refuses writes to a file that is open for reading only.
    pub(super) fn may_write(&self) -> Result<(), Trouble> {
        match self.is(neutral::MODE_RDONLY) {
            false => Ok(()),
            true => Err(Trouble::new(neutral::ERR_READ_ONLY, format_args!("the file is open with MPI_MODE_RDONLY"))),
        }
    }

    fn check_access<'b>(&self, form: Form, view: &View, data: Buffer<'b>) -> Result<Buffer<'b>, Trouble> {
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
        let (bytes, unit) = (data.bytes(), view.etype_size());
        match bytes % unit {
            0 => Ok(data),
            _ => {
                let what = format_args!("the {bytes} bytes are no whole number of etypes of {unit} bytes");
                Err(Trouble::new(neutral::ERR_TYPE, what))
            }
        }
    }

    /// What is left of an access that goes on. Pointers move on by what was asked for.
    ///
    /// # Errors
    /// Of the meeting in which the members' places are found; the other members have it too.
    pub(super) fn task(&self, form: Form, data: Result<Buffer<'_>, Trouble>) -> Outcome<Task> {
        let view = self.view();
        let checked = data.and_then(|data| self.check_access(form, &view, data));
        let place = match form.place {
            Place::Shared if form.is_collective => match self.ordered(form.way, &view, checked, false)? {
                Ordered::Place(_, position) => Ok(position),
                Ordered::Moved(_) => unreachable!("each moves its own"),
            },
            place => checked.and_then(|data| self.take_place(place, &view, data.bytes())),
        };
        let (position, trouble) = match place {
            Ok(position) => (position, None),
            Err(trouble) => (0, Some(trouble)),
        };
        Ok(Task { manner: self.manner(form.way), is_collective: form.is_collective, trouble, view, position })
    }

    /// How an operation that starts now is done.
    fn manner(&self, way: Way) -> Manner {
        Manner { way, is_atomic: self.is_atomic(), hints: *self.hints.lock() }
    }

    /// Where the caller's next bytes belong, which nobody else gets.
    fn take_place(&self, place: Place, view: &View, bytes: u64) -> Result<u64, Trouble> {
        match place {
            Place::At(offset) => position(view, offset),
            Place::Own => {
                let mut at = self.position.lock();
                let taken = *at;
                *at = rounded_up(view, taken.saturating_add(bytes).min(i64::MAX as u64));
                Ok(taken)
            }
            Place::Shared => self.take_shared(bytes),
        }
    }

    /// Does a task.
    pub(super) fn do_task(&self, medium: &impl Medium, task: &Task, data: Buffer<'_>) -> (u64, Outcome<()>) {
        let Task { manner, view, position, .. } = task;
        let trouble = task.trouble.clone().or_else(|| self.descriptor().err());
        if task.is_collective {
            let place = match trouble {
                None => (data, *position),
                Some(_) => (Buffer::EMPTY, 0),
            };
            let moved = self.all_move((&self.meeting(), medium), *manner, view, place, trouble);
            return moved.unwrap_or_else(|error| (0, Err(error)));
        }
        let (bytes, trouble) = match trouble {
            None => self.transfer(medium, (manner.way, manner.is_atomic), view, *position, data),
            trouble => (0, trouble),
        };
        (bytes, trouble.map_or(Ok(()), |trouble| Err(trouble.error)))
    }

    /// The caller's part of an access.
    fn alone(&self, form: Form, view: &View, data: Buffer<'_>) -> (u64, Option<Trouble>) {
        let moves = |at| self.transfer(&self.medium(), (form.way, self.is_atomic()), view, at, data);
        match form.place {
            Place::At(offset) => position(view, offset).map_or_else(|trouble| (0, Some(trouble)), moves),
            Place::Own => {
                // Held all the time: of two threads the second goes on where the first has ended.
                let mut at = self.position.lock();
                let (bytes, trouble) = moves(*at);
                *at = rounded_up(view, at.saturating_add(bytes));
                (bytes, trouble)
            }
            Place::Shared => self.take_shared(data.bytes()).map_or_else(|trouble| (0, Some(trouble)), moves),
        }
    }

    /// The file in a call of the program.
    fn medium(&self) -> Plain<'_> {
        Plain(self.descriptor.as_fd())
    }

    /// Moves the bytes.
    fn transfer(
        &self,
        medium: &impl Medium,
        (way, is_atomic): (Way, bool),
        view: &View,
        position: u64,
        data: Buffer<'_>,
    ) -> (u64, Option<Trouble>) {
        let moves = || cohort_io::through(medium, way, view, position, data);
        let Done { bytes, error } = match (is_atomic, self.exclusion.get()) {
            (false, _) => moves(),
            (true, Some(exclusion)) => match exclusion.alone(&self.comm, moves) {
                Ok(done) => done,
                Err(error) => return (0, Some(error.into())),
            },
            (true, None) => self.in_turn(moves),
        };
        (bytes, error.map(|failure| Trouble::at(failure, &self.name)))
    }

    /// All members' access.
    fn together(&self, form: Form, view: &View, data: Result<Buffer<'_>, Trouble>) -> (u64, Outcome<()>) {
        let start = data.and_then(|data| Ok((data, self.first_place(form, view)?)));
        let (group, how) = (self.comm.collective(), self.manner(form.way));
        let through = (&group, &self.medium());
        match form.place {
            Place::Shared => {
                let moves_all = !how.is_atomic && how.hints.is_together(form.way == Way::Read);
                let moved = match self.ordered(form.way, view, start.map(|(data, _)| data), moves_all) {
                    Ok(Ordered::Moved(bytes)) => Ok((bytes, Ok(()))),
                    Ok(Ordered::Place(data, position)) => self.all_move(through, how, view, (data, position), None),
                    Err(error) => Err(error),
                };
                moved.unwrap_or_else(|error| (0, Err(error)))
            }
            place => {
                let (trouble, (data, position)) = match start {
                    Ok(start) => (None, start),
                    Err(trouble) => (Some(trouble), (Buffer::EMPTY, 0)),
                };
                let moved = self.all_move(through, how, view, (data, position), trouble);
                let (bytes, outcome) = moved.unwrap_or_else(|error| (0, Err(error)));
                if place == Place::Own {
                    self.position.with(|at| *at = rounded_up(view, at.saturating_add(bytes)));
                }
                (bytes, outcome)
            }
        }
    }

    /// Where the caller's part of a collective access begins.
    fn first_place(&self, form: Form, view: &View) -> Result<u64, Trouble> {
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
        (group, medium): (&coll::Group<'_>, &impl Medium),
        Manner { way, is_atomic, hints }: Manner,
        view: &View,
        (data, position): (Buffer<'_>, u64),
        trouble: Option<Trouble>,
    ) -> Outcome<(u64, Outcome<()>)> {
        if self.comm.size() == 1 {
            let (bytes, met) = match trouble {
                None => self.transfer(medium, (way, is_atomic), view, position, data),
                trouble => (0, trouble),
            };
            return Ok((bytes, met.map_or(Ok(()), |met| Err(met.error))));
        }
        if self.survives() || !hints.is_together(way == Way::Read) && !is_atomic {
            let (bytes, met) = match trouble {
                None => self.transfer(medium, (way, is_atomic), view, position, data),
                trouble => (0, trouble),
            };
            return Ok((bytes, agree(group, &self.name, met.map_or(Ok(()), Err))));
        }
        // Data without an order is moved by its member. In atomic mode that waits for the others.
        let is_apart = is_atomic && way == Way::Write && !view.is_ordered();
        let is_troubled = trouble.is_some() || is_apart;
        let terms = Terms { is_atomic, is_troubled, memory: hints.memory };
        let common = if is_apart { Buffer::EMPTY } else { data };
        let together = || cohort_io::through_all(group, medium, way, view, position, &common, terms);
        let (Done { mut bytes, error }, is_troubled) = match is_atomic {
            true => self.exclusively(group, together)??,
            false => together()?,
        };
        let mut trouble = trouble;
        if is_apart && trouble.is_none() {
            (bytes, trouble) = self.transfer(medium, (way, is_atomic), view, position, data);
        }
        // What the kernel has said is known to all; what a member's arguments are is not.
        let agreed = match is_troubled {
            true => agree(group, &self.name, trouble.map_or(Ok(()), Err)),
            false => Ok(()),
        };
        let told = error.map_or(Ok(()), |failure| Err(Trouble::at(failure, &self.name).error));
        Ok((bytes, agreed.and(told)))
    }

    /// Does a work of all members, which begins and ends with a meeting, while no member reads or writes by itself in
    /// atomic mode. Collective. The members meet before the right is taken, since who has it must not wait for members
    /// that want it for themselves first, and again when it is theirs.
    fn exclusively<R>(&self, group: &coll::Group<'_>, work: impl FnOnce() -> R) -> Outcome<R> {
        coll::view(group, coll::Table::FileAlone, [0], |_| ())?;
        let begun = Cell::new(false);
        let work = || {
            begun.set(true);
            agree(group, &self.name, Ok(()))?;
            Ok(work())
        };
        let outcome = match (self.exclusion.get(), self.comm.me()) {
            (Some(exclusion), 0) => exclusion.alone(&self.comm, work).and_then(|outcome| outcome),
            (None, _) if self.leads => self.in_turn(work),
            _ => work(),
        };
        match outcome {
            Err(error) if !begun.get() => {
                Err(agree(group, &self.name, Err(error.clone().into())).err().unwrap_or(error))
            }
            outcome => outcome,
        }
    }

    /// Does a work while nobody else on the node reads or writes in atomic mode.
    fn in_turn<R>(&self, work: impl FnOnce() -> R) -> R {
        let turn = match Block::is_callers() {
            true => self.shared.turn(),
            false => self.shared.try_turn().unwrap_or_else(|| self.awaited_turn()),
        };
        let result = work();
        drop(turn);
        if self.shared.is_awaited() {
            let node = self.comm.rank().node();
            let here = self.comm.group().members().iter().filter_map(|&member| node.local(member));
            here.for_each(|local| wait::wake(node.rank(local)));
        }
        result
    }

    /// Waits for the turn in a thread of the program's, which goes on with what others leave to it: who has the turn
    /// may wait for that.
    #[cold]
    fn awaited_turn(&self) -> HeirGuard<'_> {
        self.shared.begin_to_await();
        let mut turn = None;
        wait::until(self.comm.owner(), WaitKind::Request, || {
            turn = turn.take().or_else(|| self.shared.try_turn());
            turn.is_some()
        });
        self.shared.end_to_await();
        turn.expect("it was waited for")
    }

    /// The caller's part of an access in the order of ranks: where its data goes, behind that of lower ranks, or, if
    /// `moves_all`, perhaps how much of it has been moved. Others may be using the shared pointer meanwhile.
    fn ordered<'b>(
        &self,
        way: Way,
        view: &View,
        data: Result<Buffer<'b>, Trouble>,
        moves_all: bool,
    ) -> Outcome<Ordered<'b>> {
        let table = coll::Table::of_ordered(way == Way::Read);
        if self.away.is_some() || self.survives() {
            return self.ordered_by_words(table, data);
        }
        let (me, size, medium) = (self.comm.me() as usize, self.comm.size() as usize, self.medium());
        let part = Part::new(me, way, view, data.as_ref().map(|data| *data).map_err(Trouble::told));
        let take = |bytes| self.take_shared(bytes).ok();
        // SAFETY: the members meet now, and the part is dropped behind that.
        unsafe { self.shared.in_order.come(&part, size, moves_all.then_some(&medium), take) };
        if let Err(error) = coll::view(&self.comm.collective(), table, [0], |_| ()) {
            // Others may still use this member's buffer, so it must not go on.
            panic!("a collective call of a file cannot end: {error}");
        }
        let data = data.map_err(|trouble| trouble.error)?;
        match part.fate() {
            Fate::Moved(bytes) => Ok(Ordered::Moved(bytes)),
            Fate::Place(position) => Ok(Ordered::Place(data, position)),
            Fate::Wrong(member, told) => Err(of_member((member, told), &self.name)),
            Fate::Beyond => Err(beyond_all().error),
            Fate::NoMemory => Err(neutral::ERR_NO_MEM.into()),
        }
    }

    /// [`File::ordered`] of members that live on several nodes, or go on when one fails.
    fn ordered_by_words<'b>(&self, table: coll::Table, data: Result<Buffer<'b>, Trouble>) -> Outcome<Ordered<'b>> {
        let bytes = data.as_ref().map_or(0, Buffer::bytes);
        let ([class, errno, low, high], me) = (told(&data), self.comm.me() as usize);
        let words = [class, errno, low, high, bytes as i32, (bytes >> 32) as i32];
        let whole = |words: &[i32; 6]| u64::from(words[4].cast_unsigned()) | u64::from(words[5].cast_unsigned()) << 32;
        let sum = |all: &[[i32; 6]]| all.iter().map(whole).try_fold(0_u64, u64::checked_add);
        let (found, before, total) = coll::view(&self.comm.collective(), table, words, |all| {
            let troubles = all.iter().map(|&[class, errno, low, high, ..]| [class, errno, low, high]);
            (first(troubles), sum(&all[..me]), sum(all))
        })?;
        let data = data.map_err(|trouble| trouble.error)?;
        heard(found, &self.name)?;
        let Some((before, total)) = before.zip(total) else {
            return Err(beyond_all().error);
        };
        Ok(Ordered::Place(data, self.taken_by_first(total)? + before))
    }

    /// The first member takes bytes from the shared pointer for all. Collective.
    fn taken_by_first(&self, bytes: u64) -> Outcome<u64> {
        let taken = if self.comm.me() == 0 { self.take_shared(bytes) } else { Ok(0) };
        let [class, errno, low, high] = told(&taken);
        let start = taken.as_ref().map_or(0, |start| *start);
        let words = [class, errno, low, high, start as i32, (start >> 32) as i32];
        let (found, start) = coll::view(&self.comm.collective(), coll::Table::FilePlace, words, |all| {
            let troubles = all.iter().map(|&[class, errno, low, high, ..]| [class, errno, low, high]);
            let [.., low, high] = all[0];
            (first(troubles), u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32)
        })?;
        taken.map_err(|trouble| trouble.error)?;
        heard(found, &self.name)?;
        Ok(start)
    }
}
