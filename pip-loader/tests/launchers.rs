//! What people type for other launchers.

mod support;

use std::process::Command;
use support::{Folder, Outcome, pip_exec, run, run_command};

fn shell(words: &[&str], script: &str) -> Outcome {
    let words = [words, &["sh", "-c", script]].concat();
    run_command(&mut pip_exec(words), b"")
}

/// The lines in alphabetical order.
fn sorted(outcome: &Outcome) -> Vec<&str> {
    let mut lines = outcome.lines();
    lines.sort_unstable();
    lines
}

#[test]
fn mpiexec_is_another_name() {
    let folder = Folder::new("mpiexec");
    let name = folder.path().join("mpiexec");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pip-exec"), &name).expect("new");
    let mut command = Command::new(name);
    let outcome = run_command(command.args(["--no-mpi", "-n2", "echo", "a"]), b"");
    assert_eq!(outcome.lines(), ["a", "a"]);
}

#[test]
fn scripts_find_their_rank() {
    let names = [
        ["PMI_RANK", "PMI_SIZE"],
        ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
        ["OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"],
        ["OMPI_COMM_WORLD_NODE_RANK", "OMPI_COMM_WORLD_SIZE"],
        ["MPI_LOCALRANKID", "MPI_LOCALNRANKS"],
        ["COHORT_WORLD_RANK", "COHORT_WORLD_SIZE"],
        ["COHORT_LOCAL_RANK", "COHORT_LOCAL_SIZE"],
    ];
    for [rank, size] in names {
        for options in [&["-n", "3"][..], &["-n", "3", "--isolate"]] {
            let outcome = shell(options, &format!("echo ${rank} ${size}"));
            assert_eq!(sorted(&outcome), ["0 3", "1 3", "2 3"], "{rank}");
        }
    }
}

#[test]
fn the_rank_of_a_job_around_this_one_is_not_inherited() {
    let mut command = pip_exec(["-n", "1", "printenv", "OMPI_COMM_WORLD_RANK"]);
    let outcome = run_command(command.env("OMPI_COMM_WORLD_RANK", "7"), b"");
    assert_eq!(outcome.lines(), ["0"]);
    let outcome = run("-env PMI_RANK 9 -n 1 printenv PMI_RANK");
    assert_eq!(outcome.lines(), ["9"]);
}

#[test]
fn environments_are_inherited_as_the_options_say() {
    let script = "echo ${A-no} ${B-no} ${C-no}";
    let cases: [(&[&str], &str); 7] = [
        (&[], "1 2 no"),
        (&["-genvall"], "1 2 no"),
        (&["-genvnone"], "no no no"),
        (&["-genvlist", "B", "-genv", "C", "3"], "no 2 3"),
        (&["-envexcl", "A"], "no 2 no"),
        (&["-genvnone", "-x", "A", "-x", "C=4"], "1 no 4"),
        (&["-genvnone", "-envall"], "1 2 no"),
    ];
    for (options, expected) in cases {
        let words = [options, &["/bin/sh", "-c", script]].concat();
        let outcome = run_command(pip_exec(words).env("A", "1").env("B", "2"), b"");
        assert_eq!(outcome.lines(), [expected], "{options:?}");
    }
}

#[test]
fn standard_input_goes_where_it_is_sent() {
    let read = |options: &[&str]| {
        let words = [options, &["-l", "-n", "3", "cat"]].concat();
        run_command(&mut pip_exec(words), b"word\n")
    };
    assert_eq!(read(&[]).lines(), ["[0] word"]);
    assert_eq!(read(&["-s", "2"]).lines(), ["[2] word"]);
    assert_eq!(sorted(&read(&["--stdin", "all"])), ["[0] word", "[1] word", "[2] word"]);
    assert!(read(&["--stdin=none"]).lines().is_empty());
}

#[test]
fn a_rank_that_does_not_read_its_copy_of_the_input_is_named() {
    let script = "if test $PMI_RANK = 1; then sleep 6; fi; wc -c";
    let words = ["-s", "all", "-n", "2", "sh", "-c", script];
    let outcome = run_command(&mut pip_exec(words), &[b'x'; 300_000]);
    assert_eq!(outcome.output, "300000\n300000\n", "{outcome:?}");
    let named = "pip-exec: rank 1 does not read its standard input";
    assert!(outcome.error.contains(named), "{outcome:?}");
}

#[test]
fn output_goes_to_files() {
    let folder = Folder::new("files");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let text = |name: &str| std::fs::read_to_string(path(name)).unwrap_or_default();
    let script = "echo out $PMI_RANK; echo err $PMI_RANK >&2";
    let (out, err) = (path("o.%r"), path("e"));
    let outcome = shell(&["-n", "2", "-outfile-pattern", &out, "-errfile-pattern", &err], script);
    assert!(outcome.lines().is_empty());
    assert_eq!([text("o.0"), text("o.1")], ["out 0\n", "out 1\n"]);
    assert_eq!(text("e").lines().count(), 2);
    let outcome = shell(&["-n", "2", "--output-filename", &path("all")], script);
    assert_eq!((outcome.status, outcome.output.lines().count()), (0, 2));
    assert_eq!(text("all/1/rank.1/stdout"), "out 1\n");
    assert_eq!(text("all/1/rank.0/stderr"), "err 0\n");
    let quiet = format!("{}:nocopy", path("some"));
    let outcome = shell(&["-n", "2", "--output-filename", &quiet, "--tag-output"], script);
    assert!(outcome.lines().is_empty());
    assert_eq!(text("some/1/rank.1/stdout"), "[1,1]<stdout>:out 1\n");
    for (words, name, lines) in [
        (":nojobid", "rank.0", 2),
        (":nojobid,nocopy", "rank.0", 0),
        (":x", ":x/1/rank.0", 2),
        ("%r:y:nocopy", "%r:y/1/rank.0", 0),
    ] {
        let outcome = shell(&["-n", "2", "--output-filename", &format!("{}{words}", path("more/d"))], script);
        assert_eq!((outcome.status, outcome.output.lines().count()), (0, lines), "{words}: {outcome:?}");
        let place = if name.starts_with("rank") { format!("more/d/{name}") } else { format!("more/d{name}") };
        assert_eq!(text(&format!("{place}/stdout")), "out 0\n", "{words}");
        std::fs::remove_dir_all(path("more")).expect("made just now");
    }
}

#[test]
fn a_file_may_hold_the_command_line() {
    let folder = Folder::new("config");
    let text = b"# programs\n-n 1 echo one\n\n-n 2 echo 'two  words' # each\n";
    let file = folder.file("config", text);
    let outcome = run(&format!("-configfile {}", file.display()));
    assert_eq!(sorted(&outcome), ["one", "two  words", "two  words"]);
    let hosts = folder.file("hosts", b"localhost slots=3\n");
    let outcome = run(&format!("--hostfile {} echo a", hosts.display()));
    assert_eq!(outcome.lines(), ["a"; 3]);
    let outcome = run(&format!("-f {} -n 4 echo a", hosts.display()));
    assert_eq!(outcome.status, 2);
    assert!(outcome.error.contains("--oversubscribe"), "{outcome:?}");
}

#[test]
fn a_file_of_programs_is_the_only_one_and_loses_no_option() {
    let folder = Folder::new("configs");
    let file = |name: &str, text: &str| folder.file(name, text.as_bytes()).display().to_string();
    let (one, two) = (file("one", "-n 1 echo one\n"), file("two", "-n 1 echo two\n"));
    let within = file("within", &format!("-n 1 echo three\n-configfile {one}\n"));
    let refusal = |line: &str| {
        let outcome = run(line);
        assert_eq!((outcome.status, outcome.output.as_str()), (2, ""), "{line}: {outcome:?}");
        outcome.error
    };
    for line in [
        format!("-configfile {one} : -configfile {two}"),
        format!("-app {one} -app {two}"),
        format!("-configfile {within}"),
    ] {
        let error = refusal(&line);
        assert!(error.contains("write all programs into it"), "{line}: {error}");
    }
    for option in ["-n 4", "-env A B", "-wdir /", "-envnone"] {
        let error = refusal(&format!("{option} -configfile {one}"));
        assert!(error.contains("write them on its line of the file"), "{option}: {error}");
    }
    let outcome = run(&format!("-n 2 echo zero : -genv A B -configfile {one}"));
    assert_eq!(sorted(&outcome), ["one", "zero", "zero"]);
}

#[test]
fn what_is_started_is_told_on_request() {
    let outcome = run("--report-bindings -print-rank-map -v --display-map --bind-to core -n 2 true");
    let error = &outcome.error;
    let told = ["rank 1 is bound to the CPUs", ":0-1)", "2 of 2 ranks", "bound by core"];
    for text in told {
        assert!(error.contains(text), "{text}: {error}");
    }
}

#[test]
fn options_about_the_inside_of_others_cost_one_line() {
    let line = "--mca pml ob1 --mca btl self -iface eth0 --allow-run-as-root -n 1 echo a";
    let outcome = run(line);
    assert_eq!((outcome.status, outcome.output.as_str()), (0, "a\n"));
    assert_eq!(outcome.error.lines().count(), 1, "{outcome:?}");
    assert!(run(&format!("-q {line}")).lines() == ["a"]);
    let outcome = run("--rankfile f -n 1 true");
    assert_eq!(outcome.status, 2);
    assert!(outcome.error.contains("--map-by"), "{outcome:?}");
}

#[test]
fn the_installation_describes_itself() {
    for words in [["--info"], ["-info"]] {
        let outcome = run_command(pip_exec(words).env("COHORT_WAIT", "park"), b"");
        assert_eq!((outcome.status, &*outcome.error), (0, ""), "{outcome:?}");
        let says = |start: &str, end: &str| {
            let mut lines = outcome.output.lines().map(str::trim);
            lines.any(|line| line.starts_with(start) && line.ends_with(end))
        };
        assert!(says("COHORT_WAIT", "environment"), "{outcome:?}");
        assert!(says("COHORT_PROGRESS", "default"), "{outcome:?}");
        assert!(says("membarrier:", ""), "{outcome:?}");
        assert!(says("between nodes:", ""), "{outcome:?}");
    }
    let version = run("--version");
    assert!(version.output.contains("commit") && version.output.contains("libmpi_abi.so.1"));
}

#[test]
fn jobs_show_parts_of_that_when_they_start() {
    let mut command = pip_exec(["-n", "1", "-genv", "COHORT_DEBUG", "settings,net", "true"]);
    let outcome = run_command(&mut command, b"");
    assert_eq!(outcome.status, 0);
    let error = &outcome.error;
    assert!(error.contains("between nodes") && error.contains("option"), "{error}");
    let outcome = run("-n 1 -env COHORT_DEBUG x true");
    assert_eq!(outcome.status, 2);
    assert!(outcome.error.contains("pin, settings, net"), "{outcome:?}");
}
