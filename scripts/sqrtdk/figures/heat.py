"""Colours for quantities of many orders: one map, even to the eye, that reads in grey and on pages of any colour."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DARK, LIGHT = "#151515", "#fafafa"
"""Ink on light and on dark colours of the map: fixed, because the map does not follow the page either."""


def colours(number: int) -> list[str]:
    """Return so many colours from dark to light, at equal steps of lightness."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colormaps["viridis"]((i + 0.5) / number)) for i in range(number)]


def ink(position: float) -> str:
    """Return the ink that is seen on the colour at this place of the map, 0 to 1."""
    return DARK if position > 0.55 else LIGHT


def bar(figure: Figure, axes: Axes, edges: list[float], label: str, spell: Callable[[float], str]) -> None:
    """Draw a horizontal bar of the colours between these edges, each edge with its value."""
    for i, colour in enumerate(colours(len(edges) - 1)):
        axes.axvspan(i, i + 1, color=colour, linewidth=0)
    axes.set_xlim(0, len(edges) - 1)
    axes.set_xticks(range(len(edges)), [spell(edge) for edge in edges])
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(label)
