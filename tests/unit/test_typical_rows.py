"""Typical rows: sorted weights of independent rows, against real queries and keys, and what the page makes of them."""

import numpy as np
import pandas as pd
import pytest
import synthetic_results as synthetic
from figure_cases import describe

from sqrtdk.figures.catalogue import load
from sqrtdk.studies import typical_rows
from sqrtdk.words import numbers

RULES = ("none", "1/sqrt(d_k)")


def table(d_k=(4, 64), n_keys=(8, 64), rules=RULES, n_logits=40_000, seed=1) -> pd.DataFrame:
    return pd.DataFrame(typical_rows.typical_rows(d_k, n_keys, rules, n_logits, seed))


def test_one_key_has_all_the_weight():
    row = table((2,), (1,)).iloc[0]
    assert (row["estimate"], row["se"], row["q10"], row["q90"]) == (1.0, 0.0, 1.0, 1.0)


def test_weights_add_up_and_fall():
    for (_, n, _), cell in table().groupby(["d_k", "n_keys", "scaling"]):
        assert cell["estimate"].sum() == pytest.approx(1, abs=1e-12)
        assert cell["last_rank"].tolist() == [*range(1, min(n, 16) + 1), *([n] if n > 16 else [])]
        ranked = cell[cell["first_rank"] == cell["last_rank"]]
        assert ranked["estimate"].is_monotonic_decreasing
        assert (ranked["q10"] <= ranked["median"]).all()
        assert (ranked["median"] <= ranked["q90"]).all()


@pytest.mark.slow
def test_rows_are_those_of_independent_normal_queries_and_keys():
    rng = np.random.default_rng(3)
    found = table((4, 64), (64,), n_logits=200_000)
    for (d_k, rule), cell in found.groupby(["d_k", "scaling"]):
        q, k = rng.standard_normal((4000, 1, d_k)), rng.standard_normal((4000, 64, d_k))
        logits = (q * k).sum(axis=2) * (1 if rule == "none" else d_k**-0.5)
        weights = np.sort(np.exp(logits - logits.max(axis=1, keepdims=True)))[:, ::-1]
        weights /= weights.sum(axis=1, keepdims=True)
        top, rest = weights[:, :16], weights[:, 16:].sum(axis=1)
        expected = np.column_stack([top, rest])
        se = np.hypot(expected.std(axis=0) / 4000**0.5, cell["se"])
        assert (abs(expected.mean(axis=0) - cell["estimate"]) < 4.5 * se).all()
        spread = expected.std(axis=0) / cell["n_rows"] ** 0.5
        assert cell["se"].to_numpy() == pytest.approx(spread.to_numpy(), rel=0.25)
        low, high = np.quantile(expected[:, 0], (0.1, 0.9))
        assert cell.iloc[0][["q10", "q90"]].tolist() == pytest.approx([low, high], rel=0.1, abs=0.01)


def test_a_cell_does_not_depend_on_what_else_is_asked_for():
    one, many = table((64,), (64,), RULES[:1]), table((1, 4, 64), (8, 64))
    cell = (many["d_k"] == 64) & (many["n_keys"] == 64) & (many["scaling"] == "none")
    pd.testing.assert_frame_equal(one, many[cell].reset_index(drop=True))
    assert table(seed=2)["estimate"].tolist() != table()["estimate"].tolist()


def test_effort_sets_the_number_of_rows_between_bounds():
    assert set(table((4,), (64,), n_logits=10)["n_rows"]) == {typical_rows.MIN_ROWS}
    assert set(table((4,), (64,), n_logits=64_000)["n_rows"]) == {1000}
    assert set(table((4,), (2,), n_logits=10**6)["n_rows"]) == {typical_rows.MAX_ROWS}


# ---- the figure ------------------------------------------------------------------------------------------------------


def test_the_words_of_the_figure_follow_the_numbers():
    frames = synthetic.frames()
    words = describe("typical-rows", frames)
    assert "half of the attention takes one key without a scale" in words.reading
    rows = frames["typical_rows"]
    top = rows[(rows["d_k"] == 256) & (rows["n_keys"] == 64) & (rows["scaling"] == "none")].iloc[0]
    assert f"{numbers.with_error(top['estimate'], top['se'])} over 64 keys" in words.alt
    turned = rows.assign(scaling=rows["scaling"].replace({"none": "1/d_k", "1/d_k": "none"}))
    reading = describe("typical-rows", {"typical_rows": turned}).reading
    assert "more than 16 keys without a scale" in reading


def test_no_row_is_said_and_not_an_error():
    frames = {"typical_rows": synthetic.frames()["typical_rows"].iloc[:0]}
    assert describe("typical-rows", frames).caption == "No typical row was drawn."
    assert load("typical-rows").draw(frames).get_axes()[0].texts[0].get_text() == "No typical row was drawn."


def test_weights_below_the_panel_are_left_out():
    shown = load("typical-rows").data(synthetic.frames())
    assert shown["estimate"].min() >= 1e-4
    assert shown["rank"].max() == 16
