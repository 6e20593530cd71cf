//! The functions of the C library that those here call come from it alone.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcohort_blocks.so");
    println!("cargo::rustc-cdylib-link-arg=-lc");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,defs,-z,now");
    println!("cargo::rerun-if-changed=build.rs");
}
