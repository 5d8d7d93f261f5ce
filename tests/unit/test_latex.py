"""Text, formulas and words as TeX: nothing that a name may hold reaches TeX as a command."""

import re

import pytest
from tex_cases import balanced

from sqrtdk.report.latex import tables, text
from sqrtdk.words.mathml import MissingPart
from sqrtdk.words.sentences import Listing, Sentence

HOSTILE = '\\input{x} $a$ %b #1 &c _d ^e ~f {g} "h" `i` <j> |k| \x00\x07\\'
COMMANDS = {
    "textbackslash",
    "textasciitilde",
    "textasciicircum",
    "textless",
    "textgreater",
    "textbar",
    "textasciigrave",
}


@pytest.mark.parametrize("spell", [text.text, text.prose])
def test_plain_text_holds_no_command_of_its_own(spell):
    tex = spell(HOSTILE)
    assert balanced(tex)
    assert set(re.findall(r"\\([a-zA-Z]+)", tex)) <= COMMANDS
    assert re.search(r"(?<!\\)[%#&_^~$]", tex) is None
    assert "\x00" not in tex
    assert tex.isascii()


def test_symbols_are_formulas_in_prose_and_literal_in_names():
    assert text.prose("q·k against √d_k, 1/d_k and d_k²") == (r"$q \cdot k$ against $\sqrt{d_k}$, $1/d_k$ and $d_k^2$")
    assert text.prose("bad_key") == text.text("bad_key") == r"bad\_key"
    assert text.text("1/sqrt(d_k)") == r"1/sqrt(d\_k)"


def test_mathematical_signs_become_one_formula_where_they_stand_together():
    assert text.text("4.1(2) × 10⁻⁷") == r"4.1(2)$\,\times\,10^{-7}$"
    assert text.text("√·") == r"$\surd \cdot $"
    assert text.text("QKᵀ xₖ −3 ≤ ∞") == r"QK$^{T}$ x$_{k}$ $-$3 $\le $ $\infty $"
    # An escaped dollar beside a formula stays what it is.
    assert text.text("$√") == r"\$$\surd $"


@pytest.mark.parametrize(
    ("spelled", "plain", "read"),
    [
        ("0.99996(9)", "0.99996(9)", "0.99996(9)"),
        ("−4.1(2) × 10⁻⁷", r"-4.1(2)\times 10^{-7}", "-4.1(2)e-7"),
        ("17.1(1.0)", "17.1(1.0)", "17.1(1.0)"),
        ("12\u202f000", r"12\,000", "12000"),
        ("∞", r"\infty", r"\infty"),
    ],
)
def test_a_number_inside_a_formula_and_for_siunitx(spelled, plain, read):
    assert text.number(spelled) == plain
    if spelled != "∞":
        assert text.siunitx(spelled) == read


def test_formulas_need_no_package():
    assert text.formula(r"\operatorname{Var} S = \value{n}", {"n": "2 × 10³"}) == r"$\mathrm{Var} S = 2\times 10^{3}$"
    assert text.formula(r"x \text{ if } y · z") == r"$x \mbox{ if } y \cdot  z$"


class TestWords:
    TREE = {
        "a": "<code>{name}</code> is <em>50 %</em> of $d_k = \\value{d_k}$ &amp; <q>more</q>, <a href='x'>here</a>",
        "outer": "It says {inner}; {several}.",
        "beside": "$d_k$ of {inner}",
        "inner": "{x} < $1 / d_k$",
        "cited": "See [@someone], [@alone].",
        "lost": "See [@nobody].",
        "bad": "<table>",
        "rule": "$c =${rule}",
        "lists": {"comma": ", ", "semicolon": "; ", "last": " and ", "nothing": "none"},
    }

    REFERENCES = {
        "someone": {"author": "Some One and Another", "year": "2020"},
        "alone": {"author": "Lee, A.", "year": "1"},
    }

    def say(self, key, **values):
        return str(text.TexWords(self.TREE, self.REFERENCES)(key, **values))

    def test_tags_formulas_and_hostile_values(self):
        assert self.say("a", name="a_b{%}", d_k="64") == (
            r"\texttt{a\_b\{\%\}} is \emph{50 \%} of $d_k = 64$ \& ``more'', here"
        )
        assert balanced(self.say("a", name=HOSTILE, d_k="1"))

    def test_sentences_and_listings_nest(self):
        inner, several = Sentence("inner", {"x": "a_b"}), Listing(("x_y", Sentence("inner", {"x": "&"}), "z"))
        said = self.say("outer", inner=inner, several=several)
        assert said == r"It says a\_b \textless{} $1 / d_k$; x\_y, \& \textless{} $1 / d_k$ and z."
        assert self.say("beside", inner=inner) == r"$d_k$ of a\_b \textless{} $1 / d_k$"

    def test_a_formula_as_a_value_joins_the_one_beside_it(self):
        assert self.say("rule", rule=text.Tex("$1/d_k$")) == "$c =1/d_k$"

    def test_references_are_cited_and_unknown_tags_and_words_are_named(self):
        assert self.say("cited") == "See (One et al. 2020), (Lee 1)."
        with pytest.raises(MissingPart, match="'lost' cite 'nobody'"):
            self.say("lost")
        with pytest.raises(ValueError, match="'bad' have a tag that has no TeX: <table>"):
            self.say("bad")
        with pytest.raises(MissingPart, match="absent"):
            self.say("absent")


def test_a_latin_word_stays_with_the_chinese_sign_before_it():
    assert tables._longest("行内 logit") == tables._length("内logit")
    assert tables._longest("logit 行内的") == tables._length("logit")
