//! The ranks' standard input, output and error: which are the root's own, which pass through it, and which are files.

use super::input::Feeder;
use super::limits;
use super::options::{Input, Output};
use super::output::{Forwarder, may_refuse, may_tear};
use super::prefix::{Facts, Prefix, Stream};
use super::prepare::Prepared;
use cohort_manager::Place;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use pip_ground::Refusal;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Descriptors that pip-exec itself may need besides those of ranks.
const OWN_FILES: u64 = 64;

/// Descriptors from this one on are the root's ends of its pipes, in a job of so many ranks that it matters: a rank
/// does not copy them ([`StartPlan::above`](pip_load::task::start::StartPlan::above)).
const OWN_ENDS: u32 = 512;

/// What ranks read that get no input.
const NULL: &str = "/dev/null";

/// From so many ranks on.
const MANY: usize = 64;

/// Where the streams of all ranks lead.
pub struct Streams {
    /// What passes through the root, of all that were started together one; those that are started next have the last.
    pub forwarders: Vec<Forwarder>,
    /// Something was lost of what has passed through others, which are gone.
    has_lost: bool,
    feeder: Feeder,
    output: Output,
    /// Lines of standard output would be torn if it were the root's own.
    whole_lines: bool,
    /// They would be if it were that of several ranks.
    may_tear: bool,
    input: Input,
    null: OwnedFd,
    /// The files that were opened, by name. Ranks that write to the same one share its place.
    files: HashMap<String, File>,
    /// All that were opened: ranks that are started later add to what is there.
    emptied: HashSet<String>,
    node: u32,
    host: String,
    /// Descriptors that no rank needs begin here.
    pub above: Option<u32>,
}

/// A rank's three streams; those that are not here are the root's own.
pub type Opened = [Option<OwnedFd>; 3];

impl Streams {
    /// For the ranks of this node, which keep some descriptors of the root's; also gives the former limits of open
    /// files if they had to be raised.
    ///
    /// # Errors
    /// Too few descriptors are left.
    pub fn new(
        job: &mut Prepared,
        ranks: usize,
        place: Place,
        kept: &[u32],
    ) -> Result<(Self, Option<(u64, u64)>), Refusal> {
        let output = std::mem::take(&mut job.streams.output);
        let marked = output.label || output.tag || output.timestamp || output.pattern.is_some();
        let asked = marked || output.copies || job.streams.input == Input::All;
        let output_of_root = io::stdout();
        let output_of_root = output_of_root.as_fd();
        let is_shared = ranks > 1 || job.founder.is_some();
        let may_tear = may_tear(output_of_root);
        let whole_lines = (is_shared && may_tear) || may_refuse(output_of_root);
        let needed = 4 * ranks as u64 + OWN_FILES;
        // What wrappers execute hands over its descriptors.
        let wanted = if job.spaces.wrapper.is_some() { 2 } else { 1 } * needed;
        let is_apart = ranks >= MANY && kept.iter().all(|&descriptor| descriptor < OWN_ENDS);
        let apart = is_apart.then(|| limits::raise_open_files(wanted + u64::from(OWN_ENDS)));
        let apart = apart.and_then(Result::ok);
        let above = apart.map(|_| OWN_ENDS);
        let former = apart.map_or_else(|| limits::raise_open_files(wanted), Ok);
        let former = match former.or_else(|_| limits::raise_open_files(needed)) {
            Ok(former) => Some(former),
            Err(refusal) if asked => return Err(refusal),
            Err(_) => None,
        };
        // Torn lines are better than no job.
        let whole_lines = whole_lines && former.is_some();
        let refuse = |error: io::Error| Refusal::new(format!("the ranks' output: {error}"));
        let forwards = marked || output.copies || whole_lines;
        let host = host();
        // The others write to those by now.
        let emptied = if place.count > 1 { names_of_all(&output, place.index, &host) } else { Vec::new() };
        let this = Self {
            forwarders: forwards.then(|| Forwarder::new(above)).transpose().map_err(refuse)?.into_iter().collect(),
            has_lost: false,
            feeder: Feeder::default(),
            above,
            output,
            whole_lines,
            may_tear,
            input: job.streams.input,
            null: File::open(NULL).map_err(|error| refuse(about(NULL, error)))?.into(),
            files: HashMap::new(),
            emptied: emptied.into_iter().collect(),
            node: place.index,
            host,
        };
        Ok((this, former.flatten()))
    }

    /// So many more ranks are about to start, whose output passes through the root if that of the others does, or if
    /// the stream was one rank's until now.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn begin_more(&mut self, ranks: usize) -> io::Result<()> {
        // Torn lines are better than none.
        let has_room = || limits::allows_open_files(4 * ranks as u64 + OWN_FILES);
        self.whole_lines |= self.may_tear && self.forwarders.is_empty() && has_room();
        if self.whole_lines || !self.forwarders.is_empty() {
            self.forwarders.push(Forwarder::new(self.above)?);
        }
        Ok(())
    }

    /// Forgets the ways of ranks that were started later and have ended, whose output was passed on. Those of the first
    /// ranks stay.
    pub fn forget_ended(&mut self) {
        let lost = &mut self.has_lost;
        let mut is_first = true;
        self.forwarders.retain(|forwarder| {
            // It is asked in any case: what has woken the root is read.
            let is_over = forwarder.is_done() && !forwarder.is_closed() && !is_first;
            is_first = false;
            *lost |= is_over && forwarder.has_lost();
            !is_over
        });
    }

    /// Whether something of what ranks wrote, or were to read, is lost, and that was said.
    pub fn has_lost(&self) -> bool {
        self.has_lost || self.feeder.has_failed() || self.forwarders.iter().any(Forwarder::has_lost)
    }

    /// Opens the streams of a rank. One that is spawned reads nothing.
    ///
    /// # Errors
    /// A file cannot be written to, or no descriptor is left.
    pub fn open(&mut self, rank: u32, is_spawned: bool) -> io::Result<Opened> {
        let input = match self.input {
            _ if is_spawned => Some(self.null.try_clone()?),
            Input::Rank(reader) if reader == rank => None,
            Input::All => Some(self.feeder.add(rank)?),
            Input::Rank(_) | Input::None => Some(self.null.try_clone()?),
        };
        Ok([input, self.sink(rank, Stream::Output)?, self.sink(rank, Stream::Error)?])
    }

    fn sink(&mut self, rank: u32, stream: Stream) -> io::Result<Option<OwnedFd>> {
        let facts = Facts { rank, node: self.node, host: &self.host };
        let prefix = Prefix::new(&self.output, &facts, stream);
        let file = self.output.files[stream as usize].as_ref();
        let name = file.map(|pattern| facts.expand(pattern));
        let file = name.map(|name| self.file(name)).transpose()?;
        let is_alone = file.is_some() && !self.output.copies;
        if is_alone && prefix.is_empty() {
            return Ok(file.map(OwnedFd::from));
        }
        let passes = !prefix.is_empty() || file.is_some() || (self.whole_lines && stream == Stream::Output);
        match self.forwarders.last_mut() {
            Some(forwarder) if passes => forwarder.add(stream, prefix, file, is_alone).map(Some),
            _ => Ok(None),
        }
    }

    /// A file that ranks write to. It is emptied once.
    fn file(&mut self, name: String) -> io::Result<File> {
        if let Some(file) = self.files.get(&name) {
            return file.try_clone();
        }
        let about = |error| about(&name, error);
        if let Some(folder) = Path::new(&name).parent() {
            fs::create_dir_all(folder).map_err(about)?;
        }
        // A named pipe that nobody reads would be waited for.
        let file = fs::OpenOptions::new().append(true).create(true).custom_flags(libc::O_NONBLOCK).open(&name);
        let file = file.map_err(|error| match error.raw_os_error() {
            Some(libc::ENXIO) => io::Error::other(format!("{name}: nobody reads this named pipe")),
            _ => about(error),
        })?;
        let blocks = OFlag::O_APPEND;
        fcntl(file.as_fd(), FcntlArg::F_SETFL(blocks))?;
        // Not a device, such as /dev/null.
        if self.emptied.insert(name.clone()) && file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        let copy = file.try_clone()?;
        self.files.insert(name, file);
        Ok(copy)
    }

    /// Starts to pass on what comes. Call when all ranks have been started.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub fn start(&mut self) -> io::Result<()> {
        // What is spawned reads nothing.
        if self.input == Input::All && self.feeder.has_sinks() {
            self.feeder.start()?;
        }
        self.files.clear();
        self.forwarders.last_mut().map_or(Ok(()), Forwarder::start)
    }
}

/// Empties the files to which ranks of several nodes write. Before the nodes meet: then no rank runs.
pub fn empty_common_files(output: &Output, place: Place) {
    if place.count < 2 {
        return;
    }
    let is_file = |facts: io::Result<fs::Metadata>| facts.is_ok_and(|facts| facts.is_file());
    // Who reads a named pipe would find its end if it were opened and closed. What is wrong with a file is said when
    // ranks are to have it.
    for name in names_of_all(output, place.index, &host()).iter().filter(|name| is_file(fs::metadata(name))) {
        let file = fs::OpenOptions::new().append(true).custom_flags(libc::O_NONBLOCK).open(name);
        if let Ok(file) = file
            && is_file(file.metadata())
        {
            let _ = file.set_len(0);
        }
    }
}

/// The files that all ranks of this node write to, and maybe those of others.
fn names_of_all(output: &Output, node: u32, host: &str) -> Vec<String> {
    let patterns = output.files.iter().flatten();
    let names = patterns.map(|pattern| [0, 1].map(|rank| Facts { rank, node, host }.expand(pattern)));
    names.filter(|[one, other]| one == other).map(|[name, _]| name).collect()
}

fn host() -> String {
    let host = nix::sys::utsname::uname();
    host.map(|host| host.nodename().to_string_lossy().into_owned()).unwrap_or_default()
}

/// An error of this file.
fn about(name: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{name}: {error}"))
}

/// The descriptors' numbers, -1 where a stream is the root's own.
pub fn numbers(streams: &Opened) -> [i32; 3] {
    let number = |stream: &Option<OwnedFd>| stream.as_ref().map_or(-1, AsRawFd::as_raw_fd);
    streams.each_ref().map(number)
}
