"""Every family, whoever adds it: its sampler against its own exact law, and a family that is not whole is refused."""

import dataclasses
import math
import re
from collections.abc import Mapping

import numpy as np
import pytest
from ensemble_cases import away, draw_scores, spec_id, widths, with_every_family

from sqrtdk.sampling import ensembles, streams
from sqrtdk.sampling.ensembles import base
from sqrtdk.words import mathml

TELLING = [
    {"family": "gaussian"},
    {"family": "gaussian", "query_mean": 0.5, "key_mean": -0.25, "query_sd": 1.5, "key_sd": 0.8},
    {"family": "laplace"},
    {"family": "laplace", "query_mean": 0.5, "key_sd": 2},
    {"family": "student_t", "df": 10},
    {"family": "lognormal", "sigma": 0.3},
    {"family": "lognormal", "sigma": 0.3, "query_mean": 0.4, "key_sd": 2},
    {"family": "sparse", "p": 0.2},
    {"family": "sparse", "p": 1},
    {"family": "equicorrelated", "query_rho": 0.3, "key_rho": 0.3},
    {"family": "equicorrelated", "query_rho": -0.02, "key_rho": 0.5},
    {"family": "ar1", "query_phi": 0.8, "key_phi": 0.5},
    {"family": "ar1", "query_phi": 0.9, "key_phi": -0.9},
    {"family": "power_law_correlation", "query_alpha": 0.25, "key_alpha": 0.25},
    {"family": "power_law_correlation", "query_alpha": 0.1, "key_alpha": 2},
    {"family": "power_law_spectrum", "query_b": 0.75, "key_b": 0.75},
    {"family": "power_law_spectrum", "query_b": 1.5, "key_b": 0},
    {"family": "low_rank_shared", "rank": 2},
    {"family": "low_rank_gaussian", "rank": 3},
    {"family": "low_rank_independent", "rank": 1},
    {"family": "low_rank_independent", "rank": 4},
    {"family": "outliers_aligned", "scale": 3},
    {"family": "outliers_aligned", "n_outliers": 2, "scale": 0.5},
    {"family": "outliers_misaligned", "scale": 3},
    {"family": "scale_mixture", "query_sigma": 0.2, "key_sigma": 0.1},
    {"family": "multivariate_t", "df": 14},
    {"family": "aligned", "rho": 0.5},
    {"family": "aligned", "rho": -1},
    {"family": "shared_tokens", "cosine": 0},
    {"family": "shared_tokens", "cosine": 0.7},
    {"family": "random_weights", "d_model": 3},
    {"family": "random_weights"},
    {"family": "raw_tokens", "d_model": 4},
    {"family": "rmsnorm_tokens", "d_model": 1},
    {"family": "rmsnorm_tokens", "d_model": 4},
    {"family": "layernorm_tokens", "d_model": 4},
    {"family": "fixed_weights", "d_model": 5},
    {"family": "fixed_weights_rmsnorm", "d_model": 5},
    {"family": "fixed_weights_layernorm", "d_model": 5},
    {"family": "fixed_weights_layernorm"},
    {"family": "l2norm"},
    {"family": "l2norm", "scale": 3},
    {"family": "rope_aligned", "rho": 0.6, "offset": 3},
    {"family": "rope_aligned", "rho": -1, "offset": 3},
    {"family": "rope_equicorrelated", "query_rho": 0.3, "key_rho": 0.5, "offset": 2},
    {"family": "rope_equicorrelated", "query_rho": -0.02, "key_rho": 0.5, "offset": 100},
    {"family": "gamma", "a": 2.5},
    {"family": "logistic"},
]
"""Parameters at which mistakes show: small widths and ranks, both signs, means beside zero."""
SPECS = with_every_family(TELLING)
CASES = [
    (spec, d_k)
    for spec in SPECS
    for ensemble in [ensembles.build(spec)]
    for d_k in widths(ensemble, 2, 6, 32)
    if not ensemble.undefined_at(d_k)
]
WIDE = 2**11


def case_id(value: object) -> str | None:
    return spec_id(value) if isinstance(value, Mapping) else None


def planned_at(ensemble, m: int, n: int) -> tuple[int, int]:
    """Return numbers of queries and of keys of a block: of matched pairs there are as many of both."""
    return (m, m) if ensemble.matched else (m, n)


def counted(ensemble, scores: np.ndarray) -> np.ndarray:
    """Return the scores of each block (n_blocks, n) that count: of matched pairs only the pairs themselves."""
    return np.einsum("bii->bi", scores) if ensemble.matched else scores.reshape(len(scores), -1)


@pytest.mark.parametrize(("spec", "d_k"), CASES, ids=case_id)
class TestEveryCell:
    def test_one_score_has_the_exact_moments(self, spec, d_k):
        ensemble = ensembles.build(spec)
        score, exact = draw_scores(ensemble, spec_id(spec), 100_000, 1, 1, d_k).ravel(), ensemble.exact(d_k)
        centred = score - exact.mean
        square, kurtosis = centred**2 / exact.variance, exact.excess_kurtosis + 3
        assert abs(away(centred, 0.0)) < 4.5
        assert abs(away(square, 1.0)) < 4.5
        # Without the fluctuation of the second moment, of which the fourth moment's error mostly consists.
        assert abs(away(square**2 - 2 * kurtosis * (square - 1), kurtosis)) < 4.5

    def test_the_scores_of_a_block_have_them_and_the_spread_that_is_planned_with(self, spec, d_k):
        ensemble = ensembles.build(spec)
        m, n = planned_at(ensemble, 3, 4)
        exact, scores = ensemble.exact(d_k), draw_scores(ensemble, spec_id(spec), 20_000, m, n, d_k)
        # The row of the first query, without its own key where that is drawn with it.
        row = scores[:, 0, int(ensemble.matched) :]
        assert abs(away(row.var(axis=1, ddof=1), exact.within_row_variance)) < 4.5
        block = np.mean((counted(ensemble, scores) - exact.mean) ** 2, axis=1) / exact.variance
        assert abs(away(block, 1.0)) < 4.5
        planned = ensemble.block_relative_variance(d_k, m, n)
        if planned is not None:
            assert abs(away((block - 1) ** 2, planned)) < 4.5


@pytest.mark.parametrize("spec", SPECS, ids=spec_id)
class TestEveryFamily:
    @pytest.mark.parametrize(("m", "n"), [(2, 7), (7, 2)])
    def test_any_numbers_of_queries_and_keys_can_be_drawn(self, spec, m, n):
        ensemble = ensembles.build(spec)
        d_k = widths(ensemble, 6)[-1]
        q, k = ensemble.draw(streams.generator(1, "shape"), 2, m, n, d_k)
        assert (q.shape, k.shape) == ((2, m, d_k), (2, n, d_k))
        assert q.dtype == k.dtype == (np.float32 if spec["family"] in ensembles.families() else np.float64)
        exact, scores = ensemble.exact(d_k), draw_scores(ensemble, spec_id(spec), 20_000, m, n, d_k)
        other = ~np.eye(m, n, dtype=bool) if ensemble.matched else np.ones((m, n), bool)
        expected, centre = (exact.within_row_variance, 0.0) if ensemble.matched else (exact.variance, exact.mean)
        assert abs(away(np.mean((scores[:, other] - centre) ** 2, axis=1), expected)) < 4.5

    def test_its_spec_builds_it_again_and_its_formula_can_be_shown(self, spec):
        ensemble = ensembles.build(spec)
        assert ensembles.build(ensemble.spec) == ensemble
        assert "<math" in mathml.mathml(ensemble.variance_formula)


SYMBOLS = {"sd": "sigma", "mean": "m", "rank": "r", "n_outliers": "m", "df": "nu"}
BY_FAMILY = {"l2norm": {"scale": "g"}, "outliers_aligned": {"scale": "c"}, "outliers_misaligned": {"scale": "c"}}
BEYOND = (r"\sum", r"\|", r"\beta", r"\mu")
"""What stands for more than arithmetic of parameters: sums over components, norms of matrices, moments."""
COMPUTABLE = [spec for spec in SPECS if not any(sign in ensembles.build(spec).variance_formula for sign in BEYOND)]


def symbols(ensemble) -> dict[str, float]:
    """Return the values of a family's parameters by the symbols that its formula has for them."""
    found = {}
    for name, value in dataclasses.asdict(ensemble).items():
        side, _, rest = name.partition("_") if name.startswith(("query_", "key_")) else ("", "", name)
        letter = BY_FAMILY.get(ensemble.family, {}).get(rest, SYMBOLS.get(rest, rest))
        found[f"{letter}_{side[0]}" if side else letter] = value
    return found


def evaluated(tex: str, values: Mapping[str, float]) -> float:
    """Compute a formula in TeX of fractions, powers, sums and products without a sign; `, x = …` defines x first."""
    main, *definitions = tex.replace(r"\quad", "").replace("\\", "").split(",")
    values = dict(values)
    for definition in definitions:
        name, _, text = definition.partition("=")
        values[name.strip()] = evaluated(text, values)
    main = re.sub(r"\^\{(.*?)\}", r"^(\1)", main)
    while (plain := re.sub(r"frac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))", main)) != main:
        main = plain
    tokens = re.findall(r"\d+|[a-z]+(?:_[a-z])?|[-+/()^]", main)
    assert "".join(tokens) == main.replace(" ", ""), main
    python = []
    for before, token in zip(["(", *tokens], tokens, strict=False):
        if re.match(r"[\w)]", before) and re.match(r"[\w(]", token):
            python.append("*")
        python.append({"^": "**"}.get(token, token))
    return eval("".join(python), {"__builtins__": {}}, values)


@pytest.mark.parametrize("d_k", [3, 8])
@pytest.mark.parametrize("spec", COMPUTABLE, ids=spec_id)
def test_its_formula_is_its_exact_variance(spec, d_k):
    ensemble = ensembles.build(spec)
    if ensemble.problems_at(d_k) or ensemble.undefined_at(d_k):
        d_k = widths(ensemble, d_k)[-1]
    found = evaluated(ensemble.variance_formula, symbols(ensemble) | {"d_k": d_k})
    assert found == pytest.approx(ensemble.exact(d_k).variance, rel=1e-9)


@pytest.mark.parametrize("spec", [spec for spec in SPECS if not ensembles.build(spec).problems_at(WIDE)], ids=spec_id)
def test_its_variance_grows_with_the_exponent_that_it_says(spec):
    ensemble = ensembles.build(spec)
    growth = math.log2(ensemble.exact(WIDE).variance / ensemble.exact(WIDE // 8).variance) / 3
    assert growth == pytest.approx(ensemble.limiting_exponent(), abs=0.15)


def whole(**changes) -> type:
    """Return a family that is whole but for some changes, not registered yet."""
    body = {name: name for name in base.SAID} | {"draw": lambda *_: None, "exact": lambda *_: None}
    return type("Mine", (base.Ensemble,), body | changes)


class TestRegistering:
    @pytest.fixture(autouse=True)
    def registry(self, monkeypatch):
        monkeypatch.setattr(base, "REGISTRY", {})

    def test_a_whole_family_is_known_by_its_name(self):
        cls = whole(family="mine")
        assert base.register(cls) is cls
        assert base.REGISTRY["mine"] is cls

    @pytest.mark.parametrize("name", base.SAID)
    def test_what_it_does_not_say_is_named(self, name):
        with pytest.raises(TypeError, match=rf"Mine of .* lacks {name}$"):
            base.register(whole(**{name: None}))

    def test_what_it_does_not_define_is_named(self):
        cls = type("Mine", (base.Ensemble,), {name: name for name in base.SAID})
        with pytest.raises(TypeError, match=r"Mine of .* lacks draw, exact$"):
            base.register(cls)

    def test_a_name_that_would_be_a_parameter_is_named(self):
        cls = whole(__annotations__={"family": str})
        with pytest.raises(TypeError, match=r"neither parameter\(\.\.\.\) nor ClassVar: family"):
            base.register(dataclasses.dataclass(frozen=True, kw_only=True)(cls))

    def test_two_of_one_name_are_both_named(self):
        base.register(whole())
        with pytest.raises(ValueError, match=r"two families are called family: Mine of .*, Mine of "):
            base.register(whole())
