//! How processes agree on a communicator's number without waiting for each other.
//!
//! The node image is one for all ranks of the node, so its statics are shared: the first process
//! that makes a communicator draws the number from the node and leaves it here; each other
//! member takes it when it comes. Nobody waits, so that nonblocking constructors complete at
//! once, and calls that have no parent communicator (`MPI_Comm_create_from_group`) need none.
//!
//! MPI demands that the members call in the same order where calls could be mistaken for each
//! other (MPI-4.1, 7.4.2: same communicator; same group and same string), so the n-th call of
//! every member meets the n-th of the others.

use alloc::string::String;
use alloc::vec::Vec;
use cohort_base::Peer;
use cohort_engine::Rank;
use spin::Mutex;

/// What the members of a new communicator have in common before they have a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// A nonblocking duplicate of the communicator with this number.
    Duplicate {
        /// The parent's number.
        parent: u32,
    },
    /// A communicator made from a group.
    FromGroup {
        /// `MPI_Comm_create_from_group`'s string.
        tag: String,
        /// The group.
        members: Vec<Peer>,
    },
    /// An intercommunicator made from two groups, whose leaders meet.
    FromGroups {
        /// `MPI_Intercomm_create_from_groups`'s string.
        tag: String,
        /// The leaders, in ascending order.
        leaders: Vec<Peer>,
    },
}

/// A number that some members have not taken yet.
struct Meeting {
    /// Address of the node, because one image may hold several (in tests).
    node: usize,
    occasion: Occasion,
    number: u32,
    absent: Vec<Peer>,
}

static MEETINGS: Mutex<Vec<Meeting>> = Mutex::new(Vec::new());

/// The number of the communicator that `members` make on this occasion; `rank` is one of them.
#[must_use]
pub fn number(rank: &Rank, occasion: Occasion, members: &[Peer]) -> u32 {
    let node = core::ptr::from_ref(rank.node()).addr();
    let me = rank.peer();
    let mut meetings = MEETINGS.lock();
    let waiting = meetings.iter().position(|meeting| {
        meeting.node == node && meeting.occasion == occasion && meeting.absent.contains(&me)
    });
    if let Some(index) = waiting {
        let meeting = &mut meetings[index];
        meeting.absent.retain(|&member| member != me);
        let number = meeting.number;
        if meeting.absent.is_empty() {
            meetings.remove(index);
        }
        return number;
    }
    let number = rank.node().next_context();
    let absent: Vec<Peer> = members
        .iter()
        .copied()
        .filter(|&member| member != me)
        .collect();
    if !absent.is_empty() {
        meetings.push(Meeting {
            node,
            occasion,
            number,
            absent,
        });
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohort_engine::Node;

    #[test]
    fn the_nth_calls_of_all_members_meet() {
        let node = Node::for_test(3);
        let meet = |rank, parent| {
            number(
                node.rank(rank),
                Occasion::Duplicate { parent },
                &[0, 1, 2].map(Peer::local),
            )
        };
        let first: Vec<u32> = (0..2).map(|_| meet(0, 5)).collect();
        assert_ne!(first[0], first[1]);
        let other = meet(0, 6);
        for rank in [2, 1] {
            assert_eq!([meet(rank, 5), meet(rank, 5)], first[..]);
            assert_eq!(meet(rank, 6), other);
        }
        let next: Vec<u32> = (0..3).map(|rank| meet(rank, 5)).collect();
        assert!(next[0] > other && next[1] == next[0] && next[2] == next[0]);
    }

    #[test]
    fn groups_and_strings_are_told_apart() {
        let node = Node::for_test(3);
        let meet = |rank, tag: &str, members: &[u32]| {
            let members: Vec<Peer> = members.iter().copied().map(Peer::local).collect();
            let tag = tag.into();
            let occasion = Occasion::FromGroup {
                tag,
                members: members.clone(),
            };
            number(node.rank(rank), occasion, &members)
        };
        let both = meet(0, "a", &[0, 1]);
        let numbers = [
            meet(0, "a", &[1, 0]),
            meet(0, "b", &[0, 1]),
            meet(0, "a", &[0]),
            meet(0, "a", &[0]),
        ];
        for (index, number) in numbers.iter().enumerate() {
            assert!(*number != both && !numbers[..index].contains(number));
        }
        assert_eq!(meet(1, "a", &[0, 1]), both);
    }
}
