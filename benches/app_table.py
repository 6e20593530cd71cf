"""What `make apps` has measured, as tables in Markdown."""

import pathlib
import platform
import re
import statistics

from candidates import ELSEWHERE, POLICIES
from common import table

PEERS = ("MPICH", "Open MPI", "Intel MPI")
DEFAULT = "steal"
CALM = 0.06  # share of the CPUs that other work may take during a run that counts
PAIRS = 2  # rounds from which on ratios are those of a round
LOSS = 1.01  # a policy loses where it takes more than this many times as long as `none`


def machine():
    """The processor and the kernel, in a line."""
    found = re.search(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return f"{found.group(1) if found else platform.machine()}, Linux {platform.release()}"


def calm(row):
    """Which runs of a row count: those that had the machine for themselves."""
    return [place for place, others in enumerate(row["others"]) if others <= CALM or row["busy"]]


class Line:
    """A row: the samples of all candidates, of each the setting whose median is the least; apart, those that never had
    the machine for themselves."""

    def __init__(self, key):
        self.key, self.best, self.disturbed = key, {}, {}

    def add(self, row):
        if not row["total"]:
            return
        name, row = row["candidate"], {**row, "calm": calm(row)}
        place = self.best if row["calm"] else self.disturbed
        row["calm"] = row["calm"] or list(range(len(row["total"])))
        if name not in place or middle(row, "total") < middle(place[name], "total"):
            place[name] = row

    def title(self):
        name, variant, ranks, busy = self.key
        return f"{name}{', ' + variant if variant else ''}, {ranks}{' busy' if busy else ''}"

    def cell(self, name):
        """The time as the table shows it."""
        if name in self.best or name not in self.disturbed:
            return shown(self.median(name))
        return f"({middle(self.disturbed[name], 'total'):.3f})"

    def median(self, name, what="total"):
        return middle(self.best[name], what) if name in self.best else None

    def ratios(self, one, other, what="total"):
        """One's time over the other's in each of the rounds in which both count."""
        first, second = self.best.get(one), self.best.get(other)
        if not first or not second:
            return []
        both = set(first["calm"]) & set(second["calm"])
        return [first[what][at] / second[what][at] for at in both if first[what][at] and second[what][at]]

    def ratio(self, one, other, what="total"):
        """The median of these; that of the medians where there are few of them."""
        pairs = self.ratios(one, other, what)
        if len(pairs) >= PAIRS:
            return statistics.median(pairs)
        mine, theirs = self.median(one, what), self.median(other, what)
        return mine / theirs if mine and theirs else None

    def is_slower(self, one, other):
        """Whether one is slower than the other by more than runs of them differ: also in the quartile of the rounds
        that is best for it."""
        pairs = sorted(self.ratios(one, other))
        return len(pairs) > 3 and pairs[len(pairs) // 4] > LOSS

    def best_peer(self):
        medians = [self.median(name) for name in PEERS if name in self.best]
        return min(medians) if medians else None


def middle(row, what):
    """The median of the runs that count."""
    values = [row[what][at] for at in row["calm"] if row[what][at] is not None]
    return statistics.median(values) if values else None


def lines_of(rows):
    lines = {}
    for row in rows:
        key = (row["app"], row["variant"], row["ranks"], row["busy"])
        lines.setdefault(key, Line(key)).add(row)
    found = [line for line in lines.values() if line.best or line.disturbed]
    programs = list(dict.fromkeys(line.key[:2] for line in found))
    return sorted(found, key=lambda line: (programs.index(line.key[:2]), line.key[2]))


def shown(value, form="{:.3f}"):
    return "-" if value is None else form.format(value)


def names_of(lines):
    """Who has a column: those on every machine, and further policies that were measured."""
    further = [name for name in ELSEWHERE if any(name in line.best or name in line.disturbed for line in lines)]
    return (*POLICIES, *further, *PEERS)


def times(lines):
    """The table of total times, with ratios."""
    names = names_of(lines)
    head = ["program, ranks", *names, "steal / none", "auto / none", "steal / best other"]
    rows = []
    for line in lines:
        mine, other = line.median(DEFAULT), line.best_peer()
        beside = mine / other if mine and other else None
        rows.append([line.title(), *map(line.cell, names),
                     shown(line.ratio(DEFAULT, "none")), shown(line.ratio("auto", "none")), shown(beside, "{:.2f}")])
    return head, rows


def costs(lines, what, form="{:.2f}"):
    """The table of CPU seconds, or of joules; nothing when no run has any."""
    names = names_of(lines)
    rows = [[line.title(), *(shown(line.median(name, what), form) for name in names)] for line in lines]
    measured = any(cell != "-" for row in rows for cell in row[1:])
    return ["program, ranks", *names], rows if measured else []


def inner(lines):
    """Times without start and end, of the programs that say them."""
    names = names_of(lines)
    lines = [line for line in lines if any(line.median(name, "inside") is not None for name in names)]
    head = ["program, ranks", *names, "steal / none", "auto / none"]
    return head, [[line.title(), *(shown(line.median(name, "inside"), "{:.4f}") for name in names),
                   shown(line.ratio(DEFAULT, "none", "inside")), shown(line.ratio("auto", "none", "inside"))]
                  for line in lines]


def verdict(lines):
    """Sentences: where a policy loses against `none`, and how often the default is the best of all."""
    said = []
    for policy in names_of(lines)[1:-len(PEERS)]:
        known = [(line.ratio(policy, "none"), line) for line in lines]
        known = [(ratio, line) for ratio, line in known if ratio is not None]
        lost = [(ratio, line) for ratio, line in known if ratio > LOSS]
        clear = [f"{line.title()} ({ratio:.2f})" for ratio, line in lost if line.is_slower(policy, "none")]
        middle_of_all = statistics.median(ratio for ratio, _ in known) if known else 0
        if known:
            said.append(f"`{policy}` takes {middle_of_all:.3f} times as long as `none` in the median row, and more "
                        f"than {LOSS} times in {len(lost)} of {len(known)} rows, of which {len(clear) or 'none'} by "
                        f"more than their runs differ{': ' if clear else ''}{'; '.join(clear)}.")
    whole = [line for line in lines if line.median(DEFAULT) and len(line.best) > 1]
    won = [line for line in whole
           if line.median(DEFAULT) <= LOSS * min(line.median(name) for name in line.best)]
    if whole:
        beaten = [line for line in whole if any(line.is_slower(DEFAULT, name) for name in line.best)]
        said.append(f"`{DEFAULT}` is within {100 * (LOSS - 1):.0f} % of the best of all in {len(won)} of {len(whole)} "
                    f"rows, and in {len(whole) - len(beaten)} nobody is faster by more than runs differ.")
    return said


def sums(lines):
    """CPU seconds by ranks, of all programs that every candidate of the table has run."""
    names = [name for name in names_of(lines) if any(name in line.best for line in lines)]
    whole = [line for line in lines if all(name in line.best for name in names)]
    head = ["CPU seconds of all processes, ranks", "programs", *names]
    rows = []
    for ranks in sorted({line.key[2] for line in whole}):
        those = [line for line in whole if line.key[2] == ranks]
        rows.append([ranks, len(those), *(f"{sum(line.median(name, 'cpu') for line in those):.2f}" for name in names)])
    return head, rows


def show(rows, is_brief=False):
    """Prints everything, or what a page has room for."""
    lines = lines_of(rows)
    rounds = {len(row["calm"]) for line in lines for row in line.best.values()}
    if not rounds:
        rounds = {0}
    print(f"\nSeconds in all, with start and end, medians of {min(rounds)} to {max(rounds)} rounds; the first two "
          "ratios are medians of those of a round. In brackets: while others took CPUs.\n")
    table(*times(lines))
    further = [("", sums(lines))] if is_brief else [
        ("CPU seconds of all processes:\n", costs(lines, "cpu")),
        ("Joules of the processors:\n", costs(lines, "joules", "{:.1f}")),
        ("Seconds without start and end:\n", inner(lines))]
    for title, (head, cells) in further:
        if cells:
            print(f"\n{title}")
            table(head, cells)
    print()
    print("\n".join(verdict(lines)))
