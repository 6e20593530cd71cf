//! What the launcher of one node asks that of another one to start, and its answer, as they travel between them.
//!
//! Both are of the same build: nodes of different versions do not come together.

use cohort_base::spawn::{Command, Numbers, Request, text};
use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// A length that stands for a text which is not there.
const NONE: u32 = u32::MAX;

/// Nobody of the node that is asked.
const NOBODY: u32 = u32::MAX;

/// Texts of a command, beside its arguments.
const TEXTS: usize = 5;

/// A request of another node's rank. It leads to parts of itself, so that it is not moved once it is used.
pub struct Order {
    request: Request,
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

/// A request as it travels. Whoever gets it runs it on its own node, so hosts are left out.
///
/// # Safety
/// It has been taken, and is not answered.
pub unsafe fn encode(request: &Request) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Numbers { world, between, children } = request.numbers;
    write_numbers(&mut bytes, &[world, between, children, request.parents_len, request.commands_len]);
    // SAFETY: what the request leads to stays until it is answered.
    unsafe {
        write_numbers(&mut bytes, std::slice::from_raw_parts(request.parents, request.parents_len as usize));
        for command in std::slice::from_raw_parts(request.commands, request.commands_len as usize) {
            write_numbers(&mut bytes, &[command.ranks, command.initial_errhandler]);
            let Command { program, soft, directory, path, environment, .. } = *command;
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

impl Order {
    /// What [`encode`] was given; `None` for nonsense.
    pub fn decode(mut bytes: &[u8]) -> Option<Box<Self>> {
        let bytes = &mut bytes;
        let numbers = Numbers { world: number(bytes)?, between: number(bytes)?, children: number(bytes)? };
        let (parents, commands) = (number(bytes)?, number(bytes)?);
        let parents: Vec<u32> = (0..parents).map(|_| number(bytes)).collect::<Option<_>>()?;
        let (mut facts, mut texts) = (Vec::new(), Vec::new());
        for _ in 0..commands {
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
        Some(Box::new(Self { request, commands, _parents: parents, _lists: lists, _texts: texts }))
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
        let (first, mut started) = (number(bytes)?, Vec::new());
        while !bytes.is_empty() {
            started.push(number(bytes)?);
        }
        Some(Self::Granted(first, started))
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
        let bytes = unsafe { encode(&request) };
        let order = Order::decode(&bytes).expect("it makes sense");
        let asked = order.request();
        assert_eq!((asked.asker, asked.numbers, asked.parents_len), (NOBODY, numbers, 2));
        // SAFETY: the order leads to parts of itself; NULL ends lists.
        unsafe {
            assert_eq!(std::slice::from_raw_parts(asked.parents, 2), [8, 9]);
            let [first, second] = &*order.commands else { panic!("two commands") };
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
        assert!((0..bytes.len()).all(|length| Order::decode(&bytes[..length]).is_none()));
        assert!(Order::decode(&[&bytes[..], b"x"].concat()).is_none());
        assert!(Order::decode(&[0xff; 40]).is_none());
    }

    #[test]
    fn answers_come_as_they_were() {
        for answer in [Answer::Granted(1030, vec![2, 1]), Answer::Refused("no such file".into())] {
            assert_eq!(Answer::decode(&answer.encode()), Some(answer));
        }
        assert_eq!(Answer::decode(&[1, 0, 0, 0, 5]), None);
    }
}
