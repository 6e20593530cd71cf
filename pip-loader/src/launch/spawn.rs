//! Starts the ranks of a prepared job.

mod setup;
mod worlds;

use super::binding::{self, Binding};
use super::limits;
use super::membership::Membership;
use super::outcome::Adoption;
use super::places::{self, PlaceOfRank};
use super::prepare::{Prepared, PreparedProgram};
use super::report::{Started, report};
use super::streams::{self, Opened, Streams};
use super::topology::Topology;
use cohort_base::boot::{AT_COHORT, NO_SHARE};
use cohort_base::spawn::WorldBoot;
use cohort_base::trace::Ring;
use cohort_manager::Place;
use cohort_manager::server::Server;
use cohort_manager::stand_in::StandIn;
use cohort_manager::wireup::World;
use nix::sys::signal::SigSet;
use pip_ground::Refusal;
use pip_insight::fault::RankMemory;
use pip_insight::trace::{Recorder, Target};
use pip_load::boot::{Node, RankFacts, Surroundings};
use pip_load::task;
use pip_load::task::crash::{CrashRecord, HANDLER_STACK};
use pip_load::task::debug::DebugRank;
use pip_load::task::exec::ExecArguments;
use pip_load::task::stack::{self, Extra};
use pip_load::task::start::{self, Program, StartPlan};
use setup::{Lent, Setup};
use std::collections::BTreeSet;
use std::ffi::CString;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

pub use setup::{Served, Space, UNLIMITED_STACK, kept_on_exec};

/// A rank that was started.
#[derive(Debug)]
pub struct StartedRank {
    /// Its process id.
    pub pid: i32,
    /// What it set up first.
    pub plan: &'static StartPlan,
    /// Its last fault.
    pub crash: &'static CrashRecord,
    /// The process whose child has become the rank, if one has: it has an end of its own.
    pub wrapper: Option<i32>,
    /// That child, which ends as the rank does.
    pub stand_in: Option<StandIn>,
}

impl StartedRank {
    fn new(pid: i32, plan: &'static StartPlan, crash: &'static CrashRecord) -> Self {
        Self { pid, plan, crash, wrapper: None, stand_in: None }
    }
}

/// What a rank runs, as a wrapper has set it up if one has; `None` if it is started later.
pub type Part<'a> = Option<(&'a PreparedProgram, Option<&'a Adoption>)>;

/// What a rank runs first.
struct Code {
    stack_pointer: usize,
    program: Program,
    /// Its end of the connection with its process manager.
    connection: Option<OwnedFd>,
}

/// Descriptors of the root's that a rank takes.
struct Handed {
    /// What become its standard input, output and error; -1 keeps what is there.
    standard: [i32; 3],
    /// Those of them that were opened for it.
    opened: Option<Opened>,
    connection: Option<OwnedFd>,
}

/// The ranks of this node that are started together, and what they share.
pub struct Spawner {
    /// The boot records.
    pub node: Node,
    /// Each rank's number in the job.
    pub numbers: Vec<u32>,
    world_size: usize,
    /// Ranks of this node when the job began.
    begun: usize,
    /// This node of the job.
    place: Place,
    /// How many CPUs this node has for its ranks.
    cpus: u32,
    /// How many worlds were spawned here.
    worlds: u32,
    /// Those of them whose memory is there.
    mapped: Vec<&'static WorldBoot>,
    /// Places on the node of ranks that have ended and are connected with nobody.
    left: BTreeSet<usize>,
    /// The bindings that ranks take in turn, if they are bound.
    turns: Option<Vec<Binding>>,
    /// What each rank is bound to, if they are.
    pub bindings: Option<Vec<Binding>>,
    /// What they run, in their order.
    pub programs: Vec<PreparedProgram>,
    /// Those that were started.
    pub ranks: Vec<StartedRank>,
    /// Their places in this address space.
    pub space: Space,
    /// Who answers what they ask.
    pub served: Served,
    /// Standard input, output and error.
    pub streams: Streams,
    /// The timeline, if there is one.
    pub trace: Option<Recorder>,
    /// What each of them sets up.
    setup: Setup,
    /// What ranks may not have taken over yet.
    lent: Vec<Lent>,
}

impl Spawner {
    /// Whether ranks have address spaces of their own.
    pub const fn is_isolated(&self) -> bool {
        self.setup.isolated
    }

    /// Meets the other nodes and sets up the address space; `original_mask` is the signal mask
    /// that ranks get.
    ///
    /// # Errors
    /// A resource is short, the nodes do not come together, or the node image cannot be opened.
    pub fn new(job: &mut Prepared, original_mask: &SigSet, membership: &mut Membership) -> Result<Self, Refusal> {
        let count = job.ranks();
        let mut kept = kept_on_exec().map_err(|error| refuse("cannot list descriptors", &error))?;
        limits::avoid_core_dumps();
        task::freeze_break().map_err(|error| refuse("cannot freeze the program break", &error))?;
        meet(job, count, membership)?;
        if let Some(network) = membership.network() {
            kept.extend(network.descriptors().map(|descriptor| descriptor as u32));
        }
        let world = membership.world();
        let numbers = world.ranks_of(world.place.index);
        let before = world.ranks_before() as usize;
        let turns = job.machine.turns.take();
        let bindings = turns.as_deref().map(|turns| binding::deal(turns, before, count));
        let trace = begin_trace(job, &numbers)?;
        let mut facts = rank_facts(&job.programs, &numbers, world.first_application(), bindings.as_deref(), None);
        lead_to_rings(&mut facts, trace.as_ref().map(Recorder::rings));
        let served = Served::new(job, membership, &facts)?;
        let node = match job.founder {
            // SAFETY: it has found its way here through the vector that only a founder writes.
            Some(founder) => unsafe { Node::of_founder(founder)? },
            None => open_node(job, membership, &facts)?,
        };
        job.streams.check_reader(world.homes.len())?;
        let (streams, files) = Streams::new(job, count, world.place, &kept)?;
        tell(job, &numbers, bindings.as_deref(), world);
        let (space, stack) = Space::reserve((count, count + node.room()), job.spaces.stack_size)?;
        let mut this = Self {
            node,
            numbers,
            world_size: world.homes.len(),
            begun: count,
            place: world.place,
            cpus: job.machine.topology.capacity,
            worlds: 0,
            mapped: Vec::new(),
            left: BTreeSet::new(),
            turns,
            bindings,
            programs: std::mem::take(&mut job.programs),
            ranks: Vec::with_capacity(count),
            space,
            served,
            streams,
            trace,
            setup: Setup::new(job, original_mask, kept, [stack, files]),
            lent: Vec::new(),
        };
        if let Some(founder) = job.founder {
            this.take_in(founder.process);
        }
        Ok(this)
    }

    /// Takes in a rank that was there before.
    fn take_in(&mut self, pid: i32) {
        self.put(self.ranks.len(), pid, Box::leak(Box::new(StartPlan::new(0, Program::Mapped(0), 0))));
    }

    /// Notes the process of a rank that has no memory here.
    fn put(&mut self, rank: usize, pid: i32, plan: &'static StartPlan) {
        put(&mut self.space.memory, rank, RankMemory::GONE);
        put(&mut self.ranks, rank, StartedRank::new(pid, plan, &self.space.records[rank]));
    }

    /// How many CPUs this node has for its ranks, and others that share them.
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// Whether the ranks of the job are those of this node, as its own server has them.
    pub fn has_all_ranks(&self) -> bool {
        self.world_size == self.numbers.len()
    }

    /// Becomes the process manager of ranks that have left their common address space.
    pub fn serve_left(&mut self) {
        let numbers = self.numbers.clone();
        let applications = self.node.ranks().iter().map(|rank| rank.app_number);
        let server = Server::new(numbers, applications.collect(), self.world_size as u32);
        // Without descriptors they are refused. Nobody has the ranks' ends: all come through the door.
        self.served.server = server.ok().map(|(server, _)| server);
    }

    /// Starts all of them, as wrappers have set them up if some have. After an error, those that were started are
    /// [`Spawner::ranks`].
    ///
    /// # Errors
    /// A resource is short.
    pub fn start_all(&mut self, adoptions: &[Adoption]) -> io::Result<()> {
        let programs = std::mem::take(&mut self.programs);
        let each = programs.iter().flat_map(|program| std::iter::repeat_n(program, program.ranks));
        let mut each = each.enumerate();
        let started = each.try_for_each(|(rank, program)| self.start(rank, program, adoptions.get(rank)));
        self.programs = programs;
        self.take_back();
        if started.is_ok() {
            self.publish(0..self.ranks.len());
        }
        started
    }

    /// Lets debuggers find these ranks.
    fn publish(&mut self, ranks: Range<usize>) {
        let entry = |(rank, memory): (&StartedRank, &RankMemory)| DebugRank {
            pid: rank.pid as usize,
            linker: memory.linker.base,
            debug: memory.debug.unwrap_or(0),
        };
        let first = ranks.start;
        let memory = self.space.memory.iter();
        let records = self.ranks.iter().zip(memory).take(ranks.end).skip(first).map(entry);
        self.space.debug.publish(first, records);
    }

    /// Starts the next rank, as a wrapper has set it up if one has.
    fn start(&mut self, rank: usize, program: &PreparedProgram, adoption: Option<&Adoption>) -> io::Result<()> {
        // A wrapper is executed in a process of its own.
        let mut code = match self.setup.isolated || program.linker.is_none() {
            true => self.execution(rank, program)?,
            false => self.image(rank, program)?,
        };
        let handed = self.hand_over(rank, code.connection.take(), adoption)?;
        self.space.records[rank].forget();
        let plan: &'static StartPlan = Box::leak(Box::new(self.plan(rank, program, code, &handed, adoption)));
        // SAFETY: image, stack and handler stack were made for this rank and are never
        // unmapped; the job has blocked all signals.
        let pid = unsafe { start::start(plan)? };
        self.lent.retain(|lent| !lent.plan.has_parted());
        let lent = Lent { pid, plan, _descriptors: (handed.connection, handed.opened) };
        self.lent.extend((!plan.has_parted()).then_some(lent));
        put(&mut self.ranks, rank, StartedRank::new(pid, plan, &self.space.records[rank]));
        Ok(())
    }

    /// Opens what a rank takes over: what a wrapper has left open, or its part of the job's streams.
    fn hand_over(
        &mut self,
        rank: usize,
        connection: Option<OwnedFd>,
        adoption: Option<&Adoption>,
    ) -> io::Result<Handed> {
        if let Some(adoption) = adoption {
            return Ok(Handed { standard: adoption.standard(), opened: None, connection });
        }
        let opened = self.streams.open(self.numbers[rank], self.world_of(rank).is_some())?;
        Ok(Handed { standard: streams::numbers(&opened), opened: Some(opened), connection })
    }

    /// What a rank sets up before it enters its program.
    fn plan(
        &self,
        rank: usize,
        program: &PreparedProgram,
        code: Code,
        handed: &Handed,
        adoption: Option<&Adoption>,
    ) -> StartPlan {
        let Setup { own_sessions, signal_mask, limits, .. } = &self.setup;
        let directory = program.directory.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let connected = handed.connection.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let mut needed = handed.standard.into_iter().chain([directory, connected]);
        let above = self.streams.above;
        let outcome = adoption.map(|adoption| &adoption.outcome);
        let record = &self.node.ranks()[rank];
        StartPlan {
            stack_pointer: code.stack_pointer,
            program: code.program,
            root: std::process::id() as i32,
            follows: true,
            standard: handed.standard,
            above: above.filter(|&above| needed.all(|number| number < above as i32)),
            parted: AtomicU32::new(0),
            close: self.setup.closed(outcome.map(|outcome| outcome.kept.as_slice())),
            directory,
            own_session: *own_sessions,
            affinity: match (outcome, &self.bindings) {
                (Some(outcome), _) => setup::mask_words(&outcome.cpus),
                (None, Some(list)) => setup::mask_words(&list[rank].cpus),
                (None, None) => Vec::new(),
            },
            signal_mask: outcome.map_or(*signal_mask, |outcome| outcome.signal_mask),
            ignores_pipe: self.setup.ignores_pipe,
            limits: outcome.map_or(limits, |outcome| &outcome.limits).clone(),
            inherited: outcome.map(|outcome| outcome.inherited.clone()),
            handler_stack: self.space.handler_stacks + rank * HANDLER_STACK,
            name: task_name(program.name.as_bytes()),
            crash: &self.space.records[rank],
            pid: &record.pid,
            last_words: &record.last_words,
            failed: AtomicU64::new(0),
        }
    }

    /// Closes the root's copies of what ranks have taken over: the root would not see that they close theirs.
    fn take_back(&mut self) {
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
        let record = &self.node.ranks()[rank];
        let variables = self.variables(rank, Vec::new(), program);
        let extra = Extra { variables: &variables, auxiliary: (AT_COHORT, std::ptr::from_ref(record) as u64) };
        let range = self.space.stacks.open(rank)?;
        // SAFETY: this rank's stack was opened just now.
        let stack_pointer = unsafe { stack::build(range, &program.strings, &linker, &self.space.auxiliary, extra)? };
        let debug = program.debug.map(|offset| linker.base.wrapping_add(offset as usize));
        put(&mut self.space.memory, rank, RankMemory { linker, debug });
        Ok(Code { stack_pointer, program: Program::Mapped(linker.entry), connection: None })
    }

    /// The entries of a rank's environment that tell its place, and by which programs that it starts find the job,
    /// after what its manager tells.
    fn variables(&self, rank: usize, mut entries: Vec<CString>, program: &PreparedProgram) -> Vec<CString> {
        if let Some(door) = &self.served.door {
            let (name, value) = door.variable(self.numbers[rank], program.linker.is_none());
            entries.extend(CString::new(format!("{name}={value}")));
        }
        let place = match self.world_of(rank) {
            Some(world) => PlaceOfRank {
                rank: self.node.ranks()[rank].world_rank,
                size: world.total() as usize,
                local_rank: rank - world.first as usize,
                local_size: world.size as usize,
            },
            None => PlaceOfRank {
                rank: self.numbers[rank],
                size: self.world_size,
                local_rank: rank,
                local_size: self.numbers.len(),
            },
        };
        let others = [program.strings.environment(), &entries].concat();
        entries.extend(places::entries(&place, &others));
        entries
    }

    /// What an isolated rank executes; its stack here serves its set-up only.
    fn execution(&mut self, rank: usize, program: &PreparedProgram) -> io::Result<Code> {
        let range = self.space.stacks.open(rank)?;
        if !self.setup.isolated {
            put(&mut self.space.memory, rank, RankMemory::GONE);
        }
        let connection = self.served.connections.next();
        let (mut variables, mut inherited) = (Vec::new(), -1);
        if let (Some(server), Some(connection)) = (&self.served.server, &connection) {
            inherited = connection.as_raw_fd();
            let entries = server.variables(rank, inherited).into_iter();
            let entries = entries.map(|(name, value)| CString::new(format!("{name}={value}")));
            variables.extend(entries.flatten());
        }
        let variables = self.variables(rank, variables, program);
        let strings = program.executed.as_ref().unwrap_or(&program.strings);
        let execution = ExecArguments::new(strings, variables, inherited);
        Ok(Code { stack_pointer: range.end - 16, program: Program::Executed(execution), connection })
    }
}

/// Meets the other nodes, and opens the network to them.
fn meet(job: &Prepared, count: usize, membership: &mut Membership) -> Result<(), Refusal> {
    let traced = job.reports.trace.as_ref().is_some_and(Target::is_common);
    let marks = (job.spaces.isolated, traced);
    streams::empty_common_files(&job.streams.output, membership.place());
    membership.wire_up(count, job.programs.len(), marks, &job.nodes)?;
    match shared_image(job) {
        Some(folder) => membership.open_network(folder, &job.nodes.network),
        None => Ok(()),
    }
}

/// The folder of the node image that all ranks share. Isolated ranks load it themselves, each its own.
fn shared_image(job: &Prepared) -> Option<&std::path::Path> {
    job.libraries.as_deref().filter(|_| !job.spaces.isolated)
}

/// Opens the node image, and makes the boot records of ranks with these facts.
fn open_node(job: &Prepared, membership: &Membership, facts: &[RankFacts]) -> Result<Node, Refusal> {
    let around = surroundings(&job.machine.topology, membership);
    let room = job.later.room(job.spaces.isolated);
    // SAFETY: what the membership and the recorder point to is never freed.
    unsafe { Node::open(shared_image(job), (facts, room), job.environment.clone(), around) }
}

/// Says of the job what the options ask for.
fn tell(job: &Prepared, numbers: &[u32], bindings: Option<&[Binding]>, world: &World) {
    let started = Started {
        numbers,
        bindings,
        world: world.homes.len(),
        place: world.place,
        libraries: job.libraries.as_deref(),
        isolated: job.spaces.isolated,
    };
    report(job.reports.at_start, &started);
}

/// Begins the timeline, if the job has one and its ranks share an address space.
fn begin_trace(job: &mut Prepared, numbers: &[u32]) -> Result<Option<Recorder>, Refusal> {
    if job.spaces.isolated {
        if let (Some(target), None) = (&job.reports.trace, &job.spaces.wrapper) {
            target.advise_of_isolation();
        }
        return Ok(None);
    }
    let is_founded = job.founder.is_some();
    let begun = job.reports.trace.take().map(|target| match is_founded {
        true => Ok(target.begin_for_founder()),
        false => target.begin(numbers),
    });
    (begun.transpose()).map_err(|error| refuse("cannot make room for a timeline", &error))
}

fn refuse(what: &str, error: &io::Error) -> Refusal {
    Refusal::new(format!("{what}: {error}"))
}

/// What the node image is told of this machine and of the job.
fn surroundings(topology: &Topology, membership: &Membership) -> Surroundings {
    let world = membership.world();
    let (homes, network) = membership.records();
    let cpus = world.cpus(topology.capacity);
    Surroundings {
        places: topology.cpus.iter().map(|cpu| cpu.place).collect(),
        cpus,
        first_cpu: world.first_cpu(topology.capacity).unwrap_or(NO_SHARE),
        shares_cpus: world.shares_cpus(),
        universe: world.others_cpus().iter().map(|it| it.all).fold(cpus, u32::saturating_add),
        node: world.place.index,
        nodes: world.place.count,
        world_ranks: world.homes.len() as u32,
        job: world.number(),
        homes,
        network,
    }
}

/// What the ranks are told of themselves; their programs' numbers begin with `first`.
fn rank_facts(
    programs: &[PreparedProgram],
    world_ranks: &[u32],
    first: u32,
    bindings: Option<&[Binding]>,
    world: Option<&'static WorldBoot>,
) -> Vec<RankFacts> {
    let numbers = programs.iter().flat_map(|program| {
        let of_program = (first + program.number, program.is_linked, program.initial_errhandler);
        std::iter::repeat_n(of_program, program.ranks)
    });
    let cpu = |rank: usize| match bindings {
        Some(list) => i32::try_from(list[rank].cpu).unwrap_or(-1),
        None => -1,
    };
    let fact = |(rank, (number, is_linked, initial_errhandler))| RankFacts {
        world_rank: world_ranks[rank],
        app_number: number,
        cpu: cpu(rank),
        is_linked,
        world,
        initial_errhandler,
        trace: ptr::null(),
    };
    numbers.enumerate().map(fact).collect()
}

/// Has each rank note its events in its ring, if there are some.
fn lead_to_rings(facts: &mut [RankFacts], rings: Option<Vec<*const Ring>>) {
    for (facts, ring) in facts.iter_mut().zip(rings.into_iter().flatten()) {
        facts.trace = ring;
    }
}

/// Puts what belongs to a rank into its place: behind those of all others, or where another one's was.
fn put<T>(list: &mut Vec<T>, rank: usize, value: T) {
    match list.get_mut(rank) {
        Some(place) => *place = value,
        None => list.push(value),
    }
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
    fn names_of_tasks_are_cut() {
        assert_eq!(&task_name(b"a-very-long-program-name"), b"a-very-long-pro\0");
    }
}
