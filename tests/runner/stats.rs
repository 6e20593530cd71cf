//! The report of `COHORT_STATS`: of a program whose messages, waits and stages are known.

use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use serde_json::Value;
use std::path::PathBuf;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("stats/text".into(), text),
        trial("stats/page".into(), page),
        trial("stats/file that cannot be written".into(), unwritable),
        trial("stats/text for a full pipe that does not block".into(), unready),
        trial("stats/a call that never returns".into(), unfinished),
        trial("stats/ranks that are killed while they count".into(), killed),
    ];
    for abi in [Abi::Mpich, Abi::Mpi5, Abi::OpenMpi] {
        trials.push(trial(format!("stats/json {abi}"), move || json(abi)));
    }
    trials
}

fn run(abi: Abi, stats: &str) -> Result<Ended, String> {
    run_with(abi, stats, &[])
}

/// With these arguments for the program, which does not look at them.
fn run_with(abi: Abi, stats: &str, arguments: &[&str]) -> Result<Ended, String> {
    let source = place::root().join("tests/programs/tools/stages.c");
    // The compilers of other MPIs have no functions of ours.
    let library = match abi {
        Abi::Mpich => Some("libmpi.so.12"),
        Abi::OpenMpi => Some("libmpi.so.40"),
        Abi::Mpi5 | Abi::Mpi5Wheel => None,
    };
    let library = library.map(place::built_file).transpose()?;
    let libraries: Vec<String> = library.iter().map(|file| file.display().to_string()).collect();
    let program = programs::compile_as("stages", &source, abi, &libraries)?;
    Program::new(place::built_file("pip-exec")?)
        .env("COHORT_STATS", stats)
        .args(["-n", "2"])
        .arg(program)
        .args(arguments)
        .seconds(60)
        .run()
}

/// A rank may be killed while it has what the report is made from. The report comes all the same, and says what is
/// missing. Several times, since that is a matter of chance.
fn killed() -> Outcome {
    let source = place::root().join("tests/programs/tools/counted.c");
    let program = programs::compile_as("counted", &source, Abi::Mpi5, &[])?;
    let path = file("killed.json")?;
    for _ in 0..8 {
        let job = Program::new(place::built_file("pip-exec")?).env("COHORT_STATS", format!("json:{}", path.display()));
        job.args(["-n", "4"]).arg(&program).seconds(60).run()?.expect_code(7)?;
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let report: Value = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
        let ranks = report["ranks"].as_array().ok_or("no ranks")?;
        expect("ranks", &ranks.len().into(), &4.into())?;
        for rank in ranks {
            let (is_cut, list) = (rank["cut"].as_array().ok_or("no list of what is cut")?, &rank["communicators"]);
            let is_there = list.as_array().is_some_and(|list| !list.is_empty());
            expect("communicators", &is_there.into(), &(!is_cut.contains(&"communicators".into())).into())?;
        }
    }
    Ok(())
}

/// Standard error does not block, and is full when the report comes: all of it comes in the end.
/// So does that of the checker.
fn unready() -> Outcome {
    let source = place::root().join("tests/programs/tools/stages.c");
    let program = programs::compile_as("stages", &source, Abi::Mpi5, &[])?;
    let script = place::root().join("tests/programs/tools/unready.py");
    let run = |words: &[&str]| {
        let job = Program::new("python3").arg(&script).arg(place::built_file("pip-exec")?).args(["-n", "2"]);
        job.args(words).arg(&program).seconds(60).run()?.expect_code(0)
    };
    run(&["-genv", "COHORT_STATS", "1"])?.expect_text("cohort: 2 ranks on ")?.expect_text("Pcontrol 2")?;
    run(&["--check=warn"])?.expect_text("check: no errors").map(drop)
}

fn file(name: &str) -> Result<PathBuf, String> {
    Ok(place::scratch()?.join(name))
}

/// Fails unless the values are the same.
fn expect(what: &str, found: &Value, expected: &Value) -> Outcome {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: {found}, not {expected}")),
    }
}

/// The entry of a list that begins with this name.
fn named<'a>(list: &'a Value, name: &str) -> Result<&'a Value, String> {
    let entries = list.as_array().ok_or("no list")?;
    let found = entries.iter().find(|entry| entry[0] == name);
    found.ok_or_else(|| format!("no {name} in {list}"))
}

fn json(abi: Abi) -> Outcome {
    let file = file(&format!("stages.{abi}.json"))?;
    let ended = run(abi, &format!("json:{}", file.display()))?.expect_code(0)?;
    let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    expect("schema", &value["schema"], &"cohort-stats-1".into())?;
    expect("ranks", &value["world_ranks"], &2.into())?;
    let (sender, late) = (&value["ranks"][0], &value["ranks"][1]);

    // What was sent, exactly: 3 of 1000 bytes, 8 ints, 2 of 10 bytes, and nothing to MPI_PROC_NULL.
    expect("messages", &sender["messages"], &6.into())?;
    expect("bytes", &sender["bytes"], &3052.into())?;
    expect("messages of rank 1", &late["messages"], &2.into())?;
    expect("bytes of rank 1", &late["bytes"], &200.into())?;
    let calls = &sender["calls"];
    expect("sends", &named(calls, "MPI_Send")?[1], &4.into())?;
    expect("starts", &named(calls, "MPI_Start")?[1], &2.into())?;
    expect("barriers", &named(calls, "MPI_Barrier")?[1], &1.into())?;
    expect("members", &named(&sender["communicators"], "rows")?[1], &2.into())?;

    // For whom rank 0 waited: all of its receive, its wait and its barrier were for rank 1.
    let peers = sender["peers"].as_array().ok_or("no peers")?;
    expect("peers", &peers.len().into(), &1.into())?;
    expect("the peer", &peers[0][0], &1.into())?;
    let waited = peers[0][3].as_u64().unwrap_or(0);
    let line = ended.stdout.lines().find_map(|line| line.strip_prefix("waited "));
    let measured = line.and_then(|line| line.strip_suffix(" us")?.parse::<u64>().ok());
    let measured = measured.ok_or_else(|| ended.failure("no line with the time"))?;
    if waited * 2 < measured {
        return Err(format!("rank 0 measured {measured} us, the report says {waited}"));
    }
    // Stages.
    let sections = &sender["sections"];
    let send = named(sections, "send")?;
    expect("times of the section", &send[1], &1.into())?;
    expect("messages of the section", &send[5], &6.into())?;
    expect("bytes of the section", &send[6], &3052.into())?;
    expect("messages of level 2", &named(sections, "Pcontrol 2")?[5], &0.into())?;
    let file = named(&sender["files"], "/dev/null")?;
    expect("members of the file", &file[1], &2.into())?;
    expect("opens", &file[2], &1.into())?;
    expect("calls on the file", &file[3], &7.into())?;
    let (read, written) = (&file[5], &file[6]);
    expect("reads", &read[0], &1.into())?;
    expect("bytes read", &read[2], &0.into())?;
    expect("writes", &written[0], &4.into())?;
    expect("bytes written", &written[2], &3040.into())?;
    expect("small writes", &written[3][0], &1.into())?;
    expect("writes of 1000 bytes", &written[3][1], &3.into())?;
    course(sender)?;
    expect("finalized", &sender["finalized"], &true.into())
}

/// The bins hold the rank's time in MPI, but for what each of them rounds off.
fn course(rank: &Value) -> Outcome {
    let bins = rank["course"]["bins"].as_array().ok_or("no course")?;
    let sum = |at: usize| -> u64 { bins.iter().filter_map(|bin| bin[at].as_u64()).sum() };
    for (what, at) in [("mpi_us", 0), ("waiting_us", 1)] {
        let all = rank[what].as_u64().unwrap_or(0);
        if sum(at) > all || sum(at) + 128 < all || all == 0 {
            return Err(format!("{what} is {all}, the bins have {}", sum(at)));
        }
    }
    Ok(())
}

/// Rank 2 does not come to a barrier: of a job that ends by its time the others have waited all of that.
fn unfinished() -> Outcome {
    let source = place::root().join("tests/programs/tools/hangs.c");
    let program = programs::compile_as("hangs", &source, Abi::Mpich, &["-pthread".to_owned()])?;
    let file = file("unfinished.json")?;
    Program::new(place::built_file("pip-exec")?)
        .env("COHORT_STATS", format!("json:{}", file.display()))
        .env("COHORT_DEADLOCK", "off")
        .args(["--timeout", "8", "-n", "4"])
        .arg(program)
        .arg("missing_rank")
        .run()?
        .expect_code(124)?;
    let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    for rank in [0, 1, 3] {
        let rank = &value["ranks"][rank];
        let barrier = named(&rank["calls"], "MPI_Barrier")?;
        expect("barriers", &barrier[1], &1.into())?;
        let waited = rank["waiting_us"].as_u64().unwrap_or(0);
        if waited < 500_000 || waited > rank["wall_us"].as_u64().unwrap_or(0) {
            return Err(format!("waiting and wall: {waited}, {}", rank["wall_us"]));
        }
        course(rank)?;
    }
    Ok(())
}

fn text() -> Outcome {
    let ended = run(Abi::Mpi5, "1")?.expect_code(0)?;
    for words in [
        "cohort: 2 ranks on ",
        "waited most for",
        "rank 1 (",
        "6 messages",
        "MPI_Recv",
        "rows (2)",
        "Pcontrol 2",
        "imbalance",
    ] {
        if !ended.stderr.contains(words) {
            return Err(ended.failure(&format!("no {words:?}")));
        }
    }
    Ok(())
}

fn page() -> Outcome {
    let file = file("stages.html")?;
    let words = ["a <b>", "</script>", "it's"];
    run_with(Abi::Mpi5, &format!("html:{}", file.display()), &words)?.expect_code(0)?;
    let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let is_whole = text.starts_with("<!DOCTYPE html>") && text.trim_end().ends_with("</html>");
    if !is_whole || !text.contains("\"schema\":\"cohort-stats-1\"") {
        return Err(format!("no page: {text}"));
    }
    // The numbers are one line of its script, and nothing in them ends that.
    let line = text.lines().find_map(|line| line.strip_prefix("const data = ")?.strip_suffix(';'));
    let data: Value = serde_json::from_str(line.ok_or("no numbers")?).map_err(|error| format!("numbers: {error}"))?;
    let job = &data["job"];
    expect("program", &job["program"], &"stages.mpi5".into())?;
    expect("ranks", &job["ranks"], &2.into())?;
    let words = |name: &str| job[name].as_str().unwrap_or_default().to_owned();
    let command = words("command");
    let (began, ended) = ("pip-exec -n 2 ", " 'a <b>' '</script>' 'it'\\''s'");
    if !command.contains(began) || !command.ends_with(ended) {
        return Err(format!("the command is {command}"));
    }
    place_and_time(job)?;
    for shown in ["job.program", "job.command", "job.started", "job.hosts", "job.version"] {
        if !text.contains(shown) {
            return Err(format!("the page does not show {shown}"));
        }
    }
    match text.matches("</script>").count() {
        1 => Ok(()),
        other => Err(format!("{other} ends of scripts")),
    }
}

/// A job says where and when it was: on this host, and by a time like `2026-11-25 10:00:00 +0100`.
pub fn place_and_time(job: &Value) -> Outcome {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.map_err(|error| error.to_string())?;
    expect("host", &job["hosts"][0][0], &host.trim().into())?;
    let started = job["started"].as_str().unwrap_or_default();
    let form: String = started.chars().map(|letter| if letter.is_ascii_digit() { '9' } else { letter }).collect();
    if form.replace('-', "+") != "9999+99+99 99:99:99 +9999" {
        return Err(format!("started: {started}"));
    }
    match job["version"].as_str().is_some_and(|it| it.starts_with("Cohort ")) {
        true => Ok(()),
        false => Err(format!("version: {}", job["version"])),
    }
}

fn unwritable() -> Outcome {
    let ended = run(Abi::Mpi5, "json:/no/such/folder/stats.json")?;
    if ended.code() == 0 || ended.stdout.contains("waited") {
        return Err(ended.failure("the job ran"));
    }
    ended.expect_text("COHORT_STATS: cannot write to /no/such/folder/stats.json")?;
    // The disk is full only when the ranks have ended, and well.
    let full = run(Abi::Mpi5, "json:/dev/full")?.expect_code(1)?;
    full.expect_text("COHORT_STATS: the report is lost: No space left on device")?;
    Ok(())
}
