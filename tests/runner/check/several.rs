//! Programs that have many cases in one job: `PROGRAM wrong`, in which all are found and nothing else, and
//! `PROGRAM right`, of which nothing is said.

use super::{FOUND, MISTAKEN_LAYOUTS, MISTAKEN_REQUESTS, job, only_summary};
use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::{Outcome, place};

/// The first words of a finding, and words in it.
pub type Expected = (&'static str, &'static [&'static str]);

/// What is found in `mistaken_requests.c`.
const REQUESTS: &[Expected] = &[
    ("error[misused]", &["(started it)", "MPI_Start in start_twice", "(starts it again)", "a persistent receive"]),
    ("error[misused]", &["MPI_Startall in startall_twice", "(starts it again)", "a persistent send"]),
    ("error[misused]", &["MPI_Start in start_in_loop", "(starts it again)"]),
    ("error[misused]", &["MPI_Iallreduce in free_collective", "MPI_Request_free in", "(frees it)"]),
    ("error[misused]", &["MPI_Ibarrier in free_barrier", "MPI_Request_free in", "(frees it)"]),
    ("error[misused]", &["MPI_Ibcast in cancel_collective", "MPI_Cancel in", "(cancels it)"]),
    ("error[misused]", &["MPI_Pready in ready_twice", "(marks it again)", "partition 2 of 4"]),
    ("error[misused]", &["MPI_Pready_list in ready_in_list", "(marks it again)", "partition 0 of 2"]),
    ("error[misused]", &["MPI_Pready_range in ready_before_start", "a partitioned send that is not started"]),
    ("error[misused]", &["MPI_Pready in ready_receive", "has no partitions to send"]),
    ("error[misused]", &["MPI_Cancel in cancel_partitioned", "a partitioned receive that is under way"]),
    ("hint[doubtful]", &["MPI_Irecv in free_receive", "MPI_Request_free in", "a receive that is under way"]),
    ("hint[doubtful]", &["MPI_Irecv in free_any_receive", "MPI_Request_free in"]),
    ("hint[doubtful]", &["MPI_Start in free_started", "a persistent receive that is under way"]),
    ("hint[doubtful]", &["MPI_Isend in cancel_send", "MPI_Cancel in", "a send that is under way"]),
    ("hint[doubtful]", &["MPI_Issend in cancel_synchronous", "MPI_Cancel in"]),
    ("hint[doubtful]", &["MPI_Send_init in wait_unstarted", "MPI_Wait in", "that is not started"]),
    ("hint[doubtful]", &["MPI_Recv_init in wait_again", "MPI_Wait in", "that is not started"]),
    ("hint[doubtful]", &["MPI_Recv_init in wait_first", "MPI_Wait in", "that is not started"]),
    ("error[types]", &["MPI_Isend in", "MPI_Mrecv in matched_types", "sent: 3 MPI_INT; received: 3 MPI_FLOAT"]),
    ("error[types]", &["MPI_Imrecv in matched_any", "sent: 4 MPI_SHORT; received: 4 MPI_UNSIGNED_SHORT"]),
    ("error[types]", &["MPI_Mrecv in matched_from_next", "sent: 2 MPI_DOUBLE; received: 2 MPI_LONG"]),
    ("hint[bytes]", &["MPI_Mrecv in matched_bytes", "sent: 3 MPI_INT; received: 12 MPI_BYTE"]),
    ("error[unreceived]", &["(sent)", "MPI_Mprobe in", "(took it out of the queue)", "a message of 20 bytes"]),
    ("error[windows]", &["MPI_Put in locked_puts", "bytes 4 to 15 of the window of rank 0, under shared locks"]),
    ("error[windows]", &["MPI_Get in locked_put_and_get", "MPI_Put in", "bytes 36 to 39 of the window of rank 1"]),
    ("error[windows]", &["MPI_Accumulate in locked_accumulates", "bytes 12 to 15 of the window of rank 2"]),
    ("error[changed]", &["MPI_Pready in changed_partition", "MPI_Waitall in", "byte 4 or later of partition"]),
    ("error[changed]", &["MPI_Pready_range in changed_range", "MPI_Test in", "of partition 1 of 2"]),
    ("error[changed]", &["MPI_Pready_list in changed_in_list", "MPI_Waitall in"]),
    ("error[types]", &["MPI_Psend_init in partition_types", "sent: 8 MPI_INT; received: 8 MPI_FLOAT"]),
    ("hint[bytes]", &["MPI_Precv_init in partition_bytes", "sent: 8 MPI_INT; received: 32 MPI_BYTE"]),
    ("error[requests]", &["MPI_Start in partitions_left", "a partitioned receive"]),
    ("hint[leaks]", &["MPI_Psend_init in", "the request of a partitioned send"]),
];

/// What is found in `mistaken_layouts.c`.
const LAYOUTS: &[Expected] = &[
    ("error[overlap]", &["MPI_Sendrecv in receive_twice", "the 4 bytes from byte 4 on more than once"]),
    ("error[overlap]", &["MPI_Irecv in receive_shrunk", "the 4 bytes from byte 4 on more than once"]),
    ("error[overlap]", &["ranks 1-2: MPI_Bcast in broadcast_twice", "the 2 bytes from byte 2 on more than once"]),
    ("error[overlap]", &["rank 0: MPI_Gatherv in gather_to_one_place", "the same 4 bytes, from byte 4 of the buffer"]),
    ("error[overlap]", &["MPI_Allgatherv in allgather_to_one_place", "from byte 8 of the buffer on"]),
    ("error[overlap]", &["MPI_Ialltoallv in alltoall_to_one_place", "from byte 12 of the buffer on"]),
    ("error[overlap]", &["rank 0: MPI_Put in put_twice", "more than once"]),
    ("error[types]", &["MPI_Put in put_types", "origin: 2 MPI_FLOAT; target: 1 MPI_DOUBLE"]),
    ("error[types]", &["MPI_Get in get_types", "origin: 2 MPI_INT; target: 2 MPI_FLOAT"]),
    ("hint[bytes]", &["MPI_Get in get_bytes", "origin: 8 MPI_BYTE; target: 2 MPI_INT"]),
    ("error[misused]", &["MPI_Waitall in waited_for_twice", "(is given it twice)", "a receive"]),
    ("error[misused]", &["MPI_Testany in tested_twice", "(is given it twice)"]),
    ("error[misused]", &["MPI_Waitsome in barrier_waited_for_twice", "a nonblocking collective operation"]),
    (
        "error[memory]",
        &["MPI_Win_attach in attached_and_freed", "(attached it)", "MPI_Win_free in", "400 bytes was freed"],
    ),
    ("error[memory]", &["MPI_Win_detach in freed_before_it_is_detached", "300 bytes was freed"]),
    (
        "error[changed]",
        &["MPI_Iallreduce in changed_reduction", "(reads)", "byte 28 of 40 differs first, in element 7"],
    ),
    ("error[changed]", &["rank 1: MPI_Ibcast in changed_broadcast", "MPI_Waitall in"]),
    ("error[changed]", &["MPI_Start in changed_gather", "byte 0 of 8 differs first"]),
    ("error[memory]", &["MPI_Win_attach in attached_beyond", "of 208 bytes, of a block, which has 200 bytes"]),
];

/// What is found in `mistaken_cases.f90`.
const FORTRAN: &[Expected] = &[
    ("error[requests]", &["ranks 0-1: MPI_Irecv in", "(started)", "a receive"]),
    ("error[requests]", &["MPI_Issend in request_lost", "handle is lost"]),
    ("error[types]", &["MPI_Sendrecv in exchange_types", "2 MPI_DOUBLE", "received: 2 MPI_C"]),
    ("error[types]", &["MPI_Mrecv in matched_types", "sent: 3 MPI_INTEGER; received: 3 MPI_REAL"]),
    ("hint[bytes]", &["MPI_Ssend in some_bytes", "sent: 12 MPI_BYTE; received: 3 MPI_INTEGER"]),
    ("error[changed]", &["MPI_Isend in changed", "MPI_Wait in", "byte 28 of 80 differs first, in element 7"]),
    ("error[overlap]", &["MPI_Irecv in overlapping", "MPI_Isend in", "the 4 bytes at"]),
    ("error[windows]", &["rank 0: MPI_Put in puts_meet", "rank 1: MPI_Put in", "bytes 4 to 7 of the window of rank 0"]),
    ("error[misused]", &["MPI_Start in started_twice", "(starts it again)"]),
    ("hint[doubtful]", &["MPI_Issend in cancelled", "(cancels it)"]),
    ("hint[leaks]", &["MPI_Comm_group in group_left", "a group"]),
    ("error[deadlocks]", &["rank 0: MPI_Send in circle", "rank 1: MPI_Send in circle"]),
    ("error[unreceived]", &["rank 1: MPI_Send in unreceived", "from rank 1 to rank 0 of the communicator, tag 11"]),
];

/// What is found in `mistaken.py`: calls only, as nothing is known of lines of Python.
const PYTHON: &[Expected] = &[
    ("error[requests]", &["ranks 0-1: MPI_Irecv in", "| a receive"]),
    ("error[requests]", &["ranks 0-1: MPI_Ibarrier in", "| a nonblocking collective operation"]),
    ("error[types]", &["rank 0: MPI_Send in", "sent: 4 MPI_FLOAT; received: 4 MPI_INT"]),
    ("error[types]", &["MPI_Issend in", "MPI_Mrecv in", "sent: 2 MPI_DOUBLE; received: 2 MPI_LONG_LONG"]),
    ("hint[bytes]", &["rank 0: MPI_Ssend in", "sent: 4 MPI_INT; received: 16 MPI_BYTE"]),
    ("error[changed]", &["MPI_Isend in", "byte 280 of 400 differs first, in element 70"]),
    ("error[overlap]", &["MPI_Irecv in", "both use the 4 bytes"]),
    ("error[windows]", &["rank 0: MPI_Put in", "rank 1: MPI_Put in", "bytes 0 to 15 of the window of rank 1"]),
    ("error[misused]", &["MPI_Start in", "(starts it again)"]),
    ("hint[leaks]", &["rank 0: MPI_Comm_dup in", "a communicator"]),
    ("error[deadlocks]", &["rank 0: MPI_Send in", "rank 1: MPI_Send in"]),
    ("error[unreceived]", &["rank 0: MPI_Send in", "24 bytes from rank 0 to rank 1 of the communicator, tag 2"]),
];

/// The cases of a program are what is found, each once.
pub fn found(ended: Ended, expected: &[Expected]) -> Outcome {
    let is_finding = |block: &&str| block.starts_with("error[") || block.starts_with("hint[");
    let mut blocks: Vec<&str> = ended.stderr.split("\n\n").filter(is_finding).collect();
    for (first, said) in expected {
        let is_it = |block: &&str| block.starts_with(first) && said.iter().all(|words| block.contains(words));
        match blocks.iter().position(is_it) {
            Some(place) => blocks.remove(place),
            None => return Err(ended.failure(&format!("{first} with {said:?} is not said"))),
        };
    }
    match blocks.first() {
        Some(other) => Err(ended.failure(&format!("{other:?} is said too"))),
        None => Ok(()),
    }
}

/// Requests, matched probes, partitions, and locks of windows.
pub fn requests() -> Outcome {
    in_all_abis(MISTAKEN_REQUESTS, REQUESTS)
}

/// Layouts, types of windows, memory that is attached, and lists of requests.
pub fn layouts() -> Outcome {
    in_all_abis(MISTAKEN_LAYOUTS, LAYOUTS)
}

fn in_all_abis(program: &str, expected: &[Expected]) -> Outcome {
    for abi in [Abi::Mpich, Abi::Mpi5, Abi::OpenMpi] {
        found(job((program, "wrong"), "", abi)?.run()?.expect_code(FOUND)?, expected)?;
        only_summary(job((program, "right"), "", abi)?.run()?.expect_code(0)?)?;
    }
    Ok(())
}

/// A program of Fortran.
pub fn fortran() -> Outcome {
    let folder = place::scratch()?;
    let (source, program) = (place::root().join("tests/programs/fortran/mistaken_cases.f90"), folder.join("cases"));
    let compiler = Program::new(place::built_file("mpifort")?).args(["-g", "-O1", "-Wall", "-J"]).arg(&folder);
    compiler.arg("-o").arg(&program).arg(source).seconds(120).run()?.expect_code(0)?;
    let job =
        || Ok(Program::new(place::built_file("pip-exec")?).args(["-n", "2", "--check"]).arg(&program).seconds(60));
    both(job, FORTRAN)
}

/// One of Python.
pub fn python() -> Outcome {
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let program = place::root().join("tests/programs/python/mistaken.py");
    let job = || {
        let job = Program::new(place::built_file("pip-exec")?).args(["-n", "2", "--check"]).arg(&python).arg("-B");
        Ok(job.arg(&program).seconds(60))
    };
    both(job, PYTHON)
}

/// What is said of a program's wrong cases, and of its right ones.
fn both(job: impl Fn() -> Result<Program, String>, expected: &[Expected]) -> Outcome {
    found(job()?.arg("wrong").run()?.expect_code(FOUND)?, expected)?;
    only_summary(job()?.arg("right").run()?.expect_code(0)?)
}

/// The schema of SARIF 2.1.0 asks for these properties, and for values of these kinds.
pub fn is_sarif(text: &str) -> Outcome {
    let log: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let is =
        |holds: bool, what: &str| if holds { Ok(()) } else { Err(format!("{what} is not as SARIF has it: {text}")) };
    is(log["version"] == "2.1.0" && log["$schema"].is_string(), "the log")?;
    let runs = log["runs"].as_array().ok_or("there are no runs")?;
    is(runs.len() == 1 && runs[0]["columnKind"] == "utf16CodeUnits", "the run")?;
    let driver = &runs[0]["tool"]["driver"];
    is(driver["name"].is_string() && driver["version"].is_string(), "the driver")?;
    let rules = driver["rules"].as_array().ok_or("there are no rules")?;
    let is_level = |level: &serde_json::Value| ["none", "note", "warning", "error"].iter().any(|it| level == it);
    for (place, rule) in rules.iter().enumerate() {
        is(rule["id"].is_string() && rules.iter().position(|it| it["id"] == rule["id"]) == Some(place), "a rule's id")?;
        is(rule["shortDescription"]["text"].is_string() && rule["help"]["text"].is_string(), "a rule's text")?;
        is(is_level(&rule["defaultConfiguration"]["level"]), "a rule's level")?;
    }
    for invocation in runs[0]["invocations"].as_array().into_iter().flatten() {
        is(invocation["executionSuccessful"].is_boolean(), "an invocation")?;
    }
    let results = runs[0]["results"].as_array().ok_or("there are no results")?;
    is(!results.is_empty(), "the list of results")?;
    for result in results {
        let rule = result["ruleIndex"].as_u64().and_then(|index| rules.get(index as usize));
        is(rule.is_some_and(|rule| rule["id"] == result["ruleId"]), "a result's rule")?;
        is(result["message"]["text"].is_string() && is_level(&result["level"]), "a result's text")?;
        is(result["occurrenceCount"].as_u64().is_some_and(|count| count > 0), "a result's count")?;
        is(
            result["partialFingerprints"].as_object().is_some_and(|all| all.values().all(|it| it.is_string())),
            "a print",
        )?;
        for location in ["locations", "relatedLocations"].iter().filter_map(|name| result[name].as_array()).flatten() {
            let physical = &location["physicalLocation"];
            is(physical["artifactLocation"]["uri"].as_str().is_some_and(|uri| !uri.contains(' ')), "a place's file")?;
            let line = &physical["region"]["startLine"];
            is(line.is_null() || line.as_u64().is_some_and(|line| line > 0), "a place's line")?;
            is(location["message"]["text"].is_string(), "a place's text")?;
        }
    }
    Ok(())
}
