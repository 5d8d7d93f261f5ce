"""Tables for the article, and changes of them that make its sentences come out otherwise."""

import functools
import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import synthetic_alternatives
import synthetic_maps
import synthetic_planted
import synthetic_results
import synthetic_start
import synthetic_training
import synthetic_vanishing

import sharing
from sqrtdk.report import key_numbers
from sqrtdk.report.article import chapters, design, points, practice, questions
from sqrtdk.report.facts import Facts
from sqrtdk.report.setting import Setting, choose
from sqrtdk.results import reading
from sqrtdk.sampling import ensembles, laws
from sqrtdk.studies import normalisation, saturation
from sqrtdk.words import texts
from sqrtdk.words.sentences import Sentence

REPORT = Path(__file__).resolve().parents[2] / "report"
SPECS = {"gaussian": {"family": "gaussian"}}
RULES = ("d_v_for_d_k(ratio=2)", "learnable", "qk_norm", "none", "1/d_k")
"""Rules of the longer training run that the article speaks of."""
TASKS = (("recall", "recall", "adam"), ("induction", "induction", "adam"))
WORDS_OF_VERDICTS = {"hurts": "hurts", "helps": "helps", "same": "no difference", "undecided": "undecided"}
ON_THE_PAGE = re.compile(
    r"article\..*\.(title|short|lead|caption|note|situation|use|caveat)$|article\.topics\."
    r"|article\..*\.(names|columns)\.|article\.said\."
)
"""Words that the page's template names, in place of a sentence that is chosen by numbers."""
CONFIGURATION = {"precision": 0.001, "max_scalars": 1e7}


def _rows() -> dict[str, pd.DataFrame]:
    """Return the tables of rows of standard normal queries and keys."""
    found: dict[str, list] = {"softmax_saturation": [], "gradient_magnitude": [], "gradient_distribution": []}
    for d_k in (16, 64):
        normal = ensembles.build(SPECS["gaussian"])
        cell = saturation.simulate_cell(normal, d_k, (16, 64), synthetic_results.SCALINGS, 1, "gaussian", n_logits=4000)
        for table, part in zip(found.values(), cell, strict=True):
            table += part
    found["softmax_saturation"] = [row | {"law": None} for row in found["softmax_saturation"]]
    return {name: reading.frame(name, table) for name, table in found.items()}


@functools.cache
@sharing.shared
def _frames() -> dict[str, pd.DataFrame]:
    moments, rules = synthetic_results.moments(), synthetic_alternatives.table()
    trained = synthetic_training.tables(experiments=TASKS)
    rows = _rows()
    return {
        "moments": moments,
        "variance_laws": laws.fit_variance_laws(moments, 64),
        "softmax_saturation": rows["softmax_saturation"].assign(precise=True),
        "gradient_magnitude": rows["gradient_magnitude"].assign(precise=False),
        "gradient_distribution": rows["gradient_distribution"],
        **synthetic_vanishing.compared(rows["gradient_magnitude"]),
        "alternatives": pd.concat([rules, rules.assign(n_keys=1024)], ignore_index=True),
        "normalisers": pd.DataFrame(normalisation.simulate_normalisers(1, 4000)),
        "linear_attention": pd.DataFrame(normalisation.simulate_kernels(1, n_blocks=2)),
        "initialisation": synthetic_start.initialisation(),
        "rounding": synthetic_start.rounding(),
        "planted_capacity": synthetic_planted.tables()["planted_capacity"],
        "freezing_frontier": synthetic_maps.freezing_frontier(),
        "real_heads": synthetic_results.real_heads(),
        "audit": synthetic_results.synthetic_audit.table(),
        **{name: table for name, table in trained.items() if name != "training"},
    }


def frames(**changed) -> dict[str, pd.DataFrame]:
    """Return fresh copies of the tables, some of them changed."""
    return {name: table.copy() for name, table in (_frames() | changed).items()}


@functools.lru_cache
def _halves() -> pd.DataFrame:
    arms = ("none", "none + start", "none + rate", "1/sqrt(d_k)", "1/sqrt(d_k) + start", "1/sqrt(d_k) + rate", "1/d_k")
    return synthetic_training.tables(scalings=arms, d_k=(16, 64))["start_rate"]


def shipped(word: str = "same") -> dict[str, pd.DataFrame]:
    """Return the longer training run, whose rules have one verdict and end alike, and the halves of the repair."""
    rows = _frames()["training_verdicts"]
    rows = rows[rows["scaling"] == "1/d_k"]
    every = pd.concat([rows.assign(scaling=rule) for rule in RULES], ignore_index=True)
    text = every[every["experiment"] == "recall"].assign(task="text", experiment="text", reached=0.5)
    verdict = WORDS_OF_VERDICTS.get(word, "no difference")
    long = every[every["experiment"] == "recall"].assign(experiment="recall_long", verdict="no difference")
    return {
        "training_verdicts": pd.concat([pd.concat([every, text]).assign(verdict=verdict), long]),
        "training_summary": _frames()["training_summary"],
        "start_rate": _halves().copy(),
    }


def setting(tables: dict[str, pd.DataFrame]) -> Setting:
    return choose(tables["moments"], tables["softmax_saturation"], SPECS)


def put(frame: pd.DataFrame, values: dict, **where) -> pd.DataFrame:
    """Return the frame with values in the rows at these keys, of which there must be one at least."""
    mask = np.logical_and.reduce([frame[column] == value for column, value in where.items()])
    assert mask.any()
    return frame.assign(**{name: frame[name].mask(mask, value) for name, value in values.items()})


def changed(name: str, values: dict, **where) -> dict[str, pd.DataFrame]:
    """Return all tables with values put into one of them."""
    return frames(**{name: put(_frames()[name], values, **where)})


def say(language: str, recorded: set[str] | None = None) -> texts.Words:
    """Return the article's words of a language; `recorded` collects the keys that are used."""
    tree = texts.read(REPORT, language)
    references = dict.fromkeys(re.findall(r"\[@(\w+)\]", str(tree["article"])))
    found = texts.Words(tree, references, {"distinct": "3", "saturated": "0.99"})
    if recorded is not None:
        found.used = recorded
    return found


VERDICTS = ("larger", "level", "smaller")
SIZE = {"larger": 2.0, "level": 1.0, "smaller": 0.5}
AT = {"ensemble": "gaussian", "d_k": 64, "n_keys": 64}


def untrained() -> pd.DataFrame:
    """Return a table of verdicts on training that holds none."""
    return _frames()["training_verdicts"].head(0)


def article(tables_, longer=None) -> tuple[chapters.Article, questions.Questions, Facts]:
    """Return the article and the questions of a run, and its numbers."""
    at = setting(tables_)
    facts = Facts(key_numbers.of_run(tables_, at))
    parts = (tables_, longer or shipped(), at, facts)
    return chapters.Article(*parts), questions.Questions(*parts), facts


def said(tables_, longer=None) -> list[Sentence]:
    """Return every sentence of the article of a run but those of the card of the study."""
    told, asked, facts = article(tables_, longer)
    found = [told.lede()]
    for card in told.cards():
        found += [card.finding, *([card.means] if card.means else [])]
    for chapter in told.chapters():
        found += [chapter.finding, *itertools.chain(*chapter.text)]
        for point in asked.of(chapter.name):
            found += point.sentences
    return [*found, *itertools.chain(*practice.measured(told.longer, told.at, facts).values())]


def answers(name: str, tables_, longer=None) -> tuple[Sentence, ...]:
    """Return the answer to one question."""
    return getattr(article(tables_, longer)[1], name)()


# ---- what can be said: family -> key -> tables that make the sentence come out so ------------------------------------


def verdicts(scaling: str, **where) -> dict:
    return {
        word: lambda verdict=verdict: changed("training_verdicts", {"verdict": verdict}, scaling=scaling, **where)
        for word, verdict in WORDS_OF_VERDICTS.items()
    }


def compared(name: str, measure: str, value: str = "estimate", se: str = "se", **where) -> dict:
    """Return tables in which a measure without the factor is larger than, level with and smaller than with it."""

    def table(verdict: str):
        both = changed(name, {value: 1.0, se: 0.01}, measure=measure, scaling="1/sqrt(d_k)", **where)
        both[name] = put(both[name], {value: SIZE[verdict], se: 0.01}, measure=measure, scaling="none", **where)
        return both

    return {verdict: lambda verdict=verdict: table(verdict) for verdict in VERDICTS}


def rms_and_median(rms: str, median: str):
    tables_ = frames()
    for scaling, pair in (("1/sqrt(d_k)", (1.0, 1.0)), ("none", (SIZE[rms], SIZE[median]))):
        values = dict(zip(("estimate", "median"), pair, strict=True)) | {"se": 0.01, "median_se": 0.01}
        rows = put(tables_["gradient_magnitude"], values, measure="grad_logits", scaling=scaling, **AT)
        tables_["gradient_magnitude"] = rows
    return tables_


def one_rule():
    kept = ("softmax_saturation", "gradient_magnitude", "gradient_distribution")
    return frames(**{name: rows[rows["scaling"] == "none"] for name in kept for rows in [_frames()[name]]})


def with_variance(variance: float, se: float):
    return changed("moments", {"variance": variance, "variance_se": se}, ensemble="gaussian", d_k=64)


def heads(share: float):
    rows = frames()["real_heads"]
    near = [place < share * len(rows) for place in range(len(rows))]
    return frames(real_heads=rows.assign(within_row_logit_std=[1.0 if one else 2.5 for one in near]))


def models(near: int):
    """Return heads of three models, of which so many keep to a standard deviation of 1."""
    rows = synthetic_results.real_heads(layers=1, heads=4, dumps=("one", "two", "three"))
    keep = rows["dump"].isin(["one", "two", "three"][:near])
    return frames(real_heads=rows.assign(within_row_logit_std=keep.map({True: 1.0, False: 2.5})))


def sinkless(times: float):
    """Return heads of several models, whose spread without sinks is so many times that with them."""
    rows = models(0)["real_heads"]
    return frames(real_heads=rows.assign(sinkless_row_logit_std=times * rows["within_row_logit_std"]))


def no_heads():
    return frames(real_heads=frames()["real_heads"].head(0))


def no_loser(word: str = "no difference"):
    return changed("training_verdicts", {"verdict": word}, scaling="none")


def one_loser(*measures: str, task: str = "induction"):
    """Return tables in which one task loses without the factor, in these measures alone, or in all."""
    rows = no_loser()["training_verdicts"]
    for measure in measures or ("loss", "accuracy", "speed"):
        rows = put(rows, {"verdict": "hurts"}, scaling="none", task=task, comparison=measure)
    return frames(training_verdicts=rows)


def one_task(task: str):
    """Return tables in which only one task was trained, and loses without the factor."""
    rows = no_loser("hurts")["training_verdicts"]
    return frames(training_verdicts=rows[rows["task"] == task])


def growing(tables_: dict[str, pd.DataFrame]):
    """Return tables on training, and such on attention that scores grow and softmax picks one key."""
    return tables_ | {
        "softmax_saturation": compared("softmax_saturation", "max_weight", **AT)["larger"]()["softmax_saturation"]
    }


def capacity(root: float):
    return changed("planted_capacity", {"capacity": root}, scaling="1/sqrt(d_k)", measure="weight")


CHAPTERS = {
    "lede": {"grow": lambda: growing(no_loser()), "depends": lambda: growing(one_loser()), "other": one_rule},
    "scores.finding": {
        "holds": frames,
        "differs": lambda: with_variance(70.0, 0.1),
        "unsure": lambda: with_variance(64.0, math.nan),
        "missing": lambda: with_variance(math.nan, math.nan),
    },
    "attention.finding": compared("softmax_saturation", "max_weight", **AT) | {"one_rule": one_rule},
    "gradients.finding": {
        "gather": lambda: rms_and_median("larger", "smaller"),
        "typical": lambda: rms_and_median("level", "smaller"),
        "vanish": lambda: rms_and_median("smaller", "smaller"),
        "total": lambda: rms_and_median("smaller", "larger"),
        "level": lambda: rms_and_median("level", "level"),
        "grow": lambda: rms_and_median("larger", "level"),
        "one_rule": one_rule,
    },
    "factor.finding": {
        "root": lambda: capacity(1000.0),
        "other": lambda: capacity(1.0),
        "missing": lambda: frames(planted_capacity=frames()["planted_capacity"].head(0)),
    },
    "factor.start": {"uniform": lambda: at_width("1/d_k", 7.9), "spread": lambda: at_width("1/d_k", 4.0)},
    "training.finding": {
        "some": one_loser,
        "some_fades": lambda: one_loser(task="recall"),
        "all": lambda: one_task("induction"),
        "all_fades": lambda: no_loser("hurts"),
        "spared": no_loser,
        "undecided": lambda: no_loser("undecided"),
        "none": lambda: frames(training_verdicts=untrained()),
    },
    "training.lower": {
        "helps": lambda: lower("helps"),
        "same": lambda: lower("no difference"),
        "undecided": lambda: lower("undecided"),
    },
    "training.task": verdicts("none"),
    "training.card": {
        "answers": one_loser,
        "steps": lambda: one_loser("speed"),
        "loss": lambda: one_loser("loss"),
        "spared": no_loser,
        "undecided": lambda: no_loser("undecided"),
        "none": lambda: frames(training_verdicts=untrained()),
    },
    "start.finding": {"some": frames, "all": lambda: spread(1.0, group="weights")},
    "start.inputs": {"needed": frames, "redundant": lambda: spread(1.0, scheme="plain_unscaled")},
    "start.heads": {"needed": frames, "redundant": lambda: spread(1.0, scheme="rmsnorm_unscaled")},
    "heads.sinkless": {
        "same": lambda: sinkless(1.0),
        "other": lambda: sinkless(0.5),
    },
    "heads.finding": {
        "few": lambda: heads(0.1),
        "most": lambda: heads(0.9),
        "all": lambda: heads(1),
        "models": lambda: models(2),
        "no_model": lambda: models(0),
        "none": no_heads,
    },
}
CHAPTERS |= {f"{name}.card": CHAPTERS[f"{name}.finding"] for name in ("attention", "gradients")}
CHAPTERS["scores.card"] = {word: change for word, change in CHAPTERS["scores.finding"].items() if word != "unsure"}


def at_width(variant: str, value: float):
    return changed("alternatives", {"estimate": value}, variant=variant, measure="effective_keys")


def spread(value: float, **where):
    return changed("initialisation", {"estimate": value}, quantity="logit_std", **where)


def lower(verdict: str):
    return changed("training_verdicts", {"estimate": -0.1, "verdict": verdict}, scaling="1/d_k", comparison="loss")


def rounded(plain: float):
    where = {"format": "bfloat16", "rounded": "logits", "measure": "total_variation"}
    both = changed("rounding", {"estimate": 1.0, "se": 0.01}, scaling="1/sqrt(d_k)", **where)
    return both | {"rounding": put(both["rounding"], {"estimate": plain, "se": 0.01}, scaling="none", **where)}


def by_keys(many: float):
    where = {"measure": "max_weight", "scaling": "none", "ensemble": "gaussian", "d_k": 64}
    both = changed("softmax_saturation", {"estimate": 1.0, "se": 0.01}, n_keys=16, **where)
    rows = put(both["softmax_saturation"], {"estimate": many, "se": 0.01}, n_keys=64, **where)
    return both | {"softmax_saturation": rows}


def saturated(count: int):
    rows = frames()["audit"]
    return frames(audit=rows.assign(saturated_share=[0.9 if place < count else 0.1 for place in range(len(rows))]))


QUESTIONS = {
    "width.training": dict.fromkeys(WORDS_OF_VERDICTS),
    "twice.training": verdicts("1/d_k", comparison="same_rate"),
    "language.text": dict.fromkeys(WORDS_OF_VERDICTS),
    "fold.start": {"same": frames, "other": lambda: spread(2.0, scheme="t5")},
    "layernorm.inputs": {"needed": frames, "redundant": lambda: spread(1.0, scheme="plain_unscaled")},
    "precision.error": {verdict: lambda verdict=verdict: rounded(SIZE[verdict]) for verdict in VERDICTS},
    "keys.weight": {verdict: lambda verdict=verdict: by_keys(SIZE[verdict]) for verdict in VERDICTS},
    "heads.saturated": {"none": lambda: saturated(0), "few": lambda: saturated(2), "many": lambda: saturated(11)},
}
"""What changes the longer training run is its verdict, the name of the sentence."""


def cases(families: dict) -> list[tuple[str, str]]:
    return [(family, word) for family, words in families.items() for word in words]


@functools.cache
def answer(family: str, word: str) -> tuple[Sentence, ...]:
    """Return the answer that a change of the tables gives; of the longer training run where there is none."""
    change = QUESTIONS[family][word]
    return answers(family.split(".")[0], change() if change else frames(), None if change else shipped(word))


@functools.cache
def said_after(change: Callable[[], dict[str, pd.DataFrame]]) -> list[Sentence]:
    """Return every sentence of the article after a change of the tables, which many cases share."""
    return said(change())


@functools.cache
def everything() -> list[Sentence]:
    """Return all sentences that the cases above make."""
    found = []
    for changes in CHAPTERS.values():
        found += itertools.chain.from_iterable(map(said_after, changes.values()))
    found += itertools.chain.from_iterable(answer(family, word) for family, word in cases(QUESTIONS))
    found += said(changed("training_verdicts", {"value": 0.4}, comparison="accuracy"))
    rows = synthetic_results.real_heads(layers=1, heads=1, dumps=points.SHIPPED_MODELS)
    found += said(frames(real_heads=rows))
    bare = frames(real_heads=frames()["real_heads"].head(0), training_summary=frames()["training_summary"].head(0))
    for tables_ in (frames(), bare):
        for point in design.card(tables_, CONFIGURATION):
            found += point.sentences
    return [sentence for sentence in found if sentence.key.startswith("article.")]
