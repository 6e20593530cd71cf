//! Checked-in files are what the generator writes.

mod common;

#[test]
fn generated_files_are_up_to_date() {
    let outputs = cohort_codegen::generate(&common::root(), &common::apis()).expect("generated");
    let stale = cohort_codegen::stale(&common::root(), &outputs);
    assert!(
        stale.is_empty(),
        "run cohort-codegen; not up to date: {stale:?}"
    );
}

#[test]
fn every_procedure_of_the_forum_is_there() {
    let api = common::api();
    let names: Vec<&str> = api.procedures.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(
        api.procedures
            .iter()
            .filter(|p| !p.large && !p.removed && !p.extension)
            .count(),
        531
    );
    for name in [
        "Send",
        "Send_c",
        "Wtime",
        "T_init_thread",
        "Comm_toint",
        "Keyval_create",
        "Type_struct",
        "X_Progress_set",
    ] {
        assert!(names.contains(&name), "{name}");
    }
}
