//! What a rank knows of the messages that it [lends](crate::protocol::lent).

/// How many looks in calls that wait or make progress a sender leaves a message to its receiver: some two microseconds,
/// about what two copies of the longest take.
const PATIENCE: u32 = 64;

/// How many messages go in blocks after one that was lent in vain, at first and at most.
const PAUSE: (u16, u16) = (8, 256);

/// The kinds of lent messages. What is found out about one kind says nothing about the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lent {
    /// Worth it only between cores without a common cache.
    Short,
    /// Worth it between all.
    Long,
}

impl Lent {
    /// Bytes of the shortest long one. Between cores with a common cache two copies of a shorter one take 0.6 to 0.7 of
    /// the time if its data is written anew, and no more if it is not.
    pub(crate) const LONG: u64 = 8 << 10;

    /// That of a message of so many bytes.
    pub(crate) fn of(bytes: u64) -> Self {
        if bytes < Self::LONG { Self::Short } else { Self::Long }
    }
}

/// What a rank knows of the messages that it lends.
#[derive(Debug)]
pub(crate) struct Lending {
    /// Of how many it does not know yet what has become of them.
    under_way: u32,
    /// How often it has looked since it has lent the first of these, or some were taken.
    looks: u32,
    /// By kind.
    pauses: [Pause; 2],
}

/// How long a rank does not lend messages of one kind.
#[derive(Clone, Copy, Debug)]
struct Pause {
    /// How many are sent in blocks before the next one is lent.
    left: u16,
    /// How many that was after the last one that was lent in vain; 0 if the last one was not.
    last: u16,
    /// Whether one is lent for a trial, as the last one was lent in vain.
    is_tried: bool,
}

impl Pause {
    /// None.
    const NONE: Self = Self { left: 0, last: 0, is_tried: false };
}

impl Lending {
    /// Nothing was lent yet.
    pub(crate) const NONE: Self = Self { under_way: 0, looks: 0, pauses: [Pause::NONE; 2] };

    /// Whether the next message of this kind goes in a block, as those before it were lent in vain. Counts it then.
    pub(crate) fn pauses(&mut self, kind: Lent) -> bool {
        let left = &mut self.pauses[kind as usize].left;
        let pauses = *left > 0;
        *left = left.saturating_sub(1);
        pauses
    }

    /// Whether the next message of this kind is to be lent.
    pub(crate) fn tries(&mut self, kind: Lent) -> bool {
        if self.pauses(kind) {
            return false;
        }
        // One alone, until it is known what has become of it.
        let pause = &mut self.pauses[kind as usize];
        *pause = Pause { left: pause.last, is_tried: pause.last > 0, ..*pause };
        true
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
    pub(crate) fn ended(&mut self, kind: Lent, is_good: bool) {
        self.under_way -= 1;
        let pause = &mut self.pauses[kind as usize];
        // Of those that were lent before the pause the first says enough.
        if pause.last == 0 || pause.is_tried {
            let last = if is_good { 0 } else { (pause.last * 2).clamp(PAUSE.0, PAUSE.1) };
            *pause = Pause { left: last, last, is_tried: false };
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Lends as many as are wanted, in a row, and says how many were.
    fn lend(lending: &mut Lending, kind: Lent, wanted: u32) -> u32 {
        let lent = (0..wanted).filter(|_| lending.tries(kind)).count() as u32;
        (0..lent).for_each(|_| lending.began());
        lent
    }

    #[test]
    fn after_messages_that_were_lent_in_vain_one_is_tried_at_a_time() {
        let mut lending = Lending::NONE;
        assert_eq!(lend(&mut lending, Lent::Short, 64), 64);
        (0..64).for_each(|_| lending.ended(Lent::Short, false));
        assert_eq!(lend(&mut lending, Lent::Short, 8), 0);
        assert_eq!(lend(&mut lending, Lent::Short, 8), 1);
        lending.ended(Lent::Short, false);
        assert_eq!(lend(&mut lending, Lent::Short, 16), 0);
        assert_eq!(lend(&mut lending, Lent::Short, 1), 1);
        lending.ended(Lent::Short, true);
        assert_eq!(lend(&mut lending, Lent::Short, 64), 64);
    }

    #[test]
    fn kinds_of_messages_do_not_know_of_each_other() {
        let mut lending = Lending::NONE;
        assert_eq!(lend(&mut lending, Lent::Short, 1), 1);
        lending.ended(Lent::Short, false);
        assert_eq!(lend(&mut lending, Lent::of(Lent::LONG), 64), 64);
        assert_eq!(lend(&mut lending, Lent::of(Lent::LONG - 1), 1), 0);
    }
}
