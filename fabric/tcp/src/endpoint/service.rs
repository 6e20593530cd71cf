//! What an endpoint does with a stream that has something: writes what waits, reads, and deals with frames.

use super::{Operation, PACKET_MAX, TcpEndpoint};
use crate::frame::{Head, Kind, TARGET, Target};
use crate::stream::{Body, Next, Stream};
use cohort_fabric::{Event, WorldRank};
use cohort_fabric_host::endpoint::PendingEvent;
use cohort_fabric_host::packet::Prefix;

/// System calls that one look makes for a stream.
const CALLS_PER_LOOK: u32 = 8;

/// Bytes that are read ahead while data is on its way that need not be copied.
const AHEAD_OF_DATA: usize = 256;

/// What a frame of no version of this protocol ends a stream with.
const MALFORMED: i32 = libc::EPROTO;

impl TcpEndpoint {
    /// Writes what waits on a stream as far as the system takes it.
    pub(super) fn flush(&mut self, index: usize) {
        let Some(stream) = &mut self.streams[index] else {
            return;
        };
        stream.flush(&mut self.pending);
        self.poll_writable(index);
    }

    /// Moves what can be moved on a stream; gives at most `most` events and returns how many.
    pub(super) fn serve(
        &mut self,
        index: usize,
        most: u32,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> u32 {
        let Some(mut stream) = self.streams.get_mut(index).and_then(Option::take) else {
            return 0;
        };
        let mut given = 0;
        stream.flush(&mut self.pending);
        match self.read(&mut stream, index, most, &mut given, sink) {
            Ok(()) => {
                stream.flush(&mut self.pending);
                self.streams[index] = Some(stream);
                self.poll_writable(index);
            }
            Err(code) => {
                let code = stream.write_error.unwrap_or(code);
                self.end(index, *stream, code);
            }
        }
        given
    }

    /// Reads and deals with what has come.
    fn read(
        &mut self,
        stream: &mut Stream,
        index: usize,
        most: u32,
        given: &mut u32,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), i32> {
        if stream.is_ready {
            self.process_saved(stream, index, most, given, sink)?;
        }
        let mut common = std::mem::take(&mut self.common);
        let mut result = Ok(());
        for _ in 0..CALLS_PER_LOOK {
            if *given >= most || stream.is_ready {
                break;
            }
            // What comes next may be the beginning of data that has a place already.
            let peer = stream.peer.map(|rank| self.peers[rank as usize]);
            let ahead = match peer {
                Some(peer) if peer.operations > 0 => AHEAD_OF_DATA,
                _ => common.len(),
            };
            let filled = match stream.fill(&mut common[..ahead]) {
                Ok(Some(filled)) => filled,
                Ok(None) => break,
                Err(code) => {
                    result = Err(code);
                    break;
                }
            };
            let bytes = &common[..filled.common];
            result = if stream.saved.is_empty() {
                self.process(stream, index, bytes, most, given, sink)
            } else {
                stream.saved.extend_from_slice(bytes);
                self.process_saved(stream, index, most, given, sink)
            };
            if result.is_err() || !filled.may_have_more {
                break;
            }
        }
        self.common = common;
        result
    }

    /// Deals with frames that were read before.
    fn process_saved(
        &mut self,
        stream: &mut Stream,
        index: usize,
        most: u32,
        given: &mut u32,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), i32> {
        let saved = std::mem::take(&mut stream.saved);
        self.process(stream, index, &saved, most, given, sink)
    }

    /// Deals with what has come; saves what is not whole or more than `most` events.
    fn process(
        &mut self,
        stream: &mut Stream,
        index: usize,
        mut bytes: &[u8],
        most: u32,
        given: &mut u32,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), i32> {
        stream.is_ready = false;
        loop {
            if *given >= most {
                stream.is_ready = !bytes.is_empty();
                break;
            }
            let next = stream.next(&mut bytes, PACKET_MAX);
            match next.map_err(|_malformed| self.malformed(stream))? {
                Next::Nothing => break,
                Next::Arrived(head) => self.arrived(stream, head, given, sink)?,
                Next::Frame(head, inside) => {
                    self.frame(stream, index, head, inside, given, sink)?;
                }
            }
        }
        stream.saved.extend_from_slice(bytes);
        Ok(())
    }

    /// What to end a stream with that does not speak this protocol.
    fn malformed(&mut self, stream: &Stream) -> i32 {
        if stream.peer.is_none() {
            self.rejected.refuse(self.own, 0);
        }
        MALFORMED
    }

    fn frame(
        &mut self,
        stream: &mut Stream,
        index: usize,
        head: Head,
        inside: &[u8],
        given: &mut u32,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), i32> {
        let Some(from) = stream.peer else {
            return self.accept_hello(stream, index, head, inside);
        };
        // Answers come where the question went.
        stream.carries_requests |= matches!(head.kind, Kind::Packet | Kind::Read | Kind::Write);
        match head.kind {
            Kind::Hello => return Err(MALFORMED),
            Kind::Packet => {
                sink(Event::Packet {
                    from,
                    bytes: inside,
                });
                *given += 1;
            }
            Kind::Read => self.answer_read(stream, head, inside)?,
            Kind::Write => {
                let target = Target::read(inside).ok_or(MALFORMED)?;
                if u64::from(head.length) != TARGET as u64 + target.length {
                    return Err(MALFORMED);
                }
                let memory = self.memory(target);
                stream.body = Some(Body {
                    memory: memory.unwrap_or(std::ptr::null_mut()),
                    left: target.length as usize,
                    head: Head {
                        kind: if memory.is_some() {
                            Kind::Write
                        } else {
                            Kind::Refused
                        },
                        ..head
                    },
                });
            }
            Kind::Data => {
                let operation = self.operation(from, head.id)?;
                if operation.memory.is_null() || operation.length != head.length as usize {
                    return Err(MALFORMED);
                }
                stream.body = Some(Body {
                    memory: operation.memory,
                    left: operation.length,
                    head,
                });
            }
            Kind::Written => {
                let token = self.operation_over(from, head.id)?.token;
                sink(Event::Completed(token));
                *given += 1;
            }
            Kind::Refused => {
                let token = self.operation_over(from, head.id)?.token;
                let code = libc::EACCES;
                self.pending.push_back(PendingEvent::Failed { token, code });
            }
        }
        Ok(())
    }

    /// The first frame of a stream that another end has opened.
    fn accept_hello(
        &mut self,
        stream: &mut Stream,
        index: usize,
        head: Head,
        inside: &[u8],
    ) -> Result<(), i32> {
        let prefix = Prefix::split(inside).map(|(prefix, _)| prefix);
        let known = prefix.filter(|prefix| {
            head.kind == Kind::Hello
                && prefix.cookie == self.job.cookie
                && prefix.to == self.own
                && (prefix.from as usize) < self.peers.len()
        });
        let Some(prefix) = known else {
            self.rejected.refuse(self.own, inside.len());
            return Err(MALFORMED);
        };
        let peer = &mut self.peers[prefix.from as usize];
        if let Some(code) = peer.lost {
            return Err(code);
        }
        if peer.out.is_none() && peer.broken.is_none() {
            peer.out = Some(index);
        }
        stream.peer = Some(prefix.from);
        self.job.contacted(prefix.from);
        Ok(())
    }

    /// Answers a read.
    fn answer_read(&mut self, stream: &mut Stream, head: Head, inside: &[u8]) -> Result<(), i32> {
        let target = Target::read(inside).ok_or(MALFORMED)?;
        let memory = self.memory(target);
        let reply = Head {
            kind: if memory.is_some() {
                Kind::Data
            } else {
                Kind::Refused
            },
            length: memory.map_or(0, |_| target.length as u32),
            id: head.id,
        };
        stream.queue(&reply.bytes());
        if let Some(start) = memory {
            stream.queue_memory(start, target.length as usize, None);
        }
        Ok(())
    }

    /// The memory that another rank names; none if it is not exposed.
    fn memory(&self, target: Target) -> Option<*mut u8> {
        let &(start, length) = self.regions.get(&target.key)?;
        let end = target.offset.checked_add(target.length)?;
        let fits = end <= length as u64 && target.length <= super::TRANSFER_MAX as u64;
        let place = start + usize::try_from(target.offset).ok()?;
        fits.then(|| std::ptr::with_exposed_provenance_mut(place))
    }

    /// The last byte of a body has come.
    fn arrived(
        &mut self,
        stream: &mut Stream,
        head: Head,
        given: &mut u32,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), i32> {
        let Some(from) = stream.peer else {
            return Err(MALFORMED);
        };
        if head.kind == Kind::Data {
            let token = self.operation_over(from, head.id)?.token;
            sink(Event::Completed(token));
            *given += 1;
            return Ok(());
        }
        let kind = if head.kind == Kind::Write {
            Kind::Written
        } else {
            Kind::Refused
        };
        let reply = Head {
            kind,
            length: 0,
            id: head.id,
        };
        stream.queue(&reply.bytes());
        Ok(())
    }

    /// The read or write that a peer answers.
    fn operation(&self, from: WorldRank, id: u64) -> Result<Operation, i32> {
        let entry = usize::try_from(id).ok();
        let operation = entry.and_then(|entry| *self.operations.get(entry)?);
        operation
            .filter(|operation| operation.peer == from)
            .ok_or(MALFORMED)
    }

    /// As [`Self::operation`], which is over.
    fn operation_over(&mut self, from: WorldRank, id: u64) -> Result<Operation, i32> {
        let operation = self.operation(from, id)?;
        self.operations[id as usize] = None;
        self.peers[from as usize].operations -= 1;
        Ok(operation)
    }
}
