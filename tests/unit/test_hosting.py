"""What hosts read: files of GitHub by their schemas, the catalogue of Snakemake workflows by its rules."""

import importlib.resources
import json
import re
import subprocess
import tomllib
from pathlib import Path

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).parents[2]
SCHEMAS = importlib.resources.files("check_jsonschema") / "builtin_schemas/vendor"
CI = ROOT / ".github/workflows/ci.yml"


def mistakes(schema: str, content: dict) -> list[str]:
    schema = json.loads((SCHEMAS / f"{schema}.json").read_text(encoding="utf-8"))
    return [error.message for error in jsonschema.validators.validator_for(schema)(schema).iter_errors(content)]


def read(path: Path) -> dict:
    # YAML 1.1 takes the key `on` for true.
    return {("on" if key is True else key): value for key, value in yaml.safe_load(path.read_text("utf-8")).items()}


class TestGitHub:
    @pytest.mark.parametrize(
        ("file", "schema"),
        [(CI, "github-workflows"), (ROOT / ".github/dependabot.yml", "dependabot")],
        ids=lambda value: getattr(value, "name", value),
    )
    def test_the_file_is_valid(self, file, schema):
        assert mistakes(schema, read(file)) == []

    @pytest.mark.parametrize(
        "change", [{"jobs": {"test": {"runs-on": 1}}}, {"permissions": "all"}, {"job": {}}], ids=str
    )
    def test_a_mistake_would_be_seen(self, change):
        assert mistakes("github-workflows", read(CI) | change) != []

    def test_every_supported_python_is_tested(self):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        classified = [re.fullmatch(r".*Python :: (3\.\d+)", line) for line in project["classifiers"]]
        supported = [found[1] for found in classified if found]
        assert read(CI)["jobs"]["test"]["strategy"]["matrix"]["python"] == supported

    def test_the_report_is_published_on_a_tag_after_the_tests(self):
        jobs = read(CI)["jobs"]
        assert "refs/tags/" in jobs["report"]["if"]
        assert (jobs["report"]["needs"], jobs["publish"]["needs"]) == ("test", "report")


class TestCatalogue:
    def test_it_is_found_and_shown_with_instructions(self):
        readme = (ROOT / "README.md").read_text(encoding="utf-8").lower()
        assert "snakemake" in readme
        assert "workflow" in readme
        assert (ROOT / "workflow/Snakefile").is_file()
        assert (ROOT / "config/README.md").is_file()
        assert list((ROOT / "workflow/rules").glob("*.smk")) != []
        usage = read(ROOT / ".snakemake-workflow-catalog.yml")["usage"]
        assert {"mandatory-flags", "software-stack-deployment", "report"} <= usage.keys()
        assert usage["software-stack-deployment"]["conda"]
        assert (ROOT / "environment.yml").is_file()


class TestCheckout:
    def test_nothing_is_a_link(self):
        # A checkout without links, as on Windows, has a text in its place.
        command = ["git", "-C", str(ROOT), "ls-files", "--stage"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        assert len(listed) > 100
        assert [line for line in listed if line.startswith("120000")] == []

    def test_the_folder_of_results_is_there_and_what_is_in_it_is_ignored(self):
        command = ["git", "-C", str(ROOT), "ls-files", "results"]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == [
            "results/.gitkeep"
        ]
        command = ["git", "-C", str(ROOT), "check-ignore", "results/report.html", "results/cells/a.csv"]
        assert len(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()) == 2
