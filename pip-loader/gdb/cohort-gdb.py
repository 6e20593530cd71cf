"""Symbols of ranks for gdb.

All ranks of a node are tasks of one address space, and to gdb each looks like
pip-exec. This adds the rank's own program and libraries:

    gdb -p PID-OF-A-RANK -x cohort-gdb.py
    (gdb) cohort-ranks             lists the ranks of the node
    (gdb) cohort-symbols           adds the symbols of the rank at hand
    (gdb) cohort-symbols 3         adds those of rank 3, whose memory is mapped here too

The rank at hand is the one that gdb is attached to or, in a core file, the one that has left it. A core file holds
the memory of all ranks, and the registers of that one's threads. (Threads without registers are pip-exec's.)

    gdb pip-exec core -x cohort-gdb.py
    (gdb) cohort-symbols
    (gdb) backtrace
"""

import re

import gdb

# struct DebugRank of pip-loader/load/src/task/debug.rs: pid, linker, r_debug.
RANK_WORDS = 3
OBJECTS_MAX = 4096


def words(address, count):
    memory = gdb.selected_inferior().read_memory(address, 8 * count).tobytes()
    return [int.from_bytes(memory[8 * i:8 * i + 8], "little") for i in range(count)]


def ranks():
    """Yields (rank, pid, address of r_debug)."""
    try:
        text = gdb.execute("info address COHORT_DEBUG_RANKS", to_string=True)
    except gdb.error as error:
        raise gdb.GdbError(f"this is no pip-exec: {error}")
    table = int(re.search("0x[0-9a-f]+", text).group(), 16)
    first, count = words(table, 2)
    for rank in range(count):
        pid, _linker, debug = words(first + 8 * RANK_WORDS * rank, RANK_WORDS)
        yield rank, pid, debug


def files():
    """Maps the first address of each mapped file to its path; a core file has a list of them too."""
    found = {}
    for line in gdb.execute("info proc mappings", to_string=True).splitlines():
        mapping = re.match(r"\s*(0x[0-9a-f]+)\s+0x[0-9a-f]+\s[^/]*(/.*)", line)
        if mapping:
            found[int(mapping[1], 16)] = mapping[2].rstrip()
    return found


def objects(debug, paths):
    """Yields (base, path) of what a rank has loaded: glibc's list, from r_debug."""
    entry = words(debug, 2)[1] if debug else 0
    for _ in range(OBJECTS_MAX):
        if entry == 0:
            return
        base, _name, _dynamic, entry = words(entry, 4)
        if base in paths:
            yield base, paths[base]


class Ranks(gdb.Command):
    """List the ranks of this node with their process ids."""

    def __init__(self):
        super().__init__("cohort-ranks", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        own, paths = gdb.selected_inferior().pid, files()
        for rank, pid, debug in ranks():
            mark = "*" if pid == own else " "
            program = next((path for _, path in objects(debug, paths)), "(not loaded yet)")
            print(f"{mark} rank {rank}  pid {pid}  {program}")


class Symbols(gdb.Command):
    """Add the symbols of a rank: cohort-symbols [RANK], by default of the one at hand."""

    def __init__(self):
        super().__init__("cohort-symbols", gdb.COMMAND_FILES)

    def invoke(self, argument, from_tty):
        own, paths = gdb.selected_inferior().pid, files()
        wanted = int(argument) if argument.strip() else None
        for rank, pid, debug in ranks():
            if rank == wanted or (wanted is None and pid == own):
                for base, path in objects(debug, paths):
                    gdb.execute(f"add-symbol-file {path} -o {base:#x}", to_string=True)
                    print(f"rank {rank}: {path} at {base:#x}")
                return
        raise gdb.GdbError("no such rank; see cohort-ranks")


Ranks()
Symbols()
