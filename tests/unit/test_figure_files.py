"""Figures as files: the same bytes everywhere, licence inside, and SVG that can stand in one page with others."""

import hashlib
import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pandas as pd
import pytest
import synthetic_results as synthetic
from figure_cases import NAMES, drawn, small, svg

from program import write_frame
from sqrtdk import style
from sqrtdk.figures import inline, load, saving

SCRIPTS = Path(inline.__file__).parents[2]


def test_two_figures_in_one_page_share_no_id_and_every_reference_resolves():
    pages = [inline.svg_for_page(svg(name), name) for name in ("saturation", "gradients")]
    both = "".join(pages)
    ids = re.findall(r'\bid="([^"]+)"', both)
    assert len(ids) == len(set(ids)) > 10
    referred = re.findall(r'(?:href="#|url\(#)([^")]+)', both)
    assert referred
    assert set(referred) <= set(ids)
    # Negative control: without prefixes the two do share ids.
    raw = [set(re.findall(r'\bid="([^"]+)"', svg(name))) for name in ("saturation", "gradients")]
    assert raw[0] & raw[1]


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_for_the_page(name):
    page = inline.svg_for_page(svg(name), name)
    assert len(page.encode()) < 150_000
    for absent in ("<?xml", "<!DOCTYPE", "<metadata", "<style", "xlink", "<!--", style.INK, "#000000", "ns0:", "nan"):
        assert absent not in page, absent
    root = ET.fromstring(page)
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == f"{name}-title {name}-desc"
    assert [child.get("id") for child in root[:2]] == [f"{name}-title", f"{name}-desc"]
    assert root[0].text == load(name).TITLE
    assert root[1].text == drawn(name)[2].alt
    assert root.get("viewBox")
    assert root.get("width") is None
    assert "currentColor" in page


def test_vertical_bars_are_said_shortly_and_other_shapes_as_they_are():
    def page(path: str) -> str:
        text = f'<svg xmlns="http://www.w3.org/2000/svg"><g><path d="{path}" style="fill: red"/></g></svg>'
        root = ET.fromstring(inline.svg_for_page(text, "x", "t", "d"))
        return root[-1].get("d")  # a group that says nothing is left out

    assert page("M 1.001 2 L 1.001 5.5") == "M1 2V5.5"
    assert page("M 1 2 L 1 5 M 2 2 L 2 6") == "M1 2V5M2 2V6"
    assert page("M 1 2 L 1 5 L 3 4 z") == "M 1 2 1 5 3 4 z"
    assert page("M 1 2 L 3 5 M 2 2 L 2 6") == "M 1 2 3 5M2 2V6"
    assert page("M 1 2 C 1 5 3 4 5 6") == "M 1 2 C 1 5 3 4 5 6"


def test_a_translated_title_can_be_given():
    root = ET.fromstring(inline.svg_for_page(svg("exponents"), "x", "标题 <1>", "说明"))
    assert (root[0].text, root[1].text) == ("标题 <1>", "说明")


def test_what_would_reach_beyond_the_figure_is_refused():
    text = svg("exponents")
    with pytest.raises(ValueError, match="style sheet"):
        inline.svg_for_page(text.replace("stroke-linecap: butt", "color: red"), "x")
    with pytest.raises(ValueError, match="out of the file"):
        inline.svg_for_page(re.sub(r'href="#\w+"', 'href="https://example.org/a.svg"', text, count=1), "x")


def test_files_carry_title_and_licence_and_no_type_3_font():
    figure, _, words = drawn("exponents")
    title = load("exponents").TITLE
    pdf = saving.save(figure, "pdf", "exponents", title, words.alt)
    assert b"/Type3" not in pdf
    assert b"/FontFile2" in pdf
    assert b"CC BY 4.0" in pdf
    assert b"CreationDate" not in pdf
    png = saving.save(figure, "png", "exponents", title, words.alt)
    assert b"CC BY 4.0" in png
    assert b"exponents" in png
    text = svg("exponents")
    assert "CC BY 4.0" in text
    assert title in text
    assert "dc:date" not in text


def test_saving_and_drawing_leave_the_callers_settings_alone():
    import matplotlib

    with matplotlib.rc_context({"font.size": 31, "lines.linewidth": 9}):
        load("exponents").draw(small())
        saving.save(drawn("exponents")[0], "svg", "x", "t", "d")
        assert matplotlib.rcParams["font.size"] == 31
        assert matplotlib.rcParams["lines.linewidth"] == 9


def _run_job(folder: Path, figure: str) -> dict[str, bytes]:
    """Run the script in a folder of its own, on copies of the tables, and return what it wrote."""
    frames = synthetic.frames()
    tables = []
    for name in load(figure).INPUTS:
        write_frame(folder / "results" / f"{name}.csv", frames[name])
        tables.append(f"results/{name}.csv")
    outputs = {kind: f"out/fig-{figure}.{kind}" for kind in ("svg", "pdf", "png", "csv", "bib", "json")}
    command = [sys.executable, str(SCRIPTS / "draw_figure.py"), "--figure", figure, "--data", *tables]
    for kind, path in outputs.items():
        command += [f"--{kind}", path]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return {kind: (folder / path).read_bytes() for kind, path in outputs.items()}


def test_a_job_writes_the_same_bytes_in_any_folder_and_whatever_the_user_prefers(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "two" / "matplotlibrc").write_text("font.size: 20\nxtick.direction: in\nsvg.fonttype: path\n")
    one, two = (_run_job(tmp_path / name, "calibration") for name in ("one", "two"))
    assert one == two
    record = json.loads(one["json"])
    assert record["id"] == "calibration"
    assert record["alt"] == drawn("calibration")[2].alt
    for kind in ("svg", "pdf", "png", "csv", "bib"):
        assert record["files"][kind]["sha256"] == hashlib.sha256(one[kind]).hexdigest()
    assert record["files"]["csv"]["sha256"] in one["bib"].decode()
    assert len(one["csv"].decode().splitlines()) == 1 + len(drawn("calibration")[1])
    other = read_back(one["csv"])
    assert other["z"].to_numpy() == pytest.approx(drawn("calibration")[1]["z"].to_numpy(), rel=1e-15)


def read_back(content: bytes) -> pd.DataFrame:

    return pd.read_csv(io.BytesIO(content))


def test_a_missing_table_is_named(tmp_path):
    write_frame(tmp_path / "moments.csv", synthetic.moments(("gaussian",), (4,)))
    command = [sys.executable, str(SCRIPTS / "draw_figure.py"), "--figure", "exponents"]
    command += ["--data", str(tmp_path / "moments.csv")]
    for kind in ("svg", "pdf", "png", "csv", "bib", "json"):
        command += [f"--{kind}", str(tmp_path / f"x.{kind}")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "needs these tables among --data: variance_laws" in done.stderr
    assert not (tmp_path / "x.svg").exists()
