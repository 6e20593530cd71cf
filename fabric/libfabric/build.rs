//! The library is bound when it is loaded, and never unloaded: its functions run on tasks whose C
//! library is another one than that of the dynamic linker that loaded it.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcohort_libfabric.so");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete,-z,now");
    println!("cargo::rerun-if-changed=build.rs");
}
