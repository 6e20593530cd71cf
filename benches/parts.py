"""The measured parts of the pages of results: which benchmark makes each, and where it stands."""

import dataclasses
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/results"
AMONG_NODES = ("collectives.py", "--only", "nodes", "--nodes", "4")
LINK = "tbf rate 10gbit burst 128kb latency 20ms"
CROWDED = ("All nodes share the CPUs, so most of a time is ranks that wait for a CPU. Each MPI runs in settings in "
           "which ranks that wait yield, and each job begins with barriers for 0.3 s (ROADMAP says why); \"no end\": "
           "an operation did not end within 15 s in any of them.")


@dataclasses.dataclass(frozen=True)
class Part:
    """`words` are the benchmark's command. `picture` is "apps" or "dots" with the `label` of its axis, by which
    pictures.py draws the tables that were printed; or "own" where the benchmark writes figures and Markdown. `heading`
    is that of the section of the page in which the part begins."""

    title: str
    words: tuple
    picture: str
    label: str = ""
    about: str = ""
    heading: str = ""
    is_counted: bool = False  # no time, so other load changes nothing, and there are no rounds
    takes_budget: bool = False
    page: str = dataclasses.field(kw_only=True)  # in docs/results


PARTS = {
    "apps": Part(
        "Whole programs", ("apps.py", "--brief"), "apps", takes_budget=True,
        about="Examples in `examples/`, each with its work shared by the ranks; mpi4py programs and LAMMPS start a "
              "Python on each rank. Ranks that outnumber CPUs run under settings of the other MPIs that yield.",
        page="programs.md"),
    "busy": Part(
        "Whole programs on a crowded and busy machine", ("apps.py", "--brief", "--busy"), "apps", takes_budget=True,
        about="Beside a load like a compiler's on each CPU; the best setting of each MPI counts.",
        page="programs.md"),
    "suite": Part(
        "mpi4py's tests on crowded CPUs", ("suite.py",), "dots", "seconds",
        about="Each MPI as it comes out of the box, as on a CI runner.", page="programs.md"),
    "instructions": Part(
        "Instructions of a call", ("instructions.py",), "dots", "instructions of a call of 8 bytes",
        is_counted=True, page="calls.md"),
    "peers": Part(
        "Latencies within a node", ("peers.py",), "dots", "microseconds; the rate: millions per second",
        heading="Messages within a node", page="messages.md"),
    "messages": Part(
        "Kinds of messages", ("messages.py",), "dots", "as named", heading="Messages within a node",
        page="messages.md"),
    "collectives": Part(
        "Collectives within a node", ("collectives.py", "--only", "table"), "dots", "microseconds",
        page="collectives.md"),
    "small": Part(
        "Short collectives within a node", ("collectives.py", "--only", "small"), "dots", "microseconds",
        page="collectives.md"),
    "windows": Part("One-sided operations", ("windows.py",), "dots", "microseconds, or GB/s", heading="Windows",
        page="windows.md"),
    "sizes": Part("All sizes within a node", ("sizes.py",), "dots", "microseconds", page="sizes.md",
        about="As by OSU's benchmarks: buffers stay in their ranks' caches if they fit; a collective is timed alone, "
              "behind a barrier."),
    "files": Part("Files", ("files.py",), "dots", "milliseconds", heading="Files", page="files.md"),
    "memory": Part("Memory of one address space", ("memory.py", "--brief"), "dots", "as named", page="memory.md"),
    "network": Part(
        "Messages between nodes", ("network.py",), "dots", "microseconds; the rate: millions per second",
        heading="Between nodes", page="nodes.md"),
    "nodes4": Part(
        "Collectives among four nodes of two ranks", (*AMONG_NODES, "--per-node", "2"), "dots", "microseconds",
        page="nodes.md", about=CROWDED),
    "nodes4-link": Part(
        "Collectives among four nodes with links of 10 Gb/s",
        (*AMONG_NODES, "--per-node", "2", "--link", LINK), "dots", "microseconds", page="nodes.md", about=CROWDED),
    "nodes4-single": Part(
        "Collectives among four nodes of one rank", (*AMONG_NODES, "--per-node", "1"), "dots", "microseconds",
        page="nodes.md", about=CROWDED),
    "start": Part("Jobs that do nothing", ("start.py",), "dots", "milliseconds", heading="Jobs that do nothing",
        page="start.md"),
    "cold": Part("What is called rarely", ("cold.py",), "dots", "microseconds", heading="What is called rarely",
        page="start.md"),
    "epochs": Part(
        "Nonblocking epochs", ("papers/epochs.py",), "dots",
        "microseconds at the rank that would wait",
        page="papers.md",
        about="Figures 2 to 13 of the paper on nonblocking epochs: puts of 1 MB, partners that are 1000 us late. The "
              "paper: with nonblocking epochs no rank pays for another one's delay in patterns 2 to 6, and in 7 to 11 "
              "where epochs may overtake each other (reorder). In brackets how many times better than blocking."),
    "papers": Part(
        "The papers' experiments", ("papers/run.py", "--brief"), "own", takes_budget=True,
        page="papers.md"),
}
