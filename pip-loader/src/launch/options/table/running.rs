//! The options that ask jobs that run already.

use super::super::readers::{set, some};
use super::super::values;
use super::{Row, Scope, row};
use pip_ground::Refusal;
use pip_insight::ask::{Ask, Sort, Wanted};
use std::ffi::OsStr;
use std::time::Duration;

/// The value of `--delay`.
fn delay(option: &str, value: &OsStr) -> Result<Duration, Refusal> {
    let what = "seconds, 0.1 to 60";
    match values::number(option, value, what)? {
        seconds if (0.1..=60.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(Refusal::new(format!("option {option} takes {what}"))),
    }
}

/// All of them.
pub static RUNNING: &[Row] = &[
    row("--ps", "", Scope::Here, "list them: launcher's process, ranks, start, CPU time, command", |r| {
        some(&mut r.options.instead.ask, Ok(Ask::Jobs))
    }),
    row(
        "--inspect",
        "PID",
        Scope::Here,
        "what each rank of the job does now; PID is that of a launcher or of a rank",
        |r| {
            let pid = values::number(r.option, &r.words.value(r.option)?, "a process");
            some(&mut r.options.instead.ask, pid.map(Ask::Inspect))
        },
    ),
    row(
        "--top",
        "[=PID]",
        Scope::Here,
        "watch that job, or the only one: state, time in MPI, messages, steals of each rank; plain tables when piped",
        |r| {
            let pid = match r.words.attached.take() {
                Some(pid) => Some(values::number(r.option, &pid, "a process")?),
                None => r.words.next_number(),
            };
            let wanted = Wanted { pid, ..Wanted::default() };
            some(&mut r.options.instead.ask, Ok(Ask::Top(wanted)))
        },
    ),
    row("--delay", "SECONDS", Scope::Here, "with --top: time between two tables (default 2)", |r| {
        set(&mut r.options.instead.watch.delay, delay(r.option, &r.words.value(r.option)?))
    }),
    row("--times", "N", Scope::Here, "with --top: end after N tables", |r| {
        let times = values::number(r.option, &r.words.value(r.option)?, "a number of tables");
        some(&mut r.options.instead.watch.times, times)
    }),
    row(
        "--sort",
        "rank|mpi|cpu|messages|bytes|steals|memory",
        Scope::Here,
        "with --top: the order of the ranks",
        |r| {
            let sort = values::choose(r.option, &r.words.value(r.option)?, &Sort::ALL);
            set(&mut r.options.instead.watch.sort, sort)
        },
    ),
];
