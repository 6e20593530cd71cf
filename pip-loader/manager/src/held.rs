//! A manager whose fences need not be waited for.
//!
//! A fence takes as long as the slowest client, and its call blocks. Who has signals to read and processes to look
//! after gives the manager to a thread for that time, and keeps what is needed meanwhile: its place, its name, a copy
//! of its line, and a way to abort the job.

use crate::gather::all_gather;
use crate::watch::Aborter;
use crate::{Failure, Manager, Place};
use std::io::{PipeReader, pipe};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// What everyone has published, or why that is not known.
type Texts = Result<Vec<Vec<u8>>, Failure>;

/// A connection with a manager that may be on its way.
pub struct Held {
    name: &'static str,
    place: Place,
    /// None while a thread has it, and after that has failed.
    manager: Option<Box<dyn Manager>>,
    /// Aborts the job while the manager is not here.
    aborter: Option<Aborter>,
    pending: Option<Pending>,
}

/// A thread waits for all others.
struct Pending {
    result: Receiver<(Box<dyn Manager>, Texts)>,
    /// Hangs up when the result is there.
    end: PipeReader,
    line: Option<OwnedFd>,
}

/// Starts a thread.
type Spawn = fn(Box<dyn FnOnce() + Send>) -> std::io::Result<()>;

fn spawn(body: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
    std::thread::Builder::new().name("fence".into()).spawn(body).map(drop)
}

impl Held {
    /// Holds a manager.
    #[must_use]
    pub fn new(manager: Box<dyn Manager>) -> Self {
        Self { name: manager.name(), place: manager.place(), manager: Some(manager), aborter: None, pending: None }
    }

    /// [`Manager::name`].
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// [`Manager::place`].
    #[must_use]
    pub fn place(&self) -> Place {
        self.place
    }

    /// The manager, unless a thread has it.
    pub fn here(&mut self) -> Option<&mut dyn Manager> {
        match &mut self.manager {
            Some(manager) => Some(manager.as_mut()),
            None => None,
        }
    }

    /// [`Manager::line`].
    #[must_use]
    pub fn line(&self) -> Option<BorrowedFd<'_>> {
        match (&self.manager, &self.pending) {
            (Some(manager), _) => manager.line(),
            (None, Some(pending)) => pending.line.as_ref().map(AsFd::as_fd),
            (None, None) => None,
        }
    }

    /// [`Manager::heeds_statuses`]; not if all that is left is to abort.
    #[must_use]
    pub fn heeds_statuses(&self) -> bool {
        self.manager.as_ref().is_some_and(|manager| manager.heeds_statuses())
    }

    /// Whether a thread waits for all others.
    #[must_use]
    pub fn is_away(&self) -> bool {
        self.manager.is_none()
    }

    /// Begins [`all_gather`], whose result [`Held::gathered`] has some time later. One at a time.
    ///
    /// # Errors
    /// No thread or descriptor is left.
    pub fn gather(&mut self, label: String, bytes: Vec<u8>) -> Result<(), Failure> {
        self.gather_by(spawn, label, bytes)
    }

    fn gather_by(&mut self, spawn: Spawn, label: String, bytes: Vec<u8>) -> Result<(), Failure> {
        let short = |what: std::io::Error| Failure::NoPlace(format!("nobody can wait for the other nodes: {what}"));
        let (end, held) = pipe().map_err(short)?;
        let (sender, result) = channel();
        let (lend, lent) = channel::<Box<dyn Manager>>();
        if self.manager.is_none() {
            return Err(Failure::NoPlace("the nodes meet already".to_owned()));
        }
        let body = move || {
            if let Ok(mut manager) = lent.recv() {
                let texts = all_gather(manager.as_mut(), &label, &bytes);
                // Nobody takes it if the job ends first.
                let _ = sender.send((manager, texts));
            }
            drop(held);
        };
        // The manager is handed over once there is a thread: one that is refused would take it away.
        spawn(Box::new(body)).map_err(short)?;
        if let Some(manager) = self.manager.take() {
            let line = manager.line().and_then(|line| line.try_clone_to_owned().ok());
            self.aborter = manager.aborter();
            self.pending = Some(Pending { result, end, line });
            // A thread that is gone is noticed when its result is looked for.
            let _ = lend.send(manager);
        }
        Ok(())
    }

    /// What to poll for the end of a thread's wait.
    pub fn end(&self) -> Option<BorrowedFd<'_>> {
        self.pending.as_ref().map(|pending| pending.end.as_fd())
    }

    /// What all have published, once that is known and no thread waits any more.
    pub fn gathered(&mut self) -> Option<Texts> {
        let texts = match self.pending.as_ref()?.result.try_recv() {
            Ok((manager, texts)) => {
                self.manager = Some(manager);
                self.aborter = None;
                texts
            }
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(Failure::NoPlace("who waited for the other nodes is gone".into())),
        };
        self.pending = None;
        Some(texts)
    }

    /// [`Manager::abort`], also while a thread waits, and after it has failed.
    pub fn abort(&mut self, code: i32, reason: &str) {
        if let Some(manager) = &mut self.manager {
            manager.abort(code, reason);
        } else if let Some(aborter) = self.aborter.take() {
            aborter(code, reason);
        }
    }

    /// [`Manager::finalize`]. While a thread waits nothing is said: an answer would come to that.
    ///
    /// # Errors
    /// As there.
    pub fn finalize(&mut self) -> Result<(), Failure> {
        self.manager.as_mut().map_or(Ok(()), |manager| manager.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;
    use std::sync::mpsc::channel;

    #[test]
    fn the_others_are_waited_for_by_a_thread() {
        let mut tables = Table::of(2).into_iter();
        let mut other = tables.next().expect("two");
        let mut held = Held::new(Box::new(tables.next().expect("two")));
        let (go, come) = channel::<()>();
        let thread = std::thread::spawn(move || {
            come.recv().expect("told");
            all_gather(&mut other, "x", b"first").expect("gathered")
        });
        assert!(held.end().is_none() && held.gathered().is_none());
        held.gather("x".to_owned(), b"second".to_vec()).expect("a thread");
        assert!(held.is_away() && held.here().is_none() && held.end().is_some());
        assert!(held.gathered().is_none(), "the other has not come");
        assert_eq!(held.place(), Place { index: 1, count: 2 });
        go.send(()).expect("there");
        let texts = loop {
            match held.gathered() {
                Some(texts) => break texts.expect("gathered"),
                None => std::thread::yield_now(),
            }
        };
        let expected = [b"first".to_vec(), b"second".to_vec()];
        assert_eq!((&texts, &thread.join().expect("no panic")), (&expected.to_vec(), &expected.to_vec()));
        assert!(!held.is_away() && held.here().is_some());
    }

    #[test]
    fn the_job_can_be_aborted_without_a_thread() {
        let pair = || {
            let mut tables = Table::of(2).into_iter();
            (tables.next().expect("two"), Held::new(Box::new(tables.next().expect("two"))))
        };
        let (mut other, mut held) = pair();
        let refused = held.gather_by(|_| Err(std::io::ErrorKind::WouldBlock.into()), "x".to_owned(), Vec::new());
        assert!(refused.is_err() && held.here().is_some() && held.end().is_none());
        held.abort(3, "no thread is left");
        assert_eq!(other.get(1, "aborted").expect("published"), "3");

        let (mut other, mut held) = pair();
        let ends = |body| {
            drop(body);
            Ok(())
        };
        held.gather_by(ends, "x".to_owned(), Vec::new()).expect("a thread");
        assert!(held.gathered().is_some_and(|texts| texts.is_err()) && held.here().is_none());
        held.abort(4, "the thread is gone");
        assert_eq!(other.get(1, "aborted").expect("published"), "4");
    }
}
