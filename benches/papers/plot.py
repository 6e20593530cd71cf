"""Line plots as SVG text, and the HTML page that shows them."""

import html
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 360, 64, 170, 34, 48
COLOURS = ("#1b6ca8", "#c0392b", "#27864a", "#8e44ad", "#d68910", "#148f9b", "#7f8c8d", "#2c3e50",
           "#e067a0", "#6b4f1d", "#4a8f00", "#0b3d91", "#aa6f73")


def ticks(low, high):
    """About five round numbers from `low` to `high`."""
    step = 10 ** math.floor(math.log10(max(high - low, 1e-9) / 4))
    step = next(step * factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 5)
    first = math.ceil(low / step)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def svg(title, x_label, y_label, series):
    """One plot. `series` maps a name to a list of (x, y); the places of x are evenly spread."""
    places = sorted({x for points in series.values() for x, _ in points})
    values = [y for points in series.values() for _, y in points]
    low, high = min(0, *values), max(*values, 1e-3) * 1.05
    inner_width, inner_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def across(x):
        return LEFT + inner_width * places.index(x) / max(len(places) - 1, 1)

    def up(y):
        return TOP + inner_height * (1 - (y - low) / (high - low))

    text = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-size="13">{html.escape(title)}</text>',
    ]
    for y in ticks(low, high):
        text.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(y):.1f}" y2="{up(y):.1f}" stroke="#ddd"/>')
        text.append(f'<text x="{LEFT - 6}" y="{up(y) + 4:.1f}" text-anchor="end">{y:g}</text>')
    for x in places:
        text.append(f'<text x="{across(x):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{x:g}</text>')
    text.append(f'<text x="{LEFT + inner_width / 2}" y="{HEIGHT - 10}" text-anchor="middle">'
                f'{html.escape(x_label)}</text>')
    text.append(f'<text x="14" y="{TOP + inner_height / 2}" text-anchor="middle" '
                f'transform="rotate(-90 14 {TOP + inner_height / 2})">{html.escape(y_label)}</text>')
    for number, (name, points) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in sorted(points))
        text.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        y = TOP + 8 + 16 * number
        text.append(f'<line x1="{WIDTH - RIGHT + 8}" x2="{WIDTH - RIGHT + 26}" y1="{y}" y2="{y}" '
                    f'stroke="{colour}" stroke-width="2"/>')
        text.append(f'<text x="{WIDTH - RIGHT + 30}" y="{y + 4}">{html.escape(name)}</text>')
    return "\n".join([*text, "</svg>"]) + "\n"


def page(sections):
    """The HTML page of all experiments: (title, what the paper saw, plots, table rows) each."""
    parts = ["<!DOCTYPE html><meta charset=utf-8><title>Progress policies</title>",
             "<style>body{font-family:sans-serif;max-width:70em;margin:1em auto}"
             "table{border-collapse:collapse;font-size:small}td,th{border:1px solid #ccc;padding:2px 6px}</style>",
             "<h1>Progress policies, experiment by experiment</h1>"]
    for title, words, plots, rows in sections:
        parts.append(f"<h2>{html.escape(title)}</h2><p>{html.escape(words)}</p>")
        parts.extend(plots)
        cells = ["".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) for row in rows]
        parts.append("<table><tr>" + "</tr><tr>".join(cells) + "</tr></table>")
    return "\n".join(parts) + "\n"
