//! mpi4py's own test suite, laid out by `tests/suites/mpi4py.toml`.

use crate::command::Program;
use crate::nodes::{Hosts, Network};
use crate::trials::Trial;
use crate::{Outcome, place, trial};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Suite {
    /// Rank counts that every group runs with, under mpi4py's wheel (MPICH ABI).
    ranks: Vec<u32>,
    /// Further ones, in the long list.
    long_ranks: Vec<u32>,
    /// The same under an mpi4py that our compiler wrapper built (MPI-5 ABI).
    own_ranks: Vec<u32>,
    /// The same under mpi4py's wheel with Open MPI's ABI.
    openmpi_ranks: Vec<u32>,
    /// Ranks of each node, for jobs of several nodes.
    nodes: Vec<Vec<u32>>,
    /// The same for jobs that talk through libfabric.
    nodes_libfabric: Vec<Vec<u32>>,
    /// The same for jobs that talk through PSM2.
    nodes_psm2: Vec<Vec<u32>>,
    /// Time limit of one run.
    seconds: u64,
    group: Vec<Group>,
    left_out: Vec<LeftOut>,
    #[serde(default)]
    skip: Vec<Skip>,
}

/// Modules that run together in one job.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: String,
    modules: Vec<String>,
    /// Whether it also runs on several nodes.
    #[serde(default)]
    across_nodes: bool,
    /// Whether it takes so long that only one and two ranks of the wheel with the default policy run each time.
    #[serde(default)]
    heavy: bool,
    /// Whether all of its runs belong to the long list.
    #[serde(default)]
    seldom: bool,
    /// Only with these rank counts; empty: with all.
    #[serde(default)]
    ranks: Vec<u32>,
    /// Further runs, with other policies.
    #[serde(default)]
    also: Vec<Also>,
}

/// A run of a group with a policy that is not the default.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Also {
    ranks: u32,
    /// `COHORT_PROGRESS`.
    progress: String,
    #[serde(default)]
    build: Build,
}

/// Which mpi4py runs.
#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Build {
    /// PyPI's wheel.
    #[default]
    Wheel,
    /// One that our `mpicc` built from our `mpi.h`.
    Own,
    /// PyPI's wheel, which takes its modules for Open MPI when it is told so.
    OpenMpi,
}

impl Build {
    /// Its place in a trial's name.
    fn title(self) -> &'static str {
        match self {
            Self::Wheel => "mpi4py",
            Self::Own => "mpi4py/own build",
            Self::OpenMpi => "mpi4py/openmpi",
        }
    }

    /// Its interpreter.
    fn python(self) -> Result<PathBuf, String> {
        match self {
            Self::Wheel | Self::OpenMpi => place::cached("mpi4py-venv/bin/python", "mpi4py"),
            // The stamp is written when the build is complete.
            Self::Own => place::cached("mpi4py-abi-venv/stamp", "mpi4py-abi")
                .and_then(|_| place::cached("mpi4py-abi-venv/bin/python", "mpi4py-abi")),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LeftOut {
    reason: String,
    modules: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Skip {
    pattern: String,
    reason: String,
    /// Only with these rank counts; empty: with all.
    #[serde(default)]
    ranks: Vec<u32>,
    /// Only on several nodes.
    #[serde(default)]
    across_nodes: bool,
    /// Only with Open MPI's ABI.
    #[serde(default)]
    openmpi: bool,
}

impl Skip {
    fn applies(&self, start: &Start) -> bool {
        (self.ranks.is_empty() || self.ranks.contains(&start.ranks))
            && (start.several_nodes || !self.across_nodes)
            && (start.build == Build::OpenMpi || !self.openmpi)
    }
}

/// With how many ranks further policies run each time; more are in the long list.
const POLICY_RANKS_MAX: u32 = 3;

/// How a group is started.
struct Start {
    launcher: Program,
    build: Build,
    ranks: u32,
    several_nodes: bool,
}

/// One trial per group and rank count, and one for the layout itself.
pub fn trials() -> Vec<Trial> {
    let suite = match read() {
        Ok(suite) => Arc::new(suite),
        Err(error) => return vec![trial("mpi4py/layout".into(), move || Err(error.clone()))],
    };
    let layout = Arc::clone(&suite);
    let mut trials = vec![trial("mpi4py/layout".into(), move || layout.check())];
    for index in 0..suite.group.len() {
        let with = |build, ranks: &[u32], long| -> Vec<(Build, u32, bool)> {
            ranks.iter().map(|&ranks| (build, ranks, long)).collect()
        };
        let runs = [
            with(Build::Wheel, &suite.ranks, false),
            with(Build::Wheel, &suite.long_ranks, true),
            with(Build::Own, &suite.own_ranks, false),
            with(Build::OpenMpi, &suite.openmpi_ranks, false),
        ];
        let Group { heavy, seldom, .. } = suite.group[index];
        let only = &suite.group[index].ranks;
        let runs = runs.concat().into_iter().filter(|(_, ranks, _)| only.is_empty() || only.contains(ranks));
        for (build, ranks, long) in runs {
            let long = seldom || long || heavy && build != Build::Wheel;
            let suite = Arc::clone(&suite);
            let name = format!("{}/{}/{ranks}", build.title(), suite.group[index].name);
            let run = move || suite.run_on_one(build, &suite.group[index], ranks, None);
            trials.push(trial(name, run).long(long));
        }
        let also = match place::progress() {
            Some(_) => Vec::new(),
            None => suite.group[index].also.clone(),
        };
        for also in also {
            let suite = Arc::clone(&suite);
            let (group, build) = (&suite.group[index].name, also.build.title());
            let name = format!("{build}/{group}/{} {}", also.ranks, also.progress);
            let long = seldom || heavy || also.ranks > POLICY_RANKS_MAX;
            let run = move || {
                let group = &suite.group[index];
                suite.run_on_one(also.build, group, also.ranks, Some(&also.progress))
            };
            trials.push(trial(name, run).long(long));
        }
        if suite.group[index].across_nodes {
            trials.extend(suite.trials_on_several(index));
        }
    }
    trials
}

fn read() -> Result<Suite, String> {
    let path = place::root().join("tests/suites/mpi4py.toml");
    let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
    toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

impl Suite {
    /// Every module of the suite is either in a group or left out, once, with a reason.
    fn check(&self) -> Outcome {
        let folder = place::cached("mpi4py-src/test", "mpi4py-src")?;
        let listing = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
        let present: BTreeSet<String> = listing
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter_map(|name| Some(name.strip_suffix(".py")?.to_owned()))
            .filter(|name| name.starts_with("test_"))
            .collect();
        let mut named = BTreeSet::new();
        let grouped = self.group.iter().map(|group| &group.modules);
        for module in grouped.chain(self.left_out.iter().map(|entry| &entry.modules)).flatten() {
            if !named.insert(module.clone()) {
                return Err(format!("{module} is named twice"));
            }
        }
        let reasons = self.left_out.iter().map(|entry| &entry.reason);
        if reasons.chain(self.skip.iter().map(|skip| &skip.reason)).any(|reason| reason.is_empty()) {
            return Err("an entry has no reason".into());
        }
        let unlike: Vec<_> = present.symmetric_difference(&named).collect();
        if unlike.is_empty() { Ok(()) } else { Err(format!("not listed, or not there: {unlike:?}")) }
    }

    /// Runs a group on one node, with a policy or the default one.
    fn run_on_one(&self, build: Build, group: &Group, ranks: u32, progress: Option<&str>) -> Outcome {
        let mut launcher = Program::new(place::built_file("pip-exec")?).args(["-n", &ranks.to_string()]);
        if let Some(progress) = progress {
            launcher = launcher.env("COHORT_PROGRESS", progress);
        }
        let start = Start { launcher, build, ranks, several_nodes: false };
        self.run(start, group)
    }

    /// The trials of a group across nodes.
    fn trials_on_several(self: &Arc<Self>, index: usize) -> Vec<Trial> {
        let over = |network| move |each: &Vec<u32>| (network, each.clone());
        let default = self.nodes.iter().map(over(Network::Default));
        let libfabric = self.nodes_libfabric.iter();
        let libfabric = libfabric.map(over(Network::Libfabric));
        let psm2 = self.nodes_psm2.iter().map(over(Network::Psm2));
        let run = |(number, (network, each)): (usize, (Network, Vec<u32>))| {
            let suite = Arc::clone(self);
            let counts: Vec<String> = each.iter().map(u32::to_string).collect();
            let (group, counts) = (&self.group[index], counts.join("+"));
            let name = format!("nodes/mpi4py/{}/{counts}{}", group.name, network.suffix());
            let long = group.heavy || number > 0;
            let run = move || suite.run_on_several(&suite.group[index], &each, network);
            trial(name, run).long(long)
        };
        let all = default.chain(libfabric).chain(psm2);
        all.enumerate().map(run).collect()
    }

    fn run_on_several(&self, group: &Group, each: &[u32], network: Network) -> Outcome {
        let hosts = Hosts::new(each.len() as u32)?.over(network);
        let counts: Vec<String> = each.iter().map(u32::to_string).collect();
        let start = Start {
            launcher: hosts.pip_exec(&counts.join(","))?,
            build: Build::Wheel,
            ranks: each.iter().sum(),
            several_nodes: true,
        };
        self.run(start, group)
    }

    fn run(&self, start: Start, group: &Group) -> Outcome {
        let include = format!("^({})\\.py$", group.modules.join("|"));
        let skips = self.skip.iter().filter(|skip| skip.applies(&start));
        let skipped: Vec<&str> = skips.flat_map(|skip| ["-x", skip.pattern.as_str()]).collect();
        let launcher = match start.build {
            Build::OpenMpi => start.launcher.env("MPI4PY_LIBMPI", "libmpi.so.40"),
            Build::Wheel | Build::Own => start.launcher,
        };
        let ended = launcher
            .env("OPENBLAS_NUM_THREADS", "1")
            // Tests of files have each file kept by the device some hundred times; in memory that costs nothing. But
            // nodes need not have the same memory.
            .env("TMPDIR", if start.several_nodes { "/tmp" } else { "/dev/shm" })
            .arg(start.build.python()?)
            .arg("-B")
            .arg(place::cached("mpi4py-src/test/main.py", "mpi4py-src")?)
            .args(["--no-builddir", "-i", &include])
            .args(skipped)
            .seconds(self.seconds)
            .run()?
            .expect_code(0)?;
        if ended.stderr.contains("Ran 0 tests") || !ended.stderr.contains("Ran ") {
            return Err(ended.failure("no test ran"));
        }
        Ok(())
    }
}
