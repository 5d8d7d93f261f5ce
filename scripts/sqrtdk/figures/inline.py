"""An SVG file made ready to stand inside an HTML page among others."""

import re
import xml.etree.ElementTree as ET

from sqrtdk.figures import compact, framing, style

_SVG = "{http://www.w3.org/2000/svg}"
_DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"
_REFERENCE = re.compile(r"url\((['\"]?)#([^)'\"]+)\1\)")
# The layout is measured in DejaVu Sans; Verdana has the same widths.
_FONT = "DejaVu Sans, Verdana, sans-serif"
_TARGET = re.compile(r"""(?:href=["']|url\(['"]?)#([^)'"]+)""")


def svg_for_page(svg_text: str, name: str, title: str | None = None, prefix: str = "f-") -> str:
    """Return an SVG element to be pasted into HTML: no prologue, own ids, and ink in the text colour of the page.

    Ids that something refers to become short ones with the prefix, others are dropped; the ink colour becomes
    `currentColor`, fonts are those of the layout or as wide, and width and height are left to the page, as is the
    frame. The title, by which a screen reader calls it, is that of the file's metadata unless given; what describes it
    is the element `<name>-alt` of the page. A style sheet inside, which would apply to the whole page, or an inline
    style, which a policy may forbid, raises ValueError.
    """
    root = ET.fromstring(svg_text)
    if any(element.tag == f"{_SVG}style" or "style" in element.attrib for element in root.iter()):
        raise ValueError("looks in an SVG for the page are presentation attributes; this one holds a style")
    title = title if title is not None else _metadata(root, "title")
    for child in list(root):
        if child.tag in (f"{_SVG}title", f"{_SVG}desc", f"{_SVG}metadata"):
            root.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    _unframe(root)
    compact.order_axes(root)
    referred = set(_TARGET.findall(svg_text))
    used = [own for element in root.iter() if (own := element.get("id", "")) in referred]
    ids = {own: f"{prefix}{number:x}" for number, own in enumerate(dict.fromkeys(used))}
    for element in root.iter():
        _localise(element, ids)
    compact.compact(root, prefix)
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.attrib |= {"role": "img", "aria-labelledby": f"{name}-title", "aria-describedby": f"{name}-alt"}
    heading = ET.Element("title", {"id": f"{name}-title"})
    heading.text = title
    root.insert(0, heading)
    root.set("xmlns", _SVG.strip("{}"))
    root.set("font-family", _FONT)
    # In texts and attributes > is escaped.
    return ET.tostring(root, encoding="unicode").replace(" />", "/>")


def _unframe(root: ET.Element) -> None:
    """Leave away what stands around the figure, which the page says itself."""
    if body := root.attrib.pop("data-body", None):
        root.set("viewBox", body)
    for parent in list(root.iter("g")):
        for child in [child for child in parent if child.get("id", "").startswith(framing.GROUP)]:
            parent.remove(child)


def _metadata(root: ET.Element, name: str) -> str:
    return next((element.text or "" for element in root.iter(_DUBLIN_CORE + name)), "")


def _localise(element: ET.Element, ids: dict[str, str]) -> None:
    """Strip namespaces, give ids and references their new names, and swap ink and fonts, in one element."""
    attributes = {}
    for key, value in element.attrib.items():
        key = key.rpartition("}")[2]
        if key == "id":
            if value not in ids:
                continue
            value = ids[value]
        elif key == "href":
            if not value.startswith("#"):
                raise ValueError(f"a reference out of the file: {value!r}")
            value = f"#{ids[value[1:]]}"
        elif key == "font-family":
            continue
        else:
            value = "currentColor" if value.lower() == style.INK else _refer(value, ids)
        attributes[key] = value
    element.attrib.clear()
    element.attrib.update(attributes)


def _refer(value: str, ids: dict[str, str]) -> str:
    return _REFERENCE.sub(lambda match: f"url(#{ids[match[2]]})", value)
