//! Error classes, codes and their texts (MPI 9.4 and 9.5).
//!
//! Inside the runtime an error is its class. Codes that the program adds are numbered from
//! [`neutral::FIRST_ADDED_ERROR`] up; a class is a code of itself.

use crate::failure::{Outcome, has_memory};
use crate::name::Name;
use alloc::string::String;
use alloc::vec::Vec;
use cohort_abi::neutral;
use spin::Mutex;

struct Added {
    class: i32,
    text: Name,
    removed: bool,
    /// Codes of this class that are not removed, the class itself apart.
    codes: usize,
}

/// The errors that the program of one rank added. The last one is not removed; what was removed behind it is
/// forgotten, and its numbers are given again.
#[derive(Default)]
pub struct ErrorTable {
    added: Mutex<Vec<Added>>,
    /// Why the last call failed with each class of [`TOLD`], which its text tells.
    reasons: Mutex<[String; TOLD.len()]>,
}

/// Classes whose reasons lie outside of the program: with processes that are to be started, or met.
const TOLD: [i32; 4] = [neutral::ERR_SPAWN, neutral::ERR_PORT, neutral::ERR_NAME, neutral::ERR_SERVICE];

impl ErrorTable {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self { added: Mutex::new(Vec::new()), reasons: Mutex::new([const { String::new() }; TOLD.len()]) }
    }

    fn index(code: i32) -> Option<usize> {
        usize::try_from(code.checked_sub(neutral::FIRST_ADDED_ERROR)?).ok()
    }

    fn add(&self, class: Option<i32>) -> i32 {
        let mut added = self.added.lock();
        let code = neutral::FIRST_ADDED_ERROR + added.len() as i32;
        if let Some(class) = class.and_then(Self::index).and_then(|it| added.get_mut(it)) {
            class.codes += 1;
        }
        added.push(Added { class: class.unwrap_or(code), text: Name::default(), removed: false, codes: 0 });
        code
    }

    /// `MPI_Add_error_class`.
    pub fn add_class(&self) -> i32 {
        self.add(None)
    }

    /// `MPI_Add_error_code`.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` when `class` is no error class.
    pub fn add_code(&self, class: i32) -> Outcome<i32> {
        if self.class_of(class) == Some(class) { Ok(self.add(Some(class))) } else { Err(neutral::ERR_ARG.into()) }
    }

    /// `MPI_Add_error_string`; an empty text removes it (`MPI_Remove_error_string`).
    ///
    /// # Errors
    /// `MPI_ERR_ARG` for a code of the standard or none at all, `MPI_ERR_NO_MEM`.
    pub fn set_text(&self, code: i32, text: &[u8]) -> Outcome<()> {
        has_memory()?;
        let mut added = self.added.lock();
        let entry = Self::index(code).and_then(|index| added.get_mut(index));
        match entry {
            Some(entry) if !entry.removed => {
                entry.text.set(text);
                Ok(())
            }
            _ => Err(neutral::ERR_ARG.into()),
        }
    }

    /// `MPI_Remove_error_class` and `MPI_Remove_error_code`.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` for a code that the program did not add, that has a text, or a class with
    /// codes.
    pub fn remove(&self, code: i32, is_class: bool) -> Outcome<()> {
        let mut added = self.added.lock();
        let index = Self::index(code).ok_or(neutral::ERR_ARG)?;
        let entry = added.get_mut(index).ok_or(neutral::ERR_ARG)?;
        let in_use = entry.codes > 0 || !entry.text.text().is_empty();
        let class = entry.class;
        if entry.removed || in_use || (class == code) != is_class {
            return Err(neutral::ERR_ARG.into());
        }
        entry.removed = true;
        if !is_class && let Some(class) = Self::index(class).and_then(|it| added.get_mut(it)) {
            class.codes -= 1;
        }
        while added.pop_if(|last| last.removed).is_some() {}
        Ok(())
    }

    /// `MPI_Error_class`; `None` for a number that is no error code.
    #[must_use]
    pub fn class_of(&self, code: i32) -> Option<i32> {
        if (neutral::SUCCESS..=neutral::ERR_LASTCODE).contains(&code) {
            return standard_text(code).map(|_| code);
        }
        let added = self.added.lock();
        let entry = added.get(Self::index(code)?)?;
        (!entry.removed).then_some(entry.class)
    }

    /// A call fails with this code, for this reason.
    pub fn note(&self, code: i32, reason: &str) {
        if let Some(place) = TOLD.iter().position(|&told| told == code)
            && has_memory().is_ok()
        {
            self.reasons.lock()[place] = reason.into();
        }
    }

    /// The text of an error, for messages.
    #[must_use]
    pub fn text(&self, code: i32) -> Option<String> {
        if let Some(text) = standard_text(code) {
            let mut text = String::from(text);
            let reasons = self.reasons.lock();
            let place = TOLD.iter().position(|&told| told == code);
            if let Some(reason) = place.map(|place| &reasons[place]).filter(|reason| !reason.is_empty()) {
                text.push_str(": ");
                text.push_str(reason);
            }
            return Some(text);
        }
        let added = self.added.lock();
        let entry = added.get(Self::index(code)?)?;
        (!entry.removed).then(|| entry.text.text())
    }

    /// `MPI_Error_string`: the text as the program has given it, where it has.
    #[must_use]
    pub fn given(&self, code: i32) -> Option<Vec<u8>> {
        let own = Self::index(code).and_then(|index| Some(self.added.lock().get(index)?.text.given()));
        own.filter(|text| !text.is_empty()).or_else(|| self.text(code).map(String::into_bytes))
    }

    /// The last code in use (`MPI_LASTUSEDCODE`).
    #[must_use]
    pub fn last_used(&self) -> i32 {
        let added = self.added.lock();
        match added.len() {
            0 => neutral::ERR_LASTCODE,
            count => neutral::FIRST_ADDED_ERROR + count as i32 - 1,
        }
    }
}

/// The name in C of a constant of this name.
macro_rules! c_name {
    (MPIX_ERR_PROC_FAILED) => {
        "MPIX_ERR_PROC_FAILED"
    };
    (MPIX_ERR_PROC_FAILED_PENDING) => {
        "MPIX_ERR_PROC_FAILED_PENDING"
    };
    (MPIX_ERR_REVOKED) => {
        "MPIX_ERR_REVOKED"
    };
    ($name:ident) => {
        concat!("MPI_", stringify!($name))
    };
}

macro_rules! texts {
    ($($name:ident $text:literal;)*) => {
        /// Name and meaning of an error class of the standard.
        #[must_use]
        pub fn standard_text(class: i32) -> Option<&'static str> {
            match class {
                $(neutral::$name => Some(concat!(c_name!($name), ": ", $text)),)*
                _ => None,
            }
        }
    };
}

texts! {
    SUCCESS "no error";
    ERR_BUFFER "invalid buffer pointer";
    ERR_COUNT "invalid count";
    ERR_TYPE "invalid datatype";
    ERR_TAG "invalid tag";
    ERR_COMM "invalid communicator";
    ERR_RANK "invalid rank";
    ERR_REQUEST "invalid request";
    ERR_ROOT "invalid root";
    ERR_GROUP "invalid group";
    ERR_OP "invalid operation, or one that does not take this datatype";
    ERR_TOPOLOGY "invalid topology";
    ERR_DIMS "invalid dimensions";
    ERR_ARG "invalid argument";
    ERR_UNKNOWN "unknown error";
    ERR_TRUNCATE "the message is longer than the receive buffer";
    ERR_OTHER "other error";
    ERR_INTERN "internal error of the runtime";
    ERR_PENDING "the request is not complete yet";
    ERR_IN_STATUS "look at the error fields of the statuses";
    ERR_ACCESS "permission denied";
    ERR_AMODE "invalid access mode";
    ERR_ASSERT "invalid assert argument";
    ERR_BAD_FILE "invalid file name";
    ERR_BASE "invalid base address";
    ERR_CONVERSION "error in a data conversion function";
    ERR_DISP "invalid displacement";
    ERR_DUP_DATAREP "data representation defined twice";
    ERR_FILE_EXISTS "the file exists";
    ERR_FILE_IN_USE "the file is in use";
    ERR_FILE "invalid file handle";
    ERR_INFO_KEY "info key empty or too long";
    ERR_INFO_NOKEY "no such info key";
    ERR_INFO_VALUE "invalid info value";
    ERR_INFO "invalid info object";
    ERR_IO "input/output error";
    ERR_KEYVAL "invalid attribute key";
    ERR_LOCKTYPE "invalid lock type";
    ERR_NAME "the service name is not published";
    ERR_NO_MEM "out of memory";
    ERR_NOT_SAME "an argument or the order of calls differs among the processes";
    ERR_NO_SPACE "no space left";
    ERR_NO_SUCH_FILE "no such file";
    ERR_PORT "invalid port name";
    ERR_QUOTA "quota exceeded";
    ERR_READ_ONLY "the file or file system is read-only";
    ERR_RMA_CONFLICT "conflicting accesses to a window";
    ERR_RMA_SYNC "one-sided calls synchronised wrongly";
    ERR_SERVICE "invalid service name";
    ERR_SIZE "invalid size";
    ERR_SPAWN "processes could not be started";
    ERR_UNSUPPORTED_DATAREP "data representation not supported";
    ERR_UNSUPPORTED_OPERATION "not implemented by this runtime";
    ERR_WIN "invalid window";
    ERR_RMA_RANGE "outside of the window";
    ERR_RMA_ATTACH "memory cannot be attached";
    ERR_RMA_SHARED "memory cannot be shared";
    ERR_RMA_FLAVOR "wrong kind of window";
    ERR_SESSION "invalid session";
    ERR_PROC_ABORTED "a process has aborted";
    MPIX_ERR_PROC_FAILED "a process has failed";
    MPIX_ERR_PROC_FAILED_PENDING "a process has failed that might have sent the message";
    MPIX_ERR_REVOKED "the communicator was revoked";
    ERR_VALUE_TOO_LARGE "value too large for its type";
    ERR_ERRHANDLER "invalid error handler";
    ERR_ABI "not possible in this ABI";
    T_ERR_CANNOT_INIT "the tool interface cannot be opened now";
    T_ERR_NOT_ACCESSIBLE "not accessible";
    T_ERR_NOT_INITIALIZED "the tool interface is not open";
    T_ERR_NOT_SUPPORTED "not supported";
    T_ERR_MEMORY "out of memory";
    T_ERR_INVALID "invalid argument";
    T_ERR_INVALID_INDEX "invalid index";
    T_ERR_INVALID_ITEM "invalid item";
    T_ERR_INVALID_SESSION "invalid session";
    T_ERR_INVALID_HANDLE "invalid handle";
    T_ERR_INVALID_NAME "no variable, event or category has this name";
    T_ERR_OUT_OF_HANDLES "no handles left";
    T_ERR_OUT_OF_SESSIONS "no sessions left";
    T_ERR_CVAR_SET_NOT_NOW "the variable cannot be set now";
    T_ERR_CVAR_SET_NEVER "the variable cannot be set";
    T_ERR_PVAR_NO_WRITE "the variable cannot be written";
    T_ERR_PVAR_NO_STARTSTOP "the variable cannot be started or stopped";
    T_ERR_PVAR_NO_ATOMIC "the variable cannot be read and reset in one step";
    ERR_LASTCODE "last error code";
}
