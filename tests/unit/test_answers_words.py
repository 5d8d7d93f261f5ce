"""Every sentence that answers can choose has words, which its values fill, and there are no other words."""

import itertools
import math
from pathlib import Path

import synthetic_results
import synthetic_training
from answer_cases import AT, FITS, GRADIENTS, MOMENTS, SATURATION, VANISHING, VERDICTS

from sqrtdk.report import answers, training_answers, vanishing
from sqrtdk.sampling import laws
from sqrtdk.words import texts

REPORT = Path(__file__).resolve().parents[2] / "report"
KNOWN_LAWS = laws.VARIANCE_LAWS | laws.MEAN_LAWS | laws.SPREAD_LAWS


TRAINING = ("answer.training", "follows.training")
"""Sentences on training, whose words are filled in a test of their own."""


def possible() -> set[str]:
    """Return the key of every sentence that can be chosen."""
    families = {
        "answer.exponent": ("agrees", "differs", "alone", "not_estimable"),
        "answer.intervals": ("all", "some", "nowhere"),
        "answer.variance": ("agrees", "differs", "alone", "unsure", "missing", "scaled"),
        "answer.softmax": VERDICTS,
        "answer.heads": ("none", "few", "most", "all"),
        "answer.calibration": ("good", "poor", "far", "none"),
        "answer.theory": ("good", "far"),
        "answer.training": ("none",),
        "answer.training.best": ("hurts", "helps", "same", "undecided"),
        "answer.training.window": ("hurts", "helps", "same", "undecided", "open"),
        "answer.training.nowhere": ("plain", "scaled", "both"),
        "answer.training.mup": ("hurts", "helps", "same", "undecided"),
        "follows.training": ("widths", "start"),
        "follows.training.transfer.plain": ("stays", "moves", "undecided", "nowhere", "beyond", "unsure"),
        "follows.training.transfer.scaled": ("stays", "moves", "undecided", "nowhere", "beyond", "unsure"),
        "follows.training.gradient": ("larger", "smaller", "mixed"),
        "follows.selected": ("linear", "power", "affine", "quadratic", "none", "rejected"),
        "follows.spread": ("one", "many"),
        "follows.shape": ("agrees", "differs", "alone", "unsure"),
        "follows.keys": VERDICTS,
        "follows.gradient": VERDICTS,
        "follows.tails": ("all", "some"),
        "laws": tuple(name for name, law in KNOWN_LAWS.items() if not law.tail),
    }
    families |= {
        f"answer.gradient.{measure}.{kind}": VERDICTS
        for measure in ("grad_logits", "grad_query")
        for kind in ("rms", "median")
    }
    families |= {f"answer.vanishing.{family}": verdicts for family, verdicts in vanishing.SENTENCES.items()}
    families["answer.gradient.together"] = tuple("_".join(pair) for pair in itertools.product(VERDICTS, VERDICTS))
    singles = {"answer.one_rule", "answer.convention", "follows.sharpened"}
    return singles | {f"{family}.{verdict}" for family, verdicts in families.items() for verdict in verdicts}


def leaves(tree: dict, before: str = "") -> set[str]:
    found = set()
    for key, value in tree.items():
        found |= leaves(value, f"{before}{key}.") if isinstance(value, dict) else {f"{before}{key}"}
    return found


def test_every_sentence_that_can_be_chosen_has_words_and_no_others_have():
    tree = texts.read(REPORT, "en")
    written = {key for key in leaves(tree) if key.startswith(("answer.", "follows.", "laws."))}
    assert {key for key in written if not key.startswith("answer.headings.")} == possible()
    frames = {"moments": MOMENTS, "variance_laws": FITS, "softmax_saturation": SATURATION}
    frames |= {"gradient_magnitude": GRADIENTS, "real_heads": synthetic_results.real_heads(1, 2), **VANISHING}
    assert set(tree["answer"]["headings"]) == {*answers.headline(frames, AT), "training"}


def test_words_of_a_family_are_filled_by_its_values():
    tree = texts.read(REPORT, "en")
    say = texts.Words(tree)
    frames = {"moments": MOMENTS, "variance_laws": FITS, "softmax_saturation": SATURATION}
    frames |= {"gradient_magnitude": GRADIENTS, "real_heads": synthetic_results.real_heads(1, 2), **VANISHING}
    parts = [*answers.headline(frames, AT).values(), *answers.follows(frames, AT).values()]
    families = {}
    for sentence in itertools.chain(*parts):
        families.setdefault(sentence.key.rpartition(".")[0], sentence.values)
    others = {"not_estimable", "missing", "scaled", "none", "one_rule", "sharpened", "headings", "convention"}
    checked = set()
    for family, values in families.items():
        for verdict in say.entry(family):
            if say.has(f"{family}.{verdict}") and (verdict not in others or family == "follows.selected"):
                say(f"{family}.{verdict}", **values)
                checked.add(f"{family}.{verdict}")
    unchecked = {key for key in possible() - checked if not key.startswith(("laws.", *TRAINING))}
    assert unchecked == {
        "answer.exponent.not_estimable",
        "answer.variance.missing",
        "answer.variance.scaled",
        "answer.heads.none",
        "answer.calibration.none",
        "answer.one_rule",
        "answer.convention",
        "follows.sharpened",
    }


def test_words_on_training_are_filled_by_the_values_of_their_family():
    say = texts.Words(texts.read(REPORT, "en"))
    frames = synthetic_training.tables()
    # No usable rate anywhere: its sentences carry other values.
    none = {"training_summary": frames["training_summary"].assign(rate_ceiling=math.nan)}
    none |= {"training_transfer": frames["training_transfer"].assign(shift=math.nan)}
    found = []
    for tables in (frames, frames | none):
        found += [*training_answers.headline(tables), *itertools.chain(*training_answers.follows(tables).values())]
    filled = set()
    for sentence in found:
        family = sentence.key.rpartition(".")[0]
        alike = say.entry(family) if family not in TRAINING else [sentence.key.rpartition(".")[2]]
        for verdict in alike:
            # A transfer that was not found has where it was not instead of a factor.
            alone = family.startswith("follows.training.transfer") and ("where" in sentence.values) != (
                verdict in ("nowhere", "beyond", "unsure")
            )
            if say.has(f"{family}.{verdict}") and not alone:
                say(f"{family}.{verdict}", **sentence.values)
                filled.add(f"{family}.{verdict}")
    expected = {key for key in possible() if key.startswith(TRAINING)}
    assert expected - filled == {"answer.training.none"}
