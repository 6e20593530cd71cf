//! Why a call fails: an error class or a code that the program added, and in words what is wrong.

use alloc::boxed::Box;
use cohort_abi::neutral;
use cohort_abi::parameters::NullArray;
use cohort_base::text::FixedText;
use cohort_engine::{EngineError, coll, reserve};
use core::fmt;
use core::num::NonZeroI32;

/// What an operation on objects gives, or why it fails.
pub type Outcome<T> = Result<T, Error>;

/// Which argument, which value, what would be valid.
type Detail = FixedText<320>;

/// An error of the standard or of the program, which carries its facts to whoever prints it.
///
/// A small integer for the class, so that calls which fail as a matter of course allocate nothing; the words
/// are behind a box, on the heap of the rank.
#[must_use]
#[derive(Clone)]
pub struct Error {
    code: NonZeroI32,
    detail: Option<Box<Detail>>,
}

impl Error {
    /// An error of this class (or added code), and what is wrong.
    #[cold]
    pub fn new(class: i32, what: fmt::Arguments<'_>) -> Self {
        Self { detail: Some(Box::new(Detail::of(what))), ..Self::from(class) }
    }

    /// The error class or added code; never `MPI_SUCCESS`.
    #[must_use]
    pub fn code(&self) -> i32 {
        self.code.get()
    }

    /// What is wrong, in words; may be empty.
    #[must_use]
    pub fn detail(&self) -> &str {
        self.detail.as_ref().map_or("", |detail| detail.as_str())
    }
}

impl From<i32> for Error {
    /// An error of this class (or added code) that needs no words.
    #[inline]
    fn from(class: i32) -> Self {
        const UNKNOWN: NonZeroI32 = NonZeroI32::new(neutral::ERR_UNKNOWN).unwrap();
        Self { code: NonZeroI32::new(class).unwrap_or(UNKNOWN), detail: None }
    }
}

impl From<NullArray> for Error {
    #[cold]
    fn from(_: NullArray) -> Self {
        neutral::ERR_ARG.into()
    }
}

impl From<EngineError> for Error {
    #[cold]
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::OutOfMemory => neutral::ERR_NO_MEM.into(),
            EngineError::Truncated { .. } => Self::new(neutral::ERR_TRUNCATE, format_args!("{error}")),
            EngineError::Disagreement(number) => {
                let words = coll::words_of(number);
                Self::new(neutral::ERR_NOT_SAME, format_args!("{words}"))
            }
            EngineError::Failed => neutral::MPIX_ERR_PROC_FAILED.into(),
            EngineError::Pending => neutral::MPIX_ERR_PROC_FAILED_PENDING.into(),
            EngineError::Revoked => neutral::MPIX_ERR_REVOKED.into(),
            EngineError::Unsupported => neutral::ERR_UNSUPPORTED_OPERATION.into(),
            _ => neutral::ERR_INTERN.into(),
        }
    }
}

/// Refuses what has been made, or is to be, when memory is at its end.
///
/// # Errors
/// `MPI_ERR_NO_MEM`.
pub fn has_memory() -> Outcome<()> {
    match reserve::is_short() {
        true => Err(neutral::ERR_NO_MEM.into()),
        false => Ok(()),
    }
}

impl PartialEq for Error {
    /// The same class or code, whatever the words.
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}: {}", self.code, self.detail())
    }
}

/// The error of a call with a wrong argument: its class, or an error found further down, and in words what is wrong:
/// `Err(blame(neutral::ERR_TAG, format_args!("the tag is {tag}")))`.
#[cold]
pub fn blame(class: impl Into<Error>, what: fmt::Arguments<'_>) -> Error {
    Error::new(class.into().code(), what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_keeps_its_own_words() {
        let threads: [_; 2] = core::array::from_fn(|thread| {
            std::thread::spawn(move || {
                for turn in 0..1000 {
                    let what = format_args!("turn {turn} of thread {thread}");
                    let error = blame(neutral::ERR_TAG, what);
                    let kept: Outcome<()> = core::hint::black_box(Err(error));
                    std::thread::yield_now();
                    let Err(kept) = kept else {
                        panic!("it is an error");
                    };
                    assert_eq!(kept.code(), neutral::ERR_TAG);
                    let expected = std::format!("turn {turn} of thread {thread}");
                    assert_eq!(kept.detail(), expected);
                }
            })
        });
        threads.into_iter().for_each(|it| it.join().expect("joined"));
    }

    #[test]
    fn an_error_is_small_and_never_success() {
        assert_eq!(size_of::<Outcome<()>>(), 16);
        assert_eq!(Error::from(neutral::SUCCESS).code(), neutral::ERR_UNKNOWN);
        let error = EngineError::Truncated { message: 9, buffer: 8 };
        let error = Error::from(error);
        assert_eq!(error.code(), neutral::ERR_TRUNCATE);
        assert!(error.detail().contains("9 bytes") && error.detail().contains("8 bytes"));
    }
}
