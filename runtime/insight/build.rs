//! Writes what the entries of the function table are called and take.

use cohort_codegen::emit::{described, wiring::Wiring};
use cohort_codegen::understood;

fn main() {
    let api = cohort_codegen::api();
    let wiring = understood(Wiring::read(include_str!("../binding/functions.table"), &api));
    cohort_codegen::write("described.rs", &described::described(&api, &wiring));
}
