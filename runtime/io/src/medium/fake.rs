//! A file in memory whose kernel does what a test says.

use super::{Medium, Run, Way};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::vec::Vec;

/// What comes of an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    /// At most so many bytes.
    Short(usize),
    /// An error.
    Error(Errno),
}

/// What a file has: bytes, and which of them were ever written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    pub(crate) written: Vec<bool>,
}

/// See the module page. What is left of the turns when they end are attempts that do all.
#[derive(Debug, Default)]
pub(crate) struct Fake {
    pub(crate) content: Mutex<Content>,
    pub(crate) turns: Mutex<VecDeque<Turn>>,
    /// No byte from here on can be written.
    pub(crate) room: Option<u64>,
}

impl Medium for Fake {
    fn attempt(&self, way: Way, runs: &mut [Run<'_>], offset: u64) -> Result<usize, Errno> {
        let mut left = match self.turns.lock().expect("unpoisoned").pop_front() {
            Some(Turn::Error(errno)) => return Err(errno),
            Some(Turn::Short(bytes)) => bytes.max(1),
            None => usize::MAX,
        };
        let mut content = self.content.lock().expect("unpoisoned");
        if let (Way::Write, Some(room)) = (way, self.room) {
            if offset >= room {
                return Err(Errno::NOSPC);
            }
            left = left.min((room - offset) as usize);
        }
        let mut at = offset as usize;
        for run in runs {
            let bytes = run.bytes().min(left);
            match way {
                Way::Read => {
                    let there = content.bytes.get(at..).unwrap_or_default();
                    let bytes = bytes.min(there.len());
                    run.room()[..bytes].copy_from_slice(&there[..bytes]);
                    at += bytes;
                }
                Way::Write => {
                    let end = at + bytes;
                    if content.bytes.len() < end {
                        content.bytes.resize(end, 0);
                        content.written.resize(end, false);
                    }
                    content.bytes[at..end].copy_from_slice(&run.source()[..bytes]);
                    content.written[at..end].fill(true);
                    at = end;
                }
            }
            left -= bytes;
        }
        Ok(at - offset as usize)
    }
}
