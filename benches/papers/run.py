"""Experiments of the papers on progress, all policies and the available peers side by side.

Each experiment is one program beside this file; every policy and every peer runs it in turn, for several rounds. A
value is the median over the rounds, a band the range of their quartiles. Ranks are bound to cores: the kernel may put
two unbound ones on one. Experiments of a pair of ranks also run between two nodes (network namespaces, over TCP), with
a rank that waits beside the one that computes, and some with a CPU to spare for dedicated workers.

Samples are kept in --samples, and each run adds to them, so that `make papers BUDGET=110` again and again fills one
page: those with the fewest rounds come first. Writes an SVG per experiment, and a page, `index.html`, with plots and
tables, into the folder given by --out.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import app_table  # noqa: E402
import experiments  # noqa: E402
import launches  # noqa: E402
import measured  # noqa: E402
import report  # noqa: E402
from hosts import Hosts  # noqa: E402

PLACES = {"node": "", "nodes": ", between two nodes", "spare": ", with a CPU to spare"}


class Samples:
    """All that was measured, in this run and in those of the same file before: for each experiment and place the runs'
    points, `series -> run -> x -> [[median, low, high] of each round]`."""

    def __init__(self, file):
        self.file, self.parts = file, {}
        if file.exists():
            self.parts = json.loads(file.read_text())

    def part(self, experiment, place):
        fresh = {"rounds": 0, "left": [], "others": [], "date": "", "failed": {}, "series": {}}
        return self.parts.setdefault(f"{experiment.program} {place}", fresh)

    def keep(self):
        fresh = self.file.with_suffix(".new")
        fresh.write_text(json.dumps(self.parts) + "\n")
        fresh.replace(self.file)


def add(part, name, text):
    """Adds the lines of a run: "series x median [low high]"."""
    for line in text.splitlines():
        words = line.split()
        try:
            series, x, *values = words[0], *map(float, words[1:])
        except (IndexError, ValueError):
            continue
        if len(values) in (1, 3):
            runs = part["series"].setdefault(series, {}).setdefault(name, {})
            runs.setdefault(f"{x:g}", []).append(values * 3 if len(values) == 1 else values)


def one_run(experiment, place, name, launch, part, seconds):
    """A policy or a peer with each number of ranks; whether it ended well. Lines that came before a failure count."""
    for ranks in experiment.apart if place == "nodes" else experiment.ranks:
        env = {key: value for key, value in os.environ.items() if not key.startswith("COHORT_")}
        cpus = {"node": ranks, "spare": ranks + 1}.get(place)
        run = measured.measure(launch.command(ranks, cpus), {**env, **launch.env}, seconds)
        part["others"].append(round(run.others, 3))
        add(part, name, run.text)
        if run.code != 0:
            why = f"no end within {seconds:g} s" if run.code is None else f"exit code {run.code}"
            part["failed"][name] = why
            print(f"{experiment.program}{PLACES[place]}, {name}: {why}\n{run.text[-400:]}", file=sys.stderr)
            return False
    part["failed"].pop(name, None)
    return True


def one_round(key, found, samples, asked, limit):
    """Every policy and every peer once, those that are left of a round that was interrupted; removes those that fail
    from `found`. False when the time is up."""
    part = samples.part(*key)
    names = [name for name in found if name in (asked.run or found)]
    turn = part["rounds"] % len(names) if names else 0
    part["left"] = [name for name in part["left"] if name in names] or names[turn:] + names[:turn]
    while part["left"]:
        if time.monotonic() > limit:
            return False
        name = part["left"].pop(0)
        if not one_run(*key, name, found[name], part, asked.limit):
            del found[name]
        samples.keep()
    part["rounds"] += 1
    part["date"] = str(datetime.date.today())
    samples.keep()
    return True


def launches_of(experiment, place, asked, folder, hosts):
    """The ways to run an experiment in a place; builds its programs, so that nothing is compiled between runs."""
    if place == "node":
        return launches.within_a_node(asked.built, folder, experiment.program)
    if place == "nodes":
        return launches.between_nodes(asked.built, folder, experiment.program, hosts)
    return launches.with_a_spare_cpu(asked.built, folder, experiment.program, max(experiment.ranks))


def measure(asked, chosen, samples):
    """Rounds of the chosen experiments, those with the fewest first, as long as there is time."""
    aims = {key: samples.part(*key)["rounds"] + asked.rounds for key in chosen}
    folder = asked.samples.parent / "programs"
    folder.mkdir(parents=True, exist_ok=True)
    with Hosts() as hosts:
        made = {key: launches_of(*key, asked, folder, hosts) for key in chosen}
        limit = time.monotonic() + (1e9 if asked.budget is None else asked.budget)
        while left := [key for key in chosen if samples.part(*key)["rounds"] < aims[key]]:
            key = min(left, key=lambda key: samples.part(*key)["rounds"])
            part, begun = samples.part(*key), time.monotonic()
            if not one_round(key, made[key], samples, asked, limit):
                break
            others = 100 * statistics.median(part["others"] or [0])
            print(f"{key[0].program}{PLACES[key[1]]}: round {part['rounds']}, {time.monotonic() - begun:.0f} s, others "
                  f"took {others:.0f} % of the CPUs", file=sys.stderr, flush=True)


def middle(part):
    """series -> run -> [(x, median, low, high)], over the rounds."""
    return {
        series: {
            name: sorted((float(x), statistics.median(value[0] for value in values),
                          min(value[1] for value in values), max(value[2] for value in values))
                         for x, values in points.items())
            for name, points in runs.items()
        }
        for series, runs in part["series"].items()
    }


def chosen_of(asked):
    """Pairs of an experiment and a place."""
    known = {experiment.program: experiment for experiment in experiments.ALL}
    if unknown := set(asked.experiment) - set(known):
        sys.exit(f"no such experiment: {' '.join(sorted(unknown))}; there are: {' '.join(known)}")
    wanted = [experiment for name, experiment in known.items() if name in (asked.experiment or known)]
    return [(experiment, place) for experiment in wanted for place in experiment.places()
            if place in (asked.place or PLACES)]


def sections_of(samples, chosen):
    """What the page shows: an experiment in a place, its lines, those with a CPU to spare, and how it was measured."""
    for experiment, place in chosen:
        part = samples.part(experiment, place)
        if place == "spare" or not part["series"]:
            continue
        spare = middle(samples.part(experiment, "spare")) if place == "node" and experiment.spare else {}
        yield report.Section(experiment, PLACES[place], place, middle(part), spare, part)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--samples", type=pathlib.Path, required=True,
                        help="keeps all values, and adds to those that are there; programs are built beside it")
    parser.add_argument("--rounds", type=int, default=3, help="further ones; 0 only draws what is there")
    parser.add_argument("--budget", type=float,
                        help="seconds; what is left of a round comes next time, and 0 only builds")
    parser.add_argument("--limit", type=float, default=10,
                        help="seconds of a program; one that takes longer is not tried again")
    parser.add_argument("--experiment", nargs="*", default=[], help="only these (default: all)")
    parser.add_argument("--run", action="append", help="only these policies and peers (default: all)")
    parser.add_argument("--place", choices=list(PLACES), action="append", help="only there (default: everywhere)")
    parser.add_argument("--brief", action="store_true", help="prints the page in Markdown, and no tables")
    asked = parser.parse_args()
    chosen = chosen_of(asked)
    samples = Samples(asked.samples)
    if asked.rounds:
        measured.adopt()
        measure(asked, chosen, samples)
    sections = list(sections_of(samples, chosen))
    if not sections:
        sys.exit("nothing was measured")
    report.write(sections, asked.out, app_table.machine(), asked.brief)


if __name__ == "__main__":
    main()
