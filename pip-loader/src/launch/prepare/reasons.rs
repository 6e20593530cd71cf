//! Why ranks get an address space each.

use super::PreparedProgram;
use crate::launch::{allocator, python, sanitizer};
use pip_ground::voice;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Why ranks do not share an address space although the user has not asked for that.
#[derive(Default)]
pub(super) struct Reasons<'a> {
    /// A program that is linked to fixed addresses.
    fixed: Option<&'a Path>,
    /// A program with a checker, and the checker.
    watched: Option<(&'a Path, &'static str)>,
    /// What is no MPI program, so that ranks are what it starts.
    wrapper: Option<OsString>,
    /// A program that brings its `malloc`, which is no reason, and the file with that.
    own_malloc: Option<(&'a Path, PathBuf)>,
    /// A program whose ranks do not get what the kernel would give them, which is no reason, and what that is.
    privileges: Option<(&'a Path, &'static str)>,
}

impl<'a> Reasons<'a> {
    /// Adds those of one more program; the first of each kind counts.
    pub(super) fn add(&mut self, name: &'a OsStr, program: &PreparedProgram) {
        let name = Path::new(name);
        if program.fixed_address {
            self.fixed = self.fixed.or(Some(name));
        }
        self.watched = self.watched.or(program.sanitizer.map(|checker| (name, checker)));
        if let (Some(file), None) = (&program.own_malloc, &self.own_malloc) {
            self.own_malloc = Some((name, file.clone()));
        }
        self.privileges = self.privileges.or(program.privileges.map(|what| (name, what)));
        if program.linker.is_none() && self.wrapper.is_none() {
            self.wrapper = Some(program.name.clone());
        }
    }

    /// Whether nothing keeps them from it.
    pub(super) fn is_none(&self) -> bool {
        self.fixed.is_none() && self.watched.is_none() && self.wrapper.is_none()
    }

    /// Whether the program is a wrapper, and nothing else keeps ranks from sharing an address space.
    pub(super) fn is_wrapper(&self) -> bool {
        self.fixed.is_none() && self.watched.is_none() && self.wrapper.is_some()
    }

    /// Says at once what will be so whatever ranks do.
    pub(super) fn advise(&self, is_asked_for: bool) {
        match (self.fixed, self.watched) {
            (Some(file), _) => advise(file),
            (None, Some((file, checker))) if !is_asked_for => sanitizer::advise(file, checker),
            _ => {}
        }
    }

    /// Says of the first program that keeps its `malloc` that it does.
    pub(super) fn advise_of_malloc(&self) {
        if let Some((program, file)) = &self.own_malloc {
            allocator::advise(program, file);
        }
    }

    /// Says of the first program whose file gives rights to whoever executes it that its ranks do not have them.
    pub(super) fn advise_of_privileges(&self) {
        if let Some((program, what)) = self.privileges {
            voice::advise(format_args!(
                "{} does not get the rights of {what}: pip-exec loads it, and the kernel gives them to what it \
                 executes; start pip-exec with the rights that the program needs",
                program.display()
            ));
        }
    }

    /// The wrapper, if it is the only reason.
    pub(super) fn only_wrapper(self) -> Option<OsString> {
        match self.is_wrapper() {
            true => self.wrapper,
            false => None,
        }
    }
}

/// Says why ranks do not share an address space, and what would let them.
fn advise(file: &Path) {
    let remedy = match python::version(&file.canonicalize().unwrap_or(file.to_owned())) {
        Some(version) => format!("apt install libpython{version}"),
        None => "compile it with -fPIE and link it with -pie".to_owned(),
    };
    voice::advise(format_args!(
        "{} is not position-independent, so each rank is a process of its own and the network \
         joins them; to let ranks share memory: {remedy}",
        file.display()
    ));
}
