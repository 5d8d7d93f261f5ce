"""The results of a run as the tests of claims read them: one row at a time, by what it is and where in the grid."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sqrtdk.claims.core import Measured, Missing
from sqrtdk.results import picking
from sqrtdk.results.grid import nearest
from sqrtdk.statistics import estimates, shares
from sqrtdk.statistics.intervals import log_error, t_quantile
from sqrtdk.training.cells import halved

if TYPE_CHECKING:
    import pandas as pd

Spec = Mapping[str, Any]
"""The specification of an ensemble: its family and the parameters of that."""
FARTHEST = 4.0
"""A width or a number of keys that the run lacks is stood in for by one within this factor, and the ledger says so."""
REFERENCE = "1/sqrt(d_k)"
SHIPPED = "shipped_"
"""What stands before the name of a table that ships with the project."""
TINY = 1e-12
"""Smaller than any gradient that is logged and not 0."""
SHARE = (0.0, 1.0)
"""Where a share can lie."""
GRID = ("d_k", "n_keys")
BLOCKS = ("n_blocks", "n_stacks")
"""Columns that count the independent values behind an error."""


def means(spec: Spec) -> tuple[float, float]:
    """Return the means of the components of queries and of keys."""
    return spec.get("query_mean", 0), spec.get("key_mean", 0)


def spreads(spec: Spec) -> tuple[float, float]:
    """Return the standard deviations of the components of queries and of keys."""
    return spec.get("query_sd", 1), spec.get("key_sd", 1)


def _gaussian(spec: Spec) -> bool:
    return spec["family"] == "gaussian"


def _equicorrelated(spec: Spec) -> bool:
    return spec["family"] == "equicorrelated"


ROLES: dict[str, Callable[[Spec], bool]] = {
    "standard": lambda spec: _gaussian(spec) and means(spec) == (0, 0) and spreads(spec) == (1, 1),
    "centred": lambda spec: _gaussian(spec) and means(spec) == (0, 0) and spreads(spec) != (1, 1),
    "correlated on one side": lambda spec: _equicorrelated(spec) and (spec["query_rho"] == 0) != (spec["key_rho"] == 0),
    "correlated": lambda spec: _equicorrelated(spec) and spec["query_rho"] * spec["key_rho"] > 0,
    "shared tokens": lambda spec: spec["family"] == "shared_tokens" and spec["cosine"] > 0,
}
"""What an ensemble has to be for a test, since a configuration may give any name to any distribution."""


def _share(share: float, n: int) -> Measured:
    # The error is that of two more in and two out, and so is the middle of the interval (Agresti and Coull).
    middle, se = shares.smoothed(share, n)
    return Measured(share, se, n - 1, ends=SHARE, shift=middle - share)


class Row:
    """One row of a result table, and where in the grid it was taken: name -> (used, asked for)."""

    def __init__(
        self,
        table: str,
        values: Mapping[str, Any],
        at: Mapping[str, tuple[int, int]],
        shipped: bool = False,
        longer: bool = False,
    ) -> None:
        self.table, self.values, self.at, self.shipped, self.longer = table, values, at, shipped, longer

    def number(self, column: str) -> float:
        """Return a number; raises Missing for an empty cell."""
        value = self.values.get(column)
        if value is None or isinstance(value, str) or math.isnan(value):
            raise Missing(f"{self.table}: {column} of {self.place}")
        return float(value)

    @property
    def place(self) -> str:
        """What the row is and where in the grid it was taken, in words of the table."""
        named = (f"{name} = {value}" for name, value in self.values.items() if isinstance(value, str))
        return ", ".join([*named, *(f"{name} = {used}" for name, (used, _) in self.at.items())])

    def estimate(self, value: str = "estimate", se: str = "se", **more: Any) -> Measured:
        """Return a number with its standard error; one without an error decides nothing."""
        error = self.values.get(se)
        return Measured(self.number(value), math.nan if error is None else float(error), self.dof, at=self.at, **more)

    @property
    def dof(self) -> float:
        """The degrees of freedom of its errors; infinite where no column counts them."""
        counts = [self.values[name] - 1 for name in BLOCKS if self.values.get(name, math.nan) > 1]
        counts += [self.values["ci_dof"]] if self.values.get("ci_dof", math.nan) > 0 else []
        return float(counts[0]) if counts else math.inf

    def exact(self, value: str = "estimate") -> Measured:
        """Return a number in which no chance is left."""
        return Measured(self.number(value), exact=True, at=self.at)

    def geometric(self) -> Measured:
        """Return a positive number whose standard error is that of its logarithm times it."""
        return self.estimate(log=True)

    def between(self, value: str, low: str, high: str, dof: float = math.inf) -> Measured:
        """Return a positive number whose 95 % interval of Student's t on the log scale is given."""
        centre, least, most = (self.number(name) for name in (value, low, high))
        if not 0 < least <= most < math.inf:
            raise Missing(f"{self.table}: an interval of {value} of {self.place}")
        se = centre * log_error(least, most, dof)
        return Measured(centre, se, dof, log=True, at=self.at, shipped=self.shipped, longer=self.longer)

    def difference(self, value: str, low: str, high: str, dof: float = math.inf) -> Measured:
        """Return a number whose 95 % interval of Student's t is given."""
        centre, least, most = (self.number(name) for name in (value, low, high))
        if not -math.inf < least <= most < math.inf:
            raise Missing(f"{self.table}: an interval of {value} of {self.place}")
        se = (most - least) / (2 * float(t_quantile(dof)))
        return Measured(centre, se, dof, at=self.at, shipped=self.shipped, longer=self.longer)


class Results:
    """Result tables by name, data frames, and the specifications of the ensembles by name.

    Tables that ship with the project stand under `shipped_` and their name. A test sees only the tables that its claim
    names; another one is a KeyError.
    """

    def __init__(
        self, frames: Mapping[str, "pd.DataFrame"], ensembles: Mapping[str, Spec], tables: Iterable[str] | None = None
    ) -> None:
        self.frames, self.ensembles = frames, ensembles
        self.tables = set(frames if tables is None else tables)

    def only(self, tables: Iterable[str]) -> "Results":
        """Return the same results, of which only these tables are seen."""
        return Results(self.frames, self.ensembles, tables)

    def frame(self, table: str) -> "pd.DataFrame":
        """Return a whole table; raises Missing where it is empty or not there."""
        if table not in self.tables:
            raise KeyError(f"the claim does not say that it reads {table}")
        if table not in self.frames or self.frames[table].empty:
            raise Missing(table)
        return self.frames[table]

    def ensemble(self, *roles: str) -> str:
        """Return the first ensemble that is what a test needs, or else what would do as well."""
        for role in roles:
            for name, spec in self.ensembles.items():
                if ROLES[role](spec):
                    return name
        raise Missing(f"ensembles: {roles[0]}")

    def unit_variance(self, *roles: str) -> float:
        """Return the variance of q_i times that of k_i of an ensemble of Gaussian components."""
        return math.prod(float(sd) ** 2 for sd in spreads(self.ensembles[self.ensemble(*roles)]))

    def row(self, table: str, d_k: int | None = None, n_keys: int | None = None, **setting: Any) -> Row:
        """Return the row at these values, at the width and number of keys nearest to those asked for.

        Raises Missing where there is none, or none within a factor FARTHEST.
        """
        rows = self.select(table, **setting)
        at: dict[str, tuple[int, int]] = {}
        for name, wanted in zip(GRID, (d_k, n_keys), strict=True):
            if wanted is not None:
                used = nearest(rows[name], wanted)
                if not 1 / FARTHEST <= used / wanted <= FARTHEST:
                    raise Missing(f"{table}: {name} = {wanted}")
                rows = rows[rows[name] == used]
                at[name] = used, wanted
        return Row(table, rows.iloc[0].to_dict(), at)

    def select(self, table: str, **setting: Any) -> "pd.DataFrame":
        """Return the rows of a table at these values; raises Missing where there is none."""
        rows = picking.at(self.frame(table), **setting)
        if rows.empty:
            raise Missing(f"{table}: {', '.join(f'{column} = {value}' for column, value in setting.items())}")
        return rows

    def share(self, truth: Any) -> Measured:
        """Return the share of independent cases, one value of `truth` each, of which something is true."""
        return _share(float(truth.mean()), len(truth))

    def share_of_heads(self, truth: "pd.Series", dumps: "pd.Series") -> Measured:
        """Return the mean over models of the share of their heads of which something is true.

        truth, dumps: one value for each head. A model is one observation; of a single model, each head is.
        """
        heads = self.frame("real_heads")
        model_of = dict(zip(heads["dump"], heads["model"], strict=True))
        by_model = truth.groupby(dumps.map(lambda dump: model_of.get(dump, dump))).mean()
        if len(by_model) < 2:
            return self.share(truth)
        value, se = estimates.mean(by_model.to_numpy())
        # Where all agree, their number alone says how sure that is.
        return Measured(value, se, len(by_model) - 1, ends=SHARE) if se > 0 else _share(value, len(by_model))

    def check(self, name: str, **setting: Any) -> Row:
        """Return a row of claim_checks.csv, exactly where it is asked for."""
        row = self.row("claim_checks", check=name, **setting)
        return Row(row.table, row.values, {grid: (int(row.values[grid]),) * 2 for grid in GRID if row.values[grid] > 0})

    def trained(
        self, table: str, task: str, scaling: str, d_k: int, prefixes: tuple[str, ...] = ("", SHIPPED), **setting: Any
    ) -> Row:
        """Return a row of a summary of training: of this run, else of the runs that ship with the project.

        The order of `prefixes` says which comes first. Of several experiments on a task that have it, that of the
        longest runs counts, and of equals the first. A best rate that is the first or the last one tried says nothing.
        """
        missing: Missing | None = None
        for prefix in prefixes:
            try:
                steps = self._steps(prefix, task)
                found = self.select(f"{prefix}{table}", task=task, scaling=scaling, **setting)
                longest = steps[steps.index.isin(found["experiment"])].idxmax()
                # The same look-up, among the rows of that experiment.
                row = Results({table: found[found["experiment"] == longest]}, {}).row(table, d_k=d_k)
            except (Missing, ValueError) as error:
                missing = missing or Missing(str(error))
                continue
            if str(row.values["interior"]).lower() != "true":
                missing = missing or Missing(f"{prefix}{table}: a best rate of {scaling} within those tried")
                continue
            row.shipped, row.longer = bool(prefix), bool(prefix) and steps[longest] > self._steps_or("", task, math.inf)
            return row
        raise missing or Missing(table)

    def _steps(self, prefix: str, task: str) -> "pd.Series":
        summary = self.select(f"{prefix}training_summary", task=task)
        return summary.groupby("experiment", sort=False)["steps"].max()

    def _steps_or(self, prefix: str, task: str, otherwise: float) -> float:
        try:
            return float(self._steps(prefix, task).max())
        except Missing:
            return otherwise

    def against_reference(self, scaling: str, comparison: str, d_k: int, task: str = "recall") -> Measured:
        """Return how a rule differs from 1/√d_k in loss, right answers or steps, each rule at its best rate.

        Each half of the seeds was given the rate that the other half chose.
        """
        row = self.trained("training_verdicts", task, scaling, d_k, comparison=comparison)
        dof = halved(int(row.number("n_seeds")))
        read = row.between if row.values["unit"] == "ratio" else row.difference
        found = read("estimate", "low", "high", dof=dof)
        return dataclasses.replace(found, ends=(-1.0, 1.0)) if row.values["unit"] == "share" else found

    def reached(self, scaling: str, d_k: int, task: str) -> Measured:
        """Return the share of the runs of a rule that learn a task, at its fastest rate; the longest come first."""
        longer = self._steps_or(SHIPPED, task, 0.0) > self._steps_or("", task, 0.0)
        row = self.trained("training_summary", task, scaling, d_k, (SHIPPED, "") if longer else ("", SHIPPED))
        found = _share(row.number("share_reached"), int(row.number("n_seeds")))
        return dataclasses.replace(found, at=row.at, shipped=row.shipped, longer=row.longer)
