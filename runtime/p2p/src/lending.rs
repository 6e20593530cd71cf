//! What a rank knows of the messages that it [lends](crate::protocol::lent).

/// How many looks in calls that wait or make progress a sender leaves a message to its receiver: some two microseconds,
/// about what two copies of the longest take.
const PATIENCE: u32 = 64;

/// How many messages go in blocks after one that was lent in vain, at first and at most.
const PAUSE: (u16, u16) = (8, 256);

/// What a rank knows of the messages that it lends.
#[derive(Debug)]
pub(crate) struct Lending {
    /// Of how many it does not know yet what has become of them.
    under_way: u32,
    /// How often it has looked since it has lent the first of these, or some were taken.
    looks: u32,
    /// How many are sent in blocks before the next one is lent.
    left: u16,
    /// How many that was after the last one that was lent in vain; 0 if the last one was not.
    pause: u16,
}

impl Lending {
    /// Nothing was lent yet.
    pub(crate) const NONE: Self = Self { under_way: 0, looks: 0, left: 0, pause: 0 };

    /// Whether the next message is to be lent.
    pub(crate) fn tries(&mut self) -> bool {
        match self.left {
            0 => true,
            left => {
                self.left = left - 1;
                false
            }
        }
    }

    /// One more is lent.
    pub(crate) fn began(&mut self) {
        if self.under_way == 0 {
            self.looks = 0;
        }
        self.under_way += 1;
    }

    /// Whether there are any.
    #[inline]
    pub(crate) fn is_under_way(&self) -> bool {
        self.under_way != 0
    }

    /// Looks for them once more. Whether that was often enough.
    pub(crate) fn is_late(&mut self) -> bool {
        self.looks += 1;
        let is_late = self.looks > PATIENCE;
        if is_late {
            self.looks = 0;
        }
        is_late
    }

    /// One that was lent is not under way any more. Whether that was worth it: its receiver was there in time, and the
    /// program sends the same data again and again. Who writes it anew would wait for each line that its receiver has
    /// read.
    pub(crate) fn ended(&mut self, is_good: bool) {
        self.under_way -= 1;
        if is_good {
            self.pause = 0;
        } else if self.left == 0 {
            self.pause = (self.pause * 2).clamp(PAUSE.0, PAUSE.1);
            self.left = self.pause;
        }
    }
}
