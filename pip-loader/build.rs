//! `pip-exec` takes some functions of the C library over for what it loads (crate `cohort-interpose`), and
//! `pip-exec --version` tells the commit that it is built from. Only releases ask: others are built at each change.

use std::process::Command;

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

fn main() {
    let list = concat!(env!("CARGO_MANIFEST_DIR"), "/../fabric/interpose/exported.list");
    println!("cargo::rustc-link-arg-bin=pip-exec=-Wl,--dynamic-list={list}");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={list}");
    if std::env::var("PROFILE").as_deref() != Ok("release") {
        return;
    }
    if let Some(head) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={head}");
    }
    if let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) {
        println!("cargo::rustc-env=COHORT_COMMIT={commit}");
    }
}
