//! Ranks with an address space of their own.

mod support;

use support::{Folder, pip_exec, run, run_command};

#[test]
fn a_program_with_fixed_addresses_runs_and_its_user_is_told() {
    let folder = Folder::new("fixed");
    let program = folder.compile("private.c", "fixed", &["-no-pie", "-fno-pie"]);
    let outcome = run(&format!("-n 3 {}", program.display()));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert_eq!(outcome.output.lines().collect::<Vec<_>>(), ["done"; 3]);
    assert_eq!(outcome.error.lines().count(), 1, "{outcome:?}");
    let said = ["fixed is not position-independent", "link it with -pie"];
    assert!(said.iter().all(|text| outcome.error.contains(text)), "{outcome:?}");
}

#[test]
fn isolated_ranks_are_processes_of_their_own() {
    // In a shared address space both would see two programs of this name.
    let script = "grep -c dash /proc/self/maps; grep -c '[0-9] /.*/sh$\\|/dash$' /proc/$$/maps";
    let own = run_command(&mut pip_exec(["--isolate", "-n", "2", "sh", "-c", script]), b"");
    let alone = run_command(&mut pip_exec(["--isolate", "-n", "1", "sh", "-c", script]), b"");
    assert_eq!(own.lines().len(), 2 * alone.lines().len());
    assert!(own.lines().iter().all(|line| alone.lines().contains(line)), "{own:?} {alone:?}");
}

#[test]
fn isolated_ranks_fail_input_and_labels_as_others_do() {
    let outcome =
        run_command(&mut pip_exec(["--isolate", "-l", "-n", "2", "-wdir", "/", "sh", "-c", "pwd; cat"]), b"typed\n");
    let mut lines = outcome.lines();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] /", "[0] typed", "[1] /"]);

    let mut command = pip_exec(["--isolate", "-n", "3", "sh", "-c", "kill -SEGV $$"]);
    let outcome = run_command(&mut command, b"");
    assert_eq!(outcome.status, 139, "{outcome:?}");
    assert!(outcome.error.contains("signal 11 (SIGSEGV)"), "{outcome:?}");
}
