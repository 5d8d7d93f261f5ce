"""What a capture is to keep."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch

from sqrtdk.heads.errors import InputError

DTYPES = ("float16", "float32")


@dataclass(frozen=True)
class Wanted:
    """The options of `sqrtdk.capture`; InputError for those that do not fit."""

    layers: str | int | Sequence[str | int] | None
    heads: int | Sequence[int] | None
    tokens: int | None
    dtype: str
    scores: bool
    seed: int

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise InputError(f"dtype {self.dtype!r}: not one of {', '.join(DTYPES)}")
        for name in ("tokens", "heads"):
            number = getattr(self, name)
            if isinstance(number, int) and number < 1:
                raise InputError(f"{name}={number}: has to be at least 1")

    def takes(self, path: str, layer: int | None) -> bool:
        """Say whether a module is among the layers that are wanted."""
        if self.layers is None:
            return True
        listed = (self.layers,) if isinstance(self.layers, str | int) else self.layers
        return any(one == layer if isinstance(one, int) else fnmatch(path, one) for one in listed)
