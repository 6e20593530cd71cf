//! Names and prototypes of the bindings, generated.
//!
//! Build scripts call this: what it writes lies in their `OUT_DIR` and nowhere in the tree. `tools/install-names.sh`
//! calls the program of the same name for the headers. The data are the tables of this crate, which are part of it, so
//! a build script runs again when one of them changes.
//!
//! Semantics are never generated: `runtime/binding/functions.table` says which generic
//! Rust function stands behind which C name, the compiler checks the signature, and
//! everything without a line there becomes a function that reports
//! `MPI_ERR_UNSUPPORTED_OPERATION`.

pub mod api;
pub mod constants;
pub mod ctype;
pub mod emit;

use std::path::PathBuf;

/// Lines of a table that are neither empty nor comments.
pub fn table_lines(table: &str) -> impl Iterator<Item = &str> {
    table.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The procedures of MPI and what is beside them.
///
/// # Panics
/// If a table has a line that is not understood.
#[must_use]
pub fn api() -> api::Api {
    let tables = api::Tables {
        standard: include_str!("../standard.table"),
        kinds: include_str!("../kinds.table"),
        removed: include_str!("../removed.table"),
        extensions: include_str!("../extensions.table"),
        support: include_str!("../support.table"),
        foreign: include_str!("../foreign.table"),
        corrections: include_str!("../corrections.table"),
    };
    understood(api::Api::read(&tables))
}

/// The constants of MPI.
///
/// # Panics
/// If the table has a line that is not understood.
#[must_use]
pub fn constants() -> Vec<constants::Constant> {
    understood(constants::read(include_str!("../constants.table")))
}

/// What was read or made of tables; a build script has nobody else to tell.
///
/// # Panics
/// If a table has a line that is not understood.
pub fn understood<T>(result: Result<T, String>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// For build scripts: writes a file for `include!`, and has cargo run the script again if it or a table changes, and
/// for no other file of its crate.
///
/// # Panics
/// If cargo's folder cannot be written to.
pub fn write(name: &str, text: &str) {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let path = PathBuf::from(folder).join(name);
    std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// The headers and the sources of the Fortran modules that programs are compiled with: name and text.
#[must_use]
pub fn headers() -> [(&'static str, String); 4] {
    let (api, constants) = (api(), constants());
    [
        ("mpi.h", emit::header::header(&api, &constants)),
        ("mpif.h", emit::mpif::header(&constants)),
        ("mpi.f90", emit::mpif::module(&api, &constants)),
        ("mpi_f08.f90", emit::f08_module::modules(&api, &constants)),
    ]
}

/// The text of `docs/functions.md`, from that of `functions.table`.
///
/// # Errors
/// What the table has wrong.
pub fn functions(table: &str) -> Result<String, String> {
    let api = api();
    emit::documents::functions(&api, &emit::wiring::Wiring::read(table, &api)?)
}
