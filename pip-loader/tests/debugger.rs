//! The gdb script finds a rank's own symbols, in a process and in a core file.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::{Folder, children, eventually, finish, pip_exec, start};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/gdb/cohort-gdb.py");

/// What gdb, with the script, says of what `words` name.
fn gdb(words: &[&str]) -> Output {
    Command::new("gdb")
        .args(["-nx", "-batch"])
        .args(words)
        .args(["-x", SCRIPT])
        .args(["-ex", "cohort-ranks", "-ex", "cohort-symbols", "-ex", "backtrace"])
        .output()
        .expect("gdb is installed (tools/cache.sh judges)")
}

/// It must have listed three ranks of `program`, marked one of them, and shown that one's `function` of `fault.c` and
/// its `main`.
fn assert_shown(output: &Output, program: &str, function: &str) {
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = |start: &str, parts: [&str; 2]| {
        let ours = text.lines().filter(|line| line.starts_with(start));
        ours.filter(|line| parts.iter().all(|part| line.contains(part))).count()
    };
    assert!(
        lines("", ["  pid ", program]) == 3
            && lines("* rank ", ["  pid ", program]) == 1
            && lines("#", [function, "fault.c"]) == 1
            && lines("#", ["main (", "fault.c"]) == 1,
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

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
    let rank = children(root)[2].to_string();
    let output = gdb(&["-p", &rank]);
    // SAFETY: ends the test's own child.
    unsafe { libc::kill(root as i32, libc::SIGTERM) };
    finish(job, std::time::Instant::now());
    assert_shown(&output, "sleeper", "main (");
}

/// The core file that the kernel leaves in a folder, or `None` if it gives core files to a program or another folder.
fn core_in(folder: &Path) -> Option<PathBuf> {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").expect("the kernel's");
    if pattern.starts_with(['|', '/']) {
        return None;
    }
    let files = std::fs::read_dir(folder).expect("made by the test");
    let mut files = files.flatten().map(|entry| entry.path());
    let is_core = |path: &PathBuf| {
        let start = std::fs::File::open(path).and_then(|mut file| {
            let mut header = [0; 18];
            std::io::Read::read_exact(&mut file, &mut header).map(|()| header)
        });
        // The type of an ELF file follows its 16 bytes of identification.
        start.is_ok_and(|header| header.starts_with(b"\x7fELF") && header[16] == 4)
    };
    Some(files.find(is_core).expect("a core file"))
}

#[test]
fn gdb_shows_the_functions_of_a_rank_that_has_left_a_core_file() {
    let folder = Folder::new("core");
    let program = folder.compile("fault.c", "faulty", &["-g"]);
    let line = format!(
        "ulimit -c unlimited && exec {} --no-mpi -n 3 {} program",
        env!("CARGO_BIN_EXE_pip-exec"),
        program.display()
    );
    let mut command = Command::new("bash");
    command.args(["-c", &line]).current_dir(folder.path());
    let outcome = finish(start(&mut command), std::time::Instant::now());
    assert_eq!(outcome.status, 128 + libc::SIGSEGV, "{outcome:?}");
    let Some(core) = core_in(folder.path()) else {
        // Somebody else has it, who knows what the kernel has said.
        assert!(outcome.error.contains("SIGSEGV"), "{outcome:?}");
        return;
    };
    let words = [env!("CARGO_BIN_EXE_pip-exec"), core.to_str().unwrap()];
    assert_shown(&gdb(&words), "faulty", "write_to (");
}
