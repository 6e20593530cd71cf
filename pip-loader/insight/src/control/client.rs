//! Finds the jobs of this user on this machine, and asks them.

use super::wire::{ANSWER_MAX, Frame, Kind, Record};
use super::{NAME, is_own_user, peer};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use pip_ground::Refusal;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Where the kernel lists sockets: those of this network namespace.
const SOCKETS: &str = "/proc/net/unix";

/// What the list says of sockets that listen.
const LISTENS: u32 = 1 << 16;

/// How long jobs may take to answer.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The same of one job that asks other nodes first, and gives them ten seconds.
const NODES_PATIENCE: Duration = Duration::from_secs(15);

/// A connection with the launcher of a job.
#[derive(Debug)]
pub struct LauncherConnection {
    stream: UnixStream,
    /// The launcher's process, as this one's namespace knows it; 0 if it does not.
    pub pid: i32,
}

/// A job, and what it says of itself; `None` if it does not answer.
pub type Described = (LauncherConnection, Option<Record>);

impl LauncherConnection {
    /// Connects with the socket of this name, if it is a job's of this user that has room.
    fn connect(name: &str) -> Option<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None).ok()?;
        let address = UnixAddr::new_abstract(name.as_bytes()).ok()?;
        connect(socket.as_raw_fd(), &address).ok()?;
        let stream = UnixStream::from(socket);
        // Whoever listens: nothing is sent to a stranger.
        let (pid, _) = peer(&stream).filter(|_| is_own_user(&stream))?;
        stream.set_nonblocking(false).ok()?;
        Some(Self { stream, pid })
    }

    /// Sends a request.
    ///
    /// # Errors
    /// The job has ended.
    pub fn ask(&mut self, kind: Kind) -> std::io::Result<()> {
        self.stream.write_all(&Frame::encode(kind, &[]))
    }

    /// The answer to a request, which must have come at `until`.
    ///
    /// # Errors
    /// The job has ended, or does not answer: it is stopped.
    pub fn answer(&mut self, kind: Kind, until: Instant) -> std::io::Result<String> {
        let (mut received, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
        let mut is_late = false;
        loop {
            let taken = Frame::take(&mut received, ANSWER_MAX);
            let frame = taken.map_err(|what| {
                let what = format!("it is of another version than this pip-exec ({what:?})");
                std::io::Error::new(ErrorKind::InvalidData, what)
            })?;
            if let Some(frame) = frame.filter(|frame| frame.kind == kind) {
                return Ok(String::from_utf8_lossy(&frame.body).into_owned());
            }
            let left = until.saturating_duration_since(Instant::now());
            // What has come is taken, though another job may have been waited for all the time.
            if left.is_zero() && std::mem::replace(&mut is_late, true) {
                return Err(ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => received.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Err(ErrorKind::TimedOut.into());
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// The names of sockets in the kernel's list at which launchers listen.
fn names<'a>(list: &'a str, beginning: &str) -> impl Iterator<Item = &'a str> {
    list.lines().filter_map(move |line| {
        let mut words = line.split_whitespace();
        let flags = u32::from_str_radix(words.nth(3)?, 16).ok()?;
        let name = words.nth(3)?.strip_prefix('@')?;
        (flags & LISTENS != 0 && name.starts_with(beginning)).then_some(name)
    })
}

/// All jobs of this user, in the order of their processes, with what they say of themselves.
///
/// # Errors
/// The system does not list its sockets.
pub fn jobs() -> Result<Vec<Described>, Refusal> {
    jobs_at(NAME)
}

/// The same, of sockets whose names begin so.
pub(super) fn jobs_at(beginning: &str) -> Result<Vec<Described>, Refusal> {
    let list =
        std::fs::read_to_string(SOCKETS).map_err(|error| Refusal::new(format!("cannot read {SOCKETS}: {error}")))?;
    let mut jobs: Vec<LauncherConnection> = names(&list, beginning).filter_map(LauncherConnection::connect).collect();
    jobs.sort_by_key(|job| job.pid);
    // All are asked before the first is waited for.
    jobs.retain_mut(|job| job.ask(Kind::Describe).is_ok());
    let until = Instant::now() + PATIENCE;
    let described = jobs.into_iter().filter_map(|mut job| match job.answer(Kind::Describe, until) {
        Ok(text) => Some((job, Some(Record::decode(&text)))),
        Err(error) if is_end(&error) => None,
        Err(_) => Some((job, None)),
    });
    Ok(described.collect())
}

/// The job with this process: its launcher, or one of its ranks. Without a number, the only one.
///
/// # Errors
/// There is none, or more than one; the message lists them.
pub fn find(pid: Option<i32>) -> Result<(LauncherConnection, Record), Refusal> {
    let mut jobs = jobs()?;
    if let Some(pid) = pid {
        let is_its = |(job, record): &Described| {
            let record = record.as_ref();
            let own = record.map_or(0, |record| record.number("pid"));
            let ranks = record.map_or("", |record| record.get("pids"));
            let is_rank = ranks.split(' ').any(|rank| rank.parse() == Ok(pid));
            job.pid == pid || own == pid as u64 || is_rank
        };
        let found = jobs.iter().position(is_its);
        let found = found.ok_or_else(|| {
            Refusal::new(format!("process {pid} is no job of yours, nor one of its ranks; pip-exec --ps lists them"))
        })?;
        jobs = vec![jobs.swap_remove(found)];
    }
    one_of_each(&mut jobs);
    match jobs.pop() {
        None => Err(Refusal::new("no job of yours runs on this machine")),
        Some(_) if !jobs.is_empty() => {
            Err(Refusal::new("several jobs run; name one by its process, as pip-exec --ps lists them"))
        }
        Some((job, Some(record))) => Ok((job, record)),
        Some((job, None)) => Err(silent(job.pid)),
    }
}

/// Of launchers of one job leaves the one with the lowest node.
pub(super) fn one_of_each(jobs: &mut Vec<Described>) {
    let job = |(_, record): &Described| {
        let record = record.as_ref()?;
        let name = record.get("job");
        (!name.is_empty()).then(|| (name.to_owned(), record.number("node")))
    };
    let nodes: Vec<Option<(String, u64)>> = jobs.iter().map(job).collect();
    let is_first = |own: &Option<(String, u64)>| {
        let Some((name, node)) = own else {
            return true;
        };
        let mut others = nodes.iter().flatten();
        !others.any(|(other, lower)| other == name && lower < node)
    };
    let mut keep = nodes.iter().map(is_first);
    jobs.retain(|_| keep.next().unwrap_or(true));
}

/// Whether a job that has not answered has ended meanwhile.
pub(super) fn is_end(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

/// One that has not is stopped, or speaks otherwise.
pub(super) fn silent(pid: i32) -> Refusal {
    Refusal::new(format!("the job of process {pid} does not answer: it is stopped, or of another version"))
}

/// What the job with this process says to a request.
///
/// # Errors
/// There is none, or it does not answer.
pub fn ask(pid: Option<i32>, kind: Kind) -> Result<String, Refusal> {
    let (mut job, _) = find(pid)?;
    let answer = job.ask(kind);
    let answer = answer.and_then(|()| job.answer(kind, Instant::now() + NODES_PATIENCE));
    answer.map_err(|_| silent(job.pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_with_several_launchers_on_a_machine_is_one() {
        let launcher = |pid: i32, job: &str, node: u64| {
            let (stream, _) = UnixStream::pair().expect("a pair");
            let mut record = Record::default();
            record.add("job", job).add("node", node);
            (LauncherConnection { stream, pid }, Some(record))
        };
        let mut jobs =
            vec![launcher(5, "a", 1), launcher(6, "b", 4), launcher(7, "a", 0), launcher(8, "", 0), launcher(9, "", 0)];
        one_of_each(&mut jobs);
        let pids: Vec<i32> = jobs.iter().map(|(job, _)| job.pid).collect();
        assert_eq!(pids, [6, 7, 8, 9]);
    }

    #[test]
    fn launchers_are_found_in_the_kernels_list() {
        let list = "\
Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 19 @cohort-control-00ff
0000000000000000: 00000003 00000000 00000000 0001 03 20 @cohort-control-00ff
0000000000000000: 00000002 00000000 00010000 0001 01 21 /tmp/cohort-control-1
0000000000000000: 00000002 00000000 00010000 0001 01 22 @other
0000000000000000: 00000003 00000000 00000000 0001 03 23
";
        assert_eq!(names(list, "cohort-control-").collect::<Vec<_>>(), ["cohort-control-00ff"]);
    }
}
