"""What the parts of the article are made of, and how they look a number up."""

import re
from dataclasses import dataclass
from typing import Any

import pandas as pd

from sqrtdk.report import trained
from sqrtdk.report.comparing import MARGIN
from sqrtdk.report.facts import Facts
from sqrtdk.report.study_numbers import training_name
from sqrtdk.report.tables.cells import missing
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

SHIPPED_MODELS = ("MiniLM-L6", "Whisper tiny", "RXNMapper", "MGM", "small Llama", "small Qwen3", "small ViT")
"""Models whose heads ship with the project."""


@dataclass(frozen=True)
class Point:
    """One point: its words are headed at `<family>.<name>`; `evidence` are anchors of figures, tables and methods."""

    name: str
    sentences: tuple[Sentence, ...]
    evidence: tuple[str, ...] = ()


def error(row: dict[str, Any] | None, value: str = "estimate", se: str = "se") -> str | None:
    """Spell the number of a row with its error, `0.792(2)`; None where there is no row or no number."""
    return None if row is None or missing(row[value]) else numbers.with_error(row[value], row[se])


def models(frame: pd.DataFrame) -> Listing:
    """Name the trained models that a table of heads holds, and say what they are where the words do."""
    return Listing(tuple(map(_model, frame["model"].unique())))


def _model(name: str) -> Sentence:
    if name in SHIPPED_MODELS:
        return Sentence(f"article.models.{re.sub('[^a-z0-9]+', '_', name.lower())}")
    return Sentence("article.literal", {"text": name})


def near_one(value: float) -> bool:
    """Say whether a standard deviation of logits counts as 1."""
    return abs(value - 1) <= MARGIN


def times(facts: Facts, row: dict[str, Any]) -> object:
    """Quote how many times the steps of 1/√d_k a rule of the run takes; one without a name is spelled."""
    name = f"{training_name(row['experiment'], row['scaling'], row['d_k'])}Speed"
    return facts.quote({name: name})[name] if name in facts else trained.times(row)
