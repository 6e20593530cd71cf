//! What is refused before anything starts, and what the messages say.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use support::{Folder, pip_exec, run, run_command};

/// Runs a command line that is refused and gives its message.
fn refusal(line: &str) -> String {
    let outcome = run(line);
    assert_eq!(outcome.status, 2, "{line}: {outcome:?}");
    assert!(outcome.error.starts_with("pip-exec: "), "{line}: {outcome:?}");
    assert_eq!(outcome.output, "", "{line}");
    outcome.error
}

#[test]
fn files_that_cannot_be_ranks() {
    let folder = Folder::new("refusals");
    let identity = folder.compile("identity.c", "pie", &[]);
    let original = std::fs::read(identity).unwrap();
    let edited = |at: usize, value: u8| {
        let mut bytes = original.clone();
        bytes[at] = value;
        bytes
    };
    folder.compile("identity.c", "static", &["-static"]);
    folder.compile("identity.c", "static-pie", &["-static-pie"]);
    folder.compile("identity.c", "no-linker", &["-Wl,--dynamic-linker=/nonexistent/ld.so"]);
    folder.file("bits32", &edited(4, 1));
    folder.file("foreign", &edited(18, 183));
    folder.file("truncated", &original[..300]);
    folder.file("empty", b"");
    folder.file("text", b"echo hello\n");
    folder.file("no-interpreter", b"#!/nonexistent/sh\n");
    folder.file("windows", b"#!/bin/sh\r\necho hello\r\n");
    folder.file("endless", format!("#!{}/endless\n", folder.path().display()).as_bytes());
    let closed = folder.file("closed", &original);
    std::fs::set_permissions(closed, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    let cases = [
        ("static-pie", "statically linked"),
        ("no-linker", "its dynamic linker /nonexistent/ld.so cannot be used: it does not exist"),
        ("bits32", "32-bit"),
        ("windows", "ends in a carriage return"),
        ("foreign", "made for AARCH64, not x86-64"),
        ("truncated", "it is truncated"),
        ("empty", "neither an ELF file nor a script"),
        ("text", "neither an ELF file nor a script"),
        ("no-interpreter", "its interpreter does not work: cannot run /nonexistent/sh: no such file"),
        ("endless", "too many interpreters"),
        ("closed", "chmod +x"),
        ("folder", "it is a directory"),
        ("missing", "no such file"),
    ];
    for (name, said) in cases {
        let message = refusal(&format!("-n 2 {}/{name}", folder.path().display()));
        assert!(message.contains(said) && message.contains(name), "{name}: {message}");
    }
    let message = refusal(&format!("-n 2 {}/static", folder.path().display()));
    assert!(message.contains("position-independent") || message.contains("statically"), "{message}");
    let mut command = pip_exec(["pie"]);
    let outcome = run_command(command.current_dir(folder.path()), b"");
    assert!(outcome.error.contains("did you mean ./pie?"), "{outcome:?}");
}

#[test]
fn nothing_starts_when_one_of_several_programs_is_refused() {
    let folder = Folder::new("nothing");
    let mark = folder.path().join("mark");
    let outcome = run(&format!("-n 1 touch {} : -n 1 /nonexistent/x", mark.display()));
    assert_eq!(outcome.status, 2);
    assert!(!mark.exists());
}

#[test]
fn command_lines() {
    assert!(refusal("-n 0 true").contains("at least one rank"));
    assert!(refusal("--tiemout 3 true").contains("did you mean --timeout?"));
    assert!(refusal("-wdir /nonexistent true").contains("-wdir /nonexistent"));
    assert!(refusal("-c 4095 true").contains("usable ones: "));
    assert!(refusal("").contains("no program"));
}

#[test]
fn settings() {
    let message = refusal("-n 1 -genv COHORT_PROGRES steal true");
    assert!(message.contains("did you mean COHORT_PROGRESS?"), "{message}");
    let message = refusal("-n 1 -env COHORT_WAIT=park true : -n 1 true");
    assert!(message.contains("-genv COHORT_WAIT park gives it to all"), "{message}");
    let message = refusal("-n 1 -env COHORT_WAIT=often true");
    assert!(message.contains("auto, spin, park"), "{message}");
    let outcome = run_command(pip_exec(["true"]).env("COHORT_STACKSIZE", "tiny"), b"");
    assert_eq!(outcome.status, 2);
    assert!(outcome.error.contains("COHORT_STACKSIZE=\"tiny\""), "{outcome:?}");
}

#[test]
fn more_ranks_than_the_system_allows() {
    let message = refusal("-n 100000 true");
    assert!(message.contains("sysctl vm.max_map_count="), "{message}");
    // As many as a kernel can have at most, beside those that exist.
    let message = refusal("--isolate -n 4194304 true");
    assert!(message.contains("more tasks than kernel."), "{message}");

    // SAFETY: no conditions.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: the limit of tasks is tested as another user");
        return;
    }
    let folder = Folder::new("nproc");
    let copy = folder.pip_exec();
    let mut command = std::process::Command::new(copy);
    command.args(["--no-mpi", "-n", "200", "/bin/true"]).current_dir("/").uid(65534).gid(65534);
    let limited = || {
        let limit = libc::rlimit { rlim_cur: 100, rlim_max: 100 };
        // SAFETY: a valid record; the call is async-signal-safe.
        match unsafe { libc::setrlimit(libc::RLIMIT_NPROC, &raw const limit) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes one async-signal-safe call.
    unsafe { command.pre_exec(limited) };
    let outcome = run_command(&mut command, b"");
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert!(outcome.error.contains("RLIMIT_NPROC (100"), "{outcome:?}");
}

#[test]
fn a_limit_of_one_process_that_all_ranks_share_is_named() {
    let folder = Folder::new("shared-limit");
    let program = folder.compile("identity.c", "identity", &[]);
    let run_with = |ranks: &str, isolate: &[&str]| {
        let mut command = std::process::Command::new("sh");
        command
            .args(["-c", "ulimit -v 3000000; exec \"$@\"", "sh"])
            .arg(env!("CARGO_BIN_EXE_pip-exec"))
            .args(["--no-mpi", "-n", ranks])
            .args(isolate)
            .arg(&program);
        run_command(&mut command, b"")
    };
    let all = run_with("4", &[]);
    assert_eq!(all.status, 0, "{all:?}");
    let warning = "ulimit -v (RLIMIT_AS) is 2929 MiB for all 4 ranks of this node together";
    assert!(all.error.contains(warning), "{all:?}");
    assert!(all.error.contains(": 732 MiB for each"), "{all:?}");
    for (ranks, isolate) in [("2", &[][..]), ("4", &["--isolate"][..])] {
        let outcome = run_with(ranks, isolate);
        assert!(!outcome.error.contains("RLIMIT_AS"), "{outcome:?}");
    }
}

#[test]
fn help_and_version() {
    let outcome = run("--help");
    assert!(outcome.lines().iter().any(|line| line.starts_with("usage: pip-exec")));
    assert!(run("--version").lines()[0].starts_with("pip-exec (Cohort) "));
}

#[test]
fn a_folder_that_the_dynamic_linker_cannot_be_told_of_is_named() {
    let folder = Folder::new("letters:in$it");
    folder.file("libcohort_node.so", b"");
    let copy = folder.pip_exec();
    let outcome = run_command(std::process::Command::new(copy).arg("true"), b"");
    assert_eq!(outcome.status, 2, "{outcome:?}");
    let words = "pip-exec: the dynamic linker cannot look for libraries in ";
    assert!(outcome.error.starts_with(words), "{outcome:?}");
    assert!(outcome.error.contains("letters:in$it"), "{outcome:?}");
}
