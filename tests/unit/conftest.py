"""Fixtures of the unit tests."""

from pathlib import Path

import pytest

from sqrtdk.heads import enumeration


@pytest.fixture(scope="session")
def shipped_dump():
    """Queries and keys of the trained model that ships with the project."""
    return enumeration.read_dump(Path(__file__).parents[2] / "resources" / "minilm-l6-qk.npz")
