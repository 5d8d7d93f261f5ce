"""A figure as SVG, PDF or PNG: the same bytes in every run, folder and user account."""

from __future__ import annotations

import contextlib
import functools
import io
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqrtdk.figures import panels, selection, style
from sqrtdk.figures.framing import Frame
from sqrtdk.figures.targets import TARGETS, TYPE, Target

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    Frames = Mapping[str, pd.DataFrame]
    Draw = Callable[[pd.DataFrame, Frames], Figure]

LAYOUT_TABLES = ("GDEF", "GPOS", "GSUB", "MATH", "kern")
"""Of a font: classes of glyphs, their places and substitutes, mathematics, kerning."""
_DPI = 200
_SAME = 1e-6
_NO_METADATA = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
}
_SETTINGS = {
    "axes.axisbelow": True,
    "axes.edgecolor": style.INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": style.INK,
    "axes.labelsize": 9.5,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "axes.titlecolor": style.INK,
    "axes.titley": 1.0,  # nothing stands at the top of axes; to look for that takes a twentieth of a drawing
    "axes.unicode_minus": True,
    "figure.facecolor": "white",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "grid.alpha": style.FAINT,
    "grid.color": style.INK,
    "grid.linewidth": 0.6,
    "legend.borderaxespad": 0.3,
    "legend.borderpad": 0.2,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "legend.labelspacing": 0.35,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.2,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "savefig.dpi": _DPI,
    "svg.fonttype": "none",
    "svg.hashsalt": "sqrtdk",
    "text.color": style.INK,
    "text.parse_math": False,  # a name is text, whatever dollars and braces it holds
    "xtick.color": style.INK,
    "xtick.labelsize": 9,
    "xtick.major.size": 3,
    "xtick.major.width": 0.7,
    "ytick.color": style.INK,
    "ytick.labelsize": 9,
    "ytick.major.size": 3,
    "ytick.major.width": 0.7,
}
_SIZES = ("font.size", "axes.labelsize", "axes.titlesize", "legend.fontsize", "xtick.labelsize", "ytick.labelsize")


@contextlib.contextmanager
def settings(size: float = TYPE) -> Iterator[None]:
    """Draw with the house settings alone, whatever matplotlibrc the user has; restore the caller's settings after."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        if size != TYPE:
            matplotlib.rcParams.update(dict.fromkeys(_SIZES, size))
        yield


def styled(
    data: Callable[[Frames], pd.DataFrame], nothing: str, size: float = TYPE
) -> Callable[[Draw], Callable[..., Figure]]:
    """Make `draw(table, frames)` a function of the result tables, whose table is what `data` returns of them.

    It draws with the house settings, for a target; where the table has no row, it says `nothing`. size: points of its
    type.
    """

    def decorated(draw: Draw) -> Callable[..., Figure]:
        @functools.wraps(draw)
        def drawn(frames: Frames, target: Target = TARGETS["report"]) -> Figure:
            with settings(size):
                table = selection.table(data, frames)
                figure = panels.statement(nothing) if table.empty else draw(table, frames)
                # Smaller type is more room around type of one size: what a module sets in points keeps its proportions.
                figure.set_size_inches(figure.get_size_inches() * target.room(size))
                if (engine := figure.get_layout_engine()) is not None:
                    # Laid out once: every format gets the same places, and saving three files costs one layout.
                    engine.execute(figure)
                    # With "none" in place of None, each file would cost a draw that is thrown away.
                    figure.set_layout_engine(None)
                _settle(figure)
                for holder in (figure, *figure.subfigs):
                    for legend in holder.legends:
                        # Else it would move with what is added around the figure.
                        legend.set_bbox_to_anchor((0, 0, 1, 1), holder.transSubfigure)
                return figure

        return drawn

    return decorated


def _settle(figure: Figure) -> None:
    """Round the places of axes: the solver of the layout may end on another last digit in another run."""
    for axes in figure.get_axes():
        place = axes.get_position(original=True)
        axes.set_position([round(value, 6) for value in place.bounds], which="original")


def save(figure: Figure, kind: str, target: Target = TARGETS["report"], frame: Frame | None = None) -> bytes:
    """Return the bytes of a figure as `svg`, `pdf` or `png` in the size of its target, without metadata.

    SVG is transparent, for pages of any colour; PDF and PNG are white. No date enters, and ids come from a fixed salt.
    frame: the room of what stands around the figure, which an SVG names as `data-body`, the view of the figure alone.
    """
    from matplotlib.transforms import Bbox

    if kind == "pdf":
        _leave_out_layout_of_fonts()
    content = io.BytesIO()
    scale = target.width / figure.get_figwidth()
    width, height = figure.get_size_inches()
    around = frame and Bbox([[0, -frame.bottom / 72], [width, height + frame.top / 72]])
    with settings():
        figure.savefig(
            content,
            format=kind,
            metadata=_NO_METADATA[kind],
            transparent=kind == "svg",
            bbox_inches=around,
            dpi=_DPI * scale if kind == "png" else "figure",
        )
    made = _attributes(_clips_by_order(content.getvalue())) if kind == "svg" else content.getvalue()
    if kind == "svg" and frame:
        body = f'data-body="0 {frame.top:g} {72 * width:g} {72 * height:g}"'
        made = made.replace(b"<svg ", f"<svg {body} ".encode(), 1)
    if abs(scale - 1) < _SAME or kind == "png":
        return made
    return {"svg": _scaled_svg, "pdf": _scaled_pdf}[kind](made, scale)


@functools.cache
def _leave_out_layout_of_fonts() -> None:
    """Embed fonts without what only lays out text: a PDF names each glyph and its place, and subsetting takes long.

    As an option of fontTools, it would come after these tables are read.
    """
    from fontTools import subset

    load = subset.load_font

    def bare(*arguments: Any, **named: Any) -> Any:
        font = load(*arguments, **named)
        for tag in set(LAYOUT_TABLES) & set(font.keys()):
            del font[tag]
        return font

    subset.load_font = bare


def _clips_by_order(content: bytes) -> bytes:
    """Name clip paths by their order of use: matplotlib names them by places in memory, other in each run."""
    names: dict[bytes, bytes] = {}

    def named(match: re.Match[bytes]) -> bytes:
        return match[1] + names.setdefault(match[2], b"clip%d" % len(names)) + match[3]

    return re.sub(rb'(url\(#|<clipPath id=")(p[0-9a-f]{10})(\)|")', named, content)


_INHERITED = re.compile(rb'\s*<defs>\s*<style type="text/css">\*\{([^}]*)\}</style>\s*</defs>')


def _attributes(content: bytes) -> bytes:
    """Say looks by attributes, which policies against inline styles, as hosts of artifacts have, do not reach."""

    @functools.cache
    def said(declarations: bytes) -> bytes:
        pairs = (one.partition(b":") for one in declarations.split(b";"))
        return b" ".join(b'%s="%s"' % (name.strip(), value.strip()) for name, _, value in pairs if value.strip())

    if inherited := _INHERITED.search(content):
        content = content.replace(inherited[0], b"", 1).replace(b"<svg ", b"<svg %s " % said(inherited[1]), 1)
    return re.sub(rb'\bstyle="([^"]*)"', lambda match: said(match[1]), content)


def _scaled_svg(content: bytes, scale: float) -> bytes:
    def scaled(match: re.Match[str]) -> str:
        return f'{match[1]}="{float(match[2]) * scale:.4f}pt"'

    head, tag, rest = content.decode().partition("<svg ")
    start, close, body = rest.partition(">")
    return (head + tag + re.sub(r'\b(width|height)="([\d.]+)pt"', scaled, start) + close + body).encode()


def _scaled_pdf(content: bytes, scale: float) -> bytes:
    import pypdf

    writer = pypdf.PdfWriter(clone_from=io.BytesIO(content))
    writer.pages[0].scale_by(scale)
    target = io.BytesIO()
    writer.write(target)
    return target.getvalue()
