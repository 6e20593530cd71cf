//! Going on after a failure in a job of several nodes.
//!
//! The first node's launcher is where all is put in order: it hears of each failure, says once what has failed, and all
//! others take that in the same order ([`NodeApi::died`](cohort_base::boot::NodeApi::died)). So "the first so many
//! failures" means the same to all ranks of the job. It decides what members of several nodes agree on, too.
//!
//! A node has failed when the first one says so: when its launcher is gone or silent, when another node cannot reach
//! it, or when it says itself that it cannot go on. Who has failed stays out: it ends its part as soon as it hears of
//! that, or notices that it is cut off from the first node. So a job never splits into two that both go on. Where the
//! first node is gone, the job ends.

use super::Job;
use cohort_base::boot::Agreement;
use nix::sys::signal::{SigHandler, Signal};
use pip_ground::say;
use pip_monitor::NodeEvent;
use std::collections::{BTreeMap, BTreeSet};

/// What a node says in an agreement, or what all have come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    context: u32,
    number: u32,
    word: u32,
    acknowledged: u32,
    failures: u32,
    numbers: [u32; 3],
    members: Vec<u32>,
}

/// What one launcher tells others.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    /// These ranks have failed: to the first node, or from it.
    Ranks(Vec<u32>),
    /// A node seems to have failed: which, who says so, and why.
    Suspect(u32, u32, String),
    /// These nodes have failed.
    Nodes(Vec<u32>),
    /// Nobody communicates in this context any more.
    Closed(u32),
    /// What the members at this node say.
    Says(u32, Said),
    /// What all have agreed on.
    Agreed(Said),
}

impl Word {
    fn encode(&self) -> Vec<u8> {
        let (kind, words, text): (u32, Vec<u32>, &str) = match self {
            Self::Ranks(ranks) => (1, ranks.clone(), ""),
            Self::Suspect(node, by, why) => (2, vec![*node, *by], why),
            Self::Nodes(nodes) => (3, nodes.clone(), ""),
            Self::Closed(context) => (4, vec![*context], ""),
            Self::Says(node, said) => (5, [vec![*node], said.words()].concat(), ""),
            Self::Agreed(said) => (6, said.words(), ""),
        };
        let head = [kind, words.len() as u32];
        let numbers = head.into_iter().chain(words).flat_map(u32::to_le_bytes);
        numbers.chain(text.bytes()).collect()
    }

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut number = || {
            let (word, rest) = bytes.split_first_chunk()?;
            bytes = rest;
            Some(u32::from_le_bytes(*word))
        };
        let (kind, count) = (number()?, number()?);
        let words = (0..count).map(|_| number()).collect::<Option<Vec<u32>>>()?;
        let text = String::from_utf8_lossy(bytes).into_owned();
        Some(match (kind, &words[..]) {
            (1, _) => Self::Ranks(words),
            (2, &[node, by]) => Self::Suspect(node, by, text),
            (3, _) => Self::Nodes(words),
            (4, &[context]) => Self::Closed(context),
            (5, [node, said @ ..]) => Self::Says(*node, Said::of_words(said)?),
            (6, said) => Self::Agreed(Said::of_words(said)?),
            _ => return None,
        })
    }
}

impl Said {
    fn words(&self) -> Vec<u32> {
        let head = [self.context, self.number, self.word, self.acknowledged, self.failures];
        head.into_iter().chain(self.numbers).chain(self.members.iter().copied()).collect()
    }

    fn of_words(words: &[u32]) -> Option<Self> {
        let (&[context, number, word, acknowledged, failures, first, second, third], members) =
            words.split_first_chunk()?;
        let (numbers, members) = ([first, second, third], members.to_vec());
        Some(Self { context, number, word, acknowledged, failures, numbers, members })
    }

    /// # Safety
    /// The members are there.
    pub(super) unsafe fn of(record: &Agreement) -> Self {
        // SAFETY: the caller's promise.
        let members = unsafe { std::slice::from_raw_parts(record.members, record.members_len as usize) };
        Self {
            context: record.context,
            number: record.number,
            word: record.word,
            acknowledged: record.acknowledged,
            failures: record.failures,
            numbers: record.numbers,
            members: members.to_vec(),
        }
    }

    pub(super) fn record(&self) -> Agreement {
        Agreement {
            context: self.context,
            number: self.number,
            word: self.word,
            acknowledged: self.acknowledged,
            failures: self.failures,
            numbers: self.numbers,
            members: self.members.as_ptr(),
            members_len: self.members.len() as u32,
        }
    }
}

/// Agreements that are under way, as the first node knows them: what each node has said.
#[derive(Debug, Default)]
struct Table {
    open: BTreeMap<(u32, u32), BTreeMap<u32, Said>>,
}

impl Table {
    /// Takes out those to which nothing is missing, and what their members have agreed on. A node is waited for if
    /// a member of it has not failed.
    fn decide(&mut self, home: impl Fn(u32) -> Option<u32>, failed: &[u32]) -> Vec<Said> {
        let is_done = |said: &BTreeMap<u32, Said>| {
            let members = said.values().next().map_or(&[][..], |it| &it.members);
            let mut living = members.iter().filter(|member| !failed.contains(member));
            living.all(|&member| home(member).is_some_and(|node| said.contains_key(&node)))
        };
        let done: Vec<_> = self.open.iter().filter(|(_, said)| is_done(said)).map(|(&key, _)| key).collect();
        let taken = done.into_iter().filter_map(|key| self.open.remove(&key));
        taken.filter_map(|said| Self::decision(&said, failed.len() as u32)).collect()
    }

    fn decision(said: &BTreeMap<u32, Said>, failures: u32) -> Option<Said> {
        let mut decision = said.values().next()?.clone();
        for other in said.values() {
            decision.word &= other.word;
            decision.acknowledged = decision.acknowledged.min(other.acknowledged);
        }
        decision.failures = failures;
        decision.members.clear();
        Some(decision)
    }
}

/// What this launcher knows of failures.
#[derive(Debug, Default)]
pub(super) struct Survivors {
    /// The ranks that have failed, in order.
    failed: Vec<u32>,
    /// Nodes that have.
    out: BTreeSet<u32>,
    /// The first node's.
    table: Table,
    /// What ranks of this node have been asked for up to now.
    words: u32,
    /// Closed contexts that all nodes know.
    closed: BTreeSet<u32>,
    /// Nodes that the first one was told of.
    suspected: BTreeSet<u32>,
}

/// Has this process and its ranks ignore SIGUSR1, unless they handle it: with `-disable-auto-cleanup` Hydra sends it to
/// all processes of a host when one has ended. Before any rank is started.
pub(super) fn ignore_news_of_ends() {
    // SAFETY: no handler is set.
    let _ = unsafe { nix::sys::signal::signal(Signal::SIGUSR1, SigHandler::SigIgn) };
}

impl Job<'_> {
    /// Whether ranks survive each other on several nodes.
    fn survives_nodes(&self) -> bool {
        self.survives && self.membership.world().place.count > 1
    }

    /// A rank of this node has failed, and others go on. Whether there are any.
    pub(super) fn lose_rank(&mut self, rank: usize) -> bool {
        if let Some(outside) = &mut self.outside {
            outside.forget_names(rank as u32);
        }
        if !self.survives_nodes() {
            self.survivors.failed.extend(self.spawner.numbers.get(rank));
            self.spawner.node.died(rank as u32);
            self.tell_other_jobs(rank);
            return !self.alive.is_empty();
        }
        let number = self.spawner.numbers[rank];
        let all = self.membership.world().homes.len();
        if self.survivors.failed.len() + usize::from(!self.survivors.failed.contains(&number)) >= all {
            return false;
        }
        if !self.spawner.node.free(rank) {
            let name = self.name_of(rank);
            let why = format!("{name} died in a call of the network, which all ranks of the node share");
            self.fail_itself(&why);
            return true;
        }
        self.tell_first(Word::Ranks(vec![number]));
        true
    }

    /// Whether a rank has failed, and the others go on.
    pub(super) fn has_failed(&self, rank: u32) -> bool {
        self.survivors.failed.contains(&rank)
    }

    /// Others wait for these ranks, which never come. By the first node.
    pub(super) fn count_as_failed(&mut self, ranks: Vec<u32>) {
        if self.survives_nodes() {
            return self.take_at_first(Word::Ranks(ranks));
        }
        for rank in ranks {
            if let Some(own) = self.spawner.numbers.iter().position(|&number| number == rank) {
                self.lose_rank(own);
            }
        }
    }

    /// A rank of this node has failed.
    fn tell_other_jobs(&self, rank: usize) {
        if let Some(outside) = &self.outside {
            outside.tell_of_death(rank as u32);
        }
    }

    /// Tells other jobs in which contexts nobody communicates any more.
    pub(super) fn tell_closed(&mut self) {
        if let Some(outside) = self.outside.as_mut().filter(|_| self.survives) {
            outside.tell_closed(self.spawner.node.closed_contexts());
        }
    }

    /// This node cannot go on.
    fn fail_itself(&mut self, why: &str) {
        let own = self.membership.world().place.index;
        if own == 0 {
            say(format_args!("{why}, and the job cannot go on without its first node"));
            return self.begin_shutdown(1);
        }
        self.tell_first(Word::Suspect(own, own, why.to_owned()));
        self.drop_out();
    }

    /// This node's part of the job ends, and the others go on.
    fn drop_out(&mut self) {
        self.membership.drop_out();
        self.begin_shutdown(1);
    }

    /// Whether the job ends with a bad status since nobody is left.
    pub(super) fn is_nobody_left(&self) -> bool {
        self.survives_nodes() && self.survivors.failed.len() >= self.membership.world().homes.len()
    }

    /// What has happened to other nodes, where ranks survive that. Whether they do.
    pub(super) fn look_for_failed_nodes(&mut self) -> bool {
        if !self.survives_nodes() {
            return false;
        }
        let own = self.membership.world().place.index;
        for event in self.membership.monitor_mut().events() {
            let (node, why) = match event {
                NodeEvent::Ended(node, finish) if !self.survivors.out.contains(&node) => {
                    self.begin_shutdown(finish.status);
                    continue;
                }
                NodeEvent::Ended(..) => continue,
                NodeEvent::Lost(node) => (node, "it is gone".to_owned()),
                NodeEvent::Silent(node) => (node, self.silence()),
            };
            if node > own {
                self.suspect(node, why);
            } else if !self.membership.is_out() && self.ends.shutdown.is_none() {
                let host = self.membership.world().host(node).to_owned();
                say(format_args!(
                    "node {own} has lost node {node} ({host}), by which it is joined with the first one: {why}. Its \
                     part of the job ends"
                ));
                self.drop_out();
            }
        }
        while let Some(dead) = self.membership.next_dead() {
            let why = match dead.code {
                libc::ECONNREFUSED => "its process is gone".to_owned(),
                _ => self.silence(),
            };
            self.suspect(dead.node, why);
        }
        true
    }

    fn silence(&self) -> String {
        let seconds = self.membership.monitor().silence();
        format!("it has not answered for {seconds} s (COHORT_NET_TIMEOUT): it is stopped, or cut off")
    }

    /// A node seems to have failed.
    fn suspect(&mut self, node: u32, why: String) {
        let is_known = self.survivors.out.contains(&node) || self.membership.monitor().has_ended(node);
        if !is_known && self.survivors.suspected.insert(node) {
            let own = self.membership.world().place.index;
            self.tell_first(Word::Suspect(node, own, why));
        }
    }

    fn tell_first(&mut self, word: Word) {
        match self.membership.world().place.index {
            0 => self.take_at_first(word),
            _ => self.membership.monitor_mut().tell_up(word.encode()),
        }
    }

    /// The first node tells all, and itself.
    fn tell_all(&mut self, word: Word) {
        self.membership.monitor_mut().tell_down(word.encode());
        self.take(word);
    }

    /// The first node hears something.
    fn take_at_first(&mut self, word: Word) {
        match word {
            Word::Ranks(mut ranks) => {
                ranks.retain(|rank| !self.survivors.failed.contains(rank));
                if !ranks.is_empty() {
                    self.tell_all(Word::Ranks(ranks));
                }
            }
            Word::Suspect(node, by, why) => self.judge_node(node, by, &why),
            Word::Closed(context) => {
                if !self.survivors.closed.contains(&context) {
                    self.tell_all(Word::Closed(context));
                }
            }
            Word::Says(node, said) => {
                if !self.survivors.out.contains(&node) {
                    let key = (said.context, said.number);
                    self.survivors.table.open.entry(key).or_default().insert(node, said);
                }
            }
            Word::Nodes(_) | Word::Agreed(_) => {}
        }
        self.decide();
    }

    /// Declares a node failed, with those that are joined with the first one by it; or who says so, if that is about
    /// the first one.
    fn judge_node(&mut self, node: u32, by: u32, why: &str) {
        let out = &self.survivors.out;
        let (node, why) = match node {
            0 => (by, format!("it cannot reach node 0: {why}")),
            node => (node, why.to_owned()),
        };
        if node == 0 || out.contains(&node) || by != node && out.contains(&by) {
            return;
        }
        if self.membership.monitor().has_ended(node) {
            return;
        }
        let host = self.membership.world().host(node);
        say(format_args!("node {node} ({host}) has failed: {why}. The other nodes go on"));
        let count = self.membership.world().place.count;
        let nodes = (node..count).filter(|&it| pip_monitor::is_below(it, node) && !out.contains(&it)).collect();
        self.tell_all(Word::Nodes(nodes));
    }

    /// Tells what has been agreed on, where nothing is missing.
    fn decide(&mut self) {
        let world = self.membership.world();
        let home = |rank: u32| world.homes.get(rank as usize).map(|home| home.node);
        for said in self.survivors.table.decide(home, &self.survivors.failed) {
            self.tell_all(Word::Agreed(said));
        }
    }

    /// What the first node says.
    fn take(&mut self, word: Word) {
        match word {
            Word::Ranks(ranks) => self.note_failures(&ranks),
            Word::Nodes(nodes) => self.lose_nodes(&nodes),
            Word::Closed(context) => {
                if self.survivors.closed.insert(context) {
                    self.spawner.node.close_context(context);
                }
            }
            Word::Agreed(said) => self.spawner.node.agreed(&said.record()),
            Word::Suspect(..) | Word::Says(..) => {}
        }
    }

    fn note_failures(&mut self, ranks: &[u32]) {
        for &rank in ranks {
            if !self.survivors.failed.contains(&rank) {
                self.survivors.failed.push(rank);
                self.spawner.node.died(rank);
                if let Some(own) = self.spawner.numbers.iter().position(|&number| number == rank) {
                    self.tell_other_jobs(own);
                }
            }
        }
    }

    fn lose_nodes(&mut self, nodes: &[u32]) {
        let own = self.membership.world().place.index;
        if nodes.contains(&own) {
            if !self.membership.is_out() && self.ends.shutdown.is_none() {
                let host = self.membership.world().host(own);
                say(format_args!(
                    "node {own} ({host}) counts as failed for the others, which go on without it. Its part of the job \
                     ends"
                ));
                self.drop_out();
            }
            return;
        }
        for &node in nodes {
            self.survivors.out.insert(node);
            self.membership.lose(node);
            let ranks = self.membership.world().ranks_of(node);
            self.note_failures(&ranks);
        }
    }

    /// Hears what other launchers say, and tells them what ranks of this node have found.
    pub(super) fn serve_survivors(&mut self) {
        self.tell_closed();
        self.hear();
        if !self.survives_nodes() || self.membership.is_out() {
            return;
        }
        let is_first = self.membership.world().place.index == 0;
        for bytes in std::mem::take(&mut self.heard.others) {
            match Word::decode(&bytes) {
                Some(word) if is_first => self.take_at_first(word),
                Some(word) => self.take(word),
                None => {}
            }
        }
        let words = self.spawner.node.words();
        if words == self.survivors.words {
            // A failure may be all that agreements wait for.
            return self.tell_agreements();
        }
        self.survivors.words = words;
        for context in self.spawner.node.closed_contexts() {
            if !self.survivors.closed.contains(&context) {
                if !is_first {
                    self.survivors.closed.insert(context);
                }
                self.tell_first(Word::Closed(context));
            }
        }
        for node in 0..self.membership.world().place.count {
            if self.spawner.node.is_suspected(node) {
                self.suspect(node, "a connection with it has failed".to_owned());
            }
        }
        self.tell_agreements();
    }

    fn tell_agreements(&mut self) {
        let own = self.membership.world().place.index;
        let mut all = Vec::new();
        // SAFETY: the members of what it gives are there during the call.
        self.spawner.node.agreements(&mut |record| all.push(unsafe { Said::of(record) }));
        for said in all {
            self.tell_first(Word::Says(own, said));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(word: u32, acknowledged: u32) -> Said {
        Said { context: 8, number: 2, word, acknowledged, numbers: [9, 11, 13], members: vec![0, 1, 2, 3], failures: 0 }
    }

    #[test]
    fn words_arrive_as_they_were_said() {
        let words = [
            Word::Ranks(vec![1, 70_000]),
            Word::Suspect(3, 1, "it is gone".into()),
            Word::Nodes(vec![2]),
            Word::Closed(17),
            Word::Says(1, said(5, 2)),
            Word::Agreed(said(4, 1)),
        ];
        for word in words {
            assert_eq!(Word::decode(&word.encode()), Some(word));
        }
        for nonsense in [&[][..], &[1, 0, 0, 0], &[2, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0], &[9; 8]] {
            assert_eq!(Word::decode(nonsense), None);
        }
    }

    /// Two ranks on each of two nodes.
    #[test]
    fn an_agreement_waits_for_nodes_with_living_members() {
        let home = |rank: u32| Some(rank / 2);
        let mut table = Table::default();
        table.open.entry((8, 2)).or_default().insert(0, said(7, 3));
        assert!(table.decide(home, &[]).is_empty());
        assert!(table.decide(home, &[3]).is_empty());
        table.open.entry((8, 2)).or_default().insert(1, said(13, 1));
        let all = table.decide(home, &[3]);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].word, all[0].acknowledged, all[0].failures), (5, 1, 1));
        table.open.entry((8, 3)).or_default().insert(0, said(7, 3));
        assert_eq!(table.decide(home, &[3, 2]).len(), 1, "nobody is left on the other node");
        assert!(table.open.is_empty());
    }
}
