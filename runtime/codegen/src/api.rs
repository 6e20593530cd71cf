//! The standard's procedures, read from `standard.table`, `removed.table`, `extensions.table` and `support.table`.

use crate::ctype::{Base, Type};
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
    /// Whether it is there for Fortran libraries only (`MPII_...`), or for programs that another library's header
    /// made, and in no header of ours.
    pub support: bool,
    /// The ABIs whose facades have it, if not all do.
    pub facades: Option<Vec<String>>,
    /// Whether what it returns is no error code.
    pub value: bool,
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

    /// Whether the facade of this ABI (`Mpich`, `Mpi5`, `OpenMpi`) has it.
    #[must_use]
    pub fn is_in(&self, abi: &str) -> bool {
        let facades = self.facades.as_ref();
        facades.is_none_or(|facades| facades.iter().any(|name| name == abi))
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

/// The texts of the tables.
#[derive(Debug)]
pub struct Tables<'text> {
    /// `standard.table`: what the Forum's machine-readable interface has for C.
    pub standard: &'text str,
    /// `kinds.table`: the C types of the standard's kinds.
    pub kinds: &'text str,
    /// `removed.table`: what MPI-3 removed.
    pub removed: &'text str,
    /// `extensions.table`: what is no part of the standard.
    pub extensions: &'text str,
    /// `support.table`: what Fortran libraries call beside the standard (`MPII_...`).
    pub support: &'text str,
    /// `foreign.table`: what other libraries have beside the standard.
    pub foreign: &'text str,
    /// `corrections.table`: types that the Forum's interface has wrong.
    pub corrections: &'text str,
}

impl Api {
    /// Reads the interface.
    ///
    /// # Errors
    /// A text that says which entry is not understood.
    pub fn read(tables: &Tables<'_>) -> Result<Self, String> {
        let kinds = read_kinds(tables.kinds)?;
        let (mut procedures, mut callbacks) = (Vec::new(), Vec::new());
        for line in crate::table_lines(tables.standard) {
            let entry = Entry::parse(line)?;
            let small = entry.procedure(&kinds, false)?;
            if entry.flags.contains(&"callback") {
                callbacks.push(small);
                continue;
            }
            procedures.push(small);
            if entry.has_large_form() {
                procedures.push(entry.procedure(&kinds, true)?);
            }
        }
        for line in crate::table_lines(tables.removed) {
            procedures.push(Procedure { removed: true, f08: false, ..Entry::parse(line)?.procedure(&kinds, false)? });
        }
        for line in crate::table_lines(tables.extensions) {
            let procedure = Entry::parse(line)?.procedure(&kinds, false)?;
            procedures.push(Procedure {
                fortran: is_in_fortran(&procedure),
                f08: is_in_fortran(&procedure),
                name: format!("X_{}", procedure.name),
                extension: true,
                ..procedure
            });
        }
        for line in crate::table_lines(tables.support) {
            procedures.push(Procedure {
                extension: true,
                support: true,
                fortran: false,
                f08: false,
                ..Entry::parse(line)?.procedure(&kinds, false)?
            });
        }
        for line in crate::table_lines(tables.foreign) {
            procedures.push(foreign_procedure(line, &kinds)?);
        }
        for line in crate::table_lines(tables.corrections) {
            correct(&mut procedures, line).ok_or(format!("corrections.table: {line}"))?;
        }
        procedures.sort_by(|a, b| a.name.cmp(&b.name));
        callbacks.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { procedures, callbacks })
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
            let (kind, small) = words.next().zip(words.next()).ok_or(format!("kinds: {line}"))?;
            Ok((kind, (small, words.next())))
        })
        .collect()
}

/// A line of `standard.table` or its like.
struct Entry<'line> {
    name: &'line str,
    /// `callback`, `c`, `f90`, `no_ierror`.
    flags: Vec<&'line str>,
    parameters: Vec<Listed<'line>>,
    /// The kind of what it returns.
    returns: &'line str,
}

/// A parameter in such a line: `KIND(function):declarator:direction:flag...`.
struct Listed<'line> {
    kind: &'line str,
    /// The type of a user's function.
    function: &'line str,
    /// As in C, without its type: `*buf`, `array[]`.
    declarator: &'line str,
    direction: &'line str,
    /// `const`, `large`, `asynchronous`, `no_intent`, `no_f90`.
    flags: Vec<&'line str>,
}

impl<'line> Entry<'line> {
    fn parse(line: &'line str) -> Result<Self, String> {
        let wrong = |word: &str| format!("tables: `{word}` in {line}");
        let (head, returns) = line.split_once(" -> ").unwrap_or((line, "ERROR_CODE"));
        let mut words = head.split_whitespace();
        let mut first = words.next().ok_or_else(|| wrong(""))?.split(':');
        let name = first.next().ok_or_else(|| wrong(""))?;
        let flags: Vec<&str> = first.collect();
        let known = ["callback", "c", "f90", "no_ierror"];
        if let Some(flag) = flags.iter().find(|flag| !known.contains(*flag)) {
            return Err(wrong(flag));
        }
        Ok(Self {
            name,
            flags,
            parameters: words
                .map(|word| Listed::parse(word).ok_or_else(|| wrong(word)))
                .collect::<Result<_, String>>()?,
            returns,
        })
    }

    fn has_large_form(&self) -> bool {
        self.parameters.iter().any(|p| p.kind.starts_with("POLY"))
    }

    fn procedure(&self, kinds: &Kinds, large: bool) -> Result<Procedure, String> {
        let unknown = |kind: &str| format!("tables: {}: unknown kind {kind}", self.name);
        let has = |flag: &str| self.flags.contains(&flag);
        Ok(Procedure {
            name: format!("{}{}", self.name, if large { "_c" } else { "" }),
            returns: base(kinds, self.returns, "", large).ok_or_else(|| unknown(self.returns))?,
            parameters: self
                .parameters
                .iter()
                .filter(|p| large || !p.flags.contains(&"large"))
                .map(|p| p.parameter(kinds, large).ok_or_else(|| unknown(p.kind)))
                .collect::<Result<_, String>>()?,
            large,
            removed: false,
            extension: false,
            poly: self.has_large_form(),
            fortran: !large && !has("c"),
            f08: !has("c") && !has("f90"),
            ierror: !has("no_ierror"),
            support: false,
            facades: None,
            value: false,
        })
    }
}

impl<'line> Listed<'line> {
    fn parse(word: &'line str) -> Option<Self> {
        let mut fields = word.split(':');
        let first = fields.next()?;
        let (kind, function) = first.strip_suffix(')').and_then(|kind| kind.split_once('(')).unwrap_or((first, ""));
        let (declarator, direction) = (fields.next()?, fields.next()?);
        let flags: Vec<&str> = fields.collect();
        let known = ["const", "large", "asynchronous", "no_intent", "no_f90"];
        let is_known = flags.iter().all(|flag| known.contains(flag));
        (is_known && ["in", "out", "inout"].contains(&direction)).then_some(Self {
            kind,
            function,
            declarator,
            direction,
            flags,
        })
    }

    fn parameter(&self, kinds: &Kinds, large: bool) -> Option<Parameter> {
        let has = |flag: &str| self.flags.contains(&flag);
        let start = self.declarator.trim_start_matches('*');
        let name = start.split('[').next()?;
        Some(Parameter {
            name: name.to_owned(),
            ty: Type {
                base: base(kinds, self.kind, self.function, large)?,
                constant: has("const"),
                pointers: self.declarator.len() - start.len(),
                array: start[name.len()..].to_owned(),
            },
            kind: self.kind.to_owned(),
            direction: match self.direction {
                "out" => Direction::Out,
                "inout" => Direction::InOut,
                _ => Direction::In,
            },
            fortran: !has("no_f90"),
            asynchronous: has("asynchronous"),
            intent: !has("no_intent"),
        })
    }
}

fn base(kinds: &Kinds, kind: &str, function: &str, large: bool) -> Option<Base> {
    match kind {
        "FUNCTION" | "FUNCTION_SMALL" => Some(Base::Callback { name: function.to_owned(), poly: false, large: false }),
        "POLYFUNCTION" => Some(Base::Callback { name: function.to_owned(), poly: true, large }),
        _ => {
            let (small, other) = kinds.get(kind)?;
            Base::parse(if large { other.as_ref().unwrap_or(small) } else { small })
        }
    }
}

/// Extensions that Fortran has: the ends of their names. `MPIX_Comm_ishrink` is none: it stores a handle of C's when
/// the call is over.
const IN_FORTRAN: [&str; 9] = [
    "_revoke",
    "_is_revoked",
    "_get_failed",
    "_ack_failed",
    "_failure_ack",
    "_failure_get_acked",
    "_shrink",
    "_agree",
    "_iagree",
];

/// Whether Fortran has an extension.
fn is_in_fortran(extension: &Procedure) -> bool {
    IN_FORTRAN.iter().any(|end| extension.name.ends_with(end))
}

/// Applies one line of `corrections.table`; `None` if it does not fit.
fn correct(procedures: &mut [Procedure], line: &str) -> Option<()> {
    let mut words = line.split_whitespace();
    let (name, parameter, text) = (words.next()?, words.next()?, words.next()?);
    let procedure = procedures.iter_mut().find(|p| p.name == name)?;
    let target = procedure.parameters.iter_mut().find(|p| p.name == parameter)?;
    let (rest, array) = text.strip_suffix("[]").map_or((text, ""), |rest| (rest, "[]"));
    let base = rest.trim_end_matches('*');
    target.ty = Type {
        base: Base::parse(base.strip_prefix("const_").unwrap_or(base))?,
        constant: base.starts_with("const_"),
        pointers: rest.len() - base.len(),
        array: array.to_owned(),
    };
    Some(())
}

/// A procedure of `foreign.table`.
fn foreign_procedure(line: &str, kinds: &Kinds) -> Result<Procedure, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (name, facades, value) = match words[..] {
        [name, facades] => (name, facades, false),
        [name, facades, "value"] => (name, facades, true),
        _ => return Err(format!("foreign.table: {line}")),
    };
    Ok(Procedure {
        extension: true,
        support: true,
        fortran: false,
        f08: false,
        facades: Some(facades.split(',').map(str::to_owned).collect()),
        value,
        ..Entry::parse(name)?.procedure(kinds, false)?
    })
}
