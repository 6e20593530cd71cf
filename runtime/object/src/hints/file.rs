//! Hints of files (MPI-5.0 section 14.2.8, and those of ROMIO).
//!
//! Reads and writes need no hint to be fast. `MPI_File_get_info` tells what is in force, whatever the program hints: a
//! hint that it does not name is ignored. Hints come from the program, and below that from the file that `ROMIO_HINTS`
//! names. A value that means nothing is told once on standard error.

use crate::info::Info;
use alloc::string::String;
use alloc::vec::Vec;
use cohort_base::text::{FixedText, complain};
use core::fmt;
use rustix::fs::{CWD, Mode, OFlags};
use spin::Mutex;

/// Bytes of memory that the members on a node take for a collective call, unless a hint says otherwise.
const MEMORY: u64 = 16 << 20;

/// Permissions of a file that is made, unless a hint says otherwise; `umask` takes from them.
const PERMISSIONS: u32 = 0o666;

/// Longest file of hints.
const LONGEST: usize = 64 << 10;

/// What a file's members do about collective calls of one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Together {
    /// As is best.
    #[default]
    Automatic,
    /// The same: there is nothing that would be better always.
    Enable,
    /// Each member reads and writes its own data.
    Disable,
}

impl Together {
    fn name(self) -> &'static str {
        match self {
            Self::Automatic => "automatic",
            Self::Enable => "enable",
            Self::Disable => "disable",
        }
    }
}

/// The hints of a file that are in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHints {
    /// Bytes of memory that the members on a node take for a collective call.
    pub memory: u64,
    /// Permissions of a file that is made.
    pub permissions: u32,
    reads: Together,
    writes: Together,
}

impl Default for FileHints {
    fn default() -> Self {
        let automatic = Together::Automatic;
        Self { memory: MEMORY, permissions: PERMISSIONS, reads: automatic, writes: automatic }
    }
}

/// Hints that are numbers, and change nothing.
const NUMBERS: [&str; 9] = [
    "cb_block_size",
    "cb_nodes",
    "ind_rd_buffer_size",
    "ind_wr_buffer_size",
    "nb_proc",
    "num_io_nodes",
    "striping_factor",
    "striping_unit",
    "start_iodevice",
];

/// Hints whose values are some words, and that change nothing.
const CHOICES: [&str; 2] = ["romio_ds_read", "romio_ds_write"];

/// Hints that are true or false, and change nothing.
const FLAGS: [&str; 1] = ["romio_no_indep_rw"];

/// Hints that the standard wants to be the same at all members, and that act.
const SAME: &str = "cb_buffer_size, collective_buffering, file_perm, romio_cb_read or romio_cb_write";

impl FileHints {
    /// Takes what the program hints, and says what of it means nothing if `speaks`. `place` is where that happens.
    pub(crate) fn take(&mut self, given: &Info, speaks: bool, place: fmt::Arguments<'_>) {
        let refuse = |key: &str, value: &str, takes: &str, instead: fmt::Arguments<'_>| {
            if speaks {
                tell(key, value, takes, instead, place);
            }
        };
        if let Some(value) = given.get("cb_buffer_size") {
            match number(&value) {
                Some(bytes) => self.memory = bytes,
                None => refuse("cb_buffer_size", &value, "a number from 1 up", format_args!("{}", self.memory)),
            }
        }
        if let Some(value) = given.get("file_perm") {
            match u32::from_str_radix(value.trim(), 8) {
                Ok(bits) if bits <= 0o777 => self.permissions = bits,
                _ => refuse("file_perm", &value, "an octal number up to 777", format_args!("{:o}", self.permissions)),
            }
        }
        if let Some(value) = given.get("collective_buffering") {
            match value.trim() {
                "true" => (self.reads, self.writes) = (Together::Enable, Together::Enable),
                "false" => (self.reads, self.writes) = (Together::Disable, Together::Disable),
                _ => refuse("collective_buffering", &value, "true or false", format_args!("what was in force")),
            }
        }
        for (key, place) in [("romio_cb_read", &mut self.reads), ("romio_cb_write", &mut self.writes)] {
            if let Some(value) = given.get(key) {
                match choice(&value) {
                    Some(chosen) => *place = chosen,
                    None => refuse(key, &value, "automatic, enable or disable", format_args!("{}", place.name())),
                }
            }
        }
        let nothing = format_args!("nothing: the hint is ignored");
        let wrong = |key: &str, is_valid: &dyn Fn(&str) -> bool| given.get(key).filter(|value| !is_valid(value));
        for key in NUMBERS {
            if let Some(value) = wrong(key, &|value| number(value).is_some()) {
                refuse(key, &value, "a number from 1 up", nothing);
            }
        }
        for key in CHOICES {
            if let Some(value) = wrong(key, &|value| choice(value).is_some()) {
                refuse(key, &value, "automatic, enable or disable", nothing);
            }
        }
        for key in FLAGS {
            if let Some(value) = wrong(key, &|value| matches!(value.trim(), "true" | "false")) {
                refuse(key, &value, "true or false", nothing);
            }
        }
    }

    /// Whether members read, or write, together in collective calls.
    pub(crate) fn is_together(&self, is_read: bool) -> bool {
        let way = if is_read { self.reads } else { self.writes };
        way != Together::Disable
    }

    /// What has to be the same at all members, as a number.
    pub(crate) fn word(&self) -> u64 {
        let ways = (self.reads as u64) << 2 | self.writes as u64;
        self.memory ^ ways << 60 ^ u64::from(self.permissions) << 48
    }

    /// What `MPI_ERR_NOT_SAME` names.
    pub(crate) fn what() -> &'static str {
        SAME
    }

    /// What is in force, for `MPI_File_get_info`. The file was opened by `name`, and made if `is_new` may be so.
    pub(crate) fn report(&self, name: &str, is_new: bool) -> Info {
        let info = Info::default();
        let set = |key: &str, value: &str| {
            // Names may be longer than a value may be; a cut one would be that of another file.
            let _ = info.set(key, value);
        };
        set("romio_ds_read", "disable");
        set("romio_ds_write", "disable");
        set("romio_no_indep_rw", "false");
        set("romio_cb_read", self.reads.name());
        set("romio_cb_write", self.writes.name());
        set("cb_buffer_size", FixedText::<32>::of(format_args!("{}", self.memory)).as_str());
        if is_new {
            set("file_perm", FixedText::<32>::of(format_args!("{:o}", self.permissions)).as_str());
        }
        if !name.is_empty() {
            set("filename", name);
        }
        info
    }
}

/// A number from 1 up.
fn number(value: &str) -> Option<u64> {
    let number: u64 = value.trim().parse().ok()?;
    (1..=i64::MAX as u64).contains(&number).then_some(number)
}

fn choice(value: &str) -> Option<Together> {
    let all = [Together::Automatic, Together::Enable, Together::Disable];
    all.into_iter().find(|one| one.name() == value.trim())
}

/// Says once what a hint's value should be, and what is used instead.
#[cold]
fn tell(key: &str, value: &str, takes: &str, instead: fmt::Arguments<'_>, place: fmt::Arguments<'_>) {
    /// Most hints of which this is remembered: with more of them, the rest stays untold.
    const MOST: usize = 64;
    static TOLD: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());
    let mut told = TOLD.lock();
    if told.len() == MOST || told.iter().any(|(other, said)| other == key && said == value) {
        return;
    }
    told.push((key.into(), value.into()));
    drop(told);
    complain(format_args!("cohort: {place}: hint {key} is \"{value}\", and takes {takes}; used is {instead}\n"));
}

/// The hints in the file that `ROMIO_HINTS` names: a key and a value in each line.
pub(crate) fn of_site(name: &str, speaks: bool) -> Info {
    let info = Info::default();
    let text = match read(name) {
        Ok(text) => text,
        Err(errno) => {
            if speaks {
                let words = cohort_io::Words(errno);
                tell("ROMIO_HINTS", name, "a file's name", format_args!("no file"), format_args!("{words}"));
            }
            return info;
        }
    };
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let parts = line.split_once(char::is_whitespace).map(|(key, value)| (key, value.trim()));
        let is_taken = parts.is_some_and(|(key, value)| info.set(key, value).is_ok());
        if !is_taken && speaks {
            tell(name, line, "a key and a value", format_args!("nothing of it"), format_args!("ROMIO_HINTS"));
        }
    }
    info
}

/// The text of a file.
fn read(name: &str) -> Result<String, rustix::io::Errno> {
    let file = rustix::fs::openat(CWD, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let (mut bytes, mut length) = (alloc::vec![0; LONGEST], 0);
    while length < bytes.len() {
        match rustix::io::read(&file, &mut bytes[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    core::str::from_utf8(&bytes[..length]).map(String::from).map_err(|_| rustix::io::Errno::ILSEQ)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(pairs: &[(&str, &str)]) -> FileHints {
        let info = Info::default();
        for (key, value) in pairs {
            info.set(key, value).expect("short");
        }
        let mut hints = FileHints::default();
        hints.take(&info, false, format_args!("a test"));
        hints
    }

    #[test]
    fn what_has_a_meaning_is_in_force_and_nothing_else() {
        let hints = taken(&[("cb_buffer_size", "1048576"), ("file_perm", "640"), ("romio_cb_write", "disable")]);
        assert_eq!((hints.memory, hints.permissions), (1 << 20, 0o640));
        assert!(hints.is_together(true) && !hints.is_together(false));
        let report = hints.report("x", true);
        assert_eq!(report.get("cb_buffer_size").as_deref(), Some("1048576"));
        assert_eq!(report.get("file_perm").as_deref(), Some("640"));
        assert_eq!(report.get("romio_cb_read").as_deref(), Some("automatic"));
        assert_eq!(report.get("romio_cb_write").as_deref(), Some("disable"));
        assert_eq!(hints.report("x", false).get("file_perm"), None);
        for wrong in ["", "0", "-1", "many", "1e6", "99999999999999999999"] {
            assert_eq!(taken(&[("cb_buffer_size", wrong), ("file_perm", "9"), ("romio_cb_read", wrong)]), taken(&[]));
        }
        assert_eq!(taken(&[("cb_nodes", "4"), ("striping_unit", "65536")]), taken(&[]));
        assert!(!taken(&[("collective_buffering", "false")]).is_together(true));
        assert_ne!(taken(&[("collective_buffering", "false")]).word(), taken(&[]).word());
    }
}
