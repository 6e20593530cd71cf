//! What one program needs: its files, what its ranks find on their stacks, and what it may not need.

use super::PreparedProgram;
use super::words::{executed_strings, strings, wrapper_strings};
use crate::launch::libraries::{Dependencies, FORTRAN_FOLDER, STAND_IN_FOLDER};
use crate::launch::options::Section;
use crate::launch::program::{self, Program, Search};
use crate::launch::{allocator, environment, libraries, limits};
use cohort_base::boot::AUDIT_LIBRARY;
use pip_ground::{Environment, Refusal, voice};
use pip_load::image::{OpenError, Template};
use pip_load::task::stack::Strings;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What the dynamic linkers hold that can be audited at no cost: the symbol version of glibc 2.35.
const AUDIT_LINKER: &[u8] = b"GLIBC_2.35";

/// What all programs share.
pub(super) struct Context<'a> {
    pub(super) own: &'a Path,
    pub(super) libraries: Option<&'a Path>,
    /// What the program sees as `argv[0]`, if that is not its name on the command line.
    pub(super) name: Option<&'a OsStr>,
    /// The file that the kernel has executed, which must be the program's.
    pub(super) found: Option<&'a Path>,
}

/// What is loaded for a program.
struct Files {
    program: Program,
    dependencies: Dependencies,
    linker: Rc<Template>,
    /// The library with the `malloc` that its ranks get, if it is none of its own.
    malloc: Option<PathBuf>,
    /// The file with the `malloc` that it brings, if it would have another one.
    own_malloc: Option<PathBuf>,
    /// It is a stub of ours, which runs the program that was called.
    is_stub: bool,
}

impl Files {
    /// Whether the program is linked to MPI.
    fn uses_mpi(&self) -> bool {
        self.dependencies.mpi_library.is_some()
    }
}

/// The environments by which what a program starts gets our MPI.
struct Starters {
    /// Of a program that shares its address space.
    mapped: Environment,
    /// Of one that the kernel executes.
    executed: Environment,
    /// Its dynamic linker can be told by them.
    is_auditable: bool,
}

fn variable<'a>(environment: &'a Environment, name: &str) -> Option<&'a OsStr> {
    environment.get(OsStr::new(name)).map(OsString::as_os_str)
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
    pub(super) fn program(
        &self,
        section: &Section,
        environment: &Environment,
        linkers: &mut HashMap<PathBuf, Rc<Template>>,
    ) -> Result<(PreparedProgram, usize), Refusal> {
        let (directory, path) = working_directory(section)?;
        let files = self.files(section, environment, &path, linkers)?;
        let starters = self.starters(environment, &files)?;
        let name = Path::new(&section.program).file_name();
        let name = name.unwrap_or_default().to_owned();
        if self.libraries.is_some() && !files.uses_mpi() && !files.program.may_open_mpi() {
            let strings = wrapper_strings(&files.program, section, &starters.executed)?;
            return Ok((PreparedProgram::wrapper(strings, directory, name, files.own_malloc), 0));
        }
        if let (None, Some(library)) = (self.libraries, &files.dependencies.mpi_library) {
            voice::advise(format_args!(
                "{} is linked to {library}, so with --no-mpi each of its ranks is a world of its own, if it finds an \
                 MPI at all",
                Path::new(&section.program).display()
            ));
        }
        let entries = map_entries(&files.program, &files.linker, &files.dependencies);
        let privileges = program::privileges(&files.program.file);
        let (strings, executed) = self.strings(section, environment, &files, starters)?;
        let prepared = PreparedProgram {
            ranks: 0,
            number: 0,
            is_linked: files.uses_mpi(),
            initial_errhandler: 0,
            fixed_address: files.program.plan.fixed_address,
            sanitizer: files.dependencies.sanitizer,
            own_malloc: files.own_malloc,
            privileges,
            strings,
            executed,
            debug: files.linker.exported_symbol("_r_debug"),
            linker: Some(files.linker),
            directory,
            name,
        };
        Ok((prepared, entries))
    }

    /// What is loaded for a program that is called from this directory.
    ///
    /// # Errors
    /// It cannot be loaded, or not with our MPI.
    fn files(
        &self,
        section: &Section,
        environment: &Environment,
        directory: &Path,
        linkers: &mut HashMap<PathBuf, Rc<Template>>,
    ) -> Result<Files, Refusal> {
        let search = Search {
            directory,
            path: variable(environment, "PATH").unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin")),
            own: self.own,
            library_path: variable(environment, "LD_LIBRARY_PATH").unwrap_or_default(),
        };
        let mut program = self.resolve(&section.program, search)?;
        let first = self.libraries.unwrap_or(Path::new("/nonexistent"));
        let dependencies = libraries::follow(&program.file, &program.plan, first, environment);
        let is_stub = !program.preload.is_empty();
        let (malloc, own_malloc) = allocator::choose(environment, self.own, &dependencies)?;
        program.preload.extend(self.preload(&program, &dependencies)?);
        program.preload.extend(malloc.clone());
        program.preload.extend(allocator::observer(environment, self.own, &dependencies));
        check_preload(&program)?;
        let linker = open_linker(&program, linkers)?;
        self.check_mpi(&program, &dependencies)?;
        Ok(Files { program, dependencies, linker, malloc, own_malloc, is_stub })
    }

    /// The environments by which what a program starts gets our MPI, also if the program names none.
    ///
    /// # Errors
    /// As [`Context::audit`].
    fn starters(&self, environment: &Environment, files: &Files) -> Result<Starters, Refusal> {
        let audit = self.audit(&files.linker, files.uses_mpi())?;
        let is_auditable = audit.is_some() || self.libraries.is_none();
        let malloc = files.malloc.as_deref();
        let thread_local = files.dependencies.thread_local + malloc.map_or(0, libraries::thread_local);
        let mapped = environment::of_starters(environment, audit, self.libraries, thread_local);
        let executed = environment::preloading(mapped.clone(), malloc);
        Ok(Starters { mapped, executed, is_auditable })
    }

    /// What the stacks of a program's ranks hold; and what the kernel executes for those with an address space of
    /// their own, if that is not the dynamic linker.
    fn strings(
        &self,
        section: &Section,
        environment: &Environment,
        files: &Files,
        starters: Starters,
    ) -> Result<(Strings, Option<Strings>), Refusal> {
        let Files { program, dependencies, linker, .. } = files;
        let library_path = variable(environment, "LD_LIBRARY_PATH").unwrap_or_default();
        let folders = self.folders(dependencies, library_path);
        let arguments = self.arguments(program, section, linker, &folders);
        let mapped = environment::of_mapped(environment, &starters.mapped, files.uses_mpi(), program);
        let is_direct = starters.is_auditable && !files.is_stub;
        let executed = is_direct.then(|| executed_strings(program, section, starters.executed, dependencies.sanitizer));
        Ok((strings(&arguments, &mapped, linker.path())?, executed.transpose()?))
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
        if let (Some(_), Some(file), Some(library)) =
            (self.libraries, &dependencies.preloaded_mpi, dependencies.mpi_library)
        {
            let why = format!(
                "LD_PRELOAD has {}, another MPI's library, which knows nothing of this job, so that every rank would \
                 be alone in a world of its own; leave it out, or write {library} without a folder there",
                file.display()
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

/// # Errors
/// The dynamic linker would take the name of a library that it is to load first for several, and go on without it.
fn check_preload(program: &Program) -> Result<(), Refusal> {
    let is_split = |path: &&PathBuf| path.as_os_str().as_bytes().iter().any(|letter| b" :".contains(letter));
    match program.preload.iter().find(is_split) {
        Some(path) => {
            let why = format!(
                "the dynamic linker cannot load {} first, as its name has a space or a colon; move it elsewhere",
                path.display()
            );
            Err(Refusal::to_run(&program.file, &why))
        }
        None => Ok(()),
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
