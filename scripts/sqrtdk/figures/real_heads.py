"""Figure: the heads of trained networks, whose scaled logits need not have variance 1."""

from sqrtdk import numbers, style
from sqrtdk.figures import Description, panels, saving, selection

NUMBER = 19
INPUTS = ("real_heads",)
TITLE = "Trained heads: spread of the scaled logits, and the independence formula"
QUESTION = "Do the scores of trained heads have the variance that the argument for the scale assumes?"

_NOTHING = "No activations of trained heads were given to this run, so no trained head is shown."
_MARGIN = 2.0
_QUANTITIES = {
    "within_row_logit_std": "std of scaled logits\nwithin a row",
    "independence_ratio": "variance of q·k over\nindependence formula",
}


def data(frames):
    """Return one row per head: both quantities with 95 % intervals (Student's t, jackknife over runs of tokens)."""
    from sqrtdk.heads import RUNS

    table = frames["real_heads"]
    if table.empty:
        return table
    columns = ["dump", "layer", "head", "d_k", "n_tokens", "n_scores", "scaling"]
    result = table[columns].copy()
    for name in _QUANTITIES:
        # As many values stand behind an error as runs were left out.
        half = selection.half_width(table[f"{name}_se"], (table["n_tokens"] - 2).clip(upper=RUNS))
        result[name], result[f"{name}_se"] = table[name], table[f"{name}_se"]
        result[f"{name}_low"], result[f"{name}_high"] = table[name] - half, table[name] + half
    return result


@saving.styled
def draw(frames):
    """Draw every head in its layer, dodged sideways, on two log panels with 1 marked."""
    table = data(frames)
    if table.empty:
        return panels.statement(_NOTHING)
    figure = panels.figure(5.0)
    grid = figure.subplots(2, 1, sharex=True)
    groups = list(dict.fromkeys(zip(table["dump"], table["layer"], strict=True)))
    looks = style.sequence(selection.order(table["dump"]))
    for axes, (name, label) in zip(grid, _QUANTITIES.items(), strict=True):
        panels.log_heights(axes)
        for place, (dump, layer) in enumerate(groups):
            heads = table[(table["dump"] == dump) & (table["layer"] == layer)]
            _draw_layer(axes, heads, name, place, looks[dump])
        panels.reference(axes, 1)
        _limits(axes, table, name)
        axes.set_ylabel(label)
        axes.grid(axis="x", visible=False)
        _label_extremes(axes, table, name, groups)
    _layer_axis(grid[-1], groups, several=len(looks) > 1)
    if len(looks) > 1:
        figure.legend(
            handles=[panels.key(look, line=False) for look in looks.values()], loc="outside upper center", ncols=3
        )
    return figure


def _places(heads, place: int):
    """Return where the heads of a layer stand: side by side within ±0.36 of the layer's place."""
    import numpy as np

    return place + np.linspace(-0.36, 0.36, len(heads)) if len(heads) > 1 else np.array([float(place)])


def _draw_layer(axes, heads, name: str, place: int, look) -> None:
    x = _places(heads, place)
    panels.points(axes, x, heads[name], heads[f"{name}_low"], heads[f"{name}_high"], look, size=3.2)
    middle = heads[name].median()
    if not middle > 0:
        return
    axes.plot(
        [place - 0.42, place + 0.42],
        [middle, middle],
        color=style.INK,
        linewidth=1.0,
        alpha=style.MUTED,
        label="_median",
    )


def _limits(axes, table, name: str) -> None:
    seen = selection.finite(table[[name, f"{name}_low", f"{name}_high"]])
    seen = seen[seen > 0]
    low, high = min(seen.min(initial=1.0), 1.0) / 1.25, max(seen.max(initial=1.0), 1.0) * 1.35
    axes.set_ylim(low, high)
    panels.log_ticks(axes)


def _label_extremes(axes, table, name: str, groups) -> None:
    """Name the highest and the lowest head."""
    top, bottom = table[name].idxmax(), table[name].idxmin()
    for row, above in [(top, True)] + [(bottom, False)] * (top != bottom):
        head = table.loc[row]
        layer = table[(table["dump"] == head["dump"]) & (table["layer"] == head["layer"])]
        place = groups.index((head["dump"], head["layer"]))
        x = _places(layer, place)[list(layer.index).index(row)]
        axes.annotate(
            f"head {head['head']}",
            (x, head[f"{name}_high" if above else f"{name}_low"]),
            xytext=(5, 0) if place < len(groups) / 2 else (-5, 0),
            textcoords="offset points",
            ha="left" if place < len(groups) / 2 else "right",
            va="center",
            fontsize=9,
        )


def _layer_axis(axes, groups, several: bool) -> None:
    axes.set_xlim(-0.6, len(groups) - 0.4)
    step = max(1, -(-len(groups) // 16))
    axes.set_xticks(range(0, len(groups), step), [str(layer) for _, layer in groups[::step]])
    axes.tick_params(axis="x", length=0)
    axes.set_xlabel(
        "layer (one point for each head; layers of each network in turn)"
        if several
        else "layer (one point for each head)"
    )


def describe(frames) -> Description:
    """Put the figure into words."""
    table = data(frames)
    if table.empty:
        return Description(_NOTHING, _NOTHING, _NOTHING, "")
    return Description(_caption(table), _alt(table), f"{_spread(table)} {_independence(table)}", _CAVEAT)


_CAVEAT = (
    "Every head was measured on all token pairs of one text. Its tokens depend on each other, for which the jackknife "
    "leaves out runs of neighbours; another kind of text may move the points further. Trained weights are one outcome "
    "of training, not a sample of networks."
)


def _caption(table) -> str:
    dumps = [
        f"{dump} ({numbers.counted(len(heads), 'head')}, d_k = "
        f"{numbers.listing(sorted({str(d) for d in heads['d_k']}))}, {numbers.count(heads['n_tokens'].iloc[0])} "
        f"tokens, {numbers.count(heads['n_scores'].iloc[0])} scores a head, scaled "
        f"{style.scaling_words(heads['scaling'].iloc[0])})"
        for dump, heads in table.groupby("dump", sort=False)
    ]
    return (
        f"Query and key activations of trained heads: {numbers.listing(dumps)}. Above: standard deviation of the "
        "scaled logits within a row, which is what softmax sees. Below: variance of q·k over d_k E[q_i²] E[k_i²], "
        "its value for independent components of equal variance and zero mean. Log axes; a point for each head, a dark "
        "bar for the "
        "median of a layer, vertical bars are 95 % intervals (jackknife over runs of tokens). The line marks 1."
    )


def _named(row) -> str:
    return f"layer {row['layer']}, head {row['head']}"


def _range(table, name: str) -> str:
    low, high = table.loc[table[name].idxmin()], table.loc[table[name].idxmax()]
    return (
        f"from {numbers.with_error(low[name], low[f'{name}_se'])} ({_named(low)}) to "
        f"{numbers.with_error(high[name], high[f'{name}_se'])} ({_named(high)}), median "
        f"{numbers.significant(table[name].median())}"
    )


def _alt(table) -> str:
    return (
        f"Two panels with one point for each of {numbers.counted(len(table), 'head')}, by layer. Standard deviation "
        f"of scaled logits within a row: {_range(table, 'within_row_logit_std')}. Variance over the independence "
        f"formula: {_range(table, 'independence_ratio')}."
    )


def _holding_one(table, name: str) -> int:
    return int(selection.covers(table[f"{name}_low"], table[f"{name}_high"], 1.0).sum())


def _spread(table) -> str:
    name, total = "within_row_logit_std", len(table)
    inside, far = _holding_one(table, name), int(((table[name] > _MARGIN) | (table[name] < 1 / _MARGIN)).sum())
    verdict = (
        "These trained heads do not keep the spread that the scale was made for"
        if inside < total / 2
        else "Most of these heads still have the spread that the scale was made for"
    )
    return (
        f"The spread within a row runs {_range(table, name)}. The 95 % interval contains 1 for {inside} of "
        f"{numbers.counted(total, 'head')}, and {far} {'is' if far == 1 else 'are'} more than a factor of "
        f"{numbers.significant(_MARGIN)} away from it. {verdict}."
    )


def _independence(table) -> str:
    name, total = "independence_ratio", len(table)
    low, high = int((table[f"{name}_high"] < 1).sum()), int((table[f"{name}_low"] > 1).sum())
    inside = total - low - high
    words = (
        f"Against the independence formula the variance runs {_range(table, name)}; the interval lies above 1 for "
        f"{high}, below 1 for {low}, and contains 1 for {inside}. "
    )
    if high > total / 2:
        return (
            words
            + "In most heads the means and covariances of q and k line up, as those of independent components do not."
        )
    if low > total / 2:
        return words + "In most heads q and k avoid each other's strong components, which makes the variance smaller."
    return words + "No side has the majority of heads."
