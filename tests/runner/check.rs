//! `pip-exec --check`: each kind of mistake is found in several programs, and nothing is said of right ones.

mod nodes;
mod right;
mod several;

use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The exit status of a job in which errors were found.
const FOUND: i32 = 36;

/// The status of a job that cannot go on.
const DEADLOCKED: i32 = 35;

/// Modes of `mistakes.c`, the first words of what is found, and what else is said.
const ERRORS: &[(&str, &str, &[&str])] = &[
    ("lost_in_loop", "error[requests]", &["rank 0: MPI_Isend in lost_in_loop at mistakes.c:", "handle is lost"]),
    ("receive_left", "error[requests]", &["rank 0: MPI_Irecv in receive_left", "a receive"]),
    ("one_of_some", "error[requests]", &["rank 0: MPI_Irecv in one_of_some"]),
    ("barrier_left", "error[requests]", &["ranks 0-2: MPI_Ibarrier in barrier_left", "collective"]),
    ("reduction_tested", "error[requests]", &["ranks 1-2: MPI_Iallreduce in reduction_tested"]),
    ("gather_overwritten", "error[requests]", &["ranks 0-2: MPI_Iallgather in gather_overwritten", "handle is lost"]),
    ("changed_array", "error[changed]", &["MPI_Issend in changed_array", "MPI_Waitall in changed_array", "element 20"]),
    ("changed_persistent", "error[changed]", &["MPI_Start in changed_persistent", "of 20000 differs"]),
    ("changed_column", "error[changed]", &["MPI_Isend in changed_column", "MPI_Test in", "byte 8 of 16"]),
    ("send_and_receive", "error[overlap]", &["MPI_Irecv in send_and_receive", "MPI_Isend in", "the 4 bytes"]),
    ("exchange_of_one", "error[overlap]", &["ranks 0-1: MPI_Sendrecv in exchange_of_one", "share the 8 bytes"]),
    ("received_while_sent", "error[overlap]", &["MPI_Issend in received_while_sent", "MPI_Recv in", "the 8 bytes"]),
    ("blocking_into_pending", "error[overlap]", &["MPI_Iallreduce in blocking_into_pending", "MPI_Recv in"]),
    ("puts_meet", "error[windows]", &["rank 0: MPI_Put in", "rank 1: MPI_Put in", "bytes 12 to 15", "of rank 2"]),
    ("put_and_get", "error[windows]", &["MPI_Put in put_and_get", "MPI_Get in put_and_get", "bytes 20 to 23"]),
    ("other_operation", "error[windows]", &["MPI_Accumulate in other_operation", "bytes 8 to 11"]),
    ("origin_changed", "error[changed]", &["MPI_Put in origin_changed", "MPI_Win_unlock_all", "origin buffer"]),
    ("at_once", "error[threads]", &["MPI_Iprobe in meets", "MPI_THREAD_SERIALIZED"]),
    ("other_thread", "error[threads]", &["ranks 0-2: MPI_Barrier in calls", "MPI_THREAD_SINGLE"]),
    ("funneled_thread", "error[threads]", &["ranks 0-2: MPI_Barrier in calls", "MPI_THREAD_FUNNELED"]),
];

/// The same of `mistaken_messages.c`.
const MESSAGES: &[(&str, &str, &[&str])] = &[
    ("after_a_signal", "error[overlap]", &["ranks 0-2: MPI_Sendrecv in after_a_signal"]),
    ("unreceived_tag", "error[unreceived]", &["rank 2: MPI_Send in send", "8 bytes from rank 2 to rank 0", "tag 3"]),
    ("unreceived_on_copy", "error[unreceived]", &["rank 1: MPI_Isend in unreceived_on_copy", "8 bytes"]),
    (
        "unreceived_own",
        "error[unreceived]",
        &["ranks 0-2: MPI_Send in unreceived_own", "7 bytes from rank 0 to rank 0"],
    ),
    ("types_float", "error[types]", &["rank 0: MPI_Send", "rank 1: MPI_Recv", "3 MPI_FLOAT; received: 3 MPI_INT"]),
    ("types_any_source", "error[types]", &["MPI_Recv in types_any_source", "1 MPI_LONG; received: 4 MPI_DOUBLE"]),
    ("types_persistent", "error[types]", &["MPI_Start in types_persistent", "4 MPI_UNSIGNED; received: 4 MPI_INT"]),
    ("circle_of_two", "error[deadlocks]", &["rank 0: MPI_Wait in circle_of_two", "rank 1: MPI_Wait in circle_of_two"]),
    (
        "circle_for_long",
        "error[deadlocks]",
        &["rank 0: MPI_Send in send", "rank 1: MPI_Send in send", "before that are told"],
    ),
    ("circle_of_one", "error[deadlocks]", &["ranks 0-2: MPI_Send in send", "the rank waits for itself"]),
    ("circle_with_barrier", "error[deadlocks]", &["MPI_Send in send", "MPI_Barrier in circle_with_barrier"]),
];

/// The same of `mistaken_messages.c`, of hints.
const MESSAGE_HINTS: &[(&str, &str, &[&str])] = &[
    ("bytes_sent", "hint[bytes]", &["MPI_Send in send", "MPI_Recv in receive", "16 MPI_BYTE; received: 4 MPI_INT"]),
    ("bytes_received", "hint[bytes]", &["MPI_Irecv in bytes_received", "4 MPI_DOUBLE; received: 32 MPI_BYTE"]),
    ("bytes_exchanged", "hint[bytes]", &["MPI_Sendrecv in bytes_exchanged", "1 MPI_INT; received: 4 MPI_BYTE"]),
    ("any_in_loop", "hint[wildcards]", &["rank 0: MPI_Recv in receive", "rank 1: MPI_Send", "rank 2: MPI_Send"]),
    ("any_pending", "hint[wildcards]", &["rank 0: MPI_Irecv in any_pending", "with different data"]),
    (
        "named_after_any",
        "hint[wildcards]",
        &[
            "(could have been taken)",
            "MPI_Recv in receive",
            "(would wait for ever then)",
            "from rank 2 or rank 1, of which",
        ],
    ),
    ("named_after_status", "hint[wildcards]", &["MPI_Recv in named_after_status", "(would wait for ever then)"]),
    ("named_after_pending", "hint[wildcards]", &["MPI_Irecv in named_after_pending", "(would wait for ever then)"]),
    ("any_then_named", "hint[wildcards]", &["rank 1: MPI_Recv in receive", "from rank"]),
];

/// The same of hints, which leave the status alone.
const HINTS: &[(&str, &str, &[&str])] = &[
    ("leak_comm", "hint[leaks]", &["ranks 0-2: MPI_Comm_split in leak_comm", "a communicator", "no errors, 1 hint"]),
    ("leak_type", "hint[leaks]", &["MPI_Type_vector in leak_type", "MPI_Type_commit in leak_type", "a datatype"]),
    (
        "leak_rest",
        "hint[leaks]",
        &["MPI_Group_incl", "MPI_Op_create", "MPI_Info_create", "an error handler", "a persistent send"],
    ),
    ("ignored_length", "hint[ignored]", &["ranks 0-2: MPI_Recv in ignored_length", "an error: MPI_ERR_TRUNCATE"]),
    ("ignored_rank", "hint[ignored]", &["MPI_Send in ignored_rank", "MPI_ERR_RANK", "found 9 times"]),
    ("ignored_by_handler", "hint[ignored]", &["MPI_Bcast in ignored_by_handler", "MPI_ERR_ROOT"]),
];

/// The same of `mistaken_memory.c`.
const MEMORY: &[(&str, &str, &[&str])] = &[
    ("one_more", "error[memory]", &["rank 0: MPI_Send in send", "reads 808 bytes, from byte 0 on, of a block of 800"]),
    ("end_of_row", "error[memory]", &["MPI_Recv in", "writes 24 bytes, from byte 16 on, of a block of 32 bytes"]),
    ("last_column", "error[memory]", &["rank 0: MPI_Send in send", "reads 52 bytes", "of a block of 48 bytes"]),
    ("short_table", "error[memory]", &["ranks 1-2: MPI_Ibcast in", "writes 48 bytes", "of table, which has 40 bytes"]),
    ("short_gather", "error[memory]", &["rank 0: MPI_Gather in short_gather", "writes 12 bytes", "block of 8 bytes"]),
    ("short_alloc_mem", "error[memory]", &["rank 2: MPI_Recv in receive", "writes 72 bytes", "block of 64 bytes"]),
    (
        "short_window",
        "error[memory]",
        &["ranks 0-2: MPI_Win_create in", "a window of 80 bytes, of a block, which has 64"],
    ),
    ("freed_before", "error[memory]", &["free in freed_before", "byte 500 of a block of 1000 bytes, which was freed"]),
    (
        "freed_receive",
        "error[memory]",
        &["MPI_Irecv in freed_receive", "free in freed_receive", "block of 40 bytes was freed"],
    ),
    ("moved_persistent", "error[memory]", &["MPI_Start in", "free in moved_persistent", "MPI_Wait in"]),
    (
        "freed_collective",
        "error[memory]",
        &["ranks 0-2: MPI_Iallreduce in", "free in freed_collective", "block of 4 bytes"],
    ),
    ("returned_sends", "error[memory]", &["MPI_Issend in begin_sends", "function that has returned"]),
    ("returned_receive", "error[memory]", &["MPI_Irecv in begin_receive", "function that has returned"]),
    ("returned_sum", "error[memory]", &["MPI_Iallreduce in begin_sum", "function that has returned"]),
    (
        "freed_window",
        "error[memory]",
        &["rank 1: MPI_Win_create in", "free in freed_window", "MPI_Win_fence in freed_window"],
    ),
    (
        "freed_target",
        "error[memory]",
        &["rank 0: free in freed_target", "rank 2: MPI_Get in freed_target", "4000 bytes"],
    ),
    (
        "short_gatherv",
        "error[memory]",
        &["rank 0: MPI_Gatherv in", "writes 12 bytes, from byte 12 on, of a block of 20"],
    ),
    ("short_alltoallv", "error[memory]", &["MPI_Ialltoallv in", "reads 1 bytes, from byte 2 on, of a block of 2"]),
    ("short_pack", "error[memory]", &["MPI_Pack in", "reads 12 bytes, from byte 0 on, of a block of 8"]),
    ("short_unpack", "error[memory]", &["MPI_Unpack in", "writes 16 bytes, from byte 0 on, of a block of 12"]),
    ("short_reduce_local", "error[memory]", &["MPI_Reduce_local in", "writes 20 bytes", "a block of 16"]),
    ("short_file", "error[memory]", &["MPI_File_write_at_all in", "reads 9 bytes", "a block of 8"]),
    ("pack_pending", "error[overlap]", &["MPI_Irecv in", "MPI_Pack in pack_pending", "use the 4 bytes"]),
    (
        "unmapped_window",
        "error[memory]",
        &["MPI_Win_create in unmapped_window", "a window of memory that is not there"],
    ),
];

/// The same of hints.
const MEMORY_HINTS: &[(&str, &str, &[&str])] = &[
    ("same_window", "hint[exposed]", &["ranks 0-2: MPI_Win_create in same_window", "40 bytes in common"]),
    ("windows_meet", "hint[exposed]", &["ranks 0-2: MPI_Win_create in windows_meet", "20 bytes in common"]),
    ("window_in_window", "hint[exposed]", &["rank 1: MPI_Win_create in window_in_window", "4 bytes in common"]),
];

/// Modes without a mistake.
const RIGHT: &[&str] = &[
    "right_requests",
    "right_copies",
    "right_columns",
    "right_objects",
    "right_threads",
    "right_windows",
    "right_errors",
];

/// The same of `mistaken_memory.c`.
const RIGHT_MEMORY: &[&str] = &["right_blocks", "right_places", "right_lives", "right_parts", "right_local"];

/// Modes of `mistaken_messages.c` without a mistake.
const RIGHT_MESSAGES: &[&str] =
    &["right_ring", "right_farm", "right_types", "right_open", "right_probed", "right_orders"];

/// The programs.
const MISTAKES: &str = "mistakes";
const MISTAKEN_MESSAGES: &str = "mistaken_messages";
const MISTAKEN_MEMORY: &str = "mistaken_memory";
const MISTAKEN_REQUESTS: &str = "mistaken_requests";
const MISTAKEN_LAYOUTS: &str = "mistaken_layouts";

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let all = [
        (MISTAKES, ERRORS, FOUND),
        (MISTAKES, HINTS, 0),
        (MISTAKEN_MESSAGES, MESSAGES, FOUND),
        (MISTAKEN_MESSAGES, MESSAGE_HINTS, 0),
        (MISTAKEN_MEMORY, MEMORY, FOUND),
        (MISTAKEN_MEMORY, MEMORY_HINTS, 0),
    ];
    let mut trials = Vec::new();
    for (program, modes, status) in all {
        for &(mode, first, said) in modes {
            trials.push(trial(format!("check/{mode}"), move || finds((program, mode), first, said, status)));
        }
    }
    for (program, modes) in [(MISTAKES, RIGHT), (MISTAKEN_MESSAGES, RIGHT_MESSAGES), (MISTAKEN_MEMORY, RIGHT_MEMORY)] {
        trials.extend(modes.iter().map(|mode| trial(format!("check/{mode}"), move || is_silent(program, mode))));
    }
    trials.push(trial("check/requests".into(), several::requests));
    trials.push(trial("check/layouts".into(), several::layouts));
    trials.push(trial("check/deadlock".into(), deadlock));
    trials.push(trial("check/abort".into(), abort));
    trials.push(trial("check/nodes".into(), nodes::messages));
    trials.push(trial("check/cases of Fortran".into(), several::fortran));
    trials.push(trial("check/cases of Python".into(), several::python));
    trials.push(trial("check/options".into(), options));
    trials.push(trial("check/reports".into(), reports));
    trials.push(trial("check/unmapped".into(), unmapped));
    trials.push(trial("check/ways".into(), ways));
    trials.push(trial("check/fortran".into(), fortran));
    trials.push(trial("check/page".into(), page));
    trials.push(trial("check/suppressions".into(), suppressions));
    trials.extend(right::trials());
    trials.push(trial("check/mpi4py".into(), mpi4py));
    trials
}

fn executable(program: &str, abi: Abi) -> Result<PathBuf, String> {
    let source = place::root().join(format!("tests/programs/tools/{program}.c"));
    programs::compile_as(&format!("{program}-{abi}"), &source, abi, &["-pthread".to_owned()])
}

fn job((program, mode): (&str, &str), words: &str, abi: Abi) -> Result<Program, String> {
    let executable = executable(program, abi)?;
    let check = format!("--check{words}");
    Ok(Program::new(place::built_file("pip-exec")?).args(["-n", "3", &check]).arg(executable).arg(mode).seconds(60))
}

/// A job that cannot go on ends, and what was found before is told.
fn deadlock() -> Outcome {
    let job =
        || job((MISTAKEN_MESSAGES, "never_matched"), "", Abi::Mpi5).map(|job| job.env("COHORT_DEADLOCK_AFTER", "1"));
    let ended = job()?.run()?.expect_code(DEADLOCKED)?;
    let ended = ended.expect_text("waits for tag 2, and has a message from rank 0 with tag 1")?;
    ended.expect_text("check: no errors, no hints besides what has ended the job")?;
    // Who wants to look at it oneself says so.
    let told = Program::new(place::built_file("pip-exec")?).args(["-n", "3", "--timeout", "4", "--check"]);
    let told = told.arg(executable(MISTAKEN_MESSAGES, Abi::Mpi5)?).arg("never_matched");
    let told = told.env("COHORT_DEADLOCK", "report").env("COHORT_DEADLOCK_AFTER", "1").seconds(60);
    told.run()?.expect_code(124)?.expect_text("the job cannot go on")?;
    Ok(())
}

/// What was found is told of ranks that are ended while they are in the checker.
fn abort() -> Outcome {
    let ended = job((MISTAKEN_MESSAGES, "busy_at_abort"), "", Abi::Mpich)?.run()?.expect_code(3)?;
    ended.expect_text("error[overlap]")?.expect_text("check: 1 error, no hints besides what has ended the job")?;
    Ok(())
}

/// A mistake is found in all ABIs' programs, and nothing else.
fn finds(mode: (&str, &str), first: &str, said: &[&str], status: i32) -> Outcome {
    for abi in [Abi::Mpich, Abi::Mpi5, Abi::OpenMpi] {
        let mut ended = job(mode, "", abi)?.run()?.expect_code(status)?.expect_text(first)?;
        for text in said {
            ended = ended.expect_text(text)?;
        }
        let mut findings = ended.stderr.lines().filter(|line| line.starts_with("error[") || line.starts_with("hint["));
        if let Some(other) = findings.find(|line| !line.starts_with(first)) {
            return Err(ended.failure(&format!("{other:?} is said of {}", mode.1)));
        }
    }
    Ok(())
}

fn only_summary(ended: Ended) -> Outcome {
    let is_other = |line: &&str| !line.is_empty() && *line != "check: no errors, no hints";
    match ended.stderr.lines().find(is_other) {
        Some(line) => Err(ended.failure(&format!("{line:?} is said"))),
        None => ended.expect_text("check: no errors, no hints").map(drop),
    }
}

fn is_silent(program: &str, mode: &str) -> Outcome {
    for abi in [Abi::Mpich, Abi::Mpi5, Abi::OpenMpi] {
        only_summary(job((program, mode), "", abi)?.run()?.expect_code(0)?)?;
    }
    Ok(())
}

/// Some of mpi4py's own suite.
fn mpi4py() -> Outcome {
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let suite = place::cached("mpi4py-src/test/main.py", "mpi4py-src")?;
    let job = Program::new(place::built_file("pip-exec")?)
        .args(["-n", "2", "--check=no-bytes,no-doubtful"])
        .arg(python)
        .arg("-B");
    let job = job.arg(suite).args(["--no-builddir", "-i", "test_request.py|test_p2p_obj.py|test_status.py"]);
    job.seconds(60).run()?.expect_code(0)?.expect_text("check: no errors, no hints").map(drop)
}

/// Kinds are left out, findings leave the status alone, and are written to a file.
fn options() -> Outcome {
    only_summary(job((MISTAKES, "barrier_left"), "=no-requests", Abi::Mpich)?.run()?.expect_code(0)?)?;
    let file = place::scratch()?.join("found.json");
    let words = format!("=warn,json:{}", file.display());
    job((MISTAKES, "barrier_left"), &words, Abi::Mpich)?.run()?.expect_code(0)?.expect_text("error[requests]")?;
    let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
    for part in ["\"errors\":1", "\"kind\":\"requests\"", "\"ranks\":[0,1,2]", "\"file\":\"mistakes.c\""] {
        if !text.contains(part) {
            return Err(format!("{part} is missing in {text}"));
        }
    }
    job((MISTAKES, "barrier_left"), "=nonsense", Abi::Mpich)?
        .run()?
        .expect_code(2)?
        .expect_text("is not known")
        .map(drop)
}

/// Programs of several ABIs in one job, those that wrappers execute, and spawned ones.
fn ways() -> Outcome {
    let [mpich, mpi5] = [Abi::Mpich, Abi::Mpi5].map(|abi| executable(MISTAKES, abi));
    let (mpich, mpi5) = (mpich?, mpi5?);
    let run = |words: &[&OsStr]| {
        let job = Program::new(place::built_file("pip-exec")?).arg("--check").args(words).seconds(60);
        job.run()?.expect_code(FOUND)
    };
    let (left, and) = (OsStr::new("barrier_left"), OsStr::new(":"));
    let ranks = |count| [OsStr::new("-n"), OsStr::new(count)];
    let several = [&ranks("1")[..], &[mpich.as_os_str(), left, and], &ranks("2"), &[mpi5.as_os_str(), left]].concat();
    run(&several)?.expect_text("ranks 0-2: MPI_Ibarrier in barrier_left")?;
    let wrapped = [&ranks("3")[..], &[OsStr::new("env"), OsStr::new("A=b"), mpich.as_os_str(), left]].concat();
    run(&wrapped)?.expect_text("ranks 0-2: MPI_Ibarrier in barrier_left")?;
    let spawning = [&ranks("1")[..], &[mpich.as_os_str(), OsStr::new("spawned")]].concat();
    run(&spawning)?.expect_text("ranks 0-1: MPI_Ibarrier in barrier_left at mistakes.c:").map(drop)
}

/// Modes of `mistaken.f90`, and what is said of them.
const FORTRAN: &[(&str, &[&str], i32)] = &[
    ("lost", &["error[requests]", "ranks 0-1: MPI_Ibarrier in lost at mistaken.f90:"], FOUND),
    ("left", &["hint[leaks]", "MPI_Type_vector in left at mistaken.f90:", "MPI_Type_commit in left"], 0),
    ("differ", &["error[types]", "rank 0: MPI_Send in differ", "sent: 4 MPI_REAL; received: 4 MPI_INTEGER"], FOUND),
    ("beyond", &["error[memory]", "MPI_Bcast in beyond", "88 bytes, from byte 0 on, of a block of 80 bytes"], FOUND),
    ("temporary", &["error[memory]", "MPI_Issend in temporary", "free in temporary", "MPI_Wait in"], FOUND),
    ("right", &["check: no errors, no hints"], 0),
];

fn fortran() -> Outcome {
    let folder = place::scratch()?;
    let (source, program) = (place::root().join("tests/programs/fortran/mistaken.f90"), folder.join("mistaken"));
    let compiler = Program::new(place::built_file("mpifort")?).args(["-g", "-O1", "-Wall", "-J"]).arg(&folder);
    compiler.arg("-o").arg(&program).arg(source).seconds(120).run()?.expect_code(0)?;
    for (mode, said, status) in FORTRAN {
        let job = Program::new(place::built_file("pip-exec")?).args(["-n", "2", "--check"]).arg(&program).arg(mode);
        let mut ended = job.seconds(60).run()?.expect_code(*status)?;
        for text in *said {
            ended = ended.expect_text(text)?;
        }
    }
    Ok(())
}

/// Which modes the examples of the page are of, in their order.
const QUOTED: &[(&str, &str)] = &[
    (MISTAKES, "gather_overwritten"),
    (MISTAKEN_MESSAGES, "unreceived_tag"),
    (MISTAKES, "changed_array"),
    (MISTAKES, "send_and_receive"),
    (MISTAKEN_MESSAGES, "bytes_sent"),
    (MISTAKES, "funneled_thread"),
    (MISTAKES, "puts_meet"),
    (MISTAKEN_MESSAGES, "circle_with_barrier"),
    (MISTAKEN_MESSAGES, "any_pending"),
    (MISTAKEN_MEMORY, "one_more"),
    (MISTAKEN_MEMORY, "freed_target"),
    (MISTAKEN_MEMORY, "window_in_window"),
    (MISTAKES, "ignored_length"),
    (MISTAKES, "leak_type"),
    (MISTAKEN_REQUESTS, "wrong"),
    (MISTAKEN_REQUESTS, "wrong"),
    (MISTAKEN_REQUESTS, "wrong"),
    (MISTAKEN_REQUESTS, "wrong"),
];

/// What changes from run to run is one letter: addresses, and which rank is the first of several.
fn steady(line: &str) -> String {
    let mut words: Vec<&str> = line.trim_end().split(' ').collect();
    let is_any = line.contains(" taken)") || line.contains("from rank");
    for at in 0..words.len() {
        if words[at].starts_with("0x") || (is_any && at > 0 && words[at - 1] == "rank") {
            words[at] = "*";
        }
    }
    words.join(" ")
}

/// The examples of the page are what is said.
fn page() -> Outcome {
    let text = std::fs::read_to_string(place::root().join("docs/checking.md")).map_err(|error| error.to_string())?;
    let examples = text.split_once("### Examples").and_then(|(_, rest)| rest.split("```").nth(1));
    let blocks: Vec<&str> = examples.ok_or("there are no examples")?.trim().split("\n\n").collect();
    if blocks.len() != QUOTED.len() {
        return Err(format!("{} examples are of {} modes", blocks.len(), QUOTED.len()));
    }
    for (block, &mode) in blocks.into_iter().zip(QUOTED) {
        let ended = job(mode, "=warn", Abi::Mpich)?.run()?.expect_code(0)?;
        let said: Vec<String> = ended.stderr.lines().map(steady).collect();
        if let Some(line) = block.lines().find(|line| !said.contains(&steady(line))) {
            return Err(ended.failure(&format!("{line:?} of docs/checking.md is not said of {}", mode.1)));
        }
    }
    Ok(())
}

/// The job dies of what was found.
fn unmapped() -> Outcome {
    let killed = 128 + 11;
    for (mode, said) in [
        ("unmapped_send", "rank 0: MPI_Send in send at mistaken_memory.c:"),
        ("unmapped_receive", "rank 1: MPI_Recv in receive at mistaken_memory.c:"),
    ] {
        let ended = job((MISTAKEN_MEMORY, mode), "", Abi::Mpich)?.run()?.expect_code(killed)?;
        ended.expect_text("error[memory]")?.expect_text(said)?.expect_text("there is no memory at all")?;
    }
    Ok(())
}

/// Files for pull requests and for CI servers.
fn reports() -> Outcome {
    let folder = place::scratch()?;
    let [sarif, junit] = ["found.sarif", "found.xml"].map(|name| folder.join(name));
    let words = format!("=sarif:{},junit:{}", sarif.display(), junit.display());
    job((MISTAKEN_MEMORY, "freed_receive"), &words, Abi::Mpich)?.run()?.expect_code(FOUND)?;
    let read = |file: &Path| std::fs::read_to_string(file).map_err(|error| error.to_string());
    let has = |text: &str, parts: &[&str]| match parts.iter().find(|part| !text.contains(**part)) {
        Some(part) => Err(format!("{part} is missing in {text}")),
        None => Ok(()),
    };
    has(&read(&sarif)?, &["\"ruleId\": \"memory\"", "tools/mistaken_memory.c\"", "\"startLine\": 1"])?;
    several::is_sarif(&read(&sarif)?)?;
    has(&read(&junit)?, &["failures=\"1\"", "check.memory", "check.types", "MPI_Irecv in freed_receive"])
}

/// Findings that a file suppresses are not told, and what suppresses nothing is.
fn suppressions() -> Outcome {
    let file = place::scratch()?.join("known");
    let run = |patterns: &str, status| {
        std::fs::write(&file, patterns).map_err(|error| error.to_string())?;
        let words = format!("=suppress:{}", file.display());
        job((MISTAKEN_MEMORY, "freed_receive"), &words, Abi::Mpich)?.run()?.expect_code(status)
    };
    run("# known\nmemory in freed_* at mistaken_memory.c:*\n", 0)?
        .expect_text("check: no errors, no hints, 1 suppressed")?;
    run("memory call MPI_Send\n", FOUND)?.expect_text("line 1 of ")?.expect_text("suppresses nothing: memory call")?;
    run("\nmemories\n", 2)?.expect_text("line 2 of ")?.expect_text("\"memories\" is no kind").map(drop)
}
