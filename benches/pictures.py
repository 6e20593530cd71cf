"""Pictures of the tables in docs/results, by matplotlib: times of whole programs, and rows of measurements.

Colours are those of the papers' plots: one for each policy; `none` is black, other MPIs are grey.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "papers"))

from plot import BLACK, COLOURS, GREY, MARKS, finished, is_wide, plain, plt, settings  # noqa: E402

OURS = "#0072b2"
# Columns that are neither policies nor MPIs: ways to use windows (papers/epochs.py).
WAYS = {
    "blocking": {"color": BLACK, "marker": "."},
    "nonblocking": {"color": COLOURS["steal"], "marker": "."},
    "reorder": {"color": COLOURS["steal+helper"], "marker": "."},
    "MPICH, blocking": {"color": GREY, "marker": MARKS["MPICH"]},
}
POLICIES = ("none", "steal", "auto")
COLUMNS = 3  # panels beside each other
ROWS = 32  # of a picture with dots; longer tables are cut into pieces


def number(cell):
    """The first number of a cell, or None."""
    found = re.match(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", cell)
    return float(found.group(0)) if found else None


def style(name):
    """How a candidate is drawn."""
    if name in MARKS:
        return {"color": GREY, "linestyle": "--", "linewidth": 0.9, "marker": MARKS[name], "markersize": 4}
    if name in WAYS:
        return {**WAYS[name], "markersize": 6}
    colour = BLACK if name == "none" else COLOURS.get(name, OURS)
    return {"color": colour, "linewidth": 1.6, "marker": ".", "markersize": 6}


def series(table):
    """(program -> candidate -> [(ranks, seconds)]) of the table of total times."""
    head, *rows = table
    names = [name for name in head if name in (*POLICIES, *MARKS)]
    programs = {}
    for row in rows:
        program, _, ranks = row[0].removesuffix(" busy").rpartition(", ")
        for name in names:
            value = number(row[head.index(name)])
            if value is not None:
                programs.setdefault(program, {}).setdefault(name, []).append((int(ranks), value))
    return programs


def apps(tables):
    """Small multiples: for each program, seconds by ranks."""
    if not tables:
        return None
    programs = series(tables[0][1])
    lines = -(-len(programs) // COLUMNS)
    with settings("apps"):
        figure, grid = plt.subplots(lines, COLUMNS, squeeze=False, figsize=(9, 0.6 + 1.95 * lines))
        panels = list(grid.flat)
        for panel in panels[len(programs):]:
            panel.set_visible(False)
        handles = {}
        for panel, (program, lines_of) in zip(panels, programs.items()):
            for name in (*MARKS, *POLICIES):
                points = sorted(lines_of.get(name, []))
                if points:
                    handles[name], = panel.plot(*zip(*points), label=name, **style(name))
            finish_panel(panel, program, lines_of)
        names = [name for name in (*POLICIES, *MARKS) if name in handles]
        figure.legend([handles[name] for name in names], names, loc="lower center", ncols=len(names), frameon=False)
        figure.supylabel("seconds, with start and end", fontsize=8)
        figure.tight_layout(rect=(0, 0.35 / figure.get_figheight(), 1, 1))
        return finished(figure)


def finish_panel(panel, program, lines_of):
    """Axes of one program; both logarithmic where values span decades."""
    ranks = sorted({ranks for points in lines_of.values() for ranks, _ in points})
    values = [value for points in lines_of.values() for _, value in points]
    panel.set_title(program, fontsize=8)
    if len(ranks) > 1:
        panel.set_xscale("log", base=2)
    panel.set_xticks(ranks, [str(count) for count in ranks])
    panel.minorticks_off()
    panel.set_xlabel("ranks", fontsize=7, labelpad=1)
    if max(values) / min(values) >= 6:
        panel.set_yscale("log")
        plain(panel.yaxis, values)
        panel.set_ylim(min(values) / 1.3, max(values) * 1.3)
    else:
        panel.set_ylim(0, max(values) * 1.08)
    panel.grid(True, color="#e6e6e6", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def blocks(tables):
    """Tables that have several columns of numbers, long ones in pieces: (title, names of columns, rows of numbers)."""
    for before, (head, *rows) in tables:
        names = [name for name in head[1:] if name and name != "memory"]
        found = [(row[0], {name: number(row[head.index(name)]) for name in names}) for row in rows]
        found = [(name, values) for name, values in found if all(v is None or v > 0 for v in values.values())]
        is_of_mpis = any(name in MARKS or name in WAYS for name in names)
        is_long = len(found) > 2  # of two rows no picture is needed
        pieces = -(-len(found) // ROWS)
        rows_each = -(-len(found) // pieces) if pieces else 1
        for begin in range(0, len(found) if is_of_mpis and is_long else 0, rows_each):
            title = head[0] or ("" if before.startswith(("!", "#", "*")) else before)
            yield title, names, found[begin:begin + rows_each]


def dots(tables, label):
    """A row for each measurement: ours and the others on one axis."""
    pieces = list(blocks(tables))
    if not pieces:
        return None
    heights = [len(rows) for _, _, rows in pieces]
    with settings(label):
        size = (8, 0.8 + sum(0.17 * count + 0.75 for count in heights))
        figure, grid = plt.subplots(len(pieces), 1, squeeze=False, figsize=size, sharex=len(tables) == 1,
                                    gridspec_kw={"height_ratios": [count + 2 for count in heights]})
        for panel, (title, names, rows) in zip(grid.flat, pieces):
            draw_rows(panel, names, rows)
            panel.set_title(title[:110], fontsize=8, loc="left")
        handles = {}
        for panel in grid.flat:
            for handle, name in zip(*panel.get_legend_handles_labels()):
                handles.setdefault(name, handle)
        figure.legend(handles.values(), handles, loc="lower center", ncols=len(handles), frameon=False)
        grid.flat[-1].set_xlabel(label)
        figure.tight_layout(rect=(0, 0.35 / figure.get_figheight(), 1, 1))
        return finished(figure)


def draw_rows(panel, names, rows):
    """One panel of dots, the first row on top."""
    places = range(len(rows), 0, -1)
    for name in reversed(names):
        points = [(values[name], place) for (_, values), place in zip(rows, places) if values[name] is not None]
        if not points:
            continue
        look = {key: value for key, value in style(name).items() if key not in ("linestyle", "linewidth")}
        look["markersize"] = 9 if look["marker"] == "." else 5
        if name == "MPICH ABI":
            look["color"] = COLOURS["auto"]
        panel.plot(*zip(*points), label=name, linestyle="none", **look)
    values = [value for _, row in rows for value in row.values() if value is not None]
    if is_wide(values) or max(values) / min(values) >= 6:
        panel.set_xscale("log")
        plain(panel.xaxis, values)
    panel.set_yticks(list(places), [name for name, _ in rows])
    panel.set_ylim(0.3, len(rows) + 0.7)
    panel.grid(True, axis="both", color="#e6e6e6", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.tick_params(axis="y", length=0)
