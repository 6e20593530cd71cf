//! `pip-exec`: starts N ranks in one address space. See `pip-exec --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    pip_loader::launch::check_own_stack();
    // The network library, if it is loaded, hears of descriptors through these.
    cohort_interpose::keep();
    pip_loader::launch::become_program(std::env::args_os());
    if let Some(status) = pip_loader::launch::serve_founder() {
        return ExitCode::from(status as u8);
    }
    let status = pip_loader::launch::run(std::env::args_os().skip(1).collect());
    // Statuses beyond a byte do not exist: the kernel keeps the low one.
    ExitCode::from(status as u8)
}
