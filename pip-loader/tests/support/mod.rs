//! Compiles fixtures and runs `pip-exec` on them, with a time limit.
#![allow(dead_code, reason = "each test file uses a part of this module")]

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// No test's job may take longer.
const LIMIT: Duration = Duration::from_secs(60);

/// A temporary folder that is removed with its value.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("cohort-loader-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the temporary folder is writable");
        Self(path.canonicalize().expect("made just now"))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.0.join(name);
        std::fs::write(&path, content).expect("the temporary folder is writable");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("own file");
        path
    }

    /// A copy of `pip-exec`. A child process writes it: were the file open for writing here,
    /// another test's child could inherit it, and starting it would fail with ETXTBSY.
    pub fn pip_exec(&self) -> PathBuf {
        let copy = self.0.join("pip-exec");
        let status =
            Command::new("cp").arg(env!("CARGO_BIN_EXE_pip-exec")).arg(&copy).status().expect("cp is installed");
        assert!(status.success(), "cannot copy pip-exec to {}", copy.display());
        copy
    }

    /// Compiles a fixture to `output` with the compiler that its suffix asks for.
    pub fn compile(&self, fixture: &str, output: &str, arguments: &[&str]) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs/loader").join(fixture);
        let compiler = match source.extension().and_then(OsStr::to_str) {
            Some("c") => "cc",
            Some("cpp") => "c++",
            Some("rs") => "rustc",
            other => panic!("no compiler for {other:?}"),
        };
        let output = self.0.join(output);
        let mut command = Command::new(compiler);
        command.arg(&source).arg("-o").arg(&output).current_dir(&self.0);
        if compiler != "rustc" {
            command.args(["-O1", "-Wall", "-pthread"]);
        }
        let result = command.args(arguments).output().expect("a compiler is installed");
        assert!(result.status.success(), "{fixture}: {}", String::from_utf8_lossy(&result.stderr));
        output
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a job did.
#[derive(Debug)]
pub struct Outcome {
    pub status: i32,
    pub output: String,
    pub error: String,
    pub elapsed: Duration,
}

impl Outcome {
    /// Asserts success without a word on standard error, and gives the lines of output.
    pub fn lines(&self) -> Vec<&str> {
        assert_eq!((self.status, self.error.as_str()), (0, ""), "{self:?}");
        self.output.lines().collect()
    }
}

/// `pip-exec --no-mpi` with these words.
pub fn pip_exec<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pip-exec"));
    command.arg("--no-mpi").args(words);
    command
}

/// Runs a command line of `pip-exec` whose words hold no blanks.
pub fn run(line: &str) -> Outcome {
    run_command(&mut pip_exec(line.split_whitespace()), b"")
}

pub fn run_command(command: &mut Command, input: &[u8]) -> Outcome {
    let begin = Instant::now();
    let mut child = start(command);
    let mut sink = child.stdin.take().expect("piped");
    // A job that reads nothing may have ended before.
    let _ = sink.write_all(input);
    drop(sink);
    finish(child, begin)
}

pub fn start(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("pip-exec is built")
}

/// Waits for the end and collects what was written.
pub fn finish(mut child: Child, begin: Instant) -> Outcome {
    let mut output = child.stdout.take().expect("piped");
    let mut error = child.stderr.take().expect("piped");
    let reader = |source: &mut dyn Read| {
        let mut text = Vec::new();
        source.read_to_end(&mut text).expect("a pipe");
        String::from_utf8_lossy(&text).into_owned()
    };
    let pid = child.id() as i32;
    let (output, error, status) = std::thread::scope(|scope| {
        let output = scope.spawn(move || reader(&mut output));
        let error = scope.spawn(move || reader(&mut error));
        let deadline = begin + LIMIT;
        let status = loop {
            match child.try_wait().expect("own child") {
                Some(status) => break status,
                None if Instant::now() > deadline => {
                    // SAFETY: kills the test's own child.
                    unsafe { libc::kill(pid, libc::SIGKILL) };
                    panic!("the job did not end within {LIMIT:?}");
                }
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        (output.join().expect("read"), error.join().expect("read"), status)
    });
    let status = status.code().unwrap_or_else(|| -status.signal().unwrap_or(0));
    Outcome { status, output, error, elapsed: begin.elapsed() }
}

/// Processes whose parent is `parent`.
pub fn children(parent: u32) -> Vec<i32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// All processes below one.
pub fn descendants(parent: i32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let children = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let children: Vec<i32> = children
        .flat_map(|text| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect();
    let below: Vec<i32> = children.iter().copied().flat_map(descendants).collect();
    [children, below].concat()
}

/// Waits until a condition holds, for at most thirty seconds: the machine may be busy.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process exists and is not merely waiting to be reaped.
pub fn is_running(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}
