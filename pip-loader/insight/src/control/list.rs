//! `pip-exec --ps`: the jobs of this user on this machine.

use super::client::{self, Described};
use super::wire::Record;
use pip_ground::Refusal;
use std::fmt::Write;

/// The table.
///
/// # Errors
/// The system does not list its sockets.
pub fn page() -> Result<String, Refusal> {
    let mut jobs = client::jobs()?;
    client::one_of_each(&mut jobs);
    Ok(table(&jobs))
}

fn table(jobs: &[Described]) -> String {
    let mut text =
        format!("{:>7} {:>9} {:>7}  {:19} {:>9}  {}\n", "PID", "RANKS", "NODE", "SINCE", "CPU TIME", "COMMAND");
    for (job, record) in jobs {
        row(job.pid, record.as_ref(), &mut text);
    }
    text
}

fn row(pid: i32, record: Option<&Record>, text: &mut String) {
    let Some(record) = record else {
        let _ = writeln!(text, "{pid:>7} does not answer: it is stopped, or of another version");
        return;
    };
    let part = |own: &str, all: &str| match (record.get(own), record.get(all)) {
        (own, all) if own == all => own.to_owned(),
        (own, all) => format!("{own}/{all}"),
    };
    let node = match record.get("nodes") {
        "1" => "-".to_owned(),
        nodes => format!("{}/{nodes}", record.get("node")),
    };
    // A launcher in another namespace of processes has the number there that it tells.
    let pid = if pid == 0 { record.get("pid").to_owned() } else { pid.to_string() };
    let _ = writeln!(
        text,
        "{pid:>7} {:>9} {node:>7}  {:19} {:>9}  {}",
        part("ranks", "world"),
        local_time(record.number("since")),
        duration(record.number("cpu_ms") / 1000),
        visible(record.get("command")),
    );
}

/// Seconds as `ps` writes them: minutes and seconds, and hours if there are any.
pub fn duration(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// A text of one line that does nothing to a terminal.
pub fn visible(text: &str) -> String {
    let plain = |letter: char| if letter.is_control() { '?' } else { letter };
    text.chars().map(plain).collect()
}

/// A time since 1970 as the clock on the wall has it.
fn local_time(seconds: u64) -> String {
    let seconds = seconds as libc::time_t;
    // SAFETY: valid places; zeros are a valid `tm`.
    let time = unsafe {
        let mut time: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const seconds, &raw mut time);
        time
    };
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        time.tm_year + 1900,
        time.tm_mon + 1,
        time.tm_mday,
        time.tm_hour,
        time.tm_min,
        time.tm_sec
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_say_what_a_job_is() {
        let mut record = Record::default();
        record.add("pid", 17).add("ranks", 2).add("world", 4).add("node", 1).add("nodes", 2);
        record.add("since", 0).add("cpu_ms", 3_725_000).add("command", "./a \x1b[2J");
        let mut text = String::new();
        row(17, Some(&record), &mut text);
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(words[..3], ["17", "2/4", "1/2"]);
        assert_eq!(words[5..], ["1:02:05", "./a", "?[2J"]);
        row(18, None, &mut text);
        assert!(text.contains("18 does not answer"), "{text}");
    }
}
