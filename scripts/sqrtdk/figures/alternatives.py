"""Figure: every scale rule and variant at several widths: spread of the logits, effective keys, gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqrtdk.figures import panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.results.grid import nearest
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PLACE = "atlas/factor"
INPUTS = ("alternatives",)

_WANTED_N_KEYS = 64
_MEASURES = ("logit_std", "effective_keys", "grad_query")
_TITLES = {"logit_std": "spread of logits", "effective_keys": "effective keys", "grad_query": "gradient of q, median"}
_KINDS = {
    "rule": "scale rules",
    "model": "in published models",
    "mistake": "mistakes",
    "transform": "score transforms",
    "normaliser": "normalisers other than softmax",
}
_FLOOR = 1e-6
"""A smaller gradient is drawn at the edge."""
_FLAT = 0.1
"""A rule counts as independent of d_k when its spread varies by less than this share."""


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per point: of every variant the spread, the effective keys and the median gradient at each d_k."""
    table = frames["alternatives"]
    if table.empty:
        return table
    n = nearest(table["n_keys"], _WANTED_N_KEYS)
    rows = table[(table["n_keys"] == n) & table["measure"].isin(_MEASURES)].reset_index(drop=True)
    gradient = rows["measure"] == "grad_query"
    for column, other in (("estimate", "median"), ("se", "median_se")):
        rows[column] = rows[column].where(~gradient, rows[other])
    rows["drawn_at"] = rows["estimate"].clip(lower=_FLOOR).where(gradient, rows["estimate"])
    columns = ["variant", "kind", "d_k", "n_keys", "measure", "estimate", "se", "exact", "drawn_at", "n_rows"]
    order = {kind: place for place, kind in enumerate(_KINDS)}
    return rows.sort_values("kind", key=lambda kind: kind.map(order), kind="stable")[columns].reset_index(drop=True)


@saving.styled(data, "No alternative was measured.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a line of text for each variant and, in three panels, a mark for each width."""
    lines = _lines(table)
    looks = style.sequence(sorted(selection.order(table["d_k"])))
    figure = panels.figure(0.9 + 0.163 * len(lines), 7.2)
    grid = figure.subplots(1, len(_MEASURES), sharey=True)
    places = {text: place for place, (text, header) in enumerate(lines) if not header}
    for axes, measure in zip(grid, _MEASURES, strict=True):
        cells = table[table["measure"] == measure]
        axes.set_xscale("log" if (cells["drawn_at"] > 0).any() else "linear")
        for place in list(places.values())[::2]:
            axes.axhspan(place - 0.5, place + 0.5, color=style.INK, alpha=0.045, linewidth=0)
        for d_k, look in looks.items():
            part = cells[cells["d_k"] == d_k]
            axes.plot(
                part["drawn_at"],
                part["variant"].map(places),
                color=look.colour,
                marker=look.marker,
                markerfacecolor="none",
                markersize=4.6,
                linestyle="none",
                label=panels.POINTS,
            )
        axes.set_title(_TITLES[measure])
        axes.set_ylim(len(lines) - 0.4, -0.6)
        axes.minorticks_off()
        axes.xaxis.set_major_formatter(panels.tick_text)
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        if measure == "logit_std":
            axes.axvline(1.0, color=style.INK, linewidth=0.8, alpha=style.MUTED, zorder=1)
        if measure == "grad_query" and (cells["estimate"] < _FLOOR).any():
            axes.set_xlim(left=_FLOOR / 2.5)
    grid[0].set_yticks(range(len(lines)), [panels.short(text, 34) for text, _ in lines], fontsize=8)
    for label, (_, header) in zip(grid[0].get_yticklabels(), lines, strict=True):
        if header:
            label.set_fontweight("bold")
    figure.legend(
        handles=[panels.key(look, line=False, hollow=True, label=f"dₖ = {d_k}") for d_k, look in looks.items()],
        loc="outside upper center",
        ncols=min(len(looks), 6),
    )
    return figure


def _lines(table: pd.DataFrame) -> list[tuple[str, bool]]:
    """Return the lines of text from above: (text, whether it heads a group)."""
    lines = []
    for kind, cells in table.groupby("kind", sort=False):
        lines += [(_KINDS[kind], True), *((variant, False) for variant in selection.order(cells["variant"]))]
    return lines


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    reading = (*_flat(table), *_agreement(table), *_sizes(table), _dead(table))
    return Description(_caption(table), _alt(table), reading, _caveat(table))


def _caption(table: pd.DataFrame) -> tuple[Sentence, ...]:
    widths = speaking.counts(sorted(selection.order(table["d_k"])))
    values = {"n_keys": str(table["n_keys"].iloc[0]), "widths": widths, "rows": numbers.count(table["n_rows"].max())}
    spread = table[(table["measure"] == "logit_std") & (table["se"] > 0)]
    worst = {"error": numbers.percent((spread["se"] / spread["estimate"]).max(), 2)}
    return Sentence("caption.all", values), *((Sentence("caption.error", worst),) if len(spread) else ())


def _spreads(table: pd.DataFrame) -> dict[str, float]:
    """Return for each variant the largest over the smallest spread of its logits."""
    rows = table[table["measure"] == "logit_std"]
    # Equal spreads have ratio 1, zero ones too.
    ends = {
        name: (cells["estimate"].min(), cells["estimate"].max()) for name, cells in rows.groupby("variant", sort=False)
    }
    return {name: high / low if low > 0 else 1.0 for name, (low, high) in ends.items()}


def _alt(table: pd.DataFrame) -> tuple[Sentence, ...]:
    spreads = _spreads(table)
    flat = [name for name, ratio in spreads.items() if ratio < 1 + _FLAT]
    parts = []
    for name in ("none", "1/sqrt(d_k)", "1/d_k"):
        ends = _ends(table, name, "logit_std")
        if ends:
            low, high = map(numbers.significant, ends)
            parts.append(Sentence("alt.rule", {"rule": speaking.rule(name), "first": low, "last": high}))
    values = {"variants": numbers.count(len(spreads)), "flat": str(len(flat)), "margin": numbers.percent(_FLAT, 0)}
    rules = (Sentence("alt.spreads", {"parts": Listing(tuple(parts))}),) if parts else ()
    return Sentence("alt.all", values), *rules, Sentence("alt.flat", values)


def _ends(table: pd.DataFrame, name: str, measure: str) -> tuple[float, float] | None:
    rows = table[(table["variant"] == name) & (table["measure"] == measure)].sort_values("d_k")
    return (rows["estimate"].iloc[0], rows["estimate"].iloc[-1]) if len(rows) > 1 else None


def _flat(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say which scale rules give one spread at every width."""
    if table["d_k"].nunique() < 2:
        return ()
    spreads = _spreads(table)
    groups = {kind: selection.order(cells["variant"]) for kind, cells in table.groupby("kind", sort=False)}
    scale = [name for kind in ("rule", "model", "mistake") for name in groups.get(kind, [])]
    flat = tuple(name for name in scale if spreads[name] < 1 + _FLAT)
    values = {"margin": numbers.percent(_FLAT, 0), "flat": str(len(flat)), "rules": numbers.count(len(scale))}
    return (Sentence(f"reading.flat.{'some' if flat else 'none'}", values | {"names": Listing(flat)}),)


def _agreement(table: pd.DataFrame) -> tuple[Sentence, ...]:
    rows = table[(table["measure"] == "logit_std") & table["exact"].notna()]
    # A spread that its own definition fixes has no error but rounding.
    rows = rows[rows["se"] > 1e-9]
    if rows.empty:
        return ()
    z = ((rows["estimate"] - rows["exact"]) / rows["se"]).abs()
    values = {"count": numbers.count(len(rows)), "worst": numbers.significant(z.max(), 2)}
    return (Sentence("reading.agreement", values),)


def _sizes(table: pd.DataFrame) -> tuple[Sentence, ...]:
    d_k = nearest(table["d_k"], 64)
    rows = table[(table["d_k"] == d_k) & (table["measure"] == "logit_std")].set_index("variant")["estimate"]
    sizes = [name for name in ("row_mean_abs", "row_median_abs", "row_max_abs") if name in rows.index]
    if not sizes or not rows.get("1/sqrt(d_k)", 0.0) > 0:
        return ()
    parts = tuple(
        Sentence(f"reading.size.{name}", {"ratio": numbers.significant(rows[name] / rows["1/sqrt(d_k)"], 3)})
        for name in sizes
    )
    return (Sentence("reading.sizes", {"d_k": str(d_k), "parts": Listing(parts)}),)


def _dead(table: pd.DataFrame) -> Sentence:
    rows = table[(table["measure"] == "grad_query") & (table["estimate"] == 0)]
    names = tuple(selection.order(rows["variant"]))
    return Sentence(f"reading.dead.{'some' if names else 'none'}", {"names": Listing(names)})


def _caveat(table: pd.DataFrame) -> tuple[Sentence, ...]:
    floor = (table["measure"] == "grad_query") & (table["estimate"] < _FLOOR)
    edge = (Sentence("caveat.edge", {"floor": numbers.significant(_FLOOR)}),) if floor.any() else ()
    return Sentence("caveat.all"), *edge
