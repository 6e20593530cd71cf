//! Processes that are spawned in jobs of several nodes: how they end, and what is said of them.

use super::hosts::{Hosts, Network, namespaces_work};
use crate::command::{Ended, Program};
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
        trial("nodes/spawned over nodes".into(), || over(Network::Default)),
        trial("nodes/spawned over nodes (libfabric)".into(), || over(Network::Libfabric)),
        trial("nodes/spawned over nodes, by several at a time".into(), over_at_a_time),
        trial("nodes/spawned over nodes, refused".into(), over_refused),
        trial("nodes/spawned where CPUs are free".into(), around),
        trial("nodes/spawned over nodes, in a timeline".into(), over_timeline),
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
    Ok(())
}

/// Of each world the hosts and numbers of its commands, and where its ranks are.
fn over(network: Network) -> Outcome {
    let hosts = Hosts::new(3)?.over(network);
    if !namespaces_work() {
        return Ok(());
    }
    let [a, b, c] = [0, 1, 2].map(|node| hosts.address(node));
    let worlds: [(&[(&str, &str)], &str); 5] = [
        (&[(&format!("{a},{b}"), "4")], " 0@0 0@0 0@2 0@2"),
        (&[(&format!("{c},{b},{a}"), "4")], " 0@0 0@0 0@2 0@3"),
        (&[(&format!("{b}:1,{c}:3"), "4")], " 0@0 0@1 0@1 0@1"),
        (&[("-", "1"), (&b, "2"), (&format!("{a},{b}"), "2")], " 0@0 1@1 1@1 2@0 2@1"),
        (&[(&format!("{b},{c}"), "1"), (&c, "1")], " 0@0 1@1"),
    ];
    for (commands, world) in worlds {
        let words = commands.iter().flat_map(|&(hosts, count)| [hosts, count]);
        let job = hosts.pip_exec("2,1,1")?.arg(tool("spawns_over")?).arg("3").args(words);
        let ended = job.run()?.expect_code(0)?.expect_text("spawned 3 worlds over nodes, ")?;
        expect_lines(ended, &format!("world:{world}"), 3)?;
    }
    Ok(())
}

/// Ranks of several nodes spawn worlds over all of them, and worlds on their own, at the same time.
fn over_at_a_time() -> Outcome {
    let hosts = Hosts::new(2)?;
    if !namespaces_work() {
        return Ok(());
    }
    let list = format!("{},{}", hosts.address(0), hosts.address(1));
    let job = hosts.pip_exec("2,2")?.arg(tool("spawns_over")?).args(["5", &list, "2"]).env("EACH", "1");
    let ended = job.run()?.expect_code(0)?;
    expect_lines(expect_lines(ended, "world: 0@0 0@1", 20)?, "world: 0@0", 20).map(drop)
}

/// So many lines that are this text.
fn expect_lines(ended: Ended, text: &str, count: usize) -> Result<Ended, String> {
    match ended.stdout.lines().filter(|line| *line == text).count() {
        found if found == count => Ok(ended),
        found => Err(ended.failure(&format!("expected {count} lines {text:?}, not {found}"))),
    }
}

/// All or nothing, and nothing is left over.
fn over_refused() -> Outcome {
    let hosts = Hosts::new(2)?;
    if !namespaces_work() {
        return Ok(());
    }
    let list = format!("{},{}", hosts.address(0), hosts.address(1));
    let job = |list: &str, count: &str| {
        let job = hosts.pip_exec("1")?.arg(tool("spawns_over")?).args(["2", list, count]);
        Ok::<_, String>(job.env("GO_ON", "1"))
    };
    let ended = job(&list, "2")?.env("SPAWNED", "/no/such/program").run()?.expect_code(0)?;
    ended.expect_text("refused: MPI_ERR_SPAWN")?.expect_text("/no/such/program")?;
    let much = format!("{}:1,{}:1025", hosts.address(0), hosts.address(1));
    job(&much, "1026")?.run()?.expect_code(0)?.expect_text("1025 more ranks")?.expect_text("node 1 (")?;
    let script = hosts.file("script")?;
    std::fs::write(&script, "#!/bin/sh\nexec true\n").map_err(|error| error.to_string())?;
    Program::new("chmod").arg("+x").arg(&script).run()?.expect_code(0)?;
    let ended = job(&list, "2")?.env("SPAWNED", &script).run()?.expect_code(0)?;
    ended.expect_text("have to be MPI programs").map(drop)
}

/// Where no host is named, and nodes have CPUs of their own.
fn around() -> Outcome {
    let hosts = Hosts::new(2)?;
    if !namespaces_work() {
        return Ok(());
    }
    let machine = hosts.file("machine")?;
    let own = format!(
        "echo $PMI_RANK >{0}$PMI_RANK; mount --bind {0}$PMI_RANK /proc/sys/kernel/random/boot_id; \
         exec taskset -c 0,1 \"$0\" \"$@\"",
        machine.display()
    );
    let words = ["unshare", "--mount", "sh", "-c", &own].map(String::from);
    let job = |count: &str| {
        let job = hosts.pip_exec_after(&words, "1,1")?.arg(tool("spawns_over")?);
        Ok::<_, String>(job.args(["1", "-", count]))
    };
    for (count, world) in [("1", "world: 0@0"), ("2", "world: 0@0 0@1"), ("3", "world: 0@0 0@0 0@2")] {
        let ended = job(count)?.run()?.expect_code(0)?.expect_text("over nodes, universe 4")?;
        expect_lines(ended, world, 1)?;
    }
    let python = place::cached("mpi4py-venv/bin/python", "mpi4py")?;
    let pool = place::root().join("tests/programs/python/pool_of_nodes.py");
    let pool = hosts.pip_exec_after(&words, "1,1")?.arg(python).arg(pool);
    pool.run()?.expect_code(0)?.expect_text("workers: [('0', 0), ('1', 1)]")?;
    // What cannot be on several nodes is on one.
    let script = hosts.file("script")?;
    let text = format!("#!/bin/sh\nexec {}\n", tool("spawns_over")?.display());
    std::fs::write(&script, text).map_err(|error| error.to_string())?;
    Program::new("chmod").arg("+x").arg(&script).run()?.expect_code(0)?;
    expect_lines(job("3")?.env("SPAWNED", &script).run()?.expect_code(0)?, "world: 0@0 0@0 0@0", 1).map(drop)
}

/// Ranks of one world on two nodes have the numbers of their world.
fn over_timeline() -> Outcome {
    let hosts = Hosts::new(2)?;
    if !namespaces_work() {
        return Ok(());
    }
    let file = hosts.file("timeline.json")?;
    let list = format!("{},{}", hosts.address(1), hosts.address(0));
    let job = hosts.pip_exec("1")?.arg(tool("spawns_over")?).args(["1", &list, "3"]).env("COHORT_TRACE", &file);
    job.run()?.expect_code(0)?;
    expect_ranks(&file, &["0", "1", "1.0", "1.1", "1.2"])
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
