//! Two jobs that were started apart meet at a port: everything that a communicator of both can do, and the ways in
//! which one of them ends, or does not get in.

use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, event, place, programs, trial};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Ways in which a client ends that is connected, and its status.
const ENDS: [(&str, i32); 3] = [("exit", 3), ("abort", 7), ("kill", 137)];

/// The ABI of a job's program, and its number of ranks.
type Side = (Abi, &'static str);

/// Jobs that do everything: a server, a client, and a setting of both.
const ALL: [(Side, Side, (&str, &str)); 9] = [
    ((Abi::Mpi5, "2"), (Abi::Mpi5, "3"), ("COHORT_WAIT", "auto")),
    ((Abi::Mpich, "3"), (Abi::OpenMpi, "2"), ("COHORT_WAIT", "park")),
    ((Abi::OpenMpi, "1"), (Abi::Mpi5, "4"), ("COHORT_WAIT", "spin")),
    ((Abi::Mpi5, "1"), (Abi::Mpich, "1"), ("COHORT_PROGRESS", "none")),
    ((Abi::Mpi5, "2"), (Abi::Mpi5, "2"), ("COHORT_PROGRESS", "thread")),
    ((Abi::Mpi5, "2"), (Abi::Mpi5, "2"), ("COHORT_PROGRESS", "ghost")),
    ((Abi::Mpi5, "2"), (Abi::Mpi5, "2"), ("COHORT_PROGRESS", "signal")),
    ((Abi::Mpi5, "2"), (Abi::Mpi5, "2"), ("COHORT_PROGRESS", "steal+helper")),
    ((Abi::Mpi5, "4"), (Abi::Mpi5, "1"), ("COHORT_PROGRESS", "auto")),
];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let all = ALL.iter().map(|&(server, client, setting)| {
        let name = format!(
            "spawned/two jobs: {:?} {} and {:?} {}, {}={}",
            server.0, server.1, client.0, client.1, setting.0, setting.1
        );
        trial(name, move || all(server, client, setting))
    });
    let connected = ENDS.iter().map(|&(way, status)| {
        trial(format!("spawned/two jobs: {way} of one that is connected"), move || ends("ends", way, status))
    });
    let shares = ENDS.iter().map(|&(way, status)| {
        let name = format!("spawned/two jobs: {way} of one that is connected by a window");
        trial(name, move || ends("shares", way, status))
    });
    let parted = ENDS.iter().chain(&[("finalize", 0)]).map(|&(way, status)| {
        trial(format!("spawned/two jobs: {way} of one that has parted"), move || parted(way, status))
    });
    let vanished = ["waits", "stops"].into_iter().flat_map(|how| {
        [false, true].map(|goes_on| {
            let rest = if goes_on { "its job goes on" } else { "so does its job" };
            trial(format!("spawned/two jobs: a client {how} to be let in and dies, {rest}"), move || {
                vanished(how, goes_on)
            })
        })
    });
    let mut trials: Vec<Trial> = all.chain(connected).chain(shares).chain(parted).chain(vanished).collect();
    trials.extend([
        trial("spawned/two jobs: a hundred clients in turn".into(), || meet(["1", "1"], ["turns", "100"])),
        trial("spawned/two jobs: MPI_Comm_free before all is taken".into(), || meet(["2", "2"], ["leaves", "free"])),
        trial("spawned/two jobs: MPI_Comm_disconnect before all is taken".into(), || {
            meet(["2", "2"], ["leaves", "disconnect"])
        }),
        trial("spawned/two jobs: twenty jobs in turn".into(), jobs_in_turn),
        trial("spawned/two jobs: one of two ranks ends by MPI_ERRORS_ABORT".into(), departs),
        trial("spawned/two jobs: ten processes without launchers at once".into(), many),
        trial("spawned/two jobs: MPI_Comm_join".into(), join),
        trial("spawned/two jobs: names of ports that lead nowhere".into(), wrong_names),
        trial("spawned/two jobs: strangers at the port".into(), strangers),
        trial("spawned/two jobs: COHORT_CONNECT=job".into(), own_job_only),
        trial("spawned/two jobs: a name that cannot be published".into(), refused),
        trial("spawned/two jobs: one of them encrypts".into(), encrypted),
        trial("spawned/two jobs: MPI_Comm_join of what says no more".into(), mute),
        trial("spawned/two jobs: who accepts has not hung".into(), waits),
        trial("spawned/two jobs: a world that ends while its launcher connects".into(), cut_short),
        trial("spawned/two jobs: a full inbox holds up nobody else".into(), flooded),
    ]);
    trials
}

/// The folder in which the jobs of a trial publish names.
fn names() -> Result<PathBuf, String> {
    Ok(place::scratch()?.join("names"))
}

fn compiled(abi: Abi) -> Result<PathBuf, String> {
    programs::compile(&place::root().join("tests/programs/tools/jobs.c"), abi, &[])
}

/// A job of so many ranks, which publishes names in the trial's folder.
fn job(ranks: &str, abi: Abi, how: &str, side: &str, argument: &str) -> Result<Program, String> {
    Ok(super::pip_exec(ranks)?.arg(compiled(abi)?).args([how, side, argument]))
}

/// Runs a server and, beside it, what others do.
pub(super) fn beside<R>(server: Program, others: impl FnOnce() -> Result<R, String>) -> Result<(Ended, R), String> {
    let mut result = Err("nobody came".to_owned());
    let server = server.run_with(|_| result = others());
    let result = result?;
    Ok((server?, result))
}

fn all(server: Side, client: Side, setting: (&str, &str)) -> Outcome {
    let of = |(abi, ranks): Side, side| job(ranks, abi, "all", side, "2").map(|it| it.env(setting.0, setting.1));
    let client = of(client, "visit")?;
    let (server, client) = beside(of(server, "serve")?, || client.run())?;
    server.expect_code(0)?;
    client.expect_code(0).map(drop)
}

fn meet(ranks: [&str; 2], [how, argument]: [&str; 2]) -> Outcome {
    let client = job(ranks[1], Abi::Mpi5, how, "visit", argument)?;
    let (server, client) = beside(job(ranks[0], Abi::Mpi5, how, "serve", argument)?, || client.run())?;
    server.expect_code(0)?.expect_text("passed")?;
    client.expect_code(0)?.expect_text("passed").map(drop)
}

/// A communicator with a process of another job has as many members as the job has ranks, but not all of these.
fn departs() -> Outcome {
    let client = job("1", Abi::Mpi5, "departs", "visit", "")?;
    let (server, _) = beside(job("2", Abi::Mpi5, "departs", "serve", "")?, || client.run())?;
    server.expect_code(6)?.expect_text("MPI_ERRORS_ABORT").and_then(|ended| ended.expect_text("passed")).map(drop)
}

/// What a rank has no room for holds up neither another rank nor the connection, whose hosts are not silent.
fn flooded() -> Outcome {
    let program = programs::compile(&place::root().join("tests/programs/tools/flooded.c"), Abi::Mpi5, &[])?;
    let job = |ranks: &str| -> Result<Program, String> {
        let job = super::pip_exec(ranks)?.env("COHORT_PROGRESS", "none").env("COHORT_NET_TIMEOUT", "2");
        Ok(job.arg(&program))
    };
    let file = place::scratch()?.join("go on");
    let client = job("16")?.arg("visit");
    let (server, client) = beside(job("2")?.arg("serve").arg(file), || client.run())?;
    client.expect_code(0)?;
    server.expect_code(0)?.expect_text("all of the flood has come").map(drop)
}

/// Each one's connection is over when the next one comes.
fn jobs_in_turn() -> Outcome {
    let (server, ()) = beside(job("2", Abi::Mpi5, "all", "serve", "20")?, || {
        let client = || job("1", Abi::Mpi5, "all", "visit", "1")?.run()?.expect_code(0).map(drop);
        (0..20).try_for_each(|_| client())
    })?;
    server.expect_code(0).map(drop)
}

/// A server and its clients as users start programs without thinking of MPI.
fn many() -> Outcome {
    let process =
        |side: &str| -> Result<Program, String> { Ok(Program::new(compiled(Abi::Mpi5)?).args(["many", side, "10"])) };
    // Each runs beside the ones that were started before it.
    fn chain(mut left: Vec<Program>) -> Outcome {
        let Some(one) = left.pop() else {
            return Ok(());
        };
        beside(one, || chain(left))?.0.expect_code(0)?.expect_text("passed").map(drop)
    }
    let clients = (0..10).map(|_| process("visit"));
    chain(clients.chain([process("serve")]).collect::<Result<_, _>>()?)
}

fn join() -> Outcome {
    // The path of a socket is short.
    let name = format!("/tmp/cohort-join-{}", std::process::id());
    let met = meet(["1", "1"], ["join", &name]);
    let _ = std::fs::remove_file(&name);
    met
}

fn ends(how: &str, way: &str, status: i32) -> Outcome {
    let client = job("2", Abi::Mpi5, how, "visit", way)?;
    let (server, client) = beside(job("2", Abi::Mpi5, how, "serve", way)?, || client.run())?;
    server.expect_code(1)?.expect_text("another job that this one is connected with")?;
    client.expect_code(status).map(drop)
}

fn parted(way: &str, status: i32) -> Outcome {
    let client = job("2", Abi::Mpi5, "parted", "visit", way)?;
    let next = job("1", Abi::Mpi5, "parted", "visit", "stay")?;
    let (server, ()) = beside(job("2", Abi::Mpi5, "parted", "serve", way)?, || {
        client.run()?.expect_code(status)?;
        next.run()?.expect_code(0)?.expect_text("passed").map(drop)
    })?;
    server.expect_code(0)?.expect_text("passed").map(drop)
}

/// Whoever comes after a client that has died in `MPI_Comm_connect` is served.
fn vanished(how: &str, goes_on: bool) -> Outcome {
    let file = place::scratch()?.join("accept");
    let file = file.to_str().ok_or("no text")?;
    // It may be there of a first attempt.
    let _ = std::fs::remove_file(file);
    let on_failure = if goes_on { "continue" } else { "end" };
    let of = |ranks, how, side, argument: &str| {
        job(ranks, Abi::Mpi5, how, side, argument).map(|it| it.env("COHORT_ON_FAILURE", on_failure))
    };
    let client = of("2", how, "visit", file)?;
    let (server, ()) = beside(of("1", how, "serve", file)?, || {
        let ended = client.run()?;
        if goes_on {
            return ended.expect_text("passed").map(drop);
        }
        ended.expect_code(137)?;
        std::fs::write(file, "").map_err(|error| error.to_string())?;
        of("1", "turns", "visit", "1")?.run()?.expect_code(0)?.expect_text("passed").map(drop)
    })?;
    server.expect_code(0)?.expect_text("passed").map(drop)
}

/// The name of the port, once a server has published it.
fn port_of(folder: &Path) -> Result<String, String> {
    let found = || {
        let mut entries = std::fs::read_dir(folder).ok()?.flatten();
        let text = std::fs::read_to_string(entries.next()?.path()).ok()?;
        text.split_once('\0').map(|(_, port)| port.to_owned())
    };
    event::found("a port that is published", || Ok(found()))
}

/// Each is told at once what is wrong, and the server serves whoever comes then.
fn wrong_names() -> Outcome {
    let visit = |port: &str, code, text: &str| -> Outcome {
        let ended = job("1", Abi::Mpi5, "turns", "visit", "1")?.env("PORT", port).run()?.expect_code(code)?;
        ended.expect_text(text).map(drop)
    };
    let folder = names()?;
    let (server, port) = beside(job("1", Abi::Mpi5, "turns", "serve", "1")?, || {
        let port = port_of(&folder)?;
        visit("nonsense", 43, "\"nonsense\" is no name of a port")?;
        visit(&port[..port.len() / 2], 43, "MPI_ERR_PORT")?;
        let (job, _) = port.split_once('@').ok_or("a port without a contact")?;
        visit(job, 43, "cannot be reached from outside")?;
        let mut parts: Vec<&str> = port.split('/').collect();
        parts[5] = "0123456789abcdef0123456789abcdef";
        visit(&parts.join("/"), 43, "cannot be reached")?;
        visit(&port.replacen(":1:", ":9:", 1), 43, "is not open")?;
        visit(&port, 0, "passed")?;
        Ok(port)
    })?;
    server.expect_code(0)?;
    visit(&port, 43, "Has the job that opened the port ended")
}

/// Who connects and says something else, or nothing, holds up nobody.
fn strangers() -> Outcome {
    let folder = names()?;
    let (server, ()) = beside(job("1", Abi::Mpi5, "turns", "serve", "1")?, || {
        let port = port_of(&folder)?;
        let number = port.split('/').nth(6).and_then(|it| it.parse::<u16>().ok()).ok_or("no number of a port")?;
        let address = ("127.0.0.1", number);
        let mut loud = TcpStream::connect(address).map_err(|error| error.to_string())?;
        let _silent = TcpStream::connect(address).map_err(|error| error.to_string())?;
        let _ = loud.write_all(&[b'x'; 4096]);
        job("1", Abi::Mpi5, "turns", "visit", "1")?.run()?.expect_code(0).map(drop)
    })?;
    server.expect_code(0).map(drop)
}

/// The launcher tries a port that answers nothing, for a rank whose memory is given back meanwhile.
fn cut_short() -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let number = listener.local_addr().map_err(|error| error.to_string())?.port().to_string();
    let folder = names()?;
    let program = programs::compile(&place::root().join("tests/programs/tools/cut_short.c"), Abi::Mpi5, &[])?;
    let (server, ended) = beside(job("1", Abi::Mpi5, "turns", "serve", "1")?, || {
        let port = port_of(&folder)?;
        let mut parts: Vec<&str> = port.split('/').collect();
        parts[6] = &number;
        let held = std::thread::spawn(move || {
            let stream = listener.accept();
            event::pass(Duration::from_secs(2));
            drop(stream);
        });
        let ended = super::pip_exec("1")?.arg(program).arg(parts.join("/")).run()?;
        held.join().map_err(|_| "nobody came to the port")?;
        job("1", Abi::Mpi5, "turns", "visit", "1")?.run()?.expect_code(0)?;
        Ok(ended)
    })?;
    server.expect_code(0)?;
    ended.expect_code(3)?.expect_text("passed").map(drop)
}

fn own_job_only() -> Outcome {
    let server = job("1", Abi::Mpi5, "turns", "serve", "1")?.env("COHORT_CONNECT", "job");
    let ended = server.env("COHORT_DEADLOCK", "end").env("COHORT_DEADLOCK_AFTER", "0.5").run()?;
    ended.expect_code(35)?.expect_text("MPI_Comm_accept").map(drop)
}

fn refused() -> Outcome {
    let server = job("1", Abi::Mpi5, "refused", "serve", "")?.env("COHORT_CONNECT_NAMES", "/proc/none");
    server.run()?.expect_code(0)?.expect_text("passed").map(drop)
}

/// What the user wants encrypted does not travel in clear text.
/// Twenty seconds pass.
fn mute() -> Outcome {
    let ended = job("1", Abi::Mpi5, "mute", "serve", "1")?.run()?.expect_code(0)?;
    ended.expect_text("passed").map(drop)
}

/// Either side, or both.
fn encrypted() -> Outcome {
    for (serves, visits) in [("1", "0"), ("0", "1"), ("1", "1")] {
        let (server, client) =
            beside(job("2", Abi::Mpi5, "all", "serve", "1")?.env("COHORT_NET_ENCRYPT", serves), || {
                job("2", Abi::Mpi5, "all", "visit", "1")?.env("COHORT_NET_ENCRYPT", visits).run()
            })?;
        server.expect_code(0)?.expect_text("passed")?;
        client.expect_code(0)?.expect_text("passed")?;
    }
    Ok(())
}

fn waits() -> Outcome {
    let server = super::pip_exec("2")?.args(["--timeout", "3"]);
    let server = server.env("COHORT_DEADLOCK", "end").env("COHORT_DEADLOCK_AFTER", "0.3");
    let ended = server.arg(compiled(Abi::Mpi5)?).args(["all", "serve", "1"]).run()?.expect_code(124)?;
    match ended.says("cannot go on") {
        true => Err(ended.failure("a server that waits for clients is said to hang")),
        false => Ok(()),
    }
}
