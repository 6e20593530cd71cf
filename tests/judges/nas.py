"""The patterns of the NAS Parallel Benchmarks, tests/programs/fortran/nas: each compares itself with the published
value of class S, or with what one process computes."""

import functools

from setting import PROGRAMS, Folder, Wrong, execute

NAMES = ["ep", "cg", "ft", "is", "lu", "mg", "sp"]


def finish(text, ranks):
    """Each rank says once that it is done."""
    if sorted(text.split("\n")[:-1]) != sorted(f"done {rank}" for rank in range(ranks)):
        raise Wrong(text)


def programs(place):
    """Built with our `mpifort` and, for MPICH, with MPICH's `mpif.h` and modules."""
    def run(name, builds):
        source = PROGRAMS / "fortran/nas" / f"{name}.f90"
        with Folder() as folder:
            for build, who, ranks in builds:
                program = folder / f"{name}-{build}"
                if not program.exists():
                    execute([*compiler(place, build, folder), "-O2", f"-J{folder}", "-o", str(program), str(source),
                             *libraries(place, build)], folder)
                finish(place.run(who, ranks, [program], folder), ranks)
        return "verified"

    for name in NAMES:
        if place.quick:
            builds = [("ours", "ours", 2), ("mpich", "ours", 4)]
        else:
            builds = [(build, "ours", ranks) for build in ["ours", "mpich"] for ranks in [1, 2, 4, 8]]
            builds += [("mpich", "mpich", ranks) for ranks in [1, 2]]
        yield name, "-".join(sorted({str(build[2]) for build in builds})), functools.partial(run, name, builds)


def compiler(place, build, _folder):
    """The command that compiles: our wrapper, or the compiler with MPICH's includes."""
    if build == "ours":
        return [str(place.built / "mpifort")]
    return ["gfortran", "-fallow-argument-mismatch", f"-I{place.cache}/mpich-fortran/include"]


def libraries(place, build):
    """What links to MPICH's Fortran library."""
    if build == "ours":
        return []
    return [f"-L{place.cache}/mpich-fortran/lib", "-Wl,--unresolved-symbols=ignore-in-shared-libs", "-lmpichfort",
            "-lmpich"]
