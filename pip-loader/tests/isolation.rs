//! What ranks do not share although they share an address space.

mod support;

use std::collections::HashSet;
use std::process::Command;
use support::{Folder, pip_exec, run, run_command};

fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let fields = line.split_whitespace().filter_map(|word| word.split_once('='));
    fields.into_iter().find(|(key, _)| *key == name).expect("the fixture prints it").1
}

#[test]
fn every_rank_has_its_own_identity() {
    let folder = Folder::new("identity");
    let program = folder.compile("identity.c", "identity", &[]);
    let line = format!("-n 3 {0} a b : -n 2 {0}", program.display());
    let outcome = run(&line);
    let mut lines = outcome.lines();
    lines.sort_unstable();
    let distinct = |name| lines.iter().map(|line| field(line, name)).collect::<HashSet<_>>().len();
    assert_eq!(lines.len(), 5);
    assert_eq!((distinct("pid"), distinct("random")), (5, 5), "{lines:?}");
    let column = |name| lines.iter().map(|line| field(line, name)).collect::<Vec<_>>();
    assert_eq!(column("rank"), ["0", "1", "2", "3", "4"]);
    assert_eq!(column("app"), ["0", "0", "0", "1", "1"]);
    assert_eq!(column("argc"), ["3", "3", "3", "1", "1"]);
    assert_eq!(column("secure"), ["0"; 5]);
    assert!(column("argv0").iter().all(|name| *name == program.to_str().unwrap()));
}

#[test]
fn process_state_is_private() {
    let folder = Folder::new("private");
    let program = folder.compile("private.c", "private", &[]);
    let outcome = run(&format!("-n 8 {}", program.display()));
    assert_eq!(outcome.lines(), ["done"; 8]);
}

#[test]
fn heaps_are_private_under_threads() {
    let folder = Folder::new("malloc");
    let program = folder.compile("malloc_stress.c", "stress", &[]);
    let outcome = run(&format!("-n 8 {}", program.display()));
    assert_eq!(outcome.lines(), ["done"; 8]);
}

#[test]
fn descriptors_that_execve_would_close_are_closed() {
    let script = "ls /proc/$$/fd";
    let direct = Command::new("sh").args(["-c", script]).output().expect("a shell");
    let direct = String::from_utf8(direct.stdout).expect("numbers");
    let mut command = pip_exec(["-n", "2", "--label", "sh", "-c", script]);
    let outcome = run_command(&mut command, b"");
    let lines = outcome.lines();
    for rank in ["[0] ", "[1] "] {
        let of_rank: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix(rank)).collect();
        assert_eq!(of_rank, direct.lines().collect::<Vec<_>>(), "rank {rank}");
    }
}

#[test]
fn each_program_has_its_directory_and_environment() {
    let words = ["-genv", "A", "1", "-n", "1", "-wdir", "/usr", "-env", "COHORT_OWN", "2", "sh", "-c"];
    let script = "echo $PWD-$(pwd -P)-$A-$COHORT_OWN";
    let mut command = pip_exec(words);
    command.arg(script).args([":", "-n", "1", "sh", "-c", script]).env("COHORT_OWN", "0");
    command.current_dir("/");
    let outcome = run_command(&mut command, b"");
    let mut lines: Vec<&str> = outcome.lines().iter().map(|line| line.split_once('-').unwrap().1).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["/-1-0", "/usr-1-2"]);
}

#[test]
fn the_stack_has_the_wanted_size() {
    let folder = Folder::new("stack");
    let program = folder.compile("stack_size.c", "stack", &["-fno-stack-protector"]);
    for (size, said) in [("1M", "stack=1024K inside=1"), ("64M", "stack=65536K inside=1")] {
        let mut command = pip_exec(["-n", "3", program.to_str().unwrap()]);
        command.env("COHORT_STACKSIZE", size);
        assert_eq!(run_command(&mut command, b"").lines(), [said; 3]);
    }
}

#[test]
fn bound_ranks_run_on_their_core() {
    let words = ["-n", "2", "--bind-to", "core", "grep", "Cpus_allowed_list", "/proc/self/status"];
    let outcome = run_command(&mut pip_exec(words), b"");
    assert_eq!(outcome.lines().len(), 2);
    let outcome = run("-n 2 -c 0 --map-by socket true");
    assert_eq!(outcome.lines().len(), 0);
}

/// The first CPU that this process may use.
fn first_allowed_cpu() -> String {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("the kernel tells");
    let end = |letter: char| !letter.is_ascii_digit();
    let first = list.trim().split(end).next();
    first.expect("one at least").to_owned()
}

#[test]
fn ranks_of_a_restricted_job_stay_on_its_cpus() {
    let cpu = first_allowed_cpu();
    for level in ["none", "core", "l3cache", "numa", "socket"] {
        let mut command = Command::new("taskset");
        command
            .args(["-c", &cpu, env!("CARGO_BIN_EXE_pip-exec"), "--no-mpi"])
            .args(["-n", "3", "--bind-to", level])
            .args(["grep", "Cpus_allowed_list", "/proc/self/status"]);
        let outcome = run_command(&mut command, b"");
        let expected = format!("Cpus_allowed_list:\t{cpu}");
        assert_eq!(outcome.lines(), [expected.as_str(); 3], "{level}");
    }
}

#[test]
fn the_machine_is_shown_with_ranks_beside_their_core() {
    let cpu = first_allowed_cpu();
    let outcome = run(&format!("--topology -n 1 -c {cpu} /nonexistent"));
    let rows = outcome.lines();
    let core = rows.iter().find(|row| row.ends_with(" rank 0"));
    assert!(core.is_some_and(|row| row.contains("core, CPU")), "{rows:?}");
    assert_eq!(rows.last(), Some(&"1 rank, bound by core"));
}

#[test]
fn ranks_begin_sessions_of_their_own_where_they_are_told_to() {
    // Of /proc/PID/stat the first number is the pid and the sixth that of the session.
    let script = "read -r all </proc/$$/stat; set -- $all; test $1 = $6 && echo own || echo common";
    for (option, session) in [("--own-sessions", "own"), ("-l", "common")] {
        let words = ["--no-mpi", option, "-n", "2", "sh", "-c", script];
        let outcome = run_command(&mut pip_exec(words), &[]);
        let lines = outcome.lines();
        assert!(lines.len() == 2 && lines.iter().all(|line| line.ends_with(session)), "{option}: {lines:?}");
    }
}
