//! Roles whose ranks are tasks with descriptors of their own, or whose calls borrow seats.
//!
//! Outside of network calls tasks use atomics only; see [`task`].

use crate::node::{Node, Seen, Settings};
use crate::roles::{Shared, packets};
use crate::task;
use cohort_fabric::boot::Notify;
use cohort_fabric::{Budget, Event, Packet, Refused};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Length of the test's packets: longer than what is copied, so that completions come too.
const LENGTH: usize = 3000;

/// What the tasks of a node share.
struct Common {
    node: Shared<'static>,
    /// Body of every packet.
    body: Vec<u8>,
    /// Next number expected by each endpoint from each rank.
    next: Vec<Vec<AtomicU32>>,
    /// Completions that are missing, for each endpoint.
    pending: Vec<AtomicU32>,
    /// Who has an endpoint's claim.
    claims: Vec<AtomicBool>,
    /// Packets and events that were wrong.
    wrong: AtomicU32,
    /// A step of the test is over.
    flag: AtomicBool,
    /// Tasks that have sent everything.
    done: AtomicU32,
    /// Whether each endpoint has sent its first packet to each of this node.
    sent: Vec<Vec<AtomicBool>>,
    /// Steps that are over, where tasks take turns.
    turn: AtomicU32,
}

// SAFETY: the node is used as a transport only while tasks run, the rest are atomics.
unsafe impl Sync for Common {}

impl Common {
    fn join(notify: Notify) -> &'static Self {
        let node = Node::join(Settings { shared: true, notify, ..Settings::default() });
        let world = (node.nodes * node.ranks) as usize;
        let ranks = node.ranks as usize;
        let numbers = || (0..world).map(|_| AtomicU32::new(0)).collect();
        let flags = || (0..ranks).map(|_| AtomicBool::new(false)).collect();
        Box::leak(Box::new(Self {
            node: Shared(Box::leak(Box::new(node))),
            body: crate::roles::pattern(9, LENGTH),
            next: (0..ranks).map(|_| numbers()).collect(),
            pending: (0..ranks).map(|_| AtomicU32::new(0)).collect(),
            claims: flags(),
            wrong: AtomicU32::new(0),
            flag: AtomicBool::new(false),
            done: AtomicU32::new(0),
            sent: (0..ranks).map(|_| flags()).collect(),
            turn: AtomicU32::new(0),
        }))
    }

    /// Takes events of an endpoint and checks them.
    fn poll(&self, endpoint: u32, caller: u32) {
        let pending = &self.pending[endpoint as usize];
        let network = &self.node.get().network;
        network.poll(endpoint, caller, Budget::events(16), &mut |event| match event {
            Event::Packet { from, bytes } => {
                let next = &self.next[endpoint as usize][from as usize];
                let expected = next.fetch_add(1, Ordering::Relaxed);
                let good = bytes[..4] == expected.to_le_bytes() && bytes[4..] == self.body;
                self.wrong.fetch_add(u32::from(!good), Ordering::Relaxed);
            }
            // It comes again as a whole.
            Event::Begins { .. } => {}
            Event::Completed(_) => {
                pending.fetch_sub(1, Ordering::Relaxed);
            }
            // A node that has all it wants ends; who still needed it finds that out when it sends.
            Event::Lost { .. } => {}
            Event::Failed { .. } => {
                self.wrong.fetch_add(1, Ordering::Relaxed);
            }
        });
    }

    /// Sends packet `number` and waits for its completion; the caller has the claim.
    fn send(&self, endpoint: u32, caller: u32, to: u32, number: u32) {
        let pending = &self.pending[endpoint as usize];
        while !self.try_send(endpoint, caller, to, number) {
            self.poll(endpoint, caller);
        }
        while pending.load(Ordering::Relaxed) > 0 {
            self.poll(endpoint, caller);
        }
    }

    /// Sends packet `number` if there is room. Its header is leaked memory of the body's own bytes.
    fn try_send(&self, endpoint: u32, caller: u32, to: u32, number: u32) -> bool {
        let pending = &self.pending[endpoint as usize];
        let header = &NUMBERS[number as usize];
        let packet = Packet { header, body: &self.body };
        pending.fetch_add(1, Ordering::Relaxed);
        // SAFETY: both live for ever.
        match unsafe { self.node.get().network.send(endpoint, caller, to, packet, 1) } {
            Ok(cohort_fabric::Sent::Pending) => return true,
            Ok(cohort_fabric::Sent::Done) => {
                pending.fetch_sub(1, Ordering::Relaxed);
                return true;
            }
            Err(Refused::Busy) => {}
            Err(_refused) => {
                self.wrong.fetch_add(1, Ordering::Relaxed);
            }
        }
        pending.fetch_sub(1, Ordering::Relaxed);
        false
    }

    /// Tries to send the first packet, unless that was done.
    fn sent_once(&self, endpoint: u32, caller: u32, to: u32) {
        let sent = &self.sent[endpoint as usize][to as usize];
        if !sent.load(Ordering::Relaxed) {
            sent.store(self.try_send(endpoint, caller, to, 0), Ordering::Relaxed);
        }
    }

    /// Waits until `turn` steps are over.
    fn await_turn(&self, turn: u32) {
        task::wait_for_done(&self.turn, turn);
    }

    /// Whether an endpoint has had `count` packets of a rank.
    fn has(&self, endpoint: u32, from: u32, count: u32) -> bool {
        self.next[endpoint as usize][from as usize].load(Ordering::Relaxed) >= count
    }

    /// Whether local rank 0 has to poll.
    fn owes(&self) -> bool {
        self.node.get().network.owes(0)
    }

    /// Lets libfabric send what it holds back.
    fn linger(&self, endpoint: u32, caller: u32) {
        for _ in 0..500 {
            self.poll(endpoint, caller);
        }
    }

    fn assert_good(&self) {
        assert_eq!(self.wrong.load(Ordering::Relaxed), 0);
    }
}

/// Packet numbers as they travel; constants, so that they live long enough.
static NUMBERS: [[u8; 4]; 4096] = {
    let mut numbers = [[0; 4]; 4096];
    let mut index = 0;
    while index < 4096 {
        numbers[index] = (index as u32).to_le_bytes();
        index += 1;
    }
    numbers
};

const ROUNDS: u32 = 100;

/// Sends and awaits packets `first..last` between local rank 0 of both nodes.
fn talk(common: &Common, caller: u32, first: u32, last: u32) {
    let node = common.node.get();
    let other = (1 - node.number) * node.ranks;
    for number in first..last {
        common.send(0, caller, other, number);
        while !common.has(0, other, number + 1) {
            common.poll(0, caller);
        }
    }
}

/// Local rank 0 computes while local rank 1 connects, sends and receives for it; then it takes over, with
/// connections that the other has made; and once more the other way round. Also where descriptors cannot be taken, if
/// `is_denied`.
pub fn thief(notify: Notify, is_denied: bool) {
    let common = Common::join(notify);
    let deny = move || {
        let denied = is_denied && !task::forbid_taking_descriptors();
        common.wrong.fetch_add(u32::from(denied), Ordering::Relaxed);
    };
    let thief = move || {
        deny();
        talk(common, 1, 0, ROUNDS);
        common.flag.store(true, Ordering::Release);
        task::wait_for_done(&common.done, 1);
        talk(common, 1, 2 * ROUNDS, 3 * ROUNDS);
        common.linger(0, 1);
    };
    let owner = move || {
        deny();
        task::wait_for(&common.flag);
        talk(common, 0, ROUNDS, 2 * ROUNDS);
        common.done.store(1, Ordering::Release);
    };
    let tasks = [task::start(Box::leak(Box::new(thief))), task::start(Box::leak(Box::new(owner)))];
    tasks.into_iter().for_each(task::Task::join);
    common.assert_good();
}

/// As in a sandbox that forbids to take descriptors: a thief is refused, and the owner does with what it has
/// inherited and made.
pub fn forbidden() {
    let common = Common::join(Notify::Mirror);
    let other = (1 - common.node.get().number) * common.node.get().ranks;
    let thief = move || {
        let forbidden = task::forbid_taking_descriptors();
        common.wrong.fetch_add(u32::from(!forbidden), Ordering::Relaxed);
        let try_often = || {
            for _ in 0..100 {
                let sent = common.try_send(0, 1, other, 0);
                common.wrong.fetch_add(u32::from(sent), Ordering::Relaxed);
                common.poll(0, 1);
            }
        };
        // Once with all that there is, inherited, and once without what the owner has made.
        try_often();
        task::wait_for(&common.flag);
        try_often();
        common.done.store(1, Ordering::Release);
    };
    let owner = move || {
        let forbidden = task::forbid_taking_descriptors();
        common.wrong.fetch_add(u32::from(!forbidden), Ordering::Relaxed);
        talk(common, 0, 0, ROUNDS);
        common.flag.store(true, Ordering::Release);
        task::wait_for_done(&common.done, 1);
        talk(common, 0, ROUNDS, 2 * ROUNDS);
        common.linger(0, 0);
    };
    let tasks = [task::start(Box::leak(Box::new(thief))), task::start(Box::leak(Box::new(owner)))];
    tasks.into_iter().for_each(task::Task::join);
    common.assert_good();
}

/// As [`forbidden`], where the root may not take descriptors either. So it opens an endpoint for each rank.
pub fn sandboxed() {
    assert!(task::forbid_taking_descriptors());
    forbidden();
}

/// Every task sends from its own endpoint to everybody, and polls every endpoint of its node.
pub fn mixed() {
    let common = Common::join(Notify::Mirror);
    let ranks = common.node.get().ranks;
    let tasks: Vec<task::Task> =
        (0..ranks).map(|own| task::start(Box::leak(Box::new(move || mix(common, own))))).collect();
    tasks.into_iter().for_each(task::Task::join);
    common.assert_good();
}

fn mix(common: &Common, own: u32) {
    let node = common.node.get();
    let world = node.nodes * node.ranks;
    let mut sent = 0;
    while common.done.load(Ordering::Acquire) < node.ranks {
        for step in 0..node.ranks {
            let endpoint = (own + step) % node.ranks;
            let claim = &common.claims[endpoint as usize];
            if claim.swap(true, Ordering::Acquire) {
                continue;
            }
            if endpoint == own && sent < ROUNDS * world {
                let (to, number) = (sent % world, sent / world);
                sent += u32::from(common.try_send(own, own, to, number));
            }
            common.poll(endpoint, own);
            if endpoint == own && sent == ROUNDS * world {
                let all = (0..world).all(|from| common.has(own, from, ROUNDS));
                let idle = common.pending[own as usize].load(Ordering::Relaxed) == 0;
                if all && idle {
                    sent += 1;
                    common.done.fetch_add(1, Ordering::AcqRel);
                }
            }
            claim.store(false, Ordering::Release);
        }
    }
    while common.claims[own as usize].swap(true, Ordering::Acquire) {}
    common.linger(own, own);
    common.claims[own as usize].store(false, Ordering::Release);
}

/// Two endpoints ask each other for a connection at once, and one task asks where another answers:
/// neither connection may be taken for that of a new process, which replaces the other and loses
/// what was sent. For each pair of endpoints.
pub fn crossing() {
    let common = Common::join(Notify::Mirror);
    let ranks = common.node.get().ranks;
    let pairs = move || (0..ranks).flat_map(move |first| (0..first).map(move |second| (first, second)));
    let asking = move || {
        for (pair, (first, second)) in pairs().enumerate() {
            common.await_turn(2 * pair as u32);
            common.sent_once(first, 0, second);
            common.sent_once(second, 0, first);
            common.turn.fetch_add(1, Ordering::Release);
        }
        // What it has made ends with it, since nobody else's endpoint is its own.
        common.await_turn(ranks * (ranks - 1));
    };
    let answering = move || {
        for (pair, (first, second)) in pairs().enumerate() {
            common.await_turn(2 * pair as u32 + 1);
            answer(common, first, second);
            common.turn.fetch_add(1, Ordering::Release);
        }
    };
    let tasks = [task::start(Box::leak(Box::new(asking))), task::start(Box::leak(Box::new(answering)))];
    tasks.into_iter().for_each(task::Task::join);
    common.assert_good();
}

/// The second endpoint answers before the first one looks at anything. Then both go on until each
/// has the other's packet, for which some rounds are enough.
fn answer(common: &Common, first: u32, second: u32) {
    for _ in 0..ROUNDS {
        common.poll(second, 1);
    }
    common.sent_once(second, 1, first);
    let there = || common.has(first, second, 1) && common.has(second, first, 1);
    let idle = |endpoint: u32| common.pending[endpoint as usize].load(Ordering::Relaxed) == 0;
    for _ in 0..100 * ROUNDS {
        for (endpoint, other) in [(first, second), (second, first)] {
            common.poll(endpoint, 1);
            common.sent_once(endpoint, 1, other);
        }
        if there() && idle(first) && idle(second) {
            return;
        }
        task::give_way();
    }
    common.wrong.fetch_add(1, Ordering::Relaxed);
}

/// A thief connects and sends for local rank 0, and ends. What it has made is in the mailbox then:
/// another thief leaves the connection alone until the owner has taken it.
pub fn orphan() {
    let common = Common::join(Notify::Mirror);
    let first = move || {
        while !(common.has(2, 0, 1) && common.pending[0].load(Ordering::Relaxed) == 0) {
            common.sent_once(0, 1, 2);
            common.poll(0, 1);
            common.poll(2, 1);
        }
        common.flag.store(true, Ordering::Release);
    };
    let second = move || {
        task::wait_for(&common.flag);
        await_end();
        let mut number = 1;
        for _ in 0..ROUNDS {
            // It may, if the first one lives.
            number += u32::from(common.try_send(0, 2, 2, number));
            common.poll(0, 2);
        }
        common.turn.store(number, Ordering::Release);
        while !common.has(2, 0, number + 1) {
            common.poll(2, 2);
        }
    };
    let owner = move || {
        task::wait_for_done(&common.turn, 1);
        common.send(0, 0, 2, common.turn.load(Ordering::Acquire));
        common.linger(0, 0);
    };
    let tasks = [
        task::start(Box::leak(Box::new(first))),
        task::start(Box::leak(Box::new(second))),
        task::start(Box::leak(Box::new(owner))),
    ];
    tasks.into_iter().for_each(task::Task::join);
    common.assert_good();
}

/// Long enough for another task's end, on most machines.
fn await_end() {
    for _ in 0..10_000 {
        task::give_way();
    }
}

/// On node 0 a thief sends for local rank 0 until nothing goes any more; then the owner comes.
pub fn deferred() {
    let common = Common::join(Notify::Defer);
    let number = common.node.get().number;
    let other = (1 - number) * common.node.get().ranks;
    let thief = move || {
        let mut sent = 0;
        // Connects, and gets stuck with the first packet.
        while sent < ROUNDS && !(sent > 0 && common.owes()) {
            sent += u32::from(common.try_send(0, 1, other, sent));
            common.poll(0, 1);
        }
        for _ in 0..100 {
            common.poll(0, 1);
        }
        let owes = common.owes();
        common.wrong.fetch_add(u32::from(!owes), Ordering::Relaxed);
        common.done.store(sent, Ordering::Release);
        // It ends now, and leaves the connection that it has made to the owner.
        common.flag.store(true, Ordering::Release);
    };
    let owner = move || {
        task::wait_for(&common.flag);
        await_end();
        let sent = common.done.load(Ordering::Acquire);
        common.poll(0, 0);
        for number in sent..ROUNDS {
            common.send(0, 0, other, number);
        }
        while !common.has(0, other, 1) || common.pending[0].load(Ordering::Relaxed) > 0 {
            common.poll(0, 0);
        }
        common.linger(0, 0);
    };
    let receiver = move || {
        while !common.has(0, other, ROUNDS) {
            common.poll(0, 0);
        }
        common.send(0, 0, other, 0);
        common.linger(0, 0);
    };
    let tasks = if number == 0 {
        vec![task::start(Box::leak(Box::new(thief))), task::start(Box::leak(Box::new(owner)))]
    } else {
        vec![task::start(Box::leak(Box::new(receiver)))]
    };
    tasks.into_iter().for_each(task::Task::join);
    common.assert_good();
}

thread_local! {
    static MINE: Cell<bool> = const { Cell::new(false) };
}

static HANDLED: AtomicU32 = AtomicU32::new(0);
static FOREIGN: AtomicU32 = AtomicU32::new(0);

/// Whether this runs with the thread-local data of the storm's thread.
#[inline(never)]
fn is_mine() -> bool {
    MINE.get()
}

extern "C" fn handle(_signal: libc::c_int) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
    FOREIGN.fetch_add(u32::from(!is_mine()), Ordering::Relaxed);
    // SAFETY: the interrupted code is in no allocator: network calls are not interrupted, and the
    // role calls nothing else.
    unsafe {
        let place = libc::__errno_location();
        let before = *place;
        let block = libc::malloc(100);
        libc::close(-1);
        FOREIGN.fetch_add(u32::from(*place != libc::EBADF), Ordering::Relaxed);
        libc::free(block);
        *place = before;
    }
}

/// Sends `signal` to the calling thread again and again.
fn rain(signal: libc::c_int, period_nanoseconds: i64) {
    // SAFETY: whole records; zeros are valid for all of them.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = libc::gettid();
        let mut timer: libc::timer_t = std::mem::zeroed();
        let made = libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer);
        assert_eq!(made, 0);
        let period = libc::timespec { tv_sec: 0, tv_nsec: period_nanoseconds };
        let times = libc::itimerspec { it_interval: period, it_value: period };
        libc::timer_settime(timer, 0, &raw const times, std::ptr::null_mut());
    }
}

/// Calls from seats, under a storm of signals whose handlers use `errno`, the allocator and thread-local data.
pub fn storm() {
    let node = Node::join(Settings { shared: true, ..Settings::default() });
    MINE.set(true);
    let other = 1 - node.number;
    let mut seen: Vec<Seen> = Vec::with_capacity(1 << 16);
    rain(libc::SIGALRM, 150_000);
    rain(libc::SIGPROF, 230_000);
    let body = [7; 900];
    for round in 0..300_u32 {
        let packet = Packet { header: &round.to_le_bytes(), body: &body[..400] };
        loop {
            // SAFETY: packets of this length are copied.
            match unsafe { node.network.send(0, 0, other, packet, 0) } {
                Ok(_done) => break,
                Err(Refused::Busy) => node.poll(0, 0, &mut seen),
                Err(refused) => panic!("{refused:?}"),
            }
        }
        while packets(&seen).count() <= round as usize {
            node.poll(0, 0, &mut seen);
            // SAFETY: no condition.
            unsafe { libc::sched_yield() };
        }
    }
    node.farewell(node.number, &[other], &mut seen);
    // What comes now uses the allocator, which the handler must not interrupt.
    for signal in [libc::SIGALRM, libc::SIGPROF] {
        // SAFETY: no condition.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    assert_eq!(FOREIGN.load(Ordering::Relaxed), 0);
    assert!(HANDLED.load(Ordering::Relaxed) > 0);
    for (round, (_, bytes)) in packets(&seen).enumerate() {
        assert_eq!(bytes[..4], (round as u32).to_le_bytes());
    }
}
