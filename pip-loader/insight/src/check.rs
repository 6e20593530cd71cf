//! The report of `--check`: what the node image has found in the calls of a program, as blocks like a compiler's.

mod json;
mod text;

use super::backtrace::{self, Code};
use cohort_base::check::{self, About, FIELD, MISTAKES, NOTE, RECORD};
use cohort_base::settings::CHECK;
use pip_ground::{Refusal, say};
use pip_load::boot::Node;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The exit status of a job that ended well, in which mistakes were found.
pub const FOUND: i32 = 36;

/// A report that the user wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    only_warns: bool,
    file: Option<PathBuf>,
}

/// One kind of mistake at the same places, of all ranks that made it there.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    about: &'static About,
    count: u64,
    values: String,
    places: Vec<Place>,
}

/// One of its places.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    ranks: Vec<u32>,
    did: String,
    function: String,
    /// `main at a.c:12`, or as much as is known.
    code: String,
}

/// All that was found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    findings: Vec<Finding>,
    notes: Vec<String>,
}

impl Wanted {
    /// What a value of `COHORT_CHECK` asks for on this node, of `nodes`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn read(value: Option<&OsStr>, node: u32, nodes: u32) -> Result<Option<Self>, Refusal> {
        let Some(asked) = value.and_then(OsStr::to_str).and_then(check::asked) else {
            return Ok(None);
        };
        let file = asked.files.json.map(|name| {
            let name = if nodes > 1 { format!("{name}.{node}") } else { name.to_owned() };
            let made = std::path::absolute(&name).and_then(|place| fs::File::create(&place).map(|_| place));
            made.map_err(|error| Refusal::new(format!("{CHECK}: cannot write to {name}: {error}")))
        });
        Ok(Some(Self { only_warns: asked.only_warns, file: file.transpose()? }))
    }

    /// The file that is empty until the job has ended, if there is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Makes the report when all ranks of the node have ended, whose memory is still mapped. Gives the status that the
    /// job has if it has ended well otherwise.
    pub fn make(&self, node: &Node) -> i32 {
        let Some(told) = node.findings() else {
            say(format_args!("{CHECK}: nothing was looked at, as the ranks do not share an address space"));
            return 1;
        };
        let mut code = Code::mapped();
        let report = Report::read(&told, &mut |address| {
            backtrace::call_before(&mut code, address).unwrap_or_else(|| format!("{address:#x}"))
        });
        let mut lost = false;
        let written = io::stderr().write_all(report.text().as_bytes());
        // A reader of the text that went away has read enough.
        lost |= written.is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe);
        if let Some(file) = &self.file
            && let Err(error) = fs::write(file, report.json())
        {
            say(format_args!("{CHECK}: the report is lost: {error}"));
            lost = true;
        }
        match report.errors() > 0 && !self.only_warns {
            true => FOUND,
            false => i32::from(lost),
        }
    }
}

impl Report {
    /// Reads what the node image has told; `name` names the code before an address.
    fn read(told: &str, name: &mut dyn FnMut(u64) -> String) -> Self {
        let mut this = Self::default();
        let mut known = HashMap::new();
        for record in told.split_terminator(RECORD) {
            let fields: Vec<&str> = record.split_terminator(FIELD).collect();
            match fields.as_slice() {
                [NOTE, text] => this.notes.push((*text).to_owned()),
                [kind, count, values, places @ ..] => {
                    let about = kind.parse().ok().and_then(|kind: usize| MISTAKES.get(kind));
                    if let (Some(about), Ok(count)) = (about, count.parse()) {
                        let places = places.chunks_exact(4).map(|place| {
                            let address = u64::from_str_radix(place[3], 16).unwrap_or(0);
                            let code = known.entry(address).or_insert_with(|| name(address));
                            Place {
                                ranks: place[0].parse().into_iter().collect(),
                                did: place[1].to_owned(),
                                function: place[2].to_owned(),
                                code: code.clone(),
                            }
                        });
                        this.add(Finding { about, count, values: (*values).to_owned(), places: places.collect() });
                    }
                }
                _ => {}
            }
        }
        this.findings.sort_by_key(|finding| !finding.about.is_error);
        this
    }

    /// Adds a finding, to one at the same places of other ranks if there is one.
    fn add(&mut self, finding: Finding) {
        let is_same = |one: &Place, other: &Place| {
            (&one.did, &one.function, &one.code) == (&other.did, &other.function, &other.code)
        };
        let same = self.findings.iter_mut().find(|other| {
            let alike = other.about.mistake == finding.about.mistake && other.places.len() == finding.places.len();
            alike && other.places.iter().zip(&finding.places).all(|(a, b)| is_same(a, b))
        });
        let Some(same) = same else {
            return self.findings.push(finding);
        };
        same.count += finding.count;
        for (place, other) in same.places.iter_mut().zip(finding.places) {
            place.ranks.extend(other.ranks);
            place.ranks.sort_unstable();
            place.ranks.dedup();
        }
    }

    fn errors(&self) -> usize {
        self.findings.iter().filter(|finding| finding.about.is_error).count()
    }
}

/// The kinds, for `--check=list`.
#[must_use]
pub fn list() -> String {
    text::list()
}

#[cfg(test)]
mod tests;
