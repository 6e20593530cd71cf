//! The kinds of mistakes that `pip-exec --check` finds in programs, and how the node image tells the loader of them.

/// A kind of mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Mistake {
    /// A request is never completed.
    Requests,
    /// A message is never received.
    Unreceived,
    /// A buffer changes while an operation uses it.
    Changed,
    /// Buffers of operations under way overlap.
    Overlap,
    /// The types of a message and of its receive differ.
    Types,
    /// A message of bytes meets a receive of another type, or the reverse.
    Bytes,
    /// Threads break the level that the program has asked for.
    Threads,
    /// Accesses to a window meet in one epoch.
    Windows,
    /// Only buffering keeps the job from a deadlock.
    Deadlocks,
    /// A receive from any source takes one of several messages.
    Wildcards,
    /// An object is not freed.
    Leaks,
    /// A buffer is longer than its memory, or its memory is gone.
    Memory,
    /// Two windows have the same memory.
    Exposed,
    /// A call has failed, and the program went on.
    Ignored,
    /// A request is used in a way that its operation does not allow.
    Misused,
    /// A call on a request that helps nobody.
    Doubtful,
}

/// What is told of a kind.
#[derive(Debug, PartialEq, Eq)]
pub struct About {
    /// The kind.
    pub mistake: Mistake,
    /// Its name in options and findings.
    pub name: &'static str,
    /// Whether the standard forbids it.
    pub is_error: bool,
    /// What is wrong, as the first line of a finding.
    pub title: &'static str,
    /// Where the standard speaks of it.
    pub section: &'static str,
    /// What to do.
    pub help: &'static str,
}

const fn about(
    mistake: Mistake,
    name: &'static str,
    is_error: bool,
    title: &'static str,
    section: &'static str,
    help: &'static str,
) -> About {
    About { mistake, name, is_error, title, section, help }
}

/// All kinds, in the order of [`Mistake`].
pub static MISTAKES: [About; 16] = [
    about(
        Mistake::Requests,
        "requests",
        true,
        "an operation is never completed",
        "MPI-4.1, 3.7.3 and 11.2.2",
        "complete each request by MPI_Wait, MPI_Test or one of their kind, before its handle is overwritten",
    ),
    about(
        Mistake::Unreceived,
        "unreceived",
        true,
        "a message is never received",
        "MPI-4.1, 11.2.2",
        "receive it, or do not send it",
    ),
    about(
        Mistake::Changed,
        "changed",
        true,
        "a buffer changes while an operation uses it",
        "MPI-4.1, 3.7.2 and 12.3",
        "use the buffer after the operation is complete, or another one",
    ),
    about(
        Mistake::Overlap,
        "overlap",
        true,
        "buffers that MPI uses at once overlap",
        "MPI-4.1, 3.7.2, 5.1.11 and 6.5",
        "use buffers and layouts that share no bytes, or complete the first operation before",
    ),
    about(
        Mistake::Types,
        "types",
        true,
        "the types of a message and of its receive differ",
        "MPI-4.1, 3.3.1",
        "send and receive the same basic types in the same order",
    ),
    about(
        Mistake::Bytes,
        "bytes",
        false,
        "MPI_BYTE meets another type",
        "MPI-4.1, 3.3.1",
        "use MPI_BYTE at both ends, or the type of the data; bytes are not converted between machines",
    ),
    about(
        Mistake::Threads,
        "threads",
        true,
        "threads call MPI in a way that the program's thread level does not allow",
        "MPI-4.1, 11.2.1",
        "ask MPI_Init_thread for the level that the program needs",
    ),
    about(
        Mistake::Windows,
        "windows",
        true,
        "accesses to the same bytes of a window meet in one epoch",
        "MPI-4.1, 12.7",
        "access other bytes, use MPI_Accumulate with one operation, or synchronise between the two",
    ),
    about(
        Mistake::Deadlocks,
        "deadlocks",
        true,
        "sends wait for each other in a circle where messages are not buffered",
        "MPI-4.1, 3.5",
        "let one rank receive first, or use MPI_Sendrecv or nonblocking operations",
    ),
    about(
        Mistake::Wildcards,
        "wildcards",
        false,
        "which message a receive from MPI_ANY_SOURCE takes is a matter of time",
        "MPI-4.1, 3.5",
        "name the source, or look at MPI_SOURCE of the status",
    ),
    about(Mistake::Leaks, "leaks", false, "an object is never freed", "MPI-4.1, 2.5.1", "free it before MPI_Finalize"),
    about(
        Mistake::Memory,
        "memory",
        true,
        "a buffer is longer than its memory, or its memory is gone",
        "MPI-4.1, 3.2.2, 3.7.2 and 12.2",
        "pass a count that fits, and keep the memory until the operation is complete or the window is freed",
    ),
    about(
        Mistake::Exposed,
        "exposed",
        false,
        "two windows of a rank have the same memory",
        "MPI-4.1, 12.2.1",
        "make one window, or never access it by both at once",
    ),
    about(
        Mistake::Ignored,
        "ignored",
        false,
        "a call fails, and the program goes on",
        "MPI-4.1, 9.3",
        "look at what calls return, or leave errors to MPI_ERRORS_ARE_FATAL",
    ),
    about(
        Mistake::Misused,
        "misused",
        true,
        "a request is used in a way that its operation does not allow",
        "MPI-4.1, 3.9, 4.2 and 6.12",
        "start what is complete, mark each partition once after each start, and wait for collective operations",
    ),
    about(
        Mistake::Doubtful,
        "doubtful",
        false,
        "a call on a request is of no use, or takes away what the program needs to know",
        "MPI-4.1, 3.7.3, 3.8.4 and 3.9",
        "wait for what is started, wait for receives before they are freed, and do not cancel sends",
    ),
];

impl Mistake {
    /// What is told of it.
    #[must_use]
    pub fn about(self) -> &'static About {
        &MISTAKES[self as usize]
    }

    /// Its bit among [`Kinds`].
    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// Which kinds are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(u32);

impl Kinds {
    /// None.
    pub const NONE: Self = Self(0);
    /// All.
    pub const ALL: Self = Self((1 << MISTAKES.len()) - 1);

    /// Whether any is looked for.
    #[must_use]
    pub const fn is_any(self) -> bool {
        self.0 != 0
    }

    /// Whether this one is.
    #[must_use]
    pub const fn has(self, mistake: Mistake) -> bool {
        self.0 & mistake.bit() != 0
    }

    const fn without(self, mistake: Mistake) -> Self {
        Self(self.0 & !mistake.bit())
    }
}

/// What a value of `COHORT_CHECK` that begins with `all` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// What is looked for.
    pub kinds: Kinds,
    /// Findings leave the exit status alone.
    pub only_warns: bool,
    /// Files that the findings are written to.
    pub files: Files<'a>,
    /// A file with findings that are not to be told.
    pub suppress: Option<&'a str>,
}

/// Files for programs that read findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Files<'a> {
    /// In JSON of our own.
    pub json: Option<&'a str>,
    /// As SARIF 2.1.0 has it.
    pub sarif: Option<&'a str>,
    /// As JUnit has the outcomes of tests.
    pub junit: Option<&'a str>,
}

/// The first word of a value that asks for the checker.
const ALL: &str = "all";

/// Reads a value such as `all,no-leaks,warn,json:FILE`; `None` if it is no such value.
#[must_use]
pub fn asked(value: &str) -> Option<Asked<'_>> {
    let mut words = value.split(',');
    if words.next() != Some(ALL) {
        return None;
    }
    let mut asked = Asked { kinds: Kinds::ALL, only_warns: false, files: Files::default(), suppress: None };
    for word in words {
        if word == "warn" {
            asked.only_warns = true;
        } else if let Some(name) = word.strip_prefix("no-") {
            let about = MISTAKES.iter().find(|about| about.name == name)?;
            asked.kinds = asked.kinds.without(about.mistake);
        } else {
            let (what, file) = word.split_once(':').filter(|(_, file)| !file.is_empty())?;
            let place = match what {
                "json" => &mut asked.files.json,
                "sarif" => &mut asked.files.sarif,
                "junit" => &mut asked.files.junit,
                "suppress" => &mut asked.suppress,
                _ => return None,
            };
            *place = Some(file);
        }
    }
    Some(asked)
}

/// Behind each field of a finding.
pub const FIELD: char = '\u{1f}';

/// Behind each finding: the number of its kind, how often it was found, the values, and for each place the rank, what
/// it did there, the MPI function, and the address behind the call.
pub const RECORD: char = '\u{1e}';

/// Instead of the number of a kind: what follows is said of the checker itself.
pub const NOTE: &str = "note";

/// Instead of the number of a kind: what calls at a place send to other nodes, or receive from them. Its number, the
/// rank, the MPI function, the bytes of an element (0: nothing is to be compared), whether these are `MPI_BYTE`, the
/// type, and the address behind the call.
pub const SHAPE: &str = "shape";

/// The same: messages of one rank to another with one tag. Whether they were sent, which they are, and runs of equal
/// ones: the number of the shape, the bytes, a digest of the types, and how many.
///
/// Which they are: the context, the receiver and the sender in the job, the sender and the receiver in the
/// communicator, the tag, and whether they are partitioned.
pub const STREAM: &str = "stream";

/// Instead of the bytes of a run: it is not known how many they are.
pub const ANY_BYTES: u64 = i64::MAX as u64;

/// The same: of such messages, or of all in a context to a receiver, it is not known what was sent or received.
pub const UNSURE: &str = "unsure";

/// The same: a rank of the job has ended its use of MPI.
pub const ENDED: &str = "ended";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_their_places() {
        for (place, about) in MISTAKES.iter().enumerate() {
            assert_eq!(about.mistake as usize, place);
        }
    }

    #[test]
    fn values_are_read() {
        let all = Asked { kinds: Kinds::ALL, only_warns: false, files: Files::default(), suppress: None };
        assert_eq!(asked("all"), Some(all));
        let some = asked("all,no-leaks,warn,json:a.json,sarif:b,suppress:c:d").expect("valid");
        assert!(some.only_warns && some.files.json == Some("a.json") && some.files.sarif == Some("b"));
        assert_eq!((some.files.junit, some.suppress), (None, Some("c:d")));
        assert!(!some.kinds.has(Mistake::Leaks) && some.kinds.has(Mistake::Bytes));
        for wrong in ["", "on", "alle", "all,no-", "all,json:", "all,xml:a", "all,leaks", "warn"] {
            assert_eq!(asked(wrong), None, "{wrong}");
        }
    }
}
