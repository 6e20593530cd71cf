//! Groups on several nodes that meet one of another job: each of their nodes needs a connection with each of the
//! other's.
//!
//! The leaders tell each other where their nodes are reached, beside who their members are. Then the launchers on the
//! side that has connected at the port make the connections, and those of the other side wait for them.

use crate::comm::Comm;
use crate::outside::{self, reason, token, words_of};
use crate::{Error, Outcome, blame};
use alloc::string::String;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_base::Peer;
use cohort_base::spawn::Errand;
use cohort_engine::coll::Table;

/// Longest text that says where a node is reached.
pub(super) const CONTACT_MAX: usize = 256;

/// The same in words.
const WORDS: usize = CONTACT_MAX / 4;

/// What a leader tells of its side, as words: how many contacts, these, and the members.
pub(super) struct Words {
    contacts: Vec<String>,
    members: Vec<i32>,
}

impl Words {
    /// What the other leader has told.
    pub(super) fn read(words: &[i32]) -> Self {
        let (&count, rest) = words.split_first().unwrap_or((&0, &[]));
        let (contacts, members) = rest.split_at((count as usize * WORDS).min(rest.len()));
        let contacts = contacts.chunks_exact(WORDS).filter_map(|words| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take_while(|&it| it != 0).collect();
            String::from_utf8(bytes).ok()
        });
        Self { contacts: contacts.collect(), members: members.to_vec() }
    }

    /// As they are told.
    pub(super) fn of(contacts: &[[i32; WORDS]], members: &[i32]) -> Vec<i32> {
        let mut words = Vec::with_capacity(1 + contacts.len() * WORDS + members.len());
        words.push(contacts.len() as i32);
        words.extend_from_slice(contacts.as_flattened());
        words.extend_from_slice(members);
        words
    }

    /// The members.
    pub(super) fn members(&self) -> &[i32] {
        &self.members
    }
}

fn words_of_text(text: &str) -> [i32; WORDS] {
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(text.as_bytes().chunks(4)) {
        let mut whole = [0; 4];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = i32::from_le_bytes(whole);
    }
    words
}

impl Comm {
    /// What the member `root` tells of this side; others get nothing of use. It says whether the other side may be of
    /// another job. Collective.
    ///
    /// # Errors
    /// A node of a member cannot be reached from outside.
    pub(super) fn words_of_side(&self, root: u32, may_be_far: bool) -> Outcome<Result<Vec<i32>, Error>> {
        let node = self.rank.node();
        let members = words_of(self.rank, &self.group);
        let is_here = |member: &Peer| node.local(*member).is_some();
        let contact = || outside::run(self.rank, Errand::Listen, "").unwrap_or_default().1;
        if self.group.members().iter().all(is_here) {
            let contact = if may_be_far && root == self.me { contact() } else { String::new() };
            let contacts = [words_of_text(&contact)];
            return Ok(Ok(Words::of(if contact.is_empty() { &[] } else { &contacts }, &members)));
        }
        let mut asks = [i32::from(may_be_far)];
        self.tell(&mut asks, root)?;
        if asks == [0] {
            return Ok(Ok(Words::of(&[], &members)));
        }
        let speaks = self.group.members().iter().find(|member| is_here(member)) == Some(&self.rank.peer());
        let text = if speaks { contact() } else { String::new() };
        let all = self.allgather(Table::Port, words_of_text(&text))?;
        let contacts: Vec<_> = all.into_iter().filter(|words| words[0] != 0).collect();
        let mut homes: Vec<u32> = self.group.members().iter().map(|&member| node.home_node(member)).collect();
        homes.sort_unstable();
        homes.dedup();
        // In the own job nobody needs them.
        let is_whole = contacts.len() == homes.len() || contacts.is_empty();
        Ok(match is_whole {
            true => Ok(Words::of(&contacts, &members)),
            false => {
                let what = format_args!("nodes of some members have no launcher that other jobs could reach");
                Err(blame(neutral::ERR_PORT, what))
            }
        })
    }

    /// Has this node joined with all those of the other side, which this side `calls` or waits for. Collective.
    ///
    /// # Errors
    /// `MPI_ERR_PORT` at all members if one of them is not joined with one of the other side's nodes.
    pub(super) fn reach_all(&self, side: &Words, calls: bool) -> Outcome<()> {
        let own = outside::digits(token(self.rank.node()));
        let mut others = side.contacts.iter().filter(|text| !text.starts_with(own.as_str())).peekable();
        if others.peek().is_none() {
            return Ok(());
        }
        let reach = |text: &String| {
            let place = || text.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
            match calls {
                true => outside::run(self.rank, Errand::Reach, text),
                false => outside::run(self.rank, Errand::Await, &place()),
            }
        };
        let reached = others.try_for_each(|text| reach(text).map(drop));
        let ([failed], _) = self.largest(Table::Port, [i32::from(reached.is_err())])?;
        match (reached, failed) {
            (Ok(()), 0) => Ok(()),
            (Err(why), _) => Err(blame(neutral::ERR_PORT, format_args!("{}", reason(&why).as_str()))),
            (Ok(()), _) => {
                let what = format_args!("a node of another member cannot reach a node of the other job");
                Err(blame(neutral::ERR_PORT, what))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_leader_tells_is_read_as_it_was_told() {
        let contacts = ["00ab/0/1026/x/1/2/127.0.0.1", "00ab/1/1026/y/1/2/192.0.2.1"];
        let told = Words::of(&contacts.map(words_of_text), &[1, 2, 3, 4, 5]);
        let read = Words::read(&told);
        assert_eq!((read.contacts, read.members), (contacts.map(String::from).to_vec(), alloc::vec![1, 2, 3, 4, 5]));
        let nothing = Words::read(&Words::of(&[], &[7]));
        assert_eq!((nothing.contacts.len(), nothing.members), (0, alloc::vec![7]));
        assert!(Words::read(&[]).members.is_empty() && Words::read(&[9, 1]).members.is_empty());
    }
}
