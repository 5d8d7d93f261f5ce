"""The rule that decides a claim: an interval against a margin, and the two sides of a condition."""

import math

import numpy as np
import pandas as pd
import pytest

from sqrtdk.claims import core
from sqrtdk.claims.core import Measured, Missing, Outcome, either, every, under
from sqrtdk.claims.lookup import Results
from sqrtdk.claims.texts import Text
from sqrtdk.claims.thresholds import ALL, Threshold

WORDS = dict(
    source="A", kind="simulated", says=Text(en="a", zh="甲"), measures=Text(en="b", zh="乙"), evidence="fig-depth"
)
EXACT = dict(exact=True)


def threshold(value: float, other: float = 0.3) -> Threshold:
    return Threshold("some", value, other, WORDS["says"], WORDS["measures"])


def near(estimate, expected, margin):
    return core.near(estimate, expected, threshold(margin))


def at_least(estimate, bound, other=0.3):
    return core.at_least(estimate, threshold(bound, other))


def at_most(estimate, bound, other=0.3):
    return core.at_most(estimate, threshold(bound, other))


@pytest.mark.parametrize(
    ("value", "se", "verdict"),
    [
        (1.0, 0.02, "holds"),
        (1.06, 0.02, "holds"),
        (1.06, 0.021, "undecided"),
        (1.0, 0.06, "undecided"),
        (1.13, 0.02, "undecided"),
        (1.14, 0.0205, "undecided"),
        (1.14, 0.02, "fails"),
        (0.87, 0.02, "undecided"),
        (0.86, 0.02, "fails"),
        (2.0, 10.0, "undecided"),
    ],
)
def test_the_whole_interval_decides(value, se, verdict):
    assert near(Measured(value, se), 1.0, 0.1).verdict() == verdict


def test_bounds_have_one_side():
    assert at_least(Measured(5.0, 1.0), 3.0).verdict() == "holds"
    assert at_least(Measured(5.0, 1.1), 3.0).verdict() == "undecided"
    assert at_least(Measured(1.0, 1.0), 3.0).verdict() == "fails"
    assert at_most(Measured(1.0, 1.0), 3.0).verdict() == "holds"
    assert at_most(Measured(5.0, 1.0), 3.0).verdict() == "fails"
    assert at_most(Measured(1e9, 1.0), 3.0).verdict() == "fails"


def test_few_degrees_of_freedom_widen_the_interval():
    assert near(Measured(1.0, 0.04), 1.0, 0.1).verdict() == "holds"
    assert near(Measured(1.0, 0.04, dof=3), 1.0, 0.1).verdict() == "undecided"


@pytest.mark.parametrize("se", [0.0, math.nan, math.inf])
def test_an_estimate_without_an_error_decides_nothing(se):
    outcome = every(near(Measured(1.0, se), 1.0, 0.1))
    assert outcome.verdict() == "undecided"
    assert outcome.undecided_by() == core.NO_ERROR
    assert every(near(Measured(1.0, **EXACT), 1.0, 0.1)).verdict() == "holds"
    assert every(near(Measured(1.2, **EXACT), 1.0, 0.1)).verdict() == "fails"


def test_of_heads_of_several_models_the_models_count():
    table = pd.DataFrame({"dump": ["a", "a", "a", "b", "c", "c"], "model": ["A", "A", "A", "A", "C", "C"]})
    results = Results({"real_heads": table}, {})
    truth = pd.Series([True, True, True, False, True, False])
    found = results.share_of_heads(truth, table["dump"])
    assert (found.value, found.dof) == ((0.75 + 0.5) / 2, 1)
    assert found.se == pytest.approx(0.125)
    alike = results.share_of_heads(truth | True, table["dump"])
    assert alike.value == 1
    assert alike.interval()[0] < 0.6
    single = Results({"real_heads": table.assign(model="A")}, {}).share_of_heads(truth, table["dump"])
    assert single == results.share(truth)


def test_logarithmic_intervals_are_symmetric_in_the_ratio():
    low, high = Measured(2.0, 0.4, log=True).interval()
    assert low * high == pytest.approx(4.0)
    assert math.log(high / 2) == pytest.approx(1.959964 * 0.2, rel=1e-6)
    assert Measured(2.0, 1e9, log=True).interval()[1] < math.inf


def test_the_interval_of_a_share_stays_between_0_and_1():
    """And it holds the truth about as often as it says, where few of few are in (Agresti and Coull)."""
    rng, truth, n = np.random.default_rng(8), 0.03, 72
    results, held = Results({}, {}), []
    for count in rng.binomial(n, truth, 2000):
        estimate = results.share(np.arange(n) < count)
        low, high = estimate.interval()
        assert 0 <= low <= estimate.value == count / n <= high <= 1
        held.append(low <= truth <= high)
    assert 0.93 < np.mean(held) <= 1
    assert Measured(1.0, 0.01, ends=(0.0, 1.0)).interval() == (pytest.approx(0.9804, abs=1e-4), 1.0)
    few = results.share(np.arange(10) < 2)
    assert few.scaled(-1).shifted(1).interval() == pytest.approx([1 - end for end in few.interval()[::-1]])
    assert at_most(results.share(np.arange(n) < 1), 0.1).verdict() == "holds"
    assert at_most(results.share(np.arange(10) < 1), 0.2).verdict() == "undecided"


@pytest.mark.parametrize(
    ("edge", "test", "log"),
    [
        (1.1, lambda estimate: near(estimate, 1.0, 0.1), False),
        (0.9, lambda estimate: near(estimate, 1.0, 0.1), False),
        (2.0, lambda estimate: at_least(estimate, 2.0), False),
        (2.0, lambda estimate: at_most(estimate, 2.0), False),
        (2.0, lambda estimate: at_least(estimate, 2.0), True),
    ],
)
def test_at_the_edge_no_side_is_taken_more_often_than_promised(edge, test, log):
    """Where the truth is the edge itself, `holds` and `fails` are each wrong in at most 2.5 % of studies."""
    rng, studies, n = np.random.default_rng(5), 20_000, 8
    samples = rng.normal(0, 0.05, (studies, n)) + (math.log(edge) if log else edge)
    centres, errors = samples.mean(axis=1), samples.std(axis=1, ddof=1) / n**0.5
    if log:
        centres = np.exp(centres)
        errors = centres * errors
    verdicts = [test(Measured(float(c), float(e), n - 1, log)).verdict() for c, e in zip(centres, errors, strict=True)]
    allowed = 0.025 + 4 * math.sqrt(0.025 * 0.975 / studies)
    for side in ("holds", "fails"):
        assert np.mean([verdict == side for verdict in verdicts]) < allowed


def test_a_bold_rule_would_be_caught():
    """Negative control of the test above: half the interval takes a side in 16 % of the studies at the edge."""
    rng = np.random.default_rng(5)
    values = rng.normal(2.0, 1.0, 4000)
    assert np.mean([at_least(Measured(float(v), 0.5), 2.0).verdict() == "holds" for v in values]) > 0.1


@pytest.mark.slow
def test_several_tests_share_the_chance_of_an_error():
    """With ten truths at the edge itself a false refutation is still rare."""
    rng, studies, k = np.random.default_rng(6), 4000, 10
    values = rng.normal(1.1, 0.01, (studies, k))
    outcomes = [every(*(near(Measured(float(v), 0.01), 1.0, 0.1) for v in row)) for row in values]
    assert outcomes[0].level == pytest.approx(0.995)
    assert np.mean([outcome.verdict() == "fails" for outcome in outcomes]) < 0.025 + 4 * math.sqrt(0.025 / studies)
    assert every(near(Measured(1.0, 0.04), 1.0, 0.1)).verdict() == "holds"
    assert every(*[near(Measured(1.0, 0.04), 1.0, 0.1)] * k).verdict() == "undecided"


def test_the_worst_of_several_tests_is_shown():
    good, vague, bad = (near(Measured(value, se), 1.0, 0.1) for value, se in ((1.0, 0.001), (1.0, 1.0), (2.0, 0.001)))
    assert every(good, bad, vague).decisive() is bad
    assert every(good, vague).decisive() is vague
    assert every(good, vague).verdict() == "undecided"
    assert every(good, good).decisive() is good


@pytest.mark.parametrize(
    ("inside", "outside", "verdict"),
    [
        ("in", "out", "holds_if"),
        ("in", "in", "holds"),
        ("in", "vague", "undecided"),
        ("out", "in", "fails"),
        ("out", "out", "fails"),
        ("vague", "out", "undecided"),
    ],
)
def test_a_condition_needs_both_sides(inside, outside, verdict):
    sides = {"in": Measured(1.0, 0.01), "out": Measured(3.0, 0.01), "vague": Measured(1.0, 1.0)}
    assert under(near(sides[inside], 1.0, 0.1), near(sides[outside], 1.0, 0.1)).verdict() == verdict


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (5.0, 1.0, "holds"),
        (1.0, 5.0, "holds"),
        (5.0, 5.0, "holds"),
        (1.0, 1.0, "fails"),
        (1.0, 3.1, "undecided"),
        (5.0, 3.1, "holds"),
    ],
)
def test_where_one_is_enough_all_have_to_fail(first, second, verdict):
    outcome = either(*(at_least(Measured(value, 0.2), 3.0) for value in (first, second)))
    assert outcome.verdict() == verdict
    assert outcome.decisive().verdict(outcome.level) == verdict
    assert outcome.level == every(*outcome.tests).level


def test_of_those_that_decide_the_one_nearest_to_its_threshold_is_shown():
    far, close = (at_least(Measured(value, 0.1), 3.0) for value in (9.0, 4.0))
    assert every(far, close).decisive() is close
    out, outside = (at_least(Measured(value, 0.1), 3.0) for value in (-9.0, 2.0))
    assert every(out, far, outside, close).decisive() is outside
    assert either(out, far, outside, close).decisive() is close


def test_distances_are_to_the_nearer_end_and_negative_outside():
    assert near(Measured(1.03, 0.01), 1.0, 0.1).distance == pytest.approx(0.07)
    assert near(Measured(0.8, 0.01), 1.0, 0.1).distance == pytest.approx(-0.1)
    assert near(Measured(0.8, 0.01), 1.0, 0.1).relative_distance == pytest.approx(-1.0)
    assert at_least(Measured(5.0, 0.1), 4.0).relative_distance == pytest.approx(0.25)
    assert at_most(Measured(5.0, 0.1), 4.0).relative_distance == pytest.approx(-0.25)
    assert at_most(Measured(-0.5, 0.1), -0.4).relative_distance == pytest.approx(0.25)


def test_the_other_threshold_can_turn_each_part_of_a_verdict():
    one = at_least(Measured(0.5, 0.01), 0.4, 0.6)
    assert every(one).verdict() == "holds"
    assert every(one).turned().verdict() == "fails"
    assert either(one, at_least(Measured(0.1, 0.01), 0.4, 0.6)).turned().verdict() == "fails"
    sides = under(at_least(Measured(0.9, 0.01), 0.8, 0.3), at_least(Measured(0.5, 0.01), 0.8, 0.3))
    assert (sides.verdict(), sides.turned().verdict()) == ("holds_if", "holds")
    assert every(one).turned().turned() == every(one)


def test_thresholds_are_stated_once_each_with_a_reason_and_another_that_differs():
    assert len({one.name for one in ALL}) == len(ALL)
    for one in ALL:
        assert one.other != one.value > 0
        assert one.means.en != one.why.en
    half = threshold(0.4, 0.8).inverse()
    assert (half.value, half.other, half.times(-2).value) == (2.5, 1.25, -5.0)


def test_errors_travel_with_the_numbers():
    rng = np.random.default_rng(2)
    a, b = rng.normal(8.0, 0.08, 200_000), rng.normal(2.0, 0.02, 200_000)
    one, other = Measured(8.0, 0.08), Measured(2.0, 0.02)
    for found, drawn in (
        (one.over(other), a / b),
        (one.power(0.5), a**0.5),
        (one.log2(), np.log2(a)),
        (one.scaled(-3), -3 * a),
        (one.minus(other), a - b),
        (one.shifted(2), a + 2),
    ):
        assert found.value == pytest.approx(drawn.mean(), rel=1e-3)
        assert found.se == pytest.approx(drawn.std(), rel=0.02)
    assert one.over(Measured(2.0, **EXACT)).exact is False
    assert Measured(8.0, **EXACT).over(Measured(2.0, **EXACT)).exact is True
    for broken in (lambda: one.over(Measured(0.0, 1.0)), Measured(-1.0, 1.0).log2, lambda: Measured(0.0, 1.0).power(2)):
        with pytest.raises(Missing):
            broken()


def test_a_language_that_is_left_out_or_empty_is_refused():
    with pytest.raises(TypeError, match="zh"):
        Text(en="only English")
    with pytest.raises(ValueError, match="'zh'"):
        Text(en="English", zh="  ")


class TestClaim:
    def claim(self, test, **changes):
        return core.Claim(**WORDS | dict(id="X1", reads=("moments",), test=test) | changes)

    def decide(self, test, **changes):
        return self.claim(test, **changes).decide(Results({}, {}))

    def test_what_is_missing_makes_it_undecided_and_is_named(self):
        decision = self.decide(lambda results: Outcome((near(results.row("moments").estimate(), 1.0, 0.1),)))
        assert (decision.verdict, decision.reason, decision.missing) == ("undecided", "missing", "moments")

    def test_a_table_that_the_claim_does_not_name_is_a_mistake(self):
        with pytest.raises(KeyError, match="depth"):
            self.decide(lambda results: results.row("depth"))

    def test_an_opinion_stays_one(self):
        for value in (1.0, 5.0):
            test = near(Measured(value, 0.01), 1.0, 0.1)
            assert self.decide(lambda results, test=test: Outcome((test,)), opinion=True).verdict == "opinion"

    @pytest.mark.parametrize(
        ("untested", "value", "verdict", "reason"),
        [
            ("part", 1.0, "undecided", "untested_part"),
            ("part", 5.0, "fails", ""),
            ("part", 1.1, "undecided", "interval"),
            ("whole", 1.0, "undecided", "untested"),
            ("whole", 5.0, "undecided", "untested"),
        ],
    )
    def test_a_part_that_is_untested_leaves_it_undecided_unless_the_other_fails(self, untested, value, verdict, reason):
        test = Outcome((near(Measured(value, 0.01), 1.0, 0.1),))
        decision = self.decide(lambda results: test, untested=untested, remark=WORDS["says"])
        assert (decision.verdict, decision.reason) == (verdict, reason)

    def test_a_condition_of_what_is_untested_in_part_is_undecided_too(self):
        sides = under(near(Measured(1.0, 0.01), 1.0, 0.1), near(Measured(5.0, 0.01), 1.0, 0.1))
        words = dict(holds_if=WORDS["says"], not_if=WORDS["says"], remark=WORDS["says"])
        assert self.decide(lambda results: sides, **words).verdict == "holds_if"
        assert self.decide(lambda results: sides, untested="part", **words).verdict == "undecided"

    def test_the_other_threshold_refutes_what_is_untested_in_part_and_nothing_else(self):
        test = Outcome((at_least(Measured(0.5, 0.01), 0.4, 0.6),))
        for untested, other in (("part", "fails"), ("whole", "undecided")):
            found = self.decide(lambda results: test, untested=untested, remark=WORDS["says"])
            assert (found.verdict, found.other_verdict) == ("undecided", other)

    def test_what_is_untested_is_said_in_a_remark_and_no_opinion(self):
        words = dict(remark=WORDS["says"])
        for change in (
            dict(untested="part"),
            words | dict(untested="all"),
            words | dict(untested="whole", opinion=True),
        ):
            with pytest.raises(ValueError, match="X1"):
                self.claim(lambda results: None, **change)

    def test_an_opinion_has_no_condition(self):
        sides = dict(holds_if=WORDS["says"], not_if=WORDS["measures"])
        assert self.claim(lambda results: None, **sides).holds_if
        with pytest.raises(ValueError, match="X1: an opinion"):
            self.claim(lambda results: None, opinion=True, **sides)

    def test_words_and_test_agree_on_the_condition(self):
        side = near(Measured(1.0, 0.01), 1.0, 0.1)
        with pytest.raises(ValueError, match="X1"):
            self.decide(lambda results: under(side, side))
        with pytest.raises(ValueError, match="X1"):
            self.claim(lambda results: under(side, side), holds_if=WORDS["says"])

    def test_unknown_kinds_and_sources_are_refused(self):
        for change in (dict(kind="guessed"), dict(source="C")):
            with pytest.raises(ValueError, match="X1"):
                self.claim(lambda results: None, **change)

    def test_only_a_widespread_claim_that_does_not_hold_is_a_surprise(self):
        def surprise(value, **changes):
            test = Outcome((near(Measured(value, 0.01), 1.0, 0.1),))
            return self.decide(lambda results: test, **changes).surprise

        assert surprise(3.0, widespread=True)
        assert not surprise(1.0, widespread=True)
        assert not surprise(3.0)
        assert not surprise(3.0, widespread=True, opinion=True)

    def test_two_claims_of_one_name_are_refused(self, monkeypatch):
        monkeypatch.setitem(core.REGISTRY, "C1", self.claim(lambda results: None))
        with pytest.raises(ValueError, match="C1"):
            core.claim("C1", **WORDS)(lambda results: None)
