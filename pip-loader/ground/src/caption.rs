//! What a page, a file or a picture of a job says of the job itself: program, command, hosts, and when it was.

use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// Hosts that are named in a line of words; the rest are counted.
const HOSTS: usize = 8;

/// What a job was. All of it may be missing from files that others have written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Caption {
    /// The names of its programs.
    pub program: String,
    /// How it was started, as a shell would have to read it.
    pub command: String,
    /// When its ranks were started, on the clock of the wall of the node that says so, with the offset of its zone.
    pub started: String,
    /// Its ranks.
    pub ranks: usize,
    /// The names of its nodes, in their order, and the ranks of each.
    pub hosts: Vec<(String, usize)>,
    /// What ran it.
    pub version: String,
}

impl Caption {
    /// Of the job that this process belongs to. `programs` are their names; `since` is when it began,
    /// in seconds since 1970; `hosts` has the nodes.
    #[must_use]
    pub fn of_this_job(programs: &[&OsStr], since: u64, hosts: Vec<(String, usize)>) -> Self {
        let mut names: Vec<String> = Vec::new();
        for name in programs.iter().map(|name| name.to_string_lossy()) {
            if !names.iter().any(|known| **known == *name) {
                names.push(name.into_owned());
            }
        }
        let words: Vec<String> = std::env::args_os().map(|word| quoted(&word)).collect();
        Self {
            program: names.join(", "),
            command: words.join(" "),
            started: local_time(since),
            ranks: hosts.iter().map(|host| host.1).sum(),
            hosts,
            version: concat!("Cohort ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }

    /// Where and when it was, and by what, in a line.
    #[must_use]
    pub fn place_and_time(&self) -> String {
        let named = self.hosts.iter().take(HOSTS);
        let mut hosts: Vec<String> = match self.hosts.len() {
            1 => named.map(|(host, _)| host.clone()).collect(),
            _ => named.map(|(host, ranks)| format!("{host} ({ranks})")).collect(),
        };
        if self.hosts.len() > HOSTS {
            hosts.push(format!("{} more", self.hosts.len() - HOSTS));
        }
        let on = match self.hosts.len() {
            0 => String::new(),
            1 => format!("on {}", hosts[0]),
            count => format!("on {count} nodes: {}", hosts.join(", ")),
        };
        let said = [&on, &self.started, &self.version];
        let said: Vec<&str> = said.iter().map(|it| it.as_str()).collect();
        said.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join("; ")
    }
}

/// A word as a shell would have to read it, without a letter that is not printed.
pub fn quoted(word: &OsStr) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=:,./+@%[]".contains(letter);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(plain) => text.to_owned(),
        Some(text) if !text.chars().any(char::is_control) => {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
        _ => {
            let mut text = "$'".to_owned();
            for chunk in word.as_bytes().utf8_chunks() {
                for letter in chunk.valid().chars() {
                    match letter {
                        '\'' | '\\' => text.extend(['\\', letter]),
                        '\n' => text.push_str("\\n"),
                        '\t' => text.push_str("\\t"),
                        letter if letter.is_control() => {
                            add_bytes(&mut text, letter.encode_utf8(&mut [0; 4]).as_bytes());
                        }
                        letter => text.push(letter),
                    }
                }
                add_bytes(&mut text, chunk.invalid());
            }
            text + "'"
        }
    }
}

/// In octal with three digits, so that a digit that follows is none of them.
fn add_bytes(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "\\{byte:03o}");
    }
}

/// A time since 1970 as the clock on the wall has it, with the offset of the zone.
fn local_time(seconds: u64) -> String {
    let seconds = seconds as libc::time_t;
    // SAFETY: valid places; zeros are a valid `tm`.
    let time = unsafe {
        let mut time: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const seconds, &raw mut time);
        time
    };
    let minutes = time.tm_gmtoff / 60;
    let (sign, minutes) = (if minutes < 0 { '-' } else { '+' }, minutes.abs());
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02} {sign}{:02}{:02}",
        time.tm_year + 1900,
        time.tm_mon + 1,
        time.tm_mday,
        time.tm_hour,
        time.tm_min,
        time.tm_sec,
        minutes / 60,
        minutes % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_as_a_shell_reads_them() {
        let of = |bytes: &[u8]| quoted(OsStr::from_bytes(bytes));
        assert_eq!(of(b"-n"), "-n");
        assert_eq!(of(b""), "''");
        assert_eq!(of(b"it's <b>"), "'it'\\''s <b>'");
        assert_eq!(of(b"a\nb\x1b1'"), "$'a\\nb\\0331\\''");
        assert_eq!(of(b"\xff1"), "$'\\3771'");
    }

    #[test]
    fn many_hosts_are_counted() {
        let of = |count: usize| Caption {
            hosts: (0..count).map(|host| (format!("h{host}"), 2)).collect(),
            version: "Cohort 1".into(),
            ..Caption::default()
        };
        assert_eq!(of(0).place_and_time(), "Cohort 1");
        assert_eq!(of(1).place_and_time(), "on h0; Cohort 1");
        assert_eq!(of(2).place_and_time(), "on 2 nodes: h0 (2), h1 (2); Cohort 1");
        assert!(of(10).place_and_time().ends_with("h7 (2), 2 more; Cohort 1"));
    }

    #[test]
    fn a_time_has_its_zone() {
        let text = local_time(0);
        let (time, zone) = text.rsplit_once(' ').expect("a zone");
        assert!(time.starts_with("19") && zone.len() == 5, "{text}");
        assert!(zone.starts_with(['+', '-']), "{text}");
    }
}
