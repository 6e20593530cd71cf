//! The report of `--check`: what the node image has found in the calls of a program, as blocks like a compiler's.

mod far;
mod json;
mod junit;
mod sarif;
mod suppress;
mod text;

use super::backtrace::{self, CallPlace, Code};
use cohort_base::check::{self, About, FIELD, Kinds, MISTAKES, NOTE, RECORD};
use cohort_base::settings::CHECK;
use far::Part;
use pip_ground::{Refusal, say, voice};
use pip_load::boot::Node;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use suppress::Pattern;

/// The exit status of a job that ended well, in which mistakes were found.
pub const FOUND: i32 = 36;

/// What is said where nodes cannot be compared.
const CUT: &str = "messages between nodes were not compared, as the job was ended before its time";
const MISSING: &str = "some nodes have not said what messages they had with others, which were not compared";

/// A report that the user wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    only_warns: bool,
    kinds: Kinds,
    files: Vec<(Form, PathBuf)>,
    /// What is not to be told, and the file that says so.
    suppressed: Vec<Pattern>,
    suppressing: String,
    /// How many nodes the job has.
    nodes: u32,
}

/// What the checker has found on a node.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The status that the job has if it has ended well otherwise.
    pub status: i32,
    /// For the launcher of the first node, if this is another one.
    pub word: Vec<u8>,
}

/// Whose messages to other nodes are compared.
#[derive(Clone, Copy, Debug)]
pub enum Others<'a> {
    /// Nobody's: the job is ended before its time.
    Nobody,
    /// The first launcher's with these, of which each is the word of a node.
    All(&'a [Vec<u8>]),
    /// The first launcher does it.
    First,
}

/// How the word of a node begins.
const MARK: &[u8] = b"\x07\0\0\0check";

/// Whether what a launcher says is what the checker has found there.
#[must_use]
pub fn is_word(bytes: &[u8]) -> bool {
    bytes.starts_with(MARK)
}

/// What a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Sarif,
    Junit,
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
    code: CallPlace,
}

/// All that was found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    findings: Vec<Finding>,
    notes: Vec<String>,
    /// How many are not told.
    suppressed: usize,
    /// The job was ended, or did not end well.
    has_failed: bool,
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
        let given = [asked.files.json, asked.files.sarif, asked.files.junit];
        let forms = [Form::Json, Form::Sarif, Form::Junit].into_iter().zip(given);
        let files = forms.filter_map(|(form, name)| Some((form, name?))).map(|(form, name)| {
            let name = if nodes > 1 { format!("{name}.{node}") } else { name.to_owned() };
            let made = std::path::absolute(&name).and_then(|place| fs::File::create(&place).map(|_| place));
            let made = made.map_err(|error| Refusal::new(format!("{CHECK}: cannot write to {name}: {error}")));
            made.map(|made| (form, made))
        });
        let suppressing = asked.suppress.unwrap_or_default().to_owned();
        let suppressed = if suppressing.is_empty() { Vec::new() } else { patterns(&suppressing)? };
        let (only_warns, kinds) = (asked.only_warns, asked.kinds);
        Ok(Some(Self { only_warns, kinds, files: files.collect::<Result<_, _>>()?, suppressed, suppressing, nodes }))
    }

    /// The files that are empty until the job has ended.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(_, file)| file.as_path())
    }

    /// Makes the report when all ranks of the node have ended, whose memory is still mapped.
    /// `has_failed`: it was ended, or did not end well, which was said.
    pub fn make(&self, node: &Node, others: Others<'_>, has_failed: bool) -> Outcome {
        let Some(told) = node.findings() else {
            say(format_args!("{CHECK}: nothing was looked at, as the ranks do not share an address space"));
            return Outcome { status: 1, word: Vec::new() };
        };
        let mut code = Code::mapped();
        let mut name = |address| {
            let unknown = || CallPlace { text: format!("{address:#x}"), ..CallPlace::default() };
            backtrace::call_before(&mut code, address).unwrap_or_else(unknown)
        };
        let mut report = Report { has_failed, ..Report::read(&told, &mut name) };
        let part = Part::read(&told, &mut name);
        let mut word = Vec::new();
        let mut status = 0;
        match others {
            Others::First => word = part.encode().into_bytes(),
            Others::All(words) => status = self.compare(part, words, &mut report),
            Others::Nobody if self.nodes > 1 => report.notes.push(CUT.to_owned()),
            Others::Nobody => {}
        }
        status = status.max(self.tell(report));
        if matches!(others, Others::First) {
            word = [MARK, &status.to_le_bytes(), &word].concat();
        }
        Outcome { status, word }
    }

    /// Compares messages between nodes. Gives the highest status of the others.
    fn compare(&self, own: Part, words: &[Vec<u8>], report: &mut Report) -> i32 {
        let (mut parts, mut status) = (vec![own], 0);
        let known = words.iter().filter_map(|word| word.strip_prefix(MARK)?.split_first_chunk());
        for (their, text) in known {
            status = status.max(i32::from_le_bytes(*their));
            if !text.is_empty() {
                parts.push(Part::read(&String::from_utf8_lossy(text), &mut |_| CallPlace::default()));
            }
        }
        if parts.len() < self.nodes as usize {
            report.notes.push(MISSING.to_owned());
        }
        far::compare(&parts, self.kinds).into_iter().for_each(|finding| report.add(finding));
        report.findings.sort_by_key(|finding| !finding.about.is_error);
        status
    }

    /// Tells what was found, and gives the status.
    fn tell(&self, mut report: Report) -> i32 {
        self.suppress(&mut report);
        let mut lost = false;
        match voice::report(&report.text()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                say(format_args!("{CHECK}: the report is lost: {error}"));
                lost = true;
            }
            // A reader of the text that went away has read enough.
            _ => {}
        }
        for (form, file) in &self.files {
            let text = match form {
                Form::Json => report.json(),
                Form::Sarif => report.sarif(&std::env::current_dir().unwrap_or_default()),
                Form::Junit => report.junit(self.kinds),
            };
            if let Err(error) = fs::write(file, text) {
                say(format_args!("{CHECK}: the report is lost: {error}"));
                lost = true;
            }
        }
        match report.errors() > 0 && !self.only_warns {
            true => FOUND,
            false => i32::from(lost),
        }
    }
}

impl Wanted {
    /// Takes away what is not to be told, and notes which patterns stand for nothing.
    fn suppress(&self, report: &mut Report) {
        let mut used = vec![false; self.suppressed.len()];
        let before = report.findings.len();
        report.findings.retain(|finding| {
            let mut is_told = true;
            for (pattern, used) in self.suppressed.iter().zip(&mut used) {
                if pattern.fits(finding) {
                    (is_told, *used) = (false, true);
                }
            }
            is_told
        });
        report.suppressed = before - report.findings.len();
        let unused = self.suppressed.iter().zip(used).filter(|(_, used)| !used && self.nodes == 1);
        let file = &self.suppressing;
        report.notes.extend(
            unused.map(|(pattern, _)| format!("line {} of {file} suppresses nothing: {}", pattern.line, pattern.text)),
        );
    }
}

/// The patterns of a file.
fn patterns(file: &str) -> Result<Vec<Pattern>, Refusal> {
    let text =
        fs::read_to_string(file).map_err(|error| Refusal::new(format!("{CHECK}: cannot read {file}: {error}")))?;
    Pattern::read(&text).map_err(|(line, why)| Refusal::new(format!("{CHECK}: line {line} of {file}: {why}")))
}

impl Report {
    /// Reads what the node image has told; `name` names the code before an address.
    fn read(told: &str, name: &mut dyn FnMut(u64) -> CallPlace) -> Self {
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
