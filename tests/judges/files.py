#!/usr/bin/env python3
"""Runs the parallel tests of HDF5, netCDF and PnetCDF under Cohort, and under the MPI they are built for.

    files.py --built target/release [--cache FOLDER] [--quick] [--table FILE] [--only WORD] [--skip WORD] [GROUP...]

The tests are those of the sources of Debian's packages, compiled into CACHE/files/built and linked to Debian's
libraries as they are. Prints a line for each run, and ends with 1 when Cohort fails where the other MPI does not.
--quick runs the short list that `make suites` runs, under Cohort only. --table writes the table of docs/programs.md.
--only takes the tests with this word in their names, --skip leaves such out.
"""

import argparse
import os
import pathlib
import sys
import time

import hdf5
import netcdf
import setting
from building import Place

GROUPS = {
    "hdf5-mpich": lambda place: hdf5.cases(place, "mpich"),
    "hdf5-openmpi": lambda place: hdf5.cases(place, "openmpi"),
    "netcdf": netcdf.netcdf,
    "pnetcdf": netcdf.pnetcdf,
}
WHO = {"mpich": "MPICH", "openmpi": "Open MPI"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    base = os.environ.get("XDG_CACHE_HOME", str(pathlib.Path.home() / ".cache"))
    parser.add_argument("--built", required=True)
    parser.add_argument("--cache", default=os.environ.get("TEST_COHORT_CACHE", f"{base}/cohort"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--skip")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=" ".join(GROUPS))
    asked = parser.parse_args()
    if unknown := set(asked.groups) - set(GROUPS):
        parser.error(f"no such group: {' '.join(sorted(unknown))}; groups: {' '.join(GROUPS)}")
    place = Place(asked.built, asked.cache, asked.quick)
    rows = []
    for group in asked.groups or GROUPS:
        for case in GROUPS[group](place):
            if asked.only in case.name and not (asked.skip and asked.skip in case.name):
                rows += judged(place, group, case)
    wrong = sum(row[-1] for row in rows)
    if asked.table:
        asked.table.write_text("".join(f"| {group} | {name} | {ranks} | {ours} | {theirs} |\n"
                                       for group, name, ranks, ours, theirs, _ in rows))
    print(f"{len(rows) - wrong} passed, {wrong} failed")
    return 1 if wrong or not rows else 0


def judged(place, group, case):
    """Rows of one case: what Cohort and the other MPI say, and whether Cohort is wrong."""
    rows = []
    for ranks in case.ranks[:1] if place.quick else case.ranks:
        ours, text = result(place, case, "ours", ranks)
        theirs, _ = ("not run", "") if place.quick else result(place, case, case.abi, ranks)
        wrong = not ours.startswith("passes") and (place.quick or theirs.startswith("passes"))
        theirs = f"{WHO[case.abi]} {theirs}"
        print(f"{group:12} {case.name:22} {ranks:2}  {ours:20} {theirs}", flush=True)
        if not ours.startswith("passes"):
            print(text, flush=True)
        rows.append((group, case.name, ranks, ours, theirs, wrong))
    return rows


def result(place, case, who, ranks):
    """A word on one run, and what it printed if it failed."""
    begin = time.monotonic()
    try:
        case.run(place, who, ranks)
    except setting.Wrong as problem:
        return f"fails, {time.monotonic() - begin:.1f} s", str(problem)
    return f"passes, {time.monotonic() - begin:.1f} s", ""


if __name__ == "__main__":
    sys.exit(main())
