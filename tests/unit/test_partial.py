"""The page of a run in which jobs failed: what is there, what is missing, nothing that rests on all of it."""

import json
import re

import pytest
import synthetic_results as synthetic
from figure_cases import LANGUAGES, say, svg

import render_partial
from program import CPU_LINE
from sqrtdk.figures import speaking
from sqrtdk.figures.catalogue import load

FILES = {
    "results/cells/moments/gaussian/4.csv": ("simulate_moments", "simulate_moments/gaussian/4.log", "update pending"),
    "results/cells/moments/gaussian/8.csv": ("simulate_moments", "simulate_moments/gaussian/8.log", "update pending"),
    "results/one_query.csv": ("sample_one_query", "sample_one_query.log", "no update"),
    "results/drawn/fig-hero.json": ("draw_figure", "draw_figure/hero.log", "no update"),
    "results/drawn/fig-kurtosis.json": ("draw_figure", "draw_figure/kurtosis.log", "update pending"),
}
MESSAGE = "Traceback (most recent call last):\n  File\nValueError: no <room>\nat all\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Make a folder as a run leaves it, in a language; `run(language, plan)` is the exit code and the page, if any."""
    monkeypatch.chdir(tmp_path)

    def made(language, plan=None):
        rows = [
            {"output_file": file, "rule": rule, "log-file(s)": f"results/logs/{log}", "plan": plan or planned}
            for file, (rule, log, planned) in FILES.items()
        ]
        monkeypatch.setattr(render_partial, "states", lambda arguments: rows)
        for folder in ("drawn", "logs/simulate_moments/gaussian"):
            (tmp_path / "results" / folder).mkdir(parents=True, exist_ok=True)
        words = speaking.record(load("hero").describe(synthetic.frames()))
        record = json.dumps({"language": language, "words": words})
        for name in ("hero", "kurtosis"):
            (tmp_path / f"results/drawn/fig-{name}.json").write_text(record, encoding="utf-8")
            (tmp_path / f"results/drawn/fig-{name}.svg").write_text(svg("hero"), encoding="utf-8")
        (tmp_path / "results/logs/simulate_moments/gaussian/4.log").write_text(MESSAGE, encoding="utf-8")
        code, page = render_partial.render_partial([]), tmp_path / "results/report-partial.html"
        return code, page.read_text(encoding="utf-8") if page.exists() else ""

    return made


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_missing_part_is_named_and_what_is_whole_is_shown(run, language):
    code, page = run(language)
    assert code == 1
    assert say(language).text("partial.banner") in page
    assert "<code>simulate_moments: gaussian, 4</code><pre>ValueError: no &lt;room&gt;\nat all</pre>" in page
    missing = page[page.index(say(language).text("partial.missing")) :]
    assert "<code>simulate_moments: gaussian, 8</code>" in missing
    assert "<code>moments.csv</code>" in missing
    assert "<code>kurtosis</code>" in missing
    assert '<a href="one_query.csv">' in missing
    assert re.findall(r'<figure id="([^"]+)"', page) == ["fig-hero"]
    assert not re.search(r"@misc|\\cite|claims\.csv|<script", page)


def test_where_nothing_is_missing_there_is_no_page(run):
    assert run("en")[1]
    assert run("en", "no update") == (0, "")


def test_a_job_that_ended_well_is_no_failed_one(run, tmp_path):
    log = tmp_path / "well.log"
    log.write_text(CPU_LINE.format("1.0", "2.0") + "\n", encoding="utf-8")
    assert render_partial.fault("rule", log) is None
    assert render_partial.fault("rule", tmp_path / "absent.log") is None
