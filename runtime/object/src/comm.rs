//! Communicators (MPI 7.4), and the collective calls that make them.
//!
//! A communicator owns a *number*: its point-to-point context is twice that number, its collective
//! context the next one. The first member of a new communicator takes the number from the
//! node and tells the others by a collective of the parent.

use crate::Outcome;
use crate::attribute::Attributes;
use crate::errhandler::Errhandler;
use crate::group::Group;
use crate::info::Info;
use crate::rendezvous::{self, Occasion};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::Peer;
use cohort_engine::coll::{self, Blocks, CommShared};
use cohort_engine::datatype::{Layout, TypeRef, predefined};
use cohort_engine::{EngineError, Envelope, Rank, SendMode, Source, Tag, recv, send};
use spin::Mutex;

/// Number of `MPI_COMM_WORLD`; the node gives out the others.
pub const WORLD_NUMBER: u32 = 0;

/// An intracommunicator, as one of its members sees it.
pub struct Comm {
    rank: &'static Rank,
    number: u32,
    me: u32,
    group: Group,
    shared: &'static CommShared,
    /// Cached attributes.
    pub attributes: Attributes,
    /// Its error handler.
    pub errhandler: Mutex<Errhandler>,
    /// Its hints.
    pub info: Mutex<Info>,
    name: Mutex<String>,
}

impl Comm {
    /// The communicator with this number; every member of `group` makes its own.
    ///
    /// # Panics
    /// If `rank` is not a member of `group`.
    #[must_use]
    pub fn new(rank: &'static Rank, number: u32, group: Group, errhandler: Errhandler) -> Self {
        let me = group.me().expect("only members make a communicator");
        let shared = rank.node().comm_shared(number * 2 + 1, group.size());
        Self {
            rank,
            number,
            me,
            group,
            shared,
            attributes: Attributes::new(),
            errhandler: Mutex::new(errhandler),
            info: Mutex::new(Info::default()),
            name: Mutex::new(String::new()),
        }
    }

    /// The calling process, whose object this is.
    #[inline]
    #[must_use]
    pub fn rank(&self) -> &'static Rank {
        self.rank
    }

    /// Context number of its point-to-point messages.
    #[inline]
    #[must_use]
    pub fn context(&self) -> u32 {
        self.number * 2
    }

    /// The caller's rank.
    #[inline]
    #[must_use]
    pub fn me(&self) -> u32 {
        self.me
    }

    /// Number of members.
    #[inline]
    #[must_use]
    pub fn size(&self) -> u32 {
        self.group.size()
    }

    /// The members.
    #[must_use]
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The member with this rank.
    #[inline]
    #[must_use]
    pub fn peer(&self, rank: i32) -> Option<Peer> {
        self.group
            .members()
            .get(usize::try_from(rank).ok()?)
            .copied()
    }

    /// For the engine's collectives.
    #[inline]
    #[must_use]
    pub fn collective(&self) -> coll::Group<'_> {
        coll::Group {
            rank: self.rank,
            context: self.number * 2 + 1,
            me: self.me,
            world: self.group.members(),
            shared: self.shared,
        }
    }

    /// `MPI_Comm_get_name`.
    #[must_use]
    pub fn name(&self) -> String {
        self.name.lock().clone()
    }

    /// `MPI_Comm_set_name`.
    pub fn set_name(&self, name: &str) {
        *self.name.lock() = name.into();
    }

    /// `MPI_Comm_compare`, of two different handles.
    #[must_use]
    pub fn compare(&self, other: &Self) -> i32 {
        if self.number == other.number {
            return neutral::IDENT;
        }
        match self.group.compare(&other.group) {
            neutral::IDENT => neutral::CONGRUENT,
            other => other,
        }
    }

    /// `MPI_Comm_dup` of the communicator with this handle; collective.
    ///
    /// # Errors
    /// A copy callback's. The members then agree that there is no duplicate.
    pub fn duplicate(&self, handle: u32) -> Outcome<Self> {
        let attributes = self.attributes.copied(handle);
        let failed = self.allgather([i32::from(attributes.is_err())])?;
        let attributes = attributes?;
        if failed.iter().any(|&[failed]| failed != 0) {
            return Err(neutral::ERR_OTHER);
        }
        let number = self.agree_on_number()?;
        let mut copy = Self::new(self.rank, number, self.group.clone(), self.inherited());
        copy.attributes = attributes;
        copy.info = Mutex::new(self.info.lock().clone());
        Ok(copy)
    }

    /// `MPI_Comm_idup` of the communicator with this handle: the same without waiting for the other
    /// members.
    ///
    /// # Errors
    /// A copy callback's. Other members may then have a duplicate that they cannot use.
    pub fn duplicate_at_once(&self, handle: u32) -> Outcome<Self> {
        let parent = self.number;
        let occasion = Occasion::Duplicate { parent };
        // First of all, so that a failing callback does not upset the order of later calls.
        let number = rendezvous::number(self.rank, occasion, self.group.members());
        let attributes = self.attributes.copied(handle)?;
        let mut copy = Self::new(self.rank, number, self.group.clone(), self.inherited());
        copy.attributes = attributes;
        copy.info = Mutex::new(self.info.lock().clone());
        Ok(copy)
    }

    /// `MPI_Comm_create_from_group`: no parent, only a group, of which `rank` is a member, and
    /// a string that tells concurrent calls apart. Waits for nobody.
    #[must_use]
    pub fn from_group(
        rank: &'static Rank,
        group: &Group,
        tag: &str,
        errhandler: Errhandler,
    ) -> Self {
        let occasion = Occasion::FromGroup {
            tag: tag.into(),
            members: group.members().to_vec(),
        };
        let number = rendezvous::number(rank, occasion, group.members());
        Self::new(rank, number, group.clone(), errhandler)
    }

    /// `MPI_Comm_create`; collective. `None` for callers that are not in `group`.
    ///
    /// # Errors
    /// `MPI_ERR_GROUP` unless the group is a part of this communicator's.
    pub fn create(&self, group: &Group) -> Outcome<Option<Self>> {
        let inside = group
            .members()
            .iter()
            .all(|member| self.group.members().contains(member));
        let (color, key) = match group.me() {
            Some(me) if inside => (0, me as i32),
            _ => (neutral::UNDEFINED, 0),
        };
        let made = self.split(color, key)?;
        if inside {
            Ok(made)
        } else {
            Err(neutral::ERR_GROUP)
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
            return Err(neutral::ERR_GROUP);
        }
        let leader = group.members()[0];
        let context = self.number * 2 + 1;
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
                let buffer = (&raw const number).cast();
                // SAFETY: `number` outlives the blocking call.
                unsafe {
                    send(
                        self.rank,
                        buffer,
                        1,
                        &integer,
                        member,
                        envelope,
                        SendMode::Standard,
                    )
                }
                .map_err(|_| neutral::ERR_NO_MEM)?;
            }
        } else {
            let comm_rank = rank_here(leader).ok_or(neutral::ERR_GROUP)? as i32;
            let from = Source::Rank {
                peer: leader,
                comm_rank,
            };
            let buffer = (&raw mut number).cast();
            // SAFETY: as above.
            unsafe { recv(self.rank, buffer, 1, &integer, from, context, Tag::Is(tag)) }
                .map_err(|_| neutral::ERR_NO_MEM)?;
        }
        Ok(Self::new(
            self.rank,
            number,
            group.clone(),
            self.inherited(),
        ))
    }

    /// `MPI_Comm_split`; collective. `color` is `MPI_UNDEFINED` or not negative.
    ///
    /// # Errors
    /// Of the collectives inside.
    pub fn split(&self, color: i32, key: i32) -> Outcome<Option<Self>> {
        let wishes = self.allgather([color, key])?;
        let mut mates: Vec<usize> = (0..wishes.len())
            .filter(|&member| wishes[member][0] == color)
            .collect();
        // Stable: equal keys keep the order of the parent.
        mates.sort_by_key(|&member| wishes[member][1]);
        let leads = color != neutral::UNDEFINED && mates[0] == self.me as usize;
        let number = if leads {
            self.rank.node().next_context()
        } else {
            0
        };
        let numbers = self.allgather([number as i32])?;
        if color == neutral::UNDEFINED {
            return Ok(None);
        }
        let members = mates
            .iter()
            .map(|&member| self.group.members()[member])
            .collect();
        let group = Group::new(members, self.rank.peer());
        Ok(Some(Self::new(
            self.rank,
            numbers[mates[0]][0] as u32,
            group,
            self.inherited(),
        )))
    }

    /// Gives the communicator's resources back. Collective; the attributes were deleted before.
    pub fn release(&self) {
        self.shared.leave();
    }

    fn inherited(&self) -> Errhandler {
        self.errhandler.lock().clone()
    }

    fn agree_on_number(&self) -> Outcome<u32> {
        let number = if self.me == 0 {
            self.rank.node().next_context()
        } else {
            0
        };
        let numbers = self.allgather([number as i32])?;
        Ok(numbers[0][0] as u32)
    }

    /// Everyone's numbers, by rank.
    fn allgather<const N: usize>(&self, mut mine: [i32; N]) -> Outcome<Vec<[i32; N]>> {
        let mut all = vec![[0; N]; self.size() as usize];
        let integer: TypeRef = predefined(neutral::handle::INT32_T).ok_or(neutral::ERR_INTERN)?;
        let send = Layout::new(mine.as_mut_ptr().cast(), N as u64, &integer);
        let receive = Blocks::Equal {
            base: all.as_mut_ptr().cast(),
            count: N as u64,
            datatype: &integer,
        };
        // SAFETY: `mine` has N integers, `all` N for each member.
        unsafe { coll::allgather(&self.collective(), Some(send), receive) }
            .map_err(|_: EngineError| neutral::ERR_INTERN)?;
        Ok(all)
    }
}
