//! What receivers find out about the data of messages that they copy from its sender's buffer, for the next ones
//! ([`crate::protocol::pipelined`] and [`crate::protocol::lent`] look and act upon it).

/// What the receiver of such a message found out about its data.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reuse {
    /// Nothing: it did not look.
    Nothing,
    /// The program has sent it before, and has not written to it since.
    AsItWas,
    /// The program has written to it.
    Written,
    /// Nothing, as the sender is so near that a block is as good.
    Near,
}

/// After so many messages in a row of one kind only some are looked at: a look costs the sender two lines, and the
/// receiver the time that they take.
const SURE: u32 = 8;

/// Messages in a row of which the same was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alike {
    found: Reuse,
    count: u32,
}

impl Alike {
    /// None yet.
    pub(crate) const NONE: Self = Self { found: Reuse::Nothing, count: 0 };

    /// What the next message's data is taken for without a look, if it is.
    /// One in `every` is looked at.
    pub(crate) fn expected(self, every: u32) -> Option<Reuse> {
        let is_known = self.count >= SURE && !self.count.is_multiple_of(every);
        is_known.then_some(self.found)
    }

    /// With the next message.
    pub(crate) fn and(self, found: Reuse) -> Self {
        let count = match self.found == found {
            true => self.count.wrapping_add(1),
            false => 1,
        };
        Self { found, count }
    }
}
