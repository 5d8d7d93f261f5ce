"""Where a figure will stand: its width and its size of type there."""

from dataclasses import dataclass

from sqrtdk.figures import style

TYPE = 9.5
"""Points of the type that figures are laid out with."""
LARGE = 12.5
"""The same for figures of the article: 11 pixels on a telephone of 360."""


@dataclass(frozen=True)
class Target:
    """The width of a figure in inches, and the points of its type, in print."""

    width: float
    type: float

    def room(self, layout: float = TYPE) -> float:
        """Return the width of a layout in type of so many points over that of the report; below 1 labels collide."""
        return 1.0 if self.type == TYPE else self.width * layout / self.type / style.WIDTH


TARGETS = {
    "report": Target(style.WIDTH, TYPE),
    "neurips": Target(5.5, 8),  # also ICLR; one column of 5.5 in
    "icml": Target(6.75, 8),  # both columns
    "acl": Target(6.3, 8),  # both columns
    "ieee": Target(7.16, 8),  # both columns
    "nature": Target(7.2, 7),  # double column, 183 mm
    "thesis": Target(6.0, 9),  # A4 with wide margins
    "slides": Target(10.0, 14),
}
