//! Runs a command with a time limit and looks for tasks that it left behind.

use crate::{event, place, remains, trials};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid};
use std::any::Any;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// How long tasks may outlive the command that started them.
const LEFTOVER_GRACE: Duration = Duration::from_secs(10);

/// A command that has ended.
#[derive(Debug)]
pub struct Ended {
    line: String,
    status: ExitStatus,
    /// Standard output, invalid UTF-8 replaced.
    pub stdout: String,
    /// Standard error, invalid UTF-8 replaced.
    pub stderr: String,
}

impl Ended {
    /// Exit code; 128 + signal for a signalled command.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// An error text with everything that helps to find the cause.
    pub fn failure(&self, reason: &str) -> String {
        let mut text = format!("{reason}\n  command: {}\n  exit code: {}", self.line, self.code());
        for (name, stream) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            let _ = write!(text, "\n  {name}:\n{}", tail(stream, 300));
        }
        text
    }

    /// # Errors
    /// When the exit code is not `code`.
    pub fn expect_code(self, code: i32) -> Result<Self, String> {
        if self.code() == code { Ok(self) } else { Err(self.failure(&format!("expected exit code {code}"))) }
    }

    /// # Errors
    /// When neither stream contains `text`.
    pub fn expect_text(self, text: &str) -> Result<Self, String> {
        if self.says(text) { Ok(self) } else { Err(self.failure(&format!("expected the output to contain {text:?}"))) }
    }

    /// Whether the output contains `text`.
    pub fn says(&self, text: &str) -> bool {
        self.stdout.contains(text) || self.stderr.contains(text)
    }
}

/// A command being put together.
pub struct Program {
    command: Command,
    seconds: u64,
    /// What is there until it has ended.
    kept: Option<Arc<dyn Any>>,
}

impl Program {
    /// A command of the program `path`, with a limit of 60 s and no `COHORT_*` variable but the policy that the whole
    /// run is about, if there is one, and a folder in which jobs publish names: they would meet those of other trials.
    pub fn new(path: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(path);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("COHORT_") {
                command.env_remove(name);
            }
        }
        if let Some(progress) = place::progress() {
            command.env("COHORT_PROGRESS", progress);
        }
        if let Ok(folder) = place::scratch() {
            command.env("COHORT_CONNECT_NAMES", folder.join("names"));
        }
        Self { command, seconds: 60, kept: None }
    }

    /// Keeps something that it needs until it has ended.
    #[must_use]
    pub fn keeping(mut self, what: Arc<dyn Any>) -> Self {
        self.kept = Some(what);
        self
    }

    /// With nothing in the environment but this search path.
    #[must_use]
    pub fn clean(mut self, path: impl AsRef<OsStr>) -> Self {
        self.command.env_clear().env("PATH", path);
        self
    }

    /// Runs in this folder.
    #[must_use]
    pub fn directory(mut self, folder: &std::path::Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets environment variables.
    #[must_use]
    pub fn envs(mut self, variables: &[(String, String)]) -> Self {
        let variables = variables.iter().map(|(name, value)| (name, value));
        self.command.envs(variables);
        self
    }

    /// Sets the limit, in seconds.
    #[must_use]
    pub fn seconds(mut self, seconds: u64) -> Self {
        self.seconds = seconds;
        self
    }

    /// Runs the command.
    ///
    /// # Errors
    /// When it does not start, exceeds its limit (its process group is then killed),
    /// or leaves tasks of its process group behind.
    pub fn run(self) -> Result<Ended, String> {
        self.run_with(|_| ())
    }

    /// As [`Program::run`]; calls `meddle` with the started command's process id.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn run_with(mut self, meddle: impl FnOnce(u32)) -> Result<Ended, String> {
        let line = format!("{:?}", self.command);
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.command.process_group(0);
        let start = Instant::now();
        let mut child = self.command.spawn().map_err(|error| format!("{line}: {error}"))?;
        let group = Pid::from_child(&child);
        let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
        meddle(child.id());
        let status = wait(&mut child, start + Duration::from_secs(self.seconds));
        trials::add_cpu(status.map_or(Duration::ZERO, |(_, cpu)| cpu));
        let status = status.map(|(status, _)| status);
        let elapsed = start.elapsed();
        let leftover = match status {
            Some(_) => outlives(group),
            None => Some(remains::look(group)),
        };
        let _ = kill_process_group(group, Signal::KILL);
        let status = match status {
            Some(status) => status,
            None => child.wait().map_err(|error| format!("{line}: {error}"))?,
        };
        let read = |stream: mpsc::Receiver<String>| {
            stream.recv_timeout(Duration::from_secs(5)).unwrap_or_else(|_| "(held open)".into())
        };
        let ended = Ended { line, status, stdout: read(stdout), stderr: read(stderr) };
        if elapsed >= Duration::from_secs(self.seconds) {
            let reason = trials::late(format!("no end within {} s", self.seconds));
            return Err(ended.failure(&reason) + &leftover.unwrap_or_default());
        }
        if let Some(tasks) = leftover {
            return Err(ended.failure(&format!("the command ended, but tasks of it live on:{tasks}")));
        }
        Ok(ended)
    }
}

/// The child's status with the time that it and what it waited for computed, or None when `deadline` passes first.
fn wait(child: &mut Child, deadline: Instant) -> Option<(ExitStatus, Duration)> {
    let mut pause = Duration::from_micros(500);
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    while Instant::now() < deadline {
        if let Ok(Some(_)) = waitid(WaitId::Pid(Pid::from_child(child)), options) {
            let cpu = computed(child.id());
            return child.wait().ok().map(|status| (status, cpu));
        }
        event::pass(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
    None
}

/// What a process that has ended, and those that it waited for, have computed.
fn computed(pid: u32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // utime, stime, cutime and cstime are the fields 14 to 17; the name is the second.
    let ticks = remains::after_name(&text).split(' ').skip(11).take(4);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
}

/// The members of a process group that are left after the grace time, a line each.
fn outlives(group: Pid) -> Option<String> {
    let deadline = Instant::now() + LEFTOVER_GRACE;
    while test_kill_process_group(group).is_ok() && remains::lives(group) {
        if Instant::now() >= deadline {
            return Some(remains::list(group));
        }
        event::pass(Duration::from_millis(10));
    }
    None
}

/// Reads a pipe to its end on a thread of its own, so that the writer never blocks.
pub fn drain(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.read_to_end(&mut bytes);
        }
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// The last `lines` lines, indented.
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    let skipped = all.len().saturating_sub(lines);
    let head = if skipped > 0 { format!("    ({skipped} lines before)\n") } else { String::new() };
    head + &all[skipped..].iter().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
