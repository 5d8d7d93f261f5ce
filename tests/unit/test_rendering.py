"""Formulas, words and the page: what is missing or not understood is an error, what is foreign is escaped."""

import base64
import gzip
import json
import re
import xml.etree.ElementTree as ET

import pytest
from markupsafe import Markup

from sqrtdk.report import rendering
from sqrtdk.words.mathml import MissingPart, glued, inline, mathml, prose
from sqrtdk.words.sentences import Listing, Phrase, Sentence
from sqrtdk.words.texts import Words, tree


def shape(html: str):
    """Return the element tree of some MathML as nested tuples, without attributes."""

    def of(element):
        children = [of(child) for child in element]
        return (element.tag, *children) if children else (element.tag, element.text or "")

    # Between the element that shows it and its source.
    return of(ET.fromstring(html)[0][0])


@pytest.mark.parametrize(
    ("tex", "expected"),
    [
        ("d_k", ("mrow", ("msub", ("mi", "d"), ("mi", "k")))),
        ("a^2", ("mrow", ("msup", ("mi", "a"), ("mn", "2")))),
        ("p_j^2", ("mrow", ("msubsup", ("mi", "p"), ("mi", "j"), ("mn", "2")))),
        ("p^2_j", ("mrow", ("msubsup", ("mi", "p"), ("mi", "j"), ("mn", "2")))),
        ("q'", ("mrow", ("msup", ("mi", "q"), ("mo", "′")))),
        (r"\frac{1}{d}", ("mrow", ("mfrac", ("mrow", ("mn", "1")), ("mrow", ("mi", "d"))))),
        (r"\sqrt d", ("mrow", ("msqrt", ("mi", "d")))),
        ("-1.5", ("mrow", ("mo", "−"), ("mn", "1.5"))),
        (r"\Sigma_q", ("mrow", ("msub", ("mi", "Σ"), ("mi", "q")))),
        (r"\text{if  so}", ("mrow", ("mtext", "if\xa0\xa0so"))),
        (r"\sum_j x", ("mrow", ("munder", ("mo", "∑"), ("mi", "j")), ("mi", "x"))),
        (r"\int_0^1 x", ("mrow", ("msubsup", ("mo", "∫"), ("mn", "0"), ("mn", "1")), ("mi", "x"))),
        (r"\ln n", ("mrow", ("mi", "ln"), ("mspace", ""), ("mi", "n"))),
        (r"\ln ( n )", ("mrow", ("mi", "ln"), ("mo", "("), ("mi", "n"), ("mo", ")"))),
        (r"\hat V", ("mrow", ("mover", ("mi", "V"), ("mo", "^")))),
        (r"\left( x \right)", ("mrow", ("mrow", ("mo", "("), ("mi", "x"), ("mo", ")")))),
        (r"a < b", ("mrow", ("mi", "a"), ("mo", "<"), ("mi", "b"))),
    ],
)
def test_formula_becomes_mathml(tex, expected):
    assert shape(mathml(tex)) == expected


@pytest.mark.parametrize(
    ("tex", "what"),
    [
        (r"\nonsense x", "not known"),
        ("a_", "ends too early"),
        ("{a", "ends too early"),
        ("a_1_2", "two scripts"),
        (r"\left( x", "ends too early"),
        (r"\left x \right)", "no bracket"),
        (r"\operatorname x", "name in braces"),
        ("a & b", "not known"),
        ("é", None),
    ],
)
def test_formula_that_is_not_understood_is_refused(tex, what):
    if what is None:
        assert shape(mathml(tex)) == ("mrow", ("mi", "é"))
    else:
        with pytest.raises(ValueError, match=what):
            mathml(tex)


def test_single_letters_of_operators_stand_upright():
    assert '<mi mathvariant="normal">E</mi>' in mathml(r"\operatorname{E} x")


def test_formula_carries_its_source():
    html = mathml("a < b")
    assert html.startswith('<math display="block"><semantics>')
    assert '<annotation encoding="application/x-tex">a &lt; b</annotation>' in html


@pytest.mark.parametrize(
    ("tex", "signs"),
    [
        (r"1 / \sqrt{d_k}", "1/√dk"),
        ("1 / d_k", "1/dk"),
        (r"\sqrt{2 \ln n}", "√(2 ln n)"),
        (r"\frac{a + b}{2}", "(a + b)/2"),
        (r"d_k^{-1/4}", "dk−1/4"),
        (r"q \cdot k", "q·k"),
        (r"a = -b", "a = −b"),
        (r"\hat V", "V\N{COMBINING CIRCUMFLEX ACCENT}"),
        (r"\operatorname{Var} W_q", "Var Wq"),
        (r"a < b", "a < b"),
        (r"d_k = \value{n}", "dk = <64>"),
    ],
)
def test_formula_in_a_line_is_text_that_keeps_root_and_fraction(tex, signs):
    html = inline(tex, {"n": "<64>"})
    assert ET.fromstring(html).attrib == {"class": "math"}
    assert "".join(ET.fromstring(html).itertext()) == signs


def test_letters_are_slanted_and_indices_lowered():
    assert inline(r"\sqrt{d_k}") == '<span class="math">√<i>d</i><sub><i>k</i></sub></span>'
    assert inline(r"p_j^2") == '<span class="math"><i>p</i><sub><i>j</i></sub><sup>2</sup></span>'


def test_a_long_formula_may_be_parted():
    assert 'class="formula"' in inline("a + b + c + d + e + f + g + h + i")


def test_value_in_a_formula_is_escaped_and_required():
    assert "<mn>&lt;b&gt;</mn>" in mathml(r"d = \value{d}", {"d": "<b>"})
    with pytest.raises(MissingPart, match="'d'"):
        mathml(r"d = \value{d}")


TREE = {
    "plain": "Hello",
    "sentence": "The <strong>{what}</strong> of $d_k$ is {size}.",
    "formula": r"At $d_k = \value{d_k}$.",
    "cited": "See [@known].",
    "odd": "One $ too many",
    "deep": {"er": "down"},
}


@pytest.fixture
def words() -> Words:
    return Words(TREE, {"other": {}, "known": {}}, {"size": "constant"})


def test_words_fill_and_escape_values_but_not_their_own_markup(words):
    text = words("sentence", what="<script>{size}</script> $x$ {{ 7*7 }}", size=3)
    assert text == (
        "The <strong>&lt;script&gt;{size}&lt;/script&gt; $x$ {{ 7*7 }}</strong> of "
        '<span class="math"><i>d</i><sub><i>k</i></sub></span> is 3.'
    )


def test_words_take_markup_as_it_is_and_constants_where_no_value_is_given(words):
    assert "<em>x</em></strong>" in words("sentence", what=Markup("<em>x</em>"))
    assert words("sentence", what="x").endswith("is constant.")


def test_words_put_values_into_formulas(words):
    assert "= 64</span>" in words("formula", d_k="64")


def test_words_number_their_references(words):
    assert '<a class="cite" href="#ref-known">[2]</a>' in words("cited")
    with pytest.raises(MissingPart, match="cite 'known'"):
        Words(TREE)("cited")


@pytest.mark.parametrize("key", ["nothing", "deep.nothing", "deep", "plain.er"])
def test_missing_words_are_named(words, key):
    with pytest.raises(MissingPart, match=re.escape(repr(key))):
        words(key)


def test_missing_value_is_named(words):
    with pytest.raises(MissingPart, match=r"'sentence' need a value for 'what'"):
        words("sentence")


def test_formula_that_does_not_end_is_refused(words):
    with pytest.raises(ValueError, match=r"odd number of \$"):
        words("odd")


def test_plain_words_refuse_markup(words):
    assert words.plain("plain") == "Hello"
    assert words.plain("deep.er") == "down"
    for key in ("sentence", "formula", "cited"):
        with pytest.raises(ValueError, match="markup"):
            words.plain(key, what="x")


X = '<span class="math">x</span>'


def test_formula_keeps_its_comma_on_the_line():
    assert glued(Markup(f"a {X}, b")) == f'a <span class="together">{X},</span> b'
    assert glued(Markup(f"a ({X}) b")) == f'a <span class="together">({X})</span> b'
    assert glued(Markup(f"a {X} b")) == f"a {X} b"
    assert glued(Markup(f"<b>{X}</b>")) == f"<b>{X}</b>"


def test_formula_in_chinese_keeps_its_marks_on_the_line_and_no_more():
    assert glued(Markup("a 95 % interval, 6(1) %, not all %")) == "a 95\u00a0% interval, 6(1)\u00a0%, not all %"
    assert glued(Markup(f"在{X}处，乙")) == f"在{X}处，乙"
    assert glued(Markup(f"在 {X}，因此")) == f'在 <span class="together">{X}，</span>因此'
    assert glued(Markup(f"宽头（{X}，甲")) == f'宽头<span class="together">（{X}，</span>甲'
    assert glued(Markup(f"甲，{X}。")) == f'甲，<span class="together">{X}。</span>'


@pytest.mark.parametrize(
    ("text", "formulas"),
    [("d_k = 64", 1), ("√d_k", 1), ("1/√d_k", 1), ("Var(q·k) = c·d_k^a", 2), ("d_k²", 1), ("n_d_k", 0), ("d_keys", 0)],
)
def test_prose_sets_symbols_as_formulas(text, formulas):
    assert prose(text).count('class="math"') == formulas


def test_prose_escapes_everything_else():
    assert prose("<b> & d_k") == Markup("&lt;b&gt; &amp; ") + inline("d_k")
    assert prose("a < b") == "a &lt; b"


def test_scale_rules_are_formulas_and_unknown_ones_literal():
    assert rendering.scale_rule("1/sqrt(d_k)") == inline(r"1 / \sqrt{d_k}")
    assert rendering.scale_rule("none") == '<span class="math">1</span>'
    assert rendering.scale_rule("<i>") == "&lt;i&gt;"


def test_every_known_scale_rule_has_a_formula_and_is_shown_by_it_where_it_depends_on_d_k_alone():
    from sqrtdk.variants import scalings

    for name, rule in scalings.SCALINGS.items():
        assert inline(rule.formula).startswith("<span")
        assert (
            rendering.scale_rule(name).startswith("<span") or rule.parameters or rule.kind != "rule" or not rule.factor
        )
    assert rendering.scale_rule("ssmax(s=1)") == "ssmax(s=1)"


BIB = """@article{one,
  author = {A and B},
  title = {T},
  year = {1999},
  doi = {10.1/x},
}
@misc{two,
  author = {C},
  title = {U},
  year = {2000},
}
"""


def test_references_are_read_in_order():
    entries = rendering.read_references(BIB)
    assert list(entries) == ["one", "two"]
    assert entries["one"] == {"type": "article", "author": "A and B", "title": "T", "year": "1999", "doi": "10.1/x"}


@pytest.mark.parametrize("broken", [BIB.replace("year = {2000}", ""), BIB.replace("two", "one")])
def test_reference_without_a_field_or_with_a_taken_key_is_refused(broken):
    with pytest.raises(MissingPart, match="reference"):
        rendering.read_references(broken)


def sources(template: str) -> dict[str, str]:
    return {
        "template.html.jinja": template,
        "words/en/page.yaml": "hello: Hello {name}",
        "formulas.yaml": "first: 'a'",
        "code.yaml": "first: a",
        "references.bib": BIB,
        "styles.css": "p > b { color: red }",
        "script.js": "x < 1 && y",
    }


def test_page_is_escaped_and_styles_are_not():
    page = rendering.render(sources("{{ say('hello', name=name) }} {{ name }} {{ styles }}"), "en", {"name": "<i>"}, {})
    assert page == "Hello &lt;i&gt; &lt;i&gt; p > b { color: red }"


@pytest.mark.parametrize(
    "template", ["{{ nothing }}", "{{ record.nothing }}", "{% include 'nothing' %}", "{{ formulas.x }}"]
)
def test_page_with_a_missing_part_is_refused(template):
    with pytest.raises(MissingPart, match="lacks a part"):
        rendering.render(sources(template), "en", {"record": {}}, {})


@pytest.mark.parametrize("name", list(sources("")))
def test_missing_source_is_named(name):
    given = {key: value for key, value in sources("").items() if key != name}
    with pytest.raises(MissingPart, match=re.escape(name.replace("page.yaml", "*.yaml"))):
        rendering.render(given, "en", {}, {})


_PARTS = ("id", "number", "part", "topic", "title", "caption", "alt", "reading", "caveat", "inputs")
RECORD = {name: name for name in _PARTS}
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><g id="a"/></svg>'


FILES = {"svg": SVG, "csv": "a,b\n1,2\n3,4\n", "bib": "@misc{x}", "tex": "x"}


def test_figure_has_ids_of_its_own_and_its_rows_are_counted():
    shown = rendering.figure(RECORD | {"id": "x"}, FILES, "figures")
    assert 'id="fig-x-title"' in shown["svg"]
    assert shown["path"] == "figures/fig-x"
    assert shown["rows"] == 2


@pytest.mark.parametrize("name", sorted(RECORD))
def test_figure_without_one_of_its_words_is_refused(name):
    record = {key: value for key, value in RECORD.items() if key != name}
    with pytest.raises(MissingPart, match=name):
        rendering.figure(record, FILES, "figures")


LISTS = {"lists": {"comma": ", ", "semicolon": "; ", "last": " and ", "nothing": "none"}}


@pytest.mark.parametrize(
    ("items", "kind", "spelled"),
    [
        ((), "and", "none"),
        (("a",), "and", "a"),
        (("a", "b", 3), "and", "a, b and 3"),
        (("a", "b"), "comma", "a, b"),
        (("a", "b"), "semicolon", "a; b"),
        ((Sentence("one", {"x": "<"}), Listing(("b", "c"))), "comma", "one <, b and c"),
    ],
)
def test_values_are_joined_and_spelled_by_the_language(items, kind, spelled):
    say = Words({"all": "<b>{x}</b>", "plain": "{x}!", "one": "one {x}", **LISTS})
    assert say.plain("plain", x=Listing(items, kind)) == f"{spelled}!"
    assert say("all", x=Listing(items, kind)) == f"<b>{spelled}</b>".replace("one <", "one &lt;")


def test_phrases_are_spelled_by_the_language_and_their_symbols_set_as_formulas():
    tree = {"all": "<b>{x}</b>", "plain": "{x}", "phrases": {"too few d_k: {n}": "太少 d_k：{n}", "Title": "题目"}}
    say = Words(tree)
    together = f'太少 <span class="together">{inline("d_k")}：</span>3'
    assert say("all", x=Phrase("too few d_k: 3")) == f"<b>{together}</b>"
    assert say.plain("plain", x=Phrase("too few d_k: 3")) == "太少 d_k：3"
    assert say.spell(Phrase("too few d_k: <")) == together.replace("3", "&lt;")
    assert (say.phrase("Title"), say.phrase("<Other>")) == ("题目", "<Other>")
    assert say.spell(Phrase("a new <reason>")) == Markup("a new &lt;reason&gt;")
    assert Words({"phrases": {}}).spell(Phrase("q·k & so")) == inline(r"q \cdot k") + Markup(" &amp; so")


def test_words_of_several_files_are_one_tree_and_no_key_stands_twice():
    files = {"words/en/a.yaml": "x: 1", "words/en/b.yaml": "y: 2", "words/zh/a.yaml": "x: 3", "words/en/c.txt": "x: 4"}
    assert tree(files, "en") == {"x": 1, "y": 2}
    with pytest.raises(ValueError, match="both hold the words 'x'"):
        tree(files | {"words/en/c.yaml": "x: 5"}, "en")
    with pytest.raises(MissingPart, match="words/fr/"):
        tree(files, "fr")


def test_json_in_a_script_element_cannot_end_it():
    value = {"</script>": ["<!--<script>", "\u2028", 'q"', 0.5]}
    text = rendering.script_json(value)
    assert "<" not in text
    assert json.loads(text) == value


def test_a_packed_text_is_the_same_at_any_time_and_can_be_unpacked(monkeypatch):
    packed = rendering.packed("d_k,√\n1,2\n")
    monkeypatch.setattr("time.time", lambda: 1.0)
    assert rendering.packed("d_k,√\n1,2\n") == packed
    assert gzip.decompress(base64.b64decode(packed)).decode() == "d_k,√\n1,2\n"


def test_policy_hash_is_the_one_that_browsers_compute():
    # The example of the Content Security Policy specification (level 3, section 2.3.1).
    assert rendering.policy_hash("alert('Hello, world.');") == "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='"
