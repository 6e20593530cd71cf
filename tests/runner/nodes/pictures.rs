//! What the ranks of several nodes do, in one picture: before the job ends, by a signal, and for who asks; and in one
//! table.

use super::hosts::{Hosts, namespaces_work};
use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, event, place, programs, trial};
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("nodes/one picture when the time is over".into(), over),
        trial("nodes/one picture for who asks".into(), asked),
    ]
}

fn hangs() -> Result<PathBuf, String> {
    let source = place::root().join("tests/programs/tools/hangs.c");
    programs::compile_as("nodes-hangs", &source, Abi::Mpich, &["-pthread".to_owned()])
}

/// That a picture is shown once, of all ranks.
fn expect_one(ended: Ended, headline: &str) -> Result<Ended, String> {
    let count = ended.stderr.matches(headline).count();
    match count {
        1 => Ok(ended),
        count => Err(ended.failure(&format!("{count} pictures"))),
    }
}

fn over() -> Outcome {
    let hosts = Hosts::new(2)?;
    let job = hosts.pip_exec("2")?.args(["--timeout", "12"]);
    let job = job.arg(hangs()?).arg("wrong_tag").seconds(60);
    let ended = job.env("COHORT_DEADLOCK", "off").run()?.expect_code(124)?;
    let ended = expect_one(ended, "what the ranks did when the time was over:")?;
    ended
        .expect_text("rank 1: MPI_Recv from 0, tag 42, MPI_COMM_WORLD of 4")?
        .expect_text("in receive at hangs.c")?
        .expect_text("rank 2: MPI_Barrier, MPI_COMM_WORLD of 4, waits for rank 0")?
        .expect_text("rank 3: MPI_Barrier, MPI_COMM_WORLD of 4, waits for rank 2")?
        .expect_text("nobody in this circle can go on: rank 0 waits for rank 1")
        .map(drop)
}

/// The launcher of a host, when the job runs there.
pub fn launcher(hosts: &Hosts, host: u32) -> Result<Pid, String> {
    event::found(&format!("a job on host {host}"), || {
        let listed = ask(hosts, host, &["--ps"])?;
        let mut lines = listed.lines().skip(1);
        let pid = lines.find_map(|line| line.split_whitespace().next()?.parse().ok());
        Ok(pid.and_then(Pid::from_raw))
    })
}

/// What `pip-exec` says on a host.
fn ask(hosts: &Hosts, host: u32, words: &[&str]) -> Result<String, String> {
    let pip_exec = place::built_file("pip-exec")?;
    let asked: Program = hosts.program(host, pip_exec).args(words).seconds(30);
    Ok(asked.run()?.expect_code(0)?.stdout)
}

/// Asks until the picture has all of these.
fn shows(hosts: &Hosts, pid: Pid, parts: &[&str]) -> Result<(), String> {
    let pid = pid.as_raw_nonzero().to_string();
    event::says(parts, || ask(hosts, 0, &["--inspect", &pid]))
}

/// Asks for a table until it has all of these.
fn table(hosts: &Hosts, pid: Pid, parts: &[&str]) -> Result<(), String> {
    let top = format!("--top={}", pid.as_raw_nonzero());
    let words = [&top, "--delay", "0.2", "--times", "1"];
    event::says(parts, || ask(hosts, 0, &words))
}

/// The picture by `--inspect`, while a node does not answer, by SIGQUIT, and before SIGTERM ends the job.
fn asked() -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?;
    let job = hosts.pip_exec("2")?.arg(hangs()?).arg("lost_message");
    let mut looked = Ok(());
    let ended = job.env("COHORT_DEADLOCK", "off").seconds(200).run_with(|_| {
        looked = look(&hosts);
        // Whatever was seen, the job ends.
        let first = launcher(&hosts, 0);
        let _ = first.map(|first| kill_process(first, Signal::TERM));
    });
    looked?;
    let ended = expect_one(ended?, "what the ranks do:")?;
    let ended = expect_one(ended, "what the ranks did:")?;
    ended.expect_code(143).map(drop)
}

/// Asks the first launcher, also while the second one is stopped.
fn look(hosts: &Hosts) -> Result<(), String> {
    let (first, second) = (launcher(hosts, 0)?, launcher(hosts, 1)?);
    let all = [
        "rank 3 on node 1",
        "rank 1: MPI_Recv from 0, tag 7, MPI_COMM_WORLD of 4",
        "rank 3: MPI_Barrier, MPI_COMM_WORLD of 4, waits for rank 2",
        "nobody in this circle can go on: rank 0 waits for rank 1",
    ];
    shows(hosts, first, &all)?;
    table(hosts, first, &["4 ranks, ", "\n    3    1 "])?;
    let send = |pid, signal| kill_process(pid, signal).map_err(|it| it.to_string());
    send(second, Signal::STOP)?;
    let silent = ["has not answered; ranks 2-3 may do anything there", all[1]];
    let seen = shows(hosts, first, &silent).and_then(|()| table(hosts, first, &["2 ranks, ", "does not answer"]));
    send(second, Signal::CONT)?;
    seen?;
    shows(hosts, first, &all)?;
    send(first, Signal::QUIT)?;
    shows(hosts, first, &all)
}
