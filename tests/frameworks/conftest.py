"""The table of architectures, which the documentation shows."""

import platform
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from faults import FAULTS

COLUMNS = ("architecture", "modules", "scale at work", "as it is", *FAULTS)
ROWS: dict[str, list[str]] = {}
PAGE = """# Architectures that the audit was tried with

Written by `make test-frameworks`, which builds small models from configurations (random weights, nothing is fetched),
captures each with one call of `sqrtdk.capture(model, batch)`, and judges it at stage init: as it is, and with another
number put where the model has its scale. A cell has the level, the factor that was found and the first explanations.
Each factor is held against the true one to half a percent; what is saved is judged alike.

T5 and GPT-Neo have no scale, since their weights start small enough; that is a note. Heads that are normalised one by
one (Qwen3) could learn the scale in the gains of their norms, so its absence is a warning there. "Another width" is
d_model over the number of heads where heads have a width of their own, and twice the width elsewhere, which no known
mistake gives.

{table}
{torch}, {transformers}, {python}.
"""


def pytest_addoption(parser):
    parser.addoption("--table", type=Path, help="write the page on architectures there")


@pytest.fixture
def rows() -> dict[str, list[str]]:
    return ROWS


def pytest_sessionfinish(session, exitstatus):
    path = session.config.getoption("--table")
    if path and ROWS and exitstatus == 0:
        lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
        table = "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in ROWS.values())])
        versions = dict(
            torch=f"PyTorch {torch.__version__.split('+')[0]}",
            transformers=f"transformers {transformers.__version__}",
            python=f"NumPy {np.__version__}, Python {platform.python_version()}",
        )
        path.write_text(PAGE.format(table=table + "\n", **versions), encoding="utf-8")
