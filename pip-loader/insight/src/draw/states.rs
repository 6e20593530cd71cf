//! What a rank does at each moment, and at each pixel.

use super::file::Piece;

/// What a rank does.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Nothing is known.
    Unknown,
    /// It computes: it is not in MPI.
    Computes,
    /// It is in MPI.
    InMpi,
    /// It copies a message of its own.
    Copies,
    /// It works for another rank.
    Helps,
    /// It sleeps.
    Sleeps,
}

impl Activity {
    /// All of them that have a colour.
    pub const SHOWN: [Self; 5] = [Self::Computes, Self::InMpi, Self::Copies, Self::Helps, Self::Sleeps];

    /// That of a piece; `None` for moments.
    fn of(piece: &Piece) -> Option<Self> {
        match &*piece.category {
            "mpi" => Some(Self::InMpi),
            "copy" | "turn" => Some(Self::Copies),
            "steal" | "helped" => Some(Self::Helps),
            "sleep" => Some(Self::Sleeps),
            _ => None,
        }
    }
}

/// A pixel shows what took most of its time, but stolen work already if it took one part of so many: pieces of
/// it are short.
const STOLEN_SHOWS: f64 = 50.0;

/// The state at each of `pixels` equal parts of the time between two, by the pieces of one track in order. Before the
/// first piece nothing is known if older ones were lost.
#[must_use]
pub fn at_pixels(pieces: &[Piece], (from, to): (f64, f64), pixels: usize, rest: Activity) -> Vec<Activity> {
    let width = (to - from) / pixels as f64;
    let mut shares = vec![[0.0_f64; Activity::SHOWN.len() + 1]; pixels];
    for piece in pieces {
        let Some(state) = Activity::of(piece) else {
            continue;
        };
        let place = |time: f64| ((time - from) / width).clamp(0.0, pixels as f64);
        let (begin, end) = (place(piece.begin), place(piece.end));
        let mut pixel = begin as usize;
        while pixel < pixels && (pixel as f64) < end {
            let part = end.min(pixel as f64 + 1.0) - begin.max(pixel as f64);
            let of_pixel = &mut shares[pixel];
            of_pixel[state as usize] += part;
            // An inner piece takes its time from the call around it.
            if state != Activity::InMpi {
                of_pixel[Activity::InMpi as usize] -= part;
            }
            pixel += 1;
        }
    }
    shares.iter().map(|shares| winner(shares, rest)).collect()
}

fn winner(shares: &[f64; Activity::SHOWN.len() + 1], rest: Activity) -> Activity {
    if shares[Activity::Helps as usize] * STOLEN_SHOWS >= 1.0 {
        return Activity::Helps;
    }
    let known: f64 = shares.iter().map(|share| share.max(0.0)).sum();
    let inside = [Activity::InMpi, Activity::Copies, Activity::Helps, Activity::Sleeps];
    let mut best = (rest, 1.0 - known);
    for state in inside {
        if shares[state as usize] > best.1 {
            best = (state, shares[state as usize]);
        }
    }
    best.0
}

/// Neighbours that are alike as one: first pixel, pixels, state.
pub fn runs(states: &[Activity]) -> impl Iterator<Item = (usize, usize, Activity)> {
    let mut first = 0;
    states.chunk_by(PartialEq::eq).map(move |run| {
        let begin = first;
        first += run.len();
        (begin, run.len(), run[0])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(category: &str, begin: f64, end: f64) -> Piece {
        Piece { begin, end, category: category.into(), owner: None }
    }

    #[test]
    fn a_pixel_shows_what_took_most_of_its_time() {
        let pieces = [
            piece("mpi", 10.0, 40.0),
            piece("sleep", 20.0, 30.0),
            piece("sent", 12.0, 12.0),
            piece("copy", 52.0, 56.0),
        ];
        let states = at_pixels(&pieces, (0.0, 60.0), 6, Activity::Computes);
        use Activity::{Computes, InMpi, Sleeps};
        assert_eq!(states, [Computes, InMpi, Sleeps, InMpi, Computes, Computes]);
        let runs: Vec<_> = runs(&states).collect();
        assert_eq!(runs[0], (0, 1, Computes));
        assert_eq!(runs[4], (4, 2, Computes));
    }

    #[test]
    fn stolen_work_is_seen_although_it_is_short() {
        let pieces = [piece("mpi", 0.0, 20.0), piece("steal", 3.0, 5.0)];
        let states = at_pixels(&pieces, (0.0, 20.0), 2, Activity::Computes);
        assert_eq!(states, [Activity::Helps, Activity::InMpi]);
    }
}
