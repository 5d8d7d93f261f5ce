"""Every language of the report: the words of the English one with their placeholders, and nothing left in English."""

import ast
import re
from collections import Counter
from pathlib import Path

import example
import pytest
import synthetic_results
import yaml
from markupsafe import Markup
from prose import OTHERS, REPORT, english, words

import check_release
from sqrtdk.heads import blocks, diagnoses, starts
from sqrtdk.heads.explanations import EXPLANATIONS
from sqrtdk.report import contents as report_contents
from sqrtdk.sampling import ensembles, laws, moments
from sqrtdk.sampling.ensembles import iid
from sqrtdk.studies import initialisation
from sqrtdk.words import texts as language_words
from sqrtdk.words.sentences import Listing, Phrase, Quantity

ENGLISH = words("en")
OF_QUOTES = {"q", "/q"}
"""Tags that a language may spell by marks of its own."""


def contents(text: str) -> dict[str, object]:
    """Return what a text shares with its translation."""
    formulas = re.findall(r"\$([^$]*)\$", text)
    bare = re.sub(r"\$[^$]*\$", "", text)
    tags = re.findall(r"<(/?[a-z]+)[^>]*>", bare)
    return {
        "formulas": sorted(set(formulas)),
        "values": sorted(set(re.findall(r"\\value\{(\w+)\}", " ".join(formulas)))),
        "placeholders": sorted(set(re.findall(r"\{(\w+)\}", bare))),
        "references": sorted(re.findall(r"\[@[\w-]+\]", bare)),
        "code": sorted(re.findall(r"<code>(.*?)</code>", bare)),
        "links": sorted(re.findall(r'href="([^"]*)"', bare)),
        "tags": Counter(tag for tag in tags if tag not in OF_QUOTES),
    }


def faults(ours: str, other: str) -> list[str]:
    """Say what is wrong with a translation."""
    one, two = contents(ours), contents(other)
    found = [name for name in one if one[name] != two[name]]
    opened = []
    for tag in re.findall(r"<(/?[a-z]+)[^>]*>", other):
        if not tag.startswith("/"):
            opened.append(tag)
        elif not opened or opened.pop() != tag[1:]:
            opened.append("unbalanced")
            break
    if ours == other and english(ours, 3):
        found.append("not translated")
    return found + ["balance"] * bool(opened) + [f"English: {run}" for run in english(other, 4)]


@pytest.mark.parametrize("language", OTHERS)
def test_every_text_is_translated_with_its_placeholders_formulas_and_tags(language):
    ours, other = words("en"), words(language)
    # What is drawn is English in the code, and its words in another language stand under that.
    other = {key: text for key, text in other.items() if not key.startswith("drawn.")}
    assert ours.keys() == other.keys()
    assert {key: found for key in ours if (found := faults(ours[key], other[key]))} == {}


FAULTY = {
    "formulas": (r"At $d_k = \value{d_k}$, <code>{x}</code> is so.", r"在 $d_v = \value{d_k}$ 处，<code>{x}</code>。"),
    "values": (r"At $d_k = \value{d_k}$.", r"在 $d_k = \value{n}$ 处。"),
    "placeholders": ("{low} to {high}", "{low} 到 {hihg}"),
    "references": ("As in [@one].", "见 [@two]。"),
    "code": ("Column <code>trusted</code>.", "<code>可信</code> 列。"),
    "links": ('<a href="https://x.org">x</a>', '<a href="https://y.org">x</a>'),
    "tags": ("<strong>{x}</strong>", "{x}"),
    "balance": ("<em>a</em> <strong>b</strong>", "<em>甲<strong>乙</em></strong>"),
    "not translated": ("Largest weight of rows", "Largest weight of rows"),
    "English: the row that is": ("Of the row that is", "余下 the row that is 未译"),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_faulty_translation_is_seen(fault):
    """Negative control."""
    assert fault in faults(*FAULTY[fault])
    assert faults("<em>{x}</em> rows", "<em>{x}</em> 行") == []


# --- phrases


def said_by_the_library() -> set[str]:
    """Return every reason and finding that can stand in a table of the report, and what stands beside them."""
    scipy = ensembles.build({"family": "gamma", "a": 2})
    found = {str(example.TITLE), scipy.summary, scipy.source}
    found |= {text for layer in initialisation.LAYERS for text in (layer.label, layer.source)}
    found |= {iid.HEAVY_VARIANCE, iid.HEAVY_FOURTH, iid.HEAVY_EIGHTH, moments.CONSTANT, moments.UNSTEADY}
    defaults = yaml.safe_load((REPORT.parent / "workflow/schemas/config.default.yaml").read_text(encoding="utf-8"))
    found |= {dump["input"] for dump in defaults["dumps"].values()}
    found |= {entry.get("label", name) for name, entry in defaults["ensembles"].items()}
    found |= {f"{layer.label} at D = 768" for layer in initialisation.LAYERS if len(layer.shapes) > 2}
    facts = report_contents.facts(example.frames(), {}, example.configuration())
    for number in facts.by_name.values():
        # A description names some of its values only.
        used = re.findall(r"\{(\w+)\}", ENGLISH[number.description.key])
        found |= {str(value.text) for name in used if isinstance(value := number.description.values[name], Phrase)}
    return {text for text in found | reasons() | findings() if text}


def reasons() -> set[str]:
    """Return the reasons of fits that cannot be trusted, made by fits and from the texts of the module."""
    frame = synthetic_results.moments(("gaussian",), (1, 4, 16, 64, 256), heads=0)
    spoiled = {
        "no error": frame.assign(variance_se=None),
        "no sampling error": frame.assign(variance_se=0.0),
        "negative": frame.assign(variance=-1.0),
        "zero": frame.assign(variance=0.0),
        "one left out": frame.assign(variance_se=frame["variance_se"].where(frame["d_k"] > 1, 0.0)),
        "few": frame[frame["d_k"] < 16],
        "one": frame[frame["d_k"] < 4],
        "rejected": frame.assign(variance=[1.0, 99.0, 3.0, 500.0, 7.0]),
        "hardly a mean": frame,
    }
    found = set()
    for table in spoiled.values():
        table = table.assign(reason="")
        for fit in (laws.fit_variance_laws(table, 16), laws.fit_mean_laws(table), laws.fit_spread_laws(table, 16)):
            found |= set(fit["reason"].dropna())
    every = {*laws.VARIANCE_LAWS, *laws.MEAN_LAWS, *laws.SPREAD_LAWS}
    # What no small table brings about, in the words of the module.
    found.add("no law selected: none is estimable")
    found |= {f"the {law} law's parameters are not determined by these d_k" for law in every}
    found |= {f"the fit of the {law} law did not converge" for law in every}
    found |= {f"no exponent between {laws.EXPONENTS[0]:g} and {laws.EXPONENTS[-1]:g} fits"}
    return found | {f"the {name} estimate has no standard error" for name in ("mean", "interquartile range")}


def findings() -> set[str]:
    """Return findings of every kind, with every explanation, as the table of the audit has them."""
    trees = [ast.parse(Path(one.__file__).read_text(encoding="utf-8")) for one in (blocks, diagnoses, starts)]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    calls = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding"]
    kinds = {
        "entropy collapse",
        "very sharp",
        "scale of another convention",
        blocks.INVERTED,
        blocks.OVERFLOW,
        "mask may be transposed",
        "scores may be transposed",
    } | {
        node.value
        for call in calls
        for node in ast.walk(call.args[0])
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert {"zero scale", "not finite", "scale may be applied twice", "logit growth"} <= kinds
    causes = [*EXPLANATIONS, "zero scale", "weights initialised too large"]
    causes += ["inputs of the projections not normalised", "W_q with variance 1 in place of 1/d_model"]
    causes += ["W_k with standard deviation 0.02 at this d_model", "q: no normalisation before the projections"]
    causes += ["q and k normalised to length 1, with 1/sqrt(d_k) left in place"]
    causes += ["k: not normalised per head, as the convention says", "q carries the scale already"]
    causes += ["no scale after normalisation", "k carries the scale already", "q and k carry half of the scale each"]
    found = {f"bug: {kind} × 0.125 ({' / '.join(causes)})" for kind in kinds} | {
        f"{level}: {kind}" for kind in kinds for level in ("note", "warning")
    }
    return found | {"; ".join(sorted(found))}


@pytest.fixture(scope="module")
def said() -> set[str]:
    return said_by_the_library()


@pytest.mark.parametrize("language", OTHERS)
def test_every_phrase_of_the_library_has_its_counterpart_and_no_counterpart_is_idle(language, said):
    phrases = language_words.Words(language_words.read(REPORT, language)).phrases
    found = {text: phrases(text) for text in said}
    assert {text: other for text, other in found.items() if other is None or english(other, 4)} == {}
    # What families and rules say of themselves may still lack one, which `make release-check` tells.
    found = {text: phrases(text) for text in check_release.registered()}
    assert {text: other for text, other in found.items() if other and english(other, 4)} == {}
    assert phrases.catalogue.keys() - phrases.used == set()


def test_reasons_and_findings_are_those_that_can_stand_in_a_table(said):
    """Each text of the module of the laws is a reason that some table made here gives, or is added by name."""
    tree = ast.parse(Path(laws.__file__).read_text(encoding="utf-8"))
    starts = {
        node.values[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant)
    }
    starts = {text for text in starts if re.match(r"(the|no law|left out|zero|AICc needs|best of) ?", text)}
    assert len(starts) > 5
    assert {text for text in starts if not any(text in reason for reason in said)} == set()


def test_a_space_stands_between_chinese_and_what_is_filled_in():
    say = language_words.Words({"a": "读入{x}和{y}，共{n}个", "lists": {"comma": "、", "last": "和"}})
    assert say.plain("a", x="Acts", y="1859 年", n="³") == "读入 Acts 和 1859 年，共³个"
    number = Quantity("16", "N", "16.0(1)")
    assert re.sub(r"<[^>]*>", "", say("a", x=Listing((number, "头")), y="√d", n=Phrase("d_k"))) == (
        "读入 16 和头和 √d，共 dk 个"
    )
    assert isinstance(say("a", x="<b>", y="", n=""), Markup)
    assert "&lt;b&gt;" in say("a", x="<b>", y="", n="")


def test_phrases_in_english_stay_as_they_are():
    say = language_words.Words(language_words.read(REPORT, "en"))
    assert say.spell(Phrase("a new reason")) == "a new reason"


@pytest.mark.parametrize("language", OTHERS)
def test_a_phrase_without_a_counterpart_stays_english_as_a_whole(language):
    say = language_words.Words(language_words.read(REPORT, language))
    for text in (
        "a new reason",
        "left out d_k = 1: a new reason",
        "zero variance; a new reason",
        "note: a new finding",
    ):
        assert say.phrase(text) == text
    assert say.phrase(example.TITLE) != example.TITLE
