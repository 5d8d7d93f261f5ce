"""Variants of attention in a softmax cell: rules whose factor depends on the scores, and score transforms."""

import numpy as np
import pytest
from test_saturation import cell

from sqrtdk.rows import softmax
from sqrtdk.studies import saturation
from sqrtdk.variants.notation import parse


def test_a_transform_that_does_nothing_gives_the_numbers_of_the_plain_rule():
    plain, capped = (cell(8, [16], scalings=[text], n_logits=20_000) for text in ("none", "none | soft_cap(cap=1e6)"))
    for ours, theirs in zip(capped[0] + capped[1], plain[0] + plain[1], strict=True):
        assert ours["measure"] == theirs["measure"]
        if ours["estimate"] is not None and ours["measure"] != "saturated_share":
            assert ours["estimate"] == pytest.approx(theirs["estimate"], rel=1e-5), ours
            assert ours["se"] == pytest.approx(theirs["se"], rel=1e-4), ours


def test_a_variant_changes_no_number_of_a_constant_rule():
    alone = cell(8, [16], scalings=["1/sqrt(d_k)"], n_logits=20_000)
    beside = cell(8, [16], scalings=["row_std", "1/sqrt(d_k)"], n_logits=20_000)
    for ours, theirs in zip(alone, beside, strict=True):
        assert ours == [row for row in theirs if row["scaling"] == "1/sqrt(d_k)"]


@pytest.mark.parametrize(
    "text", ["row_std", "row_max_abs", "global_mean_abs", "qk_norm(g=4)", "none | hard_clip(limit=2)"]
)
def test_gradients_of_query_and_keys_agree_with_finite_differences(text):
    rng = np.random.default_rng(5)
    q, k, v = rng.standard_normal((1, 2, 3)), rng.standard_normal((1, 5, 3)), rng.standard_normal((1, 2, 5))
    variant = parse(text)

    def loss(q, k, rows=slice(None)):
        p = softmax.softmax(variant.logits(q @ k.swapaxes(-1, -2), q, k))
        return float(np.sum((v * p)[:, rows]))

    def difference(at, of):
        found = np.zeros_like(at)
        for i in np.ndindex(at.shape):
            step = np.zeros_like(at)
            step[i] = 1e-6
            found[i] = (of(at + step) - of(at - step)) / 2e-6
        return found

    scores = q @ k.swapaxes(-1, -2)
    scaled = variant.scale(scores, q, k)
    row = softmax.rows(variant.transform(scaled))
    arrived = v - np.take_along_axis(v, row.top[..., None], axis=-1)
    _, query, keys = saturation._variant_norms(variant, row, arrived, scores, scaled, q, k, 2)
    expected = np.sqrt(np.sum(difference(q, lambda q: loss(q, k)) ** 2, axis=-1))
    np.testing.assert_allclose(query, expected, rtol=2e-5)
    if not variant.scaling.rows:  # of a whole head a row's loss reaches the keys through all scores
        one = [np.sqrt(np.sum(difference(k, lambda k, i=i: loss(q, k, [i])) ** 2)) for i in range(2)]
        np.testing.assert_allclose(keys[0], one, rtol=2e-5)
