//! Whether the program of an R uses MPI.

use nix::fcntl::OFlag;
use pip_ground::Environment;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What a program says that uses MPI through the package of this name.
const RMPI: &[u8] = b"Rmpi";

/// Variables that name what an R does first, and the options with which it does not.
const PROFILES: [(&str, &str); 2] = [("R_PROFILE", "--no-site-file"), ("R_PROFILE_USER", "--no-init-file")];

/// Longest program that is looked through.
const PROGRAM_MAX: u64 = 1 << 20;

/// Whether these are the arguments of an R, working in `directory`, whose program names Rmpi: the file of `--file=` or
/// `-f`, the text of `-e`, or without these its standard input, if that is a file or in a pipe already. Or what it does
/// first, by its environment, names Rmpi, as the profile of snow's script `RMPISNOW` does.
pub fn names_rmpi(arguments: &[OsString], directory: &Path, input: &OwnedFd, environment: &Environment) -> bool {
    let names = |text: &[u8]| text.windows(RMPI.len()).any(|window| window == RMPI);
    let file_names = |file: &[u8]| {
        let file = directory.join(OsStr::from_bytes(file));
        let is_short = fs::metadata(&file).is_ok_and(|file| file.is_file() && file.len() <= PROGRAM_MAX);
        is_short && fs::read(&file).is_ok_and(|text| names(&text))
    };
    let mut words = arguments.iter().map(|word| word.as_bytes());
    let is_r = words.next().is_some_and(|name| name.rsplit(|&byte| byte == b'/').next() == Some(b"R"));
    let has_profile = |(variable, option): &(&str, &str)| {
        let is_read = !arguments.iter().any(|word| word == option || word == "--vanilla");
        let file = environment.get(OsStr::new(variable));
        is_read && file.is_some_and(|file| file_names(file.as_bytes()))
    };
    if is_r && PROFILES.iter().any(has_profile) {
        return true;
    }
    let mut is_from_input = is_r;
    while let Some(word) = words.next().filter(|&word| is_r && word != b"--args") {
        let found = match word {
            b"-e" => words.next().map(names),
            b"-f" => words.next().map(file_names),
            _ => word.strip_prefix(b"--file=").map(file_names),
        };
        is_from_input &= found.is_none();
        if found == Some(true) {
            return true;
        }
    }
    is_from_input && names(&seen(input))
}

/// What whoever reads `input` will read first, without reading it: of a file, or of what is in a pipe.
fn seen(input: &OwnedFd) -> Vec<u8> {
    let mut text = vec![0; PROGRAM_MAX as usize];
    let number = input.as_raw_fd();
    let place = text.as_mut_ptr().cast();
    // SAFETY: asks where the descriptor is in its file.
    let at = unsafe { libc::lseek(number, 0, libc::SEEK_CUR) };
    let length = match at {
        // SAFETY: room for so many bytes.
        0.. => unsafe { libc::pread(number, place, text.len(), at) },
        // SAFETY: as above.
        _ => copied(number).map_or(-1, |copy| unsafe { libc::read(copy.as_raw_fd(), place, text.len()) }),
    };
    text.truncate(usize::try_from(length).unwrap_or(0));
    text
}

/// A pipe with a copy of what is in the pipe `number`; `None` if that is no pipe, or empty.
fn copied(number: i32) -> Option<OwnedFd> {
    let (copy, sink) = nix::unistd::pipe2(OFlag::O_CLOEXEC).ok()?;
    // SAFETY: both are open; what is in the first stays there.
    let length = unsafe { libc::tee(number, sink.as_raw_fd(), PROGRAM_MAX as usize, libc::SPLICE_F_NONBLOCK) };
    (length > 0).then_some(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_name_rmpi() {
        let folder = std::env::temp_dir().join(format!("cohort-rmpi-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        for (file, text) in [("with.R", "library(Rmpi)"), ("without.R", "1 + 1")] {
            fs::write(folder.join(file), text).expect("room");
        }
        let read = |line: &str, input: &OwnedFd| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            names_rmpi(&words, &folder, input, &Environment::new())
        };
        let nothing = fs::File::open("/dev/null").expect("it is there").into();
        let names = |line: &str| read(line, &nothing);
        for line in [
            "/usr/lib/R/bin/exec/R --no-echo --no-restore --file=with.R --args 1",
            "R -f with.R",
            "R -e 1 -e library(Rmpi)",
        ] {
            assert!(names(line), "{line}");
        }
        for line in ["R", "R --file=without.R", "R -f without.R --args -f with.R", "python -f with.R", "R with.R"] {
            assert!(!names(line), "{line}");
        }
        let file = |name| fs::File::open(folder.join(name)).expect("just written").into();
        assert!(read("R --vanilla", &file("with.R")) && !read("R --vanilla", &file("without.R")));
        assert!(!read("R -e 1", &file("with.R")));
        let (input, sink) = nix::unistd::pipe2(OFlag::O_CLOEXEC).expect("descriptors");
        assert!(!read("R", &input));
        nix::unistd::write(&sink, b"library(Rmpi)").expect("room");
        // It is there still.
        assert!(read("R", &input) && read("R", &input));
        let profile: Environment = [("R_PROFILE".into(), folder.join("with.R").into())].into();
        let begins = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            names_rmpi(&words, &folder, &nothing, &profile)
        };
        assert!(begins("R --no-save -f without.R") && !begins("R --vanilla -f without.R") && !begins("sh R"));
        fs::remove_dir_all(folder).expect("its own folder");
    }
}
