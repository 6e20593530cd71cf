//! The calls upwards: each runs the function of the same name of all subsystems, in their order.
//!
//! They are declared here and defined by [`engine!`](crate::engine), in the crate that joins the subsystems.

use super::{Claim, Node, Owner, Rank};
use crate::memory::{Cursor, Plan};
use crate::message::Envelope;
use crate::sleep::Sleep;
use crate::work::{Look, Mark, Need, Turn, Work};
use cohort_steal::park::{Awake, Ticket};

macro_rules! hooks {
    ($($(#[$doc:meta])* $link:ident => fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        unsafe extern "Rust" {
            $(safe fn $link($($argument: $type),*) $(-> $result)?;)*
        }
        $(
            $(#[$doc])*
            #[inline]
            pub fn $name($($argument: $type),*) $(-> $result)? {
                $link($($argument),*)
            }
        )*
    };
}

hooks! {
    /// Measures the tables of all subsystems.
    cohort_engine_measure => fn measure(cursor: &mut Cursor, plan: &Plan);
    /// Makes the rooms that all subsystems have for the node.
    cohort_engine_furnish => fn furnish(cursor: &mut Cursor, plan: &Plan, node: &'static Node);
    /// Makes the rooms that all subsystems have for a rank.
    cohort_engine_furnish_rank => fn furnish_rank(node: &'static Node, rank: &Rank);
    /// [`begin`](crate::Subsystem::begin)
    cohort_engine_begin => fn begin(owner: Owner<'static>);
    /// [`end`](crate::Subsystem::end)
    cohort_engine_end => fn end(owner: Owner<'static>);
    /// [`turn`](crate::Subsystem::turn)
    cohort_engine_turn => fn turn(claim: &mut Claim<'_>, look: Look, turn: &mut Turn);
    /// [`own_work`](crate::Subsystem::own_work): the first that has some.
    cohort_engine_own_work => fn own_work(claim: &mut Claim<'_>, owner: Option<Owner<'_>>) -> Option<Work>;
    /// What a call does that does not wait, in one: [`turn`](crate::Subsystem::turn) of all, and
    /// [`own_work`](crate::Subsystem::own_work) unless that has found some.
    cohort_engine_test => fn test(claim: &mut Claim<'_>, owner: Owner<'_>, turn: &mut Turn);
    /// [`is_idle`](crate::Subsystem::is_idle) of all.
    cohort_engine_is_idle => fn is_idle(claim: &mut Claim<'_>) -> bool;
    /// [`is_unused`](crate::Subsystem::is_unused) of all.
    cohort_engine_is_unused => fn is_unused(claim: &mut Claim<'_>) -> bool;
    /// [`renew`](crate::Subsystem::renew)
    cohort_engine_renew => fn renew(rank: &Rank);
    /// [`is_stalled`](crate::Subsystem::is_stalled) of any.
    cohort_engine_is_stalled => fn is_stalled(claim: &mut Claim<'_>) -> bool;
    /// [`awaits_help`](crate::Subsystem::awaits_help) of any.
    cohort_engine_awaits_help => fn awaits_help(claim: &mut Claim<'_>) -> bool;
    /// [`is_quiet`](crate::Subsystem::is_quiet) of all.
    cohort_engine_is_quiet => fn is_quiet(claim: &mut Claim<'_>) -> bool;
    /// [`claimed`](crate::Subsystem::claimed)
    cohort_engine_claimed => fn claimed(claim: &mut Claim<'_>);
    /// [`wait_begins`](crate::Subsystem::wait_begins)
    cohort_engine_wait_begins => fn wait_begins(rank: &Rank);
    /// [`wait_goes_on`](crate::Subsystem::wait_goes_on)
    cohort_engine_wait_goes_on => fn wait_goes_on(rank: &Rank);
    /// [`wait_ends`](crate::Subsystem::wait_ends)
    cohort_engine_wait_ends => fn wait_ends(claim: &mut Claim<'_>, since: u64);
    /// [`woken`](crate::Subsystem::woken)
    cohort_engine_woken => fn woken(rank: &Rank);
    /// [`sleep_begins`](crate::Subsystem::sleep_begins)
    cohort_engine_sleep_begins => fn sleep_begins(rank: &Rank, sleep: &mut Sleep);
    /// [`sleep`](crate::Subsystem::sleep) of the first that has a place.
    cohort_engine_sleep => fn sleep(rank: &Rank, ticket: Ticket, sleep: &Sleep) -> Result<Awake, Ticket>;
    /// [`hand_over`](crate::Subsystem::hand_over)
    cohort_engine_hand_over => fn hand_over(node: &'static Node);
    /// [`help`](crate::Subsystem::help) of the first that has somebody.
    cohort_engine_help => fn help(rank: &Rank, by: &Rank, need: Need) -> bool;
    /// [`wake_dedicated`](crate::Subsystem::wake_dedicated) of the first that has a worker.
    cohort_engine_wake_dedicated => fn wake_dedicated(near: &Rank) -> Option<bool>;
    /// [`offered`](crate::Subsystem::offered)
    cohort_engine_offered => fn offered(receiver: &Rank, sender: &Rank, envelope: &Envelope, number: u32);
    /// [`left_behind`](crate::Subsystem::left_behind) of the first that watches it.
    cohort_engine_left_behind => fn left_behind(claim: &mut Claim<'_>) -> Mark;
    /// [`under_way`](crate::Subsystem::under_way) of the first that watches it.
    cohort_engine_under_way => fn under_way(claim: &mut Claim<'_>) -> Mark;
    /// [`met`](crate::Subsystem::met)
    cohort_engine_met => fn met(claim: &mut Claim<'_>, mark: Mark);
    /// [`over`](crate::Subsystem::over)
    cohort_engine_over => fn over(claim: &mut Claim<'_>, mark: Mark);
}
