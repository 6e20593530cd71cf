//! Worlds of ranks that are spawned while the job runs: where they are on the node, their start, and their end.

use super::super::binding;
use super::super::prepare::PreparedProgram;
use super::{Part, Program, Spawner, StartPlan, lead_to_rings, rank_facts};
use cohort_arch::page;
use cohort_base::spawn::{WorldBoot, number_of};
use pip_insight::fault::RankMemory;
use std::io;
use std::sync::atomic::Ordering;

impl Spawner {
    /// Makes the records of a world's ranks of this node, which run `programs`, take the places from `first` on, and
    /// have these ranks in it. The record that is given knows everything else. [`Spawner::begin`] starts them.
    ///
    /// # Errors
    /// There is no room for so many. Nothing has changed then.
    pub fn settle(
        &mut self,
        first: usize,
        programs: &[PreparedProgram],
        world: WorldBoot,
        ranks: &[u32],
    ) -> io::Result<()> {
        let count = ranks.len();
        self.space.extend(first, count)?;
        let told = (self.place.count > 1).then(|| self.number_at(first));
        let rings = self.trace.as_mut().map(|trace| trace.add(first, (world.number, ranks), told)).transpose()?;
        let world: &'static WorldBoot =
            Box::leak(Box::new(WorldBoot { first: first as u32, size: count as u32, ..world }));
        let dealt = self.turns.as_deref().map(|turns| binding::deal(turns, first, count));
        let mut facts = rank_facts(programs, ranks, 0, dealt.as_deref(), Some(world));
        lead_to_rings(&mut facts, rings);
        let is_theirs = first..first + count;
        for (all, dealt) in self.bindings.iter_mut().zip(dealt) {
            all.splice(first..(first + count).min(all.len()), dealt);
        }
        self.left.retain(|place| !is_theirs.contains(place));
        self.mapped.push(world);
        let more: Vec<u32> = (self.numbers.len()..first + count).map(|place| self.number_at(place)).collect();
        self.numbers.extend(more);
        let reused = self.ranks.iter_mut().skip(first).take(count);
        reused.for_each(|rank| (rank.pid, rank.wrapper, rank.stand_in) = (0, None, None));
        self.node.add(first, &facts);
        Ok(())
    }

    /// The number of a world that begins here. Nodes take turns, so that no two worlds of the job have one.
    pub fn next_world(&mut self) -> u32 {
        self.worlds += 1;
        (self.worlds - 1) * self.place.count + self.place.index + 1
    }

    /// The number in the job of a rank that is spawned at this place of the node.
    pub fn number_at(&self, place: usize) -> u32 {
        number_of(self.world_size as u32, self.place.index, (place - self.begun) as u32)
    }

    /// Starts the ranks of a world from place `first` on, or a part of them. What they write passes on when the streams
    /// are [started](super::Streams::start).
    ///
    /// # Errors
    /// The system has started some of them only, which are those of [`Spawner::ranks`] that have a process.
    pub fn begin<'a>(&mut self, first: usize, parts: impl Iterator<Item = Part<'a>>) -> io::Result<()> {
        let mut next = first;
        let started = parts.into_iter().try_for_each(|part| {
            let rank = next;
            next += 1;
            match part {
                Some((program, adoption)) => self.start(rank, program, adoption),
                None => {
                    self.leave_out(rank);
                    Ok(())
                }
            }
        });
        self.take_back();
        self.publish(first..next.min(self.ranks.len()));
        started
    }

    /// The processes of the ranks from place `first` on, which are not theirs any more.
    pub fn take_processes(&mut self, first: usize, count: usize) -> Vec<i32> {
        let ranks = self.ranks.iter_mut().skip(first).take(count);
        ranks.map(|rank| std::mem::take(&mut rank.pid)).collect()
    }

    /// A rank is started later.
    fn leave_out(&mut self, rank: usize) {
        if rank == self.ranks.len() {
            self.put(rank, 0, Box::leak(Box::new(StartPlan::new(0, Program::Mapped(0), 0))));
        }
    }

    /// Keeps the names of programs: one stands for a program that was started often.
    pub fn note_programs(&mut self, programs: Vec<PreparedProgram>) {
        for mut program in programs {
            program.directory = None;
            if self.programs.iter().all(|known| known.name != program.name) {
                self.programs.push(program);
            }
        }
    }

    /// A place on the node for so many more ranks: where others have been that have left nothing, or behind all others.
    pub fn place(&mut self, count: usize) -> Option<usize> {
        let is_left = |&first: &usize| (first..first + count).all(|place| self.left.contains(&place));
        let candidates: Vec<usize> = self.left.iter().copied().filter(is_left).collect();
        let again = candidates.into_iter().find(|&first| self.node.renew(first, count));
        again.or_else(|| (count <= self.node.room()).then_some(self.ranks.len()))
    }

    /// For how many more ranks there may be a place at most.
    pub fn most_places(&self) -> usize {
        let (mut longest, mut run, mut next) = (0, 0, None);
        for &place in &self.left {
            run = if next == Some(place) { run + 1 } else { 1 };
            (longest, next) = (longest.max(run), Some(place + 1));
        }
        self.node.room().max(longest)
    }

    /// Gives back the memory of ranks of spawned worlds that have ended and that no communicator joins with others:
    /// their programs, libraries and stacks. Their heaps stay. Of worlds that have not come together this knows by
    /// `is_awaited` of their first ranks: there, only wrappers have ended.
    pub fn give_back(&mut self, has_ended: impl Fn(i32) -> bool, is_awaited: impl Fn(usize) -> bool) {
        let ranks_of = |world: &WorldBoot| world.first as usize..(world.first + world.size) as usize;
        let ranks = &self.ranks;
        let is_over = |world: &WorldBoot| {
            let mut all = ranks_of(world).map(|rank| ranks.get(rank));
            let have_ended =
                all.all(|rank| rank.is_some_and(|rank| has_ended(rank.pid) && rank.wrapper.is_none_or(&has_ended)));
            // Requests lie on the stacks of their askers.
            let is_read = world.open.load(Ordering::Acquire) != 0;
            have_ended && !is_read && world.links.load(Ordering::Acquire) == 0 && !is_awaited(world.first as usize)
        };
        let (over, mapped): (Vec<_>, Vec<_>) = self.mapped.iter().partition(|world| is_over(world));
        self.mapped = mapped;
        for world in over {
            self.left.extend(ranks_of(world));
            for rank in ranks_of(world) {
                let memory = std::mem::replace(&mut self.space.memory[rank], RankMemory::GONE);
                for range in memory.images() {
                    let start = range.start / page() * page();
                    // SAFETY: the rank's own copy, which its task has mapped; the task and all of its threads have
                    // ended, and by its disconnection no other rank reads its memory.
                    unsafe { libc::munmap(start as *mut libc::c_void, range.end - start) };
                }
                // SAFETY: as above.
                unsafe { self.space.stacks.close(rank) };
            }
        }
    }

    /// The world that a rank of this node was spawned into, if it was.
    pub fn world_of(&self, rank: usize) -> Option<&'static WorldBoot> {
        let record = self.node.ranks().get(rank)?;
        // SAFETY: NULL, or a record that is never freed.
        unsafe { record.world.as_ref() }
    }
}
