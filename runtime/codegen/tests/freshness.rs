//! Checked-in files are what the generator writes.

mod common;

#[test]
fn generated_files_are_up_to_date() {
    let functions = common::read(&common::root().join("runtime/binding/functions.table"));
    let outputs = cohort_codegen::generate(&functions).expect("generated");
    let stale = cohort_codegen::stale(&common::root(), &outputs);
    assert!(
        stale.is_empty(),
        "run cohort-codegen; not up to date: {stale:?}"
    );
}
