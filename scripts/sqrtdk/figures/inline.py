"""An SVG file made ready to stand inside an HTML page among others."""

import re
import xml.etree.ElementTree as ET
import zlib

from sqrtdk import style

_SVG = "{http://www.w3.org/2000/svg}"
_DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"
_REFERENCE = re.compile(r"url\((['\"]?)#([^)'\"]+)\1\)")
# The layout is measured in DejaVu Sans; Verdana has the same widths.
_FONT = "var(--figure-font, 'DejaVu Sans', Verdana, sans-serif)"
_TARGET = re.compile(r"""(?:href=["']|url\(['"]?)#([^)'"]+)""")
_COMMAND = re.compile(r"[A-Za-z]")
_DECIMALS = re.compile(r"-?\d+\.\d+")
_BAR = re.compile(r"M (\S+) (\S+) \1 (\S+)(?= M|$)")
_INHERITED = re.compile(r"^\*\{(stroke-linejoin: ?round; ?stroke-linecap: ?butt)\}$")


def svg_for_page(svg_text: str, prefix: str, title: str | None = None, description: str | None = None) -> str:
    """Return an SVG element to be pasted into HTML: no prologue, own ids, and ink in the text colour of the page.

    Ids that something refers to become short ones that belong to the prefix, others are dropped; the ink colour becomes
    `currentColor`, fonts follow the CSS variable `--figure-font`, and width and height are left to the page. Title and
    description for screen readers are those in the file's metadata unless given. A style sheet inside, which would
    apply to the whole page, raises ValueError; matplotlib's own one-liner becomes an attribute.
    """
    root = ET.fromstring(svg_text)
    title = title if title is not None else _metadata(root, "title")
    description = description if description is not None else _metadata(root, "description")
    inherited = _remove_style_sheet(root)
    for child in list(root):
        if child.tag in (f"{_SVG}title", f"{_SVG}desc", f"{_SVG}metadata"):
            root.remove(child)
    referred = set(_TARGET.findall(svg_text))
    found = [element.get("id") for element in root.iter() if element.get("id") in referred]
    # A thousand markers refer to them: six letters of the prefix's checksum, which no other figure of a page shares.
    short = f"f{zlib.crc32(prefix.encode()):x}"[:6]
    ids = {name: f"{short}-{number:x}" for number, name in enumerate(dict.fromkeys(found))}
    for element in root.iter():
        _localise(element, ids)
    _compact(root)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    _first_children(root, prefix, title, description)
    root.set("xmlns", _SVG.strip("{}"))
    root.set("style", f"{inherited}; font-family: {_FONT}")
    return ET.tostring(root, encoding="unicode")


def _metadata(root, name: str) -> str:
    return next((element.text or "" for element in root.iter(_DUBLIN_CORE + name)), "")


def _remove_style_sheet(root) -> str:
    """Take out matplotlib's style sheet and return its declarations."""
    declarations = ""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{_SVG}style":
                match = _INHERITED.match((child.text or "").strip())
                if not match:
                    raise ValueError(f"a style sheet inside an SVG would apply to the whole page: {child.text!r}")
                declarations = match[1]
                parent.remove(child)
    return declarations


def _first_children(root, prefix: str, title: str, description: str) -> None:
    root.set("role", "img")
    root.set("aria-labelledby", f"{prefix}-title {prefix}-desc")
    for tag, text in (("desc", description), ("title", title)):
        element = ET.Element(tag, {"id": f"{prefix}-{tag}"})
        element.text = text
        root.insert(0, element)


def _localise(element, ids: dict[str, str]) -> None:
    """Strip namespaces, give ids and references their new names, and swap ink and fonts, in one element."""
    element.tag = element.tag.rpartition("}")[2]
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
        elif key == "style":
            value = ";".join(_declarations(value, ids))
        else:
            value = _refer(value, ids)
        attributes[key] = value
    element.attrib.clear()
    element.attrib.update(attributes)


def _compact(root) -> None:
    """Round coordinates to 0.01 points, drop rotations by nothing, and say the style of a run of marks once."""
    for element in root.iter():
        for key in ("d", "x", "y", "transform"):
            if key in element.attrib:
                shorter = _DECIMALS.sub(
                    lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), element.get(key)
                )
                shorter = " ".join(shorter.split())
                # After M a line is what a pair of numbers means by itself.
                if set(_COMMAND.findall(shorter)) <= set("MLz"):
                    shorter = _BAR.sub(r"M\1 \2V\3", shorter.replace(" L ", " ")).replace(" M", "M")
                element.set(key, shorter)
        if re.fullmatch(r"rotate\(-?0 [^)]*\)", element.get("transform", "")):
            del element.attrib["transform"]
        styles = {child.get("style") if child.tag == "use" else None for child in element}
        if len(element) > 1 and len(styles) == 1 and None not in styles and "style" not in element.attrib:
            element.set("style", styles.pop())
            for child in element:
                del child.attrib["style"]
        element.text, element.tail = _trimmed(element.text), _trimmed(element.tail)
    _unwrap(root)


def _unwrap(parent) -> None:
    """Put the children of groups that say nothing in their place, and leave out what has no ink."""
    children = []
    for child in list(parent):
        _unwrap(child)
        if child.tag == "g" and not child.attrib:
            children += list(child)
        elif child.tag != "path" or child.get("style") != "fill:none":
            children.append(child)
    parent[:] = children


def _trimmed(text: str | None) -> str | None:
    return text if text and text.strip() else None


def _declarations(text: str, ids: dict[str, str]):
    for declaration in filter(None, map(str.strip, text.split(";"))):
        name, _, value = declaration.partition(":")
        value = value.strip()
        if name == "font-family":
            continue
        if value.lower() == style.INK:
            value = "currentColor"
        yield f"{name}:{_refer(value, ids)}"


def _refer(value: str, ids: dict[str, str]) -> str:
    return _REFERENCE.sub(lambda match: f"url(#{ids[match[2]]})", value)
