//! Our column, library and types of Open MPI's ABI, against the header and the library of Open MPI.

mod common;

use cohort_codegen::constants::{Column, Constant};
use std::collections::BTreeMap;

/// Whether C programs call this. Upper-case names are those of Fortran's functions.
fn is_of_c(name: &str) -> bool {
    let own = name.strip_prefix('P').unwrap_or(name);
    let is_upper = own.bytes().all(|byte| !byte.is_ascii_lowercase());
    (own.starts_with("MPI_") || own.starts_with("MPIX_")) && !is_upper
}

fn gcc(name: &str, text: &str, option: &str) -> String {
    let source = common::scratch(name).join("openmpi.c");
    std::fs::write(&source, text).expect("written");
    let include = format!("-I{}", common::openmpi_include().display());
    let source = source.to_str().expect("UTF-8");
    let arguments = ["-std=gnu11", "-w", option, include.as_str(), source];
    String::from_utf8(common::run("gcc", &arguments).stdout).expect("text")
}

#[test]
fn numbers_are_those_of_its_header() {
    let mut text = "#include <stddef.h>\n#include <mpi.h>\n#include <mpi-ext.h>\n".to_owned();
    for constant in common::constants() {
        if let Some((_, value)) = constant.pair(Column::OpenMpi) {
            let name = constant.c_name();
            text += &format!("_Static_assert((long long)({name}) == {value}LL, \"{name}\");\n");
        }
    }
    assert!(text.lines().count() > 220, "{}", text.lines().count());
    // As `abi/src/openmpi.rs` has them, which asserts its side.
    for (what, value) in [
        ("sizeof(MPI_Status)", 24),
        ("offsetof(MPI_Status, MPI_SOURCE)", 0),
        ("offsetof(MPI_Status, MPI_TAG)", 4),
        ("offsetof(MPI_Status, MPI_ERROR)", 8),
        ("offsetof(MPI_Status, _cancelled)", 12),
        ("offsetof(MPI_Status, _ucount)", 16),
        ("sizeof(MPI_Aint)", 8),
        ("sizeof(MPI_Count)", 8),
        ("sizeof(MPI_Offset)", 8),
        ("sizeof(MPI_Fint)", 4),
        ("sizeof(MPI_T_enum)", 8),
    ] {
        text += &format!("_Static_assert({what} == {value}, \"{what}\");\n");
    }
    gcc("openmpi_numbers", &text, "-fsyntax-only");
}

#[test]
fn handles_are_the_variables_of_its_header() {
    let constants = common::constants();
    let handles: Vec<(&Constant, &str)> =
        constants.iter().filter_map(|constant| Some((constant, constant.variable()?.0))).collect();
    let mut text = "#include <mpi.h>\n".to_owned();
    for (constant, variable) in &handles {
        text += &format!("HANDLE {variable} {}\n", constant.c_name());
    }
    let expanded = gcc("openmpi_handles", &text, "-E");
    let lines: Vec<&str> = expanded.lines().filter(|l| l.starts_with("HANDLE ")).collect();
    assert_eq!(lines.len(), handles.len());
    let absent = ["MPI_INTEGER16", "MPI_REAL2", "MPI_COMPLEX4"];
    for line in lines {
        let rest = line.strip_prefix("HANDLE ").expect("begins so");
        let (variable, value) = rest.split_once(' ').expect("two words");
        let is_it = value.contains(&format!("&({variable})"));
        assert!(is_it || absent.contains(&value), "{line}");
    }
}

/// Programs may hold copies of the variables, which the dynamic linker makes by size.
#[test]
fn the_library_has_its_functions_and_its_variables_of_the_same_size() {
    let own = common::symbols(&common::libraries().join("libmpi_openmpi.so"));
    let theirs = common::symbols(&common::openmpi_include().join("../lib/libmpi.so.40"));
    let functions = theirs.iter().filter(|(_, (kind, _))| "TW".contains(*kind));
    let missing: Vec<&String> =
        functions.map(|(name, _)| name).filter(|name| is_of_c(name) && !own.contains_key(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let mut compared = 0;
    for (name, (kind, size)) in &theirs {
        let is_variable = !"TW".contains(*kind);
        if let (true, Some(own)) = (is_variable, own.get(name)) {
            // Its C++ library writes into some.
            let theirs = (common::is_writable(*kind), size);
            assert_eq!((common::is_writable(own.0), &own.1), theirs, "{name}");
            compared += 1;
        }
    }
    assert!(compared > 105, "{compared}");
}

/// Constants in Fortran's headers of Open MPI, in capitals, and their numbers.
fn of_fortran() -> BTreeMap<String, i64> {
    let folder = "../../openmpi-fortran/usr/lib/x86_64-linux-gnu/openmpi/include";
    let folder = common::openmpi_include().join(folder);
    let mut found = BTreeMap::new();
    for part in ["config", "constants", "handles", "io-constants", "io-handles"] {
        let path = folder.join(format!("mpif-{part}.h"));
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|e| panic!("{}: {e}; tools/cache.sh openmpi-fortran", path.display()));
        for line in text.lines().filter(|line| !line.starts_with('!')) {
            let parameter = line.trim().strip_prefix("parameter");
            let parameter = parameter.map(|rest| rest.trim().trim_matches(['(', ')']));
            let Some((name, value)) = parameter.and_then(|rest| rest.split_once('=')) else {
                continue;
            };
            // Lengths are written as a difference.
            let parts: Option<Vec<i64>> = value
                .trim()
                .split('-')
                .map(|part| match part.trim() {
                    "" => Some(0),
                    digits => digits.parse().ok(),
                })
                .collect();
            if let Some([first, rest @ ..]) = parts.as_deref() {
                found.insert(name.trim().to_owned(), first - rest.iter().sum::<i64>());
            }
        }
    }
    found
}

/// Handles are other numbers in Fortran than in C; the other constants are the same.
#[test]
fn handles_and_numbers_are_those_of_fortran() {
    let theirs = of_fortran();
    let constants = common::constants();
    let (mut handles, mut numbers) = (0, 0);
    for constant in &constants {
        let Some(&value) = theirs.get(&constant.c_name().to_uppercase()) else {
            continue;
        };
        if let Some((_, number)) = constant.variable() {
            assert_eq!(i64::from(number), value, "{}", constant.c_name());
            handles += 1;
        }
        // What the standard's version is, each library says for itself.
        if let (true, Some((_, number))) = (constant.family != "version", constant.pair(Column::OpenMpi)) {
            let number = number - i64::from(constant.family == "limit");
            assert_eq!(number, value, "{}", constant.c_name());
            numbers += 1;
        }
    }
    assert!(handles > 95 && numbers > 150, "{handles} {numbers}");
    assert_eq!(theirs["MPI_STATUS_SIZE"], 6);
    for (place, name) in ["MPI_SOURCE", "MPI_TAG", "MPI_ERROR"].iter().enumerate() {
        assert_eq!(theirs[*name], 1 + place as i64, "{name}");
    }
}
