//! `procedures.rs`: the Fortran procedures of `mpif.h` and `use mpi`.
//!
//! Each is a function with Fortran's arguments that calls the C function. What an argument becomes depends on its
//! kind alone; procedures whose arguments need more are hand-written and listed in [`WRITTEN`].

use super::f08_names::{has_f08, specific_name};
use super::{rust_name, rust_parameters, rust_return};
use crate::api::{Api, Direction, Parameter, Procedure};
use crate::ctype::Base;
use std::fmt::Write;

/// Procedures that `runtime/fortran` has by hand: module, and names.
const WRITTEN: &[(&str, &[&str])] = &[
    (
        "attributes",
        &[
            "Attr_get",
            "Attr_put",
            "Comm_create_keyval",
            "Comm_get_attr",
            "Comm_set_attr",
            "Keyval_create",
            "Type_create_keyval",
            "Type_get_attr",
            "Type_set_attr",
            "Win_create_keyval",
            "Win_get_attr",
            "Win_set_attr",
        ],
    ),
    (
        "callbacks",
        &[
            "Comm_create_errhandler",
            "Errhandler_create",
            "File_create_errhandler",
            "Grequest_start",
            "Op_create",
            "Op_create_c",
            "Register_datarep",
            "Register_datarep_c",
            "Session_create_errhandler",
            "Win_create_errhandler",
        ],
    ),
    ("removed", &["Address", "Type_extent", "Type_hindexed", "Type_hvector", "Type_lb", "Type_struct", "Type_ub"]),
    ("strings", &["Comm_spawn", "Comm_spawn_multiple", "Info_get", "Info_get_string", "Session_get_nth_pset"]),
];

/// Procedures in Fortran that C has not, or that are functions of the standard for programs to pass.
const PREDEFINED: &[(&str, &str)] = &[
    ("attributes", "null_copy_fn"),
    ("attributes", "null_delete_fn"),
    ("attributes", "dup_fn"),
    ("attributes", "comm_null_copy_fn"),
    ("attributes", "comm_null_delete_fn"),
    ("attributes", "comm_dup_fn"),
    ("attributes", "type_null_copy_fn"),
    ("attributes", "type_null_delete_fn"),
    ("attributes", "type_dup_fn"),
    ("attributes", "win_null_copy_fn"),
    ("attributes", "win_null_delete_fn"),
    ("attributes", "win_dup_fn"),
    ("callbacks", "conversion_fn_null"),
    ("callbacks", "f_sync_reg"),
];

/// Procedures that only `use mpi_f08` has any use for, or that are no external procedures.
const LEFT_OUT: &[&str] = &["Sizeof", "Status_f082f", "Status_f2f08", "F_sync_reg"];

/// Procedures of C that the library does without: it says in others' names that its caller is Fortran.
const NOT_CALLED: &[&str] = &[
    "Attr_get",
    "Attr_put",
    "Comm_get_attr",
    "Comm_set_attr",
    "I_Grequest_set_lang_f77",
    "Type_get_attr",
    "Type_set_attr",
    "Win_get_attr",
    "Win_set_attr",
];

/// Whether `mpif.h` and `use mpi` have it as an external procedure.
pub(super) fn is_external(procedure: &Procedure) -> bool {
    procedure.fortran && !LEFT_OUT.contains(&procedure.name.as_str())
}

/// The module with the hand-written procedure, if there is one.
pub(super) fn written_in(name: &str) -> Option<&'static str> {
    let found = WRITTEN.iter().find(|(_, names)| names.contains(&name));
    found.map(|(module, _)| *module)
}

/// Who calls.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Face {
    /// `mpif.h` and `use mpi`.
    F90,
    /// `use mpi_f08`.
    F08,
}

/// What the wrapper does with one argument.
#[derive(Default)]
pub(super) struct Passed {
    /// The Fortran argument, `name: type`.
    pub(super) declared: Option<String>,
    /// Its hidden length, for a CHARACTER.
    pub(super) hidden: Option<String>,
    /// A statement before the call.
    before: String,
    /// What C gets.
    argument: String,
    /// A statement after the call.
    after: String,
}

/// `c.rs`: the C procedures that the others call.
#[must_use]
pub fn c_procedures(api: &Api) -> String {
    let mut out = String::from(
        "use crate::A;\n\
         use cohort_abi::{Abi, callback};\n\
         use core::ffi::{c_char, c_int, c_void};\n\n\
         unsafe extern \"C\" {\n",
    );
    let in_f08 = |p: &Procedure| has_f08(p) && specific_name(api, p).is_some();
    let called = |p: &&Procedure| {
        (is_external(p) || in_f08(p) || p.name.starts_with("I_")) && !NOT_CALLED.contains(&p.name.as_str())
    };
    for p in api.procedures.iter().filter(called) {
        let (name, parameters, returns) = (p.c_name(), rust_parameters(p), rust_return(p));
        let _ = writeln!(out, "pub fn {name}({parameters}){returns};");
    }
    out + "}\n"
}

/// The procedures of Fortran, and their names.
///
/// # Errors
/// A parameter of a kind that has no rule here.
pub fn procedures(api: &Api) -> Result<String, String> {
    let mut out = String::from(
        "use crate::arguments::Ierror;\n\
         use crate::generated::c;\n\
         use crate::handles::{Handles, handle, length};\n\
         use crate::text::{Room, Text};\n\
         use crate::{A, arguments, handles, names, sentinel};\n\
         use cohort_abi::{Abi, Constants};\n\
         use core::ffi::{c_char, c_int, c_void};\n",
    );
    for procedure in api.procedures.iter().filter(|p| is_external(p)) {
        let lower = procedure.name.to_lowercase();
        match written_in(&procedure.name) {
            Some(module) => out += &exported(&format!("crate::{module}::{lower}"), &lower),
            None => {
                out += &wrapper(procedure, &lower, Face::F90)?;
                out += &exported(&lower, &lower);
            }
        }
    }
    for (module, name) in PREDEFINED {
        out += &exported(&format!("crate::{module}::{name}"), name);
    }
    Ok(out)
}

/// The symbol of a procedure, without what compilers add: an extension's name begins with `x_`.
pub(super) fn symbol(lower: &str) -> String {
    let between = if lower.starts_with("x_") { "" } else { "_" };
    format!("mpi{between}{lower}")
}

/// The eight names of a procedure.
fn exported(function: &str, lower: &str) -> String {
    let symbol = symbol(lower);
    let names: Vec<String> = ["", "p"]
        .iter()
        .flat_map(|p| {
            let base = format!("{p}{symbol}");
            [format!("{base}_"), base.clone(), format!("{base}__"), base.to_uppercase()]
        })
        .collect();
    format!("\nnames!({function}: {});\n", names.join(" "))
}

/// The function `lower` that calls C's procedure.
pub(super) fn wrapper(procedure: &Procedure, lower: &str, face: Face) -> Result<String, String> {
    let refused = |p: &Parameter| format!("{}: no rule for {} in Fortran", procedure.name, p.name);
    let passed = procedure
        .parameters
        .iter()
        .filter(|p| p.ty.base != Base::Varargs)
        .map(|p| passed(procedure, p, face).ok_or_else(|| refused(p)))
        .collect::<Result<Vec<Passed>, String>>()?;
    let all =
        |part: fn(&Passed) -> Option<&String>| -> Vec<String> { passed.iter().filter_map(part).cloned().collect() };
    let is_function = !matches!(procedure.returns, Base::Int(_));
    let mut declared = all(|p| p.declared.as_ref());
    if procedure.ierror && !is_function {
        declared.push("ierror: Ierror".to_owned());
    }
    declared.extend(all(|p| p.hidden.as_ref()));
    let arguments: Vec<&str> = passed.iter().map(|p| p.argument.as_str()).collect();
    let before: String = passed.iter().map(|p| p.before.as_str()).collect();
    let after: String = passed.iter().map(|p| p.after.as_str()).collect();
    let call = format!("c::{}({})", procedure.c_name(), arguments.join(", "));
    let (returns, body) = if is_function {
        (rust_return(procedure), call)
    } else {
        let code = match procedure.ierror {
            true => format!("{before}let code = {call};\n{after}ierror.set(code);"),
            false => format!("{before}{call};\n{after}"),
        };
        (String::new(), code)
    };
    Ok(format!(
        "\npub unsafe extern \"C\" fn {lower}({}){returns} {{\n\
         // SAFETY: the Fortran caller keeps the contract of this procedure.\n\
         unsafe {{ {body} }}\n}}\n",
        declared.join(", ")
    ))
}

/// The rule for a parameter; `None` if there is none.
pub(super) fn passed(procedure: &Procedure, p: &Parameter, face: Face) -> Option<Passed> {
    let n = rust_name(&p.name.to_lowercase());
    let simple = |ty: &str, argument: String| {
        Some(Passed { declared: Some(format!("{n}: {ty}")), argument, ..Passed::default() })
    };
    if !p.fortran {
        let by_value = p.ty.pointers == 0 && p.ty.array.is_empty();
        let nothing = if by_value { "0" } else { "core::ptr::null_mut()" };
        return Some(Passed { argument: nothing.to_owned(), ..Passed::default() });
    }
    match p.kind.as_str() {
        "BUFFER" => {
            let cast = if p.ty.constant { "" } else { ".cast_mut()" };
            return simple("*const c_void", format!("sentinel::buffer({n}){cast}"));
        }
        "C_BUFFER2" if face == Face::F08 => return simple("*mut c_void", n.clone()),
        // Fortran cannot learn the address.
        "C_BUFFER2" => {
            return Some(Passed {
                declared: Some(format!("_{n}: *const c_void")),
                before: format!("let mut {n} = core::ptr::null_mut::<c_void>();\n"),
                argument: format!("(&raw mut {n}).cast()"),
                ..Passed::default()
            });
        }
        "C_BUFFER" | "LOGICAL_VOID" => return simple("*mut c_void", n.clone()),
        "STATUS" if p.ty.array.is_empty() => {
            return simple("*mut c_int", format!("arguments::status({n})"));
        }
        "STATUS" => return simple("*mut c_int", format!("arguments::statuses({n})")),
        "WEIGHT" => return simple("*mut c_int", format!("arguments::weights({n})")),
        "ERROR_CODE" if !p.ty.array.is_empty() => {
            return simple("*mut c_int", format!("arguments::errcodes({n})"));
        }
        "STRING" => return Some(string(procedure, p, &n)),
        "INDEX" if p.direction == Direction::Out && lists_requests(procedure) => {
            return Some(index(p, &n));
        }
        _ if n == "outcount" && lists_requests(procedure) => return Some(written(&n, "*outcount = outcount_c;\n")),
        _ => {}
    }
    by_type(procedure, p, &n)
}

/// The rule for a parameter whose C type says enough.
fn by_type(procedure: &Procedure, p: &Parameter, n: &str) -> Option<Passed> {
    let simple = |ty: &str, argument: String| {
        Some(Passed { declared: Some(format!("{n}: {ty}")), argument, ..Passed::default() })
    };
    let pointers = p.ty.pointers + usize::from(!p.ty.array.is_empty());
    match (&p.ty.base, pointers) {
        (Base::Callback { .. }, _) | (Base::Void | Base::Char, _) => None,
        (Base::Handle(_), 0) => simple("*const c_int", format!("handle(*{n})")),
        (Base::Handle(kind), 1) if p.ty.array.is_empty() => Some(Passed {
            declared: Some(format!("{n}: *mut c_int")),
            before: format!("let mut {n}_c = handles::One::<<A as Abi>::{kind}>::of({n});\n"),
            argument: format!("{n}_c.pointer()"),
            after: format!("{n}_c.store();\n"),
            ..Passed::default()
        }),
        (Base::Handle(kind), 1) => Some(handles(procedure, p, n, kind)),
        (base, 0) => simple(&format!("*const {}", base.rust()), format!("*{n}")),
        (_, 1) => simple(&p.ty.rust(), n.to_owned()),
        _ => None,
    }
}

/// The rule for an array of handles.
fn handles(procedure: &Procedure, p: &Parameter, n: &str, kind: &str) -> Passed {
    let constant = if p.ty.constant { "*const" } else { "*mut" };
    let has = |name: &&&str| procedure.parameters.iter().any(|p| p.name == **name);
    let counts = ["count", "incount", "max_datatypes"];
    let length = match (counts.iter().find(has), p.name.as_str()) {
        (Some(count), _) => format!("length(*{count})"),
        (None, "sendtypes") if procedure.name.contains("eighbor") => "handles::neighbours(*comm)[1]".to_owned(),
        (None, _) if procedure.name.contains("eighbor") => "handles::neighbours(*comm)[0]".to_owned(),
        (None, name) => {
            let in_place = "sentinel::buffer(sendbuf).addr() == A::IN_PLACE";
            let unused = if name == "sendtypes" { in_place } else { "false" };
            format!("handles::processes(*comm, {unused})")
        }
    };
    let made = if p.direction == Direction::Out { "room" } else { "of" };
    let after = match p.direction {
        Direction::In => String::new(),
        _ => format!("{n}_c.store();\n"),
    };
    Passed {
        declared: Some(format!("{n}: {constant} c_int")),
        before: format!("let mut {n}_c = Handles::<<A as Abi>::{kind}>::{made}({n}, || {length});\n"),
        argument: format!("{n}_c.pointer()"),
        after,
        ..Passed::default()
    }
}

/// Whether indices count requests, which Fortran numbers from 1.
fn lists_requests(procedure: &Procedure) -> bool {
    procedure.parameters.iter().any(|p| p.kind == "REQUEST")
}

fn index(p: &Parameter, n: &str) -> Passed {
    if p.ty.array.is_empty() {
        return written(n, &format!("arguments::index_out(&mut {n}_c);\n*{n} = {n}_c;\n"));
    }
    let after = format!("arguments::indices_out({n}, outcount_c);\n");
    Passed { declared: Some(format!("{n}: *mut c_int")), argument: n.to_owned(), after, ..Passed::default() }
}

/// A number that C writes to a place of ours: what is there says whether it has.
fn written(n: &str, after: &str) -> Passed {
    Passed {
        declared: Some(format!("{n}: *mut c_int")),
        before: format!("let mut {n}_c = arguments::UNDEFINED;\n"),
        argument: format!("&mut {n}_c"),
        after: after.to_owned(),
        ..Passed::default()
    }
}

/// A CHARACTER: C gets a copy that ends with NUL, or room for one.
fn string(procedure: &Procedure, p: &Parameter, n: &str) -> Passed {
    let hidden = Some(format!("{n}_length: c_int"));
    if p.direction == Direction::In {
        let made = if procedure.name.starts_with("Info_") { "stripped" } else { "trimmed" };
        return Passed {
            declared: Some(format!("{n}: *const c_char")),
            hidden,
            before: format!("let {n} = Text::{made}({n}, {n}_length);\n"),
            argument: format!("{n}.pointer()"),
            after: String::new(),
        };
    }
    // What a procedure did not find it does not store.
    let flag = procedure.parameters.iter().any(|p| p.name == "flag");
    let found = if flag { " && *flag != 0" } else { "" };
    Passed {
        declared: Some(format!("{n}: *mut c_char")),
        hidden,
        before: format!("let mut {n}_c = Room::new();\n"),
        argument: format!("{n}_c.pointer()"),
        after: format!("if code == 0{found} {{ {n}_c.store({n}, {n}_length); }}\n"),
    }
}
