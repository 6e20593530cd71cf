//! `runtime/abi-*/src/generated/exports.rs`: the C symbols of a facade.

use super::{rust_arguments, rust_parameters, rust_return};
use crate::api::Api;
use std::fmt::Write;

/// An `MPI_` and a `PMPI_` function for every procedure, both calling the table.
#[must_use]
pub fn exports(api: &Api, abi: &str) -> String {
    let mut out = format!(
        "//! The C functions of this facade: each calls its entry of the table.\n\
         #![allow(non_snake_case, missing_docs, clippy::missing_safety_doc)]\n\n\
         use crate::ATTACHMENT;\n\
         use cohort_abi::{{Abi, {abi} as A, callback}};\n\
         use core::ffi::{{c_char, c_int, c_void}};\n"
    );
    for procedure in &api.procedures {
        let (parameters, arguments) = (rust_parameters(procedure), rust_arguments(procedure));
        let comma = if arguments.is_empty() { "" } else { ", " };
        for prefix in ["", "P"] {
            let _ = writeln!(
                out,
                "\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {prefix}{2}({parameters}){1} {{\n\
                 let (caller, table) = ATTACHMENT.get();\n\
                 // SAFETY: the C caller keeps the contract of this procedure.\n\
                 unsafe {{ (table.{0})(caller{comma}{arguments}) }}\n}}",
                procedure.name,
                rust_return(procedure),
                procedure.c_name(),
            );
        }
    }
    out
}
