"""Figure: how softmax saturates with d_k, for each number of keys and each scale rule."""

from sqrtdk import numbers, style
from sqrtdk.figures import Description, panels, saving, selection

NUMBER = 7
INPUTS = ("softmax_saturation",)
TITLE = "Saturation of softmax against d_k"
QUESTION = "Does softmax turn one-hot in wide heads, and does the scale prevent it?"

_MEASURES = ("normalised_entropy", "max_weight", "saturated_share")
_OTHERS = "max_weight"
_HIDDEN = 0.015
_NOTHING = "No softmax was simulated."
_WANTED_N_KEYS = 64


def data(frames):
    """Return one row per point with its panel: three measures of the ensemble in front, and one of all ensembles."""
    import pandas as pd

    table = frames["softmax_saturation"]
    if table.empty:
        return table
    style.scalings(table["scaling"])
    front, n = selection.front(table), selection.nearest(table["n_keys"], _WANTED_N_KEYS)
    main = table[(table["ensemble"] == front) & table["measure"].isin(_MEASURES)].copy()
    main.insert(0, "panel", main["measure"])
    every = table[(table["n_keys"] == n) & (table["measure"] == _OTHERS)].copy()
    every.insert(0, "panel", "ensembles")
    result = pd.concat([main, every], ignore_index=True)
    half = selection.half_width(result["se"], result["n_blocks"])
    result["low"], result["high"] = (result["estimate"] - half).clip(0, 1), (result["estimate"] + half).clip(0, 1)
    return result


@saving.styled
def draw(frames):
    """Draw a column for each scale rule and a row for each measure; all ensembles in the last row."""
    table = data(frames)
    if table.empty:
        return panels.statement(_NOTHING)
    rules = style.scalings(table["scaling"])
    measures = [measure for measure in _MEASURES if measure in set(table["panel"])]
    ensembles = style.ensembles(selection.order(table.loc[table["panel"] == "ensembles", "ensemble"]))
    keys = style.sequence(sorted(selection.order(table["n_keys"])))
    several = len(ensembles) > 1
    names = [*measures, "ensembles"] if several else measures
    extra = 0.23 * -(-len(ensembles) // 3) if several else 0.0
    figure = panels.figure(0.75 + 1.38 * len(names) + extra, max(style.WIDTH, 1.75 * len(rules)))
    grid = figure.subplots(len(names), len(rules), sharex=True, sharey=True, squeeze=False)
    for row, name in enumerate(names):
        for axes, rule in zip(grid[row], rules, strict=True):
            cells = table[(table["panel"] == name) & (table["scaling"] == rule)]
            series, column = (ensembles, "ensemble") if name == "ensembles" else (keys, "n_keys")
            for value, look in series.items():
                part = cells[cells[column] == value]
                # An interval that its marker hides would only make the file larger.
                ends = part[["low", "high"]].where(part["high"] - part["low"] > _HIDDEN)
                panels.points(axes, part["d_k"], part["estimate"], ends["low"], ends["high"], look, line=True, size=3)
                if "theory" in part and part["theory"].notna().any():
                    panels.theory(axes, part["d_k"], part["theory"], _THEORY, width=0.9)
            panels.d_k_axis(axes, table["d_k"], "dₖ" if row == len(names) - 1 else None, most=2)
            axes.set_ylim(-0.04, 1.04)
            axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
            if row == 0:
                axes.set_title(style.scaling(rule).label)
        grid[row][0].set_ylabel(_row_label(name, table))
    figure.legend(
        handles=[panels.key(look, label=f"n = {n}") for n, look in keys.items()],
        loc="outside upper center",
        ncols=min(len(keys), 5),
    )
    if several:
        figure.legend(handles=[panels.key(look) for look in ensembles.values()], loc="outside lower center", ncols=3)
    return figure


_THEORY = style.Look("theory", style.INK, "", style.DOTTED)


def _row_label(name: str, table) -> str:
    if name != "ensembles":
        return {"saturated_share": "share of rows\nwith a weight\nabove 0.99"}.get(name, style.measure(name))
    n = table.loc[table["panel"] == "ensembles", "n_keys"].iloc[0]
    return f"{style.measure(_OTHERS)},\nall ensembles,\nn = {n}"


def describe(frames) -> Description:
    """Put the figure into words."""
    table = data(frames)
    if table.empty:
        return Description(_NOTHING, _NOTHING, _NOTHING, "")
    rules = style.scalings(table["scaling"])
    n = selection.nearest(table["n_keys"], _WANTED_N_KEYS)
    return Description(
        _caption(table, n),
        _alt(table, rules, n),
        f"{_saturates(table, rules, n)} {_keys(table, rules)} {_ensembles(table, rules, n)}".strip(),
        _caveat(table),
    )


def _caption(table, n: int) -> str:
    front = table[table["panel"] != "ensembles"]
    rows = numbers.count_range(table["n_rows"])
    text = (
        f"Attention rows of {style.ensemble_label(front['ensemble'].iloc[0])} queries and keys against d_k, for n = "
        f"{numbers.listing(list(map(str, sorted(selection.order(table['n_keys'])))))} keys; one column for each scale "
        "rule. From above: entropy over ln n (1 is uniform, 0 is one-hot), largest weight, share of rows with a "
        "weight above 0.99."
    )
    if (table["panel"] == "ensembles").any() and table.loc[table["panel"] == "ensembles", "ensemble"].nunique() > 1:
        text += f" Last row: largest weight of all ensembles at n = {n}."
    text += f" Means over {rows} rows a point; bars are 95 % intervals from between independent blocks"
    worst = table["se"].max()
    text += (
        f", mostly hidden by the markers (largest standard error {numbers.significant(worst, 2)})."
        if worst == worst
        else "."
    )
    return text + (" Dotted: theory, where there is one." if table["theory"].notna().any() else "")


def _ends(table, panel: str, rule: str, n: int, ensemble: str | None = None):
    rows = table[(table["panel"] == panel) & (table["scaling"] == rule) & (table["n_keys"] == n)]
    if ensemble is not None:
        rows = rows[rows["ensemble"] == ensemble]
    rows = rows[rows["estimate"].notna()].sort_values("d_k")
    return (rows.iloc[0], rows.iloc[-1]) if len(rows) else None


def _move(ends) -> str:
    first, last = ends
    if first["d_k"] == last["d_k"]:
        return f"is {numbers.with_error(last['estimate'], last['se'])}"
    return selection.change_words(first["estimate"], first["se"], last["estimate"], last["se"], small=0.05)


def _alt(table, rules, n: int) -> str:
    parts = []
    for panel in _MEASURES:
        moves = [(rule, _ends(table, panel, rule, n)) for rule in rules]
        moves = [f"{style.scaling_words(rule)} it {_move(ends)}" for rule, ends in moves if ends]
        if moves:
            parts.append(f"{_WORDS[panel]}: {numbers.listing(moves, 'and')}")
    low, high = table["d_k"].min(), table["d_k"].max()
    span = f"from d_k = {low} to {high}" if low < high else f"at d_k = {low}"
    return f"Small panels against d_k, {span}, at n = {n} keys, standard errors in brackets. {'. '.join(parts)}."


_WORDS = {
    "normalised_entropy": "Entropy over ln n",
    "max_weight": "Largest weight",
    "saturated_share": "Share of rows with a weight above 0.99",
}


def _saturates(table, rules, n: int) -> str:
    """Say, for each scale rule, how the largest weight of a row moves from the narrowest to the widest head."""
    ends = {rule: _ends(table, "max_weight", rule, n) for rule in rules}
    words = [f"{style.scaling_words(rule)} it {_move(found)}" for rule, found in ends.items() if found]
    low, high = table["d_k"].min(), table["d_k"].max()
    span = f"from d_k = {low} to {high}" if low < high else f"at d_k = {low}"
    return f"The largest weight of a row of n = {n} keys, {span}: {'; '.join(words)}." if words else ""


def _keys(table, rules) -> str:
    """Say where the mean largest weight passes one half, for each scale rule and number of keys."""
    words, rising = [], True
    for rule in rules:
        rows = table[(table["panel"] == "max_weight") & (table["scaling"] == rule)]
        places = {n: panels.crossing(part["d_k"], part["estimate"], 0.5) for n, part in rows.groupby("n_keys")}
        places = {n: place for n, place in places.items() if place is not None}
        if places:
            spelled = [f"{numbers.significant(place, 2)} for n = {n}" for n, place in places.items()]
            words.append(f"{style.scaling_words(rule)} it passes one half at d_k of about {numbers.listing(spelled)}")
            rising &= len(places) > 1 and list(places.values()) == sorted(places.values())
    if not words:
        return "Under none of these rules does it pass one half between the simulated widths."
    return selection.sentence("; ".join(words) + (": more keys need a wider head to saturate" if rising else ""))


def _ensembles(table, rules, n: int) -> str:
    """Name the ensembles that the usual scale does not keep from saturating."""
    rule = "1/sqrt(d_k)"
    every = table[(table["panel"] == "ensembles") & (table["scaling"] == rule)]
    names = selection.order(every["ensemble"])
    if rule not in rules or len(names) < 2 or every["d_k"].nunique() < 2:
        return ""
    moves = {name: _ends(table, "ensembles", rule, n, name) for name in names}
    grow = [
        f"{style.ensemble_label(name)} ({numbers.with_error(ends[0]['estimate'], ends[0]['se'])} to "
        f"{numbers.with_error(ends[1]['estimate'], ends[1]['se'])})"
        for name, ends in moves.items()
        if ends and ends[1]["estimate"] - ends[0]["estimate"] > 0.1
    ]
    words = selection.sentence(style.scaling_words(rule))[:-1]
    if not grow:
        return f"{words} it rises by more than 0.1 for no ensemble over the simulated widths."
    return f"{words} it still rises by more than 0.1 for {numbers.listing(grow)}."


def _caveat(table) -> str:
    return (
        "Random queries and keys stand for a network whose start gives components of variance 1; a trained head can be "
        "sharp on purpose. Means "
        "hide that rows differ: the entropy of a mean row is not the mean entropy."
    )
