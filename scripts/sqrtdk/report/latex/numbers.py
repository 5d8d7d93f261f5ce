"""The key numbers of a run as a record for programs, and as LaTeX macros that work with siunitx and without it."""

import math
from typing import Any

from sqrtdk.report.facts import KeyNumber
from sqrtdk.report.latex import text
from sqrtdk.report.latex.tables import PACKAGES
from sqrtdk.words import numbers
from sqrtdk.words.texts import Words

PREFIX = "sqrtdk"
INTERVAL = "CI"
"""What follows a number's name in the name of its interval."""
_PREAMBLE = r"""\makeatletter
% What siunitx reads, and the same as a formula where it is not loaded; decided where a macro is used.
\@ifundefined{sqrtdk@number}{}{\PackageError{sqrtdk}{Numbers of two runs}{Input numbers.tex once.}}
\protected\def\sqrtdk@number#1#2{\@ifundefined{ver@siunitx.sty}{\ensuremath{#2}}{\num{#1}}}
\protected\def\sqrtdk@interval#1{\ensuremath{#1}}
\AtBeginDocument{\@ifundefined{pdfstringdefDisableCommands}{}{\pdfstringdefDisableCommands{%
  \def\sqrtdk@number#1#2{#1}\def\sqrtdk@interval#1{#1}}}}
\newcommand*\sqrtdk@list{}
\newcommand\sqrtdk@define[3]{% name, value, what it is
  \expandafter\newcommand\expandafter*\csname sqrtdk#1\endcsname{#2}%
  \g@addto@macro\sqrtdk@list{\sqrtdk@entry{#1}{#3}}}
\newcommand\sqrtdk@entry[2]{\par\noindent\hangindent=1em
  \texttt{\string\sqrtdk#1}\quad\csname sqrtdk#1\endcsname\quad#2}
"""
_LISTING = r"""% Prints every macro with its value and what it is.
\newcommand\sqrtdkList{\begingroup\footnotesize\raggedright\sqrtdk@list\par\endgroup}
\makeatother
"""


def record(found: list[KeyNumber], say: Words) -> dict[str, dict[str, Any]]:
    """Return the numbers by name as JSON holds them; an infinite end of an interval is null."""
    return {number.name: _entry(number, say) for number in found}


def _entry(number: KeyNumber, say: Words) -> dict[str, Any]:
    ends = None if number.low is None or number.high is None else [_finite(number.low), _finite(number.high)]
    return {
        "macro": f"\\{PREFIX}{number.name}",
        "value": number.value,
        "se": number.se,
        "interval": ends,
        "text": number.spelled,
        "unit": number.unit,
        "n": number.n,
        "source": {
            "file": number.source,
            "row": {key: value.item() if hasattr(value, "item") else value for key, value in number.row.items()},
            "columns": list(number.columns),
            "calculation": number.calculation,
        },
        "description": say.plain(number.description.key, **number.description.values),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def macros(found: list[KeyNumber], say: Words, origin: str, constants: dict[str, str]) -> str:
    r"""Return the file of macros: `\sqrtdkGaussianExponent` for each number, and `\sqrtdk...CI` for its interval.

    origin: what the numbers come from, for the comment above. constants: macros that hold a text, by name.
    """
    names = [*constants, "List", *(number.name for number in found)]
    names += [f"{number.name}{INTERVAL}" for number in found if number.low is not None]
    if len(set(names)) < len(names):
        raise ValueError(f"two macros share a name among {sorted(names)}")
    lines = [rf"\sqrtdk@define{{{name}}}{{\texttt{{{text.text(value)}}}}}{{}}" for name, value in constants.items()]
    for number in found:
        described = text.prose(say.plain(number.description.key, **number.description.values))
        spelled = number.spelled
        value = rf"\sqrtdk@number{{{text.siunitx(spelled)}}}{{{text.number(spelled)}}}"
        lines.append(rf"\sqrtdk@define{{{number.name}}}{{{value}}}{{{described}}}")
        if number.low is not None and number.high is not None:
            what = text.prose(say.plain("numbers.interval"))
            interval = text.number(numbers.interval(number.low, number.high))
            lines.append(rf"\sqrtdk@define{{{number.name}{INTERVAL}}}{{\sqrtdk@interval{{{interval}}}}}{{{what}}}")
    header = [f"% {origin}", r"% Load it once in the preamble: \input{latex/numbers}; \sqrtdkList prints all of it."]
    return "\n".join([*header, _PREAMBLE + "\n".join(lines), _LISTING])


def readme(labels: list[str], found: list[KeyNumber]) -> str:
    """Return how to use the folder of LaTeX files, whose tables are named by `labels`; its example quotes a number."""
    tables = "\n".join(f"- `{label}.tex`" for label in labels)
    quoted = next((number for number in found if number.low is not None), found[0])
    sentence = rf"A number of this run is \{PREFIX}{quoted.name}."
    if quoted.low is not None:
        sentence = rf"{sentence[:-1]}, with the 95\,\% interval \{PREFIX}{quoted.name}{INTERVAL}."
    return _README.replace("PACKAGES", ",".join(PACKAGES)).replace("SENTENCE", sentence).replace("TABLES", tables)


_README = r"""# Numbers and tables for LaTeX

Everything here is generated from the results of one run; do not edit it, run the workflow again.

```latex
\usepackage{graphicx,PACKAGES}
\usepackage{siunitx} % or not: the macros work without it
\input{results/latex/numbers}
\begin{document}
SENTENCE
\input{results/latex/tab-contrast}
Table~\ref{tab-contrast} holds them all.
\sqrtdkList
\end{document}
```

`numbers.tex` defines a macro for each number of `../numbers.json`, which says where each one comes from. A bracket is
the standard error in units of the last digits. A macro whose number is not in a run is not defined, so that a text that
quotes it stops with an error and does not print an old value. `\sqrtdkList` prints all macros with their values.

The tables fill the width of the line of the standard classes in one column. Long ones go over several pages
(`longtable`, which a text in two columns does not allow), wide ones on turned pages. Tables in Chinese need
XeLaTeX or LuaLaTeX with `ctex`, or `CJKutf8`.

TABLES
"""
