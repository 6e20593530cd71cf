//! `{table,callback}.rs`.

use super::{rust_parameters, rust_return};
use crate::api::{Api, Procedure};
use crate::ctype::{Base, camel};
use std::fmt::Write;

/// The function table: one field per C procedure.
#[must_use]
pub fn table(api: &Api) -> String {
    let mut out = String::from(
        "use crate::{Abi, callback};\n\
         use core::ffi::{c_char, c_int, c_void};\n\n\
         /// One entry for every C procedure of the standard. The first argument of each is the\n\
         /// calling rank, as `NodeApi::attach` returned it.\n\
         #[allow(non_snake_case, clippy::type_complexity)]\n#[repr(C)]\npub struct Table<A: Abi> {\n",
    );
    for procedure in &api.procedures {
        let parameters = rust_parameters(procedure);
        let comma = if parameters.is_empty() { "" } else { ", " };
        let _ = writeln!(
            out,
            "/// `{2}`\npub {0}: unsafe extern \"C\" fn(caller: *const c_void{comma}{parameters}){1},",
            procedure.name,
            rust_return(procedure),
            procedure.c_name(),
        );
    }
    out + "}\n"
}

/// The types of user functions.
#[must_use]
pub fn callbacks(api: &Api) -> String {
    let mut out = String::from("use crate::Abi;\nuse core::ffi::{c_int, c_void};\n");
    for callback in &api.callbacks {
        let parameters: Vec<String> = callback.parameters.iter().map(|p| parameter(callback, p)).collect();
        let parameters = parameters.join(", ");
        let generics = match (callback.poly, parameters.contains("A as Abi")) {
            (true, _) => "<A, C>",
            (false, true) => "<A>",
            (false, false) => "",
        };
        let _ = writeln!(
            out,
            "\n/// `MPI_{}`\npub type {}{generics} = unsafe extern \"C\" fn({parameters}){};",
            callback.name,
            camel(&callback.name),
            rust_return(callback),
        );
    }
    out
}

/// A parameter of a callback type; where the large form differs, `C` stands for the count.
fn parameter(callback: &Procedure, p: &crate::api::Parameter) -> String {
    let mut ty = p.ty.clone();
    if ty.base == Base::Varargs {
        return "...".to_owned();
    }
    let counts = matches!(p.name.as_str(), "len" | "count");
    if callback.poly && counts {
        ty.base = Base::Void;
        return format!("{}: {}", p.name, ty.rust().replace("c_void", "C"));
    }
    format!("{}: {}", super::rust_name(&p.name), ty.rust())
}
