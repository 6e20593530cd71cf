//! Communicators (MPI 7.4), and the collective calls that make them.
//!
//! A communicator owns a *number*: its point-to-point context is twice that number, its collective
//! context the next one. The first member of a new communicator takes the number from the
//! node and tells the others by a collective of the parent.
//!
//! An intercommunicator has one number for the messages between its groups and one more on
//! each side, which is that of its local group's own collectives.

use crate::attribute::Attributes;
use crate::errhandler::Errhandler;
use crate::group::Group;
use crate::hints::Hints;
use crate::name::Name;
use crate::outside;
use crate::owner_of;
use crate::policy::OwnPolicy;
use crate::session::everyone;
use crate::topology::{Neighbours, Place, Topology};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::Peer;
use cohort_base::sync::atomic::AtomicU32;
use cohort_engine::Rank;
use cohort_engine::coll::exchange::Channel;
use cohort_engine::coll::inter::Intergroup;
use cohort_engine::coll::{self, CommShared, Roster};
use cohort_engine::{Node, Owner};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use spin::Mutex;

mod council;
mod create;
mod exchange;
mod inter;
mod port;
mod spawn;
mod survive;
mod topology;

pub use council::{Agreed, Agreeing, decided, told};
pub use create::Numbering;
pub use inter::Bridge;
pub use spawn::{Children, Share};
pub use survive::Shrinking;
pub use topology::{Edge, SplitLevel};

/// Number of `MPI_COMM_WORLD`; the node gives out the others.
pub const WORLD_NUMBER: u32 = 0;

/// A communicator, as one of its members sees it.
pub struct Comm {
    rank: &'static Rank,
    number: AtomicU32,
    me: u32,
    /// Whom messages go to: the own group, or the other one of an intercommunicator.
    peers: Group,
    group: Group,
    /// Number of the own group's collectives; `number` but for intercommunicators.
    local_number: AtomicU32,
    shared: AtomicPtr<CommShared>,
    /// It is a nonblocking duplicate that has got no numbers: those that it has, and what members share, are its
    /// parent's.
    is_void: AtomicBool,
    is_inter: bool,
    /// Nonblocking and persistent collectives between the groups of an intercommunicator.
    begun: coll::Count,
    /// Agreements that this member has begun.
    agreements: AtomicU32,
    topology: Option<Arc<Place>>,
    /// Cached attributes.
    pub attributes: Attributes,
    /// Its error handler.
    pub errhandler: Mutex<Errhandler>,
    /// Its hints.
    pub hints: Hints,
    /// Its progress policy.
    pub progress: OwnPolicy,
    name: Name,
}

/// The members of a new communicator, as one of them knows them.
struct Members<F> {
    /// The caller's rank.
    me: u32,
    /// The member with rank 0.
    first: Peer,
    /// Makes the whole list.
    list: F,
}

impl Comm {
    /// The communicator with this number; every member of `group` makes its own.
    ///
    /// # Panics
    /// If `rank` is not a member of `group`.
    #[must_use]
    pub fn new(rank: &'static Rank, number: u32, group: Group, errhandler: Errhandler) -> Self {
        let me = group.me().expect("only members make a communicator");
        let members = Members { me, first: group.members()[0], list: || group.roster().clone() };
        Self::of_members(rank, number, members, errhandler).derived_from(group.session())
    }

    /// The communicator with this number. Its list of members is made once for all that live on this node.
    fn of_members(
        rank: &'static Rank,
        number: u32,
        members: Members<impl FnOnce() -> Roster>,
        errhandler: Errhandler,
    ) -> Self {
        let Members { me, first, list } = members;
        let shared = CommShared::of_group(owner_of(rank), number * 2 + 1, first, list);
        if outside::is_shared_number(number) {
            outside::join(rank.node(), number);
        }
        let group = Group::shared(shared.roster().clone(), me);
        Self {
            rank,
            number: AtomicU32::new(number),
            me,
            peers: group.clone(),
            group,
            local_number: AtomicU32::new(number),
            shared: AtomicPtr::new(core::ptr::from_ref(shared).cast_mut()),
            is_void: AtomicBool::new(false),
            is_inter: false,
            begun: coll::Count::default(),
            agreements: AtomicU32::new(0),
            topology: None,
            attributes: Attributes::new(),
            errhandler: Mutex::new(errhandler),
            hints: Hints::default(),
            progress: OwnPolicy::of_rank(rank),
            name: Name::default(),
        }
    }

    /// `MPI_COMM_WORLD`.
    #[must_use]
    pub fn world(rank: &'static Rank, errhandler: Errhandler) -> Self {
        let (number, first) = match rank.world() {
            Some(world) => (world.numbers.world, rank.node().peer(world.parts[0].first)),
            None => (WORLD_NUMBER, rank.node().peer(0)),
        };
        let members = Members { me: rank.world_rank(), first, list: || everyone(rank) };
        Self::of_members(rank, number, members, errhandler)
    }

    /// The same with a group that is derived from a session (0: from none).
    fn derived_from(self, session: u32) -> Self {
        Self { group: self.group.with_session(session), peers: self.peers.with_session(session), ..self }
    }

    /// The intercommunicator with this number of `local`, a communicator that is nothing else, and `remote`.
    fn between(local: Self, number: u32, remote: Group) -> Self {
        if outside::is_shared_number(number) {
            outside::join(local.rank.node(), number);
        }
        let made = Self { number: AtomicU32::new(number), peers: remote, is_inter: true, ..local };
        made.know_remote();
        made
    }

    /// The calling process, whose object this is.
    #[inline]
    #[must_use]
    pub fn rank(&self) -> &'static Rank {
        self.rank
    }

    /// The witness that this is a call of the program.
    #[inline]
    #[must_use]
    pub fn owner(&self) -> Owner<'static> {
        owner_of(self.rank)
    }

    /// Its number. Relaxed, as that of all three: they change once, in the call that completes a nonblocking
    /// duplicate, before the program may use it.
    #[inline]
    fn number(&self) -> u32 {
        self.number.load(Ordering::Relaxed)
    }

    #[inline]
    fn local_number(&self) -> u32 {
        self.local_number.load(Ordering::Relaxed)
    }

    #[inline]
    fn shared(&self) -> &'static CommShared {
        // SAFETY: made from a reference of this lifetime.
        unsafe { &*self.shared.load(Ordering::Relaxed) }
    }

    /// Gives a nonblocking duplicate its numbers.
    fn renumber(&self, number: u32, local_number: u32) {
        let shared = CommShared::of_group(self.owner(), local_number * 2 + 1, self.group.members()[0], || {
            self.group.roster().clone()
        });
        // Until now it was counted as one more with its parent's.
        self.each_shared_number(outside::give_back);
        self.number.store(number, Ordering::Relaxed);
        self.local_number.store(local_number, Ordering::Relaxed);
        self.each_shared_number(outside::join);
        let shared = core::ptr::from_ref(shared).cast_mut();
        self.shared.store(shared, Ordering::Relaxed);
        self.know_remote();
    }

    /// Context number of its point-to-point messages.
    #[inline]
    #[must_use]
    pub fn context(&self) -> u32 {
        self.number() * 2
    }

    /// Whether messages or collectives of this communicator have this context.
    #[must_use]
    pub fn has_context(&self, context: u32) -> bool {
        context / 2 == self.number() || context == self.local_number() * 2 + 1
    }

    /// The context of the own group's collectives.
    #[must_use]
    pub(crate) fn collective_context(&self) -> u32 {
        self.local_number() * 2 + 1
    }

    /// Shows its name, unless somebody is just changing it.
    pub fn with_name(&self, look: impl FnOnce(&str)) {
        self.name.look(look);
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

    /// Whether this is an intercommunicator.
    #[must_use]
    pub fn is_inter(&self) -> bool {
        self.is_inter
    }

    /// Its topology.
    #[must_use]
    pub fn topology(&self) -> Option<&Topology> {
        self.topology.as_ref().map(|place| &place.topology)
    }

    /// The caller's neighbours in its topology.
    #[inline]
    #[must_use]
    pub fn neighbours(&self) -> Option<&Arc<Neighbours>> {
        self.topology.as_ref().map(|place| &place.neighbours)
    }

    /// Whom messages go to: the members, or the other group of an intercommunicator.
    #[inline]
    #[must_use]
    pub fn peers(&self) -> &Group {
        &self.peers
    }

    /// The peer with this rank.
    #[inline]
    #[must_use]
    pub fn peer(&self, rank: i32) -> Option<Peer> {
        self.peers.members().get(usize::try_from(rank).ok()?).copied()
    }

    /// For the engine's collectives of the own group.
    #[inline]
    #[must_use]
    pub fn collective(&self) -> coll::Group<'_> {
        coll::Group {
            owner: self.owner(),
            context: self.local_number() * 2 + 1,
            me: self.me,
            world: self.group.members(),
            shared: self.shared(),
        }
    }

    /// What the members share for a second numbering of collectives, of a communicator that has no messages of its own:
    /// it takes their context. Each member that asks gives it back ([`CommShared::leave`]).
    #[must_use]
    pub fn apart(&self) -> &'static CommShared {
        let first = self.group.members()[0];
        CommShared::of_group(self.owner(), self.local_number() * 2, first, || self.group.roster().clone())
    }

    /// For collectives in that numbering.
    #[must_use]
    pub fn group_apart<'a>(&'a self, shared: &'a CommShared) -> coll::Group<'a> {
        coll::Group { context: self.local_number() * 2, shared, ..self.collective() }
    }

    /// For collectives that send messages.
    #[must_use]
    pub fn channel(&self) -> Channel<'_> {
        Channel { owner: self.owner(), context: self.number() * 2 + 1, me: self.me }
    }

    /// For the engine's collectives of an intercommunicator; `None` if it is none.
    #[inline]
    #[must_use]
    pub fn inter(&self) -> Option<Intergroup<'_>> {
        self.is_inter.then(|| Intergroup {
            local: self.collective(),
            channel: self.channel(),
            remote: self.peers.members(),
            begun: &self.begun,
        })
    }

    /// `MPI_Comm_get_name`.
    #[must_use]
    pub fn given_name(&self) -> Vec<u8> {
        self.name.given()
    }

    /// The same as text, for messages.
    #[must_use]
    pub fn name(&self) -> String {
        self.name.text()
    }

    /// `MPI_Comm_set_name`.
    pub fn set_name(&self, name: &[u8]) {
        self.name.set(name);
    }

    /// `MPI_Comm_compare`, of two different handles.
    #[must_use]
    pub fn compare(&self, other: &Self) -> i32 {
        if self.number() == other.number() {
            return neutral::IDENT;
        }
        if self.is_inter != other.is_inter {
            return neutral::UNEQUAL;
        }
        let answers = [self.group.compare(&other.group), self.peers.compare(&other.peers)];
        if answers == [neutral::IDENT; 2] {
            neutral::CONGRUENT
        } else if answers.contains(&neutral::UNEQUAL) {
            neutral::UNEQUAL
        } else {
            neutral::SIMILAR
        }
    }

    /// Gives the communicator's resources back. Collective; the attributes were deleted before.
    pub fn release(&self) {
        self.each_shared_number(outside::give_back);
        if self.is_void.load(Ordering::Relaxed) {
            return;
        }
        self.forget_remote();
        self.shared().leave(self.owner());
    }

    /// Does something with each of its numbers that other jobs know.
    fn each_shared_number(&self, then: impl Fn(&Node, u32)) {
        let numbers = [self.local_number(), self.number()];
        let own = if self.is_inter { &numbers[..] } else { &numbers[1..] };
        let shared = own.iter().filter(|&&number| outside::is_shared_number(number));
        shared.for_each(|&number| then(self.rank.node(), number));
    }

    /// The members of its groups.
    pub fn everybody(&self) -> Vec<Peer> {
        let mut members = self.group().members().to_vec();
        if self.is_inter() {
            members.extend(self.peers().members());
        }
        members
    }

    /// The error handler for a communicator that is made from this one.
    fn inherited(&self) -> Errhandler {
        self.errhandler.lock().clone()
    }
}
