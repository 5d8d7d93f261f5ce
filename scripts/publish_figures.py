"""Give the drawn figures their words, their metadata and a citation, and list them with their hashes."""

import dataclasses
import json
from pathlib import Path

from program import run
from sqrtdk import __version__
from sqrtdk.figures import catalogue, speaking, stamping
from sqrtdk.report import citing, provenance
from sqrtdk.results.writing import write_bytes, write_text
from sqrtdk.words import texts as language_words

_PLACED = ("number", "part", "topic")


def publish_figures(
    drawn: list[Path], words: list[Path], language: str, configuration_sha256: str, citation: Path, output: Path
):
    """Write `fig-<id>` as SVG, PDF, PNG, CSV, BibTeX, LaTeX and JSON, and manifest.json, into the folder of `output`.

    Files of figures that there no longer are, left by another version or a killed job, are removed from it.

    drawn: the records of all figures as they were drawn, beside their files. words: files of report/words/ with
    those of all figures. citation: CITATION.cff, which may name the repository. output: the manifest.
    """
    sources = {"/".join(("words", *path.parts[-2:])): path.read_text(encoding="utf-8") for path in words}
    say = language_words.Words(language_words.tree(sources, language))
    records = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in drawn}
    folders = {path.stem: path.parent for path in drawn}
    url = citing.repository(citation.read_text(encoding="utf-8"))
    manifest = {}
    for name, place in catalogue.places().items():
        if not (record := records.get(f"fig-{name}")):
            continue
        record |= dataclasses.asdict(place)
        own = _drawn(folders[f"fig-{name}"], record)
        spoken = speaking.words(say, record["id"], record["words"])
        files = _publish(record, spoken, own, output.parent, configuration_sha256, url)
        parameters = {"figure_target": record["target"]}
        record = {name: record[name] for name in ("id", *_PLACED, "inputs")}
        record |= spoken | {"licence": catalogue.LICENCE, "licence_url": catalogue.LICENCE_URL, "files": files}
        path = output.parent / f"fig-{record['id']}.json"
        write_text(path, json.dumps(record, ensure_ascii=False, indent=2) + "\n")
        write_text(
            output.parent / "captions" / f"{path.stem}.rst", citing.figure_caption(record["title"], record["caption"])
        )
        hashes = {entry["name"]: entry["sha256"] for entry in files.values()} | {path.name: provenance.file_hash(path)}
        manifest[record["id"]] = {
            **{name: record[name] for name in (*_PLACED, "title", "caption", "alt")},
            "files": dict(sorted(hashes.items())),
            "data": [catalogue.source(name) for name in record["inputs"]],
            "rule": "draw_figure",
            "parameters": parameters,
        }
    current = {name for entry in manifest.values() for name in entry["files"]} | {
        f"fig-{name}.rst" for name in manifest
    }
    for pattern in ("fig-*.*", "captions/fig-*.rst", ".fig-*.part"):
        for path in output.parent.glob(pattern):
            if path.name not in current:
                path.unlink()
    head = {"version": __version__, "configuration_sha256": configuration_sha256, "language": language}
    write_text(output, json.dumps(head | {"figures": manifest}, indent=2, ensure_ascii=False) + "\n")


def _drawn(folder: Path, record: dict) -> dict[str, bytes]:
    """Return the files of a figure by kind, as they were when it was drawn."""
    found = {}
    for kind, digest in record["sha256"].items():
        path = folder / f"fig-{record['id']}.{kind}"
        if not path.is_file() or provenance.file_hash(path) != digest:
            raise SystemExit(f"{path} is not as it was drawn: remove {folder}, and what is in it is drawn again")
        found[kind] = path.read_bytes()
    return found


def _publish(record: dict, spoken: dict, drawn: dict[str, bytes], folder: Path, configuration: str, url: str) -> dict:
    """Write the files of one figure but its record; return name, hash and size of each by kind."""
    name, number, title = record["id"], record["number"], spoken["title"]
    stamp = stamping.Stamp(name, title, spoken["alt"], __version__, configuration)
    contents = {kind: stamping.STAMPERS[kind](drawn[kind], stamp) for kind in ("svg", "pdf", "png")}
    contents["csv"] = drawn["csv"]
    data = record["sha256"]["csv"]
    contents["bib"] = citing.figure_entry(name, number, title, __version__, data, url).encode()
    contents["tex"] = citing.figure_inclusion(name, title, spoken["caption"], record["frame"]).encode()
    found = {}
    for kind, content in contents.items():
        path = folder / f"fig-{name}.{kind}"
        write_bytes(path, content)
        found[kind] = {"name": path.name, "sha256": provenance.file_hash(path), "bytes": len(content)}
    return found


if __name__ == "__main__":
    run(publish_figures)
