//! Limits of the system that a job must not meet halfway.

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use pip_ground::{Refusal, say};
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

/// What `pip-exec` itself needs, in bytes.
const OWN_STACK: u64 = 128 << 10;

/// Whether the stack is too short for this process, which is said. Call it before much of that is used.
pub fn lacks_own_stack() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid place for the result.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) } == 0;
    let lacks = known && limit.rlim_cur < OWN_STACK;
    if lacks {
        let words = b"pip-exec: the limit of the stack is too low for pip-exec itself, which needs 128 KiB: ulimit -s \
            8192 is usual (COHORT_STACKSIZE sets the stack of ranks)\n";
        // SAFETY: a text that stays; the call does not need much of a stack.
        unsafe { libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len()) };
    }
    lacks
}

/// Map entries of one shared object that was not looked at: four or five segments and its zero-filled data.
pub const PER_OBJECT: usize = 5;

/// Map entries that a rank takes besides objects when it starts: stack, guard, thread-local block, the handlers'
/// stack and its guard.
pub const PER_START: usize = 5;

/// Map entries that a rank may come to take: heap, locales, stacks of threads.
const PER_LIFE: usize = 9;

/// Map entries that a rank needs which loads `objects` shared objects (program and
/// dynamic linker included).
#[must_use]
pub fn map_entries(objects: usize) -> usize {
    objects * PER_OBJECT + PER_START + PER_LIFE
}

/// Most map entries of an address space.
#[must_use]
pub fn max_map_count() -> usize {
    let limit = fs::read_to_string("/proc/sys/vm/max_map_count").ok();
    let limit = limit.and_then(|text| text.trim().parse().ok());
    limit.unwrap_or(65530)
}

/// Map entries that this address space has. Takes no memory for their text, as there may be no entry left for that.
fn used_map_entries() -> usize {
    let count = || {
        let (mut maps, mut piece, mut lines) = (fs::File::open("/proc/self/maps")?, [0; 16 << 10], 0);
        loop {
            match maps.read(&mut piece)? {
                0 => return Ok::<_, io::Error>(lines),
                read => lines += piece[..read].iter().filter(|&&byte| byte == b'\n').count(),
            }
        }
    };
    count().unwrap_or(100)
}

/// Map entries that this address space may have beside those that it has.
pub fn map_entries_left() -> usize {
    max_map_count().saturating_sub(used_map_entries())
}

/// Refuses a job whose ranks need more map entries to start than the address space may have, and says when their
/// heaps may not find room.
///
/// # Errors
/// The message names the setting.
pub fn check_map_count(ranks: usize, needed: usize) -> Result<(), Refusal> {
    let (limit, used) = (max_map_count(), used_map_entries());
    let likely = needed + ranks * PER_LIFE;
    let raise = (likely * 5 / 4).next_multiple_of(1000);
    if used + needed > limit {
        return Err(Refusal::new(format!(
            "{ranks} ranks need about {needed} memory map entries, but vm.max_map_count is {limit}; \
             run fewer ranks, or raise it: sudo sysctl vm.max_map_count={raise}"
        )));
    }
    if used + likely > limit {
        say(format_args!(
            "{ranks} ranks need {needed} of {limit} memory map entries (vm.max_map_count) to start; if their heaps or \
             threads find no room, raise it: sudo sysctl vm.max_map_count={raise}"
        ));
    }
    Ok(())
}

/// What the kernel adds to this process's score when memory has run out. The ranks share it with their address space.
#[must_use]
pub fn oom_score() -> Option<i32> {
    fs::read_to_string("/proc/self/oom_score_adj").ok()?.trim().parse().ok()
}

/// So few map entries are none: what makes one more may need two.
const FEW: usize = 8;

/// What to say of a job that fails while no map entry is left. Whatever needs memory fails then, in any rank, and few
/// programs say why.
#[must_use]
pub fn full_maps() -> Option<String> {
    let (limit, used) = (max_map_count(), used_map_entries());
    (used + FEW >= limit).then(|| {
        format!(
            "the ranks have {used} memory map entries together, as they share an address space, and vm.max_map_count \
             is {limit}: memory and threads may have been refused (ENOMEM, EAGAIN); pip-exec --isolate gives each one \
             of its own, or raise it: sudo sysctl vm.max_map_count={}",
            4 * limit
        )
    })
}

/// A limit of one process, which here is one of all ranks of the node together.
struct Shared {
    resource: Resource,
    name: &'static str,
    option: &'static str,
    /// Bytes for each rank below which it is worth a word.
    scarce: u64,
}

const SHARED: [Shared; 2] = [
    Shared { resource: Resource::RLIMIT_AS, name: "RLIMIT_AS", option: "ulimit -v", scarce: 1 << 30 },
    Shared { resource: Resource::RLIMIT_DATA, name: "RLIMIT_DATA", option: "ulimit -d", scarce: 256 << 20 },
];

/// Says which limits leave little memory to each of so many ranks in one address space.
pub fn warn_of_shared_limits(ranks: usize) {
    for shared in SHARED {
        if let Ok((soft, _)) = getrlimit(shared.resource)
            && let Some(warning) = shared.warning(soft, ranks as u64)
        {
            say(format_args!("{warning}"));
        }
    }
}

/// Bytes in words.
fn size(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{} KiB", bytes >> 10),
        mib => format!("{mib} MiB"),
    }
}

/// What to look at when a thread or a task was refused: nothing, for other reasons than memory and limits.
///
/// The C library says `EAGAIN` also when there is no memory for a thread's stack.
#[must_use]
pub fn way_out_of(refused: &std::io::Error) -> String {
    let what = match refused.kind() {
        std::io::ErrorKind::WouldBlock if has_room_for_a_stack() => {
            return ": a limit of processes is reached (ulimit -u, docker run --pids-limit)".to_owned();
        }
        std::io::ErrorKind::WouldBlock => "the stack of a thread",
        std::io::ErrorKind::OutOfMemory => "it",
        _ => return String::new(),
    };
    let limits = SHARED.iter().filter_map(|shared| {
        let (soft, _) = getrlimit(shared.resource).ok()?;
        let Shared { name, option, .. } = shared;
        (soft != RLIM_INFINITY).then(|| format!("{option} ({name}) is {}", size(soft)))
    });
    let limits: Vec<String> = limits.collect();
    match limits.is_empty() {
        true => format!(": there is no memory for {what}"),
        false => format!(": there is no memory for {what}, since {}", limits.join(" and ")),
    }
}

/// Whether the stack of another thread of ours can be mapped.
fn has_room_for_a_stack() -> bool {
    const STACK: usize = (2 << 20) + 4096;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
    // SAFETY: a new mapping at an address of the kernel's choice, which nobody has when it goes.
    unsafe {
        let place = libc::mmap(std::ptr::null_mut(), STACK, protection, flags, -1, 0);
        place != libc::MAP_FAILED && libc::munmap(place, STACK) == 0
    }
}

impl Shared {
    fn warning(&self, limit: u64, ranks: u64) -> Option<String> {
        if ranks < 2 || limit == RLIM_INFINITY || limit / ranks >= self.scarce {
            return None;
        }
        let Self { name, option, .. } = self;
        Some(format!(
            "{option} ({name}) is {} for all {ranks} ranks of this node together, which share an address space: \
             {} for each; if it was meant for one rank, raise it {ranks} times, or run with --isolate",
            size(limit),
            size(limit / ranks),
        ))
    }
}

/// Refuses a job with more ranks than the user, or the system, may have tasks.
///
/// # Errors
/// The message names the limit.
pub fn check_task_count(ranks: usize) -> Result<(), Refusal> {
    for (setting, Tasks { limit, running }) in system_tasks() {
        if running + ranks > limit {
            return Err(Refusal::new(format!(
                "{ranks} ranks are more tasks than kernel.{setting} ({limit}, of which {running} exist) allows; run \
                 fewer ranks, or raise it: sudo sysctl kernel.{setting}={}",
                (running + ranks).saturating_mul(5) / 4
            )));
        }
    }
    match user_tasks() {
        Some(Tasks { limit, running }) if running + ranks > limit => Err(Refusal::new(format!(
            "{ranks} ranks are more tasks than the limit RLIMIT_NPROC ({limit}, of which {running} \
             exist) allows; run fewer ranks, or raise it with ulimit -u"
        ))),
        _ => Ok(()),
    }
}

/// Tasks that the user, and the system, may have beside those that exist.
pub fn tasks_left() -> usize {
    let system = system_tasks().map(|(_, tasks)| tasks);
    let left = system.chain(user_tasks()).map(|tasks| tasks.limit.saturating_sub(tasks.running));
    left.min().unwrap_or(usize::MAX)
}

/// How many tasks there are, and may be.
struct Tasks {
    limit: usize,
    running: usize,
}

/// Those of all users, by the settings that limit them.
fn system_tasks() -> impl Iterator<Item = (&'static str, Tasks)> {
    ["pid_max", "threads-max"].into_iter().filter_map(|setting| {
        let limit = fs::read_to_string(format!("/proc/sys/kernel/{setting}")).ok()?;
        Some((setting, Tasks { limit: limit.trim().parse().ok()?, running: tasks_of_all() }))
    })
}

/// Those of the user, if they are limited.
fn user_tasks() -> Option<Tasks> {
    let user = nix::unistd::geteuid();
    let (soft, _) = getrlimit(Resource::RLIMIT_NPROC).ok()?;
    let is_limited = soft != RLIM_INFINITY && !user.is_root();
    is_limited.then(|| Tasks { limit: soft as usize, running: tasks_of(user.as_raw()) as usize })
}

/// Tasks of all users; 0 if the system does not tell.
fn tasks_of_all() -> usize {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let tasks = load.split_whitespace().nth(3);
    let tasks = tasks.and_then(|counts| counts.split_once('/'));
    tasks.and_then(|(_, all)| all.parse().ok()).unwrap_or(0)
}

/// Tasks (threads of all processes) of a user.
fn tasks_of(user: u32) -> u64 {
    let tasks = |entry: fs::DirEntry| {
        let pid = entry.file_name();
        let is_process = pid.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit);
        if !is_process || entry.metadata().ok()?.uid() != user {
            return None;
        }
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("Threads:")?.trim().parse::<u64>().ok())
    };
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(tasks).sum()
}

/// Raises the soft limit of open files to at least `needed` and returns the former
/// limits if they were changed, for the ranks to get back.
///
/// # Errors
/// The hard limit is lower.
pub fn raise_open_files(needed: u64) -> Result<Option<(u64, u64)>, Refusal> {
    let refuse = |error: nix::Error| Refusal::new(format!("cannot read or set RLIMIT_NOFILE: {error}"));
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(refuse)?;
    if soft >= needed {
        return Ok(None);
    }
    if hard < needed {
        return Err(Refusal::new(format!(
            "the ranks' output needs {needed} open files for so many ranks, but the limit is {hard} \
             (ulimit -n)"
        )));
    }
    setrlimit(Resource::RLIMIT_NOFILE, needed, hard).map_err(refuse)?;
    Ok(Some((soft, hard)))
}

/// Whether so many files may be open as it is.
pub fn allows_open_files(needed: u64) -> bool {
    getrlimit(Resource::RLIMIT_NOFILE).is_ok_and(|(soft, _)| soft >= needed)
}

/// On kernels before 5.16 a core dump of one rank kills every task of the address space,
/// pip-exec too, which could then not say what happened. Forbids dumps there and says so.
pub fn avoid_core_dumps() {
    let Ok(system) = nix::sys::utsname::uname() else {
        return;
    };
    if !dumps_kill_all(&system.release().to_string_lossy()) {
        return;
    }
    // SAFETY: changes one attribute of this address space, and no memory.
    let result = unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
    let wanted = getrlimit(Resource::RLIMIT_CORE).is_ok_and(|(soft, _)| soft > 0);
    if result == 0 && wanted {
        say(format_args!("no core dumps: before Linux 5.16 the dump of one rank would kill all at once"));
    }
}

/// Whether the core dump of one task kills all that share its address space.
pub fn dumps_kill_all(release: &str) -> bool {
    let mut numbers = release.split(['.', '-', '+']).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < (5, 16),
        _ => false,
    }
}

/// Whether address space is limited (`ulimit -v`, `ulimit -d`), so that none is to be set aside for what may never
/// come.
pub fn is_address_space_short() -> bool {
    let is_limited = |resource| getrlimit(resource).is_ok_and(|(soft, _)| soft != RLIM_INFINITY);
    is_limited(Resource::RLIMIT_AS) || is_limited(Resource::RLIMIT_DATA)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_whose_dumps_kill_all() {
        assert!(dumps_kill_all("5.15.0-91-generic"));
        assert!(dumps_kill_all("4.18.0"));
        assert!(!dumps_kill_all("5.16.0"));
        assert!(!dumps_kill_all("6.1-rc1"));
        assert!(!dumps_kill_all("unknown"));
    }

    #[test]
    fn too_many_map_entries_are_refused_with_the_way_out() {
        check_map_count(4, 4 * map_entries(10)).expect("few");
        let message = check_map_count(1 << 20, 1 << 30).unwrap_err().to_string();
        assert!(message.contains("sysctl vm.max_map_count="), "{message}");
    }

    #[test]
    fn limits_that_ranks_share_are_named_with_each_ones_part() {
        let [space, data] = SHARED;
        let warning = space.warning(4 << 30, 16).expect("little");
        assert!(warning.starts_with("ulimit -v (RLIMIT_AS) is 4096 MiB for all 16 ranks"));
        assert!(warning.contains(": 256 MiB for each; if it was meant for one rank, raise it 16"));
        let warning = SHARED[1].warning(1000 << 10, 2).expect("scarce");
        assert!(warning.starts_with("ulimit -d (RLIMIT_DATA) is 1000 KiB for all 2 ranks"));
        assert!(warning.contains(": 500 KiB for each;"));
        assert_eq!(space.warning(16 << 30, 16), None);
        assert_eq!(space.warning(RLIM_INFINITY, 16), None);
        assert_eq!(data.warning(1, 1), None);
        assert!(data.warning((512 << 20) - 1, 2).is_some());
    }

    #[test]
    fn this_process_is_counted() {
        assert!(tasks_of(nix::unistd::geteuid().as_raw()) >= 1);
        assert!(tasks_of_all() >= 1);
    }
}
