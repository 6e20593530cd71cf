//! What a wrapper has made of the process in which it has executed an MPI program.
//!
//! A rank that shares the address space is another process than the one that the wrapper has set up, so all that
//! `execve` keeps is read here, from the kernel, and set in the rank's task. What a task cannot take over (another
//! user, cgroup, namespace, session, personality; descriptors, children) is found too: then the program has to stay
//! where it is.

use super::environment::{PREFIXED, is_ours, take_first};
use super::options::Section;
use super::{guardian, places, python, rmpi};
use cohort_base::boot::DESCENDANT;
use cohort_manager::door::{Executed, Visitor};
use cohort_manager::stand_in::StandIn;
use pip_ground::Environment;
use pip_load::task::crash::FAULTS;
use pip_load::task::inherit::{Inherited, SCHEDULING_WORDS, THIS_PROCESS};
use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// A program that waits at the door.
#[derive(Debug)]
pub struct Held {
    /// Its process.
    pub pid: i32,
    /// What it says of itself.
    pub executed: Executed,
    /// It goes on when this is closed.
    stream: UnixStream,
}

impl Held {
    /// The process `pid`, which said this, at the other end of `stream`.
    pub fn new(pid: i32, executed: Executed, stream: UnixStream) -> Self {
        Self { pid, executed, stream }
    }

    /// It is told to wait for the end of the rank that its program becomes.
    pub fn stand_in(self) -> StandIn {
        StandIn::new(self.stream)
    }
}

/// A rank that takes the place of a process.
#[derive(Debug)]
pub struct Adoption {
    /// What a wrapper has made of the process.
    pub outcome: Outcome,
    /// The process.
    pub held: Held,
}

impl Adoption {
    /// Standard input, output and error.
    pub fn standard(&self) -> [i32; 3] {
        let standard = self.held.executed.standard.each_ref();
        standard.map(AsRawFd::as_raw_fd)
    }
}

/// What a task can take over.
#[derive(Debug)]
pub struct Outcome {
    /// The program's file.
    pub file: PathBuf,
    /// It is linked to our MPI; else it is a Python.
    pub linked: bool,
    /// The descriptors that it has of those that every rank inherits.
    pub kept: Vec<u32>,
    /// Its arguments, with the name that it was given.
    pub arguments: Vec<OsString>,
    /// Its environment, without what the launcher adds for each rank.
    pub environment: Environment,
    /// Its working directory.
    pub directory: File,
    /// Where that lies.
    pub place: PathBuf,
    /// The CPUs that it may use.
    pub cpus: Vec<u32>,
    /// Its limits: (resource, soft, hard).
    pub limits: Vec<(u32, libc::rlimit64)>,
    /// Its signal mask.
    pub signal_mask: u64,
    /// The rest.
    pub inherited: Inherited,
}

impl Outcome {
    /// Whether its working directory is this process's, which ranks inherit. They may not be allowed to change to it,
    /// and it may have been removed.
    pub fn stayed_here(&self) -> bool {
        let here = fs::metadata("/proc/self/cwd");
        let (Ok(here), Ok(there)) = (here, self.directory.metadata()) else {
            return false;
        };
        (here.dev(), here.ino()) == (there.dev(), there.ino())
    }

    /// How the program would stand on the command line. A Python is found as its caller has found it, since it finds
    /// its virtual environment by its name.
    pub fn section(&self) -> Section {
        let (name, arguments) = self.arguments.split_first().unzip();
        let python = name.filter(|_| !self.linked).cloned();
        Section {
            program: python.unwrap_or_else(|| self.file.clone().into()),
            arguments: arguments.unwrap_or_default().to_vec(),
            directory: (!self.stayed_here()).then(|| self.place.clone()),
            ..Section::default()
        }
    }
}

/// The limits that the kernel knows.
const LIMITS: u32 = 16;

/// Limits that count for all tasks of an address space.
const SHARED_LIMITS: [u32; 2] = [libc::RLIMIT_AS, libc::RLIMIT_DATA];

/// Lines of `/proc/PID/status` that must be the root's.
const STATUS: [&str; 14] = [
    "Uid",
    "Gid",
    "Groups",
    "CapInh",
    "CapPrm",
    "CapEff",
    "CapBnd",
    "CapAmb",
    "NoNewPrivs",
    "Seccomp",
    "Seccomp_filters",
    "Speculation_Store_Bypass",
    "SpeculationIndirectBranch",
    "THP_enabled",
];

/// Files of `/proc/PID` that must say what the root's say.
const FILES: [(&str, &str); 3] = [
    ("cgroup", "cgroup"),
    ("oom_score_adj", "priority with the out-of-memory killer"),
    ("attr/current", "security label"),
];

/// The set-up of process `pid`, which waits at the door and whose environment would be `usual` had no wrapper changed
/// it; `kept` are the descriptors that every rank inherits. The process may stay and stand in for the rank (`stays`).
///
/// # Errors
/// What of it a task cannot take over, for a message.
pub fn read((pid, stays): (i32, bool), executed: &Executed, usual: &[&[u8]], kept: &[u32]) -> Result<Outcome, String> {
    let process = Process::new(pid.to_string())?;
    let own = Process::new("self".to_owned())?;
    process.compare(&own)?;
    process.compare_groups(&own, stays)?;
    let kept = process.compare_descriptors(&own, kept, executed.socket)?;
    // SAFETY: this value asks only.
    let personality = unsafe { libc::personality(0xffff_ffff) };
    if executed.personality as i32 != personality {
        return Err("its personality was changed".to_owned());
    }
    // SAFETY: asks only.
    let slack = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
    if i64::from(executed.timer_slack) != i64::from(slack) {
        return Err("its timer slack was changed".to_owned());
    }
    let environment = process.environment()?;
    compare_settings(&environment, usual)?;
    let ignored = process.mask("SigIgn")?;
    if FAULTS.iter().any(|fault| ignored & 1 << (fault - 1) != 0) {
        return Err("it ignores faults".to_owned());
    }
    let none = (executed.policy == (0, 0)).then_some(());
    Ok(Outcome {
        file: process.link("exe")?,
        linked: executed.linked,
        kept,
        arguments: process.arguments()?,
        directory: process.directory()?,
        place: process.link("cwd")?,
        cpus: affinity(pid)?,
        limits: limits(pid)?,
        signal_mask: process.mask("SigBlk")?,
        inherited: Inherited {
            file_mask: process.file_mask()?,
            scheduling: scheduling(pid)?,
            io_priority: io_priority(pid)?,
            memory_policy: match none {
                Some(()) => None,
                None => Some((executed.policy.0, executed.policy.1.into())),
            },
            ignored,
        },
        environment: stripped(environment),
    })
}

/// Whether a program that offers itself will use MPI, as far as can be told before it runs: it is linked to MPI, or a
/// Python whose program names mpi4py, or an R whose program names Rmpi.
pub fn uses_mpi(visitor: &Visitor) -> bool {
    let Some(executed) = &visitor.executed else {
        return false;
    };
    let names_it = || {
        let process = Process::new(visitor.pid.to_string()).ok()?;
        let arguments = process.arguments().ok()?;
        let directory = process.folder.join("cwd");
        let input = &executed.standard[0];
        let names_rmpi = || {
            let environment = process.environment().unwrap_or_default();
            rmpi::names_rmpi(&arguments, &directory, input, &environment)
        };
        Some(python::names_mpi4py(&arguments, &directory) || names_rmpi())
    };
    executed.linked || names_it().unwrap_or(false)
}

/// The CPUs that this process may use.
///
/// # Errors
/// The system does not tell.
pub fn own_cpus() -> Result<Vec<u32>, String> {
    affinity(0)
}

/// The environment without what launchers, auditing and another `malloc` add.
fn stripped(mut environment: Environment) -> Environment {
    environment.remove(OsStr::new(DESCENDANT));
    for name in PREFIXED {
        take_first(&mut environment, name, is_ours);
    }
    environment
}

/// The node image has read its settings: those of ranks must be the same.
fn compare_settings(environment: &Environment, usual: &[&[u8]]) -> Result<(), String> {
    let is_setting = |name: &[u8]| {
        let text = String::from_utf8_lossy(name);
        text.starts_with("COHORT_") && text != guardian::VARIABLE && !places::is_place(&text)
    };
    let split = |entry: &&[u8]| {
        let at = entry.iter().position(|&byte| byte == b'=')?;
        Some((entry[..at].to_vec(), entry[at + 1..].to_vec()))
    };
    let usual: BTreeMap<_, _> = usual.iter().filter_map(split).collect();
    let usual = usual.into_iter().filter(|(name, _)| is_setting(name));
    let own = environment.iter();
    let own = own.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
    let own = own.filter(|(name, _)| is_setting(name));
    match usual.eq(own) {
        true => Ok(()),
        false => Err("settings of Cohort were changed".to_owned()),
    }
}

/// A process, as the kernel shows it.
struct Process {
    folder: PathBuf,
    status: HashMap<String, String>,
}

impl Process {
    fn new(name: String) -> Result<Self, String> {
        let folder = Path::new("/proc").join(name);
        let text = fs::read_to_string(folder.join("status")).map_err(|error| failed(&error))?;
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        let status = lines.map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
        Ok(Self { status: status.collect(), folder })
    }

    /// A file's bytes, if it can be read.
    fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.folder.join(name)).ok()
    }

    /// # Errors
    /// It cannot be read.
    fn link(&self, name: &str) -> Result<PathBuf, String> {
        fs::read_link(self.folder.join(name)).map_err(|error| failed(&error))
    }

    /// # Errors
    /// A difference from the root that a task cannot take over.
    fn compare(&self, own: &Self) -> Result<(), String> {
        let differs = |name: &&&str| self.status.get(**name) != own.status.get(**name);
        if let Some(name) = STATUS.iter().find(differs) {
            return Err(format!("its {name} in /proc/PID/status is not pip-exec's"));
        }
        for (file, what) in FILES {
            if self.bytes(file) != own.bytes(file) {
                return Err(format!("its {what} is not pip-exec's"));
            }
        }
        let root = |process: &Self| {
            let root = fs::metadata(process.folder.join("root"));
            root.map(|root| (root.dev(), root.ino())).ok()
        };
        if root(self).is_none() || root(self) != root(own) || self.namespaces() != own.namespaces() {
            return Err("its namespaces or its root directory are not pip-exec's".to_owned());
        }
        let is_alone = self.bytes(&format!("task/{}/children", self.name()));
        if is_alone.is_none_or(|children| !children.is_empty()) {
            return Err("it has children".to_owned());
        }
        let is = |name: &str, value: &str| self.status.get(name).is_some_and(|it| it == value);
        if !is("TracerPid", "0") {
            return Err("it is traced".to_owned());
        }
        if !is("Threads", "1") || self.mask("SigPnd")? | self.mask("ShdPnd")? != 0 {
            return Err("signals wait for it".to_owned());
        }
        Ok(())
    }

    /// # Errors
    /// It would not get the signals that its group gets. One that `stays` gets them, in place of the rank.
    fn compare_groups(&self, own: &Self, stays: bool) -> Result<(), String> {
        let [mut its, ours] = [self.group(), own.group()];
        if let (Some([its, ..]), Some([ours, ..]), true) = (&mut its, &ours, stays) {
            *its = *ours;
        }
        match its == ours {
            true => Ok(()),
            false => Err("it has a session or a process group of its own".to_owned()),
        }
    }

    fn name(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Kind and identity of each namespace.
    fn namespaces(&self) -> BTreeMap<OsString, Option<PathBuf>> {
        let entries = fs::read_dir(self.folder.join("ns"));
        let entries = entries.into_iter().flatten().flatten();
        let identity = |entry: fs::DirEntry| (entry.file_name(), fs::read_link(entry.path()).ok());
        entries.map(identity).collect()
    }

    /// Process group, session and terminal.
    fn group(&self) -> Option<[i32; 3]> {
        let text = fs::read_to_string(self.folder.join("stat")).ok()?;
        // The name, in parentheses, may hold anything.
        let (_, rest) = text.rsplit_once(')')?;
        let numbers: Option<Vec<i32>> = rest.split_whitespace().skip(2).take(3).map(|word| word.parse().ok()).collect();
        numbers?.try_into().ok()
    }

    /// The descriptors that it has of those that every rank inherits.
    ///
    /// # Errors
    /// It has others, besides the standard ones and the one at the door.
    fn compare_descriptors(&self, own: &Self, kept: &[u32], door: u32) -> Result<Vec<u32>, String> {
        let entries = fs::read_dir(self.folder.join("fd")).map_err(|error| failed(&error))?;
        let numbers = entries.flatten().filter_map(|entry| {
            let number: u32 = entry.file_name().to_str()?.parse().ok()?;
            (number > 2 && number != door).then_some(number)
        });
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable();
        let file = |process: &Self, number: &u32| {
            let link = process.link(&format!("fd/{number}")).ok();
            (link, process.bytes(&format!("fdinfo/{number}")))
        };
        let is_same = |number: &u32| file(self, number) == file(own, number);
        match numbers.iter().all(|number| kept.contains(number) && is_same(number)) {
            true => Ok(numbers),
            false => Err("it has descriptors of its own".to_owned()),
        }
    }

    /// A set of signals.
    ///
    /// # Errors
    /// The kernel does not show it.
    fn mask(&self, name: &str) -> Result<u64, String> {
        let text = self.status.get(name).map_or("", String::as_str);
        u64::from_str_radix(text, 16).map_err(|_| format!("the system does not tell its {name}"))
    }

    /// # Errors
    /// The kernel does not show it.
    fn file_mask(&self) -> Result<u32, String> {
        let text = self.status.get("Umask").map_or("", String::as_str);
        u32::from_str_radix(text, 8).map_err(|_| "the system does not tell its umask".to_owned())
    }

    /// The strings of a file that NUL bytes end.
    fn strings(&self, name: &str) -> Result<Vec<OsString>, String> {
        let bytes = fs::read(self.folder.join(name)).map_err(|error| failed(&error))?;
        let texts = bytes.strip_suffix(b"\0").unwrap_or_default();
        let texts = texts.split(|&byte| byte == 0);
        let texts = texts.map(|text| OsString::from_vec(text.to_vec()));
        Ok(texts.collect())
    }

    fn arguments(&self) -> Result<Vec<OsString>, String> {
        let arguments = self.strings("cmdline")?;
        match arguments.first() {
            Some(name) if !name.is_empty() => Ok(arguments),
            _ => Err("it has no name".to_owned()),
        }
    }

    /// # Errors
    /// It cannot be read, or two variables have the same name.
    fn environment(&self) -> Result<Environment, String> {
        let mut environment = Environment::new();
        for entry in self.strings("environ")? {
            let bytes = entry.as_bytes();
            let at = bytes.iter().position(|&byte| byte == b'=');
            let at = at.ok_or("its environment is unusual")?;
            let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            if environment.insert(text(&bytes[..at]), text(&bytes[at + 1..])).is_some() {
                return Err("its environment is unusual".to_owned());
            }
        }
        Ok(environment)
    }

    fn directory(&self) -> Result<File, String> {
        let open = fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_DIRECTORY)
            .open(self.folder.join("cwd"));
        open.map_err(|error| failed(&error))
    }
}

/// The CPUs that a process may use; 0 is this one.
fn affinity(pid: i32) -> Result<Vec<u32>, String> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: room for a set of that size, for which all zero is a valid value.
    let set = unsafe {
        if libc::sched_getaffinity(pid, size_of::<libc::cpu_set_t>(), set.as_mut_ptr()) != 0 {
            return Err(failed(&io::Error::last_os_error()));
        }
        set.assume_init()
    };
    let all = 0..libc::CPU_SETSIZE as usize;
    // SAFETY: the numbers are below the size of the set.
    let allowed = all.filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) });
    Ok(allowed.map(|cpu| cpu as u32).collect())
}

/// All limits of a process.
fn limits(pid: i32) -> Result<Vec<(u32, libc::rlimit64)>, String> {
    let mut all = Vec::new();
    for resource in 0..LIMITS {
        let limit = limit(pid, resource)?;
        let own = self::limit(0, resource)?;
        let differs = (limit.rlim_cur, limit.rlim_max) != (own.rlim_cur, own.rlim_max);
        if differs && SHARED_LIMITS.contains(&resource) {
            return Err("its memory is limited".to_owned());
        }
        all.push((resource, limit));
    }
    Ok(all)
}

fn limit(pid: i32, resource: u32) -> Result<libc::rlimit64, String> {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: room for the limit; nothing is set.
    match unsafe { libc::prlimit64(pid, resource, std::ptr::null(), &raw mut limit) } {
        0 => Ok(limit),
        _ => Err(failed(&io::Error::last_os_error())),
    }
}

/// Policy, priority and niceness, if they are not the root's.
fn scheduling(pid: i32) -> Result<Option<[u64; SCHEDULING_WORDS]>, String> {
    let read = |pid: i32| {
        let mut words = [0_u64; SCHEDULING_WORDS];
        let (place, size) = (words.as_mut_ptr(), size_of_val(&words));
        // SAFETY: room for a record of that size.
        match unsafe { libc::syscall(libc::SYS_sched_getattr, pid, place, size, 0) } {
            0 => Ok(words),
            _ => Err(failed(&io::Error::last_os_error())),
        }
    };
    let (words, own) = (read(pid)?, read(0)?);
    Ok((words != own).then_some(words))
}

/// Priority of input and output, if it is not the root's.
fn io_priority(pid: i32) -> Result<Option<u32>, String> {
    let read = |pid: i32| {
        // SAFETY: asks only.
        let result = unsafe { libc::syscall(libc::SYS_ioprio_get, THIS_PROCESS, pid) };
        u32::try_from(result).map_err(|_| failed(&io::Error::last_os_error()))
    };
    let (priority, own) = (read(pid)?, read(0)?);
    Ok((priority != own).then_some(priority))
}

fn failed(error: &io::Error) -> String {
    format!("the system does not show it: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_wrapper_are_noticed() {
        let usual: [&[u8]; 3] = [b"COHORT_X=1", b"PATH=/bin", b"COHORT_WORLD_RANK=7"];
        let environment = |entries: &[(&str, &str)]| -> Environment {
            let entries = entries.iter();
            entries.map(|(name, value)| (name.into(), value.into())).collect()
        };
        let is_same = |entries| compare_settings(&environment(entries), &usual).is_ok();
        assert!(is_same(&[("COHORT_X", "1"), ("A", "2")]));
        assert!(is_same(&[("COHORT_X", "1"), ("COHORT_WORLD_RANK", "0")]));
        assert!(!is_same(&[("COHORT_X", "2")]));
        assert!(!is_same(&[("PATH", "/bin")]));
        assert!(!is_same(&[("COHORT_X", "1"), ("COHORT_Y", "")]));
    }

    #[test]
    fn this_process_shows_what_a_wrapper_could_have_set() {
        let own = Process::new("self".to_owned()).expect("own status");
        assert!(own.file_mask().is_ok() && own.mask("SigIgn").is_ok());
        assert_eq!(own.mask("NoSuchLine").ok(), None);
        let arguments: Vec<OsString> = std::env::args_os().collect();
        assert_eq!(own.arguments().as_deref(), Ok(arguments.as_slice()));
        let pid = std::process::id() as i32;
        assert_eq!(scheduling(pid), Ok(None));
        assert_eq!(io_priority(pid), Ok(None));
        assert_eq!(limits(pid).map(|all| all.len()), Ok(LIMITS as usize));
        assert!(own_cpus().is_ok_and(|cpus| !cpus.is_empty()));
    }
}
