"""Benchmarks, and libraries that programs build on."""

import re
import shutil

from setting import LIBRARIES, Case, Wrong


def hpcc(job):
    # With more ranks than its grid has, PTRANS says something else in each run, under Open MPI too.
    job.input("hpccinf.txt", RANKS=job.ranks)
    job.mpi("hpcc")
    text = job.read("hpccoutf.txt")
    said = re.findall(r"^(Success|PTRANS_residual|MPIRandomAccess_Errors|StarSTREAM_Triad|CommWorldProcs)=(\S+)", text,
                      re.M)
    found = dict(said)
    if found.get("Success") != "1" or "FAILED" in text or found["MPIRandomAccess_Errors"] != "0":
        raise Wrong(f"its own checks fail: {said}")
    residuals = re.findall(r"\|\|Ax-b.*=\s+(\S+) .*PASSED", text)
    return [found["CommWorldProcs"], found["PTRANS_residual"], *map(float, residuals)]


def netpipe(job):
    text = job.mpi("NPopenmpi", "-u", "65536", "-n", "20", "-I")
    rows = re.findall(r"^\s*\d+:\s+(\d+) bytes.*-->.* Mbps in", text, re.M)
    if not rows:
        raise Wrong(text)
    # -I changes the bytes of each message, and compares them.
    return rows


def mumps(job):
    text = job.mpi("/usr/lib/mumps/dsimpletest", stdin=job.tool("cat", "/usr/lib/mumps/input_simpletest_real"))
    found = re.findall(r"Solution is\s+(.*(?:\n +\d.*)?)", text)
    if not found or [round(float(word), 9) for word in found[-1].split()] != [1.0, 2.0, 3.0, 4.0, 5.0]:
        raise Wrong(text[-1500:])
    return found[-1].split()[:5]


def scalapack(job):
    folder = LIBRARIES / "scalapack/openmpi-tests"
    passed = []
    for tester in ["xdlu", "xzevc"]:
        for file in folder.glob("*.dat"):
            shutil.copy(file, job.folder)
        text = job.mpi(folder / tester)
        for file in job.folder.glob("*.out"):
            text += file.read_text(errors="replace")
        lines = [line for line in text.splitlines() if "SKIPPED" not in line]
        passed.append(sum(bool(re.search(r"\bPASSED\b|^ *Passed", line)) for line in lines))
        if not passed[-1] or any(re.search(r"\bFAILED\b|^ *Failed|^ *[1-9]\d* tests .*failed", line) for line in lines):
            raise Wrong(f"{tester}\n{text[-1500:]}")
    return passed


def ptscotch(job):
    """Parts of a torus of three dimensions."""
    n, rows = 12, []
    for x in range(n):
        for y in range(n):
            for z in range(n):
                near = sorted({((x + 1) % n, y, z), ((x - 1) % n, y, z), (x, (y + 1) % n, z), (x, (y - 1) % n, z),
                               (x, y, (z + 1) % n), (x, y, (z - 1) % n)})
                rows.append("6 " + " ".join(str((a * n + b) * n + c) for a, b, c in near))
    job.write("torus.grf", f"0\n{n ** 3}\t{6 * n ** 3}\n0\t000\n" + "\n".join(rows) + "\n")
    job.mpi("dgpart", "8", "torus.grf", "parts.map")
    parts = [line.split()[1] for line in job.read("parts.map").splitlines()[1:]]
    sizes = [parts.count(str(part)) for part in range(8)]
    if len(parts) != n ** 3 or min(sizes) < 0.9 * n ** 3 / 8:
        raise Wrong(f"parts of {sizes}")
    return ["8 parts of nearly the same size"]


CASES = [
    Case("hpcc", "hpcc", "HPL with N = 400, PTRANS, RandomAccess, FFT, b_eff", "its residuals", hpcc, 1e-6, quick=True),
    Case("netpipe", "netpipe-openmpi", "1 byte to 64 KiB", "bytes of all messages", netpipe, ranks=(2,)),
    Case("mumps", "mumps-test", "its test of 5 equations", "the solution", mumps),
    Case("scalapack", "scalapack-mpi-test", "its testers xdlu and xzevc", "residuals", scalapack,
         ranks=(4,)),
    Case("ptscotch", "ptscotch", "a torus of 1728 vertices in 8 parts", "sizes of the parts", ptscotch),
]
