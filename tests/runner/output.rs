//! What ranks print comes when it is printed, and whoever ends a job loses none of it.

use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::event;
use crate::trials::Trial;
use crate::{Outcome, fortran, place, programs, trial};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::path::PathBuf;

/// How rank 0 ends, the status of the job, and whether the line that it has begun comes too.
const ENDS: [(&str, i32, bool); 13] = [
    ("abort", 3, true),
    ("full", 3, true),
    ("locked", 3, true),
    ("another", 3, true),
    ("closed", 3, true),
    ("device", 3, true),
    ("error", 6, true),
    ("segv", 139, true),
    ("another_segv", 139, true),
    ("raise", 139, true),
    ("cabort", 134, true),
    ("exit", 3, true),
    ("return", 1, true),
];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (how, status, begun) in ENDS {
        // The kernel ends a rank in a space of its own, and what the program's own stream holds back is lost.
        let is_kernels = how == "another_segv";
        for isolated in [false, true].into_iter().filter(|isolated| !(*isolated && is_kernels)) {
            let name = if isolated { " in spaces of their own" } else { "" };
            let name = format!("output/nothing is lost by {how}{name}");
            trials.push(trial(name, move || ends(how, status, begun, isolated)));
        }
    }
    type Body = fn() -> Outcome;
    let named: [(&str, Body); 20] = [
        ("nothing is lost by SIGTERM", terminated),
        ("nothing is lost of Fortran's", fortrans),
        ("nothing is lost of C++'s", cpp),
        ("nothing is lost of a log", log),
        ("lines come as they are printed", as_printed),
        ("the program and its user choose otherwise", chosen),
        ("what is not implemented is said once", missing),
        ("a device that is full", full_device),
        ("a file that is full", full_file),
        ("a disk that is full", full_disk),
        ("a report that finds no room", full_report),
        ("nothing is lost of what a rank leaves behind for a while", left),
        ("what a rank leaves behind does not hold the job", || left_for_ever("")),
        ("what a rank leaves behind is not late", || left_for_ever("--timeout 4")),
        ("a rank that nobody may kill does not hold the job", unkillable),
        ("who writes for ever does not keep the job", for_ever),
        ("a reader that is gone at the end", unread),
        ("input that cannot be read", no_input),
        ("input of a terminal that stops the job", stopped),
        ("what a terminal tells its processes comes once", resized),
    ];
    let named = named.map(|(name, body)| trial(format!("output/{name}"), body));
    trials.extend(named);
    trials
}

fn program() -> Result<PathBuf, String> {
    let source = place::root().join("tests/programs/tools/prints.c");
    programs::compile(&source, Abi::Mpi5, &[])
}

/// A job of so many ranks, with further options.
fn job(ranks: &str, options: &[&str]) -> Result<Program, String> {
    let pip_exec = Program::new(place::built_file("pip-exec")?);
    Ok(pip_exec.args(["-n", ranks]).args(options).arg(program()?))
}

/// The lines of both ranks have come.
fn before(ended: Ended) -> Result<Ended, String> {
    ended.expect_text("rank 0: before\n")?.expect_text("rank 1: before\n")
}

fn ends(how: &str, status: i32, begun: bool, isolated: bool) -> Outcome {
    let options: &[&str] = if isolated { &["--isolate"] } else { &[] };
    let ended = before(job("2", options)?.arg(how).run()?)?.expect_text("whole\n")?;
    // A fault of a rank in a space of its own is the kernel's matter, and a line is what comes then.
    let is_fault = ["segv", "raise", "cabort"].contains(&how);
    let ended = match begun && !(isolated && is_fault) {
        true => ended.expect_text("begun")?,
        false => ended,
    };
    match how {
        "error" if ended.code() != 0 => Ok(()),
        _ => ended.expect_code(status).map(drop),
    }
}

/// A shell that runs the job with its output in this file.
fn into_file(job: &str, words: &[&str], file: &std::path::Path) -> Result<Program, String> {
    let script = format!("exec \"$0\" {job} \"$@\" > \"$FILE\"");
    let shell = Program::new("sh").args(["-c", &script]).env("FILE", file);
    Ok(shell.arg(place::built_file("pip-exec")?).arg(program()?).args(words))
}

fn has_come(file: &std::path::Path, lines: &[&str]) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    lines.iter().all(|line| text.contains(line))
}

const BOTH: [&str; 2] = ["rank 0: before\n", "rank 1: before\n"];

/// The lines have come before the job is told to end.
fn terminated() -> Outcome {
    let file = place::scratch()?.join("output");
    let mut come = Ok(());
    let ended = into_file("-n 2", &["term"], &file)?.run_with(|pid| {
        come = event::until("the lines", || has_come(&file, &BOTH));
        let pid = Pid::from_raw(pid as i32);
        pid.map(|pid| kill_process(pid, Signal::TERM));
    })?;
    come?;
    ended.expect_code(143).map(drop)
}

/// A shell that is a rank.
fn shells(script: &str) -> Result<Program, String> {
    let pip_exec = Program::new(place::built_file("pip-exec")?);
    Ok(pip_exec.args(["-n", "2", "--no-mpi", "bash", "-c", script]))
}

/// The end of a script does not wait for those that it writes to.
fn left() -> Outcome {
    let ended = shells("exec > >(sleep 0.5; cat); seq 50000; echo whole")?.run()?.expect_code(0)?;
    match ended.stdout.matches("\n50000\n").count() == 2 && ended.stdout.matches("whole\n").count() == 2 {
        true => ended.expect_text("whole\n").map(drop),
        false => Err(ended.failure("lines are missing")),
    }
}

fn left_for_ever(options: &str) -> Outcome {
    // The runner looks for what is left when the shell ends.
    let script = "\"$0\" $1 -n 2 --no-mpi sh -c 'sleep 600 & echo $! >>pids; echo whole'; \
                  status=$?; kill $(cat pids); exit $status";
    let folder = place::scratch()?;
    let _ = std::fs::remove_file(folder.join("pids"));
    let shell = Program::new("sh").directory(&folder).args(["-c", script]).arg(place::built_file("pip-exec")?);
    let ended = shell.arg(options).run()?.expect_code(0)?.expect_text("whole\n")?;
    ended.expect_text("(sleep), left behind by ranks, may write to the output of the ranks").map(drop)
}

/// A rank becomes another user's, whose processes the launcher may not kill. Where no user may become another one,
/// the rank has ended by itself.
fn unkillable() -> Outcome {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let script = "rm -f nobodys; setpriv --bounding-set -kill --inh-caps -kill \"$0\" --timeout 2 --grace 0.1 \
                  -n 2 --no-mpi sh -c 'test $PMI_RANK = 0 || exec sleep 600; echo $$ >nobodys; \
                  exec setpriv --reuid 65534 --clear-groups sleep 600'; \
                  status=$?; kill -9 $(cat nobodys); exit $status";
    let shell = Program::new("sh").directory(&place::scratch()?).args(["-c", script]);
    let ended = shell.arg(place::built_file("pip-exec")?).run()?.expect_code(124)?;
    ended.expect_text("was killed and does not end: it is another user's, or in the kernel").map(drop)
}

fn fortrans() -> Outcome {
    let job = Program::new(place::built_file("pip-exec")?).args(["-n", "2"]);
    let ended = job.arg(fortran::ours("last_words.f90")?).run()?;
    before(ended)?.expect_code(3).map(drop)
}

/// A stream that does not write through the C library's.
fn cpp() -> Outcome {
    let program = place::scratch()?.join("prints");
    let mpi = place::cached("mpich-venv/lib", "mpich")?;
    let compiler = Program::new("c++").args(["-Wall", "-Wextra", "-o"]).arg(&program);
    let compiler = compiler.arg(place::root().join("tests/programs/tools/prints.cpp"));
    let compiler = compiler.arg(format!("-I{}", mpi.join("../include").display()));
    let compiler = compiler.arg(format!("-L{}", mpi.display())).args(["-lmpi", "-Wl,--allow-shlib-undefined"]);
    compiler.seconds(120).run()?.expect_code(0)?;
    for options in [&["-n", "2"][..], &["-n", "2", "--isolate"]] {
        let job = Program::new(place::built_file("pip-exec")?).args(options).arg(&program);
        job.run()?.expect_text("whole\nbegun")?.expect_code(3)?;
    }
    // What a buffer of the program's own says is its own matter.
    let job = Program::new(place::built_file("pip-exec")?).args(["-n", "1"]).arg(&program);
    job.arg("refused").run()?.expect_code(0)?;
    let script = "ulimit -f 1; trap '' XFSZ; exec \"$0\" -n 1 \"$1\" many >\"$2\"";
    let shell = Program::new("sh").args(["-c", script]).arg(place::built_file("pip-exec")?).arg(&program);
    let ended = shell.arg(place::scratch()?.join("full")).run()?.expect_code(1)?;
    ended.expect_text("some of what the program printed is lost").map(drop)
}

/// A file of the program's own that it has not closed.
fn log() -> Outcome {
    let log = place::scratch()?.join("log");
    job("2", &[])?.arg("log").arg(&log).run()?.expect_code(3)?;
    match std::fs::read_to_string(&log) {
        Ok(text) if text == "whole\nbegun" => Ok(()),
        other => Err(format!("{}: {other:?}", log.display())),
    }
}

/// Whether to a file or a pipe, of one rank or two: the ranks go on when their lines have been seen.
fn as_printed() -> Outcome {
    for (job, lines) in [("-n 1", &BOTH[..1]), ("-n 2", &BOTH), ("--isolate -n 2", &BOTH)] {
        let folder = place::scratch()?;
        let (file, sign) = (folder.join("output"), folder.join("sign"));
        let _ = std::fs::remove_file(&sign);
        let _ = std::fs::remove_file(&file);
        let words: [OsString; 2] = ["wait".into(), sign.clone().into()];
        let shell = into_file(job, &[], &file)?.args(words);
        let mut come = Ok(());
        let ended = shell.run_with(|_| {
            come = event::until("the lines", || has_come(&file, lines));
            let _ = std::fs::write(&sign, "");
        })?;
        come?;
        ended.expect_code(0)?;
    }
    Ok(())
}

fn chosen() -> Outcome {
    let says = |ended: Ended, lines: i32| ended.expect_code(0)?.expect_text(&format!("lines {lines}\n"));
    says(job("2", &[])?.arg("habit").run()?, 1)?;
    says(job("2", &[])?.arg("chosen").run()?, 0)?;
    says(job("2", &["stdbuf", "-o", "4096"])?.arg("habit").run()?, 0)?;
    // A program by itself has the C library's habits.
    says(Program::new(program()?).arg("habit").run()?, 0).map(drop)
}

/// Every rank calls it.
fn missing() -> Outcome {
    let ended = job("4", &[])?.arg("missing").run()?;
    match ended.stderr.matches("not implemented").count() {
        1 => ended.expect_text("docs/functions.md").map(drop),
        count => Err(ended.failure(&format!("it is said {count} times"))),
    }
}

/// Whoever wrote: a rank that has the device to itself, and ranks whose lines pass through pip-exec.
fn full_device() -> Outcome {
    for job in ["-n 1", "-n 2", "--isolate -n 2", "-n 1 --no-mpi echo text"] {
        let ended = into_file(job, &["habit"], "/dev/full".as_ref())?.run()?;
        ended.expect_code(1)?.expect_text("lost")?;
    }
    Ok(())
}

/// A rank that writes to the file itself.
fn full_file() -> Outcome {
    let file = place::scratch()?.join("output");
    let script = "ulimit -f 1; trap '' XFSZ; exec \"$0\" -n 1 \"$1\" \"$3\" 1000 > \"$2\"";
    // The second one writes through another stream than the C library's first, the third through none.
    for how in ["many", "another_many", "careless_many"] {
        let shell = Program::new("sh").args(["-c", script]);
        let shell = shell.arg(place::built_file("pip-exec")?).arg(program()?);
        let ended = shell.arg(&file).arg(how).run()?.expect_code(1)?;
        ended.expect_text("some of what the program printed is lost")?;
    }
    Ok(())
}

/// The same where the disk has no room; then a rank that prints nothing to an empty file there is told what may be.
fn full_disk() -> Outcome {
    let folder = place::scratch()?.join("full-disk");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let script = "mount -t tmpfs -o size=16k tmpfs \"$2\" && \"$0\" -n 1 \"$1\" \"$3\" 2000 >\"$2/output\"; \
                  echo \"status $?\"; \"$0\" -n 1 \"$1\" careless_many 0 >\"$2/empty\"; echo \"then $?\"";
    for how in ["many", "another_many", "careless_many"] {
        let shell = Program::new("unshare").args(["-m", "sh", "-c", script]);
        let shell = shell.arg(place::built_file("pip-exec")?).arg(program()?);
        let ended = shell.arg(&folder).arg(how).run()?.expect_code(0)?;
        let ended = ended.expect_text("some of what the program printed is lost")?;
        ended.expect_text("status 1\n")?.expect_text("an empty file on a full disk")?.expect_text("then 0\n")?;
    }
    Ok(())
}

/// The launcher's own files may not grow either, and no signal ends it for that. A setting for the one program of the
/// job (`-env`) is the job's.
fn full_report() -> Outcome {
    let script = "ulimit -f 1; exec \"$0\" -n 2 -env COHORT_STATS \"html:$2\" \"$1\" many 1 >/dev/null";
    let shell = Program::new("sh").args(["-c", script]).arg(place::built_file("pip-exec")?).arg(program()?);
    let ended = shell.arg(place::scratch()?.join("report.html")).run()?.expect_code(1)?;
    ended.expect_text("COHORT_STATS: the report is lost: File too large").map(drop)
}

/// The ranks end, and leave a process behind that writes until nobody reads.
fn for_ever() -> Outcome {
    let script = "exec \"$0\" -n 2 -l --no-mpi sh -c 'yes & exit 0' >/dev/null";
    let job = Program::new("sh").args(["-c", script]).arg(place::built_file("pip-exec")?);
    job.run()?.expect_code(0)?.expect_text("left behind by ranks").map(drop)
}

/// The last line finds nobody, at the moment in which the ranks end.
fn unread() -> Outcome {
    let script = "{ \"$0\" -n 2 -l --no-mpi sh -c 'sleep 0.1; echo last'; echo status $? >&2; } | :";
    for _ in 0..10 {
        let job = Program::new("sh").args(["-c", script]).arg(place::built_file("pip-exec")?);
        job.run()?.expect_text("status 141\n")?;
    }
    Ok(())
}

/// What every rank is to have is a folder.
fn no_input() -> Outcome {
    let script = "exec \"$0\" -n 2 --stdin all --no-mpi cat </";
    let job = Program::new("sh").args(["-c", script]).arg(place::built_file("pip-exec")?);
    job.run()?.expect_code(1)?.expect_text("standard input cannot be read").map(drop)
}

/// The time in which it is stopped is not the job's.
fn stopped() -> Outcome {
    let script = place::root().join("tests/programs/tools/background.py");
    let job = Program::new("python3").arg(script).arg("10").arg(place::built_file("pip-exec")?);
    let ended = job.args(["--timeout", "8", "--stdin", "all", "-n", "2", "--no-mpi", "cat"]).run()?.expect_code(0)?;
    // The terminal's echo is one more.
    match ended.stdout.matches("a line").count() {
        3 => Ok(()),
        _ => Err(ended.failure("each rank reads the line")),
    }
}

/// From the terminal, and not from pip-exec too.
fn resized() -> Outcome {
    let script = place::root().join("tests/programs/tools/resized.py");
    let job = Program::new("python3").arg(&script).arg(place::built_file("pip-exec")?);
    let ended = job.args(["-n", "1", "--no-mpi", "python3"]).arg(&script).arg("--rank").run()?;
    ended.expect_code(0)?.expect_text("heard 1 times").map(drop)
}
