//! No C library: the dynamic linker would load another copy of it beside the program's. What the library takes from
//! the linker itself is bound to it by name.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcohort_audit.so");
    println!("cargo::rustc-cdylib-link-arg=-nostdlib");
    let linker = match std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("aarch64") => "ld-linux-aarch64.so.1",
        _ => "ld-linux-x86-64.so.2",
    };
    println!("cargo::rustc-cdylib-link-arg=-Wl,--no-as-needed,-l:{linker}");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,defs,-z,now");
    // Where the kernel begins if it executes the library.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-e,cohort_leave");
    println!("cargo::rerun-if-changed=build.rs");
}
