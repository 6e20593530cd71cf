//! What is counted of a rank's calls while somebody watches the job (`pip-exec --top`).
//!
//! The numbers are in [`crate::subject::live`].

use super::{is_wanted, switch};
use crate::calls::{self, Description, ParameterKind};
use crate::subject::Subject;
use crate::subject::observers::{Consumer, Observed};
use alloc::boxed::Box;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::live::RankSample;
use cohort_engine::Rank;
use core::sync::atomic::Ordering;
use spin::Once;

/// A reason to observe a rank's calls: somebody watches the job.
pub const WATCHED: u32 = 1;

/// Another: the program is told of events, which it is when its calls have ended.
pub const TOLD: u32 = 2;

/// Another: a tool has the calls on a communicator counted.
pub const COUNTED: u32 = 4;

/// Which arguments of a call say what it sends: count, datatype and, if it names one, the peer.
type Sent = (Option<(usize, usize)>, Option<usize>);

/// What each function sends, by its number; `None` for those that send nothing.
fn sent(number: u32) -> Option<Sent> {
    static ALL: Once<Box<[Option<Sent>]>> = Once::new();
    let all = ALL.call_once(|| calls::all().iter().map(sent_by).collect::<Vec<_>>().into());
    all[number as usize]
}

fn sent_by(call: &Description) -> Option<Sent> {
    let is_message = !call.name.ends_with("_init")
        && !call.name.ends_with("_init_c")
        && !["MPI_Pack", "MPI_Unpack", "MPI_Reduce_local", "MPI_File_", "MPI_Win_"]
            .iter()
            .any(|other| call.name.starts_with(other));
    let has_buffer = call.parameters.iter().any(|p| p.kind == ParameterKind::Buffer);
    let (dest, source) = (call.named("dest"), call.named("source"));
    let only_receives = source.is_some() && dest.is_none() || call.named("message").is_some();
    if !is_message || !has_buffer || only_receives {
        return None;
    }
    let pair = |(count, datatype)| Some((call.named(count)?, call.named(datatype)?));
    let pairs = [("sendcount", "sendtype"), ("origin_count", "origin_datatype"), ("count", "datatype")];
    let counted = pairs.into_iter().find_map(pair);
    Some((counted, dest.or(call.named("target_rank"))))
}

/// The consumer that counts for the process's [`Live`](crate::subject::live::Live).
pub struct Counting;

impl Consumer for Counting {
    fn begin(&self, call: &Observed<'_>) {
        let live = &call.subject.live;
        // Calls are observed for other reasons too, of which nobody asks for these numbers.
        if call.depth > 0 || live.wanted.load(Ordering::Relaxed) & WATCHED == 0 {
            return;
        }
        live.begun.store(call.begun, Ordering::Relaxed);
        live.current.store(u64::from(call.call.number) + 1, Ordering::Relaxed);
        live.calls.fetch_add(1, Ordering::Relaxed);
        if let Some((counted, peer)) = sent(call.call.number)
            && peer.is_none_or(|peer| call.words.rank(call.word(peer)) != neutral::PROC_NULL)
        {
            live.messages.fetch_add(1, Ordering::Relaxed);
            let bytes = counted.map_or(0, |(count, datatype)| call.bytes(count, datatype));
            live.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn end(&self, call: &Observed<'_>, _code: i32, ended: u64) {
        let live = &call.subject.live;
        if call.depth == 0 && live.current.load(Ordering::Relaxed) != 0 {
            live.current.store(0, Ordering::Relaxed);
            let spent = ended.saturating_sub(call.begun);
            live.ticks.fetch_add(spent, Ordering::Relaxed);
        }
    }
}

/// The consumer that tells the program of its events. The last one: callbacks call MPI, and the call that has ended is
/// over for the others then.
pub struct Telling;

impl Consumer for Telling {
    fn begin(&self, _call: &Observed<'_>) {}

    fn end(&self, call: &Observed<'_>, _code: i32, _ended: u64) {
        let subject = call.subject;
        if call.depth == 0 && subject.live.wanted.load(Ordering::Relaxed) & TOLD != 0 {
            subject.tool.events.deliver(subject);
        }
    }
}

/// The process of a rank, once it has attached.
fn subject_of(rank: &Rank) -> Option<&Subject> {
    let local = rank.local();
    // SAFETY: `attach` alone fills the slot.
    (!local.is_null()).then(|| unsafe { Subject::of(local) })
}

/// Has a rank's calls observed for this reason, or no more. It costs nothing while nobody has a reason. May wait for
/// memory, and so for any rank.
pub fn want(rank: &Rank, reason: u32, on: bool) {
    let local = rank.local();
    if local.is_null() {
        return;
    }
    // SAFETY: `attach` alone fills the slot.
    let subject = unsafe { Subject::of(local) };
    let wanted = &subject.live.wanted;
    let left = match on {
        true => wanted.fetch_or(reason, Ordering::Relaxed) | reason,
        false => wanted.fetch_and(!reason, Ordering::Relaxed) & !reason,
    };
    if !is_wanted(rank.node().settings()) && !rank.has_come_to_end() {
        // SAFETY: what `attach` has stored; the memory of a rank that has not ended stays.
        unsafe { switch(local, left != 0) };
    }
}

/// What is known of a rank, with what has been counted of its calls.
pub fn sample(rank: &Rank) -> RankSample {
    let mut sample = rank.sample();
    if let Some(subject) = subject_of(rank) {
        subject.live.add_to(&mut sample);
    }
    sample
}
