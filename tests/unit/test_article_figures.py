"""Figures of the article: few panels, readable on a telephone, labels apart; and what stands around pictures."""

import io
import json
import re
import xml.etree.ElementTree as ET

import pypdf
import pytest
import synthetic_results as synthetic
from figure_cases import NAMES, describe, figure_of, word_files
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

import draw_figure
from sqrtdk.figures import framing, inline, layout, saving
from sqrtdk.figures.catalogue import load, places
from sqrtdk.figures.targets import LARGE

pytestmark = pytest.mark.slow  # draws figures
ARTICLE = [name for name in NAMES if places()[name].part == "article"]
PHONE, SMALLEST = 360, 11
"""Pixels of a narrow screen, and of the smallest type on it."""
SLACK = 3
"""Pixels of 100 to the inch that an accent or a bearing may reach beyond the canvas."""


def words(figure: Figure) -> list[Text]:
    return [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]


@pytest.mark.parametrize("name", ARTICLE)
def test_every_text_is_readable_at_360_pixels_and_within_the_canvas(name):
    figure = figure_of(name)
    figure.draw_without_rendering()
    width, height = figure.bbox.size
    for text in words(figure):
        assert text.get_fontsize() * PHONE / (72 * figure.get_figwidth()) >= SMALLEST, text.get_text()
        box = text.get_window_extent()
        # Ticks beyond the limits of an axis are not drawn.
        if any(text in axis.get_ticklabels() for axes in figure.get_axes() for axis in (axes.xaxis, axes.yaxis)):
            continue
        inside = box.x0 >= -SLACK and box.y0 >= -SLACK and box.x1 <= width + SLACK and box.y1 <= height + SLACK
        assert inside, text.get_text()


@pytest.mark.parametrize("name", [name for name in ARTICLE if name != "attention-maps"])
def test_there_are_three_panels_of_six_series_at_most(name):
    panels = [axes for axes in figure_of(name).get_axes() if axes.axison]
    assert len(panels) <= 3
    for axes in panels:
        colours = {line.get_color() for line in axes.get_lines() if line.get_label() == "_points"}
        assert len(colours) <= 6


@pytest.mark.parametrize("name", ARTICLE)
def test_its_title_says_what_the_numbers_show(name):
    frames = synthetic.frames()
    record = load(name).describe(frames).title
    assert record[0].key.startswith("finding")
    assert re.search(r"\d|recall", describe(name, frames).title)


@pytest.mark.parametrize("heights", [(0, 0, 0), (1, 0.5, 0.49, 0), (1, 1, 1), (0.5,)])
def test_labels_at_ends_of_lines_stay_apart_and_beside_the_panel(heights):
    figure, (axes,) = layout.stack([100])
    axes.set_ylim(0, 1)
    layout.at_ends(axes, [(height, str(place), "black") for place, height in enumerate(heights)])
    places = sorted(100 * text.xy[1] for text in axes.texts)
    assert all(high - low > 15 - 1e-6 for low, high in zip(places, places[1:], strict=False))
    assert places[0] >= -1e-6
    assert places[-1] <= 100 + 1e-6
    order = [text.get_text() for text in sorted(axes.texts, key=lambda text: text.xy[1])]
    assert [heights[int(name)] for name in order] == sorted(heights)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Return the files of a figure, drawn as a job draws it."""
    folder = tmp_path_factory.mktemp("exported")
    frames = synthetic.frames()
    tables = {name: frames[name] for name in load("hero").INPUTS}
    synthetic.write(folder, tables)
    files = {kind: folder / f"fig-hero.{kind}" for kind in ("svg", "pdf", "png", "csv", "json")}
    data = [folder / f"{name}.csv" for name in tables]
    draw_figure.draw_figure("hero", data, "report", {}, word_files("hero"), "en", **files)
    return files


def test_title_definition_and_source_stand_in_every_exported_picture(exported):
    title = describe("hero", synthetic.frames()).title
    record = json.loads(exported["json"].read_text())
    figure = figure_of("hero")
    svg = " ".join(ET.fromstring(exported["svg"].read_text()).itertext())
    pdf = pypdf.PdfReader(io.BytesIO(exported["pdf"].read_bytes())).pages[0]
    for text in (svg, pdf.extract_text()):
        spaced = " ".join(text.split())
        assert " ".join(title.split()) in spaced
        assert "Attention weights of one query over 16 keys in a head of width dₖ = 64." in spaced
        assert re.search(r"sqrtdk \d+\.\d+\.\d+\S*, fig-hero, CC BY 4\.0", spaced)
    tall = 72 * figure.get_figheight() + record["frame"]["top"] + record["frame"]["bottom"]
    assert float(pdf.mediabox.height) == pytest.approx(tall, abs=0.5)
    with Image.open(exported["png"]) as picture:
        assert picture.height / picture.width == pytest.approx(tall / (72 * figure.get_figwidth()), rel=0.01)


def test_the_page_shows_the_figure_alone_as_it_was_drawn(exported):
    alone = inline.svg_for_page(saving.save(figure_of("hero"), "svg").decode(), "x")
    framed = inline.svg_for_page(exported["svg"].read_text(), "x")
    texts = [
        [text.text for text in ET.fromstring(page).iter("{http://www.w3.org/2000/svg}text")] for page in (alone, framed)
    ]
    assert texts[0] == texts[1]
    views = [list(map(float, ET.fromstring(page).get("viewBox").split())) for page in (alone, framed)]
    assert views[0][2:] == pytest.approx(views[1][2:])


def test_a_frame_can_be_taken_away_again():
    figure, _ = layout.stack([100])
    frame = framing.add(figure, "A title " * 20, "What is shown. " * 9, "the source", LARGE)
    lines = [text.get_text() for text in figure.texts]
    assert " ".join(lines) == " ".join(["A title " * 20, "What is shown. " * 9, "the source"]).replace("  ", " ")
    assert frame.top > 6 * LARGE
    assert frame.bottom > LARGE
    framing.remove(figure)
    assert not figure.texts
