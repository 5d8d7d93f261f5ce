"""The HTML of the report: words, formulas, references, and a Jinja environment that refuses what is missing."""

import json
import re
from collections.abc import Mapping

import jinja2
import yaml
from markupsafe import Markup, escape

from sqrtdk import scalings
from sqrtdk.figures import inline


class MissingPart(ValueError):
    """A part of the report is absent: a word, a placeholder's value, a formula, a reference, a figure or a file."""


# ---- formulas: a small subset of TeX to presentation MathML ----------------------------------------------------------

_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|\d+(?:\.\d+)?|\s+|.", re.DOTALL)


def _named(pairs: str) -> dict[str, str]:
    words = pairs.split()
    return dict(zip(words[::2], words[1::2], strict=True))


_LETTERS = _named(
    "alpha α beta β gamma γ delta δ epsilon ε theta θ kappa κ lambda λ mu μ nu ν pi π rho ρ sigma σ tau τ phi φ chi χ "
    "psi ψ Gamma Γ Delta Δ Sigma Σ Phi Φ Lambda Λ infty ∞ ell ℓ"
)
_OPERATORS = _named(
    "cdot ⋅ times × le ≤ ge ≥ ne ≠ approx ≈ sim ∼ to → in ∈ partial ∂ ldots … propto ∝ pm ± mid ∣ top ⊤"
)
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

    def fail(self, what: str):
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
        base, scripts = self.atom(), {}
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
        for table, tag in ((_LETTERS, "mi"), (_OPERATORS, "mo"), (_LARGE, "mo")):
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


def mathml(tex: str, values: Mapping[str, object] | None = None, display: bool = False) -> Markup:
    """Return a formula written in a small subset of TeX as presentation MathML.

    `\\value{name}` inserts one of `values` as a number. A displayed formula carries its TeX source as an annotation.
    Raises ValueError for a command that is not known, MissingPart for a value that is not given.
    """
    body = _Formula(tex, values or {}).row("")
    if not display:
        return Markup(f"<math><mrow>{body}</mrow></math>")
    source = f'<annotation encoding="application/x-tex">{escape(tex.strip())}</annotation>'
    return Markup(f'<math display="block"><semantics><mrow>{body}</mrow>{source}</semantics></math>')


# ---- references ------------------------------------------------------------------------------------------------------


def read_references(bibtex: str) -> dict[str, dict[str, str]]:
    """Return the entries of a BibTeX file in their order, key -> fields; a field is `name = {value}`, not nested."""
    entries = {}
    for block in re.split(r"^@", bibtex, flags=re.MULTILINE)[1:]:
        head = re.match(r"(\w+)\{([\w-]+),", block)
        fields = {name.lower(): value for name, value in re.findall(r"(\w+)\s*=\s*\{([^{}]*)\}", block)}
        if head is None or not {"author", "title", "year"} <= fields.keys() or head[2] in entries:
            raise MissingPart(f"a reference needs a key of its own, author, title and year: @{block.splitlines()[0]}")
        entries[head[2]] = {"type": head[1], **fields}
    return entries


# ---- words -----------------------------------------------------------------------------------------------------------


class Words:
    """The words of one language: `words("a.b", x=...)` is the text at a.b as HTML, with its placeholders filled.

    The text is trusted HTML with `$tex$` for formulas and `[@key]` for references; the values are not, and are escaped.
    `constants` are values that every text may name.
    """

    def __init__(self, tree: dict, references: Mapping[str, object] | None = None, constants: Mapping | None = None):
        self.tree = tree
        self.constants = constants or {}
        self.numbers = {key: number for number, key in enumerate(references or {}, start=1)}
        self.used: set[str] = set()

    def entry(self, key: str):
        """Return what stands at a dotted key: a text, a list or a mapping."""
        here = self.tree
        for part in key.split("."):
            if not isinstance(here, dict) or part not in here:
                raise MissingPart(f"the words have no {key!r}")
            here = here[part]
        return here

    def has(self, key: str) -> bool:
        """Say whether there is a text at this key."""
        try:
            return isinstance(self.entry(key), str)
        except MissingPart:
            return False

    def text(self, key: str) -> str:
        text = self.entry(key)
        if not isinstance(text, str):
            raise MissingPart(f"the words at {key!r} are no text")
        self.used.add(key)
        return text

    def plain(self, key: str, **values: object) -> str:
        """Return a text without any markup, for attributes and the page's title."""
        text = self.text(key)
        if "$" in text or "<" in text or "[@" in text:
            raise ValueError(f"the words at {key!r} are used where markup cannot stand")
        return self.fill(key, text, values)

    def __call__(self, key: str, **values: object) -> Markup:
        parts = self.text(key).split("$")
        values = {**self.constants, **values}
        if len(parts) % 2 == 0:
            raise ValueError(f"the words at {key!r} have an odd number of $")
        # Every second part stands between two dollar signs.
        pieces = (
            mathml(part, values) if number % 2 else self.fill(key, Markup(self.cite(key, part)), values)
            for number, part in enumerate(parts)
        )
        return glued(Markup("").join(pieces))

    def fill(self, key: str, text: str, values: Mapping[str, object]) -> str:
        try:
            return text.format(**values)
        except (KeyError, IndexError) as error:
            raise MissingPart(f"the words at {key!r} need a value for {error}") from None

    def cite(self, key: str, text: str) -> str:
        def link(match: re.Match) -> str:
            if match[1] not in self.numbers:
                raise MissingPart(f"the words at {key!r} cite {match[1]!r}, which is not among the references")
            return f'<a class="cite" href="#ref-{match[1]}">[{self.numbers[match[1]]}]</a>'

        return re.sub(r"\[@([\w-]+)\]", link, text)


# ---- prose that comes as plain text ----------------------------------------------------------------------------------

_NOT_BEFORE, _NOT_AFTER = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"
_SYMBOLS = re.compile(rf"{_NOT_BEFORE}(?:(?:1/)?√?d_k(?:²|\^[a-z])?|q·k){_NOT_AFTER}")
_BESIDE_FORMULA = re.compile(r"([^\s<>]*)(<math>(?:(?!<math).)*</math>)([^\s<>&]*)")


def prose(text: str) -> Markup:
    """Return plain text as HTML, everything escaped and the symbols q·k, d_k, √d_k, d_k² set as formulas."""
    pieces, end = [], 0
    for match in _SYMBOLS.finditer(text):
        symbol = match[0].replace("²", "^2").replace("·", r" \cdot ").replace("√d_k", r"\sqrt{d_k}")
        pieces += [text[end : match.start()], mathml(symbol)]
        end = match.end()
    # Markup's join escapes what is no markup.
    return glued(Markup("").join([*pieces, text[end:]]))


def glued(html: Markup) -> Markup:
    """Keep a short formula on one line with the bracket or the comma beside it: a browser may break there."""

    def join(match: re.Match) -> str:
        return match[0] if not match[1] + match[3] else f'<span class="together">{match[0]}</span>'

    return Markup(_BESIDE_FORMULA.sub(join, html))


# ---- the page --------------------------------------------------------------------------------------------------------


def scale_rule(name: str) -> Markup:
    """Return the factor of a scale rule as a formula where it is one of d_k alone, else the name as it is spelled."""
    rule = scalings.SCALINGS.get(name)
    plain = rule is not None and rule.factor is not None and not rule.parameters and rule.kind == scalings.RULE
    return mathml(re.sub(r"^\\frac\{1\}\{(.+)\}$", r"1 / \1", rule.formula)) if plain else escape(name)


def figure(record: Mapping, svg: str, csv: str, bibtex: str, folder: str) -> dict:
    """Return what the page shows of a figure, from its record, its files' texts and its folder relative to the page."""
    names = ("id", "number", "title", "question", "caption", "alt", "reading", "caveat")
    absent = [name for name in names if name not in record]
    if absent:
        raise MissingPart(f"the figure {record.get('id')} has no {', '.join(absent)}")
    anchor = f"fig-{record['id']}"
    page = inline.svg_for_page(svg, anchor, title=record["title"], description=record["alt"])
    return {
        **{name: record[name] for name in names},
        "anchor": anchor,
        "path": f"{folder}/{anchor}",
        "suffixes": ("pdf", "svg", "png", "csv", "bib"),
        "svg": Markup(page),
        "csv": csv,
        "rows": max(len(csv.splitlines()) - 1, 0),
        "bibtex": bibtex,
    }


def environment(sources: Mapping[str, str]) -> jinja2.Environment:
    """Return a Jinja environment over named source texts: autoescape on, and an undefined name is an error."""
    jinja = jinja2.Environment(
        loader=jinja2.DictLoader(dict(sources)),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    jinja.filters |= {"prose": prose, "scale": scale_rule}
    jinja.globals |= {"rule": scale_rule, "formula": mathml}
    jinja.globals |= {"json": lambda value: json.dumps(value, ensure_ascii=False)}
    return jinja


def render(sources: Mapping[str, str], language: str, context: Mapping[str, object], constants: Mapping) -> str:
    """Return the page made from the report's sources (name -> text) in one language.

    `template.html.jinja` is the page, `words/<language>.yaml` its words, `formulas.yaml` its displayed formulas,
    `references.bib` its references, `styles.css` its style. `constants` are values that all words may name.
    Raises MissingPart where one of them or a part of the page is absent.
    """
    needed = ("template.html.jinja", f"words/{language}.yaml", "formulas.yaml", "references.bib", "styles.css")
    absent = [name for name in needed if name not in sources]
    if absent:
        raise MissingPart(f"the report's sources have no {', '.join(absent)}")
    references = read_references(sources["references.bib"])
    formulas = yaml.safe_load(sources["formulas.yaml"])
    jinja = environment(sources)
    jinja.globals |= {
        "say": Words(yaml.safe_load(sources[f"words/{language}.yaml"]), references, constants),
        "formulas": {
            name: {"number": number, "math": mathml(text, display=True)}
            for number, (name, text) in enumerate(formulas.items(), start=1)
        },
        "references": references,
        "styles": Markup(sources["styles.css"]),
        "language": language,
    }
    try:
        return jinja.get_template("template.html.jinja").render(context)
    except (jinja2.UndefinedError, jinja2.TemplateNotFound) as error:
        raise MissingPart(f"the report lacks a part: {error}") from error
