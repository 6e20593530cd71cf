//! Nonblocking and persistent collectives, as their owners start them: schedules within a node, scripts among nodes.

mod operand;
mod operation;
mod plan;
mod post;
mod start;

use super::args::{Call, Form as CalledAs};
use super::inter::Intergroup;
use super::members::{Extent, Group, LocalGroup};
use super::schedule::Chain;
use cohort_core::EngineError;
use cohort_core::Owner;
use cohort_core::rank::Rank;
use cohort_core::request::RequestRef;
use operation::Operation;
pub(crate) use post::{AT_ONCE_MAX, finish, post};
use start::start_once;

/// Begins the operation: the next one of the group's nonblocking collectives at this member.
///
/// # Safety
/// All that `call` refers to, and the buffers, live until the request is complete; the request is not
/// released before.
///
/// # Errors
/// No memory, or a predefined operation that does not take the type; then the member has not taken part.
pub unsafe fn start(group: &Group<'_>, call: &Call<'_>) -> Result<RequestRef, EngineError> {
    // SAFETY: the caller's conditions.
    unsafe {
        match group.extent() {
            Extent::OneNode(group) => post(
                group.rank().forever(),
                &group.place(),
                call,
                AT_ONCE_MAX,
                None,
            ),
            Extent::Compared(group) => {
                let form = Some(CalledAs::Nonblocking);
                post(
                    group.rank().forever(),
                    &group.place(),
                    call,
                    AT_ONCE_MAX,
                    form,
                )
            }
            Extent::Nodes(hierarchy) => start_once(group, hierarchy, call),
        }
    }
}

/// [`start`] on an intercommunicator. Roots of `call` are [`Intergroup::place_of`].
///
/// # Safety
/// As for [`start`].
///
/// # Errors
/// As [`start`].
pub unsafe fn start_between(
    inter: &Intergroup<'_>,
    call: &Call<'_>,
) -> Result<RequestRef, EngineError> {
    // SAFETY: the caller's conditions.
    unsafe { Operation::between(inter).start(inter.local.owner, call) }
}

/// Compares the members' arguments of an operation that does not begin yet, and waits for that. Collective.
///
/// # Safety
/// What `call` refers to is live.
///
/// # Errors
/// [`EngineError::Disagreement`], no memory.
#[cold]
pub(crate) unsafe fn meet(
    group: &LocalGroup<'_>,
    call: &Call<'_>,
    form: CalledAs,
) -> Result<(), EngineError> {
    let rank = group.rank().forever();
    // SAFETY: the caller's promise, until the end of this call.
    let request = unsafe { post(rank, &group.place(), call, AT_ONCE_MAX, Some(form))? };
    finish(group.owner, request)
}

/// A persistent collective: all its starts meet in a chain of their own, so that members may
/// start several such operations in any order.
#[derive(Debug)]
pub struct Repeated(Form);

#[derive(Debug)]
enum Form {
    WithinNode(&'static Rank, Chain),
    /// Among nodes, or between the groups of an intercommunicator.
    Scripts(Operation),
}

impl Repeated {
    /// Begins a persistent operation: the members' nonblocking collectives and persistent ones meet in the order
    /// in which they are begun.
    ///
    /// # Errors
    /// No memory.
    pub fn open(group: &Group<'_>) -> Result<Self, EngineError> {
        Ok(Self(match group.extent() {
            Extent::OneNode(group) | Extent::Compared(group) => {
                let chain = Chain::open(&group.place(), &mut group.rank().enter());
                Form::WithinNode(
                    group.rank().forever(),
                    chain.ok_or(EngineError::OutOfMemory)?,
                )
            }
            Extent::Nodes(hierarchy) => Form::Scripts(Operation::repeated(group, hierarchy)?),
        }))
    }

    /// [`Repeated::open`] on an intercommunicator, whose calls are as [`start_between`] takes them.
    #[must_use]
    pub fn open_between(inter: &Intergroup<'_>) -> Self {
        Self(Form::Scripts(Operation::repeated_between(inter)))
    }

    /// Starts the operation once.
    ///
    /// # Safety
    /// As for [`start`]; the previous start is complete.
    ///
    /// # Errors
    /// As [`start`].
    pub unsafe fn start(
        &self,
        owner: Owner<'_>,
        call: &Call<'_>,
    ) -> Result<RequestRef, EngineError> {
        // SAFETY: the caller's conditions.
        unsafe {
            match &self.0 {
                Form::WithinNode(rank, chain) => {
                    post(rank, &chain.place(), call, AT_ONCE_MAX, None)
                }
                Form::Scripts(operation) => operation.start(owner, call),
            }
        }
    }
}
