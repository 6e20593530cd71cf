//! The two sides of a message, when memory of one is protected.

use cohort_core::guard::Fault;

/// Whose memory is protected; a bit each.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Sender = 1,
    Receiver = 2,
}

impl Side {
    /// Whose memory a copy met that writes at `written`.
    pub(crate) fn of(fault: Fault, written: *mut u8) -> Self {
        match fault {
            Fault::Read => Self::Sender,
            Fault::Write => Self::Receiver,
            Fault::Unknown if written.addr() >> cohort_arch::ADDRESS_BITS != 0 => Self::Receiver,
            Fault::Unknown => Self::Sender,
        }
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }

    /// Who opens its memory first, if both have to.
    pub(crate) fn first_of(sides: u32) -> Self {
        match Self::Receiver.is_in(sides) {
            true => Self::Receiver,
            false => Self::Sender,
        }
    }

    pub(crate) fn is_in(self, sides: u32) -> bool {
        sides & self as u32 != 0
    }
}
