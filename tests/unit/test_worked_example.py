"""The example of three logits, the random rows beside it, and their tables."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import synthetic_planted
from scipy import integrate, special, stats

from sqrtdk.report.tables import examples
from sqrtdk.report.tables.cells import NONE
from sqrtdk.studies import worked_example
from sqrtdk.studies.worked_example import D_K
from sqrtdk.words import texts
from sqrtdk.words.sentences import Listing

ROOT = Path(__file__).resolve().parents[2]


def test_weights_are_those_of_scipy_and_the_printed_ones_are_not_all():
    for case, logits in worked_example.TRIPLES.items():
        found = worked_example.triple(case)
        p = special.softmax(logits)
        assert [found[f"weight_{i}"] for i in (1, 2, 3)] == pytest.approx(list(p), rel=1e-14)
        jacobian = np.diag(p) - np.outer(p, p)
        assert found["jacobian_frobenius"] == pytest.approx(np.linalg.norm(jacobian), rel=1e-12)
        assert found["jacobian_largest"] == pytest.approx(jacobian.max(), rel=1e-12)
        assert found["participation_ratio"] == pytest.approx(np.sum(p**2), rel=1e-14)
        assert found["entropy"] == pytest.approx(stats.entropy(p), rel=1e-13)
    assert worked_example.triple("small")["weight_1"] == pytest.approx(0.4123, abs=5e-5)
    assert worked_example.triple("large")["weight_1"] == pytest.approx(0.866813, abs=5e-7)


def test_no_temperature_gives_the_printed_weights():
    """Log-ratios of weights are proportional to differences of logits at any temperature."""
    p = worked_example.PRINTED["small"]
    z = worked_example.SMALL
    assert math.log(p[0] / p[1]) / math.log(p[0] / p[2]) > 5 * (z[0] - z[1]) / (z[0] - z[2])


def test_three_exact_probabilities_by_brute_force():
    exact = worked_example.probabilities(3)
    rng = np.random.default_rng(7)
    n = 400_000
    z = np.sqrt(rng.chisquare(D_K, (n, 1))) * rng.standard_normal((n, 3))
    weight = special.softmax(z, axis=1).max(axis=1)
    seen = {"all_high": z.min(axis=1) >= 10, "narrow": np.ptp(z, axis=1) <= 4, "sharp": weight > 0.87}
    seen |= {"any_wide": np.abs(z).max(axis=1) > 16}
    for name, hits in seen.items():
        se = math.sqrt(exact[name] * (1 - exact[name]) / n)
        assert abs(hits.mean() - exact[name]) < 4.5 * se, name
    # The scores of a row share their query: taking them for independent gives too many wide rows.
    independent = 1 - (1 - exact["wide"]) ** 64
    assert independent - worked_example.probabilities(64)["any_wide"] > 0.03


def test_one_key_is_beyond_by_the_bessel_law():
    exact = worked_example.probabilities(1)
    assert exact["any_wide"] == pytest.approx(exact["wide"], rel=1e-7)
    assert exact["wide"] == pytest.approx(0.0463, abs=5e-5)


def test_the_exact_sharp_weight_at_one_spread_is_a_double_integral():
    spread, threshold = 3.0, worked_example.SHARP

    def inner(gap):  # both gaps to the first of three logits: jointly normal with correlation 1/2
        rest = 1 / threshold - 1 - math.exp(-gap)
        bound = -math.log(rest)
        above = stats.norm.sf((bound - gap / 2) / (spread * math.sqrt(1.5)))
        return stats.norm.pdf(gap, scale=spread * math.sqrt(2)) * above

    start = -math.log(1 / threshold - 1)
    expected, _ = integrate.quad(inner, start + 1e-12, 12 * spread, limit=300)
    assert worked_example._sharp(spread) == pytest.approx(3 * expected, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("n_keys", [3, 64])
def test_random_rows_agree_with_their_theory(n_keys):
    rows = worked_example.random_rows(n_keys, 240_000, 2)
    names = [(row["scaling"], row["measure"]) for row in rows]
    assert len(set(names)) == len(names)
    tested = 0
    for row in rows:
        if row["theory"] is not None:
            assert abs(row["estimate"] - row["theory"]) < 4.5 * row["se"], row
            tested += 1
        assert row["se"] > 0
    assert tested == 12 + len([name for scaling, name in names if name in worked_example.probabilities(n_keys)])
    entropy = {row["scaling"]: row for row in rows if row["measure"] == "entropy"}
    # The negative control: the theory of the other rule is far off.
    assert abs(entropy["none"]["estimate"] - entropy["1/sqrt(d_k)"]["theory"]) > 20 * entropy["none"]["se"]


def test_the_range_of_three_normal_numbers():
    """E range = 3/√π for three, times the mean norm of the query."""
    exact = worked_example.theory(3, "none")
    assert exact["range"] == pytest.approx(3 / math.sqrt(math.pi) * stats.chi.mean(D_K), rel=1e-9)
    assert exact["score_spread"] == 8


def frame() -> pd.DataFrame:
    return synthetic_planted.examples()["worked_example"]


def test_the_table_says_which_printed_weights_are_wrong():
    table = examples.three_numbers(frame())
    printed = [row[2] for row in table.rows]
    assert printed[0].note_word == "tables.three_numbers.differs"
    assert printed[0].text == "0.41, 0.20, 0.39"
    assert printed[1].note_word == "tables.three_numbers.agrees"
    assert printed[2:] == [NONE, NONE]
    corrected = frame()
    corrected.loc[corrected["measure"].eq("printed_weight_2") & corrected["case"].eq("small"), "estimate"] = 0.25
    corrected.loc[corrected["measure"].eq("printed_weight_3") & corrected["case"].eq("small"), "estimate"] = 0.34
    assert examples.three_numbers(corrected).rows[0][2].note_word == "tables.three_numbers.agrees"
    assert table.values["ratio"] == "2.2"
    assert [row[0].text for row in table.rows] == ["1, 0.5, 0.8", "14, 10, 12", "10, 5, 8", "1.75, 1.25, 1.5"]


def test_the_table_of_random_rows_has_two_lines_for_each_number_of_keys():
    table = examples.before_after(frame())
    assert [(row[0].text, row[1].text) for row in table.rows] == [
        (str(n), rule) for n in worked_example.N_KEYS for rule in worked_example.RULES
    ]
    assert table.values["rms_larger"] == Listing(("64", "512"))
    swapped = frame()
    swapped["scaling"] = swapped["scaling"].replace({"none": "1/sqrt(d_k)", "1/sqrt(d_k)": "none"})
    assert examples.before_after(swapped).values["rms_larger"] == Listing(("3", "10"))


def test_the_tables_have_their_words():
    say = texts.Words(texts.read(ROOT / "report", "en"))
    for table in examples.report_tables(synthetic_planted.examples()):
        assert say(f"tables.{table.key}.caption", **table.values)
        assert say(f"tables.{table.key}.note", **table.values)
        for column in table.columns:
            assert say(f"tables.{table.key}.columns.{column}")
        for row in table.rows:
            assert len(row) == len(table.columns)
            for cell in row:
                if cell.note:
                    assert say(cell.note_word, text=cell.note)
