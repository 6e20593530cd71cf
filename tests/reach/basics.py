"""Benchmarks, and libraries that programs build on."""

import re

from setting import Case, Wrong


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
    text = job.mpi("NPopenmpi", "-u", "65536", "-I")
    rows = re.findall(r"^\s*\d+:\s+(\d+) bytes.*-->.* Mbps in", text, re.M)
    if not rows:
        raise Wrong(text)
    # -I changes the bytes of each message, and compares them.
    return rows


CASES = [
    Case("hpcc", "hpcc", "HPL with N = 400, PTRANS, RandomAccess, FFT, b_eff", "its residuals", hpcc, 1e-6, quick=True),
    Case("netpipe", "netpipe-openmpi", "1 byte to 64 KiB", "bytes of all messages", netpipe, ranks=(2,)),
]
