//! A connection between launchers of two jobs, on which both have proven themselves: in clear text, or encrypted if the
//! user of either job wants it (`COHORT_NET_ENCRYPT`).
//!
//! If so, each end sends a nonce and a public number ([`Agreement`]), and all that follows goes in records
//! ([`Cipher`]). The keys come from the secret in the port's name, from both nonces, from what the numbers have in
//! common, and from what both ends have said before. So who listens cannot read, even if it learns the port's name; and
//! who changes something, or makes one end believe that the other one wants no encryption, ends the connection.

use cohort_cipher::{Agreement, Cipher, Opener, PUBLIC, Sealer};
use cohort_manager::random;
use cohort_proof::{Challenge, Nonce, Purpose, Secret, Side};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Bytes that are read at a time: some records.
const BUFFER: usize = 256 << 10;

/// Bytes of a nonce.
const NONCE: usize = size_of::<Nonce>();

/// Both directions of a connection.
pub struct Wire {
    pub reader: Reader,
    pub writer: Writer,
}

/// What comes.
pub struct Reader {
    stream: TcpStream,
    opened: Option<Opened>,
}

/// What came in records.
struct Opened {
    opener: Opener,
    buffer: Vec<u8>,
    /// Where in the buffer the bytes are that nobody has taken.
    at: usize,
    end: usize,
}

/// What goes.
pub struct Writer {
    stream: TcpStream,
    sealer: Option<Sealer>,
}

/// What keys are made of, beside what is drawn for the connection.
pub struct Bond<'a> {
    /// What both have proven to know.
    pub secret: &'a Secret,
    /// Which end this is.
    pub side: Side,
    /// What the initiator has said, and then the acceptor.
    pub said: [&'a [u8]; 2],
}

impl Wire {
    /// A connection, encrypted if there is something to make keys of.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn new(mut stream: TcpStream, bond: Option<&Bond<'_>>) -> io::Result<Self> {
        let cipher = bond.map(|bond| agree(&mut stream, bond)).transpose()?;
        let (sealer, opener) = cipher.map(|Cipher { sealer, opener }| (sealer, opener)).unzip();
        let opened = opener.map(|opener| Opened { opener, buffer: vec![0; BUFFER], at: 0, end: 0 });
        let reader = Reader { stream: stream.try_clone()?, opened };
        Ok(Self { reader, writer: Writer { stream, sealer } })
    }

    /// From now on the ends wait for each other as long as that takes.
    ///
    /// # Errors
    /// Those of the system.
    pub fn settle(&self, keep_alive: impl FnOnce(&TcpStream) -> io::Result<()>) -> io::Result<()> {
        keep_alive(&self.writer.stream)?;
        self.writer.stream.set_read_timeout(None::<Duration>)
    }
}

/// Agrees on keys with the other end.
fn agree(stream: &mut TcpStream, bond: &Bond<'_>) -> io::Result<Cipher> {
    let nothing = || io::Error::other("there are no random numbers for keys");
    let nonce: Nonce = random()?;
    let agreement = Agreement::begin().ok_or_else(nothing)?;
    stream.write_all(&[&nonce[..], agreement.public()].concat())?;
    let (mut other_nonce, mut other) = ([0; NONCE], [0; PUBLIC]);
    stream.read_exact(&mut other_nonce)?;
    stream.read_exact(&mut other)?;
    let (first, second) = match bond.side {
        Side::Initiator => (nonce, other_nonce),
        Side::Acceptor => (other_nonce, nonce),
    };
    let challenge = Challenge { purpose: Purpose { service: super::SERVICE, ..Purpose::default() }, nonce: first };
    let keys = bond.secret.keys(&challenge, &second).with(&bond.said);
    let keys = agreement.keys(&other, &keys, bond.side).ok_or_else(forged)?;
    Ok(Cipher::new(&keys, bond.side))
}

/// What came is not what the other end has written.
fn forged() -> io::Error {
    ErrorKind::InvalidData.into()
}

impl Read for Reader {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let Some(Opened { opener, buffer, at, end }) = &mut self.opened else {
            return self.stream.read(room);
        };
        while at == end {
            let start = opener.begin(buffer);
            let count = self.stream.read(&mut buffer[start..])?;
            if count == 0 {
                return Ok(0);
            }
            *end = opener.open(&mut buffer[..start + count]).map_err(|_forged| forged())?;
            *at = 0;
        }
        let count = room.len().min(*end - *at);
        room[..count].copy_from_slice(&buffer[*at..*at + count]);
        *at += count;
        Ok(count)
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(sealer) = &mut self.sealer else {
            return self.stream.write(bytes);
        };
        let sealed = sealer.seal(std::iter::once(bytes));
        let written = self.stream.write_all(sealer.unsent());
        sealer.clear();
        written.map(|()| sealed)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Writer {
    /// Nothing more goes, and nothing comes.
    pub fn close(&self) {
        // Whoever has ended it before has done the same.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let one = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        (one, listener.accept().expect("one has come").0)
    }

    /// Both ends of a connection whose parts are these, and what each writes and the other one reads.
    fn swap(parts: [(Secret, [&'static [u8]; 2]); 2], bytes: &'static [u8]) -> [io::Result<Vec<u8>>; 2] {
        let (one, other) = connection();
        let end = move |stream, (secret, said): (Secret, _), side| {
            let mut wire = Wire::new(stream, Some(&Bond { secret: &secret, side, said }))?;
            wire.writer.write_all(bytes)?;
            let mut came = vec![0; bytes.len()];
            let heard = wire.reader.read_exact(&mut came);
            wire.writer.close();
            heard.map(|()| came)
        };
        let [first, second] = parts;
        let acceptor = std::thread::spawn(move || end(other, second, Side::Acceptor));
        let initiator = end(one, first, Side::Initiator);
        [initiator, acceptor.join().expect("it does not panic")]
    }

    #[test]
    fn both_ends_read_what_the_other_has_written() {
        let part = || (Secret::new(b"of a port"), [&b"hello"[..], &b"you"[..]]);
        for result in swap([part(), part()], &[7; 100_000]) {
            assert_eq!(result.expect("genuine"), [7; 100_000]);
        }
    }

    #[test]
    fn another_secret_or_changed_words_are_found_out() {
        let part = |secret: &[u8], said: &'static [u8]| (Secret::new(secret), [said, &b"you"[..]]);
        for [first, second] in
            [[part(b"a", b"hello"), part(b"b", b"hello")], [part(b"a", b"plain, please"), part(b"a", b"encrypted")]]
        {
            assert!(
                swap([first, second], b"secret")
                    .iter()
                    .any(|result| result.as_ref().is_err_and(|error| error.kind() == ErrorKind::InvalidData))
            );
        }
    }

    #[test]
    fn what_travels_is_not_what_was_written() {
        let (one, mut tap) = connection();
        let secret = Secret::new(b"of a port");
        let bond = |side| Bond { secret: &secret, side, said: [b"hello", b"you"] };
        std::thread::scope(|scope| {
            scope.spawn(|| Wire::new(one, Some(&bond(Side::Initiator)))?.writer.write_all(b"the text in clear"));
            drop(agree(&mut tap, &bond(Side::Acceptor)).expect("agreed"));
            let mut all = Vec::new();
            tap.read_to_end(&mut all).expect("read");
            assert!(all.len() > 17 && !all.windows(8).any(|it| it == b"the text"), "{all:?}");
        });
    }
}
