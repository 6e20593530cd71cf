//! One module per kind of generated file.

pub mod codec;
pub mod described;
pub mod documents;
pub mod exports;
pub mod f08;
pub mod f08_module;
mod f08_names;
pub mod fortran;
pub mod header;
pub mod mpif;
pub mod objects;
pub mod openmpi_fortran;
pub mod shims;
pub mod table;
pub mod wiring;

use crate::api::Procedure;

/// Parameter names that Rust reserves.
const RESERVED: &[&str] = &["type", "ref", "in", "fn", "match", "mod", "use", "loop", "move"];

/// A parameter's name in Rust.
#[must_use]
pub fn rust_name(name: &str) -> String {
    if RESERVED.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// `name: type, …` of a procedure; C's `...` is dropped, as no implementation reads it.
#[must_use]
pub fn rust_parameters(procedure: &Procedure) -> String {
    procedure
        .parameters
        .iter()
        .filter(|p| p.ty.base != crate::ctype::Base::Varargs)
        .map(|p| format!("{}: {}", rust_name(&p.name), p.ty.rust()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The names only, for a call.
#[must_use]
pub fn rust_arguments(procedure: &Procedure) -> String {
    procedure
        .parameters
        .iter()
        .filter(|p| p.ty.base != crate::ctype::Base::Varargs)
        .map(|p| rust_name(&p.name))
        .collect::<Vec<_>>()
        .join(", ")
}

/// ` -> type`, or nothing for `void`.
#[must_use]
pub fn rust_return(procedure: &Procedure) -> String {
    match procedure.returns {
        crate::ctype::Base::Void => String::new(),
        _ => format!(" -> {}", procedure.returns.rust()),
    }
}
