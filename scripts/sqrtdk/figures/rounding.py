"""Figure: errors of softmax in floating-point formats of few bits, and exponentials that overflow."""

from sqrtdk import numbers, style
from sqrtdk.figures import Description, panels, saving, selection

NUMBER = 16
INPUTS = ("rounding",)
TITLE = "Attention in floating-point formats of few bits"
QUESTION = "Does low precision need the scale?"

_NOTHING = "No rounding was simulated."
_ROWS = {
    ("logits", "total_variation"): "error, rounded\nlogits",
    ("probabilities", "total_variation"): "error, rounded\nweights",
    ("naive_exp", "overflow_share"): "exponentials\nthat overflow",
}
_LABELS = {
    "float32": "float32",
    "bfloat16": "bfloat16",
    "float16": "float16",
    "float8_e4m3fn": "float8 e4m3",
    "float8_e5m2": "float8 e5m2",
}
_MARKED = "naive_exp"
_WANTED_D_K = 64
_HIDDEN = 0.1
_LEAST = 0.001


def data(frames):
    """Return one row per point with its panel: errors of rows of weights, and shares of exponentials that overflow."""
    table = frames["rounding"]
    if table.empty:
        return table
    style.scalings(table["scaling"])
    table = table[table["estimate"].notna()]
    wanted = [key in _ROWS for key in zip(table["rounded"], table["measure"], strict=True)]
    table = table[wanted].reset_index(drop=True)
    table["half_width"] = selection.half_width(table["se"], table["n_blocks"])
    return table[["rounded", "format", "scaling", "d_k", "n_keys", "estimate", "se", "half_width", "exact", "n_rows"]]


@saving.styled
def draw(frames):
    """Draw a column for each scale rule and a row for each place of rounding; errors on a log axis."""
    table = data(frames)
    if table.empty:
        return panels.statement(_NOTHING)
    rules = style.scalings(table["scaling"])
    looks = style.sequence(selection.order([*_LABELS, *table["format"]]))
    rows = {key: label for key, label in _ROWS.items() if key[0] in set(table["rounded"])}
    figure = panels.figure(1.0 + 1.6 * len(rows), max(style.WIDTH, 2.6 * len(rules)))
    grid = figure.subplots(len(rows), len(rules), sharex=True, sharey="row", squeeze=False)
    last = [*rows.values()][-1]
    for row, ((place, _), label) in zip(grid, rows.items(), strict=True):
        for axes, rule in zip(row, rules, strict=True):
            if place != _MARKED:
                panels.log_heights(axes)
            cells = table[(table["rounded"] == place) & (table["scaling"] == rule)]
            for name, part in cells.groupby("format", sort=False):
                half = part["half_width"].where(
                    part["half_width"] > (_HIDDEN / 8 if place == _MARKED else _HIDDEN * part["estimate"])
                )
                if place == _MARKED:
                    panels.theory(axes, part["d_k"], part["exact"], _THEORY, width=0.9)
                low, high = part["estimate"] - half, part["estimate"] + half
                panels.points(axes, part["d_k"], part["estimate"], low, high, looks[name], line=True, size=3)
            panels.d_k_axis(axes, table["d_k"], "dₖ" if label == last else None, most=4)
        row[0].set_ylabel(label)
    _limits(grid, rows, table)
    for axes, rule in zip(grid[0], rules, strict=True):
        axes.set_title(style.scaling(rule).label)
    figure.legend(
        handles=[
            panels.key(look, label=_LABELS.get(name, name))
            for name, look in looks.items()
            if name in set(table["format"])
        ],
        loc="outside upper center",
        ncols=3,
    )
    return figure


_THEORY = style.Look("exact", style.INK, "", style.DOTTED)


def _limits(grid, rows, table) -> None:
    for row, (place, _) in zip(grid, rows, strict=True):
        seen = selection.finite(table.loc[table["rounded"] == place, ["estimate"]])
        if place == _MARKED:
            row[0].set_ylim(-0.05 * seen.max(initial=0.1), 1.15 * seen.max(initial=0.1))
        elif (seen > 0).any():
            row[0].set_ylim(seen[seen > 0].min() / 2, seen.max() * 2)


def describe(frames) -> Description:
    """Put the figure into words."""
    table = data(frames)
    if table.empty:
        return Description(_NOTHING, _NOTHING, _NOTHING, "")
    reading = (_growth(table), _weights(table), _overflow(table), _coverage(table))
    return Description(
        _caption(table),
        _alt(table),
        " ".join(filter(None, reading)),
        "Only what is named is rounded, and all else is in double precision: kernels that add up in few bits lose "
        "more. Rounding is to the nearest and does not saturate. Subtracting the largest logit of a row first, as "
        "common implementations do, removes overflow of the exponentials under any scale. All formats see the same "
        "numbers, so that their errors are not independent.",
    )


def _caption(table) -> str:
    return (
        f"Rows of {numbers.listing([str(n) for n in selection.order(table['n_keys'])])} keys, for standard normal "
        "queries and keys, against d_k; one column for each scale rule. Without a scale the logits have the standard "
        "deviation √d_k. Total variation distance (log axis) between the exact weights of a row and those made of "
        "rounded logits, and between exact and rounded weights; below, share of exponentials of logits, without their "
        "maximum subtracted, that overflow, with its exact value dotted. Means over "
        f"{numbers.count_range(table['n_rows'])} rows a point; bars are 95 % intervals from between "
        "independent blocks, mostly hidden by the markers."
    )


def _ends(table, place: str, rule: str, name: str):
    rows = table[(table["rounded"] == place) & (table["scaling"] == rule) & (table["format"] == name)]
    return selection.ends(rows, "d_k")


def _move(ends) -> str:
    return selection.move(ends, "d_k", small=0.1)


def _formats(table) -> list[str]:
    return selection.order(table["format"])


def _alt(table) -> str:
    parts = []
    for (place, _), words in zip(_ROWS, ("Error by rounded logits", "By rounded weights", "Overflow"), strict=True):
        for rule in style.scalings(table["scaling"]):
            moves = [(_LABELS.get(name, name), _ends(table, place, rule, name)) for name in _formats(table)]
            moves = [f"{name} {_move(ends)}" for name, ends in moves if ends]
            if moves:
                parts.append(f"{words} {style.scaling_words(rule)}: {'; '.join(moves)}")
    low, high = table["d_k"].min(), table["d_k"].max()
    span = f"from d_k = {low} to {high}" if low < high else f"at d_k = {low}"
    return f"Small panels against d_k, {span}, standard errors in brackets. {'. '.join(parts)}."


def _at(table, place: str, rule: str, name: str, d_k: int):
    rows = table[(table["rounded"] == place) & (table["scaling"] == rule) & (table["format"] == name)]
    rows = rows[rows["d_k"] == d_k]
    return rows.iloc[0] if len(rows) else None


def _growth(table) -> str:
    """Compare the error of rounded logits with and without the scale, at the usual width."""
    d_k = selection.nearest(table["d_k"], _WANTED_D_K)
    told = []
    for name in _formats(table):
        plain, scaled = (_at(table, "logits", rule, name, d_k) for rule in ("none", "1/sqrt(d_k)"))
        if plain is None or scaled is None or not scaled["estimate"] > 0:
            continue
        told.append((name, plain, scaled, plain["estimate"] / scaled["estimate"]))
    if not told:
        return ""
    words = [
        f"{_LABELS.get(name, name)} {numbers.with_error(plain['estimate'], plain['se'])} against "
        f"{numbers.with_error(scaled['estimate'], scaled['se'])}"
        for name, plain, scaled, _ in told
    ]
    ratios = [ratio for *_, ratio in told]
    verdict = (
        f"larger without the scale, {_range(ratios)} times"
        if min(ratios) > 1
        else "smaller without the scale"
        if max(ratios) < 1
        else "not larger without the scale for every format"
    )
    return (
        f"At d_k = {d_k}, where the logits are {numbers.significant(d_k**0.5)} times larger without the scale, the "
        f"error from rounded logits is {verdict}: {'; '.join(words)}."
    )


def _range(values: list[float]) -> str:
    low, high = (numbers.significant(pick(values), 2) for pick in (min, max))
    return low if low == high else f"{low} to {high}"


def _weights(table) -> str:
    """Say how the error of rounded weights moves where there is no scale."""
    moves = [(_LABELS.get(name, name), _ends(table, "probabilities", "none", name)) for name in _formats(table)]
    moves = [f"for {name} it {_move(ends)}" for name, ends in moves if ends and ends[0]["d_k"] < ends[1]["d_k"]]
    return f"The error from rounded weights, without a scale: {'; '.join(moves)}." if moves else ""


def _overflow(table) -> str:
    """Say at which widths exponentials overflow."""
    words = []
    for rule in style.scalings(table["scaling"]):
        cells = table[(table["rounded"] == _MARKED) & (table["scaling"] == rule)]
        first = {}
        for name in _formats(cells):
            over = cells[(cells["format"] == name) & (cells["estimate"] > _LEAST)].sort_values("d_k")
            if len(over):
                row = over.iloc[0]
                spelled = numbers.with_error(row["estimate"], row["se"])
                first[_LABELS.get(name, name)] = f"{_LABELS.get(name, name)} from d_k = {row['d_k']} ({spelled})"
        if len(cells):
            words.append(f"{style.scaling_words(rule)} {numbers.listing(list(first.values())) if first else 'none'}")
    if not words:
        return ""
    share = numbers.percent(_LEAST)
    return f"Formats in which more than {share} of the exponentials overflow: {'; '.join(words)}."


def _coverage(table) -> str:
    known = table[(table["rounded"] == _MARKED) & table["exact"].notna() & (table["estimate"] > _LEAST)]
    known = known[known["se"] > 0]
    inside = int((abs(known["estimate"] - known["exact"]) <= known["half_width"]).sum())
    return selection.coverage_words(inside, len(known), "share that overflows", "cell")
