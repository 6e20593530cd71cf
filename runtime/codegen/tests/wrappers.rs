//! `mpicc` and `mpicxx` as a build leaves them, in a directory whose name has a space.

mod common;

use std::path::{Path, PathBuf};

/// A build directory with the facades, stand-ins for the node image and the launcher, and the wrappers.
fn build_directory(name: &str) -> PathBuf {
    let target = common::scratch(name).join("target release");
    std::fs::create_dir(&target).expect("created");
    for file in [
        "libmpi_mpich.so",
        "libmpi_mpi5.so",
        "libmpi_openmpi.so",
        "libmpifort_mpich.so",
        "libmpi_fortran_openmpi.so",
        "libmpi_cxx_openmpi.so",
    ] {
        std::fs::copy(common::libraries().join(file), target.join(file)).expect("copied facade");
    }
    common::stand_in(&target);
    let generator = common::libraries().join("cohort-codegen");
    std::fs::copy(generator, target.join("cohort-codegen")).expect("copied generator");
    // Names of it are made, and nobody calls them.
    std::fs::write(target.join("pip-exec"), "").expect("written");
    let script = common::root().join("tools/install-names.sh");
    common::run("sh", &[script.as_path(), &target]);
    target
}

fn source(directory: &Path, name: &str) -> String {
    let path = directory.join(name);
    let text = "#include <mpi.h>\nint main(int argc, char **argv) {\n\
                return MPI_Init(&argc, &argv) == MPI_SUCCESS; }\n";
    std::fs::write(&path, text).expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

fn wrapper(target: &Path, name: &str, arguments: &[&str]) -> String {
    let program = target.join(name);
    let output = common::run(program.to_str().expect("UTF-8"), arguments);
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn programs_are_compiled_and_find_their_library() {
    let target = build_directory("wrappers_compile");
    for (name, file) in [("mpicc", "a.c"), ("mpicxx", "b.cc"), ("mpic++", "c.cc")] {
        let source = source(&target, file);
        let program = target.join("a program");
        let path = program.to_str().expect("UTF-8");
        wrapper(&target, name, &["-Wall", "-Werror", &source, "-o", path]);
        common::run::<&str>(path, &[]);
    }
}

#[test]
fn compiling_only_links_nothing() {
    let target = build_directory("wrappers_object");
    let source = source(&target, "a.c");
    let object = target.join("a.o").to_str().expect("UTF-8").to_owned();
    wrapper(&target, "mpicc", &["-c", &source, "-o", &object]);
    assert!(Path::new(&object).exists());
    let shown = wrapper(&target, "mpicc", &["-show", "-c", "x.c"]);
    assert!(shown.contains("-I") && !shown.contains("-lmpi_abi"), "{shown}");
}

#[test]
fn questions_are_answered_without_compiling() {
    let target = build_directory("wrappers_show");
    let shown = wrapper(&target, "mpicc", &["-cc=some-cc", "-show", "x.c", "-O2"]);
    assert!(shown.starts_with("some-cc ") && shown.contains("-O2"), "{shown}");
    assert!(shown.contains("x.c") && shown.contains("-lmpi_abi"), "{shown}");
    assert!(wrapper(&target, "mpicc", &["-link-info"]).contains("-lmpi_abi"));
    assert!(!wrapper(&target, "mpicc", &["-compile-info"]).contains("-lmpi_abi"));
    assert!(!wrapper(&target, "mpicxx", &["--version"]).is_empty());
    let shown = wrapper(&target, "mpifort", &["-fc=some-fc", "-show", "x.f90"]);
    assert!(shown.starts_with("some-fc ") && shown.contains("-lmpifort -lmpi"), "{shown}");
    assert!(!shown.contains("-lmpi_abi"), "{shown}");
}
