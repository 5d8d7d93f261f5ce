"""Who made what from what: configuration and its hash, versions, hashes of the sources, the commit."""

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sqrtdk.report import citing

PACKAGES = (
    "numpy",
    "scipy",
    "pandas",
    "matplotlib",
    "seaborn",
    "ml_dtypes",
    "snakemake",
    "jinja2",
    "pypdf",
    "markupsafe",
    "pyyaml",
)


def canonical(value: Any) -> str:
    """Spell a value as JSON in which the order of keys does not count."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8, as hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, as hexadecimal digits."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def source_hashes(paths: Iterable[Path], root: Path) -> dict[str, str]:
    """Return the SHA-256 of each source file by its path below `root`, sorted; a file elsewhere goes by its name alone.

    Raises ValueError where two files would have one name.
    """
    root = Path(root).resolve()
    found: dict[str, str] = {}
    for path in map(Path, paths):
        whole = path.resolve()
        name = whole.relative_to(root).as_posix() if whole.is_relative_to(root) else whole.name
        digest = file_hash(path)
        if found.setdefault(name, digest) != digest:
            raise ValueError(f"two different source files are called {name}")
    return dict(sorted(found.items()))


def difference(configuration: dict[str, Any], default: dict[str, Any]) -> list[dict[str, Any]]:
    """List what differs from the default, one entry for each key: `key`, `value`, `default`; what is absent is None.

    Mappings are compared entry by entry, with dotted keys.
    """
    changes = []
    for key in dict.fromkeys([*default, *configuration]):
        value, usual = configuration.get(key), default.get(key)
        if isinstance(value, dict) and isinstance(usual, dict):
            changes += [{**change, "key": f"{key}.{change['key']}"} for change in difference(value, usual)]
        elif key not in configuration or key not in default or canonical(value) != canonical(usual):
            changes.append({"key": str(key), "value": value, "default": usual})
    return changes


def versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Return the version of Python and of each installed package; one that is not installed is named as such."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def record(
    configuration: dict[str, Any],
    default: dict[str, Any],
    sources: dict[str, str],
    commit: str,
    rules: dict[str, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return the provenance of a run: nothing in it depends on when, where or by whom the run was made.

    Args:
        sources: path -> SHA-256, as from `source_hashes`.
        commit: the git commit, empty where there is none.
        rules: the rules of the workflow: what each needs, makes and reads of the configuration.
    """
    return {
        "configuration": configuration,
        "difference": difference(configuration, default),
        "configuration_sha256": text_hash(canonical(configuration)),
        "sources": sources,
        "sources_sha256": text_hash(canonical(sources)),
        "commit": commit,
        "rules": rules or {},
        "versions": versions(),
        "machine": {"system": platform.system(), "architecture": platform.machine()},
    }


def report_entry(title: str, version: str, record: dict[str, Any], url: str = "") -> str:
    """Return the BibTeX entry of the report: the configuration and the commit name the run behind its numbers."""
    configuration, commit = (record[name][: citing.DIGITS] for name in ("configuration_sha256", "commit"))
    note = f"Configuration SHA-256 {configuration}" + (f", commit {commit}" if commit else "")
    return citing.entry("sqrtdk-report", title, f"sqrtdk {version}", note, url)
