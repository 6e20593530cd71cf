//! Gives the library its name and refuses symbols that nobody defines.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcohort_node.so");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete,-z,defs");
    // For the mem family, which the compiler calls.
    println!("cargo::rustc-cdylib-link-arg=-lc");
    println!("cargo::rerun-if-changed=build.rs");
}
