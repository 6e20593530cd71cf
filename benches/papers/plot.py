"""Plots of the experiments by matplotlib, and the HTML page that shows them.

A plot has one panel for each family of policies, so that no panel has more lines than can be told apart. In each
panel `none` is black, the other MPIs are grey and dashed, and a policy has the same colour in all plots. Bands are the
range of the rounds.
"""

import html
import io
import math

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: E402

# Title of a panel, and what is coloured in it.
FAMILIES = (
    ("stealing", ("steal", "steal+signal", "steal+helper", "auto")),
    ("interrupts and threads of the rank", ("signal", "thread", "thread:rndv")),
    ("dedicated workers", ("ghost", "helper")),
)
REFERENCE = "none"
# Colours that are also told apart by those who see few (Okabe and Ito), one for each policy.
COLOURS = {
    "steal": "#0072b2", "steal+signal": "#56b4e9", "steal+helper": "#009e73", "auto": "#cc79a7",
    "signal": "#d55e00", "thread": "#e69f00", "thread:rndv": "#7a5195",
    "ghost": "#0072b2", "helper": "#d55e00",
}
MARKS = {"MPICH": "o", "MPICH async": "s", "Open MPI": "^", "Intel MPI": "x", "Intel MPI async": "+"}
GREY, BLACK = "#8a8a8a", "#000000"

# From this ratio of the largest to the smallest value on, an axis is logarithmic.
DECADES = 30


def is_wide(values):
    """Whether values need a logarithmic axis; one with values of both signs can have none."""
    return bool(values) and min(values) > 0 and max(values) / min(values) >= DECADES


def plain(axis, values):
    """A logarithmic axis whose numbers are written out, also between powers of ten where there are few."""
    if math.log10(max(values) / min(values)) < 3:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def draw(panel, name, points, **style):
    """A line with its band; `points` are (x, median, lowest, highest)."""
    xs, middle, low, high = zip(*points)
    panel.plot(xs, middle, label=name, **style)
    panel.fill_between(xs, low, high, color=style["color"], alpha=0.15, linewidth=0)


def axes(panels, lines, labels):
    """Sets up the axes, alike in all panels."""
    xs = sorted({point[0] for points in lines.values() for point in points})
    ys = [value for points in lines.values() for _, *values in points for value in values]
    for panel in panels:
        if is_wide(xs) or len(xs) > 2 and min(xs) > 0 and all(b >= 2 * a for a, b in zip(xs, xs[1:])):
            panel.set_xscale("log")
        panel.set_xticks(xs, [f"{x:g}" for x in xs])
        panel.minorticks_off()
        if is_wide(ys):
            panel.set_yscale("log")
            plain(panel.yaxis, ys)
        panel.set_xlabel(labels[0])
        panel.grid(True, color="#e6e6e6", linewidth=0.6)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(labels[1])


def svg(title, labels, lines):
    """One plot as SVG text. `lines` maps the name of a policy or of another MPI to its points."""
    families = [(name, [policy for policy in policies if policy in lines]) for name, policies in FAMILIES]
    families = [(name, policies) for name, policies in families if policies] or [("", [])]
    with plt.rc_context({"font.size": 8, "svg.fonttype": "none", "svg.hashsalt": title, "font.family": "sans-serif"}):
        figure, grid = plt.subplots(
            1, len(families), sharex=True, sharey=True, squeeze=False, figsize=(0.6 + 3.1 * len(families), 3.9))
        panels = grid[0]
        axes(panels, lines, labels)
        for panel, (family, policies) in zip(panels, families):
            panel.set_title(family, fontsize=8)
            for peer, mark in MARKS.items():
                if peer in lines:
                    draw(panel, peer, lines[peer], color=GREY, linestyle="--", linewidth=0.9, marker=mark, markersize=3)
            if REFERENCE in lines:
                draw(panel, REFERENCE, lines[REFERENCE], color=BLACK, linewidth=1.2)
            for policy in policies:
                draw(panel, policy, lines[policy], color=COLOURS[policy], linewidth=1.7, marker=".", markersize=4)
            handles, names = panel.get_legend_handles_labels()
            own = [(handle, name) for handle, name in zip(handles, names) if name not in MARKS]
            below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.17), "ncols": 3}
            panel.legend(*zip(*own), fontsize=7, frameon=False, **below)
        handles, names = panels[0].get_legend_handles_labels()
        others = [(handle, name) for handle, name in zip(handles, names) if name in MARKS]
        if others:
            figure.legend(*zip(*others), loc="lower center", ncols=len(others), fontsize=7, frameon=False)
        figure.suptitle(title, fontsize=9)
        figure.tight_layout(rect=(0, 0.05 if others else 0, 1, 1))
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": "matplotlib"})
        plt.close(figure)
    return text.getvalue()


def shown(value):
    return f"{value:.3g}"


def finding(lines, better):
    """What the plot says of us, in a sentence: at the largest x, the default policy beside `none` and the others."""
    last = {name: max(points) for name, points in lines.items() if points}
    if "steal" not in last:
        return ""
    x = last["steal"][0]
    values = {name: point[1] for name, point in last.items() if point[0] == x}
    ours = {name: value for name, value in values.items() if name not in MARKS}
    choose = max if better == "more" else min
    best = choose(ours, key=ours.get)
    words = [f"Ours at {x:g}: {shown(values['steal'])} under steal"]
    if REFERENCE in ours:
        words.append(f"{shown(ours[REFERENCE])} under none")
    if best not in ("steal", REFERENCE):
        words.append(f"{shown(ours[best])} under {best}, the best")
    peers = {name: value for name, value in values.items() if name in MARKS}
    if peers:
        first = choose(peers, key=peers.get)
        words.append(f"{shown(peers[first])} under {first}, the best of the others")
    return ", ".join(words) + "."


def page(sections, about):
    """The HTML page of all experiments: (title, what the paper saw, why ours differ, plots with their findings, table
    rows) each. `about` says what was measured where."""
    parts = ["<!DOCTYPE html><meta charset=utf-8><title>Progress policies</title>",
             "<style>body{font-family:sans-serif;max-width:75em;margin:1em auto;line-height:1.4}"
             "table{border-collapse:collapse;font-size:small}td,th{border:1px solid #ccc;padding:2px 6px}"
             "figure{margin:1em 0}figcaption{font-size:small;color:#333}svg{max-width:100%;height:auto}</style>",
             "<h1>Progress policies, experiment by experiment</h1>", f"<p>{html.escape(about)}</p>"]
    for title, words, differ, plots, rows in sections:
        parts.append(f"<h2>{html.escape(title)}</h2><p><b>The paper:</b> {html.escape(words)}</p>")
        if differ:
            parts.append(f"<p><b>Here:</b> {html.escape(differ)}</p>")
        for plot, caption in plots:
            parts.append(f"<figure>{plot[plot.index('<svg'):]}<figcaption>{html.escape(caption)}</figcaption></figure>")
        cells = ["".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) for row in rows]
        parts.append("<details><summary>Medians</summary><table><tr>" + "</tr><tr>".join(cells)
                     + "</tr></table></details>")
    return "\n".join(parts) + "\n"
