"""Sensitivity and false alarms of the audit: a thinned benchmarks/audit_study.py."""

import importlib.util
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "audit_study.py"
sys.path.insert(0, str(PATH.parent))
spec = importlib.util.spec_from_file_location("audit_study", PATH)
study = sys.modules["audit_study"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(study)
LARGEST, TRIALS = 64, 8


@pytest.mark.slow
@pytest.mark.parametrize("name", study.MISTAKES)
def test_every_mistake_is_found(name):
    found, missed = study.sensitivity(name, TRIALS, 3, LARGEST)
    assert found == TRIALS, missed


@pytest.mark.slow
@pytest.mark.parametrize("name", study.HEALTHY)
def test_what_is_right_is_left_alone(name):
    judged, alarms, notes = study.false_alarms(name, 20, 3, LARGEST)
    assert judged >= 20
    assert alarms == 0
    # Steep biases make heads sharp, and some of the trained model's are.
    assert notes == 0 or name in study.KINDS
