"""Ratios as bars: an SVG narrow enough for a phone, without a library that draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, NAMES, BAR, LINE = 380, 200, 140, 20
"""Of the picture, of the column of names and of the longest bar, and the height of a row."""
LONGEST = 2.0
"""A bar of a larger ratio ends there; its number says what it is."""

ONE_THREAD, MORE_THREADS, TEXT, RULE = "#2b6cb0", "#d9822b", "#1a202c", "#718096"
FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
GROUPS: Sequence[tuple[str, str]] = (
    ("Memory", "peak memory, "),
    ("Start and size", "import"),
    ("Start and size", "installed size"),
)
CALLS, STEPS = "Single calls", "Training steps, and many calls"


def grouped(ratios: Mapping[str, float | None]) -> dict[str, list[tuple[str, float]]]:
    """The ratios that were measured by what they are of; those of two threads follow the others."""
    groups: dict[str, list[tuple[str, float]]] = {CALLS: [], STEPS: []}
    for name, ratio in ratios.items():
        if not ratio or "10⁶ elements" in name:
            continue
        for title, start in GROUPS:
            if name.startswith(start):
                groups.setdefault(title, []).append((name.removeprefix("peak memory, "), ratio))
                break
        else:
            many = any(word in name for word in (" step", "chain", "operations", "GPT", "loop"))
            groups[STEPS if many else CALLS].append((name.removesuffix(", 1 thread"), ratio))
    return {title: sorted(rows, key=_threads) for title, rows in groups.items() if rows}


def _threads(row: tuple[str, float]) -> bool:
    return "threads" in row[0]


def draw(ratios: Mapping[str, float | None]) -> str:
    """The picture: a bar for each ratio, its number, and a line at 1."""
    groups = grouped(ratios)
    measured = [ratio for rows in groups.values() for _, ratio in rows]
    scale = BAR / min(max([*measured, 1.1]), LONGEST)
    one = round(NAMES + scale, 1)
    parts, y = [], 40
    for title, rows in groups.items():
        parts.append(f'<text x="8" y="{y + 14}" font-weight="bold">{escape(title)}</text>')
        y += 24
        top = y
        for name, ratio in rows:
            colour = MORE_THREADS if _threads((name, ratio)) else ONE_THREAD
            length = max(min(ratio, LONGEST) * scale, 1)
            parts += [
                f'<text x="{NAMES - 6}" y="{y + 13}" text-anchor="end">{_short(name)}</text>',
                f'<rect x="{NAMES}" y="{y + 3}" width="{length:.1f}" height="{LINE - 7}" '
                f'fill="{colour}"/>',
                f'<text x="{WIDTH - 8}" y="{y + 13}" text-anchor="end">{ratio:.2f}</text>',
            ]
            y += LINE
        parts.append(
            f'<path d="M{one} {top}V{y}" stroke="{RULE}" stroke-dasharray="3 2" fill="none"/>'
        )
        y += 8
    lead = "flambeau / PyTorch: left of the line is faster or smaller"
    colours = f'<tspan fill="{ONE_THREAD}">one thread</tspan>, '
    colours += f'<tspan fill="{MORE_THREADS}">two threads (· 2)</tspan>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" '
        f'width="{WIDTH * 1.6:.0f}" role="img" aria-label="{lead}">\n'
        f'<rect width="{WIDTH}" height="{y}" rx="6" fill="#f7fafc"/>\n'
        f'<g font-family="{FONT}" font-size="11" fill="{TEXT}">\n'
        f'<text x="8" y="18">{lead}</text>\n<text x="8" y="33">{colours}</text>\n'
        + "\n".join(parts)
        + "\n</g>\n</svg>\n"
    )


def _short(name: str) -> str:
    for long, short in (
        ("operations on a million elements, geometric mean", "calls on 10⁶ elements"),
        ("forward and backward", "with gradients"),
        (", torch's fused Adam", ", fused Adam"),
        (" step, Adam", " step"),
        (", 2 threads", " · 2"),
    ):
        name = name.replace(long, short)
    return escape(name)
