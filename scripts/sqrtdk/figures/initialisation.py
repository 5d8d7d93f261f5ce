"""Figure: the spread of the logits before training, by initial weights and by what is normalised."""

from sqrtdk import numbers, style
from sqrtdk.figures import Description, panels, saving, selection

NUMBER = 14
INPUTS = ("initialisation",)
TITLE = "Spread of the logits before training, by initial weights and normalisation"
QUESTION = "Do usual initial weights give logits of variance 1, and does a normalisation?"

_NOTHING = "No initial weights were measured."
_GROUPS = {
    "weights": "initial weights (x with LayerNorm)",
    "inputs": "inputs x (LeCun weights, dₖ = 64)",
    "heads": "q and k (LeCun weights, x with LayerNorm)",
}
_NEAR = 1.1


def data(frames):
    """Return one row per layer, the standard deviation of its logits with a 95 % interval, and the exact one."""
    table = frames["initialisation"]
    if table.empty:
        return table
    table = table[(table["quantity"] == "logit_std") & table["estimate"].notna()].reset_index(drop=True)
    half = selection.half_width(table["se"], table["n_blocks"])
    table["low"], table["high"] = table["estimate"] - half, table["estimate"] + half
    return table


@saving.styled
def draw(frames):
    """Draw a point in each layer's row, a panel for each group, on one log axis with 1 marked."""
    table = data(frames)
    if table.empty:
        return panels.statement(_NOTHING)
    groups = {name: _rows(table[table["group"] == name]) for name in _GROUPS if name in set(table["group"])}
    sizes = [len(rows) for rows in groups.values()]
    figure = panels.figure(0.9 + 0.19 * sum(sizes) + 0.3 * len(sizes))
    grid = figure.subplots(len(groups), 1, sharex=True, squeeze=False, height_ratios=sizes)[:, 0]
    widths = style.sequence(sorted(set(table["d_k"])))
    for axes, (name, rows) in zip(grid, groups.items(), strict=True):
        axes.set_xscale("log")
        for place, cells in enumerate(rows.values()):
            _draw_row(axes, place, cells, widths)
        axes.axvline(1, color=style.INK, linewidth=0.8, alpha=style.MUTED, zorder=1, label="_reference")
        axes.set_yticks(range(len(rows)), [panels.short(label, 26) for label in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        axes.set_title(_GROUPS[name])
        _number_column(axes, rows)
    _limits(grid, table)
    grid[-1].set_xlabel("standard deviation of the logits within a row")
    if len(widths) > 1:
        figure.legend(
            handles=[panels.key(look, line=False, label=f"dₖ = {width}") for width, look in widths.items()],
            loc="outside upper center",
            ncols=4,
        )
    return figure


def _label(row) -> str:
    from sqrtdk.initialisation import LABELS

    return LABELS.get((row["group"], row["scheme"]), str(row["scheme"]))


def _rows(table) -> dict[str, list[dict]]:
    """Return the cells of each line of a panel by its label: layers of one name that differ in D have lines each."""
    cells = table.to_dict("records")
    found: dict[str, list[dict]] = {}
    for cell in cells:
        several = cell["group"] == "weights" and (table["scheme"] == cell["scheme"]).sum() > 1
        found.setdefault(_label(cell) + (f" at D = {cell['d_model']}" if several else ""), []).append(cell)
    return found


def _draw_row(axes, place: int, cells: list[dict], widths: dict) -> None:
    for order, cell in enumerate(cells):
        look = widths[cell["d_k"]]
        y = place + (0.16 * (2 * order - len(cells) + 1) if len(cells) > 1 else 0)
        if cell["low"] > 0:
            axes.plot([cell["low"], cell["high"]], [y, y], color=look.colour, linewidth=1.1, label="_intervals")
        if cell["exact"] > 0:
            axes.plot(
                [cell["exact"]], [y], color=style.INK, marker="|", markersize=9, markeredgewidth=1.2, label="_theory"
            )
        axes.plot(
            [cell["estimate"] if cell["estimate"] > 0 else float("nan")],
            [y],
            color=look.colour,
            marker=look.marker,
            markersize=3.6,
            linestyle="none",
            label=panels.POINTS,
        )


def _number_column(axes, rows: dict[str, list[dict]]) -> None:
    """Write each standard deviation at the right edge."""
    twin = axes.secondary_yaxis("right")
    words = [", ".join(numbers.significant(cell["estimate"], 2) for cell in cells) for cells in rows.values()]
    twin.set_yticks(range(len(rows)), words)
    twin.tick_params(axis="y", length=0)
    twin.spines["right"].set_visible(False)


def _limits(grid, table) -> None:
    from matplotlib.ticker import LogLocator

    seen = selection.finite(table[["estimate", "low", "high", "exact"]])
    seen = seen[seen > 0]
    axes = grid[0]
    axes.set_xlim(min(seen.min(initial=1.0), 1.0) / 1.6, max(seen.max(initial=1.0), 1.0) * 1.6)
    axes.xaxis.set_major_locator(LogLocator(numticks=8))
    axes.xaxis.set_major_formatter(panels.tick_text)
    axes.xaxis.set_minor_locator(LogLocator(subs=()))


def describe(frames) -> Description:
    """Put the figure into words."""
    table = data(frames)
    if table.empty:
        return Description(_NOTHING, _NOTHING, _NOTHING, "")
    return Description(
        _caption(table),
        _alt(table),
        " ".join(filter(None, (_weights(table), _inputs(table), _heads(table), _coverage(table)))),
        "Weights are drawn, not trained: training moves them from the first step on, and a gain that is learned moves "
        "the spread with it. Tokens are independent here; the more they have in common, the smaller the spread within "
        "a row.",
    )


def _caption(table) -> str:
    worst = (table["se"] / table["estimate"]).replace(float("inf"), float("nan")).max()
    text = (
        "Standard deviation of the logits within a row of a layer with freshly drawn weights, on a log axis, for "
        f"{numbers.counted(len(table), 'layer')}; D is the width of the model. Means over "
        f"{numbers.count_range(table['n_blocks'])} independent draws of weights and tokens; dark ticks are the exact "
        "values, the line marks 1, the numbers on the right are the estimates."
    )
    return text + (f" 95 % intervals are hidden by the markers (largest relative standard error "
                   f"{numbers.percent(worst)})." if worst == worst else "")  # fmt: skip


def _spelled(cell) -> str:
    return numbers.with_error(cell["estimate"], cell["se"])


def _alt(table) -> str:
    parts = []
    for name, words in _GROUPS.items():
        rows = _rows(table[table["group"] == name])
        if rows:
            told = [f"{label} {numbers.listing([_spelled(cell) for cell in cells])}" for label, cells in rows.items()]
            parts.append(f"{selection.sentence(words)[:-1]}: {'; '.join(told)}")
    return (
        "One point for each layer on a log axis of the standard deviation of its logits, standard errors in brackets. "
        f"{'. '.join(parts)}."
    )


def _near(cell) -> bool:
    return 1 / _NEAR <= cell["estimate"] <= _NEAR


def _weights(table) -> str:
    """Say which initial weights give logits of standard deviation 1."""
    rows = {label: cells[0] for label, cells in _rows(table[table["group"] == "weights"]).items()}
    if not rows:
        return ""
    low, high = (pick(rows, key=lambda label: rows[label]["estimate"]) for pick in (min, max))
    near = [label for label, cell in rows.items() if _near(cell)]
    text = f"Of {numbers.counted(len(rows), 'initialisation')}, {len(near)} start within 10 % of 1"
    text += f" ({numbers.listing(near)})" if near else ""
    if len(rows) > 1:
        text += f". The smallest is {_spelled(rows[low])} ({low}), the largest {_spelled(rows[high])} ({high})"
    return f"{text}."


def _inputs(table) -> str:
    """Say what the inputs have to do with it."""
    cells = {_label(cell): cell for cell in table[table["group"] == "inputs"].to_dict("records")}
    far = [f"{label} ({_spelled(cell)})" for label, cell in cells.items() if not _near(cell)]
    if not cells:
        return ""
    if not far:
        return f"With LeCun weights all {len(cells)} kinds of inputs start within 10 % of 1."
    return f"With LeCun weights the inputs that do not are: {numbers.listing(far)}."


def _heads(table) -> str:
    """Say which rules for normalised queries and keys give the same spread at every width."""
    rows = _rows(table[table["group"] == "heads"])
    rows = {label: cells for label, cells in rows.items() if len(cells) > 1}
    if not rows:
        return ""
    unit = [label for label, cells in rows.items() if all(map(_near, cells))]
    moves = {
        label: f"{label} ({numbers.listing([_spelled(cell) for cell in cells], 'to')})"
        for label, cells in rows.items()
        if label not in unit
    }
    text = f"A spread of 1 at both widths is left by {numbers.listing(unit)}" if unit else ""
    if moves:
        text += ("; it depends on" if unit else "The spread depends on") + " the width or is not 1 for "
        text += numbers.listing(list(moves.values()))
    return f"{text}."


def _coverage(table) -> str:
    known = table[table["exact"].notna() & (table["se"] > 0)]
    inside = int(selection.covers(known["low"], known["high"], known["exact"]).sum())
    return selection.coverage_words(inside, len(known), "standard deviation", "layer")
