"""ScaLAPACK's own testers, as Debian builds them for MPICH: each counts its residuals that are too large."""

import functools
import pathlib
import re
import shutil

from setting import Folder, Wrong

RANKS = 4
SHORT = ["PBLAS/dpb3tst", "xdlu", "xzevc", "xdnep", "xdsvd"]


def output(place, who, tester, seconds, code):
    """What a tester prints and writes."""
    with Folder() as folder:
        inputs = set()
        for file in (place.codes / "usr/share/scalapack").rglob("*.dat"):
            if "TIMING" not in file.parts:
                inputs.add(pathlib.Path(shutil.copy(file, folder)).name)
        path = next((place.codes / "usr/lib").glob("*/scalapack/mpich-tests")) / tester
        text = place.run(who, RANKS, [path], folder, seconds, code)
        for file in sorted(folder.iterdir()):
            if file.name not in inputs and file.name != "core":
                text += file.read_text(errors="replace")
    return text


def passed(text):
    """How many tests pass; none may fail. Each has a line, and many testers count them at the end."""
    lines = [line for line in text.splitlines() if "SKIPPED" not in line]
    good = sum(bool(re.search(r"\bPASSED\b|^ *Passed", line)) for line in lines)
    bad = [line for line in lines if re.search(r"\bFAILED\b|^ *Failed|^ *[1-9]\d* tests .*failed", line)]
    if bad or not good:
        raise Wrong(f"{good} pass, these fail: {bad[:5]}")
    return good


def testers(place):
    """All testers of factorisations, solvers and eigenvalues, and those of PBLAS."""
    def run(tester):
        good = passed(output(place, "ours", tester, 600, 0))
        if place.beside:
            try:
                theirs = passed(output(place, "mpich", tester, 60, 0))
            except Wrong:
                return f"{good} tests pass; MPICH does not end in time"
            if theirs != good:
                raise Wrong(f"{good} tests pass, under MPICH {theirs}")
        return f"{good} tests pass"

    folder = next((place.codes / "usr/lib").glob("*/scalapack/mpich-tests"))
    names = sorted(f"{file.parent.name}/{file.name}" if file.parent != folder else file.name
                   for file in [*folder.glob("x[a-z]*"), *folder.glob("PBLAS/*tst")])
    for tester in SHORT if place.quick else names:
        yield tester, RANKS, functools.partial(run, tester)


def blacs(place):
    """The testers of BLACS, which end with a test of BLACS_ABORT."""
    def run(tester):
        text = output(place, "ours", tester, 600, None)
        counts = re.findall(r"(\d+) TESTS; *(\d+) PASSED, *(\d+) SKIPPED, *(\d+) FAILED", text)
        bad = [row for row in counts if int(row[3]) or int(row[0]) != int(row[1]) + int(row[2])]
        if bad or len(counts) < 20 or "The final auxiliary test is for BLACS_ABORT" not in text:
            raise Wrong(f"{len(counts)} lists, of which fail {bad}")
        return f"{sum(int(row[1]) for row in counts)} tests pass"

    if not place.quick:
        for tester in ["xCbtest", "xFbtest"]:
            yield tester, RANKS, functools.partial(run, tester)
