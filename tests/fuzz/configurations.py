"""Random configurations from the schema: valid ones up to the extremes of each key, and ones with a known mistake."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from sqrtdk.config.validation import ConfigError, load_schema, validate, with_registries
from sqrtdk.sampling import ensembles
from sqrtdk.sampling.parameters import Parameter
from sqrtdk.training import rules as trained
from sqrtdk.variants import scalings
from sqrtdk.variants.normalisers import NORMALISERS
from sqrtdk.variants.transforms import TRANSFORMS

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = with_registries(load_schema(ROOT / "workflow/schemas/config.schema.yaml"))
KEYS = SCHEMA["properties"]
NAMES = ("true", "inf", "null", "nan", "e1", "on", "x_" * 15 + "y", "con", "a0", "gaussian", "gradient")
TEXTS = (
    "007",
    "null",
    "{test} {{x}}",
    "<script>alert(1)</script>",
    "a & b",
    "π ≠ 3",
    "注意力",
    "%s $x$ \\n '\"",
    "#1: x",
)
SMALL = {
    "precision": (0.05, 0.5),
    "max_scalars": (1000, 50_000),
    "d_k": (1, 64),
    "softmax_logits": (1000, 3000),
    "n_keys": (2, 32),
    "logit_n_keys": (2, 64),
    "logit_draws": (1000, 5000),
    "example_rows": (1000, 2000),
    "weight_draws": (8, 8),
    "alternatives_d_k": (1, 32),
    "alternatives_n_keys": (4, 32),
    "steps": (2, 6),
    "seeds": (2, 3),
    "length": (4, 16),
    "batch": (1, 8),
    "layers": (1, 2),
    "heads": (1, 2),
}
"""Ranges of the keys that cost time, for configurations that are run; whatever is not named has its whole range."""
LENGTHS = {"d_k": 4, "n_keys": 3, "scalings": 4, "alternatives": 4, "logit_std": 4, "rates": 2}
"""Largest numbers of items of a list, for configurations that are run; otherwise 2."""


def pick(rng: np.random.Generator, items):
    """Return one of some items as it is, where NumPy's own choice would make arrays of them."""
    return list(items)[rng.integers(len(items))]


def number(rng: np.random.Generator, low: float, high: float, whole: bool) -> float | int:
    """Draw from a range: an end of it in one of three cases, else uniformly in the logarithm."""
    if (end := rng.integers(6)) < 2:
        return (low, high)[end]
    least = max(low, 1e-9) if low > 0 else (1 if whole else 1e-3)
    drawn = math.exp(rng.uniform(math.log(least), math.log(max(high, least))))
    return min(max(round(drawn), low), high) if whole else min(max(drawn, low), high)


def parameter(rng: np.random.Generator, domain: Parameter) -> float | int:
    """Draw a parameter of a family, often close to an end of its domain."""
    whole = domain.kind == "integer"
    low, high = max(domain.low, -100), min(domain.high, 100)
    if whole:
        return int(rng.integers(low + domain.low_open, min(high, low + 8) + 1))
    near = pick(rng, (0, 1e-6, 0.01, 0.5, 0.99, 1 - 1e-6, 1))
    value = float(low + near * (high - low))
    return value if domain.read(value) is not None else float(rng.uniform(low, high))


def ensemble(rng: np.random.Generator, small: bool) -> dict:
    """Draw an ensemble's entry: a family, some of its parameters, some of the keys beside them."""
    families = ensembles.families()
    name = pick(rng, [*families, "gamma", "logistic"])
    entry = {"family": name}
    if name in families:
        entry |= pick(rng, families[name].examples)
        entry |= {domain.name: parameter(rng, domain) for domain in families[name].parameters() if rng.random() < 0.2}
    entry |= {"a": 2.5} if name == "gamma" else {}
    beside = SCHEMA["properties"]["ensembles"]["additionalProperties"]["properties"]
    for key in ("label", "precision", "max_scalars", "softmax_logits", "softmax"):
        if rng.random() < 0.15:
            entry[key] = value(rng, beside[key], key, small)
    return entry


def variant(rng: np.random.Generator, normalised: bool) -> str:
    """Spell a variant of attention: a scale rule, perhaps a transform of the scores, perhaps a normaliser."""
    parts = [pick(rng, scalings.SCALINGS)]
    parts += [pick(rng, TRANSFORMS)] if rng.random() < 0.3 else []
    parts += [pick(rng, NORMALISERS)] if normalised and rng.random() < 0.5 else []
    return " | ".join(parts)


def value(rng: np.random.Generator, schema: dict, key: str, small: bool):
    """Draw a value of a part of the schema."""
    kind = schema["type"]
    if kind == "array":
        most = schema.get("maxItems", 3)
        most = min(most, LENGTHS.get(key, 2)) if small else most
        count = int(number(rng, schema.get("minItems", 0), most, True))
        drawn = [value(rng, schema["items"], key, small) for _ in range(count)]
        return list(dict.fromkeys(drawn))
    if schema.get("registry") == "variants":
        return variant(rng, key == "alternatives")
    if "enum" in schema:
        return pick(rng, schema["enum"])
    if kind == "boolean":
        return bool(rng.integers(2))
    if kind == "string":
        return pick(rng, TEXTS)[: schema["maxLength"]]
    low, high = schema["minimum"], schema["maximum"]
    low, high = SMALL.get(key, (low, high)) if small else (low, high)
    return number(rng, low, high, kind == "integer")


def experiment(rng: np.random.Generator, small: bool) -> dict:
    """Draw an experiment of training."""
    parts = KEYS["training"]["additionalProperties"]["properties"]
    given = {key: value(rng, part, key, small) for key, part in parts.items() if small or rng.random() < 0.5}
    given.pop("around", None)
    if small:
        given |= {"d_k": given["d_k"][:2], "scalings": given["scalings"][:2]}
        given["d_k"] = sorted({min(d_k, 16) for d_k in given["d_k"]})
    if rng.random() < 0.2:
        given.pop("rates", None)
        given["scalings"] = [trained.REFERENCE]
        given["around"] = [0.01]
    return given | {"task": value(rng, parts["task"], "task", small)}


def entries(rng: np.random.Generator, least: int, most: int, draw: Callable[[], dict]) -> dict:
    """Draw named entries under names that other programs read as something else."""
    names = [
        pick(rng, NAMES) if rng.random() < 0.5 else f"mine_{number}" for number in range(rng.integers(least, most + 1))
    ]
    return {name: draw() for name in names}


def draft(rng: np.random.Generator, dumps: list[str], small: bool) -> dict:
    """Draw a configuration that the schema allows; keys may clash. For one that is run, every key is drawn."""
    given = {}
    for key, part in KEYS.items():
        if small or rng.random() < 0.5:
            if key == "ensembles":
                given[key] = entries(rng, 1, 3 if small else 12, lambda: ensemble(rng, small))
            elif key == "training":
                given[key] = entries(rng, 0, 1 if small else 6, lambda: experiment(rng, small))
            elif key == "dumps":
                given[key] = entries(rng, 0, 1 if small else 3, lambda: {"file": pick(rng, dumps)})
            else:
                given[key] = value(rng, part, key, small)
    return given


def valid(rng: np.random.Generator, dumps: list[str], small: bool = False) -> tuple[dict, dict]:
    """Return a configuration as given and as understood: drafts are drawn until no two of their values clash.

    An ensemble whose parameters have no law together is left out of a draft, and so is what else is refused.
    """
    while True:
        given = draft(rng, dumps, small)
        for _ in range(5):
            try:
                return given, validate(given, SCHEMA, folders=[ROOT])
            except ConfigError as error:
                for problem in error.problems:
                    part, *rest = problem.path
                    if rest and isinstance(given.get(part), dict):
                        given[part].pop(rest[0], None)
                    else:
                        given.pop(part, None)


def mistakes(rng: np.random.Generator, given: dict) -> tuple[dict, set[str]]:
    """Return a configuration with one to twenty mistakes, and the top-level keys that have one."""
    given, wrong = dict(given), set()
    junk = (
        True,
        None,
        "x",
        "1_000",
        float("nan"),
        -float("inf"),
        10**400,
        [[]],
        {"a": 1},
        "",
        "[",
        -1e-300,
        "0x10",
        [None],
    )
    for _ in range(round(math.exp(rng.uniform(0, 3)))):
        key = pick(rng, KEYS)
        part = KEYS[key]
        if rng.random() < 0.2:
            key = key[:-1] + "_" * (key[:-1] in KEYS) or "x"
            given[key] = pick(rng, junk)
        elif part["type"] in ("integer", "number"):
            beyond = (part["minimum"] - 1, part["maximum"] * 1.5, -1, "1e999")
            given[key] = pick(rng, [*beyond, *(item for item in junk if item is not True or part["type"])])
        elif part["type"] == "array":
            given[key] = [pick(rng, junk), *pick(rng, ([], ["x"] * 300))]
        elif key == "ensembles":
            entry = {
                "family": pick(rng, ("gausian", "student_t", "equicorrelated")),
                pick(rng, ("df", "query_rho")): pick(rng, junk),
            }
            given[key] = {pick(rng, ("mine", "Mine", "x" * 50, "a b")): entry | {"dff": 1}}
        elif part["type"] == "object":
            given[key] = {"mine": {"file": "none.npz", "task": "none"}, "1": pick(rng, junk)}
        else:
            given[key] = {"title": "", "language": "de"}.get(key, "science")
        wrong.add(key)
    return given, wrong
