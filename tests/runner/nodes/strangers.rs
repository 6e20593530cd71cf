//! Strangers at the port of a launcher: `strangers.py` floods it from a host that is none of the job's.

use super::hosts::{Hosts, namespaces_work};
use crate::command::{Ended, Program};
use crate::trials::Trial;
use crate::{Outcome, place, trial};

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("nodes/a flood of strangers harms no job".into(), harmless),
        trial("nodes/a flood of strangers delays no signal".into(), served),
    ]
}

/// Two nodes, while the third host's strangers come; what `strangers.py` does then.
fn flood(then: &str) -> Result<Ended, String> {
    let hosts = Hosts::new(3)?;
    hosts.change();
    let script = place::root().join("tests/programs/python/strangers.py");
    let mut job = Program::new("python3").arg(script).arg(place::built_file("pip-exec")?).arg(then);
    if namespaces_work() {
        job = job.args((0..3).map(|host| format!("{}-{host}", hosts.name())));
    }
    let ended = job.seconds(200).run()?.expect_code(0)?;
    let address = match namespaces_work() {
        true => hosts.address(0),
        // Nodes that share a system need no more.
        false => "127.0.0.1".to_owned(),
    };
    ended.expect_text(&format!("listens at {address}\n"))
}

fn harmless() -> Outcome {
    let ended = flood("end")?;
    ended.expect_text("outcome: 0 0 ['here\\n', 'here\\n'] bounded").map(drop)
}

fn served() -> Outcome {
    let ended = flood("signal")?.expect_text("ended by SIGTERM")?;
    ended.expect_text("outcome: 143 -9 ['', ''] bounded").map(drop)
}
