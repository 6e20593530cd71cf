//! Gives the library its name, and has it load the C library, whose functions it calls: the linker is shown an empty
//! library of that name, since cargo builds the real one in no order that a build script could know.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let directory = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let (empty, library) = (directory.join("empty.c"), directory.join("libmpi.so.40"));
    std::fs::write(&empty, "").expect("OUT_DIR can be written to");
    let status = Command::new("cc")
        .args(["-shared", "-nostdlib", "-Wl,-soname,libmpi.so.40", "-o"])
        .args([&library, &empty])
        .status()
        .expect("cc, which links the workspace, can be run");
    assert!(status.success(), "cc cannot make {}", library.display());
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmpi_cxx.so.40");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete,-rpath,$ORIGIN:$ORIGIN/..");
    println!(
        "cargo::rustc-cdylib-link-arg=-Wl,--no-as-needed,{},--as-needed",
        library.display()
    );
}
