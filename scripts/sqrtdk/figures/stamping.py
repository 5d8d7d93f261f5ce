"""Metadata inside the files of a drawn figure: title, id, version, configuration and licence, for SVG, PDF and PNG."""

import io
import re
import struct
import zlib
from dataclasses import dataclass
from xml.sax.saxutils import escape

from sqrtdk.figures.catalogue import LICENCE, LICENCE_URL

_PNG_HEAD = 8 + 25  # the signature and the header chunk, which must come first
_SVG_START = re.compile(r"<svg\b[^>]*>")


@dataclass(frozen=True)
class Stamp:
    """What a figure's files say of themselves. configuration: its SHA-256."""

    name: str
    title: str
    description: str
    version: str
    configuration: str

    @property
    def rights(self) -> str:
        """The licence of the figure and where it stands."""
        return f"{LICENCE}, {LICENCE_URL}"

    @property
    def source(self) -> str:
        """What made the figure, from which configuration."""
        return f"sqrtdk {self.version}, figure {self.name}, configuration SHA-256 {self.configuration}"


def svg(content: bytes, stamp: Stamp) -> bytes:
    """Return an SVG with a title, a description and Dublin Core metadata as its first children."""
    text = content.decode()
    dublin_core = {
        "title": stamp.title,
        "identifier": stamp.name,
        "description": stamp.description,
        "source": stamp.source,
        "rights": stamp.rights,
    }
    facts = "".join(f"<dc:{key}>{escape(value)}</dc:{key}>" for key, value in dublin_core.items())
    head = (
        f"<title>{escape(stamp.title)}</title><desc>{escape(stamp.description)}</desc>"
        '<metadata><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/"><rdf:Description rdf:about="">{facts}'
        "</rdf:Description></rdf:RDF></metadata>"
    )
    start = _SVG_START.search(text)
    assert start is not None  # matplotlib wrote it
    return (text[: start.end()] + head + text[start.end() :]).encode()


def png(content: bytes, stamp: Stamp) -> bytes:
    """Return a PNG with international text chunks after its header."""
    facts = {
        "Title": stamp.title,
        "Description": stamp.description,
        "Source": stamp.source,
        "Copyright": stamp.rights,
    }
    chunks = b""
    for key, value in facts.items():
        body = b"iTXt" + key.encode("latin-1") + b"\0\0\0\0\0" + value.encode()
        chunks += struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return content[:_PNG_HEAD] + chunks + content[_PNG_HEAD:]


def pdf(content: bytes, stamp: Stamp) -> bytes:
    """Return a PDF whose document information is the stamp's alone."""
    import pypdf

    writer = pypdf.PdfWriter(clone_from=io.BytesIO(content))
    writer.metadata = {
        "/Title": stamp.title,
        "/Subject": stamp.description,
        "/Author": "sqrtdk",
        "/Keywords": f"{stamp.source}; licence {stamp.rights}",
    }
    target = io.BytesIO()
    writer.write(target)
    return target.getvalue()


STAMPERS = {"svg": svg, "png": png, "pdf": pdf}
