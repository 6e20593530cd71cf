//! The calls that make communicators from others or from groups (MPI 7.4.2).

use super::Comm;
use crate::Outcome;
use crate::errhandler::Errhandler;
use crate::group::Group;
use crate::rendezvous::{self, Agreement, Occasion};
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_engine::datatype::{Buffer, predefined};
use cohort_engine::{Claim, Envelope, Rank, SendMode, Source, Tag, recv, send};

impl Comm {
    /// `MPI_Comm_dup` of the communicator with this handle; collective.
    ///
    /// # Errors
    /// A copy callback's. The members then agree that there is no duplicate.
    pub fn duplicate(&self, handle: u32) -> Outcome<Self> {
        let attributes = self.attributes.copied(handle);
        let failed = i32::from(attributes.is_err());
        let leads = self.me == 0;
        let local = if self.is_inter && leads {
            self.draw()
        } else {
            0
        };
        let number = if leads { self.draw() } else { 0 };
        let (ours, theirs) = self.meet([failed, number as i32, local as i32])?;
        let attributes = attributes?;
        if ours.iter().chain(&theirs).any(|&[failed, ..]| failed != 0) {
            return Err(neutral::ERR_OTHER.into());
        }
        let number = agreed(ours[0][1], theirs.first().map(|their| their[1]));
        let mut copy = self.alike(number, ours[0][2] as u32);
        copy.attributes = attributes;
        Ok(copy)
    }

    /// `MPI_Comm_idup` of the communicator with this handle: the same without waiting for the other
    /// members. The duplicate may be used once its numbering is over.
    ///
    /// # Errors
    /// A copy callback's. Other members may then have a duplicate that they cannot use.
    pub fn duplicate_at_once(&self, handle: u32) -> Outcome<(Self, Numbering)> {
        let begin = |parent, members: &[_]| {
            rendezvous::begin(self.rank, Occasion::Duplicate { parent }, members)
        };
        // First of all, so that a failing callback does not upset the order of later calls.
        let numbering = match self.is_inter {
            true => {
                let everyone = self.group.union(self.rank.peer(), &self.peers);
                Numbering {
                    number: begin(self.number(), everyone.members())?,
                    local: Some(begin(self.local_number(), self.group.members())?),
                }
            }
            false => Numbering {
                number: begin(self.number(), self.group.members())?,
                local: None,
            },
        };
        let attributes = self.attributes.copied(handle)?;
        let mut copy = self.alike(self.number(), self.local_number());
        copy.attributes = attributes;
        Ok((copy, numbering))
    }

    /// A communicator with the same groups and topology; `local` is used for intercommunicators only.
    fn alike(&self, number: u32, local: u32) -> Self {
        let (group, handler) = (self.group.clone(), self.inherited());
        match self.is_inter {
            true => Self::between(
                self.rank,
                number,
                (group, local),
                self.peers.clone(),
                handler,
            ),
            false => Self {
                topology: self.topology.clone(),
                ..Self::new(self.rank, number, group, handler)
            },
        }
    }

    /// `MPI_Comm_create_from_group`: no parent, only a group, of which `rank` is a member, and
    /// a string that tells concurrent calls apart. Waits for nobody within a node.
    ///
    /// # Errors
    /// Of [`rendezvous::number`].
    pub fn from_group(
        rank: &'static Rank,
        group: &Group,
        tag: &str,
        errhandler: Errhandler,
    ) -> Outcome<Self> {
        let occasion = Occasion::FromGroup {
            tag: tag.into(),
            members: group.members().to_vec(),
        };
        let number = rendezvous::number(rank, occasion, group.members())?;
        Ok(Self::new(rank, number, group.clone(), errhandler))
    }

    /// `MPI_Comm_create`; collective. `None` for callers that are not in their `group`, and when one side of
    /// an intercommunicator has no members in the groups given.
    ///
    /// # Errors
    /// `MPI_ERR_GROUP` unless the group is a part of this communicator's (own) group.
    pub fn create(&self, group: &Group) -> Outcome<Option<Self>> {
        let rank_here = |member| {
            let members = self.group.members();
            members.iter().position(|&other| other == member)
        };
        let inside = group.members().iter().all(|&it| rank_here(it).is_some());
        // Members may give groups that are disjoint; the first member tells them apart.
        let leader = group.members().first().and_then(|&first| rank_here(first));
        let (color, key) = match (group.me(), leader) {
            (Some(me), Some(_)) if inside && self.is_inter => (0, me as i32),
            (Some(me), Some(leader)) if inside => (leader as i32, me as i32),
            _ => (neutral::UNDEFINED, 0),
        };
        let made = self.split(color, key)?;
        if inside {
            Ok(made)
        } else {
            Err(neutral::ERR_GROUP.into())
        }
    }

    /// `MPI_Comm_create_group`; collective over `group`, of which the caller is a member. Its
    /// messages travel in the collective context, which has no others.
    ///
    /// # Errors
    /// `MPI_ERR_GROUP` unless the group is a part of this communicator's.
    pub fn create_group(&self, group: &Group, tag: i32) -> Outcome<Self> {
        let rank_here = |member| {
            self.group
                .members()
                .iter()
                .position(|&other| other == member)
        };
        if !group
            .members()
            .iter()
            .all(|&member| rank_here(member).is_some())
        {
            return Err(neutral::ERR_GROUP.into());
        }
        let leader = group.members()[0];
        let context = self.number() * 2 + 1;
        let integer = predefined(neutral::handle::INT32_T).ok_or(neutral::ERR_INTERN)?;
        let mut number = 0_u32;
        if group.me() == Some(0) {
            number = self.rank.node().next_context();
            let envelope = Envelope {
                context,
                source: self.me as i32,
                tag,
            };
            for &member in &group.members()[1..] {
                let data = Buffer::new((&raw mut number).cast(), 1, &integer);
                // SAFETY: `number` outlives the blocking call.
                unsafe { send(self.owner(), data, member, envelope, SendMode::Standard) }
                    .map_err(|_| neutral::ERR_NO_MEM)?;
            }
        } else {
            let comm_rank = rank_here(leader).ok_or(neutral::ERR_GROUP)? as i32;
            let from = Source::Rank {
                peer: leader,
                comm_rank,
            };
            let room = Buffer::new((&raw mut number).cast(), 1, &integer);
            // SAFETY: as above.
            unsafe { recv(self.owner(), room, from, context, Tag::Is(tag)) }
                .map_err(|_| neutral::ERR_NO_MEM)?;
        }
        Ok(Self::new(
            self.rank,
            number,
            group.clone(),
            self.inherited(),
        ))
    }

    /// `MPI_Comm_split`; collective. `color` is `MPI_UNDEFINED` or not negative. `None` for callers without a
    /// color, and when the other group of an intercommunicator has nobody with the caller's color.
    ///
    /// # Errors
    /// Of the collectives inside.
    pub fn split(&self, color: i32, key: i32) -> Outcome<Option<Self>> {
        let (ours, theirs) = self.meet([color, key])?;
        let mates = with_color(&ours, color);
        let remote = with_color(&theirs, color);
        let leads = color != neutral::UNDEFINED && mates[0] == self.me as usize;
        let mut drawn = [0; 2];
        if leads {
            drawn = [self.draw() as i32, 0];
            if self.is_inter {
                drawn[1] = self.draw() as i32;
            }
        }
        let (numbers, their_numbers) = self.meet(drawn)?;
        if color == neutral::UNDEFINED || (self.is_inter && remote.is_empty()) {
            return Ok(None);
        }
        let chosen = |from: &Group, these: &[usize]| {
            let members = these.iter().map(|&index| from.members()[index]).collect();
            Group::new(members, self.rank.peer()).with_session(self.group.session())
        };
        let group = chosen(&self.group, &mates);
        let [number, local] = numbers[mates[0]];
        let their = remote.first().map(|&leader| their_numbers[leader][0]);
        let (number, handler) = (agreed(number, their), self.inherited());
        Ok(Some(match self.is_inter {
            true => {
                let remote = chosen(&self.peers, &remote);
                Self::between(self.rank, number, (group, local as u32), remote, handler)
            }
            false => Self::new(self.rank, number, group, handler),
        }))
    }

    /// A fresh number for a communicator.
    pub(super) fn draw(&self) -> u32 {
        self.rank.node().next_context()
    }
}

/// The numbers of a nonblocking duplicate, which are on their way.
#[derive(Debug)]
pub struct Numbering {
    number: Agreement,
    /// That of the own group of an intercommunicator.
    local: Option<Agreement>,
}

impl Numbering {
    /// Whether the numbers are there.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.number.is_complete() && self.local.as_ref().is_none_or(Agreement::is_complete)
    }

    /// Gives the duplicate its numbers, which are there.
    ///
    /// # Errors
    /// Of [`Agreement::number`].
    pub fn settle(&self, duplicate: &Comm) -> Outcome<()> {
        let number = self.number.number()?;
        let local = match &self.local {
            Some(local) => local.number()?,
            None => number,
        };
        duplicate.renumber(number, local);
        Ok(())
    }

    /// Frees numbers that are there.
    pub fn release(self, claim: &mut Claim<'_>) {
        self.number.release(claim);
        if let Some(local) = self.local {
            local.release(claim);
        }
    }
}

/// The members whose wish is this color, by key and then by rank.
fn with_color(wishes: &[[i32; 2]], color: i32) -> Vec<usize> {
    let mut mates: Vec<usize> = (0..wishes.len())
        .filter(|&member| wishes[member][0] == color)
        .collect();
    // Stable: equal keys keep the order of the parent.
    mates.sort_by_key(|&member| wishes[member][1]);
    mates
}

/// The number of a communicator for which each of its groups drew one.
pub(super) fn agreed(our: i32, their: Option<i32>) -> u32 {
    their.map_or(our, |their| our.max(their)) as u32
}
