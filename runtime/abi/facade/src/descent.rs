//! Whether `pip-exec` has started this process, though no variable says so: `env -i` and `sudo` empty the environment.

use cohort_base::text::FixedText;
use core::ffi::CStr;
use rustix::fs::{CWD, Mode, OFlags, open, readlinkat_raw};
use rustix::io::read;

/// How many generations are looked at.
const GENERATIONS: usize = 64;

/// Name of the launcher's file.
const LAUNCHER: &[u8] = b"/pip-exec";

/// Whether an ancestor of this process runs `pip-exec`, as far as this user may know.
pub fn leads_to_launcher() -> bool {
    let mut process = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    for _ in 0..GENERATIONS {
        if process <= 1 {
            return false;
        }
        if is_launcher(process) {
            return true;
        }
        process = parent_of(process).unwrap_or(0);
    }
    false
}

fn is_launcher(process: i32) -> bool {
    let mut target = [0; 4096];
    let length = file_of(process, "exe", |path| readlinkat_raw(CWD, path, &mut target[..]));
    length.is_some_and(|length| target[..length].ends_with(LAUNCHER))
}

fn parent_of(process: i32) -> Option<i32> {
    let mut text = [0; 512];
    let length = file_of(process, "stat", |path| {
        let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        read(file, &mut text)
    })?;
    // The name, in parentheses, may hold anything; after it come the state and the parent.
    let text = &text[..length];
    let end = text.iter().rposition(|&byte| byte == b')')?;
    let rest = core::str::from_utf8(&text[end + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// What `look` sees in a file of a process.
fn file_of<T>(process: i32, name: &str, look: impl FnOnce(&CStr) -> rustix::io::Result<T>) -> Option<T> {
    let path = FixedText::<32>::of(format_args!("/proc/{process}/{name}\0"));
    let path = CStr::from_bytes_with_nul(path.as_str().as_bytes()).ok()?;
    look(path).ok()
}
