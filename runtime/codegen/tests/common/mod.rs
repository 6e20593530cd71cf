//! What the tests are given: paths in environment variables, so that nothing is skipped unseen.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("repository")
}

/// `apis.json` of the Python package pympistandard.
pub fn apis() -> PathBuf {
    given("TEST_COHORT_APIS", "apis.json of the Python package pympistandard")
}

/// Where MPICH's `mpi.h` and `mpi_abi.h` are.
pub fn mpich_include() -> PathBuf {
    given("TEST_COHORT_MPICH_INCLUDE", "the include directory of MPICH 5")
}

/// Where Open MPI's `mpi.h` is; its libraries lie in `../lib`.
pub fn openmpi_include() -> PathBuf {
    given("TEST_COHORT_OPENMPI_INCLUDE", "the include directory of Open MPI 5")
}

/// Where `libmpi_mpich.so` and `libmpi_mpi5.so` were built.
pub fn libraries() -> PathBuf {
    given("TEST_COHORT_LIBRARIES", "the directory of the built facades, target/release")
}

fn given(variable: &str, what: &str) -> PathBuf {
    match std::env::var_os(variable) {
        Some(path) => path.into(),
        None => panic!("set {variable} to {what}; `make test` does"),
    }
}

/// The interface as the generator sees it.
pub fn api() -> cohort_codegen::api::Api {
    cohort_codegen::api()
}

/// The constants as the generator sees them.
pub fn constants() -> Vec<cohort_codegen::constants::Constant> {
    cohort_codegen::constants()
}

/// A folder for one test with the headers that a build leaves.
pub fn include(name: &str) -> PathBuf {
    let folder = scratch(&format!("{name}_include"));
    for (file, text) in cohort_codegen::headers() {
        std::fs::write(folder.join(file), text).expect("written");
    }
    folder
}

pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A fresh directory for one test.
pub fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("scratch directory");
    path
}

/// A command that does not see the tests' own variables, which are no settings of Cohort.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"COHORT_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command that must succeed.
pub fn run<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> Output {
    let output = command(program).args(arguments).output().expect(program);
    assert!(output.status.success(), "{program}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    output
}

/// A node image whose table entry number `i` stores its first argument and returns `1000 + i`.
pub fn stand_in(directory: &Path) {
    let procedures = api().procedures;
    let version = cohort_base::boot::VERSION;
    let mut text = format!("#define VERSION {version}\n");
    text.push_str(
        "typedef struct { const void *rank, *table; } Attached;\n\
         static int rank;\nstatic const void *seen;\nunsigned cohort_test_abi;\n\
         int cohort_test_rank_passed(void) { int ok = seen == &rank; seen = 0; return ok; }\n",
    );
    for (index, procedure) in procedures.iter().enumerate() {
        let _ = writeln!(
            text,
            "static long e_{}(const void *caller) {{ seen = caller; return {}; }}",
            procedure.name,
            1000 + index
        );
    }
    text += "static long (*const table[])(const void *) = {\n";
    for procedure in &procedures {
        let _ = writeln!(text, "e_{},", procedure.name);
    }
    text += "};\n\
        static Attached attach(const void *boot, unsigned abi, const void *objects) {\n\
        (void)boot; cohort_test_abi = abi; Attached a = { &rank, table }; return a; }\n\
        static void report(void *node) { (void)node; }\n\
        static const struct { unsigned version; Attached (*attach)(const void *, unsigned, const void *);\n\
        void (*report)(void *); } api = { VERSION, attach, report };\n\
        const void *cohort_node_open(const void *boot, void **node) {\n\
        (void)boot; *node = 0; return &api; }\n";
    let source = directory.join("node.c");
    std::fs::write(&source, text).expect("written");
    let image = directory.join("libcohort_node.so");
    let files = [source.to_str().unwrap(), "-o", image.to_str().unwrap()];
    run("cc", &[&["-shared", "-fPIC", "-O1", "-w"], &files[..]].concat());
}

/// Names, kinds (those of `nm`) and sizes of what a library exports.
pub fn symbols(library: &Path) -> BTreeMap<String, (char, u64)> {
    let path = library.to_str().expect("UTF-8");
    let listed = run("nm", &["-D", "-S", "--defined-only", path]).stdout;
    let listed = String::from_utf8(listed).expect("text");
    let read = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, size, kind, name] = words[..] else {
            return None;
        };
        let size = u64::from_str_radix(size, 16).ok()?;
        Some((name.to_owned(), (kind.chars().next()?, size)))
    };
    listed.lines().filter_map(read).collect()
}

/// Whether a variable of this kind is in memory that may be written.
pub fn is_writable(kind: char) -> bool {
    "BDGS".contains(kind)
}
