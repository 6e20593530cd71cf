//! The page for man(1), from the tables of options and of settings.

use super::table::{MAIN, MORE, RUNNING, Row};
use crate::launch::text::{EXAMPLES, REMARKS};
use cohort_base::settings::TABLE;
use std::fmt::Write;

/// What the first sections say.
const BEGIN: &str = "\
.SH NAME
pip-exec, mpiexec, mpirun \\- run MPI programs, the ranks of a node in one address space
.SH SYNOPSIS
.B pip-exec
.RI [ options ]
.B \\-n
.I N PROGRAM
.RI [ ARG ...]
.RB [ :
.RI [ options ]
.B \\-n
.I M PROGRAM
.RI [ ARG ...]]...
.SH DESCRIPTION
Runs N ranks of a program, or of several, that are built for MPICH or for the MPI-5 ABI. The ranks of a node are tasks
of one address space, so that a rank that waits can make the communication of one that computes.
.PP
Any option takes one dash or two, and its value as the next word or after =.
";

/// The whole page.
pub fn page() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!(".TH PIP\\-EXEC 1 \"\" \"Cohort {version}\" \"User Commands\"\n{BEGIN}");
    text.push_str(".SH OPTIONS\n");
    options(MAIN, &mut text);
    text.push_str(".SS Options about jobs that run already\n");
    options(RUNNING, &mut text);
    text.push_str(".SS Options that fewer people need, and those of other launchers\n");
    options(MORE, &mut text);
    text.push_str(".SH NOTES\n");
    paragraph(REMARKS, &mut text);
    text.push_str(".SH ENVIRONMENT\n");
    for row in TABLE {
        let values = format!("{}; default {}", row.values, row.default);
        let _ = writeln!(text, ".TP\n.BR {} \" ({})\"", plain(row.name), quoted(&values));
        paragraph(row.help, &mut text);
    }
    text.push_str(".SH EXAMPLES\n.nf\n");
    for line in EXAMPLES.lines().skip(2) {
        let _ = writeln!(text, "{}", plain(line));
    }
    text.push_str(".fi\n.SH SEE ALSO\n.BR mpicc (1),\n.BR mpifort (1)\n");
    text
}

fn options(rows: &[Row], text: &mut String) {
    for row in rows {
        let names: Vec<&str> = row.names.split(' ').collect();
        let names = format!("\\fB{}\\fR", plain(&names.join(", ")).replace(", ", "\\fR, \\fB"));
        let value = match row.value {
            "" => String::new(),
            value if row.value_words() == 0 => format!("\\fI{}\\fR", plain(value)),
            value => format!(" \\fI{}\\fR", plain(value)),
        };
        let _ = writeln!(text, ".TP\n{names}{value}");
        paragraph(row.help, text);
    }
}

/// A text, its lines filled.
fn paragraph(words: &str, text: &mut String) {
    for line in words.lines().filter(|line| !line.is_empty()) {
        let _ = writeln!(text, "{}", plain(line));
    }
}

/// A line that means itself.
fn plain(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line,
    }
}

/// The same between double quotes.
fn quoted(line: &str) -> String {
    plain(line).replace('"', "\\(dq")
}
