"""The verdict for people: a table on the terminal, an HTML page, and CSV."""

import csv
import html
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from sqrtdk.heads.findings import BUG, HEALTHY, LEVELS, NOTE, WARNING, Finding
from sqrtdk.heads.verdict import ALL_COLUMNS, Verdict
from sqrtdk.statistics.intervals import LEVEL

MOST_ROWS = 40
"""Heads that the terminal shows; those with findings come first where there are more."""
CAVEAT = (
    f"Intervals ({100 * LEVEL:.0f} %) leave out single tokens, as queries and as keys, which are assumed exchangeable: "
    "for runs of text whose neighbours are alike they are too narrow, and where one token, a sink, carries most of a "
    "head, its weight dominates them. Minimum and maximum have no interval."
)


@dataclass(frozen=True)
class Column:
    """A column of the table.

    heading, fact: its title and the fact it shows, over the fact `over` where there is one. digits: how many.
    interval: whether it is shown. scaled: whether it rests on the scale. wide: only on the page.
    """

    heading: str
    fact: str
    digits: int = 3
    interval: bool = False
    scaled: bool = False
    over: str | None = None
    wide: bool = False


TABLE = (
    Column("|q|", "q_norm"),
    Column("|k|", "k_norm"),
    Column("cos", "cosine", 2),
    Column("mean q·k", "score_mean", wide=True),
    Column("std q·k", "score_std", interval=True, wide=True),
    Column("q·k std in row", "row_score_std"),
    Column("scale", "factor", 4, scaled=True),
    Column("logit std in row", "row_logit_std", interval=True, scaled=True),
    Column("min logit", "logit_min", scaled=True, wide=True),
    Column("max logit", "logit_max", scaled=True),
    Column("H/ln n", "relative_entropy", interval=True, scaled=True),
    Column("iid", "iid_entropy", scaled=True, over="uniform_entropy"),
    Column("mean max p", "max_weight", scaled=True),
    Column("p > .99", "saturated_share", 2, scaled=True),
    Column("|J| rms", "jacobian", 2, scaled=True, wide=True),
    Column("|dk| rms", "key_gradient", 2, scaled=True, wide=True),
    Column("sink", "sink_share", 2, scaled=True),
    Column("at key", "sink_key", wide=True),
    Column("q mixing", "query_scale_mixing", 2, wide=True),
)


def number(value: Any, digits: int = 3) -> str:
    """Spell a number of a table; nothing for what does not exist."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if value and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.{digits - 1}e}"
    places = 0 if not value else max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{places}f}" if value else "0"


def cell(column: Column, row: dict[str, Any]) -> str:
    """Spell a fact of a head, with its interval, and a question mark where it rests on an assumed scale."""
    value = row[column.fact]
    if column.over and value is not None:
        value /= row[column.over]
    text = number(value, column.digits)
    low, high = (row.get(f"{column.fact}_{end}") for end in ("low", "high"))
    if column.interval and low is not None:
        text += f" [{number(low, column.digits)}, {number(high, column.digits)}]"
    return text + ("?" if column.scaled and row["scale_source"] == "assumed" and text != "–" else "")


@dataclass(frozen=True)
class SharedFinding:
    """A finding and all heads of a dump that have it."""

    finding: Finding
    dump: str
    places: tuple[tuple[str, int, int], ...]


Placed = tuple[Finding, tuple[str, int, int]]
"""A finding and the head that has it: module, layer and number."""


SCALES = ("wrong scale", "scale of another convention", "unexplained scale", "other than declared", "zero scale")
"""Findings whose factor is one number for many heads, so that another factor is another finding."""
SHARP = ("entropy collapse", "very sharp")
PLACED = ("not finite", "overflow of float16")
"""Findings whose evidence names tokens, which may be others in other heads."""
ALIKE = 0.01
"""Factors that differ by less are one, as measured ones do."""
FEW = 4
"""Of more factors than this, one finding says how far they reach."""


def grouped(verdicts: Sequence[Verdict]) -> list[SharedFinding]:
    """Return the findings, the gravest first, each once for all heads of a dump that share it and its factor.

    The evidence is that of the first of these heads.
    """
    found: dict[tuple[Any, ...], list[Placed]] = {}
    for verdict in verdicts:
        place = (verdict.row["module"], verdict.row["layer"], verdict.row["head"])
        for finding in verdict.findings:
            # Heads that are sharp in different ways get different advice.
            of = finding.advice if finding.kind in SHARP else ""
            key = (LEVELS.index(finding.level), verdict.row["dump"], finding.kind, finding.explanations, of)
            found.setdefault(key, []).append((finding, place))
    groups = []
    for key in sorted(found, key=lambda key: key[0]):
        parts = [found[key]]
        if key[2] in SCALES:
            parts = _by_factor(found[key])
        elif key[2] in PLACED:
            by_evidence: dict[str, list[Placed]] = {}
            for one in found[key]:
                by_evidence.setdefault(one[0].evidence, []).append(one)
            parts = list(by_evidence.values())
        if len(parts) > FEW:
            parts = [[(_reaching(found[key], len(parts)), place) for _, place in found[key]]]
        groups += [SharedFinding(part[0][0], key[1], tuple(place for _, place in part)) for part in parts]
    return groups


def _by_factor(found: list[Placed]) -> list[list[Placed]]:
    """Return findings with their places, apart where their factors are, in the order of the heads."""
    order = sorted(range(len(found)), key=lambda place: found[place][0].factor or 0.0)
    parts: list[list[int]] = []
    for place in order:
        factor = found[place][0].factor or 0.0
        if parts and abs(factor - (found[parts[-1][0]][0].factor or 0.0)) <= ALIKE * abs(factor):
            parts[-1].append(place)
        else:
            parts.append([place])
    return [[found[place] for place in sorted(part)] for part in sorted(parts, key=min)]


def _reaching(found: list[Placed], count: int) -> Finding:
    """Return one finding for many factors, or many places."""
    if found[0][0].kind in PLACED:
        return replace(found[0][0], evidence=f"in the first of these heads, {found[0][0].evidence}")
    factors = [finding.factor or 0.0 for finding, _ in found]
    evidence = f"{count} factors from {min(factors):.4g} to {max(factors):.4g}, the first: {found[0][0].evidence}"
    return replace(found[0][0], factor=None, evidence=evidence)


def places(heads: tuple[tuple[str, int, int], ...]) -> str:
    """Spell heads by layer, such as `layer 0 head 2; layer 1 heads 0–3, 7`, or by module where that is known."""
    texts = []
    order = sorted(heads, key=lambda place: (place[1], place[0], place[2]))
    for (module, layer), group in groupby(order, key=lambda place: place[:2]):
        numbers = [head for *_, head in group]
        runs: list[list[int]] = []
        for head in numbers:
            if runs and head == runs[-1][1] + 1:
                runs[-1][1] = head
            else:
                runs.append([head, head])
        words = ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in runs)
        texts.append(f"{module or f'layer {layer}'} head{'s' if len(numbers) > 1 else ''} {words}")
    return "; ".join(texts) if len(texts) <= 8 else f"{'; '.join(texts[:8])}; and {len(texts) - 8} more layers"


def headline(verdicts: Sequence[Verdict]) -> str:
    """Say in one line how many heads are sound, and whether their scale was seen at work."""
    counts = {level: sum(verdict.level == level for verdict in verdicts) for level in LEVELS}
    total = f"{len(verdicts)} head{'s' if len(verdicts) > 1 else ''}"
    parts = [f"{counts[BUG]} with a bug" if counts[BUG] else "no bug found"]
    parts += [f"{counts[WARNING]} with a warning"] if counts[WARNING] else []
    if counts[BUG] or counts[NOTE]:
        parts.append(f"{counts[NOTE]} with notes" + (" only" if counts[BUG] else ""))
    text = f"{total}: {', '.join(parts)}."
    unseen = {verdict.row["scale_source"] for verdict in verdicts} & {"declared", "assumed"}
    if not unseen:
        return text
    return f"{text} The scale is as {' or '.join(sorted(unseen))}, not checked."


def basis(verdicts: Sequence[Verdict]) -> str:
    """Say what the verdict was judged against."""
    row = verdicts[0].row
    words = {
        "assumed": "ASSUMED, not declared: numbers marked ? rest on it",
        "declared": "declared",
        "measured": "measured from the given scores",
        "captured": "captured at work",
        "scores": "in the given scores",
        "unmeasured": "not measured",
    }
    factors = sorted({number(verdict.row["factor"], 5) for verdict in verdicts})
    listed = ", ".join(factors[:4]) + (f" and {len(factors) - 4} more" if len(factors) > 4 else "")
    scale = f"scale {listed} ({words[row['scale_source']]})"
    conventions = list(dict.fromkeys(verdict.row["convention"] for verdict in verdicts))
    more = f" and {len(conventions) - 3} more" if len(conventions) > 3 else ""
    return f"Judged against convention {', '.join(conventions[:3])}{more}, stage {row['stage']}; {scale}."


def terminal(verdicts: Sequence[Verdict], assumed: Sequence[str], took: str, unchecked: Sequence[str] = ()) -> str:
    """Return the verdict as text."""
    lines = [headline(verdicts), basis(verdicts), *(f"Assumed: {words}." for words in assumed)]
    lines += [*([f"Not checked: {'; '.join(unchecked)}."] if unchecked else []), ""]
    for group in grouped(verdicts):
        finding = group.finding
        causes = f": {' / '.join(finding.explanations)}" if finding.explanations else ""
        factor = f" (factor {finding.shown_factor:.4g})" if finding.shown_factor is not None else ""
        lines += [
            f"{finding.level.upper()} {finding.kind}{causes}{factor}",
            f"     where: {group.dump}, {places(group.places)}",
            f"  evidence: {finding.evidence}",
            f"     to do: {finding.advice}",
            "",
        ]
    shown, columns = verdicts, [column for column in TABLE if not column.wide]
    if len(verdicts) > MOST_ROWS:
        shown = sorted(verdicts, key=lambda verdict: (*LEVELS, HEALTHY).index(verdict.level))
    several = len({verdict.row["dump"] for verdict in verdicts}) > 1
    heading = [*(["dump"] if several else []), "head", "verdict", *(column.heading for column in columns)]
    table = [heading]
    for verdict in shown[:MOST_ROWS]:
        row = verdict.row
        name = [row["dump"][-24:]] if several else []
        table.append(
            [
                *name,
                f"{row['module'] or row['layer']}.{row['head']}",
                verdict.level,
                *(cell(column, row) for column in columns),
            ]
        )
    widths = [max(len(line[place]) for line in table) for place in range(len(heading))]
    lines += ["  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in table]
    if len(verdicts) > MOST_ROWS:
        lines.append(f"... and {len(verdicts) - MOST_ROWS} more heads; --csv and --html have all of them.")
    return "\n".join([*lines, "", CAVEAT, took])


def table_text(verdicts: Sequence[Verdict]) -> str:
    """Return all facts as CSV with one header row and full precision."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(ALL_COLUMNS)
    for verdict in verdicts:
        writer.writerow(["" if verdict.row[c] is None else verdict.row[c] for c in ALL_COLUMNS])
    return text.getvalue()


STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1b1d21; --muted: #565c66; --line: #d9dde3; --panel: #f5f7f9;
  --bug: #b3261e; --warning: #9a4a00; --note: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --page: #14171b; --ink: #e4e7eb; --muted: #a4abb5; --line: #343a43;
  --panel: #1c2026; --bug: #ff8a80; --warning: #ffb074; --note: #ffcc66; } }
body { margin: 0 auto; padding: 0 clamp(1rem, 4vw, 2.5rem) 3rem; max-width: 80rem; background: var(--page);
  color: var(--ink); font: 1rem/1.55 -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: break-word; }
p, dd { max-width: 48rem; } .muted { color: var(--muted); font-size: 0.9rem; }
section { border-left: 4px solid var(--note); background: var(--panel); padding: 0.3rem 1rem; margin: 1rem 0; }
section.bug { border-color: var(--bug); } section.warning { border-color: var(--warning); } h2 { font-size: 1.1rem; }
dt { font-weight: 600; } dd { margin: 0 0 0.4rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.2rem 0.6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
thead th { vertical-align: bottom; } .bug b { color: var(--bug); } .note b { color: var(--note); }
.warning b { color: var(--warning); }
"""


def page(verdicts: Sequence[Verdict], assumed: Sequence[str]) -> str:
    """Return one offline HTML page; every text of a file is escaped, and nothing in it runs."""
    escape = html.escape
    parts = []
    for group in grouped(verdicts):
        finding = group.finding
        factor = f" (factor {finding.shown_factor:.4g})" if finding.shown_factor is not None else ""
        items = {
            "Where": f"{group.dump}, {places(group.places)}",
            "Evidence": finding.evidence,
            "Explanations": "; ".join(finding.explanations),
            "To do": finding.advice,
        }
        words = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in items.items() if text)
        title = f"{finding.level.capitalize()}: {finding.kind}{factor}"
        parts.append(f'<section class="{finding.level}"><h2>{escape(title)}</h2><dl>{words}</dl></section>')
    several = len({verdict.row["dump"] for verdict in verdicts}) > 1
    lead = ("dump", "head", "verdict") if several else ("head", "verdict")
    heads = "".join(f'<th scope="col">{escape(text)}</th>' for text in lead)
    heads += "".join(f'<th scope="col">{escape(column.heading)}</th>' for column in TABLE)
    rows = []
    for verdict in verdicts:
        row = verdict.row
        name = f"<td>{escape(str(row['dump']))}</td>" if several else ""
        cells = "".join(f"<td>{escape(cell(column, row))}</td>" for column in TABLE)
        place = str(row["module"] or row["layer"])
        rows.append(
            f'<tr class="{verdict.level}">{name}<th scope="row">{escape(place)}.{row["head"]}</th>'
            f"<td><b>{verdict.level}</b></td>{cells}</tr>"
        )
    told = "".join(f"<li>{escape(words)}</li>" for words in assumed)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Audit of attention heads</title>\n<style>{STYLE}</style>\n</head>\n"
        "<body>\n<h1>Audit of attention heads</h1>\n"
        f"<p><strong>{escape(headline(verdicts))}</strong> {escape(basis(verdicts))}</p>\n"
        + (f"<p>Assumed in reading:</p>\n<ul>{told}</ul>\n" if told else "")
        + "\n".join(parts)
        + '\n<h2>All heads</h2>\n<div class="scroll" role="region" tabindex="0" aria-label="All heads">\n<table>\n'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{chr(10).join(rows)}\n</tbody>\n</table>\n</div>\n"
        f'<p class="muted">{escape(CAVEAT)}</p>\n</body>\n</html>\n'
    )
