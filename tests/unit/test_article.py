"""The article: numbers choose each sentence, each sentence can be chosen, and has words in both languages."""

import itertools
import math
import re

import article_cases
import pandas as pd
import pytest
import yaml
from article_cases import (
    CHAPTERS,
    CONFIGURATION,
    ON_THE_PAGE,
    QUESTIONS,
    REPORT,
    answer,
    answers,
    article,
    cases,
    changed,
    everything,
    frames,
    growing,
    one_loser,
    said,
    said_after,
    setting,
    shipped,
    untrained,
)

from sqrtdk.figures import catalogue
from sqrtdk.report import contents
from sqrtdk.report.article import chapters, design, practice, questions
from sqrtdk.results.picking import pick, simulated
from sqrtdk.sampling import one_product
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Quantity, Sentence

LANGUAGES = ("en", "zh")


def keys(sentences) -> list[str]:
    return [re.sub(r"^article\.(chapters|questions)\.", "", sentence.key) for sentence in sentences]


# ---- chapters --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("family", "word"), cases(CHAPTERS))
def test_each_sentence_of_a_chapter_can_be_chosen_and_no_other_of_its_family_is(family, word):
    found = {key for key in keys(said_after(CHAPTERS[family][word])) if re.fullmatch(rf"{re.escape(family)}\.\w+", key)}
    assert f"{family}.{word}" in found
    if family != "training.task":
        assert found == {f"{family}.{word}"}


def test_all_that_can_be_chosen_is_tried():
    listed = chapters.VARIANTS | questions.VARIANTS
    tried = CHAPTERS | QUESTIONS
    assert {family: set(words) for family, words in tried.items()} == {
        family: set(words) for family, words in listed.items()
    }


@pytest.mark.slow
def test_what_other_tasks_and_optimisers_say_stands_beside_it():
    found = [sentence.key for sentence in said(frames()) if sentence.key.startswith("longer.")]
    assert {key.split(".")[1] for key in found} == {"linear", "brief", "cosine", "half"}


def test_seven_chapters_stand_in_their_order_and_every_topic_has_words():
    told, _, _ = article(frames())
    found = [chapter.name for chapter in told.chapters()]
    assert found == ["scores", "attention", "gradients", "factor", "training", "start", "heads"]
    assert set(found) == set(catalogue.TOPICS) - {"answer", "methods"} == set(contents.ATLAS)
    assert set(questions.CHAPTERS) <= set(found)


def test_chapters_quote_the_numbers_of_the_tables():
    tables_ = frames()
    told, _, facts = article(tables_)
    row = pick(tables_["moments"], "moments.csv", ensemble="gaussian", d_k=64)
    plain = told.scores_card().values["std_plain"]
    # The exact value is what is read, the measured one with its error what stands behind it.
    assert (plain.text, plain.name) == ("8", "LogitStdUnscaled")
    assert plain.full == numbers.with_error(row["variance"] ** 0.5, row["variance_se"] / row["variance"] ** 0.5 / 2)
    shown = {chapter.name: chapter for chapter in told.chapters()}
    top = pick(
        tables_["gradient_distribution"],
        "gradient_distribution.csv",
        ensemble="gaussian",
        d_k=64,
        n_keys=64,
        scaling="none",
        measure="grad_logits",
        statistic="top_tenth_energy",
    )
    assert facts["TopTenthEnergyUnscaled"].value == top["estimate"]
    heads = tables_["real_heads"]["within_row_logit_std"]
    assert shown["heads"].finding.values["near"].text == str(int(((heads - 1).abs() <= 0.1).sum()))


def test_a_measured_value_that_is_not_the_exact_one_is_said():
    told, _, _ = article(changed("moments", {"variance": 70.0, "variance_se": 0.1}, ensemble="gaussian", d_k=64))
    assert told.variance() == "differs"


def test_the_card_on_training_names_the_task_that_loses_most():
    tables_ = one_loser()
    told, _, facts = article(tables_)
    card = told.training_card()
    assert card.key == "article.chapters.training.card.answers"
    assert card.values["task"] == Sentence("article.tasks.induction")
    rows = tables_["training_summary"].query("experiment == 'induction' and d_k == 64").set_index("scaling")
    assert facts[card.values["plain"].name].value == rows.loc["none", "accuracy"]
    assert facts[card.values["scaled"].name].value == rows.loc["1/sqrt(d_k)", "accuracy"]


@pytest.mark.parametrize("task", ["recall", "induction"], ids=["trained longer", "not"])
def test_what_longer_training_makes_up_for_is_said_wherever_the_loss_is(task):
    tables_ = one_loser(task=task)
    told, _, _ = article(growing(tables_))
    means = told.cards()[-1].means
    fades = tables_["training_verdicts"].query("scaling == 'none' and task == 'recall'")["verdict"].eq("hurts").any()
    assert told.lede().key.endswith(".depends")
    assert told.training().finding.key.endswith("_fades") == fades
    assert means.key.endswith(".fades" if fades else ".means")
    if fades:
        assert [one.key for one in means.values["faded"].items] == ["article.tasks.recall"]
    # Where the end of longer training differs, nothing fades.
    longer = shipped() | {"training_verdicts": shipped()["training_verdicts"].assign(verdict="hurts")}
    assert article(tables_, longer)[0].fades == []


def test_what_is_not_in_the_run_is_left_out():
    bare = frames(
        real_heads=frames()["real_heads"].head(0),
        planted_capacity=frames()["planted_capacity"].head(0),
        training_verdicts=untrained(),
        training_summary=frames()["training_summary"].head(0),
        freezing_frontier=frames()["freezing_frontier"].head(0),
    )
    longer = {"training_verdicts": untrained()} | {
        name: shipped()[name].head(0) for name in ("start_rate", "training_summary")
    }
    told, asked, _ = article(bare, longer)
    shown = {chapter.name: chapter for chapter in told.chapters()}
    for name in ("training", "heads"):
        assert shown[name].text == ()
        assert not shown[name].caveat
    assert asked.of("heads") == ()
    assert [point.name for point in asked.of("training")] == ["language"]
    assert "keys.freezing" not in keys(asked.keys())
    assert design.card(bare, CONFIGURATION)[1].sentences[1].key == "article.design.mechanisms.untrained"
    assert design.card(bare, CONFIGURATION)[1].sentences[-1].key == "article.design.mechanisms.no_heads"


# ---- questions, practice, design -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "word"), cases(QUESTIONS))
def test_each_answer_can_be_chosen(family, word):
    assert f"{family}.{word}" in keys(answer(family, word))


def test_answers_are_one_to_five_sentences_with_evidence():
    _, asked, _ = article(frames())
    found = [point for name in questions.CHAPTERS for point in asked.of(name)]
    assert [point.name for point in found] == list(questions.EVIDENCE)
    for point in found:
        assert 1 <= len(point.sentences) <= 5, point.name
        assert point.evidence


@pytest.mark.slow
def test_the_small_test_is_computed():
    sentences = answers("small_test", frames())
    assert sentences[1].values["below"] == f"{100 * one_product.chance_below(questions.TOLD):.0f} %"
    assert sentences[2].values["mean"] == "1.5"
    for language in LANGUAGES:
        title = article_cases.say(language).text("article.questions.small_test.title")
        assert f"{questions.SMALL} × {questions.SMALL}" in title
        assert f"{questions.TOLD:g}" in title


def test_practice_has_a_row_for_each_situation():
    tables_ = frames()
    _, _, facts = article(tables_)
    table = practice.practice(shipped(), setting(tables_), facts)
    assert [row[0].word for row in table.rows] == [f"article.practice.{name}.situation" for name in practice.EVIDENCE]
    assert 8 <= len(table.rows) <= 10
    # What training makes of leaving the factor out, and of 1/d_k, stands in the row that advises.
    trained = {
        name: row[2].sentences[1].key.rpartition(".")[0]
        for name, row in zip(practice.EVIDENCE, table.rows, strict=True)
        if row[2].sentences[1:]
    }
    assert trained == {"plain": "longer.brief.plain", "mup": "longer.brief.linear"}


COMPARING = re.compile(r"\.(larger|smaller|gather|hurts|helps|loss|right)$")


def compared(sentence) -> list[str]:
    """Return the numbers of a sentence that compares a thing without the factor with the same thing with it."""
    pairs = [
        (f"{word}plain", f"{word}scaled") for word in ("", *{name.partition("_")[0] + "_" for name in sentence.values})
    ]
    pairs += [("own", "reference")]
    found = [pair for pair in pairs if set(pair) <= sentence.values.keys()]
    return [getattr(sentence.values[name], "text", sentence.values[name]) for pair in found for name in pair]


def nested(sentence):
    """Yield a sentence and those within it."""
    yield sentence
    for value in sentence.values.values():
        if isinstance(value, Sentence):
            yield from nested(value)


def test_no_sentence_compares_two_numbers_that_are_printed_alike():
    asked = 0
    for sentence in itertools.chain.from_iterable(map(nested, everything())):
        if COMPARING.search(sentence.key) and (told := compared(sentence)):
            assert len(set(told)) == len(told), (sentence.key, told)
            asked += 1
    assert asked > 10


@pytest.mark.parametrize("family", ["attention.card", "attention.finding"])
def test_numbers_that_are_all_but_equal_are_told_apart(family):
    """Two digits would print both alike, and say that one is the larger."""
    tables_ = frames()
    rows = tables_["softmax_saturation"]
    for scaling, value in (("none", 27.912), ("1/sqrt(d_k)", 27.934)):
        rows = rows.assign(
            estimate=rows["estimate"].where((rows["measure"] != "effective_keys") | (rows["scaling"] != scaling), value)
        )
    (sentence,) = (
        one for one in said(tables_ | {"softmax_saturation": rows}) if one.key.startswith(f"article.chapters.{family}.")
    )
    assert compared(sentence) == ["27.91", "27.93"]


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
    anchors |= {f"tab-{key.replace('_', '-')}" for key in contents.ORDER}
    anchors |= {"methods-training", "methods-sampling"}
    named = {name for several in (*practice.EVIDENCE.values(), *questions.EVIDENCE.values()) for name in several}
    assert named - anchors == set()


def test_rows_without_a_number_are_left_out_of_the_verdicts():
    rows = pd.concat([shipped()["training_verdicts"].assign(estimate=math.nan)])
    assert questions.trained(rows, "width.training", "d_v_for_d_k(ratio=2)") is None


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
    # The task of a run is named where there is one.
    said = {key for key in WORDS[language] if not ON_THE_PAGE.match(key) and not key.startswith("article.tasks.")}
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
        bare = re.sub(r"\[@\w+\]|\$[^$]*\$", "", text)
        assert other != text or key == "article.literal" or not re.search(r"\w{9}", bare)


def test_no_result_is_typed():
    for language, words in WORDS.items():
        for key, text in words.items():
            if not re.match(r"article\.questions\.(small_test|keys)\.title", key):
                bare = re.sub(
                    r"\$[^$]*\$|\{\w+\}|<[^>]*>|95 %|\[@\w+\]|bf16|fp16|fp8|1/fan-in|T5|MiniLM-L6|Qwen3", "", text
                )
                allowed = {"0", "1", "2"} if "ReLU" in text or "elu" in text else {"0", "1"}
                assert set(re.findall(r"\d+", bare)) <= allowed, (language, key)


MOST_WORDS = 25
MOST_NUMBERS = 2
FORBIDDEN = ("ensemble", "cell", "frozen", "(?<!one-)hot", "trusted", "window", "margin", "the one")
"""Words of our own that nobody else knows, which the article does without."""
ARTICLE = {key: text for key, text in WORDS["en"].items() if not key.startswith(("article.design.", "article.topics."))}


def sentences_of(text: str) -> list[str]:
    text = re.sub(r"\$[^$]*\$", "x", re.sub(r"<code>.*?</code>", "x", re.sub(r"\[@\w+\]", "", text)))
    return [one for one in re.split(r"(?<=[.?!:;])\s+", text) if one]


def too_long(text: str) -> list[str]:
    return [one for one in sentences_of(text) if len(re.findall(r"[\w{}’/-]+", one)) > MOST_WORDS]


def test_sentences_of_the_article_are_short():
    assert {key: found for key, text in ARTICLE.items() if (found := too_long(text))} == {}
    assert too_long("word " * 26)


def test_the_article_does_without_words_of_our_own():
    pattern = re.compile(rf"\b({'|'.join(FORBIDDEN)})s?\b", re.IGNORECASE)
    bare = {key: re.sub(r"\{\w+\}|<code>.*?</code>", "", text) for key, text in ARTICLE.items()}
    assert {key: found for key, text in bare.items() if (found := pattern.findall(text))} == {}
    assert pattern.search("Over all cells")


@pytest.mark.slow
def test_a_sentence_quotes_at_most_two_numbers():
    say = article_cases.say("en")

    def quoted(value) -> int:
        if isinstance(value, Quantity):
            return 1
        if isinstance(value, Listing):
            return sum(map(quoted, value.items))
        if not isinstance(value, Sentence):
            return 0
        named = set(re.findall(r"\{(\w+)\}", say.text(value.key)))
        return sum(quoted(one) for name, one in value.values.items() if name in named)

    counted = {sentence.key: quoted(sentence) for sentence in everything()}
    assert {key: number for key, number in counted.items() if number > MOST_NUMBERS} == {}
    assert sum(counted.values()) > 40
