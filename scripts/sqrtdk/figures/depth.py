"""Figure: spread of the logits and similarity of tokens against depth in stacks of random attention layers."""

from sqrtdk import numbers, style
from sqrtdk.figures import Description, panels, saving, selection

NUMBER = 15
INPUTS = ("depth",)
TITLE = "Logits and tokens against depth, before training"
QUESTION = "Do large logits build up from layer to layer, or does a normalisation reset them?"

_NOTHING = "No stack of layers was simulated."
_MEASURES = {"logit_std": "standard deviation\nof logits in a row", "token_cosine": "mean cosine\nof two tokens"}
_NAMES = {
    ("pre_layernorm", True): "pre-LayerNorm",
    ("post_layernorm", True): "post-LayerNorm",
    ("pre_rmsnorm", True): "pre-RMSNorm",
    ("none", True): "no norm",
    ("pre_layernorm", False): "LayerNorm only",
    ("none", False): "no norm or residual",
}
"""What a stack is called by its normalisation and whether it has residual connections."""
_FLOOR = 1e-3
_HIDDEN = 0.04
_GROWTH = 1.1


def data(frames):
    """Return one row per point: the two measures of every kind of stack and layer, with 95 % intervals."""
    table = frames["depth"]
    if table.empty:
        return table
    style.scalings(table["scaling"])
    table = table[table["measure"].isin(_MEASURES) & table["estimate"].notna()].reset_index(drop=True)
    table.insert(0, "stack", _names(table))
    half = selection.half_width(table["se"], table["n_stacks"])
    table["low"], table["high"] = table["estimate"] - half, table["estimate"] + half
    return table.drop(columns=["norm", "residual"])


def _names(table) -> list[str]:
    kinds = zip(table["norm"], selection.truth(table["residual"]), strict=True)
    return [_NAMES.get(kind, f"{kind[0]}{'' if kind[1] else ' without residual'}") for kind in kinds]


@saving.styled
def draw(frames):
    """Draw a column for each scale rule: above the spread of the logits with its exact value, below the cosine."""
    table = data(frames)
    if table.empty:
        return panels.statement(_NOTHING)
    rules = style.scalings(table["scaling"])
    looks = style.sequence(selection.order([*_NAMES.values(), *table["stack"]]))
    figure = panels.figure(5.0, max(style.WIDTH, 2.6 * len(rules)))
    grid = figure.subplots(2, len(rules), sharex=True, sharey="row", squeeze=False)
    for axes in grid[0]:
        panels.log_heights(axes)
    for row, (measure, label) in zip(grid, _MEASURES.items(), strict=True):
        for axes, rule in zip(row, rules, strict=True):
            cells = table[(table["measure"] == measure) & (table["scaling"] == rule)]
            for name, part in cells.groupby("stack", sort=False):
                hidden = part["high"] - part["low"] < (_HIDDEN if measure == "token_cosine" else _HIDDEN * part["high"])
                ends = part[["low", "high"]].where(~hidden)
                if measure == "logit_std":
                    panels.theory(axes, part["layer"], part["exact"], _THEORY, width=0.9)
                panels.points(
                    axes, part["layer"], part["estimate"], ends["low"], ends["high"], looks[name], line=True, size=3
                )
        row[0].set_ylabel(label)
    for axes, rule in zip(grid[0], rules, strict=True):
        axes.set_title(style.scaling(rule).label)
        panels.reference(axes, 1)
    _limits(grid, table)
    present = [name for name in looks if name in set(table["stack"])]
    figure.legend(handles=[panels.key(looks[name]) for name in present], loc="outside upper center", ncols=3)
    return figure


_THEORY = style.Look("exact", style.INK, "", style.DOTTED)


def _limits(grid, table) -> None:
    seen = selection.finite(table.loc[table["measure"] == "logit_std", ["estimate"]])
    seen = seen[seen > 0]
    grid[0][0].set_ylim(max(min(seen.min(initial=1.0), 1.0) / 2, _FLOOR), max(seen.max(initial=1.0), 1.0) * 2)
    grid[1][0].set_ylim(-0.06, 1.06)
    last = int(table["layer"].max())
    for axes in grid[1]:
        axes.set_xlabel("layer")
        axes.set_xlim(0.5, last + 0.5)
        axes.set_xticks(range(1, last + 1, max(1, last // 5)))


def describe(frames) -> Description:
    """Put the figure into words."""
    table = data(frames)
    if table.empty:
        return Description(_NOTHING, _NOTHING, _NOTHING, "")
    reading = (_normalised(table), _free(table), _collapse(table), _coverage(frames["depth"]))
    return Description(
        _caption(table),
        _alt(table),
        " ".join(filter(None, reading)),
        "Stacks are of attention alone, with random weights of variance 1/fan-in and independent tokens at the start; "
        "feed-forward layers, which keep tokens apart, and training are left out. The layers of a stack depend on each "
        "other, and so do their errors.",
    )


def _caption(table) -> str:
    return (
        f"Random attention layers on top of each other, {numbers.counted(int(table['layer'].max()), 'layer')}, "
        f"{numbers.counted(int(table['n_stacks'].max()), 'independent stack')} of each kind. Above: standard deviation "
        f"of the logits within a row, on a log axis cut at {_FLOOR:g}; dotted is its exact mean over the "
        "weights of a layer given its inputs, which for normalised inputs is that of unrelated tokens times the "
        "root of one minus the mean cosine. Below: mean cosine of two tokens. Bars are 95 % intervals between stacks, "
        "mostly hidden by the markers. Kinds have residual connections unless named otherwise."
    )


def _ends(table, measure: str, rule: str, name: str):
    rows = table[(table["measure"] == measure) & (table["scaling"] == rule) & (table["stack"] == name)]
    return selection.ends(rows, "layer")


def _move(ends) -> str:
    words = selection.move(ends, "layer", small=0.05)
    return words if words.startswith("is ") else f"{words} in layer {ends[1]['layer']}"


def _alt(table) -> str:
    parts = []
    for rule in style.scalings(table["scaling"]):
        for measure, words in (("logit_std", "standard deviation of the logits"), ("token_cosine", "cosine")):
            moves = [(name, _ends(table, measure, rule, name)) for name in selection.order(table["stack"])]
            moves = [f"{name} {_move(ends)}" for name, ends in moves if ends]
            if moves:
                parts.append(f"{words} {style.scaling_words(rule)}: {'; '.join(moves)}")
    text = ". ".join(f"{part[0].upper()}{part[1:]}" for part in parts)
    return f"Lines against the layer, from layer {table['layer'].min()}, standard errors in brackets. {text}."


def _growth(table, rule: str, name: str) -> float | None:
    """Return the largest spread of a stack's layers over that of its first."""
    cells = table[(table["measure"] == "logit_std") & (table["scaling"] == rule) & (table["stack"] == name)]
    cells = cells.sort_values("layer")
    if cells["layer"].nunique() < 2 or not cells["estimate"].iloc[0] > 0:
        return None
    return float(cells["estimate"].max() / cells["estimate"].iloc[0])


def _normalised(table) -> str:
    """Say whether the spread grows with depth where there is a normalisation."""
    names = [name for name in selection.order(table["stack"]) if not name.startswith("no")]
    found = {
        (name, rule): ratio
        for rule in style.scalings(table["scaling"])
        for name in names
        if (ratio := _growth(table, rule, name)) is not None
    }
    grown = [
        f"{name} {style.scaling_words(rule)} ({numbers.significant(ratio)} times)"
        for (name, rule), ratio in found.items()
        if ratio > _GROWTH
    ]
    if not found:
        return ""
    if grown:
        return f"In spite of a normalisation the spread grows with depth for {numbers.listing(grown)}."
    rise = max(found.values()) - 1
    return (
        f"With a normalisation the spread of the logits never rises {'' if rise <= 0 else 'more than '}"
        f"{'' if rise <= 0 else numbers.percent(rise) + ' '}above that of the first layer, with the scale as "
        "without: each layer starts afresh, and what is too large is so from the first layer on."
    )


def _free(table) -> str:
    """Say what happens to the spread without a normalisation."""
    moves = [
        f"{style.scaling_words(rule)} it {_move(ends)}"
        for rule in style.scalings(table["scaling"])
        if (ends := _ends(table, "logit_std", rule, _NAMES["none", True]))
    ]
    return selection.sentence(f"without a normalisation, but with residuals: {'; '.join(moves)}") if moves else ""


def _collapse(table) -> str:
    """Say how alike the tokens become."""
    words = []
    for rule in style.scalings(table["scaling"]):
        last = [
            f"{numbers.with_error(ends[1]['estimate'], ends[1]['se'])} ({name})"
            for name in selection.order(table["stack"])
            if (ends := _ends(table, "token_cosine", rule, name))
        ]
        if last:
            words.append(f"{style.scaling_words(rule)} {numbers.listing(last)}")
    return f"In the last layer the mean cosine of two tokens is {'; '.join(words)}." if words else ""


def _coverage(frame) -> str:
    """Say whether the spread is what the tokens' similarity makes of it."""
    cells = frame[(frame["measure"] == "logit_variance_ratio") & frame["estimate"].notna() & (frame["se"] > 0)]
    half = selection.half_width(cells["se"], cells["n_stacks"])
    inside = int((abs(cells["estimate"] - 1) <= half).sum())
    return selection.coverage_words(
        inside, len(cells), "ratio, 1, of the variance to its value given the inputs", "cell"
    )
