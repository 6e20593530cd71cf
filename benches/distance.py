"""How far the CPUs of this machine are from each other while a program runs.

A virtual machine's CPUs move about their host: for minutes a cache line goes from one to the other in 35 ns, then in
165. A median over both says nothing, and one MPI's near runs beside another's far ones say something false. So the raw
line is timed before and after each run, and samples of different distances never meet in one table.
"""

import statistics

from common import HERE, build, run

WIDER = 1.6  # distances that differ by less are one
TRIES = 3  # of a run during which the CPUs moved
BATCHES = 2  # of the raw line, 70 to 140 ms


class Distance:
    """The distances that were seen, each with the times of its raw lines in microseconds; a distance's number is its
    place in the list."""

    def __init__(self, folder):
        self.program = build("cc", HERE / "cacheline.c", f"{folder}/cacheline", "-pthread")
        self.seen = []

    def now(self):
        """The number of the present distance; None when the raw line could not be timed."""
        output = run([self.program, BATCHES])
        if output is None:
            return None
        return self.number_of(float(output.split()[-1]))

    def number_of(self, line):
        """The number of the distance at which a raw line takes so long, a new one if none is like it."""
        for number, lines in enumerate(self.seen):
            middle = statistics.median(lines)
            if max(line, middle) / min(line, middle) < WIDER:
                lines.append(line)
                return number
        self.seen.append([line])
        return len(self.seen) - 1

    def during(self, start):
        """What `start` returns, and the distance that it had from its beginning to its end. A run during which the
        CPUs moved is repeated; if they move in each, the distance is None."""
        before = self.now()
        for _ in range(TRIES):
            result = start()
            after = self.now()
            if before == after or result is None:
                return result, before
            before = after
        return result, None

    def line(self, number):
        """Microseconds of a raw line at a distance."""
        return statistics.median(self.seen[number])

    def comparable(self, counts):
        """The distances at which the first MPI has samples, and so has another, that of the most first; `counts` gives
        the numbers of samples of all MPIs at a distance."""
        found = {number: counts(number) for number in range(len(self.seen))}
        chosen = [number for number, (ours, *others) in found.items() if ours and any(others)]
        return sorted(chosen, key=lambda number: -sum(found[number]))
