"""Sentences on the longer training runs: chosen by the numbers, over tasks, optimisers and widths."""

import math
from pathlib import Path

import pandas as pd
import pytest

from sqrtdk.report import longer_runs
from sqrtdk.words import texts

REPORT = Path(__file__).resolve().parents[2] / "report"
LANGUAGES = ("en", "zh")
RULE, HELPS, HURTS, SAME = "1/d_k", "helps", "hurts", "no difference"


def verdicts(*experiments: tuple, accuracy: str = SAME) -> pd.DataFrame:
    """Rows of training_verdicts.csv; an experiment is its name, task, optimiser and verdicts on steps by width."""
    rows = []
    for name, task, optimiser, by_width in experiments:
        for d_k, verdict in by_width.items():
            key = {"experiment": name, "task": task, "optimiser": optimiser, "scaling": RULE, "d_k": d_k}
            values = {"value": 0.5, "reference_value": 0.75}
            rows += [
                key | {"comparison": "speed", "estimate": d_k / 100, "verdict": verdict} | values,
                key | {"comparison": "accuracy", "estimate": -0.25, "verdict": accuracy} | values,
                key | {"comparison": "loss", "estimate": -0.125, "verdict": SAME} | values,
            ]
    return pd.DataFrame(rows)


ADAM = ("recall", "recall", "adam", {64: HELPS, 16: SAME})
SGD = ("recall_sgd", "recall", "sgd", {64: HURTS})
PROSE = ("text", "text", "adam", {64: SAME})


def say(language: str, sentence) -> str:
    return texts.Words(texts.read(REPORT, language))(sentence.key, **sentence.values)


@pytest.mark.parametrize(
    ("experiments", "words"),
    [
        ((ADAM,), ["speeds"]),
        ((ADAM, SGD, PROSE), ["speeds", "slows", "same"]),
        ((("a", "recall", "adam", {4: HELPS, 16: HURTS}), PROSE), ["turns", "same"]),
        ((("a", "recall", "adam", {4: "undecided"}),), ["undecided"]),
    ],
)
def test_each_task_stands_under_what_a_rule_does_to_it(experiments, words):
    sentence = longer_runs.verdicts(verdicts(*experiments), "longer.linear", RULE)
    turns = "turns" in words or {"speeds", "slows"} <= set(words)
    assert sentence.key == f"longer.linear.{'turns' if turns else 'verdicts'}"
    told = sentence.values["parts"].items
    assert [one.key for one in told] == [f"longer.verdict.{word}" for word in words]
    assert sum(len(one.values["tasks"].items) for one in told) == len(experiments)
    for language in LANGUAGES:
        assert say(language, sentence)
    (brief,) = longer_runs.brief(verdicts(*experiments), "longer.brief.linear", RULE)
    assert brief.key == f"longer.brief.linear.{'turns' if turns else 'other'}"
    assert longer_runs.verdicts(verdicts(*experiments), "longer.linear", "none") is None
    assert longer_runs.brief(verdicts(*experiments), "longer.brief.plain", "none") == ()


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_hurts_everywhere_is_said_in_a_sentence_with_what_ends_alike(language):
    slow = ("a", "recall", "adam", {64: HURTS})
    (brief,) = longer_runs.brief(verdicts(slow), "longer.brief.plain", RULE)
    assert brief.key == "longer.brief.plain.hurts"
    same = verdicts(("recall_long", "recall", "adam", {64: HURTS}), accuracy=SAME)
    told = longer_runs.brief(pd.concat([verdicts(slow), same]), "longer.brief.plain", RULE)
    assert [one.key for one in told] == ["longer.brief.plain.hurts", "longer.alike"]
    assert all(say(language, one) for one in told)


def test_what_ends_otherwise_helps_or_hurts_and_is_not_slow_alone():
    sentence = longer_runs.verdicts(verdicts(ADAM, accuracy=HURTS), "longer.linear", RULE)
    assert [one.key for one in sentence.values["parts"].items] == ["longer.verdict.hurts"]


LONG = ("recall_long", "recall", "adam", {64: HURTS, 16: HURTS})


@pytest.mark.parametrize(
    ("loss", "accuracy", "word"),
    [
        (SAME, SAME, "same"),
        (HURTS, SAME, "hurts"),
        (SAME, HELPS, "helps"),
        (HURTS, HELPS, "turns"),
        (SAME, "undecided", "undecided"),
    ],
)
def test_what_is_trained_longer_is_told_by_its_end_and_its_time(loss, accuracy, word):
    rows = verdicts(LONG, ADAM)
    long = rows["experiment"] == "recall_long"
    for comparison, verdict in (("loss", loss), ("accuracy", accuracy)):
        rows.loc[long & (rows["comparison"] == comparison), "verdict"] = verdict
    sentence = longer_runs.verdicts(rows, "longer.linear", RULE)
    usual, longer = sentence.values["parts"].items
    assert usual.key == "longer.verdict.speeds"
    assert (longer.key, longer.values["end"].key) == ("longer.end", f"longer.ends.{word}")
    assert (longer.values["values"].items, longer.values["widths"].items) == (("0.16", "0.64"), ("16", "64"))
    for language in LANGUAGES:
        assert say(language, sentence)
    _, told = longer_runs.table((rows, steps(rows))).rows
    assert told[0].sentences[0].key == "longer.batches"
    assert [one.key for one in told[4].note.items] == ["verdicts.hurts", f"longer.ends.{word}"]
    assert longer_runs.alike(rows, RULE) == ({"recall"} if word == "same" else set())
    assert longer_runs.alike(rows[~long], RULE) == set()


def steps(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of training_summary.csv for all that was trained."""
    rows = rows.drop_duplicates(["experiment", "scaling", "d_k"])[["experiment", "scaling", "d_k"]]
    return rows.assign(steps=300, accuracy_low=0.25, accuracy_high=0.625)


def cells(*experiments: tuple, **changes: str) -> list[tuple]:
    rows = verdicts(*experiments, **changes)
    return list(longer_runs.table((rows, steps(rows))).rows)


def spelled(cell) -> tuple[str, tuple, list[str]]:
    """Return the key of a cell, its values, and its verdicts."""
    (told,) = cell.sentences
    return told.key, told.values["values"].items, [one.key.removeprefix("verdicts.") for one in cell.note.items]


def test_a_line_holds_every_width_in_order_with_its_verdict():
    ((task, trained, widths, none, linear),) = cells(ADAM)
    assert task.sentences[0].key == "longer.named"
    assert (trained.text, widths.text.items) == ("300", ("16", "64"))
    assert none == longer_runs.NONE
    assert spelled(linear) == ("longer.cell.speed", ("0.16", "0.64"), ["same", "helps"])
    # One word is enough where the widths agree.
    ((*_, linear),) = cells(("a", "recall", "adam", {4: HURTS, 16: HURTS}))
    assert spelled(linear)[2] == ["hurts"]
    for language in LANGUAGES:
        assert say(language, linear.sentences[0])


def test_the_same_models_again_are_not_told_twice():
    again = ("recall_mirrored", "recall", "adam", {64: HURTS})
    assert len(cells(ADAM, again)) == 1
    rows = verdicts(ADAM)
    assert len(longer_runs.table((rows, steps(rows)), (rows, steps(rows))).rows) == 2


def test_right_answers_are_told_where_they_decide_and_losses_of_text():
    ((*_, linear),) = cells(SGD, accuracy=HURTS)
    assert spelled(linear) == ("longer.cell.accuracy", ("50.0 % [25, 62]",), ["hurts"])
    assert linear.sentences[0].values["references"].items == ("75.0 %",)
    ((*_, linear),) = cells(PROSE)
    assert spelled(linear) == ("longer.cell.loss", ("−0.12",), ["same"])


def test_a_rule_that_was_not_trained_is_not_spoken_of():
    rows = verdicts(ADAM)
    assert longer_runs.table((rows.assign(scaling="learnable"), steps(rows))).rows == ()
    assert longer_runs.table((rows.assign(estimate=math.nan), steps(rows))).rows == ()
    assert longer_runs.halves(start_rate(ADAM=(HELPS, SAME)), RULE) == ()
    assert longer_runs.rounding(summary()[:3]) is None


def start_rate(accuracy: str = SAME, both: float = 0.25, **alone: tuple[str, str]) -> pd.DataFrame:
    """Rows of start_rate.csv; for each experiment what the start alone and the rate alone do to the steps.

    both: the steps with both, where the start alone takes 0.5; each within a fifth.
    """
    rows = []
    for name, (start, rate) in alone.items():
        for arm, ratio in (((False, False), None), ((True, False), 0.5), ((False, True), 0.75), ((True, True), both)):
            verdict = {(True, False): start, (False, True): rate}.get(arm, accuracy)
            key = {"experiment": name, "task": "recall", "optimiser": name.lower(), "scaling": "none", "d_k": 64}
            key |= {"start": arm[0], "rate": arm[1], "estimate": ratio or 1.0}
            key |= {"low": 0.8 * key["estimate"], "high": 1.2 * key["estimate"]}
            rows += [
                key | {"measure": measure, "against_neither": ratio, "verdict_neither": verdict}
                for measure in ("speed", "accuracy")
            ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("alone", "word"),
    [
        ({"ADAM": (HELPS, SAME), "SGD": (HELPS, "undecided")}, "start"),
        ({"ADAM": (SAME, HELPS)}, "rate"),
        ({"ADAM": (HELPS, SAME), "SGD": (SAME, HELPS)}, "depends"),
        ({"ADAM": (HELPS, SAME), "SGD": (HELPS, HELPS)}, "depends"),
        ({"ADAM": (HELPS, HELPS)}, "depends"),
        ({"ADAM": (SAME, SAME)}, "depends"),
    ],
)
def test_one_half_does_the_work_only_where_it_does_everywhere(alone, word):
    half, *together = longer_runs.halves(start_rate(**alone), "none")
    assert (half.key, half.values) == (f"longer.half.{word}", {})
    assert [one.key for one in together] == ["longer.together"] * (word == "start")
    for language in LANGUAGES:
        assert all(say(language, one) for one in (half, *together))


def test_both_halves_help_more_only_where_the_intervals_are_apart():
    alone = {"ADAM": (HELPS, SAME)}
    assert len(longer_runs.halves(start_rate(**alone, both=0.3), "none")) == 2
    assert len(longer_runs.halves(start_rate(**alone, both=0.4), "none")) == 1


def summary() -> pd.DataFrame:
    key = {"task": "recall", "d_k": 64}
    rows = [("recall", "none", 0.1), ("recall", "1/sqrt(d_k)", 0.01), ("recall", "1/d_k", 0.002)]
    rows += [(f"{name}_mirrored", rule, loss) for (name, rule, _), loss in zip(rows, (0.3, 0.02, 0.002), strict=True)]
    return pd.DataFrame([key | {"experiment": name, "scaling": rule, "loss": loss} for name, rule, loss in rows])


def test_models_rounded_otherwise_are_held_against_the_usual_ones():
    sentence = longer_runs.rounding(summary())
    assert sentence.values["plain"].values == {"usual": "0.10", "mirrored": "0.30"}
    assert sentence.values["scaled"].values == {"usual": "0.010", "mirrored": "0.020"}
    for language in LANGUAGES:
        assert say(language, sentence).count("0.0020") == 1
    # Without the models to hold them against there is nothing to say.
    assert longer_runs.rounding(summary()[3:]) is None


def test_two_losses_that_differ_are_never_printed_alike():
    rows = summary()
    rows.loc[rows["scaling"] == "1/sqrt(d_k)", "loss"] = [0.0042, 0.004213]
    values = longer_runs.rounding(rows).values["scaled"].values
    assert values == {"usual": "0.00420", "mirrored": "0.00421"}
