//! Processes of other jobs, which meet at ports (MPI-5.0, 11.9).
//!
//! Each node has numbers of its own for them, so what processes tell each other of members are
//! [identities](cohort_engine::Identity) and not numbers. Numbers of communicators with members in several jobs are of
//! a range that no job draws others from; who draws one takes any, and all members look whether it is free at their
//! nodes ([`reserve`]).

use crate::group::Group;
use crate::{Outcome, blame, owner_of};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::clock::ticks;
use cohort_base::heir::HeirLock;
use cohort_base::spawn::{Errand, Request, SHARED_BITS, SHARED_NUMBERS, State};
use cohort_base::text::FixedText;
use cohort_base::{Peer, WorldRank};
use cohort_engine::{Identity, Node, Rank, lifecycle};
use core::fmt::Write;
use core::sync::atomic::{AtomicU32, Ordering};

/// Words that stand for a process: job (two), node, index there, and number in the job, if its own job tells it.
const WORDS: usize = 5;

/// No number is told.
const NO_NUMBER: u32 = u32::MAX;

/// What tells the job from others: a number that no other one has. Nodes of tests are told apart by their addresses.
pub(crate) fn token(node: &Node) -> u64 {
    static TOKENS: HeirLock<BTreeMap<usize, u64>> = HeirLock::new(BTreeMap::new());
    if node.boot().job != 0 {
        return node.boot().job;
    }
    let address = core::ptr::from_ref(node).addr();
    TOKENS.with(|tokens| {
        *tokens.entry(address).or_insert_with(|| {
            let process = u64::from(rustix::process::getpid().as_raw_nonzero().get().unsigned_abs());
            ticks() ^ process.rotate_left(40) ^ (address as u64).rotate_left(20) | 1
        })
    })
}

/// What tells a job from others, as it is written in names of ports.
pub(crate) fn digits(job: u64) -> FixedText<16> {
    FixedText::of(format_args!("{job:016x}"))
}

/// Members of a group, as processes of other nodes and jobs know them too.
pub(crate) fn words_of(rank: &Rank, group: &Group) -> Vec<i32> {
    let node = rank.node();
    let job = token(node);
    let mut words = Vec::with_capacity(WORDS * group.members().len());
    for &member in group.members() {
        let is_foreign = node.is_foreign(member);
        let identity = node.identity(member);
        let job = if is_foreign { identity.job } else { job };
        let number = if is_foreign { NO_NUMBER } else { node.world_rank(member) };
        let all = [job as u32, (job >> 32) as u32, identity.node, identity.index, number];
        words.extend(all.map(u32::cast_signed));
    }
    words
}

/// The group that such words stand for.
///
/// # Errors
/// `MPI_ERR_OTHER` for a process of a job that this node is not connected with.
pub(crate) fn group_of(rank: &Rank, words: &[i32]) -> Outcome<Group> {
    let node = rank.node();
    let own = token(node);
    let members = words.chunks_exact(WORDS).map(|words| {
        let word = |at: usize| words[at].cast_unsigned();
        let job = u64::from(word(0)) | u64::from(word(1)) << 32;
        let identity = Identity { job, node: word(2), index: word(3) };
        match job == own {
            true => own_peer(node, identity, word(4)),
            false => node.foreign_peer(identity).ok_or_else(|| {
                let what = format_args!(
                    "it has a process of the job {job:016x}, with whose node {} this node has no connection: its \
                     processes and these have never met at a port",
                    identity.node
                );
                blame(neutral::ERR_OTHER, what)
            }),
        }
    });
    Ok(Group::new(members.collect::<Outcome<Vec<Peer>>>()?, rank.peer()))
}

/// A process of the own job, with its number there or without.
fn own_peer(node: &Node, identity: Identity, number: WorldRank) -> Outcome<Peer> {
    if number != NO_NUMBER && node.has_number(number) {
        return Ok(node.peer(number));
    }
    let is_it = |peer: &Peer| {
        let own = node.identity(*peer);
        (own.node, own.index) == (identity.node, identity.index)
    };
    let mut numbers = (0..node.first_foreign()).filter(|&number| node.has_number(number)).map(|it| node.peer(it));
    numbers.find(is_it).ok_or_else(|| neutral::ERR_OTHER.into())
}

/// Whether some of these processes are of another job than the caller.
pub(crate) fn is_of_several_jobs(node: &Node, members: &[Peer]) -> bool {
    node.bridge().is_some() && members.iter().any(|&member| node.is_foreign(member))
}

/// What envelopes call a process among those of several jobs: a number that hardly ever two of them share.
pub(crate) fn name_between_jobs(node: &Node, member: Peer) -> i32 {
    let Identity { job, node, index } = node.identity(member);
    let mixed = scramble(job ^ (u64::from(node) << 32 | u64::from(index)).rotate_left(13));
    (mixed >> 33) as i32
}

/// What the node of a rank is called among those of several jobs: a number, not negative, that hardly ever two share.
pub(crate) fn home_between_jobs(rank: &Rank) -> i32 {
    let Identity { job, node, .. } = rank.node().identity(rank.peer());
    (scramble(job ^ u64::from(node).rotate_left(32)) >> 33) as i32
}

/// A number, not negative, of a process among all that a communicator joins; those of several jobs hardly ever share
/// one.
#[must_use]
pub fn number_among(node: &Node, everybody: &[Peer], member: Peer) -> i32 {
    match is_of_several_jobs(node, everybody) {
        true => name_between_jobs(node, member),
        false => node.world_rank(member).cast_signed(),
    }
}

/// A fresh number for a communicator of these processes.
pub(crate) fn drawn_for(rank: &Rank, members: &[Peer]) -> Option<u32> {
    match is_of_several_jobs(rank.node(), members) {
        false => rank.node().next_context(),
        true => Some(drawn_between_jobs(rank)),
    }
}

/// Any number of those for communicators with members in several jobs.
pub(crate) fn drawn_between_jobs(rank: &Rank) -> u32 {
    static DRAWN: AtomicU32 = AtomicU32::new(0);
    let drawn = u64::from(DRAWN.fetch_add(1, Ordering::Relaxed));
    let seed = token(rank.node()) ^ ticks().rotate_left(24) ^ drawn.rotate_left(52);
    SHARED_NUMBERS | (scramble(seed) >> (u64::BITS - SHARED_BITS)) as u32
}

/// What tells a communicator from others that might have drawn its number.
pub(crate) fn occasion(rank: &Rank) -> u32 {
    drawn_between_jobs(rank) & !SHARED_NUMBERS
}

/// Whether a number is of those.
pub(crate) fn is_shared_number(number: u32) -> bool {
    number >= SHARED_NUMBERS
}

/// Numbers of communicators with members in several jobs that ranks of a node have: by the node's address, as tests
/// have several.
static TAKEN: HeirLock<BTreeMap<(usize, u32), Taken>> = HeirLock::new(BTreeMap::new());

/// A number that is taken.
#[derive(Clone)]
struct Taken {
    /// Which of all that might have drawn it.
    occasion: u32,
    /// How many ranks of the node have the communicator.
    users: u32,
}

/// Takes a number for a communicator of several jobs at this node, for one rank; `occasion` is drawn with it, and tells
/// other members of the same one from others. False if another communicator has it, or one that nobody communicates in
/// any more had.
pub(crate) fn reserve(node: &Node, number: u32, occasion: u32) -> bool {
    if [number * 2, number * 2 + 1].into_iter().any(|context| node.is_closed(context)) {
        return false;
    }
    let key = (core::ptr::from_ref(node).addr(), number);
    TAKEN.with(|all| {
        let taken = all.entry(key).or_insert(Taken { occasion, users: 0 });
        let is_it = taken.occasion == occasion;
        taken.users += u32::from(is_it);
        is_it
    })
}

/// One more rank has a communicator of several jobs with this number, which is reserved, or was agreed on without that.
pub(crate) fn join(node: &Node, number: u32) {
    let key = (core::ptr::from_ref(node).addr(), number);
    TAKEN.with(|all| all.entry(key).or_insert(Taken { occasion: 0, users: 0 }).users += 1);
}

/// Gives a number back that one rank has [reserved](reserve).
pub(crate) fn give_back(node: &Node, number: u32) {
    let key = (core::ptr::from_ref(node).addr(), number);
    TAKEN.with(|all| {
        if let Some(taken) = all.get_mut(&key) {
            taken.users -= 1;
            if taken.users == 0 {
                all.remove(&key);
            }
        }
    });
}

/// Counts a communicator with these members among those that need the connections with their nodes, or no more.
pub(crate) fn use_lines(rank: &Rank, members: &[Peer], more: bool) {
    let node = rank.node();
    let Some(bridge) = node.bridge() else {
        return;
    };
    let mut counted = Vec::new();
    for &member in members.iter().filter(|&&member| node.is_foreign(member)) {
        let Some(line) = bridge.line_of(node.world_rank(member)) else {
            continue;
        };
        if !counted.contains(&line.first) {
            counted.push(line.first);
            line.use_it(rank.id(), more);
        }
    }
}

/// Has the launcher do something that concerns other jobs: the number and the text of its answer.
///
/// # Errors
/// Why it is not done, in words.
pub(crate) fn run(rank: &Rank, errand: Errand, text: &str) -> Result<(u32, String), String> {
    let mut said = String::new();
    // Memory that is short ends the process.
    let _ = write!(said, "{:016x} {text}", token(rank.node()));
    let request = Request::about(rank.id(), errand, &said);
    // SAFETY: the text stays until the request is answered, which `ask` waits for.
    unsafe { lifecycle::ask(owner_of(rank), &request) }.map_err(String::from)?;
    match request.state() {
        State::Granted => Ok((request.number(), String::from(request.answered()))),
        _ => Err(String::from(request.reason())),
    }
}

/// Mixes the bits of a number (the last step of SplitMix64).
const fn scramble(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// A piece of text for an error's reason, as long as there is room for.
pub(crate) fn reason(text: &str) -> FixedText<480> {
    FixedText::of(format_args!("{text}"))
}
