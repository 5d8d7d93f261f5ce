"""Formulas in a small subset of TeX: displayed ones as presentation MathML, those in a line as plain signs in HTML.

What stands in a line is text with italic letters and indices, so that it reads, copies and breaks as text: a browser
copies neither root nor fraction of MathML.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import NoReturn

from markupsafe import Markup, escape


class MissingPart(ValueError):
    """A part of the report is absent: a word, a placeholder's value, a formula, a reference, a figure or a file."""


_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|\d+(?:\.\d+)?|\s+|.", re.DOTALL)

_BEFORE_PERCENT = re.compile(r"(?<=[\d)]) (?=%)")


def _named(pairs: str) -> dict[str, str]:
    words = pairs.split()
    return dict(zip(words[::2], words[1::2], strict=True))


LETTERS = _named(
    "alpha α beta β gamma γ delta δ epsilon ε theta θ kappa κ lambda λ mu μ nu ν pi π rho ρ sigma σ tau τ phi φ chi χ "
    "psi ψ Gamma Γ Delta Δ Sigma Σ Phi Φ Lambda Λ infty ∞ ell ℓ"
)
OPERATORS = _named("cdot ⋅ times × le ≤ ge ≥ ne ≠ approx ≈ sim ∼ to → in ∈ partial ∂ ldots … propto ∝ pm ± mid ∣ top ⊤")
_LARGE = _named("sum ∑ int ∫ prod ∏")
_FUNCTIONS = ("ln", "log", "exp", "max", "min")
_ACCENTS = {"hat": "^", "bar": "¯", "tilde": "˜"}
_SPACES = {"\\,": "0.1667em", "\\;": "0.2778em", "\\quad": "1em", "\\qquad": "2em"}
_FENCES = {"\\|": "‖", "\\{": "{", "\\}": "}"} | {sign: sign for sign in "()[]|"}


class _Formula:
    """Recursive descent over the tokens of one formula."""

    def __init__(self, tex: str, values: Mapping[str, object]):
        self.tex, self.values = tex, values
        self.tokens = _TOKEN.findall(tex)
        self.at = 0

    def fail(self, what: str) -> NoReturn:
        raise ValueError(f"formula {self.tex!r}: {what}")

    def peek(self) -> str:
        while self.at < len(self.tokens) and self.tokens[self.at].isspace():
            self.at += 1
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        if not token:
            self.fail("it ends too early")
        self.at += 1
        return token

    def row(self, end: str) -> str:
        parts = []
        while self.peek() != end:
            parts.append(self.scripted())
        if end:
            self.take()
        return "".join(parts)

    def raw(self) -> str:
        """Return the text of a braced group as it is written, spaces included."""
        if self.take() != "{" or "}" not in self.tokens[self.at :]:
            self.fail("a name in braces was expected")
        end = self.tokens.index("}", self.at)
        text = "".join(self.tokens[self.at : end])
        self.at = end + 1
        return text

    def scripted(self) -> str:
        """Return an atom with its scripts, as limits above and below where it is a large operator."""
        large = self.peek()[1:] in (*_LARGE, "max", "min") and self.peek() != "\\int"
        function = self.peek() == "\\operatorname" or self.peek()[1:] in _FUNCTIONS
        base = self.atom()
        scripts: dict[str, str] = {}
        while self.peek() in ("_", "^", "'"):
            sign = self.take()
            script = "<mo>′</mo>" if sign == "'" else self.atom()
            if scripts.setdefault("_" if sign == "_" else "^", script) is not script:
                self.fail("two scripts of one kind")
        tag = {"": "", "_": "under" if large else "sub", "^": "over" if large else "sup"}
        kind = "".join(tag[sign] for sign in "_^" if sign in scripts)
        if scripts:
            base = f"<m{kind}>{base}{scripts.get('_', '')}{scripts.get('^', '')}</m{kind}>"
        if function:
            # A function's name is followed by a thin space, except before a bracket.
            base += "" if self.peek() in ("(", "[", "\\left", "") else _space("0.1667em")
        return base

    def atom(self) -> str:
        token = self.take()
        name = token[1:]
        if token == "{":
            return f"<mrow>{self.row('}')}</mrow>"
        if token in _SPACES:
            return _space(_SPACES[token])
        if token in ("|", "\\|"):
            return f'<mo stretchy="false" lspace="0" rspace="0">{_FENCES[token]}</mo>'
        if token in _FENCES:
            return f'<mo stretchy="false">{_FENCES[token]}</mo>'
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{token}</mi>"
        if token == "/":
            return '<mo lspace="0" rspace="0">/</mo>'
        if token in "+-=<>,:;!·":
            return f"<mo>{escape(token.replace('-', '−'))}</mo>"
        for table, tag in ((LETTERS, "mi"), (OPERATORS, "mo"), (_LARGE, "mo")):
            if token[0] == "\\" and name in table:
                return f"<{tag}>{table[name]}</{tag}>"
        if token[0] == "\\" and name in _FUNCTIONS:
            return f"<mi>{name}</mi>"
        if token[0] == "\\" and name in _ACCENTS:
            return f'<mover accent="true">{self.atom()}<mo stretchy="false">{_ACCENTS[name]}</mo></mover>'
        command = getattr(self, f"command_{name}", None) if token[0] == "\\" else None
        return command() if command else self.fail(f"{token!r} is not known")

    def command_frac(self) -> str:
        return f"<mfrac>{self.atom()}{self.atom()}</mfrac>"

    def command_sqrt(self) -> str:
        return f"<msqrt>{self.atom()}</msqrt>"

    def command_operatorname(self) -> str:
        # One upright letter must say so; longer names are upright by themselves.
        return f'<mi mathvariant="normal">{escape(self.raw())}</mi>'

    command_mathrm = command_operatorname

    def command_text(self) -> str:
        return f"<mtext>{escape(self.raw().replace(' ', chr(0xA0)))}</mtext>"

    def command_value(self) -> str:
        name = self.raw()
        if name not in self.values:
            raise MissingPart(f"formula {self.tex!r} needs a value for {name!r}")
        return f"<mn>{escape(self.values[name])}</mn>"

    def command_left(self) -> str:
        parts = []
        for form in ("prefix", "postfix"):
            sign = self.take()
            if sign not in _FENCES:
                self.fail(f"{sign!r} is no bracket")
            parts.append(f'<mo fence="true" form="{form}" stretchy="true">{_FENCES[sign]}</mo>')
            if form == "prefix":
                parts.append(self.row("\\right"))
        return f"<mrow>{''.join(parts)}</mrow>"


def _space(width: str) -> str:
    return f'<mspace width="{width}"></mspace>'


def mathml(tex: str, values: Mapping[str, object] | None = None) -> Markup:
    r"""Return a displayed formula written in a small subset of TeX as presentation MathML, its source as annotation.

    `\value{name}` inserts one of `values` as a number. Raises ValueError for a command that is not known, MissingPart
    for a value that is not given.
    """
    body = _Formula(tex, values or {}).row("")
    source = f'<annotation encoding="application/x-tex">{escape(tex.strip())}</annotation>'
    return Markup(f'<math display="block"><semantics><mrow>{body}</mrow>{source}</semantics></math>')


_SPACED = set("+−=<>≤≥≠≈∼→∈×∝±∣")
_MARKS = {"^": "\N{COMBINING CIRCUMFLEX ACCENT}", "¯": "\N{COMBINING MACRON}", "~": "\N{COMBINING TILDE}"}
_SHORT = 30
"""Signs of a formula that no line may part."""


def inline(tex: str, values: Mapping[str, object] | None = None) -> Markup:
    r"""Return a formula as it stands in a line: letters, signs and indices of HTML, `\value{name}` filled in."""
    html = _row(ET.fromstring(f"<mrow>{_Formula(tex, values or {}).row('')}</mrow>"))
    signs = re.sub(r"<[^>]*>|&\w+;", "", html)
    return Markup(f'<span class="{"math" if len(signs) <= _SHORT else "formula"}">{html.strip()}</span>')


def _row(row: ET.Element) -> str:
    pieces = []
    for place, element in enumerate(row):
        sign = (element.text or "") if element.tag == "mo" else ""
        # A sign before which nothing stands, or another sign, belongs to what follows.
        alone = place == 0 or (row[place - 1].tag == "mo" and (row[place - 1].text or "") not in ")]}|‖")
        if sign in _SPACED and not (alone and sign in "+−±"):
            pieces.append(f" {escape(sign)} ")
        elif sign in (",", ";"):
            pieces.append(f"{sign} ")
        else:
            # A function stands apart from what it follows.
            apart = (
                element.tag == "mi" and len(element.text or "") > 1 and "".join(pieces)[-1:] not in ("", " ", "(", "[")
            )
            pieces.append(f" {_piece(element)}" if apart else _piece(element))
    return "".join(pieces)


def _piece(element: ET.Element) -> str:
    children = list(element)
    if element.tag == "mrow":
        return _row(element)
    if element.tag == "mspace":
        return " "
    if element.tag == "msqrt":
        return f"√{_together(children[0])}"
    if element.tag == "mfrac":
        return "/".join(map(_together, children))
    if element.tag == "mover" and element.get("accent"):
        return _piece(children[0]) + _MARKS[children[1].text or ""]
    if children:
        down = {"msub": 1, "munder": 1, "msubsup": 1, "munderover": 1}.get(element.tag)
        up = {"msup": 1, "mover": 1, "msubsup": 2, "munderover": 2}.get(element.tag)
        scripts = [f"<sub>{_piece(children[down])}</sub>"] if down else []
        scripts += [f"<sup>{_piece(children[up])}</sup>"] if up else []
        return _piece(children[0]) + "".join(scripts)
    text = (element.text or "").replace("⋅", "·")
    slanted = element.tag == "mi" and len(text) == 1 and not element.get("mathvariant")
    return f"<i>{escape(text)}</i>" if slanted else str(escape(text))


def _together(element: ET.Element) -> str:
    """Return what a root or a fraction holds, in brackets where it is more than one thing."""
    html, inner = _piece(element), element
    while inner.tag == "mrow" and len(inner) == 1:
        inner = inner[0]
    return f"({html})" if inner.tag in ("mrow", "mfrac") and len(inner) > 1 else html


_NOT_BEFORE, _NOT_AFTER = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"
_SYMBOLS = re.compile(rf"{_NOT_BEFORE}(?:(?:1/)?√?d_k(?:²|\^[a-z])?|q·k){_NOT_AFTER}")
# A Chinese line may break between any two characters, only not after an opening and before a closing mark.
_WIDE = "\u3000-\u9fff\uf900-\uffef"
_BESIDE_FORMULA = re.compile(
    r'<span class="together">.*?</span>'
    rf'|([（《「]*[^\s<>{_WIDE}]*)(<span class="math">.*?</span>)([^\s<>&{_WIDE}]*[，。；：、！？）》」]*)'
)


def prose(text: str) -> Markup:
    """Return plain text as HTML, everything escaped and the symbols q·k, d_k, √d_k, d_k² set as formulas."""
    # Markup's join escapes what is no markup.
    return glued(Markup("").join([inline(piece) if is_formula else piece for piece, is_formula in symbols(text)]))


def symbols(text: str) -> list[tuple[str, bool]]:
    """Split plain text into words and the formulas for its symbols, in TeX; of each piece, whether it is a formula."""
    pieces, end = [], 0
    for match in _SYMBOLS.finditer(text):
        formula = match[0].replace("²", "^2").replace("·", r" \cdot ").replace("√d_k", r"\sqrt{d_k}")
        pieces += [(text[end : match.start()], False), (formula, True)]
        end = match.end()
    return [*pieces, (text[end:], False)]


def glued(html: Markup) -> Markup:
    """Keep a short formula on one line with the bracket or the comma beside it, and a number with its percent sign.

    A browser may break there.
    """

    def join(match: re.Match[str]) -> str:
        return f'<span class="together">{match[0]}</span>' if match[1] or match[3] else match[0]

    return Markup(_BEFORE_PERCENT.sub("\N{NO-BREAK SPACE}", _BESIDE_FORMULA.sub(join, html)))
