"""Instructions of one call of MPI, from the program's call to its return, beside other MPIs.

They are counted one by one (instructions.c), so other load on the machine changes nothing. Each number is the least of
several calls of rank 0, whose partner has done its part before. `--where NAME` shows the functions that a call's
instructions are in, with what was inlined into them.
"""

import argparse
import collections
import pathlib
import subprocess
import tempfile

from common import HERE, build, run, table
from peers import peers

OPTIONS = ("-Wall", "-Wextra", "-Werror")


def counts(output):
    """The numbers by call."""
    found = {}
    for line in (output or "").splitlines():
        name, _, value = line.rpartition(" ")
        found[name] = int(value)
    return found


def functions(output, depth):
    """How many of the listed addresses are in each function: its image, and it or the chain of what is inlined."""
    maps, by_image = [], collections.defaultdict(collections.Counter)
    for line in output.splitlines():
        if line.startswith("map "):
            words = line.split()
            if len(words) < 7:
                continue
            low, high = (int(word, 16) for word in words[1].split("-"))
            maps.append((low, high, int(words[3], 16), words[6]))
        elif line.startswith("at "):
            address = int(line[3:], 16)
            for low, high, offset, image in maps:
                if low <= address < high:
                    by_image[image][address - low + offset] += 1
                    break
            else:
                by_image["?"][address] += 1
    found = collections.Counter()
    for image, addresses in by_image.items():
        for address, names in named(image, addresses, depth).items():
            found[(pathlib.Path(image).name, names)] += addresses[address]
    return found


def segments(image):
    """Where an image's code is in its file, and at which address."""
    output = run(["readelf", "-lW", image]) or ""
    words = [line.split() for line in output.splitlines() if line.strip().startswith("LOAD")]
    return [(int(word[1], 16), int(word[4], 16), int(word[2], 16)) for word in words]


def named(image, addresses, depth):
    """The functions of places in a file, the innermost first."""
    loads = segments(image) if image != "?" else []
    places = {}
    for address in addresses:
        for offset, size, virtual in loads:
            if offset <= address < offset + size:
                places[f"0x{address - offset + virtual:x}"] = address
    if not places:
        return {address: "?" for address in addresses}
    command = ["addr2line", "-aCfip", "-e", image]
    output = subprocess.run(command, input="\n".join(places), text=True, capture_output=True, check=True).stdout
    chains, current = {}, None
    for line in output.splitlines():
        if line.startswith("0x"):
            at, _, line = line.partition(": ")
            current = places[f"0x{int(at, 16):x}"]
            chains[current] = []
        chains[current].append(line.removeprefix(" (inlined by) ").partition(" at ")[0])
    shown = {}
    for address, chain in chains.items():
        outermost = chain[::-1][:depth]
        shown[address] = " > ".join(outermost)
    return shown


def where(program, launcher, call, depth):
    """Prints the functions of a call."""
    output = run([launcher, "-n", 2, program, call], None, 120) or ""
    found = functions(output, depth)
    for (image, name), number in found.most_common():
        print(f"{number:6} {image}: {name}")
    print(f"{sum(found.values()):6} in all, with those of the tracing itself")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=pathlib.Path, required=True, help="folder with pip-exec")
    parser.add_argument("--where", metavar="NAME", help="of one call, as the table names it")
    parser.add_argument("--depth", type=int, default=1, help="functions of a chain of inlined ones that are shown")
    parser.add_argument("--alone", action="store_true", help="without other MPIs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = HERE / "instructions.c"
        own = build(options.built / "mpicc", source, f"{folder}/own", *OPTIONS)
        launcher = options.built / "pip-exec"
        if options.where:
            where(own, launcher, options.where, options.depth)
            return
        columns = {"MPI-5 ABI": counts(run([launcher, "-n", 2, own]))}
        for peer in [] if options.alone else peers(options.built, folder, source):
            first, env = peer.settings[0]
            name = "MPICH ABI" if peer.name == "Cohort" else peer.name
            command = [*peer.launcher, *first, "-n", 2, peer.program]
            columns[name] = counts(run(command, {**peer.env, **env}))
        names = columns["MPI-5 ABI"]
        table(["", *columns], [[name, *(column.get(name, "-") for column in columns.values())] for name in names])


if __name__ == "__main__":
    main()
