"""Inputs of a report, small and made from closed forms, and the page rendered from them."""

import dataclasses
import functools
import json
from pathlib import Path

import article_cases
import synthetic_alternatives
import synthetic_claims
import synthetic_maps
import synthetic_planted
import synthetic_results
import synthetic_start
import synthetic_training
import synthetic_vanishing
import yaml

import render_report
import sharing
import write_latex as write_latex_program
from sqrtdk.claims import ledger
from sqrtdk.figures import catalogue, saving
from sqrtdk.report import provenance
from sqrtdk.results import reading, writing
from sqrtdk.sampling import ensembles, laws, local_laws
from sqrtdk.studies import normalisation, one_query, saturation
from sqrtdk.studies import typical_rows as typical

ROOT = Path(__file__).resolve().parents[2]
TITLE = "Why attention scores are divided by √d_k"
SPECS = {
    "gaussian": {"family": "gaussian"},
    "rademacher": {"family": "rademacher"},
    "equicorrelated": {"family": "equicorrelated", "query_rho": 0.3, "key_rho": 0.3},
    "aligned": {"family": "aligned", "rho": 0.5},
}
HEAVY = {"student_t_3": {"family": "student_t", "df": 3}}
SCALINGS = ("none", "1/sqrt(d_k)", "1/d_k")
FIGURE = {
    "id": "exponents",
    "number": "1",
    "part": "atlas",
    "topic": "scores",
    "title": "An example",
    "question": "How does q·k grow with d_k?",
    "caption": "Caption of the example: d_k against √d_k.",
    "alt": "A line that rises.",
    "reading": "The line rises.",
    "caveat": "It is an example.",
    "inputs": ["moments"],
}
DRAWN = sorted({f"results/{table}.csv" for name in catalogue.names() for table in catalogue.load(name).INPUTS})
RULES = {
    "simulate_moments": {"after": [], "makes": ["results/cells/moments/{ensemble}/{part}.npz"], "keys": ["seed"]},
    "collect_moments": {"after": ["simulate_moments"], "makes": DRAWN, "keys": ["d_k"]},
    "draw_figure": {"after": ["collect_moments"], "makes": ["results/figures/fig-{figure}.svg"], "keys": []},
    "render_report": {
        "after": ["collect_moments", "draw_figure"],
        "makes": ["results/report.html"],
        "keys": ["language", "title"],
    },
}
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 200">'
    '<g id="line"><path d="M 10 190 L 390 10" stroke="#1a1a1a" fill="none"/></g></svg>'
)


@functools.lru_cache(maxsize=8)
@sharing.shared
def frames(names=tuple(SPECS), d_k=(1, 4, 16, 64, 256), n_keys=(16, 64), scalings=SCALINGS, heads=6) -> dict:
    """Return the result tables that the report reads, by name."""
    import pandas as pd

    moments = synthetic_results.moments(names, d_k, heads=2 if heads else 0)
    rows = ([], [], [])
    for name in names:
        for d in d_k:
            for table, part in zip(rows, _cell(name, d, n_keys, scalings), strict=True):
                table += part
    found = {
        "moments": moments,
        "variance_laws": laws.fit_variance_laws(moments, 64),
        "mean_laws": laws.fit_mean_laws(moments),
        "spread_laws": laws.fit_spread_laws(moments, 64),
        "local_exponents": local_laws.local_exponents(moments),
        "softmax_saturation": reading.frame("softmax_saturation", [row | {"law": None} for row in rows[0]]),
        "gradient_magnitude": reading.frame("gradient_magnitude", rows[1]),
        "gradient_distribution": reading.frame("gradient_distribution", rows[2]),
        **synthetic_vanishing.compared(reading.frame("gradient_magnitude", rows[1])),
        **synthetic_vanishing.by_keys(),
        "typical_rows": pd.DataFrame(_typical_rows(d_k, n_keys, scalings)),
        "real_heads": synthetic_results.real_heads(layers=1, heads=max(heads, 1)).head(heads),
        "audit": synthetic_results.synthetic_audit.table().head(99 if heads else 0),
        **synthetic_training.tables(scalings=scalings),
        **_always(),
    }
    decided = ledger.decide(found, {name: (SPECS | HEAVY).get(name, SPECS["gaussian"]) for name in names})
    return found | {"claims": reading.frame("claims", map(ledger.row, decided))}


@functools.cache
def _cell(name: str, d_k: int, n_keys: tuple, scalings: tuple) -> tuple:
    ensemble = ensembles.build((SPECS | HEAVY).get(name, SPECS["gaussian"]))
    return saturation.simulate_cell(ensemble, d_k, n_keys, scalings, 1, name, n_logits=4000)


@functools.cache
def _typical_rows(d_k: tuple, n_keys: tuple, scalings: tuple) -> list[dict]:
    return typical.typical_rows(d_k, n_keys, scalings, 3000, 1)


@functools.cache
@sharing.shared
def _always() -> dict:
    """Return the tables that are those of every run."""
    import pandas as pd

    return {
        "one_query": reading.frame("one_query", one_query.one_query(1)),
        "normalisers": pd.DataFrame(normalisation.simulate_normalisers(1, 4000)),
        "linear_attention": pd.DataFrame(normalisation.simulate_kernels(1, n_blocks=8)),
        **synthetic_start.frames(),
        "alternatives": synthetic_alternatives.table(),
        "planted_capacity": synthetic_planted.tables()["planted_capacity"],
        "freezing_frontier": synthetic_maps.freezing_frontier(),
        **synthetic_planted.examples(),
        "claim_checks": pd.DataFrame(synthetic_claims.rows_of_checks()).astype({"exact": float}),
    }


def configuration(names=tuple(SPECS), title: str = TITLE) -> dict:
    """Return a configuration as provenance.json holds it."""
    return {
        "seed": 1,
        "title": title,
        "precision": 0.001,
        "max_scalars": 1.5e8,
        "tail_d_k": 64,
        "ensembles": {name: (SPECS | HEAVY).get(name, SPECS["gaussian"]) for name in names},
        "dumps": yaml.safe_load((ROOT / "workflow/schemas/config.default.yaml").read_text(encoding="utf-8"))["dumps"],
    }


def write_figure(folder: Path, record: dict = FIGURE, svg: str = SVG, **texts: str) -> None:
    """Write the files of one figure that the page takes up; `texts` are those of some files, by suffix."""
    folder.mkdir(parents=True, exist_ok=True)
    usual = {"json": json.dumps(record), "svg": svg, "csv": "d_k,variance\n1,1.0\n"}
    usual |= {"bib": "@misc{example}\n", "tex": "\\includegraphics{example}\n"}
    for suffix, text in (usual | texts).items():
        (folder / f"fig-{record['id']}.{suffix}").write_text(text, encoding="utf-8")


def write_inputs(folder: Path, tables=None, settings=None, default=None, commit: str = "0123abc") -> dict:
    """Write all inputs below a folder, one small figure unless it has some, and return what `render_report` takes."""
    if not (folder / "figures").exists():
        write_figure(folder / "figures")
    tables = tables or frames()
    simulated = tables["moments"][tables["moments"]["stopped_by"] != "enumerated"]
    settings = settings or configuration(tuple(dict.fromkeys(simulated["ensemble"])))
    synthetic_results.write(folder, tables)
    own = {name: tables[name] for name in ("training_summary", "training_growth")}
    synthetic_results.write(folder / "longer", article_cases.shipped() | own | {"start_rate": halves()})
    record = provenance.record(settings, default or settings | {"seed": 2}, {"Snakefile": "ab" * 32}, commit, RULES)
    (folder / "provenance.json").write_text(json.dumps(record), encoding="utf-8")
    return {
        "results": [folder / f"{name}.csv" for name in tables],
        "shipped_training": sorted((folder / "longer").iterdir()),
        "figures": sorted((folder / "figures").iterdir()),
        "provenance": folder / "provenance.json",
        "citation": ROOT / "CITATION.cff",
        "title": settings["title"],
        "language": "en",
        "labels": {},
        "sources": [ROOT / "report"],
        "output": folder / "report.html",
    }


@functools.cache
def halves():
    """Return start_rate.csv of a longer training run."""
    rules = ("none", "none + start", "none + rate", "1/sqrt(d_k)")
    return synthetic_training.tables(scalings=rules, d_k=(16, 64))["start_rate"]


def render(folder: Path, tables=None, settings=None, default=None, commit: str = "0123abc", **changes) -> str:
    """Render a page from inputs that are written below a folder, and return its text."""
    return rendered(write_inputs(folder, tables, settings, default, commit), **changes)


def rendered(inputs: dict, **changes) -> str:
    """Render a page from written inputs and return its text."""
    arguments = inputs | changes
    render_report.render_report(**arguments)
    return arguments["output"].read_text(encoding="utf-8")


def write_latex(
    folder: Path, tables=None, settings=None, language: str = "en", manifest: dict | None = None, labels=None
) -> Path:
    """Write what a text takes up below `folder`/out, from the inputs that a page is rendered from, and return it."""
    inputs = write_inputs(folder, tables, settings)
    (folder / "manifest.json").write_text(json.dumps({"figures": manifest or {}}), encoding="utf-8")
    out = folder / "out"
    write_latex_program.write_latex(
        *(inputs["results"], inputs["shipped_training"], inputs["provenance"], folder / "manifest.json", language),
        labels or {},
        sorted((ROOT / "report/words" / language).glob("*.yaml")),
        ROOT / "report/references.bib",
        ROOT / "workflow/schemas/summary.schema.json",
        *(out / "latex", out / "numbers.json", out / "summary.json", out / "summary.schema.json"),
    )
    return out


def draw_figures(folder: Path, tables: dict, language: str = "en", pictures: bool = True) -> None:
    """Draw every figure of the project, as the page takes them up; `pictures` may be left out."""
    from sqrtdk.figures import speaking
    from sqrtdk.words import texts as words

    say = words.Words(words.read(ROOT / "report", language))
    drawn, tables = drawings() if pictures else {}, with_others(tables)
    for name, place in catalogue.places().items():
        module = catalogue.load(name)
        inputs = {table: tables[table] for table in module.INPUTS}
        spoken = speaking.words(say, name, speaking.record(module.describe(inputs)))
        record = {"id": name, "inputs": list(module.INPUTS)} | dataclasses.asdict(place) | spoken
        write_figure(folder / "figures", record, drawn.get(name, SVG))
        writing.write_frame(folder / "figures" / f"fig-{name}.csv", module.data(inputs), digits=17)


def with_others(tables: dict) -> dict:
    """Add tables that the page itself does not read, which figures are drawn from: those of the synthetic run."""
    return synthetic_results.frames() | {"score_histograms": synthetic_results.histograms((1, 64), 20_000)} | tables


@functools.cache
@sharing.shared
def drawings() -> dict[str, str]:
    """Return the pictures of the figures of the usual tables, which are the same in every language."""
    tables, found = with_others(frames()), {}
    for name in catalogue.names():
        module = catalogue.load(name)
        found[name] = saving.save(module.draw({table: tables[table] for table in module.INPUTS}), "svg").decode()
    return found


def leaves(tree: dict, before: str = "") -> dict[str, str]:
    """Return the texts of the words by their dotted keys."""
    found = {}
    for key, value in tree.items():
        found |= leaves(value, f"{before}{key}.") if isinstance(value, dict) else {f"{before}{key}": value}
    return found


def languages() -> list[str]:
    """Return the languages that have all words of the report."""
    from sqrtdk.words import texts as words

    found = {path.name: leaves(words.read(ROOT / "report", path.name)) for path in (ROOT / "report/words").iterdir()}
    return [name for name, texts in sorted(found.items()) if texts.keys() >= found["en"].keys()]
