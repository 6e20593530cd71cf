//! The beginning and the end of a rank.

pub use crate::abort::{abort, abort_members, abort_with, must_leave};
use crate::ranks::Claim;
use crate::ranks::{Owner, Rank, hooks};
use crate::wait::{self, WaitKind};
use crate::waits::Awaited;
use cohort_base::boot::NO_SHARE;
use cohort_base::picture::{Fact, Told};
use cohort_base::spawn::{Request, State};
use cohort_steal::TaskKind;
use core::ffi::CStr;
use rustix::process::{Pid, Signal, kill_process};

/// Begins: has every subsystem start what it has for the rank. By the rank's own task, at
/// initialisation. Without memory or threads for it the rank simply progresses inside its own
/// calls.
pub fn begin(owner: Owner<'static>) {
    settle(owner.rank());
    hooks::begin(owner);
}

/// Where a rank that is bound to no CPU gathers with others of its node ([`Cpu`](crate::cpu::Cpu)), if nodes share too
/// few.
fn settle(rank: &Rank) {
    let node = rank.node().boot();
    if node.first_cpu != NO_SHARE && node.node_ranks > 1 && rank.place().is_none() {
        rank.cpu().settle((node.first_cpu + rank.id() % node.cpus.max(1)) as usize);
    }
}

/// Ends the rank's use of the network, once all it has sent has left, and stops what [`begin`] started. By the
/// rank's own task, at finalisation.
pub fn end(owner: Owner<'static>) {
    hooks::end(owner);
}

/// Waits until every rank of the node that the rank is connected with has come here or has left ([`abort_members`]), so
/// that nobody's memory goes away while another still reads it. Once per rank.
pub fn meet_at_end(owner: Owner<'_>) {
    let rank = owner.rank();
    let node = rank.node();
    rank.mark_done();
    wait::until(owner, TheEnd, || node.all_done(rank));
}

/// Nobody waits for the rank at the end ([`meet_at_end`]) from now on: its last session is over. It may have others.
pub fn leave_without_meeting(owner: Owner<'_>) {
    owner.rank().mark_done();
}

/// The rank meets others at the end, whatever sessions it has had before.
pub fn will_meet_at_end(owner: Owner<'_>) {
    owner.rank().unmark_done();
}

/// Asks the launcher for more ranks, or something else, and waits for its answer.
///
/// # Errors
/// Why there is no launcher to ask.
///
/// # Safety
/// What the request leads to stays, and nobody changes it, until this returns.
pub unsafe fn ask(owner: Owner<'_>, request: &Request) -> Result<(), &'static str> {
    let boot = owner.rank().node().boot();
    // SAFETY: NULL, or a record that stays.
    let desk = unsafe { boot.desk.as_ref() }.ok_or(
        "there is no launcher that could start processes here, or join them with another job: several ranks with an \
         address space each (--isolate, or no pip-exec; `MANAGER pip-exec PROGRAM` has one) can have none, nor where \
         memory is limited (ulimit -v, ulimit -d)",
    )?;
    if let (0, Some(summon)) = (desk.launcher(), boot.summon) {
        // SAFETY: by the rank's own task, of which the program has one in MPI at a time for this.
        let reason = unsafe { summon() };
        if !reason.is_null() {
            // SAFETY: a C string that stays.
            let reason = unsafe { CStr::from_ptr(reason) };
            return Err(reason.to_str().unwrap_or("the launcher cannot be started"));
        }
    }
    let launcher = Pid::from_raw(desk.launcher()).ok_or("there is no launcher")?;
    if let Some(world) = owner.rank().world() {
        request.count_in(world);
    }
    // SAFETY: the caller's promise, and this returns when it has been answered.
    unsafe { desk.leave(request) };
    // It awaits this signal anyway. One that is gone ends its ranks.
    let _ = kill_process(launcher, Signal::CHILD);
    wait::until(owner, WaitKind::Request, || request.state() != State::Open);
    Ok(())
}

/// Waits for what another rank does at a port. One of this node [wakes](crate::rank::Rank::wake) the rank then; of one
/// of another node the network brings word. If it `accepts`, one of another job may come.
pub fn await_port(owner: Owner<'_>, port: &str, accepts: bool, done: impl FnMut(&mut Claim<'_>) -> bool) {
    let expects = owner.rank().node().has_network();
    if expects {
        owner.rank().enter().expect_more(TaskKind::Net);
    }
    if accepts {
        owner.rank().node().wait_at_port(true);
    }
    wait::until_with(owner, AtPort(port), done);
    if accepts {
        owner.rank().node().wait_at_port(false);
    }
    if expects {
        owner.rank().enter().expect_less(TaskKind::Net);
    }
}

/// What a rank waits for at the port of this name.
struct AtPort<'a>(&'a str);

impl Awaited for AtPort<'_> {
    fn tell(&self, _claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        tell(Fact::new(Told::Port).named(self.0));
    }
}

/// What a rank waits for that has come to its end.
struct TheEnd;

impl Awaited for TheEnd {
    fn tell(&self, _claim: &mut Claim<'_>, tell: &mut dyn FnMut(Fact)) {
        tell(Fact::new(Told::End));
    }
}
