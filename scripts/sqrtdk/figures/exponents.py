"""Figure: the exponent of the power law of the variance, for each ensemble, against the exact one."""

import textwrap

from sqrtdk import numbers, style
from sqrtdk.figures import Description, panels, saving, selection

NUMBER = 2
INPUTS = ("variance_laws", "spread_laws")
TITLE = "The exponent of the variance of q·k, by ensemble"
QUESTION = "Is the variance of q·k proportional to d_k, and for which queries and keys is it not?"

_FEW = 9
_NOTHING = "No power law was fitted to any ensemble."


def data(frames):
    """Return one row per ensemble: exponent, intervals, the exact exponent, and the difference of the two.

    `ci_*` are 95 % intervals; `all_*` are Šidák's simultaneous ones, which hold for all ensembles at once in 95 % of
    runs. `range_exponent` is the exponent of the interquartile range at large d_k, of the tail law if it has one.
    """
    from sqrtdk.laws import t_quantile

    laws = frames["variance_laws"]
    if laws.empty:
        return laws
    rows = laws[(laws["law"] == "power") & (laws["parameter"] == "exponent")].reset_index(drop=True)
    columns = ["ensemble", "estimate", "se", "ci_low", "ci_high", "exact", "estimable", "reason", "d_k_min", "n_points"]
    table = rows[columns].copy()
    table["estimable"] = selection.truth(table["estimable"]) & table["estimate"].notna()
    level = selection.LEVEL ** (1 / max(int(table["estimable"].sum()), 1))
    half = t_quantile(rows["ci_dof"].astype(float).fillna(float("inf")), level) * table["se"]
    table["all_low"], table["all_high"] = table["estimate"] - half, table["estimate"] + half
    for column in ("estimate", "ci_low", "ci_high", "all_low", "all_high"):
        table[f"{column}_minus_exact"] = (table[column] - table["exact"]).where(table["estimable"])
    return table.merge(_ranges(frames["spread_laws"]), on="ensemble", how="left", validate="one_to_one")


def _ranges(laws):
    """Return the exponent of the interquartile range of each ensemble, of large d_k where that can be estimated."""
    names = {"estimate": "range_exponent", "se": "range_exponent_se", "d_k_min": "range_d_k_min"}
    if laws.empty:
        return laws.reindex(columns=["ensemble", *names.values()])
    rows = laws[(laws["parameter"] == "exponent") & selection.truth(laws["estimable"])]
    rows = rows.sort_values("law", key=lambda law: law.map({"power_tail": 0, "power": 1}), kind="stable")
    return rows.drop_duplicates("ensemble")[["ensemble", *names]].rename(columns=names)


@saving.styled
def draw(frames):
    """Draw a forest plot: the exponents, their distance from the exact ones, and both as numbers."""
    table = data(frames)
    if table.empty:
        return panels.statement(_NOTHING)
    looks = style.ensembles(list(table["ensemble"]))
    figure = panels.figure(1.2 + (0.27 if len(table) <= _FEW else 0.21) * len(table))
    left, right = figure.subplots(1, 2, sharey=True)
    for place, row in enumerate(table.itertuples()):
        look = looks[row.ensemble]
        if row.estimable:
            bars = (row.ci_low, row.ci_high, row.all_low, row.all_high)
            _draw_row(left, place, look, row.estimate, bars, row.exact)
            bars = (
                row.ci_low_minus_exact,
                row.ci_high_minus_exact,
                row.all_low_minus_exact,
                row.all_high_minus_exact,
            )
            _draw_row(right, place, look, row.estimate_minus_exact, bars, None)
        else:
            _refuse(left, place, row)
    _draw_references(left, 1.0, table)
    _draw_references(right, 0.0, table)
    right.spines["left"].set_visible(False)  # words run on into the other panel
    left.set_yticks(range(len(table)), [panels.short(look.label) for look in looks.values()])
    left.set_ylim(len(table) - 0.5, -0.5)
    left.set_xlabel("exponent of dₖ")
    right.set_xlabel("estimate − exact")
    for axes in (left, right):
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_formatter(panels.tick_text)
    _number_column(right, table)
    _limits(left, right, table)
    return figure


def _refuse(axes, place, row) -> None:
    """Say in the row why there is no exponent."""
    words = "not estimable"
    if row.reason == row.reason:
        # The cause; its consequence stands in the words beside the figure.
        words = "\n".join(textwrap.wrap(f"{words}: {row.reason.split(', so')[0]}", 34)[:2])
    text = axes.text(0.02, place, words, transform=axes.get_yaxis_transform(), va="center", fontsize=7.5)
    text.set(linespacing=0.95, in_layout=False)


def _draw_references(axes, height, table) -> None:
    """Draw a vertical line of reference, broken where a row holds words."""
    rows = [place for place, estimable in enumerate(table["estimable"]) if estimable]
    x, y = [], []
    for place in rows:
        x += [height, height, float("nan")]
        y += [place - 0.5, place + 0.5, float("nan")]
    axes.plot(x, y, color=style.INK, linewidth=0.8, alpha=style.MUTED, zorder=1, label="_reference")


def _draw_row(axes, place, look, estimate, bars, exact) -> None:
    low, high, all_low, all_high = bars
    for ends, width in (((all_low, all_high), 0.9), ((low, high), 2.4)):
        axes.plot(ends, [place, place], color=look.colour, linewidth=width, solid_capstyle="butt", label="_intervals")
    if exact is not None and exact == exact:
        axes.plot(
            [exact],
            [place],
            color=style.INK,
            marker="|",
            markersize=13,
            markeredgewidth=1.2,
            linestyle="none",
            label="_theory",
        )
    axes.plot(
        [estimate], [place], color=look.colour, marker=look.marker, markersize=4, linestyle="none", label=panels.POINTS
    )


def _number_column(axes, table) -> None:
    """Write each exponent with its standard error at the right edge, or that of the interquartile range."""
    twin = axes.secondary_yaxis("right")
    words = [
        numbers.with_error(row.estimate, row.se)
        if row.estimable
        else f"IQR {numbers.with_error(row.range_exponent, row.range_exponent_se)}"
        if row.range_exponent == row.range_exponent
        else "–"
        for row in table.itertuples()
    ]
    twin.set_yticks(range(len(table)), words)
    twin.tick_params(axis="y", length=0)
    twin.spines["right"].set_visible(False)


def _limits(left, right, table) -> None:
    from matplotlib.ticker import MaxNLocator

    shown = selection.finite(table.loc[table["estimable"], ["estimate", "all_low", "all_high", "exact"]])
    low, high = min(shown.min(initial=1.0), 1.0), max(shown.max(initial=1.0), 1.0)
    room = max(0.1 * (high - low), 0.01)
    left.set_xlim(low - room, high + room)
    apart = table[["all_low_minus_exact", "all_high_minus_exact"]].abs().max().max()
    reach = 1.15 * apart if apart > 0 else 0.01
    right.set_xlim(-reach, reach)
    left.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    right.xaxis.set_major_locator(MaxNLocator(3, symmetric=True))


def describe(frames) -> Description:
    """Put the figure into words."""
    table = data(frames)
    if table.empty:
        return Description(_NOTHING, _NOTHING, _NOTHING, "")
    told = table[table["estimable"]]
    return Description(_caption(told), _alt(table), f"{_one(told)} {_exact(told)}{_refused(table)}", _caveat())


def _caption(told) -> str:
    text = (
        "Exponent a of the power law Var(q·k) = c · d_k^a, fitted to the logarithms by weighted least squares with "
        "the simulated errors. Left: estimates with 95 % intervals (thick) and simultaneous ones (thin; Šidák's, all "
        f"{numbers.counted(len(told), 'interval')} hold at once in 95 % of runs); the vertical bars are the exponents "
        "that the same weighted fit gives to the exact variances, the line is 1. Right: estimate minus exact, on a "
        "finer scale. Numbers: estimate with its standard error in brackets. IQR: exponent of the interquartile range "
        "at large d_k, where the variance has no error; 0.5 corresponds to a variance proportional to d_k."
    )
    if len(told):
        points = numbers.count_range(told["n_points"])
        text += f" Each fit uses {points} head widths from d_k = {int(told['d_k_min'].min())} up."
    return text


def _spelled(rows, column="estimate") -> list[str]:
    return [
        f"{style.ensemble_label(row.ensemble)} {numbers.with_error(getattr(row, column), row.se)}"
        for row in rows.itertuples()
    ]


def _alt(table) -> str:
    rows = []
    for row in table.itertuples():
        label = style.ensemble_label(row.ensemble)
        if not row.estimable:
            rows.append(f"{label} not estimable{_range_words(row)}")
            continue
        exact = f" (exact {numbers.significant(row.exact, 5)})" if row.exact == row.exact else ""
        rows.append(f"{label} {numbers.with_error(row.estimate, row.se)}{exact}")
    return f"Forest plot of fitted exponents, standard errors in brackets: {'; '.join(rows)}."


def _one(told) -> str:
    """Say whose interval holds the exponent 1, and whose does not."""
    if told.empty:
        return "No exponent could be estimated."
    holds = selection.covers(told["ci_low"], told["ci_high"], 1.0)
    words = []
    if holds.any():
        words.append(
            "The 95 % interval of the exponent contains 1 for "
            f"{numbers.listing(selection.labels(told['ensemble'][holds]))}."
        )
    if not holds.all():
        lead = "It does not for" if holds.any() else "No 95 % interval of the exponent contains 1:"
        words.append(f"{lead} {numbers.listing(_spelled(told[~holds]))}.")
    return " ".join(words)


def _exact(told) -> str:
    told = told[told["exact"].notna()]
    inside = selection.covers(told["ci_low"], told["ci_high"], told["exact"])
    words = selection.coverage_words(int(inside.sum()), len(told), "exponent", "ensemble")
    missed = told[~inside]
    if len(missed):
        words += f" Outside: {numbers.listing(_spelled(missed))}."
        beyond = told[~selection.covers(told["all_low"], told["all_high"], told["exact"])]
        words += (
            f" Outside the simultaneous interval as well: {numbers.listing(selection.labels(beyond['ensemble']))}."
            if len(beyond)
            else " Every simultaneous interval contains it."
        )
    return words


def _range_words(row) -> str:
    """Say the exponent of the interquartile range, where there is one."""
    if row.range_exponent != row.range_exponent:
        return ""
    spelled = numbers.with_error(row.range_exponent, row.range_exponent_se)
    return f", interquartile range {spelled} from d_k = {int(row.range_d_k_min)} up"


def _refused(table) -> str:
    refused = table[~table["estimable"]]
    if refused.empty:
        return ""
    rows = [
        style.ensemble_label(row.ensemble)
        + (f" ({row.reason}{_range_words(row)})" if row.reason == row.reason else _range_words(row))
        for row in refused.itertuples()
    ]
    return f" Not estimable: {numbers.listing(rows)}."


def _caveat() -> str:
    return (
        "A power law is only a summary where the true law is not one: for variances such as a·d_k + b·d_k² the "
        "exponent depends on which d_k were simulated and how precisely, which is why the comparison is with the "
        "same fit to the exact variances, and not with a round number."
    )
