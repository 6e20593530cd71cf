//! Programs that a compiler's checker watches: AddressSanitizer and its like.
//!
//! They keep their notes at fixed addresses, those of all memory, so an address space has room for one of them.

use super::environment::{Environment, put_first};
use super::say;
use std::ffi::OsStr;
use std::path::Path;

/// How the names of their libraries begin, behind `lib` or `libclang_rt.`.
const LIBRARIES: [(&str, &str); 4] = [
    ("asan", "AddressSanitizer"),
    ("hwasan", "HWAddressSanitizer"),
    ("lsan", "LeakSanitizer"),
    ("tsan", "ThreadSanitizer"),
];

/// ThreadSanitizer does not know our libraries, which were built without it: what threads tell each other through MPI
/// is no race. Without this setting it reports one for each copy that they make.
const THREADS: &str = "ignore_noninstrumented_modules=1";

/// ThreadSanitizer's library has this much thread-local data, for which a linker with an auditing library leaves no
/// room of its own accord.
const ROOM: &str = "glibc.rtld.optional_static_tls=1048576";

/// The checker whose library the environment loads before all others.
pub fn preloaded(environment: &Environment) -> Option<&'static str> {
    let list = environment.get(OsStr::new("LD_PRELOAD"))?.to_string_lossy();
    list.split([':', ' ']).find_map(|path| {
        let file = Path::new(path).file_name()?.to_str()?;
        let file = file
            .strip_prefix("libclang_rt.")
            .or_else(|| file.strip_prefix("lib"))?;
        let named = |(start, _): &&(&str, &str)| {
            let rest = file.strip_prefix(start);
            rest.is_some_and(|rest| rest.starts_with(['.', '-', '_']))
        };
        LIBRARIES.iter().find(named).map(|(_, name)| *name)
    })
}

/// Puts what the checker has to know before what the user tells it.
pub fn inform(environment: &mut Environment) {
    put_first(environment, "TSAN_OPTIONS", OsStr::new(THREADS), ":");
    put_first(environment, "GLIBC_TUNABLES", OsStr::new(ROOM), ":");
}

/// Says why ranks do not share an address space.
pub fn advise(program: &Path, checker: &str) {
    say(format_args!(
        "{} is watched by {checker}, which needs an address space of its own, so each rank is a process of its own and \
         the network joins them",
        program.display()
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variable: &str, value: &str) -> Environment {
        Environment::from([(variable.into(), value.into())])
    }

    #[test]
    fn preloaded_libraries_are_recognised() {
        let checker = |list: &str| preloaded(&with("LD_PRELOAD", list));
        assert_eq!(checker("/usr/lib/libasan.so.8"), Some("AddressSanitizer"));
        assert_eq!(
            checker("libx.so libclang_rt.tsan-x86_64.so"),
            Some("ThreadSanitizer")
        );
        for other in [
            "",
            "libjemalloc.so.2",
            "libasanas.so",
            "libubsan.so.1",
            "asan",
        ] {
            assert_eq!(checker(other), None, "{other}");
        }
    }

    #[test]
    fn what_the_user_says_comes_last_and_counts() {
        let mut environment = with("TSAN_OPTIONS", "halt_on_error=1");
        inform(&mut environment);
        let value = |name: &str| environment[OsStr::new(name)].to_string_lossy();
        assert_eq!(value("TSAN_OPTIONS"), format!("{THREADS}:halt_on_error=1"));
        assert_eq!(value("GLIBC_TUNABLES"), ROOM);
    }
}
