//! Whether the program of an R uses MPI.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What a program says that uses MPI through the package of this name.
const RMPI: &[u8] = b"Rmpi";

/// Longest program that is looked through.
const PROGRAM_MAX: u64 = 1 << 20;

/// Whether these are the arguments of an R, working in `directory`, whose program names Rmpi: the file of `--file=` or
/// `-f`, or the text of `-e`.
pub fn names_rmpi(arguments: &[OsString], directory: &Path) -> bool {
    let names = |text: &[u8]| text.windows(RMPI.len()).any(|window| window == RMPI);
    let file_names = |file: &[u8]| {
        let file = directory.join(std::ffi::OsStr::from_bytes(file));
        let is_short = fs::metadata(&file).is_ok_and(|file| file.is_file() && file.len() <= PROGRAM_MAX);
        is_short && fs::read(&file).is_ok_and(|text| names(&text))
    };
    let mut words = arguments.iter().map(|word| word.as_bytes());
    let is_r = words.next().is_some_and(|name| name.rsplit(|&byte| byte == b'/').next() == Some(b"R"));
    while let Some(word) = words.next().filter(|&word| is_r && word != b"--args") {
        let found = match word {
            b"-e" => words.next().is_some_and(names),
            b"-f" => words.next().is_some_and(file_names),
            _ => word.strip_prefix(b"--file=").is_some_and(file_names),
        };
        if found {
            return true;
        }
    }
    false
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
        let names = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            names_rmpi(&words, &folder)
        };
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
        fs::remove_dir_all(folder).expect("its own folder");
    }
}
