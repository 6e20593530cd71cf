//! The options that ask jobs that run already.

use super::super::readers::some;
use super::super::{Ask, values};
use super::{Row, Scope, row};

/// All of them.
pub static RUNNING: &[Row] = &[
    row(
        "--ps",
        "",
        Scope::Here,
        "list them: launcher's process, ranks, start, CPU time, command",
        |r| some(&mut r.options.ask, Ok(Ask::Jobs)),
    ),
    row(
        "--inspect",
        "PID",
        Scope::Here,
        "what each rank of the job does now; PID is that of a launcher or of a rank",
        |r| {
            let pid = values::number(r.option, &r.words.value(r.option)?, "a process");
            some(&mut r.options.ask, pid.map(Ask::Inspect))
        },
    ),
];
