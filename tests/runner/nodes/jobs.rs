//! Two jobs that were started apart, of several nodes or on different hosts, meet at a port.

use super::hosts::{Hosts, Network, namespaces_work};
use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::path::PathBuf;

/// Networks of the jobs' own.
const NETWORKS: [Network; 2] = [Network::Default, Network::Libfabric];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let each = NETWORKS.iter().map(|&network| {
        let name = format!("nodes/two jobs of two nodes each{}", network.suffix());
        trial(name, move || {
            let hosts = Hosts::new(2)?.over(network);
            meet(job(hosts.pip_exec("2")?, "all", "serve", "2")?, job(hosts.pip_exec("1")?, "all", "visit", "2")?)
        })
    });
    let mut trials: Vec<Trial> = each.collect();
    trials.extend([
        trial("nodes/two jobs, one of three nodes, and one on another host".into(), far),
        trial("nodes/two jobs, one of which is killed on its second node".into(), killed),
        trial("nodes/two jobs whose hosts do not reach each other".into(), cut_off),
        trial("nodes/a wiretap reads what goes between two jobs".into(), || tapped("0", "0", "the text in clear")),
        trial("nodes/a wiretap reads nothing of a server that encrypts".into(), || tapped("1", "0", "the text never")),
        trial("nodes/a wiretap reads nothing of a client that encrypts".into(), || tapped("0", "1", "the text never")),
    ]);
    trials
}

fn program() -> Result<PathBuf, String> {
    programs::compile_as("nodes-jobs", &place::root().join("tests/programs/tools/jobs.c"), Abi::Mpi5, &[])
}

fn job(launcher: Program, how: &str, side: &str, argument: &str) -> Result<Program, String> {
    let names = place::scratch()?.join("names");
    Ok(launcher.arg(program()?).args([how, side, argument]).env("COHORT_CONNECT_NAMES", names).seconds(60))
}

/// A job of two ranks on one host.
fn on(hosts: &Hosts, host: u32) -> Result<Program, String> {
    Ok(hosts.program(host, place::built_file("pip-exec")?).args(["-n", "2"]))
}

/// How a server and its client ended.
fn both(server: Program, client: Program) -> Result<(Ended, Ended), String> {
    let mut ended = Err("nobody came".to_owned());
    let server = server.run_with(|_| ended = client.run());
    let client = ended?;
    Ok((server?, client))
}

fn meet(server: Program, client: Program) -> Outcome {
    let (server, client) = both(server, client)?;
    server.expect_code(0)?.expect_text("passed")?;
    client.expect_code(0)?.expect_text("passed").map(drop)
}

fn far() -> Outcome {
    let hosts = Hosts::new(3)?;
    let alone = || on(&hosts, 2);
    meet(job(hosts.pip_exec("1")?, "all", "serve", "2")?, job(alone()?, "all", "visit", "2")?)?;
    meet(job(alone()?, "all", "serve", "1")?, job(hosts.pip_exec("1")?, "all", "visit", "1")?)
}

/// All nodes of the other job hear of it.
fn killed() -> Outcome {
    let hosts = Hosts::new(2)?;
    let side = |side| job(hosts.pip_exec("1")?, "ends", side, "kill");
    let (server, client) = both(side("serve")?, side("visit")?)?;
    server.expect_code(1)?.expect_text("another job that this one is connected with")?;
    client.expect_code(137).map(drop)
}

/// A wiretap at the host of the server, which sends a text.
fn tapped(serves: &str, visits: &str, said: &str) -> Outcome {
    if !namespaces_work() {
        return Ok(());
    }
    let hosts = Hosts::new(2)?;
    let script = place::root().join("tests/programs/python/wiretap.py");
    let tap = hosts.program(0, "python3").arg(script).args(["read", "eth0"]).arg(place::built_file("pip-exec")?);
    let server = job(tap.args(["-n", "2"]), "all", "serve", "1")?.env("COHORT_NET_ENCRYPT", serves);
    let client = job(on(&hosts, 1)?, "all", "visit", "1")?.env("COHORT_NET_ENCRYPT", visits);
    let (server, client) = both(server, client)?;
    client.expect_code(0)?.expect_text("passed")?;
    server.expect_code(0)?.expect_text("much was sent")?.expect_text(said).map(drop)
}

/// Who cannot get there is told with the address, and the server goes on.
fn cut_off() -> Outcome {
    let hosts = Hosts::new(2)?;
    hosts.change();
    let way = |what: &str| {
        let words = ["route", what, "unreachable"];
        hosts.program(1, "ip").args(words).arg(hosts.address(0)).run()?.expect_code(0).map(drop)
    };
    way("add")?;
    let mut refused = Err("nobody came".to_owned());
    let server = job(on(&hosts, 0)?, "all", "serve", "1")?.run_with(|_| {
        let client = || job(on(&hosts, 1)?, "all", "visit", "1")?.run();
        refused = client().and_then(|ended| {
            way("del")?;
            client()?.expect_code(0)?;
            Ok(ended)
        });
    });
    let refused = refused?.expect_code(43)?;
    refused.expect_text("MPI_ERR_PORT")?.expect_text(&hosts.address(0))?;
    server?.expect_code(0).map(drop)
}
