//! The order of the layers: a crate depends only on crates of lower layers.

use crate::{Outcome, place};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates from the bottom up; a crate may use those of the lines above its own.
const LAYERS: [&[&str]; 18] = [
    &["cohort-arch"],
    // What build scripts call lies below what they build.
    &["cohort-base", "cohort-codegen"],
    &["cohort-abi"],
    &["cohort-alloc", "cohort-datatype", "cohort-steal", "cohort-fabric", "cohort-proof"],
    &["cohort-bridge", "cohort-cipher"],
    &["cohort-fabric-fake", "cohort-interpose", "cohort-descriptors", "cohort-core", "cohort-manager"],
    &["cohort-fabric-host"],
    &["cohort-net", "cohort-fabric-ofi", "cohort-fabric-tcp"],
    &["cohort-p2p", "cohort-rma", "cohort-network"],
    &["cohort-coll", "cohort-progress"],
    &["cohort-engine", "cohort-io"],
    &["cohort-object", "cohort-audit", "cohort-blocks", "cohort-malloc"],
    &["cohort-insight"],
    &["cohort-binding"],
    &["cohort-facade", "cohort-abi-facade"],
    &[
        "cohort-abi-mpich",
        "cohort-abi-mpi5",
        "cohort-abi-openmpi",
        "cohort-fortran",
        "cohort-fortran-openmpi",
        "cohort-openmpi-cxx",
    ],
    &["cohort-node"],
    &["cohort-tests", "cohort-fuzz-targets"],
];

/// The folders at the top from the bottom up; those of a line do not know each other.
const FOLDERS: [&[&str]; 6] =
    [&["arch"], &["base"], &["alloc", "steal"], &["fabric"], &["runtime", "pip-loader"], &["tests", "fuzz"]];

/// The loader's crates from the bottom up. They lie beside the layers: they see boot records, settings and process
/// managers, and those of the lines above their own.
const LOADER: [&[&str]; 4] =
    [&["pip-ground"], &["pip-load", "pip-monitor"], &["pip-insight"], &["pip-loader", "cohort-join"]];

/// What the loader executes to show a job on the screen. It sees the loader's crates alone.
const VIEWER: &str = "cohort-top";

/// What the loader's crates see of the others.
const BELOW_LOADER: [&str; 9] = [
    "cohort-alloc",
    "cohort-arch",
    "cohort-base",
    "cohort-bridge",
    "cohort-cipher",
    "cohort-fabric",
    "cohort-interpose",
    "cohort-manager",
    "cohort-proof",
];

/// Crates whose code may run on any task of the node.
const STEALABLE: [&str; 14] = [
    "cohort-arch",
    "cohort-base",
    "cohort-alloc",
    "cohort-datatype",
    "cohort-steal",
    "cohort-fabric",
    "cohort-core",
    "cohort-net",
    "cohort-p2p",
    "cohort-rma",
    "cohort-coll",
    "cohort-io",
    "cohort-progress",
    "cohort-engine",
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: String,
    license: Option<String>,
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// None for an ordinary dependency, else "dev" or "build".
    kind: Option<String>,
    path: Option<String>,
}

fn packages() -> Result<Vec<Package>, String> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(place::root())
        .output()
        .map_err(|error| error.to_string())?;
    let metadata: Metadata = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    Ok(metadata.packages)
}

/// The first files of the libraries and programs of every package, with the package's name.
pub fn roots() -> Result<Vec<(String, PathBuf)>, String> {
    let kinds = ["lib", "cdylib", "bin"];
    let mut roots = Vec::new();
    for package in packages()? {
        for target in package.targets {
            if target.kind.iter().any(|kind| kinds.contains(&kind.as_str())) {
                roots.push((package.name.clone(), target.src_path));
            }
        }
    }
    Ok(roots)
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&name))
}

/// Every package has the two licenses whose texts are in the tree.
pub fn licensed() -> Outcome {
    for text in ["LICENSE-MIT", "LICENSE-APACHE"] {
        if !place::root().join(text).is_file() {
            return Err(format!("{text} is missing"));
        }
    }
    let other = |package: &&Package| package.license.as_deref() != Some("MIT OR Apache-2.0");
    match packages()?.iter().find(other) {
        Some(package) => Err(format!("the license of {} is {:?}", package.name, package.license)),
        None => Ok(()),
    }
}

/// Every dependency between our crates points to a lower layer.
pub fn point_down() -> Outcome {
    let mut wrong = Vec::new();
    for package in packages()? {
        let ours = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.path.is_some() && dependency.kind.as_deref() != Some("dev"));
        let floor = |name: &str| LOADER.iter().position(|floor| floor.contains(&name));
        let own_floor = match package.name == VIEWER {
            true => Some(LOADER.len()),
            false => floor(&package.name),
        };
        if let Some(own_floor) = own_floor {
            let may = |name: &str| match floor(name) {
                Some(other) => other < own_floor,
                None => package.name != VIEWER && BELOW_LOADER.contains(&name),
            };
            let extra = ours.filter(|dependency| !may(&dependency.name));
            wrong.extend(extra.map(|dependency| format!("{} sees {}", package.name, dependency.name)));
            continue;
        }
        let Some(own) = layer(&package.name) else {
            wrong.push(format!("{} has no layer in tests/runner/tidy/layers.rs", package.name));
            continue;
        };
        // What tests is above the loader too.
        let sees_loader = own + 1 == LAYERS.len();
        for dependency in ours {
            let name = &dependency.name;
            let is_below = layer(name).map_or(sees_loader && floor(name).is_some(), |other| other < own);
            if !is_below {
                wrong.push(format!("{} depends on {}", package.name, dependency.name));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Every dependency between folders at the top points to a lower one.
pub fn folders_point_down() -> Outcome {
    let height = |name: &str| FOLDERS.iter().position(|line| line.contains(&name));
    let mut wrong = Vec::new();
    for package in packages()? {
        let own = folder(Path::new(&package.manifest_path));
        for dependency in &package.dependencies {
            let Some(path) = &dependency.path else {
                continue;
            };
            let other = folder(&Path::new(path).join("Cargo.toml"));
            let is_below = height(&other) < height(&own) && height(&other).is_some();
            let is_test = dependency.kind.as_deref() == Some("dev");
            if other != own && !is_below && !is_test {
                wrong.push(format!("{} in {own} uses {other}", package.name));
            }
        }
    }
    super::outcome(wrong)
}

/// The folder at the top of the tree that has this file.
fn folder(path: &Path) -> String {
    let own = path.strip_prefix(place::root()).unwrap_or(path);
    let first = own.components().next();
    first.map_or(String::new(), |it| it.as_os_str().to_string_lossy().into_owned())
}

/// Stealable crates say `no_std`.
pub fn stealable_no_std() -> Outcome {
    for package in packages()?.iter().filter(|package| STEALABLE.contains(&package.name.as_str())) {
        let library = package.manifest_path.replace("Cargo.toml", "src/lib.rs");
        let text = std::fs::read_to_string(&library).map_err(|error| format!("{library}: {error}"))?;
        if !text.contains("no_std") {
            return Err(format!("{library} is not no_std"));
        }
    }
    Ok(())
}

/// Crates of which every function may run on any task, at any moment: a thief's, a progress
/// thread's, a signal's handler.
const WITHOUT_ALLOCATOR: [&str; 4] = ["cohort-core", "cohort-net", "cohort-p2p", "cohort-progress"];

/// These crates use the global allocator in tests only, so nothing in them can allocate from it.
pub fn no_allocator() -> Outcome {
    for package in packages()?.iter().filter(|package| WITHOUT_ALLOCATOR.contains(&package.name.as_str())) {
        let library = package.manifest_path.replace("Cargo.toml", "src/lib.rs");
        let text = std::fs::read_to_string(&library).map_err(|error| format!("{library}: {error}"))?;
        let mut before = "";
        for line in text.lines() {
            let names_it = ["extern crate alloc", "extern crate std"].iter().any(|it| line.starts_with(it));
            if names_it && !(before.starts_with("#[cfg(test)]") || before.contains("any(test")) {
                return Err(format!("{library}: `{line}` outside of tests"));
            }
            before = line;
        }
    }
    Ok(())
}
