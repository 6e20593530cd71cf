//! Writes the procedures, gives the library its name, and has it load the C library.

#[path = "../over.rs"]
mod over;

use cohort_codegen::emit::{f08, fortran};
use cohort_codegen::understood;

fn main() {
    let api = cohort_codegen::api();
    cohort_codegen::write("c.rs", &fortran::c_procedures(&api));
    cohort_codegen::write("procedures.rs", &understood(fortran::procedures(&api)));
    cohort_codegen::write("f08.rs", &understood(f08::procedures(&api)));
    over::link("libmpifort.so.12", "libmpi.so.12");
}
