//! A part of build scripts: a library that stands over one of the C libraries, whose functions it calls.

use std::path::PathBuf;
use std::process::Command;

/// Gives the library its name, and has it load the C library `below`: the linker is shown an empty library of that
/// name, since cargo builds the real one in no order that a build script could know.
pub fn link(own: &str, below: &str) {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../over.rs");
    let directory = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let (empty, library) = (directory.join("empty.c"), directory.join(below));
    std::fs::write(&empty, "").expect("OUT_DIR can be written to");
    // Another machine's, if that is what is built for.
    let linker = PathBuf::from(std::env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into()));
    let status = Command::new(&linker)
        .args(["-shared", "-nostdlib", "-o"])
        .args([&library, &empty])
        .arg(format!("-Wl,-soname,{below}"))
        .status()
        .expect("the linker of the workspace can be run");
    assert!(status.success(), "{} cannot make {}", linker.display(), library.display());
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{own}");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete,-rpath,$ORIGIN:$ORIGIN/..");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--no-as-needed,{},--as-needed", library.display());
}
