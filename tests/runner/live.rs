//! Jobs that run are listed, inspected and watched, by their own user only. The screen is looked at in tmux.

use crate::command::Program;
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, event, place, programs, trial};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("live/a job is listed, inspected and watched".into(), || {
            with_job("one", &[], |job| {
                job.is_listed()?;
                job.is_inspected()?;
                job.is_watched()?;
                job.minds_a_full_disk()?;
                job.ignores_strangers()
            })
        }),
        trial("live/a screen in a terminal".into(), || with_job("screen", &[], |job| job.fills_a_screen())),
        trial("live/ranks with address spaces of their own".into(), || {
            with_job("isolated", &["--isolate"], |job| {
                job.is_listed()?;
                let table = job.ask(&["--top", &job.pid(), "--delay", "0.2", "--times", "1"])?;
                let rows = rows(&table);
                match rows.len() == 4 && rows.iter().all(|row| row.cells[1] == "0") {
                    true => Ok(()),
                    false => Err(table),
                }
            })
        }),
        trial("live/a killed launcher is listed no more".into(), killed),
        trial("live/a job that is stopped has not ended".into(), || {
            with_job("stopped", &[], |job| job.is_listed().and_then(|()| job.is_silent_when_stopped()))
        }),
        trial("live/a rank whose first thread has left".into(), first_thread),
    ]
}

fn tool(name: &str) -> PathBuf {
    place::root().join("tests/programs/tools").join(name)
}

/// A job of four ranks that runs, and the program that asks it.
struct Job {
    pid: u32,
    launcher: PathBuf,
    name: String,
}

/// A rank's row of a table.
struct Row {
    cells: Vec<String>,
}

impl Row {
    fn number(&self, column: usize) -> f64 {
        let cell = self.cells.get(column).map_or("", String::as_str);
        let digits = cell.trim_end_matches(char::is_alphabetic);
        digits.parse().unwrap_or(-1.0)
    }
}

/// The rows of the last table in a text: rank, node, process, state, and the numbers behind it.
fn rows(text: &str) -> Vec<Row> {
    let last = text.rsplit("RANK NODE").next().unwrap_or_default();
    let row = |line: &str| {
        let words: Vec<&str> = line.get(..19)?.split_whitespace().collect();
        words.first()?.parse::<u32>().ok()?;
        let mut cells: Vec<String> = words.into_iter().map(str::to_owned).collect();
        cells.push(line.get(20..42)?.trim().to_owned());
        cells.extend(line.get(42..)?.split_whitespace().map(str::to_owned));
        Some(Row { cells })
    };
    last.lines().filter_map(row).collect()
}

/// Runs a job, and `look` meanwhile.
fn with_job(name: &str, options: &[&str], look: impl FnOnce(&Job) -> Result<(), String>) -> Outcome {
    let launcher = place::built_file("pip-exec")?;
    let program = programs::compile_as("live-watched", &tool("watched.c"), Abi::Mpi5, &[])?;
    let end = place::scratch()?.join(format!("live-{name}-{}", std::process::id()));
    let _ = std::fs::remove_file(&end);
    let mut looked = Ok(());
    let job = Program::new(&launcher).args(options).args(["-n", "4"]);
    let ended = job.arg(program).arg(&end).seconds(300).run_with(|pid| {
        let job = Job { pid, launcher: launcher.clone(), name: end.display().to_string() };
        looked = look(&job);
        // Whatever was seen, the job ends.
        let _ = std::fs::write(&end, "");
    });
    let _ = std::fs::remove_file(&end);
    looked?;
    ended?.expect_code(0).map(drop)
}

/// The rank is what its other thread does.
fn first_thread() -> Outcome {
    let launcher = place::built_file("pip-exec")?;
    let program = programs::compile_as("live-last-thread", &tool("last_thread.c"), Abi::Mpi5, &["-pthread".into()])?;
    let end = place::scratch()?.join("end");
    let _ = std::fs::remove_file(&end);
    let mut looked = Ok(());
    let job = Program::new(&launcher).args(["-n", "1"]).arg(program).arg("stay").arg(&end);
    let ended = job.run_with(|pid| {
        let job = Job { pid, launcher: launcher.clone(), name: end.display().to_string() };
        looked = job.is_its_other_thread();
        let _ = std::fs::write(&end, "");
    });
    looked?;
    ended?.expect_code(0)?.expect_text("the last thread returns").map(drop)
}

/// What a command prints; with what it says if it fails.
fn output(command: &mut Command) -> Result<String, String> {
    let line = format!("{command:?}");
    let ended = command.stdin(Stdio::null()).output();
    let ended = ended.map_err(|error| format!("{line}: {error}"))?;
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    match ended.status.success() {
        true => Ok(said),
        false => Err(format!("{line}: {}\n{said}{}", ended.status, String::from_utf8_lossy(&ended.stderr))),
    }
}

impl Job {
    fn pid(&self) -> String {
        self.pid.to_string()
    }

    fn ask(&self, words: &[&str]) -> Result<String, String> {
        output(Command::new(&self.launcher).args(words))
    }

    fn is_its_other_thread(&self) -> Result<(), String> {
        // Before its first thread has left, that sleeps or runs.
        event::until("the end of the first thread", || {
            let table = self.ask(&["--top", &self.pid(), "--delay", "0.1", "--times", "1"]);
            let rank = table.ok().and_then(|table| rows(&table).first().map(|row| row.cells[2].clone()));
            let stat = rank.and_then(|rank| std::fs::read_to_string(format!("/proc/{rank}/stat")).ok());
            stat.is_some_and(|stat| stat.contains(") Z "))
        })?;
        let table = self.ask(&["--top", &self.pid(), "--delay", "0.1", "--times", "1"])?;
        let picture = self.ask(&["--inspect", &self.pid()])?;
        let is_there = rows(&table).first().is_some_and(|row| !row.cells[3].contains("ended"));
        // It sleeps outside of MPI, and looks for its file now and then.
        match is_there && picture.contains("the last call was MPI_") && !picture.contains("has ended") {
            true => Ok(()),
            false => Err(format!("{table}\n{picture}")),
        }
    }

    fn is_listed(&self) -> Result<(), String> {
        let listed = event::found("what is to be seen", || {
            let list = self.ask(&["--ps"])?;
            let mut lines = list.lines().map(str::trim_start);
            let line = lines.find(|line| line.starts_with(&format!("{} ", self.pid)));
            Ok(line.map(str::to_owned))
        })?;
        let words: Vec<&str> = listed.split_whitespace().collect();
        match words[1..3] == ["4", "-"] && words.last() == Some(&&*self.name) {
            true => Ok(()),
            false => Err(listed),
        }
    }

    fn is_inspected(&self) -> Result<(), String> {
        let picture = self.ask(&["--inspect", &self.pid()])?;
        if !picture.contains("rank") {
            return Err(picture);
        }
        // A rank's process names the job too; one of nobody's does not.
        let table = self.ask(&["--top", &self.pid(), "--delay", "0.1", "--times", "1"])?;
        let rank = rows(&table).first().map(|row| row.cells[2].clone());
        self.ask(&["--inspect", &rank.ok_or(table)?])?;
        match self.ask(&["--inspect", "1"]) {
            Err(said) if said.contains("no job of yours") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    /// Whoever computes, waits and talks is known as such, though the job was not started for it.
    fn is_watched(&self) -> Result<(), String> {
        let known = |rows: &[Row]| {
            let [computes, waits, talks, answers] = rows else {
                return false;
            };
            let talk = [talks, answers];
            computes.cells[3] == "computes"
                && computes.number(4) == 0.0
                && waits.cells[3].contains("MPI")
                && waits.number(4) > 50.0
                && talk.iter().all(|row| row.number(6) > 0.0 && row.number(7) > 0.0)
        };
        // The machine may be busy: not every interval has a bit of everything.
        event::found("what is to be seen", || {
            let words = ["--top", &self.pid(), "--delay", "0.5", "--times", "2"];
            let table = self.ask(&words)?;
            Ok(known(&rows(&table)).then_some(()))
        })
    }

    /// What cannot be written is said; a reader that has read enough is no error.
    fn minds_a_full_disk(&self) -> Result<(), String> {
        let top = format!("--top={} --delay 0.1 --times 2", self.pid);
        for words in [&*top, &*format!("--inspect {}", self.pid), "--ps"] {
            let line = |rest: &str| format!("'{}' {words} {rest}", self.launcher.display());
            let sh = |line: String| output(Command::new("bash").args(["-c", &line]));
            let said = sh(line("2>&1 >/dev/full; echo status $?"))?;
            if !said.contains("cannot write to standard output") || said.contains("status 0") {
                return Err(format!("{words}: {said}"));
            }
            let said = sh(line("| head -c 1 >/dev/null; echo status ${PIPESTATUS[0]}"))?;
            if said.trim() != "status 0" {
                return Err(format!("{words}: {said}"));
            }
        }
        Ok(())
    }

    fn is_silent_when_stopped(&self) -> Result<(), String> {
        let mut top = Command::new(&self.launcher);
        top.args(["--top", &self.pid(), "--delay", "0.1"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut top = top.spawn().map_err(|error| error.to_string())?;
        // Once there is a table, it has begun to watch.
        let mut byte = [0];
        let begun = top.stdout.as_mut().map(|output| output.read_exact(&mut byte));
        let launcher = Pid::from_raw(self.pid.cast_signed()).ok_or("no process")?;
        let _ = kill_process(launcher, Signal::STOP);
        let ended = top.wait_with_output();
        let _ = kill_process(launcher, Signal::CONT);
        let ended = ended.map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&ended.stderr);
        match begun.is_some_and(|begun| begun.is_ok()) && ended.status.code() == Some(2) {
            true if said.contains("does not answer: it is stopped") => Ok(()),
            _ => Err(format!("{}: {said}", ended.status)),
        }
    }

    fn ignores_strangers(&self) -> Result<(), String> {
        let stranger = std::thread::spawn(|| output(Command::new("python3").arg(tool("stranger.py"))));
        while !stranger.is_finished() {
            self.is_listed()?;
        }
        let said = stranger.join().map_err(|_| "the stranger panics")??;
        match said.starts_with("0 answers") {
            true => self.is_listed(),
            false => Err(said),
        }
    }

    fn fills_a_screen(&self) -> Result<(), String> {
        self.is_listed()?;
        let screen = Screen::open(&self.launcher, &["--top", &self.pid(), "--delay", "0.2"])?;
        screen.shows(&["4 ranks", "RANK NODE", "computes", "sort (rank)"])?;
        // As small as it may get, and back.
        screen.resize("20", "5")?;
        screen.shows(&["4 ranks", "RANK NODE"])?;
        screen.resize("2", "1")?;
        screen.press("Down")?;
        screen.resize("110", "20")?;
        screen.shows(&["4 ranks", "RANK NODE", "sort (rank)"])?;
        screen.press("s")?;
        screen.shows(&["sort (mpi)"])?;
        // Behind those of greater share.
        event::found("what is to be seen", || {
            let ranks: Vec<String> = rows(&screen.text()?).iter().map(|row| row.cells[0].clone()).collect();
            Ok((ranks.len() == 4 && ranks[3] == "0").then_some(()))
        })?;
        screen.press("/")?;
        screen.press("computes")?;
        screen.press("Enter")?;
        screen.shows(&["rows with \"computes\""])?;
        event::found("what is to be seen", || Ok((rows(&screen.text()?).len() == 1).then_some(())))?;
        screen.press("Enter")?;
        screen.shows(&["RANK 0", "time in MPI", "wake-ups/s of others"])?;
        screen.press("q")?;
        screen.shows(&["status 0"])
    }
}

/// A terminal with the launcher in it.
struct Screen {
    server: String,
}

impl Screen {
    fn open(launcher: &Path, words: &[&str]) -> Result<Self, String> {
        let this = Self { server: format!("cohort-live-{}", std::process::id()) };
        let line = format!("'{}' {}; echo status $?; sleep 60", launcher.display(), words.join(" "));
        this.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "110", "-y", "20", &line])?;
        Ok(this)
    }

    fn tmux(&self, words: &[&str]) -> Result<String, String> {
        output(Command::new("tmux").args(["-L", &self.server]).args(words))
    }

    fn text(&self) -> Result<String, String> {
        self.tmux(&["capture-pane", "-p"])
    }

    fn press(&self, key: &str) -> Result<(), String> {
        self.tmux(&["send-keys", key]).map(drop)
    }

    fn resize(&self, columns: &str, lines: &str) -> Result<(), String> {
        let words = ["resize-window", "-x", columns, "-y", lines];
        self.tmux(&words).map(drop)
    }

    /// Waits for a screen with all of these.
    fn shows(&self, parts: &[&str]) -> Result<(), String> {
        let mut last = String::new();
        let seen = event::found("what is to be seen", || {
            last = self.text()?;
            Ok(parts.iter().all(|part| last.contains(part)).then_some(()))
        });
        seen.map_err(|_| format!("expected a screen with {parts:?}, this is the last:\n{last}"))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The server is this trial's own.
        let _ = self.tmux(&["kill-server"]);
    }
}

fn killed() -> Outcome {
    let launcher = place::built_file("pip-exec")?;
    let mut child = Command::new(&launcher)
        .args(["--no-mpi", "-n", "2", "sleep", "300"])
        .spawn()
        .map_err(|error| error.to_string())?;
    let job = Job { pid: child.id(), launcher, name: "300".into() };
    let is_listed = || {
        let list = job.ask(&["--ps"])?;
        let mut lines = list.lines().map(str::trim_start);
        Ok::<bool, String>(lines.any(|line| line.starts_with(&format!("{} ", job.pid))))
    };
    let came = event::found("what is to be seen", || Ok(is_listed()?.then_some(())));
    let _ = child.kill();
    let _ = child.wait();
    came?;
    match is_listed()? {
        true => Err("a job that was killed is listed".into()),
        false => Ok(()),
    }
}
