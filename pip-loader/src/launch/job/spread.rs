//! Worlds that are spawned on several nodes at once.
//!
//! Their ranks have to know where all others are before the first of them begins, and none may begin if a node cannot
//! have its part. So the root's launcher goes through these steps, each of which all nodes report:
//! 1. Each node looks whether it can run its part, and keeps the places for it ([`Reserve`](order::Message::Reserve)).
//!    If one refuses, the others keep theirs no more ([`Release`](order::Message::Release)).
//! 2. Each is told what the whole world is, and makes the records of its part, so that others can send to its ranks
//!    ([`Settle`](order::Message::Settle)).
//! 3. Each begins its part ([`Begin`](order::Message::Begin)).
//!
//! While a node keeps places it starts nothing else: what is asked of it waits. Nodes are asked one after the other, in
//! the order of their numbers, so no two worlds wait for places that the other one has.

use super::super::order::{self, Answer, Layout, Order};
use super::super::prepare::PreparedProgram;
use super::Job;
use super::elsewhere::{About, PutOff};
use super::plan::Plan;
use super::requests::world_of;
use cohort_base::spawn::{Part, Request};
use pip_monitor::errand::Id;
use std::io;
use std::sync::atomic::Ordering;

/// What a node says of which nobody can want that.
const NO_PLACES: &str = "it keeps no places for the world";

/// A world that is being started on several nodes, by the root's launcher.
struct Spread {
    request: &'static Request,
    plan: Plan,
    /// The program has named these nodes: no other will do.
    is_named: bool,
    /// Its nodes, in ascending order.
    nodes: Vec<u32>,
    /// The number in the job that the first rank of a node will have, of those that keep places.
    firsts: Vec<(u32, u32)>,
    /// Where the ranks are, once that is known.
    parts: &'static [Part],
    /// Nodes that have not said yet that they have taken the present step.
    awaited: usize,
}

/// Worlds that are being started on several nodes.
#[derive(Default)]
pub(super) struct Spreads {
    /// Those that ranks of this node have asked for.
    begun: Vec<Spread>,
    /// A part of one for which this node keeps places.
    promise: Option<Promise>,
}

/// A part of a world for which this node keeps places.
struct Promise {
    /// The node whose launcher has asked for it.
    origin: u32,
    order: Box<Order>,
    programs: Vec<PreparedProgram>,
    first: usize,
    count: usize,
    /// The records of its ranks are there.
    is_settled: bool,
}

/// What a node's launcher says: the number of its first rank, and how many run each command; or why there are none.
type Said = Result<(u32, Vec<u32>), String>;

impl Job<'_> {
    /// Whether this node keeps places for a part of a world.
    pub(super) fn has_promised(&self) -> bool {
        self.spreads.promise.is_some()
    }

    /// Begins to start a world on several nodes, which the program has named or not.
    pub(super) fn spread(&mut self, request: &'static Request, plan: Plan, is_named: bool) {
        let nodes = plan.nodes();
        let spread = Spread { request, plan, is_named, nodes, firsts: Vec::new(), parts: &[], awaited: 0 };
        self.ask_next(&spread);
        self.spreads.begun.push(spread);
    }

    /// Asks the next node for places.
    fn ask_next(&mut self, spread: &Spread) {
        let node = spread.nodes[spread.firsts.len()];
        // SAFETY: the request was taken, and is not answered.
        let bytes = unsafe { order::reserve(spread.request, &spread.plan.counts(node)) };
        self.send(node, bytes, About::Places, spread.request);
    }

    /// A node has said what comes of its part.
    pub(super) fn go_on(&mut self, request: &'static Request, node: u32, about: About, said: Said) {
        let Some(at) = self.spreads.begun.iter().position(|spread| std::ptr::eq(spread.request, request)) else {
            return;
        };
        let mut spread = self.spreads.begun.swap_remove(at);
        let (first, _) = match said {
            Ok(said) => said,
            Err(reason) => {
                // Once nodes have made records a failure ends the job: its node's launcher sees to that.
                if about == About::Places {
                    for (node, _) in spread.firsts {
                        self.membership.monitor_mut().send_errand(node, order::release());
                    }
                }
                return match about == About::Places && !spread.is_named {
                    true => self.start_here(request),
                    false => self.tell_refused(request, &reason),
                };
            }
        };
        if about == About::Places {
            spread.firsts.push((node, first));
            match spread.firsts.len() < spread.nodes.len() {
                true => self.ask_next(&spread),
                false => self.settle_all(&mut spread),
            }
        } else {
            spread.awaited -= 1;
            match (spread.awaited, about) {
                (0, About::Records) => self.begin_all(&mut spread),
                (0, _) => return self.tell_spread(&spread),
                _ => {}
            }
        }
        self.spreads.begun.push(spread);
    }

    /// All nodes keep places: they hear what the world is.
    fn settle_all(&mut self, spread: &mut Spread) {
        let world = self.spawner.next_world();
        let (parts, places) = spread.plan.lay_out(&spread.firsts);
        spread.parts = parts.clone().leak();
        spread.awaited = places.len();
        for (node, ranks) in places {
            let layout = Layout { world, parts: parts.clone(), ranks };
            self.send(node, order::settle(&layout), About::Records, spread.request);
        }
    }

    /// All nodes have the records: the ranks begin.
    fn begin_all(&mut self, spread: &mut Spread) {
        spread.awaited = spread.nodes.len();
        for &node in &spread.nodes {
            self.send(node, order::begin(), About::Begin, spread.request);
        }
    }

    /// The world is there.
    fn tell_spread(&self, spread: &Spread) {
        let request = spread.request;
        // SAFETY: it was taken, and is not answered yet.
        let commands = unsafe { std::slice::from_raw_parts(request.commands, request.commands_len as usize) };
        for command in commands {
            // Relaxed: the state of the request, which is stored later with release order, makes it known.
            command.started.store(command.ranks, Ordering::Relaxed);
        }
        self.tell_granted(request, spread.parts);
    }

    /// Looks whether this node can run a part of a world, and keeps places for it.
    pub(super) fn reserve(&mut self, id: Id, order: Box<Order>) {
        if self.has_promised() {
            return self.elsewhere.put_off.push_back(PutOff::Reserve(id, order));
        }
        let answer = match self.promise(id, order) {
            Ok(promise) => {
                let counts = promise.programs.iter().map(|program| program.ranks as u32).collect();
                let first = self.spawner.number_at(promise.first);
                self.spreads.promise = Some(promise);
                Answer::Granted(first, counts)
            }
            Err(reason) => Answer::Refused(reason),
        };
        self.report(id, &answer);
    }

    fn promise(&mut self, id: Id, order: Box<Order>) -> Result<Promise, String> {
        if self.ends.shutdown.is_some() {
            return Err("the job ends".to_owned());
        }
        // SAFETY: the order has its request, and nobody has answered it.
        let mut asked = unsafe { self.later.programs(order.request()) }.map_err(|refusal| refusal.to_string())?;
        for (program, &number) in asked.programs.iter_mut().zip(&order.numbers) {
            program.number = number;
        }
        let (first, count) = self.find_place(&mut asked)?;
        let programs = asked.programs;
        if let Some(wrapper) = programs.iter().find(|program| program.linker.is_none()) {
            return Err(format!(
                "{} is a script, or executes another program: processes of one call on several nodes have to be MPI \
                 programs; spawn the program itself, or one world on each node",
                wrapper.name.display()
            ));
        }
        Ok(Promise { origin: id.origin, order, programs, first, count, is_settled: false })
    }

    /// Makes the records of the part of a world for which places are kept.
    pub(super) fn settle_reserved(&mut self, id: Id, layout: Layout) {
        let answer = match self.spreads.promise.take_if(|promise| promise.origin == id.origin && !promise.is_settled) {
            None => Answer::Refused(NO_PLACES.to_owned()),
            Some(promise) => match self.settle_promise(&promise, layout) {
                Ok(()) => {
                    self.spreads.promise = Some(Promise { is_settled: true, ..promise });
                    Answer::Granted(0, Vec::new())
                }
                Err(error) => {
                    Answer::Refused(self.end_with("make room for ranks that are spawned on several nodes", &error))
                }
            },
        };
        self.report(id, &answer);
    }

    fn settle_promise(&mut self, promise: &Promise, layout: Layout) -> io::Result<()> {
        // SAFETY: as for `promise`.
        let world = unsafe { world_of(promise.order.request(), layout.world, layout.parts.leak()) };
        self.spawner.settle(promise.first, &promise.programs, world, &layout.ranks)
    }

    /// Starts the part of a world whose records are there.
    pub(super) fn begin_reserved(&mut self, id: Id) {
        let answer = match self.spreads.promise.take_if(|promise| promise.origin == id.origin && promise.is_settled) {
            None => Answer::Refused(NO_PLACES.to_owned()),
            Some(Promise { programs, first, count, .. }) => {
                let each = programs.iter().flat_map(|it| std::iter::repeat_n(Some((it, None)), it.ranks));
                let opened = self.spawner.streams.begin_more(count);
                let opened = opened.map_err(|error| self.end_with("pass on the output of spawned ranks", &error));
                match opened.and_then(|()| self.begin(first, count, each, true)) {
                    Ok(()) => {
                        self.spawner.note_programs(programs);
                        Answer::Granted(0, Vec::new())
                    }
                    Err(reason) => Answer::Refused(reason),
                }
            }
        };
        self.report(id, &answer);
        self.take_up();
    }

    /// Keeps no places for the world of which one of this node's was to be a part.
    pub(super) fn release(&mut self, id: Id) {
        drop(self.spreads.promise.take_if(|promise| promise.origin == id.origin));
        self.report(id, &Answer::Granted(0, Vec::new()));
        self.take_up();
    }

    /// Does what has waited until no place is kept.
    fn take_up(&mut self) {
        while !self.has_promised()
            && let Some(next) = self.elsewhere.put_off.pop_front()
        {
            match next {
                PutOff::Start(request) => self.start_here(request),
                PutOff::Reserve(id, order) => self.reserve(id, order),
            }
        }
    }
}
