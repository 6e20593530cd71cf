//! Programs with a checker: what compilers build in (AddressSanitizer and its like), and Valgrind. They run with right
//! results, nothing is reported of our libraries, and mistakes of the program are found where they are.

use super::{one_world, two};
use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::path::PathBuf;

/// A checker that the compiler builds in.
#[derive(Clone, Copy)]
struct Built {
    /// How the trial is called.
    name: &'static str,
    options: &'static [&'static str],
    /// Its name in its reports.
    says: &'static str,
    /// The mistake of `checked.c` that it finds.
    mistake: &'static str,
}

const BUILT: [Built; 5] = [
    Built { name: "AddressSanitizer", options: &["-fsanitize=address"], says: "AddressSanitizer", mistake: "overflow" },
    Built {
        name: "AddressSanitizer with undefined behaviour, linked statically",
        options: &["-fsanitize=address,undefined", "-static-libasan"],
        says: "AddressSanitizer",
        mistake: "overflow",
    },
    Built { name: "LeakSanitizer", options: &["-fsanitize=leak"], says: "LeakSanitizer", mistake: "leak" },
    Built { name: "ThreadSanitizer", options: &["-fsanitize=thread"], says: "ThreadSanitizer", mistake: "race" },
    Built {
        name: "ThreadSanitizer, linked statically",
        options: &["-fsanitize=thread", "-static-libtsan"],
        says: "ThreadSanitizer",
        mistake: "race",
    },
];

/// The trials of this module.
pub fn trials() -> Vec<Trial> {
    let built = BUILT.map(|checker| {
        let name = format!("dropin/checkers/{}", checker.name);
        trial(name, move || watched(checker))
    });
    type Body = fn() -> Outcome;
    let named: [(&str, Body); 5] = [
        ("undefined behaviour needs no isolation", undefined),
        ("AddressSanitizer that is preloaded", preloaded),
        ("ThreadSanitizer that a shell starts", started),
        ("valgrind", valgrind),
        ("valgrind before pip-exec is refused", valgrind_outside),
    ];
    let named = named.map(|(name, body)| trial(format!("dropin/checkers/{name}"), body));
    built.into_iter().chain(named).collect()
}

/// `checked.c` with these options of the compiler.
fn checked(options: &[&str]) -> Result<PathBuf, String> {
    let name = format!("checked{}", options.concat().replace([',', '='], "-"));
    let source = place::root().join("tests/programs/tools/checked.c");
    let options: Vec<String> = options.iter().map(|&option| option.into()).collect();
    programs::compile_as(&name, &source, Abi::Mpich, &options)
}

/// `FILE:LINE` of a mistake in `checked.c`.
fn place_of(mistake: &str) -> Result<String, String> {
    let source = place::root().join("tests/programs/tools/checked.c");
    let text = std::fs::read_to_string(source).map_err(|error| error.to_string())?;
    let marked = format!("// {mistake}");
    let line = text.lines().position(|line| line.ends_with(&marked));
    let line = line.ok_or_else(|| format!("no line of checked.c is marked {marked:?}"))?;
    Ok(format!("checked.c:{}", line + 1))
}

/// Nothing but these lines on standard error.
fn only(ended: Ended, expected: &[&str]) -> Outcome {
    let lines: Vec<&str> = ended.stderr.lines().collect();
    let fits = lines.len() == expected.len() && lines.iter().zip(expected).all(|(line, text)| line.contains(text));
    match fits {
        true => Ok(()),
        false => Err(ended.failure(&format!("expected nothing on standard error but {expected:?}"))),
    }
}

fn watched(checker: Built) -> Outcome {
    let program = checked(checker.options)?;
    let line = format!("is watched by {}", checker.says);
    only(one_world(two()?.arg(&program).run()?)?, &[&line])?;
    let ended = two()?.arg(&program).arg(checker.mistake).run()?;
    if ended.code() == 0 {
        return Err(ended.failure("expected a failure"));
    }
    let reported = ["ERROR", "WARNING"].map(|kind| format!("{kind}: {}", checker.says));
    if !reported.iter().any(|report| ended.says(report)) {
        return Err(ended.failure(&format!("expected one of {reported:?}")));
    }
    ended.expect_text(&place_of(checker.mistake)?).map(drop)
}

fn undefined() -> Outcome {
    for options in [&["-fsanitize=undefined"][..], &["-fsanitize=undefined", "-static-libubsan"]] {
        only(one_world(two()?.arg(checked(options)?).run()?)?, &[])?;
    }
    Ok(())
}

/// As for a Python whose extension modules have a checker.
fn preloaded() -> Outcome {
    let found = Program::new("cc").arg("-print-file-name=libasan.so").run()?;
    let library = found.expect_code(0)?.stdout;
    let run = two()?.args(["-genv", "LD_PRELOAD", library.trim_end()]);
    let ended = one_world(run.arg(checked(&[])?).run()?)?;
    only(ended, &["is watched by AddressSanitizer"])
}

/// What a wrapper starts has the room for thread-local data that the user asks for.
fn started() -> Outcome {
    let program = checked(&["-fsanitize=thread"])?;
    let run = two()?
        .args(["-genv", "GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=1048576"])
        .args(["-genv", "TSAN_OPTIONS", "ignore_noninstrumented_modules=1"])
        .args(["sh", "-c", "\"$0\"; exit $?"]);
    only(one_world(run.arg(program).run()?)?, &["started without"])
}

fn valgrind() -> Outcome {
    let words = ["valgrind", "-q", "--error-exitcode=9"];
    let program = checked(&[])?;
    only(one_world(two()?.args(words).arg(&program).run()?)?, &["started without"])?;
    let ended = two()?.args(words).arg(&program).arg("overflow").run()?;
    let ended = ended.expect_code(9)?.expect_text("Invalid write of size 1")?;
    ended.expect_text(&place_of("overflow")?).map(drop)
}

fn valgrind_outside() -> Outcome {
    for options in [&["-q"][..], &["-q", "--trace-children=yes"]] {
        let run = Program::new("valgrind").args(options);
        let run = run.arg(place::built_file("pip-exec")?).args(["-n", "2"]);
        let ended = run.arg(checked(&[])?).run()?.expect_code(2)?;
        ended.expect_text("pip-exec -n 2 valgrind")?;
    }
    Ok(())
}
