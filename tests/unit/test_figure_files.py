"""Figures as files: the same bytes everywhere, licence inside, and SVG that can stand in one page with others."""

import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pandas as pd
import pypdf
import pytest
import synthetic_results as synthetic
from figure_cases import NAMES, data_of, figure_of, say, small, stamp, svg, title, word_files, words_of
from fontTools.ttLib import TTFont
from matplotlib import pyplot
from matplotlib.text import Text
from PIL import Image

import draw_figure
from sqrtdk.figures import framing, inline, saving, speaking, stamping, style
from sqrtdk.figures.catalogue import load
from sqrtdk.figures.targets import TARGETS
from sqrtdk.words.phrases import Phrases

pytestmark = pytest.mark.slow  # draws figures
SCRIPTS = Path(inline.__file__).parents[2]
KINDS = ("svg", "pdf", "png", "csv", "json")


def test_two_figures_in_one_page_share_no_id_and_every_reference_resolves():
    pages = [inline.svg_for_page(svg(name), name, None, name) for name in ("saturation", "gradients")]
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
    assert len(page.encode()) < 75_000
    for absent in ["<?xml", "<!DOCTYPE", "<metadata", "<style", "style=", "xlink", "<!--", style.INK, "ns0:", "nan"]:
        assert absent not in page, absent
    root = ET.fromstring(page)
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == root[0].get("id") == f"{name}-title"
    assert root.get("aria-describedby") == f"{name}-alt"
    assert root[0].text == title(name)
    assert root.get("viewBox")
    assert root.get("width") is None
    assert "currentColor" in page
    assert not {element.get("class") for element in root.iter()} - {None}


def test_a_translated_title_can_be_given():
    root = ET.fromstring(inline.svg_for_page(svg("exponents"), "x", "标题 <1>"))
    assert root[0].text == "标题 <1>"


def test_what_would_reach_beyond_the_figure_is_refused():
    text = svg("exponents")
    for style_in in ("<style>*{color: red}</style></svg>", '<g style="color: red"/></svg>'):
        with pytest.raises(ValueError, match="holds a style"):
            inline.svg_for_page(text.replace("</svg>", style_in), "x")
    outside = re.sub(r'href="#\w+"', 'href="https://example.org/a.svg"', text, count=1)
    with pytest.raises(ValueError, match="out of the file"):
        inline.svg_for_page(outside, "x")


def test_files_carry_title_and_licence_and_no_type_3_font():
    figure, words = figure_of("exponents"), words_of("exponents")
    mark = stamp("exponents", words.alt)
    pdf = stamping.pdf(saving.save(figure, "pdf"), mark)
    assert b"/Type3" not in pdf
    assert b"/FontFile2" in pdf
    assert b"CreationDate" not in pdf
    information = pypdf.PdfReader(io.BytesIO(pdf)).metadata
    assert information.title == mark.title
    assert information.subject == words.alt
    with Image.open(io.BytesIO(stamping.png(saving.save(figure, "png"), mark))) as picture:
        picture.load()  # reads all chunks and their checksums
        texts = picture.text
    assert texts["Title"] == mark.title
    assert texts["Description"] == words.alt
    root = ET.fromstring(svg("exponents"))
    assert [child.text for child in root[:2]] == [mark.title, words.alt]
    for text in (information["/Keywords"], texts["Source"] + texts["Copyright"], ET.tostring(root, "unicode")):
        for part in ("exponents", "1.2.3", "ab" * 32, "CC BY 4.0"):
            assert part in text
    assert "dc:date" not in svg("exponents")
    # Hosts of artifacts forbid styles inside a file.
    assert "style" not in svg("exponents")


def test_fonts_in_a_pdf_hold_shapes_and_nothing_that_lays_out_text():
    pages = pypdf.PdfReader(io.BytesIO(saving.save(figure_of("exponents"), "pdf"))).pages
    for font in pages[0]["/Resources"]["/Font"].get_object().values():
        described = font.get_object()["/DescendantFonts"][0].get_object()["/FontDescriptor"].get_object()
        tables = TTFont(io.BytesIO(described["/FontFile2"].get_object().get_data())).keys()
        assert "glyf" in tables
        assert not set(saving.LAYOUT_TABLES) & set(tables)


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_the_last_digits_of_a_layout_change_no_byte(kind):
    """The solver of the layout works in an order of places in memory, and ends on other last digits in some runs."""

    def laid_out(error):
        def draw(*_):
            figure, axes = pyplot.subplots()
            axes.set_position([0.125 + error, 0.11, 0.775, 0.77 - error])
            axes.plot([0, 1], [0, 1])
            return figure

        figure = saving.styled(lambda frames: frames["table"], "")(draw)({"table": pd.DataFrame({"x": [1]})})
        made = saving.save(figure, kind)
        pyplot.close(figure)
        return made

    assert laid_out(0) == laid_out(2e-9) != laid_out(2e-3)


def test_saving_and_drawing_leave_the_callers_settings_alone():
    import matplotlib

    with matplotlib.rc_context({"font.size": 31, "lines.linewidth": 9}):
        load("exponents").draw(small())
        saving.save(figure_of("exponents"), "svg")
        assert matplotlib.rcParams["font.size"] == 31
        assert matplotlib.rcParams["lines.linewidth"] == 9


def _run_job(folder: Path, figure: str) -> dict[str, bytes]:
    """Run the script in a folder of its own, on copies of the tables, and return what it wrote."""
    frames = synthetic.frames()
    tables = [f"results/{name}.csv" for name in load(figure).INPUTS]
    synthetic.write(folder / "results", {name: frames[name] for name in load(figure).INPUTS})
    outputs = {kind: f"out/fig-{figure}.{kind}" for kind in KINDS}
    command = [sys.executable, str(SCRIPTS / "draw_figure.py"), "--figure", figure, "--target", "report"]
    command += ["--labels", "{}", "--language", "en", "--words", *map(str, word_files(figure))]
    command += ["--data", *tables]
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
    assert speaking.speak(say(), "calibration", record["words"]["alt"]) == words_of("calibration").alt
    assert len(one["csv"].decode().splitlines()) == 1 + len(data_of("calibration"))
    other = read_back(one["csv"])
    assert other["z"].to_numpy() == pytest.approx(data_of("calibration")["z"].to_numpy(), rel=5e-6)


ENGLISH_ONLY = re.compile(r"[a-z]{3}")


def test_another_language_is_drawn_in_the_files_and_with_a_font_in_pictures(tmp_path, monkeypatch, caplog):
    frames = synthetic.frames()
    synthetic.write(tmp_path, {"planted_key": frames["planted_key"], "planted_capacity": frames["planted_capacity"]})
    tables = [tmp_path / f"{name}.csv" for name in load("planted-key").INPUTS]

    def drawn(language):
        files = {kind: tmp_path / f"{language}.{kind}" for kind in KINDS}
        words = word_files("planted-key", language)
        draw_figure.draw_figure("planted-key", tables, "report", {}, words, language, **files)
        return {kind: path.read_bytes() for kind, path in files.items()}

    english = drawn("en")
    monkeypatch.setattr(framing, "_FONTS", ())
    monkeypatch.setattr(framing, "_MORE_FONTS", ())
    chinese = drawn("zh")
    assert "no font with the signs of zh is at hand: PDF and PNG stay English" in caplog.text
    assert (chinese["pdf"], chinese["png"], chinese["csv"]) == (english["pdf"], english["png"], english["csv"])
    text = "".join(ET.fromstring(chinese["svg"]).itertext())
    assert "keys" not in text
    assert "个键" in text
    assert "sqrtdk" in text
    # The page says title and source itself.
    shown = ET.fromstring(inline.svg_for_page(chinese["svg"].decode(), "x"))
    assert "sqrtdk" not in "".join(shown.itertext())
    assert float(shown.get("viewBox").split()[3]) < float(ET.fromstring(chinese["svg"]).get("viewBox").split()[3])


def labels(name: str) -> set[str]:
    """Return what is written in a figure."""
    figure = figure_of(name)
    axes = [axis for one in figure.get_axes() for axis in (one.xaxis, one.yaxis)]
    found = {text.get_text() for text in figure.findobj(Text)}
    return found | {label.get_text() for axis in axes for label in axis.get_majorticklabels()}


def test_every_label_has_its_counterpart_and_none_is_idle():
    tree = say("zh").tree
    translated, shared = Phrases(tree["drawn"]), Phrases(tree["phrases"])
    ensembles = {style.ensemble_label(one) for one in synthetic.ENSEMBLES}
    for name in NAMES:
        # Names of the run stay as they are.
        literal = {value for column in data_of(name).select_dtypes("str") for value in data_of(name)[column]}
        for label in labels(name):
            named = label in literal or any(one in label for one in ensembles)
            signs = not ENGLISH_ONLY.search(label.replace("softmax(", ""))
            assert translated(label) or shared(label) or named or signs, (name, label)
    # What only runs with other tasks, optimisers, tails, models, theories and ensembles say.
    elsewhere = {"induction", "English text", "{phrase}, gradient descent", "gradients", "not estimable"}
    elsewhere |= {
        "own\nLlama",
        "own\nQwen3",
        "own\nViT",
        "{name}\n{inputs} inputs",
        "{phrase} (IQR)",
        "{phrase} (IQR²)",
    }
    elsewhere |= {"{n} distributions\n{power}", *(f"{{phrase}}\n∝ {power}" for power in ("dₖ", "dₖ²", "1/dₖ"))}
    elsewhere |= {"{phrase}, {phrase_2}", "largest weight, {n} keys (dotted: exact)"}
    elsewhere |= {"not estimable: {phrase}", *(f"no finite {one}" for one in ("variance", "fourth moment"))}
    idle = translated.catalogue.keys() - translated.used
    assert {one for one in idle if ENGLISH_ONLY.search(one)} == elsewhere


def test_a_label_without_a_counterpart_would_be_seen():
    assert "exponent of dₖ" in labels("exponents")
    assert not Phrases({"exponent": "指数"})("exponent of dₖ")


def read_back(content: bytes) -> pd.DataFrame:

    return pd.read_csv(io.BytesIO(content))


def test_a_missing_table_is_named(tmp_path):
    synthetic.write(tmp_path, {"moments": synthetic.moments(("gaussian",), (4,))})
    command = [sys.executable, str(SCRIPTS / "draw_figure.py"), "--figure", "exponents", "--target", "report"]
    command += ["--labels", "{}", "--language", "en", "--words", *map(str, word_files("exponents"))]
    command += ["--data", str(tmp_path / "moments.csv")]
    for kind in KINDS:
        command += [f"--{kind}", str(tmp_path / f"x.{kind}")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "needs these tables among --data: variance_laws" in done.stderr
    assert not (tmp_path / "x.svg").exists()


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_sets_width_and_type_and_keeps_room_for_the_labels(name):
    target = TARGETS[name]
    assert target.room() >= 0.99  # less, and labels that fit the report's figures collide
    figure = load("freezing").draw(synthetic.frames(), target)
    width = float(re.search(r'<svg [^>]*width="([\d.]+)pt"', saving.save(figure, "svg", target).decode())[1]) / 72
    assert width == pytest.approx(target.width, rel=1e-3)
    page = pypdf.PdfReader(io.BytesIO(saving.save(figure, "pdf", target))).pages[0]
    assert float(page.mediabox.width) / 72 == pytest.approx(target.width, rel=1e-3)
    with Image.open(io.BytesIO(saving.save(figure, "png", target))) as picture:
        assert picture.size[0] / 200 == pytest.approx(target.width, rel=1e-2)


def test_a_title_with_signs_of_markup_stays_text_in_every_file():
    figure = figure_of("freezing")
    mark = stamping.Stamp("x", "</title><b> & √d 中", 'a "b" ]]>', "1", "00")
    root = ET.fromstring(stamping.svg(saving.save(figure, "svg"), mark))
    assert [child.text for child in root[:2]] == [mark.title, mark.description]
    assert pypdf.PdfReader(io.BytesIO(stamping.pdf(saving.save(figure, "pdf"), mark))).metadata.title == mark.title
    with Image.open(io.BytesIO(stamping.png(saving.save(figure, "png"), mark))) as picture:
        assert picture.text["Title"] == mark.title
