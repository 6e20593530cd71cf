//! Gives the crate the number of its build, by which the two sides of `record.rs` know each other.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src");
    let mut hasher = DefaultHasher::new();
    let compiler = std::env::var_os("RUSTC").expect("cargo sets RUSTC");
    let version = Command::new(compiler).arg("-vV").output();
    version.expect("the compiler says its version").stdout.hash(&mut hasher);
    for setting in ["CARGO_PKG_VERSION", "TARGET", "PROFILE", "OPT_LEVEL", "DEBUG", "CARGO_ENCODED_RUSTFLAGS"] {
        std::env::var_os(setting).hash(&mut hasher);
    }
    sources(Path::new("src"), &mut hasher);
    println!("cargo::rustc-env=FABRIC_BUILD={}", hasher.finish());
}

/// Hashes all files below a folder, in the order of their names.
fn sources(folder: &Path, hasher: &mut DefaultHasher) {
    let entries = std::fs::read_dir(folder).expect("the crate's own folder can be read");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            sources(&path, hasher);
        } else {
            std::fs::read(&path).expect("a source can be read").hash(hasher);
        }
    }
}
