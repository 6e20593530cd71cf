"""Plots of the experiments by matplotlib: one figure each.

A row of a figure is a series, a column a family of policies, so that no panel has more lines than can be told apart. In
each panel `none` is black, the other MPIs are grey and dashed, and a policy has the same colour in all plots. Our bands
are the range of the rounds' quartiles. An axis is logarithmic where its values span decades.
"""

import io
import math
import re
import statistics
import textwrap

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: E402

# Title of a column, and what is coloured in it; the last two are of those that need a CPU beside those of the ranks.
DEDICATED = ("ghost", "helper", "steal+helper")
FAMILIES = (
    ("stealing", ("steal", "steal+signal", "steal+helper", "auto")),
    ("interrupts, threads of the rank", ("signal", "thread", "thread:rndv")),
)
REFERENCE = "none"
# Colours that are also told apart by those who see few (Okabe and Ito), one for each policy.
COLOURS = {
    "steal": "#0072b2", "steal+signal": "#56b4e9", "steal+helper": "#009e73", "auto": "#cc79a7",
    "signal": "#d55e00", "thread": "#e69f00", "thread:rndv": "#7a5195",
    "ghost": "#8c510a", "helper": "#c51b7d",
}
MARKS = {"MPICH": "o", "MPICH async": "s", "Open MPI": "^", "Intel MPI": "x", "Intel MPI async": "+"}
GREY, BLACK = "#8a8a8a", "#000000"

DECADES = 10  # from this ratio of the largest to the smallest value on, an axis is logarithmic
FLOOR = 0.05  # microseconds; what takes less is drawn there, if the axis is logarithmic
# Other MPIs whose values are all beyond this multiple of our largest one are left out and named: on a logarithmic axis,
# and on others.
BEYOND = {True: 30, False: 5}
PANEL = (2.6, 1.75)  # inches


def is_wide(values):
    """Whether values need a logarithmic axis; one with values of both signs can have none."""
    return bool(values) and min(values) > 0 and max(values) / min(values) >= DECADES


def plain(axis, values):
    """A logarithmic axis whose numbers are written out, also between powers of ten where there are few."""
    if math.log10(max(values) / min(values)) < 3:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if math.log10(max(values) / min(values)) < 2 else (1, 3)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def draw(panel, name, points, band=0.18, **style):
    """A line with its band; `points` are (x, median, lowest, highest)."""
    xs, middle, low, high = zip(*points)
    panel.plot(xs, middle, label=name, **style)
    if band:
        panel.fill_between(xs, low, high, color=style["color"], alpha=band, linewidth=0)


def kept(lines):
    """Whether the axis is logarithmic; the lines without other MPIs that are far beyond ours; and their names, with
    their smallest and largest medians."""
    middles = {name: [max(middle, FLOOR) for _, middle, *_ in points] for name, points in lines.items() if points}
    ours = [value for name, values in middles.items() if name not in MARKS for value in values]
    if not ours:
        return False, lines, {}
    for is_log in (False, True):
        beyond = {name: (min(values), max(values)) for name, values in middles.items()
                  if name in MARKS and min(values) > BEYOND[is_log] * max(ours)}
        left = {name: points for name, points in lines.items() if name not in beyond}
        if not is_wide([value for name in left for value in middles.get(name, [])]):
            return False, left, beyond
    return True, left, beyond


def columns_of(section):
    """(title, policies, whether with a CPU to spare) of each column that has lines."""
    present = {name for runs in section.lines.values() for name in runs}
    workers = "ranks asleep" if section.experiment.asleep else "no CPU to spare"
    all_columns = [(name, policies, False) for name, policies in FAMILIES]
    all_columns.append((f"dedicated workers, {workers}", DEDICATED[:2], False))
    if section.spare:
        all_columns.append(("dedicated workers, a CPU to spare", DEDICATED, True))
    return [column for column in all_columns if column[2] or present & set(column[1])]


def vertical(panel, lines, experiment):
    """The vertical axis of a row; returns its lines as they can be drawn."""
    if "%" in experiment.y and experiment.better == "more":
        panel.set_ylim(-4, 104)
        return lines
    is_log, lines, beyond = kept(lines)
    if beyond:
        words = [f"{name} {shown(low)} to {shown(high)}" for name, (low, high) in beyond.items()]
        panel.text(0.02, 0.98, "\n".join(["beyond the axis:", *words]), transform=panel.transAxes, fontsize=6,
                   color="#666666", verticalalignment="top")
    if is_log:
        lines = {name: [(x, *(max(value, FLOOR) for value in values)) for x, *values in points]
                 for name, points in lines.items()}
        panel.set_yscale("log")
        values = [value for name, points in lines.items() for _, *band in points
                  for value in (band[:1] if name in MARKS else band)]
        plain(panel.yaxis, values)
        ends = math.log10(min(values)), math.log10(max(values))
        room = (ends[1] - ends[0]) * (0.1 + 0.1 * len(beyond) if beyond else 0.03)
        panel.set_ylim(10 ** (ends[0] - 0.1), 10 ** (ends[1] + room))
        return lines
    middles = [middle for points in lines.values() for _, middle, *_ in points]
    bands = [min(point[3], 2 * max(middles)) for name, points in lines.items() if name not in MARKS for point in points]
    top = max(middles + bands) * (1.15 + 0.1 * len(beyond) if beyond else 1.08)
    panel.set_ylim(min(0, *middles), top)
    return lines


def horizontal(panel, lines):
    """The horizontal axis, with a number at each value."""
    xs = sorted({point[0] for points in lines.values() for point in points})
    if is_wide(xs) or len(xs) > 2 and min(xs) > 0 and all(b >= 2 * a for a, b in zip(xs, xs[1:])):
        panel.set_xscale("log")
    panel.set_xticks(xs, [f"{x:g}" for x in xs])
    panel.minorticks_off()


def fill(panel, lines, policies):
    """The lines of a panel."""
    for peer, mark in MARKS.items():
        if peer in lines:
            draw(panel, peer, lines[peer], 0, color=GREY, linestyle="--", linewidth=0.8, marker=mark, markersize=3)
    if REFERENCE in lines:
        draw(panel, REFERENCE, lines[REFERENCE], color=BLACK, linewidth=1.2, marker=".", markersize=3)
    for policy in policies:
        if policy in lines:
            draw(panel, policy, lines[policy], color=COLOURS[policy], linewidth=1.6, marker=".", markersize=4)
    panel.grid(True, color="#e6e6e6", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def legends(figure, grid, columns):
    """A legend of its own policies below each column, and one of the other MPIs below all."""
    others = {}
    for place in range(len(columns)):
        own = {}
        for panel in grid[:, place]:
            for handle, name in zip(*panel.get_legend_handles_labels()):
                (others if name in MARKS else own).setdefault(name, handle)
        grid[-1, place].legend(own.values(), own, fontsize=7, frameon=False, loc="upper center", handlelength=1.6,
                               columnspacing=1, bbox_to_anchor=(0.5, -0.27), ncols=3 if len(own) != 4 else 2)
    if others:
        figure.legend(others.values(), others, loc="lower center", ncols=len(others), fontsize=7, frameon=False)
    return bool(others)


def settings(salt):
    return plt.rc_context({"font.size": 8, "svg.fonttype": "none", "svg.hashsalt": salt, "font.family": "sans-serif"})


def svg(section):
    """The figure of an experiment as SVG text."""
    if section.experiment.categories:
        return by_policy(section)
    columns, series = columns_of(section), list(section.lines)
    with settings(section.name):
        size = (0.5 + PANEL[0] * len(columns), 1.0 + PANEL[1] * len(series))
        figure, grid = plt.subplots(len(series), len(columns), sharex=True, sharey="row", squeeze=False, figsize=size)
        for row, name in enumerate(series):
            lines, spare = section.lines[name], section.spare.get(name, {})
            # Both kinds of lines have one axis.
            both = {**lines, **{f"{run}, spare": points for run, points in spare.items()}}
            both = vertical(grid[row, 0], both, section.experiment)
            horizontal(grid[row, 0], both)
            for panel, (title, policies, is_spare) in zip(grid[row], columns):
                shown_lines = {run.removesuffix(", spare"): points for run, points in both.items()
                               if run.endswith(", spare") == is_spare}
                fill(panel, shown_lines, policies)
                if row == 0:
                    panel.set_title(title, fontsize=8)
            named = textwrap.fill(name.replace("-", " "), 24)
            grid[row, 0].set_ylabel(f"{named}\n{section.experiment.y}" if len(series) > 1 else section.experiment.y,
                                    fontsize=7)
        for panel in grid[-1]:
            panel.set_xlabel(section.experiment.x, labelpad=2)
        has_others = legends(figure, grid, columns)
        figure.align_ylabels(grid[:, 0])
        for _ in range(3):  # a legend's place depends on its panel's height
            figure.tight_layout(rect=(0, 0.22 / size[1] if has_others else 0, 1, 1))
        return finished(figure)


def by_policy(section):
    """A row for each policy, where x is no quantity but one of several cases."""
    (lines,) = section.lines.values()
    names = [name for name in (REFERENCE, *COLOURS) if name in lines]
    cases = section.experiment.categories
    # Bands may be far wider than what medians differ by, and are cut then.
    limit = max(1, *(3 * abs(middle) for points in lines.values() for _, middle, *_ in points))
    with settings(section.name):
        figure, panel = plt.subplots(figsize=(6, 0.9 + 0.3 * len(names)))
        for case, label in enumerate(cases):
            for place, name in enumerate(reversed(names)):
                found = [point for point in lines[name] if point[0] == case]
                if not found:
                    continue
                _, middle, low, high = found[0]
                colour = COLOURS.get(name, BLACK)
                y = place + 0.12 - 0.24 * case
                panel.plot([max(low, -limit), min(high, limit)], [y, y], color=colour, linewidth=3, alpha=0.35,
                           solid_capstyle="butt")
                panel.plot(middle, y, color=colour, marker="os"[case % 2], markersize=5,
                           markerfacecolor=colour if case == 0 else "white", linestyle="none")
            panel.plot([], [], color=GREY, marker="os"[case % 2], markersize=5, linestyle="none", label=label,
                       markerfacecolor=GREY if case == 0 else "white")
        panel.set_yticks(range(len(names)), reversed(names))
        panel.axvline(0, color=BLACK, linewidth=0.8)
        panel.set_xlabel(section.experiment.y)
        panel.grid(True, axis="x", color="#e6e6e6", linewidth=0.6)
        panel.spines[["top", "right", "left"]].set_visible(False)
        panel.tick_params(axis="y", length=0)
        handles, labels = panel.get_legend_handles_labels()
        figure.legend(handles, labels, loc="upper center", ncols=len(cases), fontsize=7, frameon=False)
        figure.tight_layout(rect=(0, 0, 1, 1 - 0.22 / figure.get_figheight()))
        return finished(figure)


def finished(figure):
    """SVG text that is the same for the same values, a fifth as long as matplotlib's: with tenths of points, each style
    once, and no groups' names."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    plt.close(figure)
    short = re.sub(r'\b(d|x|y)="[^"]*"', lambda found: re.sub(r"(\.\d)\d+", r"\1", found[0]), text.getvalue())
    short = re.sub(r"(\d\.\d\d)\d+", r"\1", short)
    short = re.sub(r"\s+", " ", re.sub(r"<!DOCTYPE.*?>|<!--.*?-->", "", short, flags=re.S))
    short = re.sub(r'<g id="[^"]*">', "<g>", short).replace("> <", "><").replace(' "', '"')
    styles = {}
    short = re.sub(r'style="([^"]*)"', lambda found: f'class="{styles.setdefault(found[1], f"s{len(styles)}")}"', short)
    rules = "".join(f".{name}{{{style}}}" for style, name in styles.items()).replace("; ", ";").replace(": ", ":")
    return short.replace("</style>", f"{rules}</style>", 1).replace("><", ">\n<") + "\n"


def shown(value):
    """Three digits, and no exponent."""
    return f"{float(f'{value:.3g}'):g}" if abs(value) < 1e6 else f"{value:.3g}"


def value_at(points, x):
    """The median there, or at the largest x if there is none; or None."""
    return {at: middle for at, middle, *_ in points}.get(max(points)[0] if x is None else x)


def finding(lines, better, at):
    """What a series says of us at an x: that x, the value under the default policy and under `none`, our best one with
    its policy, and the best of the others; or None."""
    if not lines.get("steal"):
        return None
    x = max(lines["steal"])[0] if at is None else at
    values = {name: value_at(points, x) for name, points in lines.items()}
    values = {name: value for name, value in values.items() if value is not None}
    if "steal" not in values:
        return None
    choose = max if better == "more" else min

    def best(among):
        name = choose(among, key=among.get, default=None)
        return f"{shown(among[name])} ({name})" if name else "-"

    ours = {name: value for name, value in values.items() if name not in MARKS}
    others = {name: value for name, value in values.items() if name in MARKS}
    none = shown(ours[REFERENCE]) if REFERENCE in ours else "-"
    return x, [shown(values["steal"]), none, best(ours), best(others)]


def centre(values):
    return statistics.median(values) if values else 0
