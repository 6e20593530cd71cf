//! Writes the function table from `functions.table`, the functions that C sees, and what they are called and take.

use cohort_codegen::emit::{described, shims, wiring::Wiring};
use cohort_codegen::understood;

fn main() {
    let api = cohort_codegen::api();
    let wiring = understood(Wiring::read(include_str!("functions.table"), &api));
    cohort_codegen::write("wiring.rs", &understood(wiring.rust(&api)));
    cohort_codegen::write("shims.rs", &understood(shims::shims(&api, &wiring)));
    cohort_codegen::write("described.rs", &described::described(&api, &wiring));
}
