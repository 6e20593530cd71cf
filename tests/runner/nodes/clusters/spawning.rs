//! Processes that are spawned where a manager has started the job: of one node and of two, and of processes without
//! `pip-exec`, of which one alone can spawn.

use super::{Cluster, LAUNCHERS, Launcher, cluster, command, hydra};
use crate::command::Program;
use crate::directives::Abi;
use crate::nodes::managers;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::path::PathBuf;

/// What a job of a rank on each node that spawns two more is to do, its status, and what is to be said.
const ENDS: [(&str, i32, &str); 5] = [
    ("none", 0, "child 1 ends"),
    ("aborts", 7, "rank 1 of spawned world 1 called MPI_Abort on MPI_COMM_WORLD with code 7"),
    ("exits", 3, "(rank 1 of spawned world 1) (pid "),
    ("refused", 53, "/no/such/program"),
    ("parted exits", 3, "parent 0 goes on"),
];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (name, launcher) in LAUNCHERS {
        trials.push(trial(format!("managers/spawned in jobs of one node and two ({name})"), move || {
            let cluster = cluster(launcher)?;
            ends(launcher, 1, cluster.as_ref())?;
            ends(launcher, 2, cluster.as_ref())?;
            together(launcher, cluster.as_ref())
        }));
        trials.push(trial(format!("managers/spawned without pip-exec ({name})"), move || alone(launcher)));
        trials.push(trial(format!("managers/two jobs meet ({name})"), move || meet(launcher)));
    }
    trials
}

/// The words before what one process on each of so many nodes has to run.
fn on_nodes(launcher: Launcher, nodes: u32, cluster: Option<&Cluster>) -> Result<Program, String> {
    match (nodes, launcher) {
        (1, Launcher::Srun(protocol)) => {
            let srun = cluster.ok_or("no cluster")?.command("srun").args(["--nodes=1", "--ntasks=1"]);
            Ok(srun.arg(format!("--mpi={protocol}")))
        }
        (1, Launcher::Prterun) => Ok(managers::prterun()?.args(["-n", "1"])),
        (1, Launcher::Hydra(environment, item)) => Ok(hydra(environment, item)?.args(["-n", "1"])),
        _ => command(launcher, 1, cluster),
    }
}

fn tool(name: &str) -> Result<PathBuf, String> {
    programs::compile(&place::root().join(format!("tests/programs/tools/{name}.c")), Abi::Mpi5, &[])
}

/// How jobs end whose ranks have spawned others.
fn ends(launcher: Launcher, nodes: u32, cluster: Option<&Cluster>) -> Outcome {
    let (program, pip_exec) = (tool("spawns")?, place::built_file("pip-exec")?);
    for (what, status, said) in ENDS {
        let job = on_nodes(launcher, nodes, cluster)?.arg(&pip_exec).args(["-n", "1"]);
        job.arg(&program).arg(what).run()?.expect_code(status)?.expect_text(said)?;
    }
    Ok(())
}

/// Parents of two nodes and their children exchange messages, merge and disconnect; so do those that wrappers start.
fn together(launcher: Launcher, cluster: Option<&Cluster>) -> Outcome {
    let pip_exec = place::built_file("pip-exec")?;
    let job = || Ok::<_, String>(on_nodes(launcher, 2, cluster)?.arg(&pip_exec).args(["-n", "2"]));
    let program = programs::compile(&programs::source("spawn.c"), Abi::Mpi5, &[])?;
    job()?.arg(program).run()?.expect_code(0)?.expect_text("passed")?;
    let ended = job()?.arg(tool("spawn_again")?).args(["30", "2"]).run()?.expect_code(0)?;
    ended.expect_text("spawned 30 worlds of 2")?;
    let program = tool("wrapped")?;
    let job = job()?.arg(&program).arg("2").args(["sh", "-c", "\"$0\" x; echo \"done $?\""]).arg(&program);
    let ended = job.run()?.expect_code(0)?;
    ended.expect_text("child 1 of 2 x")?.expect_text("done 0")?.expect_text("parent 3 ends").map(drop)
}

/// A server on two nodes of the manager, a client under `pip-exec` alone, and one on one node of the manager.
fn meet(launcher: Launcher) -> Outcome {
    let cluster = cluster(launcher)?;
    let (pip_exec, program) = (place::built_file("pip-exec")?, tool("jobs")?);
    let names = place::scratch()?.join("names");
    let job = |job: Program, side: &str, turns: &str| {
        job.arg(&program).args(["all", side, turns]).env("COHORT_CONNECT_NAMES", &names)
    };
    let managed =
        |nodes| Ok::<_, String>(on_nodes(launcher, nodes, cluster.as_ref())?.arg(&pip_exec).args(["-n", "2"]));
    let client = job(Program::new(&pip_exec).args(["-n", "2"]), "visit", "1");
    let near = job(managed(1)?, "visit", "1");
    let mut visits = Err("nobody came".to_owned());
    let server = job(managed(2)?, "serve", "2").run_with(|_| {
        visits = [client, near]
            .into_iter()
            .try_for_each(|client| client.run()?.expect_code(0)?.expect_text("passed").map(drop));
    });
    visits?;
    server?.expect_code(0)?.expect_text("passed").map(drop)
}

/// A process that the manager has started alone is as one that a user has started; several are told that they cannot
/// spawn, and what could.
fn alone(launcher: Launcher) -> Outcome {
    let (cluster, program, wrapped) = (cluster(launcher)?, tool("spawns")?, tool("wrapped")?);
    for (what, status, said) in ENDS {
        let job = on_nodes(launcher, 1, cluster.as_ref())?.arg(&program).arg(what);
        job.run()?.expect_code(status)?.expect_text(said)?;
    }
    let job = on_nodes(launcher, 1, cluster.as_ref())?.arg(&wrapped).arg("2");
    let ended = job.args(["sh", "-c", "\"$0\" x; echo \"done $?\""]).arg(&wrapped).run()?.expect_code(0)?;
    ended.expect_text("child 1 of 2 x")?.expect_text("done 0")?.expect_text("parent 0 ends")?;
    let several = on_nodes(launcher, 2, cluster.as_ref())?.arg(&program).arg("none");
    several.run()?.expect_code(53)?.expect_text("MPI_ERR_SPAWN")?.expect_text("pip-exec PROGRAM").map(drop)
}
