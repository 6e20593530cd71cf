//! Texts of `key=value` fields, which all PMI messages are.

use crate::Failure;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd};

/// Longest message that is believed; a manager that sends more is none.
const MESSAGE_MAX: usize = 1 << 20;

/// Bytes that one look at a line takes in.
const LOOK: usize = 1024;

/// A message: its command and its other fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    text: String,
    fields: Vec<(String, String)>,
}

impl Message {
    /// Reads a text whose fields are separated by `separator`. Where that is `;`, a doubled one
    /// stands for itself within a value.
    pub fn parse(text: &str, separator: char) -> Self {
        let fields = split(text.trim_end_matches('\n'), separator);
        let pair = |field: &String| {
            let (key, value) = field.split_once('=')?;
            Some((key.trim().to_owned(), value.to_owned()))
        };
        Self { text: text.to_owned(), fields: fields.iter().filter_map(pair).collect() }
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value of a field.
    pub fn get(&self, key: &str) -> Option<&str> {
        let field = self.fields.iter().find(|(name, _)| name == key)?;
        Some(&field.1)
    }

    /// The value of a field that must be there and be a number.
    pub fn number<T: std::str::FromStr>(&self, key: &str) -> Result<T, Failure> {
        let value = self.get(key).and_then(|value| value.trim().parse().ok());
        value.ok_or_else(|| self.unexpected(&format!("{key}=NUMBER")))
    }

    /// This message where another was expected.
    pub fn unexpected(&self, expected: &str) -> Failure {
        Failure::Unexpected { expected: expected.to_owned(), got: self.text.clone() }
    }

    /// Checks that this is the answer called `command` and reports success, which managers
    /// that do not say so mean.
    pub fn succeeds(self, command: &str, request: &str) -> Result<Self, Failure> {
        if self.get("cmd") != Some(command) {
            return Err(self.unexpected(&format!("cmd={command}")));
        }
        match self.get("rc") {
            None | Some("0") => Ok(self),
            Some(_) => Err(Failure::Refused { request: request.to_owned(), answer: self.text }),
        }
    }
}

fn split(text: &str, separator: char) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let doubled = separator == ';' && letters.peek() == Some(&separator);
        let last = fields.len() - 1;
        if letter != separator {
            fields[last].push(letter);
        } else if doubled && fields[last].contains('=') {
            letters.next();
            fields[last].push(separator);
        } else {
            fields.push(String::new());
        }
    }
    fields
}

/// Writes a text to a manager. One that has gone is an error, and no signal for a program that has started this.
pub fn send(stream: &mut (impl Write + AsFd), text: &str) -> Result<(), Failure> {
    write_quietly(stream, text.as_bytes()).map_err(|source| broken(&format!("sending \"{}\"", text.trim_end()), source))
}

fn write_quietly(stream: &mut (impl Write + AsFd), mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let number = stream.as_fd().as_raw_fd();
        // SAFETY: reads the bytes, which are there.
        let sent = unsafe { libc::send(number, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
        match usize::try_from(sent) {
            Ok(count) => bytes = &bytes[count..],
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == ErrorKind::Interrupted => {}
                error if error.raw_os_error() == Some(libc::ENOTSOCK) => return stream.write_all(bytes),
                error => return Err(error),
            },
        }
    }
    stream.flush()
}

/// Reads a line and nothing that follows it, which may belong to someone else: looks first at what has come.
pub fn read_line(stream: &mut (impl Read + AsFd)) -> Result<String, Failure> {
    let mut line = Vec::new();
    loop {
        let start = line.len();
        line.resize(start + of_line(stream).map_err(reading)?, 0);
        stream.read_exact(&mut line[start..]).map_err(reading)?;
        if line.ends_with(b"\n") {
            return Ok(String::from_utf8_lossy(&line).into_owned());
        }
        if line.len() > MESSAGE_MAX {
            return Err(too_long(line.len()));
        }
    }
}

/// Waits for something, and says how many bytes of the next line have come; one where nobody can look ahead. A stream
/// that has ended is one byte too, whose reading says so.
fn of_line(stream: &impl AsFd) -> io::Result<usize> {
    let mut bytes = [0; LOOK];
    let number = stream.as_fd().as_raw_fd();
    loop {
        // SAFETY: writes at most as many bytes as there are.
        let seen = unsafe { libc::recv(number, bytes.as_mut_ptr().cast(), LOOK, libc::MSG_PEEK) };
        return match usize::try_from(seen) {
            Ok(seen) => {
                let end = bytes[..seen].iter().position(|&byte| byte == b'\n');
                Ok(end.map_or(seen, |end| end + 1).max(1))
            }
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == ErrorKind::Interrupted => continue,
                error if error.raw_os_error() == Some(libc::ENOTSOCK) => Ok(1),
                error => Err(error),
            },
        };
    }
}

/// Reads a text with its length, six decimal digits padded with blanks, before it.
pub fn read_counted(stream: &mut impl Read) -> Result<String, Failure> {
    let digits = read_exactly::<6>(stream)?;
    let digits = String::from_utf8_lossy(&digits).into_owned();
    let length: usize = digits
        .trim()
        .parse()
        .map_err(|_| Failure::Unexpected { expected: "a length of six digits".to_owned(), got: digits })?;
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).map_err(reading)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn read_exactly<const N: usize>(stream: &mut impl Read) -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).map_err(reading)?;
    Ok(bytes)
}

fn reading(source: std::io::Error) -> Failure {
    broken("waiting for its answer", source)
}

pub fn broken(what: &str, source: std::io::Error) -> Failure {
    Failure::Stream { what: what.to_owned(), source }
}

fn too_long(length: usize) -> Failure {
    Failure::Unexpected { expected: "the end of a line".to_owned(), got: format!("{length} bytes without one") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn lines_and_lists_are_read() {
        let message = Message::parse("cmd=maxes  rc=0 keylen_max=64\n", ' ');
        assert_eq!(message.get("cmd"), Some("maxes"));
        assert_eq!(message.number::<usize>("keylen_max").unwrap(), 64);
        let message = Message::parse("cmd=kvs-get-response;value=a;;b;;;rc=0;", ';');
        assert_eq!(message.get("value"), Some("a;b;"));
        assert_eq!(message.get("rc"), Some("0"));
        assert!(message.number::<usize>("missing").is_err());
    }

    #[test]
    fn what_follows_a_line_stays_for_others() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let long = format!("cmd=put value={}\n", "a".repeat(3 * LOOK));
        theirs.write_all(format!("cmd=first\n{long}rest").as_bytes()).unwrap();
        assert_eq!(read_line(&mut ours).unwrap(), "cmd=first\n");
        assert_eq!(read_line(&mut ours).unwrap(), long);
        let mut rest = [0; 4];
        ours.read_exact(&mut rest).unwrap();
        assert_eq!(&rest, b"rest");
        theirs.write_all(b"cut").unwrap();
        drop(theirs);
        assert!(read_line(&mut ours).is_err(), "a line without an end");
    }

    #[test]
    fn a_pipe_is_read_too() {
        let (mut ours, mut theirs) = std::io::pipe().unwrap();
        theirs.write_all(b"cmd=first\nrest").unwrap();
        drop(theirs);
        assert_eq!(read_line(&mut ours).unwrap(), "cmd=first\n");
        let mut rest = String::new();
        ours.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "rest");
    }

    #[test]
    fn a_failure_names_request_and_answer() {
        let answer = Message::parse("cmd=get_result rc=-1 msg=unknown\n", ' ');
        let failure = answer.succeeds("get_result", "cmd=get key=a\n").unwrap_err();
        let text = failure.to_string();
        assert!(text.contains("\"cmd=get key=a\"") && text.contains("msg=unknown"), "{text}");
        let answer = Message::parse("cmd=barrier_out\n", ' ');
        assert!(answer.succeeds("get_result", "").is_err());
    }

    #[test]
    fn counted_texts_are_read_whole() {
        let mut stream: &[u8] = b"     8cmd=ok;\n000003abc";
        assert_eq!(read_counted(&mut stream).unwrap(), "cmd=ok;\n");
        assert_eq!(read_counted(&mut stream).unwrap(), "abc");
        assert!(read_counted(&mut stream).is_err());
        assert!(read_counted(&mut &b"abcdef"[..]).is_err());
    }
}
