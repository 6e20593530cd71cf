//! The library is bound when it is loaded, and never unloaded: its functions run on tasks whose C
//! library is another one than that of the dynamic linker that loaded it.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcohort_network.so");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete,-z,now");
    // The tests play the executable that loads the library.
    let list = concat!(env!("CARGO_MANIFEST_DIR"), "/../interpose/exported.list");
    println!("cargo::rustc-link-arg-tests=-Wl,--dynamic-list={list}");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={list}");
}
