//! What a failure says of a command that does not end, or of what it leaves behind: its processes, the picture of each
//! job among them, and where every thread is.

use crate::{event, place};
use rustix::process::Pid;
use std::fmt::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long one picture or one debugger may take.
const LIMIT: Duration = Duration::from_secs(20);
/// Of how many processes there are backtraces.
const DEBUGGED: usize = 4;

/// A process of the group.
struct Process {
    id: u32,
    state: String,
    /// What the kernel has it do, if the kernel tells.
    call: String,
    command: String,
}

/// Whether a process of the group lives: has a task that is no zombie. Whoever inherits an ended process may take its
/// time to ask for its status.
pub fn lives(group: Pid) -> bool {
    members(group).iter().any(|process| {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", process.id));
        let mut tasks = tasks.into_iter().flatten().flatten();
        tasks.any(|task| {
            let stat = std::fs::read_to_string(task.path().join("stat"));
            stat.is_ok_and(|stat| !after_name(&stat).starts_with(['Z', 'X']))
        })
    })
}

/// The fields of a `stat` from the state on; the name before it may have any character.
pub fn after_name(stat: &str) -> &str {
    stat.rsplit_once(") ").map_or("", |(_, rest)| rest)
}

/// The processes of a group, a line each.
pub fn list(group: Pid) -> String {
    let mut text = String::new();
    for process in members(group) {
        let Process { id, state, call, command } = process;
        let _ = write!(text, "\n    {id} {state} {call} {command}");
    }
    text
}

/// The processes of a group that lives, with pictures and backtraces.
pub fn look(group: Pid) -> String {
    let mut text = format!("\n  processes:{}", list(group));
    let members = members(group);
    for process in &members {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", process.id));
        if name.is_ok_and(|name| name.trim() == "pip-exec") {
            let id = process.id.to_string();
            let mut inspect = Command::new(place::built().join("pip-exec"));
            let _ = write!(text, "\n  picture of {id}:");
            text += &said(inspect.args(["--inspect", &id]));
        }
    }
    for process in members.iter().take(DEBUGGED) {
        let id = process.id.to_string();
        let mut gdb = Command::new("gdb");
        gdb.args(["-nx", "-batch", "-p", &id]);
        let _ = write!(text, "\n  backtraces of {id}:");
        text += &said(gdb.args(["-ex", "thread apply all backtrace 16"]));
    }
    text
}

fn members(group: Pid) -> Vec<Process> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id| member(group, id)).collect()
}

fn member(group: Pid, id: u32) -> Option<Process> {
    let read = |name: &str| {
        let bytes = std::fs::read(format!("/proc/{id}/{name}")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    };
    let stat = read("stat");
    // State, parent, group.
    let mut fields = after_name(&stat).split(' ');
    let state = fields.next()?.to_owned();
    (fields.nth(1)?.parse() == Ok(group.as_raw_pid())).then(|| Process {
        id,
        state,
        call: read("wchan"),
        command: read("cmdline"),
    })
}

/// The last lines that a command says before the limit, or why it says none.
fn said(command: &mut Command) -> String {
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return format!(" {error}"),
    };
    let streams = (crate::command::drain(child.stdout.take()), crate::command::drain(child.stderr.take()));
    end(&mut child);
    let mut text = String::new();
    for stream in [streams.0, streams.1] {
        if let Ok(lines) = stream.recv_timeout(Duration::from_secs(1)) {
            let _ = write!(text, "\n{}", crate::command::tail(&lines, 80));
        }
    }
    text
}

/// Waits for a child until the limit, then kills it.
fn end(child: &mut Child) {
    let deadline = Instant::now() + LIMIT;
    while let Ok(None) = child.try_wait() {
        if Instant::now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        event::pass(Duration::from_millis(20));
    }
}
