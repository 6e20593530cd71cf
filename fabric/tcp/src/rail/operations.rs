//! Reads and writes under way.

use cohort_fabric_host::event_queue::Ticket;

/// A read or a write under way.
#[derive(Clone, Copy, Debug)]
pub struct RailOperation {
    /// Whose it is.
    pub ticket: Ticket,
    /// The node that answers it.
    pub node: u32,
    /// Where a read's bytes go; NULL for a write.
    pub memory: *mut u8,
    /// How many.
    pub length: usize,
}

// SAFETY: the memory is of a transfer under way, which any thread may use, one at a time as the rail's lock demands.
unsafe impl Send for RailOperation {}

/// All of a rail. An id is the index of an entry and its generation.
#[derive(Debug, Default)]
pub struct Operations {
    entries: Vec<(u32, Option<RailOperation>)>,
    free: Vec<u32>,
}

impl Operations {
    /// Takes one in; its id.
    pub fn add(&mut self, operation: RailOperation) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push((1, None));
            self.entries.len() as u32 - 1
        });
        let (generation, place) = &mut self.entries[index as usize];
        *place = Some(operation);
        u64::from(index) | u64::from(*generation) << 32
    }

    /// The one that `node` answers.
    #[must_use]
    pub fn get(&self, node: u32, id: u64) -> Option<RailOperation> {
        let (generation, operation) = self.entries.get(id as u32 as usize)?;
        operation.filter(|operation| operation.node == node && u64::from(*generation) == id >> 32)
    }

    /// As [`Self::get`]; it is over.
    pub fn remove(&mut self, node: u32, id: u64) -> Option<RailOperation> {
        let operation = self.get(node, id)?;
        self.free_entry(id as u32);
        Some(operation)
    }

    fn free_entry(&mut self, index: u32) {
        let (generation, place) = &mut self.entries[index as usize];
        *place = None;
        *generation = generation.wrapping_add(1);
        self.free.push(index);
    }

    /// Ends all that a node should answer.
    pub fn end_all(&mut self, node: u32, mut each: impl FnMut(RailOperation)) {
        for index in 0..self.entries.len() {
            if let Some(operation) = self.entries[index].1.filter(|one| one.node == node) {
                each(operation);
                self.free_entry(index as u32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(node: u32, token: u64) -> RailOperation {
        RailOperation { ticket: Ticket { rank: 0, token }, node, memory: std::ptr::null_mut(), length: 0 }
    }

    #[test]
    fn an_id_is_good_once_and_for_its_node() {
        let mut operations = Operations::default();
        let first = operations.add(read(1, 10));
        let second = operations.add(read(2, 20));
        assert!(operations.get(2, first).is_none());
        assert_eq!(operations.remove(1, first).unwrap().ticket.token, 10);
        assert!(operations.remove(1, first).is_none());
        let again = operations.add(read(1, 30));
        assert_eq!(again as u32, first as u32);
        assert!(operations.get(1, first).is_none());
        assert!(operations.get(1, 77).is_none());
        let mut ended = Vec::new();
        operations.end_all(2, |operation| ended.push(operation.ticket.token));
        assert_eq!(ended, [20]);
        assert!(operations.get(2, second).is_none() && operations.get(1, again).is_some());
    }

    #[test]
    fn an_entry_begins_anew_after_2_to_32_uses() {
        let mut operations = Operations::default();
        let first = operations.add(read(1, 0));
        operations.entries[0].0 = u32::MAX - 1;
        assert!(operations.remove(1, first).is_none());
        operations.free_entry(0);
        let mut former = vec![first];
        for token in 1..5 {
            let id = operations.add(read(1, token));
            assert!(former.iter().all(|&old| operations.get(1, old).is_none() || old == id));
            assert_eq!(operations.remove(1, id).unwrap().ticket.token, token);
            former.push(id);
        }
    }
}
