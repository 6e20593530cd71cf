//! `mpi.h` compiles everywhere, and the constants are those of the installed headers.

mod common;

use cohort_codegen::constants::{Constant, Value};
use std::path::Path;

/// Constants that are variables or functions in MPICH's header, so that C cannot assert them.
const VARIABLES: &[&str] = &["UNWEIGHTED", "WEIGHTS_EMPTY", "T_PVAR_ALL_HANDLES"];

/// A C program that asserts the value of each constant under `number`.
fn assertions(header: &str, number: impl Fn(&Constant) -> Option<i64>) -> String {
    let mut text = format!("#include <stddef.h>\n#include \"{header}\"\n");
    for constant in common::constants() {
        if let Some(value) = number(&constant) {
            let name = constant.c_name();
            let wide = if constant.handle().is_some() { "unsigned" } else { "long long" };
            text += &format!("_Static_assert(({wide})(long long){name} == ({wide}){value}LL, \"{name}\");\n");
        }
    }
    text
}

fn compile(name: &str, text: &str, include: &Path) {
    let source = common::scratch(name).join("constants.c");
    std::fs::write(&source, text).expect("written");
    let include = format!("-I{}", include.display());
    // Casts of pointers to integers are constant expressions to GCC, not to the standard.
    common::run("gcc", &["-std=gnu11", "-w", "-fsyntax-only", &include, source.to_str().unwrap()]);
}

#[test]
fn mpich_values_are_those_of_its_header() {
    let text = assertions("mpi.h", |constant| match &constant.value {
        _ if VARIABLES.contains(&constant.name.as_str()) => None,
        Value::Numbers { mpich, .. } => *mpich,
        Value::Alias(_) => None,
    });
    assert!(text.lines().count() > 300);
    compile("mpich_constants", &text, &common::mpich_include());
}

#[test]
fn mpi5_values_are_those_of_the_abi_header_and_of_ours() {
    let text = assertions("mpi_abi.h", |constant| constant.mpi5().filter(|_| !constant.is_extension()));
    compile("mpi5_constants", &text, &common::mpich_include());
    let text = assertions("mpi.h", Constant::mpi5);
    compile("own_constants", &text, &common::include("own_constants"));
}

/// Our prototypes do not contradict those of another implementation of the MPI-5 ABI: both
/// headers in one file, the other one's types and constants taken from ours.
#[test]
fn prototypes_agree_with_the_abi_header() {
    let other = common::read(&common::mpich_include().join("mpi_abi.h"));
    let (_, prototypes) = other.split_once("/* MPI functions */").expect("prototypes");
    let prototypes: Vec<&str> = prototypes
        .lines()
        .filter(|line| line.ends_with(';') || line.contains("; /*"))
        .filter(|line| !line.contains("MPIX_") && line.contains("MPI_"))
        .collect();
    assert!(prototypes.len() > 600, "{}", prototypes.len());
    let text = format!("#include \"mpi.h\"\n{}\n", prototypes.join("\n"));
    compile("prototypes", &text, &common::include("prototypes"));
}

/// The procedures that both facades export have the prototypes of MPICH's `mpi.h` too, with that ABI's types.
#[test]
fn prototypes_agree_with_the_header_of_mpich() {
    let own = common::read(&common::include("mpich_prototypes").join("mpi.h"));
    let prototype = |line: &str| {
        let (result, rest) = line.split_once(' ')?;
        let (name, parameters) = rest.split_once('(')?;
        let is_function = name.trim_start_matches('P').starts_with("MPI_") && line.ends_with(");");
        // A name in parentheses is no macro; MPICH's header has macros with the names of some functions.
        is_function.then(|| format!("{result} ({name})({parameters}"))
    };
    let prototypes: Vec<String> = own.lines().filter_map(prototype).collect();
    assert!(prototypes.len() > 1300, "{}", prototypes.len());
    let text = format!("#include \"mpi.h\"\n{}\n", prototypes.join("\n"));
    compile("mpich_prototypes", &text, &common::mpich_include());
}

#[test]
fn the_header_compiles_without_warnings_as_c_and_cxx() {
    let directory = common::scratch("header");
    let text = "#include \"mpi.h\"\nint main(int argc, char **argv) {\n\
                MPI_Request request = MPI_REQUEST_NULL;\n\
                MPI_Init(&argc, &argv);\n\
                MPI_Wait(&request, MPI_STATUS_IGNORE);\n\
                return MPI_Finalize();\n}\n";
    let include = format!("-I{}", common::include("header").display());
    let warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"];
    let modes = [
        ("cc", "-std=c99", "a.c"),
        ("cc", "-std=c17", "b.c"),
        ("c++", "-std=c++98", "c.cc"),
        ("c++", "-std=c++17", "d.cc"),
    ];
    for (compiler, standard, file) in modes {
        let source = directory.join(file);
        std::fs::write(&source, text).expect("written");
        // C++98 has no 64-bit integers of its own, but every compiler's <stdint.h> does.
        let mut arguments = vec![standard, "-Wno-long-long", &include, source.to_str().unwrap()];
        arguments.extend(warnings);
        common::run(compiler, &arguments);
    }
}
