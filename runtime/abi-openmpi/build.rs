//! Gives the library its name, keeps it loaded for the life of the process (it registers
//! functions with the C library), and refuses symbols that nobody defines.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmpi.so.40");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete,-z,defs");
    println!("cargo::rerun-if-changed=build.rs");
}
