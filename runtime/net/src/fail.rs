//! The end of a job whose network has failed.

use crate::Network;
use cohort_base::Peer;
use cohort_base::text::FixedText;
use cohort_core::claim::Claim;
use cohort_core::rank::Rank;
use core::fmt;
use rustix::io::Errno;
use rustix::thread::Timespec;

/// What the launchers get to end the job with a reason of their own (a rank that aborted, a node that is gone)
/// before a rank says that it has lost a peer: that one is only what follows.
const TIME_OF_LAUNCHERS: Timespec = Timespec { tv_sec: 0, tv_nsec: 400_000_000 };

/// The same where the peer's side has ended the connection. Whoever connects with a rank at the moment when that one
/// ends before `MPI_Init` loses it, and launchers may look for a second and more whether others wait for such a rank. A
/// peer that has lost the network says so in less.
const TIME_OF_PEERS: Timespec = Timespec { tv_sec: 4, tv_nsec: 0 };

/// A number of the system's, with words where there are some that say more.
pub(crate) struct Reason(pub(crate) i32);

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "error {} of the network", self.0)?;
        match Errno::from_raw_os_error(self.0) {
            Errno::PERM | Errno::NOSYS => formatter.write_str(
                ": the system forbids this process a network call, perhaps by a seccomp filter of the program",
            ),
            Errno::FAULT => {
                formatter.write_str(": memory that was given to MPI cannot be read or written, or is there no more")
            }
            Errno::TIMEDOUT => formatter.write_str(": it has not answered for as long as COHORT_NET_TIMEOUT allows"),
            Errno::CONNRESET | Errno::PIPE => formatter.write_str(": its connection has ended"),
            Errno::MFILE | Errno::NFILE => formatter.write_str(": no more files can be opened here, see ulimit -n"),
            Errno::CONNABORTED => formatter.write_str(": it has failed, or was ended"),
            Errno::OWNERDEAD => formatter.write_str(": a rank of it has failed"),
            Errno::CONNREFUSED => formatter.write_str(": its host takes no connections for it"),
            Errno::NETUNREACH | Errno::HOSTUNREACH => {
                formatter.write_str(": no way leads to its host, see COHORT_NET_INTERFACE")
            }
            _ => Ok(()),
        }
    }
}

/// A peer cannot be reached any more: ends the job, unless the peer has said goodbye or the claimed rank
/// needs nobody any more. The launcher is to find out what has happened, for as long as it takes where ranks survive
/// each other.
pub fn lost(claim: &mut Claim<'_>, peer: Peer, code: i32) {
    let is_closing = claim.of::<Network>().is_closing;
    let link = claim.of::<Network>().links.find(peer);
    let is_closed = link.is_some_and(|link| link.is_closed.get());
    let node = claim.rank().node();
    if is_closing || is_closed || node.has_failed(peer) {
        return;
    }
    node.suspect(node.home_node(peer));
    if !node.survives() {
        wait_for_reasons(if is_of_peer(code) { TIME_OF_PEERS } else { TIME_OF_LAUNCHERS });
        end(claim.rank(), peer, format_args!("is lost ({})", Reason(code)));
    }
}

/// An operation with a peer has failed for good: ends the job.
pub fn broken(rank: &Rank, peer: Peer, code: i32) -> ! {
    wait_for_reasons(TIME_OF_LAUNCHERS);
    end(rank, peer, format_args!("is lost: a transfer failed ({})", Reason(code)))
}

/// A peer has sent what no rank of this version sends: ends the job.
pub fn nonsense(rank: &Rank, peer: Peer) -> ! {
    end(rank, peer, format_args!("sent a packet that makes no sense: do all nodes run the same version?"))
}

/// A packet to another node is to be made where there is no network: ends the job.
pub fn no_network(rank: &Rank, peer: Peer) -> ! {
    end(rank, peer, format_args!("is asked for, and this node has no network"))
}

/// There is no memory for a message from or to a peer that cannot be refused: ends the job.
pub fn no_memory(rank: &Rank, peer: Peer) -> ! {
    end(rank, peer, format_args!("sends messages, and this node has no memory left for them"))
}

/// A job that this one is connected with is gone: ends this one.
pub(crate) fn end_of_job(rank: &Rank, (job, node): (u64, u32), reason: Reason) -> ! {
    let text = FixedText::<256>::of(format_args!(
        "cohort: rank {} on node {}: another job that this one is connected with, {job:016x}, is lost with its node \
         {node} ({reason})",
        rank.world_rank(),
        rank.node().boot().node,
    ));
    stop(rank, text.as_str())
}

/// Whether the other side has ended a connection that fails so, and this one can still use the network.
fn is_of_peer(code: i32) -> bool {
    let ended = [Errno::CONNRESET, Errno::PIPE, Errno::CONNABORTED, Errno::CONNREFUSED, Errno::OWNERDEAD];
    ended.contains(&Errno::from_raw_os_error(code))
}

/// Leaves others time to end this rank with a better reason.
#[cold]
fn wait_for_reasons(time: Timespec) {
    // Ranks of tests have no launcher. An interruption only makes it shorter.
    if !cfg!(any(test, feature = "testing")) {
        let _ = rustix::thread::nanosleep(&time);
    }
}

/// Reports and ends the job.
#[cold]
fn end(rank: &Rank, peer: Peer, what: fmt::Arguments<'_>) -> ! {
    let node = rank.node();
    let text = FixedText::<256>::of(format_args!(
        "cohort: rank {} on node {}: rank {} on node {} {what}",
        rank.world_rank(),
        node.boot().node,
        node.world_rank(peer),
        node.home_node(peer),
    ));
    stop(rank, text.as_str())
}

fn stop(rank: &Rank, text: &str) -> ! {
    if cfg!(any(test, feature = "testing")) {
        // Ranks of tests are threads of one process.
        panic!("{text}");
    }
    cohort_core::lifecycle::abort(rank, 1, text)
}
