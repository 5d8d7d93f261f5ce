"""Figure: the softmax weight of one key aligned with the query, against the number of keys."""

from sqrtdk import numbers, style
from sqrtdk.figures import Description, panels, saving, selection

NUMBER = 12
INPUTS = ("planted_key", "planted_capacity")
TITLE = "Weight of one aligned key against the number of keys"
QUESTION = "Up to how many keys does a query still find the one key it is aligned with?"

_NOTHING = "No planted key was simulated."
_KEYS = ["d_k", "rho", "scaling", "measure"]
_RETRIEVED = style.Look("it has the largest weight", style.INK, "x", style.DOTTED)
_NOISE, _SIGNAL = "1/sqrt(d_k)", "1/d_k"
_UNDECIDED = 0.999
"""Means closer to 1 than this rest on rare rows, too few of which are drawn for an interval."""
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def data(frames):
    """Return one row per number of keys and rule, and for the largest weight, with intervals and capacities."""
    table = frames["planted_key"]
    if table.empty:
        return table
    style.scalings(table["scaling"].dropna())
    capacity = frames["planted_capacity"]
    table = table.drop(columns="approximation").merge(
        capacity[[*_KEYS, "capacity", "formula"]], how="left", on=_KEYS, validate="many_to_one"
    )
    half = selection.half_width(table["se"], table["n_blocks"])
    table["low"], table["high"] = (table["estimate"] - half).clip(0, 1), (table["estimate"] + half).clip(0, 1)
    return table


def _series(table) -> list:
    """Return (rows, look) for each scale rule, and for the share of rows in which the planted key is the largest."""
    weights = table[table["measure"] == "weight"]
    found = [(weights[weights["scaling"] == rule], style.scaling(rule)) for rule in style.scalings(weights["scaling"])]
    return [*found, (table[table["measure"] == "retrieved"], _RETRIEVED)]


@saving.styled
def draw(frames):
    """Draw a column for each d_k and a row for each correlation: exact curves, simulated points, capacities."""
    table = data(frames)
    if table.empty:
        return panels.statement(_NOTHING)
    widths, cosines = sorted(selection.order(table["d_k"])), sorted(selection.order(table["rho"]), reverse=True)
    figure = panels.figure(1.05 + 1.75 * len(cosines), max(style.WIDTH, 1.85 * len(widths)))
    grid = figure.subplots(len(cosines), len(widths), sharex=True, sharey=True, squeeze=False)
    for row, rho in enumerate(cosines):
        for axes, d_k in zip(grid[row], widths, strict=True):
            panels.reference(axes, 0.5)
            beyond = []
            for part, look in _series(table[(table["d_k"] == d_k) & (table["rho"] == rho)]):
                panels.theory(axes, part["n_keys"], part["theory"], look, width=1.2)
                seen = part[part["estimate"].notna()]
                panels.points(axes, seen["n_keys"], seen["estimate"], seen["low"], seen["high"], look, size=3.2)
                beyond += _capacity(axes, part, look, table["n_keys"].max())
            for place, (text, look) in enumerate(beyond):
                position = {"x": 0.97, "y": 0.7 - 0.13 * place, "ha": "right", "va": "center"}
                axes.text(s=text, color=look.colour, fontsize="small", transform=axes.transAxes, **position)
            axes.set_ylim(-0.04, 1.06)
            axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
            if row == 0:
                axes.set_title(f"dₖ = {d_k}")
        grid[row][0].set_ylabel(f"share, ρ = {rho:g}")
    _n_keys_axis(grid[-1], table["n_keys"])
    looks = [look for _, look in _series(table)]
    figure.legend(handles=[panels.key(look) for look in looks[:-1]], loc="outside upper center", ncols=3)
    half = style.Look("capacity (one half)", style.INK, "D", style.SOLID)
    handles = [panels.key(half, hollow=True, linestyle="none"), panels.key(_RETRIEVED, label=_RETRIEVED.label)]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def _capacity(axes, part, look, last: int) -> list:
    """Mark where a curve passes one half; return (text, look) where that is beyond the axis."""
    capacity = part["capacity"].dropna()
    if look is _RETRIEVED or capacity.empty:
        return []
    if capacity.iloc[0] > last:
        return [(f"{numbers.significant(capacity.iloc[0], 1)} →", look)]
    axes.plot(
        capacity.iloc[0],
        0.5,
        color=look.colour,
        marker="D",
        markersize=5.5,
        markerfacecolor="none",
        markeredgewidth=1.1,
        linestyle="none",
        label="_capacity",
    )
    return []


def _n_keys_axis(row, values) -> None:
    powers = [power for power in range(4, 61, 4) if values.min() <= 2**power <= values.max()]
    for axes in row:
        axes.set_xscale("log", base=2)
        axes.set_xlim(values.min() / 1.5, values.max() * 1.5)
        axes.set_xticks([2**power for power in powers], ["2" + str(power).translate(_SUPERSCRIPT) for power in powers])
        axes.minorticks_off()
        axes.set_xlabel("keys, n")


def describe(frames) -> Description:
    """Put the figure into words."""
    table = data(frames)
    if table.empty:
        return Description(_NOTHING, _NOTHING, _NOTHING, "")
    parts = (_lead(table), *_normalisers(table), _rule_of_thumb(table), _others(table), _agreement(table))
    return Description(_caption(table), _alt(table), " ".join(filter(None, parts)), _CAVEAT)


_CAVEAT = (
    "One key is planted and all others are unrelated to the query. In text, many keys resemble the query a little, and "
    "a trained head changes the sizes of queries and keys with its weights: the same capacity is had with any of these "
    "factors and other weights. A weight of one half counts as found; that the weight is the largest needs less."
)


def _caption(table) -> str:
    seen = table[table["estimate"].notna()]
    text = (
        "Mean softmax weight of one key k* = ρ q + √(1 − ρ²) g among n − 1 other keys against n, for standard normal "
        "q, g and keys, one line for each scale rule; dotted crosses: share of rows in which k* has the largest "
        "weight, which no scale changes. Lines are exact; diamonds mark the capacity, where the mean weight is one "
        "half; where it lies beyond the axis its size stands before an arrow."
    )
    if seen.empty:
        return f"{text} Nothing was simulated here."
    rows = numbers.count_range(seen["n_rows"])
    text += f" Markers: means over {rows} simulated rows a point, with 95 % intervals from between independent blocks"
    worst = seen["se"].max()
    return text + (f" (largest standard error {numbers.significant(worst, 2)})." if worst == worst else ".")


def _lead(table) -> str:
    return (
        f"The signal, the planted key's logit, is about cρd_k (here ρ = {table['rho'].max():g}); the noise, the logits "
        "of the other keys, has a spread of about c√d_k."
    )


def _ends(table, rule: str, rho: float):
    """Return the lines of the capacity of a rule at the smallest and the largest width, or None."""
    rows = table[(table["scaling"] == rule) & (table["rho"] == rho) & table["capacity"].notna()]
    rows = rows.drop_duplicates("d_k").sort_values("d_k")
    return (rows.iloc[0], rows.iloc[-1]) if len(rows) > 1 else None


def _normalisers(table) -> list[str]:
    """Say of 1/√d_k and 1/d_k what stays fixed from the narrowest to the widest head, and what the capacity does."""
    from sqrtdk.variants import parse

    rho, words = table["rho"].max(), []
    for rule in (_NOISE, _SIGNAL):
        ends = _ends(table, rule, rho)
        if not ends:
            continue
        widths = [int(row["d_k"]) for row in ends]
        factors = [parse(rule).factor(int(row["d_k"]), int(row["n_keys"])) for row in ends]
        signal = _moves(*(c * rho * d for c, d in zip(factors, widths, strict=True)))
        noise = _moves(*(c * d**0.5 for c, d in zip(factors, widths, strict=True)))
        span = f"from d_k = {widths[0]} to {widths[1]}"
        kept = (
            f"the noise is normalised: its spread {noise} {span}, while the signal {signal}"
            if rule == _NOISE
            else f"the signal is normalised: it {signal} {span}, while the spread of the noise {noise}"
        )
        capacity = _moves(*(row["capacity"] for row in ends))
        words.append(f"{selection.sentence(style.scaling_words(rule))[:-1]} {kept}, and the capacity {capacity} keys.")
    return words


def _moves(first: float, last: float) -> str:
    """Say how an exact number changes, to two digits."""
    first, last = (numbers.significant(value, 2) for value in (first, last))
    return f"stays at {first}" if first == last else f"goes from {first} to {last}"


def _rule_of_thumb(table) -> str:
    """Say how far off the capacity e^(ρ√d_k − ½) is."""
    rows = table[(table["scaling"] == _NOISE) & table["capacity"].notna() & table["formula"].notna()]
    if rows.empty:
        return ""
    ratio = rows["capacity"] / rows["formula"]
    worst = max(ratio.max(), 1 / ratio.min())
    return f"For 1/√d_k the rule of thumb e^(ρ√d_k − ½) is right to a factor of {numbers.significant(worst, 3)}."


def _others(table) -> str:
    """Say what the capacity is without a scale, and at other correlations."""
    words = []
    for rho in sorted(selection.order(table["rho"]), reverse=True):
        ends = _ends(table, "none", rho)
        if ends:
            low, high = ends
            words.append(
                f"{numbers.significant(low['capacity'], 2)} at d_k = {low['d_k']} and "
                f"{numbers.significant(high['capacity'], 2)} at d_k = {high['d_k']} for ρ = {rho:g}"
            )
    if not words:
        return ""
    return (
        f"Without a scale the capacity is {numbers.listing(words)}: the sharper softmax is, the nearer the weight "
        "comes to whether the key is the largest at all."
    )


def _agreement(table) -> str:
    told = table[(table["se"] > 0) & (table["theory"] < _UNDECIDED)]
    inside = int(selection.covers(told["low"], told["high"], told["theory"]).sum())
    if not len(told):
        return ""
    words = selection.coverage_words(inside, len(told), "mean", "simulated point")
    return f"{words} Points of one d_k and n share their draws, so that they err together."


def _alt(table) -> str:
    widths = sorted(selection.order(table["d_k"]))
    d_k, rho = selection.nearest(widths, 64), table["rho"].max()
    here = table[(table["d_k"] == d_k) & (table["rho"] == rho)]
    parts = []
    for rows, look in _series(here):
        rows = rows[rows["theory"].notna()].sort_values("n_keys")
        if rows.empty:
            continue
        first, last = rows.iloc[0], rows.iloc[-1]
        name = "share of rows in which it is the largest" if look is _RETRIEVED else look.label
        values = f"{numbers.significant(first['theory'], 2)} to {numbers.significant(last['theory'], 2)}"
        span = f"from n = {numbers.count(first['n_keys'])} to {numbers.count(last['n_keys'])}"
        parts.append(f"{name}, {span}: {values}")
    words = f"At d_k = {d_k} and ρ = {rho:g}: {'; '.join(parts)}." if parts else "No exact value is at hand."
    span = numbers.listing([str(width) for width in widths])
    return f"Panels of falling curves, share against the number of keys, for d_k = {span}. {words}"
