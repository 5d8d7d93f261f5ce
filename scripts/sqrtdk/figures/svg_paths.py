"""The course of an SVG path in few bytes: relative, on a grid, without vertices that a line passes anyway."""

import math
import re

_TOKEN = re.compile(r"[A-Za-z]|-?\d*\.?\d+(?:e-?\d+)?")
_POINTS = {"M": 1, "L": 1, "Q": 2, "C": 3, "Z": 0}
Point = tuple[float, float]
Segment = tuple[str, tuple[Point, ...]]


def parse(d: str) -> list[Segment]:
    """Return the segments of a path, each M, L, Q, C or Z with its points; what matplotlib never writes is an error."""
    segments, tokens = [], iter(_TOKEN.findall(d))
    for token in tokens:
        command = token.upper()
        if command not in _POINTS or token not in (command, "z"):
            raise ValueError(f"a path holds what matplotlib does not write: {token!r} in {d[:40]!r}")
        points = tuple((float(next(tokens)), float(next(tokens))) for _ in range(_POINTS[command]))
        segments.append((command, points))
    return segments


def straight(segments: list[Segment]) -> str:
    """Return `v` for one vertical stroke, `h` for one horizontal, else nothing."""
    if [command for command, _ in segments] != ["M", "L"]:
        return ""
    ((x, y),), ((to_x, to_y),) = (points for _, points in segments)
    return "v" if x == to_x else "h" if y == to_y else ""


def simplified(segments: list[Segment], tolerance: float) -> list[Segment]:
    """Leave out vertices of polylines from which the line without them is nowhere further than the tolerance."""
    kept: list[Segment] = []
    line: list[Point] = []
    for command, points in [*segments, ("M", ())]:
        if command == "L":
            line += points
            continue
        if line:
            start = kept[-1][1][-1:] if kept and kept[-1][1] else ()
            kept += [("L", (point,)) for point in _fewer([*start, *line], tolerance)[len(start) :]]
            line = []
        kept.append((command, points))
    return kept[:-1]


def _fewer(points: list[Point], tolerance: float) -> list[Point]:
    """Douglas and Peucker: keep the ends, and the furthest vertex wherever one is too far from the chord."""
    keep, spans = {0, len(points) - 1}, [(0, len(points) - 1)]
    while spans:
        first, last = spans.pop()
        inner = range(first + 1, last)
        away = [_distance(points[i], points[first], points[last]) for i in inner]
        if away and max(away) > tolerance:
            place = inner[away.index(max(away))]
            keep.add(place)
            spans += [(first, place), (place, last)]
    return [points[i] for i in sorted(keep)]


def _distance(point: Point, start: Point, end: Point) -> float:
    """Return the distance from a point to the piece of a line between two others."""
    (x, y), (dx, dy) = (point[0] - start[0], point[1] - start[1]), (end[0] - start[0], end[1] - start[1])
    square = dx * dx + dy * dy
    along = min(max((x * dx + y * dy) / square, 0.0), 1.0) if square else 0.0
    return math.hypot(x - along * dx, y - along * dy)


def write(segments: list[Segment], digits: int) -> str:
    """Return the path in relative commands, each coordinate rounded to so many decimals where it stands.

    What has no length left is left out: a flat end of a line (matplotlib's own of intervals) draws nothing there.
    """
    pieces: list[str | int] = []
    here, start, implied = (0, 0), (0, 0), ""
    move: tuple[int, int] | None = (0, 0)
    for place, (command, points) in enumerate(segments):
        ends = [_on_grid(point, digits) for point in points]
        if command == "M":
            start, move = ends[0], ends[0]
            continue
        if command == "Z":
            # Where nothing of a shape is left, there is nothing to close.
            pieces += [] if move else ["z"]
            here, move, implied = (here if move else start), start, ""
            continue
        closing = command == "L" and ends[0] == start and segments[place + 1 : place + 2] == [("Z", ())]
        if closing or all(end == (move or here) for end in ends):
            continue
        if move is not None:
            pieces += ["m", *_steps([move], here)]
            # Pairs of numbers after m are lines.
            here, move, implied = move, None, "l"
        name, steps = command.lower(), _steps(ends, here)
        if name == "l" and 0 in steps:
            name, steps = ("v", steps[1:]) if steps[0] == 0 else ("h", steps[:1])
        pieces += [*([] if name == implied else [name]), *steps]
        here, implied = ends[-1], name
    return _joined(pieces, digits)


def _steps(ends: list[tuple[int, int]], here: tuple[int, int]) -> list[int]:
    return [value - origin for end in ends for value, origin in zip(end, here, strict=True)]


def through(points: list[Point], digits: int) -> str:
    """Return a path with a vertex at each of the points in this order, and a last one once more at the last."""
    here = (0, 0)
    pieces: list[str | int] = ["m"]
    for point in points:
        end = _on_grid(point, digits)
        pieces += [end[0] - here[0], end[1] - here[1]]
        here = end
    return _joined([*pieces, "h", 0], digits)


def _on_grid(point: Point, digits: int) -> tuple[int, int]:
    return round(point[0] * 10**digits), round(point[1] * 10**digits)


def _joined(pieces: list[str | int], digits: int) -> str:
    """Spell commands and numbers with a space only where two numbers would become one."""
    text, last = [], ""
    for piece in pieces:
        spelled = piece if isinstance(piece, str) else _spelled(piece, digits)
        apart = last[-1:].isdigit() and (spelled[0].isdigit() or (spelled[0] == "." and "." not in last))
        text.append(f" {spelled}" if apart else spelled)
        last = spelled
    return "".join(text)


def _spelled(steps: int, digits: int) -> str:
    whole, rest = divmod(abs(steps), 10**digits)
    decimals = f".{rest:0{digits}d}".rstrip("0") if rest else ""
    return ("-" if steps < 0 else "") + (f"{whole or ''}{decimals}" if decimals else str(whole))
