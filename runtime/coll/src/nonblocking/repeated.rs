//! Persistent collectives.

use super::exchange::{self, Exchange};
use super::operation::Operation;
use super::post::{Manner, Spot, post};
use crate::args::{Call, Label};
use crate::inter::Intergroup;
use crate::members::{Extent, Group};
use crate::pool::Chain;
use cohort_base::picture::Fact;
use cohort_core::EngineError;
use cohort_core::Owner;
use cohort_core::claim::Claim;
use cohort_core::message::Status;
use cohort_core::rank::Rank;
use cohort_core::request::RequestRef;
use cohort_core::waits::Awaited;
use core::cell::{OnceCell, RefCell};

/// A persistent collective: all its starts meet in a chain of their own, so that members may
/// start several such operations in any order. Used by one thread of its rank at a time.
#[derive(Debug)]
pub struct Repeated {
    form: Form,
    /// The start that is under way, or complete and not ended.
    active: RefCell<Active>,
}

#[derive(Debug)]
enum Form {
    WithinNode(WithinNode),
    /// Among nodes, or between the groups of an intercommunicator.
    Schedules(Operation),
}

#[derive(Debug)]
struct WithinNode {
    rank: &'static Rank,
    chain: Chain,
    /// What small operations go on with once their members know that they are small.
    exchange: OnceCell<Exchange>,
}

#[derive(Debug)]
enum Active {
    Nothing,
    Request(RequestRef),
    Exchange,
}

impl Repeated {
    /// Begins a persistent operation: the members' nonblocking collectives and persistent ones meet in the order
    /// in which they are begun.
    ///
    /// # Errors
    /// No memory.
    pub fn open(group: &Group<'_>) -> Result<Self, EngineError> {
        Ok(Self::with(match group.extent(Label::NONE) {
            Extent::OneNode(group) | Extent::Compared(group) => {
                let chain = Chain::open(&group.place(), &mut group.rank().enter());
                Form::WithinNode(WithinNode {
                    rank: group.rank().forever(),
                    chain: chain.ok_or(EngineError::OutOfMemory)?,
                    exchange: OnceCell::new(),
                })
            }
            Extent::Nodes(hierarchy) => Form::Schedules(Operation::repeated(group, hierarchy)?),
        }))
    }

    /// [`Repeated::open`] on an intercommunicator, whose calls are as [`start_between`](super::start_between) takes
    /// them.
    #[must_use]
    pub fn open_between(inter: &Intergroup<'_>) -> Self {
        Self::with(Form::Schedules(Operation::repeated_between(inter)))
    }

    fn with(form: Form) -> Self {
        let active = RefCell::new(Active::Nothing);
        Self { form, active }
    }

    /// Starts the operation once. `call` describes it, in each start as in the first one.
    ///
    /// # Safety
    /// As for [`start`](super::start); the previous start is complete and was ended.
    ///
    /// # Errors
    /// As [`start`](super::start).
    #[inline]
    pub unsafe fn start<'a>(&self, owner: Owner<'_>, call: impl FnOnce() -> Call<'a>) -> Result<(), EngineError> {
        // SAFETY: the caller's conditions.
        let begun = unsafe {
            match &self.form {
                Form::WithinNode(it) => match it.exchange.get() {
                    Some(exchange) => {
                        exchange.start();
                        Active::Exchange
                    }
                    None => it.start(&call())?,
                },
                Form::Schedules(operation) => Active::Request(operation.start(owner, &call())?),
            }
        };
        self.active.replace(begun);
        Ok(())
    }

    fn exchange(&self) -> Option<&Exchange> {
        match &self.form {
            Form::WithinNode(it) => it.exchange.get(),
            Form::Schedules(_) => None,
        }
    }

    /// Whether a start is under way, or complete and not ended.
    #[inline]
    #[must_use]
    pub fn is_active(&self) -> bool {
        !matches!(*self.active.borrow(), Active::Nothing)
    }

    /// Whether nothing is under way.
    #[inline]
    #[must_use]
    pub fn is_complete(&self) -> bool {
        match &*self.active.borrow() {
            Active::Nothing => true,
            Active::Request(request) => request.is_complete(),
            Active::Exchange => self.exchange().is_none_or(Exchange::is_complete),
        }
    }

    /// [`Repeated::is_complete`] of a call that waits: looks for a moment where that may be enough.
    #[inline]
    #[must_use]
    pub fn await_briefly(&self) -> bool {
        match (&*self.active.borrow(), self.exchange()) {
            (Active::Exchange, Some(exchange)) => exchange.await_briefly(),
            _ => self.is_complete(),
        }
    }

    /// The outcome of a start that is complete.
    #[inline]
    #[must_use]
    pub fn status(&self) -> Status {
        match &*self.active.borrow() {
            Active::Request(request) => request.status(),
            Active::Nothing | Active::Exchange => Status::EMPTY,
        }
    }

    /// Ends a start; one that is under way goes on by itself. `release` gives a request of it back.
    #[inline]
    pub fn end(&self, release: impl FnOnce(RequestRef)) {
        if let Active::Request(request) = self.active.replace(Active::Nothing) {
            release(request);
        }
    }

    /// Ends a start that is complete and has no request: it has succeeded. `false`: it is not so, and nothing was done.
    #[inline]
    #[must_use]
    pub fn end_now(&self) -> bool {
        let mut active = self.active.borrow_mut();
        let is_over = matches!(*active, Active::Exchange) && self.exchange().is_some_and(Exchange::is_complete);
        if is_over {
            *active = Active::Nothing;
        }
        is_over
    }

    /// Tells what a start that is under way waits for.
    pub fn tell(&self, claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        match (&*self.active.borrow(), self.exchange()) {
            (Active::Request(request), _) => request.tell(claim, tell),
            (Active::Exchange, Some(exchange)) => exchange.tell(tell),
            _ => {}
        }
    }
}

impl WithinNode {
    /// Starts a pool, or the first exchange.
    ///
    /// # Safety
    /// As for [`Repeated::start`].
    #[cold]
    unsafe fn start(&self, call: &Call<'_>) -> Result<Active, EngineError> {
        let place = self.chain.place();
        // Of the start before, which is complete.
        if let Some(pool) = self.chain.latest()
            && let Some(board) = pool.plan().and_then(|plan| plan.board)
            && let Some(parts) = pool.parts()
        {
            // SAFETY: the board of this operation; all members have posted. Each start is like this one.
            unsafe {
                let made = Exchange::new(board, parts, call, place.me)?;
                self.exchange.get_or_init(|| made).start();
            }
            return Ok(Active::Exchange);
        }
        let manner = Manner { is_repeated: true, ..Manner::ONCE };
        // SAFETY: the caller's conditions.
        Ok(Active::Request(unsafe { post(self.rank, &Spot::Next(&place), call, manner)? }))
    }
}

impl Drop for WithinNode {
    fn drop(&mut self) {
        let latest = self.chain.latest();
        let board = latest.as_ref().and_then(|it| it.plan()).and_then(|it| it.board);
        if let (Some(board), None) = (board, self.exchange.get()) {
            // SAFETY: our reference, which no exchange has.
            unsafe { exchange::leave(board) };
        }
    }
}
