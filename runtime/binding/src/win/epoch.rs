//! Synchronisation that blocks (MPI-4.1 section 12.5): each call waits for what its nonblocking form begins.

use super::{failed, fast_path};
use crate::arguments::{Call, Error, Outcome, output};
use cohort_abi::parameters::Out;
use cohort_abi::{Abi, Handle, neutral};
use cohort_engine::rma::{Closing, RmaError, Window};
use cohort_object::Win;
use cohort_object::win::Flavor;
use core::ffi::c_int;
use core::sync::atomic::{Ordering, fence as memory_fence};

/// The ranks in the window's group of the members of a group.
pub(super) fn ranks<A: Abi>(call: &Call<'_, A>, win: &Win, group: A::Group) -> Outcome<alloc::vec::Vec<u32>> {
    let group = call.objects().group(group.neutral())?;
    let rank = |member| match group.translate(member, win.group())? {
        neutral::UNDEFINED => {
            let what = format_args!("member {member} of the group is no member of the window");
            Err(call.blame(neutral::ERR_GROUP, what))
        }
        rank => Ok(rank.cast_unsigned()),
    };
    (0..group.size().cast_signed()).map(rank).collect()
}

/// The member that a lock is for; `None` is `MPI_PROC_NULL`. Checks the kind of lock too; says whether it is
/// exclusive.
pub(super) fn lock_arguments<A: Abi>(
    call: &Call<'_, A>,
    win: &Win,
    kind: c_int,
    rank: c_int,
) -> Outcome<(Option<u32>, bool)> {
    may_lock(call, win)?;
    let exclusive = match A::lock_type_in(kind) {
        neutral::LOCK_EXCLUSIVE => true,
        neutral::LOCK_SHARED => false,
        _ => {
            let what = format_args!("{kind} is no kind of lock");
            return Err(call.blame(neutral::ERR_LOCKTYPE, what));
        }
    };
    Ok((super::target(call, win, rank)?, exclusive))
}

/// Refuses locks on a window that was made with the hint `no_locks`.
pub(super) fn may_lock<A: Abi>(call: &Call<'_, A>, win: &Win) -> Outcome<()> {
    match win.has_no_locks() {
        false => Ok(()),
        true => {
            let what = format_args!("the window has the hint no_locks=true");
            Err(call.blame(neutral::ERR_RMA_SYNC, what))
        }
    }
}

/// What goes with `MPI_Win_post` and `MPI_Win_fence` (MPI-5.0 section 12.5.5).
const OF_POST: i32 = neutral::MODE_NOCHECK | neutral::MODE_NOSTORE | neutral::MODE_NOPUT;
const OF_FENCE: i32 = neutral::MODE_NOSTORE | neutral::MODE_NOPUT | neutral::MODE_NOPRECEDE | neutral::MODE_NOSUCCEED;

/// Neutral bits of what the program promises, which are some of those that go with the call.
#[inline(always)]
fn promised<A: Abi>(call: &Call<'_, A>, assertions: c_int, allowed: i32) -> Outcome<i32> {
    match A::assertion_in(assertions) {
        promised if promised & !allowed == 0 => Ok(promised),
        _ => Err(not_allowed(call, assertions)),
    }
}

#[cold]
fn not_allowed<A: Abi>(call: &Call<'_, A>, assertions: c_int) -> Error {
    let what = format_args!("the assertions {assertions:#x} have a bit that does not go with this call");
    call.blame(neutral::ERR_ASSERT, what)
}

/// What a fence does not do: complete what was before it, and begin an epoch.
pub(super) struct Fence {
    pub completes_nothing: bool,
    pub is_last: bool,
}

/// What the program promises of a fence.
#[inline(always)]
pub(super) fn of_fence<A: Abi>(call: &Call<'_, A>, assertions: c_int) -> Outcome<Fence> {
    let promised = promised(call, assertions, OF_FENCE)?;
    Ok(Fence {
        completes_nothing: promised & neutral::MODE_NOPRECEDE != 0,
        is_last: promised & neutral::MODE_NOSUCCEED != 0,
    })
}

/// Checks what the program promises of an exposure, upon which nothing depends.
pub(super) fn of_post<A: Abi>(call: &Call<'_, A>, assertions: c_int) -> Outcome<()> {
    promised(call, assertions, OF_POST).map(drop)
}

/// Whether the program says that no lock conflicts with this one, or that the exposures are there.
pub(super) fn is_unchecked<A: Abi>(call: &Call<'_, A>, assertions: c_int) -> Outcome<bool> {
    Ok(promised(call, assertions, neutral::MODE_NOCHECK)? != 0)
}

/// Waits for what a call began.
fn finish<A: Abi>(call: &Call<'_, A>, win: &Win, closing: Result<Closing, RmaError>) -> Outcome<()> {
    let finished = closing.and_then(|closing| win.window.finish(call.owner(), closing));
    finished.map_err(|error| failed(call, error))
}

/// `MPI_Win_fence`.
#[inline(always)]
pub fn fence<A: Abi>(call: &Call<'_, A>, assertions: c_int, win: A::Win) -> Outcome<()> {
    let win = call.on_win(win)?;
    let fence = of_fence(call, assertions)?;
    let closing = win.window.fence(call.owner(), fence.is_last);
    if !fence.completes_nothing {
        return finish(call, win, closing);
    }
    // It completes nothing, so nobody waits; the next epoch does.
    let closing = closing.map_err(|error| failed(call, error))?;
    win.window.forget(call.owner(), closing);
    Ok(())
}

/// `MPI_Win_start`. In a window of one piece for all members it waits for the exposures, so that the caller may load
/// and store there; else operations do.
pub fn start<A: Abi>(call: &Call<'_, A>, group: A::Group, assertions: c_int, win: A::Win) -> Outcome<()> {
    let win = call.on_win(win)?;
    let (members, nocheck) = (ranks(call, win, group)?, is_unchecked(call, assertions)?);
    let mut started = win.window.start(call.owner(), &members);
    if win.flavor() == Flavor::Shared && !nocheck {
        started = started.and_then(|()| win.window.await_access(call.owner(), None));
    }
    started.map_err(|error| failed(call, error))
}

/// `MPI_Win_post`.
pub fn post<A: Abi>(call: &Call<'_, A>, group: A::Group, assertions: c_int, win: A::Win) -> Outcome<()> {
    let win = call.on_win(win)?;
    of_post(call, assertions)?;
    let members = ranks(call, win, group)?;
    win.window.post(call.owner(), &members).map_err(|error| failed(call, error))
}

macro_rules! closings {
    ($($(#[$page:meta])* $name:ident;)*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi>(call: &Call<'_, A>, win: A::Win) -> Outcome<()> {
            let win = call.on_win(win)?;
            finish(call, win, win.window.$name(call.owner()))
        }
    )*};
}

closings! {
    /// `MPI_Win_complete`.
    complete;
    /// `MPI_Win_wait`.
    wait;
}

/// `MPI_Win_unlock_all`.
#[inline(always)]
pub fn unlock_all<A: Abi>(call: &Call<'_, A>, win: A::Win) -> Outcome<()> {
    let window = fast_path::window(call, win);
    if window.is_some_and(|window| window.unlock_all_now(call.owner())) {
        return Ok(());
    }
    long_unlock_all(call, win)
}

#[inline(never)]
fn long_unlock_all<A: Abi>(call: &Call<'_, A>, win: A::Win) -> Outcome<()> {
    let win = call.on_win(win)?;
    finish(call, win, win.window.unlock_all(call.owner()))
}

/// `MPI_Win_test`.
pub fn test<A: Abi>(call: &Call<'_, A>, win: A::Win, flag: Out<'_, c_int>) -> Outcome<()> {
    let win = call.on_win(win)?;
    let flag = output(flag)?;
    let over = win.window.test(call.owner()).map_err(|error| failed(call, error))?;
    flag.write(c_int::from(over));
    Ok(())
}

/// `MPI_Win_lock`. If the target is on this node it waits for the lock, so that the caller may load and
/// store there; else operations wait for it.
#[inline(always)]
pub fn lock<A: Abi>(call: &Call<'_, A>, kind: c_int, rank: c_int, assertions: c_int, win: A::Win) -> Outcome<()> {
    if assertions == 0
        && let Some(window) = fast_path::window(call, win)
    {
        let member = rank.cast_unsigned();
        let is_held = match A::lock_type_in(kind) {
            neutral::LOCK_EXCLUSIVE => window.lock_now::<true>(member),
            neutral::LOCK_SHARED => window.lock_now::<false>(member),
            _ => false,
        };
        if is_held {
            return Ok(());
        }
    }
    long_lock(call, kind, rank, assertions, win)
}

#[inline(never)]
fn long_lock<A: Abi>(call: &Call<'_, A>, kind: c_int, rank: c_int, assertions: c_int, win: A::Win) -> Outcome<()> {
    let win = call.on_win(win)?;
    let (target, exclusive) = lock_arguments(call, win, kind, rank)?;
    let nocheck = is_unchecked(call, assertions)?;
    let Some(target) = target else { return Ok(()) };
    let locked = win.window.lock(call.owner(), target, exclusive, nocheck);
    if !locked.map_err(|error| failed(call, error))? {
        win.window.await_access(call.owner(), Some(target)).map_err(|error| failed(call, error))?;
    }
    Ok(())
}

/// `MPI_Win_unlock`.
#[inline(always)]
pub fn unlock<A: Abi>(call: &Call<'_, A>, rank: c_int, win: A::Win) -> Outcome<()> {
    let window = fast_path::window(call, win);
    if window.is_some_and(|window| window.unlock_now(call.owner(), rank.cast_unsigned())) {
        return Ok(());
    }
    long_unlock(call, rank, win)
}

#[inline(never)]
fn long_unlock<A: Abi>(call: &Call<'_, A>, rank: c_int, win: A::Win) -> Outcome<()> {
    let win = call.on_win(win)?;
    match super::target(call, win, rank)? {
        Some(target) => finish(call, win, win.window.unlock(call.owner(), target)),
        None => Ok(()),
    }
}

/// `MPI_Win_lock_all`. Waits for the locks of this node, as [`lock`] does.
#[inline(always)]
pub fn lock_all<A: Abi>(call: &Call<'_, A>, assertions: c_int, win: A::Win) -> Outcome<()> {
    let is_held = assertions == 0 && fast_path::window(call, win).is_some_and(Window::lock_all_now);
    match is_held {
        true => Ok(()),
        false => long_lock_all(call, assertions, win),
    }
}

#[inline(never)]
fn long_lock_all<A: Abi>(call: &Call<'_, A>, assertions: c_int, win: A::Win) -> Outcome<()> {
    let win = call.on_win(win)?;
    may_lock(call, win)?;
    let locked = win.window.lock_all(call.owner(), is_unchecked(call, assertions)?);
    if !locked.map_err(|error| failed(call, error))? {
        win.window.await_access(call.owner(), None).map_err(|error| failed(call, error))?;
    }
    Ok(())
}

macro_rules! flushes {
    ($($(#[$page:meta])* $name:ident;)*) => {$(
        $(#[$page])*
        #[inline(always)]
        pub fn $name<A: Abi>(call: &Call<'_, A>, rank: c_int, win: A::Win) -> Outcome<()> {
            let window = fast_path::window(call, win);
            if window.is_some_and(|window| window.flush_now(call.owner(), rank.cast_unsigned())) {
                return Ok(());
            }
            long_flush(call, rank, win)
        }
    )*};
}

#[inline(never)]
fn long_flush<A: Abi>(call: &Call<'_, A>, rank: c_int, win: A::Win) -> Outcome<()> {
    let win = call.on_win(win)?;
    match super::target(call, win, rank)? {
        Some(target) => finish(call, win, win.window.flush(call.owner(), Some(target))),
        None => Ok(()),
    }
}

flushes! {
    /// `MPI_Win_flush`.
    flush;
    /// `MPI_Win_flush_local`. Operations are complete at their origin when they are at their target.
    flush_local;
}

macro_rules! flushes_of_all {
    ($($(#[$page:meta])* $name:ident;)*) => {$(
        $(#[$page])*
        pub fn $name<A: Abi>(call: &Call<'_, A>, win: A::Win) -> Outcome<()> {
            let win = call.on_win(win)?;
            finish(call, win, win.window.flush(call.owner(), None))
        }
    )*};
}

flushes_of_all! {
    /// `MPI_Win_flush_all`.
    flush_all;
    /// `MPI_Win_flush_local_all`.
    flush_local_all;
}

/// `MPI_Win_sync`: the two copies of the window are one, so only the order of memory accesses is at stake.
#[inline(always)]
pub fn sync<A: Abi>(call: &Call<'_, A>, win: A::Win) -> Outcome<()> {
    let win = call.on_win(win)?;
    memory_fence(Ordering::SeqCst);
    // A program may wait in a loop for what others store, and they may need this process's CPU.
    win.window.turn(call.owner());
    Ok(())
}
