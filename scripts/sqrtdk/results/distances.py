"""Estimates of a run held against their exact values, each in its own standard errors."""

import pandas as pd

from sqrtdk.results.picking import simulated, truth
from sqrtdk.statistics import calibration
from sqrtdk.statistics.estimates import UNSTEADY

QUANTITIES = ("mean", "variance", "within_row_variance", "excess_kurtosis")
REPEATED = ("normalised_entropy", "jacobian_trace")
"""Measures that are another one, divided by a number or taken from 1."""
COLUMNS = ["unit", "ensemble", "d_k", "quantity", "n_blocks", "z", "score", "trusted"]


def moments(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the distance of each estimate of the moments from its exact value, a row for each, with COLUMNS.

    z is in standard errors, score is the same as that of a normal number, and unit says what errs together. A kurtosis
    is left out where its error is known to be infinite. Where only its own sample says that the error cannot be trusted
    it counts: to choose by the sample keeps those without rare large values, whose errors are too small.
    """
    table, parts = simulated(frame), []
    for quantity in QUANTITIES:
        z = (table[quantity] - table[f"exact_{quantity}"]) / table[f"{quantity}_se"].where(table[f"{quantity}_se"] > 0)
        part = table[["ensemble", "d_k", "n_blocks"]].assign(quantity=quantity, z=z.astype(float), trusted=True)
        if quantity == "excess_kurtosis":
            part["trusted"] = truth(table["kurtosis_trusted"])
            part = part[part["trusted"] | (table["reason"] == UNSTEADY)]
        parts.append(part[part["z"].notna()])
    found = pd.concat(parts, ignore_index=True)
    # Where two quantities are one by the way that they are drawn.
    found = found[~found.assign(z=found["z"].round(9)).duplicated(["ensemble", "d_k", "z"])]
    return _scored(found.assign(unit=found["ensemble"] + " " + found["d_k"].astype(str)))


def rows(saturation: pd.DataFrame, gradients: pd.DataFrame) -> pd.DataFrame:
    """Return the same of averages over attention rows; what is one value under several names or rules counts once."""
    rows = pd.concat(
        [frame.assign(table=name) for name, frame in (("softmax", saturation), ("gradients", gradients))],
        ignore_index=True,
    )
    rows = rows[rows["theory"].notna() & (rows["se"] > 0) & ~rows["measure"].isin(REPEATED)]
    rows = rows.drop_duplicates(["ensemble", "d_k", "n_keys", "measure", "estimate", "se"])
    unit = rows["ensemble"].astype(str) + " " + rows["d_k"].astype(str) + " " + rows["n_keys"].astype(str)
    z = (rows["estimate"] - rows["theory"]) / rows["se"]
    return _scored(rows.assign(unit=unit, quantity=rows["table"], z=z, trusted=truth(rows["trusted"])))


def _scored(table: pd.DataFrame) -> pd.DataFrame:
    scores = calibration.normal_scores(table["z"].to_numpy(float), table["n_blocks"].to_numpy(float))
    return table.assign(score=scores, trusted=table["trusted"].astype(bool))[COLUMNS]
