//! Packets that wait for who has a rail's lock.

use crate::frame::{FrameKind, HEAD, Head};
use cohort_fabric::Packet;
use cohort_fabric_host::packet::Way;

/// Longest packet that is copied when it is submitted.
pub const COPY_MAX: usize = 10 << 10;

/// Bytes that may be submitted at a time.
pub const SUBMITTED_MAX: usize = 256 << 10;

/// Bytes that frames for one node have room for at first.
const PART: usize = 2 << 10;

/// Bytes of room that are kept for later packets.
const KEPT_MAX: usize = 512 << 10;

/// What was submitted, in the order of each node's packets.
#[derive(Debug, Default)]
pub struct Submitted {
    /// Nodes, and the frames for each: of the first `used`. The others have room for later ones.
    parts: Vec<(u32, Vec<u8>)>,
    used: usize,
    /// Bytes of all frames.
    bytes: usize,
}

impl Submitted {
    /// Bytes of all frames.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a packet.
    pub fn add(&mut self, node: u32, way: Way, packet: Packet<'_>) {
        let length = length_of(&packet);
        let frames = self.frames_for(node);
        frames.extend_from_slice(&head_of_packet(way, length).bytes());
        frames.extend_from_slice(packet.header);
        frames.extend_from_slice(packet.body);
        self.bytes += HEAD + length;
    }

    fn frames_for(&mut self, node: u32) -> &mut Vec<u8> {
        let found = self.parts[..self.used].iter().rposition(|&(one, _)| one == node);
        let place = found.unwrap_or_else(|| {
            match self.parts.get_mut(self.used) {
                Some((place, _)) => *place = node,
                None => self.parts.push((node, Vec::with_capacity(PART))),
            }
            self.used += 1;
            self.used - 1
        });
        &mut self.parts[place].1
    }

    /// Nodes, and the frames for each.
    pub fn parts(&self) -> &[(u32, Vec<u8>)] {
        &self.parts[..self.used]
    }

    /// Takes all out; some of the memory is kept.
    pub fn clear(&mut self) {
        let mut kept = 0;
        self.parts.retain_mut(|(_, frames)| {
            frames.clear();
            kept += frames.capacity();
            kept <= KEPT_MAX
        });
        (self.used, self.bytes) = (0, 0);
    }
}

/// Bytes of a packet.
#[must_use]
pub fn length_of(packet: &Packet<'_>) -> usize {
    packet.header.len() + packet.body.len()
}

/// What a packet of such a length begins with on its way.
#[must_use]
pub fn head_of_packet(way: Way, length: usize) -> Head {
    Head { kind: FrameKind::Packet, length: length as u32, id: way.id() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way() -> Way {
        Way { from: 1, to: 2 }
    }

    fn add(submitted: &mut Submitted, node: u32, body: &[u8]) {
        submitted.add(node, way(), Packet { header: b"head", body });
    }

    #[test]
    fn packets_of_a_node_follow_each_other() {
        let mut submitted = Submitted::default();
        for _ in 0..2 {
            add(&mut submitted, 7, b"one");
            add(&mut submitted, 3, b"two");
            add(&mut submitted, 7, b"three");
            let head = |length| head_of_packet(way(), length).bytes();
            let sevens = [&head(7)[..], b"headone", &head(9), b"headthree"].concat();
            let three = [&head(7)[..], b"headtwo"].concat();
            assert_eq!(submitted.bytes(), sevens.len() + three.len());
            assert_eq!(submitted.parts(), [(7, sevens), (3, three)]);
            submitted.clear();
            assert!(submitted.parts().is_empty() && submitted.bytes() == 0);
        }
    }

    #[test]
    fn memory_is_used_again_up_to_a_limit() {
        let mut submitted = Submitted::default();
        let body = [0; COPY_MAX / 2];
        let fill = |submitted: &mut Submitted| {
            (0..SUBMITTED_MAX / COPY_MAX).for_each(|count| add(submitted, count as u32 % 9, &body));
        };
        fill(&mut submitted);
        let place = submitted.parts()[0].1.as_ptr();
        submitted.clear();
        fill(&mut submitted);
        assert_eq!(submitted.parts()[0].1.as_ptr(), place);
        (0..1000).for_each(|node| add(&mut submitted, node, b"short"));
        submitted.clear();
        let kept: usize = submitted.parts.iter().map(|(_, frames)| frames.capacity()).sum();
        assert!((1..=KEPT_MAX).contains(&kept), "{kept}");
    }
}
