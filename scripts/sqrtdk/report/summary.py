"""The run in one record for programs: which run it is, its headline numbers, its verdicts, its figures."""

from typing import Any

import pandas as pd

from sqrtdk.report.facts import KeyNumber
from sqrtdk.report.latex.numbers import record
from sqrtdk.words.texts import Words


def summary(
    version: str,
    provenance: dict[str, Any],
    found: list[KeyNumber],
    say: Words,
    frames: dict[str, pd.DataFrame],
    manifest: dict[str, Any],
) -> dict[str, Any]:
    """Return what `workflow/schemas/summary.schema.json` describes.

    provenance, manifest: as in provenance.json and figures/manifest.json. Nothing in it depends on when or where a run
    was made.
    """
    return {
        "version": version,
        "configuration_sha256": provenance["configuration_sha256"],
        "sources_sha256": provenance["sources_sha256"],
        "seed": provenance["configuration"]["seed"],
        "numbers": record([number for number in found if number.headline], say),
        "verdicts": {
            "training": _rows(frames["training_verdicts"], ("experiment", "scaling", "d_k", "comparison", "verdict")),
            "audit": _counts(frames["audit"]),
            "claims": _rows(frames.get("claims"), ("claim", "verdict")),
        },
        "figures": [
            {"id": name, "number": figure["number"], "title": figure["title"], "files": figure["files"]}
            for name, figure in manifest["figures"].items()
        ],
    }


def _rows(frame: pd.DataFrame | None, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    if frame is None or frame.empty:
        return []
    return [{name: int(row[name]) if name == "d_k" else str(row[name]) for name in columns} for row in _records(frame)]


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return frame.to_dict("records")


def _counts(audit: pd.DataFrame) -> dict[str, int]:
    """Return how many heads got each verdict of the audit."""
    if audit.empty:
        return {}
    return {str(verdict): int(number) for verdict, number in audit["verdict"].value_counts().sort_index().items()}
