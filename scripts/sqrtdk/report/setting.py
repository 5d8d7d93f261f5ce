"""What the headline numbers are taken at: the cell of the run that is nearest to the question."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from sqrtdk.results.grid import nearest
from sqrtdk.results.picking import simulated
from sqrtdk.words.sentences import Sentence

WANTED_D_K = 64
"""The head width of the question; the nearest one of the run stands in where it is not simulated."""
WANTED_N_KEYS = 64
WANTED_SCALING = "1/sqrt(d_k)"


@dataclass(frozen=True)
class Setting:
    """What the headline numbers are taken at: the nearest to what is asked for that the run has."""

    ensemble: str
    d_k: int
    n_keys: int
    scaled: str | None
    plain: str | None

    @property
    def sentences(self) -> list[Sentence]:
        """Say where the run cannot answer exactly what is asked."""
        asked = (("d_k", WANTED_D_K, self.d_k), ("n_keys", WANTED_N_KEYS, self.n_keys))
        return [
            Sentence(f"setting.{name}", {"wanted": str(wanted), "used": str(used)})
            for name, wanted, used in asked
            if used != wanted
        ]


def choose(moments: pd.DataFrame, saturation: pd.DataFrame, specs: dict[str, dict[str, Any]]) -> Setting:
    """Choose what the headline is about: standard Gaussian components if simulated, d_k and n_keys nearest to 64.

    Raises ValueError where nothing was simulated.
    """
    names = list(dict.fromkeys(simulated(moments)["ensemble"]))
    if not names:
        raise ValueError("the moments hold no simulated ensemble")
    # Of some ensembles the moments alone are measured.
    measured = set(saturation["ensemble"].unique())
    names = [name for name in names if name in measured] or names
    standard = [name for name in names if _is_standard_gaussian(specs.get(name, {}))]
    ensemble = (standard or names)[0]
    here = saturation[saturation["ensemble"] == ensemble]
    widths = set(moments.loc[moments["ensemble"] == ensemble, "d_k"]) & set(here["d_k"])
    if not widths:
        raise ValueError(f"the softmax results have no row for the ensemble {ensemble}")
    rules = list(dict.fromkeys(here["scaling"]))
    others = [rule for rule in rules if rule != "none"]
    return Setting(
        ensemble,
        nearest(widths, WANTED_D_K),
        nearest(here["n_keys"], WANTED_N_KEYS),
        WANTED_SCALING if WANTED_SCALING in others else (others or [None])[0],
        "none" if "none" in rules else None,
    )


def _is_standard_gaussian(spec: dict[str, Any]) -> bool:
    standard = {"query_mean": 0, "key_mean": 0, "query_sd": 1, "key_sd": 1}
    return spec.get("family") == "gaussian" and all(spec.get(key, value) == value for key, value in standard.items())
