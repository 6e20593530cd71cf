//! PMI-2: texts of `key=value;` fields, each with its length before it.
//!
//! Public description: "PMI v2 API and wire protocol" of the MPICH project; spoken by
//! `srun --mpi=pmi2`. The first exchange is a PMI-1 line that agrees on the version.

use crate::watch::Aborter;
use crate::wire::{Message, read_counted, read_line, send};
use crate::{Failure, Limits, Manager, Parting, Place};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

/// The limits that the protocol fixes, less what an end of text may take.
const LIMITS: Limits = Limits { key: 63, value: 1023 };

/// A connected client.
#[derive(Debug)]
pub struct Client<S> {
    stream: S,
    place: Place,
    application: u32,
    job: String,
}

impl<S: Read + Write + AsFd> Client<S> {
    /// Begins the conversation over the stream that the manager left open (`PMI_FD`); `job` and
    /// `rank` are `PMI_JOBID` and `PMI_RANK`, without which Slurm refuses.
    ///
    /// # Errors
    /// The manager does not answer as the protocol wants, or refuses.
    pub fn start(mut stream: S, job: &str, rank: &str) -> Result<Self, Failure> {
        let request = "cmd=init pmi_version=2 pmi_subversion=0\n";
        send(&mut stream, request)?;
        let answer = Message::parse(&read_line(&mut stream)?, ' ');
        let answer = answer.succeeds("response_to_init", request)?;
        if answer.get("pmi_version") != Some("2") {
            return Err(answer.unexpected("pmi_version=2"));
        }
        let request = format!("cmd=fullinit;pmijobid={job};pmirank={rank};threaded=FALSE;");
        let answer = ask(&mut stream, &request, "fullinit-response")?;
        let place = Place { index: answer.number("rank")?, count: answer.number("size")? };
        if place.index >= place.count {
            return Err(answer.unexpected("rank=RANK below size"));
        }
        let mut this = Self {
            stream,
            place,
            // -1 says that there is one.
            application: answer.number("appnum").unwrap_or(0),
            job: String::new(),
        };
        let answer = this.ask("cmd=job-getid;", "job-getid-response")?;
        answer.get("jobid").unwrap_or(job).clone_into(&mut this.job);
        Ok(this)
    }

    fn ask(&mut self, request: &str, answer: &str) -> Result<Message, Failure> {
        ask(&mut self.stream, request, answer)
    }
}

fn ask(stream: &mut (impl Read + Write + AsFd), request: &str, answer: &str) -> Result<Message, Failure> {
    send(stream, &counted(request))?;
    Message::parse(&read_counted(stream)?, ';').succeeds(answer, request)
}

fn counted(text: &str) -> String {
    format!("{:<6}{text}", text.len())
}

impl<S: Read + Write + AsFd + Send> Manager for Client<S> {
    fn name(&self) -> &'static str {
        "PMI-2"
    }

    fn place(&self) -> Place {
        self.place
    }

    fn limits(&self) -> Limits {
        LIMITS
    }

    fn application(&mut self) -> Result<u32, Failure> {
        Ok(self.application)
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), Failure> {
        let request = format!("cmd=kvs-put;key={key};value={value};");
        self.ask(&request, "kvs-put-response").map(drop)
    }

    fn fence(&mut self) -> Result<(), Failure> {
        self.ask("cmd=kvs-fence;", "kvs-fence-response").map(drop)
    }

    fn get(&mut self, from: u32, key: &str) -> Result<String, Failure> {
        let request = format!("cmd=kvs-get;jobid={};srcid={from};key={key};", self.job);
        let answer = self.ask(&request, "kvs-get-response")?;
        match (answer.get("found"), answer.get("flag"), answer.get("value")) {
            (Some("FALSE"), _, _) | (_, Some("FALSE"), _) | (_, _, None) => {
                Err(Failure::Refused { request, answer: answer.text().to_owned() })
            }
            (_, _, Some(value)) => Ok(value.to_owned()),
        }
    }

    fn line(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stream.as_fd())
    }

    fn parting(&self) -> Option<Parting> {
        let abort = "cmd=abort;isworld=TRUE;exitcode=000;msg=a rank has ended;";
        Parting::new(counted("cmd=finalize;"), counted(abort))
    }

    /// Slurm kills processes of a job that aborts which would have ended a moment later, and their status is 137.
    fn heeds_statuses(&self) -> bool {
        true
    }

    fn aborter(&self) -> Option<Aborter> {
        let mut stream = File::from(self.stream.as_fd().try_clone_to_owned().ok()?);
        Some(Box::new(move |code, reason| {
            let plain = |letter: &char| !matches!(letter, ';' | '\n');
            let reason: String = reason.chars().filter(plain).collect();
            let request = format!("cmd=abort;isworld=TRUE;exitcode={code};msg={reason};");
            // Nobody answers, and whoever does not hear it sees this client's end.
            let _ = send(&mut stream, &counted(&request));
        }))
    }

    fn finalize(&mut self) -> Result<(), Failure> {
        self.ask("cmd=finalize;", "finalize-response").map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::scripted;

    fn message(text: &str) -> &'static str {
        Box::leak(counted(text).into_boxed_str())
    }

    fn greeting() -> Vec<(&'static str, &'static str)> {
        vec![
            ("cmd=init pmi_version=2 pmi_subversion=0\n", "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n"),
            (
                message("cmd=fullinit;pmijobid=77.0;pmirank=1;threaded=FALSE;"),
                message(
                    "cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=1;size=3;\
                     appnum=-1;debugged=FALSE;pmiverbose=FALSE;",
                ),
            ),
            (message("cmd=job-getid;"), message("cmd=job-getid-response;jobid=77.0;rc=0;")),
        ]
    }

    #[test]
    fn a_whole_conversation() {
        let mut script = greeting();
        script.extend([
            (message("cmd=kvs-put;key=a;value=1.ff;"), message("cmd=kvs-put-response;rc=0;")),
            (message("cmd=kvs-fence;"), message("cmd=kvs-fence-response;rc=0;")),
            (
                message("cmd=kvs-get;jobid=77.0;srcid=2;key=b;"),
                message("cmd=kvs-get-response;rc=0;found=TRUE;value=2.00;"),
            ),
            (message("cmd=finalize;"), message("cmd=finalize-response;rc=0;")),
        ]);
        let mut client = Client::start(scripted(script), "77.0", "1").expect("greeted");
        assert_eq!(client.place(), Place { index: 1, count: 3 });
        assert_eq!(client.application().expect("told"), 0);
        client.put("a", "1.ff").expect("taken");
        client.fence().expect("all came");
        assert_eq!(client.get(2, "b").expect("there"), "2.00");
        client.finalize().expect("heard");
    }

    #[test]
    fn a_missing_value_is_named() {
        let mut script = greeting();
        script.push((
            message("cmd=kvs-get;jobid=77.0;srcid=0;key=lost;"),
            message("cmd=kvs-get-response;rc=0;found=FALSE;"),
        ));
        let mut client = Client::start(scripted(script), "77.0", "1").expect("greeted");
        let text = client.get(0, "lost").unwrap_err().to_string();
        assert!(text.contains("key=lost"), "{text}");
    }

    #[test]
    fn a_server_of_another_version_is_refused() {
        let script = [(
            "cmd=init pmi_version=2 pmi_subversion=0\n",
            "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n",
        )];
        let text = Client::start(scripted(script), "", "").unwrap_err().to_string();
        assert!(text.contains("pmi_version=2"), "{text}");
    }
}
