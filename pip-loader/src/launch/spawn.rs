//! Starts the ranks of a prepared job.

use super::binding::{self, Binding};
use super::limits;
use super::membership::Membership;
use super::outcome::Adoption;
use super::places::{self, PlaceOfRank};
use super::prepare::{Prepared, PreparedProgram};
use super::report::{Started, report};
use super::streams::{self, Opened, Streams};
use super::topology::Topology;
use cohort_base::boot::AT_COHORT;
use cohort_manager::door::Door;
use cohort_manager::server::Server;
use cohort_manager::wireup::World;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::sys::signal::SigSet;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use pip_ground::Refusal;
use pip_insight::fault::RankMemory;
use pip_insight::trace::{Recorder, Target};
use pip_load::boot::{Node, RankFacts, Surroundings};
use pip_load::task::crash::{self, CrashRecord, HANDLER_STACK};
use pip_load::task::debug::{self, DebugRank};
use pip_load::task::exec::ExecArguments;
use pip_load::task::stack::{self, Extra, InheritedAuxiliary, StackArea};
use pip_load::task::start::{self, Program, StartPlan};
use pip_load::{image, task};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

/// Stack of a rank when RLIMIT_STACK sets no limit. Only touched pages cost memory.
pub const UNLIMITED_STACK: usize = 1 << 30;

/// A rank that was started.
#[derive(Debug)]
pub struct StartedRank {
    /// Its process id.
    pub pid: i32,
    /// What it set up first.
    pub plan: &'static StartPlan,
    /// Its last fault.
    pub crash: &'static CrashRecord,
}

/// A rank's first stack pointer and program, and a descriptor that it inherits.
type Code = (usize, Program, Option<OwnedFd>);

/// Descriptors of the root's that a rank takes.
struct Lent {
    pid: i32,
    plan: &'static StartPlan,
    _descriptors: (Option<OwnedFd>, Option<Opened>),
}

impl Lent {
    /// Whether the rank, if it has not ended, still needs the root's descriptors.
    fn is_needed(&self) -> bool {
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        let lives = || waitid(Id::Pid(Pid::from_raw(self.pid)), look) == Ok(WaitStatus::StillAlive);
        !self.plan.has_parted() && lives()
    }
}

/// What all ranks of a job share.
pub struct Spawner {
    /// The boot records.
    pub node: Node,
    /// The stacks.
    pub stacks: StackArea,
    /// Each rank's number in the job.
    pub numbers: Vec<u32>,
    /// What the root knows of each started rank's memory.
    pub memory: Vec<RankMemory>,
    /// The process manager of isolated ranks, if they use MPI.
    pub server: Option<Server>,
    /// Where programs that ranks start ask for their place, if the job uses MPI.
    pub door: Option<Door>,
    /// Standard input, output and error.
    pub streams: Streams,
    /// What ranks may not have taken over yet.
    lent: Vec<Lent>,
    started: usize,
    world_size: usize,
    isolated: bool,
    own_sessions: bool,
    /// The ranks' ends of their connections with the server.
    connections: std::vec::IntoIter<OwnedFd>,
    records: &'static [CrashRecord],
    handler_stacks: usize,
    auxiliary: InheritedAuxiliary,
    close: &'static [(u32, u32)],
    signal_mask: u64,
    limits: Vec<(u32, libc::rlimit64)>,
    /// What each rank is bound to, if they are.
    pub bindings: Option<Vec<Binding>>,
    /// The timeline, if there is one.
    pub trace: Option<Recorder>,
}

impl Spawner {
    /// Meets the other nodes and sets up the address space; `original_mask` is the signal mask
    /// that ranks get.
    ///
    /// # Errors
    /// A resource is short, the nodes do not come together, or the node image cannot be opened.
    pub fn new(job: &mut Prepared, original_mask: &SigSet, membership: &mut Membership) -> Result<Self, Refusal> {
        let count: usize = job.programs.iter().map(|program| program.ranks).sum();
        let mut kept = kept_on_exec().map_err(|e| refuse("cannot list descriptors", &e))?;
        let mut limits = Vec::new();
        let stack_size = stack_size(job.stack_size, &mut limits);
        limits::avoid_core_dumps();
        task::freeze_break().map_err(|error| refuse("cannot freeze the program break", &error))?;
        let programs = job.programs.len();
        let traced = job.trace.as_ref().is_some_and(Target::is_common);
        let marks = (job.isolated, traced);
        membership.wire_up(count, programs, job.numbering, marks, &job.network)?;
        // Isolated ranks load the node image themselves, each its own.
        let shared = job.libraries.clone().filter(|_| !job.isolated);
        if let Some(folder) = &shared {
            membership.open_network(folder, &job.network)?;
        }
        if let Some(network) = membership.network() {
            kept.extend(network.descriptors().map(|descriptor| descriptor as u32));
        }
        let world = membership.world();
        let numbers = world.ranks_of(world.place.index);
        let before = world.ranks_before() as usize;
        let bindings = job.turns.take();
        let bindings = bindings.map(|turns| binding::deal(&turns, before, count));
        let first = world.first_application();
        let facts = rank_facts(job, &numbers, first, bindings.as_deref());
        let door = open_door(job, membership)?;
        let (server, connections) = serve_isolated(job, &facts, world.homes.len())?;
        let trace = begin_trace(job, count)?;
        let environment = std::mem::take(&mut job.environment);
        let around = surroundings(&job.topology, membership);
        let rings = trace.as_ref().map_or(ptr::null(), Recorder::rings);
        // SAFETY: what the membership and the recorder point to is never freed.
        let node = unsafe { Node::open(shared.as_deref(), &facts, environment, around, rings) }?;
        let (streams, former) = Streams::new(job, count, world.place.index, &kept)?;
        limits.extend(former.map(|limit| limit_entry(libc::RLIMIT_NOFILE, limit)));
        tell(job, &numbers, bindings.as_deref(), world);
        let (stacks, handler_stacks) = reserve_stacks(count, stack_size)?;
        Ok(Self {
            node,
            stacks,
            numbers,
            server,
            door,
            started: 0,
            world_size: membership.world().homes.len(),
            isolated: job.isolated,
            own_sessions: job.own_sessions,
            connections: connections.into_iter(),
            memory: Vec::with_capacity(count),
            streams,
            lent: Vec::new(),
            records: crash::make_records(count),
            handler_stacks,
            auxiliary: InheritedAuxiliary::of_this_process()
                .map_err(|error| refuse("cannot read /proc/self/auxv", &error))?,
            close: gaps(kept).leak(),
            signal_mask: kernel_mask(original_mask),
            limits,
            bindings,
            trace,
        })
    }

    /// Whether the ranks of the job are those of this node, as its own server has them.
    pub fn has_all_ranks(&self) -> bool {
        self.world_size == self.numbers.len()
    }

    /// Becomes the process manager of ranks that have left their common address space.
    pub fn serve_left(&mut self) {
        let numbers = self.numbers.clone();
        let applications = self.node.ranks.iter().map(|rank| rank.app_number);
        let server = Server::new(numbers, applications.collect(), self.world_size as u32);
        // Without descriptors they are refused. Nobody has the ranks' ends: all come through the door.
        self.server = server.ok().map(|(server, _)| server);
    }

    /// Lets debuggers find the ranks. Call when all have been started.
    pub fn publish(&self, ranks: &[StartedRank]) {
        let entry = |(rank, memory): (&StartedRank, &RankMemory)| DebugRank {
            pid: rank.pid as usize,
            linker: memory.linker.base,
            debug: memory.debug.unwrap_or(0),
        };
        let records: Vec<DebugRank> = ranks.iter().zip(&self.memory).map(entry).collect();
        debug::publish(records.leak());
    }

    /// Starts the next rank, as a wrapper has set it up if one has. Ranks are started in order.
    ///
    /// # Errors
    /// A resource is short.
    pub fn start(&mut self, program: &PreparedProgram, adoption: Option<&Adoption>) -> io::Result<StartedRank> {
        let rank = self.started;
        let record = &self.node.ranks[rank];
        let (stack_pointer, code, connection) =
            if self.isolated { self.execution(rank, program)? } else { self.image(rank, program)? };
        let number = self.numbers[rank];
        let opened = match adoption {
            None => Some(self.streams.open(number)?),
            Some(_) => None,
        };
        let standard = opened.as_ref().map(streams::numbers);
        let standard = standard.unwrap_or_else(|| adoption.map_or([-1; 3], Adoption::standard));
        let directory = program.directory.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let connected = connection.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let mut needed = standard.into_iter().chain([directory, connected]);
        let above = self.streams.above;
        let above = above.filter(|&above| needed.all(|number| number < above as i32));
        let outcome = adoption.map(|adoption| &adoption.outcome);
        let plan: &'static StartPlan = Box::leak(Box::new(StartPlan {
            stack_pointer,
            program: code,
            root: std::process::id() as i32,
            standard,
            above,
            parted: AtomicU32::new(0),
            close: self.close,
            directory,
            own_session: self.own_sessions,
            affinity: self.bindings.as_ref().map_or_else(Vec::new, |list| mask_words(&list[rank].cpus)),
            signal_mask: outcome.map_or(self.signal_mask, |outcome| outcome.signal_mask),
            limits: outcome.map_or(&self.limits, |outcome| &outcome.limits).clone(),
            inherited: outcome.map(|outcome| outcome.inherited.clone()),
            handler_stack: self.handler_stacks + rank * HANDLER_STACK,
            name: task_name(program.name.as_bytes()),
            crash: &self.records[rank],
            pid: &record.pid,
            last_words: &record.last_words,
            failed: AtomicU64::new(0),
        }));
        // SAFETY: image, stack and handler stack were made for this rank and are never
        // unmapped; the job has blocked all signals.
        let pid = unsafe { start::start(plan)? };
        self.lent.retain(|lent| !lent.plan.has_parted());
        let lent = Lent { pid, plan, _descriptors: (connection, opened) };
        self.lent.extend((!plan.has_parted()).then_some(lent));
        self.started += 1;
        Ok(StartedRank { pid, plan, crash: &self.records[rank] })
    }

    /// Closes the root's copies of what ranks have taken over: the root would not see that they close theirs.
    /// Call when all have been started, or none more is.
    pub fn take_back(&mut self) {
        // Each of them runs and has two system calls to make.
        while self.lent.iter().any(Lent::is_needed) {
            std::thread::sleep(Duration::from_micros(100));
        }
        self.lent.clear();
    }

    /// Maps the dynamic linker of a rank and builds its initial stack.
    fn image(&mut self, rank: usize, program: &PreparedProgram) -> io::Result<Code> {
        let no_linker = || io::Error::from_raw_os_error(libc::ENOEXEC);
        let linker = program.linker.as_ref().ok_or_else(no_linker)?.map()?;
        let record = &self.node.ranks[rank];
        let variables = self.variables(rank, Vec::new(), program);
        let extra = Extra { variables: &variables, auxiliary: (AT_COHORT, std::ptr::from_ref(record) as u64) };
        let range = self.stacks.open(rank)?;
        // SAFETY: this rank's stack was opened just now.
        let stack_pointer = unsafe { stack::build(range, &program.strings, &linker, &self.auxiliary, extra)? };
        let debug = program.debug.map(|offset| linker.base.wrapping_add(offset as usize));
        self.memory.push(RankMemory { linker, debug });
        Ok((stack_pointer, Program::Mapped(linker.entry), None))
    }

    /// The entries of a rank's environment that tell its place, and by which programs that it starts find the job,
    /// after what its manager tells.
    fn variables(&self, rank: usize, mut entries: Vec<CString>, program: &PreparedProgram) -> Vec<CString> {
        if let Some(door) = &self.door {
            let (name, value) = door.variable(self.numbers[rank]);
            entries.extend(CString::new(format!("{name}={value}")));
        }
        let place = PlaceOfRank {
            rank: self.numbers[rank],
            size: self.world_size,
            local_rank: rank,
            local_size: self.numbers.len(),
        };
        let others = [program.strings.environment(), &entries].concat();
        entries.extend(places::entries(&place, &others));
        entries
    }

    /// What an isolated rank executes; its stack here serves its set-up only.
    fn execution(&mut self, rank: usize, program: &PreparedProgram) -> io::Result<Code> {
        let range = self.stacks.open(rank)?;
        let connection = self.connections.next();
        let (mut variables, mut inherited) = (Vec::new(), -1);
        if let (Some(server), Some(connection)) = (&self.server, &connection) {
            inherited = connection.as_raw_fd();
            let entries = server.variables(rank, inherited).into_iter();
            let entries = entries.map(|(name, value)| CString::new(format!("{name}={value}")));
            variables.extend(entries.flatten());
        }
        let variables = self.variables(rank, variables, program);
        let strings = program.executed.as_ref().unwrap_or(&program.strings);
        let execution = ExecArguments::new(strings, variables, inherited);
        Ok((range.end - 16, Program::Executed(execution), connection))
    }
}

/// Says of the job what the options ask for.
fn tell(job: &Prepared, numbers: &[u32], bindings: Option<&[Binding]>, world: &World) {
    let started = Started {
        numbers,
        bindings,
        world: world.homes.len(),
        place: world.place,
        libraries: job.libraries.as_deref(),
        isolated: job.isolated,
    };
    report(job.report, &started);
}

/// The ranks' stacks, and where those of their fault handlers begin.
fn reserve_stacks(count: usize, size: usize) -> Result<(StackArea, usize), Refusal> {
    let no_room = format!("no room for {count} stacks of {size} bytes");
    let stacks = StackArea::reserve(count, size).map_err(|error| refuse(&no_room, &error))?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let handler_stacks = image::reserve(count * HANDLER_STACK, protection, libc::MAP_NORESERVE)
        .map_err(|error| refuse("no room for signal stacks", &error))?;
    Ok((stacks, handler_stacks as usize))
}

/// Where programs that ranks start ask for their place, if they may use MPI.
/// Begins the timeline, if the job has one and its ranks share an address space.
fn begin_trace(job: &mut Prepared, ranks: usize) -> Result<Option<Recorder>, Refusal> {
    if job.isolated {
        if let (Some(target), None) = (&job.trace, &job.wrapper) {
            target.advise_of_isolation();
        }
        return Ok(None);
    }
    let begun = job.trace.take().map(|target| target.begin(ranks));
    (begun.transpose()).map_err(|error| refuse("cannot make room for a timeline", &error))
}

fn open_door(job: &Prepared, membership: &Membership) -> Result<Option<Door>, Refusal> {
    let gathers = job.wrapper.is_some() && membership.is_alone();
    let door = job.libraries.is_some().then(|| Door::open(gathers));
    let door = door.transpose();
    door.map_err(|error| refuse("cannot listen for what ranks start", &error))
}

/// The process manager of isolated ranks that may use MPI, and their ends of the connections.
fn serve_isolated(
    job: &Prepared,
    facts: &[RankFacts],
    world_ranks: usize,
) -> Result<(Option<Server>, Vec<OwnedFd>), Refusal> {
    if !job.isolated || job.libraries.is_none() {
        return Ok((None, Vec::new()));
    }
    let numbers = facts.iter().map(|fact| fact.world_rank).collect();
    let applications = facts.iter().map(|fact| fact.app_number).collect();
    let (server, ends) = Server::new(numbers, applications, world_ranks as u32)
        .map_err(|error| refuse("cannot connect with ranks", &error))?;
    // What a wrapper starts comes through the door; a pip-exec that it starts has a job of its own.
    let ends = if job.wrapper.is_some() { Vec::new() } else { ends };
    Ok((Some(server), ends))
}

fn refuse(what: &str, error: &io::Error) -> Refusal {
    Refusal::new(format!("{what}: {error}"))
}

/// What the node image is told of this machine and of the job.
fn surroundings(topology: &Topology, membership: &Membership) -> Surroundings {
    let world = membership.world();
    let (homes, network) = membership.records();
    Surroundings {
        places: topology.cpus.iter().map(|cpu| cpu.place).collect(),
        cpus: world.cpus(topology.capacity),
        node: world.place.index,
        nodes: world.place.count,
        world_ranks: world.homes.len() as u32,
        homes,
        network,
    }
}

/// What the ranks are told of themselves; their programs' numbers begin with `first`.
fn rank_facts(job: &Prepared, world_ranks: &[u32], first: u32, bindings: Option<&[Binding]>) -> Vec<RankFacts> {
    let numbers = job.programs.iter().flat_map(|program| {
        let of_program = (first + program.number, program.is_linked);
        std::iter::repeat_n(of_program, program.ranks)
    });
    let cpu = |rank: usize| match bindings {
        Some(list) => i32::try_from(list[rank].cpu).unwrap_or(-1),
        None => -1,
    };
    let fact = |(rank, (number, is_linked))| RankFacts {
        world_rank: world_ranks[rank],
        app_number: number,
        cpu: cpu(rank),
        is_linked,
    };
    numbers.enumerate().map(fact).collect()
}

/// The descriptors, beyond the first three, that `execve` would keep, were it called now.
pub fn kept_on_exec() -> io::Result<Vec<u32>> {
    let mut kept = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")?.flatten() {
        let Some(Ok(fd)) = entry.file_name().to_str().map(str::parse::<i32>) else {
            continue;
        };
        // SAFETY: reading the flags of a descriptor, even of a closed one, is harmless.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
        if fd > 2 && flags >= 0 && flags & libc::FD_CLOEXEC == 0 {
            kept.push(fd as u32);
        }
    }
    Ok(kept)
}

/// The ranges between the descriptors in `kept`, from 3 on.
fn gaps(mut kept: Vec<u32>) -> Vec<(u32, u32)> {
    kept.sort_unstable();
    let mut gaps = Vec::new();
    let mut first = 3;
    for fd in kept {
        if fd > first {
            gaps.push((first, fd - 1));
        }
        first = fd + 1;
    }
    gaps.push((first, u32::MAX));
    gaps
}

fn limit_entry(resource: libc::__rlimit_resource_t, (soft, hard): (u64, u64)) -> (u32, libc::rlimit64) {
    (resource, libc::rlimit64 { rlim_cur: soft, rlim_max: hard })
}

/// The size of each stack. A size of the user's own also becomes the ranks' soft limit,
/// from which libc derives the bounds of the main stack and the size of thread stacks.
fn stack_size(wanted: Option<usize>, limits: &mut Vec<(u32, libc::rlimit64)>) -> usize {
    let (soft, hard) = getrlimit(Resource::RLIMIT_STACK).unwrap_or((8 << 20, RLIM_INFINITY));
    if let Some(size) = wanted {
        let soft = (size as u64).min(hard);
        limits.push(limit_entry(libc::RLIMIT_STACK, (soft, hard)));
        return size;
    }
    if soft == RLIM_INFINITY { UNLIMITED_STACK } else { (soft as usize).clamp(1 << 16, 1 << 36) }
}

/// A signal set as the kernel's word: signal n is bit n - 1.
fn kernel_mask(set: &SigSet) -> u64 {
    set.iter().fold(0, |mask, signal| mask | 1 << (signal as i32 - 1))
}

/// CPUs as words of a kernel mask.
fn mask_words(cpus: &[u32]) -> Vec<u64> {
    let last = cpus.iter().max().copied().unwrap_or(0);
    let mut words = vec![0; last as usize / 64 + 1];
    for &cpu in cpus {
        words[cpu as usize / 64] |= 1 << (cpu % 64);
    }
    words
}

fn task_name(name: &[u8]) -> [u8; 16] {
    let mut task = [0; 16];
    let len = name.len().min(15);
    task[..len].copy_from_slice(&name[..len]);
    task
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_between_kept_ones_are_closed() {
        assert_eq!(gaps(vec![]), [(3, u32::MAX)]);
        assert_eq!(gaps(vec![7, 3, 4]), [(5, 6), (8, u32::MAX)]);
    }

    #[test]
    fn masks_and_names() {
        assert_eq!(mask_words(&[0, 65]), [1, 2]);
        assert_eq!(&task_name(b"a-very-long-program-name"), b"a-very-long-pro\0");
        let mut set = SigSet::empty();
        set.add(nix::sys::signal::Signal::SIGHUP);
        assert_eq!(kernel_mask(&set), 1);
    }

    #[test]
    fn a_wanted_stack_becomes_the_limit() {
        let mut limits = Vec::new();
        assert_eq!(stack_size(Some(1 << 20), &mut limits), 1 << 20);
        assert_eq!(limits[0].1.rlim_cur, 1 << 20);
        assert!(stack_size(None, &mut limits) >= 1 << 16);
        assert_eq!(limits.len(), 1);
    }
}
