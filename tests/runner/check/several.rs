//! Programs that have many cases in one job: `PROGRAM wrong`, in which all are found and nothing else, and
//! `PROGRAM right`, of which nothing is said.

use super::{FOUND, MISTAKEN_REQUESTS, job, only_summary};
use crate::Outcome;
use crate::command::Ended;
use crate::directives::Abi;

/// The first words of a finding, and words in it.
type Expected = (&'static str, &'static [&'static str]);

/// What is found in `mistaken_requests.c`.
const REQUESTS: &[Expected] = &[
    ("error[misused]", &["(started it)", "MPI_Start in start_twice", "(starts it again)", "a persistent receive"]),
    ("error[misused]", &["MPI_Startall in startall_twice", "(starts it again)", "a persistent send"]),
    ("error[misused]", &["MPI_Start in start_in_loop", "(starts it again)"]),
    ("error[misused]", &["MPI_Iallreduce in free_collective", "MPI_Request_free in", "(frees it)"]),
    ("error[misused]", &["MPI_Ibarrier in free_barrier", "MPI_Request_free in", "(frees it)"]),
    ("error[misused]", &["MPI_Ibcast in cancel_collective", "MPI_Cancel in", "(cancels it)"]),
    ("error[misused]", &["MPI_Pready in ready_twice", "(marks it again)", "partition 2 of 4"]),
    ("error[misused]", &["MPI_Pready_list in ready_in_list", "(marks it again)", "partition 0 of 2"]),
    ("error[misused]", &["MPI_Pready_range in ready_before_start", "a partitioned send that is not started"]),
    ("error[misused]", &["MPI_Pready in ready_receive", "has no partitions to send"]),
    ("error[misused]", &["MPI_Cancel in cancel_partitioned", "a partitioned receive that is under way"]),
    ("hint[doubtful]", &["MPI_Irecv in free_receive", "MPI_Request_free in", "a receive that is under way"]),
    ("hint[doubtful]", &["MPI_Irecv in free_any_receive", "MPI_Request_free in"]),
    ("hint[doubtful]", &["MPI_Start in free_started", "a persistent receive that is under way"]),
    ("hint[doubtful]", &["MPI_Isend in cancel_send", "MPI_Cancel in", "a send that is under way"]),
    ("hint[doubtful]", &["MPI_Issend in cancel_synchronous", "MPI_Cancel in"]),
    ("hint[doubtful]", &["MPI_Send_init in wait_unstarted", "MPI_Wait in", "that is not started"]),
    ("hint[doubtful]", &["MPI_Recv_init in wait_again", "MPI_Wait in", "that is not started"]),
    ("hint[doubtful]", &["MPI_Recv_init in wait_first", "MPI_Wait in", "that is not started"]),
    ("error[types]", &["MPI_Isend in", "MPI_Mrecv in matched_types", "sent: 3 MPI_INT; received: 3 MPI_FLOAT"]),
    ("error[types]", &["MPI_Imrecv in matched_any", "sent: 4 MPI_SHORT; received: 4 MPI_UNSIGNED_SHORT"]),
    ("error[types]", &["MPI_Mrecv in matched_from_next", "sent: 2 MPI_DOUBLE; received: 2 MPI_LONG"]),
    ("hint[bytes]", &["MPI_Mrecv in matched_bytes", "sent: 3 MPI_INT; received: 12 MPI_BYTE"]),
    ("error[unreceived]", &["(sent)", "MPI_Mprobe in", "(took it out of the queue)", "a message of 20 bytes"]),
    ("error[windows]", &["MPI_Put in locked_puts", "bytes 4 to 15 of the window of rank 0, under shared locks"]),
    ("error[windows]", &["MPI_Get in locked_put_and_get", "MPI_Put in", "bytes 36 to 39 of the window of rank 1"]),
    ("error[windows]", &["MPI_Accumulate in locked_accumulates", "bytes 12 to 15 of the window of rank 2"]),
    ("error[changed]", &["MPI_Pready in changed_partition", "MPI_Waitall in", "byte 4 or later of partition"]),
    ("error[changed]", &["MPI_Pready_range in changed_range", "MPI_Test in", "of partition 1 of 2"]),
    ("error[changed]", &["MPI_Pready_list in changed_in_list", "MPI_Waitall in"]),
    ("error[types]", &["MPI_Psend_init in partition_types", "sent: 8 MPI_INT; received: 8 MPI_FLOAT"]),
    ("hint[bytes]", &["MPI_Precv_init in partition_bytes", "sent: 8 MPI_INT; received: 32 MPI_BYTE"]),
    ("error[requests]", &["MPI_Start in partitions_left", "a partitioned receive"]),
    ("hint[leaks]", &["MPI_Psend_init in", "the request of a partitioned send"]),
];

/// The cases of a program are what is found, each once.
fn found(ended: Ended, expected: &[Expected]) -> Outcome {
    let is_finding = |block: &&str| block.starts_with("error[") || block.starts_with("hint[");
    let mut blocks: Vec<&str> = ended.stderr.split("\n\n").filter(is_finding).collect();
    for (first, said) in expected {
        let is_it = |block: &&str| block.starts_with(first) && said.iter().all(|words| block.contains(words));
        match blocks.iter().position(is_it) {
            Some(place) => blocks.remove(place),
            None => return Err(ended.failure(&format!("{first} with {said:?} is not said"))),
        };
    }
    match blocks.first() {
        Some(other) => Err(ended.failure(&format!("{other:?} is said too"))),
        None => Ok(()),
    }
}

/// Requests, matched probes, partitions, and locks of windows.
pub fn requests() -> Outcome {
    for abi in [Abi::Mpich, Abi::Mpi5, Abi::OpenMpi] {
        found(job((MISTAKEN_REQUESTS, "wrong"), "", abi)?.run()?.expect_code(FOUND)?, REQUESTS)?;
        only_summary(job((MISTAKEN_REQUESTS, "right"), "", abi)?.run()?.expect_code(0)?)?;
    }
    Ok(())
}
