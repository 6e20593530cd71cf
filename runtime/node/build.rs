//! Gives the library its name, keeps it loaded, refuses symbols that nobody defines, and has all
//! symbols bound at load time: a late binding would run the root's dynamic linker on a rank's task.
//! (Of a library of this kind rustc exports the `no_mangle` functions only.)

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcohort_node.so");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete,-z,defs,-z,now");
    // For the mem family, which the compiler calls.
    println!("cargo::rustc-cdylib-link-arg=-lc");
    println!("cargo::rerun-if-changed=build.rs");
}
