//! The descriptors of one endpoint, and who holds them.

use crate::mailbox::Mailbox;
use crate::numbers::{Identity, place};
use crate::{Descriptors, Mirrored, close};
use cohort_fabric::interpose::{Action, DescriptorKind};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;

/// Numbers that are tried for a new descriptor, where files of the program lie at some.
const TRIES: u32 = 64;

/// One descriptor.
#[derive(Debug)]
struct Entry {
    number: i32,
    /// Of what lies there.
    identity: Identity,
    kind: DescriptorKind,
    /// Whether each process holds it.
    holders: Vec<bool>,
    /// Somebody has closed it: the others must.
    closed: bool,
    /// Calls that handed data to it.
    sends: u32,
    /// Tells it from earlier ones of the same number.
    mark: u32,
}

/// The descriptors of one endpoint. Used under its lock.
#[derive(Debug)]
pub struct DescriptorTable {
    entries: Vec<Entry>,
    /// How many descriptors were made and closed so far.
    changes: u32,
    /// `changes`, when each process last had everything.
    seen: Vec<u32>,
    /// Losses of each process that this table knows of.
    losses: Vec<u32>,
    /// A call was withheld since the owner's last one.
    withheld: bool,
    /// The process of the endpoint's own rank, and where it gets what thieves make.
    owner: Option<(usize, Mailbox)>,
    /// What its calls give as their process id, if not the root's.
    process: Option<i32>,
}

impl DescriptorTable {
    /// No descriptors, for a number of processes.
    #[must_use]
    pub fn new(processes: usize) -> Self {
        Self {
            entries: Vec::new(),
            changes: 1,
            seen: vec![0; processes],
            losses: vec![0; processes],
            withheld: false,
            owner: None,
            process: None,
        }
    }

    /// Sets what calls of the endpoint give as their process id.
    pub fn set_process(&mut self, process: i32) {
        self.process = Some(process);
    }

    /// What calls of the endpoint give as their process id; none for the root's.
    #[must_use]
    pub fn process(&self) -> Option<i32> {
        self.process
    }

    /// Says whose endpoint this is, and where that process gets what thieves make: a mailbox that
    /// was opened in a call of this table.
    pub fn set_owner(&mut self, owner: usize, mailbox: Mailbox) {
        self.owner = Some((owner, mailbox));
    }

    /// Takes what thieves have sent to the owner, who calls this.
    fn empty_mailbox(&mut self, descriptors: &Descriptors, mailbox: Mailbox, owner: usize) {
        while let Some((number, mark, copy)) = mailbox.take() {
            let mut entries = self.entries.iter_mut();
            let entry = entries.find(|entry| entry.number == number && entry.mark == mark);
            if let Some(entry) = entry
                && !entry.closed
                && !entry.holders[owner]
            {
                let placed = place(&copy, number, descriptors.placeholder.as_ref());
                entry.holders[owner] = placed.is_ok();
            }
        }
    }

    /// Makes sure that the calling process, number `process`, holds all descriptors, and none that was closed. False
    /// if that is not possible: then it must not use the endpoint.
    #[must_use]
    pub fn sync(&mut self, descriptors: &Descriptors, process: usize) -> bool {
        let losses = descriptors.losses(process);
        if self.losses[process] != losses {
            self.forget(process, losses);
        }
        if self.seen[process] == self.changes {
            return true;
        }
        let able = descriptors.is_able(process);
        let first_time = self.seen[process] == 0;
        if let Some((owner, mailbox)) = self.owner
            && owner == process
        {
            self.empty_mailbox(descriptors, mailbox, owner);
        }
        let mut complete = true;
        for entry in &mut self.entries {
            if entry.closed {
                if std::mem::take(&mut entry.holders[process]) {
                    descriptors.release(entry.number);
                }
                continue;
            }
            if entry.holders[process] {
                continue;
            }
            // What the root made was inherited when the process was cloned, unless the loader closed it.
            let inherited = first_time
                && Identity::of(entry.number) == Some(entry.identity)
                && descriptors.is_same(process, &entry.holders, entry.number);
            let held = inherited
                || (able && {
                    let others = entry.holders.iter().enumerate();
                    let others = others.filter(|(_, holds)| **holds).map(|(index, _)| index);
                    match descriptors.mirror((entry.number, entry.identity), process, others) {
                        Mirrored::Held => true,
                        Mirrored::Denied => false,
                        // Then it is gone, as libfabric finds out; or it lies in a mailbox, until the owner comes.
                        Mirrored::Ended => self.owner.is_none_or(|(owner, _)| owner == process),
                    }
                });
            entry.holders[process] = held;
            complete &= held;
        }
        self.drop_unheld(descriptors);
        if complete {
            self.seen[process] = self.changes;
        }
        complete
    }

    /// A process has closed what it does not know of, or some of it.
    #[cold]
    fn forget(&mut self, process: usize, losses: u32) {
        self.losses[process] = losses;
        self.seen[process] = 0;
        for entry in &mut self.entries {
            entry.holders[process] = false;
        }
    }

    /// Takes what there is into the root, which calls this.
    pub fn keep(&mut self, descriptors: &Descriptors) {
        let root = descriptors.root();
        if !self.sync(descriptors, root) {
            // What cannot be had now is gone, or comes with the next change.
            self.seen[root] = self.changes;
        }
    }

    /// Whether process `process` lacks something.
    #[must_use]
    pub fn lacks(&self, process: usize) -> bool {
        self.seen[process] != self.changes
    }

    fn drop_unheld(&mut self, descriptors: &Descriptors) {
        self.entries.retain(|entry| {
            let keep = !entry.closed || entry.holders.contains(&true);
            if !keep {
                descriptors.numbers.give(entry.number);
            }
            keep
        });
    }

    /// Notes a change by a process that had everything before.
    fn change(&mut self, process: usize) {
        let complete = self.seen[process] == self.changes;
        self.changes += 1;
        if complete {
            self.seen[process] = self.changes;
        }
    }

    /// Takes in a new descriptor of the calling process; returns its number from now on. None if there is no number for
    /// it; then it is closed.
    pub fn add(
        &mut self,
        descriptors: &Descriptors,
        process: usize,
        descriptor: i32,
        kind: DescriptorKind,
    ) -> Option<i32> {
        let placed = self.place_new(descriptors, process, descriptor);
        close(descriptor);
        let (number, identity) = placed?;
        let mut holders = vec![false; descriptors.processes.len()];
        holders[process] = true;
        self.entries.push(Entry { number, identity, kind, holders, closed: false, sends: 0, mark: self.changes });
        if let Some((owner, mailbox)) = self.owner
            && owner != process
            && descriptors.root() != process
        {
            // SAFETY: the calling process has it under this number from now on.
            let copy = unsafe { BorrowedFd::borrow_raw(number) };
            mailbox.post(copy, number, self.changes);
        }
        self.change(process);
        Some(number)
    }

    /// Copies a new descriptor to a number of the fabric.
    fn place_new(&self, descriptors: &Descriptors, process: usize, descriptor: i32) -> Option<(i32, Identity)> {
        let identity = Identity::of(descriptor)?;
        // SAFETY: the call has made it just now.
        let made = unsafe { BorrowedFd::borrow_raw(descriptor) };
        for _ in 0..TRIES {
            let Some(number) = descriptors.numbers.take() else {
                descriptors.report_short();
                return None;
            };
            match place(made, number, descriptors.placeholder.as_ref()) {
                Ok(()) => return Some((number, identity)),
                Err(error) => {
                    descriptors.numbers.give(number);
                    if error != Errno::EXIST {
                        descriptors.report_in_use(process, number, error);
                        return None;
                    }
                }
            }
        }
        None
    }

    /// Closes a descriptor for all; false if it is not of this endpoint.
    pub fn close(&mut self, descriptors: &Descriptors, process: usize, number: i32) -> bool {
        let Some(index) = self.find(number) else {
            return false;
        };
        for set in self.entries.iter().filter(|entry| entry.kind == DescriptorKind::Epoll) {
            // SAFETY: numbers only; most sets do not hold it.
            unsafe {
                let remove = libc::EPOLL_CTL_DEL;
                libc::epoll_ctl(set.number, remove, number, std::ptr::null_mut());
            }
        }
        let entry = &mut self.entries[index];
        if entry.kind == DescriptorKind::Socket {
            // SAFETY: a number only.
            unsafe { libc::shutdown(number, libc::SHUT_RDWR) };
        }
        descriptors.release(number);
        entry.closed = true;
        entry.holders[process] = false;
        self.change(process);
        self.drop_unheld(descriptors);
        true
    }

    fn find(&self, number: i32) -> Option<usize> {
        let mut entries = self.entries.iter();
        entries.position(|entry| entry.number == number && !entry.closed)
    }

    /// What a call that would hand something to the driver of a descriptor must fail with, for a thief whose calls are
    /// deferred; 0 to let it.
    ///
    /// The first data of a socket is let: it is the provider's hand-shake, for which no provider
    /// has a second try. Then sockets are full (`EAGAIN`), and devices interrupted (`EINTR`), as a
    /// driver would say that wants another try: PSM2 takes both for "no resources". What wakes threads of
    /// this node always passes.
    pub fn withhold(&mut self, number: i32, action: Action) -> i32 {
        let Some(index) = self.find(number) else {
            return 0;
        };
        let entry = &mut self.entries[index];
        let code = match (entry.kind, action) {
            (DescriptorKind::Socket, Action::Data) if entry.sends > 0 => libc::EAGAIN,
            (DescriptorKind::File, Action::Data) => libc::EINTR,
            (DescriptorKind::File, Action::Control) => libc::EAGAIN,
            _ => 0,
        };
        self.withheld |= code != 0;
        code
    }

    /// Counts a call that handed data to a socket.
    pub fn count_send(&mut self, number: i32) {
        if let Some(index) = self.find(number) {
            let sends = &mut self.entries[index].sends;
            *sends = sends.saturating_add(1);
        }
    }

    /// Whether a call was withheld since the last time this was asked.
    pub fn take_withheld(&mut self) -> bool {
        std::mem::take(&mut self.withheld)
    }
}
