"""A claim, what its test measures, and the verdict, which an interval and a margin decide and nothing else.

`holds` where the whole interval of the measured statistic lies within the margin, `fails` where it lies wholly outside
of it, else `undecided`: a weak test proves nothing. `holds_if` where the same statistic is within it under a condition
and outside of it without. An `opinion` is not decided; what bears on it is measured all the same. What was not measured
is not decided either: a claim of which a part is untested can fail, but not hold. Beside each verdict stands how far
the number is from its threshold, and what another reasonable threshold would make of it.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqrtdk.claims.texts import Text
from sqrtdk.claims.thresholds import Threshold
from sqrtdk.statistics.intervals import LEVEL, interval, log_interval

if TYPE_CHECKING:
    from sqrtdk.claims.lookup import Results

HOLDS, HOLDS_IF, FAILS, UNDECIDED, OPINION = VERDICTS = ("holds", "holds_if", "fails", "undecided", "opinion")
KINDS = ("arithmetic", "simulated", "trained", "real")
"""What a test rests on: numbers without chance, random queries and keys, small models trained here, a trained model."""
SOURCES = ("A", "B")
NEAR, AT_LEAST, AT_MOST = RELATIONS = ("near", "at_least", "at_most")
PART, WHOLE = "part", "whole"
"""What of a claim was not tested: with a part untested what was measured can refute it, else it only bears on it."""
INTERVAL, NO_ERROR, MISSING, UNTESTED, UNTESTED_PART = REASONS = (
    "interval",
    "no_error",
    "missing",
    "untested",
    "untested_part",
)
"""Why a claim is undecided: an interval across the edge, an estimate without an error, a result that the run lacks, or
what it says was not measured, wholly or in part."""


class Missing(LookupError):
    """What a test needs and the results do not have, in the names of tables and columns."""


@dataclass(frozen=True)
class Measured:
    """A measured number.

    se: its standard error; 0 is believed only where `exact` says that no chance is left. dof: degrees of freedom of
    Student's t. log: whether the interval is symmetric in the logarithm. at: the place in the grid where it was
    measured, name -> (used, asked for). shipped: whether it comes from the tables that ship with the project, and
    longer: whether those trained for more steps than this run. ends: where the number can lie at all, such as a share
    from 0 to 1. shift: from it to the middle of its interval.
    """

    value: float
    se: float = 0.0
    dof: float = math.inf
    log: bool = False
    exact: bool = False
    at: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    shipped: bool = False
    longer: bool = False
    ends: tuple[float, float] = (-math.inf, math.inf)
    shift: float = 0.0

    def interval(self, level: float = LEVEL) -> tuple[float, float] | None:
        """Return the two ends of the interval, or None where the estimate has no error to be believed."""
        if self.exact:
            return self.value, self.value
        if not self.se > 0 or not math.isfinite(self.se):
            return None
        if self.log:
            return log_interval(self.value, self.se / self.value, self.dof, level)
        low, high = interval(self.value + self.shift, self.se, self.dof, level)
        least, most = self.ends
        return max(low, min(least, self.value)), min(high, max(most, self.value))

    def scaled(self, factor: float) -> "Measured":
        """Return this number times one without error."""
        value, shift = factor * self.value, factor * self.shift
        least, most = sorted(factor * end for end in self.ends)
        return dataclasses.replace(self, value=value, se=abs(factor) * self.se, shift=shift, ends=(least, most))

    def shifted(self, by: float) -> "Measured":
        """Return this number plus one without error."""
        least, most = self.ends
        return dataclasses.replace(self, value=self.value + by, ends=(least + by, most + by))

    def minus(self, other: "Measured") -> "Measured":
        """Return the difference to another number, the errors taken as independent."""
        both = self.exact and other.exact
        return dataclasses.replace(self, value=self.value - other.value, se=math.hypot(self.se, other.se), exact=both)

    def power(self, exponent: float) -> "Measured":
        """Return a power of a positive number, its error to first order."""
        value = self._positive() ** exponent
        return dataclasses.replace(self, value=value, se=abs(exponent * value / self.value) * self.se)

    def _positive(self) -> float:
        if not self.value > 0:
            raise Missing(f"a number above 0 in place of {self.value:g}")
        return self.value

    def over(self, other: "Measured") -> "Measured":
        """Return the ratio to another number, the errors taken as independent, to first order."""
        if other.value == 0:
            raise Missing("a ratio to 0")
        value = self.value / other.value
        se = math.hypot(self.se / other.value, value * other.se / other.value)
        return Measured(
            value,
            se,
            min(self.dof, other.dof),
            self.log or other.log,
            self.exact and other.exact,
            {**other.at, **self.at},
            self.shipped or other.shipped,
            self.longer or other.longer,
        )

    def log2(self) -> "Measured":
        """Return the binary logarithm of a positive number, its error to first order."""
        se = self.se / self._positive() / math.log(2)
        return dataclasses.replace(self, value=math.log2(self.value), se=se, log=False)


@dataclass(frozen=True)
class Test:
    """One statistic, and where a claim says that it lies: near a value, at least or at most at a threshold."""

    __test__ = False

    estimate: Measured
    relation: str
    threshold: Threshold
    centre: float = 0.0

    @property
    def expected(self) -> float:
        """The value that the statistic should be near to, or the bound."""
        return self.centre if self.relation == NEAR else self.threshold.value

    @property
    def margin(self) -> float:
        """How far from the expected value still counts; 0 at a bound."""
        return self.threshold.value if self.relation == NEAR else 0.0

    @property
    def region(self) -> tuple[float, float]:
        """The two ends of where the claim says that the statistic lies, in its own unit."""
        low = -math.inf if self.relation == AT_MOST else self.expected - self.margin
        return low, math.inf if self.relation == AT_LEAST else self.expected + self.margin

    @property
    def distance(self) -> float:
        """How far inside of the nearer end of the region the measured value is, in its own unit; outside it is < 0."""
        low, high = self.region
        return min(self.estimate.value - low, high - self.estimate.value)

    @property
    def relative_distance(self) -> float:
        """The distance in units of the threshold."""
        return self.distance / abs(self.threshold.value)

    def verdict(self, level: float = LEVEL) -> str:
        """Decide by the interval alone: wholly inside, wholly outside, or neither."""
        ends = self.estimate.interval(level)
        if ends is None:
            return UNDECIDED
        (low, high), (least, most) = ends, self.region
        if least <= low and high <= most:
            return HOLDS
        return FAILS if high < least or low > most else UNDECIDED

    def turned(self) -> "Test":
        """Return the same test with the other threshold."""
        return dataclasses.replace(self, threshold=self.threshold.turned)


def near(estimate: Measured, expected: float, margin: Threshold) -> Test:
    """Ask whether the statistic is this value, within a margin in its own unit."""
    return Test(estimate, NEAR, margin, expected)


def at_least(estimate: Measured, bound: Threshold) -> Test:
    """Ask whether the statistic is this bound, in its own unit, or above."""
    return Test(estimate, AT_LEAST, bound)


def at_most(estimate: Measured, bound: Threshold) -> Test:
    """Ask whether the statistic is this bound, in its own unit, or below."""
    return Test(estimate, AT_MOST, bound)


@dataclass(frozen=True)
class Outcome:
    """The tests of a claim, which all have to hold or one of which has to, and the test without its condition."""

    tests: tuple[Test, ...]
    otherwise: Test | None = None
    one_is_enough: bool = False

    @property
    def level(self) -> float:
        """The level of each interval: of several tests each gets its share of the chance of an error (Bonferroni)."""
        return 1 - (1 - LEVEL) / len(self.tests)

    def decisive(self) -> Test:
        """Return the test that the verdict rests on: of those that decide it the one nearest to its threshold.

        Where all have to hold, one that fails decides; where one is enough, one that holds.
        """
        order = (HOLDS, UNDECIDED, FAILS) if self.one_is_enough else (FAILS, UNDECIDED, HOLDS)

        def rank(test: Test) -> tuple[int, float]:
            return order.index(test.verdict(self.level)), abs(test.relative_distance)

        return min(self.tests, key=rank)

    def verdict(self) -> str:
        """Decide by all tests, and by whether the statistic differs without the condition."""
        inside = self.decisive().verdict(self.level)
        if self.otherwise is None or inside != HOLDS:
            return inside
        # What holds without the condition too holds as it stands.
        return {FAILS: HOLDS_IF, HOLDS: HOLDS, UNDECIDED: UNDECIDED}[self.otherwise.verdict()]

    def undecided_by(self) -> str:
        """Say why the verdict is `undecided`."""
        test = self.decisive()
        if test.verdict(self.level) == HOLDS and self.otherwise is not None:
            test = self.otherwise
        return INTERVAL if test.estimate.interval() else NO_ERROR

    def turned(self) -> "Outcome":
        """Return the same tests with the other thresholds."""
        otherwise = self.otherwise and self.otherwise.turned()
        return Outcome(tuple(test.turned() for test in self.tests), otherwise, self.one_is_enough)


def every(*tests: Test) -> Outcome:
    """Ask several tests, all of which have to hold; one that fails refutes the claim."""
    return Outcome(tests)


def either(*tests: Test) -> Outcome:
    """Ask several tests, one of which has to hold; the claim fails where all fail."""
    return Outcome(tests, one_is_enough=True)


def under(condition: Test | Outcome, otherwise: Test) -> Outcome:
    """Ask one test or several where a condition is met, and one where it is not."""
    return Outcome(condition.tests if isinstance(condition, Outcome) else (condition,), otherwise)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim of one of the two articles, restated, and the test that decides it.

    says: the claim in our words. measures: the statistic of the test. holds_if, not_if: a condition and what is so
    without it, of tests with two sides. remark: what the test does not reach, or what a reader should see beside it.
    theorem: claims of one name say one thing, which counts once. identity: whether the test follows from definitions,
    so that no data could refute it. evidence: the figure or table that shows it, by its anchor in the report.
    untested: PART or WHOLE where the project does not measure all that it says; the remark tells what.
    reads: the result tables that the test may read. widespread: whether many other texts say the same, so that a claim
    that does not simply hold is a surprise. test: results -> Outcome, pure; raises Missing.
    """

    id: str
    source: str
    kind: str
    says: Text
    measures: Text
    holds_if: Text | None = None
    not_if: Text | None = None
    remark: Text | None = None
    theorem: str = ""
    identity: bool = False
    evidence: str
    reads: tuple[str, ...]
    widespread: bool = False
    opinion: bool = False
    untested: str = ""
    test: Callable[["Results"], Outcome]

    def __post_init__(self) -> None:
        if self.source not in SOURCES or self.kind not in KINDS:
            raise ValueError(f"{self.id}: source {self.source!r} or kind {self.kind!r} is not known")
        if (self.holds_if is None) != (self.not_if is None):
            raise ValueError(f"{self.id}: a condition needs words for both of its sides")
        if self.opinion and self.holds_if:
            raise ValueError(f"{self.id}: an opinion has no condition, as it is not decided")
        if self.untested and (self.untested not in (PART, WHOLE) or self.remark is None or self.opinion):
            raise ValueError(
                f"{self.id}: what is untested is a part or the whole, of no opinion, and its remark says so"
            )

    def decide(self, results: "Results") -> "Decision":
        """Run the test on the results; what they lack makes the claim undecided and says so."""
        try:
            outcome = self.test(results.only(self.reads))
        except Missing as error:
            return Decision(self, OPINION if self.opinion else UNDECIDED, None, MISSING, str(error))
        if (outcome.otherwise is None) != (self.holds_if is None):
            raise ValueError(f"{self.id}: the test and the words do not agree on whether there is a condition")
        verdict, reason = self.judge(outcome)
        return Decision(self, verdict, outcome, reason)

    def judge(self, outcome: Outcome) -> tuple[str, str]:
        """Return the verdict that an outcome of the test gives, and the reason for one that is undecided."""
        if self.opinion:
            return OPINION, ""
        if self.untested == WHOLE:
            return UNDECIDED, UNTESTED
        verdict = outcome.verdict()
        if self.untested and verdict in (HOLDS, HOLDS_IF):
            return UNDECIDED, UNTESTED_PART
        return verdict, outcome.undecided_by() if verdict == UNDECIDED else ""


@dataclass(frozen=True)
class Decision:
    """The verdict on a claim and what it rests on; `reason` says why it is undecided, `missing` what is not there."""

    claim: Claim
    verdict: str
    outcome: Outcome | None
    reason: str = ""
    missing: str = ""

    @property
    def other_verdict(self) -> str:
        """The verdict that the other thresholds would give; without a test it is the same."""
        return self.verdict if self.outcome is None else self.claim.judge(self.outcome.turned())[0]

    @property
    def surprise(self) -> bool:
        """A claim that is widely repeated and does not simply hold."""
        return self.claim.widespread and self.verdict in (FAILS, HOLDS_IF)


REGISTRY: dict[str, Claim] = {}


def claim(id: str, **parts: Any) -> Callable[[Callable[["Results"], Outcome | Test]], Claim]:
    """Register the decorated test as that of a claim: the one place that a claim is written down in."""

    def register(test: Callable[["Results"], Outcome | Test]) -> Claim:
        if id in REGISTRY:
            raise ValueError(f"two claims are called {id}")

        @functools.wraps(test)
        def outcome(results: "Results") -> Outcome:
            decided = test(results)
            return decided if isinstance(decided, Outcome) else Outcome((decided,))

        REGISTRY[id] = Claim(id=id, test=outcome, **parts)
        return REGISTRY[id]

    return register
