"""Optimisers that move many models at once, each with its own learning rate."""

from collections.abc import Mapping, Sequence

import numpy as np

NAMES = ("sgd", "momentum", "adam")


def names() -> tuple[str, ...]:
    """Return the names of the optimisers."""
    return NAMES


MOMENTUM = 0.9
POWER = {"sgd": 1.0, "momentum": 1.0, "adam": 0.5}
"""A scale c in front of q·k is a rate of W_q and W_k times c to this power, with √c times as large a start of them."""
BETAS = (0.9, 0.999)
EPSILON = 1e-8


class Optimiser:
    """Plain gradient descent, momentum 0.9 (Polyak 1964) or Adam (Kingma and Ba 2015), without decay and clipping.

    Args:
        name: one of NAMES. rates: learning rates, broadcast against the leading axes of the parameters.
        epsilon: what Adam adds to the root of the second moment. factors: what multiplies the rate of some parameters,
            and divides their epsilon, whose gradients are so many times as large after a change of units.
    """

    def __init__(
        self,
        name: str,
        rates: np.ndarray | Sequence[float],
        epsilon: float = EPSILON,
        factors: Mapping[str, float] | None = None,
    ) -> None:
        if name not in NAMES:
            raise ValueError(f"no optimiser {name!r}; there are {', '.join(NAMES)}")
        self.name, self.rates, self.epsilon, self.factors = name, np.asarray(rates), epsilon, factors or {}
        self.first: dict[str, np.ndarray] = {}
        self.second: dict[str, np.ndarray] = {}
        self.steps = 0

    def step(self, parameters: dict[str, np.ndarray], gradients: dict[str, np.ndarray], part: float = 1.0) -> None:
        """Move the parameters, in place, by one step at this part of the learning rates."""
        self.steps += 1
        for name, value in parameters.items():
            rate = (part * self.rates * self.factors.get(name, 1.0)).astype(value.dtype)
            move = self._direction(name, gradients[name])
            move *= rate.reshape(rate.shape + (1,) * (value.ndim - rate.ndim))
            value -= move

    def _direction(self, name: str, g: np.ndarray) -> np.ndarray:
        """Return the step before its rate, as an array that may be written to."""
        if self.name == "sgd":
            return g
        if name not in self.first:
            self.first[name], self.second[name] = np.zeros_like(g), np.zeros_like(g)
        m, v = self.first[name], self.second[name]
        if self.name == "momentum":
            m *= MOMENTUM
            m += g
            return m.copy()
        one, two = BETAS
        m *= one
        v *= two
        size = (1 - one) * g
        m += size
        np.multiply(g, g, out=size)
        size *= 1 - two
        v += size
        np.sqrt(v, out=size)
        # The corrections of the bias of both moments, which start at 0.
        correction = (1 - two**self.steps) ** 0.5 / (1 - one**self.steps)
        size += self.epsilon / self.factors.get(name, 1.0) * (1 - two**self.steps) ** 0.5
        if self.epsilon == 0:
            size[size == 0] = np.inf
        np.divide(m, size, out=size)
        size *= correction
        return size
