//! From the name of a program to the file that a rank's dynamic linker loads.

use super::python;
use pip_ground::Refusal;
use pip_load::elf::{self, LoadPlan};
use pip_load::image;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// How many interpreters of interpreters are followed, as in the kernel.
const SCRIPT_DEPTH: usize = 4;

/// Most bytes of a `#!` line that are read, as in the kernel.
const SCRIPT_LINE: usize = 256;

/// A program that can be started.
#[derive(Debug)]
pub struct Program {
    /// The ELF file, free of symbolic links so that `$ORIGIN` is where it really lies.
    pub file: PathBuf,
    /// What the kernel would execute: the file under the name that was found, or a script.
    pub found: PathBuf,
    /// What the file asks for.
    pub plan: LoadPlan,
    /// What it sees as `argv[0]`.
    pub name: OsString,
    /// Arguments before the user's: those of a `#!` line and the script.
    pub leading: Vec<OsString>,
    /// Libraries to load before all others.
    pub preload: Vec<PathBuf>,
}

/// Where programs are looked for.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// Directory that relative names are relative to.
    pub directory: &'a Path,
    /// `PATH` of the rank's environment.
    pub path: &'a OsStr,
    /// Folder of pip-exec, where the Python stub lies too.
    pub own: &'a Path,
    /// `LD_LIBRARY_PATH` of the rank's environment.
    pub library_path: &'a OsStr,
}

/// How the names of programs begin that open an MPI library themselves if they use one: interpreters. (Scripts for them
/// are followed to them. `Rscript` executes a script, which executes R.)
const INTERPRETERS: [&str; 10] =
    ["python", "pypy", "pip-python", "julia", "perl", "ruby", "lua", "java", "octave", "guile"];

impl Program {
    /// Whether this program, which is not linked to MPI, may open an MPI library. If not, and MPI is used nevertheless,
    /// it is by a program that it executes.
    pub fn may_open_mpi(&self) -> bool {
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        let begins = |start: &str| name.starts_with(start);
        name == "R" || INTERPRETERS.iter().any(|start| begins(start))
    }
}

/// What the kernel would give to the process that executes a file, and ranks do not get: their files are mapped.
pub fn privileges(file: &Path) -> Option<&'static str> {
    let facts = std::fs::metadata(file).ok()?;
    let (user, group) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
    let has = |bits: u32| facts.mode() & bits == bits;
    if has(0o4000) && facts.uid() != user {
        return Some("its owner's user (set-user-ID)");
    }
    if has(0o2010) && facts.gid() != group {
        return Some("its group (set-group-ID)");
    }
    let path = CString::new(file.as_os_str().as_bytes()).ok()?;
    // SAFETY: two C strings; no room is given for the value, whose length is returned.
    let length = unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) };
    (length > 0 && user != 0).then_some("its capabilities")
}

/// Finds and reads the program called `name`.
///
/// # Errors
/// The message for the user; it names the file and the way out where there is one.
pub fn resolve(name: &OsStr, search: Search<'_>) -> Result<Program, Refusal> {
    resolve_at_depth(name, search, SCRIPT_DEPTH)
}

fn resolve_at_depth(name: &OsStr, search: Search<'_>, depth: usize) -> Result<Program, Refusal> {
    let found = find(name, search)?;
    let file = found.canonicalize().map_err(|error| Refusal::to_run(&found, &error))?;
    let bytes =
        File::open(&file).and_then(|file| image::file_bytes(&file)).map_err(|error| Refusal::to_run(&found, &error))?;
    let bytes = bytes.as_deref().unwrap_or_default();
    if let Some(line) = bytes.strip_prefix(b"#!") {
        if depth == 0 {
            return Err(Refusal::to_run(&found, &"too many interpreters of interpreters"));
        }
        return resolve_script(line, &found, search, depth);
    }
    match elf::parse(bytes) {
        Ok(plan) if plan.interpreter.is_none() => Err(Refusal::to_run(
            &found,
            &"it is statically linked (it names no dynamic linker), and a rank needs a libc of its \
              own; link it without -static or -static-pie",
        )),
        Ok(plan) => {
            let whole =
                Program { file, found: found.clone(), plan, name: name.to_owned(), leading: vec![], preload: vec![] };
            let stub = match whole.plan.fixed_address {
                true => python::stub(&whole.file, search.own, search.library_path)?,
                false => None,
            };
            let Some(stub) = stub else {
                return Ok(whole);
            };
            // Python derives its prefix and a virtual environment from its name.
            Ok(Program {
                file: stub.file,
                found: found.clone(),
                plan: stub.plan,
                name: found.into(),
                leading: vec![],
                preload: vec![stub.library],
            })
        }
        Err(error) => Err(Refusal::to_run(&found, &error)),
    }
}

/// Follows a `#!` line. `env` is followed here rather than run, since a rank that
/// executes another program leaves the address space.
fn resolve_script(line: &[u8], script: &Path, search: Search<'_>, depth: usize) -> Result<Program, Refusal> {
    if let Some(target) = python::pyenv_target(script) {
        return resolve_at_depth(target.as_os_str(), search, depth - 1);
    }
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    if line.ends_with(b"\r") {
        let what = "its #! line ends in a carriage return, as lines of Windows do; sed -i 's/\\r$//' mends the file";
        return Err(Refusal::to_run(script, &what));
    }
    let line = line[..line.len().min(SCRIPT_LINE)].trim_ascii();
    let at = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let interpreter = OsStr::from_bytes(&line[..at]);
    let argument = line[at..].trim_ascii();
    if interpreter.is_empty() {
        return Err(Refusal::to_run(script, &"its #! line names no interpreter"));
    }
    let (interpreter, arguments) = match env_target(interpreter, argument) {
        Some((target, arguments)) => (target, arguments),
        None if argument.is_empty() => (interpreter.to_owned(), vec![]),
        None => (interpreter.to_owned(), vec![OsStr::from_bytes(argument).to_owned()]),
    };
    let mut program = resolve_at_depth(&interpreter, search, depth - 1)
        .map_err(|error| Refusal::new(format!("{}: its interpreter does not work: {error}", script.display())))?;
    program.leading.extend(arguments);
    program.leading.push(script.into());
    program.found = script.to_owned();
    Ok(program)
}

/// What `#!/usr/bin/env [-S] PROGRAM [ARG...]` runs. `None` when it is not `env`, or sets
/// variables or options, which only `env` itself can do.
fn env_target(interpreter: &OsStr, argument: &[u8]) -> Option<(OsString, Vec<OsString>)> {
    if Path::new(interpreter).file_name()? != "env" {
        return None;
    }
    let split = argument.strip_prefix(b"-S").map(<[u8]>::trim_ascii);
    let mut words: Vec<OsString> = match split {
        None => vec![OsStr::from_bytes(argument).to_owned()],
        Some(text) => text
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
            .map(|word| OsStr::from_bytes(word).to_owned())
            .collect(),
    };
    let plain = |word: &OsString| {
        let bytes = word.as_bytes();
        !bytes.is_empty() && !bytes.starts_with(b"-") && !bytes.contains(&b'=')
    };
    let quoted = argument.iter().any(|byte| b"\"'\\$".contains(byte));
    words.first().filter(|word| plain(word) && !quoted)?;
    let target = words.remove(0);
    Some((target, words))
}

/// The file that `execvp` would run: a name with a slash is a path, others are looked
/// for in `PATH`.
fn find(name: &OsStr, search: Search<'_>) -> Result<PathBuf, Refusal> {
    if name.is_empty() {
        return Err(Refusal::new("the name of the program is empty"));
    }
    if name.as_bytes().contains(&b'/') {
        let path = search.directory.join(name);
        return match executable(&path) {
            Ok(()) => Ok(path),
            Err(reason) => Err(Refusal::to_run(&path, &reason)),
        };
    }
    let mut denied = None;
    for folder in std::env::split_paths(search.path) {
        let path = search.directory.join(folder).join(name);
        match executable(&path) {
            Ok(()) => return Ok(path),
            Err(reason) if path.exists() => denied = denied.or(Some(Refusal::to_run(&path, &reason))),
            Err(_) => {}
        }
    }
    Err(denied.unwrap_or_else(|| {
        let name = Path::new(name);
        let hint = if search.directory.join(name).is_file() {
            format!("; did you mean ./{}?", name.display())
        } else {
            String::new()
        };
        Refusal::new(format!("{}: no such program in PATH{hint}", name.display()))
    }))
}

/// Why `path` cannot be executed, if it cannot.
fn executable(path: &Path) -> Result<(), String> {
    let metadata = path.metadata().map_err(|error| plain(&error))?;
    if metadata.is_dir() {
        return Err("it is a directory".to_owned());
    }
    if !metadata.is_file() {
        return Err("it is no regular file".to_owned());
    }
    nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).map_err(|_| {
        let why = match metadata.permissions().mode() & 0o111 {
            0 => "it is not executable; chmod +x makes it so",
            _ => "the system does not let you execute it: it is for others, or on a file system mounted with noexec",
        };
        why.to_owned()
    })
}

/// An error of the system without its number.
fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::env_target;
    use std::ffi::OsStr;

    #[test]
    fn env_lines_are_followed_when_they_only_name_a_program() {
        let target = |argument: &str| {
            env_target(OsStr::new("/usr/bin/env"), argument.as_bytes())
                .map(|(target, words)| (target.into_string().unwrap(), words.len()))
        };
        assert_eq!(target("python3"), Some(("python3".to_owned(), 0)));
        assert_eq!(target("-S python3 -u -B"), Some(("python3".to_owned(), 2)));
        assert_eq!(target("-i python3"), None);
        assert_eq!(target("-S A=1 python3"), None);
        assert_eq!(target("-S python3 'a b'"), None);
        assert_eq!(target(""), None);
        assert_eq!(env_target(OsStr::new("/bin/sh"), b"-e"), None);
    }
}
