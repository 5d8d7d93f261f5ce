"""Every number in the prose of the page stands in the results or the configuration, or is a constant named here.

The prose is walked in both languages: the answer, the questions, readings, captions, alternative texts, notes.
"""

import json
import math

import example
import numpy as np
import pandas as pd
import pytest
import synthetic_results
from number_walker import Known, Prose, numbers

from sqrtdk.figures import catalogue, panels, score_density
from sqrtdk.results import reading

LANGUAGES = ("en", "zh")
LEFT_OUT = {"", "methods", "provenance", "citing", "references"}
"""Sections without results: definitions, hashes, sources."""
CONSTANTS = (
    *(0, 1, 2, 0.5, 0.95),  # what is asked about, pairs, halves, the level of intervals
    *(0.01, 0.05, 0.1),  # tolerances and margins that the words name
    *(1.96, 3, 10),  # half width of an interval and what counts as different, in standard errors; base of logarithms
)
LARGE = {"gradient_distribution", "training", "score_histograms", "local_exponents"}
"""Tables in which nearly every short number stands somewhere."""
EVERYWHERE = {"atlas", "said", "practice", "check"}
"""Sections about the whole run, which may name any other table."""


def by_group(rows: pd.DataFrame, *keys: str):
    """Yield the rows of each combination of keys in the order of d_k."""
    for _, part in rows.groupby(list(keys), sort=False):
        yield part.sort_values("d_k")


def crossings(rows: pd.DataFrame, column: str, height: float, *keys: str) -> list[float]:
    found = (panels.crossing(part["d_k"], part[column], height) for part in by_group(rows, *keys))
    return [place for place in found if place is not None]


def variance_law(tables, data, known: Known) -> None:
    cells = data.dropna(subset=["variance"])
    known.add((cells["variance_se"] / cells["variance"]).agg(["max", "median"])).add((cells["ratio"] - 1).abs().max())
    known.add_pairs(
        (cells["variance"] / cells["d_k"]) ** 0.5, cells["variance_se"] / 2 / (cells["variance"] * cells["d_k"]) ** 0.5
    )
    for part in by_group(cells, "ensemble"):
        first, last = part.iloc[0], part.iloc[-1]
        for one, other in ((last, first), (first, last)):
            ratio = one["variance"] / other["variance"]
            known.add_pairs(
                [ratio], [ratio * math.hypot(*(row["variance_se"] / row["variance"] for row in (one, other)))]
            )
            known.add_pairs([ratio], [ratio * one["variance_se"] / one["variance"]])


def local_exponents(tables, data, known: Known) -> None:
    for part in by_group(data.dropna(subset=["exact"]), "ensemble"):
        known.add(crossings(part, "exact", part["exact"].iloc[[0, -1]].mean(), "ensemble"))


def density(tables, data, known: Known) -> None:
    known.add(score_density._COUNTED)
    for part in by_group(data[data["panel"] == "density"], "d_k"):
        part = part.sort_values("low")
        inner = np.isfinite(part["high"])
        known.add((part["share"].cumsum() - part["exact_share"].cumsum()).abs()[inner].max())
    bins = data[data["panel"] == "density"]
    outside = bins.loc[~np.isfinite(bins["low"]) | ~np.isfinite(bins["high"]), "count"].sum()
    known.add(outside / bins.groupby("d_k")["n_scores"].first().sum())


def freezing(tables, data, known: Known) -> None:
    curves, ranges = tables["random_energy_curves"], tables["asymptotic_ranges"]
    halves = curves[curves["measure"] == "participation_ratio"].rename(columns={"logit_std": "d_k"})
    known.add(crossings(halves, "exact", 0.5, "n_keys")).add(np.sqrt(2 * np.log(data["n_keys"])))
    for end in ("from", "to"):
        known.add(ranges[f"{end}_logit_std"] / ranges["critical_logit_std"])
    energy = tables["random_energy"]
    trusted = energy[
        energy["trusted"].astype(str).str.lower().eq("true") & energy["exact"].notna() & (energy["se"] > 0)
    ]
    apart = ((trusted["estimate"] - trusted["exact"]) / trusted["se"]).abs()
    known.add([len(trusted), apart.max(), (apart < 1.96).mean()])


def saturation(tables, data, known: Known) -> None:
    known.add(crossings(data[data["measure"] == "max_weight"], "estimate", 0.5, "scaling", "n_keys"))


def jacobian(tables, data, known: Known) -> None:
    from sqrtdk.figures import energy_curves

    curves = tables["random_energy_curves"]
    for n in set(data["n_keys"]):
        known.add(energy_curves.peak(curves, n, "jacobian_frobenius") or ())


def gradients(tables, data, known: Known) -> None:
    crossed = tables["key_crossovers"].dropna(subset=["d_k_star"])
    known.add_pairs(crossed["d_k_star"], (crossed["ci_high"] - crossed["ci_low"]) / 2 / 1.959963984540054)
    ratios = tables["gradient_by_keys"]
    known.add_pairs(ratios["ratio"], (ratios["high"] - ratios["low"]) / 2 / 1.959963984540054)
    known.add([tables["gradient_by_keys"]["d_k"].min(), tables["gradient_by_keys"]["d_k"].max(), 1e-3])


def planted_key(tables, data, known: Known) -> None:
    told = data[(data["se"] > 0) & (data["theory"] < 0.999)]
    inside = (told["low"] <= told["theory"]) & (told["theory"] <= told["high"])
    known.add([len(told), inside.sum(), inside.mean()]).add(data["d_k"] ** -0.5)
    ratio = (data["capacity"] / data["formula"]).dropna()
    known.add(np.maximum(ratio, 1 / ratio))


def alternatives(tables, data, known: Known) -> None:
    spread = data[data["measure"] == "logit_std"].copy()
    known.add((spread["se"] / spread["estimate"]).max())
    usual = spread[spread["variant"] == "1/sqrt(d_k)"].set_index("d_k")
    for value in ("estimate", "exact", "drawn_at"):
        known.add(spread[value] / spread["d_k"].map(usual[value]))
    rules = data[data["kind"].isin(["rule", "model", "mistake"])]
    told = spread[spread["exact"].notna() & (spread["se"] > 1e-9)]
    known.add([rules["variant"].nunique(), data["variant"].nunique(), len(told)])


def depth(tables, data, known: Known) -> None:
    from scipy.stats import t

    rows = tables["depth"].query("measure == 'logit_variance_ratio' and se > 0").dropna(subset=["estimate"])
    inside = (rows["estimate"] - 1).abs() <= t.ppf(0.975, rows["n_stacks"] - 1) * rows["se"]
    known.add([len(rows), inside.sum(), inside.mean()])


def rounding(tables, data, known: Known) -> None:
    wide = data.pivot_table(index=["rounded", "format", "d_k", "n_keys"], columns="scaling", values="estimate")
    known.add(wide["none"] / wide["1/sqrt(d_k)"]).add(wide["1/sqrt(d_k)"] / wide["none"]).add(data["d_k"] ** 0.5)


def training_curves(tables, data, known: Known) -> None:
    moved = tables["training_transfer"][["shift", "shift_low", "shift_high"]].to_numpy(float)
    known.add(10.0**moved)
    known.add(tables["training_verdicts"][["value", "reference_value"]].to_numpy(float))


def real_heads(tables, data, known: Known) -> None:
    known.add(tables["real_heads"]["uniform_entropy"])
    spreads = ["within_row_logit_std", "sinkless_row_logit_std"]
    for unit in ("dump", "model"):
        for _, heads in data.groupby(unit):
            near = heads["within_row_logit_std"].between(0.9, 1.1)
            known.add([*heads[spreads].median(), near.sum(), len(heads), (heads["sinks"] > 0).sum()])
    shares = data["within_row_logit_std"].between(0.9, 1.1).groupby(data["model"]).mean()
    known.add([(shares > 0.5).sum(), len(shares)])


def calibration(tables, data, known: Known) -> None:
    from sqrtdk.results import distances
    from sqrtdk.statistics.calibration import calibrate

    found = [distances.moments(tables["moments"])]
    found.append(distances.rows(tables["softmax_saturation"], tables["gradient_magnitude"]))
    table = pd.concat(found)
    known.add([len(table), (~table["trusted"]).sum()])
    for _, part in table.groupby("quantity"):
        ends = calibrate(part["score"].to_numpy(), part["unit"].to_numpy())
        known.add([len(part), (part["z"].abs() <= 1.959963984540054).sum(), part["z"].abs().max(), ends.share])
        known.add([100 * ends.share_low, 100 * ends.share_high, ends.ratio, ends.ratio_low, ends.ratio_high])


FOLLOWS = {
    "variance-law": variance_law,
    "local-exponents": local_exponents,
    "score-density": density,
    "freezing": freezing,
    "saturation": saturation,
    "jacobian": jacobian,
    "gradients": gradients,
    "planted-key": planted_key,
    "alternatives": alternatives,
    "depth": depth,
    "rounding": rounding,
    "training-curves": training_curves,
    "real-heads": real_heads,
    "calibration": calibration,
}
"""What follows from the tables of a figure by calculation, once more and on its own."""


class Run:
    """A page with the results that it was made from."""

    def __init__(self, folder, page: str):
        self.prose = {section: texts for section, texts in Prose(page).found.items() if section not in LEFT_OUT}
        self.tables = reading.tables(sorted(folder.glob("*.csv")))
        self.data = {name: pd.read_csv(folder / f"figures/fig-{name}.csv") for name in catalogue.names()}
        configuration = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))["configuration"]
        self.common = Known().add(CONSTANTS).add(list(leaves(configuration)))
        self.key = key_numbers(json.loads((folder / "out/numbers.json").read_text(encoding="utf-8"))["numbers"])
        self.key.add_logits(self.tables["moments"])
        self.whole = Known()
        for name, table in self.tables.items():
            if name not in LARGE:
                self.whole.add_table(table)
        frontier = self.tables["freezing_frontier"].dropna(subset=["half_d_k"])
        context = np.log([131_072, *frontier["n_keys"]])
        self.whole.add(131_072).add(np.interp(context[0], context[1:], frontier["half_d_k"]))

    def sources(self, section: str) -> list[Known]:
        """Return where the numbers of a section may stand."""
        if section in EVERYWHERE or section.startswith("chapter-"):
            return [self.common, self.key, self.whole]
        name = section.removeprefix("fig-")
        if name == section:
            return [self.common, self.key]
        own, data = Known().add(catalogue.order(catalogue.places()[name].number)[1]), self.data[name]
        for table in catalogue.load(name).INPUTS:
            own.add_table(self.tables[table])
        own.add_table(data)
        FOLLOWS.get(name, lambda *_: None)(self.tables, data, own)
        return [self.common, self.key, own]

    def walk(self, change=lambda number: number):
        """Yield each number of the prose with its section, its text, and whether the results hold it."""
        for section, texts in self.prose.items():
            sources = self.sources(section)
            for text in texts:
                for number in numbers(text):
                    changed = change(number)
                    yield section, number.text, text, any(source.holds(changed) for source in sources)


def leaves(value):
    """Yield the numbers of nested mappings and lists."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from leaves(one)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def key_numbers(found: dict) -> Known:
    known = Known()
    for number in found.values():
        known.add([number["value"], *(end for end in number["interval"] or () if end is not None)])
        known.add(list(leaves(number["source"]["row"]))).add([] if number["n"] is None else number["n"])
        if number["se"]:
            known.add_pairs([number["value"]], [number["se"]])
        if number["unit"] == "ratio" and number["value"]:
            known.add(1 / number["value"])  # what is 4 times smaller is a ratio of 0.25
    return known


@pytest.fixture(scope="module", params=LANGUAGES)
def run(request, tmp_path_factory) -> Run:
    folder, tables = tmp_path_factory.mktemp("walked"), example.frames()
    extra = synthetic_results.frames() | {"score_histograms": synthetic_results.histograms((1, 64), 20_000)}
    example.draw_figures(folder, tables, request.param, pictures=False)
    page = example.render(folder, tables, language=request.param)
    example.write_latex(folder, tables, language=request.param)
    synthetic_results.write(folder, {name: extra[name] for name in extra.keys() - tables.keys()})
    return Run(folder, page)


def test_every_number_is_in_the_results(run):
    walked = list(run.walk())
    unknown = [
        f"{section}: {number} in: {text[max(text.find(number) - 60, 0) : text.find(number) + 40]}"
        for section, number, text, known in walked
        if not known
    ]
    assert not unknown, "\n".join(unknown)
    assert len(walked) > 1000
    assert {"answer", "chapter-scores", "chapter-heads", "atlas", "fig-hero"} <= {section for section, *_ in walked}


def test_other_numbers_would_be_seen(run):
    """Negative control: with another last digit few numbers are found by chance, and hardly one with its error."""
    changed = list(run.walk(lambda number: number.other()))
    precise = [known for _, text, _, known in changed if sum(sign.isdigit() for sign in text) >= 3]
    errors = [known for _, text, _, known in changed if "(" in text or "±" in text]
    assert np.mean(precise) < 0.45
    assert np.mean(errors) < 0.3
