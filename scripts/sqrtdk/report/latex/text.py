"""Text, formulas and words of the report as TeX that needs no package, for tables and macros in other documents."""

import html
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from sqrtdk.words.mathml import LETTERS, OPERATORS, MissingPart, symbols
from sqrtdk.words.sentences import Quantity
from sqrtdk.words.texts import Words

_ESCAPED = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "$": r"\$",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "`": r"\textasciigrave{}",
}
_TYPOGRAPHY = {
    "\u202f": r"\,",
    "\u00a0": "~",
    "–": "--",
    "—": "---",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "…": r"\ldots{}",
    "§": r"\S{}",
}
_MATH = {
    "√": r"\surd ",
    "·": r"\cdot ",
    "−": "-",
    "\u00b5": r"\mu ",
    "∑": r"\sum ",
    "‖": r"\Vert ",
    "½": r"\frac{1}{2}",
    "°": r"^{\circ}",
} | {sign: rf"\{name} " for name, sign in (LETTERS | OPERATORS).items()}


def _scripts(kind: str) -> dict[str, str]:
    """Return the raised (`super`) or lowered (`sub`) signs of Unicode with the plain sign of each: ⁻ and -, ₖ and k."""
    places = [0xB2, 0xB3, 0xB9, *range(0x2070, 0x20A0), *range(0x1D2C, 0x1D6B)]
    signs = [chr(place) for place in places if unicodedata.decomposition(chr(place)).startswith(f"<{kind}>")]
    return {sign: unicodedata.normalize("NFKD", sign).replace("−", "-") for sign in signs}


_RAISED, _LOWERED = _scripts("super"), _scripts("sub")
_TIMES = re.compile(rf" × 10([{''.join(_RAISED)}]+)")
_SPECIAL = re.compile(
    "|".join(
        [_TIMES.pattern, rf"[{''.join(_RAISED)}]+", rf"[{''.join(_LOWERED)}]+", r"[\x00-\x08\x0b-\x1f\x7f]"]
        + [re.escape(sign) for sign in (*_ESCAPED, *_TYPOGRAPHY, *_MATH)]
    )
)


def text(plain: str) -> str:
    """Spell plain text so that TeX prints it literally: special signs escaped, mathematical ones as formulas.

    Letters beyond ASCII stay as they are, control characters are left out.
    """
    return _joined(_SPECIAL.sub(_spelled, plain))


def prose(plain: str) -> str:
    """Spell plain text as `text` does, with the symbols q·k, d_k, √d_k, d_k² set as formulas."""
    return _joined("".join(f"${piece}$" if is_formula else text(piece) for piece, is_formula in symbols(plain)))


def _joined(tex: str) -> str:
    """Make formulas side by side one: $x$$y$ would open a displayed formula."""
    return re.sub(r"(?<!\\)\$\$", "", tex)


def _spelled(match: re.Match[str]) -> str:
    sign = match[0]
    if sign in _ESCAPED or sign in _TYPOGRAPHY:
        return _ESCAPED.get(sign) or _TYPOGRAPHY[sign]
    if sign in _MATH:
        return f"${_MATH[sign]}$"
    if sign.startswith(" × "):
        return rf"$\,\times\,10^{{{_level(match[1])}}}$"
    if sign[0] in _RAISED or sign[0] in _LOWERED:
        return f"${'^' if sign[0] in _RAISED else '_'}{{{_level(sign)}}}$"
    return ""


def _level(signs: str) -> str:
    """Return raised or lowered signs as plain ones."""
    return "".join((_RAISED | _LOWERED)[sign] for sign in signs)


def number(spelled: str) -> str:
    r"""Return a number spelled by `sqrtdk.numbers` as it stands inside a formula: 1.2(3)\times 10^{-4}."""
    found = _TIMES.sub(lambda match: rf"\times 10^{{{_level(match[1])}}}", spelled)
    return "".join(_MATH.get(sign, _TYPOGRAPHY.get(sign, sign)) for sign in found).strip()


def siunitx(spelled: str) -> str:
    """Return a number spelled by `sqrtdk.numbers` as siunitx reads it: 1.2(3)e-4."""
    found = _TIMES.sub(lambda match: f"e{_level(match[1])}", spelled)
    return found.replace("−", "-").replace("\u202f", "")


def formula(tex: str, values: Mapping[str, object] | None = None) -> str:
    r"""Return a formula of the report between dollar signs, without commands of amsmath; `\value{x}` is filled in."""

    def fill(match: re.Match[str]) -> str:
        return number(text_of((values or {})[match[1]]))

    tex = _NAMED.sub(fill, tex.strip())
    tex = re.sub(r"\\operatorname\{", r"\\mathrm{", tex)
    tex = re.sub(r"\\text\{([^}]*)\}", lambda match: rf"\mbox{{{match[1]}}}", tex)
    return "$" + "".join(_MATH.get(sign, sign) for sign in tex) + "$"


def text_of(value: object) -> str:
    return value if isinstance(value, str) else str(value)


class Tex(Markup):
    """Text that is TeX already: what is joined or formatted into it is escaped unless it is TeX too."""

    @classmethod
    def escape(cls, value: object) -> "Tex":
        return value if isinstance(value, cls) else cls(text(text_of(value)))


_TAGS = {"code": (r"\texttt{", "}"), "em": (r"\emph{", "}"), "strong": (r"\textbf{", "}"), "q": ("``", "''")}
_NAMED = re.compile(r"\\value\{(\w+)\}")
_PIECES = re.compile(r"(\{\w+\})|<(/?)(\w+)[^>]*>|\[@([\w-]+)\]")


class TexWords(Words):
    """The words of one language as TeX."""

    markup = Tex

    def prepare(self, key: str, text: str) -> Tex:
        pieces, end = [], 0
        for match in _PIECES.finditer(text):
            pieces += [_doubled(_typeset(text[end : match.start()])), self.piece(key, match)]
            end = match.end()
        return Tex("".join([*pieces, _doubled(_typeset(text[end:]))]))

    def piece(self, key: str, match: re.Match[str]) -> str:
        """Return a placeholder as it is, a tag or a reference as TeX whose braces survive `str.format`."""
        if match[1]:
            return match[1]
        if match[4]:
            return _doubled(text(self.reference(key, match[4])))
        if match[3] not in (*_TAGS, "a"):
            raise ValueError(f"the words at {key!r} have a tag that has no TeX: {match[0]}")
        return _doubled(_TAGS[match[3]][bool(match[2])]) if match[3] in _TAGS else ""

    def formula(self, tex: str, values: Mapping[str, object]) -> Tex:
        # Only what it names: other values may hold formulas themselves.
        named = set(_NAMED.findall(tex))
        return Tex(formula(tex, {name: self.spell(value, False) for name, value in values.items() if name in named}))

    def reference(self, key: str, name: str) -> str:
        """Return a reference of the report as author and year: a document that takes this up need not have it."""
        if name not in self.references:
            raise MissingPart(f"the words at {key!r} cite {name!r}, which is not among the references")
        first, _, others = self.references[name]["author"].partition(" and ")
        surname = first.partition(",")[0] if "," in first else first.rpartition(" ")[2]
        return f"({surname}{' et al.' if others else ''} {self.references[name]['year']})"

    def prose(self, text: str) -> Tex:
        return Tex(prose(text))

    def quantity(self, value: Quantity) -> Tex:
        return Tex(text(value.text))

    def finish(self, whole: Any) -> Any:
        return Tex(_joined(whole))

    def put(self, value: object) -> Tex:
        """Return a value as the language spells it: a sentence or a listing in words, plain text escaped."""
        return Tex.escape(self.spell(value, True))


def _typeset(words: str) -> str:
    return text(html.unescape(words))


def _doubled(tex: str) -> str:
    return tex.replace("{", "{{").replace("}", "}}")
