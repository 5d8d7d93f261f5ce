"""The design of the study on one card: aims, data-generating mechanisms, estimands, methods, performance measures."""

from typing import Any

import pandas as pd

from sqrtdk.report import calibrating
from sqrtdk.report.article.points import Point
from sqrtdk.report.tables.cells import exact
from sqrtdk.results.picking import simulated, truth
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence


def _said(key: str, values: dict[str, Any] | None = None) -> Sentence:
    return Sentence(f"article.design.{key}", values or {})


def card(frames: dict[str, pd.DataFrame], configuration: dict[str, Any]) -> list[Point]:
    """Return the card; what it counts is counted in the results, goals and caps are those of the configuration."""
    moments = frames["moments"]
    cells = simulated(moments)
    return [
        Point("aims", (_said("aims.text"),)),
        Point("mechanisms", _mechanisms(cells, frames)),
        Point("estimands", (_said("estimands.text"),)),
        Point("methods", (_methods(cells, configuration),)),
        Point("performance", (*_performance(cells, frames, configuration), *_calibration(frames))),
    ]


def _calibration(frames: dict[str, pd.DataFrame]) -> list[Sentence]:
    rows = calibrating.theory(frames["softmax_saturation"], frames["gradient_magnitude"])
    return [*calibrating.moments(frames["moments"]), *rows]


def _mechanisms(cells: pd.DataFrame, frames: dict[str, pd.DataFrame]) -> tuple[Sentence, ...]:
    return _ensembles(cells, frames), _training(frames), _said("mechanisms.besides"), _heads(frames)


def _range(values: Any) -> dict[str, str]:
    return {"first": numbers.count(min(values)), "last": numbers.count(max(values))}


def _ensembles(cells: pd.DataFrame, frames: dict[str, pd.DataFrame]) -> Sentence:
    rows = frames["softmax_saturation"]
    rules = tuple(Sentence("article.literal", {"text": rule}) for rule in dict.fromkeys(rows["scaling"]))
    values = {
        "ensembles": str(cells["ensemble"].nunique()),
        "widths": str(cells["d_k"].nunique()),
        "cells": numbers.count(len(cells)),
        "measured": str(rows["ensemble"].nunique()),
        "keys": Listing(tuple(str(n) for n in dict.fromkeys(rows["n_keys"]))),
        "rules": Listing(rules),
    }
    return _said("mechanisms.ensembles", values | _range(cells["d_k"]))


def _training(frames: dict[str, pd.DataFrame]) -> Sentence:
    rows = frames["training_summary"]
    if rows.empty:
        return _said("mechanisms.untrained")
    values = {
        "models": numbers.count((rows["n_seeds"] * rows["n_rates"]).sum()),
        "seeds": Listing(tuple(str(n) for n in dict.fromkeys(rows["n_seeds"]))),
        "rates": Listing(tuple(str(n) for n in dict.fromkeys(rows["n_rates"]))),
        "keys": Listing(tuple(str(n) for n in sorted(set(rows["d_k"])))),
        "tasks": Listing(tuple(dict.fromkeys(rows["task"]))),
    }
    return _said("mechanisms.trained", values)


def _heads(frames: dict[str, pd.DataFrame]) -> Sentence:
    heads = frames["real_heads"]
    if heads.empty:
        return _said("mechanisms.no_heads")
    return _said("mechanisms.heads", {"heads": str(len(heads)), "scores": numbers.count(heads["n_scores"].sum())})


def _methods(cells: pd.DataFrame, configuration: dict[str, Any]) -> Sentence:
    values = {
        "scores": numbers.count(cells["n_scores"].sum()),
        "goal": f"{exact(100 * configuration['precision'], 2)} %",
        "cap": exact(configuration["max_scalars"], 2),
    }
    return _said("methods.text", values | _range(cells["n_blocks"]))


def _performance(cells: pd.DataFrame, frames: dict[str, pd.DataFrame], configuration: dict[str, Any]) -> list[Sentence]:
    # An estimate that cannot scatter has no error to speak of.
    errors = cells["relative_se"][cells["relative_se"] > 0]
    if errors.empty:
        return []
    reached = errors <= configuration["precision"]
    values = {
        "count": numbers.count(len(errors)),
        "reached": numbers.count(reached.sum()),
        "goal": f"{exact(100 * configuration['precision'], 2)} %",
        "median": numbers.share(errors.median()),
        "largest": numbers.share(errors.max()),
    }
    precise = pd.concat([frames["softmax_saturation"]["precise"], frames["gradient_magnitude"]["precise"]]).dropna()
    told = [_said("performance.errors", values)]
    if len(precise):
        reached_share = truth(precise).mean()
        rows = {"share": numbers.percent(reached_share, 0), "count": numbers.count(len(precise))}
        told.append(_said("performance.rows", rows))
    return told
