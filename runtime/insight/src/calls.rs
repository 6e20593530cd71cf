//! What an observed call is: its name, its parameters, and what its arguments say.
//!
//! The arguments are the words that C passed. `generated::described` names each and says of which [`ParameterKind`] it
//! is; [`Words`] turns an ABI's handles and constants into neutral ones.

mod words;

pub use crate::generated::described::CALLS;
pub use words::{Words, words};

use crate::generated::described::TEXT;
use alloc::vec::Vec;
use spin::Once;

/// What a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "they are the standard's words")]
pub enum ParameterKind {
    Buffer,
    Count,
    Datatype,
    /// Of a peer or a root.
    Rank,
    Tag,
    Comm,
    Win,
    Op,
    Request,
    Message,
    File,
    Group,
    Info,
    Errhandler,
    Session,
    Status,
    Text,
    Logical,
    Other,
}

impl ParameterKind {
    /// How many there are.
    const COUNT: usize = Self::Other as usize + 1;

    /// The kind with this letter in `generated::described`.
    const fn of_letter(letter: u8) -> Self {
        match letter {
            b'b' => Self::Buffer,
            b'n' => Self::Count,
            b'd' => Self::Datatype,
            b'r' => Self::Rank,
            b't' => Self::Tag,
            b'c' => Self::Comm,
            b'w' => Self::Win,
            b'o' => Self::Op,
            b'q' => Self::Request,
            b'm' => Self::Message,
            b'f' => Self::File,
            b'g' => Self::Group,
            b'i' => Self::Info,
            b'e' => Self::Errhandler,
            b'S' => Self::Session,
            b's' => Self::Status,
            b'x' => Self::Text,
            b'l' => Self::Logical,
            _ => Self::Other,
        }
    }
}

/// How a parameter is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A value of four bytes with a sign; the word's upper half says nothing.
    Narrow,
    /// A value of eight bytes, or a handle.
    Wide,
    /// The address of one.
    Address,
    /// The address of some.
    Array,
}

/// A parameter of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The standard's name.
    pub name: &'static str,
    /// What it is.
    pub kind: ParameterKind,
    /// How it is passed.
    pub form: Form,
}

/// A function of MPI.
#[derive(Debug)]
pub struct Description {
    /// Its place in the table.
    pub number: u32,
    /// Its name in C. The large-count form has its own, with `_c`.
    pub name: &'static str,
    /// Whether the observed table has an entry of its own for it.
    pub is_observed: bool,
    /// In the order of C.
    pub parameters: Vec<Parameter>,
    /// [`Description::said`].
    said: &'static str,
    /// [`Description::find`] by kind; [`NONE`] where there is none.
    first: [u8; ParameterKind::COUNT],
}

/// No place of a parameter.
const NONE: u8 = u8::MAX;

impl Description {
    /// The place of the first value of this kind, one that is passed itself.
    #[inline]
    #[must_use]
    pub fn find(&self, kind: ParameterKind) -> Option<usize> {
        let place = self.first[kind as usize];
        (place != NONE).then_some(place.into())
    }

    /// The place of the parameter with this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<usize> {
        self.parameters.iter().position(|p| p.name == name)
    }

    /// The name without the `_c` of the large-count form: both are one for people.
    #[inline]
    #[must_use]
    pub fn said(&self) -> &'static str {
        self.said
    }
}

/// All functions, by their place in the table. The first call reads the text, some tens of microseconds.
pub fn all() -> &'static [Description] {
    static ALL: Once<Vec<Description>> = Once::new();
    ALL.call_once(|| (0..).zip(TEXT.lines()).map(read).collect())
}

/// Reads a line of the generated text.
fn read((number, line): (u32, &'static str)) -> Description {
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default();
    let parameters = words.filter_map(|word| {
        let (name, rest) = word.split_once(':')?;
        let form = match rest.get(1..)? {
            "4" => Form::Narrow,
            "*" => Form::Address,
            "[]" => Form::Array,
            _ => Form::Wide,
        };
        let kind = ParameterKind::of_letter(*rest.as_bytes().first()?);
        Some(Parameter { name, kind, form })
    });
    let parameters: Vec<Parameter> = parameters.collect();
    let mut first = [NONE; ParameterKind::COUNT];
    for (place, parameter) in parameters.iter().enumerate().rev() {
        if matches!(parameter.form, Form::Narrow | Form::Wide) {
            first[parameter.kind as usize] = place as u8;
        }
    }
    let is_observed = !name.starts_with('-');
    let name = name.trim_start_matches('-');
    Description { number, name, is_observed, parameters, said: name.strip_suffix("_c").unwrap_or(name), first }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_of_the_table_is_described() {
        let all = all();
        assert_eq!(all.len(), CALLS);
        assert_eq!(size_of::<cohort_abi::Table<cohort_abi::Mpich>>(), CALLS * size_of::<usize>());
        let parameters: usize = all.iter().map(|call| call.parameters.len()).sum();
        let colons = TEXT.bytes().filter(|&byte| byte == b':').count();
        assert_eq!(parameters, colons);
    }

    #[test]
    fn a_line_is_read() {
        let find = |name| all().iter().find(|call| call.name == name).expect(name);
        let call = find("MPI_Send_c");
        let of = |kind| call.find(kind).map(|at| call.parameters[at].name);
        assert_eq!(of(ParameterKind::Count), Some("count"));
        assert_eq!(of(ParameterKind::Rank), Some("dest"));
        assert_eq!(of(ParameterKind::Tag), Some("tag"));
        assert_eq!(of(ParameterKind::Comm), Some("comm"));
        assert_eq!(of(ParameterKind::Buffer), None);
        assert_eq!(call.named("buf"), Some(0));
        assert_eq!(call.parameters[1].form, Form::Wide);
        assert_eq!(find("MPI_Send").parameters[1].form, Form::Narrow);
        assert_eq!(call.said(), "MPI_Send");
        assert!(call.is_observed && !find("MPI_Wtime").is_observed);
        assert_eq!(find("MPI_Waitall").parameters[1].form, Form::Array);
    }
}
