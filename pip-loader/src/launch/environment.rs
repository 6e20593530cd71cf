//! The environment of ranks.

use super::options::{Inherit, Options};
use super::{guardian, places};
use cohort_manager::is_managers;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Thread-local data that libraries may have which are opened later, as glibc has it, and what a few libraries have
/// that we did not find.
const LATER: u64 = 4096;

/// Variables and their values.
pub type Environment = BTreeMap<OsString, OsString>;

/// A setting for Valgrind: what it has the C library free at the end comes partly from the linker's own allocator if
/// the linker is audited, and it would report that.
const VALGRIND: &str = "--run-libc-freeres=no";

/// What every rank finds in its environment that inherits this of ours.
pub fn of_ranks(options: &Options, inherit: &Inherit, job: &str) -> Environment {
    let is_passed_on = |name: &OsString| {
        let text = name.to_string_lossy();
        let is_others = is_managers(&text) || places::is_place(&text);
        inherit.takes(name) && (options.keep_manager || !is_others)
    };
    let inherited = std::env::vars_os().filter(|(name, _)| is_passed_on(name));
    let mut common: Environment = inherited.collect();
    common.extend(options.environment.iter().cloned());
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
            let room = thread_local.saturating_mul(2).saturating_add(LATER);
            let room = format!("glibc.rtld.optional_static_tls={room}");
            put_first(&mut environment, "GLIBC_TUNABLES", OsStr::new(&room), ":");
            put_first(&mut environment, "VALGRIND_OPTS", OsStr::new(VALGRIND), " ");
        }
        (None, Some(folder)) => {
            put_first(&mut environment, "LD_LIBRARY_PATH", folder.as_os_str(), ":")
        }
        (None, None) => {}
    }
    environment
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
