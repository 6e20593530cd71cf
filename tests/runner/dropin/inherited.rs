//! What whoever has started the launcher has left behind: signals that it ignores, variables of a step of Slurm's,
//! libraries that it loads first.

use super::{MPI4PY, mpich, one_world, two, world};
use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, event, place, programs, trial};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;

/// A rank that says that it waits, and takes a while to end when it is told to.
const SAVES: &str = "trap 'sleep 1; echo saved; exit 0' TERM; : > \"$0/$PMI_RANK\"; while :; do sleep 0.1; done";

/// The bit of SIGPIPE in a mask of the kernel's.
const PIPE: u64 = 1 << 12;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    type Body = fn() -> Outcome;
    let named: [(&str, Body); 9] = [
        ("isolated ranks within a step of Slurm's", step),
        ("a hang-up that is ignored", hang_up),
        ("SIGINT that is ignored", in_background),
        ("SIGPIPE that is ignored", pipe),
        ("two signals to end are one", twice),
        ("input for a rank that is none", no_reader),
        ("a manager's variables that ranks see", kept),
        ("another MPI's RPATH in what loads a library", chain),
        ("another MPI that is preloaded is refused", preloaded),
    ];
    named.map(|(name, body)| trial(format!("dropin/inherited/{name}"), body)).into()
}

/// As with `--keep-pmi`: they do not make the ranks another launcher's, whose MPI is left alone.
fn kept() -> Outcome {
    let python = place::cached("mpi4py-beside-mpich-venv/bin/python", "beside")?;
    ["PMI_PORT", "PMIX_NAMESPACE"].into_iter().try_for_each(|name| {
        let run = two()?.args(["-env", name, "x"]).arg(&python);
        one_world(run.args(["-c", MPI4PY]).run()?).map(drop)
    })
}

fn step() -> Outcome {
    let run = two()?.arg("--isolate").arg(world()?);
    one_world(run.env("SLURM_STEP_ID", "0").env("SLURM_JOB_ID", "7").run()?).map(drop)
}

/// Two ranks that wait, in a job whose launcher `env` starts with these words; `meddle` has the launcher's process
/// when they do.
fn saving(words: &[&str], name: &str, meddle: impl FnOnce(Pid)) -> Result<Ended, String> {
    let folder = place::scratch()?.join(name);
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let here = |rank: &str| folder.join(rank).exists();
    let mut waits = Ok(());
    let run = Program::new("env").args(words).arg(place::built_file("pip-exec")?);
    let run = run.args(["-n", "2", "sh", "-c", SAVES]).arg(&folder);
    let ended = run.seconds(60).run_with(|root| {
        waits = event::until("two ranks", || here("0") && here("1"));
        if let Some(root) = Pid::from_raw(root.cast_signed()) {
            meddle(root);
        }
    })?;
    waits.map_err(|problem| ended.failure(&problem))?;
    Ok(ended)
}

fn send(to: Pid, signal: Signal) {
    // One that has ended says so by its status.
    let _ = kill_process(to, signal);
}

/// It does not end the job, and is not what has when another signal does.
fn hang_up() -> Outcome {
    let ended = saving(&["--ignore-signal=HUP"], "hang-up", |root| {
        send(root, Signal::HUP);
        send(root, Signal::TERM);
    })?;
    match ended.says("SIGHUP") {
        true => Err(ended.failure("a signal was taken that is ignored")),
        false => ended.expect_code(128 + 15).map(drop),
    }
}

/// A script's background job ends by SIGINT, though such a script ignores it.
fn in_background() -> Outcome {
    let ended = saving(&["--ignore-signal=INT"], "background", |root| send(root, Signal::INT))?;
    ended.expect_code(128 + 2).map(drop)
}

/// Ranks get the time that one signal gives them.
fn twice() -> Outcome {
    let ended = saving(&[], "twice", |root| {
        send(root, Signal::TERM);
        send(root, Signal::HUP);
    })?;
    match ended.stdout.matches("saved").count() {
        2 => Ok(()),
        _ => Err(ended.failure("a rank had no time to end")),
    }
}

/// Ranks in the launcher's address space and others ignore what the launcher did, and nothing else.
fn pipe() -> Outcome {
    let program = programs::compile(&place::root().join("tests/programs/tools/ignores.c"), Abi::Mpich, &[])?;
    for (way, ignored) in [("--ignore-signal=PIPE", PIPE), ("--default-signal=PIPE", 0)] {
        for isolate in [None, Some("--isolate")] {
            let run = Program::new("env").arg(way).arg(place::built_file("pip-exec")?).args(["-n", "2"]);
            let ended = run.args(isolate).arg(&program).run()?.expect_code(0)?;
            let masks = ended.stdout.lines().filter_map(|line| line.strip_prefix("SigIgn:"));
            let masks: Vec<_> = masks.map(|mask| u64::from_str_radix(mask.trim(), 16).map(|it| it & PIPE)).collect();
            if masks != [Ok(ignored), Ok(ignored)] {
                return Err(ended.failure(&format!("expected {ignored:x} of SigIgn after {way}")));
            }
        }
    }
    Ok(())
}

fn no_reader() -> Outcome {
    let ended = two()?.args(["--stdin", "2"]).arg(world()?).run()?;
    match ended.code() {
        0 => Err(ended.failure("input was lost")),
        _ => ended.expect_text("--stdin 2: there is no such rank")?.expect_text("the last one is 1").map(drop),
    }
}

fn compile(arguments: &[&str], files: &[&Path]) -> Outcome {
    Program::new("cc").args(arguments).args(files).run()?.expect_code(0).map(drop)
}

/// The program's `DT_RPATH` leads to the other MPI, which a library of it needs that has none.
fn chain() -> Outcome {
    let folder = place::scratch()?;
    let [main, library, program] = ["main.c", "libcore.so", "chain"].map(|name| folder.join(name));
    let text = "int core(int, char **);\nint main(int count, char **words) { return core(count, words); }\n";
    std::fs::write(&main, text).map_err(|error| error.to_string())?;
    let mpi = mpich()?;
    let include = format!("-I{}", place::cached("mpich-venv/include", "mpich")?.display());
    let options = ["-O2", "-fPIC", "-shared", "-Dmain=core", &include, "-o"];
    compile(&options, &[&library, &place::root().join("tests/programs/tools/world.c"), &mpi])?;
    let others = mpi.parent().unwrap_or(&mpi).display();
    let rpath = format!("-Wl,--disable-new-dtags,-rpath,{}:{others}", folder.display());
    compile(&["-O2", &rpath, "-o"], &[&program, &main, &library])?;
    one_world(two()?.arg(program).run()?).map(drop)
}

/// Its path is refused, its name leads to ours.
fn preloaded() -> Outcome {
    let mpi = mpich()?;
    let ended = two()?.args(["-genv", "LD_PRELOAD"]).arg(&mpi).arg(world()?).run()?;
    if ended.code() == 0 {
        return Err(ended.failure("another MPI was taken"));
    }
    ended.expect_text("LD_PRELOAD has ")?.expect_text("another MPI's library")?;
    let named = two()?.args(["-genv", "LD_PRELOAD", "libmpi.so.12"]).arg(world()?);
    one_world(named.run()?).map(drop)
}
