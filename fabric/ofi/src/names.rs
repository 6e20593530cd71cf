//! Names of endpoints whose memory is a file below `/dev/shm`, and the files that dead processes left there.
//!
//! A name is `cohort-NAMESPACE-PROCESS-RANDOM`. libfabric appends to it and removes the file when the endpoint
//! closes; a process that was killed leaves it behind. The file's process is surely dead if none has its number in the
//! namespace of process ids that the name says: a namespace's own number is free only when all its processes are gone.

use crate::random;
use std::ffi::CString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const PREFIX: &str = "cohort";

/// Where libfabric's files are.
const FOLDER: &str = "/dev/shm";

/// The number of this process's namespace of process ids; 0 if it cannot be found out.
fn namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |file| file.ino())
}

/// A name that no other endpoint ever had.
///
/// # Errors
/// libfabric's negative number: there are no random numbers now.
pub fn fresh() -> Result<CString, i32> {
    let (namespace, process, number) = (namespace(), std::process::id(), random()?);
    let name = format!("{PREFIX}-{namespace}-{process}-{number:016x}");
    CString::new(name).map_err(|_| -libc::EINVAL)
}

/// Removes what dead processes of this user's left. Files that cannot be removed stay.
pub fn remove_stale() {
    let namespace = namespace();
    if namespace != 0 {
        remove_stale_in(Path::new(FOLDER), namespace);
    }
}

fn remove_stale_in(folder: &Path, namespace: u64) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let process = entry.file_name().to_str().and_then(|name| maker(name, namespace));
        if process.is_some_and(is_gone) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The process that a file was made by, if the name says that it belongs to this namespace.
fn maker(name: &str, namespace: u64) -> Option<i32> {
    let mut parts = name.split('-');
    let ours = parts.next() == Some(PREFIX) && parts.next()?.parse() == Ok(namespace);
    let process = parts.next()?.parse().ok()?;
    (ours && process > 0 && parts.next().is_some()).then_some(process)
}

/// Whether no process has this number. One of another user counts as there.
fn is_gone(process: i32) -> bool {
    // SAFETY: signal 0 only asks.
    let result = unsafe { libc::kill(process, 0) };
    result != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_say_their_maker() {
        let names = [fresh(), fresh()].map(|name| name.unwrap().into_string().unwrap());
        assert_ne!(names[0], names[1]);
        let own = i32::try_from(std::process::id()).unwrap();
        let file = format!("{}:0:0", names[0]);
        assert_eq!(maker(&file, namespace()), Some(own));
        assert_eq!(maker(&file, namespace() + 1), None);
        for other in ["cohort", "cohort-1", "1:0:0:0", "cohort-x-1-0", "cohort-1--1-0"] {
            assert_eq!(maker(other, 1), None, "{other}");
        }
    }

    #[test]
    fn only_files_of_dead_processes_are_removed() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let dead = child.id();
        child.wait().unwrap();
        let folder = std::env::temp_dir().join(format!("cohort-names-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let alive = std::process::id();
        let kept = [format!("cohort-7-{alive}-0:0:0"), format!("cohort-8-{dead}-0:0:0"), format!("{dead}:0:0:0")];
        let stale = format!("cohort-7-{dead}-0:0:0");
        for name in kept.iter().chain([&stale]) {
            std::fs::write(folder.join(name), "").unwrap();
        }
        remove_stale_in(&folder, 7);
        assert!(kept.iter().all(|name| folder.join(name).exists()));
        assert!(!folder.join(&stale).exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
