"""The configuration, understood exactly or refused with every mistake at once. The schema says what is allowed."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sqrtdk.config.messages import ConfigError, Problem, show
from sqrtdk.config.rules import (
    clashes,
    dump_problems,
    find_file,
    labels,
    misnamed,
    periodic_names,
    read_ensembles,
    read_variants,
    removal_problems,
    settings,
    specification,
    training_problems,
)
from sqrtdk.config.schema import allowed, load_schema, schema_problems, with_registries
from sqrtdk.config.sources import argument_problems, empty_problems, file_names, file_problems, literal_texts
from sqrtdk.config.values import plain_step, understand

__all__ = [
    "ConfigError",
    "Problem",
    "allowed",
    "find_file",
    "labels",
    "load_schema",
    "settings",
    "show",
    "specification",
    "validate",
    "with_registries",
]


def validate(
    config: Mapping[str, Any],
    schema: Mapping[str, Any],
    *,
    files: Iterable[Path | str] = (),
    arguments: Iterable[str] | None = (),
    folders: Iterable[Path | str] = (".",),
) -> dict[str, Any]:
    """Return the configuration with exact types, every default filled in, and without the removed entries.

    `files` are the configuration files that were merged, the workflow's own last, and `arguments` the texts after
    `--config`: they show what merging hides. The files of dumps are looked for in `folders`, in this order.
    Widths and numbers of keys come back sorted, named entries in the order of the files.
    Raises ConfigError with every mistake.
    """
    if not isinstance(config, Mapping):
        raise ConfigError([Problem((), config, "allowed: a mapping of keys to values")])
    schema, files, arguments = with_registries(schema), list(files), list(arguments or ())
    defaults = {key: part["default"] for key, part in schema["properties"].items() if "default" in part}
    texts = literal_texts(arguments, schema)
    given = {**defaults, **config, **texts}
    understood: Any = understand(given, schema)
    refused = schema_problems(understood, schema, given)
    widths, n_keys = (_sound_items(understood, key, refused) for key in ("d_k", "n_keys"))
    spelled, variant_problems = read_variants(understood, given)
    ensembles, dumps, training = (_entries(understood, key) for key in ("ensembles", "dumps", "training"))
    specs, spec_problems = read_ensembles(ensembles, given, widths, n_keys)
    written: list[Any] = [file_names(path) for path in reversed(files)]
    problems = [
        *(problem for path in files for problem in file_problems(path)),
        *argument_problems(arguments, texts),
        *empty_problems(files[:-1], arguments, schema, given),
        *refused,
        *variant_problems,
        *removal_problems(given, schema, written),
        *spec_problems,
        *dump_problems(dumps, list(folders)),
        *training_problems(training),
        *misnamed(specs, schema["properties"]["ensembles"]["default"]),
        *periodic_names(ensembles=ensembles, dumps=dumps, training=training),
        *clashes(ensembles, dumps, spelled["scalings"], widths, n_keys),
    ]
    if problems:
        position = {key: index for index, key in enumerate(schema["properties"])}
        raise ConfigError(sorted(problems, key=lambda problem: position.get((*problem.path, None)[0], len(position))))
    return {
        **understood,
        "ensembles": _in_order(specs, [names.get("ensembles", []) for names in written]),
        "dumps": _in_order(dumps, [names.get("dumps", []) for names in written]),
        "training": _in_order(training, [names.get("training", []) for names in written]),
        "d_k": sorted(widths),
        "n_keys": sorted(n_keys),
        "alternatives_d_k": sorted(understood["alternatives_d_k"]),
        "alternatives_n_keys": sorted(understood["alternatives_n_keys"]),
        **spelled,
    }


def _sound_items(understood: Mapping[str, Any], key: str, refused: list[Problem]) -> list[int]:
    """Return the items of a list in which the schema found no mistake, for the checks that follow."""
    bad = {problem.path[1:] for problem in refused if problem.path[0] == key}
    if () in bad:
        return []
    return [item for position, item in enumerate(understood[key]) if (position,) not in bad]


def _entries(understood: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the named entries that are mappings; with a mistake in the name or elsewhere, the rest is checked too."""
    entries = understood[key] if isinstance(understood[key], dict) else {}
    plain: dict[Any, Any] = {plain_step(name): entry for name, entry in entries.items()}
    return {name: entry for name, entry in plain.items() if isinstance(entry, dict)}


def _in_order(entries: Mapping[str, Any], written: list[list[str]]) -> dict[str, Any]:
    """Sort named entries as the files list them: Snakemake puts those of an overlay before the workflow's own."""
    names = dict.fromkeys([*(name for names in written for name in names), *entries])
    return {name: entries[name] for name in names if name in entries}
