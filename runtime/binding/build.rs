//! Writes the function table from `functions.table`, and the functions that C sees.

use cohort_codegen::emit::{shims, wiring::Wiring};
use cohort_codegen::understood;

fn main() {
    let api = cohort_codegen::api();
    let wiring = understood(Wiring::read(include_str!("functions.table"), &api));
    cohort_codegen::write("wiring.rs", &understood(wiring.rust(&api)));
    cohort_codegen::write("shims.rs", &understood(shims::shims(&api, &wiring)));
}
