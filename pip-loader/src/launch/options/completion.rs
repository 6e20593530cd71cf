//! What completes our options in shells, from the table of options. A program's own words are completed as the shell
//! does it for that program.

use super::Shell;
use super::table::{Row, rows};
use std::fmt::Write;

/// The commands that take our options.
const COMMANDS: &str = "pip-exec mpiexec mpirun";

/// What `bash` does with the options' values that it was given.
const BASH: &str = r#"
_pip_exec() {
    local word=${COMP_WORDS[COMP_CWORD]} index skip=0 before=
    for ((index = 1; index < COMP_CWORD; index++)); do
        before=${COMP_WORDS[index]}
        if ((skip > 0)); then
            ((skip -= 1))
            continue
        fi
        case $before in
            :) ;;
            -*) skip=$(_pip_exec_value_words "$before") ;;
            *)
                # The program's own words: up to the next colon.
                while ((index < COMP_CWORD)) && [[ ${COMP_WORDS[index]} != : ]]; do ((index += 1)); done
                if ((index == COMP_CWORD)); then return; fi
                ;;
        esac
    done
    if ((skip > 0)); then
        _pip_exec_value "${COMP_WORDS[COMP_CWORD - 1]}" "$word"
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$_pip_exec_options" -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -c -- "$word")
    fi
}
"#;

/// The script for a shell.
pub fn script(shell: Shell) -> String {
    match shell {
        Shell::Bash => bash(),
        Shell::Zsh => zsh(),
        Shell::Fish => fish(),
    }
}

/// For bash: a file for `/usr/share/bash-completion/completions`.
fn bash() -> String {
    let mut text = format!("# Completes the options of {COMMANDS}.\n");
    let all: Vec<&str> = rows().flat_map(names).collect();
    let _ = writeln!(text, "_pip_exec_options='{}'\n", all.join(" "));
    text.push_str("_pip_exec_value_words() {\n    case $1 in\n");
    for count in [1, 2] {
        let takers = rows().filter(|row| row.value_words() == count);
        let _ = writeln!(text, "        {}) echo {count} ;;", pattern(takers));
    }
    text.push_str("        *) echo 0 ;;\n    esac\n}\n\n_pip_exec_value() {\n    case $1 in\n");
    for row in rows().filter(|row| row.choices().next().is_some()) {
        let words: Vec<&str> = row.choices().collect();
        let _ = writeln!(
            text,
            "        {}) mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$2\") ;;",
            pattern(std::iter::once(row)),
            words.join(" ")
        );
    }
    text.push_str("    esac\n}\n");
    text.push_str(BASH);
    let _ = writeln!(text, "\ncomplete -o default -F _pip_exec {COMMANDS}");
    text
}

/// For zsh: a file `_pip-exec` for a folder of `$fpath`.
fn zsh() -> String {
    let mut text = format!("#compdef {COMMANDS}\n\n_arguments -S \\\n");
    for row in rows() {
        let quoted = |text: &str| text.replace('\'', "'\\''").replace([':', '[', ']'], " ");
        let mut value = String::new();
        for word in row.value.split_whitespace().take(row.value_words()) {
            let choices: Vec<&str> = row.choices().collect();
            let action = match (choices.is_empty(), row.takes_path()) {
                (false, _) => format!("({})", choices.join(" ")),
                (true, true) => "_files".to_owned(),
                (true, false) => " ".to_owned(),
            };
            let _ = write!(value, ":{}:{action}", quoted(word));
        }
        for name in names(row) {
            let _ = writeln!(text, "  '*{name}[{}]{value}' \\", quoted(row.help));
        }
    }
    text.push_str("  '(-)1:program:_command_names -e' \\\n  '*::arguments:_normal'\n");
    text
}

/// For fish: a file `pip-exec.fish` for `vendor_completions.d`.
fn fish() -> String {
    let mut text = format!("# Completes the options of {COMMANDS}.\n");
    for row in rows() {
        let words: Vec<&str> = row.choices().collect();
        let value = match (row.value_words(), words.is_empty(), row.takes_path()) {
            (0, ..) => String::new(),
            (_, false, _) => format!(" -x -a '{}'", words.join(" ")),
            (_, true, true) => " -r -F".to_owned(),
            (..) => " -x".to_owned(),
        };
        for name in names(row) {
            let plain = name.trim_start_matches('-');
            let kind = match (name.starts_with("--"), plain.len()) {
                (true, _) => "-l",
                (false, 1) => "-s",
                (false, _) => "-o",
            };
            let help = row.help.replace('\\', "\\\\").replace('\'', "\\'");
            let _ = writeln!(text, "complete -c pip-exec {kind} {plain}{value} -d '{help}'");
        }
    }
    text.push_str("complete -c pip-exec -x -a '(__fish_complete_subcommand)'\n");
    for other in COMMANDS.split(' ').skip(1) {
        let _ = writeln!(text, "complete -c {other} -w pip-exec");
    }
    text
}

/// Its names with their dashes.
fn names(row: &'static Row) -> impl Iterator<Item = &'static str> {
    row.names.split(' ')
}

/// A pattern of `case` for these options, with one dash and with two.
fn pattern(rows: impl Iterator<Item = &'static Row>) -> String {
    let names = rows.flat_map(Row::plain_names);
    let names: Vec<String> = names.map(|name| format!("-{name} | --{name}")).collect();
    names.join(" | ")
}
