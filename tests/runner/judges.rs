//! Real Fortran programs, which `tests/judges` runs and compares with published values: its short list. `make judges`
//! runs all of it, beside MPICH.

mod files;

use crate::command::Program;
use crate::trials::Trial;
use crate::{Outcome, place, trial};

/// Groups of the short list, and the item of `tools/cache.sh` that brings their programs.
const GROUPS: [(&str, &str); 7] = [
    ("nwchem", "codes"),
    ("scalapack", "codes"),
    ("coarrays", "codes"),
    ("nas", "fortran"),
    ("f2py", "mpi4py"),
    ("tool", "fortran"),
    ("mixed", "mpich"),
];

/// One trial per group, and those of compilers.
pub fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> =
        GROUPS.into_iter().map(|(group, item)| trial(format!("judges/{group}"), move || judged(group, item))).collect();
    trials.push(trial("judges/mpif.h refuses long integers".into(), long_integers));
    trials.push(trial("judges/options of another compiler".into(), another_compiler));
    trials.extend(files::trials());
    trials
}

fn judged(group: &str, item: &str) -> Outcome {
    let folder = match item {
        "fortran" => "mpich-fortran",
        "codes" => "codes",
        _ => &format!("{item}-venv"),
    };
    let found = place::cached(folder, item)?;
    let cache = found.parent().ok_or("a folder of the cache has a parent")?;
    Program::new("python3")
        .arg(place::root().join("tests/judges/judges.py"))
        .arg("--built")
        .arg(place::built())
        .arg("--cache")
        .arg(cache)
        .args(["--quick", group])
        .seconds(400)
        .run()?
        .expect_code(0)?
        .expect_text(" passed, 0 failed")?;
    Ok(())
}

/// INTEGERs of 64 bits would be read as INTEGERs of 32: the compiler stops at a line of `mpif.h` that explains it.
fn long_integers() -> Outcome {
    let source = place::root().join("tests/programs/fortran/fixed.f");
    let compile = |options: &[&str]| {
        Program::new(place::built_file("mpif77")?).args(options).arg("-fsyntax-only").arg(&source).run()
    };
    compile(&[])?.expect_code(0)?;
    let ended = compile(&["-fdefault-integer-8"])?;
    if ended.code() == 0 {
        return Err(ended.failure("INTEGERs of 64 bits are to be refused"));
    }
    ended.expect_text("mpif.h:")?.expect_text("Division by zero")?;
    Ok(())
}

/// What is gfortran's own is not passed to other compilers, and each has its folder of modules.
fn another_compiler() -> Outcome {
    let shown = |compiler: &str| {
        Program::new(place::built_file("mpifort")?)
            .arg(format!("-fc={compiler}"))
            .args(["-show", "x.f90"])
            .run()?
            .expect_code(0)
    };
    let include = place::built_file("include")?.display().to_string();
    for compiler in ["gfortran", "x86_64-linux-gnu-gfortran-12"] {
        shown(compiler)?.expect_text(&format!("-I{include} -fallow-argument-mismatch x.f90"))?;
    }
    shown("/opt/llvm/bin/flang-new")?.expect_text(&format!("-I{include}/flang-new -I{include} x.f90"))?;
    Ok(())
}
