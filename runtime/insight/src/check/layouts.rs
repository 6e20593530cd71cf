//! Layouts that MPI would write to more than once (MPI-4.1, 5.1.11 and 6.5).

use super::buffers::{self, Span};
use super::{Call, Shared};
use alloc::vec::Vec;
use cohort_base::check::Mistake;

/// Most runs of memory of a call's parts that are looked at.
const RUNS: usize = 4096;

/// The first bytes that two of some runs of memory share.
fn shared_by_two(mut runs: Vec<(usize, usize)>) -> Option<(usize, usize)> {
    // Most layouts go upwards.
    if runs.is_sorted_by(|one, next| one.1 <= next.0) {
        return None;
    }
    runs.sort_unstable();
    let mut behind = 0;
    for (start, end) in runs {
        if start < behind {
            return Some((start, end.min(behind)));
        }
        behind = end;
    }
    None
}

/// A call begins that writes to these buffers: is there a byte that one of them has twice?
pub fn check(shared: &mut Shared, call: &Call<'_>, spans: &[Span]) {
    if !shared.kinds.has(Mistake::Overlap) {
        return;
    }
    let written = spans.iter().filter(|span| span.is_written && span.buffer.as_buffer().contiguous().is_none());
    for span in written {
        if let Some((from, to)) = buffers::runs(&span.buffer).and_then(shared_by_two) {
            let (bytes, at) = (to - from, from.wrapping_sub(buffers::bounds(&span.buffer).0));
            let values = format_args!("its layout has the {bytes} bytes from byte {at} on more than once");
            shared.findings.add(Mistake::Overlap, &[call.site.did("writes")], values);
        }
    }
}

/// The same of parts that come from different members.
pub fn check_parts(shared: &mut Shared, call: &Call<'_>, parts: &[(usize, Span)]) {
    if !shared.kinds.has(Mistake::Overlap) {
        return;
    }
    let mut all = Vec::new();
    for (_, span) in parts.iter().filter(|(_, span)| span.is_written) {
        match buffers::runs(&span.buffer) {
            Some(runs) if all.len() + runs.len() <= RUNS => all.extend(runs),
            _ => return,
        }
    }
    let Some((from, to)) = shared_by_two(all) else {
        return;
    };
    let base = parts.iter().find(|(_, span)| span.is_written).map_or(0, |&(base, _)| base);
    let (bytes, at) = (to - from, from as i64 - base as i64);
    let values = format_args!("what two members send comes to the same {bytes} bytes, from byte {at} of the buffer on");
    shared.findings.add(Mistake::Overlap, &[call.site.did("writes")], values);
}

#[cfg(test)]
mod tests {
    use super::shared_by_two;
    use alloc::vec::Vec;

    #[test]
    fn bytes_that_two_runs_share_are_found_in_any_order() {
        let first = |runs: &[(usize, usize)]| shared_by_two(Vec::from(runs));
        assert_eq!(first(&[(0, 4), (4, 8), (10, 12)]), None);
        assert_eq!(first(&[(10, 12), (4, 8), (0, 4)]), None);
        assert_eq!(first(&[(8, 16), (0, 4), (12, 14)]), Some((12, 14)));
        assert_eq!(first(&[(0, 4), (0, 4)]), Some((0, 4)));
    }
}
