//! What README promises: its first program and its demonstration run, and what it names exists.

use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};

/// The trials of this module. Commands that it shows and other trials run: mpi4py's `helloworld`
/// (`binaries/`), `--hosts` and the process managers (`nodes/`), a program without `pip-exec`
/// (`binaries/singleton`).
pub fn trials() -> Vec<Trial> {
    vec![
        trial("readme/first program".into(), first_program),
        trial("readme/first Python program".into(), first_python),
        trial("readme/help has every option shown".into(), options_exist),
        trial("readme/make targets exist".into(), targets_exist),
        trial("readme/make run".into(), demonstration),
    ]
}

fn text() -> Result<String, String> {
    std::fs::read_to_string(place::root().join("README.md")).map_err(|error| error.to_string())
}

/// Lines of README's consoles that begin with a prompt, without it and without comments.
fn commands(text: &str) -> Vec<&str> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("$ "));
    lines.map(|line| line.split(" #").next().unwrap_or(line).trim()).collect()
}

/// `mpicc -o hello hello.c`, `pip-exec -n 4 ./hello`, the same with statistics.
fn first_program() -> Outcome {
    let text = text()?;
    let program = text.split("```c\n").nth(1).ok_or("README has no program")?;
    let program = program.split("```").next().unwrap_or(program);
    let source = place::scratch()?.join("hello.c");
    std::fs::write(&source, program).map_err(|error| error.to_string())?;
    let hello = programs::compile_as("readme-hello", &source, Abi::Mpi5, &[])?;
    let run = |stats: &str| -> Result<Ended, String> {
        Program::new(place::built_file("pip-exec")?)
            .env("COHORT_STATS", stats)
            .args(["-n", "4"])
            .arg(&hello)
            .run()?
            .expect_code(0)
    };
    let plain = run("0")?;
    for rank in 0..4 {
        let line = format!("rank {rank}: the ranks sum up to 6");
        if plain.stdout.lines().filter(|other| *other == line).count() != 1 {
            return Err(plain.failure(&format!("expected one line {line:?}")));
        }
    }
    if plain.stderr.contains("waited most for") {
        return Err(plain.failure("statistics that nobody asked for"));
    }
    run("1")?.expect_text("waited most for")?;
    run("counters")?.expect_text("helped (rank:times)")?;
    Ok(())
}

/// `mpiexec -n 4 python hello.py`, with mpi4py of the cache.
fn first_python() -> Outcome {
    let text = text()?;
    let program = text.split("```python\n").nth(1).ok_or("README has no Python program")?;
    let program = program.split("```").next().unwrap_or(program);
    let source = place::scratch()?.join("readme-hello.py");
    std::fs::write(&source, program).map_err(|error| error.to_string())?;
    let ended = Program::new(place::built_file("mpiexec")?)
        .args(["-n", "4"])
        .arg(place::cached("mpi4py-venv/bin/python", "mpi4py")?)
        .arg(source)
        .run()?
        .expect_code(0)?;
    for rank in 0..4 {
        let line = format!("rank {rank}: the ranks sum up to 6");
        if ended.stdout.lines().filter(|other| *other == line).count() != 1 {
            return Err(ended.failure(&format!("expected one line {line:?}")));
        }
    }
    Ok(())
}

/// `pip-exec --help` names the options that README's commands use.
fn options_exist() -> Outcome {
    let help = Program::new(place::built_file("pip-exec")?).arg("--help").run()?.expect_code(0)?;
    let text = text()?;
    let ours = commands(&text);
    let ours = ours.iter().filter(|line| line.contains("pip-exec "));
    let words = ours.flat_map(|line| {
        let own = line.split("pip-exec ").nth(1).unwrap_or("");
        own.split_whitespace().take_while(|word| !word.starts_with("./"))
    });
    let mut seen = 0;
    for option in words.filter(|word| word.starts_with('-') && *word != "-m") {
        if !help.stdout.contains(option) {
            return Err(help.failure(&format!("README uses {option}")));
        }
        seen += 1;
    }
    if seen < 4 {
        return Err(format!("README shows {seen} options of pip-exec"));
    }
    Ok(())
}

/// `make` knows the targets that README names.
fn targets_exist() -> Outcome {
    let makefile = std::fs::read_to_string(place::root().join("Makefile")).map_err(|error| error.to_string())?;
    let text = text()?;
    let named = commands(&text);
    let named: Vec<&str> =
        named.iter().filter_map(|line| line.strip_prefix("make ")?.split_whitespace().next()).collect();
    if named.is_empty() {
        return Err("README shows no command of make".into());
    }
    let rules = makefile.lines().filter_map(|line| line.split_once(':'));
    let targets: Vec<&str> = rules
        .filter(|(targets, _)| !targets.starts_with(['\t', ' ', '#', '.']))
        .flat_map(|(targets, _)| targets.split_whitespace())
        .collect();
    let missing = named.iter().filter(|target| !targets.contains(target));
    match missing.copied().collect::<Vec<_>>() {
        missing if missing.is_empty() => Ok(()),
        missing => Err(format!("Makefile has no {missing:?}")),
    }
}

/// What `make run` runs: an example whose whole gets faster, and a solver. Results are checked, not times.
fn demonstration() -> Outcome {
    let source = place::root().join("examples/insitu.c");
    let insitu = programs::compile_as("readme-insitu", &source, Abi::Mpi5, &[])?;
    let shown = Program::new(place::root().join("tools/run-insitu.py"))
        .arg(place::built_file("pip-exec")?)
        .arg(insitu)
        .args(["--rounds", "1", "--steps", "5", "--mpich"])
        .arg(place::cached("mpich-venv", "mpich")?)
        .seconds(240)
        .run()?
        .expect_code(0)?
        .expect_text("COHORT_PROGRESS=steal")?
        .expect_text("All runs had the right results")?;
    if !["No verdict, ", "times as fast"].iter().any(|text| shown.stdout.contains(text)) {
        return Err(shown.failure("neither a verdict nor why there is none"));
    }
    let source = programs::source("heat.c");
    let heat = programs::compile_as("readme-heat", &source, Abi::Mpi5, &[])?;
    Program::new(place::root().join("tools/run-heat.sh"))
        .arg(place::built_file("pip-exec")?)
        .arg(heat)
        .seconds(240)
        .run()?
        .expect_code(0)?
        .expect_text("In plain words")?;
    Ok(())
}
