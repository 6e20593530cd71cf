//! What was found, in words, for the errors of all members.

use super::summary::Summary;
use crate::args::Kind;
use alloc::boxed::Box;
use alloc::vec::Vec;
use cohort_base::lock::FutexLock;
use cohort_base::text::FixedText;

/// Longest words.
type Words = FixedText<300>;

/// What was found on this node, by number. It is never forgotten, so no more than [`MOST`] are kept.
static FOUND: FutexLock<Vec<&'static Words>> = FutexLock::new(Vec::new());
const MOST: usize = 100;

/// Keeps the words for two members that disagree; the number of them, which is not 0.
pub(super) fn keep(one: &Summary, other: &Summary) -> u32 {
    keep_words(Words::of(format_args!("{one}; {other}")))
}

/// The same for two nonblocking operations of which nothing but their kinds is known.
pub(super) fn keep_kinds([one, other]: [u32; 2], kinds: [u8; 2]) -> u32 {
    let [(a, rest_a), (b, rest_b)] = kinds.map(Kind::name_of);
    let hint = if kinds[0] == kinds[1] { ", of another root or operation, or with a v" } else { "" };
    let words = format_args!("rank {one}: MPI_I{a}{rest_a}; rank {other}: MPI_I{b}{rest_b}{hint}");
    keep_words(Words::of(words))
}

/// The same for two members whose elements lie differently in memory, in a reduction with an operation of the program.
pub(super) fn keep_layouts([one, other]: [u32; 2]) -> u32 {
    let what = "an operation of the program gets elements of one type, and theirs lie differently in memory";
    keep_words(Words::of(format_args!("rank {one} and rank {other}: {what}")))
}

fn keep_words(words: Words) -> u32 {
    FOUND.with(|found| {
        let known = found.iter().position(|it| it.as_str() == words.as_str());
        let index = known.unwrap_or_else(|| {
            if found.len() < MOST {
                found.push(Box::leak(Box::new(words)));
            }
            found.len() - 1
        });
        index as u32 + 1
    })
}

/// The words for what has this number. In calls of a rank's owner.
#[must_use]
pub fn words_of(number: u32) -> &'static str {
    let found = FOUND.with(|found| found.get((number as usize).wrapping_sub(1)).copied());
    found.map_or("", Words::as_str)
}
