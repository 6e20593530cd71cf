//! Messages and windows between nodes.

use super::several::{Expected, found};
use super::{FOUND, executable};
use crate::directives::Abi;
use crate::nodes::Hosts;
use crate::{Outcome, place};
use serde_json::Value;
use std::path::Path;

/// What is found in `mistaken_nodes.c`.
const MESSAGES: &[Expected] = &[
    ("error[types]", &["rank 0: MPI_Send in", "rank 2: MPI_Recv in", "sent: 3 MPI_FLOAT; received: 3 MPI_INT"]),
    ("error[types]", &["MPI_Isend in types_long", "MPI_Irecv in", "sent: 60000 MPI_DOUBLE; received: 60000 MPI_LONG"]),
    ("error[types]", &["rank 2: MPI_Send in", "sent: 1 MPI_LONG; received: 1 MPI_DOUBLE"]),
    ("error[types]", &["MPI_Start in types_persistent", "sent: 4 MPI_UNSIGNED; received: 4 MPI_INT", "found 3 times"]),
    ("error[types]", &["sent: 2 (MPI_INT, MPI_FLOAT); received: 2 (MPI_FLOAT, MPI_INT)"]),
    ("error[types]", &["MPI_Mrecv in types_matched", "sent: 4 MPI_SHORT; received: 4 MPI_UNSIGNED_SHORT"]),
    ("error[types]", &["MPI_Psend_init in", "MPI_Precv_init in", "sent: 8 MPI_INT; received: 8 MPI_FLOAT"]),
    ("error[types]", &["rank 0: MPI_Sendrecv in", "rank 2: MPI_Sendrecv in", "2 MPI_INT; received: 2 MPI_FLOAT"]),
    ("error[types]", &["rank 3: MPI_Irecv in types_second", "sent: 1 MPI_FLOAT; received: 1 MPI_INT"]),
    ("hint[bytes]", &["rank 2: MPI_Send in", "sent: 8 MPI_BYTE; received: 2 MPI_INT"]),
    ("hint[bytes]", &["MPI_Irecv in bytes_received", "sent: 2 MPI_DOUBLE; received: 16 MPI_BYTE"]),
    ("hint[bytes]", &["MPI_Ssend in bytes_long", "sent: 60000 MPI_DOUBLE; received: 480000 MPI_BYTE"]),
    ("error[unreceived]", &["rank 0: MPI_Send in", "8 bytes from rank 0 to rank 2 of the communicator, tag 14"]),
    ("error[unreceived]", &["rank 3: MPI_Send in unreceived_on_copy", "tag 15", "found 2 times"]),
    ("error[unreceived]", &["rank 1: MPI_Isend in unreceived_nonblocking", "8 bytes from rank 1", "tag 17"]),
    ("error[unreceived]", &["rank 2: MPI_Mprobe in", "(took it out of the queue)", "from rank 1", "tag 18"]),
];

/// What accesses to a window of another node are told as.
const WINDOWS: &[Expected] = &[
    ("error[changed]", &["rank 0: MPI_Put in windows", "byte 0 of the 4 of its origin buffer has changed meanwhile"]),
    ("error[types]", &["rank 1: MPI_Get in windows", "MPI_FLOAT", "MPI_INT"]),
    ("error[windows]", &["rank 0: MPI_Put in windows", "rank 1: MPI_Put in windows", "bytes 28 to 31", "of rank 3"]),
];

/// What a node has found, as text: what two nodes write on one stream may mix.
fn told(file: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let report: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let mut out = String::new();
    for finding in report["findings"].as_array().into_iter().flatten() {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        out += &format!("{}[{}]", word(&finding["severity"]), word(&finding["kind"]));
        for place in finding["places"].as_array().into_iter().flatten() {
            let [call, function, did] = ["call", "function", "did"].map(|name| word(&place[name]));
            let rank = &place["ranks"][0];
            out += &format!("\n  --> rank {rank}: {call} in {function} ({did})");
        }
        out += &format!("\n   | {}\n   | found {} times\n\n", word(&finding["values"]), finding["count"]);
    }
    out.extend(report["notes"].as_array().into_iter().flatten().map(|note| format!("error[note] {note}\n\n")));
    Ok(out)
}

/// Messages and accesses to windows between two nodes: their launchers compare what both have seen.
pub fn messages() -> Outcome {
    let executable = executable("mistaken_nodes", Abi::Mpich)?;
    let hosts = Hosts::new(2)?;
    let file = place::scratch()?.join("found.json");
    let wrong = [MESSAGES, WINDOWS].concat();
    for (words, status, expected) in [("wrong", FOUND, wrong.as_slice()), ("right", 0, &[])] {
        let job = hosts.pip_exec("2")?.arg(format!("--check=json:{}", file.display()));
        let mut ended = job.arg(&executable).arg(words).seconds(60).run()?.expect_code(status)?;
        let both = [0, 1].map(|node| told(&file.with_extension(format!("json.{node}"))));
        ended.stderr = both.into_iter().collect::<Result<String, _>>()?;
        found(ended, expected)?;
    }
    Ok(())
}
