//! Prepares programs that ranks spawn while the job runs.

use super::asked::{Asked, Share};
use super::context::Context;
use super::reasons::Reasons;
use super::{PreparedProgram, limits};
use crate::launch::allocator;
use crate::launch::options::Section;
use crate::launch::outcome::Outcome;
use cohort_base::spawn::{Command, ROOM, Request, Soft, text};
use pip_ground::{Environment, Refusal};
use pip_load::image::Template;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What they are prepared from.
#[derive(Clone, Debug)]
pub struct Later {
    own: PathBuf,
    libraries: Option<PathBuf>,
    environment: Environment,
    linkers: HashMap<PathBuf, Rc<Template>>,
}

impl Later {
    /// For ranks that find `environment`.
    pub fn new(own: PathBuf, libraries: Option<PathBuf>, environment: Environment) -> Self {
        Self { own, libraries, environment, linkers: HashMap::new() }
    }

    /// What they find in their environment.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The folder of the node image, if ranks may use MPI.
    pub fn libraries(&self) -> Option<&Path> {
        self.libraries.as_deref()
    }

    /// How many ranks may be spawned in this job, whose ranks have an address space each or share one.
    pub fn room(&self, isolated: bool) -> usize {
        let can = self.libraries.is_some() && !isolated && !limits::is_address_space_short();
        if can { ROOM as usize } else { 0 }
    }

    /// The programs that a rank asks for, in their order, with the largest numbers of ranks that it would have.
    ///
    /// # Errors
    /// Why one of them cannot be started, in words.
    ///
    /// # Safety
    /// The request has been taken and is not answered.
    pub unsafe fn programs<'r>(&mut self, request: &'r Request) -> Result<Asked<'r>, Refusal> {
        // SAFETY: the request and what it leads to stay until it is answered.
        let commands = unsafe { std::slice::from_raw_parts(request.commands, request.commands_len as usize) };
        let (mut programs, mut shares) = (Vec::new(), Vec::new());
        for (number, command) in (0..).zip(commands) {
            // SAFETY: as above.
            let (section, environment) = unsafe { self.section(command) }?;
            let context = Context { own: &self.own, libraries: self.libraries.as_deref(), name: None, found: None };
            let (mut program, entries) = context.program(&section, &environment, &mut self.linkers)?;
            let mut reasons = Reasons::default();
            reasons.add(&section.program, &program);
            if !reasons.is_none() && !reasons.is_wrapper() {
                let why = "it needs an address space of its own (it is not position-independent, or watched by a \
                           sanitizer), which a rank that is spawned cannot have yet; compile it with -fPIE and link \
                           it with -pie";
                return Err(Refusal::to_run(Path::new(&section.program), &why));
            }
            (program.ranks, program.number) = (command.ranks as usize, number);
            program.initial_errhandler = command.initial_errhandler;
            // SAFETY: as above.
            let soft = Soft::read(unsafe { text(command.soft) });
            shares.push(Share { most: command.ranks, soft, map_entries: entries });
            programs.push(program);
        }
        Ok(Asked { commands, programs, shares })
    }

    /// What wrappers have executed, one program for each rank, for one address space; the second number of a program is
    /// that of its command.
    ///
    /// # Errors
    /// Which of them cannot be in an address space with others, and why.
    pub fn adopted(&self, outcomes: &[(&Outcome, u32)]) -> Result<Vec<PreparedProgram>, (usize, Refusal)> {
        let (mut linkers, mut needed, mut programs) = (HashMap::new(), 0, Vec::new());
        for (index, (outcome, number)) in outcomes.iter().enumerate() {
            let section = outcome.section();
            let context = Context {
                own: &self.own,
                libraries: self.libraries(),
                name: outcome.arguments.first().filter(|_| outcome.linked).map(OsString::as_os_str),
                found: Some(&outcome.file),
            };
            let prepared = context.program(&section, &outcome.environment, &mut linkers);
            let (mut program, entries) = prepared.map_err(|refusal| (index, refusal))?;
            let mut reasons = Reasons::default();
            reasons.add(&section.program, &program);
            if !reasons.is_none() {
                return Err((index, Refusal::new("it needs an address space of its own")));
            }
            (program.ranks, program.number) = (1, *number);
            needed += entries;
            programs.push(program);
        }
        limits::check_map_count(programs.len(), needed).map_err(|refusal| (0, refusal))?;
        limits::warn_of_shared_limits(programs.len());
        Ok(programs)
    }

    /// A command as one of the command line, and what its ranks find in their environment.
    ///
    /// # Safety
    /// As for [`Later::programs`].
    unsafe fn section(&self, command: &Command) -> Result<(Section, Environment), Refusal> {
        // SAFETY: the caller's promise.
        let word = |place: *const c_char| unsafe { OsStr::from_bytes(text(place)) };
        let mut environment = self.environment.clone();
        for line in word(command.environment).as_bytes().split(|&byte| byte == b'\n') {
            let at = line.iter().position(|&byte| byte == b'=').filter(|&at| at > 0);
            if let Some(at) = at {
                let (name, value) = (OsStr::from_bytes(&line[..at]), OsStr::from_bytes(&line[at + 1..]));
                environment.insert(name.to_owned(), value.to_owned());
            } else if !line.is_empty() {
                let line = String::from_utf8_lossy(line);
                return Err(Refusal::new(format!("the info key env has the line \"{line}\", which is no NAME=VALUE")));
            }
        }
        allocator::set_thresholds(&mut environment);
        let directory = Some(word(command.directory)).filter(|name| !name.is_empty()).map(PathBuf::from);
        let mut arguments = Vec::new();
        let mut next = command.arguments;
        // SAFETY: NULL, or a list that NULL ends, which stays as the request does.
        unsafe {
            while let Some(&argument) = next.as_ref().filter(|argument| !argument.is_null()) {
                arguments.push(word(argument).to_owned());
                next = next.add(1);
            }
        }
        let program = found(word(command.program), word(command.path), directory.as_deref());
        let section =
            Section { ranks: Vec::new(), environment: Vec::new(), inherit: None, directory, program, arguments };
        Ok((section, environment))
    }
}

/// The program's name, with the first of these folders that has it, if one has. Colons are between folders; blanks may
/// be, or in their names.
fn found(program: &OsStr, folders: &OsStr, directory: Option<&Path>) -> OsString {
    let relative = directory.unwrap_or(Path::new(""));
    let split = |between: fn(&u8) -> bool| folders.as_bytes().split(between).filter(|name| !name.is_empty());
    let mut folders = split(|&byte| byte == b':').chain(split(|&byte| byte == b':' || byte == b' '));
    let file = |folder: &[u8]| {
        let file = Path::new(OsStr::from_bytes(folder)).join(program);
        relative.join(&file).is_file().then(|| file.into_os_string())
    };
    folders.find_map(file).unwrap_or_else(|| program.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_for_in_folders() {
        assert_eq!(found(OsStr::new("sh"), OsStr::new("/nowhere:/bin"), None), "/bin/sh");
        assert_eq!(found(OsStr::new("sh"), OsStr::new("bin"), Some(Path::new("/"))), "bin/sh");
        assert_eq!(found(OsStr::new("sh"), OsStr::new("/no where /bin"), None), "/bin/sh");
        assert_eq!(found(OsStr::new("no-such-program"), OsStr::new("/bin"), None), "no-such-program");
        let folder = std::env::temp_dir().join(format!("two words {}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::write(folder.join("it"), "").expect("a file");
        assert_eq!(found(OsStr::new("it"), folder.as_os_str(), None), folder.join("it"));
        std::fs::remove_dir_all(&folder).expect("it is there");
    }
}
