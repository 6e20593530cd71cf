//! Programs that a compiler's checker watches: AddressSanitizer and its like.
//!
//! They keep their notes at fixed addresses, those of all memory, so an address space has room for one of them.

use super::environment::put_first;
use pip_ground::{Environment, voice};
use std::ffi::OsStr;
use std::path::Path;

/// ThreadSanitizer does not know our libraries, which were built without it: what threads tell each other through MPI
/// is no race. Without this setting it reports one for each copy that they make.
const THREADS: &str = "ignore_noninstrumented_modules=1";

/// Puts what the checker has to know before what the user tells it.
pub fn inform(environment: &mut Environment) {
    put_first(environment, "TSAN_OPTIONS", OsStr::new(THREADS), ":");
}

/// Says why ranks do not share an address space.
pub fn advise(program: &Path, checker: &str) {
    voice::advise(format_args!(
        "{} is watched by {checker}, which needs an address space of its own, so each rank is a process of its own and \
         the network joins them",
        program.display()
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_says_comes_last_and_counts() {
        let own = ("TSAN_OPTIONS".into(), "halt_on_error=1".into());
        let mut environment = Environment::from([own]);
        inform(&mut environment);
        let value = |name: &str| environment[OsStr::new(name)].to_string_lossy();
        assert_eq!(value("TSAN_OPTIONS"), format!("{THREADS}:halt_on_error=1"));
    }
}
