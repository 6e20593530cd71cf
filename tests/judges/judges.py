#!/usr/bin/env python3
"""Runs real Fortran programs under Cohort and compares what they compute with MPICH or with published values.

    judges.py --built target/release [--cache FOLDER] [--quick] [--beside] [GROUP...]

Prints one line for each run, and ends with 1 when one of them is wrong. Without a GROUP all run that the cache has
programs for. --quick runs the short list that `make test` runs; --beside runs ScaLAPACK's testers under MPICH too.
"""

import argparse
import os
import pathlib
import sys

import chemistry
import languages
import nas
import scalapack
import setting

GROUPS = {
    "nwchem": chemistry.nwchem,
    "bagel": chemistry.bagel,
    "scalapack": scalapack.testers,
    "blacs": scalapack.blacs,
    "nas": nas.programs,
    "coarrays": languages.coarrays,
    "f2py": languages.f2py,
    "tool": languages.tool,
    "mixed": languages.mixed,
    "flang": languages.flang,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    base = os.environ.get("XDG_CACHE_HOME", str(pathlib.Path.home() / ".cache"))
    parser.add_argument("--built", required=True)
    parser.add_argument("--cache", default=os.environ.get("TEST_COHORT_CACHE", f"{base}/cohort"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=" ".join(GROUPS))
    asked = parser.parse_args()
    if unknown := set(asked.groups) - set(GROUPS):
        parser.error(f"no such group: {' '.join(sorted(unknown))}; groups: {' '.join(GROUPS)}")
    place = setting.Setting(asked.built, asked.cache, asked.quick, asked.beside)
    wrong = runs = 0
    for group in asked.groups or GROUPS:
        for name, ranks, check in GROUPS[group](place):
            runs += 1
            try:
                result = check()
            except setting.Wrong as problem:
                wrong += 1
                result = f"WRONG: {problem}"
            print(f"{group:10} {name:24} {ranks:5}  {result}", flush=True)
    print(f"{runs - wrong} passed, {wrong} failed")
    return 1 if wrong or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
