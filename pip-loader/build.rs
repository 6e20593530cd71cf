//! `pip-exec` takes some functions of the C library over for what it loads (crate `cohort-interpose`).

fn main() {
    let list = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../fabric/interpose/exported.list"
    );
    println!("cargo::rustc-link-arg-bin=pip-exec=-Wl,--dynamic-list={list}");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={list}");
}
