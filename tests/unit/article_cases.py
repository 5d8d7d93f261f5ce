"""Tables for the article around the figures, and changes of them that make its sentences come out otherwise."""

import functools
import itertools
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import synthetic_alternatives
import synthetic_maps
import synthetic_planted
import synthetic_results
import synthetic_start
import synthetic_training

from sqrtdk.report.article import design, five_sentences, practice, questions
from sqrtdk.report.setting import Setting, choose
from sqrtdk.sampling import laws
from sqrtdk.studies import normalisation
from sqrtdk.words import texts
from sqrtdk.words.sentences import Sentence

REPORT = Path(__file__).resolve().parents[2] / "report"
SPECS = {"gaussian": {"family": "gaussian"}}
GRID = ("gaussian",), (16, 64), (16, 64)
RULES = ("d_v_for_d_k(ratio=2)", "learnable", "qk_norm", "none")
"""Rules of the longer training run that the article speaks of."""
HALVES = {
    "start": ("helps", "no difference"),
    "rate": ("undecided", "helps"),
    "either": ("helps", "helps"),
    "mixed": ("hurts", "undecided"),
}
"""What the smaller start and the smaller rate do alone, by the sentence that says so."""
TASKS = (("recall", "recall", "adam"), ("induction", "induction", "adam"))
WORDS_OF_VERDICTS = {"hurts": "hurts", "helps": "helps", "same": "no difference", "undecided": "undecided"}
ON_THE_PAGE = re.compile(
    r"article\..*\.(title|lead|caption|note|situation|use|number|by_topic|as_list|sources|after|makes)$"
    r"|article\.workflow\.|article\..*\.(names|columns)\."
)
"""Words that the page's template names, in place of a sentence that is chosen by numbers."""
CONFIGURATION = {"precision": 0.001, "max_scalars": 1e7}


@functools.lru_cache
def _frames() -> dict[str, pd.DataFrame]:
    moments, rules = synthetic_results.moments(), synthetic_alternatives.table()
    trained = synthetic_training.tables(experiments=TASKS)
    return {
        "moments": moments,
        "variance_laws": laws.fit_variance_laws(moments, 64),
        "softmax_saturation": synthetic_results.softmax_saturation(*GRID).assign(precise=True),
        "gradient_magnitude": synthetic_results.gradient_magnitude(*GRID).assign(precise=False),
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
    """Return the longer training run: its rules with one verdict, or the halves of the repair with theirs."""
    rows = _frames()["training_verdicts"]
    rows = rows[rows["scaling"] == "1/d_k"]
    every = pd.concat([rows.assign(scaling=rule) for rule in RULES], ignore_index=True)
    text = every[every["experiment"] == "recall"].assign(task="text", experiment="text", reached=0.5)
    verdict = WORDS_OF_VERDICTS.get(word, "no difference")
    found = _halves().copy()
    for half, alone in zip(("start", "rate"), HALVES.get(word, HALVES["mixed"]), strict=True):
        found.loc[found[half] & (found["start"] != found["rate"]), "verdict_neither"] = alone
    return {"training_verdicts": pd.concat([every, text]).assign(verdict=verdict), "start_rate": found}


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


TOLD = {
    "why": five_sentences.why,
    "when": five_sentences.when,
    "softmax": lambda tables_, at: five_sentences.softmax(tables_["softmax_saturation"], at),
    "gradient": lambda tables_, at: five_sentences.gradient(tables_["gradient_magnitude"], at),
    "training": lambda tables_, at: five_sentences.training(tables_),
}
ASKED = {
    "root": questions.root,
    "width": questions.width,
    "twice": lambda tables_, longer: questions.twice(tables_),
    "small_test": lambda tables_, longer: questions.small_test(tables_, setting(tables_)),
    "fold": questions.fold,
    "layernorm": lambda tables_, longer: questions.layernorm(tables_),
    "qk_norm": questions.qk_norm,
    "precision": lambda tables_, longer: questions.precision(tables_),
    "keys": lambda tables_, longer: questions.keys(tables_, setting(tables_)),
    "heads": lambda tables_, longer: questions.heads(tables_),
}


def told(family: str, tables_) -> Sentence:
    return TOLD[family](tables_, setting(tables_))


def asked(name: str, tables_, longer=None) -> tuple[Sentence, ...]:
    return ASKED[name](tables_, longer or shipped())


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
    saturation = frames()["softmax_saturation"]
    return frames(softmax_saturation=saturation[saturation["scaling"] == "none"])


def with_variance(variance: float, se: float):
    return changed("moments", {"variance": variance, "variance_se": se}, ensemble="gaussian", d_k=64)


def ensembles(*keep: str, **values):
    """Return tables with some ensembles of the moments alone, and values in their rows at the headline's width."""
    moments = frames()["moments"]
    moments = moments[moments["ensemble"].isin(keep) | (moments["stopped_by"] == "enumerated")]
    return frames(moments=moments.assign(**values) if values else moments)


def heads(share: float):
    rows = frames()["real_heads"]
    near = [place < share * len(rows) for place in range(len(rows))]
    return frames(real_heads=rows.assign(logit_std=[1.0 if one else 2.5 for one in near]))


FIVE = {
    "why": {
        "holds": frames,
        "differs": lambda: with_variance(70.0, 0.1),
        "unsure": lambda: with_variance(64.0, math.nan),
        "missing": lambda: with_variance(math.nan, math.nan),
    },
    "when": {
        "some": frames,
        "all": lambda: ensembles("gaussian", "uniform", "laplace"),
        "one": lambda: ensembles("gaussian"),
        "none": lambda: ensembles("gaussian", variance=math.nan),
    },
    "softmax": compared("softmax_saturation", "max_weight", **AT) | {"one_rule": one_rule},
    "gradient": {
        f"{rms}_{median}": lambda rms=rms, median=median: rms_and_median(rms, median)
        for rms, median in itertools.product(VERDICTS, repeat=2)
    }
    | {"one_rule": one_rule},
    "training": verdicts("none") | {"none": lambda: frames(training_verdicts=untrained())},
}
INNER = {
    ("why", "exponent"): {
        "estimated": frames,
        "not_estimable": lambda: changed("variance_laws", {"estimable": False}, ensemble="gaussian", law="power"),
    },
    ("when", "heads"): {
        "none": lambda: frames(real_heads=frames()["real_heads"].head(0)),
        "few": lambda: heads(0.1),
        "most": lambda: heads(0.9),
        "all": lambda: heads(1),
    },
    ("training", "others"): {
        "some": frames,
        "none": lambda: frames(training_verdicts=frames()["training_verdicts"].query("task == 'recall'")),
    },
    ("training", "mup"): verdicts("1/d_k")
    | {"none": lambda: frames(training_verdicts=frames()["training_verdicts"].query("scaling == 'none'"))},
}


def at_width(variant: str, value: float):
    return changed("alternatives", {"estimate": value}, variant=variant, measure="effective_keys")


def spread(value: float, **where):
    return changed("initialisation", {"estimate": value}, quantity="logit_std", **where)


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
    "root.start": {"uniform": lambda: at_width("1/d_k", 7.9), "spread": lambda: at_width("1/d_k", 4.0)},
    "root.training": verdicts("1/d_k"),
    "width.training": dict.fromkeys(WORDS_OF_VERDICTS),
    "twice.training": verdicts("1/d_k", comparison="same_rate"),
    "fold.halves": dict.fromkeys(HALVES),
    "root.halves": dict.fromkeys(HALVES),
    "fold.start": {"same": frames, "other": lambda: spread(2.0, scheme="t5")},
    "layernorm.inputs": {"needed": frames, "redundant": lambda: spread(1.0, scheme="plain_unscaled")},
    "layernorm.heads": {"needed": frames, "redundant": lambda: spread(1.0, scheme="rmsnorm_unscaled")},
    "qk_norm.training": dict.fromkeys(WORDS_OF_VERDICTS),
    "precision.error": {verdict: lambda verdict=verdict: rounded(SIZE[verdict]) for verdict in VERDICTS},
    "keys.weight": {verdict: lambda verdict=verdict: by_keys(SIZE[verdict]) for verdict in VERDICTS},
    "heads.saturated": {"none": lambda: saturated(0), "few": lambda: saturated(2), "many": lambda: saturated(11)},
}
"""What changes the longer training run is its verdict, the name of the sentence."""


def cases(families: dict) -> list[tuple[str, str]]:
    return [(family, word) for family, texts in families.items() for word in texts]


def answer(family: str, word: str) -> tuple[Sentence, ...]:
    """Return the answer that a change of the tables gives; of the longer training run where there is none."""
    change = QUESTIONS[family][word]
    return asked(family.split(".")[0], change() if change else frames(), None if change else shipped(word))


@functools.cache
def everything() -> list[Sentence]:
    """Return all sentences that the cases above make."""
    found = []
    found += [told(family, change()) for family, texts in FIVE.items() for change in texts.values()]
    found += [told(outer, change()) for (outer, _), texts in INNER.items() for change in texts.values()]
    found += itertools.chain.from_iterable(answer(family, word) for family, word in cases(QUESTIONS))
    found += itertools.chain.from_iterable(asked(name, frames()) for name in ASKED)
    for word in WORDS_OF_VERDICTS:
        rows = changed("training_verdicts", {"verdict": WORDS_OF_VERDICTS[word]}, scaling="1/d_k")
        found += itertools.chain.from_iterable(practice.measured(rows, shipped(word)).values())
    one = frames(alternatives=frames()["alternatives"].query("n_keys == 8"))
    found += practice.measured(one, shipped())["long"]
    bare = frames(real_heads=frames()["real_heads"].head(0), training_summary=frames()["training_summary"].head(0))
    for tables_ in (frames(), bare):
        for point in design.card(tables_, CONFIGURATION):
            found += point.sentences
    return [sentence for sentence in found if sentence.key.startswith("article.")]
