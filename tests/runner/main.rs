//! Integration tests: real programs under `pip-exec`, external suites, and the tidy checks.
//!
//! Run by `make test` after `make build`. Arguments are those of libtest: a filter
//! (`cargo test -p cohort-tests -- c/ring`), `--list`, `--test-threads`.
//!
//! | prefix      | what runs                                                    | module        |
//! |-------------|--------------------------------------------------------------|---------------|
//! | `tidy/`     | checks of the tree, which need no build                      | [`tidy`]      |
//! | `built/`    | checks of the built libraries                                | [`tidy`]      |
//! | `c/`        | `tests/programs/c/*.c` by their `//#` directives             | [`programs`]  |
//! | `judges/`   | real Fortran programs, by `tests/judges`                     | [`judges`]    |
//! | `reach/`    | Debian's programs for Open MPI, by `tests/reach`             | [`reach`]     |
//! | `arm/`      | 64-bit ARM in an emulated machine                            | [`arm`]       |
//! | `faults/`   | killed and aborting ranks                                    | [`faults`]    |
//! | `binaries/` | unmodified third-party binaries                              | [`binaries`]  |
//! | `dropin/`   | what people type for other MPIs, beside other MPIs          | [`dropin`]    |
//! | `ends/`     | how ranks end that are many                                  | [`ends`]      |
//! | `output/`   | what ranks print                                             | [`output`]    |
//! | `containers/` | what containers take away                                  | [`containers`] |
//! | `tools/`    | profiling tools between a program and MPI; what MPI_T lists  | [`profiling`], [`listed`], [`debuggers`] |
//! | `trace/`    | timelines: calls, messages, stolen work, killed jobs           | [`trace`]     |
//! | `install/`  | packages, each in a fresh place                              | [`install`]   |
//! | `instructions/` | what calls may take                                      | [`instructions`] |
//! | `check/`    | mistakes of programs, by `--check`                           | [`check`]     |
//! | `live/`     | jobs that run are listed, inspected and watched              | [`live`]      |
//! | `readme/`   | what README shows                                            | [`readme`]    |
//! | `nodes/`    | jobs of several nodes, in network namespaces                 | [`nodes`]     |
//! | `soak/`     | random programs against a model, `tests/soak`                | [`soak`]      |
//! | `managers/` | jobs under real process managers                             | [`nodes`]     |
//! | `mpi4py/`   | mpi4py's own suite, as `tests/suites/mpi4py.toml` lays it out | [`mpi4py`]    |

mod arm;
mod binaries;
mod check;
mod command;
mod containers;
mod costs;
mod cover;
mod debuggers;
mod directives;
mod dropin;
mod ends;
mod event;
mod faults;
mod fortran;
mod hang;
mod install;
mod instructions;
mod itself;
mod judges;
mod listed;
mod live;
mod mpi4py;
mod nodes;
mod openmpi;
mod output;
mod place;
mod profiling;
mod programs;
mod queue;
mod reach;
mod readme;
mod remains;
mod slice;
mod soak;
mod spawned;
mod stats;
mod tidy;
mod trace;
mod trials;

use libtest_mimic::Arguments;
use std::process::ExitCode;
use trials::{Outcome, Trial};

/// A named trial.
fn trial(name: String, body: impl Fn() -> Outcome + Send + Sync + 'static) -> Trial {
    Trial::new(name, body)
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = tidy::trials();
    trials.extend(programs::trials());
    trials.extend(fortran::trials());
    trials.extend(openmpi::trials());
    trials.extend(judges::trials());
    trials.extend(reach::trials());
    trials.extend(arm::trials());
    trials.extend(faults::trials());
    trials.extend(hang::trials());
    trials.extend(check::trials());
    trials.extend(binaries::trials());
    trials.extend(dropin::trials());
    trials.extend(ends::trials());
    trials.extend(output::trials());
    trials.extend(containers::trials());
    trials.extend(profiling::trials());
    trials.extend(debuggers::trials());
    trials.extend(listed::trials());
    trials.extend(trace::trials());
    trials.extend(install::trials());
    trials.extend(instructions::trials());
    trials.extend(live::trials());
    trials.extend(readme::trials());
    trials.extend(nodes::trials());
    trials.extend(soak::trials());
    trials.extend(spawned::trials());
    trials.extend(stats::trials());
    trials.extend(mpi4py::trials());
    trials.extend(itself::trials());
    let code = queue::run(&arguments, trials);
    nodes::remove_free();
    code
}
