"""A small run of the whole pipeline: its tables, its bytes, and which jobs an edit starts again."""

import csv
import html
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile

import jsonschema
import pipeline
import pypdf
import pytest
import yaml
from edits import CELLS, DESCRIBED, DICTIONARY, EDITS, FIGURES, MOMENTS, N_FIGURES, RECORD, WORDED, starts
from pipeline import ENSEMBLES, ROOT, WIDTHS, planned, small, snakemake

from sqrtdk.results import dictionary, reading

COLD = ("results/drawn/fig-variance-law.svg", "results/alternatives.csv", "results/rounding.csv")
"""Tables and a figure that are made cold, to be compared with those that are made warm."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run the workflow from elsewhere, on two cores, in a folder with an awkward name."""
    folder = tmp_path_factory.mktemp("it's a run")
    done = snakemake(folder, "--cores", "2", *small(folder))
    return folder, done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Run a copy of the source in its own folder, on one core, a program of each kind cold."""
    folder = pipeline.copy_source(tmp_path_factory.mktemp("copy"))
    snakemake(folder, *COLD, "--cores", "1", "--no-hooks", *small(folder), source=folder)
    snakemake(folder, "--cores", "1", *small(folder), source=folder)
    return folder


def table(folder, name):
    with (folder / "results" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


class TestResults:
    def test_summary_says_where_how_long_and_what(self, run):
        output = run[1]
        assert "results/report.html" in output
        assert "cores" in output
        assert "grows as d_k to the power 1.0" in output or "grows as d_k to the power 0.9" in output

    def test_columns_are_those_that_the_data_dictionary_explains(self, run):
        paths = [*(run[0] / "results").glob("*.csv")]
        assert {path.name for path in paths} == {name for name in dictionary.FILES if name.endswith(".csv")}
        assert reading.tables(paths).keys() == {path.stem for path in paths}

    def test_every_cell_and_every_head_has_its_moments(self, run):
        rows = table(run[0], "moments.csv")
        simulated = [(row["ensemble"], int(row["d_k"])) for row in rows if row["stopped_by"] != "enumerated"]
        assert simulated == [(ensemble, d_k) for ensemble in ENSEMBLES for d_k in WIDTHS]
        heads = [(row["ensemble"], row["d_k"]) for row in rows if row["stopped_by"] == "enumerated"]
        assert len(heads) == len(set(heads)) == len(table(run[0], "real_heads.csv")) > 72

    def test_estimates_stand_beside_exact_values(self, run):
        for row in table(run[0], "moments.csv"):
            if row["exact_variance"] and row["stopped_by"] != "degenerate":
                z = (float(row["variance"]) - float(row["exact_variance"])) / float(row["variance_se"])
                assert abs(z) < 5, row

    def test_no_number_is_infinite_or_not_a_number(self, run):
        for path in (run[0] / "results").glob("*.csv"):
            # Open bins, and intervals that are open because no tried rate closes them.
            if path.name not in (
                "score_histograms.csv",
                "training_summary.csv",
                "training_verdicts.csv",
                "training_transfer.csv",
            ):
                text = path.read_text(encoding="utf-8").lower()
                assert ",inf" not in text, path
                assert ",nan" not in text, path

    def test_real_heads_have_the_independence_formula_beside_them(self, run):
        head = next(row for row in table(run[0], "real_heads.csv") if (row["layer"], row["head"]) == ("0", "2"))
        assert float(head["logit_std"]) == pytest.approx(17.1, abs=0.05)
        assert float(head["variance"]) / float(head["independence_variance"]) == pytest.approx(
            float(head["independence_ratio"])
        )

    def test_the_audit_finds_no_bug_in_a_correct_model(self, run):
        rows = table(run[0], "audit.csv")
        assert len(rows) == len(table(run[0], "real_heads.csv"))
        assert {row["verdict"] for row in rows} == {"healthy", "note"}
        assert next(row for row in rows if row["verdict"] == "note")["findings"].startswith("note: entropy collapse")

    def test_softmax_tables_hold_every_combination(self, run):
        for name in ("softmax_saturation.csv", "gradient_magnitude.csv", "gradient_distribution.csv"):
            names = ("ensemble", "d_k", "n_keys", "scaling", "measure", "statistic")
            keys = [tuple(row.get(name) for name in names) for row in table(run[0], name)]
            assert len(keys) == len(set(keys))
            assert len(keys) % (CELLS * 2 * 3) == 0

    def test_a_second_run_does_nothing(self, run):
        done = snakemake(run[0], "--cores", "2", *small(run[0]))
        assert "Nothing to be done" in done.stdout + done.stderr

    def test_figures_come_in_every_format(self, run):
        manifest = json.loads((run[0] / "results/figures/manifest.json").read_text(encoding="utf-8"))["figures"]
        assert len(manifest) == N_FIGURES
        for figure in manifest:
            for kind in ("svg", "pdf", "png", "csv", "bib", "tex", "json"):
                assert (run[0] / f"results/figures/fig-{figure}.{kind}").stat().st_size > 0

    def test_the_summary_is_as_its_schema_says_and_its_hashes_are_those_of_the_files(self, run):
        results = run[0] / "results"
        summary, schema = (
            json.loads((results / f"summary{kind}.json").read_text(encoding="utf-8")) for kind in ("", ".schema")
        )
        jsonschema.Draft202012Validator(schema).validate(summary)
        files = {name: digest for figure in summary["figures"] for name, digest in figure["files"].items()}
        found = pipeline.digests(run[0])
        assert files == {name: found[f"figures/{name}"] for name in files}
        assert len(summary["figures"]) == N_FIGURES
        numbers = json.loads((results / "numbers.json").read_text(encoding="utf-8"))["numbers"]
        assert summary["numbers"] == {name: numbers[name] for name in summary["numbers"]}

    def test_snakemakes_own_report_shows_figures_with_captions_and_tables(self, run, tmp_path):
        # Without a network: every address is one of this machine, where nothing listens.
        proxies = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
        title = "title=</script><script>alert(1)</script>"
        made = str(tmp_path / "report.zip")
        snakemake(run[0], "--report", made, *small(run[0]), "--config", title, environment=proxies)
        with zipfile.ZipFile(tmp_path / "report.zip") as archive:
            page = archive.read("report/report.html").decode()
            names = archive.namelist()
        manifest = json.loads((run[0] / "results/figures/manifest.json").read_text(encoding="utf-8"))["figures"]
        assert page.count("alert(1)") == 1
        assert "<script>alert(1)" not in page
        shown = html.unescape(re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), page))
        for name, figure in manifest.items():
            assert any(file.endswith(f"fig-{name}.svg") for file in names), name
            for part in (figure["title"], figure["caption"][:60]):
                assert "".join(part.split()) in "".join(shown.split()), name
        for name in ("moments.csv", "audit.csv", "report.html", "numbers.json"):
            assert any(file.endswith(name) for file in names), name


@pytest.mark.parametrize("change", EDITS, ids=str)
def test_a_configuration_edit_starts_only_what_depends_on_it(run, change):
    assert planned(run[0], *small(run[0]), "--config", change) == EDITS[change]


def test_every_configuration_key_has_its_edit():
    keys = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text(encoding="utf-8"))["properties"]
    assert {change.split("=")[0] for change in EDITS} == set(keys)


@pytest.fixture(scope="module")
def walked(copy, tmp_path_factory):
    """Walk up to the document; the clone is given an environment, and results that the same source has made."""
    walk = TestWalk()
    clone, run, _ = walk.blocks()
    folder = tmp_path_factory.mktemp("walk")
    walk.sh(folder, clone, REPOSITORY=str(copy))
    here = folder / "sqrtdk"
    pipeline.lend_environment(here)
    for name in ("results", ".snakemake"):
        ignored = shutil.ignore_patterns("locks", "incomplete")
        shutil.copytree(copy / name, here / name, ignore=ignored, dirs_exist_ok=True)
    for path in (copy / "resources").rglob("*"):  # a file of the clone is younger than results made before it
        shutil.copystat(path, here / path.relative_to(copy))
    said = walk.sh(folder, run, ARGS=" ".join(small(folder)))
    assert not re.search(r"^(simulate|draw)_\w+ +\d", said, re.MULTILINE), said
    return folder


class TestWalk:
    """The newcomer's walk in README.md, by its own commands: from a clone to a cited figure in a document."""

    def blocks(self) -> list[str]:
        section = (
            (ROOT / "README.md").read_text(encoding="utf-8").partition("## Into your paper")[2].partition("\n## ")[0]
        )
        return re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)

    def sh(self, folder, commands, **environment):
        # What make is told of the tests, such as ARGS, is not meant for the make within.
        environment = {name: value for name, value in os.environ.items() if "MAKE" not in name} | environment
        command = ["sh", "-e", "-c", commands]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def test_it_comes_to_results(self, walked):
        results = walked / "sqrtdk/results"
        document = self.blocks()[2]
        for name in re.findall(r"\{(sqrtdk/results/[\w/-]+)\}", document):
            assert any(results.parent.parent.glob(f"{name}*")), name
        numbers = json.loads((results / "numbers.json").read_text(encoding="utf-8"))["numbers"]
        macros = {name.removesuffix("CI") for name in re.findall(r"\\sqrtdk([A-Z]\w+)", document)}
        assert macros
        assert macros <= numbers.keys()

    @pytest.mark.latex
    def test_it_comes_to_a_document_with_number_figure_table_and_citation(self, walked):
        self.sh(walked, self.blocks()[2])
        text = pypdf.PdfReader(walked / "paper.pdf").pages
        text = " ".join(" ".join(page.extract_text() for page in text).split())
        numbers = json.loads((walked / "sqrtdk/results/numbers.json").read_text(encoding="utf-8"))["numbers"]
        assert f"to the power {numbers['GaussianExponent']['text']}" in text.replace("\u2009", "")
        drawn = json.loads((walked / "sqrtdk/results/figures/fig-variance-law.json").read_text(encoding="utf-8"))
        for part in (f"Figure 1: {drawn['title'][:20]}", "Table 1:", "From [1]", "[1] The sqrtdk developers."):
            # Formulas have spaces of their own in print.
            assert "".join(part.split()) in "".join(text.split())
        log = (walked / "paper.log").read_text(encoding="utf-8", errors="replace")
        assert "undefined" not in log
        assert "Overfull" not in log
        assert "too large for page" not in log


class TestCopy:
    def test_bytes_do_not_depend_on_cores_folder_time_or_a_warm_start(self, run, copy):
        one, other = pipeline.digests(run[0]), pipeline.digests(copy)
        assert one.keys() == other.keys()
        assert {name for name in one if one[name] != other[name]} == set()
        kinds = {name.rpartition(".")[2] for name in one}
        assert {"html", "svg", "pdf", "png", "csv", "bib", "tex", "json", "md", "rst"} <= kinds

    @pytest.mark.parametrize(
        ("file", "old", "new", "expected"),
        [
            ("scripts/sqrtdk/figures/kurtosis.py", "\nPLACE = ", "\n\nPLACE = ", {**FIGURES, "draw_figure": 1}),
            ("scripts/sqrtdk/sampling/moments.py", "TRUSTED_SKEWNESS = 0.1", "TRUSTED_SKEWNESS = 0.2", None),
            ("scripts/sqrtdk/rows/softmax.py", "SATURATED_WEIGHT = 0.99", "SATURATED_WEIGHT = 0.98", None),
            (f"{DICTIONARY}/scores.py", '"fourth cumulant over', '"the fourth cumulant over', DESCRIBED),
            (f"{DICTIONARY}/scores.py", "n_scores=whole(", "n_scores=number(", starts("collected", "laws") | DESCRIBED),
            ("report/styles.css", ":root {", ":root  {", WORDED),
            ("report/words/en/page.yaml", "#", "##", WORDED),
            ("report/words/en/figure_kurtosis.yaml", "#", "##", {**FIGURES, "draw_figure": 1}),
            ("README.md", "# ", "#  ", {}),
        ],
        ids=["figure", "moments", "softmax", "meaning", "type", "style", "word", "figure's word", "readme"],
    )
    def test_an_edited_source_starts_only_what_uses_it(self, copy, file, old, new, expected):
        if expected is None:
            uses = ("checks", "softmax", "keys", "energy", "phases", "planted", "maps", "examples", "typical")
            expected = starts(*(MOMENTS if "moments" in file else (*uses, "alternatives", "normalisers")))
        path = copy / file
        original = path.read_text(encoding="utf-8")
        path.write_text(original.replace(old, new, 1), encoding="utf-8")
        try:
            assert path.read_text(encoding="utf-8") != original
            # Provenance records whether the source differs from its commit, which the edit may change.
            jobs = planned(copy, *small(copy), source=copy)
            assert {**jobs, **({} if expected else dict.fromkeys(RECORD))} == {
                **expected,
                **({} if expected else dict.fromkeys(RECORD)),
            }
        finally:
            path.write_text(original, encoding="utf-8")

    @pytest.mark.parametrize(
        ("file", "rule"),
        [
            ("moments.csv", "collect_moments"),
            ("tiny_gradients.csv", "count_tiny_gradients"),
            ("claims.csv", "decide_claims"),
            ("summary.schema.json", "write_latex"),
            ("figures/fig-kurtosis.tex", "publish_figures"),
            ("figures/captions/fig-kurtosis.rst", "publish_figures"),
        ],
    )
    def test_what_was_deleted_by_hand_comes_back(self, copy, file, rule, tmp_path):
        shutil.move(copy / "results" / file, tmp_path / "kept")
        try:
            assert planned(copy, *small(copy), source=copy)[rule] == 1
        finally:
            shutil.move(tmp_path / "kept", copy / "results" / file)

    def test_a_touch_starts_nothing(self, copy):
        (copy / "scripts/sqrtdk/sampling/moments.py").touch()
        assert planned(copy, *small(copy), source=copy) == {}

    def test_a_failed_job_leaves_a_partial_page_and_the_next_run_resumes(self, copy):
        script, arguments, before = copy / "scripts/simulate_depth.py", small(copy), pipeline.digests(copy)
        page, text = copy / "results/report-partial.html", script.read_text(encoding="utf-8")

        def render():
            command = [sys.executable, str(copy / "scripts/render_partial.py"), *arguments]
            return subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=200, check=False)

        try:
            pipeline.edit(script, "run(simulate_depth)", "raise ValueError('the stacks\\nfell')")
            assert snakemake(copy, "--cores", "1", *arguments, source=copy, check=False).returncode != 0
            done = render()
        finally:
            script.write_text(text, encoding="utf-8")
        assert done.returncode == 1, done.stderr
        said = page.read_text(encoding="utf-8")
        for part in ("<code>simulate_depth</code>", "ValueError: the stacks\nfell", "<code>depth.csv</code>"):
            assert part in said
        assert 'id="fig-hero"' in said
        assert 'id="fig-depth"' not in said
        assert not re.search(r"@misc|\\cite|claims.csv|C\d+", said)
        assert pipeline.digests(copy)["report.html"] == before["report.html"]
        snakemake(copy, "--cores", "1", *arguments, source=copy)
        assert render().returncode == 0
        assert not page.exists()
        assert pipeline.digests(copy) == before

    def test_a_new_width_and_ensemble_leave_all_other_numbers(self, copy, tmp_path):
        copy = shutil.copytree(copy, tmp_path / "copy", symlinks=True)
        before = {(row["ensemble"], row["d_k"]): row for row in table(copy, "moments.csv")}
        softmax = {tuple(row.values()) for row in table(copy, "softmax_saturation.csv")}
        changes = ["--config", "d_k=[1,2,3,4,64]", "ensembles={mine: {family: uniform}}", "n_keys=[4,8,16]"]
        targets = ["results/moments.csv", "results/softmax_saturation.csv"]
        snakemake(copy, "--cores", "2", *targets, *small(copy), *changes, source=copy)
        after = {(row["ensemble"], row["d_k"]): row for row in table(copy, "moments.csv")}
        assert {key: after[key] for key in before} == before
        assert softmax < {tuple(row.values()) for row in table(copy, "softmax_saturation.csv")}
