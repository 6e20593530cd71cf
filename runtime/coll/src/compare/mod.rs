//! What the members of a collective must agree on, compared (`COHORT_CHECK=members`).
//!
//! Within a node the members meet as those of a nonblocking collective do: each posts its arguments, and the last one
//! compares them. A call that blocks meets so before the operation itself, a nonblocking operation is compared where it
//! begins, a persistent one at `MPI_..._init`. If two members disagree, the operation of all fails, and what was found
//! is kept for the words of their errors.
//!
//! Among nodes the members of a call that blocks, and of `MPI_..._init`, tell each other what is of fixed size
//! ([`Summary`]). Blocks of different lengths are not compared there, nor are nonblocking operations: who begins one
//! may not wait for the others.
//!
//! Who gives what to whom, and in which order, says MPI-4.1, 6: the type signatures must be equal for each pair of a
//! block sent and a block received, and in reductions for all members.

mod amount;
mod lanes;
mod mismatches;
mod summary;

pub use mismatches::words_of;

use crate::args::{Call, Form, Kind};
use crate::pool::Part;
use amount::Amount;
use cohort_base::sync::atomic::Ordering;
use cohort_core::EngineError;
use summary::{Summary, WORDS};

/// Compares what all members of a pool have posted. If two disagree, marks the parts of all.
pub(crate) fn agree(parts: &[Part]) -> bool {
    let size = parts.len() as u32;
    let part = |member: u32| &parts[member as usize];
    let said = |member: u32| {
        let part = part(member);
        Summary::of(&part.call, part.form.unwrap_or(Form::Blocking), member)
    };
    let first = said(0);
    let other = (1..size).find(|&member| !said(member).agrees(&first));
    let number = match other {
        Some(member) => mismatches::keep(&first, &said(member)),
        None => {
            let pairs = (0..size).flat_map(|from| (0..size).map(move |to| (from, to)));
            let wrong = pairs.filter(|&(from, to)| from != to).find_map(|(from, to)| {
                let (giver, taker) = (&part(from).call, &part(to).call);
                let (given, taken) = lanes::between(giver, from, taker, to)?;
                let (given, taken) = (Amount::of(&given), Amount::of(&taken));
                (!given.matches(&taken)).then(|| (said(from).giving(given), said(to).taking(taken)))
            });
            match wrong {
                Some((giver, taker)) => mismatches::keep(&giver, &taker),
                None => return true,
            }
        }
    };
    // Relaxed: published by the end of the operation.
    (0..size).for_each(|member| part(member).disagreement.store(number, Ordering::Relaxed));
    false
}

/// A number for the kind of operation.
pub(crate) fn kind_of(call: &Call<'_>) -> u8 {
    Kind::of(call) as u8
}

/// Keeps words for two members that begin nonblocking operations of these kinds; their number, which is not 0.
#[cold]
pub(crate) fn differ(members: [u32; 2], kinds: [u8; 2]) -> u32 {
    mismatches::keep_kinds(members, kinds)
}

/// Keeps words for two members whose elements an operation of the program cannot take together; their number, which is
/// not 0.
#[cold]
pub(crate) fn differ_in_layout(members: [u32; 2]) -> u32 {
    mismatches::keep_layouts(members)
}

/// What member `me` of several nodes says with a call, for the others.
pub(crate) fn said(call: &Call<'_>, form: Form, me: u32) -> [i32; WORDS] {
    let said = Summary::of(call, form, me);
    said.with_lanes(call, me).words()
}

/// Compares what the members on several nodes say.
///
/// # Errors
/// [`EngineError::Disagreement`], at all members.
pub(crate) fn compare(all: &[[i32; WORDS]]) -> Result<(), EngineError> {
    let members = || all.iter().map(Summary::from_words);
    let Some(first) = members().next() else {
        return Ok(());
    };
    let centre = first.root().map_or(first, |root| members().nth(root as usize).unwrap_or(first));
    let others = || members().filter(|it| it.member() != centre.member());
    let kinds = members().find(|it| !it.agrees(&first)).map(|it| (first, it));
    let found = kinds.or_else(|| {
        let fits = |it: &Summary| it.gives_what_takes(&centre) && centre.gives_what_takes(it);
        others().find(|it| !fits(it)).map(|it| (centre, it))
    });
    match found {
        None => Ok(()),
        Some((one, other)) => Err(EngineError::Disagreement(mismatches::keep(&one, &other))),
    }
}
