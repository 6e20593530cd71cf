//! What each rank's memory takes, for `COHORT_STATS=counters`.
//!
//! The kernel counts the memory of an address space, so what it says of any rank is the sum of all. What it says of
//! a mapping can be counted for a rank where we know whose the mapping is: stacks, programs and libraries. Heaps
//! cannot: adjacent ones of different ranks are one mapping, in which zeroed data of a library may be, too. A page
//! that several mappings share is divided among them (the proportional set size). Memory stays mapped when its rank
//! has ended.

use super::fault::{MemoryMap, Part};
use cohort_arch::page;
use pip_ground::say;
use std::fs;
use std::ops::Range;

/// Kilobytes in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sums {
    stacks: Vec<u64>,
    images: Vec<u64>,
    /// What no file is behind, beside stacks and images: heaps of programs and of MPI.
    anonymous: u64,
    all: u64,
}

/// Says it, with each rank's number in the job.
pub fn report(map: &MemoryMap<'_>) {
    let Ok(text) = fs::read_to_string("/proc/self/smaps") else {
        return;
    };
    let sums = sum(&text, &map.parts(), map.numbers.len());
    say(format_args!(
        "memory of this node at the end: {} KiB, of which {} KiB in heaps and other anonymous memory of all ranks",
        sums.all, sums.anonymous
    ));
    for (rank, number) in map.numbers.iter().enumerate() {
        say(format_args!(
            "rank {number}: {} KiB of stack, {} KiB of its program and libraries",
            sums.stacks[rank], sums.images[rank]
        ));
    }
}

/// Adds up the text of `smaps`.
fn sum(text: &str, parts: &[(Range<usize>, Part)], ranks: usize) -> Sums {
    let mut sums = Sums { stacks: vec![0; ranks], images: vec![0; ranks], ..Sums::default() };
    let (mut part, mut is_anonymous) = (None, false);
    for line in text.lines() {
        if let Some(mapping) = mapping(line) {
            part = parts
                .iter()
                .find(|(range, _)| range.contains(&mapping.start) && mapping.end <= range.end.next_multiple_of(page()));
            is_anonymous = line.split_whitespace().nth(5).is_none();
        } else if let Some(kilobytes) = proportional_size(line) {
            sums.all += kilobytes;
            match part {
                Some((_, Part::Stack(rank))) => sums.stacks[*rank] += kilobytes,
                Some((_, Part::Image(rank))) => sums.images[*rank] += kilobytes,
                None if is_anonymous => sums.anonymous += kilobytes,
                None => {}
            }
        }
    }
    sums
}

/// The addresses in a line that begins a mapping.
fn mapping(line: &str) -> Option<Range<usize>> {
    let (range, _) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some(address(start)?..address(end)?)
}

fn proportional_size(line: &str) -> Option<u64> {
    let size = line.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?;
    size.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_added_up_for_those_whose_they_are() {
        let text = "\
1000-3000 rw-p 00000000 00:00 0 \nSize:  8 kB\nRss:  8 kB\nPss:  7 kB\n\
5000-6000 r-xp 00000000 08:01 12   /usr/lib/x\nPss:   3 kB\nPss_Dirty: 9 kB\n\
6000-7000 rw-p 00000000 00:00 0 \nPss:   4 kB\n\
7000-9000 rw-p 00000000 00:00 0 \nPss:   6 kB\n\
9000-a000 rw-p 00000000 00:00 0 \nPss:   20 kB\n\
b000-c000 r--p 00000000 08:01 13   /usr/bin/pip-exec\nPss:   100 kB\n";
        let parts =
            [(0x7000..0x7ff0, Part::Image(1)), (0x1000..0x3000, Part::Stack(1)), (0x5000..0x6fff, Part::Image(0))];
        let sums = sum(text, &parts, 2);
        assert_eq!(sums.stacks, [0, 7]);
        assert_eq!(sums.images, [7, 0]);
        assert_eq!((sums.anonymous, sums.all), (26, 140));
    }
}
