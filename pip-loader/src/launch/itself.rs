//! A rank that executes `/proc/self/exe` means its own program; the kernel means `pip-exec`, whose address space it is.

use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a rank's environment names the file of its program.
pub const PROGRAM: &str = "PIP_EXEC_PROGRAM";

/// Where it has the name that the program was called by, which may be that of a symbolic link.
pub const CALLED: &str = "PIP_EXEC_CALLED";

/// Executes the program of the rank that has executed this one by the name of its own, with these arguments. Comes back
/// if that is not so.
pub fn become_program(mut arguments: impl Iterator<Item = OsString>) {
    let Some(program) = std::env::var_os(PROGRAM).map(PathBuf::from) else {
        return;
    };
    let name = arguments.next().unwrap_or_default();
    let called = std::env::var_os(CALLED).unwrap_or_default();
    let is_named = |other: &Path| Path::new(&name).file_name() == other.file_name();
    if !is_itself(&executed_as()) && !is_named(&program) && !is_named(Path::new(&called)) {
        return;
    }
    let error = Command::new(&program).arg0(name).args(arguments).exec();
    pip_ground::say(format_args!("cannot execute {}: {error}", program.display()));
    std::process::exit(pip_ground::REFUSED);
}

/// The name by which the kernel has found this program.
fn executed_as() -> OsString {
    // SAFETY: no condition.
    let name = unsafe { libc::getauxval(libc::AT_EXECFN) };
    if name == 0 {
        return OsString::new();
    }
    // SAFETY: the kernel put the address of a string there that stays.
    let name = unsafe { CStr::from_ptr(std::ptr::with_exposed_provenance(name as usize)) };
    OsStr::from_bytes(name.to_bytes()).to_owned()
}

/// Whether a path is the link of a process to its own file.
fn is_itself(path: &OsStr) -> bool {
    let process = path.as_bytes().strip_prefix(b"/proc/");
    let process = process.and_then(|rest| rest.strip_suffix(b"/exe"));
    let own = std::process::id().to_string();
    process.is_some_and(|it| [&b"self"[..], b"thread-self", own.as_bytes()].contains(&it))
}
