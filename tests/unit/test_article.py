"""The article: numbers choose each sentence, each sentence can be chosen, and has words in both languages."""

import math
import re

import article_cases
import pandas as pd
import pytest
import yaml
from article_cases import (
    CONFIGURATION,
    FIVE,
    INNER,
    ON_THE_PAGE,
    QUESTIONS,
    REPORT,
    WORDS_OF_VERDICTS,
    answer,
    asked,
    cases,
    changed,
    everything,
    frames,
    setting,
    shipped,
    told,
    untrained,
)

from sqrtdk.figures import catalogue
from sqrtdk.report.article import design, five_sentences, practice, questions
from sqrtdk.report.comparing import with_ends
from sqrtdk.results.picking import pick, simulated
from sqrtdk.sampling import one_product
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Sentence

LANGUAGES = ("en", "zh")


def five(tables_) -> dict[str, Sentence]:
    return {point.name: point.sentences[0] for point in five_sentences.five_sentences(tables_, setting(tables_))}


def keys(sentences) -> list[str]:
    return [sentence.key.removeprefix("article.questions.") for sentence in sentences]


# ---- the five sentences ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "word"), cases(FIVE))
def test_each_of_the_five_sentences_can_be_chosen(family, word):
    assert told(family, FIVE[family][word]()).key == f"article.five.{family}.{word}"


@pytest.mark.parametrize(("family", "word"), cases(INNER))
def test_each_clause_can_be_chosen(family, word):
    outer, inner = family
    sentence = told(outer, INNER[family][word]())
    assert sentence.values[inner].key == f"article.five.{outer}.{inner}.{word}"


def test_all_that_can_be_chosen_is_tried():
    tried = {family: tuple(words) for family, words in FIVE.items()}
    tried |= {".".join(family): tuple(words) for family, words in INNER.items()}
    listed = five_sentences.VARIANTS | {"why.exponent": ("estimated", "not_estimable")}
    assert {family: set(words) for family, words in tried.items()} == {
        family: set(words) for family, words in listed.items()
    }
    assert {family: set(words) for family, words in QUESTIONS.items()} == {
        family: set(words) for family, words in questions.VARIANTS.items()
    }


def test_five_sentences_say_the_numbers_of_the_tables():
    tables_ = frames()
    found = five(tables_)
    assert list(found) == ["why", "when", "softmax", "gradient", "training"]
    row = pick(tables_["moments"], "moments.csv", ensemble="gaussian", d_k=64)
    assert found["why"].values["variance"] == numbers.plus_minus(row["variance"], row["variance_se"])
    assert found["why"].values["scaled"].startswith("1.0")
    at = simulated(tables_["moments"]).query("d_k == 64").dropna(subset=["variance"])
    near = ((at["variance"] / 64) ** 0.5 - 1).abs() <= 0.1
    assert (found["when"].values["count"], found["when"].values["near"]) == (str(len(at)), str(near.sum()))
    told = {one.values["name"] for one in found["when"].values["far"].items}
    assert at.loc[at["variance"].idxmax(), "ensemble"] in told
    best = tables_["training_verdicts"].query("scaling == 'none' and comparison == 'loss' and d_k == 64").iloc[0]
    compared = found["training"].values["compared"].values
    assert float(compared["estimate"].replace("−", "-")) == pytest.approx(best["estimate"], rel=0.1)
    assert float(compared["loss"]) == pytest.approx(best["value"], rel=0.1)
    (other,) = found["training"].values["others"].values["tasks"].items
    assert other.values["task"] == "induction"


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_is_one_sentence(language):
    end = {"en": r"\.(?=\s|$)", "zh": "。"}[language]
    say = article_cases.say(language)
    for family, words in FIVE.items():
        for word in words:
            text = re.sub(r"<[^>]+>|\$[^$]*\$", "", say.text(f"article.five.{family}.{word}"))
            assert len(re.findall(end, text)) == 1, text


# ---- questions, practice, design -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "word"), cases(QUESTIONS))
def test_each_answer_can_be_chosen(family, word):
    assert f"{family}.{word}" in keys(answer(family, word))


def test_answers_are_two_to_four_sentences_with_evidence():
    for point in questions.questions(frames(), shipped(), setting(frames())):
        assert 2 <= len(point.sentences) <= 4, point.name
        assert point.evidence


def test_what_is_not_in_the_run_is_left_out():
    bare = frames(
        real_heads=frames()["real_heads"].head(0),
        planted_capacity=frames()["planted_capacity"].head(0),
        training_verdicts=untrained(),
        training_summary=frames()["training_summary"].head(0),
        freezing_frontier=frames()["freezing_frontier"].head(0),
    )
    longer = {"training_verdicts": untrained(), "start_rate": shipped()["start_rate"].head(0)}
    assert asked("heads", bare) == ()
    assert "heads" not in [point.name for point in questions.questions(bare, longer, setting(bare))]
    assert len(asked("root", bare, longer)) == 1
    assert keys(asked("keys", bare))[1:] == ["keys.spread"]
    found = practice.measured(bare, longer)
    assert "learned" not in found
    assert [one.key for one in found["constant"]] == ["article.practice.constant.measured"]
    assert design.card(bare, CONFIGURATION)[1].sentences[1].key == "article.design.mechanisms.untrained"
    assert design.card(bare, CONFIGURATION)[1].sentences[-1].key == "article.design.mechanisms.no_heads"


@pytest.mark.slow
def test_the_small_test_is_computed():
    sentences = asked("small_test", frames())
    assert sentences[0].values["below"] == f"{100 * one_product.chance_below(questions.TOLD):.0f} %"
    assert sentences[1].values["mean"] == "1.5"
    for language in LANGUAGES:
        title = article_cases.say(language).text("article.questions.small_test.title")
        assert f"{questions.SMALL} × {questions.SMALL}" in title
        assert f"{questions.TOLD:g}" in title


@pytest.mark.parametrize("word", WORDS_OF_VERDICTS)
def test_practice_says_what_training_says(word):
    verdict = WORDS_OF_VERDICTS[word]
    found = practice.measured(changed("training_verdicts", {"verdict": verdict}, scaling="1/d_k"), shipped(word))
    for row in ("mup", "learned", "constant"):
        assert f"article.practice.{row}.training.{word}" in [one.key for one in found[row]]


def test_practice_has_a_row_for_each_situation():
    table = practice.practice(frames(), shipped())
    assert len(table.rows) == len(practice.EVIDENCE)
    assert [row[0].word for row in table.rows] == [f"article.practice.{name}.situation" for name in practice.EVIDENCE]
    one = frames()["alternatives"].query("n_keys == 8")
    assert practice.measured(frames(alternatives=one), shipped())["long"][0].key.endswith("measured_one")


def test_the_card_counts_what_is_there():
    tables_ = frames()
    card = {point.name: point.sentences for point in design.card(tables_, CONFIGURATION)}
    cells = simulated(tables_["moments"])
    assert card["mechanisms"][0].values["cells"] == str(len(cells))
    assert card["methods"][0].values["goal"] == "0.1 %"
    reached = cells["relative_se"].between(0, 0.001, inclusive="right").sum()
    assert card["performance"][0].values["reached"] == str(reached)
    # Half of the rows, those of the gradients, do not reach their goal.
    rows = len(tables_["softmax_saturation"]) + len(tables_["gradient_magnitude"])
    share = len(tables_["softmax_saturation"]) / rows
    assert card["performance"][1].values == {"share": numbers.percent(share, 0), "count": str(rows)}


def test_evidence_is_there():
    anchors = {f"fig-{name}" for name in catalogue.names()}
    words = yaml.safe_load((REPORT / "words/en/tables.yaml").read_text(encoding="utf-8"))["tables"]
    anchors |= {f"tab-{key.replace('_', '-')}" for key, entry in words.items() if isinstance(entry, dict)}
    anchors |= {"methods-training", "methods-sampling"}
    tables_ = frames()
    points = [
        *five_sentences.five_sentences(tables_, setting(tables_)),
        *questions.questions(tables_, shipped(), setting(tables_)),
    ]
    named = {name for point in points for name in point.evidence} | {
        name for several in practice.EVIDENCE.values() for name in several
    }
    assert named - anchors == set()


@pytest.mark.parametrize(
    ("values", "spelled"),
    [
        ((3.8079, 2.193, 6.6119), ("3.8", "2.2", "6.6")),
        ((1.1124, 1.0714, 1.1551), ("1.112", "1.071", "1.155")),
        ((48.19, 23.32, 99.58), ("48", "23", "100")),
        ((0.5, -math.inf, math.inf), ("0.50", "−∞", "∞")),
    ],
)
def test_an_estimate_is_rounded_by_its_interval(values, spelled):
    assert tuple(with_ends(*values).values()) == spelled


# ---- words -----------------------------------------------------------------------------------------------------------


def leaves(tree: dict, before: str = "") -> dict[str, str]:
    found = {}
    for key, value in tree.items():
        found |= leaves(value, f"{before}{key}.") if isinstance(value, dict) else {f"{before}{key}": value}
    return found


WORDS = {
    language: leaves(yaml.safe_load((REPORT / f"words/{language}/article.yaml").read_text(encoding="utf-8")))
    for language in LANGUAGES
}


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_has_words_and_all_words_are_said(language):
    used: set[str] = set()
    say = article_cases.say(language, used)
    for sentence in everything():
        text = str(say(sentence.key, **sentence.values))
        assert re.search(r"\bnan\b|\bNone\b|\{|\}", text) is None, text
    said = {key for key in WORDS[language] if not ON_THE_PAGE.match(key)}
    assert said - used == set()


def placeholders(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", re.sub(r"\\(?!value)\w+\{\w*\}|_\{[^{}]*\}|\^\{[^{}]*\}", "", text)))


def test_languages_say_the_same_with_the_same_values_formulas_and_references():
    english, chinese = WORDS["en"], WORDS["zh"]
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        other = chinese[key]
        assert placeholders(text) == placeholders(other), key
        assert sorted(re.findall(r"\[@\w+\]", text)) == sorted(re.findall(r"\[@\w+\]", other)), key
        assert set(re.findall(r"</?\w+>", text)) == set(re.findall(r"</?\w+>", other)), key
        assert other != text or key == "article.literal" or not re.search(r"\w{9}", text)


def test_no_result_is_typed():
    for language, words in WORDS.items():
        for key, text in words.items():
            if key != "article.questions.small_test.title":
                bare = re.sub(r"\$[^$]*\$|\{\w+\}|<[^>]*>|95 %|\[@\w+\]|bf16|fp16|fp8|1/fan-in", "", text)
                allowed = {"0", "1", "2", "5"} if "T5" in text or "ReLU" in text or "elu" in text else {"0", "1"}
                assert set(re.findall(r"\d+", bare)) <= allowed, (language, key)


def test_a_wrong_optimiser_has_no_words():
    rows = frames()["training_verdicts"].assign(optimiser="lion")
    sentence = told("training", frames(training_verdicts=rows))
    with pytest.raises(ValueError, match="lion"):
        article_cases.say("en")(sentence.key, **sentence.values)


def test_rows_without_a_number_are_left_out_of_the_verdicts():
    rows = pd.concat([shipped()["training_verdicts"].assign(estimate=math.nan)])
    assert questions.trained(rows, "article.questions.qk_norm.training", "qk_norm") is None
