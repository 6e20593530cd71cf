//! Processes that are spawned in jobs of several nodes: how they end, and what is said of them.

use super::hosts::{Hosts, Network, namespaces_work};
use crate::command::Program;
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::path::PathBuf;

/// What a job of a rank on each of two nodes that spawn two more is to do, its status, and what is to be said.
const ENDS: [(&str, i32, &[&str]); 7] = [
    ("none", 0, &["child 0 ends", "child 1 ends"]),
    ("aborts", 7, &["rank 1 of spawned world 1 called MPI_Abort on MPI_COMM_WORLD with code 7"]),
    ("exits", 3, &["rank 3 on node 0 (", "(rank 1 of spawned world 1) (pid ", "ended with status 3"]),
    ("crashes", 139, &["rank 3 on node 0 (", "(rank 1 of spawned world 1) (pid ", "killed by signal 11"]),
    ("parent exits", 5, &["rank 0 on node 0 (", "ended with status 5"]),
    ("refused", 53, &["MPI_Comm_spawn failed on MPI_COMM_WORLD: MPI_ERR_SPAWN", "/no/such/program"]),
    ("hang", 35, &["ranks 0-1: MPI_Recv from 0", "ranks 2-3: MPI_Recv from 0", "nobody in this circle can go on"]),
];

/// The same where they are spawned on the second node.
const ENDS_THERE: [(&str, i32, &[&str]); 10] = [
    ("none", 0, &["child 0 ends", "child 1 ends"]),
    ("aborts", 7, &["rank 1 of spawned world 2 called MPI_Abort on MPI_COMM_WORLD with code 7"]),
    ("exits", 3, &["rank 1027 on node 1 (", "(rank 1 of spawned world 2) (pid ", "ended with status 3"]),
    ("crashes", 139, &["rank 1027 on node 1 (", "(rank 1 of spawned world 2) (pid ", "killed by signal 11"]),
    ("parent exits", 5, &["rank 0 on node 0 (", "ended with status 5"]),
    ("outlives", 0, &["parent 0 ends", "parent 1 ends", "child 0 ends", "child 1 ends"]),
    ("parted exits", 3, &["ended with status 3", "parent 0 goes on", "parent 1 goes on"]),
    ("wrong rank", 6, &["of spawned world 2: MPI_Send failed on MPI_COMM_PARENT: MPI_ERR_RANK"]),
    ("refused", 53, &["MPI_Comm_spawn failed on MPI_COMM_WORLD: MPI_ERR_SPAWN", "node 1 (", "/no/such/program"]),
    ("hang", 35, &["ranks 0-1: MPI_Recv from 0", "ranks 1026-1027: MPI_Recv from 0", "can go on"]),
];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let ends = ENDS.iter().map(|&(what, status, said)| {
        trial(format!("nodes/spawned, {what}"), move || {
            let hosts = Hosts::new(2)?;
            let ended = job(&hosts, what)?.run()?.expect_code(status)?;
            said.iter().try_fold(ended, |ended, text| ended.expect_text(text)).map(drop)
        })
    });
    let there = ENDS_THERE.iter().map(|&(what, status, said)| {
        trial(format!("nodes/spawned at another node, {what}"), move || {
            let hosts = Hosts::new(2)?;
            let job = job(&hosts, what)?;
            if !namespaces_work() {
                return Ok(());
            }
            let ended = job.env("SPAWN_AT", hosts.address(1)).run()?.expect_code(status)?;
            said.iter().try_fold(ended, |ended, text| ended.expect_text(text)).map(drop)
        })
    });
    let mut trials: Vec<Trial> = ends.chain(there).collect();
    trials.extend([
        trial("nodes/spawned at another node, by its name".into(), by_name),
        trial("nodes/spawned at another node, which does more".into(), || together(Network::Default)),
        trial("nodes/spawned at another node, which does more (libfabric)".into(), || together(Network::Libfabric)),
        trial("nodes/spawned at another node, by wrappers".into(), by_wrappers),
        trial("nodes/spawned at another node, too many".into(), too_many),
        trial("nodes/spawned at another node, and back".into(), and_back),
        trial("nodes/spawned at another node, whose ranks have ended".into(), behind_the_end),
        trial("nodes/spawned at hosts that there are not".into(), unknown_hosts),
        trial("nodes/spawned ranks in a common timeline".into(), timeline),
    ]);
    trials
}

fn tool(name: &str) -> Result<PathBuf, String> {
    programs::compile(&place::root().join(format!("tests/programs/tools/{name}.c")), Abi::Mpi5, &[])
}

/// A job of so many ranks whose nodes, of a rank or several each, have hosts with names of their own.
fn named(hosts: &Hosts, ranks: &str) -> Result<Program, String> {
    let rename = "echo node$PMI_RANK.cluster >/proc/sys/kernel/hostname; exec \"$0\" \"$@\"";
    // What stands behind the words passes through a shell of Hydra's launcher, quoted.
    let words = ["unshare", "--uts", "sh", "-c", rename].map(String::from);
    hosts.pip_exec_after(&words, ranks)
}

/// A host is known by its name, with its domain or without.
fn by_name() -> Outcome {
    let hosts = Hosts::new(2)?;
    if !namespaces_work() {
        return Ok(());
    }
    for name in ["node1", "node1.cluster", "node1:3", "NODE1"] {
        let job = named(&hosts, "2,1")?.arg(tool("spawns_at")?).args(["1", name, "2", "1"]);
        job.run()?.expect_code(0)?.expect_text("spawned 1 worlds there")?;
    }
    let job = named(&hosts, "1")?.arg(tool("spawns")?).arg("none").env("SPAWN_AT", "node0,node1").run()?;
    job.expect_code(53)?.expect_text("names node0 and node1, which are different nodes").map(drop)
}

/// Messages, collectives and windows, and many worlds in turn.
fn together(network: Network) -> Outcome {
    let hosts = Hosts::new(3)?.over(network);
    if !namespaces_work() {
        return Ok(());
    }
    let job = || Ok::<_, String>(hosts.pip_exec("2,1,3")?.arg(tool("spawns_at")?));
    let there = hosts.address(2);
    job()?.args(["3", &there, "3", "20"]).run()?.expect_code(0)?.expect_text("spawned 20 worlds there")?;
    let there = hosts.address(1);
    job()?.args(["1", &there, "1", "5"]).run()?.expect_code(0)?.expect_text("spawned 5 worlds there").map(drop)
}

/// What was spawned there spawns others here.
fn and_back() -> Outcome {
    let hosts = Hosts::new(2)?;
    if !namespaces_work() {
        return Ok(());
    }
    let (there, here) = (hosts.address(1), hosts.address(0));
    let job = hosts.pip_exec("2,1")?.arg(tool("spawns_at")?).args(["1", &there, "2", "5", &here]);
    job.run()?.expect_code(0)?.expect_text("spawned 5 worlds there").map(drop)
}

fn by_wrappers() -> Outcome {
    let hosts = Hosts::new(2)?;
    if !namespaces_work() {
        return Ok(());
    }
    let (program, there) = (tool("wrapped")?, hosts.address(1));
    let job = || Ok::<_, String>(hosts.pip_exec("1")?.env("W_HOST", &there).arg(&program).arg("2"));
    let shell = ["sh", "-c", "\"$0\" x; echo \"done $?\""];
    let ended = job()?.env("TURNS", "3").args(shell).arg(&program).run()?.expect_code(0)?;
    ended.expect_text("child 1 of 2 x")?.expect_text("done 0")?.expect_text("parent 1 ends")?;
    let ended = job()?.env("WHAT", "goes on").args(["sh", "-c", "exit 3"]).run()?.expect_code(0)?;
    ended
        .expect_text("has ended with status 3 and has started no MPI program")?
        .expect_text("parent 1 goes on")
        .map(drop)
}

/// The other node has no room for as many.
fn too_many() -> Outcome {
    let hosts = Hosts::new(2)?;
    if !namespaces_work() {
        return Ok(());
    }
    let (program, there) = (tool("wrapped")?, hosts.address(1));
    let job = hosts.pip_exec("1")?.env("W_HOST", there).env("WHAT", "goes on").arg(&program).arg("1025");
    let ended = job.arg(&program).run()?.expect_code(0)?;
    ended.expect_text("node 1 (")?.expect_text("1025 more ranks")?.expect_text("parent 1 goes on").map(drop)
}

/// The first node's launcher stays until the second has ended, so it starts processes when its own ranks are gone.
fn behind_the_end() -> Outcome {
    let hosts = Hosts::new(2)?;
    let job = job(&hosts, "outlives")?;
    if !namespaces_work() {
        return Ok(());
    }
    let job = job.env("SPAWN_AT", hosts.address(1)).env("SPAWN_BACK", hosts.address(0));
    let said = ["parent 0 ends", "parent 1 ends", "child 0 has spawned", "child 1 has spawned"];
    said.iter().try_fold(job.run()?.expect_code(0)?, |ended, text| ended.expect_text(text)).map(drop)
}

/// Spawned ranks of all nodes have their names, and tracks of their own.
fn timeline() -> Outcome {
    let hosts = Hosts::new(2)?;
    let file = hosts.file("timeline.json")?;
    let job = |what| Ok::<_, String>(job(&hosts, what)?.env("COHORT_TRACE", &file));
    job("none")?.run()?.expect_code(0)?;
    expect_ranks(&file, &["0", "1", "1.0", "1.1"])?;
    if namespaces_work() {
        let job = job("outlives")?.env("SPAWN_AT", hosts.address(1)).env("SPAWN_BACK", hosts.address(0));
        job.run()?.expect_code(0)?;
        expect_ranks(&file, &["0", "1", "1.0", "2.0", "2.1"])?;
    }
    Ok(())
}

/// Whether a timeline has these ranks, and what each does on its own track.
fn expect_ranks(file: &std::path::Path, ranks: &[&str]) -> Outcome {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let names = text.lines().filter(|line| line.contains("\"thread_name\""));
    let of_rank = |line: &str| {
        let name = line.split("\"rank ").nth(1)?.split('"').next()?;
        let track = line.split("\"tid\":").nth(1)?.split(',').next()?;
        Some((name.to_owned(), track.to_owned()))
    };
    let found: std::collections::BTreeMap<String, String> = names.filter_map(of_rank).collect();
    let tracks: std::collections::BTreeSet<&String> = found.values().collect();
    let has_all = ranks.iter().all(|rank| found.contains_key(*rank));
    if has_all && tracks.len() == found.len() { Ok(()) } else { Err(format!("{}: {found:?}", file.display())) }
}

fn unknown_hosts() -> Outcome {
    let hosts = Hosts::new(2)?;
    let job = job(&hosts, "none")?.env("SPAWN_AT", "nohost.invalid").run()?.expect_code(53)?;
    job.expect_text("no node of this job is on the host nohost.invalid")?.expect_text("its nodes are on ").map(drop)
}

fn job(hosts: &Hosts, what: &str) -> Result<Program, String> {
    let source = place::root().join("tests/programs/tools/spawns.c");
    let program = programs::compile_as("nodes-spawns", &source, Abi::Mpich, &[])?;
    let job = hosts.pip_exec("1")?.arg(program).arg(what);
    let job = job.env("COHORT_DEADLOCK", "end").env("COHORT_DEADLOCK_AFTER", "0.5");
    Ok(job.seconds(60))
}
