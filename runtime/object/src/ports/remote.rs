//! Ports and published names of processes of other nodes of the job: what is said of them travels as words
//! (`net/src/calls.rs`), and what the leaders of two groups tell each other then as messages that programs do not use.

use super::Side;
use crate::outside::name_between_jobs;
use crate::{Error, Outcome, blame, owner_of};
use alloc::string::String;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::clock::{ticks, ticks_per_us};
use cohort_base::{LocalRank, Peer, WorldRank};
use cohort_engine::calls::{self, Done, NAMES_MAX, Reason, Step, TEXT_MAX, Word};
use cohort_engine::datatype::Buffer;
use cohort_engine::lifecycle::await_port;
use cohort_engine::wait::progress;
use cohort_engine::{
    Claim, EngineError, Envelope, Node, Rank, RequestRef, SendMode, Source, Tag, irecv, isend, outside,
};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

/// Context of the messages between leaders, which no communicator has.
const CONTEXT: u32 = 3;

/// How long who publishes a name waits for its keeper.
const PUBLISH_TIME: Duration = Duration::from_secs(1);

/// How long who looks for a name waits for its keeper.
const LOOKUP_TIME: Duration = Duration::from_secs(30);

/// How often a name is looked for that is not known.
const ATTEMPTS: u32 = 4;

/// Questions that ranks of this image have asked.
static ASKED: AtomicU32 = AtomicU32::new(0);

/// Works under the claim of a rank of this node, which may be another one's; `None` if that has failed.
pub(super) fn under_claim<R>(rank: &Rank, of: LocalRank, work: impl FnOnce(&mut Claim<'_>) -> R) -> Option<R> {
    if of == rank.id() {
        return Some(work(&mut rank.enter()));
    }
    while !rank.node().has_failed(Peer::local(of)) {
        if let Some(mut claim) = rank.node().rank(of).try_steal(rank.id()) {
            return Some(work(&mut claim));
        }
        rustix::thread::sched_yield();
    }
    None
}

fn no_memory(_: EngineError) -> Error {
    neutral::ERR_NO_MEM.into()
}

/// Asks a rank of another node: the number of the question.
fn ask(rank: &Rank, to: Peer, word: impl FnOnce(Word) -> Word, step: Step) -> Outcome<u32> {
    let serial = ASKED.fetch_add(1, Ordering::Relaxed) & 0x3fff_ffff;
    let mut claim = rank.enter();
    calls::expect(&mut claim).map_err(no_memory)?;
    let question = word(Word::new(rank.peer(), step, serial));
    calls::say(&mut claim, to, &question);
    calls::kick(&mut claim);
    Ok(serial)
}

/// The answer, if it is there.
fn answer_to(claim: &mut Claim<'_>, serial: u32) -> Option<Word> {
    calls::take(claim, |it| it.step.is_answer() && it.serial == serial)
}

/// Asks the keeper of names, and waits for the answer, but no longer than this: it may be outside of MPI, alone on its
/// node, and wait for this rank. `None` if there is none in that time, or the keeper has ended.
fn ask_keeper(rank: &Rank, keeper: Peer, text: &[u8], step: Step, limit: Duration) -> Outcome<Option<Word>> {
    let serial = ask(rank, keeper, |word| word.with_text(text), step)?;
    let until = ticks() + limit.as_micros() as u64 * ticks_per_us();
    loop {
        let mut claim = rank.enter();
        let answer = answer_to(&mut claim, serial);
        if answer.is_some() || is_lost(&mut claim, keeper) || ticks() > until {
            return Ok(answer);
        }
        drop(claim);
        progress(owner_of(rank));
        rustix::thread::sched_yield();
    }
}

/// Says something to a rank of another node.
pub(super) fn answer(rank: &Rank, to: (Peer, u32), step: Step, value: u64) {
    let (peer, serial) = to;
    let mut claim = rank.enter();
    let word = Word::new(rank.peer(), step, serial).with_value(value);
    calls::say(&mut claim, peer, &word);
    calls::kick(&mut claim);
}

/// Whoever has knocked from other nodes at a port of this rank of the node, since the last time: each one's leader, and
/// the number of its question.
pub(super) fn knocks(rank: &Rank, opener: LocalRank, port: u32) -> Vec<(Peer, u32)> {
    let taken = under_claim(rank, opener, |claim| {
        outside::look(claim);
        let is_wanted = |word: &Word| word.step == Step::Knock && word.port == port;
        core::iter::from_fn(|| calls::take(claim, is_wanted).map(|word| (word.from, word.serial))).collect()
    });
    taken.unwrap_or_default()
}

/// Whether somebody has knocked there, for a wait whose rank's claim this is. Yes, if it cannot be seen now: the call
/// looks again.
pub(crate) fn is_knocked(claim: &mut Claim<'_>, opener: LocalRank, port: u32) -> bool {
    let is_wanted = |word: &Word| word.step == Step::Knock && word.port == port;
    let (rank, node) = (claim.rank().id(), claim.rank().node());
    if opener == rank {
        return calls::has(claim, is_wanted);
    }
    node.rank(opener).try_steal(rank).is_none_or(|mut other| {
        // It may compute, and nobody looks at what comes for it from other jobs.
        outside::look(&mut other);
        calls::has(&mut other, is_wanted)
    })
}

/// Whether a rank of another node answers nothing more: it has said goodbye to the claimed one, or has failed.
fn is_lost(claim: &mut Claim<'_>, peer: Peer) -> bool {
    calls::is_gone(claim, peer) || claim.rank().node().has_failed(peer)
}

/// Connects at a port of another node.
///
/// # Errors
/// `MPI_ERR_PORT`
pub(crate) fn connect(rank: &Rank, (opener, port): (Peer, u32), name: &str, own: &[i32]) -> Outcome<Side> {
    let serial = ask(rank, opener, |word| word.about(port), Step::Knock)?;
    let mut answer = None;
    await_port(owner_of(rank), name, false, |claim| {
        // It may be looked at again when it is over.
        answer = answer.take().or_else(|| answer_to(claim, serial));
        answer.is_some() || is_lost(claim, opener)
    });
    let word = match answer {
        Some(word) if word.step == Step::Accepted => word,
        refused => {
            let why = match refused.map(|word| word.value) {
                Some(reason) if reason == Reason::Full as u64 => "too many wait there already",
                Some(_) => "the port is not open, or was closed before anybody accepted the connection",
                None => "the process that has opened it has ended",
            };
            return Err(blame(neutral::ERR_PORT, format_args!("\"{name}\": {why}")));
        }
    };
    let members = swap(rank, (word.from, word.serial), name, own, true)?.ok_or_else(|| {
        let what = format_args!("\"{name}\": the process that has accepted the connection has ended");
        blame(neutral::ERR_PORT, what)
    })?;
    Ok(Side { members, number: word.value as u32, occasion: (word.value >> 32) as u32 })
}

/// Accepts who has knocked from another node: tells the number, and gives the members of the other group; `None` if
/// the caller is lost.
///
/// # Errors
/// `MPI_ERR_NO_MEM`
pub(crate) fn accept(rank: &Rank, caller: (Peer, u32), name: &str, side: &Side) -> Outcome<Option<Vec<i32>>> {
    answer(rank, caller, Step::Accepted, u64::from(side.number) | u64::from(side.occasion) << 32);
    swap(rank, caller, name, &side.members, false)
}

/// Leaders tell each other the members of their groups; the one that has knocked begins. `None` if the other one is
/// lost before it has told them.
fn swap(rank: &Rank, (peer, serial): (Peer, u32), name: &str, own: &[i32], begins: bool) -> Outcome<Option<Vec<i32>>> {
    // Both may have knocked at the other's port.
    let tags = [2 * serial, 2 * serial + 1].map(u32::cast_signed);
    let [mine, theirs] = if begins { tags } else { [tags[1], tags[0]] };
    let node = rank.node();
    let envelope = Envelope { context: CONTEXT, source: name_between_jobs(node, rank.peer()), tag: mine };
    let tell = |list: Vec<i32>| {
        pass(rank, (peer, name), list, |claim, buffer| isend(claim, buffer, peer, envelope, SendMode::Standard))
    };
    let from = || Source::Rank { peer, comm_rank: name_between_jobs(node, peer) };
    let hear = |length: usize| {
        pass(rank, (peer, name), alloc::vec![0; length], |claim, buffer| {
            irecv(claim, buffer, from(), CONTEXT, Tag::Is(theirs))
        })
    };
    let mut others = Vec::new();
    for tells in [begins, !begins] {
        if tells {
            if tell(alloc::vec![own.len() as i32])?.is_none() || tell(own.to_vec())?.is_none() {
                return Ok(None);
            }
        } else {
            let Some(length) = hear(1)? else {
                return Ok(None);
            };
            let Some(list) = hear(length[0] as usize)? else {
                return Ok(None);
            };
            others = list;
        }
    }
    Ok(Some(others))
}

/// Sends or receives a list, and gives it when that is over; `None` if the other leader is lost before.
fn pass(
    rank: &Rank,
    (peer, name): (Peer, &str),
    mut list: Vec<i32>,
    start: impl FnOnce(&mut Claim<'_>, Buffer<'_>) -> Result<RequestRef, EngineError>,
) -> Outcome<Option<Vec<i32>>> {
    // SAFETY: the list stays until the request is over, or for ever.
    let buffer = unsafe { Buffer::of_bytes(list.as_mut_ptr().cast(), size_of_val(&*list) as u64) };
    let request = start(&mut rank.enter(), buffer).map_err(no_memory)?;
    // The other leader may be one of another job, also for who connects.
    await_port(owner_of(rank), name, true, |claim| request.is_complete() || is_lost(claim, peer));
    let mut claim = rank.enter();
    let is_whole = request.is_complete() && request.status().error == neutral::SUCCESS;
    if !request.is_complete() {
        request.cancel(&mut claim);
    }
    let is_over = request.is_complete();
    request.release(&mut claim);
    drop(claim);
    if !is_over {
        // Who is lost in the middle of a message never ends it: its memory stays.
        core::mem::forget(list);
        return Ok(None);
    }
    Ok(is_whole.then_some(list))
}

/// A name and a port, as the keeper is told them.
///
/// # Errors
/// `MPI_ERR_SERVICE` if they are too long; `MPI_ERR_NAME` for a name alone, which nobody can have published.
fn text_of(name: &str, port: Option<&str>) -> Outcome<Vec<u8>> {
    let mut text = Vec::from(name.as_bytes());
    if let Some(port) = port {
        text.push(0);
        text.extend_from_slice(port.as_bytes());
    }
    if text.len() > TEXT_MAX {
        let length = text.len();
        return Err(match port {
            Some(_) => {
                let what = format_args!("the name and the port have {length} bytes, more than {TEXT_MAX}");
                blame(neutral::ERR_SERVICE, what)
            }
            None => {
                let what = format_args!("the name has {length} bytes: no name of more than {TEXT_MAX} is published");
                blame(neutral::ERR_NAME, what)
            }
        });
    }
    Ok(text)
}

/// Does at the keeper of names, the job's first rank, which is of this node, what a word asks for; `None` if it has
/// failed.
fn keep(rank: &Rank, keeper: LocalRank, step: Step, text: &[u8]) -> Outcome<Option<(Done, Vec<u8>)>> {
    let kept = under_claim(rank, keeper, |claim| {
        let word = Word::new(rank.peer(), step, 0).with_text(text);
        let mut port = [0; TEXT_MAX];
        let (done, length) = calls::register(claim, &word, &mut port).map_err(no_memory)?;
        Ok((done, Vec::from(&port[..length])))
    });
    kept.transpose()
}

/// Publishes a port of this node for the others; false if somebody has published the name.
///
/// # Errors
/// `MPI_ERR_NO_MEM`, and `MPI_ERR_SERVICE` for a text that is too long, or one name too many.
pub(super) fn publish(rank: &Rank, name: &str, port: &str) -> Outcome<bool> {
    let text = text_of(name, Some(port))?;
    let keeper = rank.node().peer(0);
    let done = match rank.node().local(keeper) {
        Some(here) => keep(rank, here, Step::Publish, &text)?.map(|(done, _)| done),
        None => ask_keeper(rank, keeper, &text, Step::Publish, PUBLISH_TIME)?.map(|word| Done::of(word.value)),
    };
    let done = match done {
        Some(done) => done,
        None if rank.node().has_failed(keeper) => {
            let what = format_args!("\"{name}\" cannot be published: rank 0, which keeps names, has failed");
            return Err(blame(neutral::ERR_SERVICE, what));
        }
        // Who does not answer in time has the word before any later question.
        None => Done::Yes,
    };
    if done == Done::Full {
        let what = format_args!(
            "\"{name}\" cannot be published: {NAMES_MAX} names are, as many as a job of several nodes can have at a \
             time; MPI_Unpublish_name makes room"
        );
        return Err(blame(neutral::ERR_SERVICE, what));
    }
    Ok(done == Done::Yes)
}

/// The port that a process of another node has published.
///
/// # Errors
/// `MPI_ERR_NO_MEM`, and `MPI_ERR_NAME` if nobody answers.
pub(super) fn lookup(rank: &Rank, name: &str) -> Outcome<Option<String>> {
    let text = text_of(name, None)?;
    let keeper = rank.node().peer(0);
    for attempt in 0..ATTEMPTS {
        let answer = match rank.node().local(keeper) {
            Some(here) => keep(rank, here, Step::Lookup, &text)?,
            None => ask_keeper(rank, keeper, &text, Step::Lookup, LOOKUP_TIME)?
                .map(|word| (Done::of(word.value), Vec::from(word.text()))),
        };
        let Some((done, port)) = answer else {
            let what = format_args!("rank 0, which knows what is published, does not answer");
            return Err(blame(neutral::ERR_NAME, what));
        };
        if done == Done::Yes {
            // It is what a process of this build has published.
            return Ok(Some(String::from(core::str::from_utf8(&port).unwrap_or_default())));
        }
        // What another node has said before may come by another connection.
        if attempt + 1 < ATTEMPTS {
            progress(owner_of(rank));
            rustix::thread::sched_yield();
        }
    }
    Ok(None)
}

/// Tells the keeper of names what is no more published: a name and its port, or whatever this rank has published.
///
/// # Errors
/// `MPI_ERR_NO_MEM`
pub(super) fn take_back(rank: &Rank, published: Option<(&str, &str)>) -> Outcome<()> {
    let (step, text) = match published {
        Some((name, port)) => (Step::Unpublish, text_of(name, Some(port))?),
        None => (Step::Forget, Vec::new()),
    };
    let keeper = rank.node().peer(0);
    match rank.node().local(keeper) {
        Some(here) => keep(rank, here, step, &text).map(drop),
        None => ask(rank, keeper, |word| word.with_text(&text), step).map(drop),
    }
}

/// Who waits at a port of this node, by the other node.
pub(super) fn dismiss(rank: &Rank, caller: (Peer, u32)) {
    answer(rank, caller, Step::Refused, Reason::Closed as u64);
}

/// The rank of this node, or of another one, that has opened a port with this number of the job.
pub(super) fn opener(node: &Node, number: WorldRank) -> Option<Result<LocalRank, Peer>> {
    let peer = node.has_number(number).then(|| node.peer(number))?;
    Some(node.local(peer).ok_or(peer))
}
