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


def parts(sentence) -> list:
    return list(sentence.values["tasks"].items)


@pytest.mark.parametrize(
    ("experiments", "word"),
    [((ADAM,), "alike"), ((ADAM, SGD), "changes"), ((("a", "text", "adam", {4: SAME}),), "alike")],
)
def test_a_sign_that_changes_is_said_so(experiments, word):
    sentence = longer_runs.tasks(verdicts(*experiments), "longer.linear", RULE)
    assert sentence.key == f"longer.linear.{word}"
    assert len(parts(sentence)) == len(experiments)
    for language in LANGUAGES:
        assert say(language, sentence)


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
    assert longer_runs.verdicts(verdicts(*experiments), "longer.plain", "none") is None


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
    for sentence, name in (
        (longer_runs.tasks(rows, "longer.linear", RULE), "tasks"),
        (longer_runs.verdicts(rows, "longer.linear", RULE), "parts"),
    ):
        usual, longer = sentence.values[name].items
        assert usual.key in ("longer.task.speed", "longer.verdict.speeds")
        assert (longer.key, longer.values["end"].key) == ("longer.end", f"longer.ends.{word}")
        assert (longer.values["values"].items, longer.values["widths"].items) == (("0.16", "0.64"), ("16", "64"))
        for language in LANGUAGES:
            assert say(language, sentence)
    assert longer_runs.alike(rows, RULE) == ({"recall"} if word == "same" else set())
    assert longer_runs.alike(rows[~long], RULE) == set()


def test_every_width_is_told_in_order():
    (told,) = parts(longer_runs.tasks(verdicts(ADAM), "longer.linear", RULE))
    assert told.key == "longer.task.speed"
    assert told.values["values"].items == ("0.16", "0.64")
    assert told.values["widths"].items == ("16", "64")


def test_the_same_models_again_are_not_told_twice():
    again = ("recall_mirrored", "recall", "adam", {64: HURTS})
    assert len(parts(longer_runs.tasks(verdicts(ADAM, again), "longer.linear", RULE))) == 1


def test_right_answers_are_told_where_they_decide_and_losses_of_text():
    (told,) = parts(longer_runs.tasks(verdicts(SGD, accuracy=HURTS), "longer.linear", RULE))
    assert told.key == "longer.task.accuracy"
    assert (told.values["values"].items, told.values["references"].items) == (("50.0 %",), ("75.0 %",))
    (told,) = parts(longer_runs.tasks(verdicts(PROSE), "longer.linear", RULE))
    assert told.key == "longer.task.loss"
    assert told.values["values"].items == ("−0.12",)


def test_a_rule_that_was_not_trained_is_not_spoken_of():
    rows = verdicts(ADAM)
    assert longer_runs.tasks(rows, "longer.linear", "none") is None
    assert longer_runs.tasks(rows.assign(estimate=math.nan), "longer.linear", RULE) is None
    assert longer_runs.halves(start_rate(ADAM=(HELPS, SAME)), RULE) is None
    assert longer_runs.rounding(summary()[:2]) is None


def start_rate(accuracy: str = SAME, **alone: tuple[str, str]) -> pd.DataFrame:
    """Rows of start_rate.csv; for each experiment what the start alone and the rate alone do to the steps."""
    rows = []
    for name, (start, rate) in alone.items():
        for arm, ratio in (((False, False), None), ((True, False), 0.5), ((False, True), 0.75), ((True, True), 0.25)):
            verdict = {(True, False): start, (False, True): rate}.get(arm, accuracy)
            key = {"experiment": name, "task": "recall", "optimiser": name.lower(), "scaling": "none", "d_k": 64}
            key |= {"start": arm[0], "rate": arm[1], "estimate": ratio or 1.0}
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
    sentence = longer_runs.halves(start_rate(**alone), "none")
    assert sentence.key == f"longer.halves.{word}"
    short = longer_runs.halves(start_rate(**alone), "none", numbers_too=False)
    assert (short.key, short.values) == (f"longer.half.{word}", {})
    assert [one.values["start"] for one in parts(sentence)] == ["0.50"] * len(alone)
    for language in LANGUAGES:
        assert say(language, sentence)


def test_halves_are_told_in_right_answers_where_these_decide():
    (told,) = parts(longer_runs.halves(start_rate(accuracy=HELPS, ADAM=(HELPS, SAME)), "none"))
    assert told.key == "longer.arms.accuracy"
    assert told.values["neither"] == "100.0 %"
    assert told.values["both"] == "25.0 %"


def summary() -> pd.DataFrame:
    key = {"task": "recall", "d_k": 64}
    rows = [("recall", "none", 0.1), ("recall", "1/sqrt(d_k)", 0.01)]
    rows += [("recall_mirrored", "none", 0.3), ("recall_mirrored", "1/sqrt(d_k)", 0.02)]
    return pd.DataFrame([key | {"experiment": name, "scaling": rule, "loss": loss} for name, rule, loss in rows])


def test_models_rounded_otherwise_are_held_against_the_usual_ones():
    sentence = longer_runs.rounding(summary())
    assert [sentence.values[name] for name in ("plain", "plain_mirrored")] == ["0.10", "0.30"]
    assert [sentence.values[name] for name in ("scaled", "scaled_mirrored")] == ["0.010", "0.020"]
    for language in LANGUAGES:
        assert say(language, sentence)
    # Without the models to hold them against there is nothing to say.
    assert longer_runs.rounding(summary()[2:]) is None
