//! Writes the procedures, gives the library its name, and has it load the C library.

#[path = "../over.rs"]
mod over;

use cohort_codegen::emit::{fortran, openmpi_fortran};
use cohort_codegen::understood;

fn main() {
    let (api, constants) = (cohort_codegen::api(), cohort_codegen::constants());
    cohort_codegen::write("c.rs", &fortran::c_procedures(&api));
    cohort_codegen::write("procedures.rs", &understood(fortran::procedures(&api)));
    cohort_codegen::write("names.rs", &understood(openmpi_fortran::names(&api, &constants)));
    over::link("libmpi_mpifh.so.40", "libmpi.so.40");
}
