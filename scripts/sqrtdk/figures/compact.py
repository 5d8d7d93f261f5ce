"""The same drawing in fewer bytes: an SVG tree of matplotlib's whose marks and strokes are said together.

The page of a default run takes 1.37 MB with it and 2.78 MB without; shorter numbers alone, which is what optimisers of
SVG (scour, svgo) and settings of matplotlib give, leave 2.05 MB. A page may take 1.5 MB.

Works on a tree without namespaces. A coordinate moves by half of its last decimal at most, a curve by little more, and
the order of painting changes only among things that do not overlap.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from sqrtdk.figures import svg_paths

DIGITS = 1
"""Decimals of the place of a mark or a stroke, in points: half of the last is a tenth of a pixel on the page."""
FINE_DIGITS = 2
"""Decimals of a curve, whose steps would show, of a mark's shape, and of a text, which snaps to pixels."""
CURVE = 5
"""Vertices of a stroke beyond which it counts as a curve."""
FLAT = 0.04
"""How far, in points, a polyline may pass from a vertex that is left out."""
_AXIS = "matplotlib.axis"
_LAYERS = {"path": 0, "use": 1, "text": 2}
_NUMBER = re.compile(r"-?\d+\.\d+")
_TURN_BY_NOTHING = re.compile(r"rotate\(-?0 [^)]*\)")
_PLACE = frozenset(("id", "href", "d", "x", "y", "transform", "clip-path"))
"""Attributes that say where and what a thing is; all others say how it looks."""
_UNFILLED = ("fill", "none")


def _look(element: ET.Element) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in element.attrib.items() if name not in _PLACE))


def order_axes(root: ET.Element) -> None:
    """Bring the grid lines, ticks and labels of an axis together, in this order: within one axis none overlap."""
    for group in root.iter("g"):
        if group.get("id", "").startswith(_AXIS):
            # What is no drawing (definitions) comes first; sorting is stable.
            group[:] = sorted(_flat(group), key=lambda element: _LAYERS.get(element.tag, -1))


def compact(root: ET.Element, prefix: str) -> None:
    """Say runs of marks as one path with markers, merge strokes of one look, and shorten all coordinates.

    prefix: of the ids of the markers.
    """
    shapes = {name: element for element in root.iter("path") if (name := element.get("id"))}
    definitions = ET.Element("defs")
    definitions.extend(root.iter("clipPath"))
    markers = _Markers(shapes, prefix)
    drawing = []
    for key, group in groupby(filter(_is_seen, _flat(root)), lambda element: _key(element, markers)):
        run = list(group)
        drawing.append(_marks(run, key[1]) if key[0] == "marks" else _merged(run))
    used = {element.get("href", "")[1:] for top in drawing for element in top.iter("use")}
    definitions.extend([*(shape for name, shape in shapes.items() if name in used), *markers.elements()])
    for element in definitions.iter("rect"):
        _round(element)
    # Strokes of no length are gone when rounded.
    drawing = _clipped_together([element for element in drawing if element.get("d") != ""])
    root[:] = [definitions, *drawing] if len(definitions) else drawing
    for element in root.iter():
        element.text, element.tail = (text if text and text.strip() else None for text in (element.text, element.tail))


def _flat(parent: ET.Element) -> list[ET.Element]:
    """Return what is drawn below an element, in order, each with the clip path of the group around it.

    A group that says anything else, or clips what is clipped already, stays as it is.
    """
    flat: list[ET.Element] = []
    for child in parent:
        inner = _flat(child) if child.tag == "g" and child.attrib.keys() <= {"id", "clip-path"} else None
        clip = child.get("clip-path")
        if inner is None or (clip and any("clip-path" in element.attrib for element in inner)):
            flat.append(child)
            continue
        for element in inner:
            if clip and element.tag != "defs":
                element.set("clip-path", clip)
        flat += inner
    return flat


def _is_seen(element: ET.Element) -> bool:
    """Say whether an element draws anything: definitions, paths without a course and without a colour do not."""
    if element.tag == "path":
        return "d" in element.attrib and _look(element) != (_UNFILLED,)
    return element.tag != "defs"


def _key(element: ET.Element, markers: "_Markers") -> tuple[Any, ...]:
    """Return what neighbours must share to be said together, the kind first; something of its own where they cannot."""
    look, clip = _look(element), element.get("clip-path")
    said = element.attrib.keys() & _PLACE
    if element.tag == "use" and {"x", "y"} <= said <= {"href", "x", "y", "clip-path"}:
        return "marks", markers.name(element), clip
    if element.tag == "path" and said <= {"d", "clip-path"} and _UNFILLED in look:
        if not any("opacity" in name for name, _ in look):
            return "strokes", look, clip
        # Where translucent strokes cross, each must be painted; parallel ones do not.
        direction = svg_paths.straight(svg_paths.parse(element.attrib["d"]))
        if direction:
            return "strokes", look, clip, direction
    return "other", id(element)


class _Markers:
    """The markers of a drawing: one for each shape and look."""

    def __init__(self, shapes: dict[str, ET.Element], prefix: str) -> None:
        self.shapes, self.prefix = shapes, prefix
        self.names: dict[tuple[str, tuple[tuple[str, str], ...]], str] = {}
        self.known: dict[tuple[Any, ...], str] = {}

    def name(self, use: ET.Element) -> str:
        """Return the id of the marker that looks as this use of a shape does."""
        key = use.attrib["href"], _look(use)
        if key not in self.known:
            self.known[key] = self._name(use)
        return self.known[key]

    def _name(self, use: ET.Element) -> str:
        shape = self.shapes[use.attrib["href"][1:]]
        # What the shape says of itself goes first.
        look = dict(_look(use)) | dict(_look(shape))
        segments = svg_paths.simplified(svg_paths.parse(shape.attrib["d"]), FLAT)
        identity = svg_paths.write(segments, FINE_DIGITS), tuple(sorted(look.items()))
        return self.names.setdefault(identity, f"{self.prefix}m{len(self.names):x}")

    def elements(self) -> Iterator[ET.Element]:
        """Yield the definition of each marker."""
        for (d, look), name in self.names.items():
            marker = ET.Element("marker", {"id": name, "overflow": "visible"})
            ET.SubElement(marker, "path", {"d": d, **dict(look)})
            yield marker


def _marks(run: list[ET.Element], name: str) -> ET.Element:
    """Return a path that bears a marker at each place of a run of uses.

    It ends twice in the last place, so that markers at its start and between stand at each place once.
    """
    places = [(float(use.attrib["x"]), float(use.attrib["y"])) for use in run]
    path = ET.Element("path", {"d": svg_paths.through(places, DIGITS), "fill": "none", "marker-start": f"url(#{name})"})
    if len(run) > 1:
        path.set("marker-mid", f"url(#{name})")
    if clip := run[0].get("clip-path"):
        path.set("clip-path", clip)
    return path


def _merged(run: list[ET.Element]) -> ET.Element:
    """Return one element for a run of elements: the first, with the paths of all, its coordinates shortened."""
    first = run[0]
    if first.tag == "path":
        first.set("d", " ".join(element.attrib["d"] for element in run))
    for element in first.iter():
        if "d" in element.attrib:
            element.set("d", _short(svg_paths.parse(element.attrib["d"])))
        _round(element)
        if _TURN_BY_NOTHING.fullmatch(element.get("transform", "")):
            del element.attrib["transform"]
    return first


def _short(segments: list[svg_paths.Segment]) -> str:
    """Return a path shortened; a curve, or a polyline of many vertices, on the finer grid."""
    fewer = svg_paths.simplified(segments, FLAT)
    strokes = sum(command == "M" for command, _ in fewer)
    return svg_paths.write(fewer, FINE_DIGITS if len(fewer) > CURVE * strokes else DIGITS)


def _round(element: ET.Element) -> None:
    for key in ("x", "y", "width", "height", "transform"):
        if key in element.attrib:
            value = element.attrib[key]
            element.set(key, _NUMBER.sub(lambda number: f"{round(float(number[0]), FINE_DIGITS):g}", value))


def _clipped_together(elements: list[ET.Element]) -> list[ET.Element]:
    """Say a clip path that neighbours share once, on a group around them."""
    together: list[ET.Element] = []
    for clip, run in groupby(elements, lambda element: element.get("clip-path")):
        members = list(run)
        if clip and len(members) > 1:
            group = ET.Element("g", {"clip-path": clip})
            for element in members:
                del element.attrib["clip-path"]
            group.extend(members)
            members = [group]
        together += members
    return together
