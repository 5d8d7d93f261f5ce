"""The graph of the workflow's rules: what each needs, makes, and reads of the configuration."""

import ast
import itertools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace

_BLOCK = re.compile(r"^(?:rule (\w+)|on\w+|wildcard_constraints):.*\n((?:[ \t].*\n|\n)*)", re.MULTILINE)
"""A block of a Snakefile that Python cannot parse: a rule, or one such as `onstart`."""
_KEY = re.compile(r'CONFIG\["(\w+)"\]|\beffort\([^)"]*"(\w+)"\)')


def graph(rules: Iterable, snakefiles: Iterable[Path], wildcards: Mapping[str, Iterable[str]]) -> dict[str, dict]:
    """Return each rule by name: `after` the rules it needs directly, `makes` its result files, `keys` that it reads.

    They are in the order in which they are written, each after all that it needs.

    Args:
        rules: Snakemake's rules; one without outputs is left out.
        snakefiles: where they are written.
        wildcards: values of the wildcards on which inputs that are functions depend.
    """
    rules = [rule for rule in rules if rule.output]
    keys = keys_by_rule([Path(file).read_text(encoding="utf-8") for file in snakefiles])
    found = {}
    for rule in rules:
        # What a rule makes lies in results/, and asking which rule makes a file takes long.
        needed = {file for file in map(str, _inputs(rule, wildcards)) if file.startswith("results/")}
        found[rule.name] = {
            "after": [one.name for one in rules if any(map(one.is_producer, needed))],
            "makes": [re.sub(r"\{(\w+),[^}]*\}", r"{\1}", str(file)) for file in rule.output],
            "keys": sorted(keys.get(rule.name, ())),
        }
    ordered: dict[str, dict] = {}
    while len(ordered) < len(found):
        name = next(name for name in found if name not in ordered and ordered.keys() >= set(found[name]["after"]))
        ordered[name] = found[name]
    return ordered


def _inputs(rule, wildcards: Mapping[str, Iterable[str]]) -> Iterable[str]:
    names = sorted(rule.wildcard_names & set(wildcards))
    for item in rule.input:
        if not callable(item):
            yield item
            continue
        for values in itertools.product(*(wildcards[name] for name in names)):
            files = item(SimpleNamespace(**dict(zip(names, values, strict=True))))
            yield from [files] if isinstance(files, str | Path) else files


def keys_by_rule(texts: Iterable[str]) -> dict[str, set[str]]:
    """Return for each rule of Snakefiles the keys of CONFIG that its text names, itself or by names that it uses."""
    texts = list(texts)
    blocks = {match[1]: match[2] for text in texts for match in _BLOCK.finditer(text) if match[1]}
    defined = {}
    for text in texts:
        plain = _BLOCK.sub("", text)
        for node in ast.parse(plain).body:
            for name in _defines(node):
                defined[name] = ast.get_source_segment(plain, node)
    return {name: _keys(text, defined, set()) for name, text in blocks.items()}


def _defines(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    return [target.id for target in getattr(node, "targets", ()) if isinstance(target, ast.Name)]


def _keys(text: str, defined: Mapping[str, str], seen: set[str]) -> set[str]:
    found = {key for pair in _KEY.findall(text) for key in pair if key}
    for name in set(re.findall(r"\b[A-Za-z_]\w*\b", text)) & defined.keys() - seen - {"CONFIG"}:
        seen.add(name)
        found |= _keys(defined[name], defined, seen)
    return found
