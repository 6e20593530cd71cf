#!/usr/bin/env python3
"""Runs Debian's programs for Open MPI, as they are packaged, under Cohort and under Open MPI, and compares.

    reach.py --built target/release [--cache FOLDER] [--quick] [--table FILE] [NAME...]

Each program runs on 2 and 4 ranks, with small inputs, and its result must be that of the same run under Open MPI. A
line for each run says so, with the time beside Open MPI's as a ratio; ends with 1 when one is wrong. --quick runs the
short list that `make suites` runs, on 2 ranks. --table writes rows for docs/reach.md. The packages must be in
CACHE/reach or, for the short list, in CACHE/reach-quick; --packages lists those that belong there (tools/packages.sh).
"""

import argparse
import os
import pathlib
import sys

import basics
import biology
import fields
import languages
import matter
import setting

CASES = [*basics.CASES, *biology.CASES, *matter.CASES, *fields.CASES, *languages.CASES]
ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    base = os.environ.get("XDG_CACHE_HOME", str(pathlib.Path.home() / ".cache"))
    parser.add_argument("--built", default=ROOT / "target/release", type=pathlib.Path)
    parser.add_argument("--cache", default=os.environ.get("TEST_COHORT_CACHE", f"{base}/cohort"), type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--packages", action="store_true")
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join(case.name for case in CASES))
    asked = parser.parse_args()
    if unknown := set(asked.names) - {case.name for case in CASES}:
        parser.error(f"no such program: {' '.join(sorted(unknown))}")
    cases = [case for case in CASES if case.quick or not asked.quick]
    if asked.packages:
        print("openmpi-bin", *sorted({name for case in cases for name in (case.package, *case.needs)
                                     if not name.startswith("PyPI")}))
        return 0
    folder = asked.cache.resolve() / ("reach-quick" if asked.quick else "reach")
    if os.environ.get("REACH_PACKAGES") != str(folder):
        # Again, where the packages lie over the system.
        os.environ["REACH_PACKAGES"] = str(folder)
        script = ROOT / "tools/with-packages.sh"
        os.execv(script, [str(script), str(folder), "/usr/bin/python3", *sys.argv])
    if asked.names:
        cases = [case for case in cases if case.name in asked.names]
    return judge(cases, asked, versions(folder))


def judge(cases, asked, known):
    """Runs the cases and prints what came of it."""
    wrong = runs = 0
    rows = []
    for case in cases:
        results = []
        for ranks in case.ranks[:1] if asked.quick else case.ranks:
            runs += 1
            try:
                ratio, result = judged(case, ranks, (asked.built.resolve(), asked.cache.resolve())), "agrees"
            except setting.Wrong as problem:
                wrong += 1
                ratio, result = None, f"WRONG: {problem}"
            shown = f"{ratio:.2f}" if ratio else "-"
            print(f"{case.name:18} {ranks:3}  time {shown:>5}  {result}", flush=True)
            results.append((ranks, shown, result.split("\n")[0]))
        rows.append((case, known.get(case.package, ""), results))
    if asked.table:
        asked.table.write_text("".join(row(*entry) for entry in rows))
    print(f"{runs - wrong} passed, {wrong} failed")
    return 1 if wrong or not runs else 0


def judged(case, ranks, place):
    """The time under Cohort in units of that under Open MPI; both must compute the same."""
    seconds, results = {}, {}
    for who in ["ours", "theirs"]:
        with setting.Folder() as folder:
            job = setting.Job(place, who, ranks, folder)
            try:
                results[who] = case.run(job)
            except setting.Wrong as problem:
                raise setting.Wrong(f"{'Cohort' if who == 'ours' else 'Open MPI'}: {problem}") from None
            seconds[who] = job.seconds
    setting.compare(results["ours"], results["theirs"], case.tolerance)
    return seconds["ours"] / seconds["theirs"]


def row(case, version, results):
    """A row of the table."""
    ratios = ", ".join(shown for _, shown, _ in results)
    said = "; ".join(sorted({result for _, _, result in results}))
    return f"| {case.name} | {case.package} {version} | {case.input} | {case.check} | {ratios} | {said} |\n"


def versions(folder):
    """Versions by package."""
    return dict(line.split() for line in (folder / "packages").read_text().splitlines())


if __name__ == "__main__":
    sys.exit(main())
