//! Debuggers and profilers that look at ranks from outside: the commands of docs/insight.md.

use crate::command::Program;
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, event, place, programs, trial};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![trial("tools/gdb, gcore and strace see a rank".into(), attached)]
}

/// Rank 0 computes and rank 1 waits in functions whose names are known.
fn attached() -> Outcome {
    let launcher = place::built_file("pip-exec")?;
    let source = place::root().join("tests/programs/tools/attached.c");
    let program = programs::compile_as("attached", &source, Abi::Mpi5, &["-g".into()])?;
    let end = place::scratch()?.join(format!("attached-{}", std::process::id()));
    let _ = std::fs::remove_file(&end);
    let mut looked = Ok(());
    let job = Program::new(&launcher).args(["-n", "2"]);
    let ended = job.arg(program).arg(&end).seconds(600).run_with(|job| {
        looked = look(&launcher, job);
        // Whatever was seen, the job ends.
        let _ = std::fs::write(&end, "");
    });
    let _ = std::fs::remove_file(&end);
    looked?;
    ended?.expect_code(0).map(drop)
}

fn look(launcher: &Path, job: u32) -> Outcome {
    picture(launcher, job)?;
    let ranks = children(job)?;
    let [first, second] = ranks[..] else {
        return Err(format!("two ranks are none of {ranks:?}"));
    };

    let frames = ["in MPI_Recv", "in waits_here () at", "in main"];
    let live = gdb(&["-p", &second.to_string()])?;
    expect(&live, "gdb -p", &frames)?;

    let core = place::scratch()?.join("attached-core");
    let mut gcore = Command::new("gcore");
    output(gcore.arg("-o").arg(&core).arg(second.to_string()))?;
    let core = PathBuf::from(format!("{}.{second}", core.display()));
    let dead = gdb(&[&launcher.display().to_string(), &core.display().to_string()]);
    let _ = std::fs::remove_file(&core);
    expect(&dead?, "gdb with a core", &frames)?;

    expect(&strace(first)?, "strace -p", &["access("])
}

/// Waits until the job's picture says where both ranks are. A rank that computes tells when it next has a CPU, which
/// may be later than the picture waits for.
fn picture(launcher: &Path, job: u32) -> Outcome {
    let parts = ["rank 1: MPI_Recv from 0, tag 42", "waits_here at attached.c:13", "computes_here at attached.c:"];
    // The job may not have begun.
    event::says(&parts, || output(Command::new(launcher).args(["--inspect", &job.to_string()])))
}

/// What gdb prints with our script.
fn gdb(what: &[&str]) -> Result<String, String> {
    let script = place::root().join("pip-loader/gdb/cohort-gdb.py");
    let mut gdb = Command::new("gdb");
    gdb.args(["-q", "-batch"]).args(what).arg("-x").arg(&script);
    let orders = ["cohort-ranks", "cohort-symbols", "backtrace"];
    output(gdb.args(orders.iter().flat_map(|order| ["-ex", order])))
}

/// The calls of the system that a process makes, until there are some.
fn strace(process: u32) -> Result<String, String> {
    let calls = place::scratch()?.join("attached-strace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-p", &process.to_string(), "-o"]).arg(&calls);
    strace.stdin(Stdio::null()).stderr(Stdio::null());
    let mut strace = strace.spawn().map_err(|error| format!("strace: {error}"))?;
    let text = event::found("calls that strace shows", || {
        let text = std::fs::read_to_string(&calls).unwrap_or_default();
        Ok(text.contains("access(").then_some(text))
    });
    // The kernel lets the process go on then.
    let _ = strace.kill();
    let _ = strace.wait();
    text
}

fn expect(text: &str, what: &str, wanted: &[&str]) -> Outcome {
    match wanted.iter().find(|wanted| !text.contains(**wanted)) {
        Some(lacks) => Err(format!("{what} lacks {lacks:?}:\n{text}")),
        None => Ok(()),
    }
}

/// The processes that a process has started.
fn children(of: u32) -> Result<Vec<u32>, String> {
    let path = format!("/proc/{of}/task/{of}/children");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let mut found: Vec<u32> = text.split_whitespace().flat_map(str::parse).collect();
    found.sort_unstable();
    Ok(found)
}

/// What a command prints; with what it says if it fails.
fn output(command: &mut Command) -> Result<String, String> {
    let line = format!("{command:?}");
    let ended = command.stdin(Stdio::null()).output();
    let ended = ended.map_err(|error| format!("{line}: {error}"))?;
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&ended.stderr);
    match ended.status.success() {
        true => Ok(said),
        false => Err(format!("{line}: {}\n{said}{complaints}", ended.status)),
    }
}
