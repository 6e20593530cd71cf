//! What wrappers execute shares an address space, and has all that they have set up; if one rank cannot, none does.

use super::{MPI4PY, one_world, two, world, write_program};
use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::path::PathBuf;

/// How the line begins that says that ranks share no memory, after the name of a wrapper.
const ADVICE: &str = "is not linked to MPI, so each rank is";

/// What scripts do before they execute a program, which is `$0` and has the argument `$1`.
const SET_UPS: [&str; 9] = [
    "export W_A=1 W_B='x y'; exec \"$0\" \"$1\"",
    "cd /usr; umask 027; exec -a 'a name' \"$0\" \"$1\"",
    "trap '' HUP PIPE USR1; exec \"$0\" \"$1\"",
    "exec env --block-signal=USR2 --ignore-signal=TERM \"$0\" \"$1\"",
    "ulimit -S -s 4096; ulimit -n 77; ulimit -c 0; exec \"$0\" \"$1\"",
    "ulimit -S -s unlimited 2>/dev/null; exec \"$0\" \"$1\"",
    "exec nice -n 3 ionice -c 2 -n 7 \"$0\" \"$1\" </etc/passwd",
    "exec chrt -b 0 taskset -c 0 \"$0\" \"$1\"",
    "exec numactl --interleave=0 env -u W_A \"$0\" \"$1\"",
];

/// What a task cannot take over.
const OTHERS: [&str; 7] = [
    "exec setarch -R \"$0\"",
    "exec 3</etc/passwd; exec \"$0\"",
    "setsid sleep 1 & exec \"$0\"",
    "ulimit -S -v 40000000; exec \"$0\"",
    "exec setsid \"$0\"",
    "export COHORT_STATS=0; exec \"$0\"",
    "exec \"$0\" <&-",
];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for script in SET_UPS {
        let name = format!("dropin/sharing/{script}");
        trials.push(trial(name, move || set_up(script)));
    }
    for script in OTHERS {
        let name = format!("dropin/sharing/apart: {script}");
        trials.push(trial(name, move || apart(script)));
    }
    type Body = fn() -> Outcome;
    let named: [(&str, Body); 8] = [
        ("Python with mpi4py", python),
        ("a Python that executes a program", starter),
        ("a script that executes its arguments", executes),
        ("one part has a wrapper", one_part),
        ("one rank has started its program by fork", one_forked),
        ("one rank ends instead", one_ended),
        ("--isolate keeps ranks apart", isolated),
        ("each rank's output has its place", output),
    ];
    let named = named.map(|(name, body)| trial(format!("dropin/sharing/{name}"), body));
    trials.extend(named);
    trials
}

/// `inherited.c`, which prints what it finds.
fn inherited() -> Result<PathBuf, String> {
    let source = place::root().join("tests/programs/tools/inherited.c");
    programs::compile_as("inherited", &source, Abi::Mpich, &[])
}

/// Nothing said that ranks share no memory.
fn shared(ended: Ended) -> Result<Ended, String> {
    let ended = ended.expect_code(0)?;
    match ended.stderr.is_empty() {
        true => Ok(ended),
        false => Err(ended.failure("expected not a word on stderr")),
    }
}

/// A line said why ranks share no memory.
fn not_shared(ended: Ended) -> Result<Ended, String> {
    let ended = ended.expect_code(0)?;
    match ended.stderr.matches(ADVICE).count() {
        1 => Ok(ended),
        _ => Err(ended.failure("expected one line about memory")),
    }
}

/// The lines that the ranks wrote, in their order.
fn lines(ended: &Ended) -> Vec<&str> {
    let mut lines: Vec<&str> = ended.stdout.lines().collect();
    lines.sort_unstable();
    lines
}

/// The program finds the same whether the kernel has executed it in the wrapper's process or it shares memory.
fn set_up(script: &str) -> Outcome {
    let words = ["bash", "-c", script];
    let run = |run: Program| run.args(words).arg(inherited()?).arg("an argument").run();
    let apart = run(two()?.arg("--isolate"))?.expect_code(0)?;
    let shared = shared(run(two()?)?)?;
    let (apart_lines, shared_lines) = (lines(&apart), lines(&shared));
    match apart_lines == shared_lines && apart_lines.len() == 2 {
        true => Ok(()),
        false => {
            Err(format!("{}\n{}", apart.failure("expected this twice"), shared.failure("but in one address space")))
        }
    }
}

/// The ranks are one world in processes of their own.
fn apart(script: &str) -> Outcome {
    let run = two()?.args(["bash", "-c", script]).arg(world()?).run()?;
    not_shared(one_world(run)?).map(drop)
}

fn executes() -> Outcome {
    let script = place::scratch()?.join("executes-world.sh");
    write_program(&script, "#!/bin/sh\ncd /\nexec \"$@\"\n")?;
    shared(one_world(two()?.arg(script).arg(world()?).run()?)?).map(drop)
}

/// `pip-exec -n 1 PROGRAM : -n 1 env PROGRAM`, and which program each is part of.
fn one_part() -> Outcome {
    let program = inherited()?;
    let pip_exec = || Ok::<_, String>(Program::new(place::built_file("pip-exec")?));
    let mixed = pip_exec()?.args(["-n", "1"]).arg(&program);
    let mixed = mixed.args([":", "-n", "1", "env"]).arg(&program).run()?;
    let mixed = shared(mixed)?;
    let plain = pip_exec()?.args(["-n", "1"]).arg(&program);
    let plain = plain.args([":", "-n", "1"]).arg(&program).run()?;
    let plain = shared(plain)?;
    match lines(&mixed) == lines(&plain) && lines(&mixed).len() == 2 {
        true => Ok(()),
        false => Err(mixed.failure(&format!("expected {}", plain.stdout))),
    }
}

fn one_forked() -> Outcome {
    let script = "if [ $PMI_RANK = 0 ]; then exec \"$0\"; else \"$0\"; fi; exit 0";
    let run = two()?.args(["bash", "-c", script]).arg(world()?).run()?;
    not_shared(one_world(run)?).map(drop)
}

/// The rank that waits at the door is missed, as if it had begun.
fn one_ended() -> Outcome {
    let script = "if [ $PMI_RANK = 0 ]; then exec \"$0\"; fi";
    let run = two()?.args(["bash", "-c", script]).arg(world()?).run()?;
    let ended = run.expect_code(1)?;
    ended.expect_text("rank 1 ended without calling MPI_Init").map(drop)
}

/// A Python of a virtual environment, by its name in `PATH`; a program as text and as file.
fn python() -> Outcome {
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let folder = python.parent().ok_or("a folder")?;
    let path = format!("PATH={}:/usr/bin:/bin", folder.display());
    let program = place::scratch()?.join("sharing-mpi4py.py");
    write_program(&program, MPI4PY)?;
    let folder = program.parent().ok_or("a folder")?;
    let text = two()?.args(["env", &path, "python", "-u", "-c", MPI4PY]).run()?;
    shared(one_world(text)?)?;
    let script = "cd \"$0\"; exec env \"$1\" python sharing-mpi4py.py";
    let file = two()?.args(["bash", "-c", script]).arg(folder).arg(path).run()?;
    shared(one_world(file)?).map(drop)
}

/// A Python that names no mpi4py is a wrapper like others.
fn starter() -> Outcome {
    let program = "import os, sys; os.execv(sys.argv[1], sys.argv[1:])";
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let run = two()?.arg("env").arg(python).args(["-c", program]).arg(world()?);
    shared(one_world(run.run()?)?).map(drop)
}

fn isolated() -> Outcome {
    let run = two()?.args(["--isolate", "env"]).arg(world()?).run()?;
    shared(one_world(run)?).map(drop)
}

/// Labels, files of the launcher's and a file of the script's own.
fn output() -> Outcome {
    let own = place::scratch()?.join("sharing-output");
    let script = "exec \"$0\" 2>\"$1.$PMI_RANK\"";
    let run = two()?.arg("-l").args(["bash", "-c", script]);
    let ended = shared(run.arg(world()?).arg(own).run()?)?;
    match lines(&ended) == ["[0] size 2 sum 3", "[1] size 2 sum 3"] {
        true => Ok(()),
        false => Err(ended.failure("expected two labelled lines")),
    }
}
