//! jemalloc comes behind the C library on the linker's command line, and uses what is linked statically of it.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcohort_malloc.so");
    println!("cargo::rustc-cdylib-link-arg=-lc");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,defs,-z,now");
    println!("cargo::rerun-if-changed=build.rs");
}
