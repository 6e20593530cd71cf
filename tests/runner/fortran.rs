//! `tests/programs/fortran`: made by our `mpifort` and with MPICH's `mpif.h` and modules, and run with our Fortran
//! library, with MPICH's over our C library, and under MPICH, which judges.

use crate::command::{Ended, Program};
use crate::directives::Abi;
use crate::trials::Trial;
use crate::{Outcome, place, programs, trial};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Programs that run the same under MPICH.
const JUDGED: [&str; 9] = [
    "arguments.f90",
    "callbacks.f90",
    "derived.f90",
    "files.f90",
    "languages.f90",
    "modern.f90",
    "sections.f90",
    "strings.f90",
    "fixed.f",
];

/// Programs of what MPICH has not, or has otherwise; it cannot open a port from Fortran.
const OURS: [&str; 8] = [
    "beyond.f90",
    "datarep.f90",
    "kinds.f90",
    "parts.f90",
    "pending.f90",
    "sections_apart.f90",
    "spawned.f90",
    "spawned_ways.F90",
];

/// Which Fortran library a program runs with.
#[derive(Clone, Copy)]
enum Library {
    Ours,
    Mpich,
}

/// One trial per program, number of ranks, compiler and library.
pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("fortran/names".into(), names),
        trial("fortran/mpif90 compiles old Fortran".into(), wrappers),
        trial("fortran/singleton".into(), singleton),
        trial("fortran/an error names procedure and argument".into(), error_text),
        trial("fortran/mpi_f08 of another compiler keeps its library".into(), another_compiler),
        trial("fortran/descriptors of flang".into(), descriptors),
        trial("fortran/internal procedures".into(), internal),
        trial("fortran/survivors of a failure".into(), survivors),
    ];
    for ranks in [2, 4] {
        for name in JUDGED.into_iter().chain(OURS) {
            trials.push(trial(format!("fortran/{name}/ours-{ranks}"), move || {
                finished(run(&ours(name)?, ranks, Library::Ours)?, ranks)
            }));
        }
        for name in JUDGED {
            trials.push(trial(format!("fortran/{name}/mpich-{ranks}"), move || judged(name, ranks)));
        }
    }
    trials
}

/// Internal procedures that are passed on run on the stack: in a program, in a library that a program is linked to,
/// and in one that it opens before or after it has enlarged its stack.
fn internal() -> Outcome {
    let (name, folder) = ("internal.F90", folder("internal", "gfortran")?);
    let library = folder.join("librow.so");
    Program::new("gfortran")
        .args(["-O1", "-DLIBRARY", "-fPIC", "-shared", "-J"])
        .arg(&folder)
        .arg("-o")
        .arg(&library)
        .arg(source(name))
        .seconds(120)
        .run()?
        .expect_code(0)?;
    let library = library.display().to_string();
    let opens = |name: &str, options: &[&str]| {
        let source = place::root().join("tests/programs/tools/opens_nested.c");
        let options = [&["-pthread", "-Wno-pedantic"], options].concat();
        let options: Vec<String> = options.into_iter().map(str::to_owned).collect();
        programs::compile_as(name, &source, Abi::Mpich, &options)
    };
    let opened = opens("opens_nested", &[])?;
    let linked = opens("linked_nested", &["-DLINKED", &library])?;
    let nested = opens("own_nested", &["-DNESTED", "-z", "execstack"])?;
    let jobs: [(PathBuf, &[&str]); 5] = [
        (ours(name)?, &[]),
        (linked, &[]),
        (nested, &[]),
        (opened.clone(), &[&library, "early"]),
        (opened, &[&library, "late"]),
    ];
    for (program, arguments) in jobs {
        for options in [&["-n", "2"][..], &["--isolate", "-n", "2"]] {
            Program::new(place::built_file("pip-exec")?)
                .args(options)
                .arg(&program)
                .args(arguments)
                .seconds(60)
                .run()?
                .expect_code(0)?
                .expect_text("passed")?;
        }
    }
    Ok(())
}

/// Fortran's names of what survivors call, by `use mpi_f08`, `use mpi` and `mpif.h`.
fn survivors() -> Outcome {
    let run = Program::new(place::built_file("pip-exec")?).args(["--on-failure", "continue", "-n", "4"]);
    let ended = run.arg(ours("survivors.f90")?).seconds(60).run()?.expect_code(0)?;
    let lived: Vec<String> = [0, 2, 3].map(|rank| format!("done {rank}")).into();
    match sorted_lines(&ended) == lived {
        true => Ok(()),
        false => Err(ended.failure("each rank but the dead one is to say that it is done, and nothing else")),
    }
}

fn source(name: &str) -> PathBuf {
    place::root().join("tests/programs/fortran").join(name)
}

/// Where compilers put the program and its modules: no two trials may write the same file.
fn folder(name: &str, who: &str) -> Result<PathBuf, String> {
    let thread = std::thread::current().id();
    let folder = place::scratch()?.join(format!("{name}.{who}.{thread:?}"));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

fn compile(compiler: Program, name: &str, who: &str, libraries: &[String]) -> Result<PathBuf, String> {
    let folder = folder(name, who)?;
    let program = folder.join("program");
    compiler.args(["-O2", "-o"]).arg(&program).arg(source(name)).args(libraries).seconds(120).run()?.expect_code(0)?;
    Ok(program)
}

/// The program, made by our `mpifort`.
pub fn ours(name: &str) -> Result<PathBuf, String> {
    of_wrapper("mpifort", name)
}

/// The program, made by a wrapper of ours.
fn of_wrapper(wrapper: &str, name: &str) -> Result<PathBuf, String> {
    let compiler = Program::new(place::built_file(wrapper)?).args(["-Wall", "-J"]).arg(folder(name, wrapper)?);
    compile(compiler, name, wrapper, &[])
}

/// The program, made as MPICH's `mpifort` makes it, for MPICH's library.
fn of_mpich(name: &str) -> Result<PathBuf, String> {
    let include = place::cached("mpich-fortran/include", "fortran")?;
    let compiler = Program::new("gfortran")
        .arg("-fallow-argument-mismatch")
        .arg(format!("-I{}", include.display()))
        .args(["-Wall", "-J"])
        .arg(folder(name, "mpich")?);
    of_mpich_by(compiler, name)
}

/// The program, linked with MPICH's library.
fn of_mpich_by(compiler: Program, name: &str) -> Result<PathBuf, String> {
    let library = place::cached("mpich-fortran/lib", "fortran")?;
    let libraries = [
        format!("-L{}", library.display()),
        // What MPICH's C library needs lies beside it and is found when it is loaded.
        "-Wl,--unresolved-symbols=ignore-in-shared-libs".to_owned(),
        "-lmpichfort".to_owned(),
        "-lmpich".to_owned(),
    ];
    compile(compiler, name, "mpich", &libraries)
}

/// Runs a program under `pip-exec`.
fn run(program: &PathBuf, ranks: u32, library: Library) -> Result<Ended, String> {
    let mut run = Program::new(place::built_file("pip-exec")?).args(["-n", &ranks.to_string()]);
    if matches!(library, Library::Mpich) {
        let library = place::cached("mpich-fortran/lib/libmpichfort.so.12", "fortran")?;
        run = run.args(["-genv", "LD_PRELOAD"]).arg(library);
    }
    run.arg(program).seconds(60).run()
}

/// Each rank says at its end that all was as expected.
fn finished(ended: Ended, ranks: u32) -> Outcome {
    let ended = ended.expect_code(0)?;
    if sorted_lines(&ended) == done(ranks) {
        Ok(())
    } else {
        Err(ended.failure("each rank is to say that it is done, and nothing else"))
    }
}

fn done(ranks: u32) -> Vec<String> {
    (0..ranks).map(|rank| format!("done {rank}")).collect()
}

fn sorted_lines(ended: &Ended) -> Vec<String> {
    let mut lines: Vec<String> = ended.stdout.lines().map(String::from).collect();
    lines.sort();
    lines
}

/// A program as MPICH makes it runs under MPICH, with our library, and with MPICH's Fortran library over our C library.
fn judged(name: &str, ranks: u32) -> Outcome {
    let program = of_mpich(name)?;
    let library = place::cached("mpich-fortran/lib", "fortran")?;
    let judge = Program::new(place::cached("mpich-venv/bin/mpiexec", "mpich")?)
        .args(["-genv", "LD_LIBRARY_PATH"])
        .arg(library)
        .args(["-n", &ranks.to_string()])
        .arg(&program)
        .env("JUDGE", "1")
        .seconds(60)
        .run()?;
    finished(judge, ranks)?;
    finished(run(&program, ranks, Library::Ours)?, ranks)?;
    finished(run(&program, ranks, Library::Mpich)?, ranks)
}

/// What a program without `ierror` is told.
fn error_text() -> Outcome {
    let ended = run(&ours("refused.f90")?, 2, Library::Ours)?;
    let text = "MPI_Bcast failed on MPI_COMM_WORLD: MPI_ERR_ROOT: invalid root: the root is 7";
    if ended.code() == 0 || !ended.stderr.contains(text) {
        return Err(ended.failure("the error is to say what was wrong"));
    }
    Ok(())
}

/// Descriptors of arrays are gfortran's in our library; what another compiler has made finds the library that it names.
fn another_compiler() -> Outcome {
    let program = of_mpich_by(Program::new("cc"), "other_compiler.c")?;
    let library = place::cached("mpich-fortran/lib", "fortran")?;
    let ended = Program::new(place::built_file("pip-exec")?)
        .args(["-n", "1", "-genv", "LD_LIBRARY_PATH"])
        .arg(&library)
        .arg(program)
        .seconds(60)
        .run()?;
    ended.expect_code(0)?.expect_text(&library.display().to_string()).map(drop)
}

/// Arrays as flang describes them, in a program that brings the module's variables.
fn descriptors() -> Outcome {
    let built = place::built_file("fortran/libmpifort.so.12")?;
    let library = built.parent().ok_or("it has a folder")?.display();
    let c_library = place::built_file("libmpi.so")?;
    let headers = place::cached("mpich-venv/include", "mpich")?;
    let compiler = Program::new("cc").arg(format!("-I{}", headers.display()));
    let libraries = [
        format!("-L{library}"),
        format!("-Wl,-rpath,{library}"),
        "-lmpifort".to_owned(),
        c_library.display().to_string(),
    ];
    let program = compile(compiler, "descriptors.c", "cc", &libraries)?;
    finished(run(&program, 2, Library::Ours)?, 2)
}

/// A program without `pip-exec` finds both libraries.
fn singleton() -> Outcome {
    finished(Program::new(ours("strings.f90")?).run()?, 1)
}

/// The other names of the wrapper, and what they show.
fn wrappers() -> Outcome {
    for name in ["mpif90", "mpif77"] {
        let shown = Program::new(place::built_file(name)?).args(["-show", "x.f"]).run()?;
        shown.expect_code(0)?.expect_text("-lmpifort")?;
    }
    let program = of_wrapper("mpif77", "fixed.f")?;
    finished(run(&program, 2, Library::Ours)?, 2)
}

/// The procedures that a library exports.
fn exported(library: PathBuf) -> Result<BTreeSet<String>, String> {
    let bytes = std::fs::read(&library).map_err(|error| format!("{}: {error}", library.display()))?;
    let elf = goblin::elf::Elf::parse(&bytes).map_err(|error| error.to_string())?;
    let names = elf.dynsyms.iter().filter(|symbol| symbol.is_function() && symbol.st_shndx != 0);
    Ok(names
        .filter_map(|symbol| elf.dynstrtab.get_at(symbol.st_name))
        .filter(|name| {
            let lower = name.to_lowercase();
            ["mpi_", "pmpi_", "pmpir_", "__mpi_"].iter().any(|start| lower.starts_with(start))
        })
        .map(str::to_owned)
        .collect())
}

/// Whether the name is one that a Fortran compiler makes of a procedure.
fn is_external(name: &str) -> bool {
    let is_mangled = name.ends_with('_') || name.bytes().all(|b| !b.is_ascii_lowercase());
    // Procedures of MPICH's modules, as gfortran names them; what makes handles polymorphic, and what the modules call
    // themselves, is not for programs.
    if let Some((module, name)) = name.split_once("_MOD_") {
        return !name.starts_with("__") && module != "__mpi_c_interface_glue";
    }
    // Modules of Intel's compiler, what only they call, and functions of the MPI-5 ABI's own library.
    let of_modules = name.contains("_mp_") || name.contains('.') || name.to_lowercase().contains("_toint");
    is_mangled && !of_modules
}

/// Every procedure of MPICH's and of Intel's Fortran libraries is in ours, by each of its names.
fn names() -> Outcome {
    let own = exported(place::built_file("fortran/libmpifort.so.12")?)?;
    for (file, item) in
        [("mpich-fortran/lib/libmpichfort.so.12", "fortran"), ("impi-venv/lib/libmpifort.so.12", "impi")]
    {
        let theirs = exported(place::cached(file, item)?)?;
        let missing: Vec<&String> = theirs.difference(&own).filter(|name| is_external(name)).collect();
        if !missing.is_empty() {
            return Err(format!("of {file} are missing: {missing:?}"));
        }
        if theirs.len() < 1000 {
            return Err(format!("{file} has only {} procedures", theirs.len()));
        }
    }
    Ok(())
}
