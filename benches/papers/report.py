"""The page of the experiments: figures with captions, as HTML with tables and as Markdown."""

import dataclasses
import html

import plot
from app_table import CALM
from common import table
from experiments import Experiment

UNITS = {"less": "less is better", "more": "more is better"}


@dataclasses.dataclass
class Section:
    """An experiment in a place. `lines` and `spare` are series -> run -> points, `spare` those with a CPU to spare;
    `part` says how they were measured."""

    experiment: Experiment
    where: str
    place: str
    lines: dict
    spare: dict
    part: dict

    @property
    def name(self):
        return self.experiment.program + ("-nodes" if self.place == "nodes" else "")

    @property
    def title(self):
        return self.experiment.title + self.where

    def findings(self):
        """What was seen here: the cells of a row for each series."""
        for series, lines in self.lines.items():
            if found := plot.finding(lines, self.experiment.better, self.experiment.at):
                x, cells = found
                categories, unit = self.experiment.categories, self.experiment.x
                at = categories[int(x)] if categories else f"{x:g} ({unit})"
                yield [f"{series.replace('-', ' ')}, {at}", *cells]

    def spares(self):
        """What a CPU to spare changes for dedicated workers, at the x of the findings."""
        words, at = [], self.experiment.at
        for series, lines in self.spare.items():
            without = self.lines.get(series, {})
            pairs = [f"`{name}` {plot.shown(plot.value_at(points, at))} "
                     f"({plot.shown(plot.value_at(without[name], at))} without)"
                     for name, points in lines.items() if name in plot.DEDICATED and name in without]
            if pairs:
                words.append(f"{series.replace('-', ' ')}: {', '.join(pairs)}")
        return f"With a CPU to spare, {'; '.join(words)}." if words else ""

    def conditions(self):
        """When and how it was measured; whether others had a part of the machine."""
        others = self.part["others"]
        busy = sum(share > CALM for share in others)
        count = self.part["rounds"] + bool(self.part["left"])
        rounds = "1 round" if count == 1 else f"{count} rounds"
        rounds += ", the last one unfinished" if self.part["left"] else ""
        words = f"{self.part['date']}, {rounds}"
        if 2 * busy > len(others):
            words += f"; **busy machine**: others took {100 * plot.centre(others):.0f} % of the CPUs"
        elif busy:
            words += f"; during {busy} of {len(others)} runs others took more than {100 * CALM:.0f} % of the CPUs"
        failed = [f"{name}: {why}" for name, why in self.part["failed"].items()]
        return f"{words}{'; incomplete: ' + ', '.join(failed) if failed else ''}"

    def rows(self):
        """Tables of medians: (head, rows) for each series."""
        for series, lines in self.lines.items():
            spare = self.spare.get(series, {})
            runs = {**lines, **{f"{name}, a CPU to spare": points for name, points in spare.items()}}
            places = sorted({point[0] for points in runs.values() for point in points})
            body = []
            for run, points in runs.items():
                middle = {x: median for x, median, *_ in points}
                body.append([run, *(f"{middle[x]:.4g}" if x in middle else "-" for x in places)])
            yield [series, *(f"{x:g}" for x in places)], body


INTRODUCTION = (
    "One figure for each experiment. Columns are families of policies; `none` is black, other MPIs are grey and "
    "dashed. Bands are the range of the rounds' quartiles. Policies with dedicated workers (`helper`, `ghost`) need a "
    "CPU beside those of the ranks: \"a CPU to spare\" means that there was one, or that the ranks slept in place of "
    "computing, where the machine has no more CPUs than ranks.")


APART = ("Both nodes share the machine's CPUs, and a further rank waits beside the one that computes. Where there are "
         "fewer CPUs than ranks, who helps has no CPU of its own and comes when the kernel gives it one, also under "
         "`steal`; rounds then differ more than within a node.")
HEAD = ("under `steal`", "under `none`", "best of ours", "best of the others")


def caption(section):
    """Label and text of each paragraph of a caption."""
    yield "The paper", section.experiment.sees
    differs = APART if section.place == "nodes" else section.experiment.differs
    here = " ".join(filter(None, [differs, section.spares()]))
    if here:
        yield "Here", here


def title_of_cells(section):
    return f"{section.experiment.y}; {UNITS[section.experiment.better]}"


def markdown(sections, folder):
    """The page for docs; `folder` is where its figures are."""
    parts = [INTRODUCTION]
    for section in sections:
        parts += [f"## {section.title}", f"![{section.experiment.program}{section.where}]({folder}{section.name}.svg)"]
        parts += [f"*{label}:* {text}" for label, text in caption(section)]
        rows = [[title_of_cells(section), *HEAD], ["---"] * (1 + len(HEAD)), *section.findings()]
        parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
        parts.append(f"({section.conditions()})")
    return "\n\n".join(parts) + "\n"


def code(text):
    """Escaped, with `code`."""
    words = html.escape(text).split("`")
    return "".join(f"<code>{word}</code>" if place % 2 else word for place, word in enumerate(words))


def cells_of(rows):
    """A table as HTML."""
    lines = ["".join(f"<td>{code(str(cell))}</td>" for cell in row) for row in rows]
    return "<table><tr>" + "</tr><tr>".join(lines) + "</tr></table>"


def page(sections, machine):
    """The HTML page beside the figures, with tables."""
    parts = ["<!DOCTYPE html><meta charset=utf-8><title>Progress policies</title>",
             "<style>body{font-family:sans-serif;max-width:75em;margin:1em auto;line-height:1.4}"
             "table{border-collapse:collapse;font-size:small;margin:1em 0}td,th{border:1px solid #ccc;padding:2px 6px}"
             "figure{margin:1em 0}figcaption{font-size:small;color:#333}img{max-width:100%;height:auto}</style>",
             "<h1>Progress policies, experiment by experiment</h1>",
             f"<p>{html.escape(machine)}. {code(INTRODUCTION)}</p>"]
    for section in sections:
        words = "".join(f"<p><b>{html.escape(label)}:</b> {code(text)}</p>" for label, text in caption(section))
        parts.append(f"<h2>{html.escape(section.title)}</h2><figure><img src='{section.name}.svg'>"
                     f"<figcaption>{words}<p>{code(section.conditions().replace('**', ''))}</p></figcaption></figure>")
        parts.append(cells_of([[title_of_cells(section), *HEAD], *section.findings()]))
        parts.append("<details><summary>Medians</summary>")
        parts += [cells_of([head, *body]) for head, body in section.rows()]
        parts.append("</details>")
    return "\n".join(parts) + "\n"


def write(sections, out, machine, brief):
    """Figures and the page into `out`, and the tables, or the page in Markdown, to standard output."""
    out.mkdir(parents=True, exist_ok=True)
    plots = {section.name: plot.svg(section) for section in sections}
    for name, text in plots.items():
        (out / f"{name}.svg").write_text(text)
    if brief:
        print(markdown(sections, ""))
        return
    (out / "index.html").write_text(page(sections, machine))
    for section in sections:
        print(f"\n{section.title}: {section.experiment.y}")
        for head, body in section.rows():
            print()
            table(head, body)
    print(f"\nPlots and tables: {out / 'index.html'}")
