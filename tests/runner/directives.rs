//! The `//# key: value` comments of a test program.
//!
//! | key            | value                                             | default          |
//! |----------------|---------------------------------------------------|------------------|
//! | `ranks`        | counts to run with                                | `2 4`            |
//! | `abi`          | `mpich`, `mpi5`, `mpi5-wheel`, `openmpi` (see [`Abi`]) | `mpich mpi5`     |
//! | `progress`     | values of `COHORT_PROGRESS`, or `all`             | `steal`          |
//! | `policies`     | `listed`: under those of `progress` only, which needs a reason beside it | `any` |
//! | `wait`         | values of `COHORT_WAIT`                           | `auto`           |
//! | `args`         | arguments of the program                          | none             |
//! | `exit`         | expected exit code                                | `0`              |
//! | `stdout`       | text that standard output contains (may repeat)   | none             |
//! | `stderr`       | text that standard error contains (may repeat)    | none             |
//! | `differential` | `mpich`: the same output lines under MPICH        | none             |
//! | `timeout`      | seconds                                           | `30`             |
//! | `nodes`        | `no`: not on several nodes, `sockets`: not over libfabric; needs a reason beside it | `yes` |
//! | `notify`       | values of `COHORT_NET_NOTIFY` on several nodes    | `mirror`         |
//! | `alone`        | `yes`: no other program runs beside it            | `no`             |
//! | `settings`     | `NAME=VALUE` of the environment (may repeat)      | none             |
//! | `libs`         | further arguments of the compiler                 | none             |
//!
//! Lists are separated by spaces or commas. The runs are the product of `ranks`, `abi`, `progress`
//! and `wait`. With `TEST_COHORT_PROGRESS` the runs are those of that policy, which takes the place
//! of `progress`.

use crate::place;
use cohort_base::settings::Progress;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Which compiler wrapper makes the program, and so which library it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// `libmpi.so.12`, by the MPICH wheel's `mpicc`.
    Mpich,
    /// `libmpi_abi.so.1`, by our `mpicc`.
    Mpi5,
    /// `libmpi_abi.so.1`, by the MPICH wheel's `mpicc_abi`.
    Mpi5Wheel,
    /// `libmpi.so.40`, by the Open MPI wheel's `mpicc`.
    OpenMpi,
}

impl FromStr for Abi {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "mpich" => Ok(Self::Mpich),
            "mpi5" => Ok(Self::Mpi5),
            "mpi5-wheel" => Ok(Self::Mpi5Wheel),
            "openmpi" => Ok(Self::OpenMpi),
            _ => Err(format!("no such abi: {text}")),
        }
    }
}

impl fmt::Display for Abi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mpich => "mpich",
            Self::Mpi5 => "mpi5",
            Self::Mpi5Wheel => "mpi5-wheel",
            Self::OpenMpi => "openmpi",
        })
    }
}

/// Every value of `COHORT_PROGRESS`.
pub fn policies() -> Vec<&'static str> {
    Progress::NAMES.iter().map(|&(name, _)| name).collect()
}

/// What the comments of one program ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directives {
    pub ranks: Vec<u32>,
    pub abis: Vec<Abi>,
    pub progress: Vec<String>,
    /// Whether what it checks holds under other policies too.
    pub any_policy: bool,
    pub wait: Vec<String>,
    pub args: Vec<String>,
    pub exit: i32,
    pub stdout: Vec<String>,
    pub stderr: Vec<String>,
    pub differential: bool,
    pub seconds: u64,
    pub alone: bool,
    pub settings: Vec<(String, String)>,
    pub libs: Vec<String>,
    pub nodes: bool,
    pub over_libfabric: bool,
    pub notify: Vec<String>,
}

impl Default for Directives {
    fn default() -> Self {
        Self {
            ranks: vec![2, 4],
            abis: vec![Abi::Mpich, Abi::Mpi5],
            progress: vec!["steal".into()],
            any_policy: true,
            wait: vec!["auto".into()],
            args: Vec::new(),
            exit: 0,
            stdout: Vec::new(),
            stderr: Vec::new(),
            differential: false,
            seconds: 30,
            alone: false,
            settings: Vec::new(),
            libs: Vec::new(),
            nodes: true,
            over_libfabric: true,
            notify: vec!["mirror".into()],
        }
    }
}

impl Directives {
    /// Reads the directives of the file `path`.
    ///
    /// # Errors
    /// When it cannot be read, or holds an unknown key or a value that the key does not take.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let mut directives = Self::parse(&text)?;
        if let Some(progress) = place::progress() {
            directives.run_under(progress)?;
        }
        Ok(directives)
    }

    /// Narrows the runs to those of one policy.
    fn run_under(&mut self, progress: String) -> Result<(), String> {
        let asked = one_of(vec![progress], &policies())?;
        match self.any_policy {
            true => self.progress = asked,
            false => self.progress.retain(|listed| asked.contains(listed)),
        }
        Ok(())
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut directives = Self::default();
        for line in text.lines().filter_map(|line| line.trim().strip_prefix("//#")) {
            let (key, value) = line.split_once(':').ok_or_else(|| format!("directive without a colon: {line}"))?;
            directives.set(key.trim(), value.trim()).map_err(|error| format!("directive {}: {error}", key.trim()))?;
        }
        Ok(directives)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "ranks" => self.ranks = list(value)?,
            "abi" => self.abis = list(value)?,
            "progress" if value == "all" => self.progress = policies().into_iter().map(String::from).collect(),
            "progress" => self.progress = one_of(list(value)?, &policies())?,
            "policies" => self.any_policy = one_of(list(value)?, &["any", "listed"])? == ["any"],
            "wait" => self.wait = one_of(list(value)?, &["auto", "spin", "park"])?,
            "args" => self.args = value.split_whitespace().map(String::from).collect(),
            "exit" => self.exit = number(value)?,
            "stdout" => self.stdout.push(value.into()),
            "stderr" => self.stderr.push(value.into()),
            "differential" => self.differential = !one_of(list(value)?, &["mpich"])?.is_empty(),
            "timeout" => self.seconds = number(value)?,
            "alone" => self.alone = one_of(list(value)?, &["yes", "no"])? == ["yes"],
            "nodes" => {
                let nodes = one_of(list(value)?, &["yes", "no", "sockets"])?;
                (self.nodes, self.over_libfabric) = (nodes != ["no"], nodes == ["yes"]);
            }
            "notify" => self.notify = one_of(list(value)?, &["mirror", "defer"])?,
            "settings" => {
                let (name, setting) = value.split_once('=').ok_or("NAME=VALUE is wanted")?;
                self.settings.push((name.into(), setting.into()));
            }
            "libs" => self.libs = value.split_whitespace().map(String::from).collect(),
            _ => return Err("no such key".into()),
        }
        Ok(())
    }
}

fn list<T: FromStr>(value: &str) -> Result<Vec<T>, String> {
    value.split([' ', ',']).filter(|word| !word.is_empty()).map(number).collect()
}

fn number<T: FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("cannot take {word:?}"))
}

fn one_of(words: Vec<String>, valid: &[&str]) -> Result<Vec<String>, String> {
    match words.iter().find(|word| !valid.contains(&word.as_str())) {
        Some(word) => Err(format!("{word} is none of {valid:?}")),
        None => Ok(words),
    }
}

/// What this module promises, as a trial body (the runner has a harness of its own).
pub fn check() -> Result<(), String> {
    let read = Directives::parse("//# ranks: 1, 2 8\n//# abi: mpi5\n//# exit: 3\nint x; //# no")?;
    if (&read.ranks[..], &read.abis[..], read.exit) != (&[1, 2, 8], &[Abi::Mpi5], 3) {
        return Err(format!("misread: {read:?}"));
    }
    for (text, left) in [
        ("//# progress: none", &["ghost"][..]),
        ("//# progress: none\n//# policies: listed", &[]),
        ("//# progress: all\n//# policies: listed", &["ghost"]),
    ] {
        let mut read = Directives::parse(text)?;
        read.run_under("ghost".into())?;
        if read.progress != left {
            return Err(format!("{text:?} under ghost: {:?}", read.progress));
        }
    }
    for bad in ["//# rank: 1", "//# ranks: x", "//# progress: stael", "//# ranks", "//# abi: mpi4", "//# notify: later"]
    {
        if let Ok(read) = Directives::parse(bad) {
            return Err(format!("{bad} was taken as {read:?}"));
        }
    }
    Ok(())
}
