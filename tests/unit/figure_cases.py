"""Figures drawn once from synthetic results, and small runs to draw others from."""

import functools
import json
import re
from pathlib import Path

import pandas as pd
import synthetic_alternatives
import synthetic_energy
import synthetic_maps
import synthetic_planted
import synthetic_results as synthetic
import synthetic_start
import synthetic_training
import synthetic_vanishing

from sqrtdk.figures import saving, speaking, stamping
from sqrtdk.figures.catalogue import Description, load, names
from sqrtdk.sampling import laws, local_laws
from sqrtdk.words import texts as language_words

NAMES = names()
REPORT = Path(__file__).resolve().parents[2] / "report"
LANGUAGES = sorted(path.name for path in (REPORT / "words").iterdir())


@functools.lru_cache
def say(language: str = "en") -> language_words.Words:
    """Return the words of the report in a language."""
    return language_words.Words(language_words.read(REPORT, language))


def describe(name: str, frames, language: str = "en") -> Description:
    """Return what a figure says of some tables, each part as plain text, by way of the record that is written."""
    parts = json.loads(json.dumps(speaking.record(load(name).describe(frames))))
    return Description(**{part: speaking.speak(say(language), name, found) for part, found in parts.items()})


SPOKEN = [(name, one) for name in NAMES for one in LANGUAGES if one == "en" or f"figure-{name}" in say(one).tree]
"""Each figure with each language that has its words."""
ENGLISH = re.compile(r"\b(and|to|without|not available)\b", re.ASCII)
"""Words that can stand in another language only by mistake."""


def word_files(name: str, language: str = "en") -> list[Path]:
    """Return the files of words that a figure is drawn with."""
    files = (f"figure_{name.replace('-', '_')}", "figures_shared", "lists", "phrases", "drawn")
    folders = (REPORT / "words" / one for one in dict.fromkeys(("en", language)))
    return [path for folder in folders for path in (folder / f"{file}.yaml" for file in files) if path.is_file()]


def title(name: str) -> str:
    """Return the title of a figure in English."""
    return say().plain(f"figure-{name}.title")


@functools.lru_cache
def figure_of(name: str):
    """Return a figure as it is drawn from the usual tables."""
    return load(name).draw(synthetic.frames())


@functools.lru_cache
def data_of(name: str) -> pd.DataFrame:
    """Return what a figure plots."""
    return load(name).data(synthetic.frames())


@functools.lru_cache
def words_of(name: str) -> Description:
    """Return what a figure says."""
    return describe(name, synthetic.frames())


@functools.lru_cache
def svg(name: str) -> str:
    """Return a figure as the text of its SVG file."""
    figure, words = figure_of(name), words_of(name)
    return stamping.svg(saving.save(figure, "svg"), stamp(name, words.alt)).decode()


def stamp(name: str, description: str = "Lines.") -> stamping.Stamp:
    """Return the metadata of a figure of a run."""
    return stamping.Stamp(name, title(name), description, "1.2.3", "ab" * 32)


def small(**changes) -> dict[str, pd.DataFrame]:
    """Return a small run: two ensembles, three widths; `changes` go to all generators that know them."""
    ensembles = changes.get("ensembles", ("gaussian", "ar1"))
    d_k, n_keys = changes.get("d_k", (1, 16, 256)), changes.get("n_keys", (16, 64))
    scalings = changes.get("scalings", synthetic.SCALINGS)
    softmax = dict(ensembles=ensembles, d_k=d_k, n_keys=n_keys, scalings=scalings, n_rows=40)
    moments = synthetic.moments(ensembles, d_k)
    return {
        "moments": moments,
        "variance_laws": synthetic.variance_laws(moments),
        "spread_laws": laws.fit_spread_laws(moments, 64),
        "local_exponents": local_laws.local_exponents(moments),
        "score_histograms": synthetic.histograms(d_k[:4], 5000),
        "softmax_saturation": synthetic.softmax_saturation(**softmax),
        "gradient_magnitude": synthetic.gradient_magnitude(**softmax),
        **synthetic_energy.tables(n_keys, (1, 8), 3000, 12),
        **synthetic_maps.tables(scalings),
        **synthetic_planted.tables((64,), (1,), scalings, n_keys),
        **synthetic_vanishing.tables(**softmax),
        "real_heads": synthetic.real_heads(layers=changes.get("layers", 1), heads=changes.get("heads", 2)),
        **synthetic_training.tables(scalings=scalings, d_k=d_k[-3:], n_seeds=3),
        "alternatives": synthetic_alternatives.table(d_k=(4, 16)[: len(d_k)]),
        **synthetic_start.frames(scalings, d_k, n_layers=1 if len(d_k) < 2 else 3),
    }
