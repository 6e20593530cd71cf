//! The gdb script finds a rank's own symbols.

mod support;

use std::process::Command;
use support::{Folder, children, eventually, finish, pip_exec, start};

#[test]
fn gdb_shows_the_functions_of_a_rank() {
    let folder = Folder::new("gdb");
    let program = folder.compile("fault.c", "sleeper", &["-g"]);
    let mut command = pip_exec(["-n", "3", program.to_str().unwrap(), "sleep"]);
    let job = start(&mut command);
    let root = job.id();
    let asleep = |pid: i32| {
        let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
        call.starts_with(&format!("{} ", libc::SYS_clock_nanosleep))
    };
    eventually("all ranks sleep", || {
        let ranks = children(root);
        ranks.len() == 3 && ranks.into_iter().all(asleep)
    });
    std::thread::sleep(std::time::Duration::from_millis(100));
    let rank = children(root)[2];
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/gdb/cohort-gdb.py");
    let output = Command::new("gdb")
        .args(["-nx", "-batch", "-p", &rank.to_string(), "-x", script])
        .args([
            "-ex",
            "cohort-ranks",
            "-ex",
            "cohort-symbols",
            "-ex",
            "backtrace",
        ])
        .output()
        .expect("gdb is installed (tools/cache.sh judges)");
    // SAFETY: ends the test's own child.
    unsafe { libc::kill(root as i32, libc::SIGTERM) };
    finish(job, std::time::Instant::now());
    let text = String::from_utf8_lossy(&output.stdout);
    let list = text.lines().filter(|line| line.contains("  pid ")).count();
    let own = text
        .lines()
        .any(|line| line.starts_with("* rank ") && line.contains("sleeper"));
    let frame = text
        .lines()
        .any(|line| line.contains("main (") && line.contains("fault.c"));
    assert!(
        list == 3 && own && frame,
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
