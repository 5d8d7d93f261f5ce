"""The plan counts the jobs that Snakemake would start."""

import sys
from collections import Counter

import pytest
from pipeline import ROOT, planned, small

sys.path.insert(0, str(ROOT / "scripts"))

import plan_run  # noqa: E402
from sqrtdk.config import planning  # noqa: E402


@pytest.mark.parametrize("name", ["small", "large"])
def test_as_many_jobs_of_each_rule_as_snakemake_would_start(name, tmp_path):
    options = small(tmp_path) if name == "small" else ["--configfile", str(ROOT / "config/large.yaml")]
    configuration = plan_run.read_configuration([ROOT / options[1]])
    counted = Counter({rule: len(works) for rule, works in planning.jobs(configuration).items()})
    assert counted == Counter(planned(tmp_path, *options))
