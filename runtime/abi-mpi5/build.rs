//! Writes the C functions, gives the library its name, keeps it loaded for the life of the process (it registers
//! functions with the C library), and refuses symbols that nobody defines.

use cohort_codegen::emit::exports;

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete,-z,defs");
    cohort_codegen::write("exports.rs", &exports::exports(&cohort_codegen::api(), "Mpi5"));
}
