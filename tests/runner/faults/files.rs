//! Files on a machine that lets calls fail: all members hear of it, and nothing that failed is said to have gone well
//! (`failing.c` checks both).

use super::ranks_of;
use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, event, place, programs, trial};
use rustix::process::{Signal, kill_process};
use std::fmt::Display;
use std::path::{Path, PathBuf};

const RANKS: usize = 4;

/// Bytes of each rank in a call, and of its blocks: such that are moved in chunks together, and such that are not.
const RANGE: usize = 100_000;
const BLOCKS: [usize; 2] = [64, 20_000];

/// What is injected into the calls of the kernel that are about the file, a word on it, and what the program says.
const INJECTED: [(&str, &str, &str); 10] = [
    ("interrupted writes", "pwrite64,pwritev2:error=EINTR:when=1+2", WELL),
    ("interrupted reads", "pread64,preadv2:error=EINTR:when=1+2", WELL),
    ("writes that shall be tried again", "pwrite64,pwritev2:error=EAGAIN:when=1+2", WELL),
    ("failing writes", "pwrite64,pwritev2:error=EIO:when=2+5", "write: MPI_ERR_IO"),
    ("failing reads", "pread64,preadv2:error=EIO:when=1+4", "read: MPI_ERR_IO"),
    ("a quota", "pwrite64,pwritev2:error=EDQUOT:when=3", "write: MPI_ERR_QUOTA"),
    ("a failing fsync", "fsync:error=EIO", "sync: MPI_ERR_IO"),
    ("a failing close", "close:error=EIO:when=1", "close: MPI_ERR_IO"),
    // By its position a file is known in each call, to find that the program has closed the descriptor; else by this.
    ("no position", "lseek:error=ESPIPE", WELL),
    (
        "no position, and a file that is lost",
        "lseek:error=ESTALE;fstat,newfstatat:error=ESTALE:when=12",
        ": MPI_ERR_IO",
    ),
];
const WELL: &str = "20 of 20 calls went well, 0 of 4 ranks' own failed";

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("faults/files on a full file system".into(), full),
        trial("faults/kill -9 of a rank that writes a file".into(), killed),
        trial("faults/what a failed write says, whatever its form".into(), told),
    ];
    for (word, injected, said) in INJECTED {
        trials.push(trial(format!("faults/files with {word}"), move || injection(injected, said)));
    }
    trials
}

fn program() -> Result<PathBuf, String> {
    let source = place::root().join("tests/programs/tools/failing.c");
    programs::compile_as("failing", &source, Abi::Mpi5, &[])
}

fn arguments(file: &Path, block: impl Display, calls: usize) -> Result<Vec<String>, String> {
    let (pip_exec, program) = (place::built_file("pip-exec")?, program()?);
    let numbers = [RANGE.to_string(), block.to_string(), calls.to_string()];
    let words = [pip_exec.display().to_string(), "-n".into(), RANKS.to_string(), program.display().to_string()];
    Ok(words.into_iter().chain([file.display().to_string()]).chain(numbers).collect())
}

fn injection(injected: &str, said: &str) -> Outcome {
    for block in BLOCKS {
        let file = place::scratch()?.join(format!("file-{block}"));
        let log = place::scratch()?.join(format!("calls-{block}"));
        let program = Program::new("strace").args(["-f", "-o"]).arg(&log).arg("-P").arg(&file);
        let program = program.args(injected.split(';').flat_map(|one| ["-e".into(), format!("inject={one}")]));
        program.args(arguments(&file, block, 20)?).seconds(120).run()?.expect_code(0)?.expect_text(said)?;
        let log = std::fs::read_to_string(&log).map_err(|error| error.to_string())?;
        if !log.contains("(INJECTED)") {
            return Err(format!("nothing was injected:\n{log}"));
        }
    }
    Ok(())
}

/// A file system of 1 MiB, and calls that need ten times as much; also in blocks with gaps between them.
fn full() -> Outcome {
    for (block, calls) in [(64, 2), (20_000, 2), (-64, 1)] {
        let folder = place::scratch()?.join(format!("full-{block}"));
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let line = format!(
            "mount -t tmpfs -o size=1m tmpfs {} && exec {}",
            folder.display(),
            arguments(&folder.join("file"), block, 25)?.join(" ")
        );
        let ended: Ended = Program::new("unshare").args(["-m", "bash", "-c", &line]).run()?;
        let ended = ended.expect_code(0)?.expect_text("write: MPI_ERR_NO_SPACE")?;
        ended.expect_text(&format!("{calls} of 25 calls went well, 4 of 4 ranks' own failed"))?;
    }
    Ok(())
}

/// Forms of writing, and what the line says that ends the job: the system's words, and where.
const TOLD: [(&str, &str); 7] = [
    ("write_at", "/dev/full: No space left on device at offset 4096"),
    ("iwrite_at", "/dev/full: No space left on device at offset 4096"),
    ("iwrite_at of little", "/dev/full: No space left on device at offset 4096"),
    ("two at once", "no space left: /dev/full: No space left on device at offset 4096"),
    ("iwrite_all", "/dev/full: No space left on device at offset 0"),
    ("tested", "the offset is -5"),
    ("split", "/dev/full: No space left on device at offset 0"),
];

fn told() -> Outcome {
    let program = programs::compile_as("told", &place::root().join("tests/programs/tools/told.c"), Abi::Mpi5, &[])?;
    for (form, words) in TOLD {
        let job = Program::new(place::built_file("pip-exec")?).args(["-n", "3"]).arg(&program).arg(form);
        let ended = job.run()?;
        if ended.code() == 0 || !ended.says(words) || !ended.says("MPI_ERRORS_ARE_FATAL") {
            return Err(ended.failure(&format!("{form} does not say \"{words}\"")));
        }
    }
    Ok(())
}

/// The job ends, and the file has all that was complete before.
fn killed() -> Outcome {
    for block in BLOCKS {
        let (file, sign) =
            (place::scratch()?.join(format!("killed-{block}")), place::scratch()?.join(format!("sign-{block}")));
        let words = arguments(&file, block, 10_000)?;
        let (done, mut came) = (|| std::fs::metadata(&sign).map_or(0, |it| it.len() as usize), Ok(()));
        let ended = Program::new(&words[0]).args(&words[1..]).arg(&sign).seconds(60).run_with(|root| {
            came = event::until("five calls", || done() >= 5);
            if let Some(rank) = ranks_of(root).get(1) {
                let _ = kill_process(*rank, Signal::KILL);
            }
        })?;
        came.map_err(|problem| ended.failure(&problem))?;
        let ended = ended.expect_code(128 + Signal::KILL.as_raw())?;
        let bytes = std::fs::read(&file).map_err(|error| error.to_string())?;
        let _ = std::fs::remove_file(&file);
        let calls = done();
        for (at, &byte) in bytes.iter().enumerate() {
            let (rank, position) = (at / block % RANKS, at / (block * RANKS) * block + at % block);
            // A call ends within a block, which the next one fills.
            if position >= calls * RANGE {
                continue;
            }
            let expected = (rank + 3 * (position / RANGE) + position % RANGE % 253 + 1) as u8;
            if byte != expected {
                return Err(ended.failure(&format!("byte {at} is {byte}, not {expected}; {calls} calls went well")));
            }
        }
        if bytes.len() < calls * (RANGE / block * block) * RANKS {
            return Err(ended.failure(&format!("{} bytes after {calls} calls", bytes.len())));
        }
    }
    Ok(())
}
