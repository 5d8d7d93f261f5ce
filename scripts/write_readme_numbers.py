"""Carry the answer of a finished run and its first figure into docs/ and README.md."""

import json
import re
import sys
from pathlib import Path

from program import run
from sqrtdk import __version__
from sqrtdk.report import contents
from sqrtdk.report.article import chapters
from sqrtdk.results import reading
from sqrtdk.results.writing import write_bytes, write_text
from sqrtdk.words import texts
from sqrtdk.words.sentences import Sentence

START, END = "<!-- headline:start -->", "<!-- headline:end -->"
TABLES = (
    *("moments", "variance_laws", "softmax_saturation", "real_heads", "alternatives", "initialisation"),
    *("gradient_magnitude", "gradient_distribution", "gradient_crossovers", "planted_capacity"),
    *("training_verdicts", "training_summary"),
)
FIGURE = ("figures/fig-hero.json", "figures/fig-hero.png")
_TEX = {r"\cdot": "·", r"\sqrt{d_k}": "√d_k"}


def write_readme_numbers(
    results: Path = Path("results"),
    report: Path = Path("report"),
    docs: Path = Path("docs"),
    readme: Path = Path("README.md"),
    shipped_training: Path = Path("resources/training"),
) -> None:
    """Write docs/headline.json and docs/hero.png, and the block of README.md that is made from them."""
    needed = [results / f"{name}.csv" for name in TABLES] + [results / name for name in ("provenance.json", *FIGURE)]
    absent = [str(path) for path in needed if not path.exists()]
    if absent:
        sys.exit(f"--results needs the folder of a finished run; there is no {', '.join(absent)}")
    frames = reading.tables([results / f"{name}.csv" for name in TABLES])
    provenance = json.loads((results / "provenance.json").read_text(encoding="utf-8"))
    record, image = (results / name for name in FIGURE)
    figure = json.loads(record.read_text(encoding="utf-8"))
    say = texts.Words(texts.read(report, "en"))
    configuration = provenance["configuration"]
    longer = reading.tables([shipped_training / "training_verdicts.csv"])
    at, facts = contents.setting(frames, configuration), contents.facts(frames, longer, configuration)
    article = chapters.Article(frames, longer, at, facts)

    def spelled(sentence: Sentence) -> str:
        values = {name: say.spell(value, False) for name, value in sentence.values.items()}
        return markdown(say.text(sentence.key), values)

    headline = {
        "version": __version__,
        "configuration_sha256": provenance["configuration_sha256"],
        "figure": {"alt": figure["alt"], "sha256": figure["files"]["png"]["sha256"]},
        "answer": spelled(article.lede()),
        "findings": [spelled(card.finding) for card in article.cards()],
    }
    write_bytes(docs / "hero.png", image.read_bytes())
    write_text(docs / "headline.json", json.dumps(headline, ensure_ascii=False, indent=2) + "\n")
    write_text(readme, with_block(readme.read_text(encoding="utf-8"), headline))


def markdown(text: str, values: dict[str, object]) -> str:
    """Return a sentence of the report's words, HTML with `$tex$`, as Markdown.

    Raises ValueError where a formula has no plain spelling.
    """

    def formula(match: re.Match) -> str:
        tex = re.sub(r"\\value\{(\w+)\}", r"{\1}", match[1])
        for command, sign in _TEX.items():
            tex = tex.replace(command, sign)
        if "\\" in tex:
            raise ValueError(f"the formula {match[0]} has no plain spelling")
        return tex.replace(" · ", "·")

    text = re.sub(r"\$([^$]*)\$", formula, text)
    for tag, mark in {"strong": "**", "em": "*", "code": "`", "q": '"'}.items():
        text = re.sub(f"</?{tag}>", mark, text)
    return text.format(**values)


def with_block(readme: str, headline: dict) -> str:
    """Return the text of README.md with the block between its two markers made from the headline."""
    image = f"![{headline['figure']['alt']}](docs/hero.png)"
    lines = [headline["answer"], "", image, "", *(f"- {finding}" for finding in headline["findings"])]
    before, _, rest = readme.partition(START)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"README.md lacks the markers {START} and {END}")
    return "\n".join([f"{before}{START}", *lines, f"{END}{after}"])


if __name__ == "__main__":
    run(write_readme_numbers)
