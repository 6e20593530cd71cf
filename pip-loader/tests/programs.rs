//! Unmodified programs of several languages, and how programs are found.

mod support;

use std::path::Path;
use support::{Folder, pip_exec, run, run_command};

/// A Python that Debian links to fixed addresses.
const FIXED_PYTHON: &str = "/usr/bin/python3";

#[test]
fn origin_is_the_folder_of_the_program() {
    let folder = Folder::new("origin");
    std::fs::create_dir(folder.path().join("lib")).unwrap();
    folder.compile("beside.c", "lib/libbeside.so", &["-shared", "-fPIC"]);
    let arguments = ["-Llib", "-lbeside", "-Wl,-rpath,$ORIGIN/lib", "-Wl,--no-as-needed"];
    let program = folder.compile("where.c", "where", &arguments);
    let outcome = run(&format!("-n 3 {}", program.display()));
    assert_eq!(outcome.lines(), vec![format!("{} found beside the program", program.display()); 3]);

    let elsewhere = Folder::new("origin-link");
    let link = elsewhere.path().join("renamed");
    std::os::unix::fs::symlink(&program, &link).unwrap();
    let outcome = run(&format!("-n 2 {}", link.display()));
    assert_eq!(outcome.lines(), vec![format!("{} found beside the program", link.display()); 2]);
}

#[test]
fn cxx_programs_run() {
    let folder = Folder::new("cxx");
    let program = folder.compile("exceptions.cpp", "exceptions", &[]);
    assert_eq!(run(&format!("-n 6 {}", program.display())).lines(), ["done"; 6]);
}

#[test]
fn rust_programs_run() {
    let folder = Folder::new("rust");
    let program = folder.compile("threads.rs", "threads", &[]);
    assert_eq!(run(&format!("-n 6 {}", program.display())).lines(), ["done"; 6]);
}

#[test]
fn scripts_run_through_their_interpreter() {
    let folder = Folder::new("script");
    let script = folder.file("script", b"#!/bin/sh -e\necho $0 $1 $-\n");
    let outcome = run(&format!("-n 2 {} x", script.display()));
    assert_eq!(outcome.lines(), vec![format!("{} x e", script.display()); 2]);

    let script = folder.file("env-script", b"#!/usr/bin/env -S sh -e\necho $$ $PPID $-\n");
    let mut command = pip_exec(["-n", "2", "./env-script"]);
    command.current_dir(folder.path());
    let child = support::start(&mut command);
    let root = child.id();
    let outcome = support::finish(child, std::time::Instant::now());
    for line in outcome.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words[1..], [root.to_string().as_str(), "e"], "{}", script.display());
    }
}

#[test]
fn names_are_found_in_the_ranks_path() {
    let folder = Folder::new("path");
    folder.file("cohort-tool", b"#!/bin/sh\necho tool\n");
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let outcome = run(&format!("-n 2 -env PATH {path} cohort-tool"));
    assert_eq!(outcome.lines(), ["tool"; 2]);
}

#[test]
fn python_runs_even_if_it_is_linked_to_fixed_addresses() {
    assert!(Path::new(FIXED_PYTHON).exists(), "{FIXED_PYTHON} is missing (tools/cache.sh judges)");
    let folder = Folder::new("python");
    let script = folder.file(
        "script.py",
        b"import sys, os, ctypes, threading, decimal\n\
          assert decimal.Decimal('1.1') * 10 == 11\n\
          print(sys.executable, sys.argv[1:], os.getppid())\n",
    );
    let mut command = pip_exec(["-n", "4", FIXED_PYTHON]);
    command.arg(&script).arg("x").env_remove("PYTHONUNBUFFERED");
    let child = support::start(&mut command);
    let root = child.id();
    let outcome = support::finish(child, std::time::Instant::now());
    assert_eq!(outcome.lines(), vec![format!("{FIXED_PYTHON} ['x'] {root}"); 4]);
}

#[test]
fn standard_input_goes_to_rank_0() {
    let outcome = run_command(&mut pip_exec(["-n", "3", "-l", "cat"]), b"one\ntwo");
    assert_eq!(outcome.lines(), ["[0] one", "[0] two"]);
}

#[test]
fn labels_keep_lines_whole() {
    let script = "i=0; while [ $i -lt 200 ]; do echo abc; i=$((i+1)); done; printf end; echo e >&2";
    let outcome = run_command(&mut pip_exec(["-n", "4", "--label", "sh", "-c", script]), b"");
    assert_eq!(outcome.status, 0);
    for rank in 0..4 {
        let count = |line: String| outcome.output.lines().filter(|found| **found == line).count();
        assert_eq!(count(format!("[{rank}] abc")), 200);
        assert_eq!(count(format!("[{rank}] end")), 1);
        assert!(outcome.error.lines().any(|line| line == format!("[{rank}] e")));
    }
    assert_eq!(outcome.output.lines().count(), 4 * 201);
}

#[test]
fn three_hundred_ranks_start_and_end() {
    let outcome = run("-n 300 /bin/true");
    assert_eq!(outcome.lines().len(), 0);
    assert!(outcome.elapsed.as_secs() < 10, "{outcome:?}");
}
