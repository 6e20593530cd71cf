//! The pages of `--help`, from the table of options.

use super::table::{MAIN, MORE, RUNNING, Row};
use crate::launch::text::{EXAMPLES, REMARKS, USAGE};

/// Where the texts begin.
const INDENT: usize = 23;

/// Longest line.
const WIDTH: usize = 100;

/// One screen, or all options.
pub fn page(all: bool) -> String {
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
        text.push_str(
            "\nOptions about the inside of other launchers (--mca, -iface, ...) do nothing.\n",
        );
    }
    text.push_str(REMARKS);
    text.push_str(EXAMPLES);
    text
}

/// Adds the lines of an option, with all of its names or the first two.
fn describe(row: &Row, all: bool, text: &mut String) {
    let count = if all { usize::MAX } else { 2 };
    let names: Vec<&str> = row.names.split(' ').take(count).collect();
    let gap = if row.value.is_empty()
        || row.value.starts_with('[') && row.value.contains('=') && row.value.len() < 8
    {
        ""
    } else {
        " "
    };
    let head = format!("  {}{gap}{}", names.join(", "), row.value);
    let (mut line, mut begun) = (head.clone(), false);
    if head.len() + 2 > INDENT {
        *text += &head;
        text.push('\n');
        line.clear();
    }
    for word in row.help.split_whitespace() {
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
