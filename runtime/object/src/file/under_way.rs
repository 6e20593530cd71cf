//! Operations that go on while the program computes: those of nonblocking forms and of split collectives.
//!
//! Positions are taken in the call that starts an operation; a thread of the rank's (`crew.rs`) does the rest. A file
//! has two lines: operations of one member, and those of all, which come after each other at each member, and meet in a
//! numbering of collectives of their own. What the program's own thread must do, since its handlers of signals belong
//! there, is left to it as an errand ([`leave_errand`]), which it does in its next call, whatever that waits for: other
//! members may wait for the operation.
//!
//! | state | who goes on | next |
//! |---|---|---|
//! | `WAITING` | a thread, or whoever waits for it | `TAKEN` |
//! | `TAKEN` | who has taken it | `DONE` |
//! | `DONE` | nobody: the outcome is there | |

use super::File;
use super::access::{Form, Task};
use super::convert::Changed;
use super::error::Trouble;
use crate::crew::{Crew, Job, Line};
use crate::failure::{Error, Outcome};
use crate::owner_of;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use cohort_base::lock::FutexLock;
use cohort_base::picture::{Fact, Told};
use cohort_base::text::say;
use cohort_engine::datatype::{Buffer, OwnedBuffer};
use cohort_engine::threads::Block;
use cohort_engine::waits::Awaited;
use cohort_engine::{Claim, Owner, Rank, coll, leave_errand, wait};
use cohort_io::{Ask, Lent, Plain, Way};
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use rustix::fd::AsFd;
use spin::Once;

const WAITING: u32 = 0;
const TAKEN: u32 = 1;
const DONE: u32 = 2;

/// Operations of one member of up to so many bytes are done in the call: a thread would take longer to begin.
const SMALL: u64 = 64 << 10;

/// Reads and writes of a rank that have ended, and their bytes. Relaxed: nothing follows from them.
#[derive(Debug, Default)]
#[expect(missing_docs)]
pub struct Totals {
    pub reads: AtomicU64,
    pub read_bytes: AtomicU64,
    pub writes: AtomicU64,
    pub written_bytes: AtomicU64,
}

impl Totals {
    pub(super) fn count(&self, way: Way, bytes: u64) {
        let (calls, moved) = match way {
            Way::Read => (&self.reads, &self.read_bytes),
            Way::Write => (&self.writes, &self.written_bytes),
        };
        calls.fetch_add(1, Ordering::Relaxed);
        moved.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// What a rank has for operations that are under way.
pub struct UnderWay {
    rank: &'static Rank,
    /// What was moved, whether it was under way or not.
    pub moved: Totals,
    crew: Crew<Operation>,
    /// All that are not done, and those that the program's thread has to finish.
    operations: FutexLock<VecDeque<Arc<Operation>>>,
    /// Those of them that meet other members.
    meeting: AtomicU32,
    /// Whether it was said that there are no threads.
    was_told: AtomicBool,
}

/// The first failure that nobody was told of, as the request was freed: for the next call that says whether all went
/// well.
#[derive(Debug, Default)]
pub struct Unheard(FutexLock<Option<Error>>);

impl Unheard {
    /// Keeps a failure for that call.
    pub fn keep(&self, error: Error) {
        self.0.lock().get_or_insert(error);
    }

    /// Tells the failure, once.
    pub(super) fn told(&self) -> Result<(), Trouble> {
        self.0.lock().take().map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Where operations of a file stand.
pub(super) struct Lines {
    pub under_way: &'static UnderWay,
    /// Nothing goes on: operations are done in the calls that start them.
    pub is_plain: bool,
    alone: Arc<Line<Operation>>,
    together: Arc<Line<Operation>>,
    /// For the meetings of collective operations: made by the first of them.
    pub apart: Once<&'static coll::CommShared>,
    pub unheard: Arc<Unheard>,
}

impl Lines {
    /// Those of a new file.
    pub(super) fn new(under_way: &'static UnderWay, is_plain: bool) -> Self {
        let (alone, together, unheard) = Default::default();
        Self { under_way, is_plain, alone, together, apart: Once::new(), unheard }
    }
}

/// What became of the start of an operation.
pub enum Started {
    /// It is over: bytes moved, and how it went.
    Over(u64, Outcome<()>),
    /// It goes on.
    UnderWay(Arc<Operation>),
}

/// An operation that goes on.
pub struct Operation {
    file: NonNull<File>,
    under_way: &'static UnderWay,
    line: Arc<Line<Self>>,
    state: AtomicU32,
    task: Task,
    memory: FutexLock<Memory>,
    outcome: FutexLock<(u64, Outcome<()>)>,
    /// Whether nobody will ask for the outcome; changes while that is locked.
    is_freed: AtomicBool,
    unheard: Arc<Unheard>,
    /// The MPI function.
    call: &'static &'static str,
}

/// What is read or written.
enum Memory {
    /// The program's memory.
    Own(OwnedBuffer),
    /// What stands for it in the file. What was read gets to the program's memory at the end, in a call of the program.
    Changed(Changed, OwnedBuffer),
}

impl Memory {
    fn buffer(&mut self) -> Buffer<'_> {
        match self {
            Self::Own(data) => data.as_buffer(),
            Self::Changed(changed, _) => changed.as_buffer(),
        }
    }
}

// SAFETY: the file is where it is until all of its operations are done (`File::quiesce`), and what threads use of it is
// theirs too; the program's memory is the operation's until it is done, as MPI demands.
unsafe impl Send for Operation {}
// SAFETY: as above; one thread at a time works for it.
unsafe impl Sync for Operation {}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").field("call", self.call).finish_non_exhaustive()
    }
}

impl UnderWay {
    /// Nothing, for this rank.
    #[must_use]
    pub fn new(rank: &'static Rank) -> Self {
        Self {
            rank,
            moved: Totals::default(),
            crew: Crew::new(rank),
            operations: FutexLock::new(VecDeque::new()),
            meeting: AtomicU32::new(0),
            was_told: AtomicBool::new(false),
        }
    }

    /// Has a thread do the operation; without one, does it now.
    fn begin(&'static self, operation: &Arc<Operation>) {
        self.operations.lock().push_back(operation.clone());
        if operation.task.is_collective {
            self.meeting.fetch_add(1, Ordering::Relaxed);
            self.rank.set_helped(true);
        }
        self.crew.put(&operation.line, operation.clone(), || {
            if !self.was_told.swap(true, Ordering::Relaxed) {
                let what = "no thread can be started: operations on files are done in the calls that start them";
                say(self.rank.node().boot().report_fd(), format_args!("cohort: {what}\n"));
            }
        });
    }

    /// A call for an operation ends: if none meets others now, no thread of ours is in calls of the engine.
    fn rest(&self) {
        // Acquire pairs with the Release of whoever has completed the last one.
        if self.meeting.load(Ordering::Acquire) == 0 {
            self.rank.set_helped(false);
        }
    }

    /// Waits until all operations are done, those of one file or of all.
    fn end_all(&self, file: Option<NonNull<File>>) {
        let is_its = |operation: &Arc<Operation>| file.is_none_or(|file| file == operation.file);
        loop {
            let next = self.operations.lock().iter().find(|it| is_its(it)).cloned();
            let Some(operation) = next else {
                return;
            };
            // Whoever has the request hears how it went.
            let _ = operation.settle();
        }
    }

    /// Waits for all operations, and ends the threads. When MPI ends.
    pub fn end(&self) {
        self.end_all(None);
        self.rest();
        self.crew.end();
    }
}

impl File {
    /// Starts an operation of a nonblocking form or a split collective, for the MPI function `call`. What is wrong with
    /// its arguments is told when it is over, as it may be the other members' matter too.
    pub fn start(&self, form: Form, data: Outcome<OwnedBuffer>, call: &'static &'static str) -> Started {
        let is_alone = !form.is_collective || self.comm.size() == 1 || self.lines.is_plain || self.survives();
        let form = Form { is_collective: !is_alone, ..form };
        let seen = self.seen();
        let memory = data.map_err(Trouble::from).and_then(|data| match seen.is_converted(form.way) {
            false => Ok(Memory::Own(data)),
            true => self.change(&seen, form.way, &data.as_buffer()).map(|changed| Memory::Changed(changed, data)),
        });
        let (memory, task) = match memory {
            Ok(mut memory) => {
                let task = self.task(form, Ok(memory.buffer()));
                (memory, task)
            }
            Err(trouble) => (Memory::Own(Buffer::EMPTY.to_owned()), self.task(form, Err(trouble))),
        };
        let task = match task {
            Ok(task) => task,
            Err(error) => return Started::Over(0, Err(error)),
        };
        let under_way = self.lines.under_way;
        let line = if is_alone { &self.lines.alone } else { &self.lines.together };
        let operation = Arc::new(Operation {
            file: NonNull::from(self),
            under_way,
            line: line.clone(),
            state: AtomicU32::new(WAITING),
            task,
            memory: FutexLock::new(memory),
            outcome: FutexLock::new((0, Ok(()))),
            is_freed: AtomicBool::new(false),
            unheard: self.unheard().clone(),
            call,
        });
        let is_small = operation.task.trouble.is_some() || operation.memory.lock().buffer().bytes() <= SMALL;
        // That is a matter of windows, which belong to calls of the program.
        let is_exclusive = operation.task.manner.is_atomic && self.exclusion.get().is_some();
        if is_alone && (is_small || is_exclusive || self.lines.is_plain) {
            operation.move_all(None);
            operation.finish();
            let (bytes, outcome) = operation.outcome.lock().clone();
            return Started::Over(bytes, outcome);
        }
        under_way.begin(&operation);
        Started::UnderWay(operation)
    }

    /// Where failures are kept that nobody was told of.
    #[must_use]
    pub fn unheard(&self) -> &Arc<Unheard> {
        &self.lines.unheard
    }

    /// Waits until nothing of the file is under way. The file has not moved since that began.
    pub(super) fn quiesce(&self) {
        self.lines.under_way.end_all(Some(NonNull::from(self)));
        self.lines.under_way.rest();
    }
}

impl Operation {
    /// Does what there is to do; `ask` in a thread that is none of the program's.
    fn move_all(&self, ask: Option<Ask<'_>>) {
        // SAFETY: the file is there until the operation is done.
        let file = unsafe { self.file.as_ref() };
        let mut memory = self.memory.lock();
        let descriptor = file.descriptor.as_fd();
        let (bytes, outcome) = match ask {
            None => file.do_task(&Plain(descriptor), &self.task, memory.buffer()),
            Some(ask) => file.do_task(&Lent::new(descriptor, ask), &self.task, memory.buffer()),
        };
        self.under_way.moved.count(self.task.manner.way, bytes);
        self.set_outcome(bytes, outcome);
    }

    fn set_outcome(&self, bytes: u64, outcome: Outcome<()>) {
        let mut place = self.outcome.lock();
        *place = (bytes, outcome);
        self.keep_unheard(&place.1);
    }

    /// Keeps a failure if nobody will ask for it. The outcome is locked.
    fn keep_unheard(&self, outcome: &Outcome<()>) {
        if let (true, Err(error)) = (self.is_freed.load(Ordering::Relaxed), outcome) {
            self.unheard.keep(error.clone());
        }
    }

    /// The request is freed: the operation goes on, and a call for the file tells its failure.
    pub fn let_go(&self) {
        let outcome = self.outcome.lock();
        self.is_freed.store(true, Ordering::Relaxed);
        self.keep_unheard(&outcome.1);
    }

    /// The outcome is there. The file may be gone when this returns.
    fn complete(self: &Arc<Self>) {
        let (rank, under_way) = (self.under_way.rank, self.under_way);
        if !matches!(*self.memory.lock(), Memory::Changed(..)) {
            under_way.forget(self);
        }
        if self.task.is_collective {
            // Pairs with the load in `rest`.
            under_way.meeting.fetch_sub(1, Ordering::Release);
        }
        // Release pairs with the load in `is_done`.
        self.state.store(DONE, Ordering::Release);
        wait::wake(rank);
    }

    /// Does it in a call of the program.
    fn do_here(self: &Arc<Self>) {
        self.state.store(TAKEN, Ordering::Relaxed);
        self.move_all(None);
        self.complete();
    }

    /// By a thread of the program that waits for this operation alone: does it, unless a thread has begun, or other
    /// members are needed. Whether it is done.
    pub fn take_over(self: &Arc<Self>) -> bool {
        if !self.task.is_collective && self.line.withdraw(self) {
            self.do_here();
        }
        self.is_done()
    }

    /// Whether it is done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        // Acquire pairs with the Release in `complete`.
        self.state.load(Ordering::Acquire) == DONE
    }

    fn owner(&self) -> Owner<'static> {
        owner_of(self.under_way.rank)
    }

    /// The outcome: how many bytes were moved, and how it went. Waits for it if needed. By a thread of the program's.
    pub fn settle(self: &Arc<Self>) -> (u64, Outcome<()>) {
        wait::until(self.owner(), &**self, || self.is_done());
        self.finish();
        self.under_way.rest();
        self.outcome.lock().clone()
    }

    /// What is left to do when all bytes are moved: the program's memory gets what its data is. The program's functions
    /// may call MPI, so nothing is locked meanwhile.
    fn finish(self: &Arc<Self>) {
        let memory = core::mem::replace(&mut *self.memory.lock(), Memory::Own(Buffer::EMPTY.to_owned()));
        let Memory::Changed(changed, data) = memory else {
            return;
        };
        // SAFETY: the file is there until none of its operations is left to finish (`File::quiesce`).
        let file = unsafe { self.file.as_ref() };
        let bytes = self.outcome.lock().0;
        let stored = file.change_back(&changed, self.task.manner.way, bytes, &data.as_buffer());
        let outcome = self.outcome.lock().1.clone();
        match stored {
            Ok(bytes) => self.set_outcome(bytes, outcome),
            Err(trouble) => self.set_outcome(0, outcome.and(Err(trouble.error))),
        }
        self.under_way.forget(self);
    }
}

impl UnderWay {
    fn forget(&self, operation: &Arc<Operation>) {
        let operations = &mut *self.operations.lock();
        let place = operations.iter().position(|other| Arc::ptr_eq(other, operation));
        place.map(|place| operations.remove(place));
    }
}

impl Job for Operation {
    fn work(self: &Arc<Self>) {
        self.state.store(TAKEN, Ordering::Relaxed);
        let block = Block::of_caller();
        block.inspect(|block| block.set_call(Some(self.call)));
        self.move_all(Some(&|what| leave_errand(self.under_way.rank, what)));
        block.inspect(|block| block.set_call(None));
        self.complete();
    }

    fn work_here(self: &Arc<Self>) {
        self.do_here();
    }
}

impl Awaited for &Operation {
    fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        if self.is_done() {
            return;
        }
        if !self.task.is_collective {
            return tell(Fact::new(Told::Outside));
        }
        // SAFETY: the file is there until the operation is done, and whoever completes it leaves the wait first.
        let file = unsafe { self.file.as_ref() };
        match file.lines.apart.get() {
            Some(_) => coll::tell_missing(&file.meeting(), claim, tell),
            None => tell(Fact::new(Told::Outside)),
        }
    }
}

#[cfg(test)]
mod tests;
