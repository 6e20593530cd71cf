//! `names.rs`: what Open MPI's Fortran libraries export beside the procedures of
//! `mpif.h`: those of `use mpi_f08`, inner names, and the constants of the modules.

use super::exports::is_persistent_collective;
use super::f08_names::{base_name, has_f08};
use super::fortran::{Face, is_external, symbol, wrapper, written_in};
use crate::api::{Api, Procedure};
use crate::constants::{Constant, Value};
use crate::ctype::HANDLES;
use std::fmt::Write;

/// The types of `MPI_SIZEOF`'s specific procedures, and bytes of one.
const SIZES: [(&str, usize); 12] = [
    ("character", 1),
    ("complex32", 8),
    ("complex64", 16),
    ("complex128", 32),
    ("int8", 1),
    ("int16", 2),
    ("int32", 4),
    ("int64", 8),
    ("logical", 4),
    ("real32", 4),
    ("real64", 8),
    ("real128", 16),
];

/// The largest rank of an array in Fortran.
const RANKS: usize = 15;

/// Variables of `mpi_f08` whose names end otherwise than those of their constants.
const RENAMED: [&str; 8] = ["int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t"];

/// Datatypes that the standard does not have any more.
const REMOVED: [(&str, i32); 5] =
    [("cxx_complex", 55), ("2complex", 26), ("2double_complex", 27), ("lb", 4), ("ub", 3)];

/// The names.
///
/// # Errors
/// A parameter of a kind that has no rule.
pub fn names(api: &Api, constants: &[Constant]) -> Result<String, String> {
    let mut out = String::from(
        "use crate::arguments::Ierror;\n\
         use crate::generated::{c, procedures};\n\
         use crate::handles::handle;\n\
         use crate::names;\n\
         use crate::types::{Copy, Type, copied, hash};\n\
         use core::ffi::{c_int, c_void};\n",
    );
    for procedure in &api.procedures {
        let names = names_of(procedure);
        if names.is_empty() {
            continue;
        }
        let lower = procedure.name.to_lowercase();
        let function = match written_in(&procedure.name) {
            Some(module) => format!("crate::{module}::{lower}"),
            None => format!("procedures::{lower}"),
        };
        // Fortran gets the address in `mpi_f08` only.
        let is_addressed = procedure.parameters.iter().any(|p| p.kind == "C_BUFFER2");
        if is_addressed && has_f08(procedure) {
            out += &wrapper(procedure, &lower, Face::F08)?;
            let f08 = of_f08(&lower);
            let others = names.into_iter().filter(|name| !f08.contains(name));
            let (others, f08) = (others.collect::<Vec<String>>().join(" "), f08.join(" "));
            let _ = writeln!(
                out,
                "names!({function}: {others});\nnames!({lower}: {f08} ompi_{lower}_f08 pompi_{lower}_f08);"
            );
        } else {
            let _ = writeln!(out, "names!({function}: {});", names.join(" "));
        }
    }
    out += &sizes();
    out += &variables(constants);
    Ok(out + &types())
}

/// What a procedure is called beside the eight names that all implementations have.
fn names_of(procedure: &Procedure) -> Vec<String> {
    let lower = procedure.name.to_lowercase();
    let mut names = Vec::new();
    if is_external(procedure) {
        names.push(format!("o{}_f", symbol(&lower)));
    }
    if has_f08(procedure) && !procedure.large {
        names.extend(of_f08(&base_name(procedure)));
    }
    if is_persistent_collective(procedure) && is_external(procedure) {
        for p in ["", "p"] {
            let base = format!("{p}mpix_{lower}");
            let upper = base.to_uppercase();
            names.extend([format!("{base}_"), base.clone(), format!("{base}__"), upper]);
            names.push(format!("{base}_f08_"));
        }
        names.push(format!("ompix_{lower}_f"));
    }
    names
}

fn of_f08(lower: &str) -> [String; 2] {
    ["", "p"].map(|p| format!("{p}{}_f08_", symbol(lower)))
}

/// `MPI_SIZEOF` for each type and rank.
fn sizes() -> String {
    let mut out = String::new();
    for (ty, bytes) in SIZES {
        let shapes = std::iter::once("scalar".to_owned());
        let shapes = shapes.chain((1..=RANKS).map(|rank| format!("r{rank}")));
        let names: Vec<String> =
            shapes.flat_map(|shape| ["", "p"].map(|p| format!("{p}mpi_sizeof_{ty}_{shape}_"))).collect();
        let _ = writeln!(
            out,
            "\nextern \"C\" fn sizeof_{ty}(_x: *const c_void, size: &mut c_int, ierror: Ierror) {{\n\
             *size = {bytes};\nierror.set(0);\n}}\nnames!(sizeof_{ty}: {});",
            names.join(" "),
        );
    }
    out
}

/// The handles of `mpi_f08`, which are variables, and those that its modules were made from.
fn variables(constants: &[Constant]) -> String {
    let mut handles: Vec<(String, i32)> = REMOVED.map(|(name, n)| (name.to_owned(), n)).to_vec();
    for constant in constants.iter().filter(|c| c.handle().is_some()) {
        let original = match &constant.value {
            Value::Alias(other) => constants.iter().find(|c| c.name == *other),
            Value::Numbers { .. } => Some(constant),
        };
        if let Some((_, number @ 0..)) = original.and_then(Constant::variable) {
            handles.push((constant.name.to_lowercase(), number));
        }
    }
    let mut out = String::new();
    for (name, number) in handles {
        let base = match RENAMED.contains(&name.as_str()) {
            true => name.trim_end_matches("_t"),
            false => &name,
        };
        for symbol in [format!("__mpi_f08_types_MOD_mpi_{name}"), format!("ompi_f08_mpi_{base}")] {
            let _ = writeln!(out, "\n#[unsafe(no_mangle)]\npub static {symbol}: c_int = {number};");
        }
    }
    out
}

/// What gfortran makes of the module's types for polymorphic variables, and what compares handles.
fn types() -> String {
    let mut out = String::new();
    for name in HANDLES.iter().copied().chain(["Status"]) {
        let (lower, size) = (name.to_lowercase(), if name == "Status" { 6 } else { 1 });
        let of = |what: &str| format!("__mpi_f08_types_MOD___{what}_mpi_f08_types_Mpi_{lower}");
        let (copy, initial, table) = (of("copy"), of("def_init"), of("vtab"));
        let _ = write!(
            out,
            "\nnames!(copied::<{size}>: {copy});\n\
             #[unsafe(no_mangle)]\npub static {initial}: [c_int; {size}] = [0; {size}];\n\
             #[unsafe(no_mangle)]\npub static {table}: Type = Type::new(\n\
             hash(\"mpi_f08_types_Mpi_{lower}\"), {size}, (&raw const {initial}).cast(), {copy} as Copy);\n"
        );
        if name != "Status" {
            let compared = format!("__mpi_f08_types_MOD_ompi_{lower}_op");
            let _ = writeln!(
                out,
                "names!(crate::types::equal: {compared}_eq);\n\
                 names!(crate::types::unequal: {compared}_ne);"
            );
        }
    }
    out
}
