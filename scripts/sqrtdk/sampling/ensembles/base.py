"""What every ensemble is: parameters with their domain, a way to draw blocks, and the exact law beside it."""

import abc
import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sqrtdk.sampling.parameters import Parameter


@dataclass(frozen=True)
class SpecProblem:
    """One mistake in the specification of an ensemble: where, what was given, what is allowed, the nearest name."""

    key: str | None
    value: object
    allowed: str
    nearest: str | None = None


class SpecError(ValueError):
    """All mistakes of one specification, in `problems`."""

    def __init__(self, problems: list[SpecProblem]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{p.key or 'ensemble'} = {p.value!r}: {p.allowed}" for p in problems))


@dataclass(frozen=True)
class Exact:
    """Exact law of q·k at one d_k; None where there is none, and `reason` says why.

    `within_row_variance` is E[Var(q·k | q)]: the part of the variance that softmax sees.
    """

    mean: float | None
    variance: float | None
    within_row_variance: float | None
    excess_kurtosis: float | None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Ensemble(abc.ABC):
    """A joint distribution of q and k. Subclasses are frozen dataclasses whose fields are its parameters."""

    family: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    matched: ClassVar[bool] = False
    """True where q_i and k_i are drawn together, so that only matched pairs are scores of the ensemble."""
    independent_components: ClassVar[bool] = False
    independent_keys: ClassVar[bool] = False
    """True where the keys of a block share nothing with each other or its queries, and so can be drawn in pieces."""
    variance_formula: ClassVar[str]
    """Var(q·k) in the subset of TeX that the report reads, in the names of the parameters' symbols."""
    examples: ClassVar[tuple[Mapping[str, float], ...]] = ({},)
    """Parameters at which tests hold the sampler against the exact law; without the required ones there is none."""

    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        """Return the parameters, in the order of their fields."""
        return tuple(Parameter(field.name, **field.metadata) for field in dataclasses.fields(cls))

    @property
    def spec(self) -> dict[str, Any]:
        """The specification that builds this ensemble."""
        return {"family": self.family, **dataclasses.asdict(self)}

    @property
    def known_density(self) -> bool:
        """True where the density of q·k has a closed form that a histogram can be held against."""
        return False

    @property
    def finite_moment(self) -> float:
        """E|q_i|^p is finite for p below this order."""
        return math.inf

    def undefined_at(self, d_k: int) -> str | None:
        """Say why there is no such ensemble at this width (its cell is left out), None where there is one."""
        return None

    def problems_at(self, d_k: int) -> list[str]:
        """Say which parameters are outside their domain at this width, which is a mistake; empty where none is."""
        return []

    @abc.abstractmethod
    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw independent blocks: q (n_blocks, n_queries, d_k) and k (n_blocks, n_keys, d_k); float32."""

    def draw_in_pieces(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int, piece: int
    ) -> tuple[np.ndarray, Iterator[np.ndarray]]:
        """Draw blocks of the law of `draw`: q, and an iterator over pieces of k, each of at most so many keys.

        Memory does not grow with n_keys. ValueError where keys are not independent.
        """
        if not self.independent_keys:
            raise ValueError(f"the keys of {self.family} depend on each other or on the queries")
        q, first = self.draw(rng, n_blocks, n_queries, min(piece, n_keys), d_k)

        def pieces(k: np.ndarray) -> Iterator[np.ndarray]:
            yield k
            del k
            for start in range(piece, n_keys, piece):
                # Not every family can draw no query at all; the one is thrown away.
                yield self.draw(rng, n_blocks, 1, min(piece, n_keys - start), d_k)[1]

        return q, pieces(first)

    @abc.abstractmethod
    def exact(self, d_k: int) -> Exact:
        """Return the exact mean, variance, within-row variance and excess kurtosis of q·k."""

    def row_spectrum(self, d_k: int) -> list[tuple[float, float, float]] | None:
        """Return (variance of q, variance of k, number) of orthogonal directions if a row of q·k is i.i.d. given q.

        That is where q is centred Gaussian, the keys of a row are, given what they share, independent Gaussian vectors
        of one law, and the covariances of q and k have common eigenvectors. None where it is not.
        """
        return None

    def limiting_exponent(self) -> float | None:
        """Return the exponent of Var(q·k) against d_k that is approached at large d_k; None without a variance."""
        return 1.0 if self.finite_moment > 2 else None

    def block_relative_variance(self, d_k: int, n_queries: int, n_keys: int) -> float | None:
        """Relative variance of one block's variance estimate, to plan the number of blocks; None: ask a pilot."""
        return None


SAID = ("family", "summary", "source", "variance_formula")
"""What every family says of itself in words."""
REGISTRY: dict[str, type[Ensemble]] = {}


def register(cls: type[Ensemble]) -> type[Ensemble]:
    """Class decorator: make a family known under its own name.

    Raises TypeError for a class that is not a whole family, ValueError for a name that another one has.
    """
    where = f"{cls.__name__} of {cls.__module__}"
    texts = [name for name in SAID if not isinstance(getattr(cls, name, None), str)]
    if absent := [*texts, *sorted(cls.__abstractmethods__)]:
        raise TypeError(f"the family {where} lacks {', '.join(absent)}")
    if stray := [field.name for field in dataclasses.fields(cls) if "description" not in field.metadata]:
        raise TypeError(f"in the family {where}, neither parameter(...) nor ClassVar: {', '.join(stray)}")
    if other := REGISTRY.get(cls.family):
        raise ValueError(f"two families are called {cls.family}: {where}, {other.__name__} of {other.__module__}")
    REGISTRY[cls.family] = cls
    return cls
