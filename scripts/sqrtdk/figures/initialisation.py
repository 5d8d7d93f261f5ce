"""Figure: the spread of the logits before training, by initial weights and by what is normalised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqrtdk.figures import layout, panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.figures.style import Look
from sqrtdk.figures.targets import LARGE
from sqrtdk.statistics import intervals
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Phrase, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "article/start"
INPUTS = ("initialisation",)

_GROUPS = ("weights", "inputs", "heads")
_SHOWN = {"weights": "initial weights, q·k / √dₖ", "heads": "normalised queries and keys (g: multiplier)"}
_ROW = 19
"""Points for a layer's row."""
_NEAR = 1.1


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per layer that is shown: standard deviation of its logits, with 95 % interval and exact value."""
    table = _all(frames)
    return table[table["group"].isin(_SHOWN)].reset_index(drop=True) if len(table) else table


def _all(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    table = frames["initialisation"]
    if table.empty:
        return table
    table = table[(table["quantity"] == "logit_std") & table["estimate"].notna()].reset_index(drop=True)
    half = intervals.half_width(table["se"], table["n_blocks"])
    table["low"], table["high"] = table["estimate"] - half, table["estimate"] + half
    return table


@saving.styled(data, "No initial weights were measured.", LARGE)
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a point in each layer's row, sorted, a panel for each group, on one log axis with 1 marked."""
    groups = {name: _sorted(table[table["group"] == name]) for name in _SHOWN if name in set(table["group"])}
    heights = [_ROW * len(rows) for rows in groups.values()]
    figure, grid = layout.stack(heights, left=178, right=56, top=26, bottom=44, gap=30)
    widths = style.sequence(sorted(set(table["d_k"])))
    for axes, (name, rows) in zip(grid, groups.items(), strict=True):
        axes.set_xscale("log")
        _limits(axes, table)
        for place, cells in enumerate(rows.values()):
            _draw_row(axes, place, cells, widths)
        axes.axvline(1, color=style.INK, linewidth=0.8, alpha=style.MUTED, zorder=1, label="_reference")
        axes.set_yticks(range(len(rows)), [panels.short(label, 24) for label in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        axes.tick_params(axis="x", labelbottom=axes is grid[-1])
        axes.set_title(_SHOWN[name], x=-172 / (layout.WIDTH - 178 - 56), fontweight="bold")
        _number_column(axes, rows, widths)
    grid[-1].set_xlabel("standard deviation of the logits")
    if len(widths) > 1:
        keys = [panels.key(look, line=False, label=f"dₖ = {width}") for width, look in widths.items()]
        grid[-1].legend(handles=keys, loc="lower left", handlelength=0.8, handletextpad=0.4)
    return figure


def _sorted(table: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Return the lines of a panel from the smallest spread to the largest."""
    return dict(sorted(_rows(table).items(), key=lambda line: line[1][0]["estimate"]))


def _label(row: dict[str, Any]) -> str:
    from sqrtdk.studies.initialisation import LABELS

    return LABELS.get((row["group"], row["scheme"]), str(row["scheme"]))


def _rows(table: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Return the cells of each line of a panel by its label: layers of one name that differ in D have lines each."""
    cells = table.to_dict("records")
    lines: dict[str, list[dict[str, Any]]] = {}
    for cell in cells:
        several = cell["group"] == "weights" and (table["scheme"] == cell["scheme"]).sum() > 1
        lines.setdefault(_label(cell) + (f" at D = {cell['d_model']}" if several else ""), []).append(cell)
    return lines


def _draw_row(axes: Axes, place: int, cells: list[dict[str, Any]], widths: dict[int, Look]) -> None:
    for order, cell in enumerate(cells):
        look = widths[cell["d_k"]]
        y = place + (0.16 * (2 * order - len(cells) + 1) if len(cells) > 1 else 0)
        if cell["low"] > 0:
            axes.plot([cell["low"], cell["high"]], [y, y], color=look.colour, linewidth=1.1, label="_intervals")
        if cell["exact"] > 0:
            axes.plot(
                [cell["exact"]], [y], color=style.INK, marker="|", markersize=11, markeredgewidth=1.2, label="_theory"
            )
        axes.plot(
            [cell["estimate"] if cell["estimate"] > 0 else float("nan")],
            [y],
            color=look.colour,
            marker=look.marker,
            markersize=5,
            linestyle="none",
            label=panels.POINTS,
        )


def _number_column(axes: Axes, rows: dict[str, list[dict[str, Any]]], widths: dict[int, Look]) -> None:
    """Write the standard deviation of the narrowest head at the right edge, in its colour: exact where it is known."""
    twin = axes.secondary_yaxis("right")
    exact = (cells[0]["exact"] if cells[0]["exact"] > 0 else cells[0]["estimate"] for cells in rows.values())
    twin.set_yticks(range(len(rows)), [f"{float(numbers.significant(value, 3)):g}" for value in exact])
    for label, cells in zip(twin.get_yticklabels(), rows.values(), strict=True):
        label.set_color(widths[cells[0]["d_k"]].colour)
    twin.tick_params(axis="y", length=0)
    twin.spines["right"].set_visible(False)


def _limits(axes: Axes, table: pd.DataFrame) -> None:
    from matplotlib.ticker import LogLocator

    seen = selection.finite(table[["estimate", "low", "high", "exact"]])
    seen = seen[seen > 0]
    axes.set_xlim(min(seen.min(initial=1.0), 1.0) / 1.6, max(seen.max(initial=1.0), 1.0) * 1.6)
    axes.xaxis.set_major_locator(LogLocator(numticks=5))
    axes.xaxis.set_major_formatter(panels.tick_text)
    axes.xaxis.set_minor_locator(LogLocator(subs=()))


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    whole = _all(frames)
    reading = (*_weights(whole), *_inputs(whole), *_heads(whole), _coverage(whole))
    return Description(_caption(table), _alt(table), reading, (Sentence("caveat"),), _title(table))


def _title(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say how many initialisations start where the scale assumes, and how far apart the others are."""
    weights, heads = (counted(table, group) for group in ("weights", "heads"))
    if weights["all"] < 2:
        return (Sentence("title"),)
    kind = "all" if weights["near"] == weights["all"] else "some"
    values = {name: numbers.significant(value, 2) for name, value in weights.items()}
    told = {name: numbers.count(heads[name]) for name in ("near", "all")}
    return Sentence(f"finding.{kind}", values), *([Sentence("finding.heads", told)] if heads["all"] else [])


def counted(table: pd.DataFrame, group: str) -> dict[str, float]:
    """Return how many rows of a group there are and leave logits near 1, and their lowest and highest spread.

    Queries and keys that are left as they are stand beside the normalised ones to be compared, and are not counted.
    """
    rows = _rows(table[(table["group"] == group) & ~table["scheme"].str.startswith("plain")])
    first = [cells[0]["estimate"] for cells in rows.values()]
    near = sum(all(map(_near, cells[:1] if group == "weights" else cells)) for cells in rows.values())
    return {"all": len(rows), "near": near, "low": min(first, default=0.0), "high": max(first, default=0.0)}


def _caption(table: pd.DataFrame) -> tuple[Sentence, ...]:
    worst = (table["se"] / table["estimate"]).replace(float("inf"), float("nan")).max()
    values = {"layers": numbers.count(len(table)), "draws": speaking.span(table["n_blocks"])}
    error = (Sentence("caption.error", {"error": numbers.percent(worst)}),) if worst == worst else ()
    return Sentence("caption.all", values), *error


def _spelled(cell: dict[str, Any]) -> str:
    return numbers.with_error(cell["estimate"], cell["se"])


def _alt(table: pd.DataFrame) -> tuple[Sentence, ...]:
    parts = []
    for name in _GROUPS:
        rows = _rows(table[table["group"] == name])
        lines = tuple(
            Sentence("alt.row", {"label": Phrase(label), "values": Listing(tuple(map(_spelled, cells)))})
            for label, cells in rows.items()
        )
        if lines:
            parts.append(Sentence(f"alt.{name}", {"parts": Listing(lines, "semicolon")}))
    return Sentence("alt.all"), *parts


def _near(cell: dict[str, Any]) -> bool:
    return 1 / _NEAR <= cell["estimate"] <= _NEAR


def _weights(table: pd.DataFrame) -> Iterator[Sentence]:
    """Say which initial weights give logits of standard deviation 1."""
    rows = {label: cells[0] for label, cells in _rows(table[table["group"] == "weights"]).items()}
    if not rows:
        return
    near = tuple(label for label, cell in rows.items() if _near(cell))
    values = {"all": numbers.count(len(rows)), "near": str(len(near)), "names": Listing(tuple(map(Phrase, near)))}
    yield Sentence(f"reading.near.{'some' if near else 'none'}", values)
    if len(rows) > 1:
        low, high = (pick(rows, key=lambda label: rows[label]["estimate"]) for pick in (min, max))
        values = {"low": _spelled(rows[low]), "low_name": Phrase(low)}
        values |= {"high": _spelled(rows[high]), "high_name": Phrase(high)}
        yield Sentence("reading.ends", values)


def _inputs(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say what the inputs have to do with it."""
    cells = {_label(cell): cell for cell in table[table["group"] == "inputs"].to_dict("records")}
    far = {label: cell for label, cell in cells.items() if not _near(cell)}
    if not cells:
        return ()
    if not far:
        return (Sentence("reading.inputs.all", {"count": str(len(cells))}),)
    parts = (Sentence("reading.named", {"name": Phrase(label), "value": _spelled(cell)}) for label, cell in far.items())
    return (Sentence("reading.inputs.far", {"parts": Listing(tuple(parts))}),)


def _heads(table: pd.DataFrame) -> Iterator[Sentence]:
    """Say which rules for normalised queries and keys give the same spread at every width."""
    rows = _rows(table[table["group"] == "heads"])
    rows = {label: cells for label, cells in rows.items() if len(cells) > 1}
    unit = tuple(label for label, cells in rows.items() if all(map(_near, cells)))
    if unit:
        yield Sentence("reading.heads.unit", {"names": Listing(tuple(map(Phrase, unit)))})
    parts = tuple(
        Sentence(
            "reading.named", {"name": Phrase(label), "value": speaking.ends([_spelled(cells[0]), _spelled(cells[-1])])}
        )
        for label, cells in rows.items()
        if label not in unit
    )
    if parts:
        yield Sentence("reading.heads.other", {"parts": Listing(parts)})


def _coverage(table: pd.DataFrame) -> Sentence:
    known = table[table["exact"].notna() & (table["se"] > 0)]
    inside = int(selection.covers(known["low"], known["high"], known["exact"]).sum())
    return speaking.coverage(inside, len(known), Sentence("quantity"), "layers")
