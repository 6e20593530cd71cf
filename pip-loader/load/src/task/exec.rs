//! A program for a task that leaves the root's address space: what `execve` takes, made
//! beforehand, since the task itself may not allocate.

use super::stack::Strings;
use std::ffi::{CStr, CString, c_char};

/// The arguments of an `execve`.
#[derive(Debug)]
pub struct ExecArguments {
    /// The file.
    pub file: &'static CStr,
    /// NULL-terminated list of arguments.
    pub arguments: Vec<*const c_char>,
    /// NULL-terminated list of `NAME=VALUE` entries.
    pub environment: Vec<*const c_char>,
    /// A descriptor that the program inherits, or -1.
    pub inherited: i32,
}

// SAFETY: the pointers lead to strings that are never changed or freed.
unsafe impl Sync for ExecArguments {}

impl ExecArguments {
    /// Those of a program with `extra` entries of its environment and a descriptor that it
    /// inherits (-1 for none). Its strings are never freed.
    #[must_use]
    pub fn new(strings: &Strings, extra: Vec<CString>, inherited: i32) -> Self {
        let list = |texts: Vec<CString>| {
            let texts: &'static [CString] = texts.leak();
            let mut list: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
            list.push(std::ptr::null());
            list
        };
        let mut environment = strings.environment().to_vec();
        environment.extend(extra);
        Self {
            file: Box::leak(strings.file().into()),
            arguments: list(strings.arguments().to_vec()),
            environment: list(environment),
            inherited,
        }
    }
}
