//! Timelines (`COHORT_TRACE`): read by a strict reader of the trace event format, which knows what viewers do with
//! each field, and asked for what the program did.

mod reader;

use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::nodes::Hosts;
use crate::trials::Trial;
use crate::{Outcome, event, place, programs, trial};
use reader::{Timeline, read};
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("trace/calls and messages".into(), messages),
        trial("trace/stolen work".into(), stolen),
        trial("trace/threads".into(), threads),
        trial("trace/the oldest events are dropped and counted".into(), overflow),
        trial("trace/200 ranks".into(), many_ranks),
        trial("trace/spawned ranks".into(), spawned),
        trial("trace/ranks that a process without a launcher spawns".into(), founded),
        trial("trace/a killed rank".into(), || ended_within_a_call("kill", 137)),
        trial("trace/MPI_Abort".into(), || ended_within_a_call("abort", 3)),
        trial("trace/--timeout".into(), timeout),
        trial("trace/a killed launcher".into(), killed_launcher),
        trial("trace/a file that cannot be written".into(), unwritable),
        trial("trace/a picture".into(), picture),
        trial("trace/an archive of OTF2".into(), archive),
        trial("trace/nodes".into(), nodes),
        trial("trace/nodes, one of which fails".into(), killed_on_nodes),
    ]
}

fn program() -> Result<PathBuf, String> {
    let source = place::root().join("tests/programs/tools/traced.c");
    let options = ["-pthread".to_owned()];
    programs::compile_as("traced", &source, Abi::Mpich, &options)
}

/// A fresh name for a timeline.
fn file(name: &str) -> Result<PathBuf, String> {
    let file = place::scratch()?.join(format!("{name}.trace"));
    let _ = std::fs::remove_file(&file);
    Ok(file)
}

/// Runs the program with a timeline.
fn traced(file: &Path, ranks: &str, what: &str, settings: &[&str]) -> Result<Ended, String> {
    let name = file.display().to_string();
    let settings = settings.chunks(2).flat_map(|pair| ["-genv", pair[0], pair[1]]);
    Program::new(place::built_file("pip-exec")?)
        .args(["-n", ranks, "-genv", "COHORT_TRACE", &name])
        .args(settings)
        .arg(program()?)
        .arg(what)
        .run()
}

fn expect(what: &str, found: usize, expected: usize) -> Outcome {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: {found}, not {expected}")),
    }
}

/// Messages of tag 7: that many left, came, and are joined by arrows.
fn expect_messages(timeline: &Timeline, count: usize) -> Outcome {
    let of = |category| timeline.pieces(category).filter(|it| it.fact("tag") == Some(7));
    expect("messages that left", of("sent").count(), count)?;
    expect("messages that came", of("received").count(), count)?;
    let joined = of("sent").filter_map(|sent| {
        let came = timeline.end_of(sent.leaves?)?;
        let is_its = came.fact("bytes") == sent.fact("bytes") && came.category == "received";
        (is_its && came.fact("peer") == Some(sent.rank.into())).then_some(())
    });
    expect("arrows of messages", joined.count(), count)
}

fn messages() -> Outcome {
    let file = file("messages")?;
    traced(&file, "4", "messages", &[])?.expect_code(0)?;
    let timeline = read(&file)?;
    for (name, count) in [("MPI_Init_thread", 4), ("MPI_Send", 16), ("MPI_Irecv", 16), ("MPI_Finalize", 4)] {
        expect(name, timeline.calls(name).count(), count)?;
    }
    for send in timeline.calls("MPI_Send") {
        expect("the peer", send.fact("peer").unwrap_or(-9) as usize, (send.rank as usize + 1) % 4)?;
    }
    let bytes: i64 = timeline.calls("MPI_Send").filter_map(|send| send.fact("bytes")).sum();
    expect("bytes", bytes as usize, 4 * (8 + 4096 + 100_000 + (1 << 20)))?;
    expect("unfinished", timeline.unfinished().count(), 0)?;
    expect("lost", timeline.lost as usize, 0)?;
    expect_messages(&timeline, 16)
}

/// Rank 1 is not in MPI while its message comes, so rank 0, which waits, did that.
fn stolen() -> Outcome {
    let file = file("stolen")?;
    traced(&file, "2", "steal", &["COHORT_PROGRESS", "steal"])?.expect_code(0)?;
    let timeline = read(&file)?;
    let by_thief = timeline.pieces("steal").filter(|it| it.rank == 0 && it.fact("owner") == Some(1));
    let bytes: i64 = by_thief.clone().filter_map(|it| it.fact("bytes")).sum();
    if bytes == 0 {
        return Err("rank 0 has moved nothing for rank 1".into());
    }
    let joined = by_thief.clone().filter(|stolen| {
        let owner = stolen.leaves.and_then(|arrow| timeline.end_of(arrow));
        owner.is_some_and(|it| it.rank == 1 && it.category == "helped" && it.begin == stolen.begin)
    });
    expect("arrows to the owner", joined.count(), by_thief.count())?;
    expect_messages(&timeline, 1)
}

/// Each spawned rank has a track of its own name, also where another one has been before.
fn spawned() -> Outcome {
    let file = file("spawned")?;
    let source = place::root().join("tests/programs/tools/traced_spawn.c");
    let name = file.display().to_string();
    let job = Program::new(place::built_file("pip-exec")?).args(["-n", "2", "-genv", "COHORT_TRACE", &name]);
    job.arg(programs::compile(&source, Abi::Mpi5, &[])?).run()?.expect_code(0)?;
    let timeline = read(&file)?;
    expect("ranks", timeline.ranks.len(), 6)?;
    expect("MPI_Sendrecv", timeline.calls("MPI_Sendrecv").count(), 16)?;
    expect("unfinished", timeline.unfinished().count(), 0)?;
    expect_messages(&timeline, 16)?;
    for (track, peer) in [("rank 1.0", "0"), ("rank 1.1", "1"), ("rank 2.0", "1"), ("rank 2.1", "0"), ("rank 1", "2.1")]
    {
        let sent = format!("message to rank {peer}");
        let sent = timeline.pieces("sent").filter(|it| it.track == track && it.name == sent);
        let came = |it: &reader::Piece| timeline.end_of(it.leaves?).map(|end| end.track.clone());
        let ends: Vec<_> = sent.filter(|it| it.fact("tag") == Some(7)).map(came).collect();
        if ends != [Some(format!("rank {peer}"))] {
            return Err(format!("messages of {track} to rank {peer} end at {ends:?}"));
        }
    }
    Ok(())
}

/// The process itself is not in it, which is said.
fn founded() -> Outcome {
    let file = file("founded")?;
    let source = place::root().join("tests/programs/tools/traced_spawn.c");
    let job = Program::new(programs::compile(&source, Abi::Mpi5, &[])?).env("COHORT_TRACE", &file);
    job.seconds(60).run()?.expect_code(0)?.expect_text("the timeline has the spawned ranks only")?;
    let timeline = read(&file)?;
    expect("ranks", timeline.ranks.len(), 4)?;
    expect("MPI_Sendrecv", timeline.calls("MPI_Sendrecv").count(), 4)?;
    expect("unfinished", timeline.unfinished().count(), 0)?;
    for track in ["rank 1.0", "rank 1.1", "rank 2.0", "rank 2.1"] {
        let sent = timeline.pieces("sent").filter(|it| it.track == track && it.name == "message to rank 0");
        expect(track, sent.filter(|it| it.fact("tag") == Some(7)).count(), 1)?;
    }
    Ok(())
}

/// Each thread has a track; what it does lies within its own calls.
fn threads() -> Outcome {
    let file = file("threads")?;
    traced(&file, "2", "threads", &[])?.expect_code(0)?;
    let timeline = read(&file)?;
    expect("MPI_Sendrecv", timeline.calls("MPI_Sendrecv").count(), 80)?;
    for rank in 0..2 {
        let names = timeline.tracks_of(rank);
        for name in [format!("rank {rank}"), format!("rank {rank}: thread 1")] {
            if !names.contains(&name) {
                return Err(format!("no track {name}: {names:?}"));
            }
            let calls = timeline.calls("MPI_Sendrecv").filter(|it| it.track == name);
            let tags: Vec<_> = calls.filter_map(|call| call.fact("tag")).collect();
            expect("calls of a thread", tags.len(), 20)?;
            if tags.windows(2).any(|pair| pair[0] != pair[1]) {
                return Err(format!("{name} has calls of both threads"));
            }
        }
    }
    Ok(())
}

fn overflow() -> Outcome {
    let file = file("overflow")?;
    let few = ["COHORT_TRACE_EVENTS", "64"];
    let said = "events of rank 0 and 1 more are not in the timeline; COHORT_TRACE_EVENTS=64";
    traced(&file, "2", "many", &few)?.expect_code(0)?.expect_text(said)?;
    let timeline = read(&file)?;
    for rank in &timeline.ranks {
        // A call is one event, and each message one more on either side.
        if rank.events < 2000 || rank.events - rank.lost > 64 {
            return Err(format!("rank {}: {} of {} lost", rank.rank, rank.lost, rank.events));
        }
    }
    match timeline.calls("MPI_Finalize").count() {
        2 => Ok(()),
        other => Err(format!("the newest events are kept, but {other} ranks end")),
    }
}

fn many_ranks() -> Outcome {
    let file = file("ranks")?;
    traced(&file, "200", "short", &[])?.expect_code(0)?;
    let timeline = read(&file)?;
    expect("MPI_Send", timeline.calls("MPI_Send").count(), 400)?;
    expect_messages(&timeline, 400)
}

/// A rank that is killed, or ends the job, leaves what it did until then.
fn ended_within_a_call(how: &str, code: i32) -> Outcome {
    let file = file(how)?;
    traced(&file, "3", how, &[])?.expect_code(code)?;
    let timeline = read(&file)?;
    expect("MPI_Init_thread", timeline.calls("MPI_Init_thread").count(), 3)?;
    let names: Vec<_> = timeline.unfinished().filter(|it| it.rank == 1).map(|it| &*it.name).collect();
    let expected: &[&str] = match how {
        "kill" => &["MPI_Comm_free"],
        _ => &["MPI_Comm_free", "MPI_Abort"],
    };
    match names == expected {
        true => Ok(()),
        false => Err(format!("rank 1 ended within {names:?}")),
    }
}

fn timeout() -> Outcome {
    let file = file("timeout")?;
    Program::new(place::built_file("pip-exec")?)
        .args(["--timeout", "4", "-n", "2", "-genv", "COHORT_TRACE"])
        .arg(&file)
        .arg(program()?)
        .arg("stay")
        .run()?
        .expect_code(124)?;
    read(&file).map(drop)
}

/// Nobody can write the timeline any more; no empty file is left.
fn killed_launcher() -> Outcome {
    let file = file("killed_launcher")?;
    let mut started = Ok(());
    let ended = Program::new(place::built_file("pip-exec")?)
        .args(["-n", "2", "-genv", "COHORT_TRACE"])
        .arg(&file)
        .arg(program()?)
        .arg("stay")
        .run_with(|root| {
            let path = format!("/proc/{root}/task/{root}/children");
            // The guardian's parent is a child for a moment.
            let has_ranks = || {
                let children = std::fs::read_to_string(&path).unwrap_or_default();
                children.split_whitespace().count() >= 2
            };
            started = event::until("ranks", has_ranks);
            let root = Pid::from_raw(root.cast_signed()).expect("a process");
            let _ = kill_process(root, Signal::KILL);
        })?;
    started?;
    let ended = ended.expect_text("pip-exec: killed before it could write ")?;
    match file.exists() {
        true => Err(ended.failure("an empty file is left")),
        false => Ok(()),
    }
}

fn unwritable() -> Outcome {
    let said = "COHORT_TRACE=/nowhere/at/all: /nowhere/at/all cannot be written: No such file or directory";
    let ended = traced(Path::new("/nowhere/at/all"), "2", "short", &[])?;
    ended.expect_code(2)?.expect_text(said)?;
    // The disk is full only when the ranks have ended, and well.
    let full = traced(Path::new("/dev/full"), "2", "short", &[])?.expect_code(1)?;
    full.expect_text("COHORT_TRACE: /dev/full is not complete: No space left on device").map(drop)
}

/// What is drawn is short, and has a row for each rank.
fn picture() -> Outcome {
    let file = file("picture")?;
    let name = file.display().to_string();
    Program::new(place::built_file("pip-exec")?)
        .args(["-n", "3", "-genv", "COHORT_TRACE", &name])
        .arg(program()?)
        .args(["messages", "x<&"])
        .run()?
        .expect_code(0)?;
    for ending in ["svg", "html"] {
        let picture = file.with_extension(ending);
        Program::new(place::built_file("pip-exec")?).arg("--draw").arg(&file).arg(&picture).run()?.expect_code(0)?;
        let drawn = std::fs::read_to_string(&picture).map_err(|error| error.to_string())?;
        if drawn.len() > 200_000 || !(0..3).all(|rank| drawn.contains(&format!(">rank {rank}</text>"))) {
            return Err(format!("{} bytes of {}", drawn.len(), picture.display()));
        }
        for words in [">traced.mpich: 3 ranks, ", "pip-exec -n ", "'x&lt;&amp;'", "; Cohort "] {
            if !drawn.contains(words) {
                return Err(format!("{words:?} is not in {}", picture.display()));
            }
        }
    }
    let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let text: serde_json::Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    crate::stats::place_and_time(&text["otherData"]["job"])?;
    let none = Program::new(place::built_file("pip-exec")?).args(["--draw", "/dev/null"]).run()?;
    none.expect_code(2)?.expect_text("it is no timeline that COHORT_TRACE has written").map(drop)
}

/// What `tools/trace-to-otf2.py` makes of a timeline is what OTF2's own library reads: all calls and messages.
fn archive() -> Outcome {
    let file = file("archive")?;
    traced(&file, "4", "messages", &[])?.expect_code(0)?;
    let folder = file.with_extension("otf2");
    let _ = std::fs::remove_dir_all(&folder);
    let python = place::cached("otf2-venv/bin/python", "otf2")?;
    let convert =
        || Program::new(&python).arg(place::root().join("tools/trace-to-otf2.py")).args([&file, &folder]).run();
    convert()?.expect_code(0)?;
    let counted = Program::new(&python)
        .arg(place::root().join("tests/programs/tools/archive.py"))
        .arg(folder.join("traces.otf2"))
        .run()?
        .expect_code(0)?;
    let bytes = 4 * (8 + 4096 + 100_000 + (1 << 20));
    for (name, count) in [
        ("ranks", 4),
        ("MPI_Init_thread", 4),
        ("MPI_Send", 16),
        ("MPI_Irecv", 16),
        ("MpiSend", 16),
        ("MpiRecv", 16),
        ("bytes of MpiSend", bytes),
        ("bytes of MpiRecv", bytes),
    ] {
        let line = format!("{name}={count}");
        if !counted.stdout.lines().any(|it| it == line) {
            return Err(format!("no {line} in {}", counted.stdout));
        }
    }
    // A second time nothing is written over.
    convert()?.expect_code(1)?.expect_text("exists already").map(drop)
}

/// Runs the program on two nodes with two ranks each.
fn on_nodes(hosts: &Hosts, name: &Path, what: &str) -> Result<Ended, String> {
    hosts.pip_exec("2")?.args(["-genv", "COHORT_TRACE"]).arg(name).arg(program()?).arg(what).run()
}

/// The first node writes a file of all of them, on one clock, with arrows from node to node. Both have the same clock
/// here, so what was measured can be judged.
fn nodes() -> Outcome {
    let hosts = Hosts::new(2)?;
    let name = file("nodes")?;
    on_nodes(&hosts, &name, "messages")?.expect_code(0)?;
    let timeline = read(&name)?;
    expect("missing nodes", timeline.missing.len(), 0)?;
    expect("the writer", timeline.node as usize, 0)?;
    let ranks: Vec<u32> = timeline.ranks.iter().map(|rank| rank.rank).collect();
    let known: Vec<u32> = timeline.clocks.iter().map(|clock| clock.node).collect();
    if ranks != [0, 1, 2, 3] || known != [0, 1] {
        return Err(format!("the file is of ranks {ranks:?} on {known:?}"));
    }
    expect("MPI_Send", timeline.calls("MPI_Send").count(), 16)?;
    expect_messages(&timeline, 16)?;
    let first = &timeline.clocks[0];
    if (first.offset_ns, first.drift_ppb) != (0, 0) {
        return Err(format!("the first node's clock is the file's: {first:?}"));
    }
    for clock in &timeline.clocks {
        if clock.offset_ns.unsigned_abs() > clock.error_ns || clock.host.is_empty() {
            return Err(format!("a clock that differs from itself: {clock:?}"));
        }
    }
    if name.with_extension("trace.1").exists() {
        return Err("the second node has written a file too".into());
    }
    picture_of(&[name])?;
    each_its_file(&hosts)
}

/// `%n` in the name is for a file of each node.
fn each_its_file(hosts: &Hosts) -> Outcome {
    let name = file("nodes-%n")?;
    let files = ["0", "1"].map(|node| PathBuf::from(name.display().to_string().replace("%n", node)));
    on_nodes(hosts, &name, "short")?.expect_code(0)?;
    for (node, file) in files.iter().enumerate() {
        let timeline = read(file)?;
        expect("the node", timeline.node as usize, node)?;
        expect("MPI_Send", timeline.calls("MPI_Send").count(), 4)?;
    }
    picture_of(&files)
}

fn picture_of(files: &[PathBuf]) -> Outcome {
    let drawn = files
        .iter()
        .fold(Program::new(place::built_file("pip-exec")?), |program, file| program.arg("--draw").arg(file));
    let ended = drawn.run()?.expect_code(0)?;
    let picture = ended.stdout.trim();
    let drawn = std::fs::read_to_string(picture).map_err(|error| format!("{picture}: {error}"))?;
    match (0..4).all(|rank| drawn.contains(&format!(">rank {rank}</text>"))) {
        true => Ok(()),
        false => Err(format!("{picture} has not all ranks")),
    }
}

/// A rank of the first node is killed, and the job with it: the other node's ranks are in the file all the same.
fn killed_on_nodes() -> Outcome {
    let hosts = Hosts::new(2)?;
    let name = file("nodes-killed")?;
    on_nodes(&hosts, &name, "kill")?.expect_code(137)?;
    let timeline = read(&name)?;
    expect("missing nodes", timeline.missing.len(), 0)?;
    let begun = timeline.calls("MPI_Init_thread");
    expect("MPI_Init_thread", begun.count(), 4)?;
    let mut ends = timeline.unfinished().map(|it| (it.rank, &*it.name));
    match ends.any(|it| it == (1, "MPI_Comm_free")) {
        true => Ok(()),
        false => Err("where rank 1 was killed is not told".into()),
    }
}
