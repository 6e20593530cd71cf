"""Experiments of the papers on progress, all policies and the available peers side by side.

Each experiment is one program beside this file; every policy and every peer runs it in turn, for
several rounds, and a value is the median over the rounds. Ranks are bound to cores: the kernel may
put two unbound ones on one. Experiments of a pair of ranks also run between two nodes (network
namespaces, over TCP), with a rank that waits beside the one that computes. Writes one SVG per
series of lines and a page, `index.html`, with plots and tables, into the folder given by --out.
"""

import argparse
import datetime
import os
import pathlib
import platform
import statistics
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from common import run, table  # noqa: E402
from hosts import Hosts  # noqa: E402
from launches import between_nodes, within_a_node  # noqa: E402
from plot import finding, page, svg  # noqa: E402

# Program, title, label of x, label of y, whether more or less is better, what the paper saw, why ours differs.
EXPERIMENTS = (
    ("scenarios", "Receiver-side latency in three scenarios (PEF fig. 2, SmartInterrupts fig. 5)", "message, KiB",
     "latency, us", "less",
     "PEF adds nothing to blocking receives and to receives that find their message, and about 5 us to early ones; "
     "a thread that interrupts wake adds 10 to 20 us to all three. SmartInterrupts adds a few hundred nanoseconds.",
     "The sender interrupts, and only a rank that computes, so no scenario pays for a timer."),
    ("overlap", "Overlap at the receiver (SmartInterrupts fig. 6, PEF fig. 3c)", "message, KiB", "overlap, %", "more",
     "Close to 100% from 64 KiB on with helpers, interrupts or PEF; none without. With more threads than cores "
     "polling threads lose.",
     "Where both ranks wait they copy a long message together; a computation takes one of the two CPUs away, and a "
     "wake-up takes as long as a message of 64 KiB. So less than 100 % can be had by this method."),
    ("delay", "Time left after a computation of 2 to 3.5 latencies (SmartInterrupts fig. 7, PEF fig. 3a, b)",
     "computation, latencies", "time beyond the computation, us", "less",
     "Constant and small with progress, the whole transfer without.", ""),
    ("posting", "Posting and waiting (CasperII fig. 3)", "message, KiB", "time, us", "less",
     "Offloading makes posting a constant fraction of a microsecond, and a wait after enough computation short.",
     "A ghost without a CPU of its own sleeps, and who posts pays for waking it."),
    ("rate", "Message rate (CasperII fig. 4)", "message, KiB", "messages per us", "more",
     "Offloading costs rate for short messages, since each crosses a queue, and nothing for long ones.", ""),
    ("distribution", "Distribution of the overlap (CasperII figs. 5, 6)", "percentile", "hidden part of the latency, %",
     "more", "With ghosts nearly all messages are hidden wholly, without any progress none.", ""),
    ("scaling", "Ranks per dedicated worker (SmartInterrupts fig. 8)", "ranks", "time beyond 300 us, us", "less",
     "One helper serves many ranks: the time grows slowly with their number.",
     "More ranks than CPUs: they share them, whatever the policy."),
    ("wavefront", "Blocking wavefront (PEF fig. 4)", "message, KiB", "time of 60 rows, ms", "less",
     "PEF leaves blocking programs alone; polling threads and interrupts for every message cost up "
     "to tens of percent.", ""),
    ("onesided", "Epochs of windows (SmartInterrupts figs. 11, 12, 14)", "put, KiB", "time, us", "less",
     "Helpers add nothing to the duration of an epoch, and the time beyond the computation is the same for all "
     "lengths; without progress the transfer comes on top. Polling threads lose as soon as they outnumber the cores.",
     "The time beyond the computation counts from when the round began. An MPI whose origin waits for a late target "
     "before it computes loses that delay (50 us); ours opens the epoch at once and puts when the target has come. A "
     "value below 0 says that the target left the barrier later than the origin, as where workers outnumber CPUs."),
    ("stencil", "Five-point stencil, 4 ranks (Daps fig. 6)", "order of the matrix", "time of a step, us", "less",
     "Computation dominates. Threads and ghosts slow it down, and ghosts do not serve the vectors; stealing leaves it "
     "alone and shortens the exchange.", "Four ranks share two CPUs, so long steps wait for CPUs, not for messages."),
    ("slowdown",
     "Slow-down of a computation without MPI calls (the memory of PEF fig. 5c is a test, progress_memory.c)",
     "receives left behind", "slow-down, %", "less",
     "Timers that end after a few turns and sleeping threads cost nothing that can be measured; "
     "pollers cost their core.", ""),
)

# Numbers of ranks; two unless named here.
RANKS = {"scaling": (2, 4, 8), "onesided": (2, 3), "stencil": (4,)}

# Those of a pair, which also run between nodes.
OF_A_PAIR = ("scenarios", "overlap", "delay", "posting", "rate", "distribution", "onesided")

# Numbers of ranks between nodes; three unless named here: fences and post-start-complete-wait have a rank that waits on
# either side.
RANKS_BETWEEN_NODES = {"onesided": (4, 3)}


def measure(launches, numbers, rounds, only):
    """series -> name of the run -> [(x, median, lowest and highest y)]; `numbers` are those of ranks."""
    samples, given_up = {}, set()
    for _ in range(rounds):
        for name, launch in launches.items():
            if name in given_up or only and name not in only:
                continue
            for ranks in numbers:
                output = run(launch.command(ranks), launch.env, 60)
                if output is None:
                    given_up.add(name)
                    break
                for line in output.splitlines():
                    series, x, y = line.split()
                    samples.setdefault(series, {}).setdefault(name, {}).setdefault(float(x), []).append(float(y))
    return {
        series: {
            name: [(x, statistics.median(ys), min(ys), max(ys)) for x, ys in sorted(points.items())]
            for name, points in lines.items()
        }
        for series, lines in samples.items()
    }


def section(name, results, out, labels, better):
    """Prints the tables of an experiment and writes its plots; returns both for the page."""
    plots, rows = [], []
    for series, lines in results.items():
        plot = svg(f"{name}: {series}", labels, lines)
        (out / f"{name}-{series}.svg").write_text(plot)
        plots.append((plot, finding(lines, better)))
        middle = {run: {x: median for x, median, *_ in points} for run, points in lines.items()}
        places = sorted({x for points in middle.values() for x in points})
        head = [series, *(f"{x:g}" for x in places)]
        body = [[run, *(f"{points.get(x, float('nan')):.2f}" for x in places)] for run, points in middle.items()]
        table(head, body)
        print(plots[-1][1], end="\n\n")
        rows += [head, *body]
    return plots, rows


def about(options):
    """When and where the page was made."""
    cpus = len(os.sched_getaffinity(0))
    spare = "they have one here" if cpus > 2 else "a pair of ranks leaves none here"
    return (f"{datetime.date.today()}, {platform.machine()}, Linux {platform.release()}, {cpus} CPUs, medians of "
            f"{options.rounds} rounds; bands are the range of the rounds. Policies with dedicated workers (helper, "
            f"ghost) need a CPU beside those of the ranks: {spare}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--experiment", action="append", help="only these (default: all)")
    parser.add_argument("--run", action="append", help="only these policies and peers (default: all)")
    parser.add_argument("--place", choices=("node", "nodes"), action="append",
                        help="within a node, between nodes (default: both)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    sections = []
    with tempfile.TemporaryDirectory() as folder, Hosts() as hosts:
        for program, title, x_label, y_label, better, words, differ in EXPERIMENTS:
            if options.experiment and program not in options.experiment:
                continue
            for place in options.place or ("node", "nodes"):
                if place == "nodes" and program not in OF_A_PAIR:
                    continue
                if place == "node":
                    launches = within_a_node(options.built, folder, program)
                    numbers, where = RANKS.get(program, (2,)), ""
                else:
                    launches = between_nodes(options.built, folder, program, hosts)
                    numbers, where = RANKS_BETWEEN_NODES.get(program, (3,)), ", between nodes"
                print(f"\n{title}{where}: {y_label}\n")
                results = measure(launches, numbers, options.rounds, options.run)
                name = program + where.replace(", ", "-").replace(" ", "-")
                shown = section(name, results, options.out, (x_label, y_label), better)
                sections.append((title + where, words, differ, *shown))
    (options.out / "index.html").write_text(page(sections, about(options)))
    print(f"Plots and tables: {options.out / 'index.html'}")


if __name__ == "__main__":
    main()
