//! Which libraries a program will load: to find the MPI it was linked with, and to
//! estimate how many map entries a rank takes.
//!
//! This follows the dynamic linker's search order closely enough for both purposes; the
//! linker itself decides what is loaded.

use super::limits;
use cohort_base::libraries::{COMPANIONS, OTHERS};
use pip_ground::Environment;
use pip_load::elf::{self, LoadPlan};
use pip_load::image;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Names under which Cohort's own MPI libraries are asked for.
pub const MPI_LIBRARIES: [&str; 4] = ["libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1", "libmpi.so.40"];

/// How the files of such libraries begin where their names have the whole version.
const VERSIONED: [&str; 2] = ["libmpi.so.12.", "libmpi.so.40."];

/// Names under which our Fortran library of the MPICH ABI is asked for.
const FORTRAN_LIBRARIES: [&str; 2] = ["libmpifort.so.12", "libmpichfort.so.12"];

/// Where our Fortran libraries lie, below the folder of the MPI libraries.
pub const FORTRAN_FOLDER: &str = "fortran";

/// Libraries of Open MPI that programs name without need, for which we have one that has what they import.
const STAND_INS: [&str; 4] = ["libmpi_cxx.so.40", "libopen-pal.so.40", "libopen-pal.so.80", "libopen-rte.so.40"];

/// Where that one lies. It is used where the others are not to be found.
pub const STAND_IN_FOLDER: &str = "openmpi";

/// What following a program's dependencies found.
#[derive(Debug, Default)]
pub struct Dependencies {
    /// Shared objects, the program and the dynamic linker not counted.
    pub objects: usize,
    /// Map entries of those objects.
    pub map_entries: usize,
    /// The first of [`MPI_LIBRARIES`] that one of them needs.
    pub mpi_library: Option<&'static str>,
    /// An object that needs it, or what has loaded that one, has a `DT_RPATH`, which is searched before
    /// `--library-path`.
    pub rpath_first: bool,
    /// The file of another MPI's library with such a name that `LD_PRELOAD` has.
    pub preloaded_mpi: Option<PathBuf>,
    /// Bytes of thread-local data of those objects.
    pub thread_local: u64,
    /// The compiler's checker that one of them has.
    pub sanitizer: Option<&'static str>,
    /// A library of an MPI that we do not provide, and whose it is, if one of them needs one.
    pub other_mpi: Option<(String, Option<&'static str>)>,
    /// A library that works with another MPI only, and what it is, if one of them needs one.
    pub companion: Option<(String, &'static str)>,
    /// One of them needs the Fortran library of another MPI, made by the compiler that has made the program.
    pub mpich_fortran: bool,
    /// One of [`STAND_INS`] is needed and nowhere to be found.
    pub stand_in: bool,
    /// Files of the program and those objects.
    files: Vec<PathBuf>,
}

impl Dependencies {
    /// The file among them, beside the C library's, that has a `malloc`.
    #[must_use]
    pub fn own_malloc(&self) -> Option<&Path> {
        let file = self.files.iter().find(|path| {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            !name.starts_with(b"libc.so.") && !name.starts_with(b"ld-linux") && has_malloc(path)
        });
        file.map(PathBuf::as_path)
    }

    /// Whether the C library's `malloc` is theirs, and glibc's.
    #[must_use]
    pub fn has_glibc_malloc(&self) -> bool {
        let is_glibc = |path: &PathBuf| path.file_name().is_some_and(|name| name == "libc.so.6");
        self.files.iter().any(is_glibc) && self.own_malloc().is_none()
    }
}

/// Whether a file defines a `malloc` that others are to use.
fn has_malloc(path: &Path) -> bool {
    let bytes = File::open(path).ok().and_then(|file| image::file_bytes(&file).ok()?);
    bytes.is_some_and(|bytes| elf::exported_symbol(&bytes, "malloc").is_some())
}

/// Bytes of thread-local data of a library.
#[must_use]
pub fn thread_local(path: &Path) -> u64 {
    read_plan(path).map_or(0, |plan| plan.thread_local)
}

/// Follows the dependencies of the program `file`, and of the libraries that the environment loads before them.
#[must_use]
pub fn follow(file: &Path, plan: &LoadPlan, first: &Path, environment: &Environment) -> Dependencies {
    let variable = |name: &str| environment.get(OsStr::new(name)).cloned();
    let library_path = variable("LD_LIBRARY_PATH").unwrap_or_default();
    let preloaded = variable("LD_PRELOAD").unwrap_or_default();
    let mut plan = plan.clone();
    let preloaded = preloaded.to_string_lossy();
    let names = preloaded.split([':', ' ']).filter(|name| !name.is_empty());
    let preloaded_mpi = names.clone().find(|name| is_another_mpi(Path::new(name), first)).map(PathBuf::from);
    plan.needed.splice(0..0, names.map(str::to_owned));
    let mut found = Dependencies { preloaded_mpi, ..Dependencies::default() };
    let mut seen = HashSet::new();
    let system = system_folders(&plan);
    let linker = plan.interpreter.as_deref().map(Path::new);
    let linker = linker.and_then(Path::file_name).map(OsStr::to_owned);
    let mut queue = vec![(file.to_owned(), plan, Vec::new())];
    let own = [first.to_owned(), first.join(FORTRAN_FOLDER)];
    while let Some((object, plan, loaders)) = queue.pop() {
        found.sanitizer = found.sanitizer.or(plan.sanitizer);
        let origin = object.parent().unwrap_or(Path::new("/"));
        let runpath = expand(plan.runpath.as_deref().unwrap_or_default(), origin);
        // What has a DT_RUNPATH has no DT_RPATH for the linker, neither for itself nor for what it loads.
        let own_rpath = plan.rpath.as_deref().filter(|_| runpath.is_empty()).unwrap_or_default();
        let rpath: Vec<PathBuf> = expand(own_rpath, origin).into_iter().chain(loaders).collect();
        if FORTRAN_LIBRARIES.iter().any(|library| plan.needed.iter().any(|name| name == library)) {
            found.mpich_fortran |= needs_mpich_fortran(&object, &plan);
        }
        for name in plan.needed {
            if let Some(library) = MPI_LIBRARIES.into_iter().find(|library| *library == name) {
                found.mpi_library = found.mpi_library.or(Some(library));
                found.rpath_first |= !rpath.is_empty() && runpath.is_empty();
            }
            found.other_mpi = found.other_mpi.or_else(|| other_mpi(&name));
            found.companion = found.companion.or_else(|| companion(&name));
            if !seen.insert(name.clone()) || linker.as_deref() == Some(OsStr::new(&name)) {
                continue;
            }
            found.objects += 1;
            let before = rpath.iter().filter(|_| runpath.is_empty()).cloned();
            let folders = before
                .chain(own.iter().cloned())
                .chain(std::env::split_paths(&library_path))
                .chain(runpath.iter().cloned())
                .chain(system.iter().cloned());
            let read = |path: PathBuf| Some((path.clone(), read_plan(&path)?));
            let next = folders.map(|folder| folder.join(&name)).find_map(read);
            found.stand_in |= next.is_none() && STAND_INS.contains(&name.as_str());
            let size = next.as_ref().map_or(0, |(_, plan)| plan.thread_local);
            let entries = next.as_ref().map(|(_, plan)| plan.map_entries());
            found.map_entries += entries.unwrap_or(limits::PER_OBJECT);
            found.thread_local = found.thread_local.saturating_add(size);
            queue.extend(next.map(|(path, plan)| (path, plan, rpath.clone())));
        }
        found.files.push(object);
    }
    found
}

/// Whether a preloaded file, which is named with its folder, is a library of an MPI by name and not one of ours.
fn is_another_mpi(path: &Path, ours: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let folder = |path: &Path| path.parent()?.canonicalize().ok();
    let is_mpi = MPI_LIBRARIES.contains(&name) || VERSIONED.iter().any(|start| name.starts_with(start));
    is_mpi && path.components().count() > 1 && path.is_file() && folder(path) != ours.canonicalize().ok()
}

/// The file's name and its vendor, if this is a library of an MPI with another ABI than ours.
fn other_mpi(name: &str) -> Option<(String, Option<&'static str>)> {
    let file = Path::new(name).file_name()?.to_str()?;
    if MPI_LIBRARIES.contains(&file) || VERSIONED.iter().any(|start| file.starts_with(start)) {
        return None;
    }
    let (_, vendor) = OTHERS.iter().find(|(start, _)| file.starts_with(start))?;
    Some((name.to_owned(), *vendor))
}

/// The file's name and what it is, if this library works with another MPI only.
fn companion(name: &str) -> Option<(String, &'static str)> {
    let file = Path::new(name).file_name()?.to_str()?;
    let (_, what) = COMPANIONS.iter().find(|(start, _)| file.starts_with(start))?;
    Some((name.to_owned(), what))
}

/// Whether an object imports what only another Fortran library has: what compilers make of MPICH's modules for
/// polymorphic handles, or procedures of `mpi_f08` with arrays, whose descriptors our library knows as gfortran and
/// flang make them. A program that flang has made with our module brings that module's variables.
fn needs_mpich_fortran(object: &Path, plan: &LoadPlan) -> bool {
    let Some(bytes) = File::open(object).ok().and_then(|file| image::file_bytes(&file).ok()?) else {
        return false;
    };
    let imports = |wanted: fn(&str) -> bool| elf::imports(&bytes, wanted);
    let is_known = plan.needed.iter().any(|name| name.starts_with("libgfortran.so."))
        || imports(|name| name.starts_with("_gfortran_"))
        || elf::exported_symbol(&bytes, "MPIR_F08_MPI_BOTTOM").is_some();
    imports(|name| name.starts_with("__mpi_") && name.contains("_MOD___"))
        || !is_known && imports(|name| name.contains("_f08ts"))
}

fn read_plan(path: &Path) -> Option<LoadPlan> {
    let file = File::open(path).ok()?;
    elf::parse(&image::file_bytes(&file).ok()??).ok()
}

fn expand(list: &str, origin: &Path) -> Vec<PathBuf> {
    let origin = origin.to_string_lossy();
    list.split(':')
        .filter(|part| !part.is_empty())
        .map(|part| part.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin).into())
        .collect()
}

/// The linker's default folders; its own is the one of the distribution's libraries.
fn system_folders(plan: &LoadPlan) -> Vec<PathBuf> {
    let linker = plan.interpreter.as_ref().and_then(|path| Path::new(path).canonicalize().ok());
    let own = linker.as_deref().and_then(Path::parent).map(Path::to_owned);
    let of_several = ["/lib", "/usr/lib"].map(|folder| Path::new(folder).join(cohort_arch::LIBRARY_FOLDER));
    let fixed = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];
    own.into_iter().chain(of_several).chain(fixed.map(PathBuf::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_needs_libc_and_no_mpi() {
        let exe = std::env::current_exe().expect("has a path");
        let plan = read_plan(&exe).expect("is a PIE");
        let found = follow(&exe, &plan, Path::new("/nonexistent"), &Environment::new());
        assert!((1..20).contains(&found.objects), "{found:?}");
        assert_eq!(found.mpi_library, None);
    }

    #[test]
    fn an_mpi_program_with_rpath_is_recognised() {
        let needed = vec!["libmpich.so.12".to_owned()];
        let rpath = Some("/opt/mpi/lib".to_owned());
        let plan = LoadPlan { needed, rpath, ..LoadPlan::default() };
        let found = follow(Path::new("/x/app"), &plan, Path::new("/nonexistent"), &Environment::new());
        assert_eq!(found.mpi_library, Some("libmpich.so.12"));
        assert!(found.rpath_first);
        let plan = LoadPlan { runpath: Some("$ORIGIN".to_owned()), ..plan };
        let found = follow(Path::new("/x/app"), &plan, Path::new("/nonexistent"), &Environment::new());
        assert!(!found.rpath_first, "DT_RUNPATH makes the linker ignore DT_RPATH");
    }

    #[test]
    fn another_mpi_that_is_preloaded_is_recognised() {
        let folder = std::env::temp_dir().join(format!("preloaded-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("room");
        let [named, versioned] = ["libmpi.so.40", "libmpi.so.40.30.4"].map(|name| folder.join(name));
        for file in [&named, &versioned] {
            std::fs::write(file, "").expect("room");
        }
        let ours = Path::new("/nonexistent");
        assert!(is_another_mpi(&named, ours) && is_another_mpi(&versioned, ours));
        assert!(!is_another_mpi(&named, &folder), "ours by its path");
        assert!(!is_another_mpi(Path::new("libmpi.so.40"), ours), "what the linker looks for");
        assert!(!is_another_mpi(Path::new("/nonexistent/libmpi.so.40"), ours), "what the linker only warns of");
        std::fs::remove_dir_all(folder).expect("there");
    }

    #[test]
    fn what_is_preloaded_counts() {
        let exe = std::env::current_exe().expect("has a path");
        let plan = LoadPlan { thread_local: 1 << 20, ..LoadPlan::default() };
        let own = read_plan(&exe).expect("is a PIE").thread_local;
        assert!(own > 0, "the test's threads have data of their own");
        let preload = format!("/nonexistent/libx.so {}", exe.display());
        let environment = Environment::from([("LD_PRELOAD".into(), preload.into())]);
        let found = follow(Path::new("/x/app"), &plan, Path::new("/nonexistent"), &environment);
        assert!((own..1 << 20).contains(&found.thread_local), "{found:?}");
        assert!(found.objects > 2, "{found:?}");
    }

    #[test]
    fn libraries_of_other_abis_are_recognised() {
        let named = |name: &str| other_mpi(name).map(|(_, vendor)| vendor);
        for ours in MPI_LIBRARIES.into_iter().chain(["libmpi.so.12.5.1", "libmpi.so.40.30.4", "libmpi_cxx.so.40"]) {
            assert_eq!(named(ours), None, "{ours}");
        }
        assert_eq!(named("libmpi.so.41"), Some(None));
        assert_eq!(named("/x/libmpi.so.20.10"), Some(Some("Open MPI")));
        assert_eq!(named("libmpi_cray.so.12"), Some(Some("Cray MPICH")));
        assert_eq!(named("libmpich.so.10"), Some(None));
    }

    #[test]
    fn companions_of_another_mpi_are_recognised() {
        for name in ["liboshmem.so.40", "/x/liboshmem.so.56"] {
            assert!(companion(name).is_some(), "{name}");
        }
        for name in ["libmpi.so.40", "libmpi_cxx.so.40", "libmpi_mpifh.so.40"] {
            assert_eq!(companion(name), None, "{name}");
        }
    }

    #[test]
    fn origin_is_expanded() {
        let folders = expand("$ORIGIN/../lib:${ORIGIN}:/abs", Path::new("/a/b"));
        assert_eq!(folders, ["/a/b/../lib", "/a/b", "/abs"].map(PathBuf::from));
    }
}
