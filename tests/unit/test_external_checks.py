"""Formulas and curves that others published, against this library's own averages."""

import math

import numpy as np
import pytest

from sqrtdk.rows import softmax
from sqrtdk.sampling import streams
from sqrtdk.theory import asymptotics, random_energy
from sqrtdk.theory.energy_grid import GroupedRows
from sqrtdk.variants.notation import parse


def entropy_bound(norm, n_keys):
    """Return the least entropy of softmax over logits of this Euclidean norm (Zhai et al. 2023, arXiv:2303.06296)."""
    beta = math.exp(-norm * math.sqrt(n_keys / (n_keys - 1)))
    rest = 1 + (n_keys - 1) * beta
    return math.log(rest) + norm * math.sqrt(n_keys * (n_keys - 1)) * beta / rest


@pytest.mark.parametrize("n_keys", [2, 8, 256])
@pytest.mark.parametrize("norm", [0.1, 3.0, 30.0])
def test_no_row_has_less_entropy_than_the_bound_which_one_row_has(n_keys, norm):
    z = np.random.default_rng(1).standard_normal((4000, n_keys))
    # Some rows near the extreme one, a single large logit among equals.
    z[:1000, 0] += 10 * n_keys
    z -= z.mean(axis=1, keepdims=True)
    z *= norm / np.linalg.norm(z, axis=1, keepdims=True)
    bound = entropy_bound(norm, n_keys)
    assert softmax.entropy(softmax.rows(z)).min() >= bound * (1 - 1e-12)
    extreme = np.full((1, n_keys), -norm / math.sqrt(n_keys * (n_keys - 1)))
    extreme[0, 0] = norm * math.sqrt((n_keys - 1) / n_keys)
    assert softmax.entropy(softmax.rows(extreme))[0] == pytest.approx(bound, rel=1e-9)


def test_similarity_of_attended_tokens_follows_the_random_energy_model():
    """Giorlandino & Goldt 2025 (arXiv:2505.24333): β√ln T is the spread of the logits of tokens of cosine p.

    The overlap of two attended tokens is p + (1 − p) Σa², and the limit p + (1 − p)(1 − β_c/β), β_c = √(2/(1 − p)).
    """
    n_keys = 2048
    for beta, value in ((2, 0.4077), (3, 0.5920), (5, 0.7521)):
        exact = random_energy.averages(n_keys, beta * math.sqrt(math.log(n_keys))).participation
        assert exact == pytest.approx(value, abs=1e-4)
    for p in (0.0, 0.5):
        critical, beta = math.sqrt(2 / (1 - p)), 5.0
        limit, errors = p + (1 - p) * (1 - critical / beta), []
        for n in (2048, 2**20):
            # What all logits of a row have in common is nothing to softmax.
            spread = beta * math.sqrt((1 - p) * math.log(n))
            assert p + (1 - p) * float(asymptotics.frozen(n, np.array([spread]))["participation_ratio"][0]) == (
                pytest.approx(limit, rel=1e-9)
            )
            errors.append(p + (1 - p) * random_energy.averages(n, spread).participation - limit)
        assert 0 < errors[1] < errors[0] < 0.06


@pytest.mark.parametrize("n_keys", [10, 1000, 10**6])
def test_ssmax_keeps_a_planted_key_at_any_number_of_keys(n_keys):
    """Nakanishi 2025 (arXiv:2501.19399), figure 1: all logits −2 but one of 3, and s = 0.43."""
    z = np.full((1, n_keys), -2.0)
    z[0, -1] = 3.0
    ssmax, plain = (softmax.softmax(parse(rule).constant(1, n_keys) * z)[0, -1] for rule in ("ssmax(s=0.43)", "none"))
    assert ssmax == pytest.approx(1 / (1 + (n_keys - 1) * n_keys ** (-0.43 * 5)), rel=1e-9)
    assert ssmax > 0.93
    assert plain == pytest.approx(1 / (1 + (n_keys - 1) * math.exp(-5)), rel=1e-9)


def test_ssmax_freezes_random_logits_as_keys_are_added():
    """A spread of s ln n passes √(2 ln n): of random logits more and more of the weight goes to few keys."""
    found = []
    for n_keys in (100, 10_000, 10**6):
        spread = parse("ssmax(s=0.43)").constant(1, n_keys)
        found.append(random_energy.averages(n_keys, spread).participation)
        if n_keys > 1000:
            ((row, _),) = GroupedRows(n_keys, [spread])(streams.generator(2, "ssmax", n_keys), 8000)
            values = softmax.participation_ratio(row)
            assert abs(values.mean() - found[-1]) < 4.5 * values.std() / math.sqrt(len(values))
    assert found == sorted(found)
    assert found[0] < 0.2 < found[-1]
    assert spread > asymptotics.critical_spread(10**6)
    # With the root of ln n in its place the rows stay as they are.
    rooted = [random_energy.averages(n, math.sqrt(math.log(n))).participation for n in (10_000, 10**6)]
    assert rooted[1] < rooted[0]
