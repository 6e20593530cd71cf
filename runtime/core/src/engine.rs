//! The macro that joins subsystems to an engine: it defines what the core calls (`ranks/hooks.rs`).

/// Joins subsystems to an engine: `engine!(Net, P2p, Coll)` in the one crate of a program that does
/// so. They are visited in this order.
#[macro_export]
macro_rules! engine {
    ($($subsystem:ty),* $(,)?) => {
        #[allow(unused_imports, unused_variables, clippy::needless_pass_by_ref_mut, reason = "an engine may be empty")]
        mod joined {
            use super::*;
            use $crate::memory::{Cursor, Plan};
            use $crate::message::Envelope;
            use $crate::subsystem::{Awake, Mark, Need, Sleep, Subsystem, Ticket};
            use $crate::subsystem::{are_distinct, furnish, furnish_rank, measure};
            use $crate::request::Requests;
            use $crate::{Claim, Look, Node, Owner, Rank, Turn, Work};

            // The functions are for this image only.
            $crate::hidden! {
                "cohort_engine_measure"
                "cohort_engine_furnish"
                "cohort_engine_furnish_rank"
                "cohort_engine_begin"
                "cohort_engine_end"
                "cohort_engine_turn"
                "cohort_engine_own_work"
                "cohort_engine_test"
                "cohort_engine_is_idle"
                "cohort_engine_is_unused"
                "cohort_engine_renew"
                "cohort_engine_is_stalled"
                "cohort_engine_awaits_help"
                "cohort_engine_is_quiet"
                "cohort_engine_claimed"
                "cohort_engine_wait_begins"
                "cohort_engine_wait_goes_on"
                "cohort_engine_wait_ends"
                "cohort_engine_woken"
                "cohort_engine_sleep_begins"
                "cohort_engine_sleep"
                "cohort_engine_hand_over"
                "cohort_engine_help"
                "cohort_engine_wake_dedicated"
                "cohort_engine_offered"
                "cohort_engine_left_behind"
                "cohort_engine_under_way"
                "cohort_engine_met"
                "cohort_engine_over"
            }

            const _: () = assert!(are_distinct(&[$(<$subsystem as Subsystem>::SLOT,)* Requests::SLOT]));

            #[unsafe(no_mangle)]
            fn cohort_engine_measure(cursor: &mut Cursor, plan: &Plan) {
                $(measure::<$subsystem>(cursor, plan);)*
                measure::<Requests>(cursor, plan);
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_furnish(cursor: &mut Cursor, plan: &Plan, node: &'static Node) {
                $(furnish::<$subsystem>(cursor, plan, node);)*
                furnish::<Requests>(cursor, plan, node);
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_furnish_rank(node: &'static Node, rank: &Rank) {
                $(furnish_rank::<$subsystem>(node, rank);)*
                furnish_rank::<Requests>(node, rank);
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_begin(owner: Owner<'static>) {
                $(<$subsystem as Subsystem>::begin(owner);)*
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_end(owner: Owner<'static>) {
                $(<$subsystem as Subsystem>::end(owner);)*
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_turn(claim: &mut Claim<'_>, look: Look, turn: &mut Turn) {
                $(<$subsystem as Subsystem>::turn(claim, look, turn);)*
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_own_work(claim: &mut Claim<'_>, owner: Option<Owner<'_>>) -> Option<Work> {
                $(if let Some(work) = <$subsystem as Subsystem>::own_work(claim, owner) {
                    return Some(work);
                })*
                Requests::own_work(claim, owner)
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_test(claim: &mut Claim<'_>, owner: Owner<'_>, turn: &mut Turn) {
                $(<$subsystem as Subsystem>::turn(claim, Look::Own { waits: false }, turn);)*
                $(if turn.work.is_none() {
                    turn.work = <$subsystem as Subsystem>::own_work(claim, Some(owner));
                })*
                if turn.work.is_none() {
                    turn.work = Requests::own_work(claim, Some(owner));
                }
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_is_idle(claim: &mut Claim<'_>) -> bool {
                true $(&& <$subsystem as Subsystem>::is_idle(claim))* && Requests::is_idle(claim)
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_is_unused(claim: &mut Claim<'_>) -> bool {
                true $(&& <$subsystem as Subsystem>::is_unused(claim))*
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_renew(rank: &Rank) {
                $(<$subsystem as Subsystem>::renew(rank);)*
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_is_stalled(claim: &mut Claim<'_>) -> bool {
                false $(|| <$subsystem as Subsystem>::is_stalled(claim))*
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_awaits_help(claim: &mut Claim<'_>) -> bool {
                false $(|| <$subsystem as Subsystem>::awaits_help(claim))*
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_is_quiet(claim: &mut Claim<'_>) -> bool {
                true $(&& <$subsystem as Subsystem>::is_quiet(claim))*
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_claimed(claim: &mut Claim<'_>) {
                $(<$subsystem as Subsystem>::claimed(claim);)*
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_wait_begins(rank: &Rank) {
                $(<$subsystem as Subsystem>::wait_begins(rank);)*
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_wait_goes_on(rank: &Rank) {
                $(<$subsystem as Subsystem>::wait_goes_on(rank);)*
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_wait_ends(claim: &mut Claim<'_>, since: u64) {
                $(<$subsystem as Subsystem>::wait_ends(claim, since);)*
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_woken(rank: &Rank) {
                $(<$subsystem as Subsystem>::woken(rank);)*
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_sleep_begins(rank: &Rank, sleep: &mut Sleep) {
                $(<$subsystem as Subsystem>::sleep_begins(rank, sleep);)*
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_sleep(rank: &Rank, ticket: Ticket, sleep: &Sleep) -> Result<Awake, Ticket> {
                $(let ticket = match <$subsystem as Subsystem>::sleep(rank, ticket, sleep) {
                    Ok(awake) => return Ok(awake),
                    Err(ticket) => ticket,
                };)*
                Err(ticket)
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_hand_over(node: &'static Node) {
                $(<$subsystem as Subsystem>::hand_over(node);)*
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_help(rank: &Rank, by: &Rank, need: Need) -> bool {
                false $(|| <$subsystem as Subsystem>::help(rank, by, need))*
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_wake_dedicated(near: &Rank) -> Option<bool> {
                None $(.or_else(|| <$subsystem as Subsystem>::wake_dedicated(near)))*
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_offered(receiver: &Rank, sender: &Rank, envelope: &Envelope, number: u32) {
                $(<$subsystem as Subsystem>::offered(receiver, sender, envelope, number);)*
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_left_behind(claim: &mut Claim<'_>) -> Mark {
                $(match <$subsystem as Subsystem>::left_behind(claim) {
                    Mark::NONE => {}
                    mark => return mark,
                })*
                Mark::NONE
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_under_way(claim: &mut Claim<'_>) -> Mark {
                $(match <$subsystem as Subsystem>::under_way(claim) {
                    Mark::NONE => {}
                    mark => return mark,
                })*
                Mark::NONE
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_met(claim: &mut Claim<'_>, mark: Mark) {
                $(<$subsystem as Subsystem>::met(claim, mark);)*
            }

            #[unsafe(no_mangle)]
            fn cohort_engine_over(claim: &mut Claim<'_>, mark: Mark) {
                $(<$subsystem as Subsystem>::over(claim, mark);)*
            }
        }
    };
}
