//! Names and prototypes of the bindings, generated.
//!
//! Build scripts call this: what it writes lies in their `OUT_DIR` and nowhere in the tree. The data are the tables of
//! this crate, which are part of it, so a build script runs again when one of them changes.
//!
//! Semantics are never generated: `runtime/binding/functions.table` says which generic
//! Rust function stands behind which C name, the compiler checks the signature, and
//! everything without a line there becomes a function that reports
//! `MPI_ERR_UNSUPPORTED_OPERATION`.

pub mod api;
pub mod constants;
pub mod ctype;
pub mod emit;

use std::path::{Path, PathBuf};

/// Lines of a table that are neither empty nor comments.
pub fn table_lines(table: &str) -> impl Iterator<Item = &str> {
    table
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
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

/// A generated file that is checked in.
#[derive(Debug)]
pub struct Output {
    /// Path below the repository's root.
    pub path: &'static str,
    /// Contents.
    pub text: String,
}

/// Generates what is checked in.
///
/// # Errors
/// What `functions`, the text of `functions.table`, has wrong.
pub fn generate(functions: &str) -> Result<Vec<Output>, String> {
    let (api, constants) = (api(), constants());
    let wiring = emit::wiring::Wiring::read(functions, &api)?;
    Ok(vec![
        Output {
            path: "include/mpi.h",
            text: emit::header::header(&api, &constants),
        },
        Output {
            path: "docs/functions.md",
            text: emit::documents::functions(&api, &wiring)?,
        },
        Output {
            path: "include/mpi_f08.f90",
            text: emit::f08_module::modules(&api, &constants),
        },
        Output {
            path: "include/mpif.h",
            text: emit::mpif::header(&constants),
        },
        Output {
            path: "include/mpi.f90",
            text: emit::mpif::module(&api, &constants),
        },
    ])
}

/// Paths of the outputs whose file is absent or different.
#[must_use]
pub fn stale(root: &Path, outputs: &[Output]) -> Vec<&'static str> {
    outputs
        .iter()
        .filter(|o| std::fs::read_to_string(root.join(o.path)).ok().as_deref() != Some(&*o.text))
        .map(|output| output.path)
        .collect()
}
