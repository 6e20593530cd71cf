//! PMI-1: lines of `cmd=NAME key=value ...`, one answer for each request.
//!
//! Public description: "PMI: A Scalable Parallel Process-Management Interface for Extreme-Scale
//! Systems" (Balaji and others), section 3 and appendix; spoken by Hydra, and by Slurm's `pmi2` plug-in too.

use crate::parcel;
use crate::server;
use crate::watch::Aborter;
use crate::wire::{Message, read_line, send};
use crate::{Failure, Limits, Manager, Parting, Place};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// A connected client.
#[derive(Debug)]
pub struct Client<S> {
    stream: S,
    place: Place,
    limits: Limits,
    space: String,
}

impl<S: Read + Write + AsFd> Client<S> {
    /// Begins the conversation over a stream that the manager left open (`PMI_FD`).
    ///
    /// # Errors
    /// The manager does not answer as the protocol wants, or refuses.
    pub fn start(mut stream: S, place: Place) -> Result<Self, Failure> {
        let init = "cmd=init pmi_version=1 pmi_subversion=1\n";
        ask(&mut stream, init, "response_to_init")?;
        let maxes = ask(&mut stream, "cmd=get_maxes\n", "maxes")?;
        let limits = Limits { key: maxes.number("keylen_max")?, value: maxes.number("vallen_max")? };
        let answer = ask(&mut stream, "cmd=get_my_kvsname\n", "my_kvsname")?;
        let space = answer.get("kvsname").ok_or_else(|| answer.unexpected("kvsname=NAME"))?.to_owned();
        Ok(Self { stream, place, limits, space })
    }

    /// Begins the conversation over a new connection (`PMI_PORT`): says which client this is
    /// (`PMI_ID`) and learns its place.
    ///
    /// # Errors
    /// As [`Client::start`].
    pub fn start_by_port(mut stream: S, id: &str) -> Result<Self, Failure> {
        ask(&mut stream, &format!("cmd=initack pmiid={id}\n"), "initack")?;
        let (mut index, mut count) = (None, None);
        loop {
            let line = Message::parse(&read_line(&mut stream)?, ' ');
            if line.get("cmd") != Some("set") {
                return Err(line.unexpected("cmd=set"));
            }
            if line.get("size").is_some() {
                count = Some(line.number("size")?);
            } else if line.get("rank").is_some() {
                index = Some(line.number("rank")?);
            } else if line.get("debug").is_some() {
                // The last of the three.
                return match (index, count) {
                    (Some(index), Some(count)) if index < count => Self::start(stream, Place { index, count }),
                    _ => Err(line.unexpected("cmd=set rank=RANK")),
                };
            }
        }
    }

    fn ask(&mut self, request: &str, answer: &str) -> Result<Message, Failure> {
        ask(&mut self.stream, request, answer)
    }
}

fn ask(stream: &mut (impl Read + Write + AsFd), request: &str, answer: &str) -> Result<Message, Failure> {
    send(stream, request)?;
    Message::parse(&read_line(stream)?, ' ').succeeds(answer, request)
}

impl<S: Read + Write + AsFd + Send> Manager for Client<S> {
    fn name(&self) -> &'static str {
        "PMI-1"
    }

    fn place(&self) -> Place {
        self.place
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn application(&mut self) -> Result<u32, Failure> {
        match self.ask("cmd=get_appnum\n", "appnum") {
            Ok(answer) => Ok(answer.number("appnum").unwrap_or(0)),
            Err(Failure::Refused { .. }) => Ok(0),
            Err(failure) => Err(failure),
        }
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), Failure> {
        let request = format!("cmd=put kvsname={} key={key} value={value}\n", self.space);
        self.ask(&request, "put_result").map(drop)
    }

    fn fence(&mut self) -> Result<(), Failure> {
        self.ask("cmd=barrier_in\n", "barrier_out").map(drop)
    }

    fn get(&mut self, _from: u32, key: &str) -> Result<String, Failure> {
        let request = format!("cmd=get kvsname={} key={key}\n", self.space);
        let answer = self.ask(&request, "get_result")?;
        match answer.get("value") {
            Some(value) => Ok(value.to_owned()),
            None => Err(answer.unexpected("value=TEXT")),
        }
    }

    fn line(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stream.as_fd())
    }

    fn parting(&self) -> Option<Parting> {
        let abort = "cmd=abort exitcode=000\n";
        Parting::new("cmd=finalize\n".to_owned(), abort.to_owned())
    }

    fn aborter(&self) -> Option<Aborter> {
        let mut stream = File::from(self.stream.as_fd().try_clone_to_owned().ok()?);
        Some(Box::new(move |code, _reason| ask_for_abort(&mut stream, code)))
    }

    // Also where no descriptor is left for another one.
    fn abort(&mut self, code: i32, _reason: &str) {
        ask_for_abort(&mut self.stream, code);
    }

    fn begin(&mut self) {
        if self.space == server::SPACE {
            // Who does not hear it sees this client's end.
            let _ = send(&mut self.stream, server::BEGUN);
        }
    }

    fn be_asked(&mut self) -> Option<UnixStream> {
        if self.space != server::SPACE {
            return None;
        }
        let (own, theirs) = UnixStream::pair().ok()?;
        parcel::give(&self.stream, server::ASKED, theirs.as_fd()).ok()?;
        Some(own)
    }

    fn finalize(&mut self) -> Result<(), Failure> {
        self.ask("cmd=finalize\n", "finalize_ack").map(drop)
    }
}

/// Nobody answers, and whoever does not hear it sees this client's end.
fn ask_for_abort(stream: &mut (impl Write + AsFd), code: i32) {
    let _ = send(stream, &format!("cmd=abort exitcode={code}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{play, scripted};

    const GREETING: [(&str, &str); 3] = [
        ("cmd=init pmi_version=1 pmi_subversion=1\n", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"),
        ("cmd=get_maxes\n", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n"),
        ("cmd=get_my_kvsname\n", "cmd=my_kvsname kvsname=kvs_1_0\n"),
    ];

    const PLACE: Place = Place { index: 0, count: 2 };

    #[test]
    fn a_whole_conversation_over_an_inherited_stream() {
        let script = GREETING.into_iter().chain([
            ("cmd=get_appnum\n", "cmd=appnum rc=0 appnum=3\n"),
            ("cmd=get_appnum\n", "cmd=appnum rc=-1 msg=unknown\n"),
            ("cmd=put kvsname=kvs_1_0 key=a value=1.ff\n", "cmd=put_result rc=0 msg=success\n"),
            ("cmd=barrier_in\n", "cmd=barrier_out\n"),
            ("cmd=get kvsname=kvs_1_0 key=b\n", "cmd=get_result rc=0 msg=success value=2.00\n"),
            ("cmd=finalize\n", "cmd=finalize_ack\n"),
        ]);
        let mut client = Client::start(scripted(script), PLACE).expect("greeted");
        assert_eq!(client.place(), PLACE);
        let limits = Limits { key: 64, value: 1024 };
        assert_eq!(client.limits(), limits);
        assert_eq!(client.application().expect("told"), 3);
        assert_eq!(client.application().expect("not told"), 0);
        client.put("a", "1.ff").expect("taken");
        client.fence().expect("all came");
        assert_eq!(client.get(1, "b").expect("there"), "2.00");
        client.finalize().expect("heard");
    }

    #[test]
    fn a_connection_by_port_tells_the_place() {
        let hello = ("cmd=initack pmiid=3\n", "cmd=initack rc=0\ncmd=set size=5\ncmd=set rank=4\ncmd=set debug=0\n");
        let script = [hello].into_iter().chain(GREETING);
        let client = Client::start_by_port(scripted(script), "3").expect("greeted");
        assert_eq!(client.place(), Place { index: 4, count: 5 });
    }

    #[test]
    fn what_goes_wrong_is_named() {
        let script = GREETING
            .into_iter()
            .chain([("cmd=get kvsname=kvs_1_0 key=b\n", "cmd=get_result rc=-1 msg=key_b_not_found value=unknown\n")]);
        let mut client = Client::start(scripted(script), PLACE).expect("greeted");
        let message = client.get(1, "b").unwrap_err().to_string();
        assert!(message.contains("key_b_not_found"), "{message}");
        // The script has ended, and with it the manager.
        let message = client.fence().unwrap_err().to_string();
        assert!(message.contains("the process manager is gone"), "{message}");

        let refusal = [(GREETING[0].0, "cmd=response_to_init rc=1 pmi_version=2\n")];
        assert!(Client::start(scripted(refusal), PLACE).is_err());
        let nonsense = [(GREETING[0].0, "HTTP/1.1 400 Bad Request\n")];
        let message = Client::start(scripted(nonsense), PLACE).unwrap_err().to_string();
        assert!(message.contains("HTTP/1.1 400"), "{message}");
    }

    #[test]
    fn an_abort_is_sent_without_waiting() {
        let script: Vec<_> = GREETING.into_iter().chain([("cmd=abort exitcode=7\n", "")]).collect();
        let (stream, played) = play(script);
        let mut client = Client::start(stream, PLACE).expect("greeted");
        client.abort(7, "because");
        drop(client);
        played.join().expect("the script was followed to its end");
    }
}
