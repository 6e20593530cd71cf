//! The built facades: what they export, what they need, and where each name leads.

mod common;

use cohort_codegen::ctype::Base;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// Built file, name that programs ask for, ABI number of `NodeApi::attach`.
const FACADES: [(&str, &str, u32); 3] = [
    ("libmpi_mpich.so", "libmpi.so.12", 12),
    ("libmpi_mpi5.so", "libmpi_abi.so.1", 5),
    ("libmpi_openmpi.so", "libmpi.so.40", 40),
];

/// The generator's name of the ABI with this number.
fn generator_name(abi: u32) -> &'static str {
    match abi {
        12 => "Mpich",
        5 => "Mpi5",
        _ => "OpenMpi",
    }
}

/// What the MPICH ABI has besides procedures.
const MPICH_EXTRA: [&str; 20] = [
    "MPII_F_FALSE",
    "MPII_F_TRUE",
    "MPIX_GPU_query_support",
    "MPIX_Query_cuda_support",
    "MPIX_Query_hip_support",
    "MPIX_Query_ze_support",
    "PMPIX_GPU_query_support",
    "PMPIX_Query_cuda_support",
    "PMPIX_Query_hip_support",
    "PMPIX_Query_ze_support",
    "MPIR_Dup_fn",
    "MPIR_F08_MPI_STATUSES_IGNORE_OBJ",
    "MPIR_F08_MPI_STATUS_IGNORE_OBJ",
    "MPI_F08_STATUSES_IGNORE",
    "MPI_F08_STATUS_IGNORE",
    "MPI_F_STATUSES_IGNORE",
    "MPI_F_STATUS_IGNORE",
    "MPI_T_PVAR_ALL_HANDLES",
    "MPI_UNWEIGHTED",
    "MPI_WEIGHTS_EMPTY",
];

/// Calls of the C library that a rank may not make as a program by itself does (`facade/src/memory.rs`, `limit.rs`,
/// `names.rs`).
const OF_LIBC: [&str; 42] = [
    "__open64_2",
    "__open_2",
    "__openat64_2",
    "__openat_2",
    "__readlink_chk",
    "__readlinkat_chk",
    "creat",
    "creat64",
    "fopen",
    "fopen64",
    "freopen",
    "freopen64",
    "mlockall",
    "munlockall",
    "shmat",
    "shmdt",
    "open",
    "open64",
    "openat",
    "openat64",
    "prctl",
    "brk",
    "mmap",
    "mmap64",
    "mprotect",
    "mremap",
    "munmap",
    "prlimit",
    "prlimit64",
    "readlink",
    "readlinkat",
    "sbrk",
    "setegid",
    "seteuid",
    "setgid",
    "setregid",
    "setresgid",
    "setresuid",
    "setreuid",
    "setrlimit",
    "setrlimit64",
    "setuid",
];

fn output(program: &str, arguments: &[&str]) -> String {
    String::from_utf8(common::run(program, arguments).stdout).expect("text")
}

#[test]
fn exports_are_exactly_the_procedures() {
    for (file, _, abi) in FACADES {
        let path = common::libraries().join(file);
        let symbols = output("nm", &["-D", "--defined-only", path.to_str().unwrap()]);
        let mut exported: BTreeSet<String> =
            symbols.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect();
        let mut expected = BTreeSet::new();
        let procedures = common::api().procedures;
        let there = procedures.iter().filter(|p| p.is_in(generator_name(abi)));
        for procedure in there {
            expected.insert(procedure.c_name());
            expected.insert(format!("P{}", procedure.c_name()));
        }
        expected.extend(OF_LIBC.map(str::to_owned));
        if abi == 12 {
            expected.extend(MPICH_EXTRA.map(str::to_owned));
        }
        if abi == 40 {
            // `openmpi.rs` compares the others with Open MPI's.
            exported.retain(|name| expected.contains(name));
        }
        assert_eq!(exported, expected, "{file}");
    }
}

#[test]
fn facades_have_their_name_and_no_thread_local_data() {
    for (file, name, _) in FACADES {
        let path = common::libraries().join(file);
        let headers = output("readelf", &["-lW", path.to_str().unwrap()]);
        assert!(headers.contains("LOAD") && !headers.contains("TLS"), "{file}: {headers}");
        let dynamic = output("readelf", &["-dW", path.to_str().unwrap()]);
        assert!(dynamic.contains(&format!("[{name}]")), "{file}: {dynamic}");
        let needed: Vec<&str> = dynamic.lines().filter(|l| l.contains("(NEEDED)")).collect();
        assert!(needed.iter().all(|l| l.contains("[libc.so.6]")), "{file}: {needed:?}");
    }
}

/// A program that calls every procedure of the facade at `argv[1]` and checks the answers.
fn caller(directory: &Path) -> String {
    let mut text = String::from(
        "#include <dlfcn.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
         #include <sys/wait.h>\n#include <unistd.h>\n\
         static void *mpi;\nstatic int (*passed)(void);\n\
         static int check(const char *name, long expected, int narrow) {\n\
         long (*f)(long, long, long, long, long, long) = dlsym(mpi, name);\n\
         if (!f) { printf(\"%s is missing\\n\", name); return 1; }\n\
         long got = f(1, 2, 3, 4, 5, 6);\n\
         if (!passed()) { printf(\"%s passes another rank\\n\", name); return 1; }\n\
         if (narrow && (int)got != expected) {\n\
         printf(\"%s gives %ld, not %ld\\n\", name, got, expected); return 1; }\n\
         return 0; }\n\
         int main(int argc, char **argv) {\n(void)argc;\nint failed = 0, flag = 0, status;\n\
         mpi = dlopen(argv[1], RTLD_NOW);\nif (!mpi) { puts(dlerror()); return 1; }\n\
         void *node = dlopen(argv[2], RTLD_NOW | RTLD_NOLOAD);\n\
         if (!node) { puts(\"the node image is not the one beside the facade\"); return 1; }\n\
         passed = dlsym(node, \"cohort_test_rank_passed\");\n\
         if (*(unsigned *)dlsym(node, \"cohort_test_abi\") != (unsigned)atoi(argv[3])) return 1;\n",
    );
    for (index, procedure) in common::api().procedures.iter().enumerate() {
        let narrow = u8::from(procedure.returns != Base::Double);
        let there = FACADES.iter().filter(|(_, _, abi)| procedure.is_in(generator_name(*abi)));
        let there: Vec<String> = there.map(|(_, _, abi)| format!("atoi(argv[3]) == {abi}")).collect();
        for prefix in ["", "P"] {
            let _ = writeln!(
                text,
                "if ({}) failed += check(\"{prefix}{}\", {}, {narrow});",
                there.join(" || "),
                procedure.c_name(),
                1000 + index
            );
        }
    }
    text += "fflush(stdout);\nif (fork() == 0) {\n\
             int (*ask)(int *) = dlsym(mpi, \"MPI_Finalized\");\nask(&flag);\n\
             if (!flag) _exit(9);\n((int (*)(void))dlsym(mpi, \"MPI_Finalize\"))();\n_exit(8); }\n\
             wait(&status);\n\
             if (!WIFEXITED(status) || WEXITSTATUS(status) != 1) {\n\
             printf(\"MPI in a forked child: status %x\\n\", status); failed++; }\n\
             return failed != 0;\n}\n";
    let source = directory.join("caller.c");
    std::fs::write(&source, text).expect("written");
    let program = directory.join("caller").to_str().unwrap().to_owned();
    common::run("cc", &["-w", source.to_str().unwrap(), "-o", &program, "-ldl"]);
    program
}

#[test]
fn every_name_calls_its_own_entry_with_the_rank() {
    let directory = common::scratch("entries");
    common::stand_in(&directory);
    let program = caller(&directory);
    let node = directory.join("libcohort_node.so");
    for (file, name, abi) in FACADES {
        let facade = directory.join(name);
        std::fs::copy(common::libraries().join(file), &facade).expect("copied facade");
        let output = common::command(&program).args([&facade, &node]).arg(abi.to_string()).output().expect("started");
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {text}{errors}");
        assert!(errors.contains("was forked by an MPI process"), "{name}: {errors}");
    }
}

/// Starts a program that only loads the MPI-5 facade, in a directory of its own.
/// The node image lies in the folder `node` below, if there is one.
fn load_alone(test: &str, setting: Option<(&str, &str)>, node: Option<&str>) -> (Option<i32>, String) {
    let directory = common::scratch(test);
    let facade = directory.join("libmpi_abi.so.1");
    std::fs::copy(common::libraries().join("libmpi_mpi5.so"), &facade).expect("copied facade");
    if let Some(folder) = node {
        let folder = directory.join(folder);
        std::fs::create_dir_all(&folder).expect("created");
        common::stand_in(&folder);
    }
    let source = directory.join("empty.c");
    std::fs::write(&source, "int MPI_Barrier(void *);\nint main(void) { MPI_Barrier(0); return 0; }\n")
        .expect("written");
    let program = directory.join("empty");
    let rpath = format!("-Wl,-rpath,{}", directory.display());
    let files = [source.to_str().unwrap(), facade.to_str().unwrap(), "-o", program.to_str().unwrap()];
    common::run("cc", &[&files[..], &[&rpath]].concat());
    let output = common::command(&program).envs(setting).output().expect("started");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_missing_node_image_is_named() {
    let (status, message) = load_alone("no_node", None, None);
    assert_eq!(status, Some(127), "{message}");
    assert!(message.contains("/no_node/libcohort_node.so"), "{message}");
}

/// As where an environment's `lib` has the names of MPI libraries, and `lib/cohort` all of ours.
#[test]
fn the_node_image_may_lie_in_a_folder_below() {
    let (status, message) = load_alone("node_below", None, Some("cohort"));
    assert!(!message.contains("cannot load"), "{message}");
    let (beside, _) = load_alone("node_beside", None, Some(""));
    assert_eq!(status, beside, "{message}");
}

#[test]
fn a_misspelt_setting_is_refused() {
    let (status, message) = load_alone("misspelt", Some(("COHORT_PROGRES", "steal")), Some(""));
    assert_eq!(status, Some(1), "{message}");
    assert!(message.contains("did you mean COHORT_PROGRESS?"), "{message}");
}

/// A tool that defines `MPI_Send` and calls `PMPI_Send` is entered once per call.
#[test]
fn profiling_names_can_be_interposed() {
    let directory = common::scratch("interposed");
    common::stand_in(&directory);
    let facade = directory.join("libmpi_abi.so.1");
    std::fs::copy(common::libraries().join("libmpi_mpi5.so"), &facade).expect("copied facade");
    let source = directory.join("tool.c");
    let text = "#include <mpi.h>\nstatic int calls;\n\
        int MPI_Send(const void *b, int n, MPI_Datatype t, int d, int g, MPI_Comm c) {\n\
        calls++; return PMPI_Send(b, n, t, d, g, c); }\n\
        int main(void) { MPI_Send(0, 0, MPI_INT, 0, 0, MPI_COMM_SELF); return calls != 1; }\n";
    std::fs::write(&source, text).expect("written");
    let program = directory.join("tool").to_str().unwrap().to_owned();
    let include = format!("-I{}", common::include("interposed").display());
    let rpath = format!("-Wl,-rpath,{}", directory.display());
    let files = [source.to_str().unwrap(), facade.to_str().unwrap(), "-o", &program];
    common::run("cc", &[&files[..], &[&include, &rpath]].concat());
    common::run::<&str>(&program, &[]);
}

/// Old binaries ask for `libmpich.so.12`, others for `libmpi.so.12`: a link makes both the same
/// object, even when one process asks for both.
#[test]
fn the_two_names_of_the_mpich_abi_are_one_object() {
    let directory = common::scratch("two_names");
    common::stand_in(&directory);
    let facade = directory.join("libmpi.so.12");
    std::fs::copy(common::libraries().join("libmpi_mpich.so"), &facade).expect("copied facade");
    std::os::unix::fs::symlink("libmpi.so.12", directory.join("libmpich.so.12")).expect("linked");
    let source = directory.join("both.c");
    let text = "#include <dlfcn.h>\nint main(int argc, char **argv) {\n\
        void *a = dlopen(argv[argc - 2], RTLD_NOW), *b = dlopen(argv[argc - 1], RTLD_NOW);\n\
        return !a || a != b; }\n";
    std::fs::write(&source, text).expect("written");
    let program = directory.join("both").to_str().unwrap().to_owned();
    common::run("cc", &[source.to_str().unwrap(), "-o", &program, "-ldl"]);
    for names in [["libmpich.so.12", "libmpi.so.12"], ["libmpi.so.12", "libmpich.so.12"]] {
        let status =
            common::command(&program).args(names).env("LD_LIBRARY_PATH", &directory).status().expect("started");
        assert!(status.success(), "{names:?}: {status}");
    }
}

/// What MPICH's library has for programs, ours has: else the dynamic linker ends them in their middle.
#[test]
fn functions_of_mpich_are_there() {
    for (own, theirs) in [("libmpi_mpich.so", "libmpi.so.12"), ("libmpi_mpi5.so", "libmpi_abi.so.1")] {
        let own = common::libraries().join(own);
        let theirs = common::mpich_include().join("../lib").join(theirs);
        let names = |library: &Path| -> BTreeSet<String> {
            let path = library.to_str().expect("UTF-8");
            let listed = output("nm", &["-D", "--defined-only", path]);
            let names = listed.lines().filter_map(|line| line.split_whitespace().last());
            let of_programs = |name: &&str| {
                let own = name.strip_prefix('P').unwrap_or(name);
                own.starts_with("MPI_") || own.starts_with("MPIX_")
            };
            names.filter(of_programs).map(str::to_owned).collect()
        };
        let (own, theirs) = (names(&own), names(&theirs));
        assert!(theirs.len() > 1000, "{}", theirs.len());
        let missing: Vec<&String> = theirs.difference(&own).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}

/// Programs of the MPICH ABI hold copies of its variables, and may write where they can in MPICH's own library.
#[test]
fn variables_of_mpich_are_as_long_and_as_writable() {
    let own = common::symbols(&common::libraries().join("libmpi_mpich.so"));
    let theirs = common::symbols(&common::mpich_include().join("../lib/libmpi.so.12"));
    let mut compared = 0;
    for (name, (kind, size)) in &theirs {
        if let (false, Some(own)) = ("TW".contains(*kind), own.get(name)) {
            let theirs = (common::is_writable(*kind), size);
            assert_eq!((common::is_writable(own.0), &own.1), theirs, "{name}");
            compared += 1;
        }
    }
    assert!(compared >= 9, "{compared}");
}
