//! One-sided communication as a part of the engine.

use crate::Rma;
use crate::arrival;
use crate::epoch::CopyRef;
use crate::failing;
use crate::window::Windows;
use cohort_base::{LocalRank, Peer};
use cohort_core::list::List;
use cohort_core::memory::{Cursor, Plan};
use cohort_core::subsystem::Subsystem;
use cohort_core::{Claim, Look, Node, Piece, Turn, Work};
use cohort_net::wire::{Header, PacketKind};
use cohort_net::{Note, Receiver};

// SAFETY: no other subsystem has this place.
unsafe impl Subsystem for Rma {
    const SLOT: usize = 3;
    type Node = ();
    type Shared = ();
    type State = Windows;
    type Tables = ();

    fn tables(_cursor: &mut Cursor, _plan: &Plan) {}

    fn node(_node: &'static Node, _tables: &mut ()) {}

    fn rank(_node: &'static Node, _id: LocalRank, _tables: &mut ()) -> ((), Windows) {
        let state = Windows { windows: List::empty(), waiting_windows: List::empty() };
        ((), state)
    }

    #[inline]
    fn turn(claim: &mut Claim<'_>, look: Look, turn: &mut Turn) {
        if look.is_within_node() && !claim.of::<Self>().waiting_windows.is_empty() {
            sweep_waiting(claim, turn);
        }
    }

    #[inline]
    fn is_idle(claim: &mut Claim<'_>) -> bool {
        claim.of::<Self>().waiting_windows.is_empty()
    }

    fn claimed(claim: &mut Claim<'_>) {
        failing::sweep(claim);
    }

    fn is_unused(claim: &mut Claim<'_>) -> bool {
        claim.of::<Self>().windows.is_empty()
    }
}

/// Sweeps the windows of the claimed rank that wait for something.
fn sweep_waiting(claim: &mut Claim<'_>, turn: &mut Turn) {
    let mut next = claim.of::<Rma>().waiting_windows.first();
    while let Some(window) = next {
        // It is taken before this one may leave the list.
        next = claim.of::<Rma>().waiting_windows.next(window);
        let mut sweep = window.sweep(claim);
        sweep.run();
        turn.moved |= sweep.moved;
        if turn.work.is_none() {
            turn.work = sweep.take_work().map(Work::new);
        }
        sweep.leave_if_idle();
    }
}

impl Piece for CopyRef {
    fn run(&self, pieces: u32) -> u64 {
        self.work(pieces)
    }
}

impl Receiver for Rma {
    fn packet(claim: &mut Claim<'_>, from: Peer, header: &Header, body: &[u8]) -> Option<u64> {
        let is_note = header.kind() == Some(PacketKind::Window);
        is_note.then(|| arrival::arrive(claim, from, &Note::of(header), body))
    }
}
