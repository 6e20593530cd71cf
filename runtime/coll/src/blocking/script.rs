//! Scripts of calls that wait for their end.

use crate::args::{Call, Label};
use crate::data::copy_whole;
use crate::exchange::wait_for;
use crate::fold::{Folder, Runner};
use crate::members::Caller;
use crate::script::{Endpoint, MemberList, Step};
use crate::write::{ScriptBuilder, write};
use alloc::vec::Vec;
use cohort_core::EngineError;
use cohort_core::Owner;
use cohort_net::together;

/// Tags of the messages of blocking collectives begin here and go down to [`END`]: one for each label. Members call
/// these in the same order and messages between two processes do not overtake each other, so one would do; in a wrong
/// program with another order, a message of another call is not taken for one of this.
const FIRST: i32 = -2;
const END: i32 = FIRST - Label::NUMBERS;
const _: () = assert!(END > -1000, "those of nonblocking collectives begin there");

/// A script to be written and then [`run`], of the group's member.
pub(crate) fn builder<'a>(group: &Caller<'a>, folder: Option<Folder<'a>>) -> ScriptBuilder<'a> {
    let endpoint = Endpoint {
        rank: group.rank(),
        context: group.context,
        me: group.me,
        tag: FIRST - group.label.number(),
        members: MemberList::Borrowed(group.world),
    };
    ScriptBuilder::new(endpoint, folder)
}

/// Runs all steps and waits for their end.
///
/// # Errors
/// [`EngineError::Truncated`] when a message was longer than its room, after everything else was done;
/// [`EngineError::OutOfMemory`], when some messages may be missing.
pub(crate) fn run(owner: Owner<'_>, script: ScriptBuilder<'_>) -> Result<(), EngineError> {
    let script = script.done();
    let rank = owner.rank();
    let mut outcome = Ok(());
    let mut messages = Vec::new();
    let is_message = |step: &Step<'_>| matches!(step, Step::Send { .. } | Step::Receive { .. });
    // Messages that follow each other start together.
    for steps in script.steps.chunk_by(|one, next| is_message(one) && is_message(next)) {
        let done = match &steps[0] {
            Step::Send { .. } | Step::Receive { .. } => {
                messages.try_reserve(steps.len()).map_err(|_| EngineError::OutOfMemory).and_then(|()| {
                    together(&mut rank.enter(), |claim| {
                        let mut begun = steps.iter().map(|step| script.begin(claim, step));
                        begun.try_for_each(|message| {
                            messages.push(message?);
                            Ok(())
                        })
                    })
                })
            }
            Step::Wait => wait_for(owner, messages.drain(..)),
            Step::Copy { from, to, .. } => copy_whole(*to, *from),
            Step::Fold { left, right } => {
                // SAFETY: this is a call of the owner's.
                unsafe { script.combine(*left, *right, Runner::Owner) };
                Ok(())
            }
        };
        if done == Err(EngineError::OutOfMemory) {
            let _ = wait_for(owner, messages.drain(..));
            return done;
        }
        outcome = outcome.and(done);
    }
    outcome.and(wait_for(owner, messages.drain(..)))
}

/// Writes and runs an operation in which each member sends and receives for itself.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_alone(group: &Caller<'_>, call: &Call<'_>) -> Result<(), EngineError> {
    let folder = call.folder()?;
    let mut script = builder(group, folder);
    write(&mut script, call, folder.as_ref())?;
    run(group.owner, script)
}
