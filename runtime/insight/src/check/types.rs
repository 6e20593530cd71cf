//! The types of a message's data and of the receive that takes it.

use super::findings::{Findings, Site};
use alloc::string::String;
use cohort_base::check::{Kinds, Mistake};
use cohort_base::text::FixedText;
use cohort_engine::datatype::{Basic, OwnedBuffer, Type, named_like};
use core::fmt::Write;

/// Who has called with a buffer, and the buffer, of which only the type and the count are looked at.
type Side<'a> = (Site, &'a OwnedBuffer);

/// What is wrong if the data of one buffer goes into another: the kind of mistake, if it is looked for.
fn differ(from: &OwnedBuffer, into: &OwnedBuffer, kinds: Kinds) -> Option<Mistake> {
    let [theirs, ours] = [from, into].map(|buffer| buffer.datatype().signature());
    let uniform = [theirs.uniform(), ours.uniform()];
    // What is too long for its receive is told by MPI itself.
    if uniform.contains(&Some(Basic::Packed)) || from.bytes() > into.bytes() {
        return None;
    }
    let whole = theirs.digest().repeat(from.count());
    let each = ours.elements().max(1);
    let expected = ours.digest().repeat(whole.elements / each).and(ours.digest_of_first(whole.elements % each));
    if (expected.elements, expected.hash) == (whole.elements, whole.hash) {
        return None;
    }
    let is_bytes = uniform.contains(&Some(Basic::Byte));
    let mistake = if is_bytes { Mistake::Bytes } else { Mistake::Types };
    kinds.has(mistake).then_some(mistake)
}

/// Compares the types of what is sent and of its receive.
pub fn compare((sender, from): Side<'_>, (receiver, into): Side<'_>, kinds: Kinds, findings: &mut Findings) {
    if let Some(mistake) = differ(from, into, kinds) {
        let [sent_types, taken_types] = [from, into].map(types);
        let places = [sender.did("sends"), receiver.did("receives")];
        findings.add(mistake, &places, format_args!("sent: {sent_types}; received: {taken_types}"));
    }
}

/// Compares the types of an access to a window, at its origin and at its target; `is_get` says that data comes from
/// there.
pub fn compare_access(site: Site, [origin, target]: [&OwnedBuffer; 2], is_get: bool, kinds: Kinds, to: &mut Findings) {
    let (from, into) = if is_get { (target, origin) } else { (origin, target) };
    if let Some(mistake) = differ(from, into, kinds) {
        let [ours, theirs] = [origin, target].map(types);
        to.add(mistake, &[site.did("accesses the window")], format_args!("origin: {ours}; target: {theirs}"));
    }
}

/// The types of a buffer's elements, in words.
fn types(buffer: &OwnedBuffer) -> FixedText<160> {
    let mut text = FixedText::new();
    let datatype: &Type = buffer.datatype();
    // What does not fit is cut.
    let _ = match named_like(datatype) {
        Some(named) => {
            let count = datatype.signature().elements().saturating_mul(buffer.count());
            let each = named.signature().elements().max(1);
            write!(text, "{} {}", count / each, named.name())
        }
        None => write!(text, "{} ", buffer.count()).and_then(|()| derived(&mut text, datatype)),
    };
    text
}

/// A type in words, and its bytes: the basic one, if a type has no other.
pub fn of_one(datatype: &Type) -> (String, u64) {
    if let Some(named) = named_like(datatype) {
        return (String::from(named.name()), named.size().max(0) as u64);
    }
    let mut text = FixedText::<160>::new();
    // What does not fit is cut.
    let _ = derived(&mut text, datatype);
    (String::from(text.as_str()), datatype.size().max(0) as u64)
}

fn derived(text: &mut FixedText<160>, datatype: &Type) -> core::fmt::Result {
    let (mut left, mut outcome) = (6, write!(text, "("));
    datatype.signature().for_each_run(&mut |basic, count| {
        if outcome.is_err() || left == 0 {
            return;
        }
        left -= 1;
        let comma = if left == 5 { "" } else { ", " };
        let name = cohort_engine::datatype::predefined_all().find(|it| it.signature().uniform() == Some(basic.plain()));
        let name = if basic == Basic::Char { "MPI_CHAR" } else { name.as_ref().map_or("?", |it| it.name()) };
        outcome = match (left, count) {
            (0, _) => write!(text, ", ..."),
            (_, 1) => write!(text, "{comma}{name}"),
            _ => write!(text, "{comma}{count} {name}"),
        };
    });
    outcome.and_then(|()| write!(text, ")"))
}
