"""Which width or number of keys of a run stands in for one that is asked for."""

import math
from collections.abc import Iterable


def nearest(values: Iterable[int], wanted: int) -> int:
    """Return the value nearest to the wanted one in ratio, the smaller of two that are equally near.

    Of no values it is the wanted one, which then finds no row of the empty table that they come from.
    """
    every = sorted(int(value) for value in set(values))
    return min(every, key=lambda value: abs(math.log(value / wanted)), default=wanted)
