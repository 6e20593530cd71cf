//! The runner looks at itself: what it calls late, and what it says of commands that do not end.

use crate::command::Program;
use crate::trials::{Ran, Trial};
use crate::{Outcome, event, place, remains, trial};
use rustix::process::Pid;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("runner/what hangs is late, and shown".into(), hangs),
        trial("runner/a wrong word is not late".into(), wrong),
        trial("runner/an ended process does not live on".into(), nobody_asks),
    ]
}

/// Runs a trial as the queue does; on a thread of its own, since this one has a trial.
fn ran(body: fn() -> Outcome) -> Result<Ran, String> {
    let folder = place::scratch()?.join("inner");
    let trial = trial("inner".into(), body);
    let thread = std::thread::spawn(move || trial.run(folder));
    thread.join().map_err(|_| "the trial's thread ended".into())
}

fn endless() -> Outcome {
    Program::new("sleep").arg("600").seconds(1).run().map(drop)
}

fn hangs() -> Outcome {
    let ran = ran(endless)?;
    let error = ran.outcome.err().ok_or("a trial that hangs passed")?;
    let shown = ["no end within 1 s", "processes:", "sleep 600", "backtraces"];
    match shown.iter().all(|part| error.contains(part)) && ran.is_late {
        true => Ok(()),
        false => Err(format!("late: {}, expected {shown:?}: {error}", ran.is_late)),
    }
}

fn wrong() -> Outcome {
    let ran = ran(|| match endless() {
        Ok(()) => Ok(()),
        Err(_) => Err("a wrong word".into()),
    })?;
    match (ran.outcome, ran.is_late) {
        (Err(_), false) => Ok(()),
        (outcome, late) => Err(format!("late: {late}, {outcome:?}")),
    }
}

/// Its group is there until somebody asks for its status.
fn nobody_asks() -> Outcome {
    let mut command = Command::new("sleep");
    let child = command.arg("0.2").process_group(0).spawn();
    let mut child = child.map_err(|error| error.to_string())?;
    let group = Pid::from_child(&child);
    let lived = remains::lives(group);
    let ended = event::until("the end of a process", || !remains::lives(group));
    let listed = remains::list(group);
    let _ = child.wait();
    ended?;
    match lived && listed.contains(" Z ") {
        true => Ok(()),
        false => Err(format!("lived: {lived}; listed then: {listed}")),
    }
}
