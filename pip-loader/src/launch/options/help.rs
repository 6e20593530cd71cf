//! The pages of `--help`, from the table of options.

use super::table::{MAIN, MORE, RUNNING, Row};
use super::values::Page;
use crate::launch::text::{EXAMPLES, REMARKS, USAGE};
use cohort_base::settings::TABLE;
use std::fmt::Write;

/// Where the texts begin.
const INDENT: usize = 23;

/// Longest line.
const WIDTH: usize = 100;

/// The text of a page.
pub fn page(page: Page) -> String {
    match page {
        Page::Screen => options(false),
        Page::All => options(true),
        Page::Settings => settings(),
    }
}

/// The settings, from their table.
fn settings() -> String {
    let mut text = String::from(
        "settings are environment variables, and control variables of MPI_T; pip-exec --info shows their values:\n",
    );
    for row in TABLE {
        let _ = writeln!(text, "\n  {}={}", row.name, row.values);
        let help = format!("{} (default {})", row.help, row.default);
        fill(String::new(), &help, &mut text);
    }
    text
}

/// One screen, or all options.
fn options(all: bool) -> String {
    let mut text = USAGE.to_owned();
    for row in MAIN {
        describe(row, all, &mut text);
    }
    text.push_str("\nabout jobs of yours that run on this machine:\n\n");
    for row in RUNNING {
        describe(row, all, &mut text);
    }
    if all {
        text.push_str("\noptions that fewer people need, and those of other launchers:\n\n");
        for row in MORE {
            describe(row, all, &mut text);
        }
        text.push_str("\nOptions about the inside of other launchers (--mca, -iface, ...) do nothing.\n");
    }
    text.push_str(REMARKS);
    text.push_str(EXAMPLES);
    text
}

/// Adds the lines of an option, with all of its names or the first two.
fn describe(row: &Row, all: bool, text: &mut String) {
    let count = if all { usize::MAX } else { 2 };
    let names: Vec<&str> = row.names.split(' ').take(count).collect();
    let gap = if row.value.is_empty() || row.value.starts_with('[') && row.value.contains('=') && row.value.len() < 8 {
        ""
    } else {
        " "
    };
    let head = format!("  {}{gap}{}", names.join(", "), row.value);
    let mut line = head.clone();
    if head.len() + 2 > INDENT {
        *text += &head;
        text.push('\n');
        line.clear();
    }
    fill(line, row.help, text);
}

/// Adds words in lines that are indented, the first of which begins with `line`.
fn fill(mut line: String, words: &str, text: &mut String) {
    let mut begun = false;
    for word in words.split_whitespace() {
        if begun && line.len() + 1 + word.len() > WIDTH {
            *text += &line;
            text.push('\n');
            (line, begun) = (String::new(), false);
        }
        if begun {
            line.push(' ');
        } else {
            line = format!("{line:INDENT$}");
        }
        line.push_str(word);
        begun = true;
    }
    *text += &line;
    text.push('\n');
}
