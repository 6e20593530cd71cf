//! The contract with the node image, played by a stand-in.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Folder, Outcome, run_command};

/// A folder that looks like an installation, with the stand-in as node image.
fn installation(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.pip_exec();
    let version = format!("-DVERSION={}", cohort_base::boot::VERSION);
    let options = ["-shared", "-fPIC", &version];
    folder.compile("fake_node.c", "libcohort_node.so", &options);
    folder
}

fn run_in(folder: &Folder, line: &str) -> Outcome {
    let mut command = Command::new(folder.path().join("pip-exec"));
    run_command(command.args(line.split_whitespace()), b"")
}

#[test]
fn the_node_image_is_told_of_the_node_and_reports_at_the_end() {
    let folder = installation("node");
    let program = mpi_program(&folder, "lifecycle.c");
    let line = format!("-n 3 -genv COHORT_STATS counters {} finalize", program.display());
    let outcome = run_in(&folder, &line);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let report = "report: node=1 ranks=3 world=3 cpus=1 places=1 stats=1 alone=1";
    assert_eq!(outcome.error.lines().next(), Some(report), "{outcome:?}");
}

#[test]
fn an_abort_ends_the_job_with_its_code() {
    let folder = installation("abort");
    let program = mpi_program(&folder, "lifecycle.c");
    let outcome = run_in(&folder, &format!("-n 3 {} abort", program.display()));
    assert_eq!(outcome.status, 42, "{outcome:?}");
    assert!(outcome.elapsed.as_millis() < 1000, "{outcome:?}");
}

#[test]
fn a_rank_that_leaves_without_finalize_ends_the_job() {
    let folder = installation("leave");
    let program = mpi_program(&folder, "lifecycle.c");
    let outcome = run_in(&folder, &format!("-n 3 {} leave", program.display()));
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.error.contains("rank 1 (pid "), "{outcome:?}");
    assert!(outcome.error.contains("ended without calling MPI_Finalize"), "{outcome:?}");
}

#[test]
fn an_incomplete_installation_is_named() {
    let folder = Folder::new("incomplete");
    folder.pip_exec();
    let outcome = run_in(&folder, "-n 2 true");
    assert_eq!(outcome.status, 2);
    assert!(outcome.error.contains("libcohort_node.so is missing"), "{outcome:?}");
    folder.file("libcohort_node.so", b"not a library");
    let outcome = run_in(&folder, "-n 2 true");
    assert_eq!(outcome.status, 2);
    assert!(outcome.error.contains("libcohort_audit.so is missing"), "{outcome:?}");
    let program = mpi_program(&folder, "lifecycle.c");
    let outcome = run_in(&folder, &format!("-n 2 {}", program.display()));
    assert_eq!(outcome.status, 2);
    assert!(outcome.error.contains("cannot load the node image"), "{outcome:?}");
}

/// Builds a library that is called like an MPI.
fn mpi_library(folder: &Folder, output: &str) {
    let soname = Path::new(output).file_name().unwrap().to_str().unwrap();
    folder.compile("beside.c", output, &["-shared", "-fPIC", &format!("-Wl,-soname,{soname}")]);
}

/// A program that is linked to a library that is called like our MPI.
fn mpi_program(folder: &Folder, fixture: &str) -> PathBuf {
    mpi_library(folder, "libmpi.so.12");
    folder.compile(fixture, "program", &["-Wl,--no-as-needed", "libmpi.so.12"])
}

#[test]
fn programs_find_our_mpi_whatever_their_rpath_says() {
    let folder = installation("faces");
    std::fs::create_dir(folder.path().join("other")).unwrap();
    mpi_library(&folder, "libmpi.so.12");
    mpi_library(&folder, "other/libmpi.so.12");
    let other = folder.path().join("other/libmpi.so.12");
    let rpath = format!("-Wl,-rpath,{}", folder.path().join("other").display());
    for tags in ["-Wl,--enable-new-dtags", "-Wl,--disable-new-dtags"] {
        let arguments = ["-Wl,--no-as-needed", other.to_str().unwrap(), &rpath, tags];
        let program = folder.compile("maps.c", "maps", &arguments);
        let outcome = run_in(&folder, &format!("-n 2 {}", program.display()));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        let ours = folder.path().join("libmpi.so.12");
        let expected = [ours.to_str().unwrap(); 2];
        assert_eq!(outcome.output.lines().collect::<Vec<_>>(), expected, "{tags}");
    }
    std::fs::remove_file(folder.path().join("libmpi.so.12")).unwrap();
    let outcome = run_in(&folder, &format!("-n 2 {}", folder.path().join("maps").display()));
    assert_eq!(outcome.status, 2);
    assert!(outcome.error.contains("libmpi.so.12, which is missing"), "{outcome:?}");
}
