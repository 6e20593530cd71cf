//! What lives in a rank's process beside MPI: allocators that are preloaded, OpenMP, processes of Python's.

use super::{one_world, two};
use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::path::PathBuf;

/// Allocators that people preload.
const ALLOCATORS: [&str; 3] = ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"];

/// Arguments of `pip-exec` under which a team of OpenMP keeps to its rank's CPUs.
const TEAMS: [&[&str]; 4] = [
    &["-genv", "OMP_NUM_THREADS", "3"],
    &["-genv", "OMP_PROC_BIND", "close"],
    &["--bind-to", "core", "-genv", "OMP_NUM_THREADS", "2"],
    &["--bind-to", "core", "-genv", "OMP_PLACES", "threads", "-genv", "OMP_PROC_BIND", "spread"],
];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for library in ALLOCATORS {
        let name = format!("dropin/neighbours/{library}");
        trials.push(trial(name, move || allocator(library)));
    }
    for options in TEAMS {
        let name = format!("dropin/neighbours/OpenMP {}", options.join(" "));
        trials.push(trial(name, move || team(options)));
    }
    for method in ["fork", "spawn", "forkserver"] {
        let name = format!("dropin/neighbours/multiprocessing with {method}");
        trials.push(trial(name, move || processes(method)));
    }
    let name = "dropin/neighbours/an isolated rank is its program to the kernel";
    trials.push(trial(name.into(), executed));
    let name = "dropin/neighbours/what a rank sets for all is told once";
    trials.push(trial(name.into(), sets));
    trials.push(trial("dropin/neighbours/a process of a rank changes what holds for all ranks".into(), weighed));
    trials.push(trial("dropin/neighbours/a rank becomes another user".into(), another_user));
    for words in [&[][..], &["--isolate"], &["env", "A=1"], &["--isolate", "env", "A=1"]] {
        let name = format!("dropin/neighbours/a rank knows its place before MPI {}", words.join(" "));
        trials.push(trial(name.trim_end().into(), move || placed(words)));
    }
    let name = "dropin/neighbours/a pool of mpi4py that cannot spawn ends";
    trials.push(trial(name.into(), pool));
    trials
}

/// A program of `tests/programs/tools`.
fn compiled(name: &str, options: &[&str]) -> Result<PathBuf, String> {
    let source = place::root().join(format!("tests/programs/tools/{name}.c"));
    let options: Vec<String> = options.iter().map(|&option| option.into()).collect();
    programs::compile(&source, Abi::Mpich, &options)
}

/// One world, and not a word more.
fn quiet(ended: Ended) -> Outcome {
    let ended = one_world(ended)?;
    match ended.stdout.lines().count() {
        2 => Ok(()),
        _ => Err(ended.failure("expected two lines")),
    }
}

/// Ranks that share memory and ranks that do not; programs that are linked to MPI, and Pythons that open it.
fn allocator(library: &str) -> Outcome {
    let program = compiled("allocating", &[])?;
    let preload = ["-genv", "LD_PRELOAD", library];
    for words in [&[][..], &["--isolate"], &["env"]] {
        quiet(two()?.args(preload).args(words).arg(&program).run()?)?;
    }
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    quiet(two()?.args(preload).arg(python).args(["-c", super::MPI4PY]).run()?)
}

fn team(options: &[&str]) -> Outcome {
    let program = compiled("teams", &["-fopenmp"])?;
    let apart = options.contains(&"core").then_some("apart");
    quiet(two()?.args(options).arg(program).args(apart).run()?)
}

/// A script for mpi4py's Python, in a file: its child processes import it.
fn python(name: &str, text: &str) -> Result<crate::command::Program, String> {
    let script = place::scratch()?.join(name);
    std::fs::write(&script, text).map_err(|error| error.to_string())?;
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    Ok(two()?.arg(python).arg(script).seconds(30))
}

/// Child processes that import mpi4py too are no ranks.
fn processes(method: &str) -> Outcome {
    let text = format!(
        "from mpi4py import MPI\n\
         import multiprocessing\n\
         def square(x): return x * x\n\
         if __name__ == '__main__':\n\
         \x20   with multiprocessing.get_context('{method}').Pool(2) as pool:\n\
         \x20       assert pool.map(square, range(4)) == [0, 1, 4, 9]\n\
         \x20   world = MPI.COMM_WORLD\n\
         \x20   print(f'size {{world.size}} sum {{world.allreduce(world.rank + 1)}}', flush=True)\n"
    );
    quiet(python(&format!("processes-{method}.py"), &text)?.run()?)
}

/// The manager thread of the pool fails, which nobody else hears of.
fn pool() -> Outcome {
    let text = "from mpi4py.futures import MPIPoolExecutor\n\
        if __name__ == '__main__':\n\
        \x20   with MPIPoolExecutor(2) as pool:\n\
        \x20       print(list(pool.map(abs, range(3))))\n";
    let script = place::scratch()?.join("pool.py");
    std::fs::write(&script, text).map_err(|error| error.to_string())?;
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let ended = two()?.arg("--isolate").arg(&python).arg(&script).seconds(30).run()?.expect_code(1)?;
    ended.expect_text("cannot start its workers")?.expect_text("python -m mpi4py.futures").map(drop)
}

/// What looks for a program's functions, as gfortran's backtraces do, finds the file so.
fn executed() -> Outcome {
    let text = "import os, sys\n\
        assert os.path.samefile('/proc/self/exe', sys.executable), os.readlink('/proc/self/exe')\n";
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let run = two()?.arg("--isolate").arg(python).args(["-c", text]);
    run.run()?.expect_code(0).map(drop)
}

fn placed(words: &[&str]) -> Outcome {
    let ended = two()?.args(words).arg(compiled("own_place", &[])?).run()?.expect_code(0)?;
    match ended.stdout.matches("wrong 0\n").count() {
        2 => Ok(()),
        _ => Err(ended.failure("expected two ranks that know their places")),
    }
}

/// A rank that changes what the kernel keeps with the address space is told so once, each setting, and gets it.
fn sets() -> Outcome {
    let program = compiled("sets", &[])?;
    let run = |options: &[&str], arguments: &[&str]| {
        let pip_exec = Program::new(place::built_file("pip-exec")?).directory(&place::scratch()?);
        pip_exec
            .args(options.iter().copied().chain(["-n", "2"]))
            .arg(&program)
            .args(arguments)
            .run()?
            .expect_code(0)?
            .expect_text("passed")
    };
    let told = |ended: &Ended, words: &str| {
        let is_it = |line: &&str| line.starts_with("cohort: rank 1 ") && line.contains(words);
        ended.stderr.lines().filter(is_it).count()
    };
    for arguments in ["0", "1", "2", "3", "4", "5"].map(|how| [how, "self"]) {
        // Without the second word it is the file of `/proc/self`.
        let alone = &arguments[..1];
        for arguments in [&arguments[..], alone] {
            let ended = run(&[], arguments)?;
            for words in [
                "sets PR_SET_DUMPABLE to 0 (prctl), which holds for all ranks of the node",
                "sets PR_SET_THP_DISABLE to 1 (prctl), which holds for all ranks of the node",
                "writes to its oom_score_adj, which holds for all ranks of the node",
                "writes to its clear_refs, which holds for all ranks of the node",
                "sets RLIMIT_AS to 70368744177664 bytes (setrlimit), which holds for all ranks of the node",
                "unlocks its memory (munlockall), which holds for all ranks of the node",
            ] {
                if told(&ended, words) != 1 {
                    return Err(ended.failure(&format!("not once: {words}")));
                }
            }
            let mut lines = 6;
            // What the kernel and the limits of this machine allow.
            for (done, words) in [("merges\n", "PR_SET_MEMORY_MERGE to 1 (prctl)"), ("locks\n", " locks its memory (")]
            {
                let expected = ended.stdout.matches(done).count();
                if told(&ended, words) != expected {
                    return Err(ended.failure(&format!("not as often as done: {words}")));
                }
                lines += expected;
            }
            if ended.stderr.matches("unlocks its memory").count() != 1 {
                return Err(ended.failure("rank 0 is told what rank 1 has been told"));
            }
            if told(&ended, "pip-exec --isolate") != lines {
                return Err(ended.failure(&format!("not {lines} lines")));
            }
        }
    }
    let ended = run(&[], &[])?;
    if told(&ended, "oom_score_adj") != 0 {
        return Err(ended.failure("said of what was not done"));
    }
    let ended = run(&["--isolate"], &["0"])?;
    match told(&ended, "holds for all") {
        0 => Ok(()),
        _ => Err(ended.failure("said of an address space of its own")),
    }
}

/// A process that a rank has started writes to the rank's file.
fn weighed() -> Outcome {
    let order = "test \"$(cat /proc/$PPID/oom_score_adj)\" != 777 && echo 777 >/proc/$PPID/oom_score_adj";
    let run = |options: &[&str]| two()?.args(options).arg(compiled("orders", &[])?).arg(order).run()?.expect_code(0);
    run(&[])?.expect_text("passed")?.expect_text("is 777: what somebody has written to that file of one of them")?;
    let ended = run(&["--isolate"])?.expect_text("passed")?;
    match ended.stderr.contains("777") {
        false => Ok(()),
        true => Err(ended.failure("said of an address space of its own")),
    }
}

/// A rank becomes another user: the others are told what they lose, once, and it still ends with its launcher. Nobody
/// but root can try.
fn another_user() -> Outcome {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let ended = two()?.arg(compiled("orders", &[])?).args(["true", "65534"]).run()?.expect_code(0)?;
    let ended = ended.expect_text("passed")?;
    let words = "cohort: rank 1 changes its user or group (setresgid), which holds for all ranks of the node";
    match (ended.stderr.matches(words).count(), ended.stderr.matches("changes its").count()) {
        (1, 1) => Ok(()),
        _ => Err(ended.failure("it is not said once")),
    }
}
