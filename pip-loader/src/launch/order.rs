//! What the launcher of one node asks that of another one to start, and its answer, as they travel between them.
//!
//! Both are of the same build: nodes of different versions do not come together.

use cohort_base::spawn::{Command, Numbers, Part, Request, text};
use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// A length that stands for a text which is not there.
const NONE: u32 = u32::MAX;

/// Nobody of the node that is asked.
const NOBODY: u32 = u32::MAX;

/// Texts of a command, beside its arguments.
const TEXTS: usize = 5;

/// The kinds of [`Message`].
const START: u32 = 0;
const RESERVE: u32 = 1;
const SETTLE: u32 = 2;
const BEGIN: u32 = 3;
const RELEASE: u32 = 4;

/// What a launcher is to do for the ranks of another one, or for its own in a world that lies on several nodes.
pub enum Message {
    /// To start a world on its node.
    Start(Box<Order>),
    /// To see whether a part of a world can be there, and to keep the place for it.
    Reserve(Box<Order>),
    /// To make the records of the part whose place it keeps, so that others can send to its ranks.
    Settle(Layout),
    /// To start those.
    Begin,
    /// To keep the place no more.
    Release,
}

/// A world that lies on several nodes, as one of them is told of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    /// The world's number.
    pub world: u32,
    /// All of its ranks, in their order.
    pub parts: Vec<Part>,
    /// The ranks in it of those that are on this node.
    pub ranks: Vec<u32>,
}

/// A request of another node's rank. It leads to parts of itself, so that it is not moved once it is used.
pub struct Order {
    request: Request,
    /// Which of the caller's commands these are.
    pub numbers: Vec<u32>,
    /// What the request leads to.
    commands: Vec<Command>,
    _parents: Vec<u32>,
    _lists: Vec<Vec<*const c_char>>,
    _texts: Vec<Vec<Option<CString>>>,
}

/// What came of one.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The first of the new ranks has this number in the job, and each command so many.
    Granted(u32, Vec<u32>),
    /// There are none, for this reason.
    Refused(String),
}

/// A world that is to be started on one node, as it travels. Whoever gets it runs it on its own node, so hosts are left
/// out.
///
/// # Safety
/// The request has been taken, and is not answered.
pub unsafe fn start(request: &Request) -> Vec<u8> {
    // SAFETY: the caller's promise.
    unsafe { encode(START, request, |command| Some((command.ranks, command.soft))) }
}

/// A part of a world that lies on several nodes, with so many ranks of each command, as it travels.
///
/// # Safety
/// As for [`start`].
pub unsafe fn reserve(request: &Request, shares: &[u32]) -> Vec<u8> {
    let mut shares = shares.iter();
    // SAFETY: the caller's promise.
    unsafe {
        encode(RESERVE, request, |_| shares.next().filter(|&&share| share > 0).map(|&share| (share, ptr::null())))
    }
}

/// What the world is that a part was reserved of, as it travels.
pub fn settle(Layout { world, parts, ranks }: &Layout) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_numbers(&mut bytes, &[SETTLE, *world, parts.len() as u32]);
    parts.iter().for_each(|part| write_numbers(&mut bytes, &[part.first, part.count]));
    write_numbers(&mut bytes, ranks);
    bytes
}

/// That what was reserved is to be started, as it travels.
pub fn begin() -> Vec<u8> {
    BEGIN.to_le_bytes().into()
}

/// That nothing of what was reserved is to be started, as it travels.
pub fn release() -> Vec<u8> {
    RELEASE.to_le_bytes().into()
}

/// A request as it travels, with so many ranks of each command, or these numbers of them; without some commands.
///
/// # Safety
/// As for [`start`].
unsafe fn encode(
    kind: u32,
    request: &Request,
    mut share: impl FnMut(&Command) -> Option<(u32, *const c_char)>,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Numbers { world, between, children } = request.numbers;
    // SAFETY: what the request leads to stays until it is answered.
    unsafe {
        let commands = std::slice::from_raw_parts(request.commands, request.commands_len as usize);
        let shares = (0_u32..).zip(commands).map(|(number, command)| Some((number, command, share(command)?)));
        let shares: Vec<_> = shares.flatten().collect();
        write_numbers(&mut bytes, &[kind, world, between, children, request.parents_len, shares.len() as u32]);
        write_numbers(&mut bytes, std::slice::from_raw_parts(request.parents, request.parents_len as usize));
        for (number, command, (ranks, soft)) in shares {
            write_numbers(&mut bytes, &[number, ranks, command.initial_errhandler]);
            let Command { program, directory, path, environment, .. } = *command;
            for place in [program, soft, directory, path, environment] {
                write_text(&mut bytes, (!place.is_null()).then(|| text(place)));
            }
            let mut next = command.arguments;
            while let Some(&argument) = next.as_ref().filter(|argument| !argument.is_null()) {
                write_text(&mut bytes, Some(text(argument)));
                next = next.add(1);
            }
            write_text(&mut bytes, None);
        }
    }
    bytes
}

impl Message {
    /// What was said; `None` for nonsense.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        Some(match number(bytes)? {
            START => Self::Start(Order::decode(bytes)?),
            RESERVE => Self::Reserve(Order::decode(bytes)?),
            SETTLE => {
                let (world, count) = (number(bytes)?, number(bytes)?);
                let part = |_| Some(Part { first: number(bytes)?, count: number(bytes)? });
                let parts = (0..count).map(part).collect::<Option<_>>()?;
                Self::Settle(Layout { world, parts, ranks: rest(bytes)? })
            }
            BEGIN if bytes.is_empty() => Self::Begin,
            RELEASE if bytes.is_empty() => Self::Release,
            _ => return None,
        })
    }
}

impl Order {
    /// What [`encode`] was given; `None` for nonsense.
    fn decode(bytes: &mut &[u8]) -> Option<Box<Self>> {
        let numbers = Numbers { world: number(bytes)?, between: number(bytes)?, children: number(bytes)? };
        let (parents, commands) = (number(bytes)?, number(bytes)?);
        let parents: Vec<u32> = (0..parents).map(|_| number(bytes)).collect::<Option<_>>()?;
        let (mut which, mut facts, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..commands {
            which.push(number(bytes)?);
            facts.push([number(bytes)?, number(bytes)?]);
            let mut own = (0..TEXTS).map(|_| read_text(bytes)).collect::<Option<Vec<_>>>()?;
            own.first()?.as_ref()?;
            while own.len() == TEXTS || own.last()?.is_some() {
                own.push(read_text(bytes)?);
            }
            texts.push(own);
        }
        if !bytes.is_empty() {
            return None;
        }
        let place = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        let lists: Vec<Vec<*const c_char>> = texts.iter().map(|own| own.iter().map(place).collect()).collect();
        let commands = facts.iter().zip(&lists).map(|(&[ranks, initial_errhandler], list)| Command {
            program: list[0],
            arguments: list[TEXTS..].as_ptr(),
            ranks,
            soft: list[1],
            started: AtomicU32::new(0),
            directory: list[2],
            path: list[3],
            host: ptr::null(),
            environment: list[4],
            initial_errhandler,
        });
        let commands: Vec<Command> = commands.collect();
        let request = Request::new(NOBODY, &commands, &parents, numbers);
        Some(Box::new(Self { request, numbers: which, commands, _parents: parents, _lists: lists, _texts: texts }))
    }

    /// The request, which no rank of this node has made.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// How many ranks run each command, once the request is granted.
    pub fn started(&self) -> Vec<u32> {
        self.commands.iter().map(|command| command.started.load(Ordering::Relaxed)).collect()
    }
}

impl Answer {
    /// As it travels.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Granted(first, started) => {
                write_numbers(&mut bytes, &[1, *first]);
                write_numbers(&mut bytes, started);
            }
            Self::Refused(reason) => {
                write_numbers(&mut bytes, &[0]);
                bytes.extend(reason.as_bytes());
            }
        }
        bytes
    }

    /// What it was; `None` for nonsense.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        if number(bytes)? == 0 {
            return Some(Self::Refused(String::from_utf8_lossy(bytes).into_owned()));
        }
        Some(Self::Granted(number(bytes)?, rest(bytes)?))
    }
}

fn write_numbers(bytes: &mut Vec<u8>, numbers: &[u32]) {
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn write_text(bytes: &mut Vec<u8>, text: Option<&[u8]>) {
    write_numbers(bytes, &[text.map_or(NONE, |text| text.len() as u32)]);
    bytes.extend(text.unwrap_or_default());
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*number))
}

/// All numbers that are left; `None` for nonsense.
fn rest(bytes: &mut &[u8]) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    while !bytes.is_empty() {
        numbers.push(number(bytes)?);
    }
    Some(numbers)
}

/// `None` for nonsense.
fn read_text(bytes: &mut &[u8]) -> Option<Option<CString>> {
    let length = number(bytes)?;
    if length == NONE {
        return Some(None);
    }
    let (text, rest) = bytes.split_at_checked(length as usize)?;
    *bytes = rest;
    CString::new(text).ok().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(program: &CString, arguments: &[*const c_char], soft: *const c_char) -> Command {
        let none = ptr::null();
        Command {
            program: program.as_ptr(),
            arguments: arguments.as_ptr(),
            ranks: 3,
            soft,
            started: AtomicU32::new(0),
            directory: none,
            path: none,
            host: program.as_ptr(),
            environment: none,
            initial_errhandler: 7,
        }
    }

    #[test]
    fn an_order_is_what_was_asked_for() {
        let texts = ["a program", "", "two words", "1:3"].map(|text| CString::new(text).expect("no NUL"));
        let list = [texts[1].as_ptr(), texts[2].as_ptr(), ptr::null()];
        let first = command(&texts[0], &list, texts[3].as_ptr());
        let second = Command { arguments: ptr::null(), ..command(&texts[2], &[], ptr::null()) };
        let commands = [first, second];
        let numbers = Numbers { world: 4, between: 5, children: 6 };
        let request = Request::new(1, &commands, &[8, 9], numbers);
        // SAFETY: all that it leads to is above.
        let bytes = unsafe { start(&request) };
        let order = |bytes: &[u8]| match Message::decode(bytes) {
            Some(Message::Start(order) | Message::Reserve(order)) => Some(order),
            _ => None,
        };
        let told = order(&bytes).expect("it makes sense");
        let (asked, commands) = (told.request(), &told.commands);
        assert_eq!((asked.asker, asked.numbers, asked.parents_len), (NOBODY, numbers, 2));
        // SAFETY: the order leads to parts of itself; NULL ends lists.
        unsafe {
            assert_eq!(std::slice::from_raw_parts(asked.parents, 2), [8, 9]);
            let [first, second] = &**commands else { panic!("two commands") };
            assert_eq!([first.program, first.soft].map(|it| text(it)), [b"a program".as_slice(), b"1:3"]);
            let list = std::slice::from_raw_parts(first.arguments, 3);
            assert_eq!(
                (text(list[0]), text(list[1]), list[2].is_null()),
                (b"".as_slice(), b"two words".as_slice(), true)
            );
            assert!(first.host.is_null() && first.directory.is_null() && (*second.arguments).is_null());
            assert_eq!((second.ranks, second.initial_errhandler), (3, 7));
        }
        // Whatever is missing or too much is noticed.
        assert!((0..bytes.len()).all(|length| order(&bytes[..length]).is_none()));
        assert!(order(&[&bytes[..], b"x"].concat()).is_none());
        assert!(Message::decode(&[0xff; 40]).is_none());
        // A part has those commands only that have ranks there.
        // SAFETY: as above.
        let part = order(&unsafe { reserve(&request, &[0, 2]) }).expect("it makes sense");
        assert_eq!((&*part.numbers, part.commands[0].ranks, part.commands.len()), (&[1][..], 2, 1));
        // SAFETY: as above.
        assert!(part.commands[0].soft.is_null() && unsafe { text(part.commands[0].program) } == b"two words");
    }

    #[test]
    fn worlds_on_several_nodes_are_told_as_they_are() {
        let parts = vec![Part { first: 10, count: 2 }, Part { first: 1034, count: 1 }];
        let layout = Layout { world: 3, parts, ranks: vec![0, 1] };
        assert!(matches!(Message::decode(&settle(&layout)), Some(Message::Settle(told)) if told == layout));
        assert!(matches!(Message::decode(&begin()), Some(Message::Begin)));
        assert!(matches!(Message::decode(&release()), Some(Message::Release)));
        assert!(Message::decode(&[release(), vec![0]].concat()).is_none());
    }

    #[test]
    fn answers_come_as_they_were() {
        for answer in [Answer::Granted(1030, vec![2, 1]), Answer::Refused("no such file".into())] {
            assert_eq!(Answer::decode(&answer.encode()), Some(answer));
        }
        assert_eq!(Answer::decode(&[1, 0, 0, 0, 5]), None);
    }
}
