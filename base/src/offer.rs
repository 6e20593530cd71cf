//! What a program is told that has offered itself to a job before its code runs
//! ([`GATHERING`](crate::boot::GATHERING)). A closed connection means that it goes on where it is. If `pip-exec` has
//! made a rank of its program, and somebody else waits for its process, that process stands in for the rank: it hears
//! [`TAKEN`], and when the rank has ended two bytes: how, and the status or signal. A connection that is closed before
//! means that the job has ended.

/// The process stands in for a rank.
pub const TAKEN: u8 = b't';

/// The rank has ended with the status that follows.
pub const EXITED: u8 = b'e';

/// The signal that follows has killed the rank.
pub const KILLED: u8 = b'k';
