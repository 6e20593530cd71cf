//! What was found: each mistake once, with a count.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use cohort_base::check::{FIELD, Mistake, NOTE, RECORD};
use core::fmt::{self, Write};

/// Most findings that are kept.
const MOST: usize = 2000;

/// A call of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// Its rank in its world.
    pub rank: u32,
    /// The MPI function.
    pub name: &'static str,
    /// The address behind the call in the program.
    pub address: u64,
}

/// One of the places of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Where.
    pub site: Site,
    /// What the call did there, in a few words.
    pub did: &'static str,
}

impl Site {
    /// As a place of a finding.
    pub const fn did(self, did: &'static str) -> Place {
        Place { site: self, did }
    }
}

/// What is told of equal findings.
struct Told {
    values: String,
    count: u64,
}

/// All findings.
pub struct Findings {
    told: BTreeMap<(Mistake, Vec<Place>), Told>,
    /// How many were dropped.
    dropped: u64,
    notes: Vec<&'static str>,
    /// Nothing more is told.
    is_closed: bool,
}

impl Findings {
    /// None.
    pub const fn new() -> Self {
        Self { told: BTreeMap::new(), dropped: 0, notes: Vec::new(), is_closed: false }
    }

    /// Adds a finding at these places. The values are those of the first one there.
    pub fn add(&mut self, mistake: Mistake, places: &[Place], values: fmt::Arguments<'_>) {
        if self.is_closed {
            return;
        }
        let is_full = self.told.len() >= MOST;
        let key = (mistake, Vec::from(places));
        if let Some(told) = self.told.get_mut(&key) {
            told.count += 1;
        } else if is_full {
            self.dropped += 1;
        } else {
            let mut text = String::new();
            // A string takes everything.
            let _ = text.write_fmt(values);
            self.told.insert(key, Told { values: text, count: 1 });
        }
    }

    /// Not all calls were seen: what follows might be wrong.
    pub fn close(&mut self, why: &'static str) {
        self.is_closed = true;
        self.note(why);
    }

    /// Says something of the checker itself, once.
    pub fn note(&mut self, text: &'static str) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Writes all.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> fmt::Result {
        for ((mistake, places), told) in &self.told {
            write!(out, "{}{FIELD}{}{FIELD}{}{FIELD}", *mistake as u8, told.count, told.values)?;
            for Place { site, did } in places {
                write!(out, "{}{FIELD}{did}{FIELD}{}{FIELD}{:x}{FIELD}", site.rank, site.name, site.address)?;
            }
            write!(out, "{RECORD}")?;
        }
        if self.dropped > 0 {
            note(out, "more was found than the checker keeps")?;
        }
        self.notes.iter().try_for_each(|text| note(out, text))
    }
}

/// Writes what is said of the checker itself.
///
/// # Errors
/// Those of `out`.
pub fn note(out: &mut dyn Write, text: &str) -> fmt::Result {
    write!(out, "{NOTE}{FIELD}{text}{FIELD}{RECORD}")
}
