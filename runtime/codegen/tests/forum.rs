//! `standard.table` is what the Forum's machine-readable interface says: `apis.json` of the Python package
//! pympistandard.

mod common;

use serde_json::Value;
use std::fmt::Write;

/// The comments at the top of the table.
const TOP: &str = "\
# What C has of MPI, by the Forum's machine-readable interface (the Python package pympistandard).
# name[:flag...] [KIND[(type of function)]:declarator:direction[:flag...]]... [-> KIND of what it returns]
# Kinds are the Forum's; kinds.table has their C types. A kind with POLY in front makes a form with large counts.
# Flags of a procedure: callback (the type of a user's function), c (not in Fortran), f90 (not in mpi_f08), no_ierror.
# Flags of a parameter: const, large (in the form with large counts only), and in Fortran asynchronous, no_intent,
# no_f90. A test makes this file from the package, and fails where it differs.
";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn parameters_of(entry: &Value) -> &[Value] {
    entry["parameters"].as_array().map_or(&[], Vec::as_slice)
}

/// The table, from the Forum's file.
fn table(apis: &str) -> String {
    let json: Value = serde_json::from_str(apis).expect("JSON");
    let mut out = TOP.to_owned();
    for entry in json.as_object().expect("an object").values() {
        let attributes = &entry["attributes"];
        if attributes["c_expressible"] == true && attributes["predefined_function"].is_null() {
            out += &line(entry);
        }
    }
    out
}

fn line(entry: &Value) -> String {
    let attributes = &entry["attributes"];
    let has = |attribute: &str| attributes[attribute] == true;
    let name = text(&entry["name"]);
    let mut out = name.strip_prefix("MPI_").expect("a name of MPI").to_owned();
    let ierror = parameters_of(entry).iter().any(|p| p["name"] == "ierror");
    for (flag, holds) in [
        ("callback", has("callback")),
        ("c", !has("f90_expressible") && !has("f08_expressible")),
        ("f90", has("f90_expressible") && !has("f08_expressible")),
        ("no_ierror", !ierror),
    ] {
        if holds {
            let _ = write!(out, ":{flag}");
        }
    }
    for p in parameters_of(entry) {
        if !text(&p["suppress"]).contains("c_parameter") {
            let _ = write!(out, " {}", parameter(p));
        }
    }
    match text(&entry["return_kind"]) {
        "ERROR_CODE" => {}
        kind => drop(write!(out, " -> {kind}")),
    }
    out + "\n"
}

fn parameter(p: &Value) -> String {
    let mut out = text(&p["kind"]).to_owned();
    if out.contains("FUNCTION") && !text(&p["func_type"]).is_empty() {
        let _ = write!(out, "({})", text(&p["func_type"]));
    }
    let _ = write!(out, ":{}{}{}:{}", "*".repeat(pointers(p)), text(&p["name"]), array(p), text(&p["param_direction"]));
    let suppressed = |what: &str| text(&p["suppress"]).contains(what);
    for (flag, holds) in [
        ("const", p["constant"] == true),
        ("large", p["large_only"] == true),
        ("asynchronous", p["asynchronous"] == true),
        ("no_intent", suppressed("f08_intent")),
        ("no_f90", suppressed("f90_parameter")),
    ] {
        if holds {
            let _ = write!(out, ":{flag}");
        }
    }
    out
}

/// Kinds that C passes by address whatever their direction.
const ADDRESSES: &[&str] = &[
    "BUFFER",
    "C_BUFFER",
    "C_BUFFER2",
    "C_BUFFER3",
    "C_BUFFER4",
    "STRING",
    "EXTRA_STATE",
    "EXTRA_STATE2",
    "ATTRIBUTE_VAL",
    "STATUS",
    "ATTRIBUTE_VAL_10",
    "STRING_ARRAY",
    "FUNCTION",
    "FUNCTION_SMALL",
    "POLYFUNCTION",
    "TOOL_MPI_OBJ",
    "F08_STATUS",
    "F90_STATUS",
];

/// Number of `*`, by the rules of the Forum's own renderer.
fn pointers(p: &Value) -> usize {
    let kind = text(&p["kind"]);
    let pointer = p["pointer"].as_bool();
    let output = matches!(text(&p["param_direction"]), "inout" | "out");
    match kind {
        _ if pointer == Some(false) => 0,
        "STRING_2DARRAY" => 2,
        "ARGUMENT_LIST" => 3,
        "STRING" if p["length"] == "*" && pointer != Some(true) => 0,
        _ if ADDRESSES.contains(&kind) => 1,
        _ if (output || pointer == Some(true)) && p["length"].is_null() => 1,
        _ => 0,
    }
}

/// The array suffix, by the same rules.
fn array(p: &Value) -> String {
    let kind = text(&p["kind"]);
    let length = &p["length"];
    let pointer = p["pointer"] == true;
    if let Some(dimensions) = length.as_array() {
        return format!("[][{}]", dimensions.get(1).map_or("", text));
    }
    let is_array = match kind {
        "C_BUFFER4" => false,
        "STRING_ARRAY" | "STRING_2DARRAY" => true,
        "STRING" => length == "*" && !pointer,
        _ => !length.is_null() && !pointer,
    };
    if is_array { "[]".to_owned() } else { String::new() }
}

#[test]
fn the_table_is_what_the_forum_says() {
    let made = table(&common::read(&common::apis()));
    let path = common::scratch("forum").join("standard.table");
    std::fs::write(&path, &made).expect("written");
    let own = common::read(&common::root().join("runtime/codegen/standard.table"));
    let differs = made.lines().zip(own.lines()).find(|(a, b)| a != b);
    assert!(made == own, "{differs:?}; the Forum's table is {}", path.display());
}

#[test]
fn every_procedure_of_the_forum_is_there() {
    let api = common::api();
    let names: Vec<&str> = api.procedures.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(api.procedures.iter().filter(|p| !p.large && !p.removed && !p.extension).count(), 531);
    for name in
        ["Send", "Send_c", "Wtime", "T_init_thread", "Comm_toint", "Keyval_create", "Type_struct", "X_Progress_set"]
    {
        assert!(names.contains(&name), "{name}");
    }
}
