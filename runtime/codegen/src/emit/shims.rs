//! `shims.rs`: the functions that C sees, which turn raw arguments into the types of
//! `runtime/abi/src/parameters.rs`.

use super::wiring::{Style, Wiring};
use super::{rust_name, rust_parameters};
use crate::api::{Api, Direction, Parameter, Procedure};
use crate::ctype::{Base, Type};
use std::fmt::Write;

/// One `extern "C"` function for each procedure that a safe function implements.
///
/// # Errors
/// A parameter that no type of `parameters.rs` fits.
pub fn shims(api: &Api, wiring: &Wiring) -> Result<String, String> {
    let mut out = String::from(
        "use crate::arguments::enter;\nuse cohort_abi::parameters::*;\nuse cohort_abi::{Abi, callback};\n\
         use core::ffi::{c_char, c_int, c_void};\n",
    );
    for procedure in &api.procedures {
        if let Some((path, Style::Checked)) = wiring.function(&procedure.name) {
            out += &shim(procedure, path)?;
        }
    }
    Ok(out)
}

fn shim(procedure: &Procedure, path: &str) -> Result<String, String> {
    let name = &procedure.name;
    let c_name = procedure.c_name();
    if procedure.returns != Base::Int("int".to_owned()) {
        return Err(format!("{c_name} returns no error code: mark it raw"));
    }
    let parameters = rust_parameters(procedure);
    let comma = if parameters.is_empty() { "" } else { ", " };
    // The two forms of a procedure are one for messages.
    let said = if procedure.large { c_name.trim_end_matches("_c") } else { &c_name };
    let enter = match name.starts_with("T_") {
        true => "crate::tool::enter",
        false => "enter",
    };
    let mut out = String::new();
    let _ = write!(
        out,
        "\npub unsafe extern \"C\" fn {name}<A: Abi>(caller: *const c_void{comma}{parameters}) -> c_int {{\n\
         // SAFETY: `caller` is the calling rank by the contract of the table; the arguments are what MPI demands.\n\
         unsafe {{ {enter}::<A, _>(caller, &\"{said}\", |call| {path}(call",
    );
    let mut rest: Vec<&Parameter> = procedure.parameters.iter().filter(|p| p.ty.base != Base::Varargs).collect();
    while !rest.is_empty() {
        let (argument, taken) = argument(&rest)
            .ok_or_else(|| format!("{c_name}: no type of parameters.rs for the parameter {}", rest[0].name))?;
        let _ = write!(out, ", {argument}");
        rest.drain(..taken);
    }
    out += ")) }\n}\n";
    Ok(out)
}

/// The expression for the first of `parameters`, and how many of them it takes.
fn argument(parameters: &[&Parameter]) -> Option<(String, usize)> {
    if let [base, count, datatype, ..] = parameters
        && is_buffer(base)
        && is_count(count)
        && datatype.kind == "DATATYPE"
        && is_value(&datatype.ty)
    {
        let names = [base, count, datatype].map(|p| rust_name(&p.name));
        return Some((format!("Buffer::new({})", names.join(", ")), 3));
    }
    let parameter = parameters.first()?;
    let name = rust_name(&parameter.name);
    if is_value(&parameter.ty) || is_opaque(parameter) {
        return Some((name, 1));
    }
    let constructor = match parameter.kind.as_str() {
        "STRING_ARRAY" => "Strings",
        "STRING_2DARRAY" => "StringLists",
        // The last is the address of a handle of whatever kind.
        "BUFFER" | "LOGICAL_VOID" | "TOOL_MPI_OBJ" => "Base",
        // What `MPI_T_event_read` and its like fill.
        "C_BUFFER" if parameter.name == "buffer" => "Base",
        // A `void*` that leads to a pointer.
        "C_BUFFER" | "C_BUFFER2" | "ATTRIBUTE_VAL" | "ATTRIBUTE_VAL_10" => {
            return Some((format!("Out::<*mut c_void>::new({name}.cast())"), 1));
        }
        _ => pointer(parameter)?,
    };
    Some((format!("{constructor}::new({name})"), 1))
}

/// The type for one pointer to something that has a type.
fn pointer(parameter: &Parameter) -> Option<&'static str> {
    let ty = &parameter.ty;
    let is_array = !ty.array.is_empty() && ty.base != Base::Char;
    Some(match (&ty.base, parameter.direction, is_array) {
        (Base::Char, Direction::In, false) => "Text",
        (Base::Char, Direction::Out, false) => "TextOut",
        (Base::Status(_), Direction::Out, false) => "StatusOut::<A>",
        (Base::Status(_), Direction::Out, true) => "StatusArray::<A>",
        (Base::Void, ..) => return None,
        (_, Direction::In, false) => "In",
        (_, Direction::Out, false) => "Out",
        (_, Direction::InOut, false) => "InOut",
        (_, Direction::In, true) => "Array",
        (_, Direction::Out, true) => "OutArray",
        (_, Direction::InOut, true) => "InOutArray",
    })
}

fn is_value(ty: &Type) -> bool {
    let is_function = matches!(ty.base, Base::Callback { .. });
    is_function || (ty.pointers == 0 && ty.array.is_empty())
}

fn is_buffer(parameter: &Parameter) -> bool {
    parameter.kind == "BUFFER"
}

fn is_count(parameter: &Parameter) -> bool {
    parameter.kind.contains("NUM_ELEM") && is_value(&parameter.ty)
}

/// Addresses that MPI hands back to the program or to nobody, and never follows.
fn is_opaque(parameter: &Parameter) -> bool {
    let is_value = parameter.direction == Direction::In;
    match parameter.kind.as_str() {
        "EXTRA_STATE" | "EXTRA_STATE2" | "ARGUMENT_LIST" => true,
        "ATTRIBUTE_VAL" | "ATTRIBUTE_VAL_10" => is_value,
        _ => false,
    }
}
