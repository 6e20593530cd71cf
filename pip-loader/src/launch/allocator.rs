//! Whose `malloc` ranks have (`COHORT_MALLOC`).

use super::environment::put_first;
use super::libraries::Dependencies;
use cohort_base::boot::{BLOCKS_LIBRARY, MALLOC_LIBRARY};
use cohort_base::check::{self, Mistake};
use cohort_base::settings::{CHECK, JEMALLOC, KEEP, MALLOC};
use pip_ground::{Environment, Refusal, voice};
use pip_load::boot;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Settings of glibc's `malloc` for [`KEEP`]: it takes no mapping of its own for a block, takes memory by 16 MB, and
/// gives none back.
const KEEPS: &str = "glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=1073741824:\
                     glibc.malloc.top_pad=16777216";

/// The same in place of its own beginnings: where it comes to by itself when the program has freed a block of 32 MB.
/// Otherwise the first long blocks are mapped and unmapped, which all ranks of an address space wait for.
const SETTLED: &str = "glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=67108864";

/// Other variables that say the same as these settings, which win over them.
const ALIASES: [(&str, &str); 3] = [
    ("glibc.malloc.mmap_threshold", "MALLOC_MMAP_THRESHOLD_"),
    ("glibc.malloc.trim_threshold", "MALLOC_TRIM_THRESHOLD_"),
    ("glibc.malloc.top_pad", "MALLOC_TOP_PAD_"),
];

/// Tells a rank's C library what to do with what the program frees. What the user says to it comes behind, and wins.
pub fn set_thresholds(environment: &mut Environment) {
    let thresholds = match asks_for(environment, KEEP) {
        true => KEEPS,
        false => SETTLED,
    };
    let is_free = |setting: &&str| {
        let mut aliases = ALIASES.iter().filter(|(name, _)| setting.split('=').next() == Some(name));
        aliases.all(|(_, alias)| !environment.contains_key(OsStr::new(alias)))
    };
    let thresholds: Vec<&str> = thresholds.split(':').filter(is_free).collect();
    if !thresholds.is_empty() {
        put_first(environment, "GLIBC_TUNABLES", OsStr::new(&thresholds.join(":")), ":");
    }
}

/// Whether the setting has this value.
fn asks_for(environment: &Environment, value: &str) -> bool {
    environment.get(OsStr::new(MALLOC)).is_some_and(|given| given == value)
}

/// The library with the `malloc` that a rank is to have in place of the C library's, or the file of the program or of a
/// library of it that has one already.
///
/// # Errors
/// The library is missing.
pub fn choose(
    environment: &Environment,
    own: &Path,
    dependencies: &Dependencies,
) -> Result<(Option<PathBuf>, Option<PathBuf>), Refusal> {
    if !asks_for(environment, JEMALLOC) {
        return Ok((None, None));
    }
    match dependencies.own_malloc() {
        Some(file) => Ok((None, Some(file.to_owned()))),
        None => Ok((Some(library(own)?), None)),
    }
}

/// The library that notes the blocks of the C library's `malloc` for the checker, if it wants to know of them and the
/// program has that `malloc`.
pub fn observer(environment: &Environment, own: &Path, dependencies: &Dependencies) -> Option<PathBuf> {
    let asked = environment.get(OsStr::new(CHECK)).and_then(|value| check::asked(value.to_str()?));
    let wants = asked.is_some_and(|asked| asked.kinds.has(Mistake::Memory));
    let is_it = wants && !asks_for(environment, JEMALLOC) && dependencies.has_glibc_malloc();
    is_it.then(|| find(own, BLOCKS_LIBRARY)).flatten()
}

/// A library of ours, beside this program in the folder `own` or where its libraries are installed.
fn find(own: &Path, name: &str) -> Option<PathBuf> {
    let mut files = boot::FOLDERS.iter().map(|folder| own.join(folder).join(name));
    files.find_map(|file| file.canonicalize().ok())
}

/// The library with jemalloc.
///
/// # Errors
/// It is missing.
fn library(own: &Path) -> Result<PathBuf, Refusal> {
    let folders = boot::FOLDERS.map(|folder| own.join(folder));
    let found = find(own, MALLOC_LIBRARY);
    let [first, second] = &folders;
    found.ok_or_else(|| {
        Refusal::new(format!(
            "{MALLOC_LIBRARY} is missing in {} and in {}: the installation is incomplete; without {MALLOC}={JEMALLOC} \
             ranks have the C library's malloc",
            first.display(),
            second.display(),
        ))
    })
}

/// Says that a program keeps the `malloc` that it brings.
pub fn advise(program: &Path, file: &Path) {
    let brings = match program.file_name() == file.file_name() {
        true => String::new(),
        false => format!(", that of {}", file.display()),
    };
    voice::advise(format_args!(
        "{} has a malloc of its own{brings}, and keeps it: {MALLOC}={JEMALLOC} has no effect",
        program.display(),
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(value: &str) -> Environment {
        [(MALLOC, value), ("GLIBC_TUNABLES", "a=b")].map(|(name, value)| (name.into(), value.into())).into()
    }

    #[test]
    fn thresholds_are_those_asked_for_and_the_users_win() {
        let tunables = |value| {
            let mut environment = environment(value);
            set_thresholds(&mut environment);
            environment[OsStr::new("GLIBC_TUNABLES")].clone()
        };
        assert_eq!(tunables("libc"), format!("{SETTLED}:a=b").as_str());
        assert_eq!(tunables(JEMALLOC), format!("{SETTLED}:a=b").as_str());
        assert_eq!(tunables(KEEP), format!("{KEEPS}:a=b").as_str());
        let mut own = environment("libc");
        own.insert("MALLOC_TRIM_THRESHOLD_".into(), "0".into());
        set_thresholds(&mut own);
        assert_eq!(own[OsStr::new("GLIBC_TUNABLES")], "glibc.malloc.mmap_threshold=33554432:a=b");
        own.insert("MALLOC_MMAP_THRESHOLD_".into(), "65536".into());
        own.remove(OsStr::new("GLIBC_TUNABLES"));
        set_thresholds(&mut own);
        assert!(!own.contains_key(OsStr::new("GLIBC_TUNABLES")));
    }

    #[test]
    fn a_missing_library_is_named_with_the_way_out() {
        let refusal = library(Path::new("/nonexistent/bin")).expect_err("is missing");
        let text = refusal.to_string();
        for part in [MALLOC_LIBRARY, "/nonexistent/bin/../lib/cohort", "COHORT_MALLOC=jemalloc"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
