//! Random epochs and operations of all ranks at once, against what each of them must have done;
//! within a node and between nodes.

use super::remote::{Ranks, networks, owner, settings};
use crate::datatype::op::{PredefinedOp, class_kernel};
use crate::datatype::{Basic, Buffer, TypeRef, predefined};
use crate::rma::{Action, Closing, ONE_TURN, Operation, Part, Plan, Reorder, Window};
use crate::{Owner, Peer, Rank};
use cohort_base::WorldRank;
use cohort_base::settings::{Progress, WaitMode};
use cohort_fabric_fake::Options;
use std::boxed::Box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::vec;
use std::vec::Vec;

/// `MPI_UINT64_T`.
const U64: u32 = 0x259;

/// Cells that everybody adds to, the cell that is changed under exclusive locks only, and the cell
/// that hands out tickets.
const SUMS: usize = 14;
const GUARDED: usize = SUMS;
const TICKETS: usize = SUMS + 1;
const COMMON: usize = SUMS + 2;

/// Cells of each target that belong to one origin alone; longer than what is copied at once.
const OWN: usize = 12_000;

/// Epochs of each rank.
const EPOCHS: usize = 60;

/// A small generator (splitmix64): the same numbers on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// What all ranks of a test share beside the window.
struct Totals {
    /// What was added to each cell of each target.
    sums: Vec<AtomicU64>,
    /// Changes of the guarded cell of each target.
    guarded: Vec<AtomicU64>,
    meet: Barrier,
}

/// One rank of a test.
struct Player<'a> {
    owner: Owner<'a>,
    window: &'a Window,
    me: usize,
    size: usize,
    random: Random,
    datatype: TypeRef,
    totals: &'a Totals,
    /// What this rank's own cells hold at each target.
    model: Vec<Vec<u64>>,
    /// Buffers of epochs that are not complete.
    buffers: Vec<Box<[u64]>>,
    /// Gets that are not complete: buffer, and what it must hold then.
    expected: Vec<(*const u64, Vec<u64>)>,
    pending: Vec<Closing>,
    last_ticket: Vec<u64>,
}

impl Player<'_> {
    fn buffer(&mut self, contents: Vec<u64>) -> *mut u64 {
        let mut buffer = contents.into_boxed_slice();
        let address = buffer.as_mut_ptr();
        self.buffers.push(buffer);
        address
    }

    fn access(
        &self,
        action: Action,
        (origin, result): (*mut u64, Option<*mut u64>),
        (target, cell): (usize, usize),
        count: usize,
    ) {
        if self.short(action, (origin, result), (target, cell), count) {
            return;
        }
        // SAFETY: the test's own memory, which stays until the operation is over.
        let elements = |base: *mut u64| unsafe { Buffer::new(base.cast(), count as u64, &self.datatype) };
        let operation = Operation {
            action,
            origin: elements(origin),
            result: result.map(elements),
            compare: core::ptr::null(),
            target: target as u32,
            displacement: cell as i64,
            count: count as u64,
            datatype: &self.datatype,
        };
        // SAFETY: the buffers live until all epochs are complete.
        let done = unsafe { self.window.access(self.owner, &operation, false) };
        let _ = done.expect("the epoch gives access");
    }

    /// An operation by the fast path, if there is nothing in its way; says whether it was done. Some of each length
    /// take the slow one.
    fn short(
        &self,
        action: Action,
        (origin, result): (*mut u64, Option<*mut u64>),
        (target, cell): (usize, usize),
        count: usize,
    ) -> bool {
        let bytes = count * 8;
        let is_long = matches!(action, Action::Accumulate(_)) && bytes as u64 > ONE_TURN;
        if count.is_multiple_of(3) || is_long {
            return false;
        }
        let reach = self.window.reach(target as u32, cell as isize, bytes as u64);
        let (Some(reach), origin) = (reach, origin.cast::<u8>()) else {
            return false;
        };
        // SAFETY: as below.
        unsafe {
            match action {
                Action::Put => reach.put(origin, bytes),
                Action::Get => reach.get(origin, bytes),
                Action::Accumulate(op) => {
                    let kernel = class_kernel(op, Basic::U64).expect("it takes integers");
                    let fetched = result.map_or(core::ptr::null_mut(), |result| result.cast());
                    let buffers = (origin.cast_const(), fetched);
                    return self.window.combine(reach, kernel, buffers, (count, bytes));
                }
                Action::CompareAndSwap => return false,
            }
        }
        true
    }

    /// A put into, or a get of, a random range of this rank's own cells at a target.
    fn own_cells(&mut self, target: usize) {
        let length = match self.random.below(4) {
            0 => self.random.below(OWN),
            _ => self.random.below(40),
        };
        let from = self.random.below(OWN - length);
        let cell = COMMON + self.me * OWN + from;
        if self.random.below(2) == 0 {
            let values: Vec<u64> = (0..length).map(|_| self.random.next()).collect();
            self.model[target][from..from + length].copy_from_slice(&values);
            let buffer = self.buffer(values);
            self.access(Action::Put, (buffer, None), (target, cell), length);
        } else {
            let expected = self.model[target][from..from + length].to_vec();
            let buffer = self.buffer(vec![0; length]);
            self.expected.push((buffer, expected));
            self.access(Action::Get, (buffer, None), (target, cell), length);
        }
    }

    /// An addition to a cell that everybody adds to.
    fn add(&mut self, target: usize) {
        let (cell, value) = (self.random.below(SUMS), self.random.next());
        self.totals.sums[target * SUMS + cell].fetch_add(value, Ordering::Relaxed);
        let buffer = self.buffer(vec![value]);
        let sum = Action::Accumulate(PredefinedOp::Sum);
        self.access(sum, (buffer, None), (target, cell), 1);
    }

    fn operations(&mut self, target: usize) {
        // Order among puts and gets of one epoch is not promised, so there is one of them.
        for _ in 0..self.random.below(4) {
            self.add(target);
        }
        self.own_cells(target);
    }

    fn close(&mut self, closing: Closing) {
        if self.random.below(3) == 0 {
            self.pending.push(closing);
        } else {
            self.window.finish(self.owner, closing).expect("nothing fails");
            // Epochs complete in order here.
            self.finish_all();
        }
    }

    /// Waits for all epochs and checks what they brought.
    fn finish_all(&mut self) {
        for closing in core::mem::take(&mut self.pending) {
            self.window.finish(self.owner, closing).expect("nothing fails");
        }
        for (buffer, expected) in core::mem::take(&mut self.expected) {
            // SAFETY: the buffer is one of `buffers`, and its operation complete.
            let got = unsafe { core::slice::from_raw_parts(buffer, expected.len()) };
            assert!(*got == *expected, "rank {} reads what it wrote", self.me);
        }
        self.buffers.clear();
    }

    fn epoch(&mut self) {
        let target = self.random.below(self.size);
        match self.random.below(4) {
            0 => self.guarded(target),
            1 => {
                self.window.lock_all(self.owner, false).expect("no epoch is open");
                for target in 0..self.size {
                    self.operations(target);
                }
                let closing = self.window.unlock_all(self.owner).expect("the epoch is open");
                self.close(closing);
            }
            2 => self.ticket(target),
            _ => {
                let exclusive = self.random.below(2) == 0;
                let locked = self.window.lock(self.owner, target as u32, exclusive, false);
                locked.expect("no epoch is open");
                self.operations(target);
                let closing = self.window.unlock(self.owner, target as u32);
                self.close(closing.expect("the epoch is open"));
            }
        }
    }

    /// Adds one to a cell by a get and a put under an exclusive lock.
    fn guarded(&mut self, target: usize) {
        self.finish_all();
        let member = target as u32;
        self.window.lock(self.owner, member, true, false).expect("no epoch is open");
        let buffer = self.buffer(vec![0]);
        self.access(Action::Get, (buffer, None), (target, GUARDED), 1);
        let flush = self.window.flush(self.owner, Some(member)).expect("a lock is held");
        self.window.finish(self.owner, flush).expect("nothing fails");
        // SAFETY: our own buffer, after the flush.
        unsafe { *buffer += 1 };
        self.access(Action::Put, (buffer, None), (target, GUARDED), 1);
        self.totals.guarded[target].fetch_add(1, Ordering::Relaxed);
        let closing = self.window.unlock(self.owner, member).expect("the epoch is open");
        self.close(closing);
    }

    /// Takes a ticket of a target; later tickets are larger.
    fn ticket(&mut self, target: usize) {
        self.finish_all();
        let member = target as u32;
        self.window.lock(self.owner, member, false, false).expect("no epoch is open");
        let (one, ticket) = (self.buffer(vec![1]), self.buffer(vec![0]));
        let sum = Action::Accumulate(PredefinedOp::Sum);
        self.access(sum, (one, Some(ticket)), (target, TICKETS), 1);
        let closing = self.window.unlock(self.owner, member).expect("the epoch is open");
        self.window.finish(self.owner, closing).expect("nothing fails");
        // SAFETY: our own buffer, after the epoch.
        let ticket = unsafe { *ticket } + 1;
        assert!(ticket > self.last_ticket[target], "tickets only grow");
        self.last_ticket[target] = ticket;
    }

    /// Every rank puts a block of a size that all know at its right neighbour's, between two fences.
    fn fences(&mut self, round: usize) {
        let (right, length) = ((self.me + 1) % self.size, 10 + round * 3000);
        let closing = self.window.fence(self.owner, false).expect("no epoch is open");
        self.window.finish(self.owner, closing).expect("nothing fails");
        let values: Vec<u64> = (0..length).map(|_| self.random.next()).collect();
        self.model[right][..length].copy_from_slice(&values);
        let buffer = self.buffer(values);
        let cell = COMMON + self.me * OWN;
        self.access(Action::Put, (buffer, None), (right, cell), length);
        let closing = self.window.fence(self.owner, true).expect("no epoch is open");
        self.window.finish(self.owner, closing).expect("nothing fails");
        self.buffers.clear();
    }

    /// Every rank is an origin for all others and a target of all others.
    fn groups(&mut self) {
        let others: Vec<u32> = (0..self.size as u32).filter(|&member| member != self.me as u32).collect();
        self.window.post(self.owner, &others).expect("no epoch is open");
        self.window.start(self.owner, &others).expect("no epoch is open");
        for &target in &others {
            self.operations(target as usize);
        }
        let access = self.window.complete(self.owner).expect("the epoch is open");
        let exposure = self.window.wait(self.owner).expect("the epoch is open");
        self.window.finish(self.owner, access).expect("nothing fails");
        self.window.finish(self.owner, exposure).expect("nothing fails");
        self.finish_all();
    }
}

/// One rank's part of the test.
fn play(rank: &'static Rank, peers: &[Peer], me: usize, memory: &[Part], totals: &Totals) {
    let plan = Plan { number: 77, members: peers, parts: &|| memory.into(), is_dynamic: false };
    let window = Window::open(owner(rank), &plan, Reorder::default());
    totals.meet.wait();
    let size = peers.len();
    let mut player = Player {
        owner: owner(rank),
        window: &window,
        me,
        size,
        random: Random(me as u64),
        datatype: predefined(U64).expect("a type"),
        totals,
        model: vec![vec![0; OWN]; size],
        buffers: Vec::new(),
        expected: Vec::new(),
        pending: Vec::new(),
        last_ticket: vec![0; size],
    };
    for round in 0..3 {
        for _ in 0..EPOCHS / 3 {
            player.epoch();
        }
        player.finish_all();
        player.fences(round);
        player.groups();
    }
    // All are done with my memory when all have fenced.
    let closing = window.fence(owner(rank), true).expect("no epoch is open");
    window.finish(owner(rank), closing).expect("nothing fails");
    window.idle(owner(rank)).expect("no epoch is open");
    let mine = memory[me].base as *const u64;
    // SAFETY: this rank's part of the window, which nobody changes any more.
    let cells = unsafe { core::slice::from_raw_parts(mine, COMMON) };
    for (cell, &sum) in cells[..SUMS].iter().enumerate() {
        assert_eq!(sum, totals.sums[me * SUMS + cell].load(Ordering::Relaxed));
    }
    assert_eq!(cells[GUARDED], totals.guarded[me].load(Ordering::Relaxed));
    let model = core::mem::take(&mut player.model);
    totals.meet.wait();
    // The test sees the memory of all nodes.
    for (target, model) in model.iter().enumerate() {
        let cell = (COMMON + me * OWN) * size_of::<u64>();
        let theirs = (memory[target].base + cell) as *const u64;
        // SAFETY: a part of the window that only this rank wrote.
        let theirs = unsafe { core::slice::from_raw_parts(theirs, OWN) };
        assert!(theirs == &model[..], "rank {me} wrote all of it at {target}");
    }
    totals.meet.wait();
    window.close(owner(rank));
}

fn run(nodes: &[&[WorldRank]], options: Options, progress: Progress) {
    let ranks = Ranks::new(nodes, options, settings(progress, WaitMode::Auto));
    let size = nodes.iter().map(|ranks| ranks.len()).sum::<usize>();
    let cells = COMMON + size * OWN;
    let mut memory: Vec<Vec<u64>> = vec![vec![0; cells]; size];
    let parts: Vec<Part> = memory
        .iter_mut()
        .map(|memory| Part {
            base: memory.as_mut_ptr().expose_provenance(),
            size: (cells * size_of::<u64>()) as u64,
            unit: size_of::<u64>() as i64,
        })
        .collect();
    let zeros = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
    let totals = Totals { sums: zeros(size * SUMS), guarded: zeros(size), meet: Barrier::new(size) };
    ranks.run(|rank| {
        let node = rank.node();
        let peers: Vec<Peer> = (0..size as u32).map(|world| node.peer(world)).collect();
        play(rank, &peers, rank.world_rank() as usize, &parts, &totals);
    });
}

#[test]
fn within_a_node() {
    for progress in [Progress::Steal, Progress::None, Progress::Thread] {
        run(&[&[0, 1, 2, 3]], Options::default(), progress);
    }
}

#[test]
fn between_nodes() {
    for options in networks() {
        run(&[&[0, 2], &[1, 3]], options, Progress::Steal);
    }
    run(&[&[0], &[1], &[2]], Options::default(), Progress::None);
}

/// A target that is late with nothing to be shipped to it calls nobody; one that keeps an operation waiting calls once.
#[test]
fn only_targets_late_for_transfer_call() {
    let options = settings(Progress::Steal, WaitMode::Auto);
    let ranks = Ranks::new(&[&[0, 1]], Options::default(), options);
    let mut memory = [0_u64; 2];
    let base = memory.as_mut_ptr().expose_provenance();
    let part = |me: usize| Part { base: base + me * size_of::<u64>(), size: size_of::<u64>() as u64, unit: 1 };
    let (parts, meet) = ([part(0), part(1)], Barrier::new(2));
    ranks.run(|rank| {
        let peers = [0, 1].map(|world| rank.node().peer(world));
        let plan = Plan { number: 78, members: &peers, parts: &|| parts.into(), is_dynamic: false };
        let window = Window::open(owner(rank), &plan, Reorder::default());
        meet.wait();
        let (datatype, mut value) = (predefined(U64).expect("a type"), 7_u64);
        // SAFETY: the test's own memory, which stays until the operation is over.
        let elements = unsafe { Buffer::new((&raw mut value).cast(), 1, &datatype) };
        let put = Operation {
            action: Action::Put,
            origin: elements,
            result: None,
            compare: core::ptr::null(),
            target: 1,
            displacement: 0,
            count: 1,
            datatype: &datatype,
        };
        for (puts, calls) in [(0, 0), (1, 1), (3, 2)] {
            let closing = if window.me() == 0 {
                window.start(owner(rank), &[1]).expect("no epoch is open");
                for _ in 0..puts {
                    // SAFETY: the buffer lives until the epoch is complete.
                    let done = unsafe { window.access(owner(rank), &put, false) };
                    let _ = done.expect("the epoch gives access");
                }
                meet.wait();
                meet.wait();
                assert_eq!(window.shared().calls(0), Some(calls));
                window.complete(owner(rank))
            } else {
                meet.wait();
                window.post(owner(rank), &[0]).expect("no epoch is open");
                meet.wait();
                window.wait(owner(rank))
            };
            let finished = window.finish(owner(rank), closing.expect("the epoch is open"));
            finished.expect("nothing fails");
            meet.wait();
        }
        window.idle(owner(rank)).expect("no epoch is open");
        meet.wait();
        window.close(owner(rank));
    });
    assert_eq!(memory[1], 7);
}
