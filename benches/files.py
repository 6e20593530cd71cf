"""Files beside other MPIs and what the kernel takes, interleaved in one run.

Every MPI runs `files.c` in each of its good settings, in turn, several rounds, a row of the table at a time. "Write" is
to an empty file, "rewrite" over what is there, "read" from the page cache; 32 MiB by all ranks together. The floor is
contiguous `pwrite` or `pread` of the same bytes by the same ranks, or the same number of small ones, in turn with ours.
With --cpu it is milliseconds of the CPUs for all ranks, whose ratios hold on a busy machine too.
Each MPI's best setting counts. In brackets ours over theirs: below 1 is better; behind the floor ours over it. "wrong"
is a row whose bytes were not right.

With --overlap instead: how much of an operation on 64 MiB a computation hides (`files_overlap.c`). One CPU has to be
idle.
"""

import argparse
import math
import pathlib
import shutil
import statistics
import tempfile

from common import HERE, run, table
from peers import lines, peers

BLOCKS = [f"blocks-{size}" for size in (64, 512, 4 << 10, 64 << 10, 1 << 20)]
ROWS = ["contiguous", *BLOCKS, "subarray", "nested", "gapped-memory", "gapped-file", "small", "shared", "ordered",
        "opened"]
FLOOR = ", floor"


def mpis(built, folder, source="files.c"):
    """Ours, MPICH and Open MPI, the last with its own way to files and with ROMIO."""
    ours, mpich, openmpi, _ = peers(built, folder, HERE / source)
    mpich.settings = [([], {})]
    openmpi.settings = [([], {}), (["--mca", "io", "romio341"], {})]
    return [ours, mpich, openmpi]


def measure(peer, ranks, row, place, unit):
    """Runs a row in each setting of a peer, in a new folder in `place`."""
    for number, (options, env) in enumerate(peer.settings):
        if (number, row) in peer.given_up:
            continue
        folder = tempfile.mkdtemp(dir=place, prefix="cohort-files-")
        command = [*peer.launcher, *options, "-n", ranks, peer.program, folder, row, unit]
        output = run(command, {**peer.env, **env}, 120)
        shutil.rmtree(folder, ignore_errors=True)  # what was killed may still make files
        if output is None:
            peer.given_up.add((number, row))
        for name, value in lines(output):
            peer.samples[None].setdefault(name, {}).setdefault(number, []).append(value)


def cell(value, ours):
    if value is None:
        return "-"
    if math.isinf(value):
        return "wrong"
    return f"{value:.3g}" if ours is None else f"{value:.3g} ({ours / value:.2f}x)"


def show(everyone):
    """A line for each name that any of them gave."""
    ours, others = everyone[0], everyone[1:]
    rows = []
    for name in {name: None for peer in everyone for name in peer.samples[None] if not name.endswith(FLOOR)}:
        mine = ours.best(name)
        floors = [value for values in ours.samples[None].get(name + FLOOR, {}).values() for value in values]
        floor = statistics.median(floors) if floors else None
        rows.append([name, cell(mine, None), *(cell(peer.best(name), mine) for peer in others), cell(floor, mine)])
    table(["", *(peer.name for peer in everyone), "floor"], rows)


def overlap(built, folder, place, ranks, rounds):
    """A table of what a computation hides: the median of each MPI's rounds, and its operation alone."""
    everyone = mpis(built, folder, "files_overlap.c")
    rows = {}
    for _ in range(rounds):
        for peer in everyone:
            command = [*peer.launcher, *peer.settings[0][0], "-n", ranks, peer.program, place, 3]
            output = run(command, {**peer.env, **peer.settings[0][1]}, 300)
            for line in (output or "").splitlines():
                form, piece, alone, _, _, share = line.split("\t")
                name = form if piece == "0" else f"{form}, pieces of {piece} B"
                rows.setdefault(name, {}).setdefault(peer.name, []).append((float(share.split()[0]), float(alone)))

    def hidden(samples):
        if not samples:
            return "-"
        share, alone = (statistics.median(values) for values in zip(*samples))
        return f"{share:.0f} % of {alone:.0f} ms"

    table(["", *(peer.name for peer in everyone)],
          [[name, *(hidden(found.get(peer.name)) for peer in everyone)] for name, found in rows.items()])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2], help="1, 2, 4 or 8")
    parser.add_argument("--only", nargs="+", default=ROWS, choices=ROWS)
    parser.add_argument("--places", nargs="+", default=["tmpfs"], choices=["tmpfs", "disk"])
    parser.add_argument("--alone", action="store_true", help="ours and the floor only")
    parser.add_argument("--cpu", action="store_true", help="time of CPUs")
    parser.add_argument("--overlap", action="store_true", help="what a computation hides")
    options = parser.parse_args()
    unit = "cpu" if options.cpu else "time"
    places = {"tmpfs": "/dev/shm", "disk": options.built}
    with tempfile.TemporaryDirectory() as folder:
        for place in options.places:
            for ranks in options.ranks:
                if options.overlap:
                    print(f"\n{ranks} ranks, {place}: part of an operation that a computation hides.\n")
                    overlap(options.built, folder, places[place], ranks, options.rounds)
                    continue
                everyone = mpis(options.built, folder)[:1 if options.alone else None]
                for _ in range(options.rounds):
                    for row in options.only:
                        for peer in everyone:
                            measure(peer, ranks, row, places[place], unit)
                of = " of CPUs" if options.cpu else ""
                print(f"\n{ranks} ranks, {place}, milliseconds{of}; in brackets ours over theirs.\n")
                show(everyone)


if __name__ == "__main__":
    main()
