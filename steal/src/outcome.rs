//! What tries, receives and windows come to: policies go by it, and counters count it.

/// What became of one try to progress somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The claim was taken: the owner, or another worker, is at it.
    Busy,
    /// Nothing was there.
    Idle,
    /// Something moved.
    Progressed {
        /// Bytes of messages that were copied.
        bytes: u64,
    },
}

/// How a receive that was left behind met its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchTiming {
    /// Somebody met it while the rank computed.
    Helped,
    /// The rank found it there when it came to wait.
    Late,
    /// It came while the rank waited.
    InTime,
}

/// What to do with the fallback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing.
    Keep,
    /// Use it from now on.
    TurnOn,
    /// Do without it from now on.
    TurnOff,
}
