//! Names that processes of different jobs publish for each other (`MPI_Publish_name`), without a daemon: files in a
//! folder of the user's.
//!
//! A file is named by the published name and the job, and holds the port. Its launcher has it locked as long as it
//! runs, so a file that nobody has locked is left over, and whoever finds it removes it. It is locked and written under
//! another name before it gets its own, and loses that before it is unlocked, so nobody finds one that is not locked
//! while its job runs. If several jobs have published a name, the last one counts.

use super::contact::Place;
use nix::fcntl::{Flock, FlockArg};
use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Longest part of a file's name that comes from the published one.
const STEM_MAX: usize = 120;

/// Beginning of the name of a file that is not published yet; no published one begins so.
const NEW: &str = "%new.";

/// When a file was written: seconds and nanoseconds.
type Since = (i64, i64);

/// What this job has published.
#[derive(Debug)]
pub struct Names {
    folder: PathBuf,
    job: u64,
    own: HashMap<String, Own>,
}

/// A name of this job.
#[derive(Debug)]
struct Own {
    _file: Flock<File>,
    /// The rank of this node that has published it.
    owner: u32,
}

impl Names {
    /// None yet, in this folder.
    #[must_use]
    pub fn new(folder: PathBuf, place: Place) -> Self {
        Self { folder, job: place.job, own: HashMap::new() }
    }

    /// The folder if the user names none (`COHORT_CONNECT_NAMES`).
    #[must_use]
    pub fn usual_folder() -> PathBuf {
        PathBuf::from(format!("/tmp/cohort-names-{}", nix::unistd::geteuid()))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{}.{:016x}", stem(name), self.job))
    }

    /// Publishes a port for a rank of this node.
    ///
    /// # Errors
    /// The folder cannot be used, in words.
    pub fn publish(&mut self, name: &str, port: &str, owner: u32) -> Result<(), String> {
        own_folder(&self.folder)?;
        let path = self.path(name);
        let is_taken = |file| Flock::lock(file, FlockArg::LockSharedNonblock).is_err();
        if File::open(&path).is_ok_and(is_taken) {
            return Err(format!("this job has published the name already ({})", path.display()));
        }
        let begun = self.folder.join(format!("{NEW}{:016x}.{}", self.job, std::process::id()));
        let wrong = |error: &dyn std::fmt::Display| format!("{} cannot be written: {error}", begun.display());
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&begun);
        let file = file.map_err(|error| wrong(&error))?;
        let mut file = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| wrong(&error))?;
        let text = format!("{name}\0{port}");
        let written = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&begun, &path));
        if let Err(error) = written {
            let _ = fs::remove_file(&begun);
            return Err(wrong(&error));
        }
        self.own.insert(name.to_owned(), Own { _file: file, owner });
        Ok(())
    }

    /// Takes a name back.
    pub fn unpublish(&mut self, name: &str) {
        if self.own.contains_key(name) {
            let _ = fs::remove_file(self.path(name));
            // Unlocked when nobody finds it any more.
            self.own.remove(name);
        }
    }

    /// Takes back what a rank of this node has published, which has failed.
    pub fn forget(&mut self, rank: u32) {
        let left: Vec<String> =
            self.own.iter().filter(|(_, own)| own.owner == rank).map(|(name, _)| name.clone()).collect();
        left.iter().for_each(|name| self.unpublish(name));
    }

    /// The port that another job has published.
    ///
    /// # Errors
    /// Nobody has.
    pub fn find(&self, name: &str) -> Result<String, String> {
        let begin = format!("{}.", stem(name));
        let mut found: Option<(Since, String)> = None;
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let is_it = entry.file_name().to_str().is_some_and(|it| it.starts_with(&begin));
            if !is_it || !is_own(&entry.path()) {
                continue;
            }
            let Some((since, text)) = read(&entry.path()) else {
                continue;
            };
            if let Some((said, port)) = text.split_once('\0')
                && said == name
                && found.as_ref().is_none_or(|(last, _)| *last <= since)
            {
                found = Some((since, port.to_owned()));
            }
        }
        let folder = self.folder.display();
        found.map(|(_, port)| port).ok_or_else(|| {
            format!("nobody has published \"{name}\" in this job, nor another job of this user on this host ({folder})")
        })
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        let names: Vec<String> = self.own.keys().cloned().collect();
        names.iter().for_each(|name| self.unpublish(name));
    }
}

/// What a file says, and since when; none if it is left over, which is removed.
fn read(path: &Path) -> Option<(Since, String)> {
    let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path).ok()?;
    let since = file.metadata().map(|facts| (facts.mtime(), facts.mtime_nsec())).ok()?;
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    match Flock::lock(file, FlockArg::LockSharedNonblock) {
        Ok(unlocked) => {
            // It may have lost its name since, and another one have got it. Of a job that is over none comes.
            let of_file = unlocked.metadata().map(|facts| (facts.dev(), facts.ino()));
            let of_path = fs::symlink_metadata(path).map(|facts| (facts.dev(), facts.ino()));
            if of_file.is_ok_and(|it| of_path.is_ok_and(|there| it == there)) {
                let _ = fs::remove_file(path);
            }
            None
        }
        Err(_) => Some((since, text)),
    }
}

/// The folder, of which nobody else may read or write anything.
fn own_folder(folder: &Path) -> Result<(), String> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| format!("the folder for published names cannot be made: {}: {error}", folder.display()))?;
    match is_own(folder) {
        true => Ok(()),
        false => Err(format!(
            "the folder for published names, {}, belongs to somebody else; name another one with COHORT_CONNECT_NAMES",
            folder.display()
        )),
    }
}

fn is_own(path: &Path) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|facts| !facts.file_type().is_symlink() && facts.uid() == nix::unistd::geteuid().as_raw())
}

/// A published name as the beginning of a file's name: letters that may be in one, and two digits for each other byte.
/// What is too long is cut, and tells itself from others by a sum of all its bytes.
fn stem(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let letter = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") };
    let mut stem: String = name.bytes().map(letter).collect();
    if stem.len() > STEM_MAX {
        let mut sum = DefaultHasher::new();
        name.hash(&mut sum);
        stem.truncate(STEM_MAX);
        stem.push_str(&format!("%{:016x}", sum.finish()));
    }
    stem
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn folder(of: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("cohort-names-test-{of}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn what_one_job_publishes_another_finds_until_it_ends() {
        let folder = folder("finds");
        let job = |job| Names::new(folder.clone(), Place { job, node: 0 });
        let (mut one, two) = (job(1), job(2));
        assert!(two.find("ocean/0").is_err());
        one.publish("ocean/0", "port 1", 0).unwrap();
        assert_eq!(two.find("ocean/0").unwrap(), "port 1");
        assert!(two.find("ocean%2f0").is_err() && two.find("ocean").is_err());
        let mut three = job(3);
        three.publish("ocean/0", "port 3", 0).unwrap();
        let found = two.find("ocean/0").unwrap();
        assert!(found == "port 3" || found == "port 1", "both may be of one moment");
        three.unpublish("ocean/0");
        assert_eq!(two.find("ocean/0").unwrap(), "port 1");
        one.publish("sea", "port 2", 1).unwrap();
        one.forget(1);
        assert!(two.find("sea").is_err() && two.find("ocean/0").is_ok());
        drop(one);
        assert!(two.find("ocean/0").unwrap_err().contains("ocean/0"));
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn long_names_are_told_apart() {
        let folder = folder("long");
        let mut names = Names::new(folder.clone(), Place { job: 1, node: 0 });
        let long = |end: &str| format!("{}{end}", "/".repeat(100));
        names.publish(&long("a"), "port 1", 0).unwrap();
        names.publish(&long("b"), "port 2", 0).unwrap();
        let found = ["a", "b"].map(|end| names.find(&long(end)).unwrap());
        assert_eq!(found, ["port 1", "port 2"]);
        assert!(names.publish(&long("a"), "port 3", 0).unwrap_err().contains("already"));
        drop(names);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn who_looks_all_the_time_hinders_nobody() {
        let folder = folder("looks");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let names = Names::new(folder.clone(), Place { job: 2, node: 0 });
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let _ = names.find("ocean");
                }
            });
            let mut own = Names::new(folder.clone(), Place { job: 1, node: 0 });
            for round in 0..2000 {
                let port = format!("port {round}");
                own.publish("ocean", &port, 0).unwrap();
                assert_eq!(own.find("ocean").unwrap(), port);
                own.unpublish("ocean");
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn what_a_killed_job_has_left_is_removed() {
        let folder = folder("left");
        own_folder(&folder).unwrap();
        let names = Names::new(folder.clone(), Place { job: 1, node: 0 });
        let left = Names::new(folder.clone(), Place { job: 9, node: 0 }).path("name");
        fs::write(&left, "name\0port").unwrap();
        assert!(names.find("name").is_err() && !left.exists());
        let _ = fs::remove_dir_all(&folder);
    }
}
