"""The key numbers of the studies: matching keys, layers before training, training, trained heads, and its checks."""

import itertools
from collections.abc import Iterator
from typing import Any

import pandas as pd

from sqrtdk.report.comparing import MARGIN
from sqrtdk.report.facts import SHARE, KeyNumber, cell, count, said
from sqrtdk.report.macro_names import letters
from sqrtdk.report.setting import WANTED_D_K
from sqrtdk.report.tables.cells import missing, text
from sqrtdk.report.tables.normalisers import N_KEYS, NARROW, WIDE
from sqrtdk.results import distances
from sqrtdk.results.grid import nearest
from sqrtdk.results.picking import find
from sqrtdk.statistics import calibration
from sqrtdk.studies.initialisation import LABELS
from sqrtdk.studies.normalisation import BETWEEN
from sqrtdk.words.sentences import Phrase, Sentence


def of_run(frames: dict[str, pd.DataFrame]) -> Iterator[KeyNumber]:
    """Yield the numbers of the studies, by name; a table that a run need not have may be missing."""
    yield from _rules(frames.get("alternatives"))
    yield from _practice(frames)
    yield from _planted(frames.get("planted_capacity"))
    yield from _start(frames.get("initialisation"))
    yield from _training(frames["training_verdicts"], frames["training_summary"])
    yield from _heads(frames["real_heads"])
    yield from _trust(frames)
    yield from _claims(frames.get("claims"))


QUOTED_RULES = ("1/d_k", "8/d_k", "d_model_for_d_k", "heads_for_d_k", "applied_twice", "qk_norm_and_root")
"""Scale rules that texts speak of beside no factor and 1/√d_k, whose numbers are those of the headline."""
SCHEMES = {
    "weights": ("xavier_uniform", "xavier_fused", "linear_default", "kaiming_normal", "t5"),
    "heads": ("plain", "plain_unscaled", "rmsnorm", "rmsnorm_unscaled", "l2_1", "l2_10", "l2_sqrt", "l2_twice"),
}
"""Layers with initial weights that texts speak of."""
BASE = 512
"""Width of their model."""


def _rules(frame: pd.DataFrame | None) -> Iterator[KeyNumber]:
    """Yield what other factors make of standard normal queries and keys, at the width and keys nearest to 64."""
    if frame is None or frame.empty:
        return
    d_k, n_keys = nearest(frame["d_k"], WANTED_D_K), nearest(frame["n_keys"], WANTED_D_K)
    here = frame[(frame["d_k"] == d_k) & (frame["n_keys"] == n_keys) & frame["variant"].isin(QUOTED_RULES)]
    for row in here.to_dict("records"):
        word = {"logit_std": "Std", "effective_keys": "Keys"}.get(row["measure"])
        if word is None or missing(row["estimate"]):
            continue
        yield cell(
            f"{letters(row['variant'])}{word}",
            *(row, ("variant", "d_k", "n_keys", "measure"), ("estimate", "se")),
            said(f"rules.{word}", rule=row["variant"], d_k=d_k, n_keys=n_keys),
            "alternatives.csv",
            known="exact",
            n=int(row["n_rows"]),
        )


_PRACTICE: tuple[tuple[str, str, str, dict[Any, str], dict[str, Any]], ...] = (
    (
        *("alternatives", "rules.Keys", "variant"),
        {"1/sqrt(d_k)": "LongOneOverSqrtDKKeys", "ssmax": "LongSsmaxKeys"},
        {"measure": "effective_keys"},
    ),
    (
        *("linear_attention", "practice.linear", "attention"),
        {"elu+1": "EluScaleChange", "favor+": "FavorScaleChange"},
        {"scaling": BETWEEN},
    ),
    (
        *("normalisers", "practice.sparse", "logit_std"),
        {NARROW: "SparsemaxNoGradientNarrow", WIDE: "SparsemaxNoGradientWide"},
        {"normaliser": "sparsemax", "n_keys": N_KEYS, "measure": "zero_gradient_mass"},
    ),
    (
        *("rounding", "practice.bits", "scaling"),
        {"none": "RoundingChangeUnscaled", "1/sqrt(d_k)": "RoundingChangeOneOverSqrtDK"},
        {"format": "bfloat16", "rounded": "logits", "measure": "total_variation"},
    ),
)
"""Numbers of what to use when: table, description, the column whose values have a name each, and the other columns."""


def _practice(frames: dict[str, pd.DataFrame]) -> Iterator[KeyNumber]:
    """Yield what is said of what to use when, at the width nearest to 64 and over the most keys unless told."""
    for table, told, column, names, where in _PRACTICE:
        frame = frames.get(table)
        if frame is None or frame.empty:
            continue
        place = {"n_keys": int(frame["n_keys"].max())} | where
        place |= {"d_k": nearest(frame["d_k"], WANTED_D_K)} if "d_k" in frame else {}
        for value, name in names.items():
            row = find(frame, **place, **{column: value})
            if row is not None:
                yield cell(
                    *(name, row, (column, *place), ("estimate", "se")),
                    *(said(told, rule=value, **place | {column: value}), f"{table}.csv"),
                    n=row["n_rows"],
                    unit="1" if table == "alternatives" else SHARE,
                )


def _planted(frame: pd.DataFrame | None) -> Iterator[KeyNumber]:
    """Yield among how many keys one that matches its query keeps half of the weight, at the width nearest to 64."""
    if frame is None or frame.empty:
        return
    frame = frame[(frame["measure"] == "weight") & (frame["rho"] == frame["rho"].max())]
    for row in frame[frame["d_k"] == nearest(frame["d_k"], WANTED_D_K)].to_dict("records"):
        if not missing(row["capacity"]):
            told = said("capacity", rule=row["scaling"], d_k=row["d_k"])
            keys = ("d_k", "rho", "scaling", "measure")
            yield cell(f"Capacity{letters(row['scaling'])}", row, keys, ("capacity",), told, "planted_capacity.csv")


def _start(frame: pd.DataFrame | None) -> Iterator[KeyNumber]:
    """Yield the standard deviation of the logits that initial weights and normalisations leave."""
    if frame is None or frame.empty:
        return
    rows = frame[(frame["quantity"] == "logit_std") & frame["d_model"].isin([BASE, 2 * BASE])]
    for row in rows.to_dict("records"):
        if row["scheme"] in SCHEMES.get(row["group"], ()):
            layer = LABELS[row["group"], row["scheme"]]
            yield cell(
                f"{'Wide' if row['d_model'] > BASE else ''}{letters(row['group'])}{letters(row['scheme'])}Std",
                *(row, ("group", "scheme", "d_model", "quantity"), ("estimate", "se")),
                said(
                    f"start.{row['group']}",
                    scheme=layer,
                    d_model=row["d_model"],
                    d_k=row["d_k"],
                ),
                "initialisation.csv",
                known="exact",
                n=int(row["n_blocks"]),
            )


def training_name(experiment: str, scaling: str, d_k: int) -> str:
    """Return how the names of the numbers of one trained rule begin."""
    return "".join(map(letters, (experiment, scaling, str(d_k))))


def _training(verdicts: pd.DataFrame, summary: pd.DataFrame) -> Iterator[KeyNumber]:
    """Yield the comparisons of each experiment: all of them at the width nearest to 64, losses at every width."""
    for place, (experiment, rows) in enumerate(verdicts.groupby("experiment", sort=False)):
        yield from _experiment(rows, summary[summary["experiment"] == experiment], headline=place == 0)


def _experiment(rows: pd.DataFrame, summary: pd.DataFrame, headline: bool) -> Iterator[KeyNumber]:
    d_k = nearest(rows["d_k"], WANTED_D_K)
    keys = ("experiment", "scaling", "d_k", "comparison", "margin")
    for row in rows[(rows["d_k"] == d_k) | (rows["comparison"] == "loss")].to_dict("records"):
        if missing(row["estimate"]):
            continue
        yield cell(
            training_name(row["experiment"], row["scaling"], row["d_k"]) + letters(row["comparison"]),
            *(row, keys, ("estimate", "low", "high")),
            said(f"training.{row['comparison']}", rule=row["scaling"], **row | _experiment_named(row)),
            "training_verdicts.csv",
            n=int(row["n_seeds"]),
            unit=row["unit"],
            headline=headline and row["d_k"] == d_k and row["comparison"] == "loss",
        )
    best = rows[(rows["d_k"] == d_k) & (rows["comparison"] == "loss")].to_dict("records")
    for column, row in [*(("rate", row) for row in best), *(("reference_rate", row) for row in best[:1])]:
        rule, what = (letters(row["scaling"]), "Rate") if column == "rate" else ("", "ReferenceRate")
        name = f"{letters(row['experiment'])}{rule}{letters(str(d_k))}{what}"
        told = said(f"training.{column}", rule=row["scaling"], **row | _experiment_named(row))
        yield cell(name, row, keys, (column,), told, "training_verdicts.csv")
    words = (
        ("right", "accuracy", "Right", SHARE),
        ("steps", "steps", "Steps", "1"),
        ("final", "loss", "FinalLoss", "nats"),
    )
    here = summary[summary["d_k"] == d_k].to_dict("records")
    for row, (word, column, suffix, unit) in itertools.product(here, words):
        ends = (column,) if column == "steps" else (column, f"{column}_low", f"{column}_high")
        told = said(f"training.{word}", rule=row["scaling"], **row | _experiment_named(row))
        name = training_name(row["experiment"], row["scaling"], row["d_k"]) + suffix
        yield cell(name, row, keys[:3], ends, told, "training_summary.csv", n=int(row["n_seeds"]), unit=unit)


def _experiment_named(row: dict[str, Any]) -> dict[str, Any]:
    """Name an experiment that is called like its task as readers know the task."""
    return {"experiment": Sentence(f"article.tasks.{row['task']}")} if row["experiment"] == row["task"] else {}


def _read(heads: pd.DataFrame, several: bool) -> str | Sentence:
    """Name a model, with what it read where it read several inputs."""
    first = heads.iloc[0]
    told = {"model": first["model"], "input": Phrase(first["input"])} if several and text(first["input"]) else {}
    return Sentence("numbers.read", told) if told else str(first["model"])


def _heads(frame: pd.DataFrame) -> Iterator[KeyNumber]:
    for dump, heads in [] if frame.empty else frame.groupby("dump", sort=False):
        name, source, where = letters(dump), "real_heads.csv", {"dump": dump}
        read = _read(heads, frame.loc[frame["model"] == heads["model"].iloc[0], "dump"].nunique() > 1)
        margin = MARGIN
        near = int(((heads["logit_std"] - 1).abs() <= margin).sum())
        near_one: dict[str, Any] = {"dump": read, "margin": f"{margin:g}"}
        yield count(f"{name}HeadsNearOne", near, "heads_near", source, where, headline=True, **near_one)
        yield count(f"{name}Heads", len(heads), "heads_of", source, where, dump=read)
        for end, place in (("Lowest", heads["logit_std"].idxmin()), ("Highest", heads["logit_std"].idxmax())):
            row = heads.loc[place].to_dict()
            told = said(f"heads_{end.lower()}", dump=read, layer=row["layer"], head=row["head"])
            yield cell(
                f"{name}{end}LogitStd",
                *(row, ("dump", "layer", "head"), ("logit_std", "logit_std_se"), told, source),
                n=int(row["n_scores"]),
                headline=True,
            )
        for part, column, statistic in (
            ("MedianLogitStd", "logit_std", "median"),
            ("LowestIndependenceRatio", "independence_ratio", "min"),
            ("HighestIndependenceRatio", "independence_ratio", "max"),
        ):
            value, told = float(getattr(heads[column], statistic)()), said(f"heads_statistics.{part}", dump=read)
            calculation = {"median": "median", "min": "smallest", "max": "largest"}[statistic]
            yield KeyNumber(
                f"{name}{part}", value, told, source, where, (column,), n=len(heads), calculation=calculation
            )
    yield from _within_rows(frame)


def _within_rows(frame: pd.DataFrame) -> Iterator[KeyNumber]:
    """Yield the spread of the logits within a row, which is what softmax sees, over all heads of the run."""
    if frame.empty:
        return
    source, column = "real_heads.csv", "within_row_logit_std"
    near = int(((frame[column] - 1).abs() <= MARGIN).sum())
    yield count("HeadsNearOne", near, "heads_within.near", source, {}, headline=True, margin=f"{MARGIN:g}")
    for end, place in (("Narrowest", frame[column].idxmin()), ("Widest", frame[column].idxmax())):
        row = frame.loc[place].to_dict()
        where = ("dump", "layer", "head")
        told = said(f"heads_within.{end}", dump=row["model"], layer=row["layer"], head=row["head"])
        yield cell(f"{end}HeadStd", row, where, (column, f"{column}_se"), told, source, n=int(row["n_scores"]))
    for name, one in (("MedianHeadStd", column), ("MedianHeadWeight", "max_weight")):
        value, told = float(frame[one].median()), said(f"heads_within.{name}")
        yield KeyNumber(name, value, told, source, {}, (one,), n=len(frame), calculation="median")
    yield from _models(frame, source, column)


def _models(frame: pd.DataFrame, source: str, column: str) -> Iterator[KeyNumber]:
    """Yield what is counted with models as the unit, each by the median of its heads, with sinks and without."""
    yield count("TrainedModels", frame["model"].nunique(), "heads_models.count", source)
    kept = ((frame[column] - 1).abs() <= MARGIN).groupby(frame["model"]).mean() > 0.5
    yield count("TrainedModelsNearOne", kept.sum(), "heads_models.near", source, headline=True, margin=f"{MARGIN:g}")
    if frame["model"].nunique() < 2:
        return
    for ending, one in (("", column), ("Sinkless", "sinkless_row_logit_std")):
        medians = frame.groupby("model", sort=False)[one].median()
        for end, model in (("Lowest", medians.idxmin()), ("Highest", medians.idxmax())):
            told = said(f"heads_models.{end}{ending}", model=model)
            where, n = {"model": model}, int((frame["model"] == model).sum())
            yield KeyNumber(
                f"{end}ModelStd{ending}", float(medians[model]), told, source, where, (one,), n=n, calculation="median"
            )


def _trust(frames: dict[str, Any]) -> Iterator[KeyNumber]:
    moments = distances.moments(frames["moments"])
    kurtosis = moments["quantity"] == "excess_kurtosis"
    yield from _covered("Moments", moments[~kurtosis], "moments.csv")
    yield from _covered("Kurtoses", moments[kurtosis], "moments.csv")
    rows = distances.rows(frames["softmax_saturation"], frames["gradient_magnitude"])
    source = "softmax_saturation.csv and gradient_magnitude.csv"
    yield from _covered("Rows", rows, source)
    if len(rows):
        yield count("RowsNotTrusted", int((~rows["trusted"]).sum()), "trust.left_out", source)


def _covered(name: str, table: pd.DataFrame, source: str) -> Iterator[KeyNumber]:
    if table.empty:
        return
    found = calibration.calibrate(table["score"].to_numpy(), table["unit"].to_numpy())
    calculation = "distances (estimate - exact)/se of all different estimates with an error and an exact value"
    common: dict[str, Any] = dict(source=source, calculation=calculation, n=found.n)
    shares: dict[str, Any] = dict(low=found.share_low, high=found.share_high) if found.enough else {}
    ratios: dict[str, Any] = dict(low=found.ratio_low, high=found.ratio_high) if found.enough else {}
    yield KeyNumber(f"{name}Compared", found.n, said(f"trust.{name}.count"), **common, unit="count")
    yield KeyNumber(f"{name}Covered", found.share, said(f"trust.{name}.share"), **shares, **common, headline=True)
    yield KeyNumber(f"{name}ErrorRatio", found.ratio, said(f"trust.{name}.ratio"), **ratios, **common)
    if table["trusted"].any():
        farthest = float(table.loc[table["trusted"], "z"].abs().max())
        yield KeyNumber(f"{name}Farthest", farthest, said(f"trust.{name}.worst"), **common)


def _claims(claims: pd.DataFrame | None) -> Iterator[KeyNumber]:
    """Yield how many claims of the ledger got each verdict."""
    if claims is None or claims.empty:
        return
    yield count("Claims", len(claims), "claims.all", "claims.csv", {}, headline=True)
    for verdict, number in claims["verdict"].value_counts(sort=False).items():
        name = f"Claims{letters(str(verdict))}"
        where = {"verdict": str(verdict)}
        yield count(name, number, "claims.verdict", "claims.csv", where, headline=True, verdict=verdict)
