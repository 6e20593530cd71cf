//! The environment of ranks.

use super::options::{Inherit, Variables};
use super::program::Program;
use super::{guardian, itself, places};
use cohort_base::boot::{AUDIT_LIBRARY, LATER, MALLOC_LIBRARY};
use cohort_manager::is_managers;
use pip_ground::Environment;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Thread-local data that libraries may have which are opened later, as glibc has it, and what a few libraries have
/// that we did not find.
const OPENED_LATER: u64 = 4096;

/// A setting for Valgrind: what it has the C library free at the end comes partly from the linker's own allocator if
/// the linker is audited, and it would report that.
const VALGRIND: &str = "--run-libc-freeres=no";

/// A setting of the dynamic linker: how much room for thread-local data it keeps.
const ROOM: &str = "glibc.rtld.optional_static_tls=";

/// By this gfortran's library writes lines as they end, as it does on a terminal. Whoever fails ends all other ranks,
/// and what they hold back would be lost.
const WHOLE_LINES: &str = "GFORTRAN_UNBUFFERED_PRECONNECTED";

/// What every rank finds in its environment that inherits this of ours.
pub fn of_ranks(variables: &Variables, inherit: &Inherit, job: &str) -> Environment {
    let is_passed_on = |name: &OsStr| {
        let text = name.to_string_lossy();
        let is_others = is_managers(&text) || places::is_place(&text);
        inherit.takes(name) && (variables.keep_manager || !is_others)
    };
    let inherited = variables.around.iter().filter(|(name, _)| is_passed_on(name));
    let mut common: Environment = inherited.map(|(name, value)| (name.clone(), value.clone())).collect();
    if !std::io::stdout().is_terminal() {
        common.entry(WHOLE_LINES.into()).or_insert_with(|| "y".into());
    }
    common.extend(variables.set.iter().cloned());
    common.extend([(guardian::VARIABLE.into(), job.into())]);
    common
}

/// The variables as `NAME=VALUE`.
pub fn entries(environment: &Environment) -> impl Iterator<Item = OsString> + '_ {
    environment.iter().map(|(name, value)| {
        let mut entry = name.clone();
        entry.push("=");
        entry.push(value);
        entry
    })
}

/// The environment of a program that may start others, by which these get our MPI, and it too. Its libraries have so
/// many bytes of `thread_local` data.
pub fn of_starters(
    environment: &Environment,
    audit: Option<PathBuf>,
    libraries: Option<&Path>,
    thread_local: u64,
) -> Environment {
    let mut environment = environment.clone();
    match (audit, libraries) {
        (Some(audit), _) => {
            put_first(&mut environment, "LD_AUDIT", audit.as_os_str(), ":");
            // An audited linker decides how much thread-local data it has room for before it knows what it will load.
            let room = thread_local.saturating_mul(2).saturating_add(OPENED_LATER);
            let room = format!("{ROOM}{room}");
            put_first(&mut environment, "GLIBC_TUNABLES", OsStr::new(&room), ":");
            put_first(&mut environment, "VALGRIND_OPTS", OsStr::new(VALGRIND), " ");
        }
        (None, Some(folder)) => put_first(&mut environment, "LD_LIBRARY_PATH", folder.as_os_str(), ":"),
        (None, None) => {}
    }
    environment
}

/// The environment of a rank that shares its address space with others and runs this program. What is linked to our MPI
/// does without what starters have, but what it executes has it.
pub fn of_mapped(environment: &Environment, starters: &Environment, is_linked: bool, program: &Program) -> Environment {
    let mut mapped = environment.clone();
    for (name, value) in starters {
        let is_new = environment.get(name) != Some(value);
        let name = match is_linked {
            true if is_new && name != "VALGRIND_OPTS" => [OsStr::new(LATER), name.as_os_str()].into_iter().collect(),
            true => continue,
            false => name.clone(),
        };
        mapped.insert(name, value.clone());
    }
    mapped.insert(itself::PROGRAM.into(), program.file.clone().into());
    mapped.insert(itself::CALLED.into(), program.name.clone());
    mapped
}

/// The environment of what the kernel executes, by which its linker loads this library before all others.
pub fn preloading(mut environment: Environment, library: Option<&Path>) -> Environment {
    if let Some(library) = library {
        put_first(&mut environment, "LD_PRELOAD", library.as_os_str(), ":");
    }
    environment
}

/// The variables that [`of_starters`] and [`preloading`] put words before.
pub const PREFIXED: [&str; 4] = ["LD_AUDIT", "GLIBC_TUNABLES", "VALGRIND_OPTS", "LD_PRELOAD"];

/// Whether [`of_starters`] or [`preloading`] puts such a word before a list.
pub fn is_ours(word: &[u8]) -> bool {
    let file = Path::new(OsStr::from_bytes(word)).file_name();
    let is_library = [AUDIT_LIBRARY, MALLOC_LIBRARY].iter().any(|name| file == Some(OsStr::new(name)));
    is_library || word.starts_with(ROOM.as_bytes()) || word == VALGRIND.as_bytes()
}

/// Takes the first word off a list if it is one of these.
pub fn take_first(environment: &mut Environment, name: &str, is_taken: fn(&[u8]) -> bool) {
    let Some(value) = environment.remove(OsStr::new(name)) else {
        return;
    };
    let bytes = value.as_bytes();
    let end = bytes.iter().position(|byte| b": ".contains(byte));
    let (word, rest) = match end {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[][..]),
    };
    let rest = match is_taken(word) {
        true if rest.is_empty() => return,
        true => OsStr::from_bytes(rest).to_owned(),
        false => value,
    };
    environment.insert(name.into(), rest);
}

/// Puts a word at the beginning of a list, with this between words.
pub fn put_first(environment: &mut Environment, name: &str, word: &OsStr, between: &str) {
    let value = environment.entry(name.into()).or_default();
    let rest = std::mem::replace(value, word.to_owned());
    if !rest.is_empty() {
        value.push(between);
        value.push(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_before_a_list_can_be_taken_off() {
        let user: Environment = [("LD_AUDIT", "/x/own.so"), ("GLIBC_TUNABLES", "a=b:c=d")]
            .map(|(name, value)| (name.into(), value.into()))
            .into();
        let library = Path::new("/opt/lib").join(AUDIT_LIBRARY);
        let starters = of_starters(&user, Some(library), None, 0);
        assert_ne!(starters, user);
        let malloc = Path::new("/opt/lib").join(MALLOC_LIBRARY);
        let mut starters = preloading(starters, Some(&malloc));
        assert_eq!(starters[OsStr::new("LD_PRELOAD")], malloc);
        for _ in 0..2 {
            for name in PREFIXED.into_iter().chain(["MISSING"]) {
                take_first(&mut starters, name, is_ours);
            }
            assert_eq!(starters, user);
        }
    }
}
