"""What allocating, freeing and protecting memory costs ranks that share an address space, beside processes.

All ranks of a node have one lock of their address space, and what takes pages away interrupts every CPU that runs one
of them. The same programs run as ranks (with each `COHORT_MALLOC`), with an address space each (`--isolate`) and under
MPICH, in turn, several rounds. Times, system times and page faults are of each time that something is done, means over
the ranks; interrupts are the machine's (`/proc/interrupts`) while a program runs. In brackets ours over MPICH's.
"""

import argparse
import pathlib
import statistics
import subprocess
import tempfile

from common import HERE, cache, run, table

MALLOCS = ("libc", "keep", "jemalloc")
TITLES = ("us", "us of system time", "page faults")


def interrupts():
    """Interrupts so far by which CPUs told others to forget pages."""
    for line in pathlib.Path("/proc/interrupts").read_text().splitlines():
        words = line.split()
        if words and words[0] == "TLB:":
            return sum(int(word) for word in words[1:] if word.isdigit())
    return 0


def launches(built, folder):
    """How each way starts a program of each kind, and in which environment."""
    mpich, wheels = cache() / "mpich-venv", cache() / "mpi4py-venv"
    program = f"{folder}/memory"
    command = ["c++", "-O2", "-std=c++17", "-o", program, HERE / "memory.cc", f"-I{mpich}/include",
               f"-L{mpich}/lib", "-lmpi", "-Wl,--allow-shlib-undefined"]
    subprocess.run([str(word) for word in command], check=True)
    kinds = {"C++": [program], "Python": [wheels / "bin/python", HERE / "memory_script.py"]}
    ways = {f"ranks, {malloc}": ([built / "pip-exec"], {"COHORT_MALLOC": malloc}) for malloc in MALLOCS}
    ways["ranks, --isolate"] = [built / "pip-exec", "--isolate"], {}
    theirs = {"LD_LIBRARY_PATH": f"{mpich}/lib"}
    ways["MPICH"] = [mpich / "bin/mpiexec"], theirs
    return kinds, ways


def measure(kinds, ways, ranks, rounds):
    """Values by what was done and way: lists of (microseconds, system microseconds, faults)."""
    found = {}
    for _ in range(rounds):
        for kind, program in kinds.items():
            for way, (launcher, env) in ways.items():
                before = interrupts()
                output = run([*launcher, "-n", ranks, *program], env, 60)
                found.setdefault(f"{kind}, interrupts", {}).setdefault(way, []).append([interrupts() - before])
                for line in (output or "").splitlines():
                    name, colon, values = line.rpartition(": ")
                    if colon:
                        found.setdefault(name, {}).setdefault(way, []).append([float(word) for word in values.split()])
    return found


def cell(samples, base, place):
    if not samples or len(samples[0]) <= place:
        return "-"
    value = statistics.median(sample[place] for sample in samples)
    theirs = statistics.median(sample[place] for sample in base) if base else 0
    return f"{value:.3g} ({value / theirs:.2f}x)" if theirs else f"{value:.3g}"


def show(found, ways, ranks, titles):
    for place, title in enumerate(titles):
        print(f"\n{ranks} ranks: {title}, each time\n")
        rows = [[name, *(cell(cells.get(way), cells.get("MPICH"), place) for way in ways)]
                for name, cells in found.items() if place == 0 or "interrupts" not in name]
        table(["", *ways], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--brief", action="store_true", help="times and interrupts only")
    parser.add_argument("--ranks", type=int, nargs="*", default=[2, 8])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kinds, ways = launches(options.built, folder)
        for ranks in options.ranks:
            show(measure(kinds, ways, ranks, options.rounds), ways, ranks, TITLES[:1] if options.brief else TITLES)


if __name__ == "__main__":
    main()
