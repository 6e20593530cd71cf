//! The tarball, the Debian package and the wheel.

use super::{Fresh, SYSTEM, clean, files, programs, tool, version};
use crate::command::Program;
use crate::{Outcome, place};
use std::path::{Path, PathBuf};

/// Makes a package in the fresh folder.
fn package(fresh: &Fresh, kind: &str) -> Result<PathBuf, String> {
    let made = tool("package.sh").arg(kind).arg(place::built()).arg(fresh.path("packages")).run()?.expect_code(0)?;
    let path = PathBuf::from(made.stdout.trim());
    match path.is_file() {
        true => Ok(path),
        false => Err(made.failure("expected the package's path")),
    }
}

/// The tarball runs from where it was unpacked.
pub fn tarball() -> Outcome {
    let fresh = Fresh::new("tarball")?;
    let package = package(&fresh, "tarball")?;
    let unpack = clean(&fresh, Path::new(SYSTEM), "tar").arg("-xzf");
    unpack.arg(&package).run()?.expect_code(0)?;
    let folder = concat!("cohort-", env!("CARGO_PKG_VERSION"), "/bin");
    programs(&fresh, &fresh.path(folder), "")
}

/// Debian's tools on a system that holds nothing but another MPI's mpicc.
struct Debian(PathBuf);

impl Debian {
    fn new(fresh: &Fresh) -> Result<Self, String> {
        let this = Self(fresh.path("root"));
        for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "usr/bin", "etc/alternatives"] {
            std::fs::create_dir_all(this.0.join(folder)).map_err(|error| error.to_string())?;
        }
        fresh.write("root/var/lib/dpkg/status", "")?;
        fresh.write("root/usr/bin/mpicc.other", "another MPI's")?;
        this.alternatives("--install /usr/bin/mpicc mpi /usr/bin/mpicc.other 40")?;
        Ok(this)
    }

    fn alternatives(&self, words: &str) -> Outcome {
        let command = Program::new("update-alternatives").clean(SYSTEM);
        let command = command.env("DPKG_ROOT", &self.0).args(words.split(' '));
        command.run()?.expect_code(0)?;
        Ok(())
    }

    /// The package's dependencies are those of the machine, which this system does not know.
    fn dpkg(&self, action: &str, what: &Path) -> Outcome {
        let command = Program::new("dpkg").clean(SYSTEM).seconds(240);
        let command = command.arg(format!("--root={}", self.0.display()));
        let command = command.args(["--force-script-chrootless", "--force-depends", action]);
        command.arg(what).run()?.expect_code(0)?;
        Ok(())
    }

    /// The file that an alternative leads to.
    fn expect_chosen(&self, name: &str, file: &str) -> Outcome {
        let link = std::fs::read_link(self.0.join("etc/alternatives").join(name));
        match link.map_err(|error| format!("{name}: {error}"))? {
            link if link == Path::new("/usr/bin").join(file) => Ok(()),
            link => Err(format!("the alternative {name} is {}", link.display())),
        }
    }
}

/// `dpkg` installs and removes the package beside an mpicc that is there already.
pub fn deb() -> Outcome {
    let fresh = Fresh::new("deb")?;
    let package = package(&fresh, "deb")?;
    let depends = Program::new("dpkg-deb").arg("-f").arg(&package);
    let depends = depends.arg("Depends").run()?.expect_code(0)?;
    depends.expect_text("libc6 (>= 2.")?;
    let system = Debian::new(&fresh)?;
    system.dpkg("--install", &package)?;
    programs(&fresh, &system.0.join("usr/bin"), ".cohort")?;
    system.expect_chosen("mpi", "mpicc.other")?;
    system.expect_chosen("mpirun", "mpirun.cohort")?;
    system.expect_chosen("mpiexec", "mpiexec.cohort")?;
    system.alternatives("--set mpi /usr/bin/mpicc.cohort")?;
    system.expect_chosen("mpifort", "mpifort.cohort")?;
    system.dpkg("--remove", Path::new("cohort"))?;
    system.expect_chosen("mpi", "mpicc.other")?;
    let left = files(&system.0.join("usr"));
    let is_ours = |path: &&PathBuf| {
        let path = path.strip_prefix(&system.0).unwrap_or(path);
        path.display().to_string().contains("cohort")
    };
    match left.iter().filter(is_ours).collect::<Vec<_>>() {
        left if left.is_empty() => Ok(()),
        left => Err(format!("the removal leaves {left:?}")),
    }
}

/// mpi4py's program: fails unless the ranks are one world of the size that it was told.
const APP: &str = "import sys\nfrom mpi4py import MPI\nworld = MPI.COMM_WORLD\n\
    assert world.size == int(sys.argv[1]), world.size\nassert 'Cohort' in MPI.Get_library_version()\n\
    total = world.allreduce(world.rank)\nassert total == world.size * (world.size - 1) // 2, total\n\
    if world.rank == 0: print('sum', total, MPI.Get_library_version())\n";

/// The wheel beside mpi4py's in a fresh environment, with `mpiexec`, without it, and with `mpicc`.
pub fn wheel() -> Outcome {
    let fresh = Fresh::new("wheel")?;
    let package = package(&fresh, "wheel")?;
    let named = package.display().to_string();
    if !named.contains("-py3-none-manylinux_2_") {
        return Err(format!("{named} has no tag"));
    }
    let tools = place::cached("wheel-venv/bin", "wheel")?;
    let house = place::cached("wheelhouse", "wheel")?;
    let environment = fresh.path("venv");
    let make = clean(&fresh, &tools, "python").args(["-m", "venv", "--without-pip", "venv"]);
    make.run()?.expect_code(0)?;
    let before = files(&environment).len();
    let pip = |words: &[&str]| {
        let command = clean(&fresh, &tools, "pip").args(["--disable-pip-version-check", "--python"]);
        command.arg(environment.join("bin/python")).args(words)
    };
    let install = pip(&["install", "--quiet", "--no-index", "--no-compile", "--find-links"]);
    install.arg(&house).args([&named, "mpi4py"]).run()?.expect_code(0)?;
    let bin = environment.join("bin");
    fresh.write("app.py", APP)?;
    for launcher in ["mpiexec", "mpirun", "pip-exec"] {
        let job = clean(&fresh, &bin, launcher).args(["-n", "4", "python", "app.py", "4"]);
        job.run()?.expect_code(0)?.expect_text("sum 6 Cohort")?;
    }
    // `python` alone, by its path, as an editor or a notebook starts it.
    let alone = clean(&fresh, &bin, "python").args(["app.py", "1"]).clean(SYSTEM);
    alone.run()?.expect_code(0)?.expect_text("sum 0 Cohort")?;
    programs(&fresh, &bin, "")?;
    version(clean(&fresh, &bin, "mpiexec").arg("--version").run()?)?;
    let both = pip(&["uninstall", "--quiet", "--yes", "cohort-mpi", "mpi4py"]);
    both.run()?.expect_code(0)?;
    let left = files(&environment);
    let left = left.iter().filter(|path| !path.display().to_string().contains("__pycache__"));
    match left.count() {
        count if count == before => Ok(()),
        count => Err(format!("{before} files before the installation, {count} after the removal")),
    }
}
