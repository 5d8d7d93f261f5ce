"""Figure: every scale rule and variant at several widths: spread of the logits, effective keys, gradient."""

from sqrtdk import numbers, style
from sqrtdk.figures import Description, panels, saving, selection

NUMBER = 13
INPUTS = ("alternatives",)
TITLE = "Every alternative to 1/√d_k, at several widths"
QUESTION = "Why √d_k and not something else: which rules give every head the same logits, attention and gradient?"

_NOTHING = "No alternative was measured."
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


def data(frames):
    """Return one row per point: of every variant the spread, the effective keys and the median gradient at each d_k."""
    table = frames["alternatives"]
    if table.empty:
        return table
    n = selection.nearest(table["n_keys"], _WANTED_N_KEYS)
    rows = table[(table["n_keys"] == n) & table["measure"].isin(_MEASURES)].reset_index(drop=True)
    gradient = rows["measure"] == "grad_query"
    for column, other in (("estimate", "median"), ("se", "median_se")):
        rows[column] = rows[column].where(~gradient, rows[other])
    rows["drawn_at"] = rows["estimate"].clip(lower=_FLOOR).where(gradient, rows["estimate"])
    columns = ["variant", "kind", "d_k", "n_keys", "measure", "estimate", "se", "exact", "drawn_at", "n_rows"]
    order = {kind: place for place, kind in enumerate(_KINDS)}
    return rows.sort_values("kind", key=lambda kind: kind.map(order), kind="stable")[columns].reset_index(drop=True)


@saving.styled
def draw(frames):
    """Draw a line of text for each variant and, in three panels, a mark for each width."""
    table = data(frames)
    if table.empty:
        return panels.statement(_NOTHING)
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


def _lines(table) -> list[tuple[str, bool]]:
    """Return the lines of text from above: (text, whether it heads a group)."""
    lines = []
    for kind, cells in table.groupby("kind", sort=False):
        lines += [(_KINDS[kind], True), *((variant, False) for variant in selection.order(cells["variant"]))]
    return lines


def describe(frames) -> Description:
    """Put the figure into words."""
    table = data(frames)
    if table.empty:
        return Description(_NOTHING, _NOTHING, _NOTHING, "")
    return Description(_caption(table), _alt(table), _reading(table), _caveat(table))


def _caption(table) -> str:
    n, widths = table["n_keys"].iloc[0], numbers.listing([str(d_k) for d_k in sorted(selection.order(table["d_k"]))])
    spread = table[(table["measure"] == "logit_std") & (table["se"] > 0)]
    worst = (spread["se"] / spread["estimate"]).max()
    error = (
        f"; the largest relative standard error of a spread is {numbers.percent(worst, 2)}, less than a mark"
        if len(spread)
        else ""
    )
    return (
        f"Variants of attention on the same standard normal queries and {n} keys at d_k = {widths}: root of the mean "
        "variance of a row's logits (the line marks 1), effective keys 1/Σp², and the median over rows of the norm of "
        "the gradient with respect to the query, for an upstream gradient of independent N(0, 1) entries. Marks of one "
        "line that coincide are a rule that does not depend on d_k. Up to "
        f"{numbers.count(table['n_rows'].max())} rows a point{error}."
    )


def _spreads(table) -> dict[str, float]:
    """Return for each variant the largest over the smallest spread of its logits."""
    rows = table[table["measure"] == "logit_std"]
    # Equal spreads have ratio 1, zero ones too.
    ends = {
        name: (cells["estimate"].min(), cells["estimate"].max()) for name, cells in rows.groupby("variant", sort=False)
    }
    return {name: high / low if low > 0 else 1.0 for name, (low, high) in ends.items()}


def _alt(table) -> str:
    spreads = _spreads(table)
    flat = [name for name, ratio in spreads.items() if ratio < 1 + _FLAT]
    parts = []
    for name in ("none", "1/sqrt(d_k)", "1/d_k"):
        ends = _ends(table, name, "logit_std")
        if ends:
            parts.append(
                f"{style.scaling_words(name)} from {numbers.significant(ends[0])} to {numbers.significant(ends[1])}"
            )
    words = f": {numbers.listing(parts)}" if parts else ""
    return (
        f"Three panels with a line for each of {numbers.counted(len(spreads), 'variant')}. Spread of the logits "
        f"between the smallest and the largest width{words}. It varies by less than {numbers.percent(_FLAT, 0)} for "
        f"{len(flat)} of them."
    )


def _ends(table, name: str, measure: str) -> tuple[float, float] | None:
    rows = table[(table["variant"] == name) & (table["measure"] == measure)].sort_values("d_k")
    return (rows["estimate"].iloc[0], rows["estimate"].iloc[-1]) if len(rows) > 1 else None


def _reading(table) -> str:
    spreads = _spreads(table)
    groups = {kind: selection.order(cells["variant"]) for kind, cells in table.groupby("kind", sort=False)}
    scale = [name for kind in ("rule", "model", "mistake") for name in groups.get(kind, [])]
    flat = [name for name in scale if spreads[name] < 1 + _FLAT]
    parts = []
    if table["d_k"].nunique() > 1:
        parts.append(
            f"The spread of the logits is the same at every width, within {numbers.percent(_FLAT, 0)}, for "
            f"{len(flat)} of {numbers.counted(len(scale), 'scale rule')}"
            + (f": {numbers.listing(flat)}." if flat else ".")
        )
    parts += [_agreement(table), _sizes(table), _dead(table)]
    return " ".join(filter(None, parts))


def _agreement(table) -> str:
    rows = table[(table["measure"] == "logit_std") & table["exact"].notna()]
    # A spread that its own definition fixes has no error but rounding.
    rows = rows[rows["se"] > 1e-9]
    if rows.empty:
        return ""
    z = (rows["estimate"] - rows["exact"]) / rows["se"]
    return (
        f"Of {numbers.counted(len(rows), 'measured spread')} with an exact value the farthest is "
        f"{numbers.significant(z.abs().max(), 2)} standard errors from it."
    )


def _sizes(table) -> str:
    d_k = selection.nearest(table["d_k"], 64)
    rows = table[(table["d_k"] == d_k) & (table["measure"] == "logit_std")].set_index("variant")["estimate"]
    known = [
        (name, words)
        for name, words in (
            ("row_mean_abs", "the mean absolute score"),
            ("row_median_abs", "the median"),
            ("row_max_abs", "the largest"),
        )
        if name in rows.index
    ]
    if not known or not rows.get("1/sqrt(d_k)", 0.0) > 0:
        return ""
    parts = [f"{words} gives {numbers.significant(rows[name] / rows['1/sqrt(d_k)'], 3)} times" for name, words in known]
    return f"At d_k = {d_k} dividing each row by {numbers.listing(parts)} the spread of 1/√d_k."


def _dead(table) -> str:
    rows = table[(table["measure"] == "grad_query") & (table["estimate"] == 0)]
    names = selection.order(rows["variant"])
    if not names:
        return "No variant has a median gradient of exactly zero."
    return f"The median gradient is exactly zero at some width for {numbers.listing(names)}."


def _caveat(table) -> str:
    floor = (table["measure"] == "grad_query") & (table["estimate"] < _FLOOR)
    edge = f" Gradients below {numbers.significant(_FLOOR)} are drawn at the edge." if floor.any() else ""
    return (
        "Queries and keys are those of an untrained head with independent components of variance 1. Rules that divide "
        "by a size of the scores, and normalised queries and keys, also undo what training does to the size of the "
        f"weights, which a constant factor does not.{edge}"
    )
