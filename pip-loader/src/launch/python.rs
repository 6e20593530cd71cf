//! Pythons that cannot be mapped twice, and those that hide behind a script.

use cohort_arch::LIBRARY_FOLDER;
use pip_ground::Refusal;
use pip_load::elf::{self, LoadPlan};
use pip_load::image;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// File name of the position-independent start-up stub, which lies beside pip-exec.
const STUB: &str = "pip-python";

/// The version in a CPython executable's name: `python3.11` gives `3.11`.
pub fn version(file: &Path) -> Option<&str> {
    let version = file.file_name()?.to_str()?.strip_prefix("python")?;
    let (major, minor) = version.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (major == "3" && digits(minor)).then_some(version)
}

/// Whether a program that is called so, with these arguments, is a Python that reads its program from standard input.
pub fn reads_standard_input(program: &OsStr, arguments: &[OsString]) -> bool {
    let name = Path::new(program).file_name().unwrap_or_default();
    let rest = name.as_bytes().strip_prefix(b"python");
    let is_python = rest.is_some_and(|rest| rest.iter().all(|it| it.is_ascii_digit() || *it == b'.'));
    is_python && arguments.first().is_none_or(|first| first == "-")
}

/// What a program says that uses MPI through mpi4py.
const MPI4PY: &[u8] = b"mpi4py";

/// Longest program that is looked through.
const PROGRAM_MAX: u64 = 1 << 20;

/// Whether the program of a Python with these arguments, which works in `directory`, names mpi4py: the module of `-m`,
/// the text of `-c`, or a file.
pub fn names_mpi4py(arguments: &[OsString], directory: &Path) -> bool {
    let names = |text: &[u8]| text.windows(MPI4PY.len()).any(|window| window == MPI4PY);
    let mut words = arguments.iter().skip(1);
    while let Some(word) = words.next() {
        let text = word.as_bytes();
        let last = text.last().copied().unwrap_or_default();
        let is_option = text.len() > 1 && text[0] == b'-' && text[1] != b'-';
        match last {
            // Options of one letter may share a dash; those with a value come last.
            b'c' | b'm' if is_option => {
                return words.next().is_some_and(|value| names(value.as_bytes()));
            }
            b'W' | b'X' if is_option => drop(words.next()),
            _ if is_option => {}
            _ if text.starts_with(b"-") => return false,
            _ => {
                let file = directory.join(word);
                let is_short = fs::metadata(&file).is_ok_and(|file| file.is_file() && file.len() <= PROGRAM_MAX);
                return is_short && fs::read(&file).is_ok_and(|text| names(&text));
            }
        }
    }
    false
}

/// What is started in place of a Python that is linked to fixed addresses.
#[derive(Debug)]
pub struct Stub {
    /// The stub.
    pub file: PathBuf,
    /// What it asks for.
    pub plan: LoadPlan,
    /// The `libpython` to preload.
    pub library: PathBuf,
}

/// The stub for `file`, a Python linked to fixed addresses; it lies in pip-exec's folder, `own`. The rank
/// looks for libraries in `library_path` first. `None` when the file is no Python or its library is
/// not installed.
///
/// # Errors
/// The stub is missing.
pub fn stub(file: &Path, own: &Path, library_path: &OsStr) -> Result<Option<Stub>, Refusal> {
    let Some(version) = version(file) else {
        return Ok(None);
    };
    let soname = format!("libpython{version}.so.1.0");
    let Some(library) = library_folders(file, library_path).map(|dir| dir.join(&soname)).find(|p| p.is_file()) else {
        return Ok(None);
    };
    let stub = own.join(STUB);
    let plan = File::open(&stub)
        .and_then(|file| image::file_bytes(&file))
        .map_err(|error| Refusal::to_run(&stub, &error))
        .and_then(|bytes| {
            elf::parse(bytes.as_deref().unwrap_or_default()).map_err(|error| Refusal::to_run(&stub, &error))
        })?;
    Ok(Some(Stub { file: stub, plan, library }))
}

/// Folders in which the library of the Python `file` may lie.
fn library_folders(file: &Path, library_path: &OsStr) -> impl Iterator<Item = PathBuf> {
    let prefix = file.parent().and_then(Path::parent).unwrap_or(Path::new("/usr"));
    let user: Vec<PathBuf> = std::env::split_paths(library_path).collect();
    let of_several = |folder: &Path| folder.join(LIBRARY_FOLDER);
    let own = [of_several(&prefix.join("lib")), prefix.join("lib64"), prefix.join("lib")];
    let system = ["/usr/lib", "/lib"].map(|folder| of_several(Path::new(folder)));
    let of_one = ["/usr/lib64", "/usr/lib"].map(PathBuf::from);
    user.into_iter().chain(own).chain(system).chain(of_one)
}

/// What a pyenv shim runs. Such a shim is a shell script that ends in an `exec`, and a rank that
/// executes another program leaves the address space; so it is asked beforehand.
pub fn pyenv_target(script: &Path) -> Option<PathBuf> {
    let folder = script.parent()?;
    let text = fs::read_to_string(script).ok()?;
    if folder.file_name()? != "shims" || !text.contains("pyenv\" exec") {
        return None;
    }
    let pyenv = text.split('"').find(|word| word.starts_with('/') && word.ends_with("/pyenv"))?;
    let root = OsString::from(folder.parent()?);
    let output = Command::new(pyenv).arg("which").arg(script.file_name()?).env("PYENV_ROOT", root).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| PathBuf::from(path.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pythons_without_a_program_read_standard_input() {
        let reads = |line: &str| {
            let mut words = line.split(' ').map(OsString::from);
            let program = words.next().expect("a word");
            reads_standard_input(&program, &words.collect::<Vec<_>>())
        };
        for line in ["python", "/usr/bin/python3.11 -", "python3 - x"] {
            assert!(reads(line), "{line}");
        }
        for line in ["python a.py -", "python -c pass", "python-config", "cat -"] {
            assert!(!reads(line), "{line}");
        }
    }

    #[test]
    fn programs_that_name_mpi4py() {
        let folder = std::env::temp_dir().join(format!("cohort-python-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        for (file, text) in [("with.py", "\nfrom mpi4py import MPI"), ("without.py", "mpi")] {
            fs::write(folder.join(file), text).expect("room");
        }
        let names = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            names_mpi4py(&words, &folder)
        };
        for line in [
            "python with.py x",
            "python -u -W error -Xdev -X dev with.py",
            "python -m mpi4py.futures without.py",
            "python -Ic import\u{a0}mpi4py",
        ] {
            assert!(names(line), "{line}");
        }
        for line in [
            "python",
            "python -",
            "python -m timeit mpi4py",
            "python without.py with.py",
            "python -c pass with.py",
            "python none.py",
            "python --help with.py",
            "python .",
        ] {
            assert!(!names(line), "{line}");
        }
        fs::remove_dir_all(folder).expect("its own folder");
    }

    #[test]
    fn versions_in_file_names() {
        assert_eq!(version(Path::new("/usr/bin/python3.11")), Some("3.11"));
        for name in ["/usr/bin/python3", "/usr/bin/python3.11-config", "/usr/bin/perl5.36"] {
            assert_eq!(version(Path::new(name)), None, "{name}");
        }
    }
}
