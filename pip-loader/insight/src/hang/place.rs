//! Where in its program a rank is.

use super::super::backtrace::{self, Code, CodePlace};
use super::state::RankState;
use cohort_arch::frame::{REGISTERS, RETURN_ADDRESS, STACK_POINTER};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use pip_load::task::crash::Registers;
use std::time::{Duration, Instant};

mod arch;

/// How long a task may take to show its registers.
const STOP_TIME: Duration = Duration::from_millis(50);

/// Finds places as long as there is time.
pub struct Places {
    code: Option<Code>,
    until: Instant,
}

impl Places {
    /// For so long.
    pub fn new(time: Duration) -> Self {
        Self { code: None, until: Instant::now() + time }
    }

    /// The functions of its program in which a rank is. Those of its Python are known of its main thread only.
    pub fn of(&mut self, rank: &RankState) -> Option<CodePlace> {
        if Instant::now() >= self.until || rank.has_ended {
            return None;
        }
        let task = rank.wait().map_or(rank.pid, |wait| wait.thread);
        let registers = asleep(task).or_else(|| interrupted(task))?;
        let code = self.code.get_or_insert_with(Code::mapped);
        let mut place = backtrace::place(code, &registers);
        if task != rank.pid {
            place.interpreter = None;
        }
        Some(place)
    }
}

/// The stack and the instruction of a task that does not run, from the kernel. What its other registers hold is found
/// where functions have saved them.
fn asleep(task: i32) -> Option<Registers> {
    let text = std::fs::read_to_string(format!("/proc/{task}/syscall")).ok()?;
    let mut words = text.split_whitespace().rev();
    let mut number = || {
        let word = words.next()?.strip_prefix("0x")?;
        u64::from_str_radix(word, 16).ok()
    };
    let mut registers = [0; REGISTERS];
    registers[RETURN_ADDRESS] = number()?;
    registers[STACK_POINTER] = number()?;
    Some(registers)
}

/// The registers of a task that runs: it is held for a moment. Not one that sleeps, whose system call may fail then.
fn interrupted(task: i32) -> Option<Registers> {
    let pid = Pid::from_raw(task);
    ptrace::seize(pid, ptrace::Options::empty()).ok()?;
    let held = ptrace::interrupt(pid).ok().and_then(|()| stopped(pid));
    let registers = held.and_then(|_| ptrace::getregs(pid).ok());
    // A task that has not stopped yet is let go when it does (`let_go`).
    if let Some(signal) = held {
        let _ = ptrace::detach(pid, signal);
    }
    registers.map(arch::in_order)
}

/// Waits until a task has stopped, and says with which signal for it.
fn stopped(pid: Pid) -> Option<Option<Signal>> {
    let until = Instant::now() + STOP_TIME;
    // Not its end, which the job is to hear of.
    let how = WaitPidFlag::WNOHANG | WaitPidFlag::__WALL | WaitPidFlag::WSTOPPED;
    loop {
        match waitid(Id::Pid(pid), how) {
            Ok(WaitStatus::StillAlive) if Instant::now() < until => {
                std::thread::sleep(Duration::from_micros(50));
            }
            Ok(WaitStatus::PtraceEvent(..)) => return Some(None),
            Ok(WaitStatus::Stopped(_, signal)) => return Some(Some(signal)),
            _ => return None,
        }
    }
}

/// Lets go a task that was to show its registers and has stopped too late for that; `status` is what `waitpid` said.
pub fn let_go(pid: i32, status: i32) {
    let signal = match status >> 16 {
        0 => Signal::try_from(libc::WSTOPSIG(status)).ok(),
        _ => None,
    };
    // It may have ended meanwhile.
    let _ = ptrace::detach(Pid::from_raw(pid), signal);
}
