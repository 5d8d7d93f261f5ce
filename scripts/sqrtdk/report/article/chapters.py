"""The article: one sentence, four cards and seven chapters, each said as the numbers of the run have it."""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from sqrtdk.claims.thresholds import VANISHING
from sqrtdk.figures.style import ensemble_label
from sqrtdk.report import longer_runs, trained
from sqrtdk.report.article.points import Point, models, near_one, times
from sqrtdk.report.comparing import MARGIN, agreement, compare
from sqrtdk.report.facts import Facts
from sqrtdk.report.macro_names import letters
from sqrtdk.report.setting import WANTED_SCALING, Setting
from sqrtdk.report.study_numbers import training_name
from sqrtdk.report.tables.cells import missing
from sqrtdk.report.tables.moments import logit_std
from sqrtdk.results.picking import at, pick
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

MUP = "1/d_k"
UNIFORM = 0.9
"""Attention counts as almost uniform from this share of effective keys on."""
GATHERED = {
    ("larger", "smaller"): "gather",
    ("level", "smaller"): "typical",
    ("smaller", "smaller"): "vanish",
    ("smaller", "level"): "total",
    ("smaller", "larger"): "total",
    ("level", "level"): "level",
}
"""What becomes of gradients without the factor, by their root mean square and by that of the median query."""
VARIANTS: dict[str, tuple[str, ...]] = {
    "lede": ("grow", "depends", "other"),
    "scores.finding": ("holds", "differs", "unsure", "missing"),
    "scores.card": ("holds", "differs", "missing"),
    "attention.finding": ("larger", "level", "smaller", "one_rule"),
    "attention.card": ("larger", "level", "smaller", "one_rule"),
    "gradients.finding": ("gather", "typical", "vanish", "total", "level", "grow", "one_rule"),
    "gradients.card": ("gather", "typical", "vanish", "total", "level", "grow", "one_rule"),
    "factor.finding": ("root", "other", "missing"),
    "factor.start": ("uniform", "spread"),
    "training.finding": ("some", "some_fades", "all", "all_fades", "spared", "undecided", "none"),
    "training.card": ("answers", "steps", "loss", "spared", "undecided", "none"),
    "training.task": ("hurts", "helps", "same", "undecided"),
    "training.lower": ("helps", "same", "undecided"),
    "start.finding": ("some", "all"),
    "start.inputs": ("needed", "redundant"),
    "start.heads": ("needed", "redundant"),
    "heads.sinkless": ("same", "other"),
    "heads.finding": ("few", "most", "all", "none", "models", "no_model"),
}
"""The families of sentences, and what chooses one of each."""


@dataclass(frozen=True)
class Chapter:
    """A chapter: its finding, its paragraphs, one caveat, and the questions that people ask about it.

    Its words stand at `article.chapters.<name>`.
    """

    name: str
    finding: Sentence
    text: tuple[tuple[Sentence, ...], ...]
    questions: tuple[Point, ...] = ()
    caveat: bool = True

    def with_questions(self, questions: tuple[Point, ...]) -> "Chapter":
        """Return the chapter with the questions that belong to it."""
        return replace(self, questions=questions)


@dataclass(frozen=True)
class Card:
    """A finding as a statement, and a small line on what it means where that is always so."""

    finding: Sentence
    means: Sentence | None = None


class Article:
    """What the article says of a run."""

    def __init__(
        self, frames: Mapping[str, pd.DataFrame], longer: Mapping[str, pd.DataFrame], at: Setting, facts: Facts
    ):
        self.frames, self.longer, self.at, self.facts = frames, longer, at, facts
        self.place = {"d_k": str(at.d_k), "n_keys": str(at.n_keys), "ensemble": ensemble_label(at.ensemble)}

    def said(self, key: str, *names: str, **values: Any) -> Sentence:
        """Return a sentence that quotes the numbers named `word=Name`; width, keys and ensemble are its own."""
        told = self.facts.quote(dict(name.split("=") for name in names))
        return Sentence(f"article.chapters.{key}", self.place | told | values)

    def pair(self, measure: str, word: str) -> tuple[str, str]:
        """Return how `said` names a number without the factor and with it."""
        plain, scaled = (letters(rule or "") for rule in (self.at.plain, self.at.scaled))
        return f"{word}_plain={measure}{plain}", f"{word}_scaled={measure}{scaled}"

    @property
    def both(self) -> bool:
        """Say whether the run has attention without the factor and with it."""
        return self.at.plain is not None and self.at.scaled is not None

    # ---- scores

    def variance(self) -> str:
        """Return whether the variance is d_k: holds, differs, unsure or missing."""
        row = pick(self.frames["moments"], "moments.csv", ensemble=self.at.ensemble, d_k=self.at.d_k)
        if missing(row["variance"]):
            return "missing"
        if missing(row["variance_se"]):
            return "unsure"
        scaled = logit_std(row, WANTED_SCALING, self.at.n_keys)[0]
        agrees = agreement(row["variance"], row["variance_se"], float(self.at.d_k)) == "agrees"
        return "holds" if agrees and near_one(scaled) else "differs"

    def scores(self) -> Chapter:
        """Why scores grow."""
        verdict = self.variance()
        name = letters(self.at.ensemble)
        quoted = [f"variance={name}Variance"] if verdict in ("holds", "differs") else []
        finding = self.said(f"scores.finding.{verdict}", *quoted)
        why = (self.said("scores.sum"),), (self.said("scores.derivation"),), (self.said("scores.root"),)
        return Chapter("scores", finding, (*why, (self.said("scores.far"), self.said("scores.needs"))))

    def scores_card(self) -> Sentence:
        """Say how large scores are, and what the factor makes of it."""
        if not (self.both and self.facts.all(*_names(self.pair("LogitStd", "std")))):
            return self.said("scores.card.missing")
        verdict = "holds" if self.variance() == "holds" else "differs"
        return self.said(f"scores.card.{verdict}", *self.pair("LogitStd", "std"))

    # ---- attention

    def sharper(self) -> str:
        """Return how the largest weight without the factor compares with that with it."""
        if not self.both:
            return "one_rule"
        return compare(*(row[column] for row in self._rows("softmax_saturation", "max_weight") for column in _OF_MEAN))

    def _rows(self, table: str, measure: str) -> list[dict[str, Any]]:
        at = self.at
        where = {"ensemble": at.ensemble, "d_k": at.d_k, "n_keys": at.n_keys, "measure": measure}
        return [pick(self.frames[table], f"{table}.csv", scaling=rule, **where) for rule in (at.plain, at.scaled)]

    def attention(self) -> Chapter:
        """Say what softmax makes of scores."""
        verdict = self.sharper()
        finding = self.said(f"attention.finding.{verdict}", *(self.pair("EffectiveKeys", "keys") if self.both else ()))
        text = [(self.said("attention.softmax"), self.said("attention.shift"))]
        if self.both:
            quoted = self.pair("MaxWeight", "weight")
            text.append((self.said("attention.weight", *quoted), self.said("attention.keys")))
        return Chapter("attention", finding, tuple(text))

    def attention_card(self) -> Sentence:
        """Say how many keys share the attention."""
        quoted = self.pair("EffectiveKeys", "keys") if self.both else ()
        return self.said(f"attention.card.{self.sharper()}", *quoted)

    # ---- gradients

    def gathered(self) -> str:
        """Return what becomes of the gradient of the logits without the factor."""
        if not self.both:
            return "one_rule"
        plain, scaled = self._rows("gradient_magnitude", "grad_logits")
        pairs = (_OF_MEAN, ("median", "median_se"))
        found = [compare(plain[value], plain[se], scaled[value], scaled[se]) for value, se in pairs]
        verdict = GATHERED.get((found[0], found[1]), "grow")
        # How much the largest gradients hold is what "gather" quotes.
        return (
            "typical"
            if verdict == "gather" and not self.facts.all(*_names(self.pair("TopTenthEnergy", "top")))
            else verdict
        )

    def gradients(self) -> Chapter:
        """Say whether gradients vanish."""
        verdict = self.gathered()
        quoted = self.pair("TopTenthEnergy", "top") if verdict == "gather" else ()
        finding = self.said(f"gradients.finding.{verdict}", *quoted)
        text: list[tuple[Sentence, ...]] = [(self.said("gradients.why"),)]
        if self.both:
            rms, median = (self.pair(f"LogitsGradient{kind}", kind.lower()) for kind in ("Rms", "Median"))
            sizes = (self.said("gradients.rms", *rms), self.said("gradients.median", *median))
            table = self.said("gradients.table", bound=numbers.share(VANISHING.value))
            text.append((*sizes, table, self.said("gradients.query")))
        return Chapter("gradients", finding, tuple(text))

    def gradients_card(self) -> Sentence:
        """Say what becomes of gradients."""
        verdict = self.gathered()
        quoted = self.pair("TopTenthEnergy", "top") if verdict == "gather" else ()
        return self.said(f"gradients.card.{verdict}", *quoted)

    # ---- factor

    def factor(self) -> Chapter:
        """Why the root."""
        names = [f"Capacity{letters(rule)}" for rule in (WANTED_SCALING, MUP)]
        quoted: tuple[str, ...] = ()
        verdict = "missing"
        if self.facts.all(*names):
            root, mup = (self.facts[name].value for name in names)
            verdict = "root" if root > 2 * mup else "other"
            quoted = (f"root={names[0]}", f"mup={names[1]}")
        text = [self.said("factor.noise")]
        keys = f"{letters(MUP)}Keys"
        if keys in self.facts:
            share = self.facts[keys].value / self.facts[keys].row["n_keys"]
            n_keys = str(self.facts[keys].row["n_keys"])
            start = "uniform" if share >= UNIFORM else "spread"
            text.append(self.said(f"factor.start.{start}", f"keys={keys}", n_keys=n_keys))
        text.append(self.said("factor.without"))
        trains = longer_runs.brief(self.longer["training_verdicts"], "longer.brief.linear", MUP)
        mup_text = (self.said("factor.match"), *trains)
        return Chapter("factor", self.said(f"factor.finding.{verdict}", *quoted), (tuple(text), mup_text))

    # ---- training

    @functools.cached_property
    def tasks(self) -> list[tuple[str, dict[str, dict[str, Any]]]]:
        """Return verdict and comparisons on leaving the factor out, for each task, at the width nearest to 64."""
        verdicts, found, seen = self.frames["training_verdicts"], [], set()
        for experiment in dict.fromkeys(verdicts.loc[verdicts["scaling"] == "none", "experiment"]):
            rows = trained.held(verdicts, "none", experiment=experiment)
            if rows and (task := next(iter(rows.values()))["task"]) not in seen:
                seen.add(task)
                found.append((trained.verdict(rows), rows))
        return found

    def trained(self) -> str:
        """Return what leaving the factor out does to the tasks: hurts all or some, spares all, not decided, none."""
        found = [verdict for verdict, _ in self.tasks]
        if not found:
            return "none"
        if "hurts" in found:
            return "all" if set(found) == {"hurts"} else "some"
        return "undecided" if "undecided" in found else "spared"

    def _task(self, verdict: str, rows: dict[str, dict[str, Any]]) -> Sentence:
        return self.said(f"training.task.{verdict}", **trained.values(rows, functools.partial(times, self.facts)))

    def _verdict(self, *wanted: str) -> list[str]:
        return [next(iter(rows.values()))["task"] for verdict, rows in self.tasks if verdict in wanted]

    def _named(self, *wanted: str) -> Listing:
        return _tasks(self._verdict(*wanted))

    @functools.cached_property
    def fades(self) -> list[str]:
        """Return the tasks that leaving the factor out hurts, and that end as well without it when trained longer."""
        alike = longer_runs.alike(self.longer["training_verdicts"], "none")
        return [task for task in self._verdict("hurts") if task in alike]

    def training(self) -> Chapter:
        """Say whether it matters in training."""
        verdict = self.trained()
        hurt = Listing(tuple(trained.lost(rows) for found, rows in self.tasks if found == "hurts"))
        values = {"hurt": hurt, "others": self._named("helps", "same", "undecided")}
        fades = "_fades" if self.fades else ""
        finding = self.said(f"training.finding.{verdict}{fades}", faded=_tasks(self.fades), **values)
        if verdict == "none":
            return Chapter("training", finding, (), caveat=False)
        tasks = *(self._task(*one) for one in self.tasks), *trained.lower(self.frames["training_verdicts"], MUP)
        text = [(self.said("training.setting", steps=self._steps()),), tasks]
        text.append((self.said("training.convention"), *longer_runs.halves(self.longer["start_rate"], "none")[:1]))
        return Chapter("training", finding, tuple(part for part in text if part))

    def _steps(self, **where: str) -> object:
        steps = at(self.frames["training_summary"], **where)["steps"]
        low, high = (numbers.count(end) for end in (steps.min(), steps.max()))
        return low if low == high else Sentence("shared.range", {"low": low, "high": high})

    def training_card(self) -> Sentence:
        """Say what training loses where it loses most: right answers, or time where these do not decide."""
        verdict = self.trained()
        if verdict not in ("some", "all"):
            return self.said(f"training.card.{verdict}")
        losers = [rows for word, rows in self.tasks if word == "hurts"]
        answers = [rows["accuracy"] for rows in losers if rows.get("accuracy", {}).get("verdict") == "hurts"]
        if answers:
            row = min(answers, key=lambda one: one["value"] - one["reference_value"])
            rules = ("none", row["reference"])
            plain, scaled = (training_name(row["experiment"], rule, row["d_k"]) + "Right" for rule in rules)
            told = {"task": trained.task(row), "steps": self._steps(experiment=row["experiment"])}
            return self.said("training.card.answers", f"plain={plain}", f"scaled={scaled}", **told)
        steps = [rows["speed"] for rows in losers if rows.get("speed", {}).get("verdict") == "hurts"]
        if steps:
            row = max(steps, key=lambda one: one["estimate"])
            times = training_name(row["experiment"], "none", row["d_k"]) + "Speed"
            return self.said("training.card.steps", f"times={times}", task=trained.task(row))
        return self.said("training.card.loss", task=trained.task(losers[0]["loss"]))

    # ---- start

    def start(self) -> Chapter:
        """Say what initial weights and normalisations change."""
        weights = {name: fact for name, fact in self.facts.by_name.items() if name.startswith("Weights")}
        usual = [name for name in weights if "TFive" not in name]
        ordered = sorted(usual, key=lambda name: weights[name].value)
        low, high = ordered[0], ordered[-1]
        verdict = "all" if near_one(weights[low].value) and near_one(weights[high].value) else "some"
        finding = self.said(f"start.finding.{verdict}", *((f"low={low}", f"high={high}") if verdict == "all" else ()))
        weighed = (
            self.said("start.rule"),
            self.said("start.usual", "linear=WeightsLinearDefaultStd", "attention=WeightsXavierFusedStd"),
        )
        plain, inside = self.facts["HeadsPlainUnscaledStd"], self.facts["HeadsRmsnormUnscaledStd"]
        normalised = (
            self.said(f"start.inputs.{_needed(plain.value)}", "std=HeadsPlainUnscaledStd"),
            self.said(f"start.heads.{_needed(inside.value)}", "std=HeadsRmsnormUnscaledStd"),
            self.said("start.cosine", "bare=HeadsLTwoOneStd"),
        )
        return Chapter("start", finding, (weighed, normalised))

    # ---- heads

    def heads(self) -> Chapter:
        """Say whether trained heads keep to it."""
        frame = self.frames["real_heads"]
        if frame.empty:
            return Chapter("heads", self.said("heads.finding.none"), (), caveat=False)
        near = self.facts["HeadsNearOne"].value / len(frame)
        verdict = "all" if near == 1 else "most" if near > 0.5 else "few"
        margin = numbers.percent(MARGIN, 0)
        finding = self.said(f"heads.finding.{verdict}", "near=HeadsNearOne", "count=Heads", margin=margin)
        ends = ("low=NarrowestHeadStd", "high=WidestHeadStd")
        several = self.facts["TrainedModels"].value > 1
        if several:
            word = "models" if self.facts["TrainedModelsNearOne"].value else "no_model"
            named = ("kept=TrainedModelsNearOne", "count=TrainedModels")
            finding = self.said(f"heads.finding.{word}", *named, margin=margin)
        text = (
            self.said("heads.models", "heads=DistinctHeads", models=models(frame)),
            self.said("heads.ends", *ends),
            *(() if several else (self.said("heads.median", "median=MedianHeadStd"),)),
            *([self._sinkless()] if several else ()),
        )
        return Chapter("heads", finding, (text, (self.said("heads.why"), self.said("heads.keep"))))

    def _sinkless(self) -> Sentence:
        """Say what the spread is without sinks; a change within the margin of 1 is hardly one."""
        ends = ("LowestModelStd", "HighestModelStd")
        same = all(near_one(self.facts[f"{end}Sinkless"].value / self.facts[end].value) for end in ends)
        low, high = (f"{end}Sinkless" for end in ends)
        return self.said(
            f"heads.sinkless.{'same' if same else 'other'}", *(() if same else (f"low={low}", f"high={high}"))
        )

    # ---- all of it

    def lede(self) -> Sentence:
        """Return the answer in one sentence."""
        grows = self.variance() == "holds" and self.sharper() == "larger"
        depends = self.trained() == "some" or self.fades
        return self.said(f"lede.{'other' if not grows else 'depends' if depends else 'grow'}")

    def cards(self) -> list[Card]:
        """Return the four cards, with a small line below where their numbers allow it."""
        few = self.gathered() == "gather" and "FewKeysCrossoverLogitsGradientRms" in self.facts
        return [
            Card(self.scores_card(), self.said("scores.means")),
            Card(self.attention_card(), self.said("attention.means") if self.sharper() == "larger" else None),
            Card(self.gradients_card(), self.said("gradients.means") if few else None),
            Card(self.training_card(), self._training_means()),
        ]

    def _training_means(self) -> Sentence | None:
        if self.fades:
            return self.said("training.fades", faded=_tasks(self.fades))
        return self.said("training.means") if self.trained() == "some" else None

    def chapters(self) -> list[Chapter]:
        """Return the seven chapters in their order."""
        first = self.scores(), self.attention(), self.gradients(), self.factor()
        return [*first, self.training(), self.start(), self.heads()]


_OF_MEAN = ("estimate", "se")


def _tasks(names: Iterable[str]) -> Listing:
    return Listing(tuple(Sentence(f"article.tasks.{name}") for name in names))


def _names(quoted: tuple[str, ...]) -> list[str]:
    return [one.partition("=")[2] for one in quoted]


def _needed(std: float) -> str:
    """Say whether a normalisation leaves the factor needed, by the logits without it."""
    return "redundant" if near_one(std) else "needed"
