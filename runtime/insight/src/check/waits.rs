//! Who would wait for whom if no message were buffered.
//!
//! The calls of each thread are played again with sends that wait for their receives and collective calls that wait for
//! all members. A call of the play is over when what it waits for has begun in the play. As long as the play goes on
//! with the program, its calls are forgotten. What stands still in a circle at the end would have done so without
//! buffers.

use super::findings::{Findings, Place, Site};
use super::traffic::{Actor, End, EndNumber, Event, Traffic, merge};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use cohort_base::LocalRank;
use cohort_base::check::Mistake;

/// A communicator: its context and its first member. The parts of one split have a context in common.
type Comm = (u32, LocalRank);

/// A collective call: its communicator, and which of its calls.
pub type Meeting = (Comm, u64);

/// A step of an actor.
#[derive(Clone, Copy, Debug)]
enum Step {
    Begin(EndNumber),
    Await(EndNumber, Site),
    Arrive(Meeting),
    Meet(Meeting, Site),
}

/// What is known of an end in the play.
#[derive(Clone, Copy, Debug)]
struct Played {
    actor: Actor,
    has_begun: bool,
    is_over: bool,
    partner: Option<EndNumber>,
    /// Nobody waits for it to be met.
    is_buffered: bool,
    /// The receive named no source.
    was_open: bool,
}

/// The members of a collective call that have come.
#[derive(Debug, Default)]
struct Met {
    size: usize,
    came: usize,
    left: usize,
    clock: Vec<u32>,
    members: Vec<LocalRank>,
}

/// Most steps of an actor that wait in the play.
const STEPS: usize = 50_000;

/// Most places that are told of a circle.
const PLACES: usize = 16;

/// The play.
#[derive(Default)]
pub struct Waits {
    steps: BTreeMap<Actor, VecDeque<Step>>,
    ends: BTreeMap<EndNumber, Played>,
    meetings: BTreeMap<Meeting, Met>,
    counts: BTreeMap<(Comm, LocalRank), u64>,
    /// Nothing is played any more.
    is_given_up: bool,
    /// The circles of those who stood still then.
    circles: Vec<Vec<Place>>,
}

impl Waits {
    /// Nothing has happened.
    pub const fn new() -> Self {
        Self {
            steps: BTreeMap::new(),
            ends: BTreeMap::new(),
            meetings: BTreeMap::new(),
            counts: BTreeMap::new(),
            is_given_up: false,
            circles: Vec::new(),
        }
    }

    /// Nothing is played any more. Who stands still in a circle now would never go on, whatever comes.
    fn give_up(&mut self) {
        let circles = self.circles();
        self.circles.extend(circles);
        self.is_given_up = true;
        self.steps.clear();
        self.meetings.clear();
    }

    /// The same; pairs of ends are still forgotten, as if they had begun in the play.
    fn stop(&mut self, traffic: &mut Traffic) {
        self.give_up();
        self.ends.values_mut().for_each(|played| played.has_begun = true);
        let numbers: Vec<EndNumber> = self.ends.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.drop_over(traffic, number));
    }

    /// Something has come of ends.
    pub fn hear(&mut self, traffic: &mut Traffic, event: Event) {
        match event {
            Event::Known(number) => {
                if let Some(end) = traffic.end(number) {
                    self.know(number, end);
                }
            }
            Event::Paired(send, receive) => self.paired(traffic, send, receive),
            Event::Parted(number) => self.parted(number),
            Event::GaveUp => {
                self.give_up();
                self.ends.clear();
            }
        }
    }

    /// There is a new end, which has not begun in the play and has no partner.
    fn know(&mut self, number: EndNumber, end: &End) {
        let End { actor, is_buffered, was_open, .. } = *end;
        let has_begun = self.is_given_up;
        let played = Played { actor, has_begun, is_over: false, partner: None, is_buffered, was_open };
        self.ends.insert(number, played);
    }

    /// An actor begins a send or a receive.
    pub fn begin(&mut self, traffic: &mut Traffic, number: EndNumber) {
        if let Some(&Played { actor, .. }) = self.ends.get(&number) {
            self.push(traffic, actor, Step::Begin(number));
        }
    }

    /// An actor waits until an end is met.
    pub fn wait(&mut self, traffic: &mut Traffic, actor: Actor, number: EndNumber, site: Site) {
        if !self.is_given_up && self.ends.get(&number).is_some_and(|played| !played.is_buffered) {
            self.push(traffic, actor, Step::Await(number, site));
        } else {
            self.over(traffic, number);
        }
    }

    /// Two ends have met.
    fn paired(&mut self, traffic: &mut Traffic, send: EndNumber, receive: EndNumber) {
        for (one, other) in [(send, receive), (receive, send)] {
            if let Some(played) = self.ends.get_mut(&one) {
                played.partner = Some(other);
            }
        }
        for number in [send, receive] {
            if let Some(&Played { actor, .. }) = self.ends.get(&number) {
                self.advance(traffic, actor);
            }
        }
    }

    /// An end has lost its partner.
    fn parted(&mut self, number: EndNumber) {
        if let Some(played) = self.ends.get_mut(&number) {
            played.partner = None;
        }
    }

    /// An end is none any more.
    pub fn forget(&mut self, traffic: &mut Traffic, number: EndNumber) {
        if let Some(played) = self.ends.get_mut(&number) {
            played.is_buffered = true;
            let actor = played.actor;
            self.advance(traffic, actor);
        }
    }

    /// An actor comes to a collective call whose members are of this node.
    pub fn arrive(&mut self, traffic: &mut Traffic, actor: Actor, context: u32, members: &[LocalRank]) -> Meeting {
        let comm = (context, members.first().copied().unwrap_or(actor.rank));
        let count = self.counts.entry((comm, actor.rank)).or_default();
        *count += 1;
        let meeting = (comm, *count);
        let met = self.meetings.entry(meeting).or_default();
        if met.members.is_empty() {
            (met.size, met.members) = (members.len(), members.to_vec());
        }
        let clock = traffic.tick(actor.rank);
        merge(&mut met.clock, &clock);
        self.push(traffic, actor, Step::Arrive(meeting));
        meeting
    }

    /// An actor waits for all members.
    pub fn meet(&mut self, traffic: &mut Traffic, actor: Actor, meeting: Meeting, site: Site) {
        if self.is_given_up {
            return self.leave(meeting);
        }
        self.push(traffic, actor, Step::Meet(meeting, site));
    }

    /// What the members knew that have come so far.
    pub fn clock_of(&self, meeting: Meeting) -> Option<Vec<u32>> {
        self.meetings.get(&meeting).map(|met| met.clock.clone())
    }

    fn push(&mut self, traffic: &mut Traffic, actor: Actor, step: Step) {
        if self.is_given_up {
            return;
        }
        let steps = self.steps.entry(actor).or_default();
        steps.push_back(step);
        if steps.len() > STEPS {
            return self.stop(traffic);
        }
        if steps.len() == 1 {
            self.advance(traffic, actor);
        }
    }

    /// Plays on, from an actor that may have something to do.
    fn advance(&mut self, traffic: &mut Traffic, actor: Actor) {
        let mut ready = Vec::from([actor]);
        while let Some(actor) = ready.pop() {
            while let Some(&step) = self.steps.get(&actor).and_then(VecDeque::front) {
                if !self.can(step) {
                    break;
                }
                if let Some(steps) = self.steps.get_mut(&actor) {
                    steps.pop_front();
                }
                self.done(traffic, step, &mut ready);
            }
        }
    }

    /// Whether a step can be done.
    fn can(&self, step: Step) -> bool {
        match step {
            Step::Begin(_) | Step::Arrive(_) => true,
            Step::Await(number, _) => self.ends.get(&number).is_none_or(|played| {
                let partner = played.partner.map(|partner| self.ends.get(&partner).is_none_or(|it| it.has_begun));
                played.is_buffered || partner.unwrap_or(false)
            }),
            Step::Meet(meeting, _) => self.meetings.get(&meeting).is_none_or(|met| met.came >= met.size),
        }
    }

    /// A step is done; who may go on now comes to `ready`.
    fn done(&mut self, traffic: &mut Traffic, step: Step, ready: &mut Vec<Actor>) {
        match step {
            Step::Begin(number) => {
                if let Some(played) = self.ends.get_mut(&number) {
                    played.has_begun = true;
                    let partner = played.partner.and_then(|partner| self.ends.get(&partner));
                    // Another thread may wait for it than has begun it.
                    ready.extend(partner.map(|partner| partner.actor));
                    self.drop_over(traffic, number);
                }
            }
            Step::Await(number, _) => self.over(traffic, number),
            Step::Arrive(meeting) => {
                if let Some(met) = self.meetings.get_mut(&meeting) {
                    met.came += 1;
                    if met.came >= met.size {
                        ready.extend(self.steps.keys().filter(|actor| met.members.contains(&actor.rank)));
                    }
                }
            }
            Step::Meet(meeting, _) => self.leave(meeting),
        }
    }

    /// A member needs a meeting no more.
    pub fn leave(&mut self, meeting: Meeting) {
        if let Some(met) = self.meetings.get_mut(&meeting) {
            met.left += 1;
            if met.left >= met.size {
                self.meetings.remove(&meeting);
            }
        }
    }

    /// Nobody waits for an end any more; a pair of which that is so is forgotten.
    fn over(&mut self, traffic: &mut Traffic, number: EndNumber) {
        let Some(played) = self.ends.get_mut(&number) else {
            return;
        };
        played.is_over = true;
        self.drop_over(traffic, number);
    }

    /// Forgets a pair that nobody waits for.
    fn drop_over(&mut self, traffic: &mut Traffic, number: EndNumber) {
        let is_over = |it: &Played| it.is_over && it.has_begun;
        let Some(partner) = self.ends.get(&number).filter(|it| is_over(it)).and_then(|it| it.partner) else {
            return;
        };
        if self.ends.get(&partner).is_none_or(is_over) {
            self.ends.remove(&number);
            self.ends.remove(&partner);
            traffic.drop_pair(number);
        }
    }

    /// Nobody will wait for an end.
    pub fn give_away(&mut self, traffic: &mut Traffic, number: EndNumber) {
        self.over(traffic, number);
    }

    /// The actors that an actor's step waits for.
    fn awaited(&self, step: Step) -> Vec<Actor> {
        match step {
            Step::Await(number, _) => {
                let partner = self.ends.get(&number).and_then(|played| played.partner);
                partner.and_then(|partner| self.ends.get(&partner)).map(|played| played.actor).into_iter().collect()
            }
            Step::Meet(meeting, _) => {
                let Some(met) = self.meetings.get(&meeting) else {
                    return Vec::new();
                };
                let stuck = |actor: &&Actor| met.members.contains(&actor.rank) && self.has_to_arrive(**actor, meeting);
                self.steps.keys().filter(stuck).copied().collect()
            }
            Step::Begin(_) | Step::Arrive(_) => Vec::new(),
        }
    }

    fn has_to_arrive(&self, actor: Actor, meeting: Meeting) -> bool {
        let is_it = |step: &Step| matches!(step, Step::Arrive(it) if *it == meeting);
        self.steps.get(&actor).is_some_and(|steps| steps.iter().any(is_it))
    }

    /// Whether a step depends on which message a receive from any source has taken.
    fn is_open(&self, step: Step) -> bool {
        let Step::Await(number, _) = step else {
            return false;
        };
        let Some(played) = self.ends.get(&number) else {
            return false;
        };
        let partner = played.partner.and_then(|partner| self.ends.get(&partner));
        played.was_open || partner.is_some_and(|partner| partner.was_open)
    }

    /// Tells the circles of those who stand still in the play.
    pub fn tell(&self, findings: &mut Findings) {
        if self.is_given_up {
            findings.note(
                "calls wait for each other longer than the checker follows, so only deadlocks before that are told",
            );
        }
        for places in self.circles.iter().chain(&self.circles()) {
            let count = places.len();
            let places = &places[..count.min(PLACES)];
            match count {
                1 => findings.add(Mistake::Deadlocks, places, format_args!("the rank waits for itself")),
                _ => findings.add(
                    Mistake::Deadlocks,
                    places,
                    format_args!("each of these {count} calls waits for the next, and the last for the first"),
                ),
            }
        }
    }

    /// The circles of those who stand still in the play, which have no actor in common.
    fn circles(&self) -> Vec<Vec<Place>> {
        let mut told: BTreeSet<Actor> = BTreeSet::new();
        let mut circles = Vec::new();
        for &start in self.steps.keys() {
            if let Some(circle) = self.circle_from(start, &told) {
                told.extend(&circle);
                circles.extend(self.places_of(&circle));
            }
        }
        circles
    }

    fn front(&self, actor: Actor) -> Option<Step> {
        self.steps.get(&actor).and_then(VecDeque::front).copied()
    }

    /// A circle that an actor's waits lead to, without the actors of others. Whoever waits for several is followed to
    /// each of them.
    fn circle_from(&self, start: Actor, told: &BTreeSet<Actor>) -> Option<Vec<Actor>> {
        let mut seen = told.clone();
        // The way from the start, and where else each of it leads.
        let mut way: Vec<(Actor, Vec<Actor>)> = Vec::new();
        let mut next = Some(start).filter(|start| seen.insert(*start));
        loop {
            if let Some(actor) = next {
                let awaited = self.front(actor).map(|step| self.awaited(step)).unwrap_or_default();
                way.push((actor, awaited));
            }
            let (_, left) = way.last_mut()?;
            let Some(awaited) = left.pop() else {
                way.pop();
                next = None;
                continue;
            };
            if let Some(place) = way.iter().position(|&(actor, _)| actor == awaited) {
                return Some(way.split_off(place).into_iter().map(|(actor, _)| actor).collect());
            }
            next = Some(awaited).filter(|awaited| seen.insert(*awaited));
        }
    }

    /// What to tell of a circle; `None` if it does not hold, or not for sure.
    fn places_of(&self, circle: &[Actor]) -> Option<Vec<Place>> {
        let steps: Vec<Step> = circle.iter().filter_map(|&actor| self.front(actor)).collect();
        let sends = steps.iter().any(|step| matches!(step, Step::Await(..)));
        if !sends || steps.iter().any(|&step| self.is_open(step)) {
            return None;
        }
        let mut places: Vec<Place> = steps
            .iter()
            .filter_map(|step| match step {
                Step::Await(_, site) => Some(site.did("waits")),
                Step::Meet(_, site) => Some(site.did("waits for all")),
                _ => None,
            })
            .collect();
        // A circle is the same wherever it begins.
        if let Some(least) = places.iter().enumerate().min_by_key(|(_, place)| **place).map(|(at, _)| at) {
            places.rotate_left(least);
        }
        Some(places)
    }
}
