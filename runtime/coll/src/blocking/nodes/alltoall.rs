//! All-to-all in which all short blocks between two nodes are one message each way.
//!
//! Of *p* members here and *q* on another node every one has a block for every one: *pq* messages, or one. Members
//! post where their blocks lie. For each other node one of them, its *carrier*, packs what goes there straight out of
//! everyone's buffers, and exchanges it with that node's carrier for this one; the others copy their blocks out of what
//! it has received. So the members share the work. Whose turn it is follows from the places of the nodes.
//!
//! A message between carriers begins with a word. It is the length of all blocks, which follow, where members know of
//! no other length (`MPI_Alltoall`). Or it is [`VARYING`], and a [`Bundle`] follows: lengths travel with the blocks,
//! and say which ones do not, because they are long. Those travel *apart*, straight between members, when both know of
//! them. Or it is [`APART`]: at least half of the blocks between the two nodes are long, all travel apart at once, and
//! nothing follows. Should members of two nodes disagree about the word, in a wrong program, each takes what the other
//! one's says, and all blocks between them travel apart if one says so.

use crate::args::Blocks;
use crate::blocking::round::{Finish, Record, Round};
use crate::blocking::schedule::{builder, run};
use crate::bundle::{Bundle, Content, longest_of_all};
use crate::bytes::Bytes;
use crate::data::{copy_piece, copy_whole};
use crate::members::{Caller, Hierarchy, LocalGroup};
use crate::memory::{Packed, bytes, reserve};
use crate::write::ScheduleBuilder;
use alloc::vec::Vec;
use cohort_base::settings::Carriers;
use cohort_core::EngineError;
use cohort_datatype::Buffer;
use core::cell::Cell;

/// Instead of a length: blocks travel apart.
const APART: u64 = u64::MAX;

/// Instead of a length: a bundle follows.
const VARYING: u64 = u64::MAX - 1;

/// Bytes of the word that a message between carriers begins with.
const HEADER: u64 = size_of::<u64>() as u64;

/// What a member posts.
struct Post<'a> {
    send: &'a Blocks<'a>,
    receive: &'a Blocks<'a>,
    /// The length of all its blocks, or [`VARYING`].
    block: u64,
    /// How many blocks from and to each node are long; nothing if none is.
    long: Vec<u32>,
}

// SAFETY: no other record has this number.
unsafe impl Record for Post<'_> {
    const NUMBER: u64 = 3;
}

/// A message between the carriers of two nodes: the blocks from each of the sender's members to each of the
/// receiver's.
#[derive(Clone, Copy)]
struct Message {
    bytes: Bytes,
    blocks: usize,
    /// The longest block that goes with others.
    most: u64,
}

impl Message {
    /// Bytes of a message that begins with `word`, with so many blocks of these lengths.
    fn length(word: u64, blocks: usize, most: u64, lengths: impl Iterator<Item = u64>) -> u64 {
        let data = match word {
            APART => return HEADER,
            VARYING => lengths.filter(|&length| length <= most).sum(),
            block => blocks as u64 * block,
        };
        HEADER + Bundle::bytes(blocks, data)
    }

    /// Its word.
    fn word(&self) -> u64 {
        self.bytes.word(0)
    }

    fn bundle(&self) -> Bundle {
        let behind = self.bytes.part(HEADER, self.bytes.length() - HEADER);
        Bundle::filled(behind, self.blocks, self.most)
    }

    /// Whether it has room for equally long blocks.
    fn has_equal(&self, block: u64) -> bool {
        let data = block.checked_mul(self.blocks as u64);
        data.is_some_and(|data| data <= self.bytes.length() - HEADER)
    }

    /// Block `number` of equally long ones.
    fn equal(&self, number: usize, block: u64) -> Bytes {
        self.bytes.part(HEADER + number as u64 * block, block)
    }

    /// Without blocks, until others are there.
    fn clear(&self, word: u64) {
        self.bytes.set_word(0, word);
        if word == VARYING {
            Bundle::at(self.bytes.part(HEADER, self.bytes.length() - HEADER), self.blocks, self.most);
        }
    }

    /// What of it is sent.
    fn buffer(&self) -> Buffer<'static> {
        match self.word() {
            APART | VARYING => self.bytes.buffer(),
            block => self.bytes.part(0, HEADER + self.blocks as u64 * block).buffer(),
        }
    }
}

/// The messages that one member carries, and their memory.
struct Messages {
    _memory: Vec<u8>,
    /// Those of the nodes that it carries for, in their order.
    all: Vec<Message>,
}

// SAFETY: no other record has this number.
unsafe impl Record for Messages {
    const NUMBER: u64 = 4;
}

impl Messages {
    /// Empty ones of so many blocks, with so many bytes, that begin so.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`].
    fn new(messages: &[(usize, u64, u64)], most: u64) -> Result<Self, EngineError> {
        let (_memory, bytes) = bytes(messages.iter().map(|&(_, length, _)| length).sum())?;
        let mut all = reserve(messages.len())?;
        let mut at = 0;
        for &(blocks, length, word) in messages {
            let message = Message { bytes: bytes.part(at, length), blocks, most };
            message.clear(word);
            all.push(message);
            at += length;
        }
        Ok(Self { _memory, all })
    }
}

/// The place of the member of node `of` that carries what goes to, and comes from, another node: one for all nodes, or
/// all in turn.
fn carrier(hierarchy: &Hierarchy, is_shared: bool, of: usize, other: usize) -> usize {
    if !is_shared {
        return 0;
    }
    let nodes = hierarchy.nodes();
    let distance = (other + nodes - of) % nodes;
    (distance - 1) % hierarchy.members(of).len()
}

/// What the messages to each node begin with.
enum Words {
    All(u64),
    Each(Vec<u64>),
}

impl Words {
    fn of(&self, node: usize) -> u64 {
        match self {
            Self::All(word) => *word,
            Self::Each(words) => words[node],
        }
    }
}

/// What a member knows of an exchange.
struct Exchange<'e> {
    group: &'e Caller<'e>,
    hierarchy: &'e Hierarchy,
    here: LocalGroup<'e>,
    send: &'e Blocks<'e>,
    receive: &'e Blocks<'e>,
    /// The length of all blocks, or [`VARYING`].
    block: u64,
    /// The longest block that goes with others.
    most: u64,
    /// Whether all members of a node carry something, as far as there are other nodes.
    is_shared: bool,
}

/// All-to-all.
///
/// # Errors
/// As [`alltoall`](crate::alltoall).
pub(super) fn alltoall(
    group: &Caller<'_>,
    hierarchy: &Hierarchy,
    send: Option<&Blocks<'_>>,
    receive: &Blocks<'_>,
) -> Result<(), EngineError> {
    let most = longest_of_all(group.size());
    let here = group.local(hierarchy);
    let block = receive.equal_bytes(1).unwrap_or(VARYING);
    let is_shared = group.rank().node().settings().carriers == Carriers::All;
    let Some(send) = send else {
        let packed = Packed::of_others(receive, group.me(), group.size())?;
        return Exchange { group, hierarchy, here, send: &packed.blocks(), receive, block, most, is_shared }.run();
    };
    // Should it send blocks of another length, these travel with their lengths.
    let block = send.equal_bytes(1).filter(|&sent| sent == block).unwrap_or(VARYING);
    let own = copy_whole(receive.block(group.me()), send.block(group.me()));
    own.and(Exchange { group, hierarchy, here, send, receive, block, most, is_shared }.run())
}

impl Exchange<'_> {
    /// The other nodes, the next one first.
    fn others(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        let (nodes, this_node) = (self.hierarchy.nodes(), self.hierarchy.this_node());
        (1..nodes).map(move |distance| (this_node + distance) % nodes)
    }

    /// Those that the caller carries for.
    fn carried(&self) -> impl Iterator<Item = usize> + Clone {
        let (this_node, me) = (self.hierarchy.this_node(), self.here.me());
        self.others().filter(move |&node| self.carrier(this_node, node) == me)
    }

    /// How many members of the node carry something: the first ones.
    fn carriers(&self) -> usize {
        match self.is_shared {
            true => self.here.size().min(self.hierarchy.nodes() - 1),
            false => 1,
        }
    }

    fn carrier(&self, of: usize, other: usize) -> usize {
        carrier(self.hierarchy, self.is_shared, of, other)
    }

    /// Exchanges all blocks but the caller's own.
    fn run(&self) -> Result<(), EngineError> {
        let post = Post { send: self.send, receive: self.receive, block: self.block, long: self.count_long()? };
        let round = Round::begin(&self.here);
        round.post_address(&post);
        round.exchange();
        let near = self.swap_here(&round);
        let words = self.words(&round, &post);
        let carried = words.as_ref().map_or(Ok(None), |words| self.carry(&round, &post, words));
        round.finish(Finish::Everyone);
        let (words, carried) = (words?, carried?);
        let mut schedule = builder(self.group, None);
        // Filled by the exchange before others hear of it.
        let incoming = carried.as_ref().map(|[outgoing, incoming]| {
            self.exchange(&mut schedule, outgoing, incoming);
            incoming
        });
        let apart = self.others().filter(|&node| words.of(node) == APART);
        self.travel_apart(&mut schedule, apart.clone());
        let outcome = near.and(run(self.group.owner, schedule));
        match apart.count() + 1 == self.hierarchy.nodes() {
            true => outcome,
            false => outcome.and(self.take_all(incoming, &words)),
        }
    }

    /// How many of the caller's blocks from and to each node are long; nothing if none can be.
    fn count_long(&self) -> Result<Vec<u32>, EngineError> {
        if self.block <= self.most {
            return Ok(Vec::new());
        }
        let mut long = reserve(self.hierarchy.nodes())?;
        long.extend((0..self.hierarchy.nodes()).map(|node| {
            let members = self.hierarchy.members(node).iter().map(|&it| it as usize);
            let blocks = members.flat_map(|member| [self.send.block(member), self.receive.block(member)]);
            blocks.filter(|block| block.bytes() > self.most).count() as u32
        }));
        Ok(long)
    }

    /// What this node's messages begin with.
    fn words(&self, round: &Round<'_>, own: &Post<'_>) -> Result<Words, EngineError> {
        let block = own.block;
        if block <= self.most && round.others().all(|place| round.record::<Post<'_>>(place).block == block) {
            return Ok(Words::All(block));
        }
        let mut words = reserve(self.hierarchy.nodes())?;
        words.extend((0..self.hierarchy.nodes()).map(|node| {
            let long = |place| self.post(round, own, place).long.get(node).map_or(0, |&long| long as usize);
            let all = self.here.size() * self.hierarchy.members(node).len();
            match (0..self.here.size()).map(long).sum::<usize>() >= all {
                true => APART,
                false => VARYING,
            }
        }));
        Ok(Words::Each(words))
    }

    /// What the caller carries: what it sends, and room for what it receives.
    fn carry(&self, round: &Round<'_>, own: &Post<'_>, words: &Words) -> Result<Option<[Messages; 2]>, EngineError> {
        if self.here.me() >= self.carriers() {
            return Ok(None);
        }
        Ok(Some([self.pack(round, own, words)?, self.incoming(round, own, words)?]))
    }

    /// Copies the blocks of the node's other members.
    fn swap_here(&self, round: &Round<'_>) -> Result<(), EngineError> {
        let mut outcome = Ok(());
        for place in round.others() {
            let member = self.hierarchy.local_members()[place] as usize;
            let block = round.record::<Post<'_>>(place).send.block(self.group.me());
            outcome = outcome.and(copy_whole(self.receive.block(member), block));
        }
        outcome
    }

    /// What a member of the node has posted.
    fn post<'r>(&self, round: &'r Round<'_>, own: &'r Post<'r>, place: usize) -> &'r Post<'r> {
        match place == self.here.me() {
            true => own,
            false => round.record::<Post<'_>>(place),
        }
    }

    /// Packs what the node's members send to the nodes that the caller carries for.
    fn pack(&self, round: &Round<'_>, own: &Post<'_>, words: &Words) -> Result<Messages, EngineError> {
        let mut lengths = Vec::new();
        let pairs = |node: usize| {
            let places = 0..self.here.size();
            places.flat_map(move |place| self.hierarchy.members(node).iter().map(move |&to| (place, to as usize)))
        };
        let block = |(place, to): (usize, usize)| self.post(round, own, place).send.block(to);
        for node in self.carried() {
            let blocks = self.here.size() * self.hierarchy.members(node).len();
            let each = pairs(node).map(|pair| block(pair).bytes());
            let word = words.of(node);
            lengths.push((blocks, Message::length(word, blocks, self.most, each), word));
        }
        let messages = Messages::new(&lengths, self.most)?;
        for (node, message) in self.carried().zip(&messages.all) {
            match message.word() {
                APART => {}
                VARYING => {
                    let next = Cell::new(None);
                    let members = self.hierarchy.members(node);
                    let lengths = |number: usize| {
                        let found = block((number / members.len(), members[number % members.len()] as usize));
                        next.set(Some(found));
                        found.bytes()
                    };
                    message.bundle().fill(lengths, |_, out| {
                        if let Some(block) = next.get() {
                            copy_piece(out.buffer(), block, 0..out.length());
                        }
                    });
                }
                length => {
                    for (number, pair) in pairs(node).enumerate() {
                        copy_piece(message.equal(number, length).buffer(), block(pair), 0..length);
                    }
                }
            }
        }
        Ok(messages)
    }

    /// Room for what comes from the nodes that the caller carries for.
    fn incoming(&self, round: &Round<'_>, own: &Post<'_>, words: &Words) -> Result<Messages, EngineError> {
        let mut lengths = Vec::new();
        for node in self.carried() {
            let members = self.hierarchy.members(node);
            let places = 0..self.here.size();
            let each = places.flat_map(|place| {
                let receive = self.post(round, own, place).receive;
                members.iter().map(move |&from| receive.block(from as usize).bytes())
            });
            let blocks = self.here.size() * members.len();
            let word = words.of(node);
            lengths.push((blocks, Message::length(word, blocks, self.most, each), word));
        }
        Messages::new(&lengths, self.most)
    }

    /// Steps that exchange messages with the carriers of other nodes.
    fn exchange(&self, schedule: &mut ScheduleBuilder<'_>, outgoing: &Messages, incoming: &Messages) {
        let this_node = self.hierarchy.this_node();
        let peer = |node| self.hierarchy.members(node)[self.carrier(node, this_node)] as usize;
        for (node, message) in self.carried().zip(&incoming.all) {
            schedule.receive(peer(node), message.bytes.buffer());
        }
        for (node, message) in self.carried().zip(&outgoing.all) {
            schedule.send(peer(node), message.buffer());
        }
    }

    /// Steps that exchange all blocks with the members of some other nodes.
    fn travel_apart<'s>(&'s self, schedule: &mut ScheduleBuilder<'s>, nodes: impl Iterator<Item = usize> + Clone) {
        let members = nodes.flat_map(|node| self.hierarchy.members(node));
        let members = members.map(|&member| member as usize);
        for member in members.clone() {
            schedule.receive(member, self.receive.block(member));
        }
        for member in members {
            schedule.send(member, self.send.block(member));
        }
    }

    /// Takes the caller's blocks out of what carriers have received, and exchanges the long ones.
    fn take_all(&self, incoming: Option<&Messages>, words: &Words) -> Result<(), EngineError> {
        let me = self.here.me();
        let round = Round::begin(&self.here);
        if let Some(incoming) = incoming {
            round.post_address(incoming);
            round.announce();
        }
        (0..self.carriers()).filter(|&place| place != me).for_each(|place| round.await_member(place));
        let mut schedule = builder(self.group, None);
        let mut outcome = Ok(());
        let mut seen: Vec<usize> = reserve(self.carriers())?;
        seen.resize(self.carriers(), 0);
        for node in self.others() {
            let place = self.carrier(self.hierarchy.this_node(), node);
            let messages = match incoming.filter(|_| place == me) {
                Some(incoming) => incoming,
                None => round.record::<Messages>(place),
            };
            let message = messages.all[seen[place]];
            seen[place] += 1;
            let word = words.of(node);
            if word == APART {
                // They have travelled.
            } else if message.word() == APART {
                self.travel_apart(&mut schedule, core::iter::once(node));
            } else {
                outcome = outcome.and(self.take(&mut schedule, node, message, word));
            }
        }
        round.finish(match incoming {
            Some(_) => Finish::Everyone,
            None => Finish::Nobody,
        });
        outcome.and(run(self.group.owner, schedule))
    }

    /// Takes the caller's blocks out of a message from a node; steps for those that are not in it, and for those that
    /// are not in the message to that node.
    fn take<'s>(
        &'s self,
        schedule: &mut ScheduleBuilder<'s>,
        node: usize,
        message: Message,
        word: u64,
    ) -> Result<(), EngineError> {
        let (members, places, me) = (self.hierarchy.members(node), self.here.size(), self.here.me());
        let mut outcome = Ok(());
        match message.word() {
            VARYING => {
                let contents = message.bundle().contents().enumerate();
                for (number, content) in contents.filter(|(number, _)| number % places == me) {
                    let member = members[number / places] as usize;
                    match content {
                        Content::Apart { .. } => schedule.receive(member, self.receive.block(member)),
                        Content::Inside { .. } => outcome = outcome.and(content.deliver(self.receive.block(member))),
                    }
                }
            }
            length if length == word || (word == VARYING && message.has_equal(length)) => {
                for (number, &member) in members.iter().enumerate() {
                    let from = message.equal(number * places + me, length).buffer();
                    outcome = outcome.and(copy_whole(self.receive.block(member as usize), from));
                }
            }
            length => outcome = Err(EngineError::Truncated { message: length, buffer: word }),
        }
        if word == VARYING {
            let long = members.iter().map(|&member| (member as usize, self.send.block(member as usize)));
            long.filter(|(_, block)| block.bytes() > self.most).for_each(|(to, block)| schedule.send(to, block));
        }
        outcome
    }
}
