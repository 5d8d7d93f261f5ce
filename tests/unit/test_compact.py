"""Figures in few bytes: the same marks at the same places, the same strokes, the same looks, in the same order."""

import re
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict

import numpy as np
import pytest
from figure_cases import NAMES, svg

from sqrtdk.figures import compact, inline, style, svg_paths

SVG = "{http://www.w3.org/2000/svg}"
PLACE = 0.5 * 10**-compact.DIGITS + 1e-9
STROKE = compact.FLAT + 2**0.5 * PLACE


def polylines(d: str) -> list[np.ndarray]:
    """Return the vertices of each stroke of a path, absolute or relative, a curve by its ends; a second reader."""
    lines, here, start = [], np.zeros(2), np.zeros(2)
    tokens = re.findall(r"[a-zA-Z]|-?(?:\d+\.?\d*|\.\d+)(?:e-?\d+)?", d)
    sizes = {"m": 2, "l": 2, "h": 1, "v": 1, "c": 6, "q": 4, "a": 7, "z": 0}
    command, at = "", 0
    while at < len(tokens):
        if tokens[at].isalpha():
            command, at = tokens[at], at + 1
        elif command in "mM":
            command = "l" if command == "m" else "L"
        size = sizes[command.lower()]
        values, at = [float(token) for token in tokens[at : at + size]], at + size
        if command in "zZ":
            lines[-1].append(start)
            here = start
            continue
        origin = here if command.islower() else np.zeros(2)
        if command in "hH":
            here = np.array([origin[0] + values[0], here[1]])
        elif command in "vV":
            here = np.array([here[0], origin[1] + values[0]])
        else:
            here = origin + values[-2:]
        if command in "mM":
            start = here
            lines.append([])
        lines[-1].append(here)
    return [np.array(line) for line in lines]


SHAPE = ("d", "x", "y", "id", "transform", "clip-path", "marker-start", "marker-mid", "href")


def looks(element: ET.Element) -> tuple:
    """Return the looks of an element in one order, without fonts and with ink as the page has it."""
    pairs = ((name.rpartition("}")[2], value) for name, value in element.attrib.items())
    said = ((name, value.replace(style.INK, "currentColor")) for name, value in pairs if name not in SHAPE)
    return tuple(sorted((name, value) for name, value in said if name != "font-family"))


def original(text: str) -> tuple[dict, dict, list]:
    """Return the marks, strokes and texts of a file of matplotlib's, by look."""
    root = ET.fromstring(text)
    shapes = {e.get("id"): e for e in root.iter(f"{SVG}path") if e.get("id")}
    marks, strokes, texts = defaultdict(list), defaultdict(list), []
    for element in root.iter():
        tag, look = element.tag.removeprefix(SVG), dict(looks(element))
        if tag == "use":
            shape = shapes[element.get("{http://www.w3.org/1999/xlink}href")[1:]]
            look |= dict(looks(shape))
            marks[tuple(sorted(look.items()))].append((float(element.get("x")), float(element.get("y"))))
        elif tag == "path" and not element.get("id") and element.get("d") and look != {"fill": "none"}:
            strokes[tuple(sorted(look.items()))] += polylines(element.get("d"))
        elif tag == "text":
            texts.append((element.text, tuple(look.items())))
    return marks, strokes, texts


def on_page(text: str) -> tuple[dict, dict, list]:
    """Return the same of a figure for the page."""
    page = inline.svg_for_page(text, "x")
    root = ET.fromstring(page.replace(' xmlns="http://www.w3.org/2000/svg"', ""))
    parents = {child: parent for parent in root.iter() for child in parent}
    inside = {path for marker in root.iter("marker") for path in marker}
    marks, strokes, texts = defaultdict(list), defaultdict(list), []
    for element in root.iter():
        if element.get("marker-start"):
            name = element.get("marker-start").removeprefix("url(#").removesuffix(")")
            (look,) = (looks(path) for path in root.find(f".//*[@id='{name}']"))
            (line,) = polylines(element.get("d"))
            assert (line[-1] == line[-2]).all()
            assert (len(line) > 2) == (element.get("marker-mid") is not None)
            marks[look] += [tuple(place) for place in line[:-1]]
        elif element.tag == "path" and element not in inside:
            strokes[looks(element)] += polylines(element.get("d"))
        elif element.tag == "text":
            texts.append((element.text, looks(element) or looks(parents[element])))
    return marks, strokes, texts


def distances(points: np.ndarray, lines: list[np.ndarray]) -> np.ndarray:
    """Return the distance of each point to the nearest of the lines."""
    start = np.concatenate([line[:-1] if len(line) > 1 else line for line in lines])
    end = np.concatenate([line[1:] if len(line) > 1 else line for line in lines])
    nearest = []
    for piece in np.array_split(points, len(points) * len(start) // 10**6 + 1):
        along, from_start = end - start, piece[:, None] - start
        share = (from_start * along).sum(-1) / np.maximum((along**2).sum(-1), 1e-12)
        nearest.append(np.linalg.norm(from_start - np.clip(share, 0, 1)[..., None] * along, axis=-1).min(axis=1))
    return np.concatenate(nearest)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_mark_stroke_and_text_is_still_there(name):
    (marks, strokes, texts), (new_marks, new_strokes, new_texts) = original(svg(name)), on_page(svg(name))
    assert new_marks.keys() == marks.keys()
    for look, places in marks.items():
        # Within a look the order is kept, but for the ticks of axes, which come together.
        assert np.sort(new_marks[look], axis=0) == pytest.approx(np.sort(places, axis=0), abs=PLACE)
    assert Counter(new_texts) == Counter((text, tuple(sorted(look))) for text, look in texts)
    assert new_strokes.keys() <= strokes.keys()
    for look, lines in strokes.items():
        # What is shorter than the last decimal may be left out.
        seen = [line for line in lines if np.ptp(line, axis=0).max() > 2 * PLACE]
        assert look in new_strokes or not seen
        if seen:
            assert distances(np.concatenate(seen), new_strokes[look]).max() < STROKE, look
            assert distances(np.concatenate(new_strokes[look]), lines).max() < STROKE, look


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_figure_is_two_fifths_of_its_file_at_most(name):
    assert len(inline.svg_for_page(svg(name), name)) < len(svg(name)) * 2 / 5


@pytest.mark.slow
def test_the_test_sees_a_mark_and_a_stroke_that_moved():
    text = svg("calibration")
    x = re.search(r'<use [^>]*x="([\d.]+)"', text)[1]
    moved = text.replace(f'x="{x}"', f'x="{float(x) + 0.2}"')
    marks, new = original(text)[0], on_page(moved)[0]
    assert any(abs(np.sort(new[look], axis=0) - np.sort(marks[look], axis=0)).max() > PLACE for look in marks)
    assert distances(np.array([[0.0, 0.2]]), [np.array([[-1.0, 0.0], [1.0, 0.0]])]) == pytest.approx([0.2])


def drawn(body: str) -> ET.Element:
    text = f'<svg xmlns="http://www.w3.org/2000/svg"><g id="a">{body}</g></svg>'
    return ET.fromstring(inline.svg_for_page(text, "x"))


def paths(body: str) -> list[str]:
    return [path.get("d") for path in drawn(body).iter(f"{SVG}path")]


BAR = '<path d="M {0} 1 L {0} 9" fill="none" stroke="red"{1}/>'
CROSS = '<path d="M 1 5 L 9 5" fill="none" stroke="red"{}/>'


def test_strokes_of_one_look_are_one_path_and_translucent_ones_that_cross_are_not():
    assert paths(BAR.format(2, "") + BAR.format(4, "") + CROSS.format("")) == ["m2 1v8m2-8v8m-3-4h8"]
    thin = ' stroke-opacity="0.1"'
    assert paths(BAR.format(2, thin) + BAR.format(4, thin) + CROSS.format(thin)) == ["m2 1v8m2-8v8", "m1 5h8"]
    assert len(paths(BAR.format(2, "") + BAR.format(4, ' stroke-width="2"'))) == 2
    filled = '<path d="M 0 0 L 1 0 L 1 1 z" fill="red"/>'
    assert paths(filled + filled) == ["m0 0h1v1z"] * 2


def test_what_draws_nothing_is_left_out():
    assert paths('<path fill="red"/><path d="M 0 0 L 1 0" fill="none"/>') == []


def test_clip_paths_are_kept_and_said_once():
    clip = '<defs><clipPath id="c"><rect x="0" y="0" width="5.1234" height="5"/></clipPath></defs>'
    clipped = CROSS.format(' stroke-width="2"').replace("<path", '<path clip-path="url(#c)"')
    root = drawn(f'{clip}<g clip-path="url(#c)">{BAR.format(2, "")}</g>{clipped}')
    (group,) = root.iter(f"{SVG}g")
    assert group.get("clip-path") == "url(#f-0)"
    assert len(group) == 2
    assert root.find(f".//{SVG}rect").get("width") == "5.12"


# ---- paths -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("long", "short"),
    [
        ("M 1.001 2 L 1.001 5.5", "m1 2v3.5"),
        ("M 1 2 L 1 5 M 2 2 L 2 6", "m1 2v3m1-3v4"),
        ("M 1 2 L 1 5 L 3 4 z", "m1 2v3l2-1z"),
        ("M 1 2 L 1 5 L 1 2 z", "m1 2v3z"),
        ("M 0.5 -0.25 L 0.75 0 L 1.25 .5", "m.5-.25.25.25.5.5"),
        ("M 1 2 C 1 5 3 4 5 6", "m1 2c0 3 2 2 4 4"),
        ("M 1 2 Q 3 4 5 6 L 6 8", "m1 2q2 2 4 4l1 2"),
        ("M 3 3 L 3 3.001 M 1 2 L 3 2", "m1 2h2"),
        ("M 3 3 L 3 3.001 z", ""),
        ("M 1 1 L 2 2 z M 1 1 L 2 3", "m1 1 1 1zm0 0 1 2"),
    ],
)
def test_paths_are_said_shortly(long, short):
    assert svg_paths.write(svg_paths.parse(long), 2) == short


def test_rounding_does_not_add_up():
    rng = np.random.default_rng(1)
    points = np.cumsum(rng.normal(0, 0.3, (500, 2)), axis=0)
    d = "M " + " L ".join(f"{x:.6f} {y:.6f}" for x, y in points)
    for text in (svg_paths.write(svg_paths.parse(d), 1), svg_paths.through(points.tolist(), 1).removesuffix("h0")):
        (line,) = polylines(text)
        assert distances(points, [line]).max() < 2**0.5 * PLACE
    assert polylines(svg_paths.through(points.tolist(), 1))[0][:-1] == pytest.approx(points, abs=PLACE)


def test_simplified_lines_pass_every_vertex_closely_and_no_closer_than_asked():
    x = np.linspace(0, 6, 400)
    points = np.column_stack([x, np.sin(x)])
    line = [("M", (tuple(points[0]),)), *(("L", (tuple(point),)) for point in points[1:])]
    fewer = svg_paths.simplified(line, 0.01)
    kept = np.array([point for _, (point,) in fewer])
    assert len(kept) < 40
    assert 0.005 < distances(points, [kept]).max() <= 0.01
    assert svg_paths.simplified(line, 0.0) == line
    there_and_back = svg_paths.parse("M 0 0 L 5 0 L 1 0 L 2 0")
    assert svg_paths.simplified(there_and_back, 0.1) == there_and_back


@pytest.mark.parametrize("odd", ["m 1 2 l 3 4", "M 1 2 A 1 1 0 1 0 3 4", "M 1 2 H 4"])
def test_a_path_that_is_not_matplotlibs_is_refused(odd):
    with pytest.raises(ValueError, match="does not write"):
        svg_paths.parse(odd)
