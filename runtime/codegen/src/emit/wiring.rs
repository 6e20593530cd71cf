//! `wiring.rs`, from `runtime/binding/functions.table`.

use super::rust_return;
use crate::api::{Api, Procedure};
use crate::ctype::Base;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Which Rust function implements which C procedure.
#[derive(Debug)]
pub struct Wiring {
    /// By C name without `MPI_`: the expression that names the Rust function.
    functions: BTreeMap<String, (String, Style)>,
}

/// What a Rust function is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Arguments of the types of `parameters.rs`: a generated function turns C's arguments into them.
    Checked,
    /// What C passes: it is an `unsafe extern "C"` function itself.
    Raw,
}

/// Of which types of counts a Rust function is generic, and which of them C has.
#[derive(Clone, Copy)]
enum Counts {
    /// Of none.
    None,
    /// `int` alone.
    Small,
    /// `int`, and `MPI_Count` in the procedure that ends in `_c`.
    Both,
}

impl Wiring {
    /// Reads `functions.table`.
    ///
    /// # Errors
    /// A line that is not understood, or that names no procedure of the standard.
    pub fn read(table: &str, api: &Api) -> Result<Self, String> {
        let mut functions = BTreeMap::new();
        for line in crate::table_lines(table) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, path, ref how @ ..] = *words else {
                return Err(format!("functions.table: {line}"));
            };
            let (counts, forms, style) = match how {
                [] => (Counts::None, false, Style::Checked),
                ["small"] => (Counts::Small, false, Style::Checked),
                ["count"] => (Counts::Both, false, Style::Checked),
                ["forms"] => (Counts::None, true, Style::Checked),
                ["count", "forms"] => (Counts::Both, true, Style::Checked),
                ["raw"] => (Counts::None, false, Style::Raw),
                _ => return Err(format!("functions.table: {line}")),
            };
            let path = match path.strip_prefix("abi::") {
                Some(rest) => format!("cohort_abi::{rest}"),
                None => format!("crate::{path}"),
            };
            let mut named = vec![(name.to_owned(), path.clone())];
            if forms {
                named.extend(other_forms(name, &path));
            }
            for (name, path) in named {
                for (name, path) in with_counts(&name, &path, counts, api)? {
                    if !api.procedures.iter().any(|p| p.name == name) {
                        return Err(format!("functions.table: no procedure MPI_{name}"));
                    }
                    if functions.insert(name.clone(), (path, style)).is_some() {
                        return Err(format!("functions.table: {name} twice"));
                    }
                }
            }
        }
        Ok(Self { functions })
    }

    /// Whether `name` has an implementation.
    #[must_use]
    pub fn implements(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    /// The Rust function that implements `name`.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<(&str, Style)> {
        let (path, style) = self.functions.get(name)?;
        Some((path, *style))
    }

    /// The table's initialiser and the functions that report what is missing.
    ///
    /// # Errors
    /// A procedure that returns no error code and has no implementation.
    pub fn rust(&self, api: &Api) -> Result<String, String> {
        let mut out = String::from(
            "use cohort_abi::{Abi, Table};\n\n\
             /// The functions that stand behind the C names of ABI `A`.\n\
             #[must_use]\npub const fn table<A: Abi>() -> Table<A> {\nTable {\n",
        );
        for procedure in &api.procedures {
            let name = &procedure.name;
            let path = match self.functions.get(name) {
                Some((path, Style::Raw)) => path.clone(),
                Some((_, Style::Checked)) => format!("super::shims::{name}::<A>"),
                None => format!("unsupported::{name}::<A>"),
            };
            let _ = writeln!(out, "{name}: {path},");
        }
        out += "}\n}\n\n/// What is not implemented: one function per name, which reads no argument.\n\
             #[allow(non_snake_case, missing_docs, clippy::missing_safety_doc)]\nmod unsupported {\n\
             #[allow(unused_imports, reason = \"what is left need not have callbacks\")]\n\
             use cohort_abi::{Abi, callback};\n\
             #[allow(unused_imports, reason = \"what is left need not have texts\")]\n\
             use core::ffi::{c_char, c_int, c_void};\n";
        let lacks = |p: &&Procedure| !self.functions.contains_key(&p.name);
        for procedure in api.procedures.iter().filter(lacks) {
            out += &stub(procedure)?;
        }
        Ok(out + "}\n")
    }
}

/// The nonblocking and the persistent form of the collective procedure `name`, and the functions beside `path` that
/// implement them.
fn other_forms(name: &str, path: &str) -> [(String, String); 2] {
    let (room, function) = path.rsplit_once("::").unwrap_or(("crate", path));
    let nonblocking = (format!("I{}", name.to_lowercase()), format!("{room}::i{function}"));
    [nonblocking, (format!("{name}_init"), format!("{path}_init"))]
}

/// A procedure and the expression for what implements it, with its large form if that has the same function.
fn with_counts(name: &str, path: &str, counts: Counts, api: &Api) -> Result<Vec<(String, String)>, String> {
    let small = (name.to_owned(), format!("{path}::<A, core::ffi::c_int>"));
    match counts {
        Counts::None => Ok(vec![(name.to_owned(), format!("{path}::<A>"))]),
        Counts::Small => Ok(vec![small]),
        Counts::Both if !api.has_large(name) => Err(format!("functions.table: {name} has no large-count form")),
        Counts::Both => Ok(vec![small, (format!("{name}_c"), format!("{path}::<A, i64>"))]),
    }
}

fn stub(procedure: &Procedure) -> Result<String, String> {
    let name = &procedure.name;
    if procedure.returns != Base::Int("int".to_owned()) {
        return Err(format!("functions.table lacks MPI_{name}, which returns no error code"));
    }
    let parameters: String = procedure
        .parameters
        .iter()
        .filter(|p| p.ty.base != Base::Varargs)
        .map(|p| format!(", _{}: {}", p.name, p.ty.rust()))
        .collect();
    let report = match procedure.value {
        true => "unsupported_value",
        false => "unsupported",
    };
    Ok(format!(
        "\npub unsafe extern \"C\" fn {name}<A: Abi>(caller: *const c_void{parameters}){} {{\n\
         // SAFETY: `caller` is the calling rank, by the contract of the table.\n\
         unsafe {{ crate::{report}::<A>(caller, \"{}\") }}\n}}\n",
        rust_return(procedure),
        procedure.c_name(),
    ))
}
