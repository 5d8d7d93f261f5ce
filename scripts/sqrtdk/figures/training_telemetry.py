"""Figure: what happens inside attention while it is trained, with and without the scale."""

from sqrtdk import numbers
from sqrtdk.figures import Description, panels, saving, selection, training_words

NUMBER = 18
INPUTS = ("training",)
TITLE = "Logits, entropy and gradients during training"
QUESTION = "What goes wrong in training without the scale: gradients that vanish, or logits that grow?"

_NOTHING = "No model was trained."
_MEASURES = {
    "logit_std": "spread of logits\nin a row",
    "largest_logit": "largest |logit|",
    "entropy": "entropy (nats)",
    "grad_norm_qk": "gradient norm,\nW_q and W_k",
}
_WORDS = {
    "logit_std": "the spread of the logits in a row",
    "largest_logit": "the largest logit",
    "entropy": "the entropy of a row",
    "grad_norm_qk": "the gradient norm of W_q and W_k",
}
_WANTED = 64
_SCALED = "1/sqrt(d_k)"
_HIGHER = 10
_LINEAR = ("entropy",)
_SMALLEST = 1e-30


def data(frames):
    """Return one row per point of the first experiment at one width and two rates: mean and interval over seeds."""
    import pandas as pd

    table = frames["training"]
    if table.empty:
        return table
    table = _shown(table)
    rates = selection.order(table["learning_rate"])
    table = table[table["step"].isin(_steps_shown(table["step"]))]
    rows = []
    for rate in rates:
        for (rule, step), cells in table[table["learning_rate"] == rate].groupby(["scaling", "step"], sort=False):
            for measure in _MEASURES:
                rows.append(
                    dict(d_k=cells["d_k"].iloc[0], learning_rate=rate, scaling=rule, step=step, measure=measure)
                    | _mean(cells[measure].dropna().to_numpy(dtype=float), measure in _LINEAR)
                    | dict(n_diverged=int(selection.truth(cells["diverged"]).sum()))
                )
    return pd.DataFrame([row for row in rows if row["n_seeds"]])


def _shown(table):
    """Return the runs that are shown: of the first experiment at one width and two rates, the better one first."""
    import pandas as pd

    table = table[table["experiment"] == table["experiment"].iloc[0]]
    table = table[table["d_k"] == selection.nearest(table["d_k"], _WANTED)]
    return pd.concat([table[table["learning_rate"] == rate] for rate in _rates(table)])


def _steps_shown(steps) -> list[int]:
    """Return every other logged step from the end, and the first."""
    steps = sorted(set(steps))
    return [*steps[:1], *steps[:0:-2]]


def _rates(table) -> list[float]:
    """Return the best rate of the scaled rule, or of the first, and the highest that is at most ten times as large."""
    import numpy as np

    rules = selection.order(table["scaling"])
    rule = _SCALED if _SCALED in rules else rules[0]
    last = table[(table["scaling"] == rule) & (table["step"] == table["step"].max())]
    loss = np.log(last["loss"].fillna(np.inf).clip(lower=_SMALLEST)).groupby(last["learning_rate"]).mean()
    best = float(loss.idxmin())
    higher = [rate for rate in sorted(set(table["learning_rate"])) if best < rate <= _HIGHER * best * 1.01]
    return [best, *higher[-1:]]


def _mean(values, linear: bool) -> dict:
    """Return the mean over seeds with its interval by Student's t, geometric unless the measure may be 0."""
    import numpy as np

    n = len(values)
    if not n:
        return dict(mean=np.nan, low=np.nan, high=np.nan, n_seeds=0)
    x = values if linear else np.log(np.maximum(values, _SMALLEST))
    half = selection.half_width(np.std(x, ddof=1) / n**0.5, n) if n > 1 else np.nan
    ends = np.array([np.mean(x), np.mean(x) - half, np.mean(x) + half], dtype=float)
    ends = ends if linear else np.exp(np.clip(ends, -700, 700))
    return dict(zip(("mean", "low", "high"), map(float, ends), strict=True)) | dict(n_seeds=n)


@saving.styled
def draw(frames):
    """Draw a row for each measure and a column for each rate."""
    table = data(frames)
    if table.empty:
        return panels.statement(_NOTHING)
    looks, rates = training_words.looks(table["scaling"]), selection.order(table["learning_rate"])
    figure = panels.figure(1.0 + 1.45 * len(_MEASURES) + 0.24 * -(-len(looks) // 3))
    grid = figure.subplots(len(_MEASURES), len(rates), sharex=True, sharey="row", squeeze=False)
    for line, (measure, label) in zip(grid, _MEASURES.items(), strict=True):
        for axes, rate in zip(line, rates, strict=True):
            if measure not in _LINEAR:
                panels.log_heights(axes, most=5)
            cells = table[(table["measure"] == measure) & (table["learning_rate"] == rate)]
            for rule, look in looks.items():
                part = cells[cells["scaling"] == rule].sort_values("step")
                at = (part[name] for name in ("step", "mean", "low", "high"))
                panels.points(axes, *at, look, line=True, size=3)
            _steps(axes, table["step"])
            if measure in _LINEAR:
                axes.set_ylim(bottom=0)
        line[0].set_ylabel(label)
    for axes, rate in zip(grid[0], rates, strict=True):
        axes.set_title(f"learning rate {training_words.rate(rate)}")
    for axes in grid[-1]:
        axes.set_xlabel("step")
    figure.legend(
        handles=[panels.key(look) for look in looks.values()], loc="outside upper center", ncols=min(3, len(looks))
    )
    return figure


def _steps(axes, steps) -> None:
    axes.set_xscale("symlog", linthresh=1, linscale=0.3)
    last = max(max(steps), 1)
    axes.set_xlim(-0.3, last * 1.3)
    axes.set_xticks([tick for tick in (0, 1, 10, 100, 1000, 10_000) if tick <= last])
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")


def describe(frames) -> Description:
    """Put the figure into words."""
    table = data(frames)
    if table.empty:
        return Description(_NOTHING, _NOTHING, _NOTHING, "")
    rates = selection.order(table["learning_rate"])
    name = training_words.experiment(frames["training"])
    shown = _shown(frames["training"])
    lost = selection.truth(shown.loc[shown["step"] == shown["step"].max(), "diverged"]).sum()
    caption = (
        f"Attention during training ({name}, d_k = {table['d_k'].iloc[0]}), measured on held-out data, at the best "
        f"rate of the scaled rule{' and at a higher one' if len(rates) > 1 else ''}. Means over "
        f"{numbers.count_range(table.loc[table['n_seeds'] > 0, 'n_seeds'])} seeds, geometric but for the entropy; bars "
        f"are 95 % intervals over seeds, mostly hidden by the markers. "
        + ("No run diverged." if not lost else f"Runs that diverged, {int(lost)}, are missing from there on.")
    )
    return Description(caption, _alt(table, rates), _reading(table, rates), _CAVEAT)


_CAVEAT = (
    "One experiment at one width; the table has all. A large gradient norm at one moment says little about progress: "
    "Adam divides by its size."
)


def _ends(table, measure: str, rule: str, rate: float):
    rows = table[(table["measure"] == measure) & (table["scaling"] == rule) & (table["learning_rate"] == rate)]
    rows = rows[rows["n_seeds"] > 0].sort_values("step")
    return (rows.iloc[0], rows.iloc[-1]) if len(rows) else None


def _move(ends) -> str:
    first, last = (numbers.significant(row["mean"], 2) for row in ends)
    return f"{first} to {last}" if ends[0]["step"] != ends[1]["step"] else first


def _alt(table, rates) -> str:
    parts = []
    for rate in rates:
        for measure, label in _WORDS.items():
            moves = [(rule, _ends(table, measure, rule, rate)) for rule in selection.order(table["scaling"])]
            moves = [f"{_move(ends)} {training_words.words(rule)}" for rule, ends in moves if ends]
            parts.append(f"{label}, {numbers.listing(moves)}")
        parts[-1] += f" (rate {training_words.rate(rate)})"
    last = table["step"].max()
    return f"Small panels against the step, from 0 to {last}: {'; '.join(parts)}."


def _reading(table, rates) -> str:
    rules = selection.order(table["scaling"])
    if "none" not in rules or _SCALED not in rules:
        return "Rules with and without the scale cannot be compared here."
    sentences = [_start(table, rates[0])]
    for rate in rates:
        plain, scaled = (_ends(table, "logit_std", rule, rate) for rule in ("none", _SCALED))
        if plain and scaled:
            grown = [ends[1]["mean"] / ends[0]["mean"] if ends[0]["mean"] > 0 else 1.0 for ends in (plain, scaled)]
            sentences.append(
                f"At rate {training_words.rate(rate)} the logits of a row end with a spread of "
                f"{numbers.significant(plain[1]['mean'], 2)} without the scale and "
                f"{numbers.significant(scaled[1]['mean'], 2)} with it, {numbers.significant(grown[0], 2)} and "
                f"{numbers.significant(grown[1], 2)} times what they start with."
            )
    return " ".join(sentences)


def _start(table, rate: float) -> str:
    """Say how the gradients compare before the first step."""
    plain, scaled = (_ends(table, "grad_norm_qk", rule, rate) for rule in ("none", _SCALED))
    if not plain or not scaled:
        return ""
    one, other = plain[0], scaled[0]
    values = f"{numbers.significant(one['mean'], 2)} against {numbers.significant(other['mean'], 2)}"
    if one["low"] > other["high"]:
        return f"Before the first step the gradient of W_q and W_k is larger without the scale, {values}."
    if one["high"] < other["low"]:
        return f"Before the first step the gradient of W_q and W_k is smaller without the scale, {values}."
    return f"Before the first step the gradients of W_q and W_k cannot be told apart, {values}."
