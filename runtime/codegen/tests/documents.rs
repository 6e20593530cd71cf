//! `docs/functions.md` says what is missing.

mod common;

#[test]
fn the_page_of_functions_is_up_to_date() {
    let root = common::root();
    let table = common::read(&root.join("runtime/binding/functions.table"));
    let made = cohort_codegen::functions(&table).expect("functions.table is understood");
    let own = common::read(&root.join("docs/functions.md"));
    let differs = made.lines().zip(own.lines()).find(|(a, b)| a != b);
    assert!(made == own, "cargo run -p cohort-codegen functions >docs/functions.md; {differs:?}");
}
