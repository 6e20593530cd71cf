//! The standard's procedures, read from the Forum's `apis.json`, `removed.table` and `extensions.table`.

use crate::ctype::{Base, Type};
use serde_json::Value;
use std::collections::HashMap;

/// A parameter of a C procedure.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The standard's name.
    pub name: String,
    /// Its C type.
    pub ty: Type,
    /// The Forum's kind of parameter: `BUFFER`, `STATUS`, `RANK`, ...
    pub kind: String,
    /// Whether MPI writes what a pointer leads to, and whether it reads it.
    pub direction: Direction,
    /// Whether the procedure has it in Fortran too.
    pub fortran: bool,
    /// Whether MPI may use it after the call: `ASYNCHRONOUS` in `mpi_f08`.
    pub asynchronous: bool,
    /// Whether `mpi_f08` says its direction.
    pub intent: bool,
}

/// What MPI does with an argument, or with what it points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It reads.
    In,
    /// It writes.
    Out,
    /// It reads and writes.
    InOut,
}

impl Direction {
    /// The word of the Forum's file.
    fn parse(word: &str) -> Self {
        match word {
            "out" => Self::Out,
            "inout" => Self::InOut,
            _ => Self::In,
        }
    }
}

/// One C procedure or callback type, in its small or its large-count form.
#[derive(Clone, Debug)]
pub struct Procedure {
    /// C name without `MPI_`, with `_c` in the large form. An extension's begins with `X_` or `I_`.
    pub name: String,
    /// What it returns.
    pub returns: Base,
    /// Its parameters in order.
    pub parameters: Vec<Parameter>,
    /// Whether this is the large-count form.
    pub large: bool,
    /// Whether MPI-3 removed it, so that only old binaries know it.
    pub removed: bool,
    /// Whether it is no part of the standard (`MPIX_...`, and `MPII_...` for Fortran libraries).
    pub extension: bool,
    /// For a callback: whether its type depends on the kind of counts.
    pub poly: bool,
    /// Whether `mpif.h` and `use mpi` have it.
    pub fortran: bool,
    /// Whether `mpi_f08` has it.
    pub f08: bool,
    /// Whether it has an `ierror` in Fortran.
    pub ierror: bool,
    /// Whether it is there for Fortran libraries only (`MPII_...`), and in no header of ours.
    pub support: bool,
}

impl Procedure {
    /// The name in C, as the standard writes it: `MPI_Send`, `MPIX_Progress_set`.
    #[must_use]
    pub fn c_name(&self) -> String {
        match self.extension {
            true => format!("MPI{}", self.name),
            false => format!("MPI_{}", self.name),
        }
    }
}

/// Everything C programs see.
#[derive(Debug)]
pub struct Api {
    /// All procedures, sorted by name.
    pub procedures: Vec<Procedure>,
    /// Types of user functions, sorted by name, small forms only.
    pub callbacks: Vec<Procedure>,
}

/// C types of a kind: the small form, and the large form when it differs.
type Kinds = HashMap<String, (String, Option<String>)>;

/// The texts of the tables beside `apis.json`.
#[derive(Debug)]
pub struct Tables {
    /// `kinds.table`: the C types of the standard's kinds.
    pub kinds: String,
    /// `removed.table`: what MPI-3 removed.
    pub removed: String,
    /// `extensions.table`: what is no part of the standard.
    pub extensions: String,
    /// `support.table`: what Fortran libraries call beside the standard (`MPII_...`).
    pub support: String,
    /// `corrections.table`: types that the Forum's file has wrong.
    pub corrections: String,
}

impl Api {
    /// Reads the interface.
    ///
    /// # Errors
    /// A text that says which entry is not understood.
    pub fn read(apis: &str, tables: &Tables) -> Result<Self, String> {
        let Tables {
            kinds,
            removed,
            extensions,
            support,
            corrections,
        } = tables;
        let kinds = read_kinds(kinds)?;
        let json: Value = serde_json::from_str(apis).map_err(|e| format!("apis.json: {e}"))?;
        let entries = json.as_object().ok_or("apis.json: not an object")?;
        let (mut procedures, mut callbacks) = (Vec::new(), Vec::new());
        for entry in entries.values() {
            let attributes = &entry["attributes"];
            if attributes["c_expressible"] != true || !attributes["predefined_function"].is_null() {
                continue;
            }
            if attributes["callback"] == true {
                callbacks.push(procedure(entry, &kinds, false)?);
                continue;
            }
            procedures.push(procedure(entry, &kinds, false)?);
            if has_large_form(entry) {
                procedures.push(procedure(entry, &kinds, true)?);
            }
        }
        for line in crate::table_lines(removed) {
            let procedure = listed_procedure(line, &kinds)?;
            procedures.push(Procedure {
                removed: true,
                fortran: true,
                ..procedure
            });
        }
        for line in crate::table_lines(extensions) {
            let procedure = listed_procedure(line, &kinds)?;
            procedures.push(Procedure {
                name: format!("X_{}", procedure.name),
                extension: true,
                ..procedure
            });
        }
        for line in crate::table_lines(support) {
            let procedure = listed_procedure(line, &kinds)?;
            procedures.push(Procedure {
                extension: true,
                support: true,
                ..procedure
            });
        }
        for line in crate::table_lines(corrections) {
            correct(&mut procedures, line).ok_or(format!("corrections.table: {line}"))?;
        }
        procedures.sort_by(|a, b| a.name.cmp(&b.name));
        callbacks.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self {
            procedures,
            callbacks,
        })
    }

    /// Whether `name` (without `_c`) exists in both forms.
    #[must_use]
    pub fn has_large(&self, name: &str) -> bool {
        let large = format!("{name}_c");
        self.procedures.iter().any(|p| p.large && p.name == large)
    }
}

fn read_kinds(table: &str) -> Result<Kinds, String> {
    crate::table_lines(table)
        .map(|line| {
            let mut words = line.split_whitespace().map(str::to_owned);
            let (kind, small) = words
                .next()
                .zip(words.next())
                .ok_or(format!("kinds: {line}"))?;
            Ok((kind, (small, words.next())))
        })
        .collect()
}

fn parameters_of(entry: &Value) -> &[Value] {
    entry["parameters"].as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn has_large_form(entry: &Value) -> bool {
    parameters_of(entry)
        .iter()
        .any(|p| text(&p["kind"]).starts_with("POLY"))
}

fn procedure(entry: &Value, kinds: &Kinds, large: bool) -> Result<Procedure, String> {
    let full = text(&entry["name"]);
    let name = full
        .strip_prefix("MPI_")
        .ok_or(format!("{full}: not an MPI name"))?;
    let returns = base(kinds, text(&entry["return_kind"]), "", large)
        .ok_or(format!("{full}: unknown return kind"))?;
    let parameters = parameters_of(entry)
        .iter()
        .filter(|p| !text(&p["suppress"]).contains("c_parameter"))
        .filter(|p| large || p["large_only"] != true)
        .map(|p| parameter(p, kinds, large).ok_or(format!("{full}: unknown kind {}", p["kind"])))
        .collect::<Result<_, String>>()?;
    Ok(Procedure {
        name: format!("{name}{}", if large { "_c" } else { "" }),
        returns,
        parameters,
        large,
        removed: false,
        extension: false,
        poly: has_large_form(entry),
        fortran: !large && entry["attributes"]["f90_expressible"] == true,
        f08: entry["attributes"]["f08_expressible"] == true,
        ierror: parameters_of(entry).iter().any(|p| p["name"] == "ierror"),
        support: false,
    })
}

fn base(kinds: &Kinds, kind: &str, function: &str, large: bool) -> Option<Base> {
    match kind {
        "FUNCTION" | "FUNCTION_SMALL" => Some(Base::Callback {
            name: function.to_owned(),
            poly: false,
            large: false,
        }),
        "POLYFUNCTION" => Some(Base::Callback {
            name: function.to_owned(),
            poly: true,
            large,
        }),
        _ => {
            let (small, other) = kinds.get(kind)?;
            Base::parse(if large {
                other.as_ref().unwrap_or(small)
            } else {
                small
            })
        }
    }
}

fn parameter(p: &Value, kinds: &Kinds, large: bool) -> Option<Parameter> {
    Some(Parameter {
        name: text(&p["name"]).to_owned(),
        ty: Type {
            base: base(kinds, text(&p["kind"]), text(&p["func_type"]), large)?,
            constant: p["constant"] == true,
            pointers: pointers(p),
            array: array(p),
        },
        kind: text(&p["kind"]).to_owned(),
        direction: Direction::parse(text(&p["param_direction"])),
        fortran: !text(&p["suppress"]).contains("f90_parameter"),
        asynchronous: p["asynchronous"] == true,
        intent: !text(&p["suppress"]).contains("f08_intent"),
    })
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
    if is_array {
        "[]".to_owned()
    } else {
        String::new()
    }
}

/// Applies one line of `corrections.table`; `None` if it does not fit.
fn correct(procedures: &mut [Procedure], line: &str) -> Option<()> {
    let mut words = line.split_whitespace();
    let (name, parameter, text) = (words.next()?, words.next()?, words.next()?);
    let procedure = procedures.iter_mut().find(|p| p.name == name)?;
    let target = procedure
        .parameters
        .iter_mut()
        .find(|p| p.name == parameter)?;
    let (rest, array) = text
        .strip_suffix("[]")
        .map_or((text, ""), |rest| (rest, "[]"));
    let base = rest.trim_end_matches('*');
    target.ty = Type {
        base: Base::parse(base.strip_prefix("const_").unwrap_or(base))?,
        constant: base.starts_with("const_"),
        pointers: rest.len() - base.len(),
        array: array.to_owned(),
    };
    Some(())
}

/// A procedure of `removed.table` or `extensions.table`.
fn listed_procedure(line: &str, kinds: &Kinds) -> Result<Procedure, String> {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    let parameters = words
        .map(|word| {
            let fields: Vec<&str> = word.split(':').collect();
            let (kind, function) = fields[0]
                .strip_suffix(')')
                .and_then(|kind| kind.split_once('('))
                .unwrap_or((fields[0], ""));
            let value = serde_json::json!({
                "kind": kind,
                "func_type": function,
                "name": fields.get(1),
                "param_direction": fields.get(2),
                "length": fields.get(3),
                "constant": fields.get(3).is_some() && fields.get(2) == Some(&"in"),
            });
            parameter(&value, kinds, false).ok_or(format!("tables: {name}: {word}"))
        })
        .collect::<Result<_, String>>()?;
    Ok(Procedure {
        name: name.to_owned(),
        returns: Base::Int("int".to_owned()),
        parameters,
        large: false,
        removed: false,
        extension: false,
        poly: false,
        fortran: false,
        f08: false,
        ierror: true,
        support: false,
    })
}
