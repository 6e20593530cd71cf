//! A job whose nodes do not come together: the waits end, and say for what they were.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;
use support::{Outcome, children, eventually, finish, is_running, pip_exec, start};

/// The number of its connection in the client.
const DESCRIPTOR: i32 = 30;

/// A manager of PMI-1 for node 0 of 2, which answers until it is asked `silent_from`; gives all requests.
fn manager(command: &mut Command, silent_from: &'static str) -> Receiver<String> {
    use std::os::unix::process::CommandExt;
    let (stream, client) = UnixStream::pair().expect("descriptors");
    command.env("PMI_FD", DESCRIPTOR.to_string());
    command.env("PMI_RANK", "0").env("PMI_SIZE", "2");
    // SAFETY: dup2 may be called between fork and exec.
    unsafe {
        command.pre_exec(move || match libc::dup2(client.as_raw_fd(), DESCRIPTOR) {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        let mut answers = stream.try_clone().expect("a descriptor");
        let mut silent = false;
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { return };
            silent |= line.contains(silent_from);
            let name = line.split(' ').next().unwrap_or_default().to_owned();
            if sender.send(line).is_err() {
                return;
            }
            if silent {
                continue;
            }
            let answer = match name.as_str() {
                "cmd=init" => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
                "cmd=get_maxes" => "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024",
                "cmd=get_my_kvsname" => "cmd=my_kvsname kvsname=space",
                "cmd=get_appnum" => "cmd=appnum rc=0 appnum=0",
                "cmd=put" => "cmd=put_result rc=0",
                other => panic!("unexpected {other}"),
            };
            let _ = writeln!(answers, "{answer}");
        }
    });
    requests
}

/// A manager of PMI-1 for the only node of a job, which answers everything; gives its end of the connection.
fn lonely(command: &mut Command) -> UnixStream {
    use std::os::unix::process::CommandExt;
    let (stream, client) = UnixStream::pair().expect("descriptors");
    command.env("PMI_FD", DESCRIPTOR.to_string());
    command.env("PMI_RANK", "0").env("PMI_SIZE", "1");
    // SAFETY: dup2 may be called between fork and exec.
    unsafe {
        command.pre_exec(move || match libc::dup2(client.as_raw_fd(), DESCRIPTOR) {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    let own = stream.try_clone().expect("a descriptor");
    std::thread::spawn(move || {
        let mut answers = stream.try_clone().expect("a descriptor");
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { return };
            let answer = match line.split(' ').next().unwrap_or_default() {
                "cmd=init" => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
                "cmd=get_maxes" => "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024",
                "cmd=get_my_kvsname" => "cmd=my_kvsname kvsname=space",
                "cmd=get_appnum" => "cmd=appnum rc=0 appnum=0",
                "cmd=barrier_in" => "cmd=barrier_out",
                "cmd=put" => "cmd=put_result rc=0",
                "cmd=finalize" => "cmd=finalize_ack",
                other => panic!("unexpected {other}"),
            };
            let _ = writeln!(answers, "{answer}");
        }
    });
    own
}

/// Waits until the manager hears this, and gives what comes after it.
fn hears(requests: &Receiver<String>, what: &str) {
    let limit = std::time::Duration::from_secs(30);
    while !requests.recv_timeout(limit).expect(what).contains(what) {}
}

fn expect(outcome: &Outcome, status: i32, texts: &[&str]) {
    assert_eq!(outcome.status, status, "{outcome:?}");
    for text in texts {
        assert!(outcome.error.contains(text), "{text}: {outcome:?}");
    }
}

#[test]
fn a_signal_ends_a_job_that_waits_for_its_manager() {
    for (signal, name) in [(libc::SIGTERM, "SIGTERM"), (libc::SIGINT, "SIGINT")] {
        let mut command = pip_exec(["true"]);
        let requests = manager(&mut command, "cmd=init");
        let begin = Instant::now();
        let child = start(&mut command);
        hears(&requests, "cmd=init");
        // SAFETY: signals the test's own child.
        unsafe { libc::kill(child.id() as i32, signal) };
        let outcome = finish(child, begin);
        let said = [&format!("ended by {name}"), "the process manager's first answer"];
        expect(&outcome, 128 + signal, &said);
    }
}

#[test]
fn a_node_that_never_comes_ends_the_job() {
    let mut command = pip_exec(["true"]);
    let requests = manager(&mut command, "cmd=barrier_in");
    command.env("COHORT_START_TIMEOUT", "1");
    let begin = Instant::now();
    let outcome = finish(start(&mut command), begin);
    let said = [
        "did not start within 1 s (COHORT_START_TIMEOUT)",
        "all other nodes to say what they are (node 0 of 2, PMI-1)",
    ];
    expect(&outcome, 124, &said);
    hears(&requests, "cmd=abort exitcode=124");

    let mut command = pip_exec(["--timeout", "0.5", "true"]);
    let _requests = manager(&mut command, "cmd=barrier_in");
    let outcome = finish(start(&mut command), begin);
    expect(&outcome, 124, &["within 0.5 s (--timeout)"]);
}

#[test]
fn a_signal_ends_the_whole_job_while_nodes_come_together() {
    let mut command = pip_exec(["true"]);
    let requests = manager(&mut command, "cmd=barrier_in");
    let begin = Instant::now();
    let child = start(&mut command);
    hears(&requests, "cmd=barrier_in");
    // SAFETY: signals the test's own child.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    expect(&finish(child, begin), 143, &["ended by SIGTERM", "node 0 of 2"]);
    hears(&requests, "cmd=abort exitcode=143");
}

#[test]
fn a_job_ends_with_its_manager() {
    let mut command = pip_exec(["-n", "2", "sleep", "60"]);
    let connection = lonely(&mut command);
    let child = start(&mut command);
    let root = child.id();
    eventually("all ranks run", || children(root).len() == 2);
    let (ranks, begin) = (children(root), Instant::now());
    connection.shutdown(Shutdown::Both).expect("connected");
    let outcome = finish(child, begin);
    let said = ["the process manager of node 0 of 1 (", "is gone (PMI-1); the job ends"];
    expect(&outcome, 1, &said);
    assert_eq!(outcome.error.lines().count(), 1, "{outcome:?}");
    assert!(outcome.elapsed.as_secs() < 5, "{outcome:?}");
    assert!(!ranks.into_iter().any(is_running));
}

#[test]
fn a_job_that_ends_well_says_goodbye_to_its_manager() {
    let mut command = pip_exec(["-n", "2", "true"]);
    let _connection = lonely(&mut command);
    let begin = Instant::now();
    let outcome = finish(start(&mut command), begin);
    expect(&outcome, 0, &[]);
    assert_eq!(outcome.error, "", "{outcome:?}");
}
