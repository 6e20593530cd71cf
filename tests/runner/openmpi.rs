//! `tests/programs/fortran`, made with the headers, modules and libraries of Debian's Open MPI, and run with our
//! Fortran library of its ABI; and a program in C++ that names Open MPI's C++ library.

use crate::command::{Ended, Program};
use crate::trials::Trial;
use crate::{Outcome, place, trial};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Programs of both ABIs, and of Open MPI's only. (Its 4.1 lacks the MPI-4 procedures of the others.)
const PROGRAMS: [&str; 10] = [
    "arguments.f90",
    "callbacks.f90",
    "datarep.f90",
    "derived.f90",
    "files.f90",
    "fixed.f",
    "openmpi.f90",
    "openmpi08.f90",
    "spawned.f90",
    "spawned_ways.F90",
];

const ITEM: &str = "openmpi-fortran";

/// Where Debian's packages have Open MPI's files.
const FOLDER: &str = "openmpi-fortran/usr/lib/x86_64-linux-gnu";

/// Its Fortran libraries.
const LIBRARIES: [&str; 3] = ["libmpi_mpifh.so.40", "libmpi_usempi_ignore_tkr.so.40", "libmpi_usempif08.so.40"];

/// One trial per program and number of ranks.
pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("openmpi/fortran/names".into(), names),
        trial("openmpi/fortran/beside MPICH's".into(), mixed),
        trial("openmpi/fortran/singleton".into(), singleton),
        trial("openmpi/c++ without its C++ library".into(), cxx),
        trial("openmpi/c++ bindings".into(), bindings),
        trial("openmpi/variables are as large, and written".into(), variables),
        trial("openmpi/fortran/an error names procedure and argument".into(), error_text),
    ];
    for ranks in [2, 4] {
        for name in PROGRAMS {
            trials.push(trial(format!("openmpi/fortran/{name}-{ranks}"), move || {
                let ended = launched(&["-n", &ranks.to_string()])?.arg(made(name)?);
                finished(&ended.run()?, ranks)
            }));
        }
    }
    trials
}

/// The program, made as Open MPI's `mpifort` makes it. What its libraries need is found when it is loaded.
fn made(name: &str) -> Result<PathBuf, String> {
    let thread = std::thread::current().id();
    let folder = place::scratch()?.join(format!("{name}.openmpi.{thread:?}"));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let program = folder.join("program");
    let system = place::cached(FOLDER, ITEM)?.display().to_string();
    let mut compiler = Program::new("gfortran")
        .args(["-O2", "-fallow-argument-mismatch"])
        .arg(format!("-I{system}/fortran/gfortran-mod-15/openmpi"))
        .arg("-J")
        .arg(&folder)
        .arg("-o")
        .arg(&program)
        .arg(place::root().join("tests/programs/fortran").join(name))
        .arg(format!("-L{system}"))
        .arg("-Wl,--unresolved-symbols=ignore-in-shared-libs");
    for library in LIBRARIES.iter().rev().chain(&["libmpi.so.40"]) {
        compiler = compiler.arg(format!("-l:{library}"));
    }
    compiler.seconds(120).run()?.expect_code(0)?;
    Ok(program)
}

fn launched(arguments: &[&str]) -> Result<Program, String> {
    let run = Program::new(place::built_file("pip-exec")?).args(arguments);
    Ok(run.seconds(60))
}

/// Each rank says at its end that all was as expected.
fn finished(ended: &Ended, ranks: u32) -> Outcome {
    let mut lines: Vec<&str> = ended.stdout.lines().collect();
    lines.sort_unstable();
    let done: Vec<String> = (0..ranks).map(|rank| format!("done {rank}")).collect();
    if ended.code() == 0 && lines == done {
        Ok(())
    } else {
        Err(ended.failure("each rank is to say that it is done, and nothing else"))
    }
}

/// Ranks of a program for MPICH's Fortran and of one for Open MPI's are one world.
fn mixed() -> Outcome {
    let mpich = crate::fortran::ours("arguments.f90")?;
    let both = launched(&["-n", "2"])?.arg(mpich).args([":", "-n", "2"]);
    finished(&both.arg(made("arguments.f90")?).run()?, 4)
}

/// A program without `pip-exec` finds both libraries in its path.
fn singleton() -> Outcome {
    let path =
        std::env::join_paths([place::built().join("fortran"), place::built()]).map_err(|error| error.to_string())?;
    let run = Program::new(made("openmpi08.f90")?).env("LD_LIBRARY_PATH", path);
    finished(&run.run()?, 1)
}

/// What a program without `ierror` is told.
fn error_text() -> Outcome {
    let ended = launched(&["-n", "2"])?.arg(made("refused.f90")?).run()?;
    let text = "MPI_Bcast failed on MPI_COMM_WORLD: MPI_ERR_ROOT: invalid root: the root is 7";
    if ended.code() == 0 || !ended.stderr.contains(text) {
        return Err(ended.failure("the error is to say what was wrong"));
    }
    Ok(())
}

/// The header of Open MPI 4 makes each program of C++ need its C++ library, which this machine does not have.
fn cxx() -> Outcome {
    let program = place::scratch()?.join("openmpi_cxx");
    let system = place::cached(FOLDER, ITEM)?.display().to_string();
    let compiler = Program::new("g++")
        .arg(format!("-I{system}/openmpi/include"))
        .args(["-O1", "-o"])
        .arg(&program)
        .arg(place::root().join("tests/programs/tools/openmpi_cxx.cpp"))
        .arg(format!("-L{system}"))
        .arg("-Wl,--no-as-needed,--unresolved-symbols=ignore-in-shared-libs")
        .args(["-l:libmpi_cxx.so.40", "-l:libopen-rte.so.40", "-l:libopen-pal.so.40"])
        .arg("-l:libmpi.so.40");
    compiler.seconds(120).run()?.expect_code(0)?;
    let ended = launched(&["-n", "2"])?.arg(program).run()?.expect_code(0)?;
    match ended.stdout.as_str() {
        "sum 1\nsum 1\n" => Ok(()),
        _ => Err(ended.failure("expected the sum of both ranks")),
    }
}

/// A program with the C++ bindings of Open MPI 4, and the library that they are in.
fn bindings() -> Outcome {
    let program = place::scratch()?.join("openmpi_bindings");
    let system = place::cached(FOLDER, ITEM)?.display().to_string();
    let compiler = Program::new("g++")
        .arg(format!("-I{system}/openmpi/include"))
        .args(["-O1", "-o"])
        .arg(&program)
        .arg(place::root().join("tests/programs/tools/openmpi_bindings.cpp"))
        .arg(format!("-L{system}"))
        .arg("-Wl,--no-as-needed,--unresolved-symbols=ignore-in-shared-libs")
        .args(["-l:libmpi_cxx.so.40", "-l:libmpi.so.40"]);
    compiler.seconds(120).run()?.expect_code(0)?;
    for how in ["init", "thread"] {
        let run = launched(&["-n", "2"])?.arg(&program).arg(how);
        let ended = run.env("LD_LIBRARY_PATH", &system).run()?.expect_code(0)?;
        let mut lines: Vec<&str> = ended.stdout.lines().collect();
        lines.sort_unstable();
        if lines != ["rank 0: sum 1, half 1", "rank 1: sum 1, half 1"] {
            return Err(ended.failure("expected what both ranks have"));
        }
    }
    Ok(())
}

/// Sizes of a library's variables, and whether a program may write them.
fn variables_of(library: &Path) -> Result<BTreeMap<String, (u64, bool)>, String> {
    let bytes = std::fs::read(library).map_err(|error| format!("{}: {error}", library.display()))?;
    let elf = goblin::elf::Elf::parse(&bytes).map_err(|error| error.to_string())?;
    let is_variable = |kind| kind == goblin::elf::sym::STT_OBJECT;
    let defined = elf.dynsyms.iter();
    let defined = defined.filter(|it| it.st_shndx != 0 && is_variable(it.st_type()));
    Ok(defined
        .filter_map(|it| {
            let section = elf.section_headers.get(it.st_shndx)?;
            let name = elf.dynstrtab.get_at(it.st_name)?.to_owned();
            Some((name, (it.st_size, section.is_writable())))
        })
        .collect())
}

/// Each variable that we have of Open MPI's is as large as its, since programs may hold copies, and may be written
/// where its may: its own libraries do so.
fn variables() -> Outcome {
    let ours = variables_of(&place::built_file("libmpi.so.40")?)?;
    let theirs = place::cached("openmpi-venv/lib/libmpi.so.40", "openmpi")?;
    let theirs = variables_of(&theirs)?;
    let common = ours.iter().filter(|(name, _)| theirs.contains_key(*name));
    let differ = common.clone().filter(|&(name, own)| theirs[name] != *own);
    let differ: Vec<_> = differ.collect();
    if !differ.is_empty() {
        return Err(format!("size and whether it may be written: {differ:?}"));
    }
    match common.count() {
        110.. => Ok(()),
        few => Err(format!("only {few} variables have the names of Open MPI's")),
    }
}

fn exported(library: PathBuf) -> Result<BTreeSet<String>, String> {
    let bytes = std::fs::read(&library).map_err(|error| format!("{}: {error}", library.display()))?;
    let elf = goblin::elf::Elf::parse(&bytes).map_err(|error| error.to_string())?;
    let defined = elf.dynsyms.iter().filter(|symbol| symbol.st_shndx != 0);
    Ok(defined.filter_map(|symbol| elf.dynstrtab.get_at(symbol.st_name)).map(str::to_owned).collect())
}

/// Whether it is for programs: no name of mixed case, which only tools inside of Open MPI had, and nothing of its
/// objects.
fn is_external(name: &str) -> bool {
    let rest = name.trim_start_matches("PMPIX_").trim_start_matches("MPIX_");
    let rest = rest.trim_start_matches("PMPI_").trim_start_matches("MPI_");
    let is_mixed = rest.len() < name.len() && rest.bytes().any(|byte| byte.is_ascii_lowercase());
    !is_mixed && !["ompi_intercept_extra_state_t_class", "mpiext_pcollreq_mpifh_dummy"].contains(&name)
}

/// Everything that Open MPI's Fortran libraries export is in ours.
fn names() -> Outcome {
    for library in LIBRARIES {
        let own = exported(place::built_file(&format!("fortran/{library}"))?)?;
        let theirs = exported(place::cached(&format!("{FOLDER}/{library}"), ITEM)?)?;
        let missing: Vec<&String> = theirs.difference(&own).filter(|name| is_external(name)).collect();
        if !missing.is_empty() {
            return Err(format!("of {library} are missing: {missing:?}"));
        }
        if theirs.len() < 390 {
            return Err(format!("{library} has only {} symbols", theirs.len()));
        }
    }
    Ok(())
}
