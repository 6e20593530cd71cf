//! Counts a rank's calls: how long they took, what they sent, and for whom they waited.
//!
//! For whom a call waited is counted where it is known: the source of a receive, the one peer of the requests that a
//! wait is for, the member that came last to a collective in which all wait for all. Nobody is counted otherwise.

pub(super) mod classes;
mod files;
mod json;

pub use json::write;

use crate::calls::{CALLS, ParameterKind};
use crate::subject::Subject;
use crate::subject::observers::{Consumer, Observed, THREADS};
use crate::subject::statistics::{Arrivals, CommTally, Statistics, Tally};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use classes::{Class, Meeting, Shape, shapes};
use cohort_abi::neutral;
use cohort_base::clock::system::{ClockId, read};
use cohort_base::text::FixedText;
use cohort_engine::Node;
use cohort_object::Comm;
use core::ffi::CStr;
use core::sync::atomic::Ordering;
use files::FileCall;
use spin::Mutex;

/// Communicators that are counted apart; calls on others go to the last of them.
const COMMS_MAX: usize = 64;

/// Requests of one call whose peers are looked at.
const REQUESTS_SEEN: usize = 64;

/// The consumer that counts.
pub struct Counting;

impl Counting {
    /// Makes the process's statistics.
    pub fn new(subject: &Subject) -> Self {
        let world = subject.objects.rank().node().world_size();
        subject.statistics.call_once(|| Statistics::new(world, CALLS, THREADS));
        shapes();
        Self
    }
}

/// Nanoseconds of CPU time that the calling process has taken.
fn cpu_time() -> u64 {
    let time = read(ClockId::ProcessCPUTime);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// One call and what is counted of its rank.
struct Seen<'a> {
    call: &'a Observed<'a>,
    shape: &'static Shape,
    statistics: &'a Statistics,
}

impl Consumer for Counting {
    fn begin(&self, call: &Observed<'_>) {
        let Some(statistics) = call.subject.statistics.get() else {
            return;
        };
        if statistics.begun.get() == 0 {
            statistics.begun.set(call.begun);
            statistics.cpu_begun.set(cpu_time());
        }
        let shape = &shapes()[call.call.number as usize];
        let seen = Seen { call, shape, statistics };
        if call.depth == 0 {
            if call.thread == 0 {
                statistics.inside_since.set(call.begun);
                statistics.inside.set(u64::from(call.call.number) + 1);
            }
            seen.begin();
        }
    }

    fn end(&self, call: &Observed<'_>, code: i32, ended: u64) {
        let Some(statistics) = call.subject.statistics.get() else {
            return;
        };
        let shape = &shapes()[call.call.number as usize];
        let seen = Seen { call, shape, statistics };
        if call.depth == 0 {
            seen.end(code == 0, ended);
        } else if !statistics.is_paused.load(Ordering::Relaxed) {
            // Its time is that of the call which it is in.
            statistics.calls[call.call.number as usize].count.add(1);
        }
    }
}

impl Seen<'_> {
    fn begin(&self) {
        let awaited = &self.statistics.awaited[self.call.thread];
        awaited.set(0);
        match self.shape.class {
            Class::Wait => awaited.set(self.peer_of_requests().map_or(0, |peer| u64::from(peer) + 1)),
            Class::Collective(_) => self.come(),
            Class::Other if self.shape.file == Some(FileCall::Close) => awaited.set(u64::from(self.closing())),
            Class::CommFree => {
                // SAFETY: the program passes the address of a handle, as the standard demands.
                let handle = unsafe { self.call.words.comm_at(self.call.word(0)) };
                let mut comms = self.statistics.comms.lock();
                if let Some(comm) = comms.iter_mut().find(|comm| comm.handle == handle) {
                    comm.handle = 0;
                }
            }
            Class::SectionEnd => {
                if let Some(label) = self.label() {
                    self.statistics.end_section(label, self.call.begun);
                }
            }
            _ => {}
        }
    }

    fn end(&self, is_well: bool, ended: u64) {
        let statistics = self.statistics;
        if is_well {
            self.note(ended);
        }
        statistics.ended.set(ended);
        if self.shape.class == Class::Finalize {
            statistics.cpu_ended.set(cpu_time());
        }
        if statistics.is_paused.load(Ordering::Relaxed) {
            return;
        }
        let time = ended.saturating_sub(self.call.begun);
        let (waited, whom) = match is_well {
            true => self.waited(time),
            false => (0, None),
        };
        let bytes = if is_well { self.bytes() } else { 0 };
        if is_well {
            self.count_messages();
        }
        let count = |tally: &Tally| {
            tally.count.add(1);
            tally.time.add(time);
            tally.waiting.add(waited);
            tally.bytes.add(bytes);
        };
        count(&statistics.calls[self.call.call.number as usize]);
        self.with_comm(|tally| count(&tally.tally));
        self.count_file(is_well, time);
        if self.call.thread == 0 {
            statistics.inside.set(0);
            statistics.mpi.add(time);
            statistics.waiting.add(waited);
            let at = |ticks: u64| ticks.saturating_sub(statistics.begun.get());
            let mut course = statistics.course.lock();
            course.add(at(self.call.begun), at(ended), waited);
            drop(course);
            if let Some(peer) = whom.and_then(|whom| statistics.peers.get(whom as usize)) {
                peer.waited.add(waited);
            }
        }
    }

    /// What a call that has ended well changes in the statistics themselves.
    fn note(&self, ended: u64) {
        let (call, statistics) = (self.call, self.statistics);
        if let Some(place) = self.shape.request {
            // SAFETY: the call has ended well, so it has written a handle there.
            let request = unsafe { call.words.request_at(call.word(place), 0) };
            let has_peer = matches!(self.shape.class, Class::Send { .. } | Class::SendInit | Class::ReceiveBegin);
            let peer = has_peer.then(|| self.awaited_peer()).flatten();
            statistics.remember(request, peer);
            if self.shape.class == Class::SendInit
                && let Some(to) = self.target()
            {
                let sent = (to, self.shape.bytes(call));
                statistics.persistent.lock().insert(request, sent);
            }
        }
        match self.shape.class {
            Class::SetName => {
                if let Some(comm) = call.comm() {
                    self.with_comm(|tally| tally.name = comm.name());
                }
            }
            Class::SectionBegin => {
                if let Some(label) = self.label() {
                    statistics.begin_section(label, ended);
                }
            }
            Class::Pcontrol => self.control(ended),
            _ => {}
        }
    }

    /// `MPI_Pcontrol`: 0 stops the counting, 1 goes on with it, `n` from 2 up begins stage `n`, and `-n` ends it.
    fn control(&self, now: u64) {
        let statistics = self.statistics;
        let level = self.call.number(0);
        let label = FixedText::<32>::of(format_args!("Pcontrol {}", level.unsigned_abs()));
        match level {
            0 | 1 => statistics.is_paused.store(level == 0, Ordering::Relaxed),
            2.. => statistics.begin_section(label.as_str(), now),
            _ => statistics.end_section(label.as_str(), now),
        }
    }

    /// The label of a stage.
    fn label(&self) -> Option<&str> {
        let address = core::ptr::with_exposed_provenance(self.call.word(1) as usize);
        let address: *const core::ffi::c_char = address;
        if address.is_null() {
            return None;
        }
        // SAFETY: the program passes a string, as the function demands, which stays during the call.
        unsafe { CStr::from_ptr(address) }.to_str().ok()
    }

    /// How long the call waited for others, and for whom.
    fn waited(&self, time: u64) -> (u64, Option<u32>) {
        match self.shape.class {
            Class::Receive | Class::Exchange => (time, self.awaited_peer()),
            Class::Wait => {
                let awaited = self.statistics.awaited[self.call.thread].get();
                (time, (awaited as u32).checked_sub(1))
            }
            Class::Collective(meeting) => self.waited_in(meeting, time),
            Class::Waits => (time, None),
            Class::Send { waits: true } => (time, self.target()),
            _ => (0, None),
        }
    }

    /// The same for a collective.
    fn waited_in(&self, meeting: Meeting, time: u64) -> (u64, Option<u32>) {
        let Some(comm) = self.call.comm() else {
            return (time, None);
        };
        let is_root = self.is_root(comm);
        let knows = match meeting {
            Meeting::All => true,
            Meeting::FromRoot => !is_root,
            Meeting::ToRoot => is_root,
            Meeting::Other => return (time, None),
        };
        if !knows {
            return (0, None);
        }
        let mut found = None;
        self.with_comm(|tally| {
            let round = tally.rounds.wrapping_sub(1);
            found = tally.arrivals.map(|arrivals| match meeting {
                Meeting::FromRoot => arrivals.root(round),
                _ => arrivals.last(round),
            });
        });
        let Some((member, came)) = found else {
            return (time, None);
        };
        let waited = came.saturating_sub(self.call.begun).min(time);
        let whom = (waited > 0).then(|| world_rank(self.call, comm, member as i32));
        (waited, whom.flatten())
    }

    fn is_root(&self, comm: &Comm) -> bool {
        let root = self.shape.peer.map(|place| self.call.words.rank(self.call.word(place)));
        root.is_some_and(|root| u32::try_from(root) == Ok(comm.me()))
    }

    /// The caller comes to a collective.
    fn come(&self) {
        let Some(comm) = self.call.comm() else {
            return;
        };
        let (me, is_root, now) = (comm.me(), self.is_root(comm), self.call.begun);
        self.with_comm(|tally| {
            if let Some(arrivals) = tally.arrivals {
                arrivals.come(tally.rounds, me, now, is_root);
            }
            tally.rounds += 1;
        });
    }

    /// The rank of the world that a send goes to.
    fn target(&self) -> Option<u32> {
        let target = self.call.words.rank(self.call.word(self.shape.peer?));
        world_rank(self.call, self.call.comm()?, target)
    }

    /// The rank of the world that the call, or the request that it makes, receives from; of a send its target.
    fn awaited_peer(&self) -> Option<u32> {
        let call = self.call;
        let Some(source) = self.shape.source else {
            return self.target();
        };
        let mut source = call.words.rank(call.word(source));
        let status = call.call.parameters.iter().position(|p| p.kind == ParameterKind::Status);
        if source == neutral::ANY_SOURCE && self.shape.class == Class::Receive {
            // SAFETY: this is asked after the call has ended well.
            let status = unsafe { call.status(status?, 0) };
            source = status?.source;
        }
        world_rank(call, call.comm()?, source)
    }

    /// The only peer of the requests that the call is for; `None` if there are several, or one is not known.
    fn peer_of_requests(&self) -> Option<u32> {
        let call = self.call;
        let place = call.call.parameters.iter().position(|p| p.kind == ParameterKind::Request)?;
        let count = match call.call.named("count").or(call.call.named("incount")) {
            Some(count) => usize::try_from(call.number(count)).ok()?,
            None => 1,
        };
        if count > REQUESTS_SEEN {
            return None;
        }
        let mut only = None;
        for index in 0..count {
            // SAFETY: the program passes so many handles, as the standard demands.
            let request = unsafe { call.words.request_at(call.word(place), index) };
            if request == neutral::handle::REQUEST_NULL || request == cohort_abi::SENT_REQUEST {
                continue;
            }
            let peer = self.statistics.peer_of(request)?;
            if only.is_some_and(|only| only != peer) {
                return None;
            }
            only = Some(peer);
        }
        only
    }

    /// Bytes that the call sent or gave.
    fn bytes(&self) -> u64 {
        match self.shape.class {
            Class::Receive | Class::ReceiveBegin | Class::SendInit | Class::Wait => 0,
            _ if self.shape.file == Some(FileCall::Read) => 0,
            // To `MPI_PROC_NULL` nothing goes.
            Class::Send { .. } | Class::Exchange if self.target().is_none() => 0,
            _ => self.shape.bytes(self.call),
        }
    }

    /// Counts the messages that the call sent.
    fn count_messages(&self) {
        let (call, statistics) = (self.call, self.statistics);
        match self.shape.class {
            Class::Send { .. } | Class::Exchange | Class::ExchangeBegin => {
                if let Some(to) = self.target() {
                    statistics.sent(to, self.shape.bytes(call));
                }
            }
            Class::Start => {
                let place = call.call.parameters.len() - 1;
                let count = match call.call.named("count") {
                    Some(count) => usize::try_from(call.number(count)).unwrap_or(0),
                    None => 1,
                };
                for index in 0..count {
                    // SAFETY: the program passes so many handles, as the standard demands; starting keeps them.
                    let request = unsafe { call.words.request_at(call.word(place), index) };
                    if let Some(&(to, bytes)) = statistics.persistent.lock().get(&request) {
                        statistics.sent(to, bytes);
                    }
                }
            }
            _ => {}
        }
    }

    /// Has `then` look at the tally of the call's communicator, if it is for one.
    fn with_comm(&self, then: impl FnOnce(&mut CommTally)) {
        let Some(word) = self.call.find(ParameterKind::Comm) else {
            return;
        };
        let handle = self.call.words.comm(word);
        let mut comms = self.statistics.comms.lock();
        if let Some(comm) = comms.iter_mut().find(|comm| comm.handle == handle) {
            return then(comm);
        }
        let Some(comm) = self.call.comm() else {
            return;
        };
        let made = tally_of(comm, handle);
        // One that follows another of its name goes on with its sums.
        let is_former =
            |other: &&mut CommTally| other.handle == 0 && other.size == made.size && other.name == made.name;
        let is_full = comms.len() >= COMMS_MAX;
        if let Some(former) = comms.iter_mut().find(is_former) {
            former.handle = handle;
            (former.rounds, former.arrivals) = (0, made.arrivals);
            then(former);
        } else if !is_full {
            comms.push(made);
            comms.last_mut().map(then);
        } else if let Some(last) = comms.last_mut() {
            last.name = "others".into();
            (last.size, last.arrivals) = (0, None);
            then(last);
        }
    }
}

/// The world rank of a rank of a communicator; `None` for `MPI_PROC_NULL` and its like.
fn world_rank(call: &Observed<'_>, comm: &Comm, rank: i32) -> Option<u32> {
    let node = call.subject.objects.rank().node();
    Some(node.world_rank(comm.peer(rank)?))
}

/// Nothing counted on a communicator.
fn tally_of(comm: &Comm, handle: u32) -> CommTally {
    let node = comm.rank().node();
    let members = comm.group().members();
    let is_here = members.len() <= Arrivals::MEMBERS_MAX as usize
        && !comm.is_inter()
        && members.iter().all(|&member| node.local(member).is_some());
    CommTally {
        handle,
        name: comm.name(),
        size: comm.size(),
        tally: Tally::default(),
        rounds: 0,
        arrivals: is_here.then(|| arrivals(node, comm)),
    }
}

/// Who comes when to the collectives of a communicator: one record for all members. One with the number of another that
/// is gone goes on with its record, since times grow.
fn arrivals(node: &'static Node, comm: &Comm) -> &'static Arrivals {
    static ALL: Mutex<BTreeMap<(usize, u32, u32), &'static Arrivals>> = Mutex::new(BTreeMap::new());
    // Members with the same first one: communicators of a split share a number.
    let first = comm.group().members()[0];
    let key = ((&raw const *node).addr(), comm.context(), node.world_rank(first));
    ALL.lock().entry(key).or_insert_with(|| Box::leak(Box::default()))
}
