//! Programs across nodes: those of `tests/programs/c`, mpi4py's suite, programs that do without
//! `pip-exec` or cannot share an address space.

use super::hosts::{Hosts, Network, namespaces_work};
use crate::command::Program;
use crate::directives::{Abi, Directives};
use crate::trials::Trial;
use crate::{Outcome, place, programs, slice, trial};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A network that is late and loses packets, in the words of netem.
const BAD: [&str; 5] = ["delay", "2ms", "1ms", "loss", "1%"];

/// Programs that also run over libfabric's shared memory and TCP of a later libfabric.
const OVER_ALL_NETWORKS: [&str; 8] = [
    "dispositions",
    "large",
    "partitioned",
    "random_collectives",
    "sendrecv",
    "stolen_network",
    "wildcards",
    "windows",
];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("nodes/random traffic".into(), || random_traffic(Network::Default, &[])),
        trial("nodes/random traffic over a bad network".into(), || random_traffic(Network::Default, &BAD)),
        trial("nodes/random traffic over a bad network (libfabric)".into(), || {
            random_traffic(Network::Libfabric, &BAD)
        }),
        trial("nodes/random traffic (shm)".into(), || random_traffic(Network::Shm, &[])),
        trial("nodes/random traffic (libfabric 2)".into(), || random_traffic(Network::Later, &[])),
        trial("nodes/a libfabric that is not there".into(), absent_libfabric),
        trial("nodes/files of one rank on each node".into(), || files(Network::Default)),
        trial("nodes/files of one rank on each node (libfabric)".into(), || files(Network::Libfabric)),
        trial("nodes/files of uneven nodes".into(), files_of_uneven_nodes),
        trial("nodes/files of isolated ranks".into(), files_of_isolated_ranks),
        trial("nodes/mpiexec without pip-exec".into(), without_pip_exec),
        trial("nodes/with and without pip-exec in one job".into(), partly_without_pip_exec),
        trial("nodes/settings that are to be alike".into(), unlike_settings),
        trial("nodes/isolated ranks".into(), isolated),
        trial("nodes/bursts to three nodes".into(), bursts_to_three_nodes),
        trial("nodes/COHORT_REDUCE_ORDER=ranks makes placement no difference".into(), any_placement),
    ];
    for carriers in ["auto", "alone", "one", "all"] {
        trials.push(trial(format!("nodes/COHORT_CARRIERS={carriers} of uneven nodes"), || carriers_of_nodes(carriers)));
    }
    for doubling in ["on", "off"] {
        trials.push(trial(format!("nodes/COHORT_DOUBLING={doubling} of four nodes"), || four_nodes(doubling)));
    }
    trials.extend(psm2_trials());
    let uneven: [(&str, &[&str]); 3] = [("1,3", &[]), ("3,1", &["--map-by", "node"]), ("2,3", &["--map-by", "node"])];
    for (ranks, mapped) in uneven {
        let order = if mapped.is_empty() { "" } else { ", dealt out in turn" };
        let name = format!("nodes/random collectives of {ranks} members{order}");
        trials.push(trial(name, move || random_collectives(ranks, mapped)));
    }
    for ranks in [2, 4] {
        for suite in ["IMB-MPI1", "IMB-NBC"] {
            let name = format!("nodes/{suite}/{ranks}");
            trials.push(trial(name, move || intel_benchmarks(suite, ranks)));
        }
    }
    for source in programs::sources() {
        // What cannot be read is reported by the trials of one node.
        if let Ok(directives) = Directives::read(&source)
            && let Some(ranks) = layout(&directives)
        {
            trials.extend(program_trials(&source, &directives, ranks));
        }
    }
    trials
}

/// What is particular to PSM2.
fn psm2_trials() -> [Trial; 4] {
    [
        trial("nodes/libfabric is asked where a card is (psm2)".into(), asked_with_a_card),
        trial("nodes/what psm2 cannot do (psm2)".into(), psm2_limits),
        trial("nodes/random traffic without copies by the kernel (psm2)".into(), || {
            traffic_over_psm2("4,4", &[("PSM2_KASSIST_MODE", "none".into())])
        }),
        trial("nodes/random traffic, libfabric 2 (psm2)".into(), || {
            let library = place::cached("mpich-venv/lib/mpich/libfabric.so.1", "mpich")?;
            let providers = place::cached("mpich-venv/lib/mpich/libfabric", "mpich")?;
            let settings = [("COHORT_NET_LIBFABRIC", library.into()), ("FI_PROVIDER_PATH", providers.into())];
            traffic_over_psm2("2,3", &settings)
        }),
    ]
}

/// How a program runs across nodes.
#[derive(Clone)]
struct Way {
    /// `COHORT_NET_NOTIFY`.
    notify: String,
    /// `COHORT_PROGRESS`, if not that of the whole run.
    progress: Option<&'static str>,
    network: Network,
}

/// A program across nodes, once for each way in which it wants the kernel to be told; once without
/// help of other ranks, who would hide that a rank is not woken; and all of it through libfabric
/// too.
fn program_trials(source: &Path, directives: &Directives, ranks: &'static str) -> Vec<Trial> {
    let told = |notify: &String| Way { notify: notify.clone(), progress: None, network: Network::Default };
    let mut ways: Vec<Way> = directives.notify.iter().map(told).collect();
    let through = |network| {
        let over = move |way: Way| Way { network, ..way };
        ways.clone().into_iter().map(over)
    };
    let networks: &[Network] = match OVER_ALL_NETWORKS.contains(&programs::stem(source).as_str()) {
        true => &[Network::Libfabric, Network::Psm2, Network::Shm, Network::Later],
        false if !directives.over_libfabric => &[],
        false => &[Network::Libfabric, Network::Psm2],
    };
    let through_libfabric: Vec<Way> = networks.iter().copied().flat_map(through).collect();
    if place::progress().is_none() && directives.any_policy {
        let progress = Some("none");
        ways.extend(ways.first().cloned().map(|way| Way { progress, ..way }));
    }
    ways.extend(through_libfabric);
    // The way that a program takes in any case, and one of the others.
    let other = 1 + slice::hash(&programs::stem(source)) as usize % (ways.len() - 1).max(1);
    let run = |(index, way): (usize, Way)| {
        let (source, directives) = (source.to_owned(), directives.clone());
        let alone = directives.alone;
        let name = way.name_of(&programs::stem(&source));
        let trial = trial(format!("nodes/c/{name}"), move || program(&source, &directives, ranks, &way));
        trial.alone(alone).long(index != 0 && index != other)
    };
    ways.into_iter().enumerate().map(run).collect()
}

impl Way {
    /// A program's name with what is special.
    fn name_of(&self, program: &str) -> String {
        let words = [Some(program), Some(&self.notify), self.progress];
        let words: Vec<&str> = words.into_iter().flatten().collect();
        words.join("/") + self.network.suffix()
    }
}

/// The ranks of each of two nodes, by the numbers of ranks that a program runs with.
fn layout(directives: &Directives) -> Option<&'static str> {
    let layouts = [(4, "2"), (3, "2,1"), (2, "1"), (6, "3")];
    if !directives.nodes || directives.progress.is_empty() {
        return None;
    }
    let fitting = |(ranks, _): &(u32, &str)| directives.ranks.contains(ranks);
    layouts.into_iter().find(fitting).map(|(_, each)| each)
}

fn program(source: &Path, directives: &Directives, ranks: &str, way: &Way) -> Outcome {
    let abi = directives.abis.first().copied().unwrap_or(Abi::Mpi5);
    let executable = programs::compile(source, abi, &directives.libs)?;
    let hosts = Hosts::new(2)?.over(way.network);
    let mut job = hosts.pip_exec(ranks)?;
    if let Some(progress) = way.progress {
        job = job.env("COHORT_PROGRESS", progress);
    }
    let ended = job
        .env("COHORT_NET_NOTIFY", &way.notify)
        .envs(&directives.settings)
        .arg(executable)
        .args(&directives.args)
        .seconds(directives.seconds * 2)
        .run()?;
    programs::as_promised(ended, directives).map(drop)
}

/// Messages of random sizes between random ranks, each byte verified.
fn random_traffic(network: Network, disturbance: &[&str]) -> Outcome {
    let hosts = Hosts::new(3)?.over(network);
    let source = programs::source("stress64.c");
    let name = format!("nodes-traffic-{network:?}-{}", disturbance.len());
    let executable = programs::compile_as(&name, &source, Abi::Mpi5, &[])?;
    if namespaces_work() && !disturbance.is_empty() {
        for host in 0..3 {
            match hosts.disturb(host, disturbance) {
                Err(reason) if reason.contains("qdisc kind is unknown") => {
                    eprintln!("nodes: this kernel has no netem: the network is as good as ever");
                }
                result => result?,
            }
        }
    }
    let job = hosts.pip_exec("2,1,3")?.arg(executable).arg("7");
    job.seconds(120).run()?.expect_code(0)?;
    Ok(())
}

/// Random traffic over PSM2 with variables. Where the kernel does not copy between processes, it sends longer messages
/// in other ways.
fn traffic_over_psm2(ranks: &str, variables: &[(&str, OsString)]) -> Outcome {
    let hosts = Hosts::new(2)?.over(Network::Psm2);
    let source = programs::source("stress64.c");
    let name = format!("nodes-traffic-psm2-{}", ranks.replace(',', "-"));
    let executable = programs::compile_as(&name, &source, Abi::Mpi5, &[])?;
    let mut job = hosts.pip_exec(ranks)?.arg(executable).arg("5");
    for (name, value) in variables {
        job = job.env(name, value);
    }
    job.seconds(120).run()?.expect_code(0)?;
    Ok(())
}

/// Nobody names a provider. Without a card libfabric, which takes its time to start, is not even loaded.
fn asked_with_a_card() -> Outcome {
    let source = place::root().join("tests/programs/tools/maps.c");
    let executable = programs::compile_as("nodes-maps", &source, Abi::Mpi5, &[])?;
    let has_card =
        ["infiniband", "cxi"].map(|class| Path::new("/sys/class").join(class)).iter().any(|card| card.exists());
    for (network, loads) in [(Network::Default, has_card), (Network::Psm2, true)] {
        let hosts = Hosts::new(2)?.over(network);
        let job = hosts.pip_exec("1")?.arg(&executable).arg("libfabric.so").env("COHORT_NET_PROVIDER", "auto");
        let mut ended = job.seconds(60).run()?.expect_code(0)?;
        for rank in 0..2 {
            let state = if loads { "there" } else { "not there" };
            ended = ended.expect_text(&format!("rank {rank}: libfabric.so is {state}"))?;
        }
    }
    Ok(())
}

/// A program without MPI shows each thing that the transport does otherwise for PSM2's sake; and that short messages
/// arrive in order, on which it relies.
fn psm2_limits() -> Outcome {
    let executable = place::scratch()?.join("psm2_limits");
    Program::new("cc")
        .args(["-Wall", "-Werror", "-O1", "-o"])
        .arg(&executable)
        .arg(place::root().join("tests/programs/tools/psm2_limits.c"))
        .arg("-lfabric")
        .run()?
        .expect_code(0)?;
    let ended = Program::new(place::root().join("tools/with-psm2.sh"))
        .arg(executable)
        .env("PSM2_KASSIST_MODE", "none")
        .seconds(60)
        .run()?
        .expect_code(0)?;
    let shown: Vec<&str> = ended.stdout.lines().collect();
    let known =
        ["connect waits", "sleeps for ever", "named by process", "close waits", "pieces overtaken", "long overtaken"];
    if shown == known { Ok(()) } else { Err(ended.failure("other limits are known: see fabric/ofi/src/quirks.rs")) }
}

/// Ranks without neighbours that could hold a descriptor for them close all that they find.
fn files(network: Network) -> Outcome {
    let hosts = Hosts::new(2)?.over(network);
    let name = format!("nodes-files-{network:?}");
    let source = programs::source("files.c");
    let program = programs::compile_as(&name, &source, Abi::Mpi5, &[])?;
    hosts.pip_exec("1")?.arg(program).run()?.expect_code(0)?;
    Ok(())
}

/// Random views of one file, and conflicting accesses: nodes with one, two and three members, dealt out in turn or not.
fn files_of_uneven_nodes() -> Outcome {
    const IN_TURN: [&str; 2] = ["--map-by", "node"];
    let hosts = Hosts::new(3)?;
    let runs: [(&str, &[&str], &[&str]); 3] = [
        ("files_nodes", &["6", "100"], &[]),
        ("files_nodes", &["6", "200"], &IN_TURN),
        ("files_atomic", &[], &IN_TURN),
    ];
    for (name, arguments, mapped) in runs {
        let source = programs::source(&format!("{name}.c"));
        let program = programs::compile_as(&format!("nodes-uneven-{name}"), &source, Abi::Mpi5, &[])?;
        let job = hosts.pip_exec("2,1,3")?.args(mapped).arg(&program).args(arguments);
        job.seconds(120).run()?.expect_code(0)?.expect_text("passed")?;
    }
    Ok(())
}

/// The same where each rank is a node, so that nodes read for each other.
fn files_of_isolated_ranks() -> Outcome {
    for (name, ranks, rounds) in [("files_nodes", "3", "6"), ("files_nodes", "6", "5"), ("files_atomic", "4", "")] {
        let source = programs::source(&format!("{name}.c"));
        let program = programs::compile_as(&format!("nodes-isolated-{name}-{ranks}"), &source, Abi::Mpi5, &[])?;
        let job = Program::new(place::built_file("pip-exec")?).args(["--isolate", "-n", ranks]);
        job.arg(&program).args([rounds, ranks]).seconds(120).run()?.expect_code(0)?.expect_text("passed")?;
    }
    Ok(())
}

/// A job that names a libfabric which is not there says so.
fn absent_libfabric() -> Outcome {
    let hosts = Hosts::new(2)?.over(Network::Libfabric);
    let job = hosts.pip_exec("1")?.arg(ring("nodes-absent")?);
    let ended = job.env("COHORT_NET_LIBFABRIC", "/nowhere/libfabric.so.1");
    ended.run()?.expect_code(2)?.expect_text("COHORT_NET_LIBFABRIC cannot be loaded: /nowhere/libfabric.so.1")?;
    Ok(())
}

fn ring(name: &str) -> Result<PathBuf, String> {
    programs::compile_as(name, &programs::source("ring.c"), Abi::Mpi5, &[])
}

fn without_pip_exec() -> Outcome {
    let hosts = Hosts::new(2)?;
    let job = hosts.mpiexec(2)?.arg(ring("nodes-alone")?);
    job.run()?.expect_code(0)?.expect_text("the token counts 6")?;
    Ok(())
}

/// Either side says what it has to do with the other; nobody waits.
fn partly_without_pip_exec() -> Outcome {
    let (hosts, ring) = (Hosts::new(2)?, ring("nodes-partly")?);
    let with = hosts.mpiexec(1)?.arg(place::built_file("pip-exec")?).args(["-n", "2"]).arg(&ring);
    let ended = with.args([":", "-n", "1"]).arg(&ring).seconds(30).run()?;
    let words = "start all programs of the job with pip-exec, or none";
    match ended.code() {
        0 => Err(ended.failure("expected a refusal")),
        _ => ended.expect_text(words).map(drop),
    }
}

/// One node, or rank without `pip-exec`, has another value, which would have members wait for each other.
fn unlike_settings() -> Outcome {
    let (hosts, ring) = (Hosts::new(2)?, ring("nodes-unlike")?);
    let settings = [
        ("COHORT_CARRIERS", "alone"),
        ("COHORT_CHECK", "members"),
        ("COHORT_DOUBLING", "off"),
        ("COHORT_ON_FAILURE", "continue"),
        ("COHORT_REDUCE_ORDER", "ranks"),
    ];
    for (name, value) in settings {
        let only_there = format!("test \"$PMI_RANK\" = 1 && export {name}={value}; exec \"$@\"");
        for launcher in [vec![place::built_file("pip-exec")?.into(), "-n".into(), "2".into()], Vec::<OsString>::new()] {
            let job = hosts.mpiexec(1)?.args(["sh", "-c", &only_there, "sh"]).args(launcher).arg(&ring);
            let ended = job.seconds(30).run()?;
            match ended.code() {
                0 => return Err(ended.failure("expected a refusal")),
                _ => ended.expect_text(&format!("{name} has another value there than here"))?,
            };
        }
    }
    Ok(())
}

fn isolated() -> Outcome {
    let job = Program::new(place::built_file("pip-exec")?).args(["--isolate", "-n", "3"]).arg(ring("nodes-isolated")?);
    job.run()?.expect_code(0)?.expect_text("the token counts 3")?;
    Ok(())
}

/// What a burst has left arrives at each of several nodes.
fn bursts_to_three_nodes() -> Outcome {
    let source = programs::source("burst_left.c");
    let executable = programs::compile_as("nodes-bursts", &source, Abi::Mpi5, &[])?;
    let hosts = Hosts::new(4)?;
    for progress in ["none", "steal"] {
        let job = hosts.pip_exec("1")?.env("COHORT_PROGRESS", progress).arg(&executable);
        job.seconds(60).run()?.expect_code(0)?.expect_text("passed")?;
    }
    Ok(())
}

/// Random collectives print a digest of their results, to the bit.
fn any_placement() -> Outcome {
    let source = programs::source("random_collectives.c");
    let executable = programs::compile_as("nodes-placement", &source, Abi::Mpi5, &[])?;
    let digest = |job: Program| -> Result<String, String> {
        let job = job.arg(&executable).env("COHORT_REDUCE_ORDER", "ranks");
        let ended = job.seconds(120).run()?.expect_code(0)?;
        let mut lines = ended.stdout.lines();
        let found = lines.find(|line| line.starts_with("digest "));
        found.map(String::from).ok_or(ended.failure("no digest"))
    };
    let hosts = Hosts::new(2)?;
    let together = digest(Program::new(place::built_file("pip-exec")?).args(["-n", "5"]))?;
    for ranks in ["2,3", "4,1"] {
        let apart = digest(hosts.pip_exec(ranks)?)?;
        if apart != together {
            return Err(format!("{together} on one node, {apart} with {ranks}"));
        }
    }
    Ok(())
}

/// Members of three nodes send for each other.
fn carriers_of_nodes(carriers: &str) -> Outcome {
    let hosts = Hosts::new(3)?;
    for name in ["carriers", "carried_requests"] {
        let source = programs::source(&format!("{name}.c"));
        let executable = programs::compile_as(&format!("nodes-{name}"), &source, Abi::Mpi5, &[])?;
        for mapped in [&[][..], &["--map-by", "node"]] {
            let job = hosts.pip_exec("3,1,2")?.args(mapped).arg(&executable).env("COHORT_CARRIERS", carriers);
            job.seconds(60).run()?.expect_code(0)?.expect_text("passed")?;
        }
    }
    Ok(())
}

/// Collectives of four nodes, also those in which members disagree about lengths.
fn four_nodes(doubling: &str) -> Outcome {
    let hosts = Hosts::new(4)?;
    for name in ["random_collectives", "carriers", "disagreeing"] {
        let source = programs::source(&format!("{name}.c"));
        let executable = programs::compile_as(&format!("four-{name}"), &source, Abi::Mpi5, &[])?;
        for ranks in ["1,1,1,1", "2,1,1,1"] {
            let job = hosts.pip_exec(ranks)?.arg(&executable).env("COHORT_DOUBLING", doubling);
            job.seconds(60).run()?.expect_code(0)?;
        }
    }
    Ok(())
}

/// Random collectives where nodes have different numbers of members, and these follow each other in turn.
fn random_collectives(ranks: &str, mapped: &[&str]) -> Outcome {
    let name = format!("nodes-uneven-{}", ranks.replace(',', "-"));
    let source = programs::source("random_collectives.c");
    let executable = programs::compile_as(&name, &source, Abi::Mpi5, &[])?;
    let hosts = Hosts::new(2)?;
    let job = hosts.pip_exec(ranks)?.args(mapped).arg(executable);
    job.seconds(120).run()?.expect_code(0)?;
    Ok(())
}

/// The Intel MPI Benchmarks have fixed addresses, so each rank is a process of its own.
fn intel_benchmarks(name: &str, ranks: u32) -> Outcome {
    Program::new(place::built_file("pip-exec")?)
        .args(["-n", &ranks.to_string()])
        .arg(place::cached(&format!("impi-venv/bin/{name}"), "impi")?)
        .args(["-iter", "5", "-msglog", "12", "-npmin", &ranks.to_string()])
        .seconds(240)
        .run()?
        .expect_code(0)?
        .expect_text("is not position-independent")?
        .expect_text("All processes entering MPI_Finalize")?;
    Ok(())
}
