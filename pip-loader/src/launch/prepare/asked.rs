//! How many ranks of each program that a rank asks for there will be.

use super::{PreparedProgram, limits};
use cohort_base::spawn::{Command, Soft};
use pip_ground::Refusal;
use std::sync::atomic::Ordering;

/// What a rank asks for.
pub struct Asked<'r> {
    /// As it has said it.
    pub commands: &'r [Command],
    /// The same, prepared.
    pub programs: Vec<PreparedProgram>,
    /// How many ranks each may have.
    pub shares: Vec<Share<'r>>,
}

/// How many ranks one program may have.
#[derive(Clone, Copy)]
pub struct Share<'r> {
    /// No more than these.
    pub most: u32,
    /// The numbers that are enough, if fewer are.
    pub soft: Option<Soft<'r>>,
    /// What each takes of the address space's map entries.
    pub map_entries: usize,
}

/// What there is room for.
#[derive(Clone, Copy)]
struct Room {
    ranks: usize,
    map_entries: usize,
}

impl Asked<'_> {
    /// Gives each program its number of ranks: what is asked for, or as many as a job has room for that may have so
    /// many more, where fewer are enough. Gives their sum.
    ///
    /// # Errors
    /// The system's limits are too low for them.
    pub fn deal(&mut self, room: usize) -> Result<usize, Refusal> {
        if self.is_soft() {
            let room = Room { ranks: room.min(limits::tasks_left()), map_entries: limits::map_entries_left() };
            for (program, number) in self.programs.iter_mut().zip(deal(&self.shares, room)) {
                program.ranks = number as usize;
            }
        }
        let map_entries = self.programs.iter().zip(&self.shares).map(|(it, share)| it.ranks * share.map_entries).sum();
        let ranks = self.programs.iter().map(|program| program.ranks).sum();
        if ranks == 0 {
            return Err(Refusal::new("the info key soft has no number but 0"));
        }
        limits::check_map_count(ranks, map_entries)?;
        limits::check_task_count(ranks)?;
        Ok(ranks)
    }

    /// Fewer than asked for are enough.
    pub fn is_soft(&self) -> bool {
        self.shares.iter().any(|share| share.soft.is_some())
    }

    /// Tells who asks how many there will be.
    pub fn tell(&self) {
        for (command, program) in self.commands.iter().zip(&self.programs) {
            // Relaxed: the state of the request, which is stored later with release order, makes it known.
            command.started.store(program.ranks as u32, Ordering::Relaxed);
        }
    }
}

/// Each begins with its smallest number. The first ones grow first, as far as there is room.
fn deal(shares: &[Share<'_>], room: Room) -> Vec<u32> {
    let least = |share: &Share<'_>, from| {
        let number = share.soft.map_or(Some(share.most), |soft| soft.least(from));
        number.filter(|&number| number <= share.most)
    };
    let mut numbers: Vec<u32> = shares.iter().map(|share| least(share, 0).unwrap_or(share.most)).collect();
    let sum = |numbers: &[u32]| numbers.iter().map(|&number| number as usize).sum::<usize>();
    let taken =
        |numbers: &[u32]| shares.iter().zip(numbers).map(|(it, &number)| it.map_entries * number as usize).sum();
    for (index, share) in shares.iter().enumerate() {
        let entries: usize = taken(&numbers);
        let more = room.ranks.saturating_sub(sum(&numbers));
        let more = more.min(room.map_entries.saturating_sub(entries) / share.map_entries.max(1));
        let limit = (numbers[index] as usize + more).min(share.most as usize) as u32;
        let number = share.soft.and_then(|soft| soft.most(limit));
        numbers[index] = number.unwrap_or(numbers[index]).max(numbers[index]);
    }
    // None at all is no answer: what stands against the smallest number is to be said.
    if sum(&numbers) == 0
        && let Some((index, number)) = shares.iter().enumerate().find_map(|(at, share)| Some((at, least(share, 1)?)))
    {
        numbers[index] = number;
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(most: u32, soft: Option<&'static str>) -> Share<'static> {
        let soft = soft.map(|soft| Soft::read(soft.as_bytes()).expect("a list"));
        Share { most, soft, map_entries: 10 }
    }

    fn dealt(shares: &[Share<'_>], ranks: usize) -> Vec<u32> {
        deal(shares, Room { ranks, map_entries: 1000 })
    }

    #[test]
    fn programs_share_what_there_is() {
        assert_eq!(dealt(&[share(8, Some("1:8"))], 5), [5]);
        assert_eq!(dealt(&[share(8, Some("2,4,8"))], 7), [4]);
        assert_eq!(dealt(&[share(8, Some("2:8")), share(3, None)], 9), [6, 3]);
        assert_eq!(dealt(&[share(8, Some("0:8:2")), share(8, Some("1:8"))], 10), [8, 2]);
        assert_eq!(dealt(&[share(200, Some("1:200"))], 500), [100], "map entries");
    }

    #[test]
    fn without_room_the_smallest_is_asked_for() {
        assert_eq!(dealt(&[share(8, Some("3:8"))], 1), [3]);
        assert_eq!(dealt(&[share(8, Some("0,4"))], 2), [4]);
        assert_eq!(dealt(&[share(8, None)], 2), [8]);
        assert_eq!(dealt(&[share(8, Some("0")), share(1, Some("0:1"))], 0), [0, 1]);
        assert_eq!(dealt(&[share(8, Some("0")), share(1, Some("-1:0,2"))], 0), [0, 0]);
    }
}
