//! What the members of a pool post, and what the last one of them adds.

use super::operand::Operand;
use crate::args::{Call, Form};
use crate::board::Board;
use crate::meeting::{self, Meeting};
use cohort_base::sync::atomic::{AtomicBool, AtomicU32};
use cohort_core::list::{Linked, Links, List};
use cohort_core::rank::Rank;
use cohort_core::record::RecordRef;
use cohort_core::request::Request;
use core::cell::Cell;
use core::fmt;

/// What one member posts.
pub(crate) struct Part {
    /// The arguments; what they refer to lives until the request is complete.
    pub(crate) call: Call<'static>,
    pub(crate) operand: Operand,
    pub(crate) weight: Weight,
    /// Null of a member that waits at its row, or not at all.
    pub(crate) request: *mut Listed,
    /// Whether it has come with nothing, for the sake of the others.
    pub(crate) is_empty: bool,
    pub(crate) rank: &'static Rank,
    pub(crate) truncated: AtomicBool,
    /// What it is called as, if the members' arguments are to be compared.
    pub(crate) form: Option<Form>,
    /// The number of a disagreement that was found, or 0.
    pub(crate) disagreement: AtomicU32,
}

impl Part {
    /// Writes a fresh part where it is to be, field by field: the arguments are long, and copied only once.
    ///
    /// # Safety
    /// `room` is that of a part.
    #[inline]
    pub(crate) unsafe fn write(room: *mut Self, call: &Call<'static>, rest: Rest) {
        // SAFETY: the caller's promise.
        unsafe {
            (&raw mut (*room).call).write(*call);
            (&raw mut (*room).operand).write(rest.operand);
            (&raw mut (*room).weight).write(rest.weight);
            (&raw mut (*room).request).write(rest.request);
            (&raw mut (*room).is_empty).write(false);
            (&raw mut (*room).rank).write(rest.rank);
            (&raw mut (*room).truncated).write(AtomicBool::new(false));
            (&raw mut (*room).form).write(rest.form);
            (&raw mut (*room).disagreement).write(AtomicU32::new(0));
        }
    }
}

/// What a new part has besides arguments.
pub(crate) struct Rest {
    pub(crate) operand: Operand,
    pub(crate) weight: Weight,
    pub(crate) request: *mut Listed,
    pub(crate) rank: &'static Rank,
    pub(crate) form: Option<Form>,
}

// SAFETY: the addresses in a part lead to buffers that their owners leave to the runtime
// until the operation is complete; user operations are called by their owner only.
unsafe impl Send for Part {}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Part({:?})", self.rank)
    }
}

/// What a member knows of the operation's size.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weight {
    /// Bytes that its part of the operation moves.
    pub(crate) total: u64,
    /// Bytes of its longest lane.
    pub(crate) longest: u64,
}

/// How the operation is cut into steps (`nonblocking/plan.rs`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Lanes of the table.
    pub(crate) lanes: u64,
    /// All cells.
    pub(crate) cells: u64,
    /// Cells of a step.
    pub(crate) batch: u64,
    /// Bytes, or elements of a reduction, of a piece.
    pub(crate) piece: u64,
    /// Elements of a reduction that all members have.
    pub(crate) elements: u64,
    /// Bytes that the operation moves, about.
    pub(crate) bytes: u64,
    /// Whether steps call a user's operation, which only owners may.
    pub(crate) calls_user: bool,
    /// Of a persistent operation, where its members go on without pools: each has a reference.
    pub(crate) board: Option<RecordRef<Board>>,
}

// SAFETY: a board is shared.
unsafe impl Send for Plan {}
// SAFETY: as above.
unsafe impl Sync for Plan {}

/// A nonblocking collective of one communicator.
pub(crate) type Pool = Meeting<Part, Plan>;

/// One member's place in a chain.
pub(crate) type Place<'a> = meeting::Place<'a, Part, Plan>;

/// The starts of a persistent one.
pub(crate) type Chain = meeting::Chain<Part, Plan>;

/// A request's part in a pool, with a reference to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Membership {
    pub(crate) pool: RecordRef<Pool>,
    pub(crate) member: u32,
}

/// [`Links`] of the owner's list of nonblocking collectives with steps left.
const IN_SCHEDULES: u8 = 0;

/// The pending pools of a rank.
pub(crate) type Pending = List<Listed, IN_SCHEDULES>;

/// The request of a nonblocking collective. Its request is the first field, so that the address of one is that of the
/// other.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) request: Request,
    pub(crate) is_listed: Cell<bool>,
    /// Whether thieves are to look at the rank because of it.
    pub(crate) is_expected: Cell<bool>,
    /// The request's reference to its pool.
    pub(crate) membership: Cell<Option<Membership>>,
    pub(crate) links: Links<Self>,
}

impl Linked<IN_SCHEDULES> for Listed {
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}
