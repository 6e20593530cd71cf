//! Everything that can be found wrong before the first rank starts.

mod reasons;
mod words;

use super::binding::{self, Binding};
use super::environment::{self, entries};
use super::libraries::{Dependencies, FORTRAN_FOLDER, STAND_IN_FOLDER};
use super::options::{Input, Options, Output, Report, Section, Variables};
use super::outcome::Outcome;
use super::program::{self, Program, Search};
use super::topology::Topology;
use super::{allocator, libraries, limits};
use cohort_base::boot::AUDIT_LIBRARY;
use cohort_base::settings::{STATS, Settings, Stats};
use cohort_manager::Place;
use cohort_manager::network::NetworkSettings;
use cohort_manager::wireup::Numbering;
use pip_ground::{Environment, Refusal};
use pip_insight::{stats, trace};
use pip_load::boot;
use pip_load::image::{OpenError, Template};
use pip_load::task::stack::Strings;
use std::collections::HashMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use reasons::Reasons;
use words::{executed_strings, strings, wrapper_strings};

/// A job that nothing stands against.
#[derive(Debug)]
pub struct Prepared {
    /// The programs; rank numbers follow their order.
    pub programs: Vec<PreparedProgram>,
    /// The folder of the node image; `None` with `--no-mpi`.
    pub libraries: Option<PathBuf>,
    /// `KEY=VALUE` entries that the node image reads its settings from.
    pub environment: Vec<CString>,
    /// The machine.
    pub topology: Topology,
    /// The bindings that ranks take in turn, if they are bound.
    pub turns: Option<Vec<Binding>>,
    /// `COHORT_STACKSIZE`, if set.
    pub stack_size: Option<usize>,
    /// Each rank gets an address space of its own.
    pub isolated: bool,
    /// Each rank begins a session.
    pub own_sessions: bool,
    /// A program that is no MPI program, so that ranks are what it starts, if that is why.
    pub wrapper: Option<OsString>,
    /// How ranks are numbered over several nodes.
    pub numbering: Numbering,
    /// What the user asks of the network.
    pub network: NetworkSettings,
    /// The programs and their arguments, for people.
    pub command: String,
    /// `COHORT_TRACE`
    pub trace: Option<trace::Target>,
    /// `COHORT_STATS=counters`: say what the memory of ranks takes.
    pub counters: bool,
    /// The report of `COHORT_STATS`.
    pub stats: Option<stats::Wanted>,
    /// Where output goes, and what begins its lines.
    pub output: Output,
    /// Who gets standard input.
    pub input: Input,
    /// What to say when the job starts.
    pub report: Report,
    /// `--timeout`.
    pub timeout: Option<Duration>,
}

impl Prepared {
    /// Files that are empty until the job has ended.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let trace = self.trace.as_ref().and_then(trace::Target::file);
        let stats = self.stats.as_ref().and_then(stats::Wanted::file);
        trace.into_iter().chain(stats)
    }
}

/// One program of the job.
#[derive(Debug)]
pub struct PreparedProgram {
    /// How many ranks of this node run it.
    pub ranks: usize,
    /// Its number on the command line.
    pub number: u32,
    /// What its initial stacks hold.
    pub strings: Strings,
    /// What the kernel executes for a rank with an address space of its own; `None` if that is its dynamic linker.
    pub executed: Option<Strings>,
    /// Its dynamic linker, which each rank enters or executes; `None` if the kernel executes the program itself.
    pub linker: Option<Rc<Template>>,
    /// Offset of `_r_debug`, where glibc lists loaded objects, from the linker's base.
    pub debug: Option<u64>,
    /// It is linked to an MPI library.
    pub is_linked: bool,
    /// It is linked to fixed addresses.
    pub fixed_address: bool,
    /// The compiler's checker that watches it.
    pub sanitizer: Option<&'static str>,
    /// The file with the `malloc` that it brings, if it would have another one.
    pub own_malloc: Option<PathBuf>,
    /// Its working directory, if it is not the root's.
    pub directory: Option<File>,
    /// Its name for the system's task list.
    pub name: OsString,
}

impl PreparedProgram {
    /// One that is no MPI program, so that ranks are what it starts.
    fn wrapper(strings: Strings, directory: Option<File>, name: OsString, own_malloc: Option<PathBuf>) -> Self {
        Self {
            ranks: 0,
            number: 0,
            is_linked: false,
            fixed_address: false,
            sanitizer: None,
            own_malloc,
            strings,
            executed: None,
            linker: None,
            debug: None,
            directory,
            name,
        }
    }
}

/// What the dynamic linkers hold that can be audited at no cost: the symbol version of glibc 2.35.
const AUDIT_LINKER: &[u8] = b"GLIBC_2.35";

/// Checks what this node, at `place` in the job, has to run and reads all that it needs.
///
/// # Errors
/// The message for the user.
pub fn prepare(options: &Options, place: Place, job: &str) -> Result<Prepared, Refusal> {
    check_valgrind(&options.variables)?;
    let own = own_folder()?;
    let common = environment::of_ranks(&options.variables, &options.variables.inherit, job);
    let shared = settings(&common)?;
    let mut stack_size = shared.stack_size;
    let libraries = match options.start.no_mpi {
        true => None,
        false => Some(boot::library_folder(&own)?),
    };
    let topology = Topology::read();
    let context = Context { own: &own, libraries: libraries.as_deref(), name: None, found: None };
    let mut linkers = HashMap::new();
    let (mut programs, mut map_entries) = (Vec::new(), 0);
    let mut reasons = Reasons::default();
    for (number, section) in (0..).zip(&options.sections) {
        let ranks = binding::ranks_of(section, &options.placement, &topology, place)?;
        let environment = environment_for(section, options, &common, job);
        stack_size = stack_size.max(settings(&environment)?.stack_size);
        let (mut program, entries) = context.program(section, &environment, &mut linkers)?;
        (program.ranks, program.number) = (ranks, number);
        map_entries += entries * ranks;
        reasons.add(&section.program, &program);
        programs.push(program);
    }
    let ranks = programs.iter().map(|program| program.ranks).sum();
    let isolated = check_ranks(options, place, ranks, map_entries, &reasons)?;
    binding::check_room(&options.placement, &topology, ranks)?;
    Ok(Prepared {
        programs,
        libraries,
        environment: entries(&common).filter_map(|entry| CString::new(entry.into_vec()).ok()).collect(),
        turns: binding::turns(&options.placement, &topology)?,
        topology,
        stack_size: (stack_size > 0).then_some(stack_size),
        isolated,
        own_sessions: options.start.own_sessions,
        wrapper: reasons.only_wrapper().filter(|_| !options.start.isolate),
        numbering: options.placement.numbering,
        network: NetworkSettings::read(|name| {
            let value = common.get(OsStr::new(name))?;
            value.to_str().map(str::to_owned)
        }),
        command: options.command(),
        trace: trace::Target::of(&common, place)?,
        counters: shared.stats == Stats::Counters,
        stats: stats::Wanted::read(common.get(OsStr::new(STATS)).map(AsRef::as_ref), place.index, place.count)?,
        output: options.streams.output.clone(),
        input: options.streams.input,
        report: options.said.report,
        timeout: options.start.time_limit(&options.variables)?,
    })
}

/// Checks that a node can have so many ranks, whose programs need so many areas of memory; whether each of them gets an
/// address space of its own.
fn check_ranks(
    options: &Options,
    place: Place,
    ranks: usize,
    map_entries: usize,
    reasons: &Reasons<'_>,
) -> Result<bool, Refusal> {
    if ranks == 0 {
        let node = place.index;
        return Err(Refusal::new(format!("node {node} of the job has no rank")));
    }
    let isolated = options.start.isolate || !reasons.is_none();
    if !isolated {
        limits::check_map_count(ranks, map_entries)?;
        limits::warn_of_shared_limits(ranks);
    } else if place.index == 0 {
        reasons.advise(options.start.isolate);
    }
    if place.index == 0 {
        reasons.advise_of_malloc();
    }
    limits::check_task_count(ranks)?;
    Ok(isolated)
}

/// Prepares what wrappers have executed, one program for each rank, for one address space; the second number of a
/// program is that of its command line.
///
/// # Errors
/// One of them cannot be in an address space with others.
pub fn adopted(outcomes: &[(&Outcome, u32)], libraries: Option<&Path>) -> Result<Vec<PreparedProgram>, Refusal> {
    let own = own_folder()?;
    let mut linkers = HashMap::new();
    let mut needed = 0;
    let mut programs = Vec::new();
    for (outcome, number) in outcomes {
        let section = outcome.section();
        let called = outcome.arguments.first().filter(|_| outcome.linked);
        let context =
            Context { own: &own, libraries, name: called.map(OsString::as_os_str), found: Some(&outcome.file) };
        let (mut program, entries) = context.program(&section, &outcome.environment, &mut linkers)?;
        let mut reasons = Reasons::default();
        reasons.add(&section.program, &program);
        if !reasons.is_none() {
            return Err(Refusal::new("it needs an address space of its own"));
        }
        (program.ranks, program.number) = (1, *number);
        needed += entries;
        programs.push(program);
    }
    limits::check_map_count(programs.len(), needed)?;
    limits::warn_of_shared_limits(programs.len());
    Ok(programs)
}

/// # Errors
/// The system does not tell where this program lies.
fn own_folder() -> Result<PathBuf, Refusal> {
    let own =
        std::env::current_exe().map_err(|error| Refusal::new(format!("cannot find pip-exec's own folder: {error}")))?;
    Ok(own.parent().unwrap_or(Path::new("/")).to_owned())
}

/// # Errors
/// Valgrind, which has its clients load a library of its own, runs this process.
fn check_valgrind(variables: &Variables) -> Result<(), Refusal> {
    let list = variables.found("LD_PRELOAD").unwrap_or_default();
    if !list.to_string_lossy().contains("/vgpreload_") {
        return Ok(());
    }
    Err(Refusal::new(
        "Valgrind cannot run pip-exec, which makes processes that it does not know; put it before the program: \
         pip-exec -n 2 valgrind ./program",
    ))
}

/// What the ranks of one program find in their environment.
fn environment_for(section: &Section, options: &Options, common: &Environment, job: &str) -> Environment {
    let mut environment = match &section.inherit {
        None => common.clone(),
        Some(inherit) => environment::of_ranks(&options.variables, inherit, job),
    };
    environment.extend(section.environment.iter().cloned());
    allocator::keep_freed_memory(&mut environment);
    environment
}

fn settings(environment: &Environment) -> Result<Settings, Refusal> {
    let entries: Vec<OsString> = entries(environment).collect();
    Settings::from_env(entries.iter().map(|entry| entry.as_bytes()))
        .map_err(|invalid| Refusal::new(invalid.to_string()))
}

/// What all programs share.
struct Context<'a> {
    own: &'a Path,
    libraries: Option<&'a Path>,
    /// What the program sees as `argv[0]`, if that is not its name on the command line.
    name: Option<&'a OsStr>,
    /// The file that the kernel has executed, which must be the program's.
    found: Option<&'a Path>,
}

/// The map entries that a rank takes to start.
fn map_entries(program: &Program, linker: &Template, dependencies: &Dependencies) -> usize {
    // Programs that may open an MPI have the library that the linker is audited by, and that MPI.
    let opened = if dependencies.mpi_library.is_some() { 0 } else { 2 };
    dependencies.map_entries
        + linker.plan().map_entries()
        + program.plan.map_entries()
        + (program.preload.len() + opened) * limits::PER_OBJECT
        + limits::PER_START
}

impl Context<'_> {
    /// Prepares one program; also returns the map entries that one of its ranks takes.
    fn program(
        &self,
        section: &Section,
        environment: &Environment,
        linkers: &mut HashMap<PathBuf, Rc<Template>>,
    ) -> Result<(PreparedProgram, usize), Refusal> {
        let variable = |name: &str| environment.get(OsStr::new(name)).map(OsString::as_os_str);
        let (directory, path) = working_directory(section)?;
        let library_path = variable("LD_LIBRARY_PATH").unwrap_or_default();
        let search = Search {
            directory: &path,
            path: variable("PATH").unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin")),
            own: self.own,
            library_path,
        };
        let mut program = self.resolve(&section.program, search)?;
        let first = self.libraries.unwrap_or(Path::new("/nonexistent"));
        let dependencies = libraries::follow(&program.file, &program.plan, first, environment);
        let is_stub = !program.preload.is_empty();
        let (malloc, own_malloc) = allocator::choose(environment, self.own, &dependencies)?;
        program.preload.extend(self.preload(&program, &dependencies)?);
        program.preload.extend(malloc.clone());
        let linker = open_linker(&program, linkers)?;
        let name = Path::new(&section.program).file_name();
        let name = name.unwrap_or_default().to_owned();
        self.check_mpi(&program, &dependencies)?;
        let uses_mpi = dependencies.mpi_library.is_some();
        let audit = self.audit(&linker, uses_mpi)?;
        let is_auditable = audit.is_some() || self.libraries.is_none();
        // What a program starts that names no MPI library is led to ours too.
        let malloc = malloc.as_deref();
        let thread_local = dependencies.thread_local + malloc.map_or(0, libraries::thread_local);
        let starters = environment::of_starters(environment, audit, self.libraries, thread_local);
        let executed = environment::preloading(starters.clone(), malloc);
        if self.libraries.is_some() && !uses_mpi && !program.may_open_mpi() {
            let strings = wrapper_strings(&program, section, &executed)?;
            let prepared = PreparedProgram::wrapper(strings, directory, name, own_malloc);
            return Ok((prepared, 0));
        }
        let entries = map_entries(&program, &linker, &dependencies);
        let folders = self.folders(&dependencies, library_path);
        let arguments = self.arguments(&program, section, &linker, &folders);
        let mapped = environment::of_mapped(environment, &starters, uses_mpi, &program.file);
        let direct = is_auditable && !is_stub;
        let prepared = PreparedProgram {
            ranks: 0,
            number: 0,
            is_linked: uses_mpi,
            fixed_address: program.plan.fixed_address,
            sanitizer: dependencies.sanitizer,
            own_malloc,
            strings: strings(&arguments, &mapped, linker.path())?,
            executed: direct
                .then(|| executed_strings(&program, section, executed, dependencies.sanitizer))
                .transpose()?,
            debug: linker.exported_symbol("_r_debug"),
            linker: Some(linker),
            directory,
            name,
        };
        Ok((prepared, entries))
    }

    /// The program that is called so, with the name that it is to see.
    ///
    /// # Errors
    /// It cannot be started.
    fn resolve(&self, called: &OsStr, search: Search<'_>) -> Result<Program, Refusal> {
        let mut program = program::resolve(called, search)?;
        if let Some(name) = self.name {
            program.name = name.to_owned();
        }
        match self.found {
            Some(file) if program.found.canonicalize().ok().as_deref() != Some(file) => {
                Err(Refusal::to_run(file, &format!("{} is another", program.found.display())))
            }
            _ => Ok(program),
        }
    }

    /// Our MPI library, if the linker would look for the one that the program needs elsewhere first.
    ///
    /// # Errors
    /// It is missing.
    fn preload(&self, program: &Program, dependencies: &Dependencies) -> Result<Option<PathBuf>, Refusal> {
        let (Some(folder), Some(library)) = (self.libraries, dependencies.mpi_library) else {
            return Ok(None);
        };
        let library = folder.join(library);
        match library.is_file() {
            true => Ok(dependencies.rpath_first.then_some(library)),
            false => Err(Refusal::to_run(&program.file, &format!("it needs {}, which is missing", library.display()))),
        }
    }

    /// # Errors
    /// The program needs an MPI that we do not provide, or what works with such a one only.
    fn check_mpi(&self, program: &Program, dependencies: &Dependencies) -> Result<(), Refusal> {
        if let (Some(_), Some((library, what))) = (self.libraries, &dependencies.companion) {
            let why = format!(
                "it needs {library}, {what}, which works with Open MPI's own C library only: of its ABI, C, C++ and \
                 Fortran programs run here; build it for the MPICH ABI, or use that MPI's own launcher"
            );
            return Err(Refusal::to_run(&program.file, &why));
        }
        let (Some(_), Some((library, vendor)), None) =
            (self.libraries, &dependencies.other_mpi, dependencies.mpi_library)
        else {
            return Ok(());
        };
        let vendor = vendor.map_or(String::new(), |vendor| format!(" of {vendor}"));
        Err(Refusal::to_run(
            &program.file,
            &format!(
                "it needs {library}{vendor}, which knows nothing of this job, so that every rank would be alone in a \
                 world of its own; build it with pip-exec's mpicc or MPICH's, or use that MPI's own launcher"
            ),
        ))
    }

    /// The library by which what opens an MPI library by a path of its own gets ours. A program that names ours can
    /// do without: `pip-exec` has the linker look into our folder.
    ///
    /// # Errors
    /// The library is missing, and the program needs it.
    fn audit(&self, linker: &Template, names_ours: bool) -> Result<Option<PathBuf>, Refusal> {
        let Some(folder) = self.libraries else {
            return Ok(None);
        };
        // Older linkers show an auditing library the program's own objects only, and send each call between objects
        // through it.
        if !linker.mentions(AUDIT_LINKER) {
            return Ok(None);
        }
        let file = folder.join(AUDIT_LIBRARY);
        match file.is_file() {
            true => Ok(Some(file)),
            false if names_ours => Ok(None),
            false => Err(Refusal::new(format!("{} is missing: the installation is incomplete", file.display()))),
        }
    }

    /// Where the dynamic linker looks for libraries first: ours, then the user's.
    fn folders(&self, dependencies: &Dependencies, library_path: &OsStr) -> OsString {
        let fortran = self.libraries.filter(|_| !dependencies.mpich_fortran).map(|folder| folder.join(FORTRAN_FOLDER));
        let stand_ins = self.libraries.filter(|_| dependencies.stand_in).map(|folder| folder.join(STAND_IN_FOLDER));
        let folders: Vec<&OsStr> = [self.libraries, fortran.as_deref()]
            .into_iter()
            .flatten()
            .map(Path::as_os_str)
            .chain([library_path])
            .chain(stand_ins.as_deref().map(Path::as_os_str))
            .filter(|folder| !folder.is_empty())
            .collect();
        folders.join(OsStr::new(":"))
    }

    /// The command line of the dynamic linker, which then loads the program.
    fn arguments(&self, program: &Program, section: &Section, linker: &Template, folders: &OsStr) -> Vec<OsString> {
        let mut arguments = vec![linker.path().into()];
        // Before glibc 2.33 a program started so sees its file's path as its name.
        if linker.mentions(b"--argv0") {
            arguments.extend(["--argv0".into(), program.name.clone()]);
        }
        if !folders.is_empty() {
            arguments.extend(["--library-path".into(), folders.into()]);
        }
        if !program.preload.is_empty() {
            let list: Vec<&OsStr> = program.preload.iter().map(|path| path.as_os_str()).collect();
            arguments.extend(["--preload".into(), list.join(OsStr::new(":"))]);
        }
        arguments.push(program.file.clone().into());
        arguments.extend(program.leading.iter().cloned());
        arguments.extend(section.arguments.iter().cloned());
        arguments
    }
}

/// Opens the section's working directory; also gives its path.
fn working_directory(section: &Section) -> Result<(Option<File>, PathBuf), Refusal> {
    // One that has been removed has no name, and ranks inherit it all the same.
    let here = std::env::current_dir().unwrap_or_else(|_| ".".into());
    let Some(wanted) = &section.directory else {
        return Ok((None, here));
    };
    let path = here.join(wanted);
    let open = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(&path);
    match open {
        Ok(directory) => Ok((Some(directory), path)),
        Err(error) => Err(Refusal::new(format!("-wdir {}: {error}", wanted.display()))),
    }
}

fn open_linker(program: &Program, linkers: &mut HashMap<PathBuf, Rc<Template>>) -> Result<Rc<Template>, Refusal> {
    let path = PathBuf::from(program.plan.interpreter.as_deref().unwrap_or_default());
    if let Some(linker) = linkers.get(&path) {
        return Ok(Rc::clone(linker));
    }
    let linker = Template::open(&path).map_err(|error| {
        let reason = match error {
            OpenError::Io(error) if error.kind() == std::io::ErrorKind::NotFound => "it does not exist".to_owned(),
            OpenError::Io(error) => error.to_string(),
            OpenError::Elf(error) => error.to_string(),
        };
        let what = format!("its dynamic linker {} cannot be used: {reason}", path.display());
        Refusal::to_run(&program.file, &what)
    })?;
    let linker = Rc::new(linker);
    linkers.insert(path, Rc::clone(&linker));
    Ok(linker)
}
