//! Where programs ask for their place that ranks have started in address spaces of their own.
//!
//! A wrapper (`env`, `timeout`, a script, a debugger) is no MPI program, but what it starts is one, and descends from
//! a rank's task by `fork` and `execve`. Such a program knows from its environment
//! ([`cohort_base::boot::DESCENDANT`]) the job's door, a socket of `pip-exec` with an abstract name, and its rank.
//! It knocks (`cmd=descendant rank=3`) and is told one of four things:
//!
//! | answer | meaning |
//! |---|---|
//! | `rc=0 size=N` | it is the rank; from here on the connection speaks PMI-1 |
//! | `rc=1` | the rank itself uses MPI, so the program is a world of its own |
//! | `rc=2` | the job's ranks share an address space, which it is not in |
//! | `rc=3 pid=P` | process P has taken the rank |
//!
//! Only processes of the same user are heard. Neither side of the door waits for a visitor: what has not said who it
//! is stays with the others that wait.

use crate::wire::{Message, read_line, send};
use crate::{Failure, Manager, Place, pmi1};
use cohort_base::boot::DESCENDANT;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

/// Longest request.
const REQUEST_MAX: usize = 64;

/// Most visitors that have not said who they are.
const VISITORS_MAX: usize = 1024;

/// What a visitor is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is the rank, in a job of this many.
    Joins(u32),
    /// It is a world of its own.
    Alone,
    /// It cannot be in this job.
    Outside,
    /// This process has its place.
    Taken(i32),
}

/// The job's side.
#[derive(Debug)]
pub struct Door {
    listener: UnixListener,
    name: String,
    visitors: Vec<(UnixStream, Vec<u8>)>,
}

/// A program that asks for the place of a rank.
#[derive(Debug)]
pub struct Visitor {
    /// The rank in `MPI_COMM_WORLD` that it descends from.
    pub rank: u32,
    /// Its process, as the kernel knows it.
    pub pid: i32,
    stream: UnixStream,
}

impl Door {
    /// Opens a door with a name that no other has.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn open() -> io::Result<Self> {
        let random = u64::from_ne_bytes(crate::random()?);
        let name = format!("cohort-{}-{random:016x}", std::process::id());
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            name,
            visitors: Vec::new(),
        })
    }

    /// The variable by which descendants of a rank find the door.
    #[must_use]
    pub fn variable(&self, rank: u32) -> (&'static str, String) {
        (DESCENDANT, format!("{}/{rank}", self.name))
    }

    /// What to poll for input.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let visitors = self.visitors.iter().map(|(stream, _)| stream.as_fd());
        std::iter::once(self.listener.as_fd()).chain(visitors)
    }

    /// Those who have said by now which rank they descend from.
    pub fn visitors(&mut self) -> Vec<Visitor> {
        while self.visitors.len() < VISITORS_MAX
            && let Ok((stream, _)) = self.listener.accept()
        {
            if stream.set_nonblocking(true).is_ok() {
                self.visitors.push((stream, Vec::new()));
            }
        }
        let mut known = Vec::new();
        for (mut stream, mut begun) in std::mem::take(&mut self.visitors) {
            match read_request(&mut stream, &mut begun) {
                Some(true) => known.extend(visitor(stream, &begun)),
                Some(false) => self.visitors.push((stream, begun)),
                None => {}
            }
        }
        known
    }
}

/// Whether the request is complete; `None` if none will come.
fn read_request(stream: &mut UnixStream, begun: &mut Vec<u8>) -> Option<bool> {
    let mut buffer = [0; REQUEST_MAX];
    match stream.read(&mut buffer) {
        Ok(0) => return None,
        Ok(length) => begun.extend_from_slice(&buffer[..length]),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
        Err(_) => return None,
    }
    (begun.len() <= REQUEST_MAX).then(|| begun.ends_with(b"\n"))
}

/// Who asks; `None` for a stranger.
fn visitor(stream: UnixStream, request: &[u8]) -> Option<Visitor> {
    let request = Message::parse(&String::from_utf8_lossy(request), ' ');
    let rank = request.number("rank").ok()?;
    let (pid, user) = peer(&stream)?;
    // SAFETY: no condition.
    let own = unsafe { libc::geteuid() };
    (request.get("cmd") == Some("descendant") && (user == own || user == 0)).then_some(Visitor {
        rank,
        pid,
        stream,
    })
}

/// Process and user at the other end.
fn peer(stream: &UnixStream) -> Option<(i32, u32)> {
    let mut credentials = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: a socket that is open, and a place of that length.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    (result == 0).then_some((credentials.pid, credentials.uid))
}

impl Visitor {
    /// Tells it, and gives its connection. A visitor that has gone meanwhile is noticed at the next use.
    #[must_use]
    pub fn answer(mut self, answer: Answer) -> UnixStream {
        let text = match answer {
            Answer::Joins(size) => format!("cmd=place rc=0 size={size}\n"),
            Answer::Alone => "cmd=place rc=1\n".to_owned(),
            Answer::Outside => "cmd=place rc=2\n".to_owned(),
            Answer::Taken(pid) => format!("cmd=place rc=3 pid={pid}\n"),
        };
        let _ = self.stream.write_all(text.as_bytes());
        self.stream
    }
}

/// The place of a program whose environment says `variable`. `None` if it is a world of its own: its rank uses MPI
/// itself, or the job has ended.
///
/// # Errors
/// The job has no place for it; the message names the way out.
pub fn knock(variable: &str) -> Result<Option<Box<dyn Manager>>, Failure> {
    let nonsense = || Failure::Variable {
        name: DESCENDANT,
        value: variable.to_owned(),
    };
    let (name, rank) = variable.rsplit_once('/').ok_or_else(nonsense)?;
    let index: u32 = rank.parse().map_err(|_| nonsense())?;
    let address = SocketAddr::from_abstract_name(name).map_err(|_| nonsense())?;
    let Ok(mut stream) = UnixStream::connect_addr(&address) else {
        return Ok(None);
    };
    send(&mut stream, &format!("cmd=descendant rank={index}\n"))?;
    let answer = Message::parse(&read_line(&mut stream)?, ' ');
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.display();
    match (answer.get("cmd"), answer.number::<u32>("rc")?) {
        (Some("place"), 0) => {
            let count = answer.number("size")?;
            let client = pmi1::Client::start(stream, Place { index, count })?;
            Ok(Some(Box::new(client)))
        }
        (Some("place"), 1) => Ok(None),
        (Some("place"), 2) => Err(Failure::NoPlace(format!(
            "{program} descends from rank {index} of a job whose ranks share an address space, and is not in it: it \
             would be alone in a world of its own. pip-exec --isolate lets programs that ranks start join the job"
        ))),
        (Some("place"), 3) => {
            let pid: i32 = answer.number("pid")?;
            Err(Failure::NoPlace(format!(
                "{program} descends from rank {index} of a job, whose place process {pid} has taken: it would be \
                 alone in a world of its own. Start an MPI program when the one before has ended, or with a pip-exec \
                 of its own"
            )))
        }
        _ => Err(answer.unexpected("cmd=place")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Knocks as rank 3 and gives what the door heard and the visitor was told.
    fn told(answer: Answer) -> Result<Option<Place>, String> {
        let mut door = Door::open().expect("descriptors");
        let (_, variable) = door.variable(3);
        std::thread::scope(|scope| {
            let knocking = scope.spawn(move || {
                let manager = knock(&variable).map_err(|failure| failure.to_string())?;
                Ok(manager.map(|manager| manager.place()))
            });
            let visitor = loop {
                if let Some(visitor) = door.visitors().pop() {
                    break visitor;
                }
                std::thread::yield_now();
            };
            assert_eq!((visitor.rank, visitor.pid), (3, std::process::id() as i32));
            let mut stream = visitor.answer(answer);
            stream.set_nonblocking(false).expect("a socket");
            if matches!(answer, Answer::Joins(_)) {
                for reply in [
                    "cmd=response_to_init rc=0\n",
                    "cmd=maxes keylen_max=64 vallen_max=1024\n",
                    "cmd=my_kvsname kvsname=x\n",
                ] {
                    read_line(&mut stream).expect("a request");
                    send(&mut stream, reply).expect("a reader");
                }
            }
            knocking.join().expect("no panic")
        })
    }

    #[test]
    fn visitors_are_told_their_place() {
        let place = Place { index: 3, count: 7 };
        assert_eq!(told(Answer::Joins(7)), Ok(Some(place)));
        assert_eq!(told(Answer::Alone), Ok(None));
        let refused = told(Answer::Outside).unwrap_err();
        assert!(
            refused.contains("rank 3") && refused.contains("--isolate"),
            "{refused}"
        );
        let taken = told(Answer::Taken(42)).unwrap_err();
        assert!(
            taken.contains("rank 3") && taken.contains("process 42"),
            "{taken}"
        );
    }

    #[test]
    fn a_job_that_has_ended_has_no_door() {
        let variable = Door::open().expect("descriptors").variable(0).1;
        assert!(knock(&variable).expect("no failure").is_none());
        assert!(knock("nonsense").is_err());
    }

    #[test]
    fn strangers_are_not_visitors() {
        let mut door = Door::open().expect("descriptors");
        let address = SocketAddr::from_abstract_name(&door.name).expect("short");
        for words in [
            "GET / HTTP/1.1\n",
            "cmd=descendant rank=x\n",
            &"x".repeat(4000),
        ] {
            let mut stream = UnixStream::connect_addr(&address).expect("open");
            stream.write_all(words.as_bytes()).expect("room");
            for _ in 0..100 {
                assert!(door.visitors().is_empty(), "{words}");
            }
        }
        assert!(door.visitors.is_empty());
    }
}
