//! Where programs ask for their place that ranks have started in address spaces of their own.
//!
//! A wrapper (`env`, `timeout`, a script, a debugger) is no MPI program, but what it starts is one, and descends from
//! a rank's task by `fork` and `execve`. Such a program knows from its environment
//! ([`cohort_base::boot::DESCENDANT`]) the job's door, a socket of `pip-exec` with an abstract name, and its rank.
//! It knocks (`cmd=descendant rank=3`) and is told one of these things:
//!
//! | answer | meaning |
//! |---|---|
//! | `rc=0 rank=R size=N` | it is the rank; from here on the connection speaks PMI-1 |
//! | `rc=1` | the rank itself uses MPI, so the program is a world of its own |
//! | `rc=2` | the job's ranks share an address space, which it is not in |
//! | `rc=3 pid=P` | process P has taken the rank |
//! | `rc=4` | the rank is spawned, and the program cannot be adopted |
//! | `rc=5 pid=P` | the rank is spawned, and process P is or was it |
//! | `rc=6` | the rank is spawned, and shares the address space, in which the program is not |
//!
//! Who has emptied its environment (`env -i`, `sudo`) finds the door by the process number of `pip-exec`, which is
//! among its ancestors and in the door's name ([`of_an_ancestor`]). It does not know its rank, and says `rank=?`: the
//! job finds that out by whose task it descends from.
//!
//! A door that gathers has a name by which programs that wrappers execute know it. Before any of their code runs they
//! offer themselves (`cmd=executed rank=3 ...`, and their three standard descriptors) and wait. A closed connection
//! tells them to go on. One that a wrapper waits for, and whose program has become a rank elsewhere, is told to stand
//! in for it ([`crate::stand_in`]). A door can have two names, one for what ranks start and one for wrappers.
//!
//! Only processes of the same user are heard. Neither side of the door waits for a visitor: what has not said who it
//! is stays with the others that wait.

use crate::parcel::receive;
use crate::wire::{Message, read_line, send};
use crate::{Failure, Manager, Place, pmi1};
use cohort_base::boot::{DESCENDANT, GATHERING};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

/// Longest request.
const REQUEST_MAX: usize = 160;

/// What a visitor says for its rank if it does not know it.
const UNKNOWN: &str = "?";

/// How many generations lie at most between a rank's task and what it starts.
const GENERATIONS: usize = 64;

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
    /// It descends from a spawned rank and has not offered itself, or in vain.
    Unfit,
    /// It cannot be in this job: its rank was spawned.
    Beside,
    /// It descends from a spawned rank, which this process is or has been.
    Second(i32),
}

/// The job's side.
#[derive(Debug)]
pub struct Door {
    /// Where ranks' descendants come, and behind it where wrappers' do if these have another.
    entrances: Vec<Entrance>,
    visitors: Vec<Unknown>,
}

/// A name of the door.
#[derive(Debug)]
struct Entrance {
    listener: UnixListener,
    name: String,
}

impl Entrance {
    /// One with a name that no other has.
    fn new(gathers: bool) -> io::Result<Self> {
        let random = u64::from_ne_bytes(crate::random()?);
        let beginning = if gathers { GATHERING } else { "cohort-" };
        let name = format!("{beginning}{}-{random:016x}", std::process::id());
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, name })
    }

    fn gathers(&self) -> bool {
        self.name.starts_with(GATHERING)
    }
}

/// A visitor that has not said all yet: what it has said, and the descriptors that it has given.
#[derive(Debug)]
struct Unknown {
    stream: UnixStream,
    begun: Vec<u8>,
    given: Vec<OwnedFd>,
}

/// A program that asks for the place of a rank.
#[derive(Debug)]
pub struct Visitor {
    /// The rank in `MPI_COMM_WORLD` that it descends from; `None` if it does not know.
    pub rank: Option<u32>,
    /// Its process, as the kernel knows it.
    pub pid: i32,
    /// What it says of itself if it offers itself before its code runs; else it asks for a rank's place.
    pub executed: Option<Executed>,
    stream: UnixStream,
}

/// What only a program itself knows of what a wrapper has set up for it.
#[derive(Debug)]
pub struct Executed {
    /// Its standard input, output and error.
    pub standard: [OwnedFd; 3],
    /// It is linked to our MPI; else it may open it.
    pub linked: bool,
    /// The number that its end of the connection has there.
    pub socket: u32,
    /// `personality(2)`
    pub personality: u32,
    /// Its timer slack in nanoseconds, as far as the number goes.
    pub timer_slack: u32,
    /// Mode and nodes of `set_mempolicy(2)`.
    pub policy: (u32, u32),
}

impl Door {
    /// Opens a door with a name that no other has. Where it `gathers`, programs offer themselves before their code
    /// runs.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn open(gathers: bool) -> io::Result<Self> {
        Ok(Self { entrances: vec![Entrance::new(gathers)?], visitors: Vec::new() })
    }

    /// From now on there are wrappers whose programs offer themselves.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn gather(&mut self) -> io::Result<()> {
        if !self.entrances.iter().any(Entrance::gathers) {
            self.entrances.push(Entrance::new(true)?);
        }
        Ok(())
    }

    /// The variable by which descendants of a rank find the door; of a wrapper, if there are such, which is to become
    /// the rank.
    #[must_use]
    pub fn variable(&self, rank: u32, is_wrapper: bool) -> (&'static str, String) {
        let entrance = if is_wrapper { self.entrances.last() } else { self.entrances.first() };
        let name = entrance.map_or("", |entrance| entrance.name.as_str());
        (DESCENDANT, format!("{name}/{rank}"))
    }

    /// What to poll for input.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let visitors = self.visitors.iter().map(|visitor| visitor.stream.as_fd());
        self.entrances.iter().map(|entrance| entrance.listener.as_fd()).chain(visitors)
    }

    /// Those who have said by now which rank they descend from.
    pub fn visitors(&mut self) -> Vec<Visitor> {
        for entrance in &self.entrances {
            while self.visitors.len() < VISITORS_MAX
                && let Ok((stream, _)) = entrance.listener.accept()
            {
                if is_own_user(&stream) && stream.set_nonblocking(true).is_ok() {
                    self.visitors.push(Unknown { stream, begun: Vec::new(), given: Vec::new() });
                }
            }
        }
        let mut known = Vec::new();
        for mut unknown in std::mem::take(&mut self.visitors) {
            match unknown.read_request() {
                Some(true) => known.extend(unknown.visitor()),
                Some(false) => self.visitors.push(unknown),
                None => {}
            }
        }
        known
    }
}

impl Unknown {
    /// Whether the request is complete; `None` if none will come.
    fn read_request(&mut self) -> Option<bool> {
        let mut buffer = [0; REQUEST_MAX];
        match receive(&self.stream, &mut buffer, &mut self.given) {
            Ok(0) => return None,
            Ok(length) => self.begun.extend_from_slice(&buffer[..length]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return None,
        }
        let fits = self.begun.len() <= REQUEST_MAX && self.given.len() <= 3;
        fits.then(|| self.begun.ends_with(b"\n"))
    }

    /// Who asks; `None` for a stranger.
    fn visitor(self) -> Option<Visitor> {
        let request = Message::parse(&String::from_utf8_lossy(&self.begun), ' ');
        let rank = match request.get("rank") {
            Some(UNKNOWN) => None,
            _ => Some(request.number("rank").ok()?),
        };
        let (pid, _) = peer(&self.stream)?;
        let executed = match request.get("cmd") {
            Some("descendant") => None,
            Some("executed") => Some(executed(&request, self.given)?),
            _ => return None,
        };
        Some(Visitor { rank, pid, executed, stream: self.stream })
    }
}

/// What a program says that offers itself.
fn executed(request: &Message, given: Vec<OwnedFd>) -> Option<Executed> {
    let number = |name: &str| request.number(name).ok();
    Some(Executed {
        standard: given.try_into().ok()?,
        linked: number("linked")? != 0,
        socket: number("socket")?,
        personality: number("personality")?,
        timer_slack: number("slack")?,
        policy: (number("policy")?, number("nodes")?),
    })
}

/// Whether a process of the same user is at the other end.
fn is_own_user(stream: &UnixStream) -> bool {
    // SAFETY: no condition.
    let own = unsafe { libc::geteuid() };
    peer(stream).is_some_and(|(_, user)| user == own || user == 0)
}

/// Process and user at the other end.
fn peer(stream: &UnixStream) -> Option<(i32, u32)> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
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
    /// What it says of itself, and its connection. One that offers itself goes on when this is closed.
    #[must_use]
    pub fn into_parts(self) -> (Option<Executed>, UnixStream) {
        (self.executed, self.stream)
    }

    /// Tells it, who descends from `rank`, and gives its connection. A visitor that has gone meanwhile is noticed at
    /// the next use.
    #[must_use]
    pub fn answer(mut self, rank: u32, answer: Answer) -> UnixStream {
        let text = match answer {
            Answer::Joins(size) => format!("cmd=place rc=0 rank={rank} size={size}\n"),
            Answer::Alone => "cmd=place rc=1\n".to_owned(),
            Answer::Outside => format!("cmd=place rc=2 rank={rank}\n"),
            Answer::Taken(pid) => format!("cmd=place rc=3 rank={rank} pid={pid}\n"),
            Answer::Beside => format!("cmd=place rc=6 rank={rank}\n"),
            Answer::Unfit => format!("cmd=place rc=4 rank={rank}\n"),
            Answer::Second(pid) => format!("cmd=place rc=5 rank={rank} pid={pid}\n"),
        };
        let _ = self.stream.write_all(text.as_bytes());
        self.stream
    }
}

/// What a program that has lost its environment would find there, if an ancestor of it is the `pip-exec` of a job.
#[must_use]
pub fn of_an_ancestor() -> Option<String> {
    let sockets = std::fs::read_to_string("/proc/net/unix").ok()?;
    let names = sockets.lines().filter_map(|line| line.rsplit_once(" @"));
    let doors: Vec<&str> = names.map(|(_, name)| name).filter(|name| name.starts_with("cohort-")).collect();
    if doors.is_empty() {
        return None;
    }
    ancestors(std::process::id() as i32).find_map(|pid| {
        let begins = [GATHERING, "cohort-"].map(|beginning| format!("{beginning}{pid}-"));
        let is_its = |name: &&&str| begins.iter().any(|begin| name.starts_with(begin));
        Some(format!("{}/{UNKNOWN}", doors.iter().find(is_its)?))
    })
}

/// The process that started this one, the one that started that, and so on.
pub fn ancestors(process: i32) -> impl Iterator<Item = i32> {
    let parent = |pid: &i32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may hold anything.
        let (_, rest) = text.rsplit_once(')')?;
        rest.split_whitespace().nth(1)?.parse().ok()
    };
    std::iter::successors(Some(process), parent).skip(1).take(GENERATIONS)
}

/// The place of a program whose environment says `variable`. `None` if it is a world of its own: its rank uses MPI
/// itself, or the job has ended.
///
/// # Errors
/// The job has no place for it; the message names the way out.
pub fn knock(variable: &str) -> Result<Option<Box<dyn Manager>>, Failure> {
    let nonsense = || Failure::Variable { name: DESCENDANT, value: variable.to_owned() };
    let (name, rank) = variable.rsplit_once('/').ok_or_else(nonsense)?;
    if rank != UNKNOWN && rank.parse::<u32>().is_err() {
        return Err(nonsense());
    }
    let address = SocketAddr::from_abstract_name(name).map_err(|_| nonsense())?;
    let Ok(mut stream) = UnixStream::connect_addr(&address) else {
        return Ok(None);
    };
    // SAFETY: no condition.
    let own = unsafe { libc::geteuid() };
    if let Some((_, other)) = peer(&stream).filter(|&(_, user)| own != user && own != 0) {
        return Err(Failure::NoPlace(format!(
            "this program has the user id {own}, and the pip-exec of its job {other}: only programs of the same user \
             join the job, and this one would be alone in a world of its own. pip-exec --isolate lets ranks have \
             another user, or start pip-exec as that one"
        )));
    }
    send(&mut stream, &format!("cmd=descendant rank={rank}\n"))?;
    let answer = Message::parse(&read_line(&mut stream)?, ' ');
    let index = || answer.number::<u32>("rank");
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.display();
    let refuse = |why: String| Err(Failure::NoPlace(why));
    match (answer.get("cmd"), answer.number::<u32>("rc")?) {
        (Some("place"), 0) => {
            let (index, count) = (index()?, answer.number("size")?);
            let client = pmi1::Client::start(stream, Place { index, count })?;
            Ok(Some(Box::new(client)))
        }
        (Some("place"), 1) => Ok(None),
        (Some("place"), 2) => refuse(format!(
            "{program} descends from rank {} of a job whose ranks share an address space, and is not in it: it \
             would be alone in a world of its own. pip-exec --isolate lets programs that ranks start join the job",
            index()?
        )),
        (Some("place"), 3) => {
            let pid: i32 = answer.number("pid")?;
            refuse(format!(
                "{program} descends from rank {} of a job, whose place process {pid} has taken: it would be \
                 alone in a world of its own. Start an MPI program when the one before has ended, or with a pip-exec \
                 of its own",
                index()?
            ))
        }
        (Some("place"), 4) => refuse(format!(
            "{program} descends from rank {} of a job, which was spawned, and cannot be that rank: only a program \
             that is linked to MPI, a Python whose program names mpi4py, or an R whose program names Rmpi can, with \
             the variable {DESCENDANT} in its environment",
            index()?
        )),
        (Some("place"), 5) => {
            let pid: i32 = answer.number("pid")?;
            refuse(format!(
                "{program} descends from rank {} of a job, which was spawned, and process {pid} is or was that rank: \
                 it would be alone in a world of its own. Of what a spawned program starts, one can use MPI",
                index()?
            ))
        }
        (Some("place"), 6) => refuse(format!(
            "{program} descends from rank {} of a job, which was spawned, shares an address space with others and has \
             not used MPI: the program would be alone in a world of its own. It becomes the rank if env is spawned \
             with the program that starts it as its argument",
            index()?
        )),
        _ => Err(answer.unexpected("cmd=place")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// Knocks as rank 3 and gives what the door heard and the visitor was told.
    fn told(answer: Answer) -> Result<Option<Place>, String> {
        let mut door = Door::open(false).expect("descriptors");
        let (_, variable) = door.variable(3, false);
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
            let heard = (visitor.rank, visitor.pid);
            assert_eq!(heard, (Some(3), std::process::id() as i32));
            let mut stream = visitor.answer(3, answer);
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
        assert!(refused.contains("rank 3") && refused.contains("--isolate"), "{refused}");
        let taken = told(Answer::Taken(42)).unwrap_err();
        assert!(taken.contains("rank 3") && taken.contains("process 42"), "{taken}");
        let unfit = told(Answer::Unfit).unwrap_err();
        assert!(unfit.contains("rank 3") && unfit.contains("mpi4py"), "{unfit}");
        let beside = told(Answer::Beside).unwrap_err();
        assert!(beside.contains("rank 3") && beside.contains("env"), "{beside}");
        let second = told(Answer::Second(42)).unwrap_err();
        assert!(second.contains("rank 3") && second.contains("process 42"), "{second}");
    }

    #[test]
    fn a_program_that_offers_itself_gives_its_descriptors() {
        let mut door = Door::open(true).expect("descriptors");
        let (_, variable) = door.variable(3, false);
        assert!(variable.starts_with(GATHERING), "{variable}");
        let address = SocketAddr::from_abstract_name(&door.entrances[0].name).expect("short");
        let says = "cmd=executed rank=3 linked=1 socket=5 personality=0 slack=50000 policy=2 nodes=1\n";
        let give = |count: usize, socket: &UnixStream| {
            let mut control = [0_u64; 4];
            let mut piece = libc::iovec { iov_base: says.as_ptr().cast_mut().cast(), iov_len: says.len() };
            let length = size_of::<libc::cmsghdr>() + count * size_of::<i32>();
            // SAFETY: a message of that many descriptors, in room enough for three.
            unsafe {
                let mut parcel: libc::msghdr = std::mem::zeroed();
                (parcel.msg_iov, parcel.msg_iovlen) = (&raw mut piece, 1);
                parcel.msg_control = (&raw mut control).cast();
                parcel.msg_controllen = length.next_multiple_of(8);
                let head = libc::CMSG_FIRSTHDR(&raw const parcel);
                (*head).cmsg_len = length;
                (*head).cmsg_level = libc::SOL_SOCKET;
                (*head).cmsg_type = libc::SCM_RIGHTS;
                for index in 0..count {
                    libc::CMSG_DATA(head).cast::<i32>().add(index).write(2);
                }
                libc::sendmsg(socket.as_raw_fd(), &raw const parcel, 0)
            }
        };
        for (count, is_whole) in [(3, true), (2, false)] {
            let mut stream = UnixStream::connect_addr(&address).expect("open");
            assert_eq!(give(count, &stream), says.len() as isize);
            let visitor = door.visitors().pop();
            assert_eq!(visitor.is_some(), is_whole);
            let executed = visitor.and_then(|visitor| visitor.executed);
            let policy = executed.map(|executed| (executed.socket, executed.policy));
            assert_eq!(policy, is_whole.then_some((5, (2, 1))));
            // It is told to go on.
            assert_eq!(stream.read(&mut [0]).expect("closed"), 0);
        }
    }

    #[test]
    fn wrappers_have_a_name_of_the_door_of_their_own() {
        let mut door = Door::open(false).expect("descriptors");
        door.gather().expect("descriptors");
        door.gather().expect("descriptors");
        let [ranks, wrappers] = [false, true].map(|is_wrapper| door.variable(3, is_wrapper).1);
        assert!(!ranks.starts_with(GATHERING) && wrappers.starts_with(GATHERING), "{ranks} {wrappers}");
        assert_eq!(door.descriptors().count(), 2);
    }

    #[test]
    fn descent_follows_parents() {
        let own = std::process::id() as i32;
        // SAFETY: no condition.
        let parent = unsafe { libc::getppid() };
        assert_eq!(ancestors(own).next(), Some(parent));
        assert!(ancestors(parent).all(|pid| pid != own));
        assert_eq!(ancestors(i32::MAX).next(), None);
    }

    #[test]
    fn a_job_that_has_ended_has_no_door() {
        let variable = Door::open(false).expect("descriptors").variable(0, false).1;
        assert!(knock(&variable).expect("no failure").is_none());
        assert!(knock("nonsense").is_err());
    }

    #[test]
    fn strangers_are_not_visitors() {
        let mut door = Door::open(false).expect("descriptors");
        let address = SocketAddr::from_abstract_name(&door.entrances[0].name).expect("short");
        for words in ["GET / HTTP/1.1\n", "cmd=descendant rank=x\n", &"x".repeat(4000)] {
            let mut stream = UnixStream::connect_addr(&address).expect("open");
            stream.write_all(words.as_bytes()).expect("room");
            for _ in 0..100 {
                assert!(door.visitors().is_empty(), "{words}");
            }
        }
        assert!(door.visitors.is_empty());
    }
}
