//! `described.rs`: what each entry of the function table is called and takes, as text
//! that is read once a job is observed. Text has no relocations and takes a tenth of the memory of records.

use super::wiring::{Style, Wiring};
use crate::api::{Api, Parameter, Procedure};
use crate::ctype::Base;
use std::fmt::Write;

/// Longest line of the text.
const WIDTH: usize = 110;

/// The number of procedures, and a line for each.
#[must_use]
pub fn described(api: &Api, wiring: &Wiring) -> String {
    let mut out = format!(
        "/// Entries of the table.\npub const CALLS: usize = {};\n\n\
         /// A line per entry: its C name, behind a `-` if nobody observes it, and its parameters.\n\
         pub static TEXT: &str = \"\\\n",
        api.procedures.len()
    );
    for procedure in &api.procedures {
        let mut words = vec![match is_observed(procedure, wiring) {
            true => procedure.c_name(),
            false => format!("-{}", procedure.c_name()),
        }];
        let parameters = procedure.parameters.iter();
        words.extend(parameters.filter(|p| p.ty.base != Base::Varargs).map(described_parameter));
        let mut width = 0;
        for (index, word) in words.iter().enumerate() {
            if index > 0 {
                out.push(' ');
            }
            if width + word.len() > WIDTH {
                out += "\\\n";
                width = 0;
            }
            out += word;
            width += word.len() + 1;
        }
        out += "\\n\\\n";
    }
    let _ = writeln!(out, "\";");
    out
}

/// Conversions and the like answer from their arguments: to observe one would take longer than the call.
fn is_observed(procedure: &Procedure, wiring: &Wiring) -> bool {
    let style = wiring.function(&procedure.name).map(|(_, style)| style);
    style != Some(Style::Raw) && procedure.returns == Base::Int("int".to_owned())
}

/// `name:kind`, then `4` for a value of four bytes, `*` for an address, `[]` for an array.
fn described_parameter(parameter: &Parameter) -> String {
    let ty = &parameter.ty;
    let form = match (&ty.base, ty.pointers) {
        (Base::Callback { .. }, _) => "",
        _ if !ty.array.is_empty() => "[]",
        (Base::Int(_) | Base::Fint, 0) => "4",
        (_, 0) => "",
        _ => "*",
    };
    format!("{}:{}{form}", parameter.name, kind(parameter))
}

/// The letters are those of `calls::ParameterKind`.
fn kind(parameter: &Parameter) -> char {
    match parameter.kind.as_str() {
        "BUFFER" => 'b',
        "DATATYPE" => 'd',
        "RANK" | "RANK_NNI" => 'r',
        "TAG" => 't',
        "COMMUNICATOR" => 'c',
        "WINDOW" => 'w',
        "OPERATION" => 'o',
        "REQUEST" => 'q',
        "MESSAGE" => 'm',
        "FILE" => 'f',
        "GROUP" => 'g',
        "INFO" => 'i',
        "ERRHANDLER" => 'e',
        "SESSION" => 'S',
        "STATUS" => 's',
        "STRING" => 'x',
        "LOGICAL" => 'l',
        kind if kind.contains("NUM_ELEM") => 'n',
        _ => '-',
    }
}
