//! `f08.rs`: the Fortran procedures of `use mpi_f08`.
//!
//! A procedure without choice buffers is the function of `mpif.h` and `use mpi` under another name, since handles and
//! statuses of derived types are passed as INTEGERs are. One with choice buffers gets descriptors, and calls that
//! function with an address, a count and a datatype. Large counts have functions of their own.

use super::f08_names::{all_names, base_name, has_choice, has_f08, specific_name};
use super::fortran::{Face, passed, symbol, wrapper, written_in};
use super::rust_name;
use crate::api::{Api, Parameter, Procedure};
use crate::ctype::HANDLES;
use std::fmt::Write;

/// Procedures whose arrays need not be described: the address says all.
const ADDRESS_ONLY: &[&str] = &[
    "buffer_attach",
    "comm_attach_buffer",
    "compare_and_swap",
    "fetch_and_op",
    "free_mem",
    "get_address",
    "session_attach_buffer",
    "win_attach",
    "win_create",
    "win_detach",
];

/// What becomes of an array.
enum Treatment {
    /// Its address is passed.
    Address,
    /// The request has a copy of a section.
    Held,
    /// The same, of an array of partitions.
    Parts,
    /// A section is copied for the time of the call.
    Copied,
    /// A section with one step makes the datatype wider, which is so many parameters behind it.
    Strided(usize),
    /// A section becomes a datatype; what if that cannot be.
    Typed(&'static str),
}

/// The procedures of `mpi_f08`, and what its modules have beside them.
///
/// # Errors
/// A parameter of a kind that has no rule.
pub fn procedures(api: &Api) -> Result<String, String> {
    let mut out = String::from(
        "use crate::arguments::Ierror;\n\
         use crate::descriptor::{Choice, Copied, start};\n\
         use crate::generated::c;\n\
         use crate::handles::{Handles, handle, length};\n\
         use crate::held::Held;\n\
         use crate::sections::{Otherwise, Strided, Typed, given};\n\
         use crate::text::Text;\n\
         use crate::{A, arguments, handles, names, sentinel};\n\
         use cohort_abi::{Abi, Constants};\n\
         use core::ffi::{c_char, c_int, c_void};\n",
    );
    for procedure in api.procedures.iter().filter(|p| has_f08(p)) {
        let Some(specific) = specific_name(api, procedure) else {
            continue;
        };
        let lower = procedure.name.to_lowercase();
        let addressed = procedure.parameters.iter().any(|p| p.kind == "C_BUFFER2");
        let mut function = match written_in(&procedure.name) {
            Some(module) => format!("crate::{module}::{lower}"),
            None if addressed => {
                out += &wrapper(procedure, &specific, Face::F08)?;
                specific.clone()
            }
            None if procedure.large => {
                out += &wrapper(procedure, &lower, Face::F08)?;
                lower
            }
            None => format!("crate::generated::procedures::{lower}"),
        };
        if has_choice(procedure) {
            out += &described(procedure, &function, &specific)?;
            function.clone_from(&specific);
        }
        let names = all_names(procedure, &specific)
            .iter()
            .flat_map(|name| ["", "p", "pr"].map(|form| exported(form, name)))
            .collect::<Vec<_>>()
            .join(" ");
        let _ = writeln!(out, "\nnames!({function}: {names});");
    }
    Ok(out + &of_modules())
}

/// The symbol of `MPI_`, `PMPI_`, or `PMPIR_`, MPICH's name for the second.
fn exported(form: &str, name: &str) -> String {
    match form {
        "" => format!("{}_", symbol(name)),
        "p" => format!("p{}_", symbol(name)),
        _ => format!("pmpir_{name}_"),
    }
}

/// What existing programs call of MPICH's modules, and new ones of ours.
fn of_modules() -> String {
    let mut out = String::new();
    for handle in HANDLES {
        let lower = handle.to_lowercase();
        let types = format!("__mpi_f08_types_MOD_mpi_{lower}");
        let base = format!("__mpi_constants_MOD_{lower}");
        let _ = writeln!(
            out,
            "\nnames!(crate::types::equal: {types}_eq {types}_f08_eq_f {types}_f_eq_f08 {base}eq);\n\
             names!(crate::types::unequal: {types}_neq {types}_f08_neq_f {types}_f_neq_f08 {base}neq);\n\
             names!(crate::types::same: {types}_f2c {types}_c2f);"
        );
    }
    out
}

/// A procedure with choice buffers, which are described.
fn described(procedure: &Procedure, function: &str, specific: &str) -> Result<String, String> {
    let parameters: Vec<&Parameter> = procedure.parameters.iter().filter(|p| p.fortran).collect();
    let (mut declared, mut hidden, mut arguments) = (Vec::new(), Vec::new(), Vec::new());
    let request = parameters.iter().find(|p| p.kind == "REQUEST");
    let mut before = String::new();
    if request.is_some() {
        before += "let mut held = Held::new();\n";
    }
    for (index, p) in parameters.iter().enumerate() {
        let rule = passed(procedure, p, Face::F08)
            .ok_or_else(|| format!("{}: no rule for {} in mpi_f08", procedure.name, p.name))?;
        let n = rust_name(&p.name.to_lowercase());
        hidden.extend(rule.hidden);
        if p.kind == "BUFFER" {
            declared.push(format!("{n}: Choice"));
        } else {
            declared.extend(rule.declared);
        }
        let replaced = |distance: usize, part: &str| {
            let at = index.checked_sub(distance)?;
            let is_replaced = match treatment(procedure, &parameters, at) {
                Treatment::Typed(_) => part == ["", "count", "datatype", ""][distance],
                Treatment::Strided(behind) => distance == behind && part == "datatype",
                _ => false,
            };
            let name = rust_name(&parameters[at].name.to_lowercase());
            is_replaced.then(|| format!("&{name}_at.{part}"))
        };
        arguments.push(if p.kind == "BUFFER" {
            address(&mut before, procedure, &parameters, index)
        } else if let Some(count) = replaced(1, "count") {
            count
        } else if let Some(datatype) = (2..4).find_map(|behind| replaced(behind, "datatype")) {
            datatype
        } else {
            n
        });
    }
    declared.push("ierror: Ierror".to_owned());
    arguments.push("ierror".to_owned());
    arguments.extend(hidden.iter().filter_map(|h| Some(h.split_once(':')?.0.to_owned())));
    declared.extend(hidden);
    let mut call = format!("{function}({})", arguments.join(", "));
    if let Some(request) = request {
        let n = rust_name(&request.name.to_lowercase());
        call = format!("held.call({n}, ierror, |ierror| {call})");
    }
    Ok(format!(
        "\npub unsafe extern \"C\" fn {specific}({}) {{\n\
         // SAFETY: the Fortran caller keeps the contract of this procedure.\n\
         unsafe {{ {before}{call}; }}\n}}\n",
        declared.join(", ")
    ))
}

/// What is passed for an array, and the statements before that.
fn address(before: &mut String, procedure: &Procedure, parameters: &[&Parameter], index: usize) -> String {
    let n = |at: usize| rust_name(&parameters[at].name.to_lowercase());
    let name = n(index);
    let writes = !parameters[index].ty.constant;
    let made = match treatment(procedure, parameters, index) {
        Treatment::Address => return format!("start({name})"),
        Treatment::Held => {
            let _ = writeln!(before, "let {name}_at = held.array({name}, {writes});");
            return format!("{name}_at");
        }
        Treatment::Parts => {
            let (count, datatype) = (n(index + 2), n(index + 3));
            let _ =
                writeln!(before, "let {name}_at = given!(held.parts({name}, {writes}, {count}, {datatype}), ierror);");
            return format!("{name}_at");
        }
        Treatment::Strided(behind) => {
            format!("given!(Strided::new({name}, {}, &mut held, {writes}), ierror)", n(index + behind))
        }
        Treatment::Copied => format!("Copied::new({name}, {writes})"),
        Treatment::Typed("Keep") => format!(
            "given!(Typed::new({name}, {}, {}, Otherwise::Keep(&mut held, {writes})), ierror)",
            n(index + 1),
            n(index + 2)
        ),
        Treatment::Typed(otherwise) => {
            format!("given!(Typed::new({name}, {}, {}, Otherwise::{otherwise}), ierror)", n(index + 1), n(index + 2))
        }
    };
    let _ = writeln!(before, "let {name}_at = {made};");
    format!("{name}_at.start")
}

fn treatment(procedure: &Procedure, parameters: &[&Parameter], index: usize) -> Treatment {
    let p = parameters[index];
    let name = base_name(procedure);
    if p.kind != "BUFFER" || ADDRESS_ONLY.contains(&name.as_str()) || name.ends_with("_end") {
        return Treatment::Address;
    }
    let has = |kind: &str| parameters.iter().any(|p| p.kind == kind);
    let makes_request = has("REQUEST");
    let waits = !name.ends_with("_begin") && !makes_request && !has("WINDOW");
    let reduces = name.contains("reduce") || name.contains("scan");
    let is = |at: usize, kinds: &[&str]| {
        parameters.get(at).is_some_and(|p| kinds.contains(&p.kind.as_str()) && p.ty.array.is_empty())
    };
    let counted = is(index + 1, &["POLYXFER_NUM_ELEM_NNI", "POLYXFER_NUM_ELEM"]) && is(index + 2, &["DATATYPE"]);
    match (counted && !reduces && !has_blocks(&name, &p.name), waits) {
        (true, true) if p.ty.constant => Treatment::Typed("Read"),
        (true, true) => Treatment::Typed("Write"),
        (true, false) if makes_request => Treatment::Typed("Keep"),
        (true, false) => Treatment::Typed("Refuse"),
        (false, true) => Treatment::Copied,
        (false, false) if is(index + 1, &["PARTITION"]) => Treatment::Parts,
        (false, false) => match (2..4).find(|behind| is(index + behind, &["DATATYPE"])) {
            Some(behind) if has_blocks(&name, &p.name) && !reduces => Treatment::Strided(behind),
            _ => Treatment::Held,
        },
    }
}

/// Whether a collective procedure's array has a block for each process.
fn has_blocks(procedure: &str, parameter: &str) -> bool {
    procedure.contains("alltoall")
        || procedure.contains("gather") && parameter == "recvbuf"
        || procedure.contains("scatter") && parameter == "sendbuf"
}
