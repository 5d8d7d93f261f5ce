"""Monte Carlo of attention rows: exact laws for two keys, standard errors that cover, and numbers that stay put."""

import csv
import itertools
import json
import math
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats

from sqrtdk.rows import plan, softmax
from sqrtdk.sampling import ensembles, streams
from sqrtdk.studies import saturation
from sqrtdk.studies.saturation import simulate_cell
from sqrtdk.variants.notation import VariantError, parse

RULES = ["none", "1/sqrt(d_k)", "1/d_k"]

GAUSSIAN = ensembles.build({"family": "gaussian"})
SATURATION_COLUMNS = "ensemble,d_k,n_keys,scaling,measure,estimate,se,theory,n_rows,n_blocks,trusted,precise,law"
GRADIENT_COLUMNS = (
    "ensemble,d_k,n_keys,scaling,measure,estimate,se,median,median_se,theory,n_rows,n_blocks,trusted,precise"
)
DISTRIBUTION_COLUMNS = "ensemble,d_k,n_keys,scaling,measure,statistic,estimate,se,low,high,n_rows,n_blocks"
GRADIENT_MEASURES = [name + suffix for suffix in ("", "_values") for name in ("grad_logits", "grad_query", "grad_key")]


class SharedKeys:
    """Gaussian q and k, all keys of a block short or all long: rows of a block are strongly dependent."""

    matched = False
    independent_keys = False

    def draw(self, rng, n_blocks, n_queries, n_keys, d_k):
        q = rng.standard_normal((n_blocks, n_queries, d_k))
        return q, rng.standard_normal((n_blocks, n_keys, d_k)) * rng.choice([0.5, 2.0], (n_blocks, 1, 1))


def cell(d_k, n_keys, ensemble=GAUSSIAN, scalings=("none",), seed=1, name="g", n_logits=20_000):
    return simulate_cell(ensemble, d_k, n_keys, scalings, seed, name, n_logits)[:2]


def after_the_pilot(monkeypatch, *actions):
    """Do something when a plan is made, before what counts is drawn."""

    def planned(*arguments, original=plan.plan):
        chosen = original(*arguments)
        for action in actions:
            action()
        return chosen

    monkeypatch.setattr(plan, "plan", planned)


def by_measure(rows):
    return {row["measure"]: row for row in rows}


def z_score(row, expected):
    return (row["estimate"] - expected) / row["se"]


def test_columns_and_rows():
    saturations, gradients = cell(4, [2, 8], scalings=RULES)
    assert all(",".join(row) == SATURATION_COLUMNS for row in saturations)
    assert all(",".join(row) == GRADIENT_COLUMNS for row in gradients)
    keys = [(row["n_keys"], row["scaling"], row["measure"]) for row in saturations]
    assert keys == list(itertools.product([2, 8], RULES, softmax.MEASURES))
    keys = [(row["n_keys"], row["scaling"], row["measure"]) for row in gradients]
    assert keys == list(itertools.product([2, 8], RULES, GRADIENT_MEASURES))
    for row in saturations + gradients:
        assert all(type(value) in (str, int, float, bool, type(None)) for value in row.values())


def test_one_key_is_always_attended():
    saturations, gradients = cell(8, [1], scalings=RULES)
    expected = {
        "entropy": 0,
        "max_weight": 1,
        "participation_ratio": 1,
        "effective_keys": 1,
        "saturated_share": 1,
        "jacobian_trace": 0,
        "jacobian_frobenius": 0,
        "jacobian_spectral": 0,
        "vanishing_share": 1,
    }
    for row in saturations:
        if row["measure"] in expected:
            assert (row["estimate"], row["se"]) == (expected[row["measure"]], 0)
        else:
            assert (row["estimate"], row["se"], row["n_rows"]) == (None, None, 0)
    for row in gradients:
        assert [row[value] for value in ("estimate", "se", "median", "median_se")] == [0, 0, 0, 0]


def test_two_signs_by_enumeration():
    """Rademacher at d_k = 1: the two logits are equal, or 2 apart, with probability 1/2 each."""
    rows = by_measure(cell(1, [2], ensembles.build({"family": "rademacher"}), n_logits=60_000)[0])
    p = scipy.special.expit(2.0)
    assert abs(z_score(rows["max_weight"], (0.5 + p) / 2)) < 4.5
    assert abs(z_score(rows["participation_ratio"], (0.5 + p**2 + (1 - p) ** 2) / 2)) < 4.5
    assert abs(z_score(rows["jacobian_frobenius"], math.sqrt((0.25 + (2 * p * (1 - p)) ** 2) / 2))) < 4.5


def two_key_law(measure, d_k, factor):
    """E measure(p) for two Gaussian keys: their logits differ by c√2·S, S with the Bessel law of q·k."""
    order = (d_k - 1) / 2

    def density(x):
        log = order * np.log(x / 2) - np.log(np.sqrt(np.pi)) - scipy.special.gammaln(d_k / 2) - x
        return np.exp(log) * scipy.special.kve(order, x)

    def integrand(x):
        return 2 * density(x) * measure(scipy.special.expit(factor * np.sqrt(2) * x))

    return sum(
        scipy.integrate.quad(integrand, *ends, epsabs=1e-10)[0] for ends in itertools.pairwise([0, 1, 10, 40, 120])
    )


@pytest.mark.parametrize("scaling", RULES)
@pytest.mark.parametrize("d_k", [1, 4, 64])
def test_two_keys_against_quadrature(d_k, scaling):
    factor = parse(scaling).factor(d_k, 2)
    saturations, gradients = cell(d_k, [2], scalings=[scaling], n_logits=60_000)
    rows = by_measure(saturations + gradients)
    means = {
        "entropy": lambda p: scipy.special.entr(p) + scipy.special.entr(1 - p),
        "max_weight": lambda p: p,
        "participation_ratio": lambda p: p**2 + (1 - p) ** 2,
        "effective_keys": lambda p: 1 / (p**2 + (1 - p) ** 2),
        "jacobian_trace": lambda p: 2 * p * (1 - p),
    }
    for measure, of in means.items():
        assert abs(z_score(rows[measure], two_key_law(of, d_k, factor))) < 4.5, measure
    norm = math.sqrt(two_key_law(lambda p: (2 * p * (1 - p)) ** 2, d_k, factor))
    for measure in ("jacobian_frobenius", "jacobian_spectral", "grad_logits", "grad_logits_values"):
        assert abs(z_score(rows[measure], norm)) < 4.5, measure


@pytest.mark.parametrize("scaling", RULES)
def test_numbers_are_those_of_the_plain_formulas(scaling, monkeypatch):
    """Second implementation, row by row from the same draws, with the Jacobian as a matrix."""
    drawn, upstream = [], []

    class Recorder(SharedKeys):
        def draw(self, *arguments):
            drawn.append(super().draw(*arguments))
            return drawn[-1]

    def recorded(*arguments, original=saturation.upstream_normals):
        upstream.append(original(*arguments))
        return upstream[-1]

    monkeypatch.setattr(saturation, "upstream_normals", recorded)
    after_the_pilot(monkeypatch, drawn.clear, upstream.clear)
    saturations, gradients = cell(3, [5], Recorder(), [scaling], n_logits=2500)
    q, k = (np.concatenate(x) for x in zip(*drawn, strict=True))
    plain, through = (np.concatenate(x) for x in zip(*upstream, strict=True))
    c = parse(scaling).factor(3, 5)
    p = scipy.special.softmax(c * np.einsum("bid,bjd->bij", q, k), axis=-1)
    jacobian = np.eye(5) * p[..., None] - p[..., None] * p[..., None, :]
    norm = np.linalg.norm(jacobian, axis=(-2, -1))
    expected = {
        "entropy": scipy.special.entr(p).sum(-1).mean(),
        "normalised_entropy": scipy.special.entr(p).sum(-1).mean() / math.log(5),
        "max_weight": p.max(-1).mean(),
        "participation_ratio": (p**2).sum(-1).mean(),
        "effective_keys": (1 / (p**2).sum(-1)).mean(),
        "saturated_share": (p.max(-1) > 0.99).mean(),
        "jacobian_trace": 1 - (p**2).sum(-1).mean(),
        "jacobian_frobenius": np.sqrt((norm**2).mean()),
        "jacobian_spectral": np.sqrt((np.linalg.eigvalsh(jacobian[:, :1])[..., -1] ** 2).mean()),
        "vanishing_share": (norm < 1e-3).mean(),
        "vanishing_share_relative": (norm < 0.01 * 2 / 5).mean(),
    }
    found = by_measure(saturations)
    assert found["entropy"]["n_rows"] == p[..., 0].size
    for measure, value in expected.items():
        assert found[measure]["estimate"] == pytest.approx(value, rel=1e-11, abs=1e-13), measure
    found = by_measure(gradients)
    for suffix, v in (("", plain), ("_values", through)):
        g = np.einsum("bijk,bik->bij", jacobian, v)
        logits = np.linalg.norm(g, axis=-1)
        query = c * np.linalg.norm(np.einsum("bij,bjd->bid", g, k), axis=-1)
        key = c * np.linalg.norm(q, axis=-1) * logits
        for measure, norm in (("grad_logits", logits), ("grad_query", query), ("grad_key", key)):
            row = found[measure + suffix]
            assert row["estimate"] == pytest.approx(np.sqrt((norm**2).mean()), rel=1e-11), measure + suffix
            assert row["median"] == pytest.approx(np.median(norm), rel=1e-11), measure + suffix


def test_gradient_is_rms_larger_and_more_uneven_without_the_scale():
    _, gradients = cell(64, [64], scalings=["none", "1/sqrt(d_k)"], n_logits=100_000)
    unscaled, scaled = by_measure(gradients[:6]), by_measure(gradients[6:])
    for measure in ("grad_query", "grad_key", "grad_query_values"):
        assert 6 < unscaled[measure]["estimate"] / scaled[measure]["estimate"] < 29
    uneven = [rows["grad_logits"]["median"] / rows["grad_logits"]["estimate"] for rows in (unscaled, scaled)]
    assert uneven[0] < 0.6 < uneven[1] < 1


@pytest.mark.parametrize(("d_k", "n_queries"), [(1, 3), (2, 5), (5, 5), (9, 4), (40, 2), (3, 1)])
def test_upstream_through_values_is_the_product_that_it_stands_for(d_k, n_queries):
    """Second implementation: V·u drawn component by component has the same means of squares and products."""
    n_blocks, n_keys = 8000, 3
    rng = np.random.default_rng(2)
    plain, through = saturation.upstream_normals(rng, n_blocks, n_queries, n_keys, d_k)
    u = rng.standard_normal((n_blocks, n_queries, d_k)) / math.sqrt(d_k)
    direct = u @ rng.standard_normal((n_blocks, n_keys, d_k)).swapaxes(-1, -2)
    assert plain.shape == through.shape == direct.shape
    first, last = 0, n_queries - 1
    statistics = {
        "square": lambda v: v[:, last, 0] ** 2,
        "squares of one row": lambda v: v[:, last, 0] ** 2 * v[:, last, 1] ** 2,
        "product of rows": lambda v: v[:, first, 0] * v[:, last, 0],
        "squares of two rows": lambda v: v[:, first, 0] ** 2 * v[:, last, 0] ** 2,
        "two keys, two rows": lambda v: np.prod(v[:, [first, last], :2], axis=(1, 2)),
        "product of keys": lambda v: v[:, first, 0] * v[:, last, 1],
    }
    for name, statistic in statistics.items():
        x, y = statistic(through), statistic(direct)
        error = math.hypot(x.std(), y.std()) / math.sqrt(n_blocks)
        assert abs(x.mean() - y.mean()) < 4.5 * error, name
    assert abs((plain**2).mean() - 1) < 4.5 * math.sqrt(2 / plain.size)


def test_own_key_is_in_the_row_of_matched_ensembles():
    """With ρ near 1 a query finds its own key among the others."""
    aligned = ensembles.build({"family": "aligned", "rho": 0.99})
    weight = [by_measure(cell(64, [16], e)[0])["max_weight"]["estimate"] for e in (aligned, GAUSSIAN)]
    assert weight[0] > 0.999 > 0.9 > weight[1]


def test_memory_does_not_grow_with_what_is_drawn():
    tracemalloc.start()
    saturations, _ = cell(512, [64], n_logits=2_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    logits = 64 * by_measure(saturations)["entropy"]["n_rows"]
    assert logits > 10 * plan.BATCH_LOGITS
    # q, k in float32 and a dozen arrays of logits; all blocks at once would be several times as much.
    assert peak < 4 * plan.BATCH_SCALARS + 20 * 8 * plan.BATCH_LOGITS


def test_adding_keys_or_scale_rules_changes_no_other_number():
    few = cell(8, [16], scalings=["1/sqrt(d_k)"])
    many = cell(8, [4, 16, 64], scalings=["1/d_k", "1/sqrt(d_k)", "none"])
    for small, large in zip(few, many, strict=True):
        kept = [row for row in large if row["n_keys"] == 16 and row["scaling"] == "1/sqrt(d_k)"]
        assert kept == small


def test_the_identity_of_a_cell_sets_its_numbers():
    base = cell(8, [16])
    assert cell(8, [16]) == base
    for other in (cell(8, [16], seed=2), cell(8, [16], name="h")):
        assert by_measure(other[0])["entropy"]["estimate"] != by_measure(base[0])["entropy"]["estimate"]


def test_scale_rules_share_their_draws():
    """At d_k = 1 the three rules are one."""
    saturations, gradients = cell(1, [8], scalings=RULES)
    for rows in (saturations, gradients):
        per_scaling = [[{**row, "scaling": None} for row in rows if row["scaling"] == name] for name in RULES]
        assert per_scaling[0] == per_scaling[1] == per_scaling[2]


def test_unknown_scale_rule_is_an_error():
    with pytest.raises(VariantError, match="1/sqrt"):
        cell(4, [4], scalings=["1/sqrt(dk)"])


def inside(estimates, errors, n_blocks, expected):
    """How many 95 % intervals, of Student's t between blocks, hold the expected value."""
    return np.sum(np.abs(estimates - expected) <= scipy.stats.t.ppf(0.975, n_blocks - 1) * errors)


@pytest.mark.slow
def test_intervals_cover_as_often_as_they_say():
    """Repeated small studies of rows that share their keys, every measure; the mean of all studies stands for truth."""
    n_studies, n_keys = 250, 8
    studies = [cell(6, [n_keys], SharedKeys(), seed=seed, n_logits=80 * 8 * n_keys) for seed in range(n_studies)]
    error = math.sqrt(0.95 * 0.05 / n_studies)
    for table, columns in ((0, [("estimate", "se")]), (1, [("estimate", "se"), ("median", "median_se")])):
        for i, row in enumerate(studies[0][table]):
            for value, se in columns:
                x, errors = (np.array([study[table][i][key] for study in studies]) for key in (value, se))
                share = inside(x, errors, row["n_blocks"], x.mean()) / n_studies
                assert abs(share - 0.95) < 3.5 * error, (row["measure"], value, share)
                assert x.std() == pytest.approx(np.sqrt((errors**2).mean()), rel=0.2), (row["measure"], value)


def test_each_number_of_keys_has_its_streams(monkeypatch):
    """For q and k and for the upstream gradients, in the pilot and after it: a common one would make them dependent."""
    used = []

    def state(rng):
        return rng.bit_generator.state["state"]["state"].tolist()

    class Recorder(SharedKeys):
        def draw(self, rng, *arguments):
            used.append(state(rng))
            return super().draw(rng, *arguments)

    def recorded(rng, *arguments, original=saturation.upstream_normals):
        used.append(state(rng))
        return original(rng, *arguments)

    monkeypatch.setattr(saturation, "upstream_normals", recorded)
    cell(2, [4, 5], Recorder(), name="r", n_logits=2000)
    parts = [(*pilot, part) for pilot in (("pilot",), ()) for part in ("qk", "upstream")]
    own = [streams.generator(1, "softmax", "r", 2, n, *part) for n in (4, 5) for part in parts]
    assert used == [state(rng) for rng in own]


def test_gradients_have_their_own_number_of_blocks():
    """They cost more than the rest, and where they need fewer blocks those that follow have none."""
    saturations, gradients = cell(64, [16], n_logits=1_000_000)
    rows, found = by_measure(saturations)["entropy"]["n_rows"], by_measure(gradients)["grad_query"]
    assert 0 < found["n_rows"] < 0.8 * rows
    # From the exact averages over Gaussian logits: E‖g_q‖² = c²(d_k − 1) E‖J‖² + E‖Jz‖²/‖q‖².
    assert abs(z_score(found, 1.96536)) < 4.5


SCRIPTS = Path(saturation.__file__).parents[2]


def test_script_writes_the_tables(tmp_path):
    arguments = {
        "ensemble": "mine",
        "spec": json.dumps({"family": "student_t", "df": 6}),
        "d-k": "4",
        "n-keys": "[1, 3]",
        "scalings": json.dumps(RULES),
        "seed": "7",
        "n-logits": "3000",
        "saturation": str(tmp_path / "s.csv"),
        "gradients": str(tmp_path / "g.csv"),
        "distribution": str(tmp_path / "d.csv"),
    }
    options = [text for name, value in arguments.items() for text in (f"--{name}", value)]
    subprocess.run([sys.executable, str(SCRIPTS / "simulate_softmax.py"), *options], check=True)
    student_t = ensembles.build({"family": "student_t", "df": 6})
    expected = simulate_cell(student_t, 4, [1, 3], RULES, 7, "mine", 3000)
    headers = SATURATION_COLUMNS, GRADIENT_COLUMNS, DISTRIBUTION_COLUMNS
    for file, rows, header in zip("sgd", expected, headers, strict=True):
        text = (tmp_path / f"{file}.csv").read_text(encoding="utf-8")
        assert text.splitlines()[0] == header
        read = list(csv.DictReader(text.splitlines()))
        assert len(read) == len(rows)
        for found, row in zip(read, rows, strict=True):
            assert found["estimate"] == ("" if row["estimate"] is None else repr(row["estimate"]))


def test_script_starts_light():
    """Some hundred such jobs run: what they import is most of what a small one costs."""
    code = "import sys, simulate_softmax; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=SCRIPTS, check=True, capture_output=True, text=True)
    assert not {"scipy", "pandas", "matplotlib", "seaborn", "jinja2", "snakemake"} & set(done.stdout.split())
