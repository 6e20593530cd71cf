//! The tests play the executable that loads the network library: it exports what `cohort-interpose` defines.

fn main() {
    let list = concat!(env!("CARGO_MANIFEST_DIR"), "/../interpose/exported.list");
    println!("cargo::rustc-link-arg-tests=-Wl,--dynamic-list={list}");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={list}");
}
