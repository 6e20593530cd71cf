//! Each package is installed into a fresh place, and programs run from there with an environment that has nothing
//! else: a C program in both ABIs' spelling of commands, and mpi4py from the wheel.

mod packages;
mod shells;

use crate::command::{Ended, Program};
use crate::trials::Trial;
use crate::{Outcome, place, trial};
use std::path::{Path, PathBuf};

/// Where compilers and tools of the system are.
const SYSTEM: &str = "/usr/bin:/bin:/usr/sbin:/sbin";

/// A program that fails in a world of another size than 4.
const HELLO: &str = r#"
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    int rank, size, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("size %d sum %d\n", size, sum);
    MPI_Finalize();
    return 0;
}
"#;

/// The same in Fortran, by the module.
const FORTRAN: &str = "program hello
  use mpi
  implicit none
  integer :: rank, total, error
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  if (rank == 0) print '(a,i0)', 'sum ', total
  call MPI_Finalize(error)
end program
";

/// The trials of this module and those below it.
pub fn trials() -> Vec<Trial> {
    vec![
        trial("install/prefix".into(), prefix),
        trial("install/tarball".into(), packages::tarball),
        trial("install/deb".into(), packages::deb),
        trial("install/wheel".into(), packages::wheel),
        trial("install/cmake".into(), cmake),
        trial("install/completion".into(), shells::completion),
        trial("install/manual".into(), shells::manual),
    ]
}

/// An empty folder outside the source tree, gone at the end.
struct Fresh(PathBuf);

impl Fresh {
    fn new(name: &str) -> Result<Self, String> {
        let name = format!("cohort-install-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.path(name);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A script of `tools`.
fn tool(name: &str) -> Program {
    let script = place::root().join("tools").join(name);
    Program::new(script).env("TEST_COHORT_CACHE", place::cache()).seconds(240)
}

/// Installs the build below `destination`, for the prefix `/opt/mpi`.
fn install(destination: &Path) -> Result<(), String> {
    tool("install.sh").arg("--strip").arg(place::built()).arg("/opt/mpi").arg(destination).run()?.expect_code(0)?;
    Ok(())
}

/// A command with `bin` and the system's folders to search, in the fresh folder.
fn clean(fresh: &Fresh, bin: &Path, command: &str) -> Program {
    let path = format!("{}:{SYSTEM}", bin.display());
    let own = bin.join(command);
    let file = if own.exists() { own } else { command.into() };
    Program::new(file).clean(path).directory(&fresh.0).seconds(240)
}

/// Compiles and runs the C program with the commands of `bin`, whose names end with `suffix`.
fn programs(fresh: &Fresh, bin: &Path, suffix: &str) -> Outcome {
    fresh.write("hello.c", HELLO)?;
    fresh.write("hello.f90", FORTRAN)?;
    let named = |name: &str| clean(fresh, bin, &format!("{name}{suffix}"));
    let compile = ["hello.c", "-o", "hello"];
    named("mpicc").args(compile).run()?.expect_code(0)?;
    for launcher in ["mpiexec", "mpirun"] {
        let job = named(launcher).args(["-n", "4", "./hello"]);
        job.run()?.expect_code(0)?.expect_text("size 4 sum 6")?;
    }
    // Without a launcher a world of one, with the libraries of this place.
    let alone = clean(fresh, bin, "./hello");
    alone.run()?.expect_code(0)?.expect_text("size 1 sum 0")?;
    let fortran = ["hello.f90", "-o", "hello-f"];
    named("mpifort").args(fortran).run()?.expect_code(0)?;
    let job = named("mpiexec").args(["-n", "4", "./hello-f"]);
    job.run()?.expect_code(0)?.expect_text("sum 6")?;
    version(clean(fresh, bin, "pip-exec").arg("--version").run()?)
}

/// `--version` says version, commit, ABIs and networks.
fn version(said: Ended) -> Outcome {
    let said = said.expect_code(0)?.expect_text(concat!(" ", env!("CARGO_PKG_VERSION"), ", commit "))?;
    for word in ["libmpi.so.12", "libmpi_abi.so.1", "libmpi.so.40", "libfabric", "TCP"] {
        if !said.stdout.contains(word) {
            return Err(said.failure(&format!("expected {word}")));
        }
    }
    Ok(())
}

/// Files and links below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let below = |path: PathBuf| match path.is_dir() && !path.is_symlink() {
        true => files(&path),
        false => vec![path],
    };
    paths.flat_map(below).collect()
}

/// Ranks get jemalloc from where everything is installed; without it, it is said what is missing.
fn jemalloc(fresh: &Fresh, mpi: &Path) -> Outcome {
    let job = || {
        let job = clean(fresh, &mpi.join("bin"), "mpiexec").args(["-n", "4"]);
        job.args(["-genv", "COHORT_MALLOC", "jemalloc", "./hello"]).run()
    };
    job()?.expect_code(0)?.expect_text("size 4 sum 6")?;
    let library = mpi.join("lib/cohort/libcohort_malloc.so");
    std::fs::remove_file(library).map_err(|error| error.to_string())?;
    let refused = job()?.expect_code(2)?;
    let refused = refused.expect_text("libcohort_malloc.so is missing in")?;
    refused.expect_text("without COHORT_MALLOC=jemalloc").map(drop)
}

/// `make install`: found by pkg-config too, may be moved, and is removed whole.
fn prefix() -> Outcome {
    let fresh = Fresh::new("prefix")?;
    install(&fresh.path("root"))?;
    let uninstall = || tool("install.sh").args(["--uninstall", "/opt/mpi"]);
    // A second time, over the first.
    install(&fresh.path("root"))?;
    let moved = fresh.path("elsewhere");
    std::fs::rename(fresh.path("root"), &moved).map_err(|error| error.to_string())?;
    let mpi = moved.join("opt/mpi");
    programs(&fresh, &mpi.join("bin"), "")?;
    for (name, compiler, source) in [("cohort", "cc", "hello.c"), ("cohort-fortran", "gfortran", "hello.f90")] {
        let bin = mpi.join("bin");
        let flags = clean(&fresh, &bin, "pkg-config")
            .env("PKG_CONFIG_PATH", mpi.join("lib/pkgconfig"))
            .args(["--cflags", "--libs", name])
            .run()?
            .expect_code(0)?;
        let compile = clean(&fresh, &bin, compiler).args([source, "-o", name]);
        let compile = compile.args(flags.stdout.split_whitespace());
        compile.run()?.expect_code(0)?;
        let job = clean(&fresh, &bin, "mpiexec").args(["-n", "4"]);
        let job = job.arg(fresh.path(name)).run()?;
        job.expect_code(0)?.expect_text("sum 6")?;
    }
    jemalloc(&fresh, &mpi)?;
    uninstall().arg(&moved).run()?.expect_code(0)?;
    match files(&moved) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("uninstall leaves {left:?}")),
    }
}

/// A project that builds a program in C and one in Fortran.
const PROJECT: &str = r#"
cmake_minimum_required(VERSION 3.20)
project(hello C Fortran)
find_package(MPI 3.0 REQUIRED COMPONENTS C Fortran)
enable_testing()
foreach(language C Fortran)
    string(REPLACE Fortran f90 source hello.${language})
    string(TOLOWER ${source} source)
    add_executable(in-${language} ${source})
    target_link_libraries(in-${language} MPI::MPI_${language})
    add_test(NAME ${language} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 4 ./in-${language})
    set_tests_properties(${language} PROPERTIES PASS_REGULAR_EXPRESSION "sum 6")
endforeach()
"#;

/// CMake's `find_package(MPI)` finds the wrappers in the path.
fn cmake() -> Outcome {
    let fresh = Fresh::new("cmake")?;
    install(&fresh.path("root"))?;
    let bin = fresh.path("root/opt/mpi/bin");
    fresh.write("hello.c", HELLO)?;
    fresh.write("hello.f90", FORTRAN)?;
    fresh.write("CMakeLists.txt", PROJECT)?;
    let cmake = |words: &[&str]| clean(&fresh, &bin, "cmake").args(words).run()?.expect_code(0);
    let found = cmake(&["-S", ".", "-B", "build"])?;
    let library = fresh.path("root/opt/mpi/lib/cohort/libmpi_abi.so");
    found.expect_text(&library.display().to_string())?;
    cmake(&["--build", "build"])?;
    let test = clean(&fresh, &bin, "ctest").args(["--test-dir", "build", "--output-on-failure"]);
    test.run()?.expect_code(0)?.expect_text("100% tests passed, 0 tests failed out of 2")?;
    Ok(())
}
