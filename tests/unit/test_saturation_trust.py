"""When an error of the saturation stage is trusted, and when it is precise enough."""

import numpy as np
import pytest
from test_saturation import cell

from sqrtdk.rows import plan
from sqrtdk.sampling import streams
from sqrtdk.studies import saturation


def test_pilot_is_discarded(monkeypatch):
    """It has its own streams, and only the number of blocks comes from it."""
    names_used, shares = [], []

    def recorded(*identity, original=streams.generator):
        names_used.append(identity[3:])
        return original(*identity)

    def fixed(*arguments, original=plan.plan):
        shares.append(original(*arguments))
        return shares[-1]

    monkeypatch.setattr(streams, "generator", recorded)
    monkeypatch.setattr(plan, "plan", fixed)
    first = cell(8, [16], n_logits=40_000)
    parts = ("qk", "upstream")
    assert names_used == [*((8, 16, "pilot", part) for part in parts), *((8, 16, part) for part in parts)]
    # The same number of blocks without a pilot gives the same numbers.
    monkeypatch.setattr(plan, "plan", lambda *arguments: shares[0])
    assert cell(8, [16], n_logits=40_000) == first


@pytest.mark.parametrize("sigma", [0.3, 3.0])
def test_an_error_is_trusted_while_its_interval_misses_less_than_5_percent_on_either_side(sigma):
    # Lognormal blocks: the means of 100 of them are nearly normal, or anything but.
    rng = np.random.default_rng(20170612)
    blocks = np.exp(sigma * rng.standard_normal((2000, 100)))
    deviation = (blocks.mean(axis=1) - np.exp(sigma**2 / 2)) / (blocks.std(axis=1, ddof=1) / 10)
    missed = max(np.mean(deviation > 1.984), np.mean(deviation < -1.984))
    trusted = np.mean([saturation.is_nearly_normal(row) for row in blocks])
    assert (missed < 0.05 and trusted > 0.9) if sigma < 1 else (missed > 0.3 and trusted < 0.02)


def test_blocks_without_spread_are_trusted():
    assert saturation.is_nearly_normal(np.zeros(40))
    assert saturation.is_nearly_normal(np.full(40, 0.3))


def test_precise_says_whether_the_goal_is_met():
    saturations, gradients = cell(64, [64], scalings=["none", "1/sqrt(d_k)"], n_logits=30_000)
    found = {}
    for row in saturations + gradients:
        goal = plan.GOALS.get(row["measure"])
        assert row["precise"] is (None if goal is None else row["trusted"] and row["se"] <= goal * row["estimate"])
        found.setdefault(row["precise"], set()).add(row["measure"])
    assert {True, False, None} == set(found)
    assert {"entropy", "participation_ratio", "jacobian_frobenius", "grad_query_values"} <= found[True] | found[False]
    assert {"max_weight", "saturated_share", "jacobian_spectral"} <= found[None]
