//! The ranks' output, where it passes through the root: it keeps lines whole, begins them with the rank's number
//! (`--label` and its like), or writes them to files too.
//!
//! Ranks share a terminal as it is, and a file or a pipe has one rank to itself. Otherwise lines would be torn where
//! a C library's buffer ends, in the middle of a line.
//!
//! A thread for each of the root's two streams reads the pipes of that stream and writes what came. So when nobody
//! reads the root's output, that thread waits, the pipes fill up, and in the end the ranks wait in their writes, as
//! they would without the root; nothing is lost, nothing is kept but begun lines, and the root goes on with signals,
//! time limits and its managers.

use super::prefix::{Prefix, Stream};
use pip_ground::{say, voice};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::unistd::pipe2;

/// One pipe from a rank.
#[derive(Debug)]
struct Pipe {
    /// What begins each line.
    prefix: Prefix,
    source: File,
    /// A file that its lines go to.
    copy: Option<File>,
    /// They go there only.
    is_alone: bool,
    /// The begun line.
    line: Vec<u8>,
    /// How much of it is shown already, where lines have labels.
    shown: usize,
    /// Its place among the pipes of its bundle.
    index: usize,
    open: bool,
    signs: Arc<Signs>,
}

/// The pipes that feed one stream.
#[derive(Debug)]
struct Bundle {
    epoll: Epoll,
    pipes: Vec<Pipe>,
}

/// A stream of the root's, as those see it that write whole lines with labels.
struct Outlet<W> {
    write: W,
    /// The pipe whose begun line is the last that was shown.
    begun: Option<usize>,
}

impl<W: FnMut(&[u8])> Outlet<W> {
    fn new(write: W) -> Self {
        Self { write, begun: None }
    }

    /// Ends the line that another pipe has begun. Whether this one's own is the last.
    fn turn_to(&mut self, index: usize) -> bool {
        match self.begun.take() {
            Some(own) if own == index => return true,
            Some(_) => (self.write)(b"\n"),
            None => {}
        }
        false
    }
}

/// What the root and the threads tell each other.
#[derive(Debug)]
struct Signs {
    /// Readable once the last rank has ended.
    end: EventFd,
    /// Readable once a thread has ended.
    ended: EventFd,
    /// Threads that have not ended.
    running: AtomicUsize,
    /// Nobody reads the root's standard output any more.
    closed: AtomicBool,
    /// Something of what ranks wrote is lost.
    lost: AtomicBool,
}

impl Signs {
    /// Notes how a write to one of the root's streams ended.
    fn note(&self, stream: Stream, name: &str, result: Result<(), Errno>) {
        match result {
            Ok(()) => {}
            Err(Errno::EPIPE) if stream == Stream::Output => {
                self.closed.store(true, Ordering::Relaxed);
                // It counts the writes, far from its end.
                let _ = self.ended.write(1);
            }
            Err(Errno::EPIPE) => {}
            // A full disk may have room again: the ranks go on.
            Err(error) => self.lose(name, &error.into()),
        }
    }

    /// Says, once, that something that ranks wrote is lost.
    fn lose(&self, place: &str, error: &io::Error) {
        if !self.lost.swap(true, Ordering::Relaxed) {
            say(format_args!("some of what the ranks wrote is lost: {place}: {error}"));
        }
    }
}

/// Whether lines of several ranks may be torn in this stream of the root's, unless they pass through the root.
pub fn may_tear(stream: BorrowedFd<'_>) -> bool {
    let kind = nix::sys::stat::fstat(stream).map(|stat| stat.st_mode & libc::S_IFMT);
    kind.is_ok_and(|kind| [libc::S_IFIFO, libc::S_IFSOCK, libc::S_IFREG].contains(&kind))
}

/// Whether this stream of the root's is a device that may refuse what is written, which programs do not look at.
pub fn may_refuse(stream: BorrowedFd<'_>) -> bool {
    nix::sys::stat::fstat(stream).is_ok_and(|stat| {
        stat.st_mode & libc::S_IFMT == libc::S_IFCHR
            && stat.st_rdev != NULL_DEVICE
            && !nix::unistd::isatty(stream).unwrap_or(false)
    })
}

/// `/dev/null`.
const NULL_DEVICE: libc::dev_t = libc::makedev(1, 3);

/// Whether nobody reads the root's standard output any more.
pub fn is_unread() -> bool {
    let stdout = io::stdout();
    let mut end = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    let found = poll(&mut end, PollTimeout::ZERO);
    found.is_ok() && end[0].revents().is_some_and(|found| found.contains(PollFlags::POLLERR))
}

/// All pipes, from the ranks to the root's own streams.
#[derive(Debug)]
pub struct Forwarder {
    /// Those of each stream until its thread has them.
    bundles: [Option<Bundle>; 2],
    signs: Arc<Signs>,
    /// Where the root's ends of pipes lie among its descriptors.
    above: Option<u32>,
}

/// How long a begun line waits for its end while no rank writes anything: it may be a question to the user.
const IDLE: u16 = 500;

/// Longest line that is kept whole; a longer one is passed on in parts.
const LINE_MAX: usize = 1 << 20;

/// What the event of [`Signs::end`] is called among those of pipes.
const END: u64 = u64::MAX;

impl Forwarder {
    /// A forwarder without pipes, whose ends of pipes get numbers from `above` on.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new(above: Option<u32>) -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let signs = Signs {
            end: EventFd::from_flags(flags)?,
            ended: EventFd::from_flags(flags)?,
            running: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            lost: AtomicBool::new(false),
        };
        Ok(Self { bundles: [Some(Bundle::new(&signs)?), Some(Bundle::new(&signs)?)], signs: Arc::new(signs), above })
    }

    /// Makes a pipe for a rank whose lines begin so, and returns the end that the rank writes to. `copy`, a file,
    /// gets the lines too, or alone. Before [`Forwarder::start`].
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn add(&mut self, stream: Stream, prefix: Prefix, copy: Option<File>, is_alone: bool) -> io::Result<OwnedFd> {
        let bundle = self.bundles[stream as usize].as_mut();
        let bundle = bundle.ok_or(io::ErrorKind::Other)?;
        bundle.add(prefix, copy, is_alone, (self.above, &self.signs))
    }

    /// Starts to pass on what comes. The threads inherit the caller's signal mask.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub fn start(&mut self) -> io::Result<()> {
        for (stream, bundle) in [Stream::Output, Stream::Error].into_iter().zip(&mut self.bundles) {
            let Some(bundle) = bundle.take() else {
                continue;
            };
            let signs = Arc::clone(&self.signs);
            let name = match stream {
                Stream::Output => "stdout",
                Stream::Error => "stderr",
            };
            signs.running.fetch_add(1, Ordering::Relaxed);
            let thread = std::thread::Builder::new().name(name.into());
            let started = thread.spawn(move || {
                bundle.forward(|bytes| signs.note(stream, name, write_to(stream, bytes)));
                // Release pairs with the Acquire in `is_done`.
                signs.running.fetch_sub(1, Ordering::Release);
                // It counts two at most.
                let _ = signs.ended.write(1);
            });
            if let Err(error) = started {
                self.signs.running.fetch_sub(1, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Whether nobody reads standard output any more.
    pub fn is_closed(&self) -> bool {
        let closed = self.signs.closed.load(Ordering::Relaxed);
        if closed {
            let _ = self.signs.ended.read();
        }
        closed
    }

    /// Whether something of what ranks wrote is lost, and that was said.
    pub fn has_lost(&self) -> bool {
        self.signs.lost.load(Ordering::Relaxed)
    }

    /// The descriptor that is readable once a thread has ended, or nobody reads its stream.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.signs.ended.as_fd()
    }

    /// Has the threads pass on what is left, begun lines too, and end. Call after the last rank has ended.
    pub fn end(&self) {
        // It counts the calls, far from its end.
        let _ = self.signs.end.write(1);
    }

    /// After [`Forwarder::end`]: whether all was passed on.
    pub fn is_done(&self) -> bool {
        let _ = self.signs.ended.read();
        self.signs.running.load(Ordering::Acquire) == 0
    }
}

impl Bundle {
    fn new(signs: &Signs) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(signs.end.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, END))?;
        Ok(Self { epoll, pipes: Vec::new() })
    }

    fn add(
        &mut self,
        prefix: Prefix,
        copy: Option<File>,
        is_alone: bool,
        (above, signs): (Option<u32>, &Arc<Signs>),
    ) -> io::Result<OwnedFd> {
        let (mut source, sink) = pipe2(OFlag::O_CLOEXEC)?;
        if let Some(first) = above {
            let moved = fcntl(source.as_fd(), FcntlArg::F_DUPFD_CLOEXEC(first as i32))?;
            // SAFETY: the descriptor was made just now, and nobody else has it.
            source = unsafe { OwnedFd::from_raw_fd(moved) };
        }
        fcntl(source.as_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let index = self.pipes.len();
        let event = EpollEvent::new(EpollFlags::EPOLLIN, index as u64);
        self.epoll.add(source.as_fd(), event)?;
        self.pipes.push(Pipe {
            prefix,
            copy,
            is_alone,
            source: source.into(),
            line: Vec::new(),
            shown: 0,
            index,
            open: true,
            signs: Arc::clone(signs),
        });
        Ok(sink)
    }

    /// Passes on what comes until the end is told, or nobody has an end of its pipes any more, and then what is left.
    fn forward(mut self, write: impl FnMut(&[u8])) {
        let mut outlet = Outlet::new(write);
        while self.pipes.iter().any(|pipe| pipe.open) {
            let is_begun = self.pipes.iter().any(Pipe::has_begun);
            let limit = match is_begun {
                true => EpollTimeout::from(IDLE),
                false => EpollTimeout::NONE,
            };
            let turn = self.turn(limit, &mut outlet);
            if turn.is_told_to_end {
                break;
            }
            if is_begun && !turn.has_moved {
                self.show_begun(&mut outlet);
            }
        }
        // Processes that a rank left behind may hold its pipe open, and write for ever: what has come by now is all.
        for pipe in &mut self.pipes {
            pipe.read_rest(&mut outlet);
            pipe.flush_line(&mut outlet);
        }
    }

    /// Passes on begun lines: they may be questions to the user.
    fn show_begun(&mut self, outlet: &mut Outlet<impl FnMut(&[u8])>) {
        for pipe in self.pipes.iter_mut().filter(|pipe| pipe.has_begun()) {
            match pipe.prefix.is_empty() {
                true => pipe.flush_line(outlet),
                false => pipe.show_line(outlet),
            }
        }
    }

    fn turn(&mut self, limit: EpollTimeout, outlet: &mut Outlet<impl FnMut(&[u8])>) -> Turn {
        let mut events = [EpollEvent::empty(); 64];
        let count = self.epoll.wait(&mut events, limit).unwrap_or(0);
        let mut turn = Turn::default();
        for event in &events[..count] {
            if event.data() == END {
                turn.is_told_to_end = true;
                continue;
            }
            turn.has_moved = true;
            let pipe = &mut self.pipes[event.data() as usize];
            pipe.read(outlet);
            if !pipe.open {
                // The descriptor is open until the bundle is dropped, so it is registered.
                let _ = self.epoll.delete(pipe.source.as_fd());
            }
        }
        turn
    }
}

/// What a look at the pipes of a bundle found.
#[derive(Default)]
struct Turn {
    has_moved: bool,
    is_told_to_end: bool,
}

impl Pipe {
    /// Whether a line has begun that may be passed on without its end. In a file what is labelled is a line always.
    fn has_begun(&self) -> bool {
        self.line.len() > self.shown && (self.prefix.is_empty() || !self.is_alone)
    }

    /// Reads as much as the pipe may hold.
    fn read_rest(&mut self, outlet: &mut Outlet<impl FnMut(&[u8])>) {
        let size = fcntl(self.source.as_fd(), FcntlArg::F_GETPIPE_SZ);
        let mut left = usize::try_from(size.unwrap_or(0)).unwrap_or(0).max(LINE_MAX);
        while self.open && left > 0 {
            match self.read(outlet) {
                0 => return,
                length => left = left.saturating_sub(length),
            }
        }
    }

    /// Reads what is there, up to a limit. Returns its length.
    fn read(&mut self, outlet: &mut Outlet<impl FnMut(&[u8])>) -> usize {
        let mut buffer = [0; 16 << 10];
        match self.source.read(&mut buffer) {
            Ok(0) => {
                self.open = false;
                self.flush_line(outlet);
                0
            }
            Ok(len) => {
                let part = &buffer[..len];
                self.line.extend_from_slice(part);
                if part.contains(&b'\n') || self.line.len() > LINE_MAX {
                    self.emit_lines(outlet);
                }
                len
            }
            Err(error) => {
                self.open = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
                0
            }
        }
    }

    fn emit_lines(&mut self, outlet: &mut Outlet<impl FnMut(&[u8])>) {
        let end = self.line.iter().rposition(|&byte| byte == b'\n');
        let Some(end) = end else {
            return self.flush_line(outlet);
        };
        let rest = self.line.split_off(end + 1);
        let lines = std::mem::replace(&mut self.line, rest);
        self.pass_on(lines, outlet);
    }

    fn pass_on(&mut self, lines: Vec<u8>, outlet: &mut Outlet<impl FnMut(&[u8])>) {
        let rest = (self.shown > 0).then(|| lines[self.shown..].to_vec());
        let lines = self.prefix.put_before(lines);
        if let Some(copy) = &mut self.copy {
            // A file that takes no more is no reason to end the job.
            if let Err(error) = copy.write_all(&lines) {
                self.signs.lose("an output file", &error);
            }
        }
        self.shown = 0;
        match rest {
            _ if self.is_alone => {}
            Some(rest) => self.show_rest(rest, outlet),
            None => {
                outlet.turn_to(self.index);
                (outlet.write)(&lines);
            }
        }
    }

    /// Shows lines of whose first one a part is shown: that has its label, unless others have written behind it.
    fn show_rest(&self, mut rest: Vec<u8>, outlet: &mut Outlet<impl FnMut(&[u8])>) {
        let end = rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |end| end + 1);
        let more = rest.split_off(end);
        match outlet.turn_to(self.index) {
            true => (outlet.write)(&rest),
            false if rest == b"\n" => {}
            false => (outlet.write)(&self.prefix.put_before(rest)),
        }
        (outlet.write)(&self.prefix.put_before(more));
    }

    /// Shows what has come of a line with a label, which stays begun.
    fn show_line(&mut self, outlet: &mut Outlet<impl FnMut(&[u8])>) {
        let part = self.line[self.shown..].to_vec();
        self.shown = self.line.len();
        match outlet.turn_to(self.index) {
            true => (outlet.write)(&part),
            false => (outlet.write)(&self.prefix.put_before(part)),
        }
        outlet.begun = Some(self.index);
    }

    /// Passes on a begun line for good; one with a label ends there.
    fn flush_line(&mut self, outlet: &mut Outlet<impl FnMut(&[u8])>) {
        if !self.line.is_empty() {
            if !self.prefix.is_empty() {
                self.line.push(b'\n');
            }
            let line = std::mem::take(&mut self.line);
            self.pass_on(line, outlet);
        }
    }
}

/// Writes all of it to a stream of the root's, however long that takes.
fn write_to(stream: Stream, bytes: &[u8]) -> Result<(), Errno> {
    match stream {
        Stream::Output => voice::write_all(io::stdout().as_fd(), bytes),
        Stream::Error => {
            let _alone = voice::alone();
            voice::write_all(io::stderr().as_fd(), bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::Output;
    use super::super::prefix::Facts;
    use super::*;

    fn label(rank: u32) -> Prefix {
        let output = Output { label: true, ..Output::default() };
        let (node, host) = (2, "here");
        Prefix::new(&output, &Facts { rank, node, host }, Stream::Output)
    }

    #[test]
    fn lines_without_a_label_stay_as_they_are() {
        let mut forwarder = Forwarder::new(None).expect("descriptors");
        let mut sinks: Vec<File> = Vec::new();
        for _ in 0..2 {
            let sink = forwarder.add(Stream::Output, Prefix::default(), None, false);
            sinks.push(sink.expect("descriptors").into());
        }
        sinks[0].write_all(b"one ").expect("room");
        sinks[1].write_all(b"two\nthr").expect("room");
        sinks[0].write_all(b"line\n").expect("room");
        forwarder.end();
        let bundle = forwarder.bundles[0].take().expect("not started");
        let mut written = Vec::new();
        bundle.forward(|bytes| written.extend_from_slice(bytes));
        assert_eq!(written, b"one line\ntwo\nthr");
    }

    #[test]
    fn begun_lines_wait_for_their_end() {
        let mut forwarder = Forwarder::new(None).expect("descriptors");
        let sink = forwarder.add(Stream::Error, label(0), None, false).expect("descriptors");
        File::from(sink.try_clone().expect("descriptors")).write_all(b"begun").expect("room");
        let mut bundle = forwarder.bundles[1].take().expect("not started");
        let mut written = Vec::new();
        let mut outlet = Outlet::new(|bytes: &[u8]| written.extend_from_slice(bytes));
        let mut turn = || bundle.turn(EpollTimeout::ZERO, &mut outlet).has_moved;
        assert!(turn());
        assert!(!turn(), "nothing more came");
        drop(sink);
        assert!(turn());
        assert!(!turn(), "the pipe is closed");
        assert_eq!(written, b"[0] begun\n");
    }

    #[test]
    fn a_question_is_shown_behind_its_label() {
        let mut forwarder = Forwarder::new(None).expect("descriptors");
        let mut sinks: Vec<File> = Vec::new();
        for rank in 0..2 {
            let sink = forwarder.add(Stream::Output, label(rank), None, false);
            sinks.push(sink.expect("descriptors").into());
        }
        let mut bundle = forwarder.bundles[0].take().expect("not started");
        let written = std::cell::RefCell::new(Vec::new());
        let mut outlet = Outlet::new(|bytes: &[u8]| written.borrow_mut().extend_from_slice(bytes));
        let mut step = |rank: usize, text: &[u8], is_idle: bool, shown: &[u8]| {
            sinks[rank].write_all(text).expect("room");
            bundle.turn(EpollTimeout::ZERO, &mut outlet);
            if is_idle {
                bundle.show_begun(&mut outlet);
            }
            let written = std::mem::take(&mut *written.borrow_mut());
            assert_eq!(written, shown, "{}", String::from_utf8_lossy(&written));
        };
        step(0, b"na", false, b"");
        step(0, b"me? ", true, b"[0] name? ");
        step(0, b"or", true, b"or");
        step(0, b"t? a\nb\nc", false, b"t? a\n[0] b\n");
        step(0, b"?", true, b"[0] c?");
        // Others write: the line ends, and what follows has a label again.
        step(1, b"one\n", true, b"\n[1] one\n");
        step(0, b" d\n", true, b"[0]  d\n");
        step(0, b"e?", true, b"[0] e?");
        step(1, b"f?", true, b"\n[1] f?");
        step(0, b"\n", true, b"\n");
        step(1, b"\n2\n", true, b"[1] 2\n");
    }

    #[test]
    fn who_writes_for_ever_does_not_stop_the_end() {
        let mut forwarder = Forwarder::new(None).expect("descriptors");
        let sink = forwarder.add(Stream::Output, Prefix::default(), None, false).expect("descriptors");
        forwarder.end();
        let bundle = forwarder.bundles[0].take().expect("not started");
        let mut sink = File::from(sink);
        let lines = "line\n".repeat(800);
        sink.write_all(lines.as_bytes()).expect("room");
        let mut written = Vec::new();
        bundle.forward(|bytes| {
            // There is as much again before the next look.
            sink.write_all(bytes).expect("room");
            written.extend_from_slice(bytes);
        });
        assert!(written.starts_with(lines.as_bytes()));
    }

    #[test]
    fn what_a_process_left_behind_holds_open_does_not_stop_the_end() {
        let mut forwarder = Forwarder::new(None).expect("descriptors");
        let sink = forwarder.add(Stream::Output, label(7), None, false).expect("descriptors");
        File::from(sink.try_clone().expect("descriptors")).write_all(b"one\ntwo").expect("room");
        forwarder.end();
        let bundle = forwarder.bundles[0].take().expect("not started");
        let mut written = Vec::new();
        bundle.forward(|bytes| written.extend_from_slice(bytes));
        assert_eq!(written, b"[7] one\n[7] two\n");
        drop(sink);
    }
}
