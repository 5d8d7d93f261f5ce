"""Figures of the article: panels at fixed places, and labels at the lines. All lengths are points."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from sqrtdk.figures import style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 72 * style.WIDTH


def stack(
    heights: Sequence[float], left: float = 50, right: float = 8, top: float = 8, bottom: float = 42, gap: float = 40
) -> tuple[Figure, list[Axes]]:
    """Return a figure of panels one above the other."""
    tall = top + sum(heights) + gap * (len(heights) - 1) + bottom
    ends = [top + sum(heights[: i + 1]) + gap * i for i in range(len(heights))]
    return _placed(tall, [(left, end, WIDTH - left - right, height) for end, height in zip(ends, heights, strict=True)])


def _placed(tall: float, places: Sequence[tuple[float, float, float, float]]) -> tuple[Figure, list[Axes]]:
    """Return a figure with axes at places: left edge, lower edge from the top, width and height."""
    from matplotlib.figure import Figure

    made = Figure((WIDTH / 72, tall / 72))
    return made, [
        made.add_axes((left / WIDTH, 1 - below / tall, width / WIDTH, height / tall))
        for left, below, width, height in places
    ]


def says(axes: Axes, x: float, y: float, text: str, colour: str, dx: float = 0, dy: float = 0, **place: Any) -> None:
    """Write a label at a line: so far from a place of the data, in the colour of the line."""
    settings = {"ha": "left", "va": "center"} | place
    axes.annotate(text, (x, y), (dx, dy), textcoords="offset points", color=colour, annotation_clip=False, **settings)


def at_ends(axes: Axes, ends: Sequence[tuple[float, str, str]], dx: float = 6, step: float = 15) -> None:
    """Write labels right of the panel at the ends of its lines, no two closer than `step`.

    ends: height in the data, text and colour of each. The limits of the axes must be final.
    """
    if not ends:
        return
    tall = 72 * axes.get_window_extent().height / axes.figure.dpi
    inverted = axes.transAxes.inverted()
    places = [tall * float(inverted.transform(axes.transData.transform((1, height)))[1]) for height, _, _ in ends]
    places = [min(max(place, 0), tall) for place in places]
    order = sorted(range(len(ends)), key=lambda i: places[i])
    for low, high in itertools.pairwise(order):
        places[high] = max(places[high], places[low] + step)
    over = max(places) - tall
    for i in reversed(order):
        # Back into the panel, and only as far as the next label below lets it.
        places[i] = min(places[i], tall) if over > 0 else places[i]
        tall = places[i] - step if over > 0 else tall
    height = 72 * axes.get_window_extent().height / axes.figure.dpi
    for place, (_, text, colour) in zip(places, ends, strict=True):
        at = {"xy": (1, place / height), "xycoords": "axes fraction", "xytext": (dx, 0), "textcoords": "offset points"}
        axes.annotate(text, color=colour, ha="left", va="center", annotation_clip=False, **at)
