//! `{neutral,constants}.rs` and `mpich_handles.rs`.

use crate::constants::{Column, Constant, Value};
use std::collections::BTreeSet;
use std::fmt::Write;

/// How the members of a family of integer constants are told from other values.
enum Shape {
    /// Exactly one member.
    Choice,
    /// A member, or any number from 0 up.
    ChoiceOrCount,
    /// A member, or a dynamic handle.
    ChoiceOrDynamic,
    /// An error class, or a code that the program added.
    Error,
    /// Any union of members.
    Bits,
}

/// Families with a codec, their shape, and what they are.
const FAMILIES: &[(&str, Shape, &str)] = &[
    ("error", Shape::Error, "error class or code"),
    ("rank", Shape::ChoiceOrCount, "rank: source, destination or root"),
    ("tag", Shape::ChoiceOrCount, "message tag"),
    ("thread_level", Shape::Choice, "level of thread support"),
    ("order", Shape::Choice, "order of array storage"),
    ("distribute", Shape::Choice, "distribution of an array dimension"),
    ("combiner", Shape::Choice, "datatype combiner"),
    ("typeclass", Shape::Choice, "class of a Fortran datatype"),
    ("comparison", Shape::Choice, "result of a comparison"),
    ("topology", Shape::Choice, "kind of virtual topology"),
    ("split_type", Shape::Choice, "communicator split type"),
    ("lock_type", Shape::Choice, "window lock type"),
    ("win_flavor", Shape::Choice, "window flavour"),
    ("win_model", Shape::Choice, "window memory model"),
    ("whence", Shape::Choice, "base of a file position"),
    ("access_mode", Shape::Bits, "file access mode"),
    ("assertion", Shape::Bits, "assertion of a window or lock"),
    ("keyval", Shape::ChoiceOrDynamic, "attribute key"),
    ("tool_safety", Shape::Choice, "safety level of an event callback"),
    ("tool_order", Shape::Choice, "order of an event source"),
    ("tool_verbosity", Shape::Choice, "verbosity of a tool variable"),
    ("tool_bind", Shape::Choice, "object a tool variable is bound to"),
    ("tool_scope", Shape::Choice, "scope of a control variable"),
    ("tool_class", Shape::Choice, "class of a performance variable"),
];

/// Families whose values are plain associated constants, and the Rust type of those.
const PLAIN: &[(&str, &str)] =
    &[("fortran_status", "usize"), ("pointer", "usize"), ("limit", "usize"), ("other", "i64")];

/// The constants in the runtime's own values, which are those of the MPI-5 ABI.
#[must_use]
pub fn neutral(constants: &[Constant]) -> String {
    let mut out = String::new();
    for constant in constants.iter().filter(|c| !skipped_in_neutral(c)) {
        if let Some(value) = constant.mpi5() {
            let _ = writeln!(out, "\n/// `MPI_{}`\npub const {}: i32 = {value};", constant.name, constant.name);
        }
    }
    out += "\n/// Predefined handles.\npub mod handle {\n";
    for constant in constants.iter().filter(|c| c.handle().is_some()) {
        let value = match &constant.value {
            Value::Alias(other) => crate::constants::rust_name(other),
            Value::Numbers { mpi5, .. } => format!("0x{mpi5:x}"),
        };
        let (name, rust) = (&constant.name, constant.rust_name());
        let _ = writeln!(out, "/// `MPI_{name}`\npub const {rust}: u32 = {value};");
    }
    out + "}\n"
}

fn skipped_in_neutral(constant: &Constant) -> bool {
    constant.handle().is_some()
        || constant.family == "callback"
        || PLAIN.iter().any(|(family, _)| *family == constant.family)
}

/// The trait that turns each ABI's integer constants into neutral ones and back.
#[must_use]
pub fn constants(constants: &[Constant]) -> String {
    let mut out = String::from(
        "use crate::{Mpi5, Mpich, OpenMpi, neutral};\nuse core::ffi::c_int;\n\n\
         /// What an ABI chose for the constants of the standard.\n\
         ///\n\
         /// The `_in` functions give [`neutral::INVALID`] for a value that the ABI does not define;\n\
         /// the `_out` functions are only given values that the runtime made.\n\
         pub trait Constants {\n",
    );
    let plain = plain(constants);
    for (constant, ty) in &plain {
        let _ = writeln!(out, "/// `MPI_{0}`\nconst {0}: {ty};", constant.name);
    }
    for (family, _, what) in FAMILIES {
        let _ = writeln!(
            out,
            "/// Reads a {what}.\n#[inline]\n#[must_use]\n\
             fn {family}_in(value: c_int) -> i32 {{ value }}\n\
             /// Writes a {what}.\n#[inline]\n#[must_use]\n\
             fn {family}_out(value: i32) -> c_int {{ value }}"
        );
    }
    out += "}\n\n";
    let abis = [("Mpi5", None), ("Mpich", Some(Column::Mpich)), ("OpenMpi", Some(Column::OpenMpi))];
    for (abi, column) in abis {
        let _ = writeln!(out, "impl Constants for {abi} {{");
        for (constant, ty) in &plain {
            let value = match column {
                None => constant.mpi5(),
                Some(column) => constant.pair(column).map(|(_, value)| value),
            };
            // A sentinel that an ABI does not have is an address that no program passes.
            let value = match (*ty, value.unwrap_or(-2)) {
                ("usize", value @ ..0) => format!("{value}isize as usize"),
                (_, value) => value.to_string(),
            };
            let _ = writeln!(out, "const {}: {ty} = {value};", constant.name);
        }
        if let Some(column) = column {
            for (family, shape, _) in FAMILIES {
                let members: Vec<&Constant> = constants.iter().filter(|c| c.family == *family).collect();
                codec(&mut out, family, shape, &members, column);
            }
        }
        out += "}\n\n";
    }
    out
}

fn plain(constants: &[Constant]) -> Vec<(&Constant, &'static str)> {
    constants
        .iter()
        .filter_map(|c| {
            let (_, ty) = PLAIN.iter().find(|(family, _)| *family == c.family)?;
            Some((c, *ty))
        })
        .collect()
}

/// One family of an ABI with numbers of its own.
fn codec(out: &mut String, family: &str, shape: &Shape, members: &[&Constant], column: Column) {
    if !members.iter().any(|member| member.pair(column).is_some()) {
        let _ = writeln!(out, "#[inline]\nfn {family}_in(_value: c_int) -> i32 {{ neutral::INVALID }}");
        return;
    }
    for direction in ["in", "out"] {
        let input = direction == "in";
        let types = if input { ("c_int", "i32") } else { ("i32", "c_int") };
        let _ = writeln!(out, "#[inline]\nfn {family}_{direction}(value: {}) -> {} {{", types.0, types.1);
        if let Shape::Bits = shape {
            bits(out, input, members, column);
        } else {
            choice(out, input, shape, members, column);
        }
        *out += "}\n";
    }
}

fn choice(out: &mut String, input: bool, shape: &Shape, members: &[&Constant], column: Column) {
    if let Shape::ChoiceOrCount = shape {
        *out += "if value >= 0 { return value; }\n";
    }
    *out += "match value {\n";
    for member in members {
        if let (Some(other), false) = (member.substitute(column), input) {
            let name = &member.name;
            let _ = writeln!(out, "neutral::{name} => Self::error_out(neutral::{other}),");
        }
        if let Some((_, own)) = member.pair(column) {
            let neutral = format!("neutral::{}", member.name);
            let own = if own > i64::from(i32::MAX) { own - (1 << 32) } else { own };
            let _ = if input { writeln!(out, "{own} => {neutral},") } else { writeln!(out, "{neutral} => {own},") };
        }
    }
    *out += match (shape, input) {
        (Shape::ChoiceOrDynamic, true) => "..0 => value,\n_ => neutral::INVALID,\n}\n",
        (Shape::Error, true) => "_ => crate::added_errors::read(value, Self::error_out(neutral::ERR_LASTCODE)),\n}\n",
        (Shape::Error, false) => {
            "..neutral::FIRST_ADDED_ERROR => Self::error_out(neutral::ERR_UNKNOWN),\n\
             _ => crate::added_errors::write(value, Self::error_out(neutral::ERR_LASTCODE)),\n}\n"
        }
        (_, true) => "_ => neutral::INVALID,\n}\n",
        (_, false) => "_ => value,\n}\n",
    };
}

fn bits(out: &mut String, input: bool, members: &[&Constant], column: Column) {
    *out += "let mut rest = value;\nlet mut result = 0;\n";
    for member in members {
        if let Some((_, own)) = member.pair(column) {
            let neutral = format!("neutral::{}", member.name);
            let own = own.to_string();
            let (from, to) = if input { (&own, &neutral) } else { (&neutral, &own) };
            let _ = writeln!(out, "if rest & {from} != 0 {{ rest &= !{from}; result |= {to}; }}");
        }
    }
    *out += "if rest == 0 { result } else { neutral::INVALID }\n";
}

/// The predefined handles of the MPICH ABI.
#[must_use]
pub fn mpich_handles(constants: &[Constant]) -> String {
    let mut out = String::from("use crate::neutral::handle;\n");
    let kinds: BTreeSet<&str> = constants.iter().filter_map(Constant::handle).collect();
    for kind in kinds.into_iter().filter(|kind| *kind != "datatype") {
        let members: Vec<(String, i64)> = constants
            .iter()
            .filter(|c| c.handle() == Some(kind))
            .filter_map(|c| Some((c.rust_name(), c.pair(Column::Mpich)?.1)))
            .collect();
        let _ = writeln!(
            out,
            "\n/// Reads a predefined {kind} handle; `None` if it is not one.\n\
             #[inline]\npub const fn {kind}_in(value: u32) -> Option<u32> {{\nSome(match value {{"
        );
        for (name, mpich) in &members {
            let _ = writeln!(out, "0x{mpich:08x} => handle::{name},");
        }
        let _ = writeln!(
            out,
            "_ => return None,\n}})\n}}\n\n/// Writes a predefined {kind} handle; `None` if it is not one.\n\
             #[inline]\npub const fn {kind}_out(value: u32) -> Option<u32> {{\nSome(match value {{"
        );
        for (name, mpich) in &members {
            let _ = writeln!(out, "handle::{name} => 0x{mpich:08x},");
        }
        out += "_ => return None,\n})\n}\n";
    }
    out + &datatypes(constants)
}

/// Datatypes are decoded in every call, so they are looked up by index.
fn datatypes(constants: &[Constant]) -> String {
    let (mut builtin, mut pair, mut neutral) = ([(0, 0); 80], [0; 8], [0; 256]);
    for constant in constants.iter().filter(|c| c.handle() == Some("datatype")) {
        if let Some((mpi5, mpich)) = constant.pair(Column::Mpich) {
            if mpich >> 28 == 8 {
                pair[mpich as usize & 7] = mpi5;
            } else {
                builtin[mpich as usize & 0xff] = (mpich, mpi5);
            }
            neutral[mpi5 as usize & 0xff] = mpich;
        }
    }
    let list = |values: &[i64]| values.iter().map(|v| format!("0x{v:x}")).collect::<Vec<_>>().join(", ");
    let pairs: Vec<String> = builtin.iter().map(|(a, b)| format!("(0x{a:x}, 0x{b:x})")).collect();
    format!(
        "\n/// By the low byte of a builtin datatype: its handle and its neutral value.\n\
         pub static DATATYPE_IN: [(u32, u32); 80] = [{}];\n\n\
         /// By the low three bits of a pair datatype (0x8c000000 and up): its neutral value.\n\
         pub static PAIR_IN: [u32; 8] = [{}];\n\n\
         /// By the low byte of a neutral datatype: its handle, 0 where there is none.\n\
         pub static DATATYPE_OUT: [u32; 256] = [{}];\n",
        pairs.join(", "),
        list(&pair),
        list(&neutral)
    )
}
