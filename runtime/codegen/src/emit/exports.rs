//! `exports.rs`: the C symbols of a facade.

use super::{rust_arguments, rust_parameters, rust_return};
use crate::api::{Api, Procedure};
use std::fmt::Write;

/// An `MPI_` and a `PMPI_` function for every procedure, both calling the table.
#[must_use]
pub fn exports(api: &Api, abi: &str) -> String {
    let mut out = format!(
        "use crate::ATTACHMENT;\n\
         use cohort_abi::{{Abi, {abi} as A, callback}};\n\
         use core::ffi::{{c_char, c_int, c_void}};\n"
    );
    for procedure in api.procedures.iter().filter(|p| p.is_in(abi)) {
        let (parameters, arguments) = (rust_parameters(procedure), rust_arguments(procedure));
        let comma = if arguments.is_empty() { "" } else { ", " };
        let c_name = procedure.c_name();
        let mut names = vec![c_name.clone(), format!("P{c_name}")];
        if abi == "OpenMpi" && is_persistent_collective(procedure) {
            names.push(format!("MPIX_{}", procedure.name));
            names.push(format!("PMPIX_{}", procedure.name));
        }
        for name in names {
            let _ = writeln!(
                out,
                "\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {name}({parameters}){1} {{\n\
                 let (caller, table) = ATTACHMENT.get();\n\
                 // SAFETY: the C caller keeps the contract of this procedure.\n\
                 unsafe {{ (table.{0})(caller{comma}{arguments}) }}\n}}",
                procedure.name,
                rust_return(procedure),
            );
        }
    }
    out
}

/// Whether Open MPI 4 had this under a name of its own too.
pub(super) fn is_persistent_collective(procedure: &Procedure) -> bool {
    let has_info = procedure.parameters.iter().any(|p| p.kind == "INFO");
    let sends = ["Psend_init", "Precv_init"].contains(&procedure.name.as_str());
    procedure.name.ends_with("_init") && has_info && !sends
}
