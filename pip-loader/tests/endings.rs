//! How jobs end: statuses, signals, time limits, and nobody left behind.

mod support;

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};
use support::{
    Folder, Outcome, children, descendants, eventually, finish, is_running, pip_exec, run, run_command, start,
};

/// From the failure to the job's end: a second on an idle machine; a busy one gets more.
const PROMPT: Duration = Duration::from_secs(3);

fn shell(ranks: &str, script: &str) -> Outcome {
    run_command(&mut pip_exec(["-n", ranks, "sh", "-c", script]), b"")
}

fn send(pid: i32, signal: i32) {
    // SAFETY: the pid is that of a task that the test started.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

#[test]
fn the_status_is_that_of_the_first_rank_that_failed() {
    assert_eq!(shell("3", "exit 0").status, 0);
    let outcome = shell("3", "exit 7");
    assert_eq!(outcome.status, 7);
    assert!(outcome.error.contains("ended with status 7"), "{outcome:?}");
    let words = ["-n", "3", "sleep", "60", ":", "-n", "1", "sh", "-c", "exit 3"];
    let outcome = run_command(&mut pip_exec(words), b"");
    assert_eq!(outcome.status, 3);
    assert!(outcome.elapsed < PROMPT, "{outcome:?}");
    assert!(outcome.error.starts_with("pip-exec: rank 3 (pid "), "{outcome:?}");
}

#[test]
fn a_rank_that_ignores_sigterm_is_killed() {
    let script = "trap '' TERM; sleep 60";
    let words = ["-n", "2", "sh", "-c", script, ":", "-n", "1", "sh", "-c", "sleep 0.1; exit 3"];
    let outcome = run_command(&mut pip_exec(words), b"");
    assert_eq!(outcome.status, 3);
    assert!(outcome.elapsed < PROMPT + Duration::from_millis(100), "{outcome:?}");
}

#[test]
fn a_fault_is_described() {
    let folder = Folder::new("fault");
    let program = folder.compile("fault.c", "fault", &["-fno-stack-protector", "-fno-optimize-sibling-calls"]);
    let cases = [
        ("null", 139, "signal 11 (SIGSEGV), address 0x0, in memory of: unmapped (null pointer)"),
        ("wild", 139, "signal 11 (SIGSEGV), at an address that no pointer can have"),
        ("stack", 139, "in memory of: rank 1's stack guard (stack overflow; COHORT_STACKSIZE sets the size)"),
        ("frame", 139, "in memory of: rank 1's stack guard (stack overflow; COHORT_STACKSIZE sets the size)"),
        ("program", 139, "in memory of: rank 1's program"),
        ("library", 139, "in memory of: rank 1's library libc.so"),
        ("heap", 139, "in memory of: rank 1's heap"),
        ("abort", 134, "signal 6 (SIGABRT), by a call of abort"),
        ("kill", 137, "signal 9 (SIGKILL)"),
        ("divide", 136, "in memory of: rank 1's program"),
        // No handler finds room on that stack.
        ("stack thread", 139, "left no note of its address: perhaps the stack of a thread overflowed; ulimit -s"),
        ("stack prepared", 139, "it is protected (PROT_NONE) (the stack of a thread overflowed; ulimit -s"),
        ("null thread", 139, "signal 11 (SIGSEGV), address 0x0, in memory of: unmapped (null pointer)"),
    ];
    for (how, status, said) in cases {
        let outcome = run(&format!("-n 3 {} {how}", program.display()));
        assert_eq!(outcome.status, status, "{how}: {outcome:?}");
        assert!(outcome.error.starts_with("pip-exec: rank 1 (pid "), "{how}: {outcome:?}");
        assert!(outcome.error.lines().next().is_some_and(|line| line.contains(said)), "{how}: {outcome:?}");
        assert!(outcome.elapsed < PROMPT, "{how}: {outcome:?}");
    }
}

#[test]
fn a_fault_says_where_the_rank_has_been() {
    let folder = Folder::new("trace");
    let plain = ["-fno-stack-protector", "-fno-optimize-sibling-calls", "-fno-inline"];
    let lines = [&plain[..], &["-g"]].concat();
    let (named, stripped) = (folder.compile("fault.c", "named", &lines), folder.compile("fault.c", "plain", &plain));
    let cases: [(_, _, &[&str]); 7] = [
        (&named, "null", &["in write_to at fault.c:", "by fault at fault.c:", "by main at fault.c:"]),
        (&named, "null thread", &["in write_to at fault.c:", "by in_thread at fault.c:"]),
        (&named, "stack", &["in overflow at fault.c:", "..."]),
        (&named, "frame", &["in large at fault.c:", "by fault at fault.c:"]),
        (&named, "abort", &[" of libc.so", "by fault at fault.c:", "by main at"]),
        (&named, "divide", &["in fault at fault.c:"]),
        (&stripped, "null", &["in write_to of plain", "by main of plain"]),
    ];
    for (program, how, expected) in cases {
        let outcome = run(&format!("-n 2 {} {how}", program.display()));
        for text in expected {
            assert!(outcome.error.contains(text), "{how} {text}: {}", outcome.error);
        }
        assert!(outcome.error.lines().count() < 20, "{how}: {}", outcome.error);
    }
}

#[test]
fn a_job_that_runs_too_long_is_ended() {
    let outcome = run("-n 4 --timeout 0.3 sleep 60");
    assert_eq!(outcome.status, 124);
    assert!(outcome.error.contains("after 0.3 seconds"), "{outcome:?}");
    assert!(outcome.elapsed < PROMPT + Duration::from_millis(300), "{outcome:?}");
}

#[test]
fn signals_to_pip_exec_end_the_job() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let child = start(&mut pip_exec(["-n", "4", "sleep", "60"]));
        let root = child.id();
        eventually("all ranks run", || children(root).len() == 4);
        let ranks = children(root);
        let begin = Instant::now();
        send(root as i32, signal);
        let outcome = finish(child, begin);
        assert_eq!(outcome.status, 128 + signal);
        assert!(outcome.elapsed < PROMPT, "{outcome:?}");
        assert!(!ranks.into_iter().any(is_running));
    }
}

#[test]
fn a_job_whose_starter_ignores_its_children_ends() {
    let mut command = pip_exec(["-n", "2", "sh", "-c", "exit 7"]);
    // SAFETY: no handler; `signal` may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGCHLD, libc::SIG_IGN);
            Ok(())
        });
    }
    let outcome = run_command(&mut command, b"");
    assert_eq!(outcome.status, 7, "{outcome:?}");
}

#[test]
fn a_named_pipe_that_nobody_reads_is_refused() {
    let folder = Folder::new("unread");
    let pipe = folder.path().join("pipe");
    let name = std::ffi::CString::new(pipe.as_os_str().as_encoded_bytes()).unwrap();
    // SAFETY: a name that ends with a NUL.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let words = [OsStr::new("-outfile-pattern"), pipe.as_os_str(), OsStr::new("true")];
    let outcome = run_command(&mut pip_exec(words), b"");
    assert_ne!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.error.contains("nobody reads this named pipe"), "{outcome:?}");
}

#[test]
fn a_rank_that_signals_its_process_group_is_named() {
    let words = ["-n", "1", "sh", "-c", "kill 0", ":", "-n", "1", "sleep", "60"];
    // A group of its own: the test would end with the job.
    let outcome = run_command(pip_exec(words).process_group(0), b"");
    assert_eq!(outcome.status, 143, "{outcome:?}");
    assert!(outcome.error.starts_with("pip-exec: rank 0 (pid "), "{outcome:?}");
    assert!(outcome.error.contains(") sent SIGTERM to pip-exec, which ends the job"), "{outcome:?}");
}

#[test]
fn user_signals_to_pip_exec_reach_the_ranks() {
    let signals = [
        (libc::SIGUSR1, "USR1"),
        (libc::SIGUSR2, "USR2"),
        (libc::SIGTSTP, "TSTP"),
        (libc::SIGCONT, "CONT"),
        (libc::SIGWINCH, "WINCH"),
    ];
    for (signal, name) in signals {
        let folder = Folder::new(&format!("signal-{name}"));
        let script = format!(
            "trap 'echo saved; exit 0' {name}; >{}/$$; while true; do sleep 0.01; done",
            folder.path().display()
        );
        let begin = Instant::now();
        let child = start(&mut pip_exec(["-n", "3", "sh", "-c", &script]));
        let ready = || std::fs::read_dir(folder.path()).is_ok_and(|files| files.count() == 3);
        eventually("all ranks have their handlers", ready);
        send(child.id() as i32, signal);
        // pip-exec itself stops with its ranks; what continues it takes back a stop that it has not read.
        let ranks = children(child.id());
        eventually("the ranks end", || !ranks.iter().copied().any(is_running));
        send(child.id() as i32, libc::SIGCONT);
        let outcome = finish(child, begin);
        assert_eq!(outcome.lines(), ["saved"; 3], "{name}");
    }
}

#[test]
fn programs_may_save_what_they_have_when_their_time_is_over() {
    let script = "trap 'sleep 0.6; echo saved; exit 0' TERM; while true; do sleep 0.01; done";
    let outcome = run_command(&mut pip_exec(["-n", "2", "--timeout", "0.3", "sh", "-c", script]), b"");
    assert_eq!((outcome.status, &*outcome.output), (124, "saved\nsaved\n"), "{outcome:?}");
}

/// Ranks that write for longer than they may have after a failure, when pip-exec gets SIGTERM; what they said.
fn after_sigterm(words: &[&str], variable: Option<(&str, &str)>) -> support::Outcome {
    let folder = Folder::new("grace");
    let script = format!(
        "trap 'sleep 0.6; echo saved; exit 0' TERM; : > {}/$$; while true; do sleep 0.01; done",
        folder.path().display()
    );
    let words = [words, &["-n", "2", "sh", "-c", &script]].concat();
    let begin = Instant::now();
    let child = start(pip_exec(words).envs(variable));
    let ready = || std::fs::read_dir(folder.path()).is_ok_and(|files| files.count() == 2);
    eventually("both ranks have their handlers", ready);
    send(child.id() as i32, libc::SIGTERM);
    finish(child, begin)
}

#[test]
fn programs_may_save_what_they_have_after_sigterm() {
    let outcome = after_sigterm(&[], None);
    let said = (outcome.status, &*outcome.output);
    assert_eq!(said, (143, "saved\nsaved\n"), "{outcome:?}");
}

#[test]
fn the_time_for_that_is_what_the_user_says() {
    for (words, variable) in [(&["--grace", "0"][..], None), (&[], Some(("COHORT_GRACE", "0.1")))] {
        let outcome = after_sigterm(words, variable);
        let said = (outcome.status, &*outcome.output);
        assert_eq!(said, (143, ""), "{outcome:?}");
    }
    let refused = run_command(&mut pip_exec(["--grace", "x", "true"]), b"");
    assert!(refused.status == 2 && refused.error.contains("0 to 86400"), "{refused:?}");
}

#[test]
fn a_killed_rank_ends_the_job() {
    let child = start(&mut pip_exec(["-n", "4", "sleep", "60"]));
    let root = child.id();
    eventually("all ranks run", || children(root).len() == 4);
    let ranks = children(root);
    let begin = Instant::now();
    send(ranks[2], libc::SIGKILL);
    let outcome = finish(child, begin);
    assert_eq!(outcome.status, 137);
    assert!(outcome.error.contains(&format!("(pid {}) killed by signal 9", ranks[2])), "{outcome:?}");
    assert!(outcome.elapsed < PROMPT, "{outcome:?}");
    assert!(!ranks.into_iter().any(is_running));
}

#[test]
fn ranks_die_with_pip_exec() {
    let child = start(&mut pip_exec(["-n", "4", "sleep", "60"]));
    let root = child.id();
    eventually("all ranks run", || children(root).len() == 4);
    let ranks = children(root);
    send(root as i32, libc::SIGKILL);
    assert_eq!(finish(child, Instant::now()).status, -libc::SIGKILL);
    eventually("all ranks are gone", || !ranks.iter().copied().any(is_running));
}

#[test]
fn programs_that_ranks_started_die_with_pip_exec() {
    let folder = Folder::new("started");
    let program = folder.compile("forks.c", "forks", &[]);
    let script = format!(
        "sleep 60 & setsid sleep 60 & (trap '' HUP TERM; sleep 60; true) & {} & sleep 60; true",
        program.display(),
    );
    let child = start(&mut pip_exec(["-n", "2", "sh", "-c", &script]));
    let root = child.id();
    eventually("all ranks run", || children(root).len() == 2);
    let own = children(root);
    let mut stranger = std::process::Command::new("sleep").arg("60").spawn().expect("sleep is installed");
    let mut started = Vec::new();
    eventually("they have started programs", || {
        started = own.iter().copied().flat_map(descendants).collect();
        started.len() == 2 * 7
    });
    send(root as i32, libc::SIGKILL);
    assert_eq!(finish(child, Instant::now()).status, -libc::SIGKILL);
    eventually("all of them are gone", || !own.iter().chain(&started).copied().any(is_running));
    assert!(is_running(stranger.id() as i32), "it was none of the job's");
    stranger.kill().expect("own child");
    stranger.wait().expect("own child");
}

#[test]
fn a_process_that_a_rank_forked_dies_with_pip_exec() {
    let folder = Folder::new("forked");
    let program = folder.compile("forks.c", "forks", &[]);
    let child = start(&mut pip_exec([OsStr::new("-n"), OsStr::new("2"), program.as_os_str()]));
    let root = child.id();
    let mut forked = Vec::new();
    eventually("both ranks have forked", || {
        forked = children(root).into_iter().flat_map(descendants).collect();
        forked.len() == 2
    });
    send(root as i32, libc::SIGKILL);
    assert_eq!(finish(child, Instant::now()).status, -libc::SIGKILL);
    eventually("they are gone", || !forked.iter().copied().any(is_running));
}

#[test]
fn what_ranks_leave_running_outlives_a_job_that_ended_well() {
    let script = "sleep 60 >/dev/null 2>&1 & echo $!";
    let outcome = run_command(&mut pip_exec(["-n", "1", "sh", "-c", script]), b"");
    let pid = outcome.lines()[0].parse().expect("a pid");
    std::thread::sleep(Duration::from_millis(300));
    assert!(is_running(pid));
    send(pid, libc::SIGKILL);
}

#[test]
fn processes_of_ranks_end_with_a_failed_job() {
    let folder = Folder::new("orphan");
    let note = folder.path().join("pid");
    let script = format!("sleep 60 & echo $! > {}; exit 5", note.display());
    let outcome = run_command(&mut pip_exec(["-n", "1", "sh", "-c", &script]), b"");
    assert_eq!(outcome.status, 5);
    let pid = std::fs::read_to_string(note).unwrap().trim().parse().unwrap();
    assert!(!is_running(pid));
}
