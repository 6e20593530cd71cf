//! The stretch of a timeline that is worth a closer look: where most is stolen.

use super::file::{Piece, Timeline};

/// The stretch is so long that a middling piece of stolen work takes one part of so many of it...
const PIECES: f64 = 60.0;

/// ... and is shown if it is at most one part of so many of the whole; else the whole shows as much.
const ENLARGES: f64 = 4.0;

/// The stretch that holds most pieces of stolen work, of several the one with most time of it, and how many it holds;
/// `None` where nothing is stolen, or all is seen without it.
#[must_use]
pub fn busiest(timeline: &Timeline) -> Option<((f64, f64), usize)> {
    let stolen = timeline.tracks.iter().flat_map(|track| &track.pieces);
    let mut stolen: Vec<&Piece> = stolen.filter(|it| it.category == "steal").collect();
    let mut lengths: Vec<f64> = stolen.iter().map(|it| it.end - it.begin).collect();
    lengths.sort_by(f64::total_cmp);
    let middling = *lengths.get(lengths.len() / 2)?;
    let (from, to) = timeline.span();
    let width = middling * PIECES;
    if width <= 0.0 || width * ENLARGES > to - from {
        return None;
    }
    stolen.sort_by(|a, b| a.begin.total_cmp(&b.begin));
    // Each stretch that begins with a piece, by a window that moves over them.
    let (mut inside, mut end, mut best) = (0.0, 0, (0, 0.0, 0));
    for (begin, first) in stolen.iter().enumerate() {
        while let Some(last) = stolen.get(end)
            && last.end <= first.begin + width
        {
            inside += last.end - last.begin;
            end += 1;
        }
        let count = end.saturating_sub(begin);
        if (count, inside) > (best.0, best.1) {
            best = (count, inside, begin);
        }
        match end > begin {
            true => inside -= first.end - first.begin,
            // Longer than the stretch.
            false => end += 1,
        }
    }
    let (count, _, begin) = best;
    // What is shown lies in the middle.
    let (first, last) = (stolen[begin].begin, stolen[begin + count.max(1) - 1].end);
    let start = ((first + last - width) / 2.0).clamp(from, to - width);
    Some(((start, start + width), count.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(stolen: &[(u64, u64)]) -> Timeline {
        let about = r#"{"otherData":{"start_ns":"5","ranks":[]},"#;
        let mut text = format!("{about}\n\"traceEvents\":[\n");
        text += "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"rank 0\"}},\n";
        let calls = [("mpi", 0, 10_000)].into_iter();
        for (category, begin, us) in calls.chain(stolen.iter().map(|it| ("steal", it.0, it.1))) {
            text += &format!(
                "{{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":{begin},\"dur\":{us},\"cat\":\"{category}\",\
                 \"name\":\"x\"}},\n"
            );
        }
        let mut timeline = Timeline::default();
        timeline.add(&text).expect("a timeline");
        timeline
    }

    #[test]
    fn most_stolen_work_is_in_the_stretch() {
        let stolen = [(100, 5), (4000, 5), (4010, 5), (4030, 5), (9000, 5)];
        let ((from, to), count) = busiest(&timeline(&stolen)).expect("a stretch");
        assert_eq!((to - from, count), (300_000.0, 3));
        assert!(from < 4_000_000.0 && to > 4_035_000.0);
    }

    #[test]
    fn nothing_is_enlarged_that_is_seen_anyway() {
        assert_eq!(busiest(&timeline(&[])), None);
        assert_eq!(busiest(&timeline(&[(0, 900), (5000, 900)])), None);
    }

    #[test]
    fn a_piece_that_is_longer_than_the_stretch_does_no_harm() {
        let stolen = [(10, 1), (20, 5000), (5100, 1), (5110, 1)];
        let ((from, to), count) = busiest(&timeline(&stolen)).expect("a stretch");
        assert!(to - from < 100_000.0 && count == 2 && from < 5_100_000.0);
    }
}
