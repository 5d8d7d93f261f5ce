"""What figures say: numbers of the frames, and sentences that turn with them."""

import re

import numpy as np
import pandas as pd
import pytest
import synthetic_results as synthetic
from figure_cases import ENGLISH, LANGUAGES, NAMES, REPORT, SPOKEN, describe, say, words_of

from sqrtdk.figures import panels, speaking
from sqrtdk.figures.catalogue import load
from sqrtdk.figures.catalogue import names as figure_names
from sqrtdk.sampling.ensembles import iid
from sqrtdk.statistics import intervals
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Sentence


@pytest.mark.parametrize(("name", "language"), SPOKEN)
def test_words_are_plain_and_complete(name, language):
    words = words_of(name) if language == "en" else describe(name, synthetic.frames(), language)
    for text in (words.caption, words.alt, words.reading, words.caveat):
        assert len(text) > (40 if language == "en" else 20)
        assert text.endswith("." if language == "en" else "。")
        assert "  " not in text
        assert language == "en" or not ENGLISH.search(text)
        assert not re.search(r"nan\b|None|inf\b|<|\{|\bn/a\b", text)


def _error(row, column, se):
    return numbers.with_error(row[column], row[se])


def test_numbers_in_words_are_those_of_the_frames():
    frames = synthetic.frames()
    moments = frames["moments"]
    widest = moments[(moments["ensemble"] == "uniform") & (moments["d_k"] == 1024)].iloc[0]
    assert f"to {_error(widest, 'variance', 'variance_se')}" in words_of("variance-law").alt
    widest = moments[(moments["ensemble"] == "ar1") & (moments["d_k"] == 1024)].iloc[0]
    assert f"to {_error(widest, 'excess_kurtosis', 'excess_kurtosis_se')}" in words_of("kurtosis").alt
    laws = frames["variance_laws"].query("law == 'power' and ensemble == 'equicorrelated'").iloc[0]
    for text in (words_of("exponents").alt, words_of("exponents").reading):
        assert f"equicorrelated {_error(laws, 'estimate', 'se')}" in text
    cell = "ensemble == 'gaussian' and n_keys == 64 and d_k == 1024 and scaling == 'none' and measure == "
    weight = frames["softmax_saturation"].query(cell + "'max_weight'").iloc[0]
    assert f"without a scale it rises from 0.093(6) to {_error(weight, 'estimate', 'se')}" in words_of("saturation").alt
    ratios = frames["gradient_by_keys"].query("n_keys == 16 and d_k == 64 and measure == 'grad_query'")
    exact, sampled = (ratios[ratios["quantity"] == quantity].iloc[0] for quantity in ("rms", "median"))
    spelled = numbers.with_error(sampled["ratio"], (sampled["high"] - sampled["low"]) / (2 * intervals.NORMAL))
    exactly = numbers.significant(exact["ratio"], 3)
    expected = f"{exactly} as root mean square and {spelled} in the median row with n = 16"
    assert expected in words_of("gradients").alt
    heads = frames["real_heads"]
    top = heads.loc[heads["within_row_logit_std"].idxmax()]
    assert f"to {_error(top, 'within_row_logit_std', 'within_row_logit_std_se')} (layer 0, head 2)" in (
        words_of("real-heads").alt
    )
    use = moments[(moments["stopped_by"] != "enumerated") & (moments["variance_se"] > 0)]
    z = (use["variance"] - use["exact_variance"]) / use["variance_se"]
    assert f"variance {(z.abs() < 1.959964).sum()} of {len(z)} within 1.96" in words_of("calibration").alt
    assert f"at d_k = 8, {numbers.count(400_000)}" in words_of("score-density").caption.replace(" and", ",") or (
        f"{numbers.count(400_000)} at d_k = 8" in words_of("score-density").caption
    )


def _reading(name: str, **changed) -> str:
    return describe(name, synthetic.frames() | changed).reading


def test_the_growth_of_the_variance_is_read_from_the_numbers():
    moments = synthetic.moments()
    told = describe("variance-law", synthetic.frames())
    assert "by the same factor, within three standard errors, for Gaussian, uniform and Rademacher" in told.reading
    assert "It does not for equicorrelated (more: 9.7" in told.reading
    assert "as many as 95 % allows" in told.reading
    assert told.title.startswith("The variance of q·k is d_k for independent components: measured to within ")
    off = moments["ensemble"] == "uniform"
    moments.loc[off, "variance"] *= 1.5
    bent = describe("variance-law", synthetic.frames() | {"moments": moments})
    assert "too few for 95 %" in bent.reading
    assert bent.title.startswith("The variance of q·k departs from d_k for independent components too, by up to 5")


TITLES = {
    "hero": ("one_query", "listens to 1.0 of 16 keys, with it to 7.6", "listens to 7.6 of 16 keys, with it only"),
    "saturation": ("softmax_saturation", "keys without the scale, and to ", "keys without the scale, and only to "),
    "attention-maps": (
        "softmax_saturation",
        "query of a wide head picks one key",
        "queries share their attention among ",
    ),
    "gradient-distribution": (
        "gradient_distribution",
        "Without the scale the top tenth of the queries carries ",
        "With the scale the top tenth of the queries carries ",
    ),
}
"""Figures whose title compares the two usual rules: table, and what it says of them and of them exchanged."""


@pytest.mark.parametrize("name", TITLES)
def test_a_title_is_the_finding_and_turns_with_the_numbers(name):
    table, usual, turned = TITLES[name]
    frames = synthetic.frames()
    assert usual in describe(name, frames).title
    other = frames[table].assign(
        scaling=frames[table]["scaling"].replace({"none": "1/sqrt(d_k)", "1/sqrt(d_k)": "none"})
    )
    assert turned in describe(name, frames | {table: other}).title


def test_training_ends_worse_where_the_difference_is_beyond_the_margin_of_the_verdicts():
    table = synthetic.frames()["training_curves"]
    losses = ["loss", "loss_low", "loss_high"]
    lost = table.assign(**{name: 100 * table[name] for name in losses})
    swapped = lost.assign(scaling=lost["scaling"].replace({"none": "1/sqrt(d_k)", "1/sqrt(d_k)": "none"}))
    tiny = table.assign(**{name: table[name] / 1000 for name in losses})
    wide = lost.assign(loss_low=lost["loss"] / 1e3, loss_high=lost["loss"] * 1e3)
    for frame, said in (
        (lost, "without the scale recall ends worse"),
        (swapped, "without the scale recall ends better"),
        # The same ratio of losses, all of them next to none.
        (tiny, "without the scale recall ends alike"),
        (wide, "without the scale recall is undecided"),
    ):
        assert said in describe("training-curves", synthetic.frames() | {"training_curves": frame}).title


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (1, "1/d_k ends like 1/√d_k"),
        (0.99, "1/d_k ends lower than 1/√d_k, but within the shaded 0.05 nats that count as alike"),
        (1e-3, "1/d_k ends better than 1/√d_k"),
        (100, "1/d_k ends worse too"),
    ],
)
def test_how_the_width_itself_ends_stands_in_the_title(times, said):
    table = synthetic.frames()["training_curves"]
    losses = ["loss", "loss_low", "loss_high"]
    table = table.assign(
        **{name: times * table["loss"] for name, times in zip(losses, (100, 99.9, 100.1), strict=True)}
    )
    root = table[table["scaling"] == "1/sqrt(d_k)"].assign(scaling="1/d_k")
    root = root.assign(**{name: times * root[name] for name in losses})
    both = pd.concat([table[table["scaling"] != "1/d_k"], root])
    assert describe("training-curves", {"training_curves": both}).title.endswith(said)
    open_ends = both.assign(loss_low=both["loss"] / 1e3, loss_high=both["loss"] * 1e3)
    open_title = describe("training-curves", {"training_curves": open_ends}).title
    lower = "1/d_k ends lower than 1/√d_k, not surely by more than the shaded 0.05 nats"
    assert open_title.endswith(lower if times == 0.99 else "with 1/d_k it is undecided")
    without = table[table["scaling"] != "1/d_k"]
    assert "1/d_k" not in describe("training-curves", {"training_curves": without}).title


def test_gradients_shrink_from_a_width_on_that_depends_on_the_number_of_keys():
    title = describe("gradients", synthetic.frames()).title
    stars = synthetic.frames()["key_crossovers"].query("measure == 'grad_logits' and quantity == 'median'")
    stars = stars.dropna(subset=["d_k_star"]).set_index("n_keys")["d_k_star"]
    few, many = (numbers.significant(stars[n], 2) for n in (16, 1024))
    assert title.endswith(f"from d_k = {few} over 16 keys, from {many} over 1024")
    never = synthetic.frames()["key_crossovers"].assign(d_k_star=np.nan)
    assert describe("gradients", synthetic.frames() | {"key_crossovers": never}).title.startswith("The gradient")


def test_which_half_does_the_work_is_read_from_the_numbers():
    frames = synthetic.frames()
    assert describe("training-start", frames).title.startswith(
        "Without the scale a smaller start of the query and key weights alone takes 65 steps in place of 200"
    )
    table = frames["start_rate"]
    swapped = table.assign(start=table["rate"], rate=table["start"])
    assert describe("training-start", {"start_rate": swapped}).title.startswith(
        "Without the scale a smaller rate of the query and key weights alone takes 65 steps in place of 200"
    )
    wide = table.assign(low=1.0, high=1e4)
    assert describe("training-start", {"start_rate": wide}).title.startswith("Neither half alone")


def test_the_exponent_may_come_out_against_one():
    laws = synthetic.variance_laws(synthetic.moments())
    gaussian = (laws["ensemble"] == "gaussian") & (laws["law"] == "power")
    laws.loc[gaussian, ["estimate", "ci_low", "ci_high"]] += 1
    text = _reading("exponents", variance_laws=laws)
    assert "contains 1 for uniform" in text
    assert "It does not for Gaussian 1.99998(16)" in text
    assert "Outside: Gaussian 1.99998(16)." in text


def test_what_cannot_be_estimated_is_named_with_its_reason():
    laws = synthetic.variance_laws(synthetic.moments(("gaussian", "laplace")))
    refused = laws["ensemble"] == "laplace"
    laws.loc[refused, ["estimate", "se", "ci_low", "ci_high", "exact"]] = np.nan
    laws["estimable"] = ~refused
    laws["reason"] = laws["reason"].astype(object).where(~refused, "infinite fourth moment")
    frames = {"variance_laws": laws, "spread_laws": synthetic.frames()["spread_laws"]}
    words = describe("exponents", frames)
    assert "Not estimable: Laplace (infinite fourth moment; interquartile range 0.493(4) from d_k = 64 up)." in (
        words.reading
    )
    assert "Laplace not estimable, interquartile range 0.493(4)" in words.alt
    known = frames | {"variance_laws": laws.replace("infinite fourth moment", iid.HEAVY_VARIANCE)}
    assert "Laplace（分量没有有限的方差；" in describe("exponents", known, "zh").reading
    figure = load("exponents").draw(frames)
    assert any("infinite fourth moment" in " ".join(text.get_text().split()) for text in figure.get_axes()[0].texts)
    nothing = describe("exponents", frames | {"spread_laws": frames["spread_laws"].iloc[:0]})
    assert "Not estimable: Laplace (infinite fourth moment)." in nothing.reading
    other = describe("exponents", synthetic.crowd(), "zh").reading
    assert "不可估计的是：Student t (3 df)（分量没有有限的四阶矩，" in other
    assert "fourth" not in other


def test_local_exponents_name_crossovers_and_what_stands_in_for_a_variance_without_error():
    words = describe("local-exponents", synthetic.crowd())
    assert "equicorrelated (1.12 to 2.00, half-way at d_k of about 13)" in words.reading
    assert "low_rank_gaussian" not in words.reading  # labelled in words
    assert "low rank (random) (1.14 to 2.00" in words.reading
    assert "cosine (L2 norm) −1" in words.reading
    assert re.search(r"squared interquartile range of Student t \(3 df\) has the exponent 1.0\d+\(\d+\)", words.reading)
    assert "as many as 95 % allows" in words.reading
    frames = synthetic.crowd()
    frames["local_exponents"]["exact"] += 0.1
    assert "too few for 95 %" in describe("local-exponents", frames).reading


def test_of_many_names_a_few_are_said_and_the_others_counted():
    def text(number):
        listed = Sentence("shared.coverage.nothing", {"quantity": speaking.few(map(str, range(number)))})
        return speaking.speak(say(), "any", [listed])

    assert text(7).endswith("0, 1, 2, 3, 4, 5 and 6.")
    assert text(9).endswith("0, 1, 2, 3, 4, 5 and 3 others.")


@pytest.mark.slow
def test_a_normal_histogram_is_not_said_to_follow_the_exact_law():
    assert "At d_k = 1, 2 and 8 the simulated distribution lies much closer to the exact law" in _reading(
        "score-density"
    )
    from scipy.special import ndtr

    table = synthetic.histograms((2,))
    scale = 2**0.5
    table["count"] = (
        (table["n_scores"] * (ndtr(table["high"] / scale) - ndtr(table["low"] / scale))).round().astype(int)
    )
    text = _reading("score-density", score_histograms=table)
    assert "not clearly closer to the exact law than the normal" in text
    assert "much closer" not in text


def test_saturation_is_read_from_the_numbers():
    table = synthetic.frames()["softmax_saturation"]
    assert re.search(r"without a scale it rises .* with 1/d_k it falls", _reading("saturation"))
    table["scaling"] = table["scaling"].replace({"none": "1/d_k", "1/d_k": "none"})
    reversed_ = _reading("saturation", softmax_saturation=table)
    assert re.search(r"without a scale it falls .* with 1/d_k it rises", reversed_)
    assert "With 1/d_k it passes one half" in reversed_


def test_gradients_are_read_from_the_numbers():
    text = _reading("gradients")
    assert "to its logits without the scale at every d_k from 4 on with n = 3; from d_k of about 30.7(1.6) on" in text
    assert "of which a batch is made, is smaller without the scale at no d_k up to 256 with n = 3" in text
    table = synthetic.frames()["key_crossovers"]
    query = (table["measure"] == "grad_query") & (table["quantity"] == "rms")
    table.loc[query, ["d_k_star", "ci_low", "ci_high"]] = 77.0
    assert "is smaller without the scale from d_k of about 77 on with n = 3" in _reading(
        "gradients", key_crossovers=table
    )


@pytest.mark.parametrize(
    ("plain", "scaled", "words"),
    [
        (0.9, 0.2, "Without a scale a few rows, those in which two keys nearly tie, keep most"),
        (0.4, 0.2, "Without a scale the gradient is shared less evenly among the rows."),
        (0.2, 0.4, "With the scale the gradient is shared less evenly among the rows than without."),
        (0.2, 0.2, "share the gradient alike"),
    ],
)
def test_who_holds_the_gradient_is_read_from_the_numbers(plain, scaled, words):
    table = synthetic.frames()["gradient_distribution"]
    for rule, share in (("none", plain), ("1/sqrt(d_k)", scaled)):
        cells = (table["scaling"] == rule) & (table["measure"] == "grad_logits")
        table.loc[cells & (table["statistic"] == "top_tenth_energy"), ["estimate", "se"]] = share, 0.01
        table.loc[cells & (table["statistic"] == "below_1e-3"), ["estimate", "high"]] = 0.0, 0.003
    text = _reading("gradient-distribution", gradient_distribution=table)
    assert words in text
    assert "less than 0.30 % of the rows are below 10⁻³ (less than 0.30 %)" in text
    assert f"holds {100 * plain:.0f}(1) % of the energy ({100 * scaled:.0f}(1) %)" in text


def test_the_median_crossing_is_where_the_curves_meet():
    assert panels.crossing([1, 4, 16], [3.0, 1.0, -1.0], 0.0) == pytest.approx(8.0)
    assert panels.crossing([16, 1, 4], [-1.0, 3.0, 1.0], 0.0) == pytest.approx(8.0)
    assert panels.crossing([1, 4, 16], [3.0, 2.0, 1.0], 0.0) is None
    assert panels.crossing([4], [1.0], 0.5) is None
    assert panels.crossing([1, 4, 16, 64], [1.0, -1.0, 1.0, -1.0], 0.0) == pytest.approx(2.0)
    assert panels.crossing([1, 4, 16, 64], [1.0, -1.0, 1.0, -1.0], 0.0, last=True) == pytest.approx(32.0)


def test_heads_may_turn_out_as_the_argument_says():
    assert "These trained heads do not keep the spread that the scale was made for" in _reading("real-heads")
    heads = synthetic.real_heads()
    heads["within_row_logit_std"], heads["independence_ratio"] = 1.01, 0.5
    text = _reading("real-heads", real_heads=heads)
    assert "contains 1 for 72 of 72 heads, and 0 are more than a factor of 2" in text
    assert "Most of these heads still have the spread" in text
    assert "lies above 1 for 0, below 1 for 72" in text


def test_kurtosis_is_read_from_the_numbers():
    text = _reading("kurtosis")
    assert "Gaussian from d_k = 64, uniform from d_k = 4" in text
    assert "It does not get there by d_k = 1024 for equicorrelated" in text
    moments = synthetic.moments()
    moments.loc[moments["ensemble"] == "gaussian", "exact_excess_kurtosis"] = 1.0
    text = _reading("kurtosis", moments=moments)
    assert re.search(r"It does not get there by d_k = 1024 for equicorrelated \([\d.]+\).* and Gaussian \(1\)\.", text)
    moments["exact_excess_kurtosis"] += 5
    assert "too few for 95 %" in _reading("kurtosis", moments=moments)


def test_wrong_errors_are_called_wrong():
    frames = synthetic.frames()
    alone = {name: frames[name].assign(theory=np.nan) for name in ("softmax_saturation", "gradient_magnitude")}
    right = _reading("calibration", **alone)
    assert "No |z| whose error is trusted is above 5." in right
    assert re.search(r"for the variance [\d.]+ % \(\[[^]]*\] %\) and [\d.]+ \[[^]]*\], as it should be", right)
    moments = synthetic.moments()
    moments["variance_se"] /= 4
    text = _reading("calibration", moments=moments, **alone)
    assert re.search(r"for the variance [\d.]+ % [^;]*, which honest errors are not", text)
    assert "with |z| above 5: variance of " in text
    moments["variance_se"] *= 4
    moments.loc[0, "mean"] = 1.0
    assert "1 cell with |z| above 5: mean of Gaussian at d_k = 1" in _reading("calibration", moments=moments, **alone)


def leaves(tree, key: str = "") -> dict[str, str]:
    """Return the texts of a tree of words by dotted key."""
    if isinstance(tree, str):
        return {key: tree}
    return {name: text for part, below in tree.items() for name, text in leaves(below, f"{key}.{part}").items()}


def placeholders(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", text))


@pytest.mark.parametrize("name", [*(f"figure-{name}" for name in NAMES if f"figure-{name}" in say().tree), "shared"])
def test_the_words_of_a_figure_are_the_same_ones_in_every_language_and_none_is_unused(name):
    english = leaves(say("en").entry(name))
    for language in LANGUAGES:
        other = leaves(say(language).entry(name))
        assert english.keys() == other.keys()
        assert {key: placeholders(text) for key, text in english.items()} == {
            key: placeholders(text) for key, text in other.items()
        }
    folder = REPORT.parent / "scripts/sqrtdk/figures"
    module = name.removeprefix("figure-").replace("-", "_")
    files = [folder / f"{module}.py"] if name != "shared" else sorted(folder.glob("*.py"))
    source = "".join(path.read_text(encoding="utf-8") for path in files)
    for key in english.keys() - {".title", ".question"}:
        full = key.removeprefix(".") if name != "shared" else f"shared{key}"
        # A key stands in the source as a whole, or its family does, before what the numbers choose.
        family = full.rpartition(".")[0]
        assert any(f'"{text}' in source for text in (f'{full}"', f'{family}"', f"{family}.")), key


def test_every_figure_asks_a_question():
    for name in figure_names():
        tree = say().tree.get(f"figure-{name}")
        if tree is not None:
            assert tree["question"].endswith("?")
            assert not tree["title"].endswith(".")
