//! What the procedures of `mpi_f08` are called.

use crate::api::{Api, Parameter, Procedure};
use crate::ctype::Base;

/// Procedures that are in the modules themselves.
const IN_MODULES: &[&str] = &["Sizeof", "Status_f082f", "Status_f2f08", "F_sync_reg"];

/// Whether `mpi_f08` has it as an external procedure.
pub(super) fn has_f08(procedure: &Procedure) -> bool {
    procedure.f08 && !IN_MODULES.contains(&procedure.name.as_str())
}

/// A procedure's name in lower case without the `_c` of large counts.
pub(super) fn base_name(procedure: &Procedure) -> String {
    let lower = procedure.name.to_lowercase();
    match procedure.large {
        true => lower.trim_end_matches("_c").to_owned(),
        false => lower,
    }
}

/// Whether it takes a choice buffer.
pub(super) fn has_choice(procedure: &Procedure) -> bool {
    procedure.parameters.iter().any(|p| p.kind == "BUFFER")
}

/// The name after `mpi_` of the procedure that programs call; `None` if a large form looks like the small one to a
/// Fortran compiler.
pub(super) fn specific_name(api: &Api, procedure: &Procedure) -> Option<String> {
    let base = base_name(procedure);
    let form = if has_choice(procedure) { "f08ts" } else { "f08" };
    if !procedure.large {
        return Some(format!("{base}_{form}"));
    }
    let name = format!("{base}_c_{form}");
    if is_named_apart(procedure) {
        return Some(name);
    }
    let small = api
        .procedures
        .iter()
        .find(|p| !p.large && p.name.len() + 2 == procedure.name.len() && procedure.name.starts_with(&p.name))?;
    let kinds = |p: &Procedure| -> Vec<String> { p.parameters.iter().map(kind).collect() };
    (kinds(small) != kinds(procedure)).then_some(name)
}

/// The same, and what other versions of MPICH call it.
pub(super) fn all_names(procedure: &Procedure, specific: &str) -> Vec<String> {
    let mut names = vec![specific.to_owned()];
    if procedure.large {
        names.push(format!("{}_large", specific.replace("_c_f08", "_f08")));
    }
    // It takes an array in earlier MPICH too.
    if procedure.name == "Free_mem" {
        names.push("free_mem_f08".to_owned());
    }
    names
}

/// Whether the large form has a name of its own in Fortran: functions are no types.
pub(super) fn is_named_apart(procedure: &Procedure) -> bool {
    let takes_function = |p: &Parameter| matches!(p.ty.base, Base::Callback { poly: true, .. });
    procedure.large && procedure.parameters.iter().any(takes_function)
}

/// What tells generic procedures apart.
fn kind(p: &Parameter) -> String {
    match p.ty.base {
        Base::Int(_) => "4".to_owned(),
        Base::Aint | Base::Count | Base::Offset => "8".to_owned(),
        _ => p.kind.clone(),
    }
}
