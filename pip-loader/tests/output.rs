//! Lines stay whole; `--label`; readers that are slow, never read, or went away.

mod support;

use std::io::{Read, Write};
use std::process::Child;
use std::time::{Duration, Instant};
use support::{Folder, children, eventually, finish, pip_exec, run_command, start};

/// Ranks that write without end, and nobody reads: the pipe to the root is full soon.
fn flood(words: &[&str], script: &str) -> (Child, Vec<i32>) {
    let words = [&["-n", "2", "--label"], words, &["sh", "-c", script]].concat();
    let child = start(&mut pip_exec(words));
    let root = child.id();
    eventually("all ranks run", || children(root).len() == 2);
    let ranks = children(root);
    (child, ranks)
}

/// Waits for the end of a job whose output nobody reads; its status.
fn end_of(mut child: Child) -> Option<i32> {
    let mut status = None;
    eventually("the job ends", || {
        status = child.try_wait().expect("own child");
        status.is_some()
    });
    status.and_then(|status| status.code())
}

fn send(pid: u32, signal: i32) {
    // SAFETY: the pid is that of a child of the test that was not reaped.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

#[test]
fn a_time_limit_ends_a_job_whose_output_nobody_reads() {
    for script in ["yes", "yes >&2", "yes & yes >&2"] {
        let (child, ranks) = flood(&["--timeout", "1"], script);
        assert_eq!(end_of(child), Some(124), "{script}");
        assert!(!ranks.into_iter().any(support::is_running), "{script}");
    }
}

#[test]
fn signals_reach_a_job_whose_output_nobody_reads() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let (child, ranks) = flood(&[], "yes");
        // Long enough for pipes that are full.
        std::thread::sleep(Duration::from_millis(300));
        send(child.id(), signal);
        assert_eq!(end_of(child), Some(128 + signal));
        assert!(!ranks.into_iter().any(support::is_running));
    }
}

#[test]
fn a_rank_that_fails_ends_a_job_whose_output_nobody_reads() {
    let (child, _) = flood(&[], "yes & sleep 0.3; exit 3");
    assert_eq!(end_of(child), Some(3));
}

#[test]
fn a_question_comes_before_its_answer_behind_a_label_too() {
    for (option, label) in [("--label", "[0] "), ("--tag-output", "[1,0]<stdout>:"), ("-l", "[0] ")] {
        let script = "printf 'name? '; read -r name; echo I am $name";
        let mut child = start(&mut pip_exec(["-n", "1", option, "sh", "-c", script]));
        let mut question = vec![0; label.len() + "name? ".len()];
        let mut output = child.stdout.take().expect("piped");
        output.read_exact(&mut question).expect("a question");
        assert_eq!(String::from_utf8_lossy(&question), format!("{label}name? "));
        child.stdin.take().expect("piped").write_all(b"Ann\n").expect("it reads");
        let mut rest = String::new();
        output.read_to_string(&mut rest).expect("a pipe");
        assert_eq!((rest.as_str(), end_of(child)), ("I am Ann\n", Some(0)));
    }
}

#[test]
fn ranks_wait_for_a_slow_reader_and_nothing_is_lost() {
    const LINES: usize = 300_000;
    let script = format!("seq {LINES}; seq {LINES} >&2");
    let mut child = start(&mut pip_exec(["-n", "2", "--label", "sh", "-c", &script]));
    let mut output = child.stdout.take().expect("piped");
    let mut error = child.stderr.take().expect("piped");
    std::thread::sleep(Duration::from_millis(700));
    assert!(child.try_wait().expect("own child").is_none(), "pipes are not that long");
    let begin = Instant::now();
    let read = std::thread::spawn(move || {
        let mut text = String::new();
        error.read_to_string(&mut text).map(|_| text)
    });
    let mut text = String::new();
    output.read_to_string(&mut text).expect("a pipe");
    let texts = [text, read.join().expect("a thread").expect("a pipe")];
    assert_eq!(end_of(child), Some(0), "after {:?}", begin.elapsed());
    for text in texts {
        for rank in 0..2 {
            let label = format!("[{rank}] ");
            let lines = text.lines().filter_map(|line| line.strip_prefix(&label));
            assert!(lines.eq((1..=LINES).map(|line| line.to_string())), "{rank}");
        }
    }
}

#[test]
fn lines_of_ranks_are_not_torn() {
    let folder = Folder::new("lines");
    let program = folder.compile("lines.c", "lines", &[]);
    for ranks in [8, 64] {
        let (count, each) = (ranks.to_string(), (24000 / ranks).to_string());
        let words = ["-n", &count, &program.display().to_string(), &each, "600"];
        let outcome = run_command(&mut pip_exec(words), b"");
        let whole = |line: &&str| {
            let letters = line.as_bytes();
            letters.len() == 600 && letters.iter().all(|letter| *letter == letters[0])
        };
        let lines = outcome.lines();
        let torn = lines.iter().filter(|line| !whole(line)).count();
        assert_eq!((lines.len(), torn), (24000, 0), "{ranks} ranks");
    }
}

#[test]
fn a_reader_that_has_read_enough_ends_the_job_quietly() {
    for ranks in ["1", "3"] {
        for script in ["exec yes", "yes | cat"] {
            let mut child = start(&mut pip_exec(["-n", ranks, "sh", "-c", script]));
            let mut first = [0];
            let mut output = child.stdout.take().expect("piped");
            output.read_exact(&mut first).expect("output");
            drop(output);
            child.stdout = Some(start(&mut std::process::Command::new("true")).stdout.take().expect("piped"));
            let outcome = finish(child, Instant::now());
            assert_eq!((outcome.status, &*outcome.error), (141, ""), "{ranks} {script}");
        }
    }
}

#[test]
fn a_question_is_seen_before_its_line_ends() {
    let script = "test $PMI_RANK = 1 || { printf 'name? '; read name; }";
    let mut child = start(&mut pip_exec(["-n", "2", "sh", "-c", script]));
    let mut question = [0; 6];
    let output = child.stdout.as_mut().expect("piped");
    output.read_exact(&mut question).expect("a question");
    assert_eq!(&question, b"name? ");
    use std::io::Write;
    let input = child.stdin.as_mut().expect("piped");
    input.write_all(b"me\n").expect("room");
    assert_eq!(finish(child, Instant::now()).status, 0);
}

#[test]
fn output_that_is_lost_on_a_full_disk_fails_the_job() {
    for redirection in ["> /dev/full", "2> /dev/full >&2"] {
        let command = format!("exec \"$0\" --no-mpi --label -n 2 echo hi {redirection}");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &command, env!("CARGO_BIN_EXE_pip-exec")]);
        let outcome = run_command(&mut shell, b"");
        assert_eq!((outcome.status, &*outcome.output), (1, ""), "{outcome:?}");
        if redirection.starts_with('>') {
            let words = "pip-exec: some of what the ranks wrote is lost: stdout: No space left on device";
            assert!(outcome.error.starts_with(words), "{outcome:?}");
            assert_eq!(outcome.error.lines().count(), 1, "{outcome:?}");
        }
    }
}
