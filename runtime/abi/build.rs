//! Writes the constants of the standard, their codecs, the types of functions, and the function table.

use cohort_codegen::emit::{codec, table};

fn main() {
    let (api, constants) = (cohort_codegen::api(), cohort_codegen::constants());
    cohort_codegen::write("table.rs", &table::table(&api));
    cohort_codegen::write("callback.rs", &table::callbacks(&api));
    cohort_codegen::write("neutral.rs", &codec::neutral(&constants));
    cohort_codegen::write("constants.rs", &codec::constants(&constants));
    cohort_codegen::write("mpich_handles.rs", &codec::mpich_handles(&constants));
}
