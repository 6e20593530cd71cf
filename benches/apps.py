"""Whole programs under our policies and the other MPIs: total time, CPU seconds, energy.

The programs take turns in rounds, and in each round all candidates run one after the other, in an order that moves on,
so that a machine that changes is the same for all; runs during which other work took CPUs do not count, if there are
others. Each program checks its own result. `--json` keeps all values, and adds to those that are there: `make apps` in
pieces fills one table.

    make apps ONLY="cg farm" RANKS="2 4" ROUNDS=3 BUDGET=110
    make apps NODES=2 LINK="tbf rate 1gbit burst 512kb latency 20ms" RANKS="4 8"
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import app_list
import app_table
import candidates
import measured
from common import HERE, build
from hosts import Hosts

OURS = (*candidates.POLICIES, *candidates.ELSEWHERE)


def key(app, variant, ranks, busy):
    return {"app": app.name, "variant": variant, "ranks": ranks, "busy": busy}


class Series:
    """All that was measured, in this run and in those of the same file before."""

    def __init__(self, file, about):
        self.file, self.about, self.rows = file, about, []
        if file and file.exists():
            kept = json.loads(file.read_text())
            for name, usual in (("nodes", 1), ("link", "")):
                there = kept.get(name, usual)
                if there != about[name]:
                    sys.exit(f"{file} has runs with {name} {there!r}, not {about[name]!r}: move it away")
            self.rows = kept["rows"]

    def samples(self, key, candidate, setting):
        for row in self.rows:
            if all(row[name] == value for name, value in key.items()) and row["candidate"] == candidate \
                    and row["setting"] == setting:
                return row
        row = {**key, "candidate": candidate, "setting": setting, "total": [], "inside": [], "cpu": [], "joules": [],
               "others": [], "failed": ""}
        self.rows.append(row)
        return row

    def keep(self):
        if self.file:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(json.dumps({**self.about, "rows": self.rows}, indent=1) + "\n")


def chosen(asked, folder, hosts):
    """Rows of the table: (program, variant, ranks)."""
    everyone = candidates.between(hosts, asked.built) if hosts else candidates.everyone(asked.built)
    apps = app_list.all_apps(asked.built, everyone, folder, asked.nodes)
    names = {app.name.split(",")[0].split(" ")[0].lower(): app for app in apps}
    if unknown := set(asked.only) - set(names):
        sys.exit(f"no such program here: {' '.join(sorted(unknown))}; there are: {' '.join(names)}")
    for name, app in names.items():
        if name not in (asked.only or names):
            continue
        for variant in app.variants:
            for ranks in app.ranks:
                if ranks in asked.ranks and ranks % asked.nodes == 0 and variant in (*asked.variants, ""):
                    yield app, variant, ranks


def run_once(app, variant, ranks, candidate, setting, spared, left):
    """One run in a folder of its own, or None where the candidate has no such program, or too little time is left."""
    program = app.command(candidate, variant)
    if program is None:
        return None, ""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="apps-"))
    try:
        app.prepare(folder, ranks)
        command = [*app.before, *candidate.command(ranks, setting, [word for word in program if word != ""])]
        run = measured.measure(command, candidate.environment(setting), min(app.seconds, left), folder, spared)
        if run.code is None and left < app.seconds:
            return None, ""
        if run.code is None:
            return run, f"no end within {app.seconds} s"
        problem = f"exit code {run.code}" if run.code else app.wrong(run.text, folder)
        return run, f"{problem}: {run.text[-400:]}" if problem else ""
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def one_round(rows, number, asked, series, spared, limit):
    """Every row under every candidate; False when the time is up."""
    for place, (app, variant, ranks) in enumerate(rows):
        runs = [(candidate, setting) for candidate in app.candidates
                if not asked.candidates or candidate.name in asked.candidates
                for setting in candidate.settings(ranks, asked.best)]
        turn = (number + place) % len(runs)
        for candidate, setting in runs[turn:] + runs[:turn]:
            if time.monotonic() > limit:
                return False
            row = series.samples(key(app, variant, ranks, asked.busy), candidate.name, setting.name)
            if row["failed"]:
                continue  # a collapse takes its whole limit, once
            left = max(1.0, limit - time.monotonic())
            run, row["failed"] = run_once(app, variant, ranks, candidate, setting, spared, left)
            if row["failed"]:
                print(f"{app.name} {variant}, {ranks} ranks, {candidate.name}: {row['failed']}", file=sys.stderr)
            elif run:
                for name, value in [("total", run.total), ("inside", app_list.inside(run.text)), ("cpu", run.cpu),
                                    ("joules", run.joules), ("others", run.others)]:
                    row[name].append(value)
        series.keep()
    return True


class Load:
    """What a build beside us does: as many compilers as CPUs, each in processes that come and go (`load.c`)."""

    def __init__(self, folder, is_busy):
        self.started = []
        if is_busy:
            program = app_list.fresh(folder / "load", HERE / "load.c",
                                     lambda: build("cc", HERE / "load.c", folder / "load"))
            self.started = [subprocess.Popen([program], start_new_session=True) for _ in range(candidates.CPUS)]

    def pids(self):
        return tuple(process.pid for process in self.started)

    def stop(self):
        for process in self.started:
            os.killpg(process.pid, 15)
            process.wait()


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--folder", type=pathlib.Path, help="where programs are built (BUILT/../apps)")
    parser.add_argument("--only", nargs="*", default=[], help="programs")
    parser.add_argument("--ranks", nargs="*", type=int, default=list(app_list.RANKS))
    parser.add_argument("--variants", nargs="*", default=["balanced", "imbalanced"])
    parser.add_argument("--candidates", nargs="*", default=[], help="none, steal, auto, MPICH, ...")
    parser.add_argument("--nodes", type=int, default=1, help="hosts that share the ranks, over TCP")
    parser.add_argument("--link", default="", help="words of tc's qdisc for what each host sends")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds after which no run begins")
    parser.add_argument("--best", action="store_true", help="all settings of the others; their best counts")
    parser.add_argument("--busy", action="store_true", help="beside a load like a compiler's; implies --best")
    parser.add_argument("--json", type=pathlib.Path, help="keeps all values, and adds to those that are there")
    parser.add_argument("--prepare", action="store_true", help="only builds the programs")
    parser.add_argument("--brief", action="store_true", help="one table of times, and CPU seconds by ranks")
    parser.add_argument("--table", action="store_true", help="measures nothing, and shows what --json has")
    asked = parser.parse_args()
    if asked.nodes < 1 or asked.link and asked.nodes == 1:
        parser.error(f"--nodes {asked.nodes}: 1 or more are possible, and 2 or more with --link")
    asked.built = asked.built.resolve()
    asked.best |= asked.busy
    asked.folder = (asked.folder or asked.built.parent / "apps").resolve()
    return asked


def measure(asked, series, rows):
    """Every round until the time is up, unless the programs were only to be built."""
    if not asked.prepare:
        measured.adopt()
        load = Load(asked.folder, asked.busy)
        begin = time.monotonic()
        try:
            for number in range(asked.rounds):
                if not one_round(rows, number, asked, series, load.pids(), begin + asked.budget):
                    print(f"(the time was up in round {number + 1} of {asked.rounds})", file=sys.stderr)
                    break
        finally:
            load.stop()
            series.keep()


def main():
    asked = options()
    asked.folder.mkdir(parents=True, exist_ok=True)
    about = {"date": datetime.date.today().isoformat(), "cpus": candidates.CPUS, "machine": app_table.machine(),
             "nodes": asked.nodes, "link": asked.link}
    series = Series(asked.json, about)
    if not asked.table:
        hosts = Hosts(asked.nodes, asked.link.split()) if asked.nodes > 1 else contextlib.nullcontext()
        with hosts as hosts:
            rows = list(chosen(asked, asked.folder, hosts))
            if not rows:
                sys.exit(f"no program here runs with {' or '.join(map(str, asked.ranks))} ranks on {asked.nodes} nodes")
            measure(asked, series, rows)
    app_table.show(series.rows, asked.brief)
    return 1 if any(row["failed"] and row["candidate"] in OURS for row in series.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
