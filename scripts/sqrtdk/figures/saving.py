"""A figure as SVG, PDF or PNG: the same bytes in every run, folder and user account, with its licence inside."""

import contextlib
import functools
import io

from sqrtdk import style
from sqrtdk.figures import LICENCE, LICENCE_URL

_DPI = 200
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


@contextlib.contextmanager
def settings():
    """Draw with the house settings alone, whatever matplotlibrc the user has; restore the caller's settings after."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def styled(draw):
    """Make a figure function draw with the house settings."""

    @functools.wraps(draw)
    def drawn(frames):
        with settings():
            figure = draw(frames)
            # Laid out once: every format gets the same places, and saving three files costs one layout.
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
            return figure

    return drawn


def save(figure, kind: str, name: str, title: str, description: str) -> bytes:
    """Return the bytes of a figure as `svg`, `pdf` or `png`, with title, name, description and licence as metadata.

    SVG is transparent, for pages of any colour; PDF and PNG are white. No date enters, and ids come from a fixed salt.
    """
    rights = f"{LICENCE}, {LICENCE_URL}"
    metadata = {
        "svg": {
            "Title": title,
            "Identifier": name,
            "Description": description,
            "Rights": rights,
            "Creator": "sqrtdk",
            "Date": None,
        },
        "pdf": {
            "Title": title,
            "Subject": description,
            "Author": "sqrtdk",
            "Keywords": f"{name}; licence {rights}",
            "CreationDate": None,
        },
        "png": {"Title": title, "Description": description, "Source": name, "Copyright": rights},
    }
    # PNG text chunks are Latin-1; √ and subscripts become plain letters there.
    if kind == "png":
        metadata["png"] = {key: _latin(text) for key, text in metadata["png"].items()}
    target = io.BytesIO()
    with settings():
        figure.savefig(target, format=kind, metadata=metadata[kind], transparent=kind == "svg")
    return target.getvalue()


def _latin(text: str) -> str:
    for sign, plain in {"√": "sqrt ", "−": "-", "≤": "<=", "≥": ">=", "\u202f": " ", "ₖ": "_k"}.items():
        text = text.replace(sign, plain)
    return text.encode("latin-1", "replace").decode("latin-1")
