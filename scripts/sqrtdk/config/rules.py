"""What the schema alone cannot say: families and their parameters, files of dumps, and values that clash."""

import functools
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sqrtdk.config.messages import MISSING, Problem
from sqrtdk.config.schema import colon_hint, look_up
from sqrtdk.config.values import (
    is_removed,
    read_boolean,
    read_integer,
    read_mapping,
    read_number,
    read_text,
    without_removed,
)
from sqrtdk.heads import conventions, enumeration
from sqrtdk.heads.errors import InputError
from sqrtdk.sampling import ensembles
from sqrtdk.sampling.parameters import nearest_name
from sqrtdk.variants import notation

MAX_KEY_MATRIX = 2**26
MAX_HELD_KEYS = 2**16
"""Where all keys of a row are held at once: largest product of a width and a number of keys, 256 MB in single
precision, and largest number of keys."""
TOLD_AT = (2, 4, 64)
"""Widths at which a law is asked for, the first at which there is one: at wide ones some take minutes."""
TOKEN_COPIES = 4
"""How many times the memory of a key its token may take while it is made, for each component."""
EFFORT = ("precision", "max_scalars", "softmax", "softmax_logits")
"""Keys of an ensemble's entry that say how much of it is simulated."""
BESIDE = ("label", *EFFORT)
"""All keys of an ensemble's entry that do not specify the ensemble."""
WORDING = ("title", "language")
"""Keys that word the report and change no number."""
PLACE_HOLDER = re.compile(r"<[a-z][a-z0-9_]*>|<[/!]|\{\s*\w[^{}]*\}")
"""What Snakemake would replace in the path of any input, names of folders of its own and wildcards, and what would end
or change a script of its report."""
SAID_BY_NAME = {"student_t_3": {"df": 3}, "one_sided": {"key_rho": 0}}
"""Parameters that the names of ensembles in the catalogue state, beside their families."""
PERIODIC = re.compile(r"(?=.{1,40}$).*?(.+)\1{19}$")
"""What Snakemake takes for an endless recursion in a name that stands in the paths of files."""
READERS = {"number": read_number, "integer": read_integer, "boolean": read_boolean, "text": read_text}


def read_ensembles(
    entries: Mapping[str, Any], given: Mapping[str, Any], widths: list[int], n_keys: list[int]
) -> tuple[dict[str, Any], list[Problem]]:
    """Build each ensemble to find its mistakes; return the specifications with exact types, and the problems."""
    specs, problems, reasons, held = {}, [], [], {}
    for name, entry in entries.items():
        path = ("ensembles", name)
        if not isinstance(entry.get("family"), str):
            continue
        # Null gives a parameter up that the entry of the same name in another file has.
        entered: Any = without_removed(look_up(given, path))
        raw = specification(entered)
        spec = _exact_spec(raw)
        try:
            ensemble = ensembles.build(spec)
        except ensembles.SpecError as error:
            problems += [_spec_problem(path, raw, problem) for problem in error.problems]
        else:
            specs[name] = {key: spec[key] for key in ensemble.spec if key in spec}
            specs[name] |= {key: entry[key] for key in BESIDE if key in entry}
            problems += _width_problems(path, raw, ensemble, widths) or _law_problems(path, raw, ensemble, widths)
            if entry.get("softmax", True):
                reasons.append((name, [ensemble.undefined_at(width) for width in widths]))
                if not ensemble.independent_keys:
                    tokens = TOKEN_COPIES * getattr(ensemble, "d_model", 0)
                    held[name] = max([tokens, *(width for width in widths if not ensemble.undefined_at(width))])
    # Cells at widths where an ensemble is not defined are left out, but something has to be left.
    if widths and reasons and all(all(row) for _, row in reasons):
        name, row = reasons[0]
        problems.append(Problem(("d_k",), list(widths), f"no ensemble is defined at any of these: {name}: {row[-1]}"))
    return specs, problems + _memory_problems(held, max(n_keys, default=0))


def _memory_problems(held: Mapping[str, int], keys: int) -> list[Problem]:
    """List the ensembles that need too much memory for their keys, of which `held` gives the largest width."""
    names = [name for name, width in held.items() if keys > MAX_HELD_KEYS or keys * width > MAX_KEY_MATRIX]
    if not names:
        return []
    width, listed = max(held[name] for name in names), ", ".join(names[:5]) + (" and others" if len(names) > 5 else "")
    words = (
        f"{listed}: keys depend on each other or on the queries, "
        f"so that all keys of a row are held at once; with a width of {width} these are {keys * width} numbers; "
        f"allowed: at most {MAX_KEY_MATRIX}, of at most {MAX_HELD_KEYS} keys (softmax: false leaves an ensemble out)"
    )
    return [Problem(("n_keys",), keys, words)]


def specification(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of an ensemble's entry specifies the ensemble itself."""
    return {key: value for key, value in entry.items() if key not in BESIDE}


def labels(config: Mapping[str, Any]) -> dict[str, str]:
    """Return what figures call the ensembles of an understood configuration, those with a name of their own there."""
    return {name: entry["label"] for name, entry in config["ensembles"].items() if "label" in entry}


def settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of an understood configuration the numbers are made from: all but words."""
    entries = {
        name: {key: entry[key] for key in entry if key != "label"} for name, entry in config["ensembles"].items()
    }
    return {key: value for key, value in config.items() if key not in WORDING} | {"ensembles": entries}


def _exact_spec(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the specification with numbers of their exact type, and None for what cannot be understood."""
    family = ensembles.families().get(raw["family"])
    kinds = {parameter.name: parameter.kind for parameter in family.parameters()} if family else {}
    read = {key: READERS[kinds.get(key, "number")] for key in raw}
    return {key: value if key == "family" else read[key](value) for key, value in raw.items()}


def _spec_problem(path: tuple[Any, ...], raw: Mapping[str, Any], problem: ensembles.SpecProblem) -> Problem:
    if problem.key is None:
        return Problem(path, problem.value, f"allowed: {problem.allowed}", problem.nearest)
    key = next((key for key in raw if str(key) == problem.key), problem.key)
    value = raw.get(key, MISSING)
    words = problem.allowed if value is MISSING else f"allowed: {problem.allowed}"
    family = ensembles.families().get(raw["family"])
    names = [parameter.name for parameter in family.parameters()] if family else []
    close = problem.nearest
    if family and key in raw and key != "family" and key not in names:
        words += f"; also {', '.join(BESIDE)}; entries of one name are merged, and null takes out what another file has"
        close = nearest_name(key, [*names, *BESIDE])
    return Problem((*path, key), value, words + colon_hint([key]), close)


def _width_problems(
    path: tuple[Any, ...], raw: Mapping[str, Any], ensemble: ensembles.Ensemble, widths: list[int]
) -> list[Problem]:
    refused = {width: reasons for width in widths if (reasons := ensemble.problems_at(width))}
    if not refused:
        return []
    listed = ", ".join(map(str, list(refused)[:5])) + (f" and {len(refused) - 5} more" if len(refused) > 5 else "")
    width = max(refused)
    where = f"not possible at d_k = {listed}" + (f"; at {width}" if len(refused) > 1 else "")
    return [Problem(path, raw, f"{where}: {reason}") for reason in refused[width]]


def _law_problems(
    path: tuple[Any, ...], raw: Mapping[str, Any], ensemble: ensembles.Ensemble, widths: list[int]
) -> list[Problem]:
    """Find parameters, each in its domain, whose law is beyond what numbers hold; narrow cells tell, in no time."""
    possible = (width for width in TOLD_AT if not (ensemble.undefined_at(width) or ensemble.problems_at(width)))
    width = next(possible, None)
    try:
        if widths and width:
            ensemble.exact(width)
    except ArithmeticError as error:
        words = f"the law of q·k at d_k = {width} is beyond what numbers hold ({error}); less extreme parameters"
        return [Problem(path, raw, words)]
    return []


def read_variants(understood: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Return the lists of variants of attention in canonical spelling, and what is wrong with them.

    `scalings` are measured wherever softmax is, so that they end before the normaliser.
    """
    spelled: dict[str, list[Any]] = {}
    problems: list[Problem] = []
    for key in ("scalings", "alternatives"):
        spelled[key] = []
        for position, text in enumerate(understood[key] if isinstance(understood[key], list) else []):
            path = (key, position)
            if not isinstance(text, str):
                continue
            try:
                variant = notation.parse(text)
            except notation.VariantError as error:
                problems.append(Problem(path, look_up(given, path), error.problem, error.nearest))
                continue
            if key == "scalings" and variant.normaliser is not None:
                words = "a normaliser in place of softmax belongs under alternatives"
                problems.append(Problem(path, look_up(given, path), words))
            if variant.text in spelled[key]:
                words = f"repeats {key}[{spelled[key].index(variant.text)}]; each variant once"
                problems.append(Problem(path, look_up(given, path), words))
            spelled[key].append(variant.text)
    return spelled, problems


def removal_problems(
    given: Mapping[str, Any], schema: Mapping[str, Any], written: list[Mapping[str, Any]]
) -> list[Problem]:
    """List the names that are removed by null though no configuration file and no default has them."""
    problems = []
    for key, part in schema["properties"].items():
        entries = read_mapping(given.get(key)) or {}
        if isinstance(part.get("additionalProperties"), Mapping) and written:
            known = {*part["default"], *(name for names in written for name in names.get(key, ()))}
            problems += [
                Problem((key, name), value, "there is no entry of this name to remove", nearest_name(name, known))
                for name, value in entries.items()
                if is_removed(name, value) and name not in known
            ]
    return problems


def find_file(name: str, folders: Iterable[Path | str]) -> Path | None:
    """Return the first path at which a file of this name exists in the folders, or None."""
    for folder in folders:
        path = Path(folder) / name
        try:
            if path.exists():
                return path
        except (OSError, ValueError):
            continue
    return None


def dump_problems(dumps: Mapping[str, Any], folders: list[Path | str]) -> list[Problem]:
    """List the dumps whose file is missing, unreadable or no .npz file, and those whose convention is none."""
    problems = []
    for name, dump in dumps.items():
        problems += _scaling_problems(("dumps", name, "scaling"), dump.get("scaling"))
        if not isinstance(dump.get("file"), str):
            continue
        path = find_file(dump["file"], folders)
        searched = " or ".join(dict.fromkeys(str(Path(folder).resolve()) for folder in folders))
        reason = f"no such file in {searched}" if path is None else _unnameable(path) or _unreadable(path)
        if reason:
            problems.append(Problem(("dumps", name, "file"), dump["file"], reason))
        if isinstance(dump.get("convention"), str):
            try:
                conventions.convention(dump["convention"], "convention")
            except InputError as error:
                problems.append(Problem(("dumps", name, "convention"), dump["convention"], str(error)))
    return problems


def _scaling_problems(path: tuple[Any, ...], text: object) -> list[Problem]:
    if not isinstance(text, str):
        return []
    try:
        constant = notation.parse(text).factor(1, 2) is not None
    except notation.VariantError as error:
        return [Problem(path, text, error.problem, error.nearest)]
    return [] if constant else [Problem(path, text, "a scale rule whose factor does not depend on the data is needed")]


def _unnameable(path: Path) -> str | None:
    found = PLACE_HOLDER.search(str(path))
    return f"{path} has {found[0]} in it, which Snakemake would take for its own; rename it" if found else None


def _unreadable(path: Path) -> str | None:
    if path.is_dir():
        return f"{path} is a folder; a NumPy .npz file is needed"
    if not path.is_file():  # To open a pipe waits for who writes into it.
        return f"{path} is no ordinary file"
    try:
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
        return _no_dump(path, state.st_mtime_ns, state.st_size)
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"


@functools.cache
def _no_dump(path: Path, *_state: int) -> str | None:
    """Say why a file is no dump, or return None; each state of it is read once, though two configurations name it."""
    try:
        enumeration.read_dump(path)
    except InputError as error:
        return str(error)
    return None


def misnamed(specs: Mapping[str, Any], catalogue: Mapping[str, Any]) -> list[Problem]:
    """List the ensembles that have a name of the catalogue, by which figures call them, and are something else."""
    problems = []
    words = "figures call this ensemble by its name, which says otherwise; allowed: {}, or another name for the entry"
    for name in filter(catalogue.__contains__, specs):
        kept = {"family": catalogue[name]["family"], **SAID_BY_NAME.get(name, {})}
        problems += [
            Problem(("ensembles", name, key), specs[name][key], words.format(value))
            for key, value in kept.items()
            if specs[name].get(key, value) != value
        ]
    return problems


def periodic_names(**entries: Iterable[object]) -> list[Problem]:
    """List the names of entries, by their key, that Snakemake would not take in the path of a file."""
    words = "the name ends in twenty times the same; take another"
    return [
        Problem((key, name), MISSING, words)
        for key, names in entries.items()
        for name in names
        if isinstance(name, str) and PERIODIC.match(name)
    ]


def training_problems(training: Mapping[str, Any]) -> list[Problem]:
    """List the experiments whose known rates, where these count, are not one for each scale rule."""
    problems = []
    for name, entry in training.items():
        known, rules = entry.get("around"), entry.get("scalings")
        lists = isinstance(known, list) and isinstance(rules, list) and "rates" not in entry
        if lists and len(known) != len(rules):
            words = f"one for each of the {len(rules)} scale rules of this experiment is needed, or `rates` for all"
            problems.append(Problem(("training", name, "around"), known, words))
    return problems


def clashes(
    names: Mapping[str, Any], dumps: Iterable[str], scalings: list[str], widths: list[Any], n_keys: list[Any]
) -> list[Problem]:
    """List values that are sound by themselves and not together: names of heads, rules and sizes, no softmax at all."""
    problems = [
        Problem(("ensembles", name), MISSING, f"the tables use this name for a head of the dump {dump}; take another")
        for name in names
        for dump in dumps
        if re.fullmatch(rf"{re.escape(str(dump))}_l\d+_h\d+", str(name))
    ]
    if names and not any(entry.get("softmax", True) for entry in names.values()):
        problems.append(Problem(("ensembles",), MISSING, "at least one ensemble needs its softmax measured"))
    keys, width = max(n_keys, default=0), max(widths, default=0)
    whole = [text for text in scalings if notation.parse(text).factor(64, 64) is None]
    if whole and (keys > MAX_HELD_KEYS or keys * width > MAX_KEY_MATRIX):
        words = (
            f"with {', '.join(whole)} under scalings all keys of a row are held at once; with a width of {width} these "
            f"are {keys * width} numbers; allowed: at most {MAX_KEY_MATRIX}, of at most {MAX_HELD_KEYS} keys"
        )
        problems.append(Problem(("n_keys",), keys, words))
    return problems
