//! What ranks of different nodes say to each other before they have a communicator in common: at ports, and about
//! published names (MPI-5.0, 11.9).
//!
//! A port is its opener's: who connects sends a word there, and whoever holds the opener's claim keeps it, or answers
//! at once that there is no such port. So nobody waits for a program that computes, where ranks are stolen from.
//! Published names are kept by the job's rank 0 in the same way.
//!
//! All of it lies in the rank's heap, and is reached through its claim. It is made when it is first needed, of a fixed
//! size: what finds no room is refused.

pub use crate::kick;
use crate::link::{Unsent, line_up, link_to};
use crate::wire::{Header, PacketKind};
use crate::{Network, fail};
use cohort_base::Peer;
use cohort_core::claim::Claim;
use cohort_core::error::EngineError;
use cohort_core::message::Envelope;
use core::ptr::NonNull;

/// Longest text of a word, in bytes.
pub const TEXT_MAX: usize = 512;

/// Ports that a rank may have open for other nodes at a time.
const OPEN_MAX: usize = 64;

/// Words that may wait at a rank.
const WORDS_MAX: usize = 256;

/// Room among them that those who knock leave, for answers to the rank's own questions.
const ANSWERS: usize = 16;

/// Names that may be published at a time.
pub const NAMES_MAX: usize = 256;

/// What a word is.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// To a port's opener: somebody wants to connect.
    Knock = 1,
    /// The answer: it was accepted, with this number of a communicator.
    Accepted,
    /// The answer: it was not, for a [`Reason`].
    Refused,
    /// To rank 0: a name, a NUL, and the port that is published under it.
    Publish,
    /// To rank 0: a name, whose port is asked for.
    Lookup,
    /// To rank 0: a name, a NUL, and the port under it, which are published no more.
    Unpublish,
    /// To rank 0: whatever the sender has published, is no more.
    Forget,
    /// The answer: what was [`Done`], and the port of a name that was asked for.
    Answer,
}

/// What has become of a word about names.
#[repr(u64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// Nothing: the name is published already, or is not.
    No = 0,
    /// What it asks for.
    Yes,
    /// Nothing: as many are published as there is room for.
    Full,
}

impl Done {
    /// As an [answer](Step::Answer) has it.
    #[must_use]
    pub const fn of(value: u64) -> Self {
        match value {
            1 => Self::Yes,
            2 => Self::Full,
            _ => Self::No,
        }
    }
}

/// Why somebody who knocked is not let in.
#[repr(u64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The port is not open, or not any more.
    Closed = 1,
    /// Too many wait there.
    Full,
}

impl Step {
    fn of(number: u8) -> Option<Self> {
        use Step::{Accepted, Answer, Forget, Knock, Lookup, Publish, Refused, Unpublish};
        [Knock, Accepted, Refused, Publish, Lookup, Unpublish, Forget, Answer]
            .into_iter()
            .find(|it| *it as u8 == number)
    }

    /// Whether it ends a wait of whoever gets it.
    #[must_use]
    pub const fn is_answer(self) -> bool {
        matches!(self, Self::Accepted | Self::Refused | Self::Answer)
    }
}

/// A text of a fixed size.
#[derive(Clone, Copy)]
struct Text {
    length: u16,
    bytes: [u8; TEXT_MAX],
}

impl Text {
    /// As much of it as there is room for.
    fn of(text: &[u8]) -> Self {
        let length = text.len().min(TEXT_MAX);
        let mut bytes = [0; TEXT_MAX];
        bytes[..length].copy_from_slice(&text[..length]);
        Self { length: length as u16, bytes }
    }

    fn get(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length).min(TEXT_MAX)]
    }
}

/// What one rank says to another.
#[derive(Clone, Copy)]
pub struct Word {
    /// Who says it.
    pub from: Peer,
    /// What it is.
    pub step: Step,
    /// The asker's number of the question.
    pub serial: u32,
    /// The number of a port.
    pub port: u32,
    /// What the step makes of it.
    pub value: u64,
    text: Text,
}

impl Word {
    /// One of this rank of the node.
    #[must_use]
    pub fn new(from: Peer, step: Step, serial: u32) -> Self {
        Self { from, step, serial, port: 0, value: 0, text: Text::of(&[]) }
    }

    /// About a port.
    #[must_use]
    pub fn about(self, port: u32) -> Self {
        Self { port, ..self }
    }

    /// With a value.
    #[must_use]
    pub fn with_value(self, value: u64) -> Self {
        Self { value, ..self }
    }

    /// With a text, of at most [`TEXT_MAX`] bytes.
    #[must_use]
    pub fn with_text(self, text: &[u8]) -> Self {
        Self { text: Text::of(text), ..self }
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        self.text.get()
    }
}

/// A name that is published.
#[derive(Clone, Copy)]
struct Name {
    /// Who has published it.
    owner: Peer,
    name: Text,
    port: Text,
}

/// What a rank keeps. All zeros are a valid value, in which there is nothing.
pub(crate) struct Calls {
    /// Numbers of open ports; 0 for none.
    open: [u32; OPEN_MAX],
    /// Words that nobody has taken, each with its number in the order in which they came.
    words: [Option<(u64, Word)>; WORDS_MAX],
    next: u64,
    /// Published names, at rank 0 from the first on.
    names: Option<NonNull<Published>>,
}

/// Names that are published.
struct Published([Option<Name>; NAMES_MAX]);

impl Calls {
    /// `false` if there is no room for it.
    fn push(&mut self, word: Word) -> bool {
        let kept = if word.step == Step::Knock { ANSWERS } else { 0 };
        let place = self.words.iter_mut().filter(|place| place.is_none()).nth(kept);
        self.next += 1;
        place.is_some_and(|place| {
            *place = Some((self.next, word));
            true
        })
    }

    fn take(&mut self, wanted: impl Fn(&Word) -> bool) -> Option<Word> {
        let found = self.words.iter_mut().filter(|place| place.as_ref().is_some_and(|(_, word)| wanted(word)));
        let oldest = found.min_by_key(|place| place.as_ref().map_or(u64::MAX, |&(number, _)| number))?;
        oldest.take().map(|(_, word)| word)
    }
}

impl Published {
    /// Publishes, looks up and takes back names: what was done, and a port.
    fn answer(&mut self, word: &Word) -> (Done, Text) {
        let nothing = Text::of(&[]);
        let text = word.text();
        let (name, port) = match text.iter().position(|&byte| byte == 0) {
            Some(end) => (&text[..end], &text[end + 1..]),
            None => (text, &text[text.len()..]),
        };
        let is_it = |place: &&mut Option<Name>| place.as_ref().is_some_and(|known| known.name.get() == name);
        let known = self.0.iter_mut().find(is_it);
        match (word.step, known) {
            (Step::Publish, None) => match self.0.iter_mut().find(|place| place.is_none()) {
                Some(place) => {
                    *place = Some(Name { owner: word.from, name: Text::of(name), port: Text::of(port) });
                    (Done::Yes, nothing)
                }
                None => (Done::Full, nothing),
            },
            (Step::Lookup, Some(Some(known))) => (Done::Yes, known.port),
            (Step::Unpublish, Some(place)) if place.as_ref().is_some_and(|known| known.port.get() == port) => {
                *place = None;
                (Done::Yes, nothing)
            }
            (Step::Forget, _) => {
                self.forget(|owner| owner == word.from);
                (Done::Yes, nothing)
            }
            _ => (Done::No, nothing),
        }
    }

    /// Nothing is published any more that these have published.
    fn forget(&mut self, is_theirs: impl Fn(Peer) -> bool) {
        let theirs = self.0.iter_mut().filter(|place| place.as_ref().is_some_and(|it| is_theirs(it.owner)));
        theirs.for_each(|place| *place = None);
    }
}

/// Empties a list of places, each where it is: together they are too large for a stack.
///
/// # Safety
/// The room is the caller's.
unsafe fn empty<T>(list: *mut [Option<T>]) {
    for index in 0..list.len() {
        // SAFETY: a place of the list.
        unsafe { list.cast::<Option<T>>().add(index).write(None) };
    }
}

/// What the claimed rank keeps, which is made now if it was not.
///
/// # Errors
/// There is no memory for it.
fn calls<'a>(claim: &'a mut Claim<'_>) -> Result<&'a mut Calls, EngineError> {
    if claim.of::<Network>().calls.is_none() {
        let room = claim.alloc_zeroed(size_of::<Calls>(), align_of::<Calls>()).ok_or(EngineError::OutOfMemory)?;
        let room = room.cast::<Calls>();
        // SAFETY: fresh room for it, where numbers are zero; the claim excludes everybody else.
        unsafe { empty(&raw mut (*room.as_ptr()).words) };
        claim.of::<Network>().calls = Some(room);
    }
    Ok(kept(claim).expect("it was just made"))
}

/// What the claimed rank keeps, if there is anything.
fn kept<'a>(claim: &'a mut Claim<'_>) -> Option<&'a mut Calls> {
    let room: NonNull<Calls> = claim.of::<Network>().calls?;
    // SAFETY: made by `calls`, never freed, and reached through the claim only.
    Some(unsafe { &mut *room.as_ptr() })
}

/// Answers at rank 0, whose claim this is, a word about names: what was done, and a port. The room for names is made
/// when the first is published.
///
/// # Errors
/// There is no memory for it.
fn answer(claim: &mut Claim<'_>, word: &Word) -> Result<(Done, Text), EngineError> {
    let names = match (kept(claim).and_then(|own| own.names), word.step) {
        (Some(names), _) => names,
        (None, Step::Publish) => {
            calls(claim)?;
            let (size, align) = (size_of::<Published>(), align_of::<Published>());
            let room = claim.alloc_zeroed(size, align).ok_or(EngineError::OutOfMemory)?.cast::<Published>();
            // SAFETY: fresh room for it.
            unsafe { empty(&raw mut (*room.as_ptr()).0) };
            calls(claim)?.names = Some(room);
            room
        }
        (None, step) => return Ok((if step == Step::Forget { Done::Yes } else { Done::No }, Text::of(&[]))),
    };
    let node = claim.rank().node();
    // SAFETY: made above, never freed, and reached through the claim only.
    let names = unsafe { &mut *names.as_ptr() };
    if node.failure_count() > 0 {
        names.forget(|owner| node.has_failed(owner));
    }
    Ok(names.answer(word))
}

/// Opens a port of the claimed rank; false if there are too many.
///
/// # Errors
/// There is no memory for it.
pub fn open(claim: &mut Claim<'_>, port: u32) -> Result<bool, EngineError> {
    let place = calls(claim)?.open.iter_mut().find(|place| **place == 0);
    Ok(place.map(|place| *place = port).is_some())
}

/// Closes a port of the claimed rank, if it is open there. Who waits there hears of it.
pub fn close(claim: &mut Claim<'_>, port: u32) {
    let Some(own) = kept(claim) else {
        return;
    };
    own.open.iter_mut().filter(|place| **place == port).for_each(|place| *place = 0);
    while let Some(word) = take(claim, |word| word.step == Step::Knock && word.port == port) {
        refuse(claim, &word, Reason::Closed);
    }
    kick(claim);
}

/// Takes the oldest of the words that wait at the claimed rank and are wanted.
pub fn take(claim: &mut Claim<'_>, wanted: impl Fn(&Word) -> bool) -> Option<Word> {
    kept(claim)?.take(wanted)
}

/// Whether such a word waits at the claimed rank.
pub fn has(claim: &mut Claim<'_>, wanted: impl Fn(&Word) -> bool) -> bool {
    kept(claim).is_some_and(|own| own.words.iter().flatten().any(|(_, word)| wanted(word)))
}

/// Whether a rank of another node has said goodbye to the claimed one, so that it answers nothing more.
pub fn is_gone(claim: &mut Claim<'_>, peer: Peer) -> bool {
    let link = claim.of::<Network>().links.find(peer);
    link.is_some_and(|link| link.is_closed.get())
}

/// Makes room for answers at the claimed rank.
///
/// # Errors
/// There is no memory for it.
pub fn expect(claim: &mut Claim<'_>) -> Result<(), EngineError> {
    calls(claim).map(drop)
}

/// Does at rank 0, whose claim this is, what a word about names asks for: what was done, and a port's name in `port`,
/// whose length is given.
///
/// # Errors
/// There is no memory for it.
pub fn register(claim: &mut Claim<'_>, word: &Word, port: &mut [u8; TEXT_MAX]) -> Result<(Done, usize), EngineError> {
    let (done, found) = answer(claim, word)?;
    port[..found.get().len()].copy_from_slice(found.get());
    Ok((done, found.get().len()))
}

/// Lines up a word of the claimed rank for a rank of another node. It leaves with the next turn, or [`kick`]. Without
/// memory for it the job cannot go on.
pub fn say(claim: &mut Claim<'_>, to: Peer, word: &Word) {
    let envelope = Envelope { context: word.port, source: 0, tag: word.serial.cast_signed() };
    let mut header = Header::of_message(PacketKind::Call, envelope, word.value, 0);
    header.flags = word.step as u8;
    let text = word.text();
    let made = link_to(claim, to).and_then(|link| Ok((link, Unsent::with_room(claim, header, text.len())?)));
    match made {
        Ok((link, (packet, room))) => {
            // SAFETY: room for as many bytes, which nobody has seen.
            unsafe { room.copy_from_nonoverlapping(text.as_ptr(), text.len()) };
            line_up(claim, link, packet);
        }
        Err(_) => fail::no_memory(claim.rank(), to),
    }
}

fn refuse(claim: &mut Claim<'_>, word: &Word, reason: Reason) {
    let own = claim.rank().peer();
    let answer = Word::new(own, Step::Refused, word.serial).about(word.port).with_value(reason as u64);
    say(claim, word.from, &answer);
}

/// A word has come for the claimed rank. `None` if it makes no sense.
pub(crate) fn packet(claim: &mut Claim<'_>, from: Peer, header: &Header, body: &[u8]) -> Option<u64> {
    let envelope = header.envelope();
    let word = Word {
        from,
        step: Step::of(header.flags)?,
        serial: envelope.tag.cast_unsigned(),
        port: envelope.context,
        value: header.bytes,
        text: (body.len() <= TEXT_MAX).then(|| Text::of(body))?,
    };
    match word.step {
        Step::Knock => match kept(claim) {
            Some(own) if own.open.contains(&word.port) => match own.push(word) {
                true => {
                    let node = claim.rank().node();
                    // Whoever of them accepts there.
                    (0..node.size()).for_each(|id| {
                        node.rank(id).wake();
                    });
                }
                false => refuse(claim, &word, Reason::Full),
            },
            _ => refuse(claim, &word, Reason::Closed),
        },
        Step::Publish | Step::Lookup | Step::Unpublish | Step::Forget => {
            let Ok((done, port)) = answer(claim, &word) else {
                fail::no_memory(claim.rank(), from);
            };
            if matches!(word.step, Step::Publish | Step::Lookup) {
                let answer = Word { text: port, ..Word::new(claim.rank().peer(), Step::Answer, word.serial) };
                say(claim, from, &answer.with_value(done as u64));
            }
        }
        Step::Accepted | Step::Refused | Step::Answer => {
            // Whoever asked has made room. Who waits no more has left answers there.
            let own = kept(claim)?;
            if !own.push(word) {
                own.take(|old| old.step == Step::Answer);
                return own.push(word).then_some(0);
            }
        }
    }
    Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_calls() -> std::boxed::Box<Calls> {
        std::boxed::Box::new(Calls { open: [0; OPEN_MAX], words: [None; WORDS_MAX], next: 0, names: None })
    }

    fn nothing_published() -> std::boxed::Box<Published> {
        std::boxed::Box::new(Published([None; NAMES_MAX]))
    }

    fn word(from: u32, step: Step, text: &str) -> Word {
        let from = Peer::of_index(from);
        Word { from, step, serial: 7, port: 3, value: 0, text: Text::of(text.as_bytes()) }
    }

    #[test]
    fn the_oldest_word_is_taken_first_and_too_many_are_refused() {
        let mut calls = no_calls();
        let most = (WORDS_MAX - ANSWERS) as u32;
        for from in 0..most {
            assert!(calls.push(word(from, Step::Knock, "")));
        }
        assert!(!calls.push(word(999, Step::Knock, "")));
        // There is always room for an answer.
        assert!((0..ANSWERS).all(|_| calls.push(word(0, Step::Accepted, ""))));
        assert!((0..ANSWERS).all(|_| calls.take(|it| it.step == Step::Accepted).is_some()));
        assert_eq!(calls.take(|it| it.from.index() > 4).map(|it| it.from.index()), Some(5));
        assert!(calls.push(word(1000, Step::Knock, "")));
        for from in (0..5).chain(6..most).chain([1000]) {
            assert_eq!(calls.take(|it| it.port == 3).map(|it| it.from.index()), Some(from));
        }
        assert!(calls.take(|_| true).is_none());
    }

    #[test]
    fn names_are_published_once_found_and_taken_back() {
        let mut names = nothing_published();
        let mut ask = |from, step, text| {
            let (done, port) = names.answer(&word(from, step, text));
            (done, std::string::String::from_utf8_lossy(port.get()).into_owned())
        };
        let [yes, no] = [Done::Yes, Done::No].map(|done| (done, std::string::String::new()));
        assert_eq!(ask(1, Step::Publish, "sea\0port 1"), yes);
        assert_eq!(ask(2, Step::Publish, "sea\0port 2"), no);
        assert_eq!(ask(2, Step::Publish, "lake\0port 2"), yes);
        assert_eq!(ask(3, Step::Lookup, "sea"), (Done::Yes, "port 1".into()));
        assert_eq!(ask(3, Step::Lookup, "river"), no);
        assert_eq!(ask(3, Step::Unpublish, "sea\0port 2"), no);
        assert_eq!(ask(3, Step::Unpublish, "sea\0port 1"), yes);
        assert_eq!(ask(3, Step::Lookup, "sea"), no);
        assert_eq!(ask(2, Step::Forget, ""), yes);
        assert_eq!(ask(3, Step::Lookup, "lake"), no);
    }

    #[test]
    fn one_name_too_many_is_told_from_one_that_is_known() {
        let mut names = nothing_published();
        let mut publish = |name: usize| names.answer(&word(1, Step::Publish, &std::format!("{name}\0port"))).0;
        assert!((0..NAMES_MAX).all(|name| publish(name) == Done::Yes));
        assert_eq!((publish(NAMES_MAX), publish(0)), (Done::Full, Done::No));
        assert_eq!(names.answer(&word(1, Step::Unpublish, "7\0port")).0, Done::Yes);
        assert_eq!(names.answer(&word(2, Step::Publish, "sea\0port")).0, Done::Yes);
        for done in [Done::No, Done::Yes, Done::Full] {
            assert_eq!(Done::of(done as u64), done);
        }
    }

    #[test]
    fn ranks_that_keep_no_names_have_no_room_for_them() {
        assert!(no_calls().names.is_none());
        assert!(size_of::<Calls>() < WORDS_MAX * (TEXT_MAX + 64));
    }

    #[test]
    fn places_are_emptied_where_they_are() {
        let mut list = std::boxed::Box::new(core::mem::MaybeUninit::<[Option<(u64, Word)>; WORDS_MAX]>::uninit());
        // SAFETY: its own room, of which `empty` makes a valid value.
        let list = unsafe {
            list.as_mut_ptr().write_bytes(0xff, 1);
            empty(list.as_mut_ptr());
            list.assume_init()
        };
        assert!(list.iter().all(Option::is_none));
    }
}
