//! What a turn finds: work that is done outside of any claim, in pieces that several tasks share; and what it is told.

use core::fmt;
use core::mem::MaybeUninit;

/// A reference to such work, as a subsystem has it: long messages, collectives, operations on
/// windows. Dropping it gives the reference back.
pub trait Piece {
    /// Does up to `pieces` pieces. Returns the bytes moved. For any task, outside of any claim.
    fn run(&self, pieces: u32) -> u64;

    /// Whether there are pieces of a message that nobody has taken: a hint that may be stale.
    fn is_left(&self) -> bool {
        false
    }

    /// Whether this is a message whose sender is in a call, and copies itself: a hint that may be stale.
    fn is_of_a_waiting_sender(&self) -> bool {
        false
    }
}

/// Words that a reference may take.
const WORDS: usize = 4;

/// Room for any [`Piece`] of up to [`WORDS`] words. It is made by a holder of a claim and runs on
/// the same task, so it is not `Send`.
pub struct Work {
    room: [MaybeUninit<usize>; WORDS],
    /// How the value in the room is seen.
    view: fn(*mut usize) -> *mut dyn Piece,
    not_send: core::marker::PhantomData<*mut ()>,
}

/// A value of type `P` in a room.
fn view<P: Piece + 'static>(room: *mut usize) -> *mut dyn Piece {
    room.cast::<P>()
}

impl Work {
    /// This work.
    #[inline]
    #[must_use]
    pub fn new<P: Piece + 'static>(piece: P) -> Self {
        const {
            assert!(size_of::<P>() <= WORDS * size_of::<usize>());
            assert!(align_of::<P>() <= align_of::<usize>());
        }
        let mut room = [MaybeUninit::uninit(); WORDS];
        // SAFETY: the room is large enough and aligned; the value is moved into it.
        unsafe { room.as_mut_ptr().cast::<P>().write(piece) };
        Self { room, view: view::<P>, not_send: core::marker::PhantomData }
    }

    #[inline]
    fn piece(&self) -> &dyn Piece {
        // SAFETY: the room holds what it is seen as, until this is dropped.
        unsafe { &*(self.view)(self.room.as_ptr().cast_mut().cast()) }
    }

    /// Does up to `pieces` pieces. Returns the bytes moved. Outside of any claim.
    pub fn run(&self, pieces: u32) -> u64 {
        self.piece().run(pieces)
    }

    /// [`Piece::is_left`].
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.piece().is_left()
    }

    /// [`Piece::is_of_a_waiting_sender`].
    #[must_use]
    pub fn is_of_a_waiting_sender(&self) -> bool {
        self.piece().is_of_a_waiting_sender()
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // SAFETY: as in `piece`; the value is dropped once.
        unsafe { (self.view)(self.room.as_mut_ptr().cast()).drop_in_place() };
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").finish_non_exhaustive()
    }
}

/// Why a rank that computes needs somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It has a message that is long, or was long in a queue.
    Message,
    /// The same; the message is the sender's RTS of this number to it.
    Rts(u32),
    /// A partner waits for what it is late with, which no message of its own tells.
    Late,
    /// Something of another node has come for it.
    Network,
}

/// What a policy remembers of something that a program left behind while it computes;
/// [`Mark::NONE`] if the policy does not care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(pub u8);

impl Mark {
    /// Not watched.
    pub const NONE: Self = Self(0);
}

/// Whose turn it is, and so what it looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The rank's own: everything. One that waits, and has nothing else to do, looks longer for what it expects.
    Own {
        /// Whether it waits.
        waits: bool,
    },
    /// The rank's own before it sleeps: everything.
    Last,
    /// A thief's, at what needs no network.
    WithinNode,
    /// A thief's, at the network and what waits for it.
    Network,
}

impl Look {
    /// Whether it is the rank's own.
    #[inline]
    #[must_use]
    pub fn is_own(self) -> bool {
        matches!(self, Self::Own { .. } | Self::Last)
    }

    /// Whether the turn looks at what comes and goes within the node.
    #[inline]
    #[must_use]
    pub fn is_within_node(self) -> bool {
        self != Self::Network
    }

    /// Whether the turn looks at the network.
    #[inline]
    #[must_use]
    pub fn is_at_network(self) -> bool {
        self != Self::WithinNode
    }
}

/// What a turn did.
#[derive(Debug, Default)]
pub struct Turn {
    /// Whether anything moved.
    pub moved: bool,
    /// Data of some rank of the node has moved on between nodes, so more may follow soon.
    pub flows: bool,
    /// Bytes that were copied.
    pub bytes: u64,
    /// Something to help with, outside of the claim.
    pub work: Option<Work>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use std::rc::Rc;

    struct Counted(Rc<Cell<u64>>);

    impl Piece for Counted {
        fn run(&self, pieces: u32) -> u64 {
            self.0.set(self.0.get() + u64::from(pieces));
            self.0.get()
        }

        fn is_left(&self) -> bool {
            self.0.get() < 3
        }
    }

    #[test]
    fn it_runs_and_drops_what_it_was_made_of() {
        let count = Rc::new(Cell::new(0));
        let work = Work::new(Counted(count.clone()));
        assert_eq!(work.run(2), 2);
        assert!(work.is_left() && !work.is_of_a_waiting_sender());
        assert_eq!(work.run(1), 3);
        assert!(!work.is_left());
        assert_eq!(Rc::strong_count(&count), 2);
        drop(work);
        assert_eq!(Rc::strong_count(&count), 1);
    }
}
